"""Symbolic joint reactions with loops, knife edges and point springs, against the float reference."""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.cases import case
from tests.symbolic.machines import SLEIGH_SPEEDS, X, Y, Z, positive, sleigh
from zwang.errors import DescriptionError, ParameterError, UnknownNameError
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.scalar.pytree import structure_of
from zwang.symbolic.equation_quantities import QUANTITIES
from zwang.symbolic.equations import equations
from zwang.symbolic.expression_forms import float_value


def rod(name, length, parent="world", position=(0, 0, 0), mass=1):
    third = mass * length**2 / 12
    return zw.Body(
        name,
        zw.Revolute(name, axis=Z),
        parent,
        position,
        mass=mass,
        com=(length / 2, 0, 0),
        inertia=(0, third, third),
    )


def four_bar():
    """A crank, a coupler and a rocker with symbols, a spring to the ground, and an input wrench."""
    m, L, g, k = positive("m L g k")
    bars = (
        rod("crank", L, mass=m),
        rod("coupler", 3 * L, "crank", (L, 0, 0), m),
        rod("rocker", 2 * L, position=(3 * L, 0, 0), mass=m),
    )
    pin = zw.Connect("pin", ("coupler", (3 * L, 0, 0)), ("rocker", (2 * L, 0, 0)))
    forces = (
        zw.PointSpring(("coupler", (L, 0, 0)), ("world", (0, 2 * L, 0)), k, L), zw.Motor("drive", "crank"),
        zw.Wrench("rocker", (1, 0, 0), point=(L, 0, 0), input="gust"),
    )  # fmt: skip
    return zw.Mechanism("four-bar", bars, gravity=(0, -g, 0), forces=forces, constraints=(pin,))


def four_bar_state(parameters):
    numbers = four_bar().subs(parameters)
    q, v = zw.assemble(numbers, [1.0, -0.6, 1.7], [1.5, -1.0, 0.3])
    return numbers, q, v


def test_the_pins_of_a_four_bar_carry_what_the_float_reference_says():
    parameters = {"m": 0.7, "L": 0.4, "g": 9.81, "k": 30.0}
    numbers, q, v = four_bar_state(parameters)
    control = {"drive": 1.3, "gust": 2.0}
    e = equations(four_bar(), ["crank"], form="cse")
    known = (
        parameters | control | dict(zip(("crank", "coupler", "rocker"), q, strict=True)) | {"crank_dot": v[0]}
    )
    M, r = e.evaluate(known)
    known["crank_ddot"] = (r / M).item()
    expected = zw.joint_reactions(numbers, q, v, np.zeros(3), control=control)
    assert known["crank_ddot"] == pytest.approx(expected.acceleration[0])
    for name, (force, torque) in e.joint_reactions.items():
        found = [float_value(x, known) for x in (force[0], force[1], torque[2])]
        wanted = [*expected.joints[name].force[:2], expected.joints[name].torque[2]]
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_on_a_sleigh_the_hull_carries_the_rotor_and_the_knife_edge():
    """The knife edge acts on the hull, not through the rotor's pin; planar joints carry no planar force."""
    e = equations(sleigh(), SLEIGH_SPEEDS)
    force, torque = e.joint_reactions["delta"]
    d, (k_1, k_2) = e.q[3], positive("k_1 k_2")
    named = sorted(e.right_hand_side.free_symbols | e.mass_matrix.free_symbols | {*e.q}, key=str)
    values = {s: sp.Rational(k + 3, 7) for k, s in enumerate(named)}
    u_dot = e.mass_matrix.subs(values).evalf(40).LUsolve(e.right_hand_side.subs(values).evalf(40))
    values |= dict(zip(e.u_dot, u_dot, strict=True))
    spring = -2 * k_1 * d - 4 * k_2 * d**3
    assert abs(sp.N((torque[2] - spring).subs(values), 30)) < 1e-25, (
        "about the pin the spring, and nothing else"
    )
    left = [sp.N(x.subs(values), 30) for x in e.joint_reactions["theta"][0]]
    assert max(abs(x) for x in left[:2]) < 1e-25
    assert force[2] == 0


def test_springs_between_points_act_on_bodies_in_gamma():
    """A particle on a spring: Gamma contains the spring's force, and constraint forces vanish."""
    m, k = positive("m k")
    slides = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=(0, 1, 0)))
    body = zw.Body("p", slides, mass=m, inertia=(1, 1, 1))
    spring = zw.PointSpring(("p", (0, 0, 0)), ("world", (0, 0, 0)), k)
    e = equations(zw.Mechanism("p", (body,), gravity=(0, 0, 0), forces=(spring,)))
    x, y = e.q
    assert [sp.simplify(e.Gamma[0] + k * x), sp.simplify(e.Gamma[1] + k * y)] == [0, 0]
    free = [
        sp.simplify(c.subs(dict(zip(e.u_dot, e.accelerations, strict=True)))) for c in e.constraint_forces
    ]
    assert free == [0] * 6


def test_of_constraints_that_say_the_same_the_first_carries_the_force():
    m, L, g = positive("m L g")
    slides = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=(0, 1, 0)))
    rods = [zw.Distance(name, ("bob", (0, 0, 0)), ("world", (0, 0, 0)), L) for name in ("first", "second")]
    bob = zw.Body("bob", slides, mass=m, inertia=(1, 1, 1))
    both = zw.Mechanism("bob", (bob,), gravity=(0, -g, 0), constraints=tuple(rods), home=(1, 0))
    e = equations(both, ["y"])
    assert {name: x.shape for name, x in e.multipliers.items()} == {"first": (1, 1), "second": (0, 1)}
    assert "second" not in e.latex(report=True)
    known = {"m": 2.0, "L": 1.0, "g": 9.81, "x": 0.6, "y": -0.8, "y_dot": 0.3}
    M, r = e.evaluate(known)
    known["y_ddot"] = (r / M).item()
    carried = [float_value(x, known) for x in e.joint_reactions["y"][0]]
    np.testing.assert_allclose(carried, 0, atol=1e-12)
    speed = 0.3**2 + (0.3 * 0.8 / 0.6) ** 2
    assert float_value(e.multipliers["first"][0], known) == pytest.approx(-2.0 * (9.81 * 0.8 + speed))
    law = zw.CoulombFriction("rubbing", 0.3, constraint="second", sliding={"y": 1})
    rubbing = equations(both.replace(constraints=(*rods, law)), ["y"])
    with pytest.raises(ParameterError, match=r"N_second, .* of constraint 'second', .* redundant"):
        rubbing.split_constraint_forces(known)


def parallelogram(home):
    """A parallelogram with a third crank: one row more than it needs."""
    m, L, g = positive("m L g")
    bars = [
        rod("left", L, mass=m),
        rod("top", 2 * L, "left", (L, 0, 0), m),
        rod("mid", L, position=(L, 0, 0), mass=m),
    ]
    bars.append(rod("right", L, position=(2 * L, 0, 0), mass=m))
    pins = [zw.Connect("a", ("top", (L, 0, 0)), ("mid", (L, 0, 0)))]
    pins.append(zw.Connect("b", ("top", (2 * L, 0, 0)), ("right", (L, 0, 0))))
    return zw.Mechanism("parallel", tuple(bars), gravity=(0, -g, 0), constraints=tuple(pins), home=home)


def test_an_over_constrained_loop_has_equations_and_its_joints_carry_power_to_no_one():
    machine = parallelogram((sp.pi / 3, -sp.pi / 3, sp.pi / 3, sp.pi / 3))
    found = zw.classify(machine)
    assert (found.degrees_of_freedom, found.reachable_dimension) == (1, 1)
    assert [c.independent for c in found.constraints.values()] == [2, 1]
    e = equations(machine, ["left"], form="cse")
    theta, speed, parameters = 1.1, 0.7, {"m": 1.2, "L": 0.5, "g": 9.81}
    known = parameters | {"left": theta, "top": -theta, "mid": theta, "right": theta, "left_dot": speed}
    M, r = e.evaluate(known)
    q, v = np.array([theta, -theta, theta, theta]), speed * np.array([1, -1, 1, 1])
    numbers = machine.subs(parameters).replace(home=None)
    by_gauss = zw.constrained_dynamics(numbers, q, v, np.zeros(4)).acceleration
    assert (r / M).item() == pytest.approx(by_gauss[0], rel=1e-9)
    known["left_ddot"] = (r / M).item()
    torques = [float_value(torque[2], known) for _, torque in e.joint_reactions.values()]
    np.testing.assert_allclose(torques, 0, atol=1e-9)


def test_forces_of_a_roller_racer_are_evaluated_and_become_code_without_writing_them_out():
    """Written out its multipliers have 200,000 nodes, which SymPy substitutes one by one."""
    m, J, b, c, d, l = parameters = positive("m J b c d l")
    plane = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("th", axis=Z))
    seat = zw.Body("seat", plane, mass=m, com=(b, 0, 0), inertia=(J, J, J))
    hinge = zw.Revolute("phi", axis=Z)
    front = zw.Body("front", hinge, "seat", (d, 0, 0), mass=m / 4, com=(c, 0, 0), inertia=(J, J, J / 2))
    wheels = (zw.NoSideSlip("rear", "seat", direction=Y), zw.NoSideSlip("steered", "front", Y, (l, 0, 0)))
    racer = zw.Mechanism("racer", (seat, front), constraints=wheels)
    e = equations(racer, ["x", "phi"])
    assert e.form == "cse"
    numbers = dict(zip(map(str, parameters), (2.0, 0.3, 0.2, 0.1, 0.5, 0.3), strict=True))
    q = np.array([0.3, -0.2, 0.4, 0.6])
    known = numbers | dict(zip(racer.coordinate_names, q, strict=True)) | {"x_dot": 0.4, "phi_dot": -0.7}
    (v,) = e.evaluate(known, "velocities")
    expected = zw.constrained_dynamics(racer.subs(numbers), q, v, np.zeros(4))
    reactions = zw.joint_reactions(racer.subs(numbers), q, v, np.zeros(4)).joints
    known |= dict(zip(map(str, e.u_dot), expected.acceleration[[0, 3]], strict=True))
    forces, found, Q, B = e.evaluate(known, "multipliers", "joint_reactions", "constraint_forces", "B")
    for name in ("rear", "steered"):
        np.testing.assert_allclose(forces[name], expected.forces[name], rtol=1e-9)
    for name, (force, torque) in found.items():
        np.testing.assert_allclose(force, reactions[name].force, atol=1e-9)
        np.testing.assert_allclose(torque, reactions[name].torque, atol=1e-9)
    np.testing.assert_allclose(B.T @ Q, 0, atol=1e-9)  # constraint forces do no work
    definitions, (multipliers,) = e.cse("multipliers")
    assert len(definitions) < 100
    written, arguments = list(multipliers.values()), [*e.q, *e.speeds, *e.u_dot, *parameters]
    function = sp.lambdify(arguments, written, cse=lambda _: (definitions, written))
    computed = function(*(known[symbol.name] for symbol in arguments))
    np.testing.assert_allclose(np.ravel(computed), [forces[name][0] for name in multipliers], rtol=1e-12)


@pytest.mark.parametrize("form", ["expanded", "cse"])
def test_all_quantities_are_evaluated_and_in_terms_of_definitions_as_their_matrices(form):
    e = equations(sleigh(), SLEIGH_SPEEDS, form=form)
    known = {s.name: 0.3 + 0.1 * k for k, s in enumerate((*e.q, *e.speeds, *e.u_dot))}
    known |= {name: 0.7 + 0.1 * k for k, name in enumerate(sorted(e.mechanism.symbols))}
    found, (defined, written) = e.evaluate(known, *QUANTITIES), e.cse(*QUANTITIES)
    assert bool(defined) is (form == "cse")
    with_definitions = dict(known)
    for symbol, expression in defined:
        with_definitions[symbol.name] = float_value(expression, with_definitions)
    for name, value, formula in zip(QUANTITIES, found, written, strict=True):
        shown = getattr(e, name)
        assert structure_of(formula) == structure_of(shown), name
        matrices = zip(*map(matrices_of, (value, formula, shown)), strict=True)
        for numbers, *expressions in matrices:
            for x, values in zip(expressions, (with_definitions, known), strict=True):
                by_sympy = [float_value(entry, values) for entry in sp.Matrix([x])]
                np.testing.assert_allclose(np.ravel(numbers), by_sympy, rtol=1e-9, atol=1e-12, err_msg=name)
    with pytest.raises(UnknownNameError, match="multipliers"):
        e.evaluate(known, "multiplier")


def matrices_of(quantity):
    """The matrices of a quantity in order."""
    if isinstance(quantity, dict | tuple):
        children = quantity.values() if isinstance(quantity, dict) else quantity
        return [x for child in children for x in matrices_of(child)]
    return [quantity]


def test_the_report_of_large_equations_has_all_steps_in_its_own_definitions():
    e = equations(four_bar(), ["crank"], form="cse")
    defined, steps = e.cse_steps()
    titles = [step.title for step in steps]
    for part in (
        "Frame 2",
        "Angular velocity of coupler",
        "Generalised force of PointSpring",
        "Multipliers of constraint pin",
    ):
        assert any(part in title for title in titles), part
    known = {s: 0.3 + 0.1 * k for k, s in enumerate(sorted(map(str, symbols_of_all(e))))}
    values = dict(known)
    for symbol, expression in defined:
        assert not expression.is_Symbol, "a symbol needs no other name"
        values[symbol.name] = float_value(expression, values)
    compared = 0
    for step, plain in zip(steps, e.steps(), strict=True):
        if step.letter in (r"\mathbf{r}", r"\mathbf{Q}^c", r"E_{\text{kin}}", r"\boldsymbol{\lambda}_{1}"):
            compared += 1
            for x, y in zip(sp.Matrix([step.value]), sp.Matrix([plain.value]), strict=True):
                assert float_value(x, values) == pytest.approx(float_value(y, known), rel=1e-12, abs=1e-12)
    latex = e.latex(report=True)
    assert compared == 4
    first, last = (latex.index(text) for text in (r"\mathbf{R}^{(0,1)}", r"\boldsymbol{\lambda}_{1} &="))
    assert latex.index(r"x_{1} &=") < first < last


def symbols_of_all(e):
    return {*e.symbols.q, *e.symbols.u, *e.symbols.u_dot, *e.symbols.inputs.values(), *positive("m L g k")}


def test_muscles_around_bodies_have_equations_in_seconds_and_say_what_they_have_not():
    text = case("mujoco_oracle", "muscle_arm")["parameters"]["xml"]
    e = equations(read_mjcf("muscle_arm.xml", strict=False, text=text))
    assert e.form == "cse" and e.count_operations() < 5000
    assert all(value.is_Symbol is False for _, value in e.definitions)
    with pytest.raises(DescriptionError, match=r"zw\.joint_reactions"):
        _ = e.joint_reactions


SLED = """<mujoco><worldbody><site name="a" pos="-.3 0 .1"/><body><joint name="turn" axis="0 1 0"/>
<geom size=".05" mass="1" pos="SIDE"/><site name="side" pos="SIDE"/></body>
<body><joint name="slide" type="slide"/><geom name="ball" size=".1" mass="1"/></body>
<site name="b" pos=".3 0 .1"/></worldbody><tendon><spatial stiffness="1"><site site="a"/>
<geom geom="ball" sidesite="side"/><site site="b"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize("side", ["0 0 .3", "0 0 .05"])
def test_tendons_whose_side_frame_may_come_inside_are_refused(side):
    with pytest.raises(DescriptionError, match=r"side frame 'side'.*zw\.compile"):
        equations(read_mjcf("sled.xml", text=SLED.replace("SIDE", side)))


def test_actuators_on_tendons_have_their_generalised_forces():
    text = case("mujoco_oracle", "car")["parameters"]["xml"]
    e = equations(read_mjcf("car.xml", strict=False, text=text))
    forces = e.generalized_forces
    driven = forces["Actuator forward"]
    assert {s.name for s in driven.free_symbols} == {"forward"}
    assert sum(x != 0 for x in driven) == 2, "both wheels"


def test_friction_at_both_ends_of_a_ladder_takes_the_power_of_its_closed_form():
    """A ladder slides down a wall and out along a floor: five linear equations for the accelerations and both
    normal forces, each of which the friction of the other changes.
    """
    m, g, L, J, on_floor, on_wall, w = 2.0, 9.81, 0.8, 0.4, 0.4, 0.5, -0.5
    x, z, ph, N = sp.symbols("x z ph N", real=True)
    joints = (zw.Prismatic("x", axis=X), zw.Prismatic("z", axis=Z), zw.Revolute("ph", axis=(0, 1, 0)))
    constraints = [
        zw.Holonomic("wall", x - L * sp.cos(ph)),
        zw.Holonomic("floor", z - L * sp.sin(ph)),
        zw.NonIdeal("on floor", "floor", {"x": -on_floor * N, "ph": on_floor * N * L * sp.sin(ph)}),
        zw.NonIdeal("on wall", "wall", {"z": on_wall * N, "ph": on_wall * N * L * sp.cos(ph)}),
    ]
    ladder = zw.Mechanism(
        "ladder", [zw.Body("ladder", joints, mass=m, inertia=(J, J, J))], gravity=(0, 0, -g),
        constraints=constraints,
    )  # fmt: skip
    s, c = L * np.sin(0.9), L * np.cos(0.9)
    rows = [[m, 0, 0, -1, on_floor], [0, m, 0, -on_wall, -1],
            [0, 0, J, -s - on_wall * c, c - on_floor * s], [1, 0, s, 0, 0], [0, 1, -c, 0, 0]]  # fmt: skip
    wall, floor = np.linalg.solve(rows, [0, -m * g, 0, -c * w * w, -s * w * w])[3:]
    e = equations(ladder, ["ph"])
    found = e.split_constraint_forces({"ph": 0.9, "x": c, "z": s, "ph_dot": w})
    power = -on_floor * floor * (-2 * s * w) + on_wall * wall * 2 * c * w
    assert wall > 0 and floor > 0 and found.nonideal_power == pytest.approx(power, rel=1e-12)
    assert found.ideal_power == pytest.approx(0, abs=1e-12)


def test_the_magnitude_of_the_force_of_a_joint_is_asked_for():
    body = zw.Body("slide", zw.Prismatic("s", axis=X), mass=2.0)
    m = zw.Mechanism("slide", [body], constraints=[zw.CoulombFriction("rubbing", 0.3, joint="s")])
    e, known = equations(m), {"s": 0.0, "s_dot": 0.4}
    with pytest.raises(ParameterError, match="N_s, the magnitude of the force of joint 's'"):
        e.split_constraint_forces(known)
    power = e.split_constraint_forces({**known, "N_s": 2.0 * 9.81}).nonideal_power
    assert power == pytest.approx(-0.3 * 2.0 * 9.81 * 0.4)
