"""The exact derivatives of sensors, against differences of the sensors and closed forms."""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import UnknownNameError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

LEG = """<mujoco><option timestep="0.002" cone="elliptic"/>
<worldbody><geom type="plane" size="2 2 .1"/>
<body name="trunk" pos="0 0 .5"><freejoint/><geom type="box" size=".2 .1 .05" mass="4"/>
<site name="imu" pos=".1 0 .02" euler="10 20 30"/>
<body name="leg" pos=".1 0 -.05"><joint name="knee" axis="0 1 0" damping=".2" range="-60 60" limited="true"/>
<geom name="foot" type="capsule" fromto="0 0 0 .05 0 -.45" size=".04" mass="1"/>
<site name="sole" pos=".05 0 -.45" size=".1"/><site name="hip" pos="0 .01 0"/></body></body></worldbody>
<actuator><general name="servo" joint="knee" gainprm="20" biastype="affine" biasprm="0 -20 -1"
  dyntype="filter" dynprm=".05"/></actuator>
<sensor><accelerometer site="imu"/><gyro site="imu"/><velocimeter site="imu"/><force site="hip"/>
<torque site="hip"/><touch site="sole"/><actuatorfrc actuator="servo"/><subtreecom body="trunk"/>
<framequat objtype="body" objname="leg"/><frameangacc objtype="body" objname="leg"/>
<jointlimitfrc joint="knee"/></sensor></mujoco>"""

ROD = """<mujoco><option timestep="0.002" gravity="0 0 -9.81"/><worldbody>
<body name="rod"><joint name="hinge" axis="0 1 0"/><geom type="box" size=".01 .01 .01" pos="0 0 -.5"
  mass="2"/>
<site name="tip" pos="0 0 -1"/></body></worldbody>
<actuator><motor name="drive" joint="hinge"/></actuator>
<sensor><gyro name="gyro" site="tip"/><accelerometer name="acceleration" site="tip"/></sensor></mujoco>"""


def differences(fast, q, v, u, z, width=1e-5):
    """Richardson's extrapolation of central differences of all sensors, in one batch."""
    nv, n = len(v), 2 * len(v) + len(z) + len(u)
    D = (np.array([1, -1, 2, -2])[:, None, None] * width * np.eye(n)).reshape(-1, n)
    dq, dv, dz, du = np.split(D, [nv, 2 * nv, 2 * nv + len(z)], axis=1)
    moved = fast.sensors(fast.integrate_configuration(q, dq, 1.0), v + dv, u + du, z + dz)
    y = np.concatenate([x.reshape(4, n, -1) for x in moved.values()], axis=-1)
    return ((8 * (y[0] - y[1]) - (y[2] - y[3])) / (12 * width)).T


def test_they_are_the_limit_of_differences_with_contacts_limits_and_activations():
    m = read_mjcf("leg.xml", text=LEG)
    fast, rng, touching = zw.compile(m, threads=1), np.random.default_rng(2), 0
    for k in range(12):
        q = np.array(m.neutral, float)
        q[2] = rng.uniform(0.5, 0.53)
        q[-1] = 1.06 if k % 3 == 0 else rng.uniform(-0.2, 0.2)
        v, u, z = rng.normal(size=7) * 0.5, rng.uniform(-1, 1, 1), rng.uniform(-1, 1, 1)
        found = fast.sensor_derivatives(q, v, u, z)
        expected = differences(fast, q, v, u, z)
        J = np.hstack([found.C, found.D])
        assert not found.switching
        assert np.array_equal(found.values, np.concatenate([*fast.sensors(q, v, u, z).values()]))
        scale = np.abs(expected).max(axis=1, keepdims=True) + 1
        assert (np.abs(J - expected) <= 1e-6 * scale).all()
        touching += found.values[15] > 0
    assert touching >= 4


def test_sensors_are_outputs_of_a_linear_model():
    """The tip of a hanging rod, 1 m from the hinge, senses its acceleration and the gravity along it."""
    m = read_mjcf("rod.xml", text=ROD)
    model = zw.linearize(m, [0.0], outputs=["gyro", "hinge", "acceleration"])
    J, weight = 2 * (0.5**2 + 2 * 0.02**2 / 12), 2 * 9.81 * 0.5
    assert model.outputs == ("gyro.x", "gyro.y", "gyro.z", "hinge", "acceleration.x", "acceleration.y",
                             "acceleration.z")  # fmt: skip
    C, D = np.zeros((7, 2)), np.zeros((7, 1))
    C[1, 1] = C[3, 0] = 1
    C[4, 0], D[4, 0] = weight / J - 9.81, -1 / J  # the tip moves by -x where the angle grows about y
    assert np.allclose(model.C, C, atol=1e-12) and np.allclose(model.D, D, atol=1e-12)
    with pytest.raises(UnknownNameError, match="gyro"):
        zw.linearize(m, [0.0], outputs=["giro"])


def test_symbols_are_parameters_of_them():
    """A point mass at the distance L, turned by an angle: its height is -L cos, its tangential acceleration
    tau / (M L) - g sin.
    """
    L, M, angle = sp.Symbol("L", positive=True), 1.3, 0.2
    bob = zw.Body("bob", joint=zw.Revolute("angle", axis=(0, 1, 0)), mass=M, com=(0, 0, -L))
    m = zw.Mechanism(
        bodies=(bob,),
        frames=(zw.Frame("end", "bob", position=(0, 0, -L)),),
        sensors=(zw.FrameSensor("height", "position", "end"), zw.JointSensor("rate", "velocity", "angle"),
                 zw.FrameSensor("acceleration", "linear_acceleration", "end")),
    )  # fmt: skip
    length, tau = np.array([0.5, 2.0]), 3.0
    found = zw.compile(m, threads=1).sensor_derivatives(
        [[angle]] * 2, [[0.0]] * 2, [[tau]] * 2, params={"L": length}
    )
    assert found.P.shape == (2, 7, 1) and np.allclose(found.P[:, 2, 0], -np.cos(angle))
    assert np.allclose(found.C[:, 2, 0], length * np.sin(angle)) and np.allclose(found.C[:, 3, 1], 1)
    assert np.allclose(found.P[:, 4, 0], tau / (M * length**2) * np.cos(angle))
    assert np.allclose(found.D[:, 4, 0], -np.cos(angle) / (M * length))


def limited_arm():
    """An arm 3 mrad beyond a hard limit, with an accelerometer at its tip."""
    hinge = zw.Revolute("h", (0, 1, 0), limits=(-0.2, 0.2), limit_softness=None)
    body = zw.Body("arm", hinge, mass=1, com=(0.3, 0, 0), inertia=(0.01,) * 3)
    return zw.Mechanism(
        "limited", [body], frames=[zw.Frame("tip", "arm", (0.3, 0, 0))], forces=[zw.Motor("u", "h")],
        sensors=[zw.SiteSensor("acc", "accelerometer", "tip")], home=(0.203,),
    )  # fmt: skip


def landed_ball():
    """A ball in the plane x, z that touches a hard floor, with an accelerometer off its centre."""
    material = zw.Surface(hard=True, friction=(0.4, 0, 0))
    plane = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("z", (0, 0, 1)), zw.Revolute("turn", (0, 1, 0)))
    ball = zw.Body("ball", plane, mass=1, inertia=(0.004,) * 3,
                   geometry=[zw.Sphere(0.1, surface=material)])  # fmt: skip
    return zw.Mechanism(
        "ball", [ball], geometry=[zw.Plane(surface=material)], frames=[zw.Frame("rim", "ball", (0.1, 0, 0))],
        sensors=[zw.SiteSensor("acc", "accelerometer", "rim")], home=(0, 0.0999, 0),
    )  # fmt: skip


@pytest.mark.parametrize("model", [limited_arm, landed_ball])
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_those_of_a_step_are_the_limit_of_differences_of_worlds(model, integrator):
    """By a state and a control of each world; the step is five times that of the options."""
    m = model()
    fast = zw.compile(m)
    options, nv = {"step": 0.01, "integrator": integrator}, m.nv
    q, v = np.array(m.home), np.array([0.1, -0.05, 2][:nv])
    u, width = np.zeros(len(m.inputs) or nv), 1e-6
    n = 2 * nv + len(u)
    D = width * np.concatenate([np.zeros((1, n)), np.eye(n), -np.eye(n)])
    worlds = zw.Worlds(m, len(D), **options)
    worlds.reset(q=fast.integrate_configuration(q, D[:, :nv], 1.0), v=v + D[:, nv : 2 * nv])
    worlds.control[:] = u + D[:, 2 * nv :]
    y = worlds.sensors["acc"]
    expected = ((y[1 : n + 1] - y[n + 1 :]) / (2 * width)).T
    found = fast.sensor_derivatives(q, v, u, **options)
    assert np.array_equal(found.values, y[0])
    assert np.allclose(np.hstack([found.C, found.D]), expected, rtol=1e-6, atol=1e-5)
    discrete = zw.linearize(m, q, v, u, outputs=["acc"], **options)
    assert np.array_equal(discrete.C, found.C) and np.array_equal(discrete.D, found.D)


def test_elements_of_sensors_and_frames_are_outputs():
    m = read_mjcf("rod.xml", text=ROD)
    whole = zw.linearize(m, [0.3], outputs=["gyro", "hinge", "acceleration", "tip"])
    names = list(whole.outputs[::-1])
    assert {"acceleration.z", "tip.x"} < set(names)
    found = zw.linearize(m, [0.3], outputs=names)
    assert list(found.outputs) == names
    assert np.array_equal(found.C, whole.C[::-1]) and np.array_equal(found.D, whole.D[::-1])
    symbolic = zw.linearize(m, [sp.Symbol("a")], outputs=["tip.z", "tip"])
    assert symbolic.outputs == ("tip.z", "tip.x", "tip.y", "tip.z")
    assert symbolic.C[0, :] == symbolic.C[3, :] and symbolic.C[0, 0] != 0
    with pytest.raises(UnknownNameError, match=r"gyro\.y"):
        zw.linearize(m, [0.3], outputs=["gyro.1"])
    with pytest.raises(zw.errors.DescriptionError, match=r"'gyro\.y' is a sensor"):
        zw.linearize(m, [sp.Symbol("a")], outputs=["gyro.y"])
