"""Rollouts of unusual mechanisms: every step equals that of `step`, whose solver has no warm start and no
compaction.
"""

from functools import cache

import numpy as np
import pytest
import sympy as sp

import zwang as zw

SOFT = zw.Softness()
BOUND = {"low": [-0.1, -0.2, -0.05], "high": [0.1, 0.15, 0.01]}
SIZES = {"length": [0.1, 0.12, 0.09], "mass": [0.1, 0.2, 0.05], "loss": [0.02, 0.1, 0.0]}
PARAMS = {name: np.array(values) for name, values in {**BOUND, **SIZES}.items()}


def chain(name="", links=10, length=0.1, mass=0.1, limits=(None,), loss=0.0, at=(0, 0, 0.06)):
    """Links that turn about y and z by turns, the first and the last two of them with a ball."""
    bodies = []
    for k in range(links):
        joint = zw.Revolute(
            f"{name}turn_{k}",
            axis=((0, 1, 0), (0, 0, 1))[k % 2],
            armature=0.01,
            limits=limits[k % len(limits)],
            friction=loss,
        )
        body = zw.Body(
            f"{name}link_{k}",
            parent=bodies[-1].name if bodies else "world",
            position=(length, 0, 0) if bodies else at,
            joint=joint,
            mass=mass,
            com=(0.05, 0, 0),
            inertia=(1e-3,) * 3,
            geometry=[zw.Sphere(radius=0.06)] if k in (0, links - 2, links - 1) else [],
        )
        bodies.append(body)
    return bodies


def random_states(mechanism, worlds, seed=0):
    rng = np.random.default_rng(seed)
    shape = worlds, mechanism.nv
    return 0.15 * rng.normal(size=shape), 0.5 * rng.normal(size=shape), rng.uniform(-1, 1, size=shape)


def assert_steps_as_alone(fast, steps=40, worlds=3, params=None, pushed=1.0):
    """The rollout's own states, each one step after the one before."""
    q, v, u = random_states(fast.mechanism, worlds)
    u = pushed * u
    run = fast.rollout(q, v, u, steps=steps, params=params)
    before = [np.concatenate([x[:, None], xs[:, :-1]], axis=1) for x, xs in ((q, run.q), (v, run.v))]
    own = params and {name: x[:, None] for name, x in params.items()}
    alone = fast.step(*before, u[:, None], params=own)
    assert np.isfinite(run.v).all()
    np.testing.assert_allclose(run.q, alone.q, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(run.v, alone.v, rtol=1e-9, atol=1e-10)
    return run


@cache
def compiled_with_symbols():
    """Limits by symbols, too narrow for one row of both ends, and at one end only; lengths, masses and dry
    friction by symbols.
    """
    low, high, length, mass, loss = sp.symbols(" ".join(PARAMS), real=True)
    limits = (low, high), None, (-0.2, high), (-np.inf, 0.2), (-0.3, 0.3), (0.01, 0.01)
    bodies = chain(limits=limits, length=length, mass=mass, loss=loss)
    return zw.compile(zw.Mechanism("symbols", bodies, geometry=[zw.Plane()]))


def test_a_large_symbolic_tree_steps_as_one_world_and_as_its_numeric_equivalent():
    fast = compiled_with_symbols()
    m = fast.mechanism
    run = assert_steps_as_alone(fast, params=PARAMS)
    q, v, u = random_states(m, 3)
    one = m.subs({name: float(x[1]) for name, x in PARAMS.items()})
    numbers = zw.compile(one).rollout(q[1], v[1], u[1], steps=40)
    np.testing.assert_allclose(numbers.v, run.v[1], rtol=1e-8, atol=1e-9)


def test_zero_worlds_and_zero_steps():
    fast, none = compiled_with_symbols(), {name: x[:0] for name, x in PARAMS.items()}
    q, v, u = random_states(fast.mechanism, 3)
    assert fast.rollout(q[:0], v[:0], u[:0], steps=4, params=none).v.shape == (0, 4, 10)
    assert fast.rollout(q, v, u, steps=0, params=PARAMS).v.shape == (3, 0, 10)


def test_light_friction_beside_hard_impacts_converges():
    """Torques of 0.05 N m change one after the other beside forces 10^4 times as large."""
    bodies = chain(loss=0.05, limits=((-0.3, 0.3), None), at=(0, 0, 0.03))
    deep = zw.compile(zw.Mechanism("deep", bodies, geometry=[zw.Plane()]))
    assert_steps_as_alone(deep, steps=2, worlds=40, pushed=0.2)


def test_a_constraint_between_two_fixed_bodies_has_no_effect():
    fixed = [zw.Body("near", position=(0, 0, 2)), zw.Body("far", position=(0, 0, 2.2))]
    ends = ("near", (0, 0, 0)), ("far", (0, 0, 0))
    distance = zw.Distance("rod", *ends, 0.1, softness=SOFT)
    m = zw.Mechanism("fixed", chain() + fixed, geometry=[zw.Plane()], constraints=[distance])
    assert_steps_as_alone(zw.compile(m))


@pytest.mark.parametrize("links", [4, 10])
def test_a_nonideal_force_depends_on_the_force_of_its_soft_constraint(links):
    """Dry friction by a formula, proportional to the force of a joint coupling."""
    couple = zw.JointCoupling("held", "turn_1", "turn_2", softness=SOFT)
    rubs = zw.NonIdeal("rubs", "held", {"turn_1": -0.01 * sp.Symbol("N") * sp.Symbol("turn_1_dot")})
    m = zw.Mechanism("rubbing", chain(links=links), geometry=[zw.Plane()], constraints=[couple, rubs])
    assert_steps_as_alone(zw.compile(m))
