"""Repeated rollouts with arrays of the same shapes equal those of `run_steps`, bit for bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from zwang.compiler.frontend.trace import trace
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.kept_rollouts import KEPT, KeptRollouts
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.errors import ArgumentError, ShapeError, StateError

from .test_steps import PROGRAM

RECORD = ("q", "v", "energy")


def arguments(rng: np.random.Generator, batch: tuple[int, ...], steps: int, dtype: str) -> list[np.ndarray]:
    q, v = rng.normal(size=(2, *batch, 2)).astype(dtype)
    return [q, v, rng.normal(size=(*batch, steps, 1)).astype(dtype), np.array([9.81])]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("batch", [(), (5,), (2, 9)])
@pytest.mark.parametrize(("steps", "every"), [(1, 1), (7, 3), (2, 5)])
def test_a_repeated_rollout_equals_a_new_one(
    batch: tuple[int, ...], steps: int, every: int, dtype: str
) -> None:
    rng = np.random.default_rng(0)
    function = CompiledFunction(PROGRAM, dtype=dtype, cache=False)
    rollouts, found = KeptRollouts(function, RECORD), []
    for _ in range(4):
        given = arguments(rng, batch, steps, dtype)
        expected = run_steps(function, *given, steps=steps, every=every, over_time=("force",))
        found.append((rollouts(given, steps, every, ("force",)), expected.records))
    for records, expected in found:  # results keep their values when the buffers are used again
        for record, name in zip(records, RECORD, strict=True):
            assert record.dtype == dtype and np.array_equal(record, expected[name])


def test_shapes_and_strides_may_change_from_call_to_call() -> None:
    rng = np.random.default_rng(1)
    function = CompiledFunction(PROGRAM, cache=False)
    rollouts = KeptRollouts(function, RECORD)
    for k in range(3 * KEPT):
        batch, steps = ((), (3,), (4, 1))[k % 3], 1 + k % (2 * KEPT)
        q, v, force, g = arguments(rng, batch, steps, "float64")
        given = [np.repeat(q, 2, axis=-1)[..., ::2], v[..., ::-1], force, g]
        expected = run_steps(function, *given, steps=steps, over_time=("force",)).records
        records = rollouts(given, steps, 1, ("force",))
        assert all(np.array_equal(x, expected[name]) for x, name in zip(records, RECORD, strict=True))


def test_there_may_be_more_parameters_than_numpy_allows_arrays() -> None:
    def step(x, *rates):
        return {"x": [x[0] + sum(rate[0] for rate in rates)]}

    sizes = {"x": (1,)} | {f"rate {k}": (1,) for k in range(70)}
    function = CompiledFunction(optimise(trace(step, sizes)), cache=False)
    rollouts, rates = KeptRollouts(function, ("x",)), np.arange(210.0).reshape(70, 3, 1)
    for _ in range(3):
        (found,) = rollouts([np.zeros((3, 1)), *rates], 5, 1)
        assert np.array_equal(found, np.arange(1, 6)[:, None] * rates.sum(0)[:, None])


def test_an_error_is_that_of_a_first_call_and_leaves_the_next_call_right() -> None:
    rng = np.random.default_rng(2)
    function = CompiledFunction(PROGRAM, cache=False)
    rollouts = KeptRollouts(function, RECORD)
    given = arguments(rng, (), 2, "float64")
    expected = rollouts(given, 2, 1, ("force",))
    q, v, force, g = given
    with pytest.raises(ShapeError, match="'q' has the shape"):
        rollouts([q[:1], v, force, g], 2, 1, ("force",))
    with pytest.raises(ShapeError, match="'force' has the shape"):
        rollouts(given, 3, 1, ("force",))
    with pytest.raises(StateError, match="'v' is not an array of real numbers"):
        rollouts([q, v + 0j, force, g], 2, 1, ("force",))
    with pytest.raises(ArgumentError, match="every 1 or more"):
        rollouts(given, 2, 0, ("force",))
    with pytest.raises(ArgumentError, match=r"steps is 2\.0"):
        rollouts(given, 2.0, 1, ("force",))  # type: ignore[arg-type]
    assert all(map(np.array_equal, rollouts(given, 2, 1, ("force",)), expected))


def test_threads_do_not_share_buffers() -> None:
    rng = np.random.default_rng(3)
    function = CompiledFunction(PROGRAM, cache=False, threads=1)
    rollouts = KeptRollouts(function, RECORD)
    given = [arguments(rng, (8,), 200, "float64") for _ in range(40)]
    expected = [run_steps(function, *x, steps=200, over_time=("force",)).records["q"] for x in given]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: rollouts(x, 200, 1, ("force",))[0], given * 3))
    assert all(map(np.array_equal, found, expected * 3))
