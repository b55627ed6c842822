"""Knife edges, rolling discs and the bicycle against published tables and closed forms, by constraint
forces and by coordinate reduction.
"""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.cases import case
from tests.symbolic.machines import X, Y, Z, sleigh, whipple
from zwang.dynamics.generalised_forces import passive_forces
from zwang.errors import DescriptionError, SolveError
from zwang.simulation.constrained import solve_constrained
from zwang.solver.coordinate_reduction import coordinate_reduction, solve_reduced


def trajectory(mechanism, q0, v0, times, step):
    run = zw.simulate(mechanism, q0=q0, v0=v0, duration=times[-1], step=step, integrator="rk4")
    index = [round(t / step) for t in times]
    return run.q.values[0][index], run.v.values[0][index], run


def plane_body(mass, inertia, com=(0, 0, 0)):
    joints = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("phi", axis=Z))
    return zw.Body("body", joints, mass=mass, com=com, inertia=(inertia,) * 3)


def test_the_modified_sleigh_follows_its_reference_and_keeps_its_energy():
    c = case("nonholonomic", "A04_chaplygin_sleigh_rotor")
    p = {k: v for k, v in c["parameters"].items() if isinstance(v, float)}
    m = sleigh().subs(p)
    q, v, run = trajectory(m, [p["b"], 0, 0, 1.0], np.zeros(4), c["times"], 1e-3)
    th = q[:, 2]
    edge = q[:, :2] - p["b"] * np.stack([np.cos(th), np.sin(th)], axis=1)
    u = v[:, 0] * np.cos(th) + v[:, 1] * np.sin(th)
    found = np.column_stack([edge, th, q[:, 3], u, v[:, 2], v[:, 3]])
    np.testing.assert_allclose(found, c["reference"]["trajectory"], rtol=0, atol=c["tolerance"]["trajectory"])
    energy = run.energy.values if "energy" in run else run.kinetic.values + run.potential.values
    np.testing.assert_allclose(energy, c["reference"]["energy"], rtol=1e-8)


@pytest.mark.parametrize("name", ["a", "b"])
def test_the_knife_edge_on_an_incline_does_not_slide_down(name):
    c = case("nonholonomic", "B04_knife_edge_incline")
    p, start, ref = c["parameters"], c["initial_state"][name], c["reference"][name]
    down = (p["g"] * np.sin(p["alpha"]), 0, -p["g"] * np.cos(p["alpha"]))
    edge = zw.NoSideSlip("edge", "body", direction=Y)
    m = zw.Mechanism("skate", (plane_body(p["m"], p["J"]),), gravity=down, constraints=(edge,))
    q, v, _ = trajectory(m, [0, 0, 0], [start["xd"], start["yd"], start["phid"]], c["times"], 1e-3)
    np.testing.assert_allclose(q[:, 0], ref["x"], atol=1e-9)
    np.testing.assert_allclose(q[:, 1], ref["y"], atol=1e-9)
    if "lateral_constraint_force" in ref:
        forces = [
            zw.constrained_dynamics(m, a, b, np.zeros(3)).forces["edge"].item()
            for a, b in zip(q, v, strict=True)
        ]
        np.testing.assert_allclose(forces, ref["lateral_constraint_force"], rtol=0, atol=1e-8)


def test_the_chaplygin_sleigh_turns_over_to_its_stable_side():
    c = case("nonholonomic", "B05_chaplygin_sleigh")
    p, s, ref = c["parameters"], c["initial_state"], c["reference"]
    edge = zw.NoSideSlip("edge", "body", direction=Y)
    m = zw.Mechanism(
        "sleigh", (plane_body(p["m"], p["J_com"], (p["a"], 0, 0)),), gravity=(0, 0, 0), constraints=(edge,)
    )
    q, v, _ = trajectory(m, [0, 0, 0], [s["v"], 0, s["omega"]], c["times"], 2e-3)
    u = v[:, 0] * np.cos(q[:, 2]) + v[:, 1] * np.sin(q[:, 2])
    for found, key in ((u, "v"), (v[:, 2], "omega"), (q[:, 2], "theta"), (q[:, :2], "xy_P")):
        np.testing.assert_allclose(found, ref[key], rtol=0, atol=c["tolerance"])


def disc(p):
    """A thin rolling disc with the coordinates x, y, z of its centre, yaw, lean, spin."""
    joints = (
        *(zw.Prismatic(name, axis=axis) for name, axis in (("x", X), ("y", Y), ("z", Z))),
        *(zw.Revolute(name, axis=axis) for name, axis in (("yaw", Z), ("lean", X), ("spin", Y))),
    )
    A, C = p["A_diametral"], p["C_axial"]
    body = zw.Body("disc", joints, mass=p["m"], inertia=(A, C, A))
    rolling = zw.Rolling("floor", "disc", p["r"], axis=Y)
    return zw.Mechanism("disc", (body,), gravity=(0, 0, -p["g"]), constraints=(rolling,))


def disc_state(p, state):
    """The coordinates of a state [x, y, yaw, lean, spin, ...] of the contact point."""
    x, y, yaw, lean, spin = state[:5]
    r = p["r"]
    centre = np.array(
        [x + r * np.sin(yaw) * np.sin(lean), y - r * np.cos(yaw) * np.sin(lean), r * np.cos(lean)]
    )
    return np.array([*centre, yaw, lean, spin])


@pytest.mark.parametrize(("name", "step"), [("B03_rolling_disc", 1e-3), ("B08_rolling_coin", 5e-5)])
def test_a_rolling_disc_follows_its_reference(name, step):
    c = case("nonholonomic", name)
    p = c["parameters"]
    m = disc(p)
    q0 = disc_state(p, c["initial_state"])
    # the rolling constraint determines the velocity of the centre from the rates of yaw, lean and spin
    rates = c["initial_state"][7:10]
    v0 = rolling_velocities(m, q0, rates)
    q, v, _ = trajectory(m, q0, v0, c["times"], step)
    expected, near = np.array(c["reference"]["trajectory"]), {"rtol": 0, "atol": c["tolerance"]["trajectory"]}
    np.testing.assert_allclose(q[:, 3:], expected[:, 2:5], **near)
    np.testing.assert_allclose(v[:, 3:], expected[:, 7:10], **near)
    centres = np.array([disc_state(p, e)[:3] for e in expected])
    np.testing.assert_allclose(q[:, :3], centres, **near)


def rolling_velocities(m, q, rates):
    """The generalised velocities of the disc with the given rates of yaw, lean and spin."""
    equations = zw.equations(m, ["yaw", "lean", "spin"], form="cse")
    known = dict(zip(m.coordinate_names, q, strict=True)) | dict(
        zip(("yaw_dot", "lean_dot", "spin_dot"), rates, strict=True)
    )
    return equations.evaluate(known, "velocities")[0]


def test_a_steady_turn_has_no_accelerations_of_the_angles():
    c = case("nonholonomic", "B03_rolling_disc")
    p, s = c["parameters"], c["reference"]["steady_turn"]
    m = disc(p)
    q = disc_state(p, [0, 0, 0.3, s["lean"], 0])
    v = rolling_velocities(m, q, [s["yaw_rate"], 0.0, s["spin_rate"]])
    a = zw.constrained_dynamics(m, q, v, np.zeros(6)).acceleration
    np.testing.assert_allclose(a[3:], 0, atol=c["tolerance"]["steady"])


def bicycle_rates(e, p, speed, x):
    """(roll, steer) accelerations of the bicycle at x = (roll, steer, rates), rear wheel at `speed`."""
    roll, steer, roll_rate, steer_rate = x
    state = {
        "x": 0.0,
        "y": 0.0,
        "z": 0.0,
        "yaw": 0.0,
        "pitch": 0.0,
        "rear": 0.0,
        "front": 0.0,
        "roll": roll,
        "steer": steer,
    }
    M, r = e.evaluate(
        {**p, **state, "roll_dot": roll_rate, "steer_dot": steer_rate, "rear_dot": -speed / p["rR"]}
    )
    return np.linalg.solve(M, r)[:2]


def bicycle_slopes(e, p, speed, reach=0.01, count=6):
    """Derivatives (2, 4) of `bicycle_rates` at zero, by interpolation in `count` Chebyshev points within
    `reach`.

    Pitch and height depend on roll and steer to second order only and are constant here.
    """
    nodes, slopes = np.polynomial.chebyshev.chebpts1(count), np.zeros((2, 4))
    for k, unit in enumerate(np.eye(4)):
        rates = np.array([bicycle_rates(e, p, speed, reach * node * unit) for node in nodes])
        through = np.polynomial.chebyshev.chebfit(nodes, rates, count - 1)
        slopes[:, k] = np.polynomial.chebyshev.chebval(0, np.polynomial.chebyshev.chebder(through)) / reach
    return slopes


def bicycle_eigenvalues(slopes):
    """The eigenvalues of roll, steer and their rates."""
    return np.linalg.eigvals(np.vstack([np.hstack([np.zeros((2, 2)), np.eye(2)]), slopes]))


def test_the_bicycles_critical_speeds_are_those_of_meijaard_2007():
    """Two roots meet, weave begins to decay, and capsize begins to grow, at the speeds of Sec. 5."""
    c = case("nonholonomic", "B01_whipple_linear")
    p, ref = {k: v for k, v in c["parameters"].items() if isinstance(v, float | int)}, c["reference"]
    e, near = zw.equations(whipple(), ["roll", "steer", "rear"]), c["tolerance"]["eigenvalues"]

    def nearest(speed, root):
        return np.sort(np.abs(bicycle_eigenvalues(bicycle_slopes(e, p, speed)) - root))

    assert nearest(ref["v_weave"], 1j * ref["weave_imag"])[0] < near
    assert nearest(ref["v_capsize"], 0)[0] < near
    # the error of a double root is the square root of that of the matrix
    assert nearest(ref["v_double_root"], ref["double_root"])[1] < 10 * np.sqrt(near)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: whipple(p),
        lambda p: disc({"A_diametral": 0.1, "C_axial": 0.2, "m": 2.0, "r": 0.4, "g": 9.81}),
    ],
)
def test_coordinate_reduction_and_constraint_forces_agree_to_rounding(make):
    p = {
        k: v
        for k, v in case("nonholonomic", "B01_whipple_linear")["parameters"].items()
        if isinstance(v, float | int)
    }
    m = make(p)
    rng = np.random.default_rng(3)
    q, v = zw.assemble(m, rng.normal(size=m.nq) * 0.1, rng.normal(size=m.nv))
    found = solve_constrained(m, q, v, passive_forces(m, q, v))
    reduced = solve_reduced(found.problem, found.rows)
    np.testing.assert_allclose(reduced.acceleration, found.solution.acceleration, rtol=1e-9, atol=1e-9)
    force = np.asarray(found.constraint_force, float)
    np.testing.assert_allclose(np.asarray(found.rows.J.T @ reduced.force, float), force, rtol=1e-8, atol=1e-8)
    assert sum(coordinate_reduction(found.rows).unknown) == 3
    assert abs(force @ v) < 1e-8 * np.abs(force).max(), "ideal constraints do no work"


def test_dependent_independent_velocities_are_an_error():
    m = sleigh().subs(
        {"m_c": 5.0, "J_c": 0.4, "m_r": 1.2, "J_r": 0.05, "a": 0.35, "b": 0.25, "k_1": 0.6, "k_2": 0.15}
    )
    found = solve_constrained(m, np.zeros(4), np.zeros(4), np.zeros(4))
    still = np.zeros(4)
    with pytest.raises(
        SolveError, match=r"independent velocities depend on each other.*coordinate_reduction=True"
    ):
        # at theta = 0 the knife edge relates y to theta
        solve_reduced(found.problem, found.rows, np.eye(4)[1:])
    with pytest.raises(SolveError, match="independent velocities"):
        zw.constrained_dynamics(m, still, still, still, coordinate_reduction=["y", "theta", "delta"])
    with pytest.raises(DescriptionError, match="has 3 degrees of freedom"):
        zw.constrained_dynamics(m, still, still, still, coordinate_reduction=["x", "theta"])
    with pytest.raises(DescriptionError, match="has 3 degrees of freedom"):
        zw.compile(m).step(still, still, still, coordinate_reduction=["x", "theta"])
    tau = np.array([1.0, 2.0, 3.0, 4.0])
    a, b, c = (
        zw.constrained_dynamics(m, still, still, tau, coordinate_reduction=e).acceleration
        for e in (False, True, ["x", "theta", "delta"])
    )
    np.testing.assert_allclose(b, a, atol=1e-13)
    np.testing.assert_allclose(c, a, atol=1e-13)


def test_frobenius_tells_holonomic_from_nonholonomic():
    th, xs, ys = sp.symbols("phi x y", real=True)
    disguised = zw.Pfaffian("disguised", {"x": ys, "y": xs})  # d(x y) = 0
    edge = zw.Pfaffian("edge", {"x": sp.sin(th), "y": -sp.cos(th)})
    loop = zw.Holonomic("circle", xs**2 + ys**2 - 4)
    m = zw.Mechanism("body", (plane_body(1.0, 1.0),), gravity=(0, 0, 0))
    kinds = {c.name: zw.classify(m.replace(constraints=(c,))) for c in (disguised, edge, loop)}
    assert (
        kinds["disguised"].constraints["disguised"].integrable and kinds["disguised"].degrees_of_freedom == 2
    )
    assert not kinds["edge"].constraints["edge"].integrable and kinds["edge"].reachable_dimension == 3
    assert kinds["circle"].holonomic
    both = zw.classify(m.replace(constraints=(edge, zw.Pfaffian("straight", {"phi": 1}))))
    assert (
        both.holonomic
        and both.constraints["edge"].integrable_with_others
        and not both.constraints["edge"].integrable
    )
    rolling = zw.classify(disc({"A_diametral": 0.1, "C_axial": 0.2, "m": 2.0, "r": 0.4, "g": 9.81}))
    assert (
        rolling.degrees_of_freedom == 3
        and rolling.reachable_dimension == 5
        and "nonholonomic" in str(rolling)
    )


def test_frobenius_counts_the_time_and_the_rate_of_a_constraint():
    """x_dot + t y_dot = 0 and x_dot + y = 0 have no integral, x_dot + 2 y y_dot + cos t = 0 has one; with y
    held, all have one.
    """
    x, y, t = sp.symbols("x y t", real=True)
    rows = {
        "turning": (zw.Pfaffian("row", {"x": 1, "y": t}), False),
        "affine": (zw.Pfaffian("row", {"x": 1}, rate=y), False),
        "integral": (zw.Pfaffian("row", {"x": 1, "y": 2 * y}, rate=sp.cos(t)), True),
        "driven": (zw.Pfaffian("row", {"x": 1}, rate=sp.sin(t) * x), True),
        "curve": (zw.Holonomic("row", x - y**2 * sp.cos(t)), True),
    }
    joints = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("y", (0, 1, 0)))
    point = zw.Mechanism("point", (zw.Body("point", joints, mass=1),), gravity=(0, 0, 0))
    for name, (row, integrable) in rows.items():
        found = zw.classify(point.replace(constraints=(row,)))
        assert found.constraints["row"].integrable == found.holonomic == integrable, name
        assert (found.degrees_of_freedom, found.reachable_dimension) == (1, 1 if integrable else 2), name
        held = zw.classify(point.replace(constraints=(row, zw.Pfaffian("held", {"y": 1}))))
        assert held.holonomic and held.constraints["row"].integrable_with_others, name
    x_and_y = zw.Holonomic("row", (x - t, y + x))  # one constraint alone leaves no motion
    found = zw.classify(point.replace(constraints=(x_and_y,)))
    assert (found.degrees_of_freedom, found.reachable_dimension) == (0, 0)
    assert found.constraints["row"].integrable and found.rheonomic


def test_a_weld_alone_leaves_no_degree_of_freedom():
    body = zw.Body("b", zw.Free("f"), mass=1, inertia=(1, 1, 1))
    found = zw.classify(zw.Mechanism("m", [body], constraints=[zw.Weld("weld", "b", "world")]))
    assert (found.degrees_of_freedom, found.reachable_dimension) == (0, 0)
    assert found.constraints["weld"].independent == 6 and found.constraints["weld"].integrable


@pytest.mark.parametrize("trailers", [0, 1, 2])
def test_frobenius_brackets_until_the_reachable_dimension_no_longer_grows(trailers):
    """A car with n trailers reaches all of its 4 + n dimensions, by brackets of up to n + 3 fields."""
    wheels = [("rear", "car"), ("front", "wheel"), *((f"t{k}", f"t{k}") for k in range(trailers))]
    bodies = [
        zw.Body("car", zw.Planar("p"), mass=1, inertia=(1, 1, 1)),
        zw.Body("wheel", zw.Revolute("steer"), parent="car", position=(1, 0, 0), mass=1, inertia=(1, 1, 1)),
    ]
    for k in range(trailers):
        parent, position = (f"t{k - 1}", (-1, 0, 0)) if k else ("car", (0, 0, 0))
        hitch = zw.Revolute(f"hitch{k}")
        bodies.append(zw.Body(f"t{k}", hitch, parent=parent, position=position, mass=1, inertia=(1, 1, 1)))
    edges = [
        zw.NoSideSlip(name, body=body, point=(-1, 0, 0) if body[0] == "t" else (0, 0, 0))
        for name, body in wheels
    ]
    found = zw.classify(zw.Mechanism("car", bodies, constraints=edges))
    assert (found.degrees_of_freedom, found.reachable_dimension) == (2, 4 + trailers)
    assert not any(c.integrable_with_others for c in found.constraints.values())


def test_a_plane_of_symbolic_inclination_belongs_to_a_body_with_a_symbolic_orientation():
    """A ball rolls down with g sin(angle) / (1 + I / (m r^2)); a symbolic normal raises with this remedy."""
    angle = sp.Symbol("angle")
    ball = zw.Body("ball", zw.Free("f"), mass=1, inertia=(0.4,) * 3)
    with pytest.raises(DescriptionError, match=r"normal of rolling 'k' .*Give the plane to a body.*gravity"):
        zw.Rolling("k", "ball", 1.0, normal=(sp.sin(angle), 0, sp.cos(angle)))
    c, s = sp.cos(angle), sp.sin(angle)
    plane = zw.Body("plane", orientation=((c, 0, s), (0, 1, 0), (-s, 0, c)))
    m = zw.Mechanism("m", [plane, ball], constraints=[zw.Rolling("k", "ball", 1.0, on="plane")])
    for value in (0.0, 0.3, -1.2):
        start = [np.sin(value), 0, np.cos(value), 1, 0, 0, 0]
        run = zw.simulate(m, start, duration=0.1, params={"angle": value})
        speed = 9.81 * np.sin(value) * 0.1 / 1.4
        expected = [speed * np.cos(value), 0, -speed * np.sin(value), 0, speed, 0]
        np.testing.assert_allclose(run.v.values[0, -1], expected, atol=1e-9)


@pytest.mark.parametrize("length", [1.0, 0.5, 2.0])
def test_the_symbolic_axis_of_a_disc_is_divided_by_its_length(length):
    """The disc, inclined at first, falls as one whose axis is numeric."""
    start = [0, 0, np.cos(0.3), np.cos(0.15), np.sin(0.15), 0, 0]

    def rolled(axis, **params):
        disc = zw.Body("disc", zw.Free("f"), mass=1, inertia=(0.1, 0.2, 0.1))
        m = zw.Mechanism("m", [disc], constraints=[zw.Rolling("k", "disc", 1.0, axis=axis)])
        return zw.simulate(m, start, duration=0.05, params=params).v.values[0, -1]

    found = rolled((0, sp.Symbol("s"), 0), s=length)
    np.testing.assert_allclose(found, rolled((0, 1, 0)), atol=1e-10)


@pytest.mark.parametrize("size", [1e-9, 1e6])
def test_the_classification_does_not_depend_on_the_size_of_coefficients(size):
    """dx + c z dy = 0 is nonholonomic for every c other than 0, and d(x + c z y) = 0 holonomic."""
    slides = [zw.Prismatic(n, axis=a) for n, a in zip("xyz", np.eye(3, dtype=int).tolist(), strict=True)]
    point = zw.Mechanism("point", [zw.Body("p", tuple(slides), mass=1)])
    y, z = sp.symbols("y z")
    for factor in (1e-12, 1e6):
        twisted = zw.Pfaffian("c", {"x": factor, "y": factor * size * z})
        exact = zw.Pfaffian("c", {"x": factor, "y": factor * size * z, "z": factor * size * y})
        found = [zw.classify(point.replace(constraints=[c])) for c in (twisted, exact)]
        assert [c.holonomic for c in found] == [False, True]
        assert [c.reachable_dimension for c in found] == [3, 2]
