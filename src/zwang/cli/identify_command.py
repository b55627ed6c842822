"""The command `zwang identify`, which fits the parameters of a model to measurements."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.markup import escape

import zwang as zw
from zwang.cli.command_options import (
    FILE_OPTIONS,
    FileOptions,
    FixedStepIntegrator,
    Model,
    Step,
    Strict,
    Values,
)
from zwang.cli.console import library_text, out
from zwang.cli.convert_command import Writer, writer_of
from zwang.cli.inputs import missing_file_message, model_of
from zwang.cli.result_files import PAGES, check_output_files, check_place
from zwang.errors import FormatError, LoadError, StateError, visible
from zwang.identification.sample_files import check_ignored, column_names

Kind = Literal["inertia", "armature", "damping", "friction", "offset", "stiffness"]


Data = Annotated[
    list[Path],
    Parameter(
        help="CSV file with the columns time, q_COORDINATE and tau_VELOCITY, and optionally v_VELOCITY and "
        "a_VELOCITY, in SI units, separated by commas, semicolons or tabs. May be given several times: one "
        "file for each trial.",
        negative=(),
    ),
]
Report = Annotated[Path | None, Parameter(help="Write the report to this web page (.html).")]
FittedModel = Annotated[
    Path | None, Parameter(name="--out", help="Write the fitted model (.urdf, .xml, .mjcf or .json).")
]
Kinds = Annotated[
    list[Kind] | None,
    Parameter(
        help="A kind of parameters to fit. May be given several times; by default inertia, armature, damping "
        "and friction, without armature for --method simulation and where --out is a URDF, which has none.",
        negative=(),
    ),
]
Cutoff = Annotated[
    float | None, Parameter(help="Cutoff of the low-pass filter [Hz]; by default nothing is filtered.")
]
Estimator = Annotated[
    Literal["weighted", "ordinary", "total"], Parameter(help="Least squares: by joint, plain, or total.")
]
Robust = Annotated[bool, Parameter(help="Reduce the weight of outliers (Huber's loss).")]
Method = Annotated[
    Literal["forces", "simulation"],
    Parameter(
        help="Fit the measured forces by inverse dynamics, or simulated coordinates to measured ones, also "
        "through contacts, limits and dry friction."
    ),
]
Starts = Annotated[
    int | None, Parameter(help="Number of starts of --method simulation, of which all but one are random.")
]
Window = Annotated[
    int | None, Parameter(help="Samples of a window that --method simulation simulates; by default 50.")
]
Interpolation = Annotated[
    Literal["held", "linear"] | None,
    Parameter(
        help="Forces of --method simulation between samples: linear (default) for those that a sensor "
        "measured, or held from each sample to the next, for commands of a controller."
    ),
]
Fixed = Annotated[
    list[str] | None,
    Parameter(
        help="A joint that did not move, fixed in its default position, also in the file of --out; its "
        "columns are ignored. May be given several times.",
        negative=(),
    ),
]
Ignored = Annotated[
    list[str] | None,
    Parameter(help="A column that is not read. May be given several times.", negative=()),
]
Delay = Annotated[float, Parameter(help="Delay of the records of forces behind those of the motion [s].")]
Stribeck = Annotated[
    list[str] | None,
    Parameter(
        help="A joint with Stribeck friction, which is larger at low velocities. May be given several times.",
        negative=(),
    ),
]
MotorJoints = Annotated[
    list[str] | None,
    Parameter(
        name="--motor",
        help="A joint whose measured force is a signal, such as a current, with an unknown constant; add "
        "--no-check-units. May be given several times.",
        negative=(),
    ),
]
Independent = Annotated[
    list[str] | None,
    Parameter(
        help="A joint with a motor, of a mechanism with closed loops; name all of them. May be given several "
        "times.",
        negative=(),
    ),
]
CheckUnits = Annotated[bool, Parameter(help="Reject data whose magnitudes indicate wrong units.")]


def identify(
    model: Model,
    data: Data,
    *,
    report: Report = None,
    out_file: FittedModel = None,
    kind: Kinds = None,
    cutoff: Cutoff = None,
    delay: Delay = 0.0,
    estimator: Estimator = "weighted",
    robust: Robust = False,
    method: Method = "forces",
    step: Step = None,
    integrator: FixedStepIntegrator = None,
    window: Window = None,
    interpolation: Interpolation = None,
    starts: Starts = None,
    ignore: Ignored = None,
    fix: Fixed = None,
    stribeck: Stribeck = None,
    motor: MotorJoints = None,
    independent: Independent = None,
    check_units: CheckUnits = True,
    param: Values = None,
    files: FileOptions = FILE_OPTIONS,
    strict: Strict = True,
) -> None:
    """Fit the parameters of a model to measured motions and forces, and report which of them the data tell.

    Data that cannot be right (NaN, time going backwards, joints that never move, wrong units) are rejected
    with their names before anything is fitted.
    """
    check_output_files({"--report": (report, PAGES)})
    of_forces = {"--cutoff": cutoff, "--stribeck": stribeck, "--motor": motor, "--independent": independent,
                 "--estimator": None if estimator == "weighted" else estimator}  # fmt: skip
    settings = {"step": step, "integrator": integrator, "window": window, "starts": starts,
                "interpolation": interpolation}  # fmt: skip
    of_simulation: dict[str, Any] = {name: x for name, x in settings.items() if x is not None}
    _check_method(method, of_forces, of_simulation)
    write = None if out_file is None else _writer(out_file)
    _check_exist(data)
    original = model_of(model, files, strict=strict, param=param)
    whole = zw.identify.with_fixed_joints(original, fix or ())
    m = whole if method == "forces" else _without_motors(whole)
    kinds = kind or _default_kinds(method, out_file)
    if write is not None and out_file is not None:
        _check_writable(whole, write, out_file, kinds, strict)
    tables = _ignored_columns(data, ignore or (), _columns_without(original, m))
    options = {"cutoff": cutoff, "delay": delay, "check_units": check_units}
    fixed = _fixed_coordinates(original, m)
    trials = [zw.identify.read_csv(m, path, ignore=x, fixed=fixed, **options) for path, x in tables]
    loss = "huber" if robust else "linear"
    if method == "forces":
        found = zw.identify.fit(
            m, trials, kinds=kinds, estimator=estimator, loss=loss,
            stribeck=stribeck or (), motors=motor or (), independent=independent,
        )  # fmt: skip
    else:
        time, q, tau = zip(*((x.time, x.q, x.tau) for x in trials), strict=True)
        found = zw.identify.fit_by_simulation(
            m, time, q, tau, kinds=kinds, loss=loss, check_units=check_units, **of_simulation
        )
    _print_report(zw.identify.report(found), report)
    if write is not None and out_file is not None:
        _write_model(found, whole, write, out_file, strict, _fixed_in_file(original, whole))


def _writer(path: Path) -> Writer:
    """The writer of a fitted model. Raises FormatError, or SimulationError if there cannot be the file."""
    write = writer_of(path)
    check_place("--out", path)
    return write


def _write_model(
    found: zw.identify.Fit | zw.identify.SimulationFit, whole: zw.Mechanism, write: Writer, path: Path,
    strict: bool, fixed: Sequence[str],
) -> None:  # fmt: skip
    """Write the fitted mechanism, with the motors of the whole one, and say what is not in the file.

    fixed: sentences on joints that it lacks.
    """
    fitted = found.mechanism if isinstance(found, zw.identify.Fit) else _with_motors(found.mechanism, whole)
    notes = write(fitted, path, strict).notes
    unsupported = [n.what for n in notes if n.kind == "unsupported"]
    _print_omitted([*fixed, *unsupported, *_omitted(found)], path)


def _fixed_in_file(m: zw.Mechanism, whole: zw.Mechanism) -> list[str]:
    """What the mechanism `whole` with fixed joints lacks of m, as sentences if anything: the joints, and the
    parts that involve them.
    """
    kept = {joint.name for joint in whole.joints}
    joints = [joint.name for joint in m.joints if joint.name not in kept]
    if not joints:
        return []
    lost = [
        f"{len(before) - len(after)} of {len(before)} {name}"
        for name in ("forces", "constraints", "tendons", "sensors", "keyframes")
        for before, after in [(getattr(m, name), getattr(whole, name))]
        if len(after) < len(before)
    ]
    left_out = f"; left out with it: {', '.join(lost)}" if lost else ""
    word = "joint" if len(joints) == 1 else "joints"
    return [f"{word} {', '.join(joints)}: fixed by --fix, also in the file{left_out}"]


def _print_report(result: zw.identify.FitReport, page: Path | None) -> None:
    """The report as text, and as a page if one is asked for."""
    out.print(library_text(visible(str(result))))
    if page is not None:
        result.save(page)
        out.print(f"wrote {escape(str(page))}")


def _omitted(found: zw.identify.Fit | zw.identify.SimulationFit) -> list[str]:
    """What the fitted mechanism leaves out, as a sentence if anything."""
    if not isinstance(found, zw.identify.Fit) or not found.omitted:
        return []
    values = ", ".join(f"{name} = {x:.4g}" for name, x in found.omitted.items())
    return [f"{values}: no model file has these parameters; the report has their intervals"]


def _print_omitted(omitted: Sequence[str], path: Path) -> None:
    """The name of a written file, after what is not in it."""
    for what in omitted:
        out.print(f"[yellow]unsupported:[/] {library_text(visible(what))}")
    out.print(f"wrote {escape(str(path))}")


def _check_exist(data: Sequence[Path]) -> None:
    for path in data:
        if not path.exists():
            raise LoadError(missing_file_message(path, (".csv",)))


def _check_method(method: str, of_forces: Mapping[str, object], of_simulation: Mapping[str, object]) -> None:
    """Raises StateError for options that belong to the other method."""
    given = [name for name, value in of_forces.items() if value is not None]
    if method == "simulation" and given:
        raise StateError(
            f"--method simulation compares coordinates as measured; leave out {' and '.join(given)}"
        )
    if method == "forces" and of_simulation:
        named = " and ".join(f"--{name}" for name in of_simulation)
        raise StateError(f"--method forces simulates nothing; leave out {named}, or give --method simulation")


def _fixed_coordinates(m: zw.Mechanism, part: zw.Mechanism) -> dict[str, float]:
    """The coordinates that the mechanism `part` lacks, with the values at which their joints are fixed."""
    values = zip(m.coordinate_names, m.neutral, strict=True)
    return {name: float(x) for name, x in values if name not in part.coordinate_names}


def _columns_without(m: zw.Mechanism, part: zw.Mechanism) -> list[str]:
    """The columns of a file for coordinates and velocities that the mechanism `part` lacks."""
    kept = {*part.coordinate_names, *part.speed_names}
    names = dict.fromkeys((*m.coordinate_names, *m.speed_names))
    return [f"{kind}_{name}" for kind in ("q", "v", "a", "tau") for name in names if name not in kept]


def _ignored_columns(data: Sequence[Path], named: Sequence[str], others: Sequence[str]
                     ) -> list[tuple[Path, list[str]]]:  # fmt: skip
    """Each file with its columns that are not read: those named, which are in one of the files at least, and
    the others.
    """
    columns = [column_names(path) for path in data]
    every = list(dict.fromkeys(name for names in columns for name in names))
    check_ignored(named, every, ", ".join(map(str, data)))
    left_out = {*named, *others}
    return [(path, [name for name in names if name in left_out])
            for path, names in zip(data, columns, strict=True)]  # fmt: skip


def _default_kinds(method: str, out_file: Path | None) -> tuple[Kind, ...]:
    """The kinds of parameters that are fitted by default, of which the file can hold each."""
    if method == "simulation" or _is_urdf(out_file):
        return ("inertia", "damping", "friction")
    return ("inertia", "armature", "damping", "friction")


def _check_writable(m: zw.Mechanism, write: Writer, path: Path, kinds: Sequence[Kind], strict: bool) -> None:
    """Raises FormatError, before anything is fitted, for a model that the file cannot hold."""
    if strict and "armature" in kinds and _is_urdf(path):
        raise FormatError(
            f"{str(path)!r} cannot hold the armature that --kind armature fits, as URDF has none; leave out "
            "this kind, give --no-strict, which omits the armature from the file, or write .xml or .json"
        )
    with tempfile.TemporaryDirectory() as folder:
        write(m, Path(folder) / path.name, strict)


def _is_urdf(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() == ".urdf"


def _without_motors(m: zw.Mechanism) -> zw.Mechanism:
    """The mechanism without motors, whose place the measured forces take, and without what may refer to them:
    sensors and keyframes.
    """
    return m.replace(forces=[f for f in m.forces if not _is_motor(f)], sensors=(), keyframes=())


def _with_motors(fitted: zw.Mechanism, m: zw.Mechanism) -> zw.Mechanism:
    """The fitted mechanism with the motors, sensors and keyframes of m, which were left out."""
    motors = [f for f in m.forces if _is_motor(f)]
    return fitted.replace(forces=[*fitted.forces, *motors], sensors=m.sensors, keyframes=m.keyframes)


def _is_motor(force: object) -> bool:
    """Whether a force has an input of the control."""
    return isinstance(force, zw.Motor | zw.Actuator) or getattr(force, "input", None) is not None
