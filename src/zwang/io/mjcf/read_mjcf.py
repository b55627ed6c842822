"""MJCF files to mechanisms, through MuJoCo's own compiler: defaults, classes, includes, frames and the rest are its work."""

from __future__ import annotations

import os
from pathlib import Path

from zwang.errors import DescriptionError, LoadError
from zwang.io.mjcf import read_bodies as mjcf_parts
from zwang.io.mjcf import read_constraints as mjcf_restrictions
from zwang.io.mjcf import read_forces as mjcf_forces
from zwang.io.mjcf import read_tendons as mjcf_tendons
from zwang.io.mjcf.compiled_model import MjcfModel, compile_model
from zwang.io.mjcf.model_files import read_model_files
from zwang.io.mjcf.plausibility import check
from zwang.io.mjcf.solver_parameters import note_clamped_parameters
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.report import Report


def read_mjcf(path: str | os.PathLike[str], *, strict: bool = True, text: str | None = None) -> Mechanism:
    """The mechanism of an MJCF file, or of `text` as if it stood at `path`.

    With strict=False what zwang does not have is left out and noted in `mechanism.report`, else it is refused.
    Raises LoadError with file and line for what is wrong, UnsupportedError for what would change the motion.
    """
    source = compile_model(read_model_files(Path(path), text), strict)
    check(source)
    note_clamped_parameters(source)
    try:
        return _mechanism(source)
    except DescriptionError as error:
        raise LoadError(f"{source.files.source}: {error}") from None


def _mechanism(source: MjcfModel) -> Mechanism:
    m = source.model
    options = mjcf_restrictions.options(source)
    gravity = (0, 0, 0) if "gravity" in options.disabled else mjcf_parts.zeroed(m.opt.gravity)
    bodies = mjcf_parts.bodies(source)
    world = mjcf_parts.shapes_of(source, 0)
    frames = (*mjcf_parts.frames(source), *mjcf_tendons.wrapped_frames(source))
    tendons = mjcf_tendons.tendons(source)
    kept = {tendon.name for tendon in tendons}
    actuators = mjcf_forces.actuators(source, options.disabled, kept)
    forces = [*mjcf_forces.passive(source, options.disabled), *actuators]
    constraints = mjcf_restrictions.equalities(source, kept)
    names = [force.name for force in actuators if isinstance(force, Actuator)]
    keyframes = mjcf_restrictions.keyframes(source, names)
    contacts = mjcf_restrictions.contacts(source)
    source.note("read", f"{len(bodies)} bodies, {m.njnt} joints, {m.ngeom} shapes, {len(names)} actuators, "
                        f"{len(tendons)} tendons, {len(constraints)} equalities, {len(keyframes)} keyframes")  # fmt: skip
    return Mechanism(
        name=source.spec.modelname or "mechanism",
        bodies=bodies,
        gravity=gravity,
        forces=tuple(forces),
        constraints=constraints,
        frames=frames,
        geometry=world,
        tendons=tendons,
        contacts=contacts,
        home=tuple(float(x) for x in m.qpos0),
        keyframes=keyframes,
        options=options,
        report=Report(str(source.files.source), "mjcf", tuple(source.notes)),
    )
