"""The offline page in a browser: it draws and plays, and its script computes the same poses as zwang."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from matplotlib.image import imread

import zwang as zw
from tests.mechanisms import random_mechanism, random_quaternion
from tests.viewer.scenes import HOSTILE, shapes
from zwang.mechanism.samples import double_pendulum, four_bar
from zwang.viewer.html_page import embedded_page, page_html

pytestmark = pytest.mark.needs("chromium")
STAGE = (slice(100, 640), slice(0, 940), slice(0, 3))  # rows, columns and colours without bars and panel


@pytest.fixture
def show(browser, tmp_path):
    """Opens the page of a mechanism or a recording; gives the browser. Afterwards there must be no error on
    its console.
    """

    def go(what, fragment: str = "", **options):
        zw.save_html(what, tmp_path / "page.html", **options)
        browser.open((tmp_path / "page.html").as_uri() + fragment)
        return browser

    yield go
    assert browser.errors == []


def picture(browser) -> np.ndarray:
    return imread(io.BytesIO(browser.screenshot()))[STAGE]


def js_poses(browser, world: int = 0) -> dict[str, np.ndarray]:
    """Where the page has its bodies and frames now, (3, 4) each."""
    script = f"""(() => {{
      const page = window.zwang, model = page.scene.models[{world}];
      const q = page.scene.configuration({world}, page.t);
      const poses = linkPoses(model, q);
      return [...model.bodies, ...model.frames].map(f => [f.name, compose(poses[f.link], f.pose)]);
    }})()"""
    return {name: np.column_stack([np.reshape(x[:9], (3, 3)), x[9:]]) for name, x in browser.run(script)}


def expect(browser, m, q, tolerance):
    found = js_poses(browser)
    for name in [b.name for b in m.bodies] + [f.name for f in m.frames]:
        np.testing.assert_allclose(found[name], np.column_stack(zw.frame_pose(m, q, name)), atol=tolerance)


def slide(browser, label: str, value: float) -> None:
    """Set a slider's value and dispatch its input event."""
    browser.run(f"""(() => {{
      const bars = [...document.querySelectorAll('#joints input')];
      const bar = bars.find(b => b.getAttribute('aria-label') === {json.dumps(label)});
      bar.value = {value};
      bar.dispatchEvent(new Event('input'));
    }})()""")
    browser.settle()


@pytest.fixture(scope="module")
def swing():
    return zw.simulate(double_pendulum(), [2.0, 1.0], duration=2, step=0.002, integrator="rk4")


def test_the_picture_is_not_blank_and_moves_with_time(show, swing):
    browser = show(swing, "#t=0.2")
    first = picture(browser)
    assert (
        first.std(axis=(0, 1)).min() > 0.02
        and len(np.unique((first * 255).astype(int).reshape(-1, 3), axis=0)) > 500
    )
    browser.run("zwang.seek(0.7)")
    browser.settle()
    second = picture(browser)
    assert (np.abs(first - second).max(axis=2) > 0.1).sum() > 500
    browser.run("zwang.seek(0.2)")
    browser.settle()
    np.testing.assert_array_equal(picture(browser), first)


def test_playback_starts_automatically_and_pauses_at_a_click(show, swing):
    browser = show(swing)
    browser.until("zwang.t > 0.05")
    browser.run("document.getElementById('play').click()")
    now = browser.run("zwang.t")
    browser.settle()
    assert browser.run("zwang.t") == now and not browser.run("zwang.playing")


def test_the_page_shows_the_recorded_configuration(show, swing):
    browser, m = show(swing, "#t=1.3"), double_pendulum()
    near = swing.q.isel(world=0).interp(time=1.3).values
    expect(browser, m, near, 2e-3)  # straight between samples 1/60 s apart
    t = float(swing.time[500])
    browser.run(f"zwang.seek({t})")
    expect(browser, m, swing.q.values[0, 500], 2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_forward_kinematics_of_every_joint(show, seed):
    m = random_mechanism(seed, bodies=8)
    rng = np.random.default_rng(seed)
    q = rng.normal(size=m.nq)
    for j in m.joints:
        if j.kind in ("ball", "free"):
            q[j.q.stop - 4 : j.q.stop] = random_quaternion(rng)
    browser = show(m)
    browser.run(f"zwang.scene.manual[0] = {q.tolist()}")
    expect(browser, m, q, 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_manipulability_ellipsoids_are_those_of_the_jacobian(show, seed):
    """R diag(axes^2) R^T = J J^T."""
    m = random_mechanism(seed, bodies=6)
    q = zw.integrate_configuration(m, m.neutral, np.random.default_rng(seed).normal(size=m.nv), 1)
    browser = show(m, traces=["tip"])
    browser.run(f"zwang.scene.manual[0] = {q.tolist()}")
    found = browser.run(
        "velocityEllipsoid(zwang.scene.models[0], "
        "linkPoses(zwang.scene.models[0], zwang.scene.configuration(0, 0)),"
        "zwang.scene.placement(0, 'tip'))"
    )
    J, R, axes = (
        zw.frame_jacobian(m, q, "tip")[:3],
        np.reshape(found["pose"][:9], (3, 3)),
        np.array(found["axes"]),
    )
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1)
    np.testing.assert_allclose(R @ np.diag(axes**2) @ R.T, J @ J.T, atol=1e-10)
    np.testing.assert_allclose(found["pose"][9:], zw.frame_pose(m, q, "tip")[1], atol=1e-12)


def test_a_slider_moves_its_joint_and_no_other(show):
    m = four_bar()
    browser = show(m)
    slide(browser, "first", 0.4)
    q = np.array(m.home)
    q[1] = 0.4
    expect(browser, m, q, 1e-12)


def test_sliders_turn_a_free_body_about_its_own_axes(show):
    m = zw.Mechanism(bodies=[zw.Body("b", zw.Free("f"), mass=1, inertia=(1, 1, 1))])
    browser = show(m)
    q = zw.integrate_configuration(m, m.neutral, [0, 0.2, 0, 0.5, 0, 0], 1)
    slide(browser, "f rotation x", 0.5)
    slide(browser, "f.y", 0.2)
    expect(browser, m, q, 1e-12)
    slide(browser, "f rotation z", -0.3)
    expect(browser, m, zw.integrate_configuration(m, q, [0, 0, 0, 0, 0, -0.3], 1), 1e-12)


def test_every_kind_of_shape_is_drawn(show):
    """The picture without a shape differs from that with it."""
    browser = show(shapes())
    whole = picture(browser)
    for k in range(1, 7):  # the first is the ground
        browser.run(
            f"shape = zwang.scene.models[0].shapes[{k}]; color = shape.color; "
            "shape.color = [0, 0, 0, 0]; zwang.stale = true"
        )
        browser.settle()
        assert (np.abs(picture(browser) - whole).max(axis=2) > 0.05).sum() > 100, browser.run("shape.kind")
        browser.run("shape.color = color; zwang.stale = true")
    browser.settle()
    np.testing.assert_array_equal(picture(browser), whole)


def test_worlds_are_side_by_side_or_overlaid(show):
    run = zw.simulate(double_pendulum(), [[1.0, 0], [2.0, 0], [3.0, 0]], duration=0.5, step=0.005)
    browser = show(run, "#t=0.2", traces=["lower"])
    positions = "new Set(zwang.scene.offsets.map(String)).size"
    apart = picture(browser)
    assert browser.run(positions) == 3 and browser.run("zwang.paths.length") == 3
    browser.run(
        "[...document.querySelectorAll('#options button')].find(b => b.textContent === 'overlay').click()"
    )
    browser.settle()
    assert browser.run(positions) == 1
    assert (np.abs(picture(browser) - apart).max(axis=2) > 0.1).sum() > 500


def test_a_world_that_stopped_keeps_its_last_valid_state(show):
    run = zw.simulate(double_pendulum(), [1.0, 0], duration=1, step=0.01)
    run["q"][0, 50:] = np.nan
    run["status"][0], run["termination_time"][0] = 1, 0.49
    browser = show(run, "#t=0.9")
    expect(browser, double_pendulum(), run.q.values[0, 49], 0.05)
    assert "stopped early at 0.49 s" in browser.run("document.getElementById('clock').textContent")


def test_gaps_of_a_recording_show_the_last_valid_state(show):
    run = zw.simulate(double_pendulum(), [1.0, 0], duration=1, step=0.02)
    run["q"][0, 20:30] = np.nan
    browser = show(run, "#t=0.5")
    expect(browser, double_pendulum(), run.q.values[0, 19], 1e-3)
    assert "NaN" not in browser.run("document.body.innerText")
    browser.run("zwang.seek(0.61)")
    expect(browser, double_pendulum(), run.q.values[0, 30:32].mean(axis=0), 1e-3)


def test_every_display_option_changes_the_picture(show, swing):
    browser = show(swing, "#t=0.3")
    before = picture(browser)
    for word in ("names", "frames", "centres of mass"):
        click = (
            f"[...document.querySelectorAll('#options button')].find(b => b.textContent === '{word}').click()"
        )
        browser.run(click)
        browser.settle()
        assert (np.abs(picture(browser) - before).max(axis=2) > 0.05).sum() > 50, word
        browser.run(click)
    browser.settle()
    np.testing.assert_array_equal(picture(browser), before)


def test_contact_forces_are_arrows_from_their_points_of_application(show):
    """A ball at rest: one arrow of its weight, from the ground up through the ball; none once it is moved by
    hand.
    """
    ball = zw.Body("ball", zw.Prismatic("z"), position=(0, 0, 0.1), mass=2, geometry=[zw.Sphere(0.1)])
    m = zw.Mechanism("ball", [ball], geometry=[zw.Plane()])
    run = zw.simulate(m, duration=1.0, step=0.005, record={"forces": True}, compiled=False)
    browser = show(run, "#t=1")
    ((point, force),) = browser.run("zwang.playback.forces(0, 1, 'contact')")
    np.testing.assert_allclose(force, (0, 0, 2 * 9.81), atol=1e-3)
    np.testing.assert_allclose(point, 0, atol=2e-3)
    tip = (
        "zwang.scene.items(1, 0, zwang.shown)"
        ".filter(i => i.geometry === zwang.renderer.geometry('cone', cone))"
        ".map(i => i.pose[11] + i.size[2] / 2)"
    )
    reach = browser.run("zwang.scene.extent")
    assert browser.run(tip) == [pytest.approx(point[2] + 0.35 * reach, rel=2e-3)]
    with_arrow = picture(browser)
    button = (
        "[...document.querySelectorAll('#options button')]"
        ".find(b => b.textContent === 'contact forces').click()"
    )
    browser.run(button)
    browser.settle()
    assert browser.run(tip) == [] and (np.abs(picture(browser) - with_arrow).max(axis=2) > 0.1).sum() > 200
    browser.run(button)
    slide(browser, "z", 0.3)
    assert browser.run(tip) == []


def test_constraint_forces_are_arrows_and_paths_can_be_hidden(show):
    run = zw.simulate(four_bar(), duration=0.8, step=0.01, record={"forces": True}, compiled=False)
    browser = show(run, "#t=0.2", traces=[four_bar().bodies[1].name])
    (point, force), *others = browser.run("zwang.playback.forces(0, 0.2, 'constraint')")
    k = int(np.abs(run.time.values - browser.run("zwang.playback.times[zwang.playback.index(0.2)]")).argmin())
    np.testing.assert_allclose(force, run.force.values[0, k, 0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(point, run.force_position.values[0, k, 0], atol=1e-6)
    assert (
        len(others) == run.sizes["point_force"] - 1
        and browser.run("zwang.playback.forces(0, 0.2, 'contact')") == []
    )
    words = browser.run("[...document.querySelectorAll('#options button')].map(b => b.textContent)")
    assert "constraint forces" in words and "contact forces" not in words
    before = picture(browser)
    for word in ("constraint forces", "paths"):
        click = (
            f"[...document.querySelectorAll('#options button')].find(b => b.textContent === '{word}').click()"
        )
        browser.run(click)
        browser.settle()
        assert (np.abs(picture(browser) - before).max(axis=2) > 0.05).sum() > 50, word
        browser.run(click)


def test_names_are_shown_and_not_run(show):
    bodies = [zw.Body(name, zw.Revolute(f"j {name}"), mass=1, com=(0.1, 0, 0)) for name in HOSTILE]
    browser = show(zw.Mechanism(HOSTILE[0], bodies))
    browser.run("document.querySelector('#options button').click()")
    browser.settle()
    assert browser.run("document.getElementById('title').textContent") == HOSTILE[0]
    shown = browser.run("[...document.querySelectorAll('#labels span')].map(s => s.textContent)")
    assert shown == list(HOSTILE)
    assert browser.run("document.scripts.length") == 2 and browser.run("document.images.length") == 0


def test_the_page_may_not_connect(show):
    browser = show(double_pendulum())
    assert browser.run("fetch('https://example.org/').then(() => 'reached', () => 'refused')") == "refused"
    browser.errors.clear()  # the browser says on the console that it refused


def test_without_webgl_the_page_shows_an_error(browser, tmp_path):
    zw.save_html(double_pendulum(), tmp_path / "page.html")
    none = "HTMLCanvasElement.prototype.getContext = () => null"
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=none)["identifier"]
    browser.open((tmp_path / "page.html").as_uri())
    browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    assert "WebGL 2" in browser.run("document.getElementById('error').textContent")


@pytest.mark.parametrize("size", [(390, 844), (1600, 900)])
def test_it_fits_a_phone_and_a_desk(show, swing, size):
    show(swing).resize(*size)
    browser = show(swing, "#t=0.3")
    assert browser.run("document.documentElement.scrollWidth") <= size[0]
    width, height = browser.run("[zwang.renderer.canvas.clientWidth, zwang.renderer.canvas.clientHeight]")
    assert width > 300 and height > 350
    browser.resize(1280, 760)


def test_a_frame_in_a_notebook_draws(browser, tmp_path):
    (tmp_path / "book.html").write_text(
        f"<!doctype html><body>{embedded_page(page_html(four_bar()))}", encoding="ascii"
    )
    browser.errors.clear()
    browser.call("Page.navigate", url=(tmp_path / "book.html").as_uri())
    browser.until("document.readyState === 'complete'")
    for _ in range(50):
        browser.settle()
        if picture(browser).std() > 0.02:
            break
    assert picture(browser).std() > 0.02 and browser.errors == []
