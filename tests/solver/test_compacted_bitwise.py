"""What a world of listed rows does is its own, bit for bit: whatever the lanes, its place, its neighbours and their troubles."""

from functools import cache

import numpy as np
import pytest

from tests.solver.large_models import begun, mechanism_of, text_of
from zwang.api.compiled import WARM_START, program_of
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.rollout_kernel import run_steps

WORLDS, STEPS = 13, 60


@cache
def program():
    mechanism = mechanism_of(text_of("creature"))
    return program_of(mechanism, ("rollout", mechanism.options.timestep, "euler"))


@cache
def states():
    """Worlds in the air, on the floor, and some rolled up: of no row, and of many."""
    mechanism = mechanism_of(text_of("creature"))
    q, v, _ = begun(mechanism, WORLDS, seed=1)
    q[:, 2] += np.linspace(-0.15, 0.3, WORLDS)
    v[::4] *= 8
    u = np.random.default_rng(2).uniform(-1, 1, size=(WORLDS, STEPS, len(mechanism.inputs)))
    return q, v, u


def rolled(q, v, u, dtype="float64", lanes=None, threads=1):
    """q, v and what is remembered after every step, side by side (worlds, steps, n), as bits."""
    compiled = CompiledFunction(program(), dtype=dtype, lanes=lanes, threads=threads, cache=True)
    nothing = np.zeros((len(q), 0))
    size = next(port.size for port in program().inputs if port.name == WARM_START)
    arrays = [x.astype(dtype) for x in (q, v, nothing, u, np.zeros(size))]
    done = run_steps(compiled, *arrays, steps=STEPS, over_time=("control",), record=("q", "v", WARM_START))
    return np.concatenate([done.records[name] for name in ("q", "v", WARM_START)], axis=2)


@cache
def whole(dtype="float64"):
    return rolled(*states(), dtype)


def test_the_worlds_differ_in_their_rows():
    memory = whole()[:, :, -next(port.size for port in program().inputs if port.name == WARM_START) :]
    acting = (memory > 0).sum(axis=2)
    pushing = (memory > 1).sum(axis=2)
    assert np.isfinite(whole()).all()
    assert (acting.max(axis=0) > acting.min(axis=0) + 8).any() and pushing.max() > 12


@pytest.mark.parametrize(("dtype", "lanes"), [("float64", 1), ("float64", 2), ("float64", 4), ("float64", 8), ("float32", 1)])  # fmt: skip
def test_the_same_bits_at_every_width(dtype, lanes):
    assert np.array_equal(rolled(*states(), dtype, lanes), whole(dtype))


def test_the_same_bits_in_any_order_and_number_and_over_threads():
    order = np.random.default_rng(3).permutation(WORLDS)
    assert np.array_equal(rolled(*(x[order] for x in states())), whole()[order])
    for some in (slice(0, 1), slice(4, 7), slice(2, 13, 3)):
        assert np.array_equal(rolled(*(x[some] for x in states())), whole()[some])
    many = [np.tile(x, (12, *[1] * (x.ndim - 1))) for x in states()]
    assert np.array_equal(rolled(*many, threads=2), np.tile(whole(), (12, 1, 1)))


@pytest.mark.parametrize("trouble", ["a speed", "a position", "a control", "far away"])
def test_a_broken_world_leaves_the_others_alone(trouble):
    q, v, u = (x.copy() for x in states())
    broken = [3, 8]
    match trouble:
        case "a speed":
            v[broken, 7] = np.nan
        case "a position":
            q[broken, 9] = np.inf
        case "a control":
            u[broken, 20, 4] = np.nan
        case "far away":
            v[broken] = 1e200
    found, fine = rolled(q, v, u), np.setdiff1d(np.arange(WORLDS), broken)
    assert np.array_equal(found[fine], whole()[fine])
    if trouble == "a control":
        assert np.array_equal(found[broken, :20], whole()[broken, :20])
    nq = q.shape[1]
    assert not np.isfinite(found[broken, -1, :nq]).all(axis=1).any()
