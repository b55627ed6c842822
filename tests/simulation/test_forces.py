"""Recorded point forces have the generalised force of the constraints, and they balance weights."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import zwang as zw
from zwang.api.analysis.contacts import compiled_contacts
from zwang.compiler.ir.program import blocks_of
from zwang.errors import UnknownNameError
from zwang.mechanism.samples import double_pendulum, four_bar

G = 9.81


def ball_on_wall(surface: zw.Surface = zw.Surface(), cone: str = "pyramidal") -> zw.Mechanism:
    """An arm with a ball and a free box over a floor, a box of the world and each other."""
    arm = zw.Body(
        "arm",
        zw.Revolute("turn", axis=(0, 1, 0)),
        position=(0, 0, 0.4),
        mass=1,
        com=(0.25, 0, 0),
        inertia=(0.1, 0.1, 0.1),
        geometry=[zw.Sphere(0.1, position=(0.5, 0, 0), surface=surface)],
    )
    box = zw.Body(
        "box",
        zw.Free("free"),
        mass=2,
        inertia=(0.03, 0.04, 0.05),
        geometry=[zw.Box(0.3, 0.3, 0.3, surface=surface)],
    )
    ground = [zw.Plane(surface=surface), zw.Box(0.4, 0.4, 0.4, position=(-0.3, 0, 0.1), surface=surface)]
    return zw.Mechanism("wall", [arm, box], geometry=ground, options=zw.Options(cone=cone))


def rolling() -> zw.Mechanism:
    wheel = zw.Body("wheel", zw.Free("w"), mass=1.5, inertia=(0.02, 0.03, 0.02))
    constraint = zw.Rolling("roll", "wheel", radius=0.2, axis=(0, 1, 0))
    return zw.Mechanism("disc", [wheel], constraints=[constraint])


def hung() -> zw.Mechanism:
    """A double pendulum whose end is connected to a rod, and a slider on its first body."""
    rod = zw.Distance("rod", ("lower", (0, 0, -1)), ("world", (0.4, 0, -3)), float(np.hypot(0.4, 1)))
    return double_pendulum().replace(constraints=[rod])


def sled() -> zw.Mechanism:
    return zw.Mechanism(
        "sled",
        [zw.Body("sled", zw.Planar("p"), mass=2, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))],
        constraints=[zw.NoSideSlip("edge", "sled", point=(-0.2, 0.1, 0))],
    )


def welded() -> zw.Mechanism:
    """Two bodies on slides, welded together: only the forces of the weld act on them."""
    a = zw.Body("a", zw.Prismatic("x", axis=(1, 0, 0)), mass=1)
    b = zw.Body("b", zw.Prismatic("y", axis=(1, 0, 0)), mass=3)
    return zw.Mechanism(
        "pair", [a, b], constraints=[zw.Weld("glue", "a", "b")], forces=[zw.Spring("x", 40.0)]
    )


WHEEL = [0, 0, 0.2, 1, 0, 0, 0]
LYING = [0.1, 0.45, 0, 0.149, 1, 0, 0, 0.02]
CASES = {
    "pyramid": (ball_on_wall(), LYING, [0, 1, 0.5, 0, 0, 0, 2]),
    "ellipse": (ball_on_wall(cone="elliptic"), LYING, [0, 1, 0.5, 0, 0, 0, 2]),
    "frictionless": (ball_on_wall(zw.Surface(condim=1)), LYING, [0, 1, 0.5, 0, 0, 0, 2]),
    "hard": (ball_on_wall(zw.Surface(hard=True)), LYING, [0, 1, 0.5, 0, 0, 0, 2]),
    "rolling": (rolling(), WHEEL, [0.2, 0, 0, 0, 1, 0.3]),
    "rod": (hung(), [0, 0], [0.5, -0.5]),
    "four bar": (four_bar(), None, None),
    "runner": (sled(), [0, 0, 0.3], [1, 0, 0.7]),
    "weld": (welded(), [0.1, 0.1], [0.1, 0.1]),
}


def generalised_forces(m: zw.Mechanism, run, k: int) -> np.ndarray:
    """The generalised force of the recorded forces, by the Jacobians of the bodies that they act on."""
    q, total = run.q.values[0, k], np.zeros(m.nv)
    for a in range(run.sizes["point_force"]):
        p, f = run.force_position.values[0, k, a], run.force.values[0, k, a]
        for body, push in (
            (str(run.point_force_body.values[a]), f),
            (str(run.point_force_other_body.values[a]), -f),
        ):
            if body == "world" or not f.any():
                continue
            J, origin = zw.frame_jacobian(m, q, body), zw.frame_pose(m, q, body)[1]
            total += J[:3].T @ push + J[3:].T @ np.cross(p - origin, push)
    return total


MOTION = {"duration": 0.05, "step": 0.005}


@cache
def run_on_floats(name: str):
    m, q, v = CASES[name]
    return zw.simulate(m, q, v, **MOTION, record={"forces": True, "constraints": True}, compiled=False)


@pytest.mark.filterwarnings("ignore::zwang.errors.SimulationWarning")
@pytest.mark.parametrize("name", CASES)
def test_forces_at_their_points_give_the_generalised_constraint_forces(name):
    m, run = CASES[name][0], run_on_floats(name)
    assert run.sizes["point_force"] and np.abs(run.force.values).max() > 0.1
    for k in range(0, run.sizes["time"], 2):
        held = run.generalised_constraint_force.values[0, k]
        np.testing.assert_allclose(
            generalised_forces(m, run, k), held, atol=1e-8 * max(1, np.abs(held).max())
        )


@pytest.mark.filterwarnings("ignore::zwang.errors.SimulationWarning")
@pytest.mark.parametrize("name", ["pyramid", "ellipse", "frictionless", "hard", "rolling"])
def test_compiled_code_records_the_same_forces(name):
    m, q, v = CASES[name]
    run, slow = zw.simulate(m, q, v, **MOTION, record={"forces": True}, compiled=True), run_on_floats(name)
    assert (
        run.attrs["path"] == "compiled"
        and run.point_force.values.tolist() == slow.point_force.values.tolist()
    )
    np.testing.assert_allclose(run.force, slow.force, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(run.force_position, slow.force_position, rtol=1e-7, atol=1e-9)


def test_recorded_forces_equal_those_of_constrained_dynamics():
    m, q, v = CASES["ellipse"]
    run = zw.simulate(m, q, v, duration=0.02, step=0.002, record={"forces": True}, compiled=False)
    state = run.q.values[0, 3], run.v.values[0, 3], np.zeros(m.nv)
    found, here = zw.constrained_dynamics(m, *state), run.isel(world=0, time=3)
    recorded = {str(a): here.force.sel(point_force=a).values for a in run.point_force.values}
    told = {name: np.linalg.norm(f) for name, f in found.forces.items() if f.any()}
    sizes = {name: np.linalg.norm(f) for name, f in recorded.items() if f.any()}
    assert len(told) == 3 and told == pytest.approx(sizes)
    for contact in zw.contacts(m, *state):  # and their directions, in world axes
        expected = recorded.get(contact.name, np.zeros(3))
        np.testing.assert_allclose(contact.world_force, expected, rtol=1e-9, atol=1e-9)


def test_the_contact_forces_of_a_box_at_rest_balance_its_weight():
    box = zw.Body("box", zw.Free("f"), mass=2, inertia=(0.1, 0.1, 0.1), geometry=[zw.Box(0.4, 0.4, 0.4)])
    m = zw.Mechanism("box", [box], geometry=[zw.Plane()])
    run = zw.simulate(
        m, [0, 0, 0.2, 1, 0, 0, 0], duration=1.5, step=0.005, record={"forces": True, "every": 10}
    )
    end = run.isel(world=0, time=-1)
    np.testing.assert_allclose(end.force.sum("point_force"), (0, 0, 2 * G), atol=1e-3)
    np.testing.assert_allclose(abs(end.force_position.sel(axis=["x", "y"])), 0.2, atol=1e-6)
    assert run.point_force_kind.values.tolist() == ["contact"] * 4 and set(run.point_force_body.values) == {
        "box"
    }
    assert set(run.point_force_other_body.values) == {"world"}


def test_only_contacts_with_a_force_are_recorded_and_points_without_one_are_nan():
    balls = [
        zw.Body(
            f"ball {k}", zw.Prismatic(f"z{k}"), position=(k, 0, 0.15 + k), mass=1, geometry=[zw.Sphere(0.1)]
        )
        for k in range(3)
    ]
    m = zw.Mechanism("balls", balls, geometry=[zw.Plane()])
    run = zw.simulate(m, duration=0.2, step=0.005, record={"forces": True}, compiled=False)
    assert run.point_force_body.values.tolist() == ["ball 0"]
    idle = ~run.force.values.any(axis=-1)
    assert idle.any() and not idle.all()
    np.testing.assert_array_equal(np.isnan(run.force_position.values).all(axis=-1), idle)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_forces_are_saved(suffix, tmp_path):
    m, q, v = CASES["pyramid"]
    run = zw.simulate(m, q, v, duration=0.01, step=0.005, record={"forces": True}, compiled=False)
    zw.save(run, tmp_path / f"run{suffix}")
    assert zw.open_run(tmp_path / f"run{suffix}").identical(run)


def test_without_constraints_there_are_no_forces():
    run = zw.simulate(double_pendulum(), duration=0.02, step=0.01, record={"forces": True}, compiled=False)
    assert run.force.shape == (1, 3, 0, 3)
    with pytest.raises(UnknownNameError, match="forces"):
        zw.simulate(double_pendulum(), duration=0.02, record={"force": True})


@pytest.mark.parametrize(
    ("build", "integrator"),
    [(rolling, "rk4"), (hung, "euler"), (sled, "euler"), (welded, "rk4"), (ball_on_wall, "euler")],
)
def test_a_compiled_step_returns_the_forces_at_its_beginning(build, integrator):
    """The same forces as those of the solver on floats, by another function."""
    m = build()
    q, v = zw.assemble(m, m.home or m.neutral, np.linspace(0.3, 0.9, m.nv))
    tau = np.linspace(-1, 1, m.nv)
    fast = zw.compile(m, cache=False)
    names = ["constraint_force", "force", "solver_status"]
    after = fast.step(q, v, tau, integrator=integrator, outputs=names)
    assert all(map(np.array_equal, after[:3], fast.step(q, v, tau, integrator=integrator)))
    found = zw.constrained_dynamics(m, q, v, tau)
    assert np.allclose(after.constraint_force, found.rows.J.T @ found.force, rtol=1e-8, atol=1e-8)
    assert np.allclose(generalised(m, q, after, fast.force_labels), after.constraint_force, atol=1e-7)
    rolled = fast.rollout(q, v, tau, steps=1, integrator=integrator, outputs=names)
    assert np.allclose(rolled.force[0], after.force, rtol=1e-8, atol=1e-8)


def generalised(m, q, after, labels):
    """The generalised force of the point forces: the virtual power of each at its point."""
    total = np.zeros(m.nv)
    for label, p, f in zip(labels, after.force_position, after.force, strict=True):
        for body, sign in ((label.body, 1.0), (label.other, -1.0)):
            if body != "world":
                J = zw.frame_jacobian(m, q, body)
                total += sign * (J[:3].T @ f + J[3:].T @ np.cross(p - zw.frame_pose(m, q, body).p, f))
    return total


def test_a_rollout_returns_the_forces_of_its_recorded_steps():
    """Every third step alone, with the forces of the same steps as in a rollout that records all."""
    m = ball_on_wall()
    q, v = np.array([0.1, 0.3, 0, 0.149, 1, 0, 0, 0]), np.linspace(-0.2, 0.3, 7)
    fast = zw.compile(m)
    every = fast.rollout(q, v, np.zeros(7), steps=9, outputs=["force"])
    third = fast.rollout(q, v, np.zeros(7), steps=9, every=3, outputs=["force"])
    assert np.array_equal(third.force, every.force[2::3]) and np.array_equal(third.q, every.q[2::3])
    assert every.force.any(axis=-1).any(axis=-1).all() and third.solver_status is None


def cubes(count: int) -> zw.Mechanism:
    """Cubes on slides beside each other on a box, as meshes, so that all pairs are iterated."""
    corners = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
    cube = "<joint type='slide' axis='0 0 1'/><geom type='mesh' mesh='cube' mass='1'/>"
    bodies = "".join(f"<body pos='{0.3 * k} 0 .099'>{cube}</body>" for k in range(count))
    ground = "<geom type='box' size='9 9 .1' pos='0 0 -.1'/>"
    text = f"<mujoco><asset><mesh name='cube' vertex='{corners}'/></asset><worldbody>{ground}{bodies}"
    return zw.load("cubes.xml", text=text + "</worldbody></mujoco>")


def test_contacts_of_many_meshes_carry_their_weight_in_a_program_for_one_pair():
    def size(block):
        return sum(1 + sum(map(size, blocks_of(instruction))) for instruction in block.instructions)

    few, many = cubes(2), cubes(6)
    worlds = zw.Worlds(many, 3)
    worlds.step(substeps=400)
    found = worlds.contacts
    normal = np.where(found.active[..., None], found.frame[..., 0, :], 0)
    np.testing.assert_allclose((normal[..., 2] * found.force[..., 0]).sum(axis=1), 6 * G, rtol=1e-6)
    sizes = [size(compiled_contacts(m).program.body) for m in (few, many)]
    assert sizes[1] < 1.5 * sizes[0]  # of 24 and of 84 candidate contacts


def test_a_point_spring_without_length_is_linear_where_its_ends_meet():
    k, planar = 10.0, zw.Planar("p", (0, 0, 1))
    body = zw.Body("a", planar, mass=2, inertia=(0.01, 0.01, 0.01))
    spring = zw.PointSpring(("a", (0, 0, 0)), ("world", (0, 0, 0)), k)
    m = zw.Mechanism("oscillator", [body], gravity=(0, 0, 0), forces=[spring])
    fast, zero = zw.compile(m), np.zeros(3)
    v = np.array([1.0, 0, 0])
    np.testing.assert_array_equal(fast.step(zero, v, zero).v, v)
    stiffness = zw.linearize(m, zero).A[3:, :3]
    np.testing.assert_allclose(stiffness, -np.diag([k / 2, k / 2, 0]), atol=1e-12)
    run = zw.simulate(m, zero, v, duration=2.0, integrator="dop853", progress=False)
    w = np.sqrt(k / 2)
    np.testing.assert_allclose(run["q"].values[0, :, 0], np.sin(w * run["time"].values) / w, atol=1e-7)
    np.testing.assert_allclose(run["energy"].values[0], 1.0, rtol=1e-6)
