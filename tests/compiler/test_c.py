"""The C source, compiled by the installed C compiler, gives the results of the interpreter bit for bit."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.elementary_cases import HYPERBOLIC, INVERSE
from tests.compiler.random_functions import SIZE, random_function, random_inputs
from zwang import scalar
from zwang.compiler.backends import c
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.passes.expand import expand
from zwang.compiler.pipeline import optimise
from zwang.errors import CompileError

CC = shutil.which("cc")
needs_cc = pytest.mark.needs("cc")
FLAGS = [
    "-std=c99",
    "-O2",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-fPIC",
    "-shared",
]


def compiled(folder, sources):
    """The functions of one C file, by name."""
    (folder / "all.c").write_text("\n".join(sources))
    library = folder / "all.so"
    subprocess.run([CC, *FLAGS, str(folder / "all.c"), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def called(function, program, inputs, dtype):
    """The concatenated outputs of a compiled function for one world."""
    arrays = [np.ascontiguousarray(inputs[port.name], dtype) for port in program.inputs]
    arrays += [np.full(port.size, np.nan, dtype) for port in program.outputs]
    function(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
    return np.concatenate(arrays[len(program.inputs) :])


def many(tmp_path, functions, size, dtype):
    """The optimised program of each function, and the function of its compiled C source."""
    programs = [optimise(trace(function, {"x": (size,)})) for function in functions]
    texts = [c.c_function(program, f"f{k}", dtype) for k, program in enumerate(programs)]
    library = compiled(tmp_path, [c.preamble(dtype), c.c_text(texts)])
    return [(program, getattr(library, f"f{k}")) for k, program in enumerate(programs)]


def same_bits(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    np.testing.assert_array_equal(np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)])


def every_operation(x):
    a, b, d = x
    less = a < b
    return [
        a + b, a - b, a * b + d, a * b - d, d - a * b, a / b, -(a + b), abs(a), scalar.sqrt(a),
        scalar.floor(a), scalar.copysign(a, b), scalar.minimum(a, b), scalar.maximum(a, b),
        scalar.where(less, a, b),
        scalar.where(a <= b, 1, d), scalar.where(a == b, 1, d), scalar.where(a != b, 1, d),
        scalar.where(less & (b < d), 1, 0), scalar.where(less | (b < d), 1, 0),
        scalar.where(less ^ (b < d), 1, 0),
        scalar.where(scalar.logical_not(less), a, d), 0.1, -1e-300, 1e300 * a, np.inf, -np.inf,
        np.nan, a * 3, scalar.where(less, -0.0, 0.0),
    ]  # fmt: skip


def elementary(x):
    a, b, _ = x
    names = ["sin", "cos", "tan", "asin", "acos", "exp", "log", *HYPERBOLIC, *INVERSE]
    return [getattr(scalar, name)(a) for name in names] + [scalar.atan2(a, b), scalar.power(a, b)]


AWKWARD = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.7, 1e-310, 1e30, -1e5, np.inf, -np.inf, np.nan]


@needs_cc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("function", [every_operation, elementary])
def test_every_operation_gives_the_bits_of_the_interpreter(tmp_path, function, dtype):
    [(program, call)] = many(tmp_path, [function], 3, dtype)
    reference = expand(program, dtype)
    for a in AWKWARD:
        for b in AWKWARD[::2]:
            inputs = {"x": [a, b, 1.25]}
            same_bits(called(call, program, inputs, dtype), interpret(reference, inputs, dtype)["out"])


@needs_cc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_functions_with_control_flow_give_the_bits_of_the_interpreter(tmp_path, dtype):
    functions = [random_function(seed) for seed in range(30)]
    for seed, (program, call) in enumerate(many(tmp_path, functions, SIZE, dtype)):
        reference = expand(program, dtype)
        for x in random_inputs(seed, 4):
            same_bits(called(call, program, {"x": x}, dtype), interpret(reference, {"x": x}, dtype)["out"])


@needs_cc
def test_an_array_may_be_both_input_and_output(tmp_path):
    def mixed(a, b):
        return a @ b, [a[1], b[0], a[0]]

    program = optimise(trace(mixed, {"a": (2,), "b": (2,)}))
    library = compiled(tmp_path, [c.source(program, "mixed")])
    out = called(library.mixed, program, {"a": [2.0, 3.0], "b": [5.0, 7.0]}, "float64")
    np.testing.assert_array_equal(out, [31.0, 3.0, 5.0, 2.0])
    [(_, swap)] = many(tmp_path / "..", [lambda a: [a[1], a[0]]], 2, "float64")
    both = np.array([1.0, 2.0])
    swap(ctypes.c_void_p(both.ctypes.data), ctypes.c_void_p(both.ctypes.data))
    np.testing.assert_array_equal(both, [2.0, 1.0])


@needs_cc
def test_an_element_of_an_array_that_may_be_unset_gives_no_warning(tmp_path):
    """As the forces of contacts, of which there are none at some times: GCC warns of them."""

    def first(x):
        count = scalar.lane_maximum(x[0], 2)
        array = scalar.fori_loop(0, count, lambda k, a: a.set(k, x[1]), scalar.empty(2), unroll=False)
        return [scalar.where(x[0] > 0.5, array[0], 0.0)]

    [(program, call)] = many(tmp_path, [first], 2, "float64")
    for count, expected in ((0.0, 0.0), (1.0, 7.0), (2.0, 7.0)):
        assert called(call, program, {"x": [count, 7.0]}, "float64") == [expected]


@given(st.text(max_size=30))
@settings(max_examples=30)
def test_names_cannot_leave_the_comment(name):
    text = c.source(optimise(trace(lambda x: {name: x}, {name + "*/ int x; /*": (1,)})))
    comment, code = text.split("*/", 1)
    assert "/*" not in comment[2:] and re.fullmatch(r"[\x20-\x7e\n]*", comment) and "\\" not in comment
    plain = c.source(optimise(trace(lambda x: {"y": x}, {"x": (1,)})))
    assert code == plain.split("*/", 1)[1]


@pytest.mark.parametrize("name", ["", "1st", "a b", "f(){}", "_hidden", "ä", "x" * 100])
def test_a_function_needs_a_name_that_c_allows(name):
    with pytest.raises(CompileError, match="identifier"):
        c.source(trace(lambda x: x, {"x": (1,)}), name)


def test_other_types_are_rejected():
    with pytest.raises(CompileError, match="float16"):
        c.source(trace(lambda x: x, {"x": (1,)}), dtype="float16")


def test_functions_share_equal_tables():
    table, other = scalar.Table(np.linspace(-1, 1, 50)), scalar.Table(np.linspace(-2, 2, 50))

    def reading(*tables):
        def read(x):
            return scalar.fori_loop(
                0, 20, lambda i, s: s + sum(t[i] * t[i + 1] for t in tables), x[0], unroll=False
            )

        return c.c_function(optimise(trace(read, {"x": (1,)})), f"f{len(tables)}")

    one, two = reading(table), reading(table, other)
    assert set(one.tables) < set(two.tables)
    assert c.c_text([one, two]).count("static const real") == len(two.tables) == 2


def test_a_long_table_is_written_once(monkeypatch):
    written = []
    numbers = c.c_numbers

    def noted(values, dtype):
        written.append(len(values))
        return numbers(values, dtype)

    monkeypatch.setattr(c, "c_numbers", noted)
    entries = [*np.linspace(-1, 1, 50), np.nan, np.inf, -np.inf, -0.0, 1e300, 5e-324]
    table = scalar.Table(entries)

    def read(x):
        return scalar.fori_loop(
            0, 20, lambda i, s: s + table[i] * table[i + 1] + table[i + 30], x[0], unroll=False
        )

    program = optimise(trace(read, {"x": (1,)}))
    text = c.source(program)
    assert text.count("static const real") == 1 and [n for n in written if n > 1] == [len(entries)]
    assert "(real)NAN, (real)INFINITY, (-(real)INFINITY), (-0.0), 1e+300, 5e-324" in " ".join(text.split())
    assert "1e+300" not in c.source(program, dtype="float32")
