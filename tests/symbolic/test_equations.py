"""Symbolic equations: published results, four derivations, two forms, and SymPy's mechanics as an oracle."""

import pickle
import random
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from sympy.physics import mechanics as me

import zwang as zw
from tests.cases import case
from tests.symbolic.machines import SLEIGH_SPEEDS, chain, furuta, sleigh, whipple
from zwang.errors import DescriptionError, ParameterError, UnknownNameError
from zwang.mechanism.bodies import Body
from zwang.mechanism.joints import Free, Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic.equations import equations
from zwang.symbolic.typesetting import mass_matrix_latex

METHODS = ("projection", "gauss", "newton_euler", "lagrange")
MACHINES = {"furuta": (furuta, None), "sleigh": (sleigh, SLEIGH_SPEEDS), "chain": (lambda: chain(3), None)}


def exact_point(e, seed=1):
    """Random rational numbers for all symbols."""
    rng = random.Random(seed)
    symbols = {
        *e.symbols.q,
        *e.symbols.u,
        *e.symbols.inputs.values(),
        *e.M_blocks.free_symbols,
        *e.B.free_symbols,
    }
    symbols |= e.right_hand_side.free_symbols | e.mass_matrix.free_symbols
    return {s: sp.Rational(rng.randint(10, 99), 61) for s in sorted(symbols, key=str)}


def numbers(matrix, point):
    return np.array(matrix.subs(point).evalf(30).tolist(), dtype=float)


@pytest.mark.parametrize("name", MACHINES)
def test_four_derivations_in_two_forms_are_one(name):
    make, speeds = MACHINES[name]
    first = equations(make(), speeds, form="expanded")
    point = exact_point(first)
    for method in METHODS:
        for form in ("expanded", "cse"):
            e = equations(make(), speeds, method, form=form)
            if form == "expanded":  # canonical: equal expressions are the same
                assert e.mass_matrix == first.mass_matrix
                assert e.right_hand_side == first.right_hand_side
            for found, expected in zip(e.evaluate(point), first.evaluate(point), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("form", ["expanded", "cse"])
@pytest.mark.parametrize("used", [False, True])
def test_pickled_equations_are_the_same(name, form, used):
    """Also for quantities that are derived after loading, as of equations that another process returns."""
    make, speeds = MACHINES[name]
    e = equations(make(), speeds, form=form)
    derived = e.right_hand_side, e.B_dot
    pickled = pickle.dumps(e if used else equations(make(), speeds, form=form))
    again = pickle.loads(pickled)
    assert (again.right_hand_side, again.B_dot) == derived
    assert again.latex() == e.latex()


def test_the_chaplygin_sleigh_of_imece_2021_72324_eqs_65_68_69():
    e = equations(sleigh(), SLEIGH_SPEEDS)
    m_c, m_r, J_c, J_r, a, b, k_1, k_2 = sp.symbols("m_c m_r J_c J_r a b k_1 k_2", positive=True)
    _, _, th, d = e.q
    u, thd, dd = e.speeds
    s, c, sd, cd = sp.sin(th), sp.cos(th), sp.sin(d), sp.cos(d)
    planar = [e.B.row(i) for i in (0, 1, 5, 6, 7, 11)]
    eq65 = sp.Matrix([[c, -b * s, 0], [s, b * c, 0], [0, 1, 0],
                      [c, -a * sp.sin(d + th) - b * s, -a * sp.sin(d + th)],
                      [s, a * sp.cos(d + th) + b * c, a * sp.cos(d + th)], [0, 1, 1]])  # fmt: skip
    assert sp.Matrix(planar) == eq65
    eq68 = sp.Matrix(
        [
            [m_c + m_r, -a * m_r * sd, -a * m_r * sd],
            [
                -a * m_r * sd,
                J_c + J_r + a**2 * m_r + 2 * a * b * m_r * cd + b**2 * m_c + b**2 * m_r,
                J_r + a**2 * m_r + a * b * m_r * cd,
            ],
            [-a * m_r * sd, J_r + a**2 * m_r + a * b * m_r * cd, J_r + a**2 * m_r],
        ]
    )
    assert (e.mass_matrix - eq68).applyfunc(sp.expand).is_zero_matrix
    eq69 = sp.Matrix([
        a * m_r * cd * (dd + thd) ** 2 + b * (m_c + m_r) * thd**2,
        a * b * m_r * sd * (dd**2 + 2 * dd * thd) - a * m_r * u * cd * thd - b * (m_c + m_r) * u * thd,
        -a * b * m_r * sd * thd**2 - a * m_r * u * cd * thd - 2 * k_1 * d - 4 * k_2 * d**3,
    ])  # fmt: skip
    assert (e.right_hand_side - eq69).applyfunc(sp.expand).is_zero_matrix
    tau_s = -2 * k_1 * d - 4 * k_2 * d**3  # Eq. 67
    assert sp.expand(e.Gamma[5] + tau_s) == 0 and sp.expand(e.Gamma[11] - tau_s) == 0


def test_the_sleighs_reference_points():
    c = case("nonholonomic", "A04_chaplygin_sleigh_rotor")
    parameters = {k: v for k, v in c["parameters"].items() if isinstance(v, float)}
    e = equations(sleigh(), SLEIGH_SPEEDS)
    for point in c["reference"]["points"]:
        M, r = e.evaluate({**parameters, **point, "x": 0, "y": 0})
        np.testing.assert_allclose(M, point["mass_matrix"], rtol=1e-13)
        np.testing.assert_allclose(np.linalg.solve(M, r), point["acc"], rtol=c["tolerance"]["points"])


def test_the_rotary_pendulum_conserves_energy_and_the_printed_eq_90b_does_not():
    e = equations(furuta())
    th, al = e.q
    thd, _ald = e.speeds
    names = {str(s): s for s in (e.mass_matrix.free_symbols | e.right_hand_side.free_symbols)}
    m_p, L_r, L_p, J2, J3 = (names[n] for n in ("m_p", "L_r", "L_p", "J_p2", "J_p3"))
    still = {names["B_r"]: 0, names["B_p"]: 0, names["tau"]: 0}

    def power(rhs):
        """dE/dt along u_dot = M^-1 rhs, exactly."""
        energy = e.kinetic_energy + e.potential_energy
        u_dot = e.mass_matrix.LUsolve(rhs.subs(still))
        rate = sum(sp.diff(energy, q) * v for q, v in zip(e.q, e.speeds, strict=True))
        return sp.simplify(rate + sum(sp.diff(energy, v) * a for v, a in zip(e.speeds, u_dot, strict=True)))

    assert power(e.right_hand_side) == 0
    printed = e.right_hand_side.copy()
    printed[1] = printed[1] - thd**2 * (J2 - J3) * sp.sin(2 * al) / 2  # Eq. 90b lacks this term
    assert sp.expand(printed[1] - L_p**2 * m_p * sp.sin(2 * al) * thd**2 / 8).has(J2) is False
    assert power(printed) != 0
    left = J2 * sp.sin(al) ** 2 + J3 * sp.cos(al) ** 2 + names["J_r3"] + L_p**2 * m_p * sp.sin(al) ** 2 / 4
    assert sp.expand(e.mass_matrix[0, 0] - left - L_r**2 * m_p - L_r**2 * names["m_r"] / 4) == 0  # Eq. 90a
    assert th not in e.mass_matrix.free_symbols


def kane(n):
    """SymPy's own equations of the chain, by Kane's method."""
    q, u = me.dynamicsymbols(f"q1:{n + 1}"), me.dynamicsymbols(f"u1:{n + 1}")
    g = sp.Symbol("g", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    frame, point, particles, loads = N, O, [], []
    for k in range(n):
        m, l = sp.symbols(f"m{k + 1} l{k + 1}", positive=True)
        frame = frame.orientnew(f"F{k}", "axis", [q[k], N.z])
        frame.set_ang_vel(N, sum(u[: k + 1]) * N.z)
        new = point.locatenew(f"P{k}", l * frame.x)
        new.v2pt_theory(point, N, frame)
        particles.append(me.Particle(f"p{k}", new, m))
        loads.append((new, m * g * N.x))
        point = new
    method = me.KanesMethod(N, q_ind=q, u_ind=u, kd_eqs=[a.diff() - b for a, b in zip(q, u, strict=True)])
    method.kanes_equations(particles, loads)
    return method, q, u


def test_the_chain_is_that_of_sympys_kanes_method_at_exact_points():
    n = 3
    method, q, u = kane(n)
    e = equations(chain(n))
    point = exact_point(e)
    named = {str(s): v for s, v in point.items()}
    values = {
        s: named[s.name]
        for s in method.mass_matrix.free_symbols | method.forcing.free_symbols
        if hasattr(s, "name") and s.name in named
    }
    values |= {q[k]: named.get(f"q{k + 1}", 0) for k in range(n)} | {
        u[k]: named[f"q{k + 1}_dot"] for k in range(n)
    }
    np.testing.assert_allclose(numbers(e.mass_matrix, point), numbers(method.mass_matrix, values), rtol=1e-14)
    np.testing.assert_allclose(numbers(e.right_hand_side, point), numbers(method.forcing, values), rtol=1e-13)


def test_angles_of_parallel_axes_add_and_squares_fold():
    e = equations(chain(2))
    q1, q2 = e.q
    assert e.mass_matrix.atoms(sp.sin, sp.cos) == {sp.cos(q2)}
    assert sp.sin(q1 + q2) in e.right_hand_side.atoms(sp.sin)


def test_twenty_links_stay_short_and_give_the_references_numbers():
    e = equations(chain(20))
    operations = e.count_operations()
    assert e.mass_matrix.shape == (20, 20)
    assert operations < 12_000
    values = (
        {s: 0.3 for s in (*e.symbols.q, *e.symbols.u)}
        | {"g": 9.81}
        | {f"{x}{k}": 0.5 for x in "ml" for k in range(1, 21)}
    )
    M, r = e.evaluate(values)
    numeric = chain(20).subs({name: values[name] for name in chain(20).symbols})
    q, v = np.full(20, 0.3), np.full(20, 0.3)
    np.testing.assert_allclose(M, zw.mass_matrix(numeric, q), rtol=1e-11)
    np.testing.assert_allclose(r, -zw.bias_forces(numeric, q, v), rtol=1e-10, atol=1e-10)


def test_the_bicycles_numbers_agree_with_the_multiplier_way():
    p = {
        k: v
        for k, v in case("nonholonomic", "B01_whipple_linear")["parameters"].items()
        if isinstance(v, float | int)
    }
    e = equations(whipple(), ["roll", "steer", "rear"])
    state = {
        "x": 0.0,
        "y": 0.0,
        "z": 0.02,
        "yaw": 0.4,
        "roll": 0.1,
        "pitch": 0.03,
        "rear": 0.0,
        "steer": 0.2,
        "front": 0.0,
    }
    M, r, v = e.evaluate({**p, **state, "roll_dot": 0.1, "steer_dot": 0.2, "rear_dot": -10.0},
                         "mass_matrix", "right_hand_side", "velocities")  # fmt: skip
    machine = whipple(p)
    found = zw.constrained_dynamics(machine, [state[n] for n in machine.coordinate_names], v, np.zeros(9))
    np.testing.assert_allclose(np.linalg.solve(M, r), found.acceleration[[4, 7, 6]], rtol=1e-8)


def test_constraint_forces_and_multipliers_are_those_of_the_pendulum():
    """IMECE 2021-72324, Sec. 2: the force on the particle is -m (l thd^2 + g cos th) along the rod."""
    m, l, g = sp.symbols("m l g", positive=True)
    bob = Body("bob", Revolute("theta", axis=(0, 0, 1)), mass=m, com=(l, 0, 0))
    e = equations(Mechanism("pendulum", (bob,), gravity=(g, 0, 0)))
    (th,), (thd,) = e.q, e.speeds
    assert e.accelerations[0] == -g * sp.sin(th) / l
    force = e.constraint_forces.subs(dict(zip(e.u_dot, e.accelerations, strict=True)))
    radial = -m * (l * thd**2 + g * sp.cos(th))
    assert (
        sp.simplify(force[0] - radial * sp.cos(th)) == 0 and sp.simplify(force[1] - radial * sp.sin(th)) == 0
    )


def test_the_force_of_the_knife_edge_is_the_multiplier():
    e = equations(sleigh(), SLEIGH_SPEEDS)
    c = case("nonholonomic", "A04_chaplygin_sleigh_rotor")
    p = {k: v for k, v in c["parameters"].items() if isinstance(v, float)}
    point = {"x": 0, "y": 0, **c["reference"]["points"][0]}
    known = {
        **p,
        **point,
        "u_dot": point["acc"][0],
        "theta_ddot": point["acc"][1],
        "delta_ddot": point["acc"][2],
    }
    lam = e.multipliers["knife_edge"][0]
    value = float(lam.subs({s: known[s.name] for s in lam.free_symbols}))
    machine = sleigh().subs(p)
    v = [float(x.subs({s: known[s.name] for s in x.free_symbols})) for x in e.velocities]
    found = zw.constrained_dynamics(machine, [0, 0, point["theta"], point["delta"]], v, np.zeros(4))
    assert value == pytest.approx(found.forces["knife_edge"].item(), rel=1e-10)


def test_a_weld_of_two_rotors_adds_their_inertias_and_transmits_the_torque():
    I, J = sp.symbols("I J", positive=True)
    bodies = [
        Body(name, Revolute(name, axis=(0, 0, 1)), inertia=(1, 1, x)) for name, x in (("a", I), ("b", J))
    ]
    m = Mechanism("rotors", bodies, forces=[zw.Motor("T", "a")],
                  constraints=[zw.Weld("clutch", "a", "b")])  # fmt: skip
    for form in ("auto", "cse"):
        e = equations(m, ["a"], form=form)
        (T,) = e.symbols.inputs.values()
        assert e.mass_matrix == sp.Matrix([[I + J]]) and e.right_hand_side == sp.Matrix([T])
        (multiplier,) = e.multipliers["clutch"].subs(e.u_dot[0], T / (I + J))
        assert sp.simplify(multiplier / 2 + J * T / (I + J)) == 0  # the row is half the angular velocity
    assert zw.check_equations(m, [(I + J) * sp.Symbol("a_ddot") - T], ["a"])


def test_the_equations_of_a_loop_closed_by_a_weld_are_those_of_its_rows():
    """The weld's rows in equations contain no quaternion, those of constrained dynamics do."""
    X, Y, Z, I = (1, 0, 0), (0, 1, 0), (0, 0, 1), sp.Symbol("I", positive=True)
    plate = Body("plate", (zw.Prismatic("x", X), zw.Prismatic("y", Y), Revolute("th", Z)), mass=1,
                 com=(0.1, 0.2, 0), inertia=(1, 1, I))  # fmt: skip
    arm = Body("arm", Revolute("p", Z), mass=1, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    hand = Body("hand", Revolute("r", Z), "arm", (0.5, 0, 0), mass=0.4, com=(0.2, 0.1, 0), inertia=(1, 1, 1))
    weld = zw.Weld("w", "hand", "plate", (0.1, 0.2, 0), (0.8, 0, 0, 0.6), (0.05, 0, 0), torque_scale=0.7)
    m = Mechanism("arm", (plate, arm, hand), gravity=(0, -9.81, 0), constraints=(weld,))
    numeric = m.subs({"I": 0.2})
    q, v = zw.assemble(numeric, [0.5, 0.1, -1.2, 0.3, 0.4], [0, 0, 0, 1.1, -0.7])
    rows = zw.constrained_dynamics(numeric, q, v, np.zeros(5), coordinate_reduction=True)
    e = equations(m, ["p", "r"], form="cse")
    values = {"I": 0.2, **dict(zip(m.coordinate_names, q, strict=True)), "p_dot": v[3], "r_dot": v[4]}
    mass, right = e.evaluate(values)
    np.testing.assert_allclose(np.linalg.solve(mass, right), rows.acceleration[3:], rtol=1e-10)
    values |= {"p_ddot": rows.acceleration[3], "r_ddot": rows.acceleration[4]}
    forces = e.multipliers["w"].xreplace({s: values[s.name] for s in e.multipliers["w"].free_symbols})
    np.testing.assert_allclose(np.array(forces, float)[:, 0], rows.forces["w"][[0, 1, 5]], rtol=1e-10)


@pytest.mark.parametrize("ground", ["rocker", "world"])
def test_six_bars_that_their_crank_drives_move_as_by_multipliers(ground):
    """Those of Watt (rocker) and Stephenson (world): some orders of pivots divide by zero."""

    def bar(name, parent, position, length):
        x = length / 2
        return Body(
            name, Revolute(name, (0, 0, 1)), parent, position, mass=1, com=(x, 0, 0), inertia=(1, 1, 0.1)
        )

    bars = [
        bar("crank", "world", (0, 0, 0), 0.4), bar("coupler", "crank", (0.4, 0, 0), 1),
        bar("rocker", "world", (1.1, 0, 0), 0.8), bar("link5", "coupler", (0.5, 0.4, 0), 0.9),
        bar("link6", ground, (0.4, 0.3, 0) if ground == "rocker" else (1.6, 0.6, 0), 0.7),
    ]  # fmt: skip
    pins = [zw.Connect("pin1", ("coupler", (1, 0, 0)), ("rocker", (0.8, 0, 0))),
            zw.Connect("pin2", ("link5", (0.9, 0, 0)), ("link6", (0.7, 0, 0)))]  # fmt: skip
    m = Mechanism("six-bar", bars, gravity=(0, -9.81, 0), constraints=pins)
    q, v = zw.assemble(m, [1, -0.6, 1.3, 0.3, 1.9], [1, 0, 0, 0, 0])
    expected = zw.constrained_dynamics(m, q, v, np.zeros(5)).acceleration[0]
    values = {**dict(zip(m.coordinate_names, q, strict=True)), "crank_dot": v[0]}
    closed = m.replace(home=tuple(q))
    for machine, method in ((m, "projection"), *((closed, method) for method in METHODS)):
        mass, right = equations(machine, ["crank"], method, form="cse").evaluate(values)
        np.testing.assert_allclose(right / mass[0], [expected], rtol=1e-9)
        assert mass[0, 0] * v[0] ** 2 / 2 == pytest.approx(zw.energy(m, q, v)[0], rel=1e-9)


def test_pandas_mass_matrix_is_printed_on_two_pages(tmp_path):
    c = case("robot_dynamics", "F_panda")
    (tmp_path / "panda.urdf").write_text(c["parameters"]["urdf"])
    robot = zw.load(tmp_path / "panda.urdf", strict=False)
    e = equations(robot)
    text = mass_matrix_latex(e)
    defined, M = e.mass_matrix_cse()
    characters = sum(len(str(x)) + 8 for _, x in defined) + sum(
        len(str(M[i, j])) for i in range(M.rows) for j in range(i, M.cols)
    )
    assert characters < 2 * 60 * 95, "two pages of 60 lines of 95 characters"
    assert len(defined) < 300 and "panda" in text
    q = np.linspace(0.1, 0.9, robot.nq)
    values = {s: x for s, x in zip(e.symbols.q, q, strict=True)} | {s: 0.0 for s in e.symbols.u}
    V = np.vstack([np.eye(8), np.eye(8)[7]])  # finger 2 mimics finger 1
    np.testing.assert_allclose(
        e.evaluate(values)[0], V.T @ zw.mass_matrix(robot, q) @ V, rtol=1e-9, atol=1e-12
    )


def test_names_from_files_are_text_in_every_output():
    evil = r"\input{x}$<script>_{^&"
    body = Body(
        evil, Revolute(evil, axis=(0, 0, 1)), mass=sp.Symbol(evil + "m", positive=True), com=(1, 0, 0)
    )
    e = equations(Mechanism(evil, (body,), gravity=(0, -1, 0)))
    assert r"\input" not in e.latex(report=True).replace(r"\textbackslash{}input", "")
    assert "<script>" not in e.html()
    space: dict = {}
    exec(e.sympy(), space)  # our own output: names are only strings in it
    assert sp.simplify(space["M"][0] - e.mass_matrix[0]) == 0
    assert evil in e.text()


@pytest.mark.parametrize("derive", [zw.equations, zw.classify])
def test_without_joints_there_is_nothing_to_derive(derive):
    with pytest.raises(DescriptionError, match="'block' has no joint that moves"):
        derive(Mechanism("block", (Body("b", zw.Fixed(), mass=1),)))


def test_wrong_calls_say_what_is_right():
    with pytest.raises(UnknownNameError, match="projection"):
        equations(furuta(), method="kane")
    with pytest.raises(UnknownNameError, match="alpha"):
        equations(furuta(), speeds=["beta"])
    with pytest.raises(DescriptionError, match="3 degrees of freedom"):
        equations(sleigh(), ["theta", "delta"])
    with pytest.raises(DescriptionError, match="dependent"):
        equations(sleigh(), [*SLEIGH_SPEEDS[:1], "theta", "theta"])
    with pytest.raises(ParameterError, match="m_p"):
        equations(furuta()).evaluate({"alpha": 1.0})


def pendulum(joint="a", motor="tau", mass=1, **parts):
    """A point mass at the distance 1 below a motor."""
    bob = Body("bob", Revolute(joint, axis=(0, 1, 0)), mass=mass, com=(0, 0, -1))
    return Mechanism("pendulum", [bob], gravity=(0, 0, -10), forces=[zw.Motor(motor, joint)], **parts)


@pytest.mark.parametrize(
    "m, symbol",
    [(pendulum(motor="a"), "u_a"), (pendulum(motor="a_dot"), "u_a_dot"), (pendulum(motor="b"), "b"),
     (pendulum(mass=sp.Symbol("tau", positive=True)), "u_tau")],
)  # fmt: skip
def test_an_input_is_another_symbol_than_the_coordinate_of_its_name(m, symbol):
    (motor,) = m.inputs
    known = {symbol: 3.0, "a": 0.5, "a_dot": 7.0, "tau": 1.0}
    for form in ("expanded", "cse"):
        e = equations(m, form=form)
        assert e.symbols.inputs[motor].name == symbol
        (force,) = e.evaluate(known, "right_hand_side")
        np.testing.assert_allclose(force, [3 - 10 * np.sin(0.5)], rtol=1e-12)


def test_inputs_whose_names_are_preceded_by_u_stay_apart():
    m = pendulum(motor="a").replace(forces=[zw.Motor(name, "a") for name in ("a", "u_a", "u_u_a")])
    e = equations(m)
    names = [e.symbols.inputs[motor].name for motor in ("a", "u_a", "u_u_a")]
    assert names == ["u_u_u_a", "u_a", "u_u_a"]
    known = dict(zip(names, (3.0, 40.0, 500.0), strict=True))
    (force,) = e.evaluate({"a": 0.5, "a_dot": 7.0, **known}, "right_hand_side")
    assert force == pytest.approx(543 - 10 * np.sin(0.5), rel=1e-12)


def test_names_of_two_quantities_are_refused():
    x, y = sp.symbols("x y", real=True)
    joints = [zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("y", (0, 1, 0)), Revolute("yaw", (0, 0, 1))]
    skate = Mechanism("skate", [Body("skate", joints, mass=1)], constraints=[zw.NoSideSlip("edge", "skate")])
    second = Body("second", Revolute("a_dot"), "bob", mass=1, inertia=(1, 1, 1))
    wire = [zw.Holonomic("x", y - x**2), zw.CoulombFriction("guide", 0.2, joint="x"),
            zw.CoulombFriction("wire", 0.2, constraint="x", sliding={"x": 1})]  # fmt: skip
    bead = Mechanism("bead", [Body("bead", joints[:2], mass=1)], constraints=wire)
    for m, speeds, name in (
        (pendulum(mass=sp.Symbol("a", positive=True)), None, "a"),
        (pendulum().replace(bodies=[*pendulum().bodies, second]), None, "a_dot"),
        (skate, [zw.PointSpeed("x", "skate"), "yaw"], "x"),
        (bead, None, "N_x"),
    ):
        with pytest.raises(DescriptionError, match=f"the symbol '{name}' has two meanings"):
            equations(m, speeds)
    equations(pendulum("t"))  # nothing depends on the time


def test_a_free_body_has_eulers_equations():
    J = sp.symbols("J1:4", positive=True)
    e = equations(Mechanism("top", (Body("b", Free("base"), mass=2, inertia=J),), gravity=(0, 0, -10)))
    wx, wy, wz = e.speeds[3:]
    assert e.mass_matrix == sp.diag(2, 2, 2, *J)
    assert sp.expand(e.right_hand_side[3] - (J[1] - J[2]) * wy * wz) == 0
    assert e.right_hand_side[2] == -20
    assert wx in e.right_hand_side[4].free_symbols


def test_nonideal_forces_contain_the_magnitude_of_the_constraint_force():
    """A bead on a rough rod that turns at a constant rate: m r'' = m omega^2 r - mu N sign(r')."""
    m, omega, mu = sp.symbols("m omega mu", positive=True)
    turn, t, N = sp.symbols("turn t N", real=True)
    rod = Body("rod", Revolute("turn", axis=(0, 0, 1)), inertia=(1, 1, 1))
    bead = Body("bead", zw.Prismatic("r", axis=(1, 0, 0)), "rod", mass=m)
    constraints = (zw.Holonomic("drive", turn - omega * t), zw.NonIdeal("friction", "drive", {"r": -mu * N}))
    e = equations(Mechanism("rod", (rod, bead), gravity=(0, 0, 0), constraints=constraints), ["r"])
    (_, r), (rate,) = e.q, e.speeds
    (size,) = e.symbols.force_magnitudes.values()
    assert sp.expand(e.right_hand_side[0] - m * omega**2 * r + mu * size) == 0
    assert sp.expand(e.multipliers["drive"][0] - 2 * m * omega * r * rate) == 0
    assert e.generalized_forces["NonIdeal friction"][0] == -mu * size
    assert e.velocity_offset[5] == omega


def test_a_description_with_formulas_survives_json_and_keeps_its_parameters_apart():
    m = sleigh().replace(
        constraints=(
            zw.Pfaffian(
                "edge", {"x": sp.sin(sp.Symbol("theta", real=True)), "y": -sp.Symbol("b", positive=True)}
            ),
        )
    )
    again = Mechanism.from_json(m.to_json())
    assert again == m
    assert "b" in m.symbols and "theta" not in m.symbols


def driven(joint, first=None):
    """A body on a joint under test, with dampers, wrenches and perhaps another body before it."""
    base = Body("base", first, mass=2.0, com=(0.1, 0, 0.2), inertia=(0.3, 0.4, 0.5)) if first else None
    name = joint.name if not isinstance(joint, tuple) else joint[-1].name
    joints = joint if isinstance(joint, tuple) else (joint,)
    body = Body(
        "body",
        joint,
        "base" if base else "world",
        (0.3, -0.2, 0.1),
        mass=1.5,
        com=(0.1, 0.2, -0.1),
        inertia=(0.2, 0.3, 0.4),
    )
    forces = [zw.Damper(j.name, 0.7 + k) for k, j in enumerate((*joints, *([first] if first else [])))]
    forces += [
        zw.Wrench("body", (1, 2, 3), (0.1, -0.2, 0.3), (0.2, 0, 0), axes="body"),
        *([zw.Motor("drive", joint=name)] if joints[-1].nv == 1 else []),
    ]
    return Mechanism(
        "driven", tuple(b for b in (base, body) if b), gravity=(0, 0, -9.81), forces=tuple(forces)
    )


JOINTS = {
    "planar": zw.Planar("j"), "universal": zw.Universal("j"),
    "cylindrical": zw.Cylindrical("j", axis=(0, 1, 0)),
    "screw": zw.Screw("j", pitch=0.3), "ball": zw.Ball("j"), "free": zw.Free("j"),
    "prismatic and revolute": (
        zw.Prismatic("a", axis=(1, 0, 0)), zw.Prismatic("b", axis=(0, 0, 1)),
        zw.Revolute("c", axis=(0, 1, 0)),
    ),
    "three revolute": (
        zw.Revolute("a", axis=(0, 0, 1)), zw.Revolute("b", axis=(1, 0, 0)), zw.Revolute("c", axis=(0, 1, 0)),
    ),
    "offset": (zw.Prismatic("a", axis=(1, 0, 0)), zw.Revolute("b", axis=(0, 0, 1), position=(0.3, 0, 0))),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINTS)
@pytest.mark.parametrize("first", [None, Revolute("first", axis=(0, 1, 0))], ids=["alone", "second"])
def test_gamma_and_what_is_beside_it_give_all_generalised_forces(name, first):
    """B^T Gamma + joint_space_forces = J^T weights + springs, dampers, wrenches, motors."""
    m = driven(JOINTS[name], first)
    e = equations(m, form="cse")
    rng = np.random.default_rng(5)
    known = {
        s.name: float(x)
        for s, x in zip(
            (*e.symbols.q, *e.symbols.u, *e.symbols.inputs.values()), rng.normal(size=60), strict=False
        )
    }
    quaternion = [s.name for s in e.symbols.q if s.name[-3:] in (".qw", ".qx", ".qy", ".qz")]
    length = np.sqrt(sum(known[n] ** 2 for n in quaternion))
    known |= {n: known[n] / length for n in quaternion}
    B, Gamma, rest = e.evaluate(known, "B", "Gamma", "joint_space_forces")
    whole = e._quantities.form.values(e._quantities.state.generalized_forces, known)
    weights = np.concatenate([[0, 0, -9.81 * s.mass, 0, 0, 0] for s in m.tree.rigid_bodies])
    np.testing.assert_allclose(B.T @ Gamma + rest, B.T @ weights + whole, atol=1e-12)
    if name in ("planar", "universal", "free", "prismatic and revolute", "ball"):
        assert not rest.any(), "all of it acts on bodies"


def test_gamma_has_the_force_of_a_jet_within_the_range_of_its_joint_and_the_compensation_of_gravity():
    """B^T Gamma of a rod of length 1 with a jet at its end and actuators that carry its weight m g / 2."""
    hinge = zw.Revolute("a", axis=(0, -1, 0), actuator_range=(-6, 6), actuator_gravity_compensation=True)
    rod = zw.Body("rod", hinge, mass=1, com=(0.5, 0, 0), inertia=(0, 0.1, 0.1))
    jet = zw.Actuator("jet", frame="tip", gear=(0, 0, 1, 0, 0, 0))
    forces = (jet, zw.GravityCompensation("rod", 1))
    m = zw.Mechanism(
        "rod", (rod,), frames=(zw.Frame("tip", "rod", (1, 0, 0)),), forces=forces, gravity=(0, 0, -10)
    )
    free = m.replace(bodies=(replace(rod, joint=replace(hinge, actuator_range=None)),))
    for mechanism, push, expected in ((m, 2.0, 6.0), (m, -3.0, 2.0), (free, 2.0, 7.0)):
        e = equations(mechanism)
        known = dict(zip((*e.symbols.q, *e.symbols.u, *e.symbols.inputs.values()), (0, 0, push), strict=True))
        assert float((e.B.T * e.Gamma + e.joint_space_forces).subs(known)[0]) == pytest.approx(expected - 5)
        assert float(e.right_hand_side.subs(known)[0]) == pytest.approx(expected - 5)
        assert float(e.generalized_forces["GravityCompensation rod"].subs(known)[0]) == pytest.approx(5)


def test_omitted_constraints_are_reported():
    soft = zw.JointCoupling("gear", "theta", "alpha", softness=zw.Softness())
    with pytest.warns(zw.errors.ZwangWarning, match="gear"):
        equations(furuta().replace(constraints=(soft,)))
    muscle = zw.Actuator("flexor", "theta", activation=("filter", (0.1,)))
    with pytest.warns(zw.errors.ZwangWarning, match="the activation 'flexor', which is taken as 0"):
        equations(furuta().replace(forces=(muscle,)))
    rope = zw.Tendon("rope", joints=(("alpha", 1.0),), friction=0.5)
    with pytest.warns(zw.errors.ZwangWarning, match="dry friction of tendon 'rope'"):
        equations(furuta().replace(tendons=(rope,)))


def test_a_joint_carries_what_its_bodies_need():
    """About the axis the reaction is motor minus damper; along the rod it is the rod's force."""
    m, l, g, B = sp.symbols("m l g B", positive=True)
    bob = Body("bob", Revolute("theta", axis=(0, 0, 1)), mass=m, com=(l, 0, 0), inertia=(0, 0, 0))
    forces = (zw.Motor("tau", "theta"), zw.Damper("theta", B))
    e = equations(Mechanism("pendulum", (bob,), gravity=(g, 0, 0), forces=forces))
    (th,), (thd,) = e.q, e.speeds
    force, torque = (
        x.subs(dict(zip(e.u_dot, e.accelerations, strict=True))) for x in e.joint_reactions["theta"]
    )
    tau = e.symbols.inputs["tau"]
    assert sp.simplify(torque[2] - tau + B * thd) == 0
    radial = force[0] * sp.cos(th) + force[1] * sp.sin(th)
    assert sp.simplify(radial + m * (l * thd**2 + g * sp.cos(th))) == 0


@pytest.mark.parametrize("flag", ["equality", "constraint"])
def test_constraints_that_the_options_disable_are_in_no_equations(flag):
    """A particle in space with a knife edge, a guide and friction on it is a free particle."""
    N, g, slides = sp.Symbol("N"), sp.Symbol("g"), [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    joints = tuple(zw.Prismatic(n, axis=a) for n, a in zip("xyz", slides, strict=True))
    constraints = [
        zw.Pfaffian("edge", {"z": 1, "x": -sp.Symbol("y")}),
        zw.Holonomic("guide", sp.Symbol("x") - 1),
        zw.NonIdeal("friction", "guide", {"y": -0.3 * N}),
        zw.CoulombFriction("rough", 0.3, constraint="guide", sliding={"y": 1}),
    ]
    free = Mechanism("particle", [Body("particle", joints, mass=2)], gravity=(0, 0, -g))
    m = free.replace(constraints=constraints, options=zw.Options(disabled=(flag,)))
    e, expected = equations(m), equations(free)
    assert e.speeds == expected.speeds and not e.symbols.force_magnitudes
    assert (e.mass_matrix, e.right_hand_side) == (expected.mass_matrix, expected.right_hand_side)
    assert zw.classify(m).degrees_of_freedom == 3
    model = zw.linearize(m, [0, 1, 0], [1, 0, 0])
    assert model.states == zw.linearize(free, [0, 1, 0]).states and len(model.states) == 6
    q, v = zw.assemble(m.subs({"g": 9.81}), [0, 1, 0], [1, 0, 0])
    assert q.tolist() == [0, 1, 0] and v.tolist() == [1, 0, 0]
