"""Non-ideal constraints on a rough ring, a helix and a rotating rod against closed forms, and an example
of Udwadia and Kalaba.
"""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.cases import case
from zwang.errors import SolveError
from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import Holonomic, NonIdeal, Pfaffian
from zwang.mechanism.joints import Prismatic, Revolute
from zwang.mechanism.mechanism import Mechanism

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
x, y, z, N = sp.symbols("x y z N", real=True)
vx, vy, vz = sp.symbols("x_dot y_dot z_dot", real=True)
SPEED = sp.sqrt(vx**2 + vy**2 + vz**2)


def particle(mass, gravity, constraints, forces=()):
    slides = (Prismatic("x", axis=X), Prismatic("y", axis=Y), Prismatic("z", axis=Z))
    return Mechanism("bead", (Body("bead", slides, mass=mass, inertia=(1e-3, 1e-3, 1e-3)),), gravity=gravity,
                     constraints=constraints, forces=forces)  # fmt: skip


def coulomb(constraint, mu, still=0):
    speed = sp.sqrt(vx**2 + vy**2 + vz**2 + still)
    return NonIdeal(
        "friction", constraint, {n: -mu * N * v / speed for n, v in (("x", vx), ("y", vy), ("z", vz))}
    )


def states(mechanism, q0, v0, times, step):
    run = zw.simulate(mechanism, q0=q0, v0=v0, duration=times[-1], step=step, integrator="rk4")
    index = [round(t / step) for t in times]
    return run.q.values[0][index], run.v.values[0][index]


def test_bead_on_a_rough_ring():
    c = case("nonideal", "D01_rough_horizontal_ring")
    p = c["parameters"]
    ring = Holonomic("ring", sp.sqrt(x**2 + y**2) - p["R"])
    m = particle(p["m"], (0, 0, 0), (ring, Holonomic("plane", z), coulomb("ring", p["mu"])))
    q, v = states(m, [p["R"], 0, 0], [0, c["initial_state"]["v"], 0], c["times"], 1e-3)
    near = {"rtol": 0, "atol": c["tolerance"]}
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), c["reference"]["v"], **near)
    position = np.exp(1j * np.array(c["reference"]["theta"]))
    np.testing.assert_allclose((q[:, 0] + 1j * q[:, 1]) / p["R"], position, **near)
    forces = [
        zw.constrained_dynamics(m, a, b, np.zeros(3)).forces["ring"].item() for a, b in zip(q, v, strict=True)
    ]
    np.testing.assert_allclose(forces, -np.array(c["reference"]["N"]), **near)  # inwards, to the centre


def test_bead_on_a_rough_helix_reaches_its_terminal_speed():
    c = case("nonideal", "D04_rough_helix")
    p = c["parameters"]
    r, h = p["radius"], p["height_per_rad"]
    size = float(np.hypot(r, h))
    walls = (
        sp.sqrt(x**2 + y**2) - r,
        h / size * (x * sp.sin(z / h) + y * sp.cos(z / h)),
    )  # orthogonal unit gradients
    m = particle(p["m"], (0, 0, -p["g"]), (Holonomic("wire", walls), coulomb("wire", p["mu"])))
    (s0, u0), *rest = c["reference"]["s_v"][1:]  # friction at rest has no direction: start at the first time
    angle, rate = s0 / size, u0 / size
    q0, v0 = (
        [r * np.cos(angle), r * np.sin(angle), -h * angle],
        [-r * np.sin(angle) * rate, r * np.cos(angle) * rate, -h * rate],
    )
    q, v = states(m, q0, v0, np.array(c["times"][2:]) - c["times"][1], 1e-3)
    near = {"rtol": 0, "atol": c["tolerance"]}
    np.testing.assert_allclose(-q[:, 2] * size / h, [s for s, _ in rest], **near)
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), [u for _, u in rest], **near)


def test_the_published_nonideal_nonholonomic_particle():
    c = case("nonideal", "D03_uk_nonholonomic_nonideal")
    p, state = c["parameters"], c["initial_state"]
    a0 = p["a0"]
    drag = NonIdeal("drag", "edge", {n: -a0 * SPEED * u for n, u in (("x", vx), ("y", vy), ("z", vz))})
    m = particle(
        p["m"],
        (0, 0, 0),
        (Pfaffian("edge", {"y": 1, "x": -z}), drag),
        forces=(zw.Wrench("bead", force=p["f"]),),
    )
    found = zw.constrained_dynamics(m, state[:3], state[3:], np.zeros(3))
    np.testing.assert_allclose(found.acceleration, c["reference"]["acc0"], rtol=1e-12)
    q, v = states(m, state[:3], state[3:], c["times"], 2e-3)
    np.testing.assert_allclose(np.hstack([q, v]), c["reference"]["trajectory"], rtol=0, atol=c["tolerance"])


def test_bead_on_a_rough_rod_that_turns_at_a_constant_rate():
    c = case("nonideal", "D06_bead_rotating_rough_rod")
    p, state = c["parameters"], c["initial_state"]
    r, rate = sp.symbols("r r_dot", real=True)
    rod = Body("rod", Revolute("turn", axis=Z), inertia=(1, 1, 1))
    bead = Body("bead", Prismatic("r", axis=X), "rod", mass=p["m"], inertia=(1e-9, 1e-9, 1e-9))
    drive = Pfaffian("drive", {"turn": 1}, rate=-p["omega"])
    # at a constant rate of the rod the drive's torque is r times the force N of the rod on the bead
    friction = NonIdeal("friction", "drive", {"r": -p["mu"] * N / r * sp.sign(rate)})
    m = Mechanism("rod", (rod, bead), gravity=(0, 0, 0), constraints=(drive, friction))
    q, v = states(m, [0, state["r"]], [p["omega"], state["rd"]], c["times"], 1e-3)
    np.testing.assert_allclose(q[:, 1], c["reference"]["r"], rtol=0, atol=c["tolerance"])
    np.testing.assert_allclose(v[:, 1], c["reference"]["rd"], rtol=0, atol=c["tolerance"])


def painleve(mu):
    """Painleve's rod, whose tip slides on the ground: friction at the tip increases the normal force."""
    t = sp.Symbol("turn", real=True)
    rod = Body("rod", (Prismatic("x", axis=X), Prismatic("y", axis=Y), Revolute("turn", axis=Z)), mass=1,
               inertia=(1 / 12, 1 / 12, 1 / 12))  # fmt: skip
    tip = Holonomic("tip", y - sp.sin(t) / 2)
    # the friction force -mu N at the tip (x - cos(turn)/2, 0), which slides along +x, and its moment
    rough = NonIdeal("rough", "tip", {"x": -mu * N, "turn": -mu * N * sp.sin(t) / 2})
    return Mechanism("rod", (rod,), gravity=(0, -9.81, 0), constraints=(tip, rough))


def test_painleves_paradox_is_an_error_that_names_the_constraint():
    q, v = [0, np.sin(0.9) / 2, 0.9], [1.0, 0, 0]
    gentle = zw.constrained_dynamics(painleve(0.3), q, v, np.zeros(3))
    force = gentle.forces["tip"].item()
    # Newton-Euler equations: y'' = N - g, x'' = -mu N, I th'' = -N cos/2 - mu N sin/2, tip'' = 0
    s, c = np.sin(0.9) / 2, np.cos(0.9) / 2
    assert force == pytest.approx(9.81 / (1 + 12 * c * (c + 0.3 * s)), rel=1e-12)
    with pytest.raises(SolveError, match=r"tip.*Painleve"):
        zw.constrained_dynamics(painleve(-8.0), q, v, np.zeros(3))
