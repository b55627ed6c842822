"""Kinematics and dynamics give the same results compiled: at each width and type, and as C source, on joints
of every kind.
"""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.backends.test_dynamics_backends import FUNCTIONS, SYMBOLIC, flat
from tests.compiler.test_c import called, needs_cc
from tests.mechanisms import KINDS, random_mechanism, random_state
from zwang.compiler.backends import c
from zwang.compiler.backends.llvm.lanes import TYPES, WIDTHS
from zwang.compiler.ir.program import Program
from zwang.compiler.pipeline import trace_and_optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction

NEAR = {"float64": 1e-10, "float32": 5e-3}
WORLDS = 5
STATES: tuple[str, ...] = ("q", "v", "tau", "a")

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
IN_SINGLE_PRECISION = (zw.Screw, zw.Cylindrical, zw.Ball)  # together they have all elementary joints
kinds_and_types = pytest.mark.parametrize(
    ("kind", "dtype"),
    [(k, dtype) for k in KINDS for dtype in TYPES if dtype == "float64" or k in IN_SINGLE_PRECISION],
    ids=lambda value: getattr(value, "__name__", value),
)


class Problem(NamedTuple):
    """A random mechanism, states (WORLDS, n) of it by name, and all functions' program and float results."""

    mechanism: zw.Mechanism
    states: dict[str, np.ndarray]
    program: Program
    expected: dict[str, np.ndarray]


@cache
def problem(kind: type, seed: int) -> Problem:
    """Two bodies on joints of this kind; for odd seeds revolute joints are drawn as well."""
    m = random_mechanism(seed, bodies=2, kinds=(kind, zw.Revolute) if seed % 2 else (kind,))
    rows = zip(*(random_state(m, seed + k) for k in range(WORLDS)), strict=True)
    states = dict(zip(STATES, map(np.array, rows), strict=True))
    program = trace_and_optimise(lambda *x: values(m, dict(zip(states, x, strict=True))), inputs_of(states))
    single = [values(m, {name: rows[w] for name, rows in states.items()}) for w in range(WORLDS)]
    expected = {name: np.array([one[name] for one in single], dtype=float) for name in FUNCTIONS}
    return Problem(m, states, program, expected)


def inputs_of(states: dict[str, np.ndarray]) -> dict[str, int]:
    return {name: rows.shape[1] for name, rows in states.items()}


def values(m: zw.Mechanism, state: dict[str, Any]) -> dict[str, np.ndarray]:
    """All functions' results, flat, by name."""
    return {
        name: flat(f(m.tree, *(state[n] for n in inputs.split()))) for name, (inputs, f) in FUNCTIONS.items()
    }


def assert_near(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], dtype: str) -> None:
    for name, wanted in expected.items():
        scale = max(1.0, abs(wanted).max())
        np.testing.assert_allclose(found[name], wanted, rtol=0, atol=NEAR[dtype] * scale, err_msg=name)


@cache
def compiled_results(kind: type, dtype: str, width: int) -> list[np.ndarray]:
    """All functions' results (WORLDS, size) by machine code for so many lanes."""
    p = problem(kind, seed=KINDS.index(kind))
    return CompiledFunction(p.program, dtype=dtype, lanes=width, threads=1, cache=False)(*p.states.values())


@kinds_and_types
def test_compiled_equals_float_at_every_width(kind, dtype):
    p = problem(kind, seed=KINDS.index(kind))
    bits = set()
    for width in (1, WIDTHS[1:-1][KINDS.index(kind) % 3], WIDTHS[-1]):
        found = compiled_results(kind, dtype, width)
        assert_near(dict(zip(FUNCTIONS, found, strict=True)), p.expected, dtype)
        bits.add(b"".join(array.tobytes() for array in found))
    assert len(bits) == 1


def c_function(folder: Path, source: str) -> Any:
    (folder / "all.c").write_text(source)
    flags = ["-std=c99", "-O1", "-march=native", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run(["cc", *flags, folder / "all.c", "-o", folder / "all.so", "-lm"], check=True)
    return ctypes.CDLL(str(folder / "all.so")).compute


@needs_cc
@kinds_and_types
def test_the_c_source_gives_the_compiled_bits(kind, dtype, tmp_path):
    p = problem(kind, seed=KINDS.index(kind))
    function = c_function(tmp_path, c.source(p.program, "compute", dtype))
    fast = compiled_results(kind, dtype, WIDTHS[-1])
    for w in range(WORLDS):
        found = called(function, p.program, {name: rows[w] for name, rows in p.states.items()}, dtype)
        assert found.tobytes() == b"".join(array[w].tobytes() for array in fast)


@pytest.mark.parametrize("name", SYMBOLIC)
@kinds
def test_symbolic_equals_float(kind, name):
    m = random_mechanism(7, bodies=2, kinds=(kind,))
    inputs, function = FUNCTIONS[name]
    state = dict(zip(STATES, random_state(m, 7), strict=True))
    floats = [state[n] for n in inputs.split()]
    numbers = [np.array([sp.Float(float(x), 30) for x in array], dtype=object) for array in floats]
    expected = flat(function(m.tree, *floats)).astype(float)
    found = np.array([float(x) for x in flat(function(m.tree, *numbers))])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * max(1.0, abs(expected).max()))
