"""A compiled MJCF model with what its readers share: places of elements for messages, unique names, and notes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from zwang.errors import DescriptionError, LoadError, LoadWarning, UnsupportedError
from zwang.io.mjcf.model_files import Files, to_text
from zwang.io.mjcf.mujoco_library import (
    CompiledModel,
    delete_element,
    drop_memory_request,
    element_of,
    mujoco,
)
from zwang.mechanism.report import Note

# Lists of a spec that have no part in the motion; they are noted, and not compiled.
_IDLE = ("sensors", "textures", "skins", "numerics", "tuples", "texts")
_NEVER = frozenset(
    {"flexcomp", "deformable", "extension", "plugin", "flex", "flexvert", "flexstrain", "sensor", "skin"}
)
_LISTS = {
    "body": "bodies", "joint": "joints", "geom": "geoms", "site": "sites", "actuator": "actuators", "tendon": "tendons",
    "equality": "equalities", "pair": "pairs", "exclude": "excludes", "key": "keys", "mesh": "meshes",
}  # fmt: skip
_TAGS = {
    "actuator": ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion",
                 "pid", "orientation", "dcmotor"),
    "tendon": ("fixed", "spatial"),
    "equality": ("connect", "weld", "joint", "tendon"),
}  # fmt: skip


@dataclass
class MjcfModel:
    """A compiled model, where its elements stand, and what there is to say about it."""

    files: Files
    spec: Any
    model: Any
    strict: bool
    notes: list[Note] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)

    def name(self, kind: str, index: int) -> str:
        """The element's name, or one made for it that no other has."""
        if kind not in self.names:
            self.names[kind] = self._names_of(kind)
        return self.names[kind][index]

    def _names_of(self, kind: str) -> list[str]:
        accessor = {"equality": "equality", "key": "key"}.get(kind, kind)
        sizes = {"body": "nbody", "joint": "njnt", "actuator": "nactuator", "equality": "neq", "key": "nkey"}
        count = getattr(self.model, sizes.get(kind, f"n{kind}"))
        given = [getattr(self.model, accessor)(i).name for i in range(count)]
        taken = set(given)
        for i, name in enumerate(given):
            if not name:
                made = f"{kind}{i}"
                while made in taken:
                    made += "_"
                given[i] = made
                taken.add(made)
        return given

    def location(self, kind: str, index: int) -> str:
        """`humanoid.xml, line 12` of an element, or the file alone if nothing more is known."""
        elements = getattr(self.spec, _LISTS[kind])
        accessor = getattr(self.model, kind)
        element = element_of(elements, index, accessor(index).name)
        name = getattr(element, "name", "") or ""
        for tag in _TAGS.get(kind, (kind,)):
            if name and (location := self.files.location(tag, name)):
                return location
        line = re.search(r"line (\d+)", getattr(element, "info", "") or "")
        return f"{self.files.source}, line {line[1]}" if line and line[1] != "0" else self.files.source

    def note(self, kind: str, what: str, where: str = "") -> None:
        """Says something about the file in the mechanism's report."""
        self.notes.append(Note(kind, what, where or self.files.source))

    def unsupported(self, what: str, where: str = "") -> None:
        """What would change the motion: an error, or a note if the file is read leniently."""
        location = where or self.files.source
        if self.strict:
            raise UnsupportedError(
                f"{location}: {what} is not supported; strict=False reads the file without it"
            )
        self.note("unsupported", f"{what} is left out", location)

    @contextmanager
    def at(self, kind: str, index: int) -> Iterator[None]:
        """Errors of a description within become errors of the file, with the element's place."""
        try:
            yield
        except DescriptionError as error:
            raise LoadError(f"{self.location(kind, index)}: {error}") from None


def compile_model(files: Files, strict: bool) -> MjcfModel:
    """The model as MuJoCo's compiler makes it. Raises LoadError with MuJoCo's own words for what it refuses."""
    notes: list[Note] = []
    text = _without_flex(files, strict, notes)
    said: list[str] = []
    with _heard(said):
        spec = _parsed(files, text)
        _drop_idle(spec, files, notes)
        _drop_height_fields(spec, files, strict, notes)
        try:
            model = spec.compile()
        except Exception as error:  # MuJoCo raises ValueError, and others for what it cannot allocate
            raise LoadError(_told(files, str(error))) from None
    if model is None:
        raise LoadError(f"{files.source}: MuJoCo could not compile the model")
    for words in dict.fromkeys(said):
        notes.append(Note("read", f"MuJoCo warns: {words}", files.source))
        warnings.warn(f"{files.source}: {words}", LoadWarning, stacklevel=2)
    return MjcfModel(files, spec, CompiledModel(model), strict, notes)


def _without_flex(files: Files, strict: bool, notes: list[Note]) -> str:
    """The text, with deformable bodies and plugins taken out (or refused)."""
    found = [element for element in files.elements() if element.name in ("flexcomp", "flex", "plugin")]
    for element in found:
        what = "a plugin" if element.name == "plugin" else "a deformable body (flex)"
        if strict:
            raise UnsupportedError(
                f"{element.location}: {element.title} is {what}, which is not supported; strict=False reads the file without it"
            )
        notes.append(Note("unsupported", f"{element.title} is {what} and is left out", element.location))
    if not found:
        return files.text
    for key, document in files.named.items():
        files.includes[key] = to_text(document, _NEVER).encode()
    return to_text(files.root, _NEVER)


def _parsed(files: Files, text: str) -> Any:
    try:
        return mujoco.MjSpec.from_string(text, include=files.includes or None, assets=files.assets or None)
    except Exception as error:  # of the bindings: ValueError, KeyError
        raise LoadError(_told(files, str(error))) from None


def _drop_idle(spec: Any, files: Files, notes: list[Note]) -> None:
    """Takes out what has no part in the motion, and what asks for memory only."""
    for kind in ("cameras", "lights", "materials", *_IDLE):
        elements = list(getattr(spec, kind))
        if elements:
            names = [e.name for e in elements if e.name][:8]
            listed = (
                f" ({', '.join(map(repr, names))}{', ...' if len(names) < len(elements) else ''})"
                if names
                else ""
            )
            notes.append(Note("ignored", f"{len(elements)} {kind}{listed}", files.source))
        if kind in _IDLE:
            for element in elements:
                delete_element(spec, element)
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    drop_memory_request(spec)
    spec.nuserdata = spec.nkey = 0
    for kind in ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor"):
        setattr(spec, f"nuser_{kind}", -1)
    ranges = spec.compiler.LRopt  # of muscles, found by a simulation
    ranges.inttotal, ranges.interval = min(ranges.inttotal, 10.0), min(ranges.interval, 2.0)
    ranges.timestep = max(ranges.timestep, 1e-3)


def _drop_height_fields(spec: Any, files: Files, strict: bool, notes: list[Note]) -> None:
    """Takes out height fields, or refuses those that could be touched; their files are never opened."""
    for geom in [g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_HFIELD]:
        line = re.search(r"line (\d+)", geom.info or "")
        where = files.location("geom", geom.name) or f"{files.source}, line {line[1] if line else 0}"
        what = f"the height field of geom {geom.name!r}"
        touches = bool(geom.contype or geom.conaffinity)
        if touches and strict:
            raise UnsupportedError(
                f"{where}: {what} is not supported; strict=False reads the file without it"
            )
        notes.append(Note("unsupported" if touches else "ignored", f"{what} is left out", where))
        delete_element(spec, geom)
    for heights in list(spec.hfields):
        delete_element(spec, heights)


@contextmanager
def _heard(said: list[str]) -> Iterator[None]:
    """Collects MuJoCo's warnings, which else go to a log file in the working folder, and Python's."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: said.append(" ".join(str(text).split())))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        mujoco.set_mju_user_warning(before)
    said.extend(" ".join(str(warning.message).split()) for warning in caught)


def _told(files: Files, message: str) -> str:
    """MuJoCo's message in one line, with the file's name and the line where it knows one."""
    words = " ".join(message.split()) or "MuJoCo gives no reason"
    line = re.search(r"\bline(?: number)?[ =]+(\d+)", words, re.IGNORECASE)
    if line and line[1] != "0":
        return f"{files.source}, line {line[1]}: {words}"
    named = re.search(r"(?:Element name '([^']*)'|\bname '([^']*)')", words)
    name = (named[1] or named[2]) if named else ""
    places = [location for (_, other), location in files.places.items() if name and other == name]
    return f"{places[0] if places else files.source}: {words}"
