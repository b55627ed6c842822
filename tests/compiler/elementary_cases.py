"""Programs of elementary functions, and arguments that are difficult for them."""

from __future__ import annotations

import math

import numpy as np

from zwang.compiler.ir.program import Block, Instruction, Port, Program

HYPERBOLIC = ("sinh", "cosh", "tanh", "sech")
INVERSE = ("asinh", "acosh", "atanh")
UNARY = ("sin", "cos", "tan", "asin", "acos", "exp", "log", *HYPERBOLIC, *INVERSE)
BINARY = ("atan2", "pow")


def program_of(*ops: str) -> Program:
    """A program whose outputs are these functions of its one input x, (1,) or (2,)."""
    size = 2 if any(op in BINARY for op in ops) else 1
    instructions = [Instruction("input", (), (k,), (0, k)) for k in range(size)]
    instructions += [
        Instruction(op, (0, 1) if op in BINARY else (0,), (size + n,)) for n, op in enumerate(ops)
    ]
    values = range(size + len(ops))
    outputs = tuple(values[size:])
    return Program(
        (Port("x", size),),
        (Port("y", len(ops)),),
        Block((), tuple(instructions), outputs),
        dict.fromkeys(values, "real"),
        {},
    )


def arguments(op: str, dtype: str, count: int = 500) -> np.ndarray:
    """Numbers of the function's domain, dense in the range that occurs in dynamics, and of all magnitudes."""
    rng = np.random.default_rng(len(op))
    double = dtype == "float64"
    great, small = (1e300, 1e-300) if double else (1e37, 1e-37)

    def sized(low: float, high: float) -> np.ndarray:
        return rng.choice([-1, 1], count) * np.exp(rng.uniform(math.log(low), math.log(high), count))

    if op in ("sin", "cos", "tan"):
        parts = [
            rng.uniform(-8, 8, count),
            rng.uniform(-1e5, 1e5, count),
            sized(small, great),
            near_quarters(),
        ]
    elif op == "exp":
        reach = (-745, 709.7) if double else (-103, 88.7)
        parts = [rng.uniform(-2, 2, count), rng.uniform(*reach, count), sized(small, 1)]
    elif op == "log":
        near_one = 1 + sized(1e-16 if double else 1e-7, 0.4)
        parts = [rng.uniform(0, 3, count), abs(sized(small * 1e-7, great)), near_one]
    elif op in HYPERBOLIC:
        reach = (-750, 750) if double else (-107, 107)
        parts = [rng.uniform(-3, 3, count), rng.uniform(*reach, count), sized(small, great)]
    elif op == "asinh":
        parts = [rng.uniform(-3, 3, count), sized(small, great), sized(1e-3, 1e10)]
    elif op == "acosh":
        near_one = 1 + abs(sized(1e-16 if double else 1e-7, 10))
        parts = [rng.uniform(1, 3, count), abs(sized(1, great)), near_one]
    else:
        near_end = 1 - abs(sized(1e-16 if double else 1e-7, 0.5))
        parts = [
            rng.uniform(-1, 1, count),
            sized(small, 1),
            near_end,
            -near_end,
            rng.uniform(0.49, 0.51, count),
        ]
    with np.errstate(over="ignore"):
        x = np.concatenate(parts).astype(dtype)
    return x[np.isfinite(x)]


def near_quarters() -> np.ndarray:
    """Numbers next to multiples of pi/2, among them the worst cases of double and single precision."""
    k = np.array([1, 2, 3, 4, 5, 11, 22, 355, 1e3, 1e5, 1e6, 2**30, 1e9, 1e15, 1e22, 1e100, 1e200])
    quarters = k * (math.pi / 2)
    worst = [
        6381956970095103 * 2.0**797,
        16367173 * 2.0**72,
        1e300,
        2.0**1023,
        float(np.finfo(np.float32).max),
    ]
    one_side = np.concatenate([quarters, np.nextafter(quarters, 0), worst])
    return np.concatenate([one_side, -one_side])


def pairs(op: str, dtype: str, count: int = 500) -> np.ndarray:
    """Arguments (n, 2) of a function of two."""
    rng = np.random.default_rng(5)
    double = dtype == "float64"
    great, small, reach = (1e300, 1e-300, 700) if double else (1e37, 1e-37, 87)

    def sized() -> np.ndarray:
        return np.exp(rng.uniform(math.log(small), math.log(great), count))

    sign = rng.choice([-1, 1], (2, count))
    if op == "atan2":
        first = [sized() * sign[0], rng.uniform(-3, 3, count), rng.uniform(-3, 3, count)]
        second = [sized() * sign[1], rng.uniform(-3, 3, count), rng.uniform(0, 3, count)]
    else:
        first = [sized(), rng.uniform(0, 3, count), 1 + rng.uniform(-1e-3, 1e-3, count)]
        powers = rng.uniform(-reach, reach, (2, count)) / np.log([first[0], first[2]])
        second = [powers[0], rng.uniform(-10, 10, count), powers[1]]
    pair = np.stack([np.concatenate(first), np.concatenate(second)], axis=-1)
    return np.where(np.isfinite(pair), pair, 1.0).astype(dtype)
