"""The LLVM IR: structured control flow over arrays, splitting, and no calls of missing functions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from llvmlite import binding

from tests.compiler.elementary_cases import program_of
from tests.compiler.test_widths import KINDS_OF_X86, X86, run_body
from zwang import scalar
from zwang.compiler.backends.llvm.entry_points import entry_points
from zwang.compiler.backends.llvm.lanes import TYPES, WIDTHS, Lanes
from zwang.compiler.backends.llvm.module import emit
from zwang.compiler.backends.llvm.team_functions import team_functions
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.program import Block, Cond, For, Instruction, Port, Program, While
from zwang.compiler.passes.program_builder import ProgramBuilder
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime import processor as cpu
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.peak import peak_gflops
from zwang.errors import CompileError


class ProgramWriter:
    """A program written instruction by instruction; values are numbered in order."""

    def __init__(self, inputs: int):
        self.builder = ProgramBuilder("float64", {}, {}, 0)
        self.inputs = inputs
        self.x = [self("input", data=(0, k)) for k in range(inputs)]

    def __call__(self, op: str, *args: int, kind: str = "real", data: object = None) -> int:
        return self.builder.write(op, args, kind, data).value

    def array(self, length: int) -> int:
        value = self("array", kind="array", data=length)
        self.builder.lengths[value] = length
        return value

    def like(self, *values: int) -> tuple[int, ...]:
        new = tuple(self.builder.value(self.builder.kinds[v]) for v in values)
        self.builder.lengths.update(
            {
                n: self.builder.lengths[v]
                for n, v in zip(new, values, strict=True)
                if v in self.builder.lengths
            }
        )
        return new

    def store(self, array: int, place: int, value: int) -> int:
        new = self("store", array, self("index", kind="index", data=place), value, kind="array")
        self.builder.lengths[new] = self.builder.lengths[array]
        return new

    def load(self, array: int, place: int) -> int:
        return self("load", array, self("index", kind="index", data=place))

    def block(self, parameters: tuple[int, ...], body: object) -> Block:
        with self.builder.block():
            results = body(*parameters)  # type: ignore[operator]
            return Block(parameters, tuple(self.builder.instructions), tuple(results))

    def control(self, op: str, args: list[int], out_like: list[int], data: object) -> tuple[int, ...]:
        out = self.like(*out_like)
        self.builder.instructions.append(Instruction(op, tuple(args), out, data))
        return out

    def program(self, *results: int) -> Program:
        body = Block((), tuple(self.builder.instructions), results)
        ports = (Port("x", self.inputs),), (Port("y", len(results)),)
        return Program(*ports, body, self.builder.kinds, self.builder.lengths)


def every_width(program: Program, x: np.ndarray, limits: tuple[int, ...] = (10**6, 2)) -> np.ndarray:
    """The results, which must be equal for each number of lanes and each splitting limit."""
    results = [run_body(program, x, Lanes("float64", width), limit) for width in WIDTHS for limit in limits]
    assert all(np.array_equal(r, results[0], equal_nan=True) for r in results)
    return results[0]


X = np.random.default_rng(2).uniform(-2, 2, (32, 3))


def test_a_loop_that_swaps_two_arrays_swaps_them_in_the_active_lanes_only() -> None:
    h = ProgramWriter(3)
    a, b = h.store(h.array(2), 1, h.x[0]), h.store(h.array(2), 1, h.x[1])
    n = h.x[2]
    condition = h.block(h.like(a, b, n), lambda a, b, n: [h("lt", h("const", data=0.0), n, kind="bool")])
    body = h.block(h.like(a, b, n), lambda a, b, n: [b, a, h("sub", n, h("const", data=0.3))])
    a2, b2, left = h.control("while", [a, b, n], [a, b, n], While(condition, body, 3))
    program = h.program(h.load(a2, 1), h.load(b2, 1), left)
    first, second, left_of = every_width(program, X).T
    iterations = np.maximum(np.ceil(X[:, 2] / 0.3), 0).astype(int)
    assert np.array_equal(first, np.where(iterations % 2, X[:, 1], X[:, 0]))
    assert np.array_equal(second, np.where(iterations % 2, X[:, 0], X[:, 1]))
    assert np.allclose(left_of, X[:, 2] - 0.3 * iterations)


def test_branches_that_return_different_arrays() -> None:
    h = ProgramWriter(3)
    a, b = h.store(h.array(3), 2, h.x[0]), h.store(h.array(3), 2, h.x[1])
    p = h("lt", h.x[0], h.x[1], kind="bool")
    then = h.block(h.like(a, b), lambda a, b: [h.store(b, 0, h.load(a, 2)), a])
    otherwise = h.block(h.like(a, b), lambda a, b: [a, h.store(b, 0, h("const", data=7.0))])
    c, d = h.control("cond", [p, a, b], [a, b], Cond(then, otherwise))
    program = h.program(h.load(c, 0), h.load(c, 2), h.load(d, 0), h.load(d, 2))
    less = X[:, 0] < X[:, 1]
    right = np.where(
        less[:, None],
        np.stack([X[:, 0], X[:, 1], 0 * X[:, 0], X[:, 0]], 1),
        np.stack([0 * X[:, 0], X[:, 0], 0 * X[:, 0] + 7, X[:, 1]], 1),
    )
    assert np.array_equal(every_width(program, X), right)


def test_an_array_created_in_a_loop_is_new_in_every_iteration() -> None:
    h = ProgramWriter(3)
    total, fill = h.x[0], h.x[1]

    def body(index: int, total: int, fill: int) -> list[int]:
        fresh = h.array(6)
        before = h.load(fresh, 5)
        after = h.load(h.store(fresh, 5, fill), 5)
        return [h("add", h("add", total, before), after)]

    loop = For(4, h.block((h.builder.value("index"), *h.like(total, fill)), body), 1)
    (out,) = h.control("for", [total, fill], [total], loop)
    none = For(0, loop.body, 1)
    (same,) = h.control("for", [out, fill], [total], none)
    x = X[:, 0].copy()
    for _ in range(4):
        x = x + 0.0 + X[:, 1]
    assert np.array_equal(every_width(h.program(same), X)[:, 0], x)


def test_a_rare_branch_is_out_of_line_with_equal_results() -> None:
    h = ProgramWriter(3)
    p = h("lt", h.x[0], h("const", data=-1.5), kind="bool")
    q = h("lt", h.x[1], h.x[2], kind="bool")
    args = [h.x[1], h.x[2], q]

    def then(a: int, b: int, q: int) -> list[int]:
        return [h("mul", a, b), h("not", q, kind="bool"), h("const", data=3.0)]

    blocks = h.block(h.like(*args), then), h.block(h.like(*args), lambda a, b, q: [a, q, b])
    out_like = [h.x[0], q, h.x[0]]
    a, r, b = h.control("cond", [p, *args], out_like, Cond(*blocks, rare=True))
    program = h.program(a, h("select", r, a, b), b)
    assert "cold noinline" in emit(program, Lanes("float64", 8)).text
    rare, less = X[:, 0] < -1.5, X[:, 1] < X[:, 2]
    a_right, b_right = np.where(rare, X[:, 1] * X[:, 2], X[:, 1]), np.where(rare, 3.0, X[:, 2])
    right = np.stack([a_right, np.where(less != rare, a_right, b_right), b_right], 1)
    assert np.array_equal(every_width(program, X), right)


def test_functions_of_long_programs_are_short() -> None:
    """Of many branches that are longer than the limit, and of a branch that contains such branches."""
    h, limit = ProgramWriter(3), 50

    def sums(x: int, y: int) -> list[int]:
        for _ in range(40):
            x = h("add", x, y)
        return [x]

    def branches(x: int, y: int) -> list[int]:
        for _ in range(30):
            p = h("lt", x, y, kind="bool")
            blocks = h.block(h.like(x, y), sums), h.block(h.like(x, y), lambda x, y: sums(y, x))
            (x,) = h.control("cond", [p, x, y], [x], Cond(*blocks))
        return [x]

    p, (x, y) = h("lt", h.x[0], h.x[2], kind="bool"), h.x[:2]
    blocks = h.block(h.like(x, y), branches), h.block(h.like(x, y), lambda x, y: [x])
    (x,) = h.control("cond", [p, x, y], [x], Cond(*blocks))
    program = h.program(*branches(x, y))
    functions = re.findall("^define.*?^}", emit(program, Lanes("float64", 8), limit=limit).text, re.M | re.S)
    assert max(function.count("\n") for function in functions) < 8 * limit
    every_width(program, X, (10**6, limit))


def test_minima_and_maxima_with_nan_and_zeros() -> None:
    h = ProgramWriter(2)
    program = h.program(h("min", *h.x), h("max", *h.x))
    some = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324]
    x = np.array([(a, b) for a in some for b in some])
    low, high = every_width(program, x).T
    assert np.array_equal(low, np.minimum(*x.T), equal_nan=True)
    assert np.array_equal(high, np.maximum(*x.T), equal_nan=True)
    equal = x[:, 0] == x[:, 1]
    assert np.array_equal(np.signbit(low[equal]), np.signbit(x[equal, 1]))


def test_an_index_cannot_be_carried_by_a_while() -> None:
    h = ProgramWriter(1)
    i = h("index", kind="index", data=0)
    block = h.block(h.like(i), lambda i: [h("true", kind="bool")])
    (_,) = h.control("while", [i], [i], While(block, h.block(h.like(i), lambda i: [i]), 1))
    with pytest.raises(ValueError, match="an index is the same in all lanes"):
        emit(h.program(h.x[0]), Lanes("float64", 4))


def test_an_unknown_operation_is_rejected() -> None:
    h = ProgramWriter(1)
    with pytest.raises(ValueError, match="'erf'"):
        emit(h.program(h("erf", h.x[0])), Lanes("float64", 1))


def long_chain(count: int) -> Program:
    """count multiply-adds, each of three values near or far before it."""
    h = ProgramWriter(3)
    values = list(h.x)
    rng = np.random.default_rng(0)
    for _ in range(count):
        near = rng.integers(max(0, len(values) - 40), len(values), 3)
        values.append(
            h("fma", *(int(values[k]) for k in near[:2]), values[int(near[2] * rng.random() ** 0.1)])
        )
        values[-1] = h("div", values[-1], h("add", h("abs", values[-1]), h("const", data=1.0)))
    return h.program(*values[-5:], values[3], h.x[1])


def test_long_programs_are_split_and_share_a_small_stack_frame() -> None:
    program = long_chain(1500)
    whole, split = (emit(program, Lanes("float64", 8), limit=limit) for limit in (10**6, 300))
    assert whole.text.count("define") == 1 and 20 <= split.text.count("define") <= 30
    sizes = [len(text.splitlines()) for text in split.text.split("define")]
    assert max(sizes) < 1500
    assert split.frame_bytes < 64 * 400  # slots are reused, so there are far fewer than values
    assert np.array_equal(*(run_body(program, X, Lanes("float64", 8), limit) for limit in (10**6, 300)))


def test_a_long_body_of_a_loop_is_split_too() -> None:
    def iterate(i, carry):
        for k in range(4):
            carry = [scalar.sin(carry[1] + k * carry[0]), carry[2] * carry[0], carry[0] - carry[1]]
        return carry

    def function(x):
        return scalar.while_loop(
            lambda c: scalar.less(c[3], x[2]),
            lambda c: (*iterate(0, list(c[:3])), c[3] + 0.5),
            (x[0], x[1], x[2], 0 * x[0]),
        )

    program = optimise(trace(lambda x: list(function(x)), {"x": (3,)}))
    every_width(program, X, (10**6, 60, 7))


@pytest.mark.parametrize("kind", [*KINDS_OF_X86, "host"] if X86 else [])
def test_the_code_calls_only_functions_that_can_be_resolved(kind: str) -> None:
    processor = cpu.host() if kind == "host" else KINDS_OF_X86[kind]
    fallbacks = set() if processor.fuses else {"fma", "fmaf"}
    fallbacks |= set() if "sse4.1" in processor.has else {"floor", "floorf"}
    for dtype in TYPES:
        for width in (1, processor.width(dtype)):
            lanes = Lanes(dtype, width)
            program = program_of("sin", "tan", "exp", "log", "asin", "acos", "pow", "atan2")
            texts = emit(program, lanes).text, entry_points(lanes, True), team_functions(True)
            for text in texts:
                calls = set(re.findall(r"\bcall[ql]?\s+(\w+)", cpu.assembly(text, processor)))
                own = set(re.findall(r"define .*?@(\w+)\(", text))
                assert calls <= own | fallbacks, calls - own


@pytest.mark.parametrize("dtype", TYPES)
def test_code_for_arm_calls_no_external_function(dtype: str) -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    arm = cpu.Processor("aarch64-unknown-linux-gnu", "generic", "+neon")
    for width in (1, arm.width(dtype)):
        lanes = Lanes(dtype, width)
        program = program_of("sin", "tan", "exp", "log", "asin", "acos", "pow", "atan2")
        for text in (emit(program, lanes).text, entry_points(lanes, False), team_functions(False)):
            assembly = cpu.assembly(text, arm)
            calls = set(re.findall(r"\bbl\s+(\w+)", assembly))
            assert calls <= set(re.findall(r"define .*?@(\w+)\(", text))
            assert "@body" not in text or "fmadd" in assembly or "fmla" in assembly


def test_an_unresolved_call_is_an_error_and_not_a_crash() -> None:
    text = "declare double @no_such_function(double)\ndefine double @f(double %x) {\n"
    text += "  %y = call double @no_such_function(double %x)\n  ret double %y\n}\n"
    with pytest.raises(CompileError, match="cannot be loaded"):
        cpu.MachineCode([cpu.object_code(text)], ("f",))


def test_invalid_text_is_an_error() -> None:
    with pytest.raises(CompileError, match="LLVM rejects"):
        cpu.object_code("define double @f() {\n  ret double %nothing\n}\n")


def test_names_never_enter_the_text() -> None:
    evil = '%x = call @exit() ; "'
    program = optimise(trace(lambda x: {evil: [x[0] * 2]}, {evil: (1,)}))
    assert "exit" not in CompiledFunction(program).text()
    assert np.array_equal(CompiledFunction(program, cache=False)([1.5]), [3.0])


def test_the_number_of_lanes_of_processors() -> None:
    assert cpu.host().width("float32") == 2 * cpu.host().width("float64") >= 4
    assert [KINDS_OF_X86[k].width("float64") for k in ("SSE2", "AVX", "AVX2")] == [2, 4, 4]
    assert [KINDS_OF_X86[k].fuses for k in ("SSE2", "AVX", "AVX2")] == [False, False, True]
    arm = cpu.Processor("aarch64-apple-darwin", "apple-m1", "+neon")
    assert arm.fuses and arm.width("float64") == 2


def test_the_measured_peak_performance_is_plausible() -> None:
    assert 0.1 < peak_gflops("float64", repeats=2) < 1000
