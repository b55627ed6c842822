"""Failing worlds: each keeps its last valid state and is marked with the time and the reason, with a warning;
the others do not change by a bit.
"""

import re
import warnings

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.constraint.test_closed_loops import four_bars
from tests.constraint.test_constraint_stabilization import sleigh
from tests.constraint.test_nonideal import painleve
from tests.symbolic.machines import X, Z
from zwang.constraint import coupled_rows
from zwang.errors import DescriptionError, ParameterError, SimulationWarning, SolveError, UnknownNameError
from zwang.scalar import less, sqrt, where
from zwang.simulation.status import FAILURE_REASONS
from zwang.solver.newton import newton

t = sp.Symbol("t", real=True)
WAYS = [{}, {"compiled": False}, {"integrator": "dop853"}]


def run_of(arguments, message, **more):
    """The run of several worlds, which must give this warning."""
    mechanism, q0, v0, options = arguments
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", SimulationWarning)
        run = zw.simulate(mechanism, q0, v0, progress=False, **{**options, **more})
    stops = [str(w.message) for w in seen if "stopped" in str(w.message)]
    assert len(stops) == 1 and re.search(message, stops[0]), stops
    return run


def causes(run):
    return [FAILURE_REASONS[k].name for k in run.stop_cause.values]


def alone(arguments, w, **more):
    """The run of world w alone."""
    mechanism, q0, v0, options = arguments
    q0, v0 = (x if x is None or np.ndim(x) == 1 else x[w] for x in (q0, v0))
    one = {**options, **more}
    if "params" in one:
        one["params"] = {name: values[w] for name, values in one["params"].items()}
    return zw.simulate(mechanism, q0, v0, progress=False, **one)


def slide(*constraints):
    body = zw.Body("b", zw.Prismatic("x", axis=X), mass=1)
    return zw.Mechanism("slide", (body,), gravity=(0, 0, 0), constraints=constraints)


def locking():
    """A crank of length r, driven at 2 rad/s, on a rod of 0.8: with r = 1 it locks at sin(crank) = 0.8, at t
    = 0.4636.
    """
    r = sp.Symbol("r", positive=True)
    crank = zw.Body("crank", zw.Revolute("crank", axis=Z), mass=1, com=(r / 2, 0, 0), inertia=(0.1,) * 3)
    rod = zw.Body("rod", zw.Revolute("rod", axis=Z), "crank", (r, 0, 0), mass=1, com=(0.4, 0, 0),
                  inertia=(0.1,) * 3)  # fmt: skip
    slider = zw.Body("slider", zw.Prismatic("slide", axis=X), mass=1)
    laws = (
        zw.Connect("pin", ("rod", (0.8, 0, 0)), ("slider", (0, 0, 0))),
        zw.Holonomic("drive", sp.Symbol("crank") - 2 * t),
    )
    m = zw.Mechanism("locking", (crank, rod, slider), gravity=(0, 0, 0), constraints=laws)
    rs = np.array([0.5, 1.0, 0.6])
    q0, v0 = [[0, 0, r + 0.8] for r in rs], [[2, -2 - 2 * r / 0.8, 0] for r in rs]
    return m, np.array(q0), np.array(v0), {"duration": 0.55, "step": 5e-3, "params": {"r": rs}}


@pytest.mark.parametrize("reduction", [False, True])
@pytest.mark.parametrize("way", WAYS, ids=["compiled", "python", "dop853"])
def test_a_singular_configuration_during_the_motion(way, reduction):
    case = locking()
    h = case[3]["step"] = 0.025 if "compiled" in way else 5e-3
    run = run_of(
        case, r"world 1 stopped at t = 0\.4[56].*'?(pin|crank)'?", coordinate_reduction=reduction, **way
    )
    assert run.status.values.tolist() == [0, 1, 0] and causes(run)[1] in (
        "open_constraint",
        "contradiction",
        "left_bounds",
    )
    assert run.stop_time.values[1] == pytest.approx(np.arcsin(0.8) / 2, abs=1.1 * h)
    recorded = run.q.values[1]
    last = np.isfinite(recorded[:, 0]).sum() - 1
    assert last == int(run.stop_time.values[1] / h + 1e-9)
    np.testing.assert_allclose(recorded[: last + 1, 0], 2 * run.time.values[: last + 1], atol=1e-8)
    assert np.array_equal(run.q.values[2], alone(case, 2, coordinate_reduction=reduction, **way).q.values[0])


@pytest.mark.parametrize("way", WAYS, ids=["compiled", "python", "dop853"])
def test_hard_constraints_that_become_inconsistent(way):
    k = sp.Symbol("k", real=True)
    m = slide(
        zw.Pfaffian("left", {"x": 1}, rate=-sp.sin(t)),
        zw.Pfaffian("right", {"x": 1}, rate=-sp.sin(t) * (1 + k * t)),
    )
    case = (m, None, None, {"duration": 0.1, "step": 1e-2, "params": {"k": np.array([0, 1.0])}})
    run = run_of(case, r"world 1 stopped at t = 0.*'?left'?.*softness.*in the state x = ", **way)
    assert causes(run)[0] == "none" and causes(run)[1] in ("open_constraint", "contradiction")
    np.testing.assert_allclose(run.q.values[0, -1], 1 - np.cos(0.1), rtol=0.15)
    assert np.array_equal(run.q.values[0], alone(case, 0, **way).q.values[0])


@pytest.mark.parametrize("way", WAYS, ids=["compiled", "python", "dop853"])
def test_a_constraint_that_is_inconsistent_initially(way):
    L = sp.Symbol("L", positive=True)
    rope = zw.Distance("rope", ("crank 0", (1, 0, 0)), ("crank 1", (1, 0, 0)), L)
    m = four_bars(1).replace(constraints=(rope,))
    case = (m, [0.3, 0.2, 0.4], None, {"duration": 0.05, "step": 5e-3, "params": {"L": np.array([9.0, 1.0])}})
    run = run_of(
        case, r"world 0 stopped at t = 0 s.*'rope' stays violated.*zw\.assemble.*crank 0 = 0\.3", **way
    )
    assert causes(run) == ["open_constraint", "none"] and run.stop_time.values[0] == 0
    assert np.isfinite(run.q.values[0, 0]).all() and np.isnan(run.q.values[0, 1:]).all()
    assert np.isfinite(run.q.values[1]).all()


@pytest.mark.parametrize("way", WAYS, ids=["compiled", "python", "dop853"])
def test_a_nonideal_law_without_a_solution(way):
    m, start = painleve(sp.Symbol("mu", real=True)), ([0, np.sin(0.9) / 2, 0.9], [1.0, 0, 0])
    case = (m, *start, {"duration": 0.02, "step": 1e-3, "params": {"mu": np.array([0.3, -8.0])}})
    run = run_of(case, r"world 1 stopped at t = 0 s.*'tip'.*Painleve.*lower the friction.*turn = 0\.9", **way)
    assert causes(run) == ["none", "no_working_force"]
    if "integrator" not in way:
        wanted = {"record": {"constraints": True, "zwang": True}}
        generalised_forces = run_of(case, "Painleve", **way, **wanted).generalised_constraint_force.values
        assert np.isfinite(generalised_forces[0]).all() and np.isnan(generalised_forces[1]).all(), (
            "no force is reported where none exists"
        )
    assert np.array_equal(run.q.values[0], alone(case, 0, **way).q.values[0])


def traced(_, q, v):
    return [sqrt(0.3 - q[0])]


def called(_, q, v):
    return [float(np.sqrt(0.3 - float(q[0])))]


def limited(_, q, v):
    return [where(less(0.299, q[0]), np.nan, 0.0)]


@pytest.mark.parametrize("way", WAYS, ids=["compiled", "python", "dop853"])
@pytest.mark.parametrize("control", [traced, called, limited])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_control_that_is_not_a_number(control, way):
    """World 1 passes x = 0.3 at about t = 0.06, where the control becomes the root of a negative number, or
    a formula has no value.
    """
    case = (slide(), None, [[0.0], [5.0]], {"duration": 0.1, "step": 1e-2, "control": control})
    run = run_of(
        case,
        r"world 1 stopped at t = 0\.0[56].*control is not a finite number.*The others were "
        r"simulated to the end",
        **way,
    )
    assert causes(run) == ["none", "bad_control"]
    assert run.stop_time.values[1] == pytest.approx(0.06, abs=1e-3)
    assert np.array_equal(run.q.values[0], alone(case, 0, **way).q.values[0])


def test_independent_velocities_that_become_dependent():
    m, q0, v0 = sleigh()
    starts = (np.array([q0, [0, 0, np.pi / 2]]), np.array([v0, [0, 0.7, 1.5]]))
    case = (m, *starts, {"duration": 0.02, "step": 1e-3, "coordinate_reduction": ["x", "phi"]})
    for way in ({}, {"compiled": False}):
        run = run_of(
            case,
            r"world 1 stopped at t = 0 s.*independent velocities.*coordinate_reduction=True.*phi "
            r"= 1\.571",
            **way,
        )
        assert causes(run) == ["none", "dependent_speeds"]
        assert np.array_equal(run.q.values[0], alone(case, 0, **way).q.values[0])


def test_invalid_independent_velocities_are_rejected():
    m, q0, v0 = sleigh()
    for wrong in (["x"], ["x", "y", "phi"]):
        with pytest.raises(DescriptionError, match=r"has 2 degrees of freedom.*coordinate_reduction=True"):
            zw.simulate(m, q0, v0, duration=0.1, coordinate_reduction=wrong)
    with pytest.raises(UnknownNameError, match=r"'z'.*'phi'"):
        zw.simulate(m, q0, v0, duration=0.1, coordinate_reduction=["z", "phi"])
    with pytest.raises(ParameterError, match="'u' has the symbols b"):
        zw.simulate(
            m,
            q0,
            v0,
            duration=0.1,
            coordinate_reduction=[zw.PointSpeed("u", "body", point=(sp.Symbol("b"), 0, 0)), "phi"],
        )
    for wrong in ([], 3):
        with pytest.raises(DescriptionError, match="coordinate_reduction"):
            zw.simulate(m, q0, v0, duration=0.1, coordinate_reduction=wrong)


def test_a_failed_world_is_not_stepped_again():
    """A force that makes the state diverge acts for one step only: the world's clock does not continue
    afterwards.
    """
    push = np.zeros((2, 10, 1))
    push[1, 3] = 1e14
    case = (slide(), None, None, {"duration": 0.1, "step": 1e-2, "control": push, "worlds": 2})
    for way in ({}, {"compiled": False}):
        run = run_of(case, r"world 1 stopped at t = 0\.03 s.*'x' left every bound", **way)
        assert causes(run) == ["none", "left_bounds"] and run.stop_time.values[1] == pytest.approx(0.03)
        assert np.isnan(run.q.values[1, 4:]).all()


def test_astronomical_distances_in_metres_are_within_bounds():
    """1 AU at the speed of the earth; a coordinate beyond its bound is told by name."""
    far = zw.simulate(slide(), [1.5e11], [3e4], duration=2.0, step=1.0, compiled=False, progress=False)
    assert not far.status.any() and far.q.values[0, -1, 0] == 1.5e11 + 6e4
    case = (slide(), [2e20], [1.0], {"duration": 2.0, "step": 1.0, "compiled": False})
    run_of(case, r"coordinate 'x' left its bound of 1e\+20 m .*larger unit")
    wheel = zw.Mechanism("w", [zw.Body("b", zw.Revolute("turn"), mass=1, inertia=(1, 1, 1))])
    case = (wheel, [2e10], [1.0], {"duration": 2.0, "step": 1.0, "compiled": False})
    run_of(case, r"coordinate 'turn' left its bound of 1e\+10 rad .*whole revolutions")


@pytest.mark.parametrize("compiled", [True, False])
def test_a_solver_that_does_not_converge(monkeypatch, compiled):
    """Newton's method has one iteration: the world beyond its limits, where dry friction reaches its bound in
    two joints, fails; the one within, at rest, continues.
    """
    bodies = [
        zw.Body(name, zw.Prismatic(name, axis=X, limits=(-1, 1), friction=1e-3), mass=1) for name in "xy"
    ]
    m = zw.Mechanism("limited", bodies, gravity=(0, 0, 0))
    monkeypatch.setitem(newton.__kwdefaults__, "iterations", 1)
    case = (m, [[0.5, 0], [1.2, 9]], None, {"duration": 0.03, "step": 1e-2, "compiled": compiled})
    run = run_of(case, r"world 1 stopped at t = 0 s: .*did not converge.*smaller step.*x = 1\.2")
    assert causes(run) == ["none", "not_converged"]


@pytest.mark.parametrize("compiled", [True, False])
def test_more_contacts_between_links_than_there_is_memory_for(monkeypatch, compiled):
    """With memory for the rows of one contact, the world fails in which the middle one of three balls on a
    platform touches both others; the one with a single contact continues.
    """
    balls = [
        zw.Body(f"ball {k}", zw.Prismatic(f"x{k}", axis=X), parent="platform", mass=1, position=(k, 0, 0),
                geometry=[zw.Sphere(0.4)])
        for k in range(3)
    ]  # fmt: skip
    base = zw.Body("platform", zw.Free("base"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism("three balls", [base, *balls], gravity=(0, 0, 0))
    monkeypatch.setattr(coupled_rows, "MOST_ROWS", 3)
    rest = [0, 0, 0, 1, 0, 0, 0]
    q0 = [[*rest, 0.21, 0, 0], [*rest, 0.21, 0, -0.21]]
    case = (m, q0, None, {"duration": 0.006, "step": 2e-3, "compiled": compiled})
    run = run_of(case, r"world 1 stopped at t = 0 s: more contacts act at once than")
    assert causes(run) == ["none", "too_many_contacts"]
    monkeypatch.undo()
    assert not zw.simulate(zw.Mechanism("those", m.bodies, gravity=(0, 0, 0)), q0, duration=0.006, step=2e-3,
                           compiled=compiled, progress=False).stop_cause.values.any()  # fmt: skip


def test_steps_without_a_recording_mark_failed_worlds_with_nan():
    m, q0, v0, options = locking()
    fast, rs = zw.compile(m), options["params"]["r"]
    run = fast.rollout(q0, v0, np.zeros((3, 3)), steps=200, step=5e-3, integrator="rk4", params={"r": rs})
    stopped = np.isnan(run.q).any(axis=2)
    assert stopped[1].argmax() in (92, 93) and stopped[1, 93:].all() and not stopped[[0, 2]].any()
    one = fast.rollout(q0[2], v0[2], np.zeros(3), steps=200, step=5e-3, integrator="rk4", params={"r": rs[2]})
    assert np.array_equal(run.q[2], one.q)


def test_a_body_without_inertia_is_told_in_contact_too():
    """Its mass matrix has a constant zero, which is also so in the program of the contacts."""
    ball = zw.Body("ball", zw.Free("free"), mass=1, geometry=[zw.Sphere(0.1)])
    m = zw.Mechanism("ball", [ball], geometry=[zw.Plane()])
    with pytest.warns(SimulationWarning, match="nothing that the speed 'free.w.' moves has inertia"):
        zw.simulate(m, duration=0.01)
    with pytest.raises(SolveError, match="each body that can turn about its centre of mass"):
        _ = zw.equations(zw.Mechanism("wheel", [zw.Body("b", zw.Revolute("j"), mass=1)])).accelerations
