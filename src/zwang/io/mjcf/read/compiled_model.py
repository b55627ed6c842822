"""A compiled MJCF model, with the locations of its elements for messages, unique names, and notes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from zwang.errors import DescriptionError, LoadError, LoadWarning, UnsupportedError
from zwang.io.mjcf.mujoco_library import (
    CompiledModel,
    delete_element,
    drop_memory_request,
    elements_by_index,
    mujoco,
    numbers_of,
)
from zwang.io.mjcf.read.element_locations import ElementLocations
from zwang.io.mjcf.read.model_files import Files
from zwang.io.mjcf.read.pid_plugins import PidPlugins, replaced_pid_plugins
from zwang.mechanism.report import Note

MOST_RANGE_STEPS = 10_000_000  # to find length ranges; each takes MuJoCo 3 to 30 microseconds
# Lists of a spec without effect on the motion; they are noted and deleted before the compilation.
_WITHOUT_EFFECT = ("textures", "skins", "numerics", "tuples", "texts")
_OMITTED_ELEMENTS = frozenset(
    {"flexcomp", "deformable", "extension", "plugin", "flex", "flexvert", "flexstrain", "sensor", "skin"}
)
_LISTS = {
    "body": "bodies", "joint": "joints", "geom": "geoms", "site": "sites",
    "actuator": "actuators", "tendon": "tendons", "equality": "equalities",
    "pair": "pairs", "exclude": "excludes", "key": "keys", "mesh": "meshes",
    "sensor": "sensors", "camera": "cameras",
}  # fmt: skip


@dataclass
class MjcfModel:
    """A compiled model with its files, the notes on it, and by kind the names and locations of its elements.

    spec, model: the MjSpec and the MjModel. strict: raise errors for unsupported features. pids: see
    `replaced_pid_plugins`.
    """

    files: Files
    spec: Any
    model: Any
    strict: bool
    notes: list[Note] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    locations: dict[str, list[str]] = field(default_factory=dict)
    pids: PidPlugins = field(default_factory=dict)

    def name(self, kind: str, index: int) -> str:
        """The name of the element; a unique name is generated for an element without one."""
        if kind not in self.names:
            self.names[kind] = self._names_of(kind)
        return self.names[kind][index]

    @property
    def without_actuation(self) -> bool:
        """Whether the option flag disables all actuators."""
        return bool(self.model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION))

    @cached_property
    def actuators_on_joints(self) -> dict[int, list[int]]:
        """The numbers of the actuators on each joint that has any, in their order."""
        m, numbers = self.model, numbers_of(mujoco.mjtTrn)
        found: dict[int, list[int]] = {}
        for k in range(m.nactuator):
            if m.actuator_trntype[k] in (numbers.mjTRN_JOINT, numbers.mjTRN_JOINTINPARENT):
                found.setdefault(int(m.actuator_trnid[k][0]), []).append(k)
        return found

    def _given_names(self, kind: str) -> list[str]:
        """The names of the elements in the file, empty for those without one."""
        sizes = {"body": "nbody", "joint": "njnt", "actuator": "nactuator", "equality": "neq", "key": "nkey",
                 "camera": "ncam"}  # fmt: skip
        accessor = getattr(self.model, kind)
        return [accessor(i).name for i in range(getattr(self.model, sizes.get(kind, f"n{kind}")))]

    def _names_of(self, kind: str) -> list[str]:
        given = self._given_names(kind)
        taken = set(given)
        for i, name in enumerate(given):
            if not name:
                generated = f"{kind}{i}"
                while generated in taken:
                    generated += "_"
                given[i] = generated
                taken.add(generated)
        return given

    @cached_property
    def _places(self) -> ElementLocations:
        return ElementLocations(self.files)

    def location(self, kind: str, index: int) -> str:
        """The location of an element, such as `humanoid.xml, line 12`, or the file if the line is unknown."""
        if kind not in self.locations:
            elements = elements_by_index(getattr(self.spec, _LISTS[kind]), self._given_names(kind))
            self.locations[kind] = self._places.of_compiled(kind, elements)
        return self.locations[kind][index]

    def note(self, kind: str, what: str, where: str = "") -> None:
        """Add a note to the report of the mechanism."""
        self.notes.append(Note(kind, what, where or self.files.source))

    def unsupported(self, what: str, where: str = "") -> None:
        """Report an unsupported feature that changes the motion.

        Raises UnsupportedError if strict; else the feature is noted as omitted.
        """
        location = where or self.files.source
        if self.strict:
            raise UnsupportedError(f"{location}: {what} is not supported; strict=False omits it")
        self.note("unsupported", f"{what} is omitted", location)

    def inexact(self, what: str, instead: str, where: str) -> None:
        """Report a feature whose meaning here is not that in MuJoCo.

        Raises UnsupportedError if strict; else what it has instead is noted.
        """
        if self.strict:
            raise UnsupportedError(f"{where}: {what}, is not supported; with strict=False it {instead}")
        self.note("unsupported", f"{what}, {instead}", where)

    @contextmanager
    def at(self, kind: str, index: int) -> Iterator[None]:
        """Context in which a DescriptionError becomes a LoadError with the location of the element."""
        try:
            yield
        except DescriptionError as error:
            raise LoadError(f"{self.location(kind, index)}: {error}") from None


def compile_model(files: Files, strict: bool) -> MjcfModel:
    """The model compiled by MuJoCo. Raises LoadError with the message of MuJoCo for invalid models."""
    notes: list[Note] = []
    pids = replaced_pid_plugins(files)
    omitted = _omitted_elements(files, strict, notes)
    messages: list[str] = []
    with _recorded_warnings(messages):
        spec = _parsed(files, omitted, notes)
        _delete_elements_without_effect(spec, files, notes)
        _check_length_ranges(spec, files)
        _spare_unused_meshes(spec)
        try:
            model = spec.compile()
        except Exception as error:  # ValueError, or others on failure of an allocation
            raise _load_error(files, notes, error) from None
    if model is None:
        raise LoadError(f"{files.source}: MuJoCo could not compile the model")
    _align_frames(model)
    for where, message in map(ElementLocations(files).of_message, dict.fromkeys(messages)):
        notes.append(Note("read", f"MuJoCo warns: {message}", where))
        warnings.warn(f"{where}: {message}", LoadWarning, stacklevel=2)
    return MjcfModel(files, spec, CompiledModel(model), strict, notes, pids=pids)


def _omitted_elements(files: Files, strict: bool, notes: list[Note]) -> frozenset[str]:
    """The names of the elements that are left out: those of deformable bodies and plugins, if there are any.

    Raises UnsupportedError for them if strict.
    """
    found = [element for element in files.elements() if element.name in ("flexcomp", "flex", "plugin")]
    for element in found:
        what = "a plugin" if element.name == "plugin" else "a deformable body (flex)"
        if strict:
            raise UnsupportedError(
                f"{element.location}: {element.title} is {what}, which is not supported; strict=False omits "
                "it"
            )
        notes.append(Note("unsupported", f"{element.title} is {what} and is omitted", element.location))
    return _OMITTED_ELEMENTS if found else frozenset()


def _parsed(files: Files, omitted: frozenset[str], notes: Sequence[Note]) -> Any:
    text, includes = files.texts(omitted)
    try:
        return mujoco.MjSpec.from_string(text, include=includes or None, assets=files.assets or None)
    except Exception as error:  # the bindings raise ValueError and KeyError
        raise _load_error(files, notes, error) from None


def _load_error(files: Files, notes: Sequence[Note], error: Exception) -> LoadError:
    """The error for what MuJoCo rejects, which may be due to an element that is omitted as unsupported."""
    message = ": ".join(ElementLocations(files).of_message(str(error)))
    omitted = next((note for note in notes if note.kind == "unsupported"), None)
    if omitted is None:
        return LoadError(message)
    return UnsupportedError(
        f"{omitted.where}: {omitted.what}, as it is not supported; MuJoCo rejects the model without it: "
        f"{message}"
    )


def _delete_elements_without_effect(spec: Any, files: Files, notes: list[Note]) -> None:
    """Delete elements without effect on the motion, and requests for memory."""
    for kind in ("lights", "materials", *_WITHOUT_EFFECT):
        elements = list(getattr(spec, kind))
        if elements:
            names = [e.name for e in elements if e.name][:8]
            shown = (
                f" ({', '.join(map(repr, names))}{', ...' if len(names) < len(elements) else ''})"
                if names
                else ""
            )
            notes.append(Note("ignored", f"{len(elements)} {kind}{shown}", files.source))
        if kind in _WITHOUT_EFFECT:
            for element in elements:
                delete_element(spec, element)
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for light in spec.lights:
        if hasattr(light, "texture"):
            light.texture = ""
    drop_memory_request(spec)
    spec.nuserdata = spec.nkey = 0
    for kind in ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor"):
        setattr(spec, f"nuser_{kind}", -1)


def _check_length_ranges(spec: Any, files: Files) -> None:
    """Raises LoadError if MuJoCo would simulate for minutes or hours to find the length ranges of muscles."""
    ranges = spec.compiler.LRopt
    simulated = sum(_range_is_simulated(actuator, ranges) for actuator in spec.actuators)
    step = ranges.timestep if ranges.timestep > 0 else spec.option.timestep
    if not simulated:
        return
    steps = 2 * simulated * (ranges.inttotal / step if step > 0 else math.inf)
    if steps > MOST_RANGE_STEPS:
        found = next((element for element in files.elements() if element.name == "lengthrange"), None)
        where = files.source if found is None else f"{found.location}: {found.title}"
        raise LoadError(
            f"{where}: the length ranges of actuators take {steps:.3g} steps of simulation, which are 2 x "
            f"{simulated} x inttotal {ranges.inttotal:g} s / timestep {step:g} s; the limit is "
            f"{MOST_RANGE_STEPS:,}. Reduce inttotal, increase timestep, or give the actuators a lengthrange"
        )


def _range_is_simulated(actuator: Any, ranges: Any) -> bool:
    """Whether MuJoCo may find the length range of the actuator by a simulation, with the options `ranges`."""
    if ranges.useexisting and actuator.lengthrange[0] < actuator.lengthrange[1]:
        return False
    modes = numbers_of(mujoco.mjtLRMode)
    kinds = {modes.mjLRMODE_NONE: (), modes.mjLRMODE_MUSCLE: ("MUSCLE",)}.get(ranges.mode, ("MUSCLE", "USER"))
    words = (kind.name.rpartition("_")[2] for kind in (actuator.gaintype, actuator.biastype))
    return ranges.mode == modes.mjLRMODE_ALL or any(word in kinds for word in words)


def _spare_unused_meshes(spec: Any) -> None:
    """Let MuJoCo find the inertia of meshes that no geom uses without their convex hull, which such a mesh
    does not have: up to version 3.16, it would read the hull nevertheless and end the process.
    """
    used = {geom.meshname for geom in spec.geoms}
    for mesh in spec.meshes:
        if mesh.name not in used and mesh.inertia == mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX:
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_LEGACY


def _align_frames(model: Any) -> None:
    """Give shapes, sites and inertial frames that MuJoCo finds equal to the frame of their body, or to its
    inertial frame, up to about 1e-6, the placement with which it computes: that of this frame.
    """
    same = numbers_of(mujoco.mjtSameFrame)
    frames = [("body_ipos", "body_iquat", range(model.nbody), model.body_sameframe)]
    for kind in ("geom", "site"):
        bodies, found = getattr(model, f"{kind}_bodyid"), getattr(model, f"{kind}_sameframe")
        frames.append((f"{kind}_pos", f"{kind}_quat", bodies, found))
    for position, orientation, bodies, found in frames:
        positions, orientations = getattr(model, position), getattr(model, orientation)
        for k, body in enumerate(bodies):
            if found[k] in (same.mjSAMEFRAME_BODY, same.mjSAMEFRAME_BODYROT):
                orientations[k] = (1, 0, 0, 0)
            elif found[k] != same.mjSAMEFRAME_NONE:
                orientations[k] = model.body_iquat[body]
            if found[k] == same.mjSAMEFRAME_BODY:
                positions[k] = 0
            elif found[k] == same.mjSAMEFRAME_INERTIA:
                positions[k] = model.body_ipos[body]


@contextmanager
def _recorded_warnings(messages: list[str]) -> Iterator[None]:
    """Context that collects the warnings of Python and of MuJoCo, which would otherwise write a log file."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: messages.append(" ".join(str(text).split())))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        mujoco.set_mju_user_warning(before)
    messages.extend(" ".join(str(warning.message).split()) for warning in caught)
