"""Constraints on wheels with the centre of mass on a fixed axle, where the inverse weight of translation is
zero: accelerations and forces are those of the closed forms, and of MuJoCo.
"""

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.constraint.inverse_weights import InverseWeights, inverse_weights
from zwang.constraint.rows import rows_of_kind
from zwang.dynamics.gauss import GaussProblem
from zwang.solver.projected_gauss_seidel import projected_gauss_seidel

FRICTION_WHEELS = """<mujoco><option cone="{cone}"/><worldbody>
  <body name="A"><joint name="a" axis="0 1 0"/><geom type="{a}" size=".1 .05" euler="90 0 0"/></body>
  <body name="B" pos=".199 0 0"><joint name="b" axis="0 1 0"/>
    <geom type="{b}" size=".1 .05" euler="90 0 0"/></body>
</worldbody><actuator><motor joint="a"/></actuator></mujoco>"""
# m r^2 times 2/5 or 1/2, of density 1000, radius 0.1 and length 0.1
INERTIA = {"sphere": 0.4 * 4 / 3 * np.pi * 1e-2, "cylinder": 0.5 * np.pi * 1e-2}
TIGHT = '<option tolerance="1e-15" iterations="300" ls_tolerance="1e-10" ls_iterations="100"/>'
SHAPES = [("sphere", "sphere"), ("cylinder", "sphere"), ("sphere", "cylinder")]
CONES = ["pyramidal", "elliptic"]
SOLVED = (zw.SolverStatus.CONVERGED, zw.SolverStatus.STAGNATED)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_friction_wheels_accelerate_together(cone, a, b):
    """I_a w_a' = u - r f and I_b w_b' = -r f with w_a + w_b = 0 at the rims."""
    mechanism = zw.load("wheels.xml", text=FRICTION_WHEELS.format(cone=cone, a=a, b=b))
    expected = 1 / (INERTIA[a] + INERTIA[b])
    for speed in (0.0, 3.0):
        found = zw.constrained_dynamics(mechanism, [0, 0], [speed, -speed], [1.0, 0.0])
        assert found.solver_status in SOLVED
        np.testing.assert_allclose(found.acceleration, [expected, -expected], rtol=3e-9)
        load = found.rows.J.T @ found.force
        np.testing.assert_allclose(load, -expected * INERTIA[b], rtol=1e-6)
    worlds = zw.Worlds(mechanism)
    worlds.set(control=[1.0])
    worlds.step(substeps=100)
    assert worlds.solver_status[0] in SOLVED
    np.testing.assert_allclose(worlds.v[0], [0.2 * expected, -0.2 * expected], rtol=1e-8)


@pytest.mark.parametrize("cone", CONES)
def test_friction_wheels_in_single_precision_move_rightly_or_stop(cone):
    mechanism = zw.load("wheels.xml", text=FRICTION_WHEELS.format(cone=cone, a="sphere", b="sphere"))
    worlds = zw.Worlds(mechanism, dtype="float32")
    worlds.set(control=[1.0])
    for _ in range(50):
        before = worlds.v[0].copy()
        worlds.step()
        expected = 0.002 / (2 * INERTIA["sphere"])
        change = worlds.v[0] - before
        assert worlds.failed[0] or np.allclose(change, [expected, -expected], rtol=1e-3)


@pytest.mark.parametrize("cone", CONES)
def test_a_pressed_wheel_is_held_by_stiction_as_mujocos_is(cone):
    """The floor holds the wheel against its motor; R is 1e-9 of J M^-1 J^T there, so that it creeps by that
    part of its free motion at most.
    """
    text = """<mujoco>{option}<option cone="{cone}"/><worldbody><geom type="plane" size="1 1 .1"/>
      <body pos="0 0 .0999"><joint name="axle" axis="0 1 0" {more}/><geom size=".1"/></body></worldbody>
      <actuator><motor joint="axle"/></actuator></mujoco>"""
    for more, control in (("", 0.01), ("", 1.0), ("armature='.01'", 10.0), ("damping='1'", 0.1)):
        own = text.format(option=TIGHT, cone=cone, more=more)
        worlds, model = zw.Worlds(zw.load("wheel.xml", text=own)), mujoco.MjModel.from_xml_string(own)
        data = mujoco.MjData(model)
        data.ctrl[:] = control
        worlds.set(control=[control])
        worlds.step(substeps=50)
        mujoco.mj_step(model, data, 50)
        assert not worlds.failed[0] and worlds.solver_status[0] in SOLVED
        np.testing.assert_allclose(worlds.time, data.time)
        free = control / INERTIA["sphere"] * worlds.time[0]
        np.testing.assert_allclose(worlds.v[0], 0, atol=1e-9 * free)
        np.testing.assert_allclose(worlds.v[0], data.qvel, atol=2e-3 * free)  # rounding errors of MuJoCo's R


@pytest.mark.parametrize("stand", ["box", "cylinder"])
def test_a_driven_turntable_that_overlaps_its_stand_is_held(stand):
    size = {"box": ".1 .1 .0505", "cylinder": ".1 .0505"}[stand]
    text = f"""<mujoco>{TIGHT}<worldbody><geom type="{stand}" size="{size}"/><body pos="0 0 .1">
      <joint name="j" axis="0 0 1"/><geom type="cylinder" size=".2 .05"/></body></worldbody>
      <actuator><motor joint="j"/></actuator></mujoco>"""
    worlds, model = zw.Worlds(zw.load("table.xml", text=text)), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = 1
    worlds.set(control=[1.0])
    worlds.step(substeps=50)
    mujoco.mj_step(model, data, 50)
    assert data.ncon and not worlds.failed[0]
    np.testing.assert_allclose(worlds.v[0], data.qvel, atol=1e-9)


@pytest.mark.parametrize("kind", ["connect", "distance", "weld"])
def test_wheels_connected_at_their_rims_exert_the_force_of_the_closed_form(kind):
    """I w' = u - r f and I w' = r f at the other wheel: f = u / (2 r), w' = u / (2 I).

    A weld also has a soft row of rotation, whose residual is w' and which adds 1 / R to 2 I.
    """
    inertia, r, u = 0.02, 0.15, 1.0

    def wheel(name, x):
        joint = zw.Revolute(name, (0, 1, 0))
        return zw.Body(name, joint, position=(x, 0, 0), mass=2.0, inertia=(0.02, inertia, 0.02))

    softness = zw.Softness()
    ends = ("A", (r, 0, 0)), ("B", (-r, 0, 0))
    constraint = {
        "connect": zw.Connect("rims", *ends, softness=softness),
        "distance": zw.Distance("rims", ("A", (r, 0, 0)), ("B", (-r, 0, 0.1)), 0.1, softness=softness),
        "weld": zw.Weld("rims", "A", "B", position=(r, 0, 0), anchor=(-r, 0, 0), softness=softness),
    }[kind]
    mechanism = zw.Mechanism("wheels", [wheel("A", 0), wheel("B", 2 * r)], constraints=[constraint])
    R = 0.1 / 0.9 * 2 / (3 * inertia)  # with the impedance 0.9 and the inverse weights 1 / (3 I)
    expected = u / (2 * inertia + (1 / R if kind == "weld" else 0))
    found = zw.constrained_dynamics(mechanism, [0, 0], [0, 0], [u, 0.0])
    assert found.solver_status in SOLVED
    np.testing.assert_allclose(found.acceleration, [expected, -expected], rtol=1e-8)
    force = expected * (inertia + (1 / (2 * R) if kind == "weld" else 0)) / r
    assert np.abs(found.force[:3]).max() == pytest.approx(force, rel=1e-6)


def test_a_tendon_whose_moment_arm_vanishes_at_home_exerts_the_force_of_the_closed_form():
    """The tendon from above to a point below the axle has no moment arm in the home configuration, and so no
    inverse weight. Taut at the angle q, its moment is that of the closed form, and I q' = u - moment f.
    """
    text = """<mujoco><worldbody><site name="above" pos="0 0 .3"/>
      <body><joint name="axle" axis="0 1 0"/><geom type="cylinder" size=".1 .05" euler="90 0 0"/>
        <site name="rim" pos="0 0 -.1"/></body></worldbody>
      <tendon><spatial limited="true" range="0 .3"><site site="above"/><site site="rim"/></spatial></tendon>
    </mujoco>"""
    mechanism, q, u = zw.load("tendon.xml", text=text), 1.2, 1.0
    assert list(inverse_weights(mechanism).tendons.values()) == [0.0]
    length = np.sqrt(0.3**2 + 0.1**2 + 2 * 0.3 * 0.1 * np.cos(q))
    moment = -0.3 * 0.1 * np.sin(q) / length
    found = zw.constrained_dynamics(mechanism, [q], [0], [u])
    force = (INERTIA["cylinder"] * found.acceleration[0] - u) / -moment
    assert found.solver_status in SOLVED and found.force[0] == pytest.approx(force, rel=1e-6)
    row = found.rows
    assert row.J[0, 0] * found.acceleration[0] == pytest.approx(row.aref[0], rel=1e-8)


def test_projected_gauss_seidel_ends_on_friction_wheels_with_an_honest_status():
    expected = 1 / (2 * INERTIA["sphere"])
    text = FRICTION_WHEELS.format(cone="elliptic", a="sphere", b="sphere")
    found = zw.constrained_dynamics(
        zw.load("wheels.xml", text=text), [0, 0], [0, 0], [1.0, 0.0], solver="projected"
    )
    assert found.converged and found.iterations < 1000
    np.testing.assert_allclose(found.acceleration, [expected, -expected], rtol=3e-9)
    # rows that pull against each other need a number of sweeps proportional to A / R
    problem = GaussProblem(np.eye(1), np.ones(1), (-1,))
    edges = rows_of_kind("edges", "contact", np.array([[1.0], [-1.0]]), [1.0, 1.0], R=1e-9, impedance=0)
    found = projected_gauss_seidel(problem, edges, iterations=500)
    assert not found.converged and found.iterations == 500


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("solver", ["newton", "conjugate", "projected"])
def test_no_solver_calls_a_wrong_acceleration_converged(cone, solver):
    text = FRICTION_WHEELS.format(cone=cone, a="sphere", b="sphere")
    mechanism, expected = zw.load("wheels.xml", text=text), 1 / (2 * INERTIA["sphere"])
    if (cone, solver) == ("pyramidal", "projected"):
        return  # see the test above: its 100,000 sweeps take long
    found = zw.constrained_dynamics(mechanism, [0, 0], [0, 0], [1.0, 0.0], solver=solver)
    assert not found.converged or np.allclose(found.acceleration, [expected, -expected], rtol=1e-8)


def test_the_inverse_weight_at_a_point_is_the_diagonal_of_the_delassus_matrix():
    """Of a body on two joints, at points and as the mean over the corners of a box."""
    rng = np.random.default_rng(3)
    arm = zw.Mechanism(
        "arm",
        [
            zw.Body("upper", zw.Revolute("a", (0, 0.6, 0.8)), mass=1.0, com=(0.1, 0.2, 0), inertia=(1, 2, 2)),
            zw.Body("lower", zw.Revolute("b", (1, 0, 0)), "upper", (0.3, -0.2, 0.1), mass=2.0,
                    com=(0, 0.2, 0.3), inertia=(1, 1, 2)),
        ],
    )  # fmt: skip
    weights: InverseWeights = inverse_weights(arm)
    inverse = np.linalg.inv(zw.mass_matrix(arm, [0, 0]))

    def mean(point):
        moved = arm.replace(frames=[zw.Frame("p", "lower", point)])
        J = zw.frame_jacobian(moved, [0, 0], "p")[:3]
        return np.trace(J @ inverse @ J.T) / 3

    point = rng.normal(size=3)
    assert weights.at_point("lower", point) == pytest.approx(mean(point), rel=1e-12)
    edges = rng.normal(size=(3, 3))
    corners = [point + s @ edges for s in np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, 8).T]
    assert weights.at_point("lower", point, edges) == pytest.approx(np.mean([mean(p) for p in corners]))


def test_the_least_R_leaves_a_pendulum_alone_that_is_singular_at_home():
    """A point mass on two axes, whose first axis has no inertia there: MuJoCo's acceleration elsewhere."""
    bob = zw.Body("bob", zw.Revolute("b", (0, 1, 0)), "az", mass=1.0, com=(0, 0, -1),
                  geometry=[zw.Sphere(0.1, position=(0, 0, -1))])  # fmt: skip
    bodies = [zw.Body("az", zw.Revolute("a", (0, 0, 1))), bob]
    m = zw.Mechanism("pendulum", bodies, geometry=[zw.Plane(position=(0, 0, -0.8))])
    text = """<mujoco><compiler boundinertia='1e-15' boundmass='1e-15'/><worldbody>
      <geom type='plane' size='1 1 1' pos='0 0 -.8'/><body><joint axis='0 0 1'/><body><joint axis='0 1 0'/>
      <inertial pos='0 0 -1' mass='1' diaginertia='1e-15 1e-15 1e-15'/><geom size='.1' pos='0 0 -1'/>
      </body></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = 0, 0.6
    mujoco.mj_forward(model, data)
    found = zw.constrained_dynamics(m, [0, 0.6], [0, 0], [0, 0])
    np.testing.assert_allclose(found.acceleration, data.qacc, rtol=1e-6, atol=1e-6)
