"""The rollout kernel: many steps in one call equal as many single calls, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from zwang import scalar
from zwang.api.compilation.compiled import compile_function
from zwang.compiler.frontend.trace import trace
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.bound_rollout import Rollout
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.errors import ArgumentError, ShapeError, TraceError, UnknownNameError


def step(q, v, force, g):
    """Two pendulums; the outputs have another order than the inputs, and one of them is not part of the
    state.
    """
    new_v = [v[k] + 0.01 * (force[0] - g[0] * scalar.sin(q[k])) for k in range(2)]
    new_q = [q[k] + 0.01 * new_v[k] for k in range(2)]
    energy = sum(0.5 * w * w - g[0] * scalar.cos(p) for w, p in zip(new_v, new_q, strict=True))
    return {"v": new_v, "energy": [energy, energy * 2, new_q[0]], "q": new_q}


PROGRAM = optimise(trace(step, {"q": (2,), "v": (2,), "force": (1,), "g": (1,)}))


def states(*batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=(*batch, 2)), rng.normal(size=(*batch, 2))]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("batch", [(), (1,), (5,), (37,), (2, 9)])
def test_steps_equal_calls(batch: tuple[int, ...], dtype: str) -> None:
    function = CompiledFunction(PROGRAM, dtype=dtype, threads=2, cache=False)
    q, v = (a.astype(dtype) for a in states(*batch))
    force = np.random.default_rng(4).normal(size=(*batch, 20, 1)).astype(dtype)
    run = run_steps(function, q, v, force, [9.81], steps=20, every=3, over_time=["force"])
    rows = []
    for time in range(20):
        v, energy, q = function(q, v, force[..., time, :], [9.81])
        rows.append({"v": v, "energy": energy, "q": q})
    assert set(run.state) == {"q", "v"}
    assert all(np.array_equal(run.state[name], rows[-1][name]) for name in run.state)
    for name, record in run.records.items():
        assert record.shape == (*batch, 6, len(rows[0][name].T))
        assert np.array_equal(record, np.stack([rows[k][name] for k in range(2, 20, 3)], axis=-2))


def test_inputs_that_are_shared_by_all_worlds_or_strided() -> None:
    function = CompiledFunction(PROGRAM, cache=False)
    q, v = states(12)
    force = np.random.default_rng(5).normal(size=(10, 1))
    shared = run_steps(function, q, v[0], force, [9.81], steps=10, over_time=["force"])
    every = run_steps(
        function,
        q[::-1].copy()[::-1],
        np.tile(v[0], (12, 1)),
        np.tile(force, (12, 1, 1)),
        [[9.81]] * 12,
        steps=10,
        over_time=["force"],
    )
    assert np.array_equal(shared.records["energy"], every.records["energy"])


def test_only_named_outputs_are_recorded() -> None:
    function = CompiledFunction(PROGRAM, cache=False)
    q, v = states(3)
    run = run_steps(function, q, v, [0.0], [9.81], steps=4, every=2, record=["energy"])
    assert {name: r.shape for name, r in run.records.items()} == {"energy": (3, 2, 3)}
    assert not run_steps(function, q, v, [0.0], [9.81], steps=4, record=[]).records


def test_zero_steps_return_the_state_and_few_steps_no_record() -> None:
    function = CompiledFunction(PROGRAM, cache=False)
    q, v = states(3)
    still = run_steps(function, q, v[0], [0.0], [9.81], steps=0)
    assert np.array_equal(still.state["q"], q) and np.array_equal(still.state["v"], np.tile(v[0], (3, 1)))
    assert still.records["q"].shape == (3, 0, 2)
    assert run_steps(function, q, v, [0.0], [9.81], steps=4, every=5).records["q"].shape == (3, 0, 2)
    assert run_steps(function, q[:0], v[:0], [0.0], [9.81], steps=4).records["q"].shape == (0, 4, 2)


def test_invalid_arguments_are_reported_by_name() -> None:
    function = CompiledFunction(PROGRAM, cache=False)
    q, v = states(3)
    with pytest.raises(ShapeError, match=r"'force' .* over time it should be \(..., 4, 1\)"):
        run_steps(function, q, v, np.zeros((3, 5, 1)), [9.81], steps=4, over_time=["force"])
    with pytest.raises(UnknownNameError, match="'torque'"):
        run_steps(function, q, v, [0.0], [9.81], steps=4, over_time=["torque"])
    with pytest.raises(UnknownNameError, match="'power'"):
        run_steps(function, q, v, [0.0], [9.81], steps=4, record=["power"])
    with pytest.raises(ValueError, match="'q' is part of the state"):
        run_steps(function, q, v, [0.0], [9.81], steps=4, over_time=["q"])
    with pytest.raises(ArgumentError, match="steps is -1"):
        run_steps(function, q, v, [0.0], [9.81], steps=-1)
    uneven = optimise(trace(lambda q: {"q": [q[0]]}, {"q": (2,)}))
    with pytest.raises(ShapeError, match="'q' has 2 elements as an input and 1 as an output"):
        run_steps(CompiledFunction(uneven, cache=False), q, steps=1)


# ---------------------------------------------------------------------------------- carried values


def smoothed(q, force, before):
    """A force averaged over four steps, with the last three carried, and a carried count of the negative
    forces.
    """
    stored = [force[0], before[0], before[1], before[3]]
    count = scalar.fori_loop(
        0,
        1,
        lambda k, a: a.scatter(3.0 + 0 * q[0], before[3] + scalar.where(force[0] < 0, 1.0, 0.0)),
        _filled(stored),
    )
    mean = (force[0] + before[0] + before[1] + before[2]) / 4
    return {"q": [q[0] + 0.1 * mean, before[3]]}, [count[k] for k in range(4)]


def _filled(values):
    array = scalar.zeros(len(values))
    for k, value in enumerate(values):
        array = array.set(k, value)
    return array


def with_carried_values(q, force, carried):
    out, stored = smoothed(q, force, carried.warm_start(4))
    carried.keep(stored)
    return out


def with_explicit_values(q, force, notes):
    out, stored = smoothed(q, force, notes)
    return {**out, "notes": stored}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("batch", [(), (5,), (37,), (2, 9)])
def test_carried_values_equal_an_explicit_input_and_output(batch: tuple[int, ...], dtype: str) -> None:
    sizes = {"q": 2, "force": 1}
    own = compile_function(with_carried_values, sizes, dtype=dtype, cache=False, carried="notes")
    explicit = compile_function(with_explicit_values, {**sizes, "notes": 4}, dtype=dtype, cache=False)
    assert own.program.inputs == explicit.program.inputs and own.program.outputs == explicit.program.outputs
    q, _ = states(*batch)
    force = np.random.default_rng(6).normal(size=(*batch, 12, 1))
    settings = {"steps": 12, "every": 3, "over_time": ["force"]}
    with_carried = run_steps(own, q, force, np.zeros(4), **settings)
    carried = run_steps(explicit, q, force, np.zeros((*batch, 4)), **settings)
    notes = np.zeros((*batch, 4), dtype)
    state = q.astype(dtype)
    for k in range(12):
        state, notes = own(state, force[..., k, :], notes)
    for run in (with_carried, carried):
        assert np.array_equal(run.state["q"], state) and np.array_equal(run.state["notes"], notes)
    assert all(np.array_equal(with_carried.records[n], carried.records[n]) for n in ("q", "notes"))
    newest = force[..., 9:12, 0][..., ::-1].astype(dtype)
    assert np.array_equal(with_carried.state["notes"][..., :3], newest)
    assert np.array_equal(with_carried.state["notes"][..., 3], np.sum(force[..., 0] < 0, axis=-1))


def with_integers(x, carried):
    """Integers that fall and rise by 2,500, and one that rises by 1, where the sign of x is positive."""
    low, high = carried.state(2, 30_000)
    code = carried.warm_start(1, 12)[0]
    moves = scalar.where(x[0] > 0, 1.0, 0.0)
    carried.keep_state([low - 2500 * moves, high + 2500 * moves])
    carried.keep([code + moves])
    return {"x": [x[0] + 0 * (low + high + code)]}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("worlds", [16, 21, 37])
def test_arrays_of_small_integers_are_read_and_written(worlds: int, dtype: str) -> None:
    function = compile_function(with_integers, {"x": 1}, dtype=dtype, cache=False, carried="notes")
    assert [port.largest for port in function.program.inputs] == [0, 30_000]
    x = np.random.default_rng(3).normal(size=(worlds, 1)).astype(dtype)
    moves = (x[:, 0] > 0).astype(int)
    memory = np.full((3, worlds + 3), -7, "int16")  # a row for each element, and space that is not a world's
    arrays = {"x": x.copy(), "notes": memory[:, :worlds].T}
    arrays["notes"][:] = 0
    rollout = Rollout(function, [*arrays.values()], worlds, arrays)
    for _ in range(3):
        rollout.run(4)
    assert np.array_equal(arrays["notes"], np.outer(moves, [-30_000, 30_000, 12]))
    assert np.array_equal(arrays["x"], x) and (memory[:, worlds:] == -7).all()


def test_unused_carried_values_are_not_a_port() -> None:
    program = trace(lambda q, carried: {"q": q}, {"q": (2,)}, carried="notes")
    assert [port.name for port in (*program.inputs, *program.outputs)] == ["q", "q"]


def read_twice(q, carried):
    return [q[0] + carried.warm_start(2)[0] + carried.warm_start(2)[1]]


def stored_too_few(q, carried):
    carried.keep([carried.warm_start(2)[0]])
    return [q[0]]


def stored_all(q, carried):
    carried.keep(carried.warm_start(2))
    return {"q": [q[0]], "other": [q[1]]}


@pytest.mark.parametrize(
    ("function", "name", "advice"),
    [
        (read_twice, "notes", "called twice"),
        (stored_too_few, "notes", "are 2 at the start of a step, but keep.. stores 1"),
        (
            lambda q, carried: [q[0] + carried.warm_start(2)[0]],
            "notes",
            "are 2 at the start of a step, but keep.. stores 0",
        ),
        (stored_all, "q", "choose another name"),
        (stored_all, "other", "choose another name"),
    ],
)
def test_inconsistent_carried_values_are_rejected(function, name, advice) -> None:
    with pytest.raises(TraceError, match=advice):
        trace(function, {"q": (2,)}, carried=name)
