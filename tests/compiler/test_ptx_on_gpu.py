"""The PTX of programs, run on a GPU, gives the bits of the same programs on the processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import zwang as zw
from tests.backends import test_constraint_backends as constraints
from tests.compiler import test_gather_scatter as arrays
from tests.compiler.elementary_cases import BINARY, UNARY, arguments, pairs, program_of
from tests.compiler.random_functions import SIZE, random_function
from tests.compiler.test_c import AWKWARD, every_operation
from tests.mechanisms import random_mechanism, random_state
from zwang.compiler.backends.ptx import ptx
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.program import Program
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction

pytestmark = pytest.mark.needs("nvidia-smi")
LAYOUTS = pytest.mark.parametrize("transposed", [False, True])
TYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
WORLDS = 150
Check = Callable[[Program, Sequence[np.ndarray], str, bool], None]


def outputs_of_kernel(
    file: Path, inputs: Sequence[np.ndarray], sizes: Sequence[int], transposed: bool
) -> list[np.ndarray]:
    """The outputs (worlds, size) of the kernel of a file.

    transposed: whether the numbers of one element lie beside one another in memory, not those of one world.
    """
    cupy = pytest.importorskip("cupy")
    kernel, worlds = cupy.RawModule(path=str(file)).get_function("zwang"), len(inputs[0])
    arrays = [*inputs, *(np.full((worlds, size), np.nan, inputs[0].dtype) for size in sizes)]
    arrays = [cupy.asarray(np.ascontiguousarray(x.T if transposed else x)) for x in arrays]
    strides = [(1, worlds) if transposed else (x.shape[1], 1) for x in arrays]
    parameters = [y for x, s in zip(arrays, strides, strict=True) for y in (x, *map(np.int64, s))]
    kernel((-(-worlds // 64),), (64,), (*parameters, np.int64(worlds)))
    found = [x.get() for x in arrays[len(inputs) :]]
    return [x.T if transposed else x for x in found]


@pytest.fixture
def assert_same_bits(tmp_path: Path) -> Check:
    def check(program: Program, inputs: Sequence[np.ndarray], dtype: str, transposed: bool) -> None:
        """inputs: (worlds, size) of each. Signs of zero count, the bits of what is not a number do not."""
        inputs = [x.astype(dtype) for x in inputs]
        results = CompiledFunction(program, dtype=dtype, cache=False)(*inputs)
        expected = [x for x in (results if isinstance(results, tuple) else (results,)) if x.shape[1]]
        file = tmp_path / "program.ptx"
        file.write_text(ptx(program, dtype))
        sizes = [x.shape[1] for x in expected]
        found = outputs_of_kernel(file, [x for x in inputs if x.shape[1]], sizes, transposed)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
            number = ~np.isnan(other)
            np.testing.assert_array_equal(np.signbit(one)[number], np.signbit(other)[number])

    return check


@TYPES
def test_every_operation_on_awkward_numbers(assert_same_bits: Check, dtype: str) -> None:
    x = np.array([(a, b, 1.25) for a in AWKWARD for b in AWKWARD[::2]])
    program = optimise(trace(every_operation, {"x": (3,)}))
    assert_same_bits(program, [x], dtype, False)


@TYPES
@pytest.mark.parametrize("op", UNARY + BINARY)
def test_elementary_functions(assert_same_bits: Check, op: str, dtype: str) -> None:
    x = pairs(op, dtype) if op in BINARY else arguments(op, dtype)[:, None]
    awkward = np.stack([np.array(AWKWARD).astype(dtype)] * x.shape[1], axis=1)
    x = np.concatenate([x, awkward])
    assert_same_bits(program_of(op), [x], dtype, False)


@TYPES
@LAYOUTS
@pytest.mark.parametrize("seed", range(20))
def test_random_functions_with_control_flow(
    assert_same_bits: Check, seed: int, transposed: bool, dtype: str
) -> None:
    program = optimise(trace(random_function(seed, 12), {"x": (SIZE,)}))
    x = np.random.default_rng(seed).normal(size=(WORLDS, SIZE))
    assert_same_bits(program, [x], dtype, transposed)


@TYPES
@LAYOUTS
@pytest.mark.parametrize("name", arrays.FUNCTIONS)
def test_loops_over_arrays(assert_same_bits: Check, name: str, transposed: bool, dtype: str) -> None:
    x = arrays.worlds(3, WORLDS)
    assert_same_bits(arrays.OPTIMISED[name], [x], dtype, transposed)


@TYPES
@LAYOUTS
@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics", "mass_matrix", "step"])
@pytest.mark.parametrize("seed", range(3))
def test_functions_of_mechanisms(
    assert_same_bits: Check, seed: int, function: str, transposed: bool, dtype: str
) -> None:
    m = random_mechanism(seed, bodies=6)
    fast = zw.compile(m)
    program = fast.compiled_function(fast.step_key(1e-3) if function == "step" else function).program
    q, v, *rest = map(np.array, zip(*(random_state(m, state) for state in range(WORLDS)), strict=True))
    given = {"q": q, "v": v}
    inputs = [given.get(port.name, rest[0][:, : port.size]) for port in program.inputs]
    assert_same_bits(program, inputs, dtype, transposed)


@TYPES
@LAYOUTS
@pytest.mark.parametrize("name", constraints.CASES)
def test_constraints_and_contacts(assert_same_bits: Check, name: str, transposed: bool, dtype: str) -> None:
    """The rows, the solution and a step of each kind of constraint, in states near those of the case."""
    problem, rng = constraints.problem(name), np.random.default_rng(0)
    inputs = [np.tile(x, (WORLDS // 2, 1)) for x in problem.inputs.values()]
    inputs = [x + 1e-3 * rng.normal(size=x.shape) for x in inputs]
    assert_same_bits(problem.program, inputs, dtype, transposed)
