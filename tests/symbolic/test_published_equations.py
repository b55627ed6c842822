"""Published equations of smaller systems, and misprints that the derivation finds.

IMECE 2021-72324: Luchtenburg, Shah, Impelluso, Rykkje, A projection-based derivation of the equations of
motion for the moving frame method for multi-body dynamics. ME331: Fu, Robot Modeling and Control, Section 11.
"""

import numpy as np
import pytest
import scipy.integrate
import sympy as sp

import zwang as zw
from tests.cases import case
from tests.symbolic.machines import X, Y, Z, furuta, positive
from zwang.api.analysis.task_acceleration import task_acceleration
from zwang.errors import DescriptionError, SolveError
from zwang.symbolic.equation_check import check_equations
from zwang.symbolic.equations import equations


def test_the_simple_pendulum_three_ways():
    """IMECE 2021-72324, Sec. 2, Eqs. 10, 16, 23: by a joint, by coordinate reduction, and by its force."""
    m, l, g = positive("m l g")
    by_joint = equations(
        zw.Mechanism(
            "p", (zw.Body("bob", zw.Revolute("theta", axis=Z), mass=m, com=(l, 0, 0)),), gravity=(g, 0, 0)
        )
    )
    (th,) = by_joint.q
    assert by_joint.accelerations[0] == -g * sp.sin(th) / l
    slides = (zw.Prismatic("x1", axis=X), zw.Prismatic("x2", axis=Y))
    x1, x2 = sp.symbols("x1 x2", real=True)
    free = zw.Mechanism("p", (zw.Body("bob", slides, mass=m, inertia=(1, 1, 1)),), gravity=(g, 0, 0),
                        constraints=(zw.Holonomic("circle", (x1**2 + x2**2 - l**2) / (2 * l)),))  # fmt: skip
    c = case("elementary", "A06_simple_pendulum")
    p = c["parameters"]
    numbers = {"m": p["m"], "l": p["l"], "g": p["g"]}
    reduced = equations(free, ["x2"])
    for s in c["reference"]["samples"]:
        a, b = p["l"] * np.cos(s["theta"]), p["l"] * np.sin(s["theta"])
        v = np.array([-b, a]) * s["theta_dot"]
        found = zw.constrained_dynamics(free.subs(numbers), [a, b], v, np.zeros(2))
        np.testing.assert_allclose(found.rows.J.T @ found.force, s["Fc_xy"], rtol=1e-10, atol=1e-12)
        M, r = reduced.evaluate({**numbers, "x1": a, "x2": b, "x2_dot": v[1]})
        expected = a * s["theta_ddot"] - b * s["theta_dot"] ** 2
        assert r[0] / M[0, 0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def geared_link():
    """ME331, Example 1: theta_m = r theta_l."""
    J_m, J_l, M, g, l, r, B_m, B_l = positive("J_m J_l M g l r B_m B_l")
    link = zw.Body(
        "link", zw.Revolute("q", axis=Z), mass=M, com=(0, -l, 0), inertia=(J_l, J_l, J_l - M * l**2)
    )
    rotor = zw.Body("rotor", zw.Revolute("motor", axis=Z), mass=1, inertia=(J_m, J_m, J_m))
    forces = (zw.Motor("tau_m", "motor"), zw.Damper("motor", B_m), zw.Damper("q", B_l))
    gear = zw.JointCoupling("gear", "motor", "q", (0, r))
    return zw.Mechanism("geared link", (link, rotor), gravity=(0, -g, 0), forces=forces, constraints=(gear,))


def test_the_geared_link_and_its_wrong_coefficient():
    m = geared_link()
    J_m, J_l, M, g, l, r, B_m, B_l = positive("J_m J_l M g l r B_m B_l")
    q, qd, qdd, tau_m = sp.symbols("q q_dot q_ddot tau_m")
    left = (r**2 * J_m + J_l) * qdd + M * g * l * sp.sin(q) - r * tau_m
    right = check_equations(m, [left + (r**2 * B_m + B_l) * qd], ["q"])
    assert right.equal and right and not right.rows[0].only_on_constraints
    printed = check_equations(m, [left + (r * B_m + B_l) * qd], ["q"])
    assert not printed
    difference = printed.rows[0].difference
    names = {s.name: s for s in difference.free_symbols}
    assert sp.expand(difference - names["q_dot"] * names["B_m"] * (names["r"] - names["r"] ** 2)) == 0
    assert "B_m" in str(printed) and "term" in str(printed)


def test_equations_from_which_constraints_eliminated_coordinates_are_equal_where_these_hold():
    """The geared link in its motor's angle and velocity; a bead on a rod at the angle t + sin(2 t) / 2."""
    J_m, J_l, M, g, l, r, B_m, B_l = positive("J_m J_l M g l r B_m B_l")
    q, motor, qd, motor_d, qdd, tau_m = sp.symbols("q motor q_dot motor_dot q_ddot tau_m")
    inertia = (r**2 * J_m + J_l) * qdd - r * tau_m
    for factor in (1, -2 * J_l):
        in_motor = inertia + M * g * l * sp.sin(motor / r) + r * B_m * motor_d + B_l * qd
        found = check_equations(geared_link(), [factor * in_motor], ["q"])
        assert found and found.rows[0].only_on_constraints and found.rows[0].factor == factor
        assert found.rows[0].difference != 0 and "only where the constraints hold" in str(found)
    wrong = check_equations(geared_link(), [in_motor + B_m * motor_d - B_m * qd], ["q"])
    assert not wrong and not wrong.rows[0].only_on_constraints and "differs" in str(wrong)
    assert not check_equations(geared_link(), [inertia + M * g * l * sp.sin(q) + r * B_m * motor_d], ["q"])

    t, a = sp.Symbol("t", real=True), sp.Symbol("a", real=True)
    rod = zw.Body("rod", zw.Revolute("a", axis=Z), mass=1, com=(1, 0, 0), inertia=(1, 1, 1))
    bead = zw.Body("bead", zw.Prismatic("r", axis=X), "rod", mass=M)
    turns = zw.Holonomic("turns", a - t - sp.sin(2 * t) / 2)
    driven = zw.Mechanism("driven rod", [rod, bead], gravity=(0, -g, 0), constraints=[turns])
    r, angle = sp.Function("r")(t), t + sp.sin(2 * t) / 2
    for sign in (1, -1):
        equation = sp.Eq(r.diff(t, 2), r * angle.diff(t) ** 2 - sign * g * sp.sin(angle))
        found = check_equations(driven, [equation])
        assert found.equal == found.rows[0].only_on_constraints == (sign == 1)


def test_the_rotary_pendulums_printed_equations_lack_one_term():
    """Eq. 90a as printed is correct; Eq. 90b lacks (J_p2 - J_p3) sin(2 alpha) thd^2 / 2."""
    t = sp.Symbol("t")
    th, al = sp.Function("theta")(t), sp.Function("alpha")(t)
    L_p, L_r, m_p, m_r, g, B_r, B_p, J1, J2, J3, J_r3, tau = sp.symbols(
        "L_p L_r m_p m_r g B_r B_p J_p1 J_p2 J_p3 J_r3 tau"
    )
    inertia = (
        J2 * sp.sin(al) ** 2
        + J3 * sp.cos(al) ** 2
        + J_r3
        + L_p**2 * m_p * sp.sin(al) ** 2 / 4
        + L_r**2 * m_p
        + L_r**2 * m_r / 4
    )
    eq90a = sp.Eq(
        L_p * L_r * m_p * sp.sin(al) / 2 * al.diff(t) ** 2
        - L_p * L_r * m_p * sp.cos(al) / 2 * al.diff(t, 2)
        + (J2 - J3 + L_p**2 * m_p / 4) * sp.sin(2 * al) * al.diff(t) * th.diff(t)
        + inertia * th.diff(t, 2),
        -B_r * th.diff(t) + tau,
    )
    eq90b = sp.Eq(
        -(L_p**2) * m_p * sp.sin(2 * al) / 8 * th.diff(t) ** 2
        - L_p * L_r * m_p * sp.cos(al) / 2 * th.diff(t, 2)
        + (J1 + L_p**2 * m_p / 4) * al.diff(t, 2),
        -B_p * al.diff(t) + L_p * m_p * g / 2 * sp.sin(al),
    )
    found = check_equations(furuta(), [eq90b, eq90a])
    assert found.rows[1].equal and not found.rows[0].equal
    assert found.rows[0].row == 1
    corrected = sp.Eq(eq90b.lhs - (J2 - J3) * sp.sin(2 * al) * th.diff(t) ** 2 / 2, eq90b.rhs)
    assert check_equations(furuta(), [eq90a, corrected])
    twice = sp.Eq(-2 * L_r * corrected.lhs, -2 * L_r * corrected.rhs)
    assert check_equations(furuta(), [twice, eq90a]), "a factor is no mistake"


THETA, TIME = sp.Function("theta"), sp.Symbol("t")
REJECTED = {
    "too few": ([sp.Symbol("theta_ddot")], "2 equations"),
    "unknown symbol": ([sp.Symbol("beta"), sp.Symbol("theta")], "beta"),
    "nothing": (None, "give a list"),
    "text": ("ab", "give a list"),
    "texts": (["theta_ddot", "alpha"], "equation 1 is 'theta_ddot'"),
    "one expression": (sp.Symbol("theta_ddot"), "give a list"),
    "decided": ([sp.Symbol("theta_ddot"), sp.Eq(1, 1)], "equation 2 is True"),
    "inequality": ([sp.Symbol("theta_ddot") > 0, sp.Symbol("alpha")], "equation 1"),
    "zero": ([0, sp.Symbol("theta")], "no coordinate, velocity or acceleration"),
    "infinite": ([sp.oo * sp.Symbol("theta"), sp.Symbol("alpha")], "equation 1"),
    "power's rate": ([sp.Derivative(THETA(TIME) ** 2, TIME), sp.Symbol("alpha")], "doit"),
    "third derivative": ([THETA(TIME).diff(TIME, 3), sp.Symbol("alpha")], "theta_dddot"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_check_equations_rejects_what_it_cannot_compare(name):
    expressions, message = REJECTED[name]
    with pytest.raises(DescriptionError, match=message):
        check_equations(furuta(), expressions)


def test_check_equations_takes_columns_and_factors():
    e = equations(furuta())
    residuals = e.mass_matrix * e.u_dot - e.right_hand_side
    assert check_equations(furuta(), residuals)
    assert check_equations(furuta(), sp.Eq(e.mass_matrix * e.u_dot, e.right_hand_side, evaluate=False))
    m_p, theta = sp.Symbol("m_p", positive=True), e.q[0]
    assert check_equations(furuta(), [residuals[0] * m_p, -3 * residuals[1]])
    found = check_equations(furuta(), [residuals[0] * theta, residuals[1]])
    assert found and found.rows[0].factor == theta


T = sp.Symbol("theta")


@pytest.mark.parametrize(
    ("sine", "equal"),
    [(sp.tan(T) * sp.cos(T), True), (sp.sin(3 * T) / (3 - 4 * sp.sin(T) ** 2), True),
     (2 * sp.tan(T / 2) / (1 + sp.tan(T / 2) ** 2), True), (sp.Abs(sp.sin(T)), False),
     (sp.tan(T) * sp.cos(T) ** 2, False), (sp.sin(T) + sp.Rational(1, 10**9) * sp.tan(T), False)],
)  # fmt: skip
def test_identities_of_functions_that_the_derivation_does_not_contain_are_known(sine, equal):
    m, l, g = sp.symbols("m l g", positive=True)
    bob = zw.Body("bob", zw.Revolute("theta", axis=(0, 1, 0)), mass=m, com=(0, 0, -l))
    pendulum = zw.Mechanism("pendulum", [bob], gravity=(0, 0, -g))
    found = check_equations(pendulum, [sp.Symbol("theta_ddot") + g / l * sine])
    assert bool(found) == equal and (found.rows[0].difference == 0) == equal


@pytest.mark.parametrize("function", [zw.classify, equations, lambda m: check_equations(m, [])])
def test_an_argument_that_is_not_a_mechanism_is_rejected(function):
    with pytest.raises(TypeError, match=r"must be a zw.Mechanism"):
        function("furuta")


def test_equations_of_a_mechanism_that_cannot_move_are_rejected():
    two = (zw.JointCoupling("gear", "theta", "alpha"), zw.JointCoupling("other", "theta", "alpha", (1, 2)))
    locked = furuta().replace(constraints=two)
    assert zw.classify(locked).degrees_of_freedom == 0
    with pytest.raises(DescriptionError, match="'gear', 'other'"):
        equations(locked)
    with pytest.raises(DescriptionError, match="give a list"):
        equations(furuta().replace(constraints=two[:1]), "theta")


def elastic_joint(p):
    """The same equations with admissible inertias: since J_l < M l^2, twice the mass at half the distance."""
    mass, arm = 2 * p["M"], p["l"] / 2
    across = p["J_l"] - mass * arm**2
    link = zw.Body("link", zw.Revolute("q1", axis=Z), mass=mass, com=(0, -arm, 0), inertia=(across,) * 3)
    rotor = zw.Body("rotor", zw.Revolute("q2", axis=Z), mass=1, inertia=(p["J_m"],) * 3)
    forces = (zw.Spring("q1", p["k"], relative_to="q2"), zw.Motor("u", "q2"))
    return zw.Mechanism("elastic joint", (link, rotor), gravity=(0, -p["g"], 0), forces=forces)


def test_the_elastic_joint():
    """ME331, Example 2: q1 is the link's angle, q2 the motor's."""
    J_l, J_m, M, g, l, k = positive("J_l J_m M g l k")
    link = zw.Body(
        "link", zw.Revolute("q1", axis=Z), mass=M, com=(0, -l, 0), inertia=(J_l, J_l, J_l - M * l**2)
    )
    rotor = zw.Body("rotor", zw.Revolute("q2", axis=Z), mass=1, inertia=(J_m, J_m, J_m))
    m = zw.Mechanism("elastic joint", (link, rotor), gravity=(0, -g, 0),
                     forces=(zw.Spring("q1", k, relative_to="q2"), zw.Motor("u", "q2")))  # fmt: skip
    q1, q2, a1, a2, u = sp.symbols("q1 q2 q1_ddot q2_ddot u")
    printed = [J_l * a1 + M * g * l * sp.sin(q1) + k * (q1 - q2), J_m * a2 + k * (q2 - q1) - u]
    assert check_equations(m, printed)
    c = case("elementary", "A08_elastic_joint")
    p = {key: value for key, value in c["parameters"].items() if isinstance(value, float)}
    e = equations(m)
    numbers = {key: p[key] for key in ("J_l", "J_m", "M", "g", "l", "k", "u")}

    def rate(_t, y):
        M_, r = e.evaluate({**numbers, "q1": y[0], "q2": y[1], "q1_dot": y[2], "q2_dot": y[3]})
        return [*y[2:], *np.linalg.solve(M_, r)]

    ref, near = c["reference"], {"rtol": 0, "atol": c["tolerance"]}
    solved = scipy.integrate.solve_ivp(
        rate, (0, 1.0), c["initial_state"], "DOP853", t_eval=c["times"][:4], rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(solved.y.T, ref["trajectory"][:4], **near)
    start, last = np.split(np.array(c["initial_state"]), 2), c["times"][-1]
    run = zw.simulate(
        elastic_joint(p), *start, duration=last, step=0.1, control={"u": p["u"]}, progress=False,
        integrator=zw.Adaptive("dop853", rtol=1e-11, atol=1e-12),
    )  # fmt: skip
    states = np.concatenate([run.q.values[0], run.v.values[0]], axis=1)
    kept = np.round(np.array(c["times"]) / 0.1).astype(int)
    np.testing.assert_allclose(states[kept], ref["trajectory"], **near)
    height = p["M"] * p["g"] * p["l"]  # the case counts the potential from below, zwang from the pivot
    energies = run.energy.values[0] - p["u"] * states[:, 1] + height
    np.testing.assert_allclose(energies, ref["energy_minus_u_q2"], **near)
    at = ref["equilibrium"]
    M_, r = e.evaluate({**numbers, "q1": at[0], "q2": at[1], "q1_dot": 0, "q2_dot": 0})
    np.testing.assert_allclose(np.asarray(r, float).ravel(), 0, atol=c["tolerance"])
    stiffness = np.array([[p["k"] + height * np.cos(at[0]), -p["k"]], [-p["k"], p["k"]]])
    found = np.sqrt(scipy.linalg.eigvalsh(stiffness, np.asarray(M_, float)))
    np.testing.assert_allclose(found, ref["natural_frequencies_rad_s"], **near)


def test_two_particles_on_a_rigid_wire():
    """ME331, Holonomic Constraints and Virtual Work: virtual displacements (r1 - r2) . (dr1 - dr2) = 0,
    and a force along the wire that does no work.
    """
    m1, m2, L = positive("m1 m2 L")

    def particle(name, m):
        return zw.Body(
            name,
            tuple(zw.Prismatic(f"{name}{axis}", axis=a) for axis, a in (("x", X), ("y", Y), ("z", Z))),
            mass=m,
            inertia=(1, 1, 1),
        )

    wire = zw.Distance("wire", ("a", (0, 0, 0)), ("b", (0, 0, 0)), L)
    m = zw.Mechanism("wire", (particle("a", m1), particle("b", m2)), gravity=(0, 0, 0), constraints=(wire,))
    assert zw.classify(m).degrees_of_freedom == 5 and zw.classify(m).holonomic
    numeric = m.subs({"m1": 2.0, "m2": 3.0, "L": 5.0})
    q, v = np.array([3.0, 0, 0, 0, 4, 0]), np.array([0.0, 0, 1, 0, 0, -1])
    found = zw.constrained_dynamics(numeric, q, v, [1.0, 0, 0, 0, 0, 0])
    along = np.array([3.0, -4, 0]) / 5
    force = found.rows.J.T @ found.force
    np.testing.assert_allclose(force[:3], found.force[0] * along, atol=1e-12)
    np.testing.assert_allclose(force[3:], -force[:3], atol=1e-12)
    reduced = (
        2 * 3 / 5
    )  # relative motion of a free pair: mu a_rel = F m2/(m1+m2) + tension, with a_rel . n = -|v_rel|^2 / L
    assert found.force[0] == pytest.approx(reduced * (-4 / 5 - 3 / 5 / 2), rel=1e-12)
    assert abs(force @ v) < 1e-12


def planar_arm():
    bodies, parent, position = [], "world", (0, 0, 0)
    for k, l in enumerate((0.5, 0.4, 0.3)):
        bodies.append(
            zw.Body(
                f"link{k}",
                zw.Revolute(f"q{k}", axis=Z),
                parent,
                position,
                mass=1.0 + k,
                com=(l / 2, 0, 0),
                inertia=(0.02,) * 3,
            )
        )
        parent, position = f"link{k}", (l, 0, 0)
    return zw.Mechanism(
        "3R", tuple(bodies), gravity=(0, -9.81, 0), frames=(zw.Frame("tool", parent, position),)
    )


def test_a_prescribed_acceleration_of_the_3r_arm_is_the_nearest_to_the_free_one():
    """Gauss's principle in operational space: min ||x - M^-1 tau||_M subject to J x = a*."""
    m = planar_arm()
    q, v, tau = np.array([0.4, 0.7, -0.5]), np.array([0.3, -0.2, 0.5]), np.array([1.0, 0.5, 0.2])
    found = task_acceleration(m, q, v, tau, "tool", [0.5, -0.2], rows=(0, 1))
    M, free = zw.mass_matrix(m, q), zw.forward_dynamics(m, q, v, tau)
    J = zw.frame_jacobian(m, q, "tool")[:2]
    b = np.array([0.5, -0.2]) - zw.frame_jacobian_rate(m, q, v, "tool")[:2]
    lam = np.linalg.solve(J @ np.linalg.solve(M, J.T), b - J @ free)
    np.testing.assert_allclose(found.acceleration, free + np.linalg.solve(M, J.T @ lam), rtol=1e-9)
    np.testing.assert_allclose(found.force, lam, rtol=1e-9)
    d = found.acceleration - free
    assert found.zwang == pytest.approx(d @ M @ d / 2, rel=1e-9)
    with pytest.raises(SolveError):  # a planar arm cannot leave its plane
        task_acceleration(m, q, v, tau, "tool", [0.5, -0.2, 1.0])


def test_newtons_point_mass_is_lagranges():
    """ME331: m y_ddot = f - m g from L = 1/2 m y_dot^2 - m g y."""
    mass, g = positive("m g")
    m = zw.Mechanism(
        "point",
        (zw.Body("p", zw.Prismatic("y", axis=Y), mass=mass),),
        gravity=(0, -g, 0),
        forces=(zw.Motor("f", "y"),),
    )
    newton, lagrange = equations(m, method="newton_euler"), equations(m, method="lagrange")
    assert newton.right_hand_side == lagrange.right_hand_side
    assert check_equations(m, [mass * sp.Symbol("y_ddot") - sp.Symbol("f") + mass * g])
    (y,) = lagrange.q
    assert lagrange.potential_energy == mass * g * y


def test_constraint_forces_split_into_ideal_and_nonideal_parts():
    """IMECE 2021-72324, Eqs. 43-50, on Udwadia's and Kalaba's particle: C = -a0 |u| u, projected."""
    c = case("nonideal", "D03_uk_nonholonomic_nonideal")
    p, state = c["parameters"], c["initial_state"]
    z, *v = sp.symbols("z x_dot y_dot z_dot", real=True)
    speed = sp.sqrt(sum(u**2 for u in v))
    drag = zw.NonIdeal("drag", "edge", {n: -p["a0"] * speed * u for n, u in zip("xyz", v, strict=True)})
    slides = tuple(zw.Prismatic(n, axis=a) for n, a in zip("xyz", (X, Y, Z), strict=True))
    m = zw.Mechanism(
        "particle",
        (zw.Body("p", slides, mass=p["m"], inertia=(1, 1, 1)),),
        gravity=(0, 0, 0),
        forces=(zw.Wrench("p", force=p["f"]),),
        constraints=(zw.Pfaffian("edge", {"y": 1, "x": -z}), drag),
    )
    e = equations(m, ["x", "z"])
    known = dict(zip(("x", "y", "z", "x_dot", "y_dot", "z_dot"), state, strict=True))
    found = e.split_constraint_forces(known)
    u = np.array(state[3:])
    C = -p["a0"] * np.linalg.norm(u) * u
    A = np.array([[-state[2], 1, 0]])
    projected = (np.eye(3) - np.linalg.pinv(A) @ A) @ C
    np.testing.assert_allclose(found.nonideal[:3], projected, atol=1e-12)
    np.testing.assert_allclose(found.total[:3], np.array(c["reference"]["acc0"]) - p["f"], atol=1e-12)
    assert abs(found.ideal_power) < 1e-12
    assert found.nonideal_power == pytest.approx(C @ u, rel=1e-12)
