"""A page that contains its simulation gives the numbers of `zw.simulate` for other parameters, inputs and
initial states."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import DescriptionError, MissingExtraError, ShapeError, SimulationError, UnknownNameError
from zwang.interop import wasm
from zwang.mechanism.samples import FURUTA, four_bar, furuta
from zwang.viewer.html_page import page_html

pytest.importorskip("ziglang")
ALPHA = {"alpha": 0.3}


@pytest.fixture
def show(browser, tmp_path):
    """Opens the page of a recording with its simulation; gives the browser."""

    def go(run, **options):
        zw.save_html(run, tmp_path / "page.html", resimulate=True, **options)
        browser.open((tmp_path / "page.html").as_uri() + "#t=0")
        browser.until("zwang.simulation.drawn !== undefined")
        return browser

    yield go
    assert browser.errors == []


def slide(browser, **values: float) -> None:
    """Move sliders, and wait for the motion."""
    for name, value in values.items():
        browser.run(f"""(() => {{
          const {{ bar }} = zwang.simulation.rows.find((row) => row.slider.name === {json.dumps(name)});
          bar.value = {value};
          bar.dispatchEvent(new Event('input'));
          bar.dispatchEvent(new Event('change'));
        }})()""")
    browser.run("zwang.simulation.update()")


def shown(browser) -> dict[str, np.ndarray]:
    """The motion that the page plays: q (times, nq) and the energies, at its steps."""
    found = browser.run("""({ q: Array.from(zwang.playback.q), steps: zwang.simulation.data.steps,
      energies: zwang.playback.energies.map(({ name, values }) => [name, Array.from(values)]) })""")
    steps = np.array(found["steps"])
    energies = {name: np.array(values, dtype=float) for name, values in found["energies"]}
    return {"steps": steps, "q": np.array(found["q"], dtype=float).reshape(len(steps), -1), **energies}


def expect(browser, run) -> None:
    """The page plays the motion of a recording of every step, to the last bit."""
    found = shown(browser)
    np.testing.assert_array_equal(found["q"], run.q.values[0, found["steps"]])
    for name in ("kinetic", "potential"):
        expected = run[f"{name}_energy"].values[0, found["steps"]]
        np.testing.assert_allclose(found[name], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.needs("chromium")
def test_sliders_simulate_again_with_the_numbers_of_simulate(show):
    settings = {"duration": 1.0, "step": 0.001, "integrator": "rk4"}
    run = zw.simulate(furuta(), ALPHA, control=0.002, params=FURUTA, **settings)
    browser = show(run)
    for changes in ({"L_r": 0.2, "m_p": 0.05}, {"tau": -0.003}, {"g": 3.7}):
        slide(browser, **changes)
    params = {**FURUTA, "L_r": 0.2, "m_p": 0.05, "g": 3.7}
    again = zw.simulate(furuta(), ALPHA, control=-0.003, params=params, **settings)
    assert np.abs(again.q - run.q).max() > 0.1
    expect(browser, again)
    assert "1000 steps" in browser.run("zwang.simulation.note.textContent")
    browser.run("zwang.simulation.reset(); zwang.simulation.update()")
    expect(browser, run)


@pytest.mark.needs("chromium")
def test_everything_that_is_drawn_follows_the_parameters(show):
    m = furuta(**{name: FURUTA[name] for name in FURUTA if name not in ("L_r", "L_p")})
    m = m.replace(frames=[zw.Frame("tip", "pendulum", (0, 0, sp.Symbol("L_p", positive=True)))])
    run = zw.simulate(m, ALPHA, duration=0.1, params={"L_r": 0.1, "L_p": 0.1})
    browser = show(run)
    slide(browser, L_r=0.25, L_p=0.3)
    browser.run("zwang.scene.manual[0] = [0.4, 0.7]")
    places = browser.run("""(() => {
      const model = zwang.scene.models[0], poses = zwang.scene.poses(0, 0);
      return [...model.bodies, ...model.frames].map((f) => [f.name, compose(poses[f.link], f.pose)]);
    })()""")
    exact = m.subs({"L_r": 0.25, "L_p": 0.3})
    assert [name for name, _ in places] == ["arm", "pendulum", "tip"]
    for name, pose in places:
        R, p = zw.frame_pose(exact, [0.4, 0.7], name)
        np.testing.assert_allclose(np.reshape(pose[:9], (3, 3)), R, atol=1e-12)
        np.testing.assert_allclose(pose[9:], p, atol=1e-12)
    sticks = browser.run("zwang.scene.models[0].shapes.filter((s) => s.kind === 'capsule')")
    assert [s["size"][1] for s in sticks] == pytest.approx([0.25, 0.15])  # to the next joint; to the centre
    np.testing.assert_allclose([s["pose"][9:] for s in sticks], [[0.125, 0, 0], [0, 0, 0.075]], atol=1e-12)
    masses = browser.run("zwang.scene.models[0].rigid_bodies")
    np.testing.assert_allclose(masses[0], [0, 0.125, 0, 0, FURUTA["m_r"]], atol=1e-12)


def crate(mass) -> zw.Mechanism:
    box = zw.Body(
        "box", zw.Free("f"), mass=mass, inertia=(0.05, 0.05, 0.05), geometry=[zw.Box(0.4, 0.4, 0.4)]
    )
    pull = zw.PointSpring(("box", (0.2, 0.2, 0.2)), ("world", (0, 0, 2)), stiffness=20, length=1)
    return zw.Mechanism("crate", [box], geometry=[zw.Plane()], forces=[pull])


@pytest.mark.needs("chromium")
def test_contacts_are_simulated_and_a_failure_is_told(show):
    mass = sp.Symbol("mass")
    start = [0, 0, 0.4, 1, 0, 0, 0]
    run = zw.simulate(crate(mass), start, duration=0.5, params={"mass": 2.0})
    browser = show(run)
    slide(browser, mass=4.0)
    expect(browser, zw.simulate(crate(4.0), start, duration=0.5))
    browser.run("zwang.simulation.parameters[0] = NaN; zwang.simulation.request(); zwang.simulation.update()")
    assert browser.run("zwang.playback.stopped[0]") == 0
    assert "stopped at 0.000 s" in browser.run("zwang.simulation.note.textContent")


@pytest.mark.needs("chromium")
def test_a_motion_starts_at_the_configuration_that_is_shown(show):
    linkage = zw.Mechanism(
        "ball", [zw.Body("bob", zw.Ball("pivot"), mass=1, com=(0, 0, -1), inertia=(0.1, 0.1, 0.01))]
    )
    run = zw.simulate(linkage, [1, 0, 0, 0], [1.0, 0, 0], duration=0.4)
    browser = show(run)
    q = np.array([0.8, 0.6, 0, 0])
    browser.run(f"zwang.scene.manual[0] = {q.tolist()}; zwang.simulation.startHere()")
    browser.run("zwang.simulation.update()")
    expect(browser, zw.simulate(linkage, q, duration=0.4))


def test_only_a_page_with_a_simulation_may_run_webassembly():
    run = zw.simulate(four_bar(), duration=0.02, coordinate_reduction=True)
    assert "'wasm-unsafe-eval'" in page_html(run, resimulate=True)
    assert "'wasm-unsafe-eval'" not in page_html(run)


def test_recordings_that_a_page_cannot_repeat_are_refused(monkeypatch):
    m = furuta(**{name: FURUTA[name] for name in FURUTA if name != "m_p"})
    settings = {"duration": 0.02, "params": {"m_p": 0.03}}
    run = zw.simulate(m, ALPHA, **settings)
    driven = zw.simulate(m, ALPHA, control=lambda t, q, v: -q[:1], **settings)
    ended = zw.Event(lambda t, q, v: q[1] - 0.29999, terminal=True)
    stopped = zw.simulate(m, ALPHA, {"alpha": -1.0}, events={"down": ended}, **settings)
    changing = zw.simulate(m, ALPHA, control=np.linspace(0, 1, 10)[:, None], **settings)
    two = zw.simulate(m, {"alpha": [0.1, 0.2]}, **settings)
    for what, names, error, text in (
        (four_bar(), True, SimulationError, "give the recording"),
        (driven, True, SimulationError, "computed by a Python function"),
        (changing, True, SimulationError, "changes with time"),
        (stopped, True, SimulationError, "terminal event"),
        (zw.simulate(m, ALPHA, integrator="dop853", **settings), True, SimulationError, "fixed size"),
        (two, True, ShapeError, "isel"),
        (run, ["m_q"], UnknownNameError, "m_p"),
        (run, {"m_p": (1, 0)}, SimulationError, "lower one first"),
        (run, {"m_p": ("a", "b")}, SimulationError, "two finite numbers"),
        (run, {"m_p": (1j, 2)}, SimulationError, "two finite numbers"),
        (run, {"m_p": (-1, 1)}, DescriptionError, "mass"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            page_html(what, resimulate=names)
    page_html(two.isel(world=[1]), resimulate={"m_p": (0.01, 0.1)})
    monkeypatch.setattr(wasm, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pip install 'zwang"):
        page_html(run, resimulate=True)
