"""Commands that describe and check a model: `zwang info` and `zwang check`."""

from __future__ import annotations

import warnings
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape
from rich.tree import Tree

import zwang as zw
from zwang.cli.command_options import FILE_OPTIONS, FileOptions, Model, Strict
from zwang.cli.console import library_text, out
from zwang.cli.inputs import model_of
from zwang.errors import ZwangWarning
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.mechanism import JointIndex, Mechanism
from zwang.simulation.constraint_stage import describe_constraints

HARMLESS = ("ignored",)  # kinds of notes that do not affect the motion
NOTES_SHOWN = 8  # how many of these notes `info` prints
NAMES_SHOWN = 12  # names on one line of `info`


def info(
    model: Model,
    *,
    files: FileOptions = FILE_OPTIONS,
    strict: Strict = True,
    everything: Annotated[bool, Parameter(name="--all", help="Print every note.", negative=())] = False,
) -> None:
    """List a model's bodies, joints, inputs, constraints and frames, and the notes from reading its file."""
    m = model_of(model, files, strict=strict)
    bodies = f"{len(m.bodies)} bod{'y' if len(m.bodies) == 1 else 'ies'}"
    out.print(
        f"[bold]{escape(m.name)}[/]: {bodies}, {m.nq} coordinates, {m.nv} generalised velocities, {_mass(m)}"
    )
    out.print(_body_tree(m))
    for title, names in _lists(m).items():
        if names:
            more = f", ... ({len(names)} in all)" if len(names) > NAMES_SHOWN else ""
            out.print(f"[bold]{title}:[/] {escape(', '.join(names[:NAMES_SHOWN]) + more)}")
    harmless = [note for note in m.report.notes if note.kind in HARMLESS]
    hidden = 0 if everything else max(0, len(harmless) - NOTES_SHOWN)
    for note in (*(n for n in m.report.notes if n.kind not in HARMLESS), *harmless[: len(harmless) - hidden]):
        out.print(f"[yellow]{escape(note.kind)}[/] {library_text(note.what)} [dim]{escape(note.where)}[/]")
    if hidden:
        out.print(f"{hidden} more notes do not affect the motion; --all prints them")


def check(model: Model, *, files: FileOptions = FILE_OPTIONS, strict: Strict = True) -> int:
    """Look for values that are valid but implausible, such as angles in degrees or lengths in millimetres.

    The exit status is 1 if anything is implausible, repaired or unsupported, or if the file cannot be read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZwangWarning)
        m = model_of(model, files, strict=strict)
    found = [*zw.lint(m), *(note for note in m.report.notes if note.kind != "read")]
    for note in found:
        out.print(f"[yellow]{escape(note.kind)}:[/] {library_text(note.what)} [dim]{escape(note.where)}[/]")
    out.print(f"{escape(m.name)}: {len(found)} notes" if found else f"{escape(m.name)}: no problems found")
    return 1 if any(note.kind not in HARMLESS for note in found) else 0


def _mass(m: Mechanism) -> str:
    """The total mass, or the names of the symbols."""
    masses = [body.mass for body in m.bodies]
    return f"total mass {sum(masses):.4g} kg" if not m.symbols else f"symbols {', '.join(m.symbols)}"


def _lists(m: Mechanism) -> dict[str, list[str]]:
    """The lists that `info` prints below the tree of bodies, by heading."""
    shapes = [g for b in m.bodies for g in b.geometry] + list(m.geometry)
    meshes = sum(isinstance(g, Mesh) for g in shapes)
    return {
        "inputs": list(m.inputs),
        "constraints": list(describe_constraints(m)),
        "frames": [f.name for f in m.frames],
        "geometry": [f"{len(shapes)} shape{'s' * (len(shapes) != 1)}, of which {meshes} are meshes"]
        if shapes
        else [],
        "sensors": [s.name for s in m.sensors],
        "keyframes": [k.name for k in m.keyframes],
        "options": [f"integrator {m.options.integrator}, step size {m.options.timestep:g} s"],
    }


def _body_tree(m: Mechanism) -> Tree:
    """The tree of bodies, with their joints and joint limits."""
    root = Tree("world")
    nodes = {"world": root}
    joints: dict[str, list[JointIndex]] = {}
    for joint in m.joints:
        joints.setdefault(joint.body, []).append(joint)
    for body in m.bodies:
        descriptions = []
        for joint in joints.get(body.name, ()):
            limits = getattr(joint.joint, "limits", None)
            descriptions.append(
                f"{joint.kind} {joint.name}" + (f" [{limits[0]:.4g}, {limits[1]:.4g}]" if limits else "")
            )
        text = escape(", ".join(descriptions)) or "[dim]fixed[/]"
        nodes[body.name] = nodes[body.parent].add(f"{escape(body.name)}  [cyan]{text}[/]")
    return root
