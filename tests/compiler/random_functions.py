"""Random functions with loops, branches, tables and mutable arrays, for floats and traced values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from zwang import scalar

SIZE = 3
"""The number of inputs and outputs of a function."""

CONTROL = ["while", "cond", "for", "active", "range"]


def random_function(seed: int, statements: int = 6) -> Callable[[Any], list[Any]]:
    """A function of an array (SIZE,) that is the same for the same seed."""
    plan = _plan(random.Random(seed), statements, depth=2)
    return lambda x: _run(plan, [*x], scalar.zeros(SIZE))[0][:SIZE]


def random_inputs(seed: int, lanes: int) -> np.ndarray:
    """Inputs (lanes, SIZE) of moderate size, zeros among them."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((lanes, SIZE)) < 0.1, 0.0, rng.normal(size=(lanes, SIZE)) * 2)


def _plan(rng: random.Random, statements: int, depth: int) -> list[tuple]:
    kinds = ["binary", "binary", "unary", "where", "load", "store", "gather", "scatter"]
    kinds += CONTROL if depth else []
    return [_statement(rng, rng.choice(kinds), depth) for _ in range(statements)]


def _statement(rng: random.Random, kind: str, depth: int) -> tuple:
    positions = [rng.randrange(SIZE) for _ in range(4)]
    if kind in CONTROL:
        inner = [_plan(rng, rng.randint(1, 4), depth - 1) for _ in range(2)]
        return (kind, positions, rng.randint(2, 5), inner)
    choice = {"binary": "+-*/mM", "unary": ["sin", "cos", "absolute", "floor", "sqrt", "exp"]}.get(kind, " ")
    return (kind, positions, rng.choice(choice), rng.choice([0.5, -1.25, 2.0]))


def _run(plan: list[tuple], state: list[Any], array: Any, i: Any = None) -> tuple[list[Any], Any]:
    state = list(state)
    for kind, positions, choice, data in plan:
        if kind in CONTROL:
            state, array = _control(kind, positions, choice, data, state, array)
        elif kind == "store":
            array = array.set(positions[0] if i is None else i, state[positions[1]])
        elif kind == "scatter":
            array = array.scatter(state[positions[0]], state[positions[1]])
        elif kind == "gather":
            state[positions[0]] = state[positions[1]] * data + array.gather(state[positions[2]])
        elif kind == "load":
            state[positions[0]] = state[positions[1]] * data + array[positions[2] if i is None else i]
        else:
            state[positions[0]] = _value(kind, choice, data, [state[p] for p in positions[1:]])
    return state, array


def _value(kind: str, choice: str, data: float, args: list[Any]) -> Any:
    a, b, c = args
    if kind == "where":
        return scalar.where(scalar.less(a, b), c, a * data)
    if kind == "unary":
        return _clipped(getattr(scalar, choice)(scalar.clip(a, 0.0, 3.0) if choice in ("sqrt", "exp") else a))
    if choice in "mM":
        return (scalar.minimum if choice == "m" else scalar.maximum)(a, b)
    if choice == "/":
        return a / (1 + b * b)
    return _clipped({"+": a + b, "-": a - b * data, "*": a * b + c}[choice])


def _clipped(x: Any) -> Any:
    return scalar.clip(x, -50.0, 50.0)


def _control(kind: str, positions: list[int], count: int, inner: list, state: list[Any], array: Any) -> tuple:
    if kind == "cond":
        less = scalar.less(state[positions[0]], state[positions[1]])
        return scalar.cond(
            less, lambda a: _run(inner[0], state, a), lambda a: _run(inner[1], state, a), array
        )
    if kind == "for":
        factors = scalar.table([0.5, -1.0, 2.0, 0.0, 1.5])

        def iterate(i, carry):
            s, a = _run(inner[0], *carry)
            s[positions[0]] = _clipped(s[positions[0]] + factors[i] * state[positions[1]])
            return s, a

        return scalar.fori_loop(0, count, iterate, (state, array), unroll=False)
    if kind == "active":
        flags = scalar.empty(count)
        for k in range(count):
            flags = flags.set(k, scalar.sin(3 * k + state[positions[0]]))

        def iterate_active(i, carry):
            s, a = _run(inner[0], *carry, i=None)
            s[positions[1]] = _clipped(s[positions[1]] * flags[i] + i * state[positions[2]])
            return s, a.set(positions[3], s[positions[1]])

        return scalar.for_each(scalar.ActiveIndices(flags), iterate_active, (state, array))

    if kind == "range":
        wanted = scalar.absolute(scalar.floor(state[positions[0]]))
        upper = scalar.lane_maximum(wanted, count)

        def iterate_in_range(i, carry):
            return scalar.cond(
                1.0 * i < wanted, lambda s, a: _run(inner[0], s, a), lambda s, a: (s, a), *carry
            )

        return scalar.fori_loop(
            positions[1], upper, iterate_in_range, (state, array), reverse=positions[2] == 0
        )

    def not_finished(carry):
        s, a, iterations = carry
        return scalar.logical_and(
            iterations < 4, s[positions[0]] < s[positions[1]] + iterations + a[positions[2]]
        )

    def step(carry):
        s, a, iterations = carry
        return (*_run(inner[0], s, a), iterations + 1)

    s, a, _ = scalar.while_loop(not_finished, step, (state, array, 0))
    return s, a
