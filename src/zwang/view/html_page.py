"""One HTML file that shows a mechanism or plays a motion, with everything it needs inside: it works offline, from disk.

What comes from a model, names above all, stands in the page as data only: the script puts it there as text, and the page's
content policy allows no script but its own and no connection.
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
from zwang.view.array_packing import packed
from zwang.view.scene import picture_of, scene_content

SCRIPTS = ("motion.js", "shapes.js", "draw.js", "charts.js", "camera.js", "stage.js", "panel.js")
POLICY = "default-src 'none'; img-src data:; style-src '{style}'; script-src '{script}'; connect-src 'none'; base-uri 'none'; form-action 'none'"


@validated_arguments()
def save_html(
    run_or_mechanism: xr.Dataset | Mechanism,
    path: str | Path,
    *,
    worlds: int = 16,
    traces: Sequence[str] = (),
) -> None:
    """Write one self-contained HTML file that plays a recording, or shows a mechanism with a slider for each joint.

    Of a recording the first `worlds` worlds are shown, side by side or over each other. traces: names of bodies or frames
    whose paths are drawn (and whose manipulability can be). Shapes and meshes have their colours; bodies without shapes are drawn as sticks and balls.
    Raises ParameterError for symbols without values, UnknownNameError for a frame, ShapeError for another dataset or no worlds,
    and WriteError for a file that cannot be written, after which an old one is as it was.
    """
    write_file(path, page_html(run_or_mechanism, worlds=worlds, traces=traces).encode("ascii"))


def page_html(what: Mechanism | xr.Dataset, *, worlds: int = 16, traces: Sequence[str] = ()) -> str:
    """The page's text, in ASCII."""
    scene = packed(picture_of(scene_content(what, worlds, traces)))
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
    """A page inside another one, which it cannot reach."""
    style = f"width:100%;height:{height}px;border:1px solid #dde1e6;border-radius:8px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page)}"></iframe>'


def _part(name: str) -> str:
    return resources.files("zwang.view").joinpath("web", name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    """As a content policy names a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _json(value: Any) -> str:
    """JSON in ASCII that no browser takes for markup, whatever the names in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
