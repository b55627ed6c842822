"""Compiled programs on arrays: shapes, strides, types, threads, errors."""

from __future__ import annotations

import os
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zwang import scalar
from zwang.compiler.backends.llvm.entry_points import DISPATCH
from zwang.compiler.frontend.trace import trace
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.errors import ArgumentError, ShapeError, StateError


def mix(q, v, c):
    """Something of all inputs in every output."""
    s = scalar.sin(q[0]) * v[0] + c[0]
    return [s + q[k] * v[1] - q[(k + 1) % 9] for k in range(9)], [s * q[8], v[0] / (1 + q[3] * q[3])]


PROGRAM = optimise(trace(mix, {"q": (9,), "v": (2,), "c": (1,)}))
DOUBLE = CompiledFunction(PROGRAM, cache=False)
SINGLE = CompiledFunction(PROGRAM, dtype="float32", cache=False)


def reference(q: np.ndarray, v: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], c.shape[:-1])
    q, v, c = (np.broadcast_to(a, (*batch, a.shape[-1])).astype(float) for a in (q, v, c))
    s = (np.sin(q[..., 0]) * v[..., 0] + c[..., 0])[..., None]
    second = np.stack([s[..., 0] * q[..., 8], v[..., 0] / (1 + q[..., 3] ** 2)], -1)
    return s + q * v[..., 1:] - np.roll(q, -1, -1), second


def inputs(*batch: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*batch, n)) for n in (9, 2, 1)]


def same(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> bool:
    return all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("function", [DOUBLE, SINGLE], ids=["double", "single"])
def test_results_do_not_depend_on_the_number_of_worlds(function: CompiledFunction) -> None:
    args = [a.astype(function.dtype) for a in inputs(100)]
    whole = function(*args)
    tolerance = 1e-13 if function.dtype == "float64" else 1e-5
    for got, right in zip(whole, reference(*args), strict=True):
        assert np.allclose(got, right, rtol=tolerance, atol=tolerance)
    for count in [*range(1, 35), 99]:
        assert same(function(*(a[:count] for a in args)), tuple(w[:count] for w in whole)), count
    assert same(function(*(a[7] for a in args)), tuple(w[7] for w in whole))


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=5), st.integers(0, 9))
def test_leading_shapes_broadcast_as_in_numpy(shapes: hnp.BroadcastableShapes, seed: int) -> None:
    rng = np.random.default_rng(seed)
    args = [rng.normal(size=(*shape, n)) for shape, n in zip(shapes.input_shapes, (9, 2, 1), strict=True)]
    for got, right in zip(DOUBLE(*args), reference(*args), strict=True):
        assert got.shape == right.shape
        assert np.allclose(got, right, rtol=1e-13, atol=1e-13)


def test_arrays_of_any_strides_are_read_in_place() -> None:
    args = inputs(24)
    right = DOUBLE(*args)
    fortran = [np.asfortranarray(a) for a in args]
    backwards = [a[::-1].copy()[::-1] for a in args]
    sparse = [np.repeat(np.repeat(a, 3, axis=0), 2, axis=1)[::3, ::2] for a in args]
    packed = np.zeros(24, dtype=[("x", "u1"), ("q", "f8", 9), ("v", "f8", 2), ("c", "f8", 1)])
    for name, a in zip("qvc", args, strict=True):
        packed[name] = a
    for other in (
        fortran,
        backwards,
        sparse,
        [packed[name] for name in "qvc"],
        [a.astype(">f8") for a in args],
    ):
        assert same(DOUBLE(*other), right)


@pytest.mark.parametrize("function", [DOUBLE, SINGLE], ids=["double", "single"])
def test_other_types_are_converted(function: CompiledFunction) -> None:
    whole = [np.arange(9), [2, 3], [True]]
    right = function(*(np.asarray(a, function.dtype) for a in whole))
    assert same(function(*whole), right)
    assert same(function(*(np.asarray(a, "float32") for a in whole)), right)
    assert same(function(*(np.asarray(a, "float64") for a in whole)), right)
    assert all(r.dtype == function.dtype for r in right)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    args = inputs(5000)
    one, four = (
        CompiledFunction(PROGRAM, threads=1, cache=False),
        CompiledFunction(PROGRAM, threads=4, cache=False),
    )
    four._max_direct_worlds = four._dispatch[DISPATCH.index("max_worlds")] = (
        64  # so that small calls use threads
    )
    assert same(one(*args), four(*args))
    cube = [a.reshape(5, 1000, -1) for a in args]
    assert same(one(*cube), four(*cube))
    assert same(one(cube[0], args[1][:1000], args[2][0]), four(cube[0], args[1][:1000], args[2][0]))


def test_calls_from_many_threads_at_once() -> None:
    function = CompiledFunction(PROGRAM, threads=2, cache=False)
    function._max_direct_worlds = function._dispatch[DISPATCH.index("max_worlds")] = 64
    sizes = [1, 3, 50, 700, 1, 90]
    rights = [DOUBLE(*inputs(n, seed=n)) for n in sizes]
    wrong: list[int] = []

    def work(k: int) -> None:
        args = inputs(sizes[k], seed=sizes[k])
        wrong.extend(k for _ in range(50) if not same(function(*args), rights[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(sizes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on POSIX only")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    function = CompiledFunction(PROGRAM, threads=3, cache=False)
    function._max_direct_worlds = function._dispatch[DISPATCH.index("max_worlds")] = 64
    args = inputs(500)
    right = function(*args)
    child = os.fork()
    if not child:
        os._exit(0 if same(function(*args), right) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_no_worlds_and_empty_ports() -> None:
    assert [r.shape for r in DOUBLE(*inputs(0))] == [(0, 9), (0, 2)]
    assert [r.shape for r in DOUBLE(*inputs(3, 0))] == [(3, 0, 9), (3, 0, 2)]
    empty = optimise(trace(lambda p, x: (2 * x, []), {"p": (0,), "x": (2,)}))
    function = CompiledFunction(empty, cache=False)
    doubled, nothing = function(np.zeros((4, 0)), [1.0, 2.0])
    assert np.array_equal(doubled, [[2.0, 4.0]] * 4) and nothing.shape == (4, 0)
    constant = CompiledFunction(optimise(trace(lambda p: [3.0, 4.0], {"p": (0,)})), cache=False)
    assert np.array_equal(constant(np.zeros((2, 0))), [[3.0, 4.0]] * 2)
    assert np.array_equal(constant([]), [3.0, 4.0])


def test_a_wrong_shape_is_reported_with_the_expected_one() -> None:
    q, v, c = inputs(4)
    with pytest.raises(ShapeError, match=r"'v' has the shape \(4, 3\); it should be \(2,\)"):
        DOUBLE(q, np.zeros((4, 3)), c)
    with pytest.raises(ShapeError, match=r"'q' has the shape \(\)"):
        DOUBLE(1.0, v, c)
    with pytest.raises(ShapeError, match=r"'c' has the leading shape \(5,\).* \(4,\)"):
        DOUBLE(q, v, np.zeros((5, 1)))
    with pytest.raises(TypeError, match="2 arrays were given; there are 3 arguments: 'q', 'v', 'c'"):
        DOUBLE(q, v)


MASKED = np.ma.masked_array(np.ones(9), [True] + [False] * 8)  # NumPy would take what is under the mask


@pytest.mark.parametrize("bad", ["abc", ["a"] * 9, [1j] * 9, None, [None] * 9, [object()] * 9, MASKED])
def test_arguments_that_are_not_numbers_are_rejected_by_name(bad: object) -> None:
    DOUBLE.prepare(worlds=1)
    with pytest.raises((StateError, ShapeError), match="'q'"):
        DOUBLE(bad, [1, 2], [3])


@pytest.mark.parametrize("batch", [(), (1,), (3,), (2, 9)])
def test_there_may_be_more_ports_than_numpy_allows(batch: tuple[int, ...]) -> None:
    names = [f"x{k}" for k in range(70)]
    program = optimise(
        trace(lambda *x: {f"y{k}": 2 * x[k] + x[k - 1] for k in range(70)}, dict.fromkeys(names, (2,)))
    )
    args = list(np.random.default_rng(1).normal(size=(70, *batch, 2)))
    found = CompiledFunction(program, cache=False)(*args)
    assert len(found) == 70
    assert all(np.array_equal(y, 2 * args[k] + args[k - 1]) for k, y in enumerate(found))


def test_settings_are_checked() -> None:
    with pytest.raises(ArgumentError, match="lanes is 3"):
        CompiledFunction(PROGRAM, lanes=3)
    with pytest.raises(ArgumentError, match="threads is 0"):
        CompiledFunction(PROGRAM, threads=0)
    with pytest.raises(ArgumentError, match="dtype is 'int8'"):
        CompiledFunction(PROGRAM, dtype="int8")


def test_branches_not_taken_raise_no_warnings_and_the_users_settings_remain() -> None:
    program = optimise(trace(lambda x: [scalar.where(x[0] > 0, scalar.log(x[0]), 1 / x[1])], {"x": (2,)}))
    function = CompiledFunction(program, cache=False)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for count in (1, 2, 1000):
            x = np.tile([1.0, 0.0], (count, 1))
            assert np.array_equal(function(x), np.zeros((count, 1)))


def test_the_inputs_are_not_modified() -> None:
    args = inputs(33)
    kept = [a.copy() for a in args]
    for a in args:
        a.setflags(write=False)
    DOUBLE(*args)
    assert all(np.array_equal(a, k) for a, k in zip(args, kept, strict=True))


def test_code_for_one_world_or_for_many_is_compiled_when_needed() -> None:
    function = CompiledFunction(PROGRAM, cache=False)
    assert not function._kernels
    function(*(a[0] for a in inputs(1)))
    assert set(function._kernels) == {1}
    function(*inputs(3))
    assert set(function._kernels) == {1, function.lanes}
    many = CompiledFunction(PROGRAM, cache=False).prepare()
    assert set(many._kernels) == {many.lanes}
    assert same(many(*(a[0] for a in inputs(1))), tuple(r[0] for r in function(*inputs(1))))
