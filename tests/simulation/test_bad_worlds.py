"""Failing worlds are marked with the time and the reason; the other worlds do not change by a bit."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import SimulationWarning, StateError
from zwang.simulation.status import TOO_MANY_CONTACTS
from zwang.solver import hard_contact, hard_rows

PATHS = pytest.mark.parametrize("compiled", [True, False])


def cart(**more):
    """A cart with a limit and dry friction, driven by a motor with a range."""
    joint = zw.Prismatic("x", axis=(1, 0, 0), limits=(-1.0, 1.0), friction=0.1)
    motor = zw.Motor("push", "x", control_range=(-5, 5))
    return zw.Mechanism(
        bodies=[zw.Body("cart", joint=joint, mass=1.0)], forces=[motor], gravity=(0, 0, 0), **more
    )


def balls(count, **surface):
    touch = zw.Surface(**surface)
    bodies = [
        zw.Body(
            f"ball {k}",
            joint=zw.Free(f"free {k}"),
            mass=1.0,
            inertia=(0.004, 0.004, 0.004),
            geometry=[zw.Sphere(radius=0.1, surface=touch)],
        )
        for k in range(count)
    ]
    return zw.Mechanism(bodies=bodies, geometry=[zw.Plane(position=(0, 0, -1), surface=touch)])


@PATHS
def test_a_nan_control_stops_its_world_at_that_step(compiled):
    u = np.sin(np.arange(3 * 20)).reshape(3, 20, 1)
    bad = u.copy()
    bad[1, 7] = np.nan
    with pytest.warns(
        SimulationWarning,
        match=r"world 1 stopped at t = 0\.014 s: the control is not a finite number.*others were "
        r"simulated to the end",
    ):
        run = zw.simulate(cart(), worlds=3, control=bad, duration=0.04, step=0.002, compiled=compiled)
    good = zw.simulate(cart(), worlds=3, control=u, duration=0.04, step=0.002, compiled=compiled)
    assert run.status.values.tolist() == [0, 1, 0] and run.stop_time.values[1] == pytest.approx(0.014)
    assert np.array_equal(run.q.values[[0, 2]], good.q.values[[0, 2]])
    assert np.array_equal(run.q.values[1, :8], good.q.values[1, :8])  # earlier samples are kept


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
@pytest.mark.parametrize("of_form", [lambda u: {"push": u}, lambda u: u[:, None]], ids=["names", "rows"])
def test_a_control_that_is_not_finite_stops_its_world_in_every_form(of_form, bad):
    """The others move as under the finite control alone: from rest by F t^2 / 2 m, without dry friction."""
    worlds = zw.Worlds(cart(), 3, step=0.01)
    worlds.step(of_form(np.array([2.0, bad, -2.0])), substeps=10)
    assert list(worlds.failure_reason) == ["none", "bad_control", "none"]
    alone = zw.Worlds(cart(), step=0.01)
    alone.step([2.0], substeps=10)
    np.testing.assert_array_equal(worlds.q[:, 0], [alone.q[0, 0], 0, -alone.q[0, 0]])
    assert list(worlds.time) == [0.1, 0, 0.1]


def test_copies_have_the_parameters_that_were_written_also_invalid_ones():
    m = sp.Symbol("m", positive=True)
    body = zw.Body("cart", joint=zw.Prismatic("x", axis=(1, 0, 0)), mass=m)
    worlds = zw.Worlds(zw.Mechanism(bodies=[body]), 3, params={"m": 1.0})
    worlds.params["m"][1] = np.nan
    for each in (worlds, pickle.loads(pickle.dumps(worlds)), copy.copy(worlds)):
        each.step([0.3])
        assert np.array_equal(each.params["m"], [1.0, np.nan, 1.0], equal_nan=True)
        assert each.failed.tolist() == [False, True, False] and np.array_equal(each.time, worlds.time)


def test_the_world_of_an_invalid_initial_state_is_named():
    q, v = np.tile(balls(1).neutral, (4, 1)), np.zeros((4, 6))
    q[2, 3:] = 2.0
    start = zw.simulate(balls(1), q, v, duration=0.002, compiled=False, progress=False)
    np.testing.assert_array_equal(start.q.values[2, 0, 3:], 0.5)  # (2, 2, 2, 2) at unit length
    assert (q[2, 3:] == 2).all()
    q[2, 3:] = 0.0
    with pytest.raises(StateError, match=r"quaternion of joint 'free 0', q\[3:7\] in row 2, is zero"):
        zw.simulate(balls(1), q, v, duration=0.002)
    v[3, 1] = np.inf
    with pytest.raises(StateError, match=r"v0\[3, 1\] is inf; every element of v0 must be finite"):
        zw.simulate(balls(1), q, v, duration=0.002)


def test_controls_by_name_are_set_together_or_not_at_all():
    worlds = zw.Worlds(cart(), 2)
    with pytest.raises(StateError, match="control"):
        worlds.step({"push": "strongly"})
    assert not worlds.control.any() and not worlds.time.any()


def test_controls_that_are_nan_in_every_world_are_rejected():
    with pytest.raises(StateError, match="NaN"):
        zw.simulate(cart(), control=np.full((20, 1), np.nan), duration=0.04, step=0.002)


@PATHS
def test_hard_constraints_that_contradict_each_other_stop_their_world(compiled):
    """Both formulas prescribe x = 0 and no velocity initially; then one has twice the acceleration of the
    other.
    """
    t, x = sp.symbols("t x")
    laws = [zw.Holonomic("slow", x - t**2), zw.Holonomic("fast", x - 2 * t**2)]
    with pytest.warns(SimulationWarning, match=r"world 0 stopped at t = 0 s: .*slow.*contradict"):
        run = zw.simulate(cart(constraints=laws), duration=0.02, step=0.002, compiled=compiled)
    assert run.status.values.tolist() == [1] and run.stop_time.values[0] == 0
    assert run.stop_cause.attrs["flag_meanings"].split()[int(run.stop_cause[0])] == "contradiction"


@PATHS
def test_a_solver_that_does_not_converge_stops_its_world(compiled, monkeypatch):
    """The foot of an upright rod slides with much friction; one iteration does not come near to Coulomb's
    law.
    """
    monkeypatch.setattr(hard_contact, "ITERATIONS", 1)
    touch = zw.Surface(friction=(5.0, 0.005, 0.0001), hard=True)
    joints = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z"), zw.Revolute("lean", axis=(0, 1, 0)))
    foot = zw.Sphere(radius=0.001, position=(0, 0, -0.5), surface=touch)
    rod = zw.Body("rod", joint=joints, mass=1.0, inertia=(1 / 12, 1 / 12, 1e-4), geometry=[foot])
    mechanism = zw.Mechanism(bodies=[rod], geometry=[zw.Plane(surface=touch)])
    q0, v0 = [[0, 1.6, 0], [0, 0.501, 0], [0, 2.6, 0]], [[0, 0, 0], [3.0, 0, 0], [1.0, 0, 0]]
    with pytest.warns(
        SimulationWarning,
        match=r"world 1 stopped at t = 0 s: the constraint solver did not converge.*friction",
    ):
        run = zw.simulate(mechanism, q0, v0, duration=0.01, step=0.002, compiled=compiled)
    assert run.status.values.tolist() == [0, 1, 0]
    alone = zw.simulate(mechanism, q0[::2], v0[::2], duration=0.01, step=0.002, compiled=compiled)
    assert np.array_equal(run.q.values[[0, 2]], alone.q.values)


@PATHS
def test_deeply_overlapping_balls_give_a_warning_and_separate_without_nan(compiled):
    apart = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0]
    inside = [0, 0, 0, 1, 0, 0, 0, 0.01, 0, 0, 1, 0, 0, 0]
    again = (
        r"sphere 1 of ball 0 and sphere 2 of ball 1 overlap by 0\.19 m "
        r"at the start of world 1.*ContactExclude"
    )
    steps = {"duration": 0.2 if compiled else 0.02, "step": 0.002, "compiled": compiled}
    with pytest.warns(SimulationWarning, match=again):
        run = zw.simulate(balls(2), [apart, inside, apart], **steps)
    assert not run.status.values.any() and np.isfinite(run.q.values).all()
    alone = zw.simulate(balls(2), [apart], **steps)
    assert np.array_equal(run.q.values[[0, 2]], np.repeat(alone.q.values, 2, axis=0))


def test_coincident_balls_separate():
    with pytest.warns(SimulationWarning, match="overlap by 0.2 m"):
        run = zw.simulate(balls(3), duration=0.3, step=0.002)
    assert not run.status.values.any() and np.isfinite(run.q.values).all()
    places = run.q.values[0, -1].reshape(3, 7)[:, :3]
    distances = np.linalg.norm(places[:, None] - places, axis=-1)[np.triu_indices(3, 1)]
    assert distances.min() > 0.15


def test_an_initial_state_without_overlap_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zw.simulate(balls(1), [0, 0, -0.91, 1, 0, 0, 0], duration=0.01, step=0.002)


@PATHS
def test_an_unbounded_state_stops_its_world(compiled):
    """A massless body on which friction acts: Gauss's function has no minimum."""
    bodies = [zw.Body("end", joint=zw.Prismatic("x", friction=1.0), mass=1e-300)]
    with pytest.warns(SimulationWarning, match=r"world 0 stopped at t = 0 s"):
        run = zw.simulate(
            zw.Mechanism(bodies=bodies), control=1.0, duration=0.02, step=0.002, compiled=compiled
        )
    assert run.status.values.tolist() == [1]


def test_more_hard_contacts_than_there_is_memory_for_stop_their_world(monkeypatch):
    """A box falls flat on the ground, and four corners are to touch where there is memory for two contacts.

    Contacts act from 1000 h^2 + 2 h |u| before they close.
    """
    monkeypatch.setattr(hard_rows, "FEWEST_CONTACTS", 2)
    monkeypatch.setattr(hard_rows, "CONTACTS_PER_VELOCITY", 0)
    rigid = zw.Surface(friction=(0.5, 0.005, 0.0001), hard=True)
    box = zw.Box(0.2, 0.2, 0.2, surface=rigid)
    free, inertia = zw.Free("box"), (0.01, 0.01, 0.01)
    body = zw.Body("box", free, position=(0, 0, 0.12), mass=1.0, inertia=inertia, geometry=[box])
    m = zw.Mechanism("fall", [body], geometry=[zw.Plane(surface=rigid)])
    with pytest.warns(SimulationWarning, match="memory"):
        run = zw.simulate(m, duration=0.3, step=0.002, progress=False)
    assert run.failure_reason.item() == TOO_MANY_CONTACTS
    assert 0.05 < run.termination_time.item() < np.sqrt(2 * 0.02 / 9.81)
