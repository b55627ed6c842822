"""The regressor times the parameters is inverse dynamics; its columns are Pinocchio's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pandas as pd
import pytest
import sympy as sp
import xarray as xr

import zwang as zw
from tests.identification.robots import robot, urdf, with_fixed, with_friction
from tests.mechanisms import random_mechanism, random_state
from tests.oracles.pinocchio_cases import rotation_of
from zwang.errors import DescriptionError, ParameterError, ShapeError, StateError, UnknownNameError
from zwang.mechanism.samples import double_pendulum

MODELS = Path(__file__).parents[2] / "examples" / "models"


def states(m: zw.Mechanism, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    found = [random_state(m, 1000 * seed + k) for k in range(count)]
    return tuple(np.array([state[k] for state in found]) for k in (0, 1, 3))


def values(m: zw.Mechanism, kinds=None) -> np.ndarray:
    return np.array([float(p.value) for p in zw.identify.parameters(m, kinds)])


def assert_gives_inverse_dynamics(m: zw.Mechanism, count: int, tolerance: float = 1e-12) -> None:
    q, v, a = states(m, count)
    tau = zw.compile(m).inverse_dynamics(q, v, a)
    error = zw.identify.regressor(m, q, v, a) @ values(m) - tau
    assert abs(error).max() <= tolerance * abs(tau).max()


@pytest.mark.parametrize("seed", range(6))
def test_the_regressor_gives_inverse_dynamics_for_every_joint_kind(seed):
    assert_gives_inverse_dynamics(random_mechanism(seed), 20)


@pytest.mark.parametrize("name", ["ur10", "panda", "double_pendulum"])
def test_the_regressor_gives_inverse_dynamics_of_robots(name):
    assert_gives_inverse_dynamics(with_friction(robot(name), 0.1, 0.3, 0), 2000)


def test_the_regressor_gives_inverse_dynamics_of_the_walker():
    """With dampers and armatures."""
    assert_gives_inverse_dynamics(zw.load(MODELS / "walker2d.xml"), 100)


def test_springs_dampers_and_tendons_have_columns():
    m = random_mechanism(3, kinds=(zw.Revolute, zw.Ball))
    joint = next(j.name for j in m.joints if j.kind == "revolute")
    other = [j.name for j in m.joints if j.kind == "revolute"][-1]
    forces = (
        zw.Spring(joint, (3.0, 0.5, -0.2), rest=0.2),
        zw.Spring(other, 1.0),
        zw.Damper(joint, 0.3, higher=(0.1, 0.02)),
        zw.Damper(joint, 0.2),
        zw.PointSpring(("b1", (0.1, 0, 0)), ("b4", (0, 0.2, 0)), stiffness=20, length=0.3, damping=2),
        *(zw.Spring(j.name, 2.0) for j in m.joints if j.kind == "ball"),
    )
    tendons = (zw.Tendon("cord", joints=((joint, 0.5), (other, -1.0)), stiffness=4, damping=0.7),)
    assert_gives_inverse_dynamics(m.replace(forces=forces, tendons=tendons), 20)


@pytest.mark.parametrize("name", ["ur10", "panda"])
def test_the_columns_are_those_of_pinocchio(name):
    pin = pytest.importorskip("pinocchio", exc_type=ImportError)
    m = robot(name)
    model = pin.buildModelFromUrdf(str(urdf(name)))
    locked = [model.getJointId(n) for n in model.names if "finger" in n]
    model = pin.buildReducedModel(model, locked, pin.neutral(model))
    assert [n for n in model.names][1:] == [j.name for j in m.joints]
    q, v, a = states(m, 50)
    Y = zw.identify.regressor(m, q, v, a, kinds="inertia")
    data = model.createData()
    for k in range(len(q)):
        expected = pin.computeJointTorqueRegressor(model, data, q[k], v[k], a[k])
        np.testing.assert_allclose(Y[k], expected, rtol=0, atol=1e-10)


def test_the_columns_of_a_floating_base_are_those_of_pinocchio():
    """Pinocchio's base velocities are in the axes of the base; tau_pin = T^T tau, v = T v_pin."""
    pin = pytest.importorskip("pinocchio", exc_type=ImportError)
    legs = ("FR", "HL", "HR")
    m = with_fixed(robot("solo12", "free"), legs)
    model = pin.buildModelFromUrdf(str(urdf("solo12")), pin.JointModelFreeFlyer())
    locked = [model.getJointId(n) for n in model.names if n.startswith(legs)]
    model = pin.buildReducedModel(model, locked, pin.neutral(model))
    order = [m.joints[0].name, *model.names[2:]]
    assert sorted(order[1:]) == sorted(j.name for j in m.joints[1:])
    q, v, a = states(m, 5)
    Y = zw.identify.regressor(m, q, v, a, kinds="inertia")
    slots = np.concatenate([np.arange(m.joint(n).v.start, m.joint(n).v.stop) for n in order])
    bodies = [next(b.name for b in m.bodies if any(j.name == n for j in b.joints)) for n in order]
    names = [b.name for b in m.bodies if b.joints]
    columns = np.concatenate([10 * names.index(b) + np.arange(10) for b in bodies])
    data = model.createData()
    for k in range(len(q)):
        R = rotation_of(*q[k, 3:7])
        x, y, z, w = *q[k, 4:7], q[k, 3]
        q_pin = np.array([*q[k, :3], x, y, z, w, *(q[k, m.joint(n).q][0] for n in order[1:])])
        v_pin, a_pin = v[k, slots].copy(), a[k, slots].copy()
        v_pin[:3] = R.T @ v[k, :3]
        a_pin[:3] = R.T @ a[k, :3] - np.cross(v[k, 3:6], v_pin[:3])
        expected = pin.computeJointTorqueRegressor(model, data, q_pin, v_pin, a_pin)
        found = Y[k][np.ix_(slots, columns)]
        found[:3] = R.T @ found[:3]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_the_compiled_regressor_is_that_on_floats():
    m = random_mechanism(4, bodies=3)
    q, v, a = states(m, 3)
    kinds = ("inertia", "armature", "damping", "friction", "offset")
    compiled = zw.identify.regressor(m, q, v, a, kinds=kinds)
    floats = zw.identify.regressor(m, q, v, a, kinds=kinds, compiled=False)
    np.testing.assert_allclose(compiled, floats, rtol=0, atol=1e-12 * abs(floats).max())
    single = zw.identify.regressor(m, q[0], v[0], a[0], kinds=kinds)
    np.testing.assert_array_equal(single, compiled[0])


def test_a_given_array_takes_the_result():
    m = double_pendulum()
    for count in ((), (5,), (3, 4)):
        q, v, a = np.random.default_rng(0).normal(size=(3, *count, 2))
        expected = zw.identify.regressor(m, q, v, a)
        out = np.full(expected.shape, np.nan)
        assert zw.identify.regressor(m, q, v, a, out=out) is out
        np.testing.assert_array_equal(out, expected)
    for wrong, error, what in (
        (np.zeros((3, 4, 2, 9)), ShapeError, r"out must have the shape \(3, 4, 2, 20\)"),
        (np.zeros(expected.shape, "float32"), StateError, "out must be .* of float64; it is of float32"),
        (np.zeros(expected.shape[::-1]).T, StateError, "out must be contiguous"),
    ):
        with pytest.raises(error, match=what):
            zw.identify.regressor(m, q, v, a, out=wrong)
    with pytest.raises(DescriptionError, match="out= is for compiled"):
        zw.identify.regressor(m, q, v, a, compiled=False, out=out)


def test_the_symbolic_regressor_gives_the_textbook_equations():
    """Double pendulum with symbols: Y pi - tau simplifies to zero."""
    m1, m2, l1, l2, g = sp.symbols("m1 m2 l1 l2 g", positive=True)
    m = double_pendulum(m1, m2, l1, l2, g)
    q, v, a = (sp.symbols(f"{x}1 {x}2", real=True) for x in "qva")
    Y = sp.Matrix(zw.identify.regressor(m, q, v, a, kinds="inertia"))
    pi = sp.Matrix([p.value for p in zw.identify.parameters(m, "inertia")])
    s2, c2 = sp.sin(q[1]), sp.cos(q[1])
    lower = m2 * l2 * (l2 * (a[0] + a[1]) + l1 * c2 * a[0] + l1 * s2 * v[0] ** 2 + g * sp.sin(q[0] + q[1]))
    assert sp.simplify(sp.expand_trig((Y * pi)[1] - lower)) == 0
    assert m1 not in Y.free_symbols and l1 in Y.free_symbols


def test_friction_and_offsets_have_columns_of_every_joint():
    m = robot("ur10")
    q, v, a = states(m, 3)
    Y = zw.identify.regressor(m, q, v, a, kinds=("friction", "offset"))
    np.testing.assert_array_equal(Y[1], np.hstack([np.diag(np.sign(v[1])), np.eye(6)]))
    names = [p.name for p in zw.identify.parameters(m, ("friction", "offset"))]
    assert names[0] == "friction_shoulder_pan_joint" and names[-1] == "offset_wrist_3_joint"


def test_offsets_and_units_of_joints_with_several_coordinates():
    body = zw.Body("b", zw.Free("j"), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    m = zw.Mechanism("free", [body], forces=[zw.Damper("j", 1.0)])
    q = np.array([0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.5])
    Y = zw.identify.regressor(m, q, np.ones(6), np.ones(6), kinds="offset", compiled=False)
    np.testing.assert_array_equal(Y, np.eye(6))
    found = {p.name: p.unit for p in zw.identify.parameters(m, ("armature", "damping", "friction", "offset"))}
    speeds = [f"offset_j.{x}" for x in ("vx", "vy", "vz", "wx", "wy", "wz")]
    assert found == dict(zip(speeds, ["N"] * 3 + ["N m"] * 3, strict=True)) | {
        "armature_j": "kg, kg m^2", "damping_j": "N s/m, N m s/rad", "friction_j": "N, N m",
    }  # fmt: skip
    links = [
        zw.Body("a", zw.Revolute("r", axis=(0, 0, 1)), mass=1),
        zw.Body("b", zw.Prismatic("p", axis=(0, 0, 1)), mass=1),
    ]
    ropes = [zw.Tendon(f"t{x}", joints=((x, 1.0),), stiffness=2.0, damping=1.0) for x in "rp"]
    springs = [zw.Spring("r", (1.0, 2.0)), zw.Spring("p", 1.0), zw.Damper("p", 1.0, higher=(2.0,))]
    m = zw.Mechanism("both", links, forces=springs, tendons=ropes)
    found = {p.name: p.unit for p in zw.identify.parameters(m, ("damping", "stiffness"))}
    assert found == {
        "damping_r": "N m s/rad", "damping_p": "N s/m", "damping_p_2": "N s^2/m^2",
        "damping_tr": "N m s/rad", "damping_tp": "N s/m", "stiffness_r": "N m/rad",
        "stiffness_r_2": "N m/rad^2", "stiffness_p": "N/m", "stiffness_tr": "N m/rad", "stiffness_tp": "N/m",
    }  # fmt: skip


def with_motors(m: zw.Mechanism) -> zw.Mechanism:
    """With motors on all joints, one of them a velocity servo, and one actuator on a frame."""
    forces = [zw.Motor(f"motor{k}", j.name, gear=2.0 + k) for k, j in enumerate(m.joints[1:])]
    servo = zw.Actuator("servo", joint=m.joints[0].name, gear=(2.0,), gain=(5, 0.3, 0), bias=(0.2, -5, -0.7))
    pull = zw.Actuator("pull", frame=m.bodies[-1].name, gear=(1, 2, 3, 0.1, 0.2, 0.3), gain=(4, 0, 0))
    return m.replace(forces=(*m.forces, *forces, servo, pull))


def actuator_forces(model: mujoco.MjModel, q: np.ndarray, v: np.ndarray, control: np.ndarray) -> np.ndarray:
    """MuJoCo's generalised forces of the actuators."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, control
    mujoco.mj_forward(model, data)
    return data.qfrc_actuator


def test_motors_have_columns_by_their_inputs(tmp_path):
    """Driven by its motors alone, a mechanism moves with the acceleration a at which Y pi = 0."""
    m, rng = with_motors(with_friction(robot("ur10"), 0.1, 0.3, 0)), np.random.default_rng(0)
    file = tmp_path / "robot.xml"
    zw.write_mjcf(m.replace(bodies=[replace(b, geometry=()) for b in m.bodies]), file, strict=False)
    model = mujoco.MjModel.from_xml_path(str(file))
    q, v, _ = states(m, 40)
    control = rng.normal(size=(40, len(m.inputs)))
    tau = np.array([actuator_forces(model, *x) for x in zip(q, v, control, strict=True)])
    a = zw.compile(m).forward_dynamics(q, v, tau)
    kinds = ("inertia", "armature", "damping", "stiffness", "motor")
    pi = values(m, kinds)
    for compiled in (True, False):
        Y = zw.identify.regressor(m, q, v, a, kinds=kinds, control=control, compiled=compiled)
        assert abs(Y @ pi).max() <= 1e-11 * abs(tau).max()
        np.testing.assert_allclose(Y[..., -len(m.inputs) - 4 :] @ pi[-len(m.inputs) - 4 :], -tau, atol=1e-12)


ON_TENDONS = """<mujoco><option><flag contact="disable"/></option><worldbody>
<site name="ceiling" pos="0.2 0 0.5"/>
<body name="a"><joint name="h1" axis="0 1 0"/><inertial pos=".1 0 0" mass="1" diaginertia=".01 .01 .01"/>
<body name="b" pos=".3 0 0"><joint name="h2" axis="0 1 0"/><site name="tip" pos=".2 0 .05"/>
<inertial pos=".1 0 0" mass="1" diaginertia=".01 .01 .01"/></body></body></worldbody>
<tendon><fixed name="t"><joint joint="h1" coef="2"/><joint joint="h2" coef="-1"/></fixed>
<spatial name="s"><site site="ceiling"/><site site="tip"/></spatial></tendon>
<actuator><motor name="m" tendon="t" gear="3"/><position name="p" tendon="s" kp="40" kv="2"/></actuator>
</mujoco>"""


@pytest.mark.parametrize("compiled", [True, False])
def test_motors_on_tendons_have_columns_by_their_inputs(tmp_path, compiled):
    (tmp_path / "tendons.xml").write_text(ON_TENDONS)
    m, model = zw.load(tmp_path / "tendons.xml"), mujoco.MjModel.from_xml_string(ON_TENDONS)
    q, v, control = np.random.default_rng(0).normal(size=(3, 10, 2))
    expected = [actuator_forces(model, *x) for x in zip(q, v, control, strict=True)]
    Y = zw.identify.regressor(m, q, v, 0 * v, kinds="motor", control=control, compiled=compiled)
    np.testing.assert_allclose(-Y @ values(m, "motor"), expected, rtol=1e-9, atol=1e-12)
    names = [p.name for p in zw.identify.parameters(m, "motor")]
    np.testing.assert_allclose(Y[:, :, names.index("motor_m")], -3 * control[:, :1] * [2, -1])


def test_a_symbolic_motor_constant_multiplies_the_input():
    k, u, x, rate, acceleration = sp.symbols("k u x rate acceleration")
    m = double_pendulum().replace(forces=[zw.Motor("drive", "elbow", gear=k)])
    kinds = ("motor",)
    (parameter,) = zw.identify.parameters(m, kinds)
    assert (parameter.name, parameter.value, parameter.unit) == ("motor_drive", k, "N m/unit")
    Y = zw.identify.regressor(m, [x, 0], [rate, 0], [acceleration, 0], kinds=kinds, control=[u])
    assert Y.tolist() == [[0], [-u]]


ONE = {"kinds": "motor", "control": [1.0]}


@pytest.mark.parametrize(
    ("forces", "arguments", "what"),
    [
        ([zw.Motor("drive", "elbow")], {"kinds": ("motor",)}, "control"),
        ([zw.Motor("drive", "elbow")], {"control": [1.0]}, "control"),
        ([], {"kinds": ("motor",), "control": []}, "no motors"),
        ([zw.Actuator("drive", joint="elbow", force_range=(-1, 1))], ONE, "range"),
        ([zw.Actuator("drive", joint="elbow", pid=zw.Pid(2.0))], ONE, "a PID controller"),
        ([zw.Wrench("lower", (1, 0, 0), input="push")], ONE, "push"),
    ],
)
def test_motors_without_constants_are_refused(forces, arguments, what):
    m = double_pendulum().replace(forces=forces)
    with pytest.raises(DescriptionError, match=what):
        zw.identify.regressor(m, [0, 0], [0, 0], [0, 0], **arguments)


def test_a_rigidly_attached_body_is_part_of_its_parent():
    m = random_mechanism(5, kinds=(zw.Revolute,))
    names = [p.name for p in zw.identify.parameters(m, "inertia")]
    assert "m_b3" not in names and len(names) == 40  # b3 is fixed to another body


def test_wrong_arguments_name_the_remedy():
    m = robot("ur10")
    zero = np.zeros(6)
    with pytest.raises(ShapeError, match=r"v must have the shape \(..., 6\)"):
        zw.identify.regressor(m, zero, np.zeros(5), zero)
    with pytest.raises(StateError, match=r"a\[2\] is nan"):
        zw.identify.regressor(m, zero, zero, [0, 0, np.nan, 0, 0, 0])
    with pytest.raises(UnknownNameError, match="kind of parameter"):
        zw.identify.regressor(m, zero, zero, zero, kinds=("masses",))
    with pytest.raises(ParameterError, match="has symbols"):
        zw.identify.regressor(double_pendulum(m1=sp.Symbol("m1")), [0, 0], [0, 0], [0, 0])
    heavy = m.replace(forces=[zw.GravityCompensation("forearm_link")])
    with pytest.raises(DescriptionError, match="GravityCompensation on body 'forearm_link'"):
        zw.identify.parameters(heavy)
    assert zw.identify.parameters(replace(heavy, forces=()))


@pytest.mark.parametrize("drag", [zw.FluidDrag("lower", (0.1, 0.2, 0.3), density=1.2),
                                  zw.EllipsoidDrag("lower", (0.1, 0.2, 0.3), density=1.2)])  # fmt: skip
def test_the_drag_of_a_fluid_is_refused(drag):
    with pytest.raises(DescriptionError, match=f"{type(drag).__name__} on body 'lower'"):
        zw.identify.regressor(double_pendulum().replace(forces=[drag]), [0, 0], [0, 0], [0, 0])


def test_the_elements_of_labelled_arrays_are_read_by_their_labels():
    """Labelled arrays with their elements in the other order give what the plain arrays give."""
    m = double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7)
    time = np.arange(100) * 0.01
    q = np.stack([np.sin(3 * time), np.cos(4 * time)], axis=1)
    v = np.stack([3 * np.cos(3 * time), -4 * np.sin(4 * time)], axis=1)

    def turned(x: np.ndarray, dimension: str) -> xr.DataArray:
        names = m.coordinate_names if dimension == "coordinate" else m.speed_names
        return xr.DataArray(x, dims=("time", dimension), coords={dimension: list(names)})[:, ::-1]

    plain, labelled = (q, v), (turned(q, "coordinate"), turned(v, "speed"))
    Y, again = (zw.identify.regressor(m, *x, v) for x in (plain, labelled))
    np.testing.assert_array_equal(again, Y)
    records = [
        zw.identify.measurements(m, time, x, tau, v=rates, a=rates, check_units=False)
        for x, rates, tau in ((*plain, v), (*labelled, turned(v, "speed")))
    ]
    for name in ("q", "v", "a", "tau"):
        np.testing.assert_array_equal(getattr(records[1], name), getattr(records[0], name))
    fits = [
        zw.identify.fit_by_simulation(m, time, x, u, v=rates, kinds=("armature",), stop_at=1e9)
        for x, rates, u in ((*plain, v), (*labelled, turned(v, "input")))
    ]
    np.testing.assert_array_equal(fits[1].simulated, fits[0].simulated)
    with pytest.raises(ShapeError, match="q lacks the coordinates 'shoulder', 'elbow'"):
        zw.identify.regressor(m, labelled[0].assign_coords(coordinate=["a", "b"]), v, v)


def test_tables_are_read_by_their_columns_and_series_by_their_index():
    """Tables of pandas with their columns in the other order give what the plain arrays give."""
    m = double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7)
    names = list(m.coordinate_names)
    time = np.arange(100) * 0.01
    q = np.stack([np.sin(3 * time), np.cos(4 * time)], axis=1)
    plain = zw.identify.measurements(m, time, q, q, check_units=False)

    def table(x: np.ndarray, prefix: str) -> pd.DataFrame:
        return pd.DataFrame(x, columns=[prefix + name for name in names]).iloc[:, ::-1]

    for given in ((table(q, ""), table(q, "")), (table(q, "q_"), table(q, "tau_")), (pd.DataFrame(q),) * 2):
        read = zw.identify.measurements(m, pd.Series(time), *given, check_units=False)
        for name in ("time", "q", "v", "tau"):
            np.testing.assert_array_equal(getattr(read, name), getattr(plain, name))
    for columns, message in (
        (["a", "b"], "q lacks the columns 'shoulder', 'elbow'; it needs"),
        (
            ["shoulder", "b"],
            r"q lacks the column 'elbow'.*give numpy.asarray\(q\), which is read by position",
        ),
        (["shoulder", "elbow", "time"], "q has the unknown column 'time'"),
        (["shoulder", "elbow", "elbow"], "q has more than once the column 'elbow'"),
    ):
        wrong = pd.DataFrame(np.zeros((100, len(columns))), columns=columns)
        with pytest.raises(ShapeError, match=message):
            zw.identify.measurements(m, time, wrong, q)
    with pytest.raises(ShapeError, match=r"tau has labels, by which only zw\.identify\.measurements"):
        zw.identify.Measurements(time, q, q, q, table(q, ""))
    state = [0.1, 0.2], [0.3, 0.4], [0.5, 0.6]
    turned = [pd.Series(x[::-1], index=names[::-1]) for x in state]
    np.testing.assert_array_equal(zw.inverse_dynamics(m, *turned), zw.inverse_dynamics(m, *state))
    with pytest.raises(ShapeError, match="q lacks the elements 'shoulder', 'elbow'"):
        zw.inverse_dynamics(m, turned[0].rename({"shoulder": "a", "elbow": "b"}), *state[1:])
    controls = table(q[:25], ""), q[:25]
    run, same = (zw.simulate(m, [0, 0], control=u, duration=0.05, progress=False) for u in controls)
    np.testing.assert_array_equal(run.control, same.control)
