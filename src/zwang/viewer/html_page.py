"""A self-contained HTML file that shows a mechanism or plays a recording; it works offline, from disk.

Everything that comes from a model, such as names, is stored in the page as data, which the script inserts as
text only. The page's content security policy allows no other script and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import xarray as xr

from zwang.atomic import write_file
from zwang.errors import SimulationError
from zwang.lazy_imports import import_module
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.viewer.array_packing import pack_arrays
from zwang.viewer.scene import scene_content, scene_data_of

SCRIPTS = (
    "playback.js", "shapes.js", "renderer.js", "charts.js", "camera.js", "scene.js", "simulation.js",
    "panel.js",
)  # fmt: skip
POLICY = (
    "default-src 'none'; img-src data:; style-src '{style}'; script-src {script}; connect-src 'none'; "
    "base-uri 'none'; form-action 'none'"
)


@validated_arguments()
def save_html(
    run_or_mechanism: xr.Dataset | Mechanism,
    path: str | Path,
    *,
    worlds: int = 16,
    traces: Sequence[str] = (),
    resimulate: bool | Sequence[str] | Mapping[str, tuple[float, float]] = False,
) -> None:
    """Write a self-contained HTML file that plays a recording, or shows a mechanism with a slider for each
    joint.

    run_or_mechanism: a recording of `zw.simulate`, or a mechanism without free symbols. Bodies without shapes
        are drawn as sticks and spheres.
    path: the file to write.
    worlds: the number of worlds of a recording to show, side by side or overlaid; 16 by default.
    traces: the name of a body or frame whose path and velocity ellipsoid can be drawn, or several names.
    resimulate: for a recording of one world with a constant control and steps of fixed size, the page can
        contain the simulation itself, compiled to WebAssembly. The parameters (symbols) and inputs of the
        mechanism then get sliders, and each change simulates the motion again, in the browser, with the same
        arithmetic as `zw.simulate`. True for all of them, a list of names, or a dictionary from names to
        (low, high). Sizes of shapes stay as they are; positions follow the parameters. Needs the package
        ziglang (`pip install 'zwang[export]'`).

    Raises ParameterError for symbols without values, UnknownNameError for an unknown frame, ShapeError for a
    dataset that is not a recording or has no worlds, and WriteError if the file cannot be written; an
    existing file is then unchanged. With `resimulate`, SimulationError for a mechanism instead of a
    recording, and for a recording whose simulation a page cannot repeat, DescriptionError for a range with
    impossible values, and MissingExtraError without ziglang.
    """
    page = page_html(run_or_mechanism, worlds=worlds, traces=traces, resimulate=resimulate)
    write_file(path, page.encode("ascii"))


def page_html(
    what: Mechanism | xr.Dataset,
    *,
    worlds: int = 16,
    traces: Sequence[str] = (),
    resimulate: bool | Sequence[str] | Mapping[str, tuple[float, float]] = False,
) -> str:
    """The HTML text of the page, in ASCII; the arguments are those of `save_html`."""
    data = scene_data_of(scene_content(what, worlds, traces))
    scripts = [_part(name) for name in SCRIPTS]
    if resimulate is not False:
        data["simulation"], instantiate = _simulation(what, data, resimulate)
        scripts.insert(0, instantiate)
    scene = pack_arrays(data)
    script = "'use strict';\n" + "\n".join(scripts)
    style = _part("style.css")
    allowed = f"'{_hash(script)}'" + " 'wasm-unsafe-eval'" * (resimulate is not False)
    policy = POLICY.format(style=_hash(style), script=allowed)
    filled = {
        "policy": policy, "style": style, "script": script, "scene": _json(scene),
        "title": html.escape(f"{scene['title']} - zwang"),
    }  # fmt: skip
    pieces = _part("frame.html").split("{{")
    rest = [piece.split("}}", 1) for piece in pieces[1:]]
    text = pieces[0] + "".join(filled[name] + after for name, after in rest)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _simulation(what: Mechanism | xr.Dataset, data: dict[str, Any], names: Any) -> tuple[dict[str, Any], str]:
    """The data from which the page repeats the simulation of a recording, and the script that loads them."""
    if isinstance(what, Mechanism):
        raise SimulationError(
            "resimulate= repeats the simulation of a recording, and this is a mechanism; give the recording "
            "that zw.simulate returns"
        )
    # the compiler is loaded only for pages that contain a simulation
    found = import_module("zwang.viewer.browser_simulation")
    return found.browser_simulation(what, data["models"][0], names, data["run"]["times"]), found.SCRIPT


def embedded_page(page: str, height: int = 560) -> str:
    """The page in a sandboxed frame of another page, which it cannot access."""
    style = f"width:100%;height:{height}px;border:1px solid #dde1e6;border-radius:8px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page)}"></iframe>'


def _part(name: str) -> str:
    return resources.files("zwang.viewer").joinpath("web", name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    """The hash by which a content security policy names a script or a style sheet."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _json(value: Any) -> str:
    """JSON in ASCII that contains no markup characters, whatever the names in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
