"""The live page in a browser: it draws and plays, sliders move their joints, and names are text."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.image import imread
from scipy.spatial.transform import Rotation

import zwang as zw
from tests.viewer.scenes import HOSTILE
from zwang.mechanism.samples import double_pendulum, four_bar

pytest.importorskip("viser")
pytestmark = pytest.mark.needs("chromium")
SIZE = (760, 420)  # small, for browsers that draw without a graphics processor
STAGE = (
    slice(150, 410),
    slice(0, 430),
    slice(0, 3),
)  # rows, columns and colours without the panel and viser's notes
STATE = "window.__viserSceneTree.getState()"
READY = f"Boolean(window.__viserSceneTree) && '/surface/0' in {STATE}"
READY += " && document.querySelectorAll('label').length > 3"


@pytest.fixture
def show(browser):
    """Opens viser's page of a mechanism or a recording; afterwards there must be no error on the browser's
    console.
    """
    opened = []

    def go(what, size=SIZE, **options):
        page = zw.view(what, browser=False, **options)
        opened.append(page)
        page._page.play(False)
        # without shadows and reflections, which take seconds without a graphics processor
        page._page.server.scene.configure_default_lights(cast_shadow=False)
        page._page.server.scene.configure_environment_map(hdri=None)
        browser.resize(*size)
        browser.call("Page.navigate", url="about:blank")
        browser.errors.clear()
        browser.call("Page.navigate", url=page.url)
        browser.until(READY)
        return page._page

    yield go
    browser.settle()
    errors = list(browser.errors)
    browser.call("Page.navigate", url="about:blank")
    browser.resize(*SIZE)
    for page in opened:
        page.close()
    assert errors == []


def picture(browser) -> np.ndarray:
    return imread(io.BytesIO(browser.screenshot()))[STAGE]


def drawn(browser, condition) -> np.ndarray:
    """The picture, as soon as it fulfils a condition."""
    for _ in range(100):
        browser.run("new Promise(done => setTimeout(done, 100))")
        found = picture(browser)
        if condition(found):
            return found
    raise AssertionError("the picture did not change")


def is_drawn(found: np.ndarray) -> bool:
    return (
        found.std(axis=(0, 1)).min() > 0.02
        and len(np.unique((found * 255).astype(int).reshape(-1, 3), axis=0)) > 200
    )


def differs_from(first: np.ndarray):
    return lambda found: (np.abs(found - first).max(axis=2) > 0.1).sum() > 200


def instances(browser, node: str) -> tuple[np.ndarray, np.ndarray]:
    """Quaternions (n, 4), ordered (w, x, y, z), and positions (n, 3) of a node's instances in the browser."""
    props = f"{STATE}[{json.dumps(node)}].message.props"
    quaternions, positions = (
        browser.run(f"Array.from({props}.batched_{name})") for name in ("wxyzs", "positions")
    )
    return np.reshape(quaternions, (-1, 4)), np.reshape(positions, (-1, 3))


def expect_at(browser, page, q) -> None:
    """Every link has the pose of the forward kinematics at q."""
    m = page.playback.mechanisms[0]
    poses = [(m.tree.placements[b.name].link, zw.frame_pose(m, q, b.name)) for b in m.bodies]
    seen = set()
    for k, node in enumerate(page.scene._nodes):
        quaternion, position = (part[0] for part in instances(browser, f"/surface/{k}"))
        for link, (R, p) in poses:
            if link == node.part.link >= 0:
                np.testing.assert_allclose(position, page.scene.root @ p + page.scene.offsets[0], atol=1e-5)
                R_seen = Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()
                np.testing.assert_allclose(R_seen, page.scene.root @ R, atol=1e-5)
                seen.add(link)
    assert seen == {link for link, _ in poses}


def press(browser, key: str, times: int = 1) -> None:
    for _ in range(times):
        for kind in ("keyDown", "keyUp"):
            browser.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode={"ArrowRight": 39, "ArrowLeft": 37, "End": 35}[key],
            )


def slide(browser, label: str, **keys: int) -> None:
    """Move a slider by the keyboard: the names of keys, and how often each is pressed."""
    browser.run(f"""(() => {{
      const label = [...document.querySelectorAll('label')].find(l => l.textContent === {json.dumps(label)});
      document.getElementById(label.htmlFor).querySelector('[role=slider]').focus();
    }})()""")
    for key, times in keys.items():
        press(browser, key, times)


def click(browser, word: str) -> None:
    browser.run(
        f"[...document.querySelectorAll('button')].find(b => b.textContent === {json.dumps(word)}).click()"
    )


@pytest.fixture(scope="module")
def swing():
    return zw.simulate(double_pendulum(), [2.0, 1.0], duration=2, step=0.002, integrator="rk4")


def test_the_picture_is_not_blank_and_differs_between_two_times(show, browser, swing):
    page = show(swing)
    page.seek(0.2)
    first = drawn(browser, is_drawn)
    expect_at(browser, page, page.playback.configuration(0, 0.2))
    page.seek(0.7)
    drawn(browser, differs_from(first))
    expect_at(browser, page, swing.q.isel(world=0).interp(time=0.7).values)


def test_it_plays_at_a_click_and_stops_at_the_next(show, browser, swing):
    page = show(swing)
    click(browser, "Play")
    browser.until("[...document.querySelectorAll('button')].some(b => b.textContent === 'Pause')")
    for _ in range(100):
        browser.settle()
        if page.t > 0.1:
            break
    assert page.playing and page.t > 0.1
    click(browser, "Pause")
    browser.until("[...document.querySelectorAll('button')].some(b => b.textContent === 'Play')")
    now = page.t
    browser.run("new Promise(done => setTimeout(done, 200))")
    assert page.t == now and not page.playing


def test_the_time_slider_seeks(show, browser, swing):
    page = show(swing)
    slide(browser, "t [s]", ArrowRight=20)
    for _ in range(100):
        browser.settle()
        if page.t == pytest.approx(0.04, abs=1e-6):
            break
    assert page.t == pytest.approx(0.04, abs=1e-6) and not page.playing


def test_a_slider_moves_its_joint_and_what_it_carries(show, browser):
    """To the end of its range, pi, and five of its steps, 2 pi / 1000, back."""
    page = show(double_pendulum())
    before, expected = drawn(browser, is_drawn), np.zeros(2)
    for k, label in (
        (1, "elbow [rad]"),
        (0, "shoulder [rad]"),
    ):  # in this order both moves are in the picture
        slide(browser, label, End=1, ArrowLeft=5)
        before = drawn(browser, differs_from(before))
        expected[k] = np.pi * (1 - 5 * 2 / 1000)
        q = page.playback.configuration(0, 0.0)
        np.testing.assert_allclose(q, expected, atol=2e-3)
        expect_at(browser, page, q)


def test_python_moves_the_page(show, browser):
    page = show(double_pendulum())
    first = drawn(browser, is_drawn)
    page.set_configuration(0, np.array([0.4, -0.7]))
    drawn(browser, differs_from(first))
    expect_at(browser, page, [0.4, -0.7])


def test_worlds_are_side_by_side_or_overlaid(show, browser):
    run = zw.simulate(double_pendulum(), [[1.0, 0], [2.0, 0], [3.0, 0]], duration=0.5, step=0.005)
    page = show(run, traces=["lower"])
    apart = drawn(browser, is_drawn)
    assert len(np.unique(instances(browser, "/surface/0")[1].round(4), axis=0)) == 3
    page.show.overlay = True
    page.changed()
    drawn(browser, differs_from(apart))
    assert len(np.unique(instances(browser, "/surface/0")[1].round(4), axis=0)) == 1
    assert "/paths" in browser.run(f"Object.keys({STATE})")


def test_contacts_and_constraints_are_arrows_of_their_forces(show, browser):
    ball = zw.Body("ball", zw.Prismatic("z"), position=(0, 0, 0.1), mass=2, geometry=[zw.Sphere(0.1)])
    m = zw.Mechanism("ball", [ball], geometry=[zw.Plane()])
    run = zw.simulate(m, duration=1.0, step=0.005, record={"forces": True}, compiled=False)
    page = show(run)
    page.seek(1.0)
    browser.until(f"'/force/contact' in {STATE}")
    arrow = np.reshape(browser.run(f"Array.from({STATE}['/force/contact'].message.props.points)"), (-1, 2, 3))
    assert len(arrow) == 1
    np.testing.assert_allclose(arrow[0, 0], 0, atol=2e-3)
    np.testing.assert_allclose(
        arrow[0, 1] - arrow[0, 0], (0, 0, 0.35 * page.scene.extent), rtol=1e-3, atol=1e-5
    )
    loop = zw.simulate(four_bar(), duration=0.2, step=0.005, record={"forces": True}, compiled=False)
    page = show(loop)
    browser.until(f"'/force/constraint' in {STATE}")


def test_every_annotation_is_drawn(show, browser, swing):
    page = show(swing, traces=["lower"])
    first = drawn(browser, is_drawn)
    for mark, node in {
        "names": "/name/0",
        "frames": "/frames",
        "mass": "/masses",
        "ellipsoids": "/ellipsoids",
    }.items():
        setattr(page.show, mark, True)
        page.changed()
        browser.until(f"{json.dumps(node)} in {STATE}")
    drawn(browser, differs_from(first))
    centre = zw.mass_centre(double_pendulum(), page.playback.configuration(0, page.t))
    np.testing.assert_allclose(instances(browser, "/masses")[1][-1], page.scene.root @ centre, atol=1e-5)


SCRIPT = """import webbrowser
webbrowser.open = lambda url: print(url, flush=True)
import zwang as zw
from zwang.mechanism.samples import double_pendulum
run = zw.simulate(double_pendulum(), [1, 0], duration=30, step=0.05, compiled=False, progress=False)
page = zw.view(run)
page._page.server.scene.configure_environment_map(hdri=None)
"""


def test_the_page_of_a_script_is_served_until_the_browser_closes_it(browser):
    browser.resize(*SIZE)
    with subprocess.Popen([sys.executable, "-u", "-c", SCRIPT], stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        url = script.stdout.readline().strip()
        browser.call("Page.navigate", url=url)
        browser.until(READY)
        for word, then in (("Pause", "Play"), ("Play", "Pause")):
            browser.until(f"[...document.querySelectorAll('button')].some(b => b.textContent === '{word}')")
            click(browser, word)
            browser.until(f"[...document.querySelectorAll('button')].some(b => b.textContent === '{then}')")
        assert script.poll() is None and url in script.stdout.readline()
        browser.call("Page.navigate", url="about:blank")
        assert script.wait(30) == 0


def test_names_are_text_and_not_run(show, browser):
    made = [zw.Body(name, zw.Revolute(f"j {name}"), mass=1, com=(0.1, 0, 0)) for name in HOSTILE]
    m = zw.Mechanism(HOSTILE[0], made)
    run = zw.simulate(m, duration=0.02, step=0.01, compiled=False)
    browser.call(
        "Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.alerted = true; }"
    )
    page = show(run, traces=[HOSTILE[1]])
    page.show.names = True
    page.panel.plots[1].set_lines(page.panel._lines())
    page.changed()
    browser.until(f"'/name/{len(HOSTILE) - 1}' in {STATE}")
    browser.until(f"document.body.innerText.includes({json.dumps(HOSTILE[0])})")
    assert browser.run("window.alerted") is None
    assert browser.run("[...document.querySelectorAll('img')].filter(i => i.src.endsWith('/x')).length") == 0


def test_the_page_may_connect_to_its_own_server_only(show, browser):
    show(double_pendulum())
    assert browser.run("fetch('https://example.org/').then(() => 'reached', () => 'refused')") == "refused"
    browser.errors.clear()  # the browser says on the console that it refused


def test_it_fits_a_phone(show, browser, swing):
    show(swing, size=(390, 844))
    assert browser.run("document.documentElement.scrollWidth") <= 390
    width, height = browser.run("(c => [c.clientWidth, c.clientHeight])(document.querySelector('canvas'))")
    assert width > 300 and height > 350
