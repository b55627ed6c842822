"""Closed loops in singular positions, overconstrained and stiff, against closed forms and the IVP test
set.
"""

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import zwang as zw
from tests.cases import case
from tests.symbolic.machines import X, Y, Z
from zwang.errors import SolveError


def rod(name, joint, parent="world", position=(0, 0, 0), mass=1.0, length=1.0):
    thin = mass * length**2 / 12
    return zw.Body(
        name, joint, parent, position, mass=mass, com=(length / 2, 0, 0), inertia=(thin, thin, thin)
    )


def at_times(mechanism, q0, v0, times, step):
    run = zw.simulate(mechanism, q0=q0, v0=v0, duration=times[-1], step=step, integrator="rk4")
    index = [round(t / step) for t in times]
    return run.q.values[0][index], run.v.values[0][index]


def test_the_slider_crank_against_lagrange_multipliers():
    c = case("loops", "C06_slider_crank")
    p = c["parameters"]
    crank = rod("crank", zw.Revolute("crank", axis=Z), mass=p["m_crank"], length=p["r"])
    link = rod("rod", zw.Revolute("rod", axis=Z), "crank", (p["r"], 0, 0), p["m_rod"], p["l"])
    slider = zw.Body("slider", zw.Prismatic("slide", axis=X), mass=p["m_slider"], inertia=(1, 1, 1))
    m = zw.Mechanism(
        "slider-crank", (crank, link, slider), gravity=(0, -p["g"], 0),
        forces=(zw.Spring("slide", p["k"], rest=p["x0"]), zw.Wrench("crank", torque=(0, 0, p["tau"]))),
        constraints=(zw.Connect("pin", ("rod", (p["l"], 0, 0)), ("slider", (0, 0, 0))),),
    )  # fmt: skip
    a, b, x, ad, bd, xd = c["initial_state"]
    q, v = at_times(m, [a, b - a, x], [ad, bd - ad, xd], c["times"], 2.5e-4)
    found = np.column_stack([q[:, 0], q[:, 0] + q[:, 1], q[:, 2], v[:, 0], v[:, 0] + v[:, 1], v[:, 2]])
    np.testing.assert_allclose(found, c["reference"]["trajectory"], rtol=0, atol=c["tolerance"])
    e = zw.equations(m, ["crank"])
    assert e.mass_matrix.shape == (1, 1)
    state = {"crank": a, "rod": b - a, "slide": x, "crank_dot": ad}
    M, r = e.evaluate(state)
    free = zw.constrained_dynamics(m, [a, b - a, x], [ad, bd - ad, xd], np.zeros(3))
    assert r[0] / M[0, 0] == pytest.approx(free.acceleration[0], rel=1e-9)


def four_bars(n):
    """IFToMM A02: n + 1 vertical cranks with n couplers on top; angles of the cranks from the x axis."""
    bodies, constraints = [rod("crank 0", zw.Revolute("crank 0", axis=Z))], []
    for k in range(1, n + 1):
        bodies.append(rod(f"coupler {k}", zw.Revolute(f"coupler {k}", axis=Z), f"crank {k - 1}", (1, 0, 0)))
        bodies.append(rod(f"crank {k}", zw.Revolute(f"crank {k}", axis=Z), "world", (k, 0, 0)))
        constraints.append(zw.Connect(f"pin {k}", (f"coupler {k}", (1, 0, 0)), (f"crank {k}", (1, 0, 0))))
    return zw.Mechanism("four-bars", tuple(bodies), gravity=(0, -9.81, 0), constraints=tuple(constraints))


def swinging(n):
    """The mechanism of the case with n four-bars, and its initial state with upright cranks, q0 and v0."""
    m = four_bars(n)
    cranks = np.array(["crank" in name for name in m.coordinate_names])
    return m, np.where(cranks, 1, -1) * np.pi / 2, np.where(cranks, -1.0, 1.0)


@pytest.mark.parametrize(("n", "seconds", "step"), [(2, 10, 1e-3), (10, 2, 2e-3)])
def test_the_n_four_bar_passes_its_singular_positions(n, seconds, step):
    """All cranks stay parallel and move as one pendulum; with N = 2 for ten seconds, through ten singular
    positions.
    """
    c = case("loops", "C02_iftomm_A02_nfourbar")
    times = c["times"][: seconds + 1]
    m, q0, v0 = swinging(n)
    q, v = at_times(m, q0, v0, times, step)
    reference = np.array(c["reference"]["N2"])[: len(times)] if n == 2 else pendulum(n, times)
    np.testing.assert_allclose(q[:, 0], reference[:, 2], atol=c["tolerance"] / 10)
    np.testing.assert_allclose(v[:, 0], reference[:, 3], atol=c["tolerance"])
    cranks = [k for k, name in enumerate(m.coordinate_names) if "crank" in name]
    np.testing.assert_allclose(q[:, cranks], q[:, [0] * len(cranks)], atol=1e-10)


def test_forty_four_bars_in_a_row_over_all_ten_seconds():
    """121 links and 40 loops pass singular positions with error-controlled steps and move as the case's
    pendulum. Each pass multiplies the errors; of ten runs that differ by rounding the worst is off by 5e-6.
    """
    c = case("loops", "C02_iftomm_A02_nfourbar")
    m, q0, v0 = swinging(40)
    run = zw.simulate(
        m,
        q0,
        v0,
        duration=10.0,
        step=1.0,
        integrator=zw.Adaptive("dop853", rtol=1e-12, atol=1e-13),
        progress=False,
    )
    assert run.attrs["path"] == "compiled" and not run.status.any()
    q, v = run.q.values[0], run.v.values[0]
    for reference in (np.array(c["reference"]["N40"]), pendulum(40, c["times"])):
        np.testing.assert_allclose(q[:, 0], reference[:, 2], atol=2e-4)
        np.testing.assert_allclose(v[:, 0], reference[:, 3], atol=2e-4)
    cranks = [k for k, name in enumerate(m.coordinate_names) if "crank" in name]
    np.testing.assert_allclose(q[:, cranks], q[:, [0] * len(cranks)], atol=1e-6)


def pendulum(n, times):
    """(cos phi, sin phi, phi, rate) of the pendulum that is equivalent to n parallel four-bars.

    Its moment of inertia is ((n + 1)/3 + n) m L^2 and its weight moment ((n + 1)/2 + n) m g L.
    """
    inertia, weight = (n + 1) / 3 + n, ((n + 1) / 2 + n) * 9.81
    motion = solve_ivp(
        lambda _, y: (y[1], -weight / inertia * np.cos(y[0])), (0, times[-1]), (np.pi / 2, -1.0),
        t_eval=times, method="DOP853", rtol=1e-12, atol=1e-12,
    )  # fmt: skip
    phi, rate = motion.y
    return np.column_stack([np.cos(phi), np.sin(phi), phi, rate])


def bennett():
    """The tree of Bennett's four-bar, whose ratio of twists and lengths makes the overconstrained loop
    mobile.
    """
    a, alpha, beta = 1.0, 0.6, 1.1
    b = a * np.sin(beta) / np.sin(alpha)
    lengths, twists = (a, b, a, b), (alpha, beta, alpha, beta)
    bodies, parent, position, rotation = [], "world", (0, 0, 0), np.eye(3)
    for k in range(3):
        bodies.append(zw.Body(f"link {k}", zw.Revolute(f"turn {k}", axis=Z), parent, position, rotation,
                              mass=1.0, com=(lengths[k] / 2, 0, 0), inertia=(0.1, 0.1, 0.1)))  # fmt: skip
        parent, position = f"link {k}", (lengths[k], 0, 0)
        s, c = np.sin(twists[k]), np.cos(twists[k])
        rotation = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return bodies, parent, position, rotation, b, beta


def bennett_loop():
    """Bennett's four-bar; two points on the axis of its last hinge coincide with two points of the ground.

    The latter lie on the axis through (-b, 0, 0) that is rotated by -beta.
    """
    bodies, parent, position, rotation, b, beta = bennett()
    axis = np.array([0, np.sin(beta), np.cos(beta)])
    ground = np.array([-b, 0, 0])
    point_on_axis = np.array(position) + rotation @ (0, 0, 1)
    hinge = (zw.Connect("hinge", (parent, position), ("world", tuple(ground))),
             zw.Connect("hinge axis", (parent, tuple(point_on_axis)),
                        ("world", tuple(ground + axis))))  # fmt: skip
    return zw.Mechanism("bennett", tuple(bodies), gravity=(0, 0, 0), constraints=hinge)


def bennett_start(m):
    best = None
    rng = np.random.default_rng(0)
    for _ in range(40):
        try:
            q, _ = zw.assemble(m, rng.uniform(-3, 3, 3))
        except SolveError:
            continue
        best = q
        rows = zw.constrained_dynamics(m, q, np.zeros(3), np.zeros(3)).rows
        if np.linalg.matrix_rank(rows.J, tol=1e-8) == 2 and abs(np.sin(q[1])) > 0.3:
            return q
    return best


def test_bennetts_overconstrained_loop_moves_and_conserves_its_energy():
    m = bennett_loop()
    q0 = bennett_start(m)
    assert q0 is not None
    J = zw.constrained_dynamics(m, q0, np.zeros(3), np.zeros(3)).rows.J
    assert J.shape[0] == 6 and np.linalg.matrix_rank(J, tol=1e-8) == 2, "six rows, one degree of freedom"
    q0, v0 = zw.assemble(m, q0, [1.0, 0.5, -0.5])
    assert np.abs(v0).max() > 0.1
    run = zw.simulate(m, q0=q0, v0=v0, duration=1.0, step=1e-3, integrator="rk4")
    kinetic = [
        float(v @ zw.mass_matrix(m, q) @ v) / 2
        for q, v in zip(run.q.values[0][::250], run.v.values[0][::250], strict=True)
    ]
    np.testing.assert_allclose(kinetic, kinetic[0], rtol=1e-6)
    assert np.abs(run.q.values[0][-1] - q0).max() > 0.1


def test_a_loop_that_cannot_close_is_named():
    m = four_bars(1).replace(
        constraints=(zw.Distance("rope", ("crank 0", (1, 0, 0)), ("crank 1", (1, 0, 0)), 9.0),)
    )
    with pytest.raises(SolveError, match=r"'rope'.*crank 0 = 0\.3, .*violation remains .*start closer"):
        zw.assemble(m, [0.3, 0.2, 0.4])


@pytest.mark.parametrize(
    "constraint",
    [
        zw.Distance("c", ("bead", (0, 0, 0)), ("world", (0, 0, 0)), 1),
        zw.Holonomic("c", sp.sqrt(sp.Symbol("x") ** 2 + sp.Symbol("y") ** 2) - 1),
        zw.Pfaffian("c", {"x": 1 / sp.Symbol("x"), "y": 1}),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_guess_in_which_a_constraint_is_singular_is_named(constraint):
    joints = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y))
    m = zw.Mechanism("m", (zw.Body("bead", joints, mass=1),), constraints=(constraint,))
    with pytest.raises(SolveError, match=r"'c'.*not finite.*x = 0, y = 0.*start from another"):
        zw.assemble(m, [0, 0])
    q, v = zw.assemble(m, [0.1, 0], [0, 2])
    if isinstance(constraint, zw.Pfaffian):  # x_dot / x + y_dot = 0
        np.testing.assert_allclose([*q, v[0] / q[0] + v[1]], [0.1, 0, 0], atol=1e-12)
    else:
        np.testing.assert_allclose([*q, *v], [1, 0, 0, 2], atol=1e-12)


def test_inconsistent_velocity_constraints_are_named():
    body = zw.Body("b", zw.Prismatic("x", axis=X), mass=1)
    laws = (zw.Pfaffian("still", {"x": 1}), zw.Pfaffian("moving", {"x": 1}, rate=-1.0))
    m = zw.Mechanism("both", (body,), gravity=(0, 0, 0), constraints=laws)
    with pytest.raises(SolveError, match=r"'(still|moving)'.*contradict.*x = 0\.2.*remove one"):
        zw.assemble(m, [0.2], [0.5])


def test_assembled_states_satisfy_all_constraints():
    m = four_bars(2)
    q, v = zw.assemble(m, [1.4, -1.3, 1.5, -1.4, 1.6], [1.0, 0, 0, 0, 0])
    for k in (1, 2):  # the pins, by the sums of angles along both chains to each
        (ends, rates) = zip(
            *(planar_tip(m, q, v, name) for name in (f"coupler {k}", f"crank {k}")), strict=True
        )
        assert abs(ends[0] - ends[1]) < 1e-11 and abs(rates[0] - rates[1]) < 1e-10
        assert abs(rates[0]) > 0.1
    rows = zw.constrained_dynamics(m, q, v, np.zeros(5)).rows
    np.testing.assert_allclose(rows.position, 0, atol=1e-11)
    np.testing.assert_allclose(rows.velocity, 0, atol=1e-10)


def planar_tip(m, q, v, name):
    """Position and velocity of the tip of a rod of the four-bars as complex numbers x + iy."""
    of = dict(zip(m.coordinate_names, zip(q, v, strict=True), strict=True))
    first = f"crank {int(name.split()[1]) - 1}" if "coupler" in name else name
    chain = [first] if first == name else [first, name]
    tip, velocity, angle, rate = complex(int(first.split()[1])), 0j, 0.0, 0.0
    for link in chain:
        angle, rate = angle + of[link][0], rate + of[link][1]
        tip, velocity = tip + np.exp(1j * angle), velocity + 1j * rate * np.exp(1j * angle)
    return tip, velocity


def squeezer():
    """Andrews' squeezer: a tree of seven bars with three pins at E, and the order of the IVP test set's
    angles.
    """
    p = case("loops", "C03_andrews_squeezer")["parameters"]
    A, B = (p["xa"], p["ya"], 0), (p["xb"], p["yb"], 0)

    def bar(name, parent, position, k, com):
        return zw.Body(
            name,
            zw.Revolute(name, axis=Z),
            parent,
            position,
            mass=p["m"][k],
            com=(*com, 0),
            inertia=(p["I"][k],) * 3,
        )

    bodies = (
        bar("K1", "world", (0, 0, 0), 0, (p["ra"], 0)),  # angle beta
        bar("K2", "K1", (p["rr"], 0, 0), 1, (-p["da"], 0)),  # beta + theta
        bar("K3", "world", B, 2, (p["sb"], -p["sa"])),  # gamma: C3 = B + sa (sin, -cos) + sb (cos, sin)
        bar("K5", "world", A, 4, (p["ta"], p["tb"])),  # delta
        bar("K4", "K5", (p["zt"], 0, 0), 3, (0, -(p["e"] - p["ea"]))),  # phi + delta: (sin, -cos)
        bar("K7", "world", A, 6, (-p["ub"], -p["ua"])),  # epsilon: C7 = A + ua (sin, -cos) - ub (cos, sin)
        bar("K6", "K7", (0, -p["u"], 0), 5, (p["zf"] - p["fa"], 0)),  # Omega + epsilon
    )
    E = ("K2", (-p["d"], 0, 0))
    pins = tuple(zw.Connect(f"pin of {body}", E, (body, point)) for body, point in
                 (("K3", (0, -p["ss"], 0)), ("K4", (0, -p["e"], 0)), ("K6", (p["zf"], 0, 0))))  # fmt: skip
    spring = zw.PointSpring(
        ("K3", (p["sd"], -p["sc"], 0)), ("world", (p["xc"], p["yc"], 0)), p["c0"], length=p["l0"]
    )
    torque = zw.Wrench("K1", torque=(0, 0, p["mom"]))
    m = zw.Mechanism("squeezer", bodies, gravity=(0, 0, 0), constraints=pins, forces=(spring, torque))
    order = [m.coordinate_names.index(n) for n in ("K1", "K2", "K3", "K4", "K5", "K6", "K7")]
    return m, order


def test_andrews_squeezer():
    c = case("loops", "C03_andrews_squeezer")
    m, order = squeezer()
    start = np.zeros(7)
    start[order] = c["initial_state"][:7]
    q0, v0 = zw.assemble(m, start)
    np.testing.assert_allclose(q0, start, atol=1e-9)
    times = [0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05]
    q, v = at_times(m, q0, v0, times, 5e-6)
    q, v = q[:, order], v[:, order]
    expected = np.array([c["reference"]["own_at_times"][str(t)] for t in times])
    np.testing.assert_allclose(q, expected[:, :7], atol=1e-9)
    np.testing.assert_allclose(v, expected[:, 7:], atol=1e-6)
    published = np.array(c["reference"]["y_ivptestset"])
    np.testing.assert_allclose(q[5], published[:7], rtol=1e-8)
    np.testing.assert_allclose(v[5], published[7:14], rtol=1e-6)


def test_the_pendulum_of_iftomm_a01_as_a_particle_on_a_rigid_wire():
    c = case("loops", "C01_iftomm_A01_pendulum")
    p = c["parameters"]
    bob = zw.Body(
        "bob", (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y)), mass=p["m"], inertia=(1, 1, 1)
    )
    wire = zw.Distance("wire", ("bob", (0, 0, 0)), ("world", (0, 0, 0)), p["L"])
    m = zw.Mechanism("pendulum", (bob,), gravity=(0, -p["g"], 0), constraints=(wire,))
    q, v = at_times(m, [-p["L"], 0], [0, 0], c["times"], 2.5e-4)
    x, y, theta, rate = np.array(c["reference"]["xy_theta_thetadot"]).T  # x = -sin(theta), y = -cos(theta)
    np.testing.assert_allclose(q, np.column_stack([x, y]), rtol=0, atol=c["tolerance"])
    speeds = np.column_stack([-np.cos(theta) * rate, np.sin(theta) * rate])
    np.testing.assert_allclose(v, speeds, rtol=0, atol=c["tolerance"])
    energy = p["m"] * (np.sum(v**2, axis=1) / 2 + p["g"] * q[:, 1])
    # a thousandth of the IFToMM benchmark's tolerance
    np.testing.assert_allclose(energy, 0, atol=5e-5 / 1000)


@pytest.mark.parametrize("speed", ["omega_2pi", "omega_0p32pi"])
def test_the_stiff_flyball_governor(speed):
    """IFToMM A05: two stiff springs and no loop; the angular momentum about the shaft is conserved."""
    c = case("loops", "C05_flyball_governor")
    p = c["parameters"]
    rho, thick = p["rho"], 0.01
    rod_mass, cube = rho * thick**2, rho * 0.001
    across, along = rod_mass * (1 + thick**2) / 12, rod_mass * thick**2 / 6
    fly = p["point_masses"]
    com = (rod_mass * 0.5 + fly) / (rod_mass + fly)
    spread = rod_mass * (com - 0.5) ** 2 + fly * (1 - com) ** 2
    bodies = [
        zw.Body("shaft", zw.Revolute("psi", axis=Z), mass=rod_mass, com=(0, 0, 0.5),
                inertia=(across, across, along)),
        zw.Body("slider", zw.Prismatic("s", axis=Z), "shaft", mass=cube, inertia=(cube * 0.01 / 6,) * 3),
    ]  # fmt: skip
    springs = []
    for k, side in ((1, 1), (2, -1)):
        hinge = zw.Revolute(f"th{k}", axis=(0, side, 0))  # a positive angle rotates the rod downwards
        inertia = (along, across + spread, across + spread)
        bodies.append(
            zw.Body(
                f"rod {k}",
                hinge,
                "shaft",
                (side * 0.05, 0, 1),
                mass=rod_mass + fly,
                com=(side * com, 0, 0),
                inertia=inertia,
            )
        )
        springs.append(
            zw.PointSpring(
                ("slider", (side * 0.05, 0, 0)), (f"rod {k}", (side * 0.5, 0, 0)), p["k"], p["l0"], p["c"]
            )
        )
    m = zw.Mechanism("governor", tuple(bodies), gravity=(0, 0, -p["g"]), forces=tuple(springs))
    reference = np.array(c["reference"][speed])
    q, v = at_times(m, reference[0, :4], reference[0, 4:], c["times"], 1e-4)
    np.testing.assert_allclose(q[:, 1], reference[:, 1], atol=c["tolerance"]["s"])
    np.testing.assert_allclose(v[:, 0], reference[:, 4], atol=1e-5)
    np.testing.assert_allclose(q[:, 2:], reference[:, 2:4], atol=1e-6)
    momentum = [(zw.mass_matrix(m, a) @ b)[0] for a, b in zip(q, v, strict=True)]
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-9)
