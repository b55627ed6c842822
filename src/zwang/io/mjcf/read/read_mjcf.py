"""The reader of MJCF files, which uses the compiler of MuJoCo to resolve defaults, includes and frames."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from zwang.errors import DescriptionError, LoadError
from zwang.io.mjcf.read import (
    read_bodies,
    read_constraints,
    read_contacts,
    read_forces,
    read_options,
    read_sensors,
    read_tendons,
)
from zwang.io.mjcf.read.compiled_model import MjcfModel, compile_model
from zwang.io.mjcf.read.model_files import read_model_files
from zwang.io.mjcf.read.plausibility import check_plausibility
from zwang.io.mjcf.read.unique_frames import UniqueFrames
from zwang.io.mjcf.solver_parameters import note_clamped_parameters
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.report import Report
from zwang.mechanism.sleep_policy import SLEEP


def read_mjcf(
    path: str | os.PathLike[str],
    *,
    strict: bool = True,
    text: str | None = None,
    asset_dirs: Sequence[str | os.PathLike[str]] = (),
) -> Mechanism:
    """The mechanism in an MJCF file, or in `text`, which is read as the content of a file at `path`.

    strict: raise UnsupportedError for features that zwang does not support; with strict=False they are
    omitted, and noted in `mechanism.report`. asset_dirs: see `zw.load`. Raises LoadError with file and line
    for invalid contents.
    """
    source = compile_model(read_model_files(Path(path), text, asset_dirs), strict)
    check_plausibility(source)
    note_clamped_parameters(source)
    try:
        return _mechanism(source)
    except DescriptionError as error:
        raise LoadError(f"{source.files.source}: {error}") from None


def _mechanism(source: MjcfModel) -> Mechanism:
    m = source.model
    options = read_options.options(source)
    gravity = (0, 0, 0) if "gravity" in options.disabled else read_bodies.zeroed(m.opt.gravity)
    read_bodies.rename_joints(source)
    bodies = read_bodies.bodies(source)
    ground = read_bodies.shapes_of(source, 0)
    frames = UniqueFrames(read_bodies.frames(source), (source.name("body", i) for i in range(m.nbody)))
    read_tendons.name_wrapped_frames(source, frames)
    tendons = read_tendons.tendons(source)
    kept = {tendon.name for tendon in tendons}
    actuators = read_forces.actuators(source, options.disabled, kept)
    forces = [*read_forces.passive(source, options.disabled), *actuators]
    constraints = read_constraints.equalities(source, kept)
    kept_actuators = [force for force in actuators if isinstance(force, Actuator)]
    names = [force.name for force in kept_actuators]
    keyframes = read_options.keyframes(source, kept_actuators)
    contacts = read_contacts.explicit_contacts(source)
    sensors = read_sensors.SensorReader(source, kept, set(names), frames).sensors()
    source.note(
        "read",
        f"{len(bodies)} bodies, {m.njnt} joints, {m.ngeom} shapes, {len(names)} actuators, "
        f"{len(tendons)} tendons, {len(constraints.active)} equalities, {len(keyframes)} keyframes, "
        f"{len(sensors)} sensors, {m.ncam} cameras",
    )

    def report() -> Report:
        return Report(str(source.files.source), "mjcf", tuple(source.notes))

    mechanism = Mechanism(
        name=source.spec.modelname or "mechanism",
        bodies=bodies,
        gravity=gravity,
        forces=tuple(forces),
        constraints=constraints.active,
        inactive_constraints=constraints.inactive,
        frames=frames.all(),
        geometry=ground,
        tendons=tendons,
        contacts=contacts,
        home=tuple(float(x) for x in m.qpos0),
        keyframes=keyframes,
        options=options,
        sensors=sensors,
        cameras=read_sensors.cameras(source),
        report=report(),
    )
    if SLEEP not in options.enabled:
        return mechanism
    options = read_options.supported_sleep(source, mechanism)
    return mechanism.replace(options=options, report=report())
