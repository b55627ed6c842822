"""Create pictures of the documentation with Chromium: PYTHONPATH=. python docs/pictures/take.py [NAME ...]

A picture of the gallery is a screenshot of the page that `zw.save_html` writes for the recording of a gallery
page, at a given time and from a given direction, without controls. The pictures of docs/see.md show the
offline page and the live page with their controls; they need the package example-robot-data.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from PIL import Image

import zwang as zw
from tests.viewer.chromium import Browser
from zwang.mechanism.samples import FURUTA, double_pendulum, furuta

DOCS = Path(__file__).parents[1]
CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SIZE = (900, 600)
BARE = "for (const e of document.querySelectorAll('header, footer, #fold, #panel')) e.style.display = 'none'"
CLICK = "[...document.querySelectorAll('#options *')].find(e => e.textContent === '{}').click()"

# page: (time [s], names of the traced frames, camera, labels of the buttons to click)
PICTURES: dict[str, tuple[float, list[str], dict[str, float], list[str]]] = {
    "pendulum": (1.25, ["bob"], {"azimuth": -1.35, "height": 0.12, "nearer": 0.72}, ["overlay"]),
    "furuta": (0.7, ["tip"], {"azimuth": -0.7, "height": 0.35, "nearer": 0.8}, []),
    "sleigh": (9.0, ["knife edge"], {"azimuth": -1.2, "height": 0.6, "nearer": 0.72}, []),
    "rolling_disc": (7.2, ["disc"], {"azimuth": -0.9, "height": 0.42, "nearer": 0.8}, []),
    "four_bar": (5.4, ["pen"], {"azimuth": -1.3, "height": 0.22, "nearer": 0.8}, []),
    "robot_arm": (4.2, ["pen"], {"azimuth": 0.75, "height": 0.25, "nearer": 0.75}, []),
    "quadruped": (3.6, ["trunk"], {"azimuth": -0.9, "height": 0.25, "nearer": 0.68}, []),
    "humanoid": (0.55, [], {"azimuth": -1.05, "height": 0.25, "nearer": 0.62}, []),
}


def quadruped() -> Any:
    """A quadruped that stands on its four feet, with its forces."""
    m = zw.load(DOCS.parent / "examples" / "models" / "quadruped.xml")
    stand = m.keyframes[0]
    angles = dict(zip(m.inputs, stand.q[7:], strict=True))
    return zw.simulate(m, stand.q, duration=1.0, control=angles, record={"forces": True, "every": 5})


def robot(path: str, base: str = "fixed") -> zw.Mechanism:
    """A robot of the package example-robot-data."""
    for folder in Path(pin.__file__).parents:
        for share in (folder / "share", folder / "cmeel.prefix" / "share"):
            file = share / "example-robot-data" / "robots" / path
            if file.exists():
                return zw.load(file, strict=False, base=base)
    raise SystemExit("the package example-robot-data is missing: pip install '.[test]'")


def panda() -> zw.Mechanism:
    return robot("panda_description/urdf/panda.urdf")


def four_pandas() -> Any:
    """Four worlds of a falling arm from different configurations."""
    m = panda()
    q0 = PANDA + 0.3 * np.random.default_rng(0).normal(size=(4, m.nq)) * (np.arange(m.nq) < 7)
    return zw.simulate(m, q0, duration=1.0, step=0.001, record=10)


def six_pendula(difference: float, duration: float) -> Any:
    """Six double pendulums whose initial angles differ by a small angle [rad]."""
    q0 = [[2.0 + difference * k, 1.0] for k in range(6)]
    m = double_pendulum()
    m = m.replace(frames=(zw.Frame("tip", "lower", m.body("lower").com),))
    return zw.simulate(m, q0, duration=duration, step=0.002, integrator="rk4", record=5)


class PagePicture(NamedTuple):
    """A picture of a page with its controls.

    content: the mechanism or recording. shown: labels of the buttons to click on the offline page, or options
    to enable on the live page. q: configuration to display. resimulate: the sliders of the page's simulation.
    """

    content: Callable[[], Any]
    size: tuple[int, int]
    seconds: float | None = None
    traces: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    q: np.ndarray | None = None
    resimulate: tuple[str, ...] = ()


class Strip(NamedTuple):
    """Pictures of a motion of examples/trajectory_optimisation.py at several times [s], four in a row."""

    motion: str
    times: tuple[float, ...]
    camera: dict[str, float]
    size: tuple[int, int] = (300, 260)
    traces: tuple[str, ...] = ()


def rotary_pendulum() -> Any:
    """The fall of a rotary pendulum, with symbols."""
    settings = {"duration": 10.0, "step": 0.001, "integrator": "rk4", "control": 0.0}
    return zw.simulate(furuta(), {"alpha": 0.3}, params=FURUTA, **settings)


PANDA = np.array([0.5, -0.5, 0.2, -2.2, 0.1, 1.9, 0.6, 0.02, 0.02])
OFFLINE_PAGES = {
    "page_quadruped": PagePicture(quadruped, (1280, 800), 0.9, ("trunk",)),
    "panda_worlds": PagePicture(four_pandas, (1280, 760), 0.45, ("panda_hand",)),
    "resimulate": PagePicture(
        rotary_pendulum, (1280, 760), 0.4, ("pendulum",), resimulate=("L_r", "L_p", "m_p", "B_p", "g", "tau")
    ),
    "ghosts": PagePicture(lambda: six_pendula(0.01, 8.0), (1280, 760), 6.0, ("lower",), ("overlay",)),
    "talos": PagePicture(lambda: robot("talos_data/robots/talos_reduced.urdf", "free"), (1280, 760)),
}
LIVE_PAGES = {
    "view_panda": PagePicture(panda, (960, 600), None, ("panda_hand",), ("mass", "ellipsoids"), PANDA),
    "view_pendula": PagePicture(lambda: six_pendula(0.03, 4.0), (960, 600), 2.6, ("tip",), ("overlay",)),
    "view_quadruped": PagePicture(quadruped, (960, 600), 0.9),
    "view_phone": PagePicture(quadruped, (390, 844), 0.9),
}
STRIPS = {
    "ilqr_acrobot": Strip(
        "acrobot", (0.0, 0.8, 1.6, 2.2, 2.6, 3.0, 3.4, 4.0), {"azimuth": -1.57, "height": 0.0, "nearer": 1.15}
    ),
    "ilqr_quadruped": Strip(
        "trot", (0.0, 0.85, 1.1, 1.35, 1.6, 1.85, 2.1, 2.9), {"azimuth": -1.3, "height": 0.2, "nearer": 0.82},
        traces=("trunk",),
    ),
    "ilqr_humanoid": Strip(
        "balance", (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.8), {"azimuth": 0.35, "height": 0.15, "nearer": 1.3}
    ),
}  # fmt: skip
LIVE_PAGE_READY = (
    "Boolean(window.__viserSceneTree) && '/surface/0' in window.__viserSceneTree.getState() "
    "&& document.querySelectorAll('label').length > 3"
)
CLOSE_NOTICES = "document.querySelectorAll('.mantine-Notification-closeButton').forEach(b => b.click())"
SETTLING_TIME = 12000  # time that the live page needs to load its plots and to draw [ms]


def run_of(page: Path) -> Any:
    """The recording that the cells of a page compute; cells that open the viewer are skipped."""
    names: dict[str, Any] = {}
    for code in CELL.findall(page.read_text(encoding="utf-8")):
        if not code.startswith("zw.view("):
            exec(compile(code, str(page), "exec"), names)
    return names["run"]


def take(name: str, folder: Path) -> None:
    """Write docs/pictures/NAME.png."""
    seconds, traces, camera, clicked = PICTURES[name]
    html = folder / f"{name}.html"
    zw.save_html(run_of(DOCS / "gallery" / f"{name}.md"), html, traces=traces)
    browser = Browser(folder / "profile", size=SIZE)
    try:
        browser.open(f"{html.as_uri()}#t={seconds}")
        browser.run("document.querySelector('#fold').click()")
        browser.settle()
        for text in [*clicked, "reset view"]:
            browser.run(CLICK.format(text))
        browser.run(BARE)
        browser.run(
            f"Object.assign(zwang.camera, {{azimuth: {camera['azimuth']}, height: {camera['height']}}});"
            f"zwang.camera.distance *= {camera['nearer']}; zwang.camera.changed()"
        )
        browser.settle()
        (DOCS / "pictures" / f"{name}.png").write_bytes(browser.screenshot())
    finally:
        browser.close()


def motion(name: str) -> Any:
    """The recording of a motion of examples/trajectory_optimisation.py."""
    sys.path.insert(0, str(DOCS.parent / "examples"))
    import trajectory_optimisation as motions  # noqa: PLC0415, examples are no package

    problem = motions.PROBLEMS[name]()
    fast = zw.compile(problem.mechanism)
    if name == "balance":
        return motions.balanced(problem, fast, 2.0)[0]
    return motions.simulated(problem, motions.planned(problem, fast), problem.disturbance)


def take_strip(name: str, folder: Path) -> None:
    """Write docs/pictures/NAME.png: a motion at several times, side by side."""
    strip = STRIPS[name]
    html = folder / f"{name}.html"
    zw.save_html(motion(strip.motion), html, traces=strip.traces)
    browser = Browser(folder / "profile", size=strip.size)
    frames = []
    try:
        for seconds in strip.times:
            browser.open(f"{html.as_uri()}?{seconds}#t={seconds}")  # another address loads the page again
            browser.run("document.querySelector('#fold').click()")
            browser.settle()
            browser.run(CLICK.format("reset view"))
            browser.run(BARE)
            camera = strip.camera
            browser.run(
                f"Object.assign(zwang.camera, {{azimuth: {camera['azimuth']}, height: {camera['height']}}});"
                f"zwang.camera.distance *= {camera['nearer']}; zwang.camera.changed()"
            )
            browser.settle()
            frames.append(Image.open(io.BytesIO(browser.screenshot())).convert("RGB"))
    finally:
        browser.close()
    width, height = frames[0].size
    tiled = Image.new("RGB", (4 * width, -(-len(frames) // 4) * height))
    for k, frame in enumerate(frames):
        tiled.paste(frame, (k % 4 * width, k // 4 * height))
    tiled.save(DOCS / "pictures" / f"{name}.png", optimize=True)


def take_offline_page(name: str, folder: Path) -> None:
    """Write docs/pictures/NAME.png, a picture of the offline page with its controls."""
    picture = OFFLINE_PAGES[name]
    html = folder / f"{name}.html"
    zw.save_html(picture.content(), html, traces=picture.traces, resimulate=picture.resimulate or False)
    browser = Browser(folder / "profile", size=picture.size)
    try:
        browser.open(html.as_uri() + ("" if picture.seconds is None else f"#t={picture.seconds}"))
        for text in picture.shown:
            browser.run(CLICK.format(text))
        browser.settle()
        (DOCS / "pictures" / f"{name}.png").write_bytes(browser.screenshot())
    finally:
        browser.close()


def take_live_page(name: str, folder: Path) -> None:
    """Write docs/pictures/NAME.png, a picture of the live page with its controls."""
    picture = LIVE_PAGES[name]
    browser = Browser(folder / "profile", size=picture.size)
    try:
        with zw.view(picture.content(), traces=picture.traces, browser=False) as view:
            page = view._page
            page.play(False)
            if picture.seconds is not None:
                page.seek(picture.seconds)
            if picture.q is not None:
                view.show(picture.q)
            for option in picture.shown:
                setattr(page.show, option, True)
            page.changed()
            browser.call("Page.navigate", url=view.url)
            browser.until(LIVE_PAGE_READY)
            for action in (CLOSE_NOTICES, "0"):
                browser.run(f"new Promise(done => setTimeout(done, {SETTLING_TIME} / 2))")
                browser.run(action)
            (DOCS / "pictures" / f"{name}.png").write_bytes(browser.screenshot())
    finally:
        browser.close()


def main() -> None:
    os.environ.setdefault("ZWANG_ROOT", str(DOCS.parent))
    kinds = ((PICTURES, take), (STRIPS, take_strip), (OFFLINE_PAGES, take_offline_page))
    takers = {name: taker for pictures, taker in kinds for name in pictures}
    takers |= dict.fromkeys(LIVE_PAGES, take_live_page)
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or takers:
            takers[name](name, Path(folder))
            print(f"docs/pictures/{name}.png")


if __name__ == "__main__":
    main()
