"""Reactions of joints and constraints, compared with MuJoCo's interaction forces, closed forms of free
bodies, and the balance of power.
"""

from dataclasses import replace

import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from zwang.errors import DescriptionError, StateError, UnknownNameError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

mujoco = pytest.importorskip("mujoco")
Z = (0, 0, 1)


def theirs(model, data, body, p):
    """MuJoCo's cfrc_int of a body, as a force and a torque about the point p."""
    torque, force = np.split(data.cfrc_int[body], 2)
    return force, torque + np.cross(data.subtree_com[model.body_rootid[body]] - p, force)


def hold_against_mujoco(ours, model, data, names):
    """Every joint's reaction is MuJoCo's interaction force of the joint's body."""
    scale = max(1.0, np.abs(data.cfrc_int).max())
    for joint, body in names.items():
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint)
        slides = model.jnt_type[number] == mujoco.mjtJoint.mjJNT_SLIDE
        p = (
            data.xpos[body] if slides else data.xanchor[number]
        )  # MuJoCo's anchor of a slide does not move with it
        force, torque = theirs(model, data, body, p)
        np.testing.assert_allclose(ours.joints[joint].force, force, atol=1e-6 * scale)
        np.testing.assert_allclose(ours.joints[joint].torque, torque, atol=1e-6 * scale)


@pytest.mark.parametrize("name", ["ant", "hopper", "humanoid", "car"])
def test_joint_reactions_with_limits_and_contacts_equal_mujoco(name):
    stored = case("mujoco_oracle", name)
    xml = stored["parameters"]["xml"]
    mechanism = read_mjcf(f"{name}.xml", strict=False, text=xml)
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.tolerance, model.opt.iterations = 1e-15, 300
    names = {
        mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k): int(model.jnt_bodyid[k])
        for k in range(model.njnt)
        if k + 1 == model.njnt or model.jnt_bodyid[k + 1] != model.jnt_bodyid[k]
    }
    touching = 0
    for state in stored["reference"][2:40:12]:
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = state["qpos"], state["qvel"]
        data.qfrc_applied[:] = state["qfrc_actuator"]
        model.opt.cone = {"pyramidal": 0, "elliptic": 1}[state["cone"]]
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
        mujoco.mj_forward(model, data)
        mujoco.mj_rnePostConstraint(model, data)
        m = mechanism.replace(options=replace(mechanism.options, cone=state["cone"]))
        ours = zw.joint_reactions(m, state["qpos"], state["qvel"], state["qfrc_actuator"])
        np.testing.assert_allclose(ours.acceleration, data.qacc, atol=1e-6 * max(1, np.abs(data.qacc).max()))
        hold_against_mujoco(ours, model, data, {k: b for k, b in names.items() if k in ours.joints})
        touching += len(ours.constraints)
    assert touching or name != "ant", "some states touch the floor"


LOOP = """<mujoco><compiler angle="radian"/><option integrator="Euler"/><worldbody>
<body name="crank"><joint name="a" axis="0 0.2 1" damping="0.3"/>
  <inertial pos="0.2 0 0" mass="1.3" diaginertia="0.02 0.05 0.04"/>
 <body name="rod" pos="0.4 0 0"><joint name="b" type="ball"/>
  <inertial pos="0.3 0.05 0" mass="0.7" diaginertia="0.01 0.03 0.03"/></body></body>
<body name="slide" pos="0.9 0.1 0"><joint name="c" type="slide" axis="1 0.1 0" stiffness="20"/>
 <inertial pos="0 0 0.1" mass="2" diaginertia="0.1 0.1 0.2"/>
 <body name="flap" pos="0 0.2 0"><joint name="d" axis="1 0 0" frictionloss="0.2"/>
  <inertial pos="0 0 0.2" mass="0.5" diaginertia="0.01 0.01 0.002"/></body></body>
</worldbody><equality><connect name="pin" body1="rod" body2="slide" anchor="0.6 0 0"/></equality></mujoco>"""


def test_loop_forces_on_bodies_equal_mujoco():
    mechanism, model = read_mjcf("loop.xml", text=LOOP), mujoco.MjModel.from_xml_string(LOOP)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    exact = mechanism.replace(constraints=(replace(mechanism.constraints[0], softness=None),))
    data.qpos[:] = zw.assemble(exact, data.qpos + 0.05 * rng.normal(size=model.nq))[0]
    data.qvel[:] = 0.5 * rng.normal(size=model.nv)
    model.opt.tolerance, model.opt.iterations = 1e-15, 300
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    ours = zw.joint_reactions(mechanism, data.qpos, data.qvel, np.zeros(model.nv))
    names = {n: model.joint(n).bodyid[0] for n in "abcd"}
    hold_against_mujoco(ours, model, data, names)
    assert set(ours.constraints["pin"]) == {"rod", "slide"}
    np.testing.assert_allclose(ours.constraints["pin"]["rod"].force, -ours.constraints["pin"]["slide"].force)


def test_the_reaction_of_a_weld_equals_that_of_a_fixed_joint():
    """A second body on a joint that a coupling fixes, or free and welded: the same wrench."""
    first = zw.Body(
        "first", zw.Revolute("a", axis=(0.6, 0, 0.8)), mass=1, com=(0.2, 0, 0), inertia=(0.1, 0.2, 0.2)
    )
    kind = {"mass": 2.0, "com": (0.1, 0.3, 0), "inertia": (0.3, 0.2, 0.4)}
    held = zw.Mechanism(
        "held",
        (first, zw.Body("second", zw.Revolute("b", axis=(0, 1, 0)), "first", (0.4, 0, 0.1), **kind)),
        constraints=(zw.JointCoupling("hold", "b", None, (0.0,)),),
    )
    apart = zw.Mechanism(
        "welded",
        (first, zw.Body("second", zw.Free("base"), **kind)),
        constraints=(zw.Weld("tie", "first", "second", (0.4, 0, 0.1), anchor=(0.2, 0.1, 0.3)),),
    )
    q, v = [0.7, 0.0], [1.3, 0.0]
    (R, _), J = zw.frame_pose(held, q, "second"), zw.frame_jacobian(held, q, "second") @ v
    shift = np.array([0.4, 0, 0.1]) - [0.2, 0.1, 0.3]
    turn = np.array([np.cos(0.35), *np.sin(0.35) * np.array([0.6, 0, 0.8])])
    R1 = zw.frame_pose(held, q, "first").R
    p2 = R1 @ shift
    q2, v2 = [0.7, *p2, *turn], [1.3, *np.cross(J[3:], p2), *(R.T @ J[3:])]
    moved = held.replace(bodies=(first, replace(held.bodies[1], position=tuple(shift))))
    one, two = zw.joint_reactions(moved, q, v, [0, 0]), zw.joint_reactions(apart, q2, v2, np.zeros(7))
    joint, weld = one.joints["b"], two.constraints["tie"]["second"]
    np.testing.assert_allclose(two.acceleration[0], one.acceleration[0], rtol=1e-9)
    np.testing.assert_allclose(weld.force, joint.force, atol=1e-9)
    np.testing.assert_allclose(
        weld.torque, joint.torque - np.cross(R @ [0.1, 0.3, 0], joint.force), atol=1e-9
    )


def rod(name, length, parent="world", position=(0, 0, 0), mass=1.0, turn=Z):
    joint = zw.Revolute(f"pin {name}", axis=turn)
    inertia = (1e-3, mass * length**2 / 12, mass * length**2 / 12)
    return zw.Body(name, joint, parent, position, mass=mass, com=(length / 2, 0, 0), inertia=inertia)


def test_the_horizontal_thrust_of_a_three_hinged_arch():
    """Two rods that lean on each other: thrust m g / (2 tan alpha) at the apex, weight at the feet; a
    structure at rest.
    """
    m, g, L, alpha = 3.0, 9.81, 2.0, 0.7
    span = 2 * L * np.cos(alpha)
    arch = zw.Mechanism(
        "arch",
        (rod("left", L, mass=m), rod("right", L, position=(span, 0, 0), mass=m)),
        gravity=(0, -g, 0),
        constraints=(zw.Connect("apex", ("left", (L, 0, 0)), ("right", (L, 0, 0))),),
    )
    found = zw.joint_reactions(arch, [alpha, np.pi - alpha], [0, 0], [0, 0])
    thrust = m * g / (2 * np.tan(alpha))
    np.testing.assert_allclose(found.acceleration, 0, atol=1e-10)
    np.testing.assert_allclose(found.joints["pin left"].force, [thrust, m * g, 0], atol=1e-9)
    np.testing.assert_allclose(found.joints["pin right"].force, [-thrust, m * g, 0], atol=1e-9)
    np.testing.assert_allclose(found.constraints["apex"]["left"].force, [-thrust, 0, 0], atol=1e-9)
    np.testing.assert_allclose(found.joints["pin left"].torque, 0, atol=1e-9)


def slider_crank(**changes):
    crank, rest = rod("crank", 0.3, mass=0.8), rod("rod", 0.9, "crank", (0.3, 0, 0), mass=1.1)
    block = zw.Body("block", zw.Prismatic("guide", axis=(1, 0, 0)), mass=2.0, inertia=(0.1,) * 3)
    pin = zw.Connect("wrist", ("rod", (0.9, 0, 0)), ("block", (0, 0, 0)))
    return zw.Mechanism(
        "slider-crank", (crank, rest, block), gravity=(0, -9.81, 0), constraints=(pin,), **changes
    )


def state_of_the_slider_crank(theta=0.9, speed=4.0):
    """Angles from sin theta = 3 sin phi, rates along the crank's."""
    phi = np.arcsin(np.sin(theta) / 3)
    phi_dot = speed * np.cos(theta) / 3 / np.cos(phi)
    x_dot = -0.3 * speed * np.sin(theta) - 0.9 * phi_dot * np.sin(phi)
    q = [theta, -phi - theta, 0.3 * np.cos(theta) + 0.9 * np.cos(phi)]
    return np.array(q), np.array([speed, -phi_dot - speed, x_dot])


def test_the_pin_forces_of_a_slider_crank_satisfy_newton_for_every_body():
    """The crank at constant speed: the block's acceleration is the textbook's, and the forces of its pin and
    guide satisfy Newton's law.
    """
    q, v = state_of_the_slider_crank()
    drive = zw.Pfaffian("even", {"pin crank": 1}, rate=-4.0)
    m = slider_crank(forces=(zw.Damper("guide", 3.0),))
    m = m.replace(constraints=(*m.constraints, drive))
    found = zw.joint_reactions(m, q, v, [0, 0, 0])

    def x(t):
        theta = 0.9 + 4 * t
        return 0.3 * np.cos(theta) + np.sqrt(0.81 - 0.09 * np.sin(theta) ** 2)

    h = 1e-3
    x_ddot = (-x(2 * h) + 16 * x(h) - 30 * x(0) + 16 * x(-h) - x(-2 * h)) / (12 * h * h)
    assert found.acceleration[2] == pytest.approx(x_ddot, rel=1e-7)
    wrist, guide = found.constraints["wrist"]["block"], found.joints["guide"]
    assert guide.force[0] == pytest.approx(-3.0 * v[2])
    assert wrist.force[0] + guide.force[0] == pytest.approx(2.0 * x_ddot, rel=1e-7)
    assert wrist.force[1] + guide.force[1] - 2.0 * 9.81 == pytest.approx(0, abs=1e-9)
    total = guide.force + found.joints["pin crank"].force  # external wrenches
    h = 1e-6
    forward, back = (
        zw.momentum(
            m,
            zw.integrate_configuration(m, q, v + s * h / 2 * found.acceleration, s * h),
            v + s * h * found.acceleration,
        )
        for s in (1, -1)
    )
    total[1] -= 3.9 * 9.81
    np.testing.assert_allclose(total, (forward - back)[:3] / (2 * h), atol=1e-5)


def energies(m, q, v):
    """Kinetic energy, and potential energy of height."""
    return np.array([zw.energy(m, q, v).kinetic, sum(b.mass * 9.81 * y for b, y in heights(m, q))])


def heights(m, q):
    for b in m.bodies:
        R, p = zw.frame_pose(m, q, b.name)
        yield b, (p + R @ np.array(b.com))[1]


def test_the_power_of_all_reactions_is_the_rate_of_the_energy():
    q, v = state_of_the_slider_crank()
    forces = (
        zw.Motor("engine", "pin crank"),
        zw.Damper("guide", 3.0),
        zw.Spring("pin rod", 4.0),
        zw.PointSpring(("rod", (0.4, 0.1, 0)), ("world", (0, 1, 0)), 50.0, 0.2, damping=2.0),
        zw.Wrench("rod", (1, 2, 0), (0, 0, 0.5), (0.7, 0, 0), axes="body", input="gust"),
    )
    m = slider_crank(forces=forces)
    found = zw.joint_reactions(m, q, v, [0.3, 0, -1.0], control={"engine": 2.0, "gust": 1.5})
    h, a = 1e-5, found.acceleration
    ends = [
        energies(m, zw.integrate_configuration(m, q, v + s * h * a / 2, s * h), v + s * h * a)
        for s in (1, -1)
    ]
    rate = ((ends[0] - ends[1]) / (2 * h)).sum()
    assert found.joints["pin crank"].power == pytest.approx((2.0 + 0.3) * v[0])
    assert found.power["wrist"] == pytest.approx(0, abs=1e-9)
    R, p = zw.frame_pose(m, q, "rod")
    J = zw.frame_jacobian(m, q, "rod") @ v

    def speed_of(point):
        return J[:3] + np.cross(J[3:], R @ point)

    gust = 1.5 * (R @ [1, 2, 0] @ speed_of([0.7, 0, 0]) + 0.5 * J[5])
    d = np.array([0, 1, 0]) - p - R @ [0.4, 0.1, 0]
    length = np.linalg.norm(d)
    closing = d @ speed_of([0.4, 0.1, 0]) / length
    spring = (50.0 * (length - 0.2) - 2.0 * closing) * closing
    powers = sum(x.power for x in found.joints.values()) + gust + spring
    assert powers == pytest.approx(rate, rel=1e-6)


def test_the_energy_loss_of_a_bead_on_a_rough_ring_is_the_work_of_friction():
    """Coulomb friction -mu N |v| with N = m v^2 / R; the reactions of the sliding joints transmit it."""
    q, R, mu, mass, speed = [0.5, 0.0], 0.5, 0.25, 0.3, 3.0
    sympy = pytest.importorskip("sympy")
    x, y, N, vx, vy = sympy.symbols("x y N x_dot y_dot", real=True)
    size = sympy.sqrt(vx**2 + vy**2)
    bead = zw.Mechanism(
        "bead",
        (zw.Body("bead", (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=(0, 1, 0))), mass=mass),),
        gravity=(0, 0, 0),
        constraints=(
            zw.Holonomic("ring", sympy.sqrt(x**2 + y**2) - R),
            zw.NonIdeal("friction", "ring", {"x": -mu * N * vx / size, "y": -mu * N * vy / size}),
        ),
    )
    found = zw.joint_reactions(bead, q, [0, speed], [0, 0])
    normal = mass * speed**2 / R
    np.testing.assert_allclose(found.joints["y"].force, [-normal, -mu * normal, 0], rtol=1e-12)
    assert found.joints["y"].power == pytest.approx(-mu * normal * speed)
    assert found.power["ring"] == pytest.approx(0, abs=1e-12)


def test_unsupported_elements_are_rejected_by_name():
    m = slider_crank()
    q, v = state_of_the_slider_crank()
    with pytest.raises(UnknownNameError, match="motor"):
        zw.joint_reactions(m, q, v, [0, 0, 0], control={"motor": 1.0})
    frames = (zw.Frame("eye", "rod"), zw.Frame("post", "world", (0, 1, 0)))
    rope = zw.Tendon("rope", path=("eye", "post"), limits=(0, 1.0))
    with pytest.raises(DescriptionError, match="rope"):
        zw.joint_reactions(m.replace(frames=frames, tendons=(rope,)), q, v, [0, 0, 0])


def test_actuators_on_bodies_that_a_joint_limits_are_refused():
    """The range of a joint clips the force of a jet in the motion, and no load on the arm follows from it."""
    hinges = [zw.Revolute(name, axis=(0, 1, 0)) for name in ("shoulder", "elbow")]
    kind = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": (0.1, 0.1, 0.1)}

    def arm(limited, force):
        joints = [replace(j, actuator_range=(-1, 1)) if j.name == limited else j for j in hinges]
        bodies = (
            zw.Body("upper", joints[0], **kind), zw.Body("lower", joints[1], "upper", (1, 0, 0), **kind)
        )  # fmt: skip
        frames = (zw.Frame("tip", "lower", (1, 0, 0)), zw.Frame("middle", "lower"), zw.Frame("post", "world"))
        ropes = (zw.Tendon("rope", path=("post", "tip")),)
        return zw.Mechanism("arm", bodies, frames=frames, tendons=ropes, forces=(force,))

    jet = zw.Actuator("jet", frame="tip", gear=(0, 0, 1, 0, 0, 0))
    winch, joint_motor = zw.Actuator("jet", tendon="rope"), zw.Motor("jet", "elbow")
    on_lower = zw.Actuator("jet", frame="tip", reference="upper", gear=(0, 0, 0, 0, 1, 0))
    for limited, force in (("shoulder", jet), ("elbow", jet), ("elbow", winch), ("elbow", on_lower)):
        with pytest.raises(DescriptionError, match=f"'{limited}'.*'jet'"):
            zw.joint_reactions(arm(limited, force), [0.3, 0.2], [0, 0], [0, 0], control={"jet": 10.0})
        with pytest.raises(DescriptionError, match=f"'{limited}'.*'jet'"):
            _ = zw.equations(arm(limited, force)).joint_reactions
    # the motion is that of the limited force
    e, state = zw.equations(arm("elbow", winch)), {"shoulder": 0.3, "elbow": 0.2, "jet": 10.0}
    values = {**state, "shoulder_dot": 0.4, "elbow_dot": -0.1}
    M, r = (np.array(x, float) for x in e.evaluate(values))
    a = zw.constrained_dynamics(e.mechanism, [0.3, 0.2], [0.4, -0.1], control={"jet": 10.0}).acceleration
    np.testing.assert_allclose(np.linalg.solve(M, r).ravel(), a, rtol=1e-12)
    assert "Min" in str(e.Gamma)
    # a range that the actuator does not reach, and the torque of a motor, which acts in the joint
    moved = arm("shoulder", on_lower)
    zw.joint_reactions(moved, [0.3, 0.2], [0, 0], [0, 0], control={"jet": 10.0})
    found = zw.joint_reactions(arm("elbow", joint_motor), [0.3, 0.2], [0, 0], [0, 0], control={"jet": 10.0})
    assert found.joints["elbow"].torque[1] == pytest.approx(1.0)


def test_a_force_between_two_frames_that_a_joint_moves_together_is_refused():
    """The motion has no moment arm about that joint, and opposite forces at two frames are a couple. A torque
    between them has none: the free base transmits nothing.
    """
    kind = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": (0.1,) * 3}
    bodies = (
        zw.Body("ship", zw.Free("base"), **kind),
        zw.Body("arm", zw.Revolute("hinge", axis=(0, 0, 1)), "ship", (0.3, 0, 0), **kind),
    )
    frames = (zw.Frame("hand", "arm", (0.2, 0, 0)), zw.Frame("side", "ship", (0, 0.1, 0)))
    q, v, control = np.r_[np.zeros(3), 1, np.zeros(3), 0.4], np.zeros(7), {"u": 1.0}

    def ship(gear, reference="side"):
        actuator = zw.Actuator("u", frame="hand", reference=reference, gear=gear)
        return zw.Mechanism("ship", bodies, gravity=(0, 0, 0), frames=frames, forces=[actuator])

    force = ship((0, 1, 0, 0, 0, 0))
    with pytest.raises(DescriptionError, match=r"'u' has a force between .*'hand' and 'side'.*'base'"):
        zw.joint_reactions(force, q, v, np.zeros(7), control=control)
    with pytest.raises(DescriptionError, match=r"'u' has a force between .*'hand' and 'side'.*'base'"):
        _ = zw.equations(force).joint_reactions
    torque = ship((0, 0, 0, 0, 0, 1))
    found = zw.joint_reactions(torque, q, v, np.zeros(7), control=control).joints
    np.testing.assert_allclose([found["base"].force, found["base"].torque], 0, atol=1e-12)
    assert found["hinge"].torque[2] == pytest.approx(0, abs=1e-12)
    zw.joint_reactions(ship((0, 1, 0, 0, 0, 0), "world"), q, v, np.zeros(7), control=control)


def test_a_force_between_two_frames_that_a_slide_moves_together_is_two_opposite_wrenches():
    """A couple does no work on a translation: the loads are those of the forces at both frames."""
    kind = {"mass": 1.0, "com": (0.3, 0, 0), "inertia": (0.1,) * 3}
    bodies = (
        zw.Body("cart", zw.Prismatic("slide"), mass=2.0, inertia=(1, 1, 1)),
        zw.Body("lift", zw.Prismatic("rise", axis=(0, 0, 1)), "cart", **kind),
    )
    frames = (zw.Frame("tip", "lift", (0.6, 0, 0)), zw.Frame("base", "cart", (0, 0, 0.2)))
    q, v, a = [0.1, 0.1], [0.0, 0.0], [0.3, -4.81]

    def reactions(forces, **inputs):
        m = zw.Mechanism("gantry", bodies, frames=frames, forces=forces)
        found = zw.joint_reactions(m, q, v, a, **inputs).joints
        return np.concatenate([x for joint in found.values() for x in (joint.force, joint.torque)])

    actuator = zw.Actuator("u", frame="tip", reference="base", gear=(0, 0, 1, 0, 0, 0))
    wrenches = [
        zw.Wrench("lift", (0, 0, 5.0), point=(0.6, 0, 0)), zw.Wrench("cart", (0, 0, -5.0), point=(0, 0, 0.2))
    ]  # fmt: skip
    expected = reactions(wrenches)
    np.testing.assert_allclose(reactions([actuator], control={"u": 5.0}), expected, atol=1e-12)


def test_a_state_without_accelerations_has_no_reactions():
    joints = (zw.Prismatic("first", axis=(1, 0, 0)), zw.Prismatic("second", axis=(1, 0, 0)))
    m = zw.Mechanism(bodies=[zw.Body("block", joint=joints, mass=1, inertia=(0.1, 0.1, 0.1))])
    with pytest.raises(StateError, match="mass matrix is singular"):
        zw.joint_reactions(m, [0, 0], [0, 0], [1, 0])
