"""Recorded multipliers of constraints: the torque of a prescribed motion, in closed form and by its power."""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.api.test_constrained_inverse_dynamics import DAMPING, PISTON, closed_form, slider_crank

W = 4.0


def driven_crank(mass=PISTON) -> zw.Mechanism:
    """A slider-crank whose crank turns at a prescribed speed that varies."""
    m, t = slider_crank(mass), sp.Symbol("t")
    drive = zw.Holonomic("drive", sp.Symbol("crank") - W * t - sp.sin(3 * t) / 5)
    return m.replace(constraints=[*m.constraints, drive])


def turning(m, compiled=True, **more):
    q, v = zw.assemble(m, [0.0, 0.0, m.home[2]], [W + 0.6, 0, 0], time=0.0)
    record = {"every": 5, "multipliers": True, **more}
    return zw.simulate(m, q, v, duration=0.5, step=1e-3, integrator="rk4", record=record, compiled=compiled,
                       progress=False)  # fmt: skip


def test_the_torque_of_a_driven_slider_crank_is_its_closed_form():
    m = driven_crank()
    run = turning(m)
    torque, t = run.multiplier.sel(constraint_row="drive"), run.time.values
    assert list(run.constraint_row.values) == ["pin x", "pin y", "pin z", "drive"]
    assert list(run.row_constraint.values) == ["pin", "pin", "pin", "drive"]
    assert list(run.multiplier_unit.values) == ["N", "N", "N", "N m"]
    angle = W * t + np.sin(3 * t) / 5
    speed, rate = W + 0.6 * np.cos(3 * t), -1.8 * np.sin(3 * t)
    expected = [closed_form(*state) for state in zip(angle, speed, rate, strict=True)]
    np.testing.assert_allclose(torque.values[0], expected, rtol=1e-8, atol=1e-7)
    # the same by inverse dynamics of the mechanism without the drive, with a motor at the crank
    motor = zw.inverse_dynamics(slider_crank(), angle, speed, rate, independent="crank")
    np.testing.assert_allclose(torque.values[0], motor.force("crank"), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(run.multiplier.values[0, :, :3], motor.constraint_force("pin"), atol=1e-7)
    # virtual work: the power of the drive is the change of the energy and what the damper takes
    speeds = run.v.values[0]
    power = np.gradient(run.energy.values[0], t, edge_order=2) + DAMPING * speeds[:, 2] ** 2
    np.testing.assert_allclose(torque.values[0] * speeds[:, 0], power, atol=2e-2 * np.abs(power).max())


def test_multipliers_are_derived_afterwards_on_floats_and_in_many_worlds():
    m = driven_crank(sp.Symbol("mass"))
    q, v = zw.assemble(m.subs({"mass": PISTON}), [0.0, 0.0, m.home[2]], [W + 0.6, 0, 0], time=0.0)
    options = {
        "duration": 0.02,
        "step": 1e-3,
        "record": 4,
        "progress": False,
        "params": {"mass": [PISTON, 3.0]},
    }
    run = zw.simulate(m, q, v, **options)
    found = zw.derived_quantities(run, "multipliers")
    floats = zw.derived_quantities(run, "multipliers", compiled=False)
    np.testing.assert_allclose(found.multiplier, floats.multiplier, rtol=1e-9, atol=1e-9)
    for k, mass in enumerate((PISTON, 3.0)):
        for i in (1, 4):
            state = (run.q.values[k, i], run.v.values[k, i])
            forces = zw.constrained_dynamics(
                m.subs({"mass": mass}), *state, np.zeros(3), time=run.time.values[i]
            ).forces
            expected = [*forces["pin"], *forces["drive"]]
            np.testing.assert_allclose(found.multiplier.values[k, i], expected, rtol=1e-9, atol=1e-9)


def test_a_plot_of_forces_shows_the_torque_by_name(tmp_path):
    run = turning(driven_crank(), forces=True)
    figure = zw.plot(run, kind="forces", path=tmp_path / "forces.png")
    shown = {axes.get_title(loc="left"): axes for axes in figure.axes}["multipliers of constraints (torques)"]
    assert shown.get_ylabel() == "[N m]" and [line.get_label() for line in shown.lines] == ["drive"]


def test_units_of_rows():
    x, theta, t = sp.symbols("x theta t")
    bodies = [
        zw.Body("slide", zw.Prismatic("x", (1, 0, 0)), mass=1, com=(0, 0, 0)),
        zw.Body(
            "arm", zw.Revolute("theta", (0, 1, 0)), "slide", mass=1, com=(0, 0, -0.3), inertia=(0.1,) * 3
        ),
    ]
    rows = {
        "N": zw.Holonomic("c", x - sp.sin(t)),
        "N m": zw.Pfaffian("c", {"theta": -1}, rate=sp.cos(t)),
        "J per unit of its formula": zw.Holonomic("c", x - theta / 10),
        "W per unit of its formula": zw.Pfaffian("c", {"theta": x}, rate=0),
    }
    for unit, constraint in rows.items():
        m = zw.Mechanism("cart", bodies, constraints=[constraint])
        q, v = zw.assemble(m, [0.1, 0.2], [0.0, 0.0], time=0.0)
        run = zw.simulate(m, q, v, duration=2e-3, step=1e-3, record={"multipliers": True}, progress=False,
                          compiled=False)  # fmt: skip
        assert list(run.multiplier_unit.values) == [unit] and list(run.constraint_row.values) == ["c"]
    both = zw.Holonomic("both", (x - t, theta))
    m = zw.Mechanism("cart", bodies, constraints=[both])
    run = zw.simulate(m, [0.0, 0.0], [1.0, 0.0], duration=2e-3, step=1e-3, record={"multipliers": True},
                      progress=False, compiled=False)  # fmt: skip
    assert list(run.constraint_row.values) == ["both 1", "both 2"]
    assert list(run.multiplier_unit.values) == ["N", "N m"]


def test_a_mechanism_without_constraints_has_no_multipliers():
    m = zw.Mechanism("ball", [zw.Body("ball", zw.Free("ball"), mass=1, inertia=(0.1,) * 3)])
    run = zw.simulate(m, duration=2e-3, step=1e-3, record={"multipliers": True}, progress=False)
    assert "multiplier" not in run
    with pytest.raises(zw.errors.ShapeError, match="neither constraints nor contacts"):
        zw.plot(run, kind="forces")
