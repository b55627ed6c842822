"""A self-contained HTML file that shows a mechanism or plays a recording; it works offline, from disk.

Everything that comes from a model, such as names, is stored in the page as data, which the script inserts as
text only. The page's content security policy allows no other script and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import xarray as xr

from zwang.atomic import write_file
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.viewer.array_packing import pack_arrays
from zwang.viewer.scene import scene_content, scene_data_of

SCRIPTS = ("playback.js", "shapes.js", "renderer.js", "charts.js", "camera.js", "scene.js", "panel.js")
POLICY = (
    "default-src 'none'; img-src data:; style-src '{style}'; script-src '{script}'; connect-src 'none'; "
    "base-uri 'none'; form-action 'none'"
)


@validated_arguments()
def save_html(
    run_or_mechanism: xr.Dataset | Mechanism,
    path: str | Path,
    *,
    worlds: int = 16,
    traces: Sequence[str] = (),
) -> None:
    """Write a self-contained HTML file that plays a recording, or shows a mechanism with a slider for each
    joint.

    run_or_mechanism: a recording of `zw.simulate`, or a mechanism without free symbols. Bodies without shapes
        are drawn as sticks and spheres.
    path: the file to write.
    worlds: the number of worlds of a recording to show, side by side or overlaid; 16 by default.
    traces: names of bodies or frames whose paths and velocity ellipsoids can be drawn.

    Raises ParameterError for symbols without values, UnknownNameError for an unknown frame, ShapeError for a
    dataset that is not a recording or has no worlds, and WriteError if the file cannot be written; an
    existing file is then unchanged.
    """
    write_file(path, page_html(run_or_mechanism, worlds=worlds, traces=traces).encode("ascii"))


def page_html(what: Mechanism | xr.Dataset, *, worlds: int = 16, traces: Sequence[str] = ()) -> str:
    """The HTML text of the page, in ASCII; the arguments are those of `save_html`."""
    scene = pack_arrays(scene_data_of(scene_content(what, worlds, traces)))
    script = "'use strict';\n" + "\n".join(_part(name) for name in SCRIPTS)
    style = _part("style.css")
    policy = POLICY.format(style=_hash(style), script=_hash(script))
    filled = {
        "policy": policy, "style": style, "script": script, "scene": _json(scene),
        "title": html.escape(f"{scene['title']} - zwang"),
    }  # fmt: skip
    pieces = _part("frame.html").split("{{")
    rest = [piece.split("}}", 1) for piece in pieces[1:]]
    text = pieces[0] + "".join(filled[name] + after for name, after in rest)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


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
