"""`zw.simulate`: arguments and results; compiled and Python runs and all forms of control agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.cases import case
from tests.mechanisms import random_mechanism, random_state
from zwang.api.arguments.initial_conditions import initial_state
from zwang.api.runs import compiled_rollout
from zwang.errors import (
    ParameterError,
    ShapeError,
    SimulationError,
    SimulationWarning,
    StateError,
    TraceError,
    UnknownNameError,
)
from zwang.mechanism.samples import FURUTA, double_pendulum, four_bar, furuta
from zwang.robot.sampling import random_configurations
from zwang.scalar import sin

PENDULUM = double_pendulum()


def driven() -> zw.Mechanism:
    return furuta(**FURUTA)


# ------------------------------------------------------------------------------------- against other programs


def test_the_chaotic_double_pendulum_equals_its_26_digit_reference():
    data = case("rigid_body", "H03_double_pendulum_chaotic")
    run = zw.simulate(
        PENDULUM,
        {"shoulder": -np.pi / 2, "elbow": 0},
        duration=10.0,
        step=0.5,
        integrator=zw.Adaptive(rtol=1e-13, atol=1e-13),
    )
    for t, *texts in data["reference"]["rows"]:
        if t > 10:
            continue
        th1, th2, w1, w2 = map(float, texts)
        here = run.sel(time=t, world=0)
        found = -np.array(
            [*np.cumsum(here.q.values), *np.cumsum(here.v.values)]
        )  # y-axis turns the other way
        tolerance = 1e-9 if t <= 5 else 1e-6
        np.testing.assert_allclose(found, [th1, th2, w1, w2], atol=tolerance)


def test_a_torque_free_asymmetric_body_keeps_energy_and_world_angular_momentum_for_100_s():
    inertia = np.array([0.01, 0.02, 0.015])
    body = zw.Mechanism(bodies=[zw.Body("b", zw.Ball("j"), mass=1, inertia=inertia)], gravity=(0, 0, 0))
    run = zw.simulate(
        body, None, [1.0, 2.0, -1.5], duration=100.0, step=0.5, integrator=zw.Adaptive(rtol=1e-13, atol=1e-14)
    )
    energy = run.energy.values[0]
    assert np.abs(energy / energy[0] - 1).max() < 1e-10
    momenta = np.array(
        [zw.momentum(body, q, v)[3:] for q, v in zip(run.q.values[0], run.v.values[0], strict=True)]
    )
    assert np.abs(momenta - momenta[0]).max() / np.linalg.norm(momenta[0]) < 1e-10


@pytest.mark.parametrize("seed", [0, 2])
def test_runge_kutta_converges_to_dop853_on_random_trees_of_every_joint_kind(seed):
    mechanism = random_mechanism(seed, bodies=3)
    q, v, _, _ = random_state(mechanism, seed)
    ends = [
        zw.simulate(mechanism, q, v, duration=0.2, step=h, integrator=how).q.values[0, -1]
        for h, how in ((0.01, "rk4"), (0.005, "rk4"), (0.2, zw.Adaptive(rtol=1e-12, atol=1e-13)))
    ]
    coarse, fine = (np.abs(end - ends[-1]).max() for end in ends[:2])
    assert fine < 1e-6
    assert 3.3 < np.log2(coarse / fine) < 5 or fine < 1e-10


# -------------------------------------------------------------------------------- compiled and Python runs


@pytest.mark.parametrize("integrator", ["euler", "rk4", "dop853"])
def test_compiled_runs_equal_python_runs(integrator):
    mechanism = random_mechanism(3, bodies=4)
    q, v, tau, _ = random_state(mechanism, 3)
    runs = [
        zw.simulate(
            mechanism,
            q,
            [v, v / 2],
            duration=0.05,
            step=0.005,
            integrator=integrator,
            control=tau,
            record={"every": 3, "frames": ["tip"]},
            compiled=compiled,
        )
        for compiled in (True, False)
    ]
    assert [run.attrs["path"] for run in runs] == ["compiled", "python"]
    for name in ("q", "v", "tau", "control", "energy", "frame_position"):
        np.testing.assert_allclose(runs[0][name], runs[1][name], atol=1e-8, rtol=1e-8)
    np.testing.assert_allclose(runs[0].time, [0, 0.015, 0.03, 0.045, 0.05])


def test_each_of_many_worlds_equals_a_single_world_bit_for_bit():
    rng = np.random.default_rng(1)
    q0 = rng.normal(size=(11, 2))
    together = zw.simulate(PENDULUM, q0, duration=0.2, step=0.01)
    alone = zw.simulate(PENDULUM, q0[7], duration=0.2, step=0.01)
    assert np.array_equal(together.q.values[7], alone.q.values[0])


def test_parameters_differ_from_world_to_world_and_equal_substitution():
    masses = np.array([0.02, 0.03, 0.05])
    values = {name: value for name, value in FURUTA.items() if name != "m_p"}
    run = zw.simulate(furuta(), {"alpha": 0.2}, duration=0.2, step=0.01, params={**values, "m_p": masses})
    assert run.sizes["world"] == 3
    np.testing.assert_allclose(run.parameters.sel(parameter="m_p"), masses)
    for w, mass in enumerate(masses):
        one = zw.simulate(furuta(**{**FURUTA, "m_p": mass}), {"alpha": 0.2}, duration=0.2, step=0.01)
        np.testing.assert_allclose(run.q.values[w], one.q.values[0], atol=1e-12)
    python = zw.simulate(
        furuta(), {"alpha": 0.2}, duration=0.05, step=0.01, params={**values, "m_p": masses}, compiled=False
    )
    np.testing.assert_allclose(python.q, run.q[:, :6], atol=1e-12)


# --------------------------------------------------------------------------------------------- control


def test_all_forms_of_the_same_control_give_the_same_motion():
    t = np.arange(50) * 0.01
    u = 0.01 * np.sin(7 * t)
    ways = [
        u[:, None],
        {"tau": u},
        lambda t, q, v: {"tau": 0.01 * sin(7 * t)},
        lambda t, q, v: [0.01 * float(np.sin(7 * t))],
    ]
    runs = [zw.simulate(driven(), {"alpha": 0.1}, duration=0.5, step=0.01, control=way) for way in ways]
    paths = [run.attrs["path"] for run in runs]
    assert paths == ["compiled"] * 3 + ["compiled, control called in Python"]
    for run in runs[1:]:
        np.testing.assert_allclose(run.q, runs[0].q, atol=1e-10)
        np.testing.assert_allclose(run.control[:, :-1], runs[0].control[:, :-1], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_states_by_the_names_of_joints_are_those_of_the_arrays(seed):
    """Of one and of several worlds, for joints of all kinds; other elements keep their defaults."""
    m = random_mechanism(seed, bodies=8)
    rng = np.random.default_rng(seed)
    q, v = np.array(random_configurations(m, 3, seed)), rng.normal(size=(3, m.nv))
    chosen = m.joints[::2]
    by_joint = [{j.name: x[..., getattr(j, part)] for j in chosen} for x, part in ((q, "q"), (v, "v"))]
    for part, joints in zip("qv", by_joint, strict=True):
        for j in chosen:
            if getattr(j, part).stop - getattr(j, part).start == 1:
                joints[j.name] = joints[j.name][:, 0]
    expected_q, expected_v = np.tile(m.home or m.neutral, (3, 1)).astype(float), np.zeros_like(v)
    for j in chosen:
        expected_q[:, j.q], expected_v[:, j.v] = q[:, j.q], v[:, j.v]
    found = initial_state(m, *by_joint)
    np.testing.assert_allclose(found.q, expected_q, atol=1e-15)
    np.testing.assert_array_equal(found.v, expected_v)
    one = [{name: x[0] for name, x in joints.items()} for joints in by_joint]
    assert zw.energy(m, *one) == zw.energy(m, expected_q[0], expected_v[0])


def test_joints_by_name_in_worlds_keyframes_and_assemblies():
    body = zw.Body("ball", zw.Free("f"), mass=1.0, inertia=np.eye(3))
    up = zw.Keyframe("up", q=(0, 0, 2, 1, 0, 0, 0), v=(1, 2, 3, 4, 5, 6))
    m = zw.Mechanism("m", [body, zw.Body("bob", zw.Ball("b"), "ball", mass=1.0, inertia=np.eye(3))],
                     keyframes=[replace(up, q=(*up.q, 1, 0, 0, 0), v=(*up.v, 7, 8, 9))])  # fmt: skip
    state = initial_state(m, "up", {"b": [-1, -2, -3]})
    assert state.v.tolist() == [[1, 2, 3, 4, 5, 6, -1, -2, -3]]
    worlds = zw.Worlds(m, 2)
    worlds.reset(q={"b": [0, 1, 0, 0]}, v={"f": np.arange(12.0).reshape(2, 6)})
    assert worlds.q[1].tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]
    assert worlds.v[1].tolist() == [6, 7, 8, 9, 10, 11, 0, 0, 0]
    worlds.set([1], v={"b": [1, 2, 3]})
    assert worlds.v[1].tolist() == [6, 7, 8, 9, 10, 11, 1, 2, 3]
    assert zw.assemble(m, m.neutral, speeds={"b": [1, 2, 3]})[1].tolist() == [0] * 6 + [1, 2, 3]


def test_the_worlds_follow_from_the_control():
    body = zw.Body("b", zw.Prismatic("x", axis=(1, 0, 0)), mass=2.0)
    m = zw.Mechanism("cart", [body], gravity=(0, 0, 0), forces=[zw.Motor("push", "x")])
    force = np.array([1.0, 2.0, 3.0])
    values = np.repeat(force[:, None, None], 5, axis=1)
    for control in (values, values[:, :1], {"push": values[..., 0]}):
        run = zw.simulate(m, duration=0.1, step=0.02, control=control, progress=False)
        np.testing.assert_allclose(run.v.values[:, -1, 0], force / 2 * 0.1, rtol=1e-12)
    recorded = zw.simulate(m, duration=0.1, step=0.02, control=run.control, progress=False)
    np.testing.assert_array_equal(recorded.v.values, run.v.values)
    with pytest.raises(ShapeError, match="q0 is for 2 worlds, but there are 3"):
        zw.simulate(m, [[0.0], [1.0]], duration=0.1, step=0.02, control=values, progress=False)
    with pytest.raises(ShapeError, match="q0 is for no world"):
        zw.simulate(m, np.zeros((0, 1)), duration=0.1, step=0.02, progress=False)


def test_a_stateful_control_function_is_called_once_a_step_in_order():
    times = []

    def remembering(t, q, v):
        times.append(float(t))
        return [1e-3 * len(times)]

    run = zw.simulate(driven(), duration=0.05, step=0.01, control=remembering, compiled=False)
    assert times == pytest.approx([0, 0.01, 0.02, 0.03, 0.04, 0.05])
    np.testing.assert_allclose(run.control.values[0, :, 0], 1e-3 * np.arange(1, 7))


def test_a_random_control_function_is_not_compiled_as_a_constant():
    rng = np.random.default_rng(0)
    run = zw.simulate(driven(), duration=0.05, step=0.01, control=lambda t, q, v: [rng.normal()])
    assert len(set(run.control.values[0, :, 0])) == 6


def test_without_inputs_the_control_is_tau_by_speed_names():
    run = zw.simulate(PENDULUM, duration=0.1, step=0.01, control={"elbow": 0.5})
    np.testing.assert_allclose(run.tau.sel(speed="elbow"), 0.5)
    np.testing.assert_allclose(run.tau.sel(speed="shoulder"), 0)


def test_an_adaptive_integrator_steps_to_every_jump_of_a_held_control():
    """A unit mass on a slide: its closed form is piecewise quadratic."""
    slide = zw.Mechanism(bodies=[zw.Body("b", zw.Prismatic("x", axis=(1, 0, 0)), mass=1)])
    u = np.array([[1.0], [-2.0], [0.0], [3.0]])
    run = zw.simulate(slide, duration=0.4, step=0.1, integrator="dop853", control=u)
    v = np.concatenate([[0], np.cumsum(0.1 * u[:, 0])])
    q = np.concatenate([[0], np.cumsum(0.1 * (v[1:] + v[:-1]) / 2)])
    np.testing.assert_allclose(run.v.values[0, :, 0], v, atol=1e-12)
    np.testing.assert_allclose(run.q.values[0, :, 0], q, atol=1e-12)


# ---------------------------------------------------------------------------------- stops, constraints


@pytest.mark.parametrize("compiled", [True, False])
def test_a_diverging_world_stops_and_others_do_not_change(compiled):
    """v_dot = v^2 from v0 diverges at t = 1 / v0."""
    slide = zw.Mechanism(
        bodies=[zw.Body("b", zw.Prismatic("runaway", axis=(1, 0, 0)), mass=1)], gravity=(0, 0, 0)
    )

    def faster(t, q, v):
        return [v[0] * v[0]]

    with pytest.warns(SimulationWarning, match=r"world 1 stopped at t = 0\.\d+ s.*'runaway'.*smaller step"):
        run = zw.simulate(
            slide, v0=[[0.1], [4.0], [0.2]], duration=1.0, step=0.01, control=faster, compiled=compiled
        )
    assert run.status.values.tolist() == [0, 1, 0]
    assert 0.2 < run.stop_time.values[1] < 0.6
    kept = run.v.values[1, :, 0]
    last = round(run.stop_time.values[1] / 0.01)
    assert np.isfinite(kept[: last + 1]).all() and np.isnan(kept[last + 1 :]).all()
    alone = zw.simulate(slide, v0=[0.2], duration=1.0, step=0.01, control=faster, compiled=compiled)
    assert np.array_equal(run.q.values[2], alone.q.values[0])


def test_a_hard_loop_stays_closed_during_the_motion():
    linkage = four_bar()
    run = zw.simulate(linkage, duration=1.0, step=0.002, integrator="rk4")
    assert run.kinetic_energy.values.max() > 1
    loop = linkage.constraints[0]
    for q in run.q.values[0, ::50]:
        ends = [
            R @ np.array(point) + p
            for body, point in (loop.a, loop.b)
            for R, p in [zw.frame_pose(linkage, q, body)]
        ]
        np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)
    assert np.abs(run.energy - run.energy[0, 0]).max() < 1e-5


def test_an_open_loop_gives_a_warning_and_assemble_closes_it():
    linkage = four_bar()
    with pytest.warns(SimulationWarning, match=r"'loop' is violated by .* zw\.assemble"):
        zw.simulate(linkage, {"drive": 1.0}, duration=0.002)
    q, v = zw.assemble(linkage, [1.0, -1.0, 1.6])
    assert zw.simulate(linkage, q, v, duration=0.1, integrator="rk4").attrs["path"] == "compiled"


@pytest.mark.parametrize("compiled", [True, False])
def test_recorded_constraint_forces_give_the_acceleration(compiled):
    """M a + h = tau + the generalised force of the loop, with a by differences along the motion."""
    linkage = four_bar()
    h = 1e-4
    run = zw.simulate(
        linkage,
        duration=20 * h,
        step=h,
        integrator="rk4",
        control=[0.3],
        record={"constraints": True},
        compiled=compiled,
    )
    q, v = run.q.values[0], run.v.values[0]
    a = (v[11] - v[9]) / (2 * h)
    M, bias = zw.mass_matrix(linkage, q[10]), zw.bias_forces(linkage, q[10], v[10])
    generalised_forces = run.tau.values[0, 10] + run.generalised_constraint_force.values[0, 10]
    np.testing.assert_allclose(M @ a + bias, generalised_forces, atol=1e-4)
    assert np.abs(run.generalised_constraint_force).max() > 0.1


# --------------------------------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ({"duration": -1}, SimulationError, "duration"),
        ({"duration": "long"}, SimulationError, "duration"),
        ({"duration": 1, "step": 0}, SimulationError, "step"),
        ({"duration": 1e9, "step": 1e-9}, SimulationError, "larger step"),
        ({"duration": 1e-6}, SimulationError, "duration"),
        ({"duration": 1, "integrator": "magic"}, SimulationError, "rk4"),
        ({"duration": 1, "worlds": 0}, SimulationError, "worlds"),
        ({"duration": 1, "record": 0}, SimulationError, "record"),
        ({"duration": 1, "record": {"frames": ["nose"]}}, UnknownNameError, "nose"),
        ({"duration": 1, "record": {"evry": 2}}, UnknownNameError, "every"),
        ({"duration": 1, "record": {"forces": "no"}}, SimulationError, "forces of record is 'no'; give True"),
        ({"duration": 1, "record": {"zwang": 0.5}}, SimulationError, "zwang of record"),
        ({"duration": 1, "q0": [1, 2, 3]}, ShapeError, "q0"),
        ({"duration": 1, "q0": {"thta": 1}}, UnknownNameError, "theta"),
        ({"duration": 1, "q0": np.zeros((3, 2)), "worlds": 2}, ShapeError, "q0 is for 3 worlds"),
        ({"duration": 1, "v0": [np.nan, 0]}, StateError, "v0"),
        ({"duration": 1, "control": "full speed"}, SimulationError, "control"),
        ({"duration": 1, "control": {"tua": 1}}, UnknownNameError, "tau"),
        ({"duration": 1, "control": np.zeros((3, 1))}, ShapeError, "control"),
        ({"duration": 1, "control": [np.inf]}, StateError, "control"),
        ({"duration": 1, "control": lambda t, q, v: [0, 0]}, ShapeError, "control"),
        ({"duration": 1, "control": lambda t, q, v: None}, SimulationError, "returned None"),
        ({"duration": 1, "params": {"m": 1}}, ParameterError, "'m'"),
    ],
)
def test_invalid_arguments_are_rejected_by_name(arguments, error, named):
    with pytest.raises(error, match=named):
        zw.simulate(driven(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        (
            {"q0": {"f": [0, 0, 1]}},
            ShapeError,
            r"q0\['f'\] must have the elements f.x, .*is \(3,\)",
        ),
        ({"v0": {"f": 1.0}}, ShapeError, r"v0\['f'\] must have the elements f.vx"),
        ({"q0": {"f": "high"}}, StateError, r"q0\['f'\] must hold real numbers"),
        ({"q0": {"f.z": 1, "f": [0, 0, 1, 1, 0, 0, 0]}}, StateError, "both 'f' and its element 'f.z'"),
        ({"q0": {"f.x": [1, 0, 0, 0]}}, StateError, "'f.x', which names a joint and an element of joint 'f'"),
    ],
)
def test_wrong_values_of_joints_are_named(arguments, error, named):
    first, second = (
        zw.Body(joint.name, joint, mass=1.0, inertia=np.eye(3)) for joint in (zw.Free("f"), zw.Ball("f.x"))
    )
    with pytest.raises(error, match=named):
        zw.simulate(zw.Mechanism("m", [first, second]), duration=0.01, progress=False, **arguments)


def test_a_body_without_inertia_is_reported():
    point = zw.Mechanism(bodies=[zw.Body("point", zw.Revolute("spin"), mass=1)])
    with pytest.raises(StateError, match=r"singular.*'spin'.*has no inertia"):
        zw.forward_dynamics(point, [0], [0], [1])
    with pytest.warns(SimulationWarning, match="'spin' moves has inertia"):
        run = zw.simulate(point, duration=0.1, control=1.0)
    assert run.status.values.tolist() == [1]


def test_a_number_is_the_control_of_the_only_input():
    held = zw.simulate(driven(), duration=0.1, control=[0.2])
    assert zw.simulate(driven(), duration=0.1, control=0.2).identical(held)


def test_unphysical_parameters_are_rejected_with_their_world():
    masses = np.full(100, 0.02)
    masses[77] = -0.02
    with pytest.raises(ParameterError, match=r"world 77 .*mass"):
        zw.simulate(furuta(), duration=1, params={**FURUTA, "m_p": masses})


def test_a_symbol_without_a_value_is_named():
    with pytest.raises(ParameterError, match="m_p"):
        zw.simulate(furuta(), duration=1, params={k: x for k, x in FURUTA.items() if k != "m_p"})


def test_symbols_may_have_the_names_of_step_arguments():
    u, failure = sp.symbols("u status", positive=True)
    m = zw.Mechanism(bodies=[zw.Body("b", zw.Prismatic("z"), mass=u)], gravity=(0, 0, -failure))
    run = zw.simulate(m, duration=0.1, step=0.05, params={"u": 2.0, "status": [1.0, 3.0]})
    np.testing.assert_allclose(run.v.values[:, -1, 0], [-0.1, -0.3], rtol=1e-12)


def test_a_control_that_cannot_be_traced_runs_in_python_with_a_warning(monkeypatch):
    def refuse(*_):
        raise TraceError("line 7 asks for a number")

    monkeypatch.setattr(compiled_rollout, "compiled_step", refuse)
    with pytest.warns(SimulationWarning, match="in Python, slowly: line 7"):
        run = zw.simulate(PENDULUM, {"elbow": 0.5}, duration=0.05, step=0.01)
    assert run.attrs["path"] == "python"
    assert np.isfinite(run.q).all()


def test_a_mechanism_without_joints_has_a_constant_state():
    run = zw.simulate(zw.Mechanism(bodies=[zw.Body("block", mass=2, com=(0, 0, 1))]), duration=0.01, worlds=2)
    assert run.sizes == {**run.sizes, "world": 2, "coordinate": 0, "speed": 0}
    np.testing.assert_allclose(run.energy, 2 * 9.81)
