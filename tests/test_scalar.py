"""The primitives on plain numbers and arrays, and how backends are found."""

import math
import sys
import types
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zwang import scalar
from zwang.scalar import backend as backends
from zwang.scalar import deprecated
from zwang.scalar.arrays import Entries

UNARY = {
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "exp": np.exp,
    "log": np.log,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "sech": lambda x: 2 * np.exp(-abs(x)) / (1 + np.exp(-2 * abs(x))),
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "floor": np.floor,
    "absolute": np.abs,
}
BINARY = {
    "atan2": np.arctan2,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "copysign": np.copysign,
    "power": np.power,
    "divide": np.divide,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}
AWKWARD = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -3.7,
    1e-320,
    1e308,
    -1e308,
    800.0,
    math.inf,
    -math.inf,
    math.nan,
]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("x", AWKWARD)
def test_functions_of_a_float_equal_numpy_and_never_raise(name, x):
    with np.errstate(all="ignore"):
        expected = UNARY[name](np.float64(x))
    np.testing.assert_allclose(getattr(scalar, name)(x), expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("x", AWKWARD)
def test_functions_of_two_floats_equal_numpy_and_never_raise(name, x):
    for y in AWKWARD:
        if name == "power" and x in (-math.inf, 0.0) and abs(y) == 0.5:
            continue  # half powers equal those of the square root: see below
        with np.errstate(all="ignore"):
            expected = BINARY[name](np.float64(x), np.float64(y))
        np.testing.assert_allclose(
            getattr(scalar, name)(x, y), expected, rtol=1e-14, atol=0, err_msg=f"{x}, {y}"
        )


def test_exact_integers_stay_exact():
    exact = {
        scalar.sin(0): 0,
        scalar.cos(0): 1,
        scalar.tan(0): 0,
        scalar.asin(0): 0,
        scalar.acos(1): 0,
        scalar.exp(0): 1,
        scalar.log(1): 0,
        scalar.sqrt(49): 7,
        scalar.atan2(0, 3): 0,
        scalar.power(3, 4): 81,
        scalar.absolute(-2): 2,
        scalar.sign(-5): -1,
        scalar.floor(4): 4,
    }
    for got, expected in exact.items():
        assert got == expected and type(got) is int
    assert type(scalar.sqrt(2)) is float


@given(st.floats(-1e3, 1e3), st.integers(-8, 8))
def test_whole_and_half_powers_are_products_and_roots(x, twice):
    with np.errstate(all="ignore"):
        expected = float(np.power(np.float64(abs(x)), twice / 2))
    assert scalar.power(abs(x), twice / 2) == pytest.approx(expected, rel=1e-14, nan_ok=True)


def test_half_powers_of_negative_numbers_equal_those_of_the_square_root():
    assert math.isnan(scalar.power(-math.inf, 0.5))
    assert math.copysign(1, scalar.power(-0.0, 0.5)) == -1


def test_primitives_work_element_by_element_and_give_arrays():
    x = np.array([[0.1, 0.2], [0.3, 0.4]])
    assert scalar.sin(x).dtype == float
    np.testing.assert_array_equal(scalar.sin(x), [[math.sin(e) for e in row] for row in x])
    np.testing.assert_array_equal(scalar.minimum(x, 0.25), np.minimum(x, 0.25))
    np.testing.assert_array_equal(scalar.where(scalar.less(x, 0.25), x, 1.0), np.where(x < 0.25, x, 1.0))
    np.testing.assert_array_equal(scalar.logical_not(scalar.less(x, 0.25)), x >= 0.25)
    objects = scalar.cos(np.array([0, 1.0], dtype=object))
    assert objects.dtype == object and type(objects[0]) is int
    assert scalar.sin(np.zeros((0, 3))).shape == (0, 3)


def test_where_of_a_python_bool_returns_the_value_itself():
    assert scalar.where(True, 1, 2.0) == 1 and type(scalar.where(True, 1, 2.0)) is int
    assert scalar.where(np.bool_(False), 1, 2.0) == 2.0


def test_structural_queries_evaluate_nothing():
    assert scalar.is_zero(0) and scalar.is_zero(-0.0) and scalar.is_zero(np.zeros((2, 2)))
    assert not scalar.is_zero(1e-300) and not scalar.is_zero(np.array([0, 1]))
    assert scalar.value_is_constant(2.0) and scalar.value_is_constant(np.float32(1))
    assert not scalar.value_is_constant(np.zeros(2))
    assert scalar.substitute(2.5, {"x": 1}) == 2.5 and scalar.symbols_of(np.ones(3)) == frozenset()


def test_a_type_without_a_backend_is_rejected_by_name():
    with pytest.raises(TypeError, match="str"):
        scalar.sin("0.5")


def test_backends_register_themselves_at_first_use(monkeypatch):
    class Word(str):
        __slots__ = ()

    class Words(scalar.Backend):
        def sin(self, x):
            return Word(f"sin({x})")

        def minimum(self, x, y):
            return Word(f"min({x}, {y})")

    monkeypatch.setattr(backends, "_BACKENDS", dict(backends._BACKENDS))
    module = types.ModuleType("late.words")
    Word.__module__ = "late.words"
    monkeypatch.setitem(sys.modules, "late.words", module)
    loads = []
    scalar.register_lazily("late", lambda: (loads.append(1), scalar.register(Word, Words())))
    assert scalar.sin(Word("x")) == "sin(x)"
    assert scalar.minimum(1.0, Word("x")) == "min(1.0, x)"
    assert list(scalar.sin(np.array([Word("y"), 0], dtype=object))) == ["sin(y)", 0]
    assert loads == [1]


def test_scalars_of_two_backends_cannot_be_combined(monkeypatch):
    monkeypatch.setattr(backends, "_BACKENDS", dict(backends._BACKENDS))
    first, second = type("First", (), {}), type("Second", (), {})
    scalar.register(first, scalar.Backend())
    scalar.register(second, scalar.Backend())
    with pytest.raises(TypeError, match="First and Second"):
        scalar.minimum(first(), second())


# ---------------------------------------------------------------------------------- control flow


class Pair(NamedTuple):
    a: object
    b: object


@dataclass(frozen=True)
class Record:
    x: object
    y: object


def test_while_loop_carries_any_pytree():
    def body(carry):
        return {"n": carry["n"] + 1, "rest": (Pair(carry["rest"][0].a * 2, carry["rest"][0].b), [carry["n"]])}

    out = scalar.while_loop(lambda c: c["n"] < 5, body, {"n": 0, "rest": (Pair(1, 2), [0])})
    assert out == {"n": 5, "rest": (Pair(32, 2), [4])}


def test_cond_runs_one_branch_only():
    def not_taken(x):
        raise AssertionError

    assert scalar.cond(np.bool_(True), lambda x: x + 1, not_taken, 1) == 2
    assert scalar.cond(False, not_taken, lambda x: x - 1, 1) == 0


def test_loops_over_indices_tables_and_rows():
    assert scalar.fori_loop(0, 4, lambda i, c: [*c, i], []) == [0, 1, 2, 3]
    assert scalar.for_each([0.5, 1.5], lambda x, c: c + x, 0) == 2.0
    assert scalar.for_each([[1, 2], [3, 4]], lambda row, c: c + row[0] * row[1], 0) == 14
    assert scalar.fori_loop(0, 0, lambda i, c: c + 1, 7) == 7


def test_tables_return_their_entries_at_indices():
    t = scalar.table([[1.5, 2.5], [3.5, 4.5]])
    assert t[1, 0] == 3.5 and list(t[0]) == [1.5, 2.5] and len(t) == 2
    assert type(scalar.table([1, 2])[0]) is int
    with pytest.raises(IndexError, match="outside"):
        t[2, 0]
    with pytest.raises(IndexError, match="3 indices"):
        scalar.table(np.zeros((2, 2, 2)))[0, 0, 0, 0]
    with pytest.raises(TypeError, match="constant numbers"):
        scalar.table(["a"])


def test_an_array_is_consumed_by_set():
    a = scalar.zeros((2, 3))
    b = a.set((1, 2), 5.0)
    assert b[1, 2] == 5.0 and b[0, 0] == 0.0
    with pytest.raises(ValueError, match="use the array"):
        a[0, 0]
    with pytest.raises(IndexError, match="outside"):
        b[2, 0]


@pytest.mark.parametrize(
    "tree",
    [
        1.0,
        (1, [2, 3]),
        {"a": (1, 2), "b": None},
        Pair(1, (2,)),
        Record(1, [2]),
        (np.array([[1, 2], [3, 4]]), 5),
    ],
)
def test_pytrees_are_rebuilt_from_their_leaves(tree):
    leaves = scalar.leaves_of(tree)
    again = scalar.rebuild(tree, [10 * leaf for leaf in leaves])
    assert scalar.leaves_of(again) == [10 * leaf for leaf in leaves]
    assert scalar.structure_of(again) == scalar.structure_of(tree) and type(again) is type(tree)


# ---------------------------------------------------------------------------------- deprecated spellings


@pytest.mark.parametrize("old", deprecated.RENAMED)
def test_renamed_names_warn_and_give_the_new_object(old):
    new = deprecated.RENAMED[old]
    with pytest.warns(DeprecationWarning, match=rf"zwang\.scalar\.{new}"):
        assert getattr(scalar, old) is getattr(scalar, new)
    assert new in scalar.__all__ and old not in scalar.__all__


def test_scratch_warns_and_gives_zeros_or_an_uninitialised_array():
    with pytest.warns(DeprecationWarning, match="zeros"):
        scratch = scalar.scratch
    assert scratch(2)[1] == 0.0 and math.isnan(scratch((2, 3), blank=True)[1, 2])


def test_for_each_over_a_count_or_a_span_warns_and_loops_over_the_indices():
    def collect(i, carry):
        return [*carry, i]

    with pytest.warns(DeprecationWarning, match="fori_loop"):
        assert scalar.for_each(3, collect, []) == [0, 1, 2]
    with pytest.warns(DeprecationWarning, match="fori_loop"):
        span = scalar.Span
    with pytest.warns(DeprecationWarning, match="fori_loop"):
        assert scalar.for_each(span(1, 4), collect, []) == [1, 2, 3]
    with pytest.warns(DeprecationWarning, match="fori_loop"):
        assert scalar.for_each(span(1, 4, True), collect, []) == [3, 2, 1]


def test_unknown_names_raise_attribute_error():
    with pytest.raises(AttributeError, match=r"zwang\.scalar"):
        scalar.nonsense  # noqa: B018


def test_all_public_names_exist():
    assert [name for name in scalar.__all__ if not hasattr(scalar, name)] == []


def test_tables_differ_by_the_signs_of_zeros_and_by_their_kinds():
    reals = Entries([0.0, 1.0])
    for other, is_same in (
        (Entries([0.0, 1.0]), True),
        (Entries([-0.0, 1.0]), False),
        (Entries([0, 1]), False),
    ):
        assert (reals == other) == is_same
        assert (reals != other) != is_same
