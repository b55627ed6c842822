"""A world with compacted rows evolves bit for bit the same whatever the number of lanes, its index, and
the states of the other worlds.
"""

from functools import cache

import numpy as np
import pytest

from tests.solver.large_models import mechanism_of, random_states, text_of
from zwang.api.compilation.compiled import WARM_START, program_of
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.rollout_kernel import run_steps

WORLDS, STEPS = 13, 60


@cache
def program(name="creature"):
    mechanism = mechanism_of(text_of(name))
    return program_of(mechanism, ("rollout", mechanism.options.timestep, "euler"))


@cache
def states():
    """Worlds above the floor, in contact with it and fast ones, with very different numbers of active
    rows.
    """
    mechanism = mechanism_of(text_of("creature"))
    q, v, _ = random_states(mechanism, WORLDS, seed=1)
    q[:, 2] += np.linspace(-0.15, 0.3, WORLDS)
    v[::4] *= 8
    u = np.random.default_rng(2).uniform(-1, 1, size=(WORLDS, STEPS, len(mechanism.inputs)))
    return q, v, u


def rolled(q, v, u, dtype="float64", lanes=None, threads=1, name="creature"):
    """q, v and the warm start after every step, side by side (worlds, steps, n)."""
    compiled = CompiledFunction(program(name), dtype=dtype, lanes=lanes, threads=threads, cache=True)
    nothing = np.zeros((len(q), 0))
    size = next(port.size for port in program(name).inputs if port.name == WARM_START)
    arrays = [x.astype(dtype) for x in (q, v, nothing, u, np.zeros(size))]
    done = run_steps(compiled, *arrays, steps=STEPS, over_time=("control",), record=("q", "v", WARM_START))
    return np.concatenate([done.records[name] for name in ("q", "v", WARM_START)], axis=2)


@cache
def whole(dtype="float64", name="creature"):
    return rolled(*states(), dtype, name=name)


def test_the_worlds_differ_in_their_active_rows():
    status = whole()[:, :, -next(port.size for port in program().inputs if port.name == WARM_START) :]
    candidates = (status > 0).sum(axis=2)
    active = (status > 1).sum(axis=2)
    assert np.isfinite(whole()).all()
    assert (candidates.max(axis=0) > candidates.min(axis=0) + 8).any() and active.max() > 12


@pytest.mark.parametrize(
    ("dtype", "lanes", "name"),
    [
        ("float64", 4, "creature"),
        ("float32", 1, "creature"),
        ("float64", 1, "elliptic creature"),
    ],
)
def test_the_same_bits_with_any_number_of_lanes(dtype, lanes, name):
    assert np.isfinite(whole(dtype, name)).all()
    assert np.array_equal(rolled(*states(), dtype, lanes, name=name), whole(dtype, name))


def test_the_same_bits_in_any_order_and_number_of_worlds_and_with_threads():
    order = np.random.default_rng(3).permutation(WORLDS)
    assert np.array_equal(rolled(*(x[order] for x in states())), whole()[order])
    for subset in (slice(0, 1), slice(4, 7), slice(2, 13, 3)):
        assert np.array_equal(rolled(*(x[subset] for x in states())), whole()[subset])
    many = [np.tile(x, (12, *[1] * (x.ndim - 1))) for x in states()]
    assert np.array_equal(rolled(*many, threads=2), np.tile(whole(), (12, 1, 1)))


@pytest.mark.parametrize("failure", ["velocity", "position", "control", "overflow"])
def test_a_failed_world_does_not_change_the_others(failure):
    q, v, u = (x.copy() for x in states())
    failed = [3, 8]
    match failure:
        case "velocity":
            v[failed, 7] = np.nan
        case "position":
            q[failed, 9] = np.inf
        case "control":
            u[failed, 20, 4] = np.nan
        case "overflow":
            v[failed] = 1e200
    found, fine = rolled(q, v, u), np.setdiff1d(np.arange(WORLDS), failed)
    assert np.array_equal(found[fine], whole()[fine])
    if failure == "control":
        assert np.array_equal(found[failed, :20], whole()[failed, :20])
    nq = q.shape[1]
    assert not np.isfinite(found[failed, -1, :nq]).all(axis=1).any()
