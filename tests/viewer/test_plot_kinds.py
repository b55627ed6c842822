"""Kinds of plots show the recorded values or those of an independent calculation; every axis has its unit."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import sympy as sp
import xarray as xr

import zwang as zw
from zwang.errors import ShapeError, UnknownNameError
from zwang.mechanism.samples import double_pendulum, four_bar
from zwang.viewer.plot_series import KINDS, Series, series_of

matplotlib.use("Agg")
EVERYTHING = {"every": 4, "constraints": True, "forces": True, "zwang": True, "violations": True}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def loop() -> xr.Dataset:
    """A four-bar that is driven, with all that can be recorded."""
    m = four_bar()
    q, v = zw.assemble(m, np.array(m.home or m.neutral, float), [1.0, 0, 0])
    return zw.simulate(
        m, q, v, duration=0.4, step=0.005, control={"motor": 0.3}, record=EVERYTHING, integrator="rk4"
    )


@pytest.fixture(scope="module")
def swings() -> xr.Dataset:
    starts = np.random.default_rng(0).normal(size=(30, 2))
    return zw.derived_quantities(zw.simulate(double_pendulum(), starts, duration=0.3, step=0.01), "zwang")


def lines(figure, title: str) -> dict[str, np.ndarray]:
    """By label, the heights of the lines of the panel with that title."""
    (axes,) = (a for a in figure.axes if a.get_title(loc="left") == title)
    return {str(line.get_label()): np.asarray(line.get_ydata()) for line in axes.lines}


def test_every_axis_of_every_kind_has_its_unit(loop):
    for kind in ("overview", *KINDS):
        for axes in zw.plot(loop, kind=kind).axes:
            if axes.get_visible():
                assert axes.get_ylabel().endswith("]"), (kind, axes.get_title(loc="left"))
                below = axes.get_subplotspec().is_last_row()
                assert not below or axes.get_xlabel().endswith("]"), kind


def test_histories_have_everything_that_was_recorded(loop):
    figure = zw.plot(loop, kind="time")
    for name in loop["coordinate"].values:
        np.testing.assert_array_equal(lines(figure, "angles")[name], loop["q"].sel(coordinate=name).values[0])
    drives = lines(figure, "applied torques (passive and actuator)")
    np.testing.assert_allclose(drives["drive"], 0.3)
    np.testing.assert_allclose(lines(figure, "control inputs")["motor"], 0.3)


def test_a_phase_portrait_is_velocity_against_coordinate(loop):
    figure = zw.plot(loop, kind="phase")
    for k, name in enumerate(loop["coordinate"].values):
        axes = figure.axes[k]
        assert axes.get_xlabel() == f"{name} [rad]" and axes.get_ylabel() == "velocity [rad/s]"
        np.testing.assert_array_equal(axes.lines[0].get_xdata(), loop["q"].values[0, :, k])
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), loop["v"].values[0, :, k])


def test_the_phase_of_an_oscillator_is_an_ellipse_of_its_frequency():
    body = zw.Body("mass", zw.Prismatic("x", axis=(1, 0, 0)), mass=2.0)
    m = zw.Mechanism(bodies=[body], forces=[zw.Spring("x", stiffness=18.0)], gravity=(0, 0, 0))
    run = zw.simulate(m, [0.4], duration=2.0, step=0.01, integrator="rk4")
    (line, _) = zw.plot(run, kind="phase").axes[0].lines
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    np.testing.assert_allclose((x / 0.4) ** 2 + (y / (3.0 * 0.4)) ** 2, 1, atol=1e-6)


def test_each_coordinate_of_a_joint_has_its_own_velocity():
    body = zw.Body("b", zw.Planar("p"), mass=1, inertia=(1, 1, 1))
    run = zw.simulate(
        zw.Mechanism(bodies=[body], gravity=(0, 0, 0)), None, [1.0, 2.0, 3.0], duration=0.02, step=0.01
    )
    found = series_of(run, "phase", None)
    assert [one.names for one in found] == [("p.x",), ("p.y",), ("p.angle",)]
    assert [one.unit for one in found] == ["m/s", "m/s", "rad/s"]
    for one, speed in zip(found, (1.0, 2.0, 3.0), strict=True):
        np.testing.assert_allclose(one.values, speed)


def test_quaternions_have_no_phase_portrait_but_positions_do():
    free = zw.Body("b", zw.Free("b"), mass=1, inertia=(1, 1, 1))
    run = zw.simulate(zw.Mechanism(bodies=[free]), duration=0.02, step=0.01)
    assert [one.names for one in series_of(run, "phase", None)] == [("b.x",), ("b.y",), ("b.z",)]
    ball = zw.Body("b", zw.Ball("b"), mass=1, inertia=(1, 1, 1), com=(0, 0, -1))
    run = zw.simulate(zw.Mechanism(bodies=[ball]), duration=0.02, step=0.01)
    with pytest.raises(ShapeError, match="no generalised velocity"):
        zw.plot(run, kind="phase")


def test_energies_are_those_of_the_states(loop):
    m = zw.mechanism_of(loop)
    shown = lines(zw.plot(loop, kind="energy"), "energy")
    states = zip(loop["q"].values[0], loop["v"].values[0], strict=True)
    kinetic, potential = np.array([zw.energy(m, q, v) for q, v in states]).T
    np.testing.assert_allclose(shown["kinetic"], kinetic, rtol=1e-9)
    np.testing.assert_allclose(shown["potential"], potential, rtol=1e-9)
    np.testing.assert_allclose(shown["total"], kinetic + potential, rtol=1e-9)


def test_the_constraint_violation_is_the_distance_that_should_be_zero(loop):
    moved = loop.copy()
    moved["q"] = loop["q"] + 1e-3
    figure = zw.plot(zw.derived_quantities(moved, "violations"), kind="drift")
    m = zw.mechanism_of(loop)
    (closing,) = m.constraints
    ends = tuple(zw.Frame(n, *point) for n, point in zip("ab", (closing.a, closing.b), strict=True))
    m = m.replace(frames=ends)
    apart = [
        np.linalg.norm(zw.frame_pose(m, q, "a").p - zw.frame_pose(m, q, "b").p) for q in moved["q"].values[0]
    ]
    np.testing.assert_allclose(lines(figure, "constraint violation")["loop"], apart, rtol=1e-9)
    axes = next(a for a in figure.axes if a.get_title(loc="left") == "constraint violation")
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "[m]"


def test_constraint_forces_agree_with_the_constrained_dynamics(loop):
    m, shown = zw.mechanism_of(loop), lines(zw.plot(loop, kind="forces"), "constraint forces")
    for k in (0, 9, 15):
        at = loop.isel(world=0, time=k)
        found = zw.constrained_dynamics(m, at["q"].values, at["v"].values, [0.3, 0, 0])
        assert shown["loop"][k] == pytest.approx(np.linalg.norm(found.forces["loop"]), rel=1e-7)


def test_contact_forces_are_summed_by_body():
    box = zw.Body("box", zw.Free("box"), mass=3.0, inertia=(0.1, 0.1, 0.1), geometry=[zw.Box(0.4, 0.4, 0.4)])
    m = zw.Mechanism(bodies=[box], geometry=[zw.Plane()])
    run = zw.simulate(m, {"box.z": 0.1999}, duration=1.0, step=0.005, record={"forces": True})
    shown = lines(zw.plot(run, kind="forces"), "contact forces by body")
    assert shown["box"][-1] == pytest.approx(3.0 * 9.81, rel=1e-3)


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_contact_forces_by_body_include_the_reactions(order):
    """The net contact force on each of two boxes at rest, one on the other, is its weight."""
    height = {"A": 0.1, "B": 0.3}
    boxes = [
        zw.Body(n, zw.Free(n), position=(0, 0, height[n]), mass=1, inertia=(0.01,) * 3,
                geometry=[zw.Box(0.2, 0.2, 0.2)])
        for n in order
    ]  # fmt: skip
    m = zw.Mechanism(bodies=boxes, geometry=[zw.Plane()])
    run = zw.simulate(m, duration=0.6, record={"forces": True, "every": 100}, progress=False)
    shown = lines(zw.plot(run, kind="forces"), "contact forces by body")
    assert {name: values[-1] for name, values in shown.items()} == pytest.approx(
        {"A": 9.81, "B": 9.81}, rel=1e-3
    )


def test_gauss_constraint_by_body_sums_to_that_of_the_constrained_dynamics(loop):
    m, shown = (
        zw.mechanism_of(loop),
        lines(zw.plot(loop, kind="zwang"), "Gauss's constraint Z by body (constraints)"),
    )
    assert set(shown) == {"crank", "coupler", "rocker", "total"}
    for k in (0, 9, 15):
        at = loop.isel(world=0, time=k)
        found = zw.constrained_dynamics(m, at["q"].values, at["v"].values, [0.3, 0, 0])
        assert shown["total"][k] == pytest.approx(found.zwang, rel=1e-8)
        assert sum(shown[name][k] for name in ("crank", "coupler", "rocker")) == pytest.approx(found.zwang)


def test_the_largest_terms_are_shown_and_the_total_is_unchanged():
    values = np.random.default_rng(1).normal(size=(2, 5, 20)) * np.arange(20)
    folded = Series("parts", "W/s", values, tuple(f"b{k}" for k in range(20)), additive=True).summed()
    assert len(folded.names) == 9 and folded.names[-2:] == ("12 others", "total") and "b19" in folded.names
    np.testing.assert_allclose(folded.values[..., :-1].sum(axis=-1), values.sum(axis=-1))
    np.testing.assert_allclose(folded.values[..., -1], values.sum(axis=-1))


def test_several_worlds_have_a_panel_for_each_name_and_bands(swings):
    figure = zw.plot(swings, kind="zwang")
    axes = next(a for a in figure.axes if a.get_title(loc="left").startswith("total"))
    expected = [
        [
            zw.zwang_of(double_pendulum(), q, v, [0, 0], zw.forward_dynamics(double_pendulum(), q, v, [0, 0]))
            for q, v in zip(*(swings[name].values[:, k] for name in "qv"), strict=True)
        ]
        for k in (0, 20)
    ]
    np.testing.assert_allclose(axes.lines[0].get_ydata()[[0, 20]], np.median(expected, axis=1), rtol=1e-9)
    assert len(axes.collections) == 2
    portraits = zw.plot(swings, kind="phase")
    assert "24 of them shown" in portraits.get_suptitle()


def test_names_select_lines(loop):
    figure = zw.plot(loop, kind="time", names="drive")
    assert all(set(lines(figure, a.get_title(loc="left"))) == {"drive"} for a in figure.axes if a.lines)
    assert set(
        lines(zw.plot(loop, kind="zwang", names=["rocker"]), "Gauss's constraint Z by body (whole motion)")
    ) == {"rocker"}
    assert len(zw.plot(loop, names=["first"]).axes) >= 2
    with pytest.raises(UnknownNameError, match="'drive'"):
        zw.plot(loop, kind="time", names=["driver"])


def test_the_error_for_missing_values_names_the_option_that_records_them():
    run = zw.simulate(four_bar(), duration=0.02, step=0.01)
    for kind, name in (("forces", "forces"), ("zwang", "zwang"), ("drift", "violations")):
        with pytest.raises(ShapeError, match=name) as error:
            zw.plot(run, kind=kind)
        assert f"record={{{name!r}: True}}" in str(error.value)
        assert zw.plot(zw.derived_quantities(run, name), kind=kind).axes
    with pytest.raises(UnknownNameError, match="'phase'"):
        zw.plot(run, kind="phases")
    free = zw.simulate(double_pendulum(), duration=0.02, step=0.01)
    assert len(zw.plot(free, kind="drift").axes) == 2  # of the energy alone
    for run in (free, zw.derived_quantities(free, "forces")):
        with pytest.raises(ShapeError, match="neither constraints nor contacts"):
            zw.plot(run, kind="forces")


def driven_pendulum() -> zw.Mechanism:
    """A pendulum whose pivot moves as y = sin(5 t) / 10, by a force without a point of application."""
    bodies = [
        zw.Body("pivot", zw.Prismatic("y", axis=(0, 0, 1)), mass=2),
        zw.Body("bob", zw.Revolute("angle", axis=(0, 1, 0)), parent="pivot", mass=1, com=(0, 0, -1)),
    ]
    y, t = sp.symbols("y t")
    return zw.Mechanism(bodies=bodies, constraints=[zw.Holonomic("drive", y - sp.sin(5 * t) / 10)])


@pytest.mark.parametrize("record", [None, {"forces": True}])
def test_forces_without_a_point_of_application_are_generalised_forces(record):
    """The force of the drive is that of momentum: 3 (y'' + g) + d/dt (velocity of the bob relative to y)."""
    m = driven_pendulum()
    run = zw.simulate(m, *zw.assemble(m, [0, 0.4]), duration=0.2, step=0.005, record=record, integrator="rk4")
    with pytest.raises(ShapeError, match="needs 'generalised_constraint_force'") as error:
        zw.plot(run, kind="forces")
    assert "record={'constraints': True}" in str(error.value)
    run = zw.derived_quantities(run, "constraints")
    shown = lines(zw.plot(run, kind="forces"), "generalised constraint forces")["y"]
    time, angle, rate = run["time"].values, run["q"].values[0, :, 1], run["v"].values[0, :, 1]
    lift = -2.5 * np.sin(5 * time)
    turn = -np.sin(angle) * (lift + 9.81)  # of a bob on a rod of 1 m
    expected = 3 * (lift + 9.81) + turn * np.sin(angle) + rate**2 * np.cos(angle)
    np.testing.assert_allclose(shown, expected, rtol=1e-4)


def test_forces_of_limits_and_friction_are_generalised_forces():
    body = zw.Body("bob", zw.Revolute("angle", axis=(0, 1, 0), friction=0.5), mass=1, com=(0, 0, -1))
    run = zw.simulate(zw.Mechanism(bodies=[body]), [0.4], [1.0], duration=0.02, step=0.01)
    with pytest.raises(ShapeError, match="'constraints': True"):
        zw.plot(run, kind="forces")
    run = zw.derived_quantities(run, "constraints")
    shown = lines(zw.plot(run, kind="forces"), "generalised constraint forces (torques)")["angle"]
    np.testing.assert_allclose(np.abs(shown), 0.5, rtol=1e-6)


UNUSUAL_NAMES = ("$\\frac{ a$", "_hidden", "a_b^c", "\u2028", "<b>&", "x" * 300)


@pytest.mark.parametrize("name", UNUSUAL_NAMES)
def test_names_are_displayed_literally(name, tmp_path):
    body = zw.Body(name, zw.Revolute(name, axis=(0, 1, 0)), mass=1, com=(0, 0, -1))
    m = zw.Mechanism(name, [body], frames=[zw.Frame(f"{name} tip", name, (0, 0, -1))])
    run = zw.derived_quantities(zw.simulate(m, [0.3], duration=0.05, step=0.01), "zwang")
    for kind in ("overview", "phase", "zwang"):
        figure = zw.plot(run, tmp_path / "a.png", kind=kind)
        shown = [
            text.get_text() for axes in figure.axes if axes.get_legend() for text in axes.get_legend().texts
        ]
        start = "".join(c if c.isprintable() else " " for c in name)[:20].replace("$", r"\$")
        assert kind == "phase" or any(text.strip().startswith(start.strip()) for text in shown)
    zw.plot_ellipsoids(m, [0.3], f"{name} tip", path=tmp_path / "b.png")
    space = zw.robot.workspace(m, f"{name} tip", samples=50)
    zw.plot_manipulability(space, path=tmp_path / "c.png")


def test_dimensions_may_be_in_any_order(loop):
    turned = loop.transpose("time", ..., "world")
    for kind in ("overview", "zwang", "forces"):
        before, after = zw.plot(loop, kind=kind), zw.plot(turned, kind=kind)
        for a, b in zip(before.axes, after.axes, strict=True):
            for one, other in zip(a.lines, b.lines, strict=True):
                np.testing.assert_array_equal(one.get_ydata(), other.get_ydata())
