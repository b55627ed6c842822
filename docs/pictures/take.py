"""Create the pictures of the gallery with Chromium: PYTHONPATH=. python docs/pictures/take.py [PAGE ...]

A picture is a screenshot of the page that `zw.save_html` writes for the recording of a gallery page, at a
given time and from a given direction.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import zwang as zw
from tests.view.chromium import Browser

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


def main() -> None:
    os.environ.setdefault("ZWANG_ROOT", str(DOCS.parent))
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or PICTURES:
            take(name, Path(folder))
            print(f"docs/pictures/{name}.png")


if __name__ == "__main__":
    main()
