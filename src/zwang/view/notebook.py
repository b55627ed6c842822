"""What a notebook shows of a mechanism and of a recording: HTML with nothing beside it; all names in it are escaped."""

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
from zwang.recording.record import coordinate_units, mechanism_of
from zwang.scalar import are_constant
from zwang.view.html_page import embedded_page, page_html
from zwang.view.plot import energy_drift
from zwang.view.thumbnail import HEIGHT, WIDTH, portrait

MOST_ROWS, MOST_NAMES, LONGEST = 40, 8, 48  # bodies in a table, names in a line, characters of one
PLAYED = (8, 1)  # worlds of a recording: so many, or else so many
MOST_BYTES = 4_000_000  # of a page inside a notebook
MOST_PICTURED = 3_000  # bodies of a mechanism that is drawn beside its table, or coordinates of a recording that is played there
PLAYER_HEIGHT, TABLE_WIDTH = 460, "min(100%,660px)"
LIMITS = 3  # the column that is left out where no joint has any
CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top;border:none;background:none"
BESIDE = "display:flex;flex-wrap:wrap;gap:8px 28px;align-items:flex-start"
NEEDED = {"q", "v", "energy", "kinetic_energy", "potential_energy", "mechanism", "status"}


def mechanism_html(m: Mechanism) -> str:
    """A table of bodies, joints and masses, what drives and restricts them, and a picture in the reference configuration."""
    left = _heading(m.name) + _facts(_about(m)) + _table(m)
    return (
        f'<div class="zwang-mechanism" style="{BESIDE}"><div style="flex:0 1 auto;min-width:0;max-width:{TABLE_WIDTH};overflow-x:auto">{left}</div>'
        f'<div style="flex:none">{_picture(m)}</div></div>'
    )


def run_html(run: xr.Dataset) -> str:
    """The summary of a recording, a player of its first worlds (or a picture, where its page would be large), and the data.

    What is not a whole recording shows itself as xarray does, and so does all where xarray is set to show text.
    """
    if not _is_whole(run) or xr.get_options()["display_style"] == "text":
        return run._repr_html_()
    top = _heading(str(run.attrs.get("title", "run"))) + _facts(_of_run(run))
    own = run.drop_vars("mechanism")._repr_html_()  # its text would be there in full
    data = (
        f"<details><summary>the data, an xarray.Dataset (and the mechanism, as text)</summary>{own}</details>"
    )
    return f'<div class="zwang-run">{top}{_player(run)}{data}</div>'


def _is_whole(run: xr.Dataset) -> bool:
    """Whether a recording has all that it is shown with, worlds and times included."""
    sizes = all(run.sizes.get(name, 0) > 0 for name in ("world", "time"))
    return sizes and set(run.data_vars) >= NEEDED and run["q"].dims == ("world", "time", "coordinate")


# ---------------------------------------------------------------------------------------------- a mechanism


def _about(m: Mechanism) -> list[tuple[str, str]]:
    """Facts about a mechanism, by title; empty ones are left out."""
    notes = [note for note in m.report.notes if note.kind != "read"]
    shapes = sum(len(body.geometry) for body in m.bodies) + len(m.geometry)
    facts = [
        ("degrees", f"nq = {m.nq}, nv = {m.nv}"),
        ("mass", _total_mass(m)),
        ("gravity", f"{_numbers(m.gravity)} m/s²"),
        ("symbols", _names(m.symbols)),
        ("driven by", _names(m.inputs)),
        ("constraints", _names(f"{type(c).__name__} {c.name}".strip() for c in m.constraints)),
        ("tendons", _names(t.name for t in m.tendons)),
        ("frames", _names(f.name for f in m.frames)),
        ("shapes", str(shapes or "")),
        ("from", _short(Path(m.report.source).name)),
        ("remarks", f"{len(notes)} of the reader, in .report" if notes else ""),
    ]
    return [(title, text) for title, text in facts if text]


def _total_mass(m: Mechanism) -> str:
    masses = [body.mass for body in m.bodies]
    if not masses:
        return ""
    return f"{_number(sum(masses))} kg" if are_constant(*masses) else "symbolic"


def _table(m: Mechanism) -> str:
    """A row for each body, in it a line for each joint."""
    joints: dict[str, list[JointIndex]] = {}
    for joint in m.joints:
        joints.setdefault(joint.body, []).append(joint)
    units = coordinate_units(m)
    rows = [_row(body, joints.get(body.name, []), units) for body in m.bodies[:MOST_ROWS]]
    if len(m.bodies) > MOST_ROWS:
        rows.append([[f"and {len(m.bodies) - MOST_ROWS} more"], *([[]] * 4)])
    titles = ["body", "on", "joint", "limits", "mass [kg]"]
    if not any(any(row[LIMITS]) for row in rows):
        titles, rows = _without(titles), [_without(row) for row in rows]
    head = "".join(f'<th style="{CELL};white-space:nowrap">{title}</th>' for title in titles)
    lines = "".join(f"<tr>{''.join(_cell(lines) for lines in row)}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'


def _without(cells: list[Any]) -> list[Any]:
    """A row without its limits."""
    return cells[:LIMITS] + cells[LIMITS + 1 :]


def _row(body: Body, joints: Sequence[JointIndex], units: Sequence[str]) -> list[list[str]]:
    """The lines of each cell."""
    moves = [f"{j.kind} {_short(j.name)}" for j in joints] or ["fixed"]
    limits = [_limits(j, units[int(j.q.start)]) for j in joints]
    return [[_short(body.name)], [_short(body.parent)], moves, limits, [_number(body.mass)]]


def _limits(joint: JointIndex, unit: str) -> str:
    """The range of a joint, "" without; of quaternions, that of the angle."""
    limits = getattr(joint.joint, "limits", None)
    if limits is None:
        return ""
    low, high = limits
    return f"[{_number(low)}, {_number(high)}] {unit if unit != '1' else 'rad'}"


def _picture(m: Mechanism) -> str:
    """The picture, or why there is none. Of a symbolic mechanism sticks, with 1 for each symbol."""
    if len(m.bodies) > MOST_PICTURED:
        return _aside(
            "p",
            _too_many(
                len(m.bodies), "bodies", "zw.view(mechanism) shows it, zw.save_html(mechanism, path) keeps it"
            ),
        )
    try:
        image = _image(portrait(_with_ones(m) if m.symbols else m), f"picture of {_short(m.name)}")
    except ZwangError as error:
        return _aside("p", f"no picture: {_short(str(error), 200)}")
    said = "reference configuration" + (", each symbol as 1" if m.symbols else "")
    return f'<figure style="margin:0">{image}{_aside("figcaption", said)}</figure>'


def _too_many(count: int, what: str, instead: str) -> str:
    return f"no picture of {count:,} {what}, more than {MOST_PICTURED:,}: {instead}"


def _with_ones(m: Mechanism) -> Mechanism:
    """1 for each symbol; without shapes, as their sizes would not fit."""
    ones = m.subs(dict.fromkeys(m.symbols, 1))
    bodies = [replace(body, geometry=(), density=None, unchecked_inertia=True) for body in ones.bodies]
    return ones.replace(bodies=bodies, geometry=(), contacts=())


# ---------------------------------------------------------------------------------------------- a recording


def _of_run(run: xr.Dataset) -> list[tuple[str, str]]:
    """Facts about a recording, by title."""
    told, times, worlds = run.attrs, run["time"].values, run.sizes["world"]
    step = f", steps of {told['step']:g} s" if "step" in told else ""
    stopped = int(run["status"].sum())
    facts = [
        ("simulated", f"{times[-1] - times[0]:.6g} s by {told.get('integrator', '?')}{step}"),
        ("worlds", f"{worlds:,}"),
        ("recorded", f"{len(times):,} times: {_names(n for n in run.data_vars if 'time' in run[n].dims)}"),
        ("parameters", _parameters(run)),
        ("ran", str(told.get("path", ""))),
        ("energy", _energy(run)),
        ("stopped", _stops(run, stopped) if stopped else ""),
    ]
    return [(title, text) for title, text in facts if text]


def _parameters(run: xr.Dataset) -> str:
    """The symbols' values, of several worlds their ranges."""
    if "parameters" not in run.coords:
        return ""
    table = np.asarray(run["parameters"].transpose("world", "parameter").values, dtype=float)
    ends = zip(table.min(axis=0), table.max(axis=0), strict=True)
    spans = [_number(low) + (f" to {_number(high)}" if high > low else "") for low, high in ends]
    return _names(f"{name} = {span}" for name, span in zip(run["parameter"].values, spans, strict=True))


def _energy(run: xr.Dataset) -> str:
    """The energy at the start, and how far it goes from there."""
    energy = run["energy"].values
    with np.errstate(all="ignore"):
        change = float(np.nanmax(np.abs(energy - energy[:, :1])))
        relative = float(np.nanmax(np.abs(energy_drift(run))))
        begin = float(np.nanmean(energy[:, 0]))
    mean = " on average" if len(energy) > 1 else ""
    return (
        f"{begin:.6g} J at the start{mean}, changes by at most {change:.3g} J ({relative:.2g} of what moves)"
    )


def _stops(run: xr.Dataset, stopped: int) -> str:
    first = float(run["stop_time"].where(run["status"] != 0).min()) if "stop_time" in run else float("nan")
    return f"{stopped:,} of {run.sizes['world']:,} worlds, the first at {first:.4g} s"


def _player(run: xr.Dataset) -> str:
    """The page that plays the first worlds; of a large one, a picture of the end and how to see the page."""
    if run.sizes["coordinate"] > MOST_PICTURED:
        return _aside(
            "p",
            _too_many(
                run.sizes["coordinate"],
                "coordinates",
                "zw.view(run) plays it, zw.save_html(run, path) keeps its page",
            ),
        )
    shown = sorted({min(count, run.sizes["world"]) for count in PLAYED}, reverse=True)
    try:
        for worlds in shown:
            page = page_html(run, worlds=worlds)
            if len(page) <= MOST_BYTES:
                return embedded_page(page, PLAYER_HEIGHT)
        size = f"{len(page) / 1e6:.0f} MB"
        return f"{_last(run)}<p>Its page has {size}, too much for a notebook: zw.view(run) plays it, zw.save_html(run, path) keeps it.</p>"
    except ZwangError as error:
        return _aside("p", f"no player: {_short(str(error), 200)}")


def _last(run: xr.Dataset) -> str:
    """A picture of the first world's last good state."""
    q = run["q"].values[0]
    at = q[np.isfinite(q).all(axis=1)][-1]
    values = run["parameters"].values[0].tolist() if "parameters" in run.coords else []
    names = [str(name) for name in run["parameter"].values] if values else []
    m = mechanism_of(run).subs(dict(zip(names, values, strict=True)))
    return _image(portrait(m, at), "the last state")


# ---------------------------------------------------------------------------------------------- text


def _heading(name: str) -> str:
    return f'<div style="font-weight:bold;font-size:1.1em;margin-bottom:4px">{escape(_short(name))}</div>'


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    """Lines of a title and a text."""
    lines = "".join(
        f'<tr><td style="{CELL};opacity:0.7">{escape(title)}</td><td style="{CELL}">{escape(text)}</td></tr>'
        for title, text in facts
    )
    return f'<table style="border-collapse:collapse;margin:0 0 10px 0"><tbody>{lines}</tbody></table>'


def _aside(tag: str, text: str) -> str:
    return f'<{tag} style="opacity:0.7">{escape(text)}</{tag}>'


def _image(png: bytes, alt: str) -> str:
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{escape(alt)}" width="{WIDTH // 2}" height="{HEIGHT // 2}" src="data:image/png;base64,{data}"/>'


def _cell(lines: Sequence[str]) -> str:
    return f'<td style="{CELL};white-space:nowrap">{"<br>".join(escape(line) for line in lines)}</td>'


def _names(names: Iterable[Any]) -> str:
    """Names in a line; of many, the first and how many there are."""
    found = [_short(str(name)) for name in names]
    more = f", … ({len(found)} in all)" if len(found) > MOST_NAMES else ""
    return ", ".join(found[:MOST_NAMES]) + more


def _numbers(values: Iterable[Any]) -> str:
    return f"({', '.join(_number(x) for x in values)})"


def _number(value: Any) -> str:
    """A number shortly, a symbolic one as it is written."""
    return f"{float(value):.4g}" if are_constant(value) else _short(str(value), 40)


def _short(text: str, length: int = LONGEST) -> str:
    """A text that cannot fill the page; what cannot be printed is left out."""
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= length else text[: length - 1] + "…"
