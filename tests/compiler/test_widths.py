"""Compiled programs give the bits of the interpreter at every number of lanes, split into functions or not,
and on processors with fewer instructions.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.random_functions import SIZE, random_function, random_inputs
from zwang import scalar
from zwang.compiler.backends.llvm.constant_tables import long_tables
from zwang.compiler.backends.llvm.lanes import WIDTHS, Lanes
from zwang.compiler.backends.llvm.module import emit
from zwang.compiler.backends.llvm.writer import ALIGNED_STACK
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.program import Program
from zwang.compiler.passes.expand import expand
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime import processor as cpu
from zwang.compiler.runtime.compiled_function import CompiledFunction

X86 = cpu.host().is_x86 and sys.platform == "linux"  # the code for these processors is for Linux
KINDS_OF_X86 = {
    "SSE2": cpu.Processor("x86_64-unknown-linux-gnu", "x86-64", "+sse2"),
    "AVX": cpu.Processor("x86_64-unknown-linux-gnu", "x86-64", "+sse2,+sse4.1,+avx"),
    "AVX2": cpu.Processor("x86_64-unknown-linux-gnu", "x86-64-v3", "+sse4.1,+avx2,+avx,+fma"),
}
CALLER = """
define void @caller(ptr %in, ptr %out, ptr %frame) "stackrealign" {
  call void @body(ptr %in, ptr %out, ptr %frame)
  ret void
}
"""  # with the alignment of the stack that the body expects


def run_body(
    program: Program,
    x: np.ndarray,
    lanes: Lanes,
    limit: int,
    processor: cpu.Processor | None = None,
    modules: int = 1,
) -> np.ndarray:
    """The program's body on lane vectors, without the runtime: x and the result are (worlds, size)."""
    emitted = emit(program, lanes, limit=limit)
    texts = emitted.parts(modules, length=1)
    assert len(texts) == min(modules, emitted.text.count("define"))
    calls = cpu.c_functions("fma", "fmaf", "floor", "floorf")
    texts += ["declare void @body(ptr, ptr, ptr)" + CALLER + ALIGNED_STACK] if modules > 1 else []
    texts[0] += CALLER if modules == 1 else ""
    code = cpu.MachineCode(
        cpu.object_codes(texts, processor), ("caller",), calls, long_tables(program, lanes)
    )
    body = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code["caller"])
    sizes = [sum(port.size for port in ports) for ports in (program.inputs, program.outputs)]
    into, out, workspace = (
        _aligned(n) for n in (sizes[0] * lanes.bytes, sizes[1] * lanes.bytes, emitted.frame_bytes)
    )
    results = []
    for block in x.reshape(-1, lanes.width, sizes[0]):
        into.view(lanes.dtype)[:] = block.T.ravel()  # of one port
        body(into.ctypes.data, out.ctypes.data, workspace.ctypes.data)
        results.append(out.view(lanes.dtype).reshape(sizes[1], lanes.width).T.copy())
    return np.concatenate(results)


@pytest.mark.skipif(not X86, reason="the instruction that aligns the stack is one of these processors")
def test_the_stack_is_aligned_whatever_was_compiled_before() -> None:
    body = "define void @body(ptr %in, ptr %out, ptr %frame) { ret void }\n"
    for _ in range(2):
        assert "andq\t$-64, %rsp" not in cpu.assembly(body + CALLER)
        assert "andq\t$-64, %rsp" in cpu.assembly(body + CALLER + ALIGNED_STACK)


def _aligned(size: int) -> np.ndarray:
    raw = np.full(size + 256, 0xA5, np.uint8)  # the initial content must not matter
    start = -raw.ctypes.data % 128
    return raw[start : start + size]


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.sampled_from(["float64", "float32"]), st.sampled_from([3, 25, 10**6]))
def test_random_functions_have_the_same_bits_at_every_width_and_splitting_limit(
    seed: int, dtype: str, limit: int
) -> None:
    program = optimise(trace(random_function(seed, 8), {"x": (SIZE,)}))
    x = random_inputs(seed, 16).astype(dtype)
    reference = interpret(expand(program, dtype), {"x": x}, np.dtype(dtype))["out"]
    for width in WIDTHS:
        got = run_body(program, x, Lanes(dtype, width), limit)
        assert np.array_equal(got, reference, equal_nan=True), width
    apart = run_body(program, x, Lanes(dtype, WIDTHS[-1]), limit, modules=3)
    assert np.array_equal(apart, reference, equal_nan=True)


@pytest.mark.parametrize("kind", [k for k in KINDS_OF_X86 if X86 and KINDS_OF_X86[k].has <= cpu.host().has])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_processors_with_fewer_instructions_give_the_same_bits(kind: str, dtype: str) -> None:
    processor = KINDS_OF_X86[kind]
    for seed in range(2):
        program = optimise(trace(random_function(seed, 8), {"x": (SIZE,)}))
        x = random_inputs(seed, 16).astype(dtype)
        reference = interpret(expand(program, dtype), {"x": x}, np.dtype(dtype))["out"]
        for width in (1, processor.width(dtype), 8):
            got = run_body(program, x, Lanes(dtype, width), 10**6, processor)
            assert np.array_equal(got, reference, equal_nan=True), width


def newton(x):
    """Cube root of x[0] by Newton's method from x[1]."""

    def not_converged(carry):
        y, iterations = carry
        return scalar.logical_and(
            iterations < 60, scalar.absolute(y * y * y - x[0]) > 1e-13 * scalar.absolute(x[0])
        )

    return scalar.while_loop(
        not_converged, lambda c: (c[0] - (c[0] ** 3 - x[0]) / (3 * c[0] ** 2), c[1] + 1), (x[1], 0)
    )


def bisection(x):
    """Root of cos y - x[0] y in (0, pi/2) by bisection, and the number of iterations."""

    def halve(carry):
        low, high, iterations = carry
        middle = 0.5 * (low + high)
        above = scalar.less(0.0, scalar.cos(middle) - x[0] * middle)
        return scalar.where(above, middle, low), scalar.where(above, high, middle), iterations + 1

    low, _, iterations = scalar.while_loop(
        lambda c: scalar.less(x[1], c[1] - c[0]), halve, (0 * x[0], 0 * x[0] + np.pi / 2, 0)
    )
    return [low, iterations]


def cholesky(x):
    """The lower factor of the 4x4 matrix A A^T + I, where A contains the 16 inputs."""
    n = 4
    a = scalar.zeros((n, n))
    for i in range(n):
        for j in range(n):
            a = a.set((i, j), sum(x[n * i + k] * x[n * j + k] for k in range(n)) + (1 if i == j else 0))

    def column(j, a):
        def minus(k, carry):
            def one(i, a):
                return a.set((i, j), a[i, j] - scalar.where(k < j, a[i, k] * a[j, k], 0.0))

            return scalar.fori_loop(0, n, one, carry, unroll=False)

        a = scalar.fori_loop(0, n, minus, a, unroll=False)
        root = scalar.sqrt(a[j, j])
        return scalar.fori_loop(0, n, lambda i, a: a.set((i, j), a[i, j] / root), a, unroll=False)

    a = scalar.fori_loop(0, n, column, a, unroll=False)
    return [a[i, j] for i in range(n) for j in range(i + 1)]


def worlds(function, size: int, low: float, high: float, count: int = 37) -> tuple[Program, np.ndarray]:
    x = np.random.default_rng(1).uniform(low, high, (count, size))
    return optimise(trace(function, {"x": (size,)})), x


def test_newtons_method_terminates_in_each_lane_independently() -> None:
    program, x = worlds(newton, 2, 0.1, 50.0)
    x[:, 1] = np.geomspace(0.01, 1e4, len(x))  # initial values that need few or many iterations
    newton_of = CompiledFunction(program, cache=False)
    root, iterations = newton_of(x)
    assert np.allclose(root[:, 0], np.cbrt(x[:, 0]), rtol=1e-12)
    assert len(set(iterations.ravel())) > 4
    for k in (0, 7, 36):
        assert [root[k], iterations[k]] == list(newton_of(x[k]))


def test_bisection_to_a_tolerance_of_each_world() -> None:
    program, x = worlds(bisection, 2, 0.2, 3.0)
    x[:, 1] = np.geomspace(1e-13, 0.1, len(x))
    low, iterations = CompiledFunction(program, cache=False)(x).T
    assert np.all(abs(np.cos(low) - x[:, 0] * low) <= 5 * x[:, 1])
    assert np.array_equal(iterations, np.ceil(np.log2(np.pi / 2 / x[:, 1])))


def test_cholesky_factorisation_in_loops() -> None:
    program, x = worlds(cholesky, 16, -1.0, 1.0)
    matrices = x.reshape(-1, 4, 4)
    right = np.linalg.cholesky(matrices @ matrices.transpose(0, 2, 1) + np.eye(4))
    lower = CompiledFunction(program, cache=False)(x)
    assert np.allclose(lower, right[:, *np.tril_indices(4)], rtol=1e-12, atol=1e-12)
    single = CompiledFunction(program, dtype="float32", cache=False)(x)
    assert np.allclose(single, lower, rtol=1e-4, atol=1e-5)
