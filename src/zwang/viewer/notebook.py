"""Rich displays of mechanisms and recordings in notebooks, as self-contained HTML in which all names are
escaped.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from zwang.errors import ZwangError
from zwang.mechanism.bodies import Body
from zwang.mechanism.mechanism import JointIndex, Mechanism
from zwang.recording.dataset import coordinate_units, mechanism_of, with_current_names
from zwang.recording.energy_change import energy_summary
from zwang.recording.mechanism_order import in_mechanism_order, parameters_of
from zwang.scalar import are_constant
from zwang.viewer.html_page import embedded_page, page_html
from zwang.viewer.thumbnail import HEIGHT, WIDTH, thumbnail_png

MAXIMUM_ROWS, MAXIMUM_NAMES, MAXIMUM_NAME_LENGTH = (
    40,
    8,
    48,
)  # bodies in a table, names on a line, characters of a name
WORLDS_PLAYED = (
    8,
    1,
)  # worlds of a recording that are played; the second number if the page with the first is too large
MAXIMUM_PAGE_BYTES = 4_000_000  # size of a page inside a notebook
MAXIMUM_DRAWN = 3_000  # bodies of a mechanism, or coordinates of a recording, that a notebook displays
PLAYER_HEIGHT, TABLE_WIDTH = 460, "min(100%,660px)"
LIMITS_COLUMN = 3  # the column that is omitted if no joint has limits
CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top;border:none;background:none"
SIDE_BY_SIDE = "display:flex;flex-wrap:wrap;gap:8px 28px;align-items:flex-start"
REQUIRED_VARIABLES = {"q", "v", "energy", "kinetic_energy", "potential_energy", "mechanism", "status"}


def mechanism_html(m: Mechanism) -> str:
    """The display of a mechanism: a table of bodies, joints, masses, inputs and constraints,
    and a picture.
    """
    left = _heading(m.name) + _facts(_mechanism_facts(m)) + _table(m)
    return (
        f'<div class="zwang-mechanism" style="{SIDE_BY_SIDE}">'
        f'<div style="flex:0 1 auto;min-width:0;max-width:{TABLE_WIDTH};overflow-x:auto">{left}</div>'
        f'<div style="flex:none">{_picture(m)}</div></div>'
    )


def run_html(run: xr.Dataset) -> str:
    """The display of a recording: a summary, a player of its first worlds (or a picture, if it is large), and
    the data.

    An incomplete recording is displayed by xarray, and so is every recording if xarray is set to display
    text.
    """
    if not _is_complete(run) or xr.get_options()["display_style"] == "text":
        return run._repr_html_()
    top = _heading(str(run.attrs.get("title", "run"))) + _facts(_run_facts(run))
    own = run.drop_vars("mechanism")._repr_html_()  # xarray would display its whole text
    data = f"<details><summary>Data (an xarray.Dataset)</summary>{own}</details>"
    return f'<div class="zwang-run">{top}{_player(run)}{data}</div>'


def _is_complete(run: xr.Dataset) -> bool:
    """Whether a recording has all variables that the display needs, and at least one world and one time."""
    sizes = all(run.sizes.get(name, 0) > 0 for name in ("world", "time"))
    return (
        sizes
        and set(run.data_vars) >= REQUIRED_VARIABLES
        and run["q"].dims == ("world", "time", "coordinate")
    )


# ------------------------------------------------------------------------------------------------ a mechanism


def _mechanism_facts(m: Mechanism) -> list[tuple[str, str]]:
    """The properties of a mechanism as pairs of a title and a text; empty ones are omitted."""
    notes = [note for note in m.report.notes if note.kind != "read"]
    shapes = sum(len(body.geometry) for body in m.bodies) + len(m.geometry)
    facts = [
        ("dimensions", f"nq = {m.nq} coordinates, nv = {m.nv} velocities"),
        ("total mass", _total_mass(m)),
        ("gravity", f"{_numbers(m.gravity)} m/s²"),
        ("symbols", _names(m.symbols)),
        ("inputs", _names(m.inputs)),
        ("constraints", _names(f"{type(c).__name__} {c.name}".strip() for c in m.constraints)),
        ("tendons", _names(t.name for t in m.tendons)),
        ("frames", _names(f.name for f in m.frames)),
        ("shapes", str(shapes or "")),
        ("read from", _short(Path(m.report.source).name)),
        ("notes", f"{len(notes)} notes of the reader, in .report" if notes else ""),
    ]
    return [(title, text) for title, text in facts if text]


def _total_mass(m: Mechanism) -> str:
    masses = [body.mass for body in m.bodies]
    if not masses:
        return ""
    return f"{_number(sum(masses))} kg" if are_constant(*masses) else "symbolic"


def _table(m: Mechanism) -> str:
    """A table with a row for each body, which has a line for each joint of the body."""
    joints: dict[str, list[JointIndex]] = {}
    for joint in m.joints:
        joints.setdefault(joint.body, []).append(joint)
    units = coordinate_units(m)
    rows = [_row(body, joints.get(body.name, []), units) for body in m.bodies[:MAXIMUM_ROWS]]
    if len(m.bodies) > MAXIMUM_ROWS:
        rows.append([[f"and {len(m.bodies) - MAXIMUM_ROWS} more"], *([[]] * 4)])
    titles = ["body", "parent", "joint", "limits", "mass [kg]"]
    if not any(any(row[LIMITS_COLUMN]) for row in rows):
        titles, rows = _without_limits(titles), [_without_limits(row) for row in rows]
    head = "".join(f'<th style="{CELL};white-space:nowrap">{title}</th>' for title in titles)
    lines = "".join(f"<tr>{''.join(_cell(lines) for lines in row)}</tr>" for row in rows)
    style = "border-collapse:collapse"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'


def _without_limits(cells: list[Any]) -> list[Any]:
    """The cells of a row without that of the limits."""
    return cells[:LIMITS_COLUMN] + cells[LIMITS_COLUMN + 1 :]


def _row(body: Body, joints: Sequence[JointIndex], units: Sequence[str]) -> list[list[str]]:
    """The lines of each cell in the row of a body."""
    kinds = [f"{j.kind} {_short(j.name)}" for j in joints] or ["fixed"]
    limits = [_limits(j, units[int(j.q.start)]) for j in joints]
    return [[_short(body.name)], [_short(body.parent)], kinds, limits, [_number(body.mass)]]


def _limits(joint: JointIndex, unit: str) -> str:
    """The limits of a joint, "" if it has none; for a ball joint, those of the rotation angle."""
    limits = getattr(joint.joint, "limits", None)
    if limits is None:
        return ""
    low, high = limits
    return f"[{_number(low)}, {_number(high)}] {unit if unit != '1' else 'rad'}"


def _picture(m: Mechanism) -> str:
    """The picture, or the reason why there is none. A symbolic mechanism is drawn as sticks, with each symbol
    set to 1.
    """
    if len(m.bodies) > MAXIMUM_DRAWN:
        return _note(
            "p",
            _too_large_to_draw(
                len(m.bodies),
                "bodies",
                "zw.view(mechanism) shows it, zw.save_html(mechanism, path) writes a page",
            ),
        )
    try:
        image = _image(
            thumbnail_png(_with_unit_symbols(m) if m.symbols else m), f"picture of {_short(m.name)}"
        )
    except ZwangError as error:
        return _note("p", f"no picture: {_short(str(error), 200)}")
    caption = "default configuration" + (", with each symbol set to 1" if m.symbols else "")
    return f'<figure style="margin:0">{image}{_note("figcaption", caption)}</figure>'


def _too_large_to_draw(count: int, what: str, instead: str) -> str:
    return f"{count:,} {what} are not drawn here, as they are more than {MAXIMUM_DRAWN:,}: {instead}"


def _with_unit_symbols(m: Mechanism) -> Mechanism:
    """The mechanism with each symbol set to 1, and without shapes, whose sizes would not match."""
    ones = m.subs(dict.fromkeys(m.symbols, 1))
    bodies = [replace(body, geometry=(), density=None, unchecked_inertia=True) for body in ones.bodies]
    return ones.replace(bodies=bodies, geometry=(), contacts=(), sensors=())


# ------------------------------------------------------------------------------------------------ a recording


def _run_facts(run: xr.Dataset) -> list[tuple[str, str]]:
    """The properties of a recording as pairs of a title and a text."""
    attributes, times, worlds = run.attrs, run["time"].values, run.sizes["world"]
    step = f", step size {attributes['step']:g} s" if "step" in attributes else ""
    stopped = int((run["status"] == 1).sum())
    facts = [
        ("simulated", f"{times[-1] - times[0]:.6g} s, integrator {attributes.get('integrator', '?')}{step}"),
        ("worlds", f"{worlds:,}"),
        ("recorded", f"{len(times):,} times: {_names(n for n in run.data_vars if 'time' in run[n].dims)}"),
        ("parameters", _parameters(run)),
        ("evaluation", str(attributes.get("path", ""))),
        ("energy", energy_summary(run)),
        ("stopped early", _failures(run, stopped) if stopped else ""),
    ]
    return [(title, text) for title, text in facts if text]


def _parameters(run: xr.Dataset) -> str:
    """The values of the symbols, or their ranges over several worlds."""
    if "parameters" not in run.coords:
        return ""
    table = np.asarray(run["parameters"].transpose("world", "parameter").values, dtype=float)
    ends = zip(table.min(axis=0), table.max(axis=0), strict=True)
    spans = [_number(low) + (f" to {_number(high)}" if high > low else "") for low, high in ends]
    return _names(f"{name} = {span}" for name, span in zip(run["parameter"].values, spans, strict=True))


def _failures(run: xr.Dataset, stopped: int) -> str:
    """The number of worlds that stopped early, and the earliest of their times."""
    times = with_current_names(run).get("termination_time")
    first = float("nan") if times is None else float(times.where(run["status"] == 1).min())
    return f"{stopped:,} of {run.sizes['world']:,} worlds, the first at {first:.4g} s"


def _player(run: xr.Dataset) -> str:
    """A page that plays the first worlds; if it is too large, a picture of the final state and how to open
    the page.
    """
    if run.sizes["coordinate"] > MAXIMUM_DRAWN:
        return _note(
            "p",
            _too_large_to_draw(
                run.sizes["coordinate"],
                "coordinates",
                "zw.view(run) plays the recording, zw.save_html(run, path) writes a page",
            ),
        )
    shown = sorted({min(count, run.sizes["world"]) for count in WORLDS_PLAYED}, reverse=True)
    try:
        for worlds in shown:
            page = page_html(run, worlds=worlds)
            if len(page) <= MAXIMUM_PAGE_BYTES:
                return embedded_page(page, PLAYER_HEIGHT)
        size = f"{len(page) / 1e6:.0f} MB"
        return (
            f"{_final_picture(run)}<p>The page that plays this recording has {size}, "
            "which is too large for a notebook: zw.view(run) plays the recording, "
            "zw.save_html(run, path) writes the page.</p>"
        )
    except ZwangError as error:
        return _note("p", f"no player: {_short(str(error), 200)}")


def _final_picture(run: xr.Dataset) -> str:
    """A picture of the last valid state of the first world."""
    m = mechanism_of(run)
    q = in_mechanism_order(run, m, "coordinate")["q"].values[0]
    at = q[np.isfinite(q).all(axis=1)][-1]
    m = m.subs({name: float(x[0]) for name, x in parameters_of(run, m).items()})
    return _image(thumbnail_png(m, at), "the final state")


# ------------------------------------------------------------------------------------------------------- text


def _heading(name: str) -> str:
    return f'<div style="font-weight:bold;font-size:1.1em;margin-bottom:4px">{escape(_short(name))}</div>'


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    """A table whose rows are pairs of a title and a text."""
    lines = "".join(
        f'<tr><td style="{CELL};opacity:0.7">{escape(title)}</td><td style="{CELL}">{escape(text)}</td></tr>'
        for title, text in facts
    )
    return f'<table style="border-collapse:collapse;margin:0 0 10px 0"><tbody>{lines}</tbody></table>'


def _note(tag: str, text: str) -> str:
    return f'<{tag} style="opacity:0.7">{escape(text)}</{tag}>'


def _image(png: bytes, alt: str) -> str:
    data = base64.b64encode(png).decode("ascii")
    size = f'width="{WIDTH // 2}" height="{HEIGHT // 2}"'
    return f'<img alt="{escape(alt)}" {size} src="data:image/png;base64,{data}"/>'


def _cell(lines: Sequence[str]) -> str:
    return f'<td style="{CELL};white-space:nowrap">{"<br>".join(escape(line) for line in lines)}</td>'


def _names(names: Iterable[Any]) -> str:
    """Names on one line; if there are many, the first ones and their number."""
    found = [_short(str(name)) for name in names]
    more = f", … ({len(found)} in all)" if len(found) > MAXIMUM_NAMES else ""
    return ", ".join(found[:MAXIMUM_NAMES]) + more


def _numbers(values: Iterable[Any]) -> str:
    return f"({', '.join(_number(x) for x in values)})"


def _number(value: Any) -> str:
    """A number with four digits, or a symbolic expression as text."""
    return f"{float(value):.4g}" if are_constant(value) else _short(str(value), 40)


def _short(text: str, length: int = MAXIMUM_NAME_LENGTH) -> str:
    """The text, shortened, with a space in place of each character that cannot be printed."""
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= length else text[: length - 1] + "…"
