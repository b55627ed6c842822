"""The command line: each command calls one function of the library."""

from __future__ import annotations

import importlib
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.tree import Tree

import zwang as zw
from zwang.algebra.rotations import from_rpy
from zwang.api.initial_conditions import MOST_WORLDS, initial_state
from zwang.cli_options import Base, Coordinates, Inputs, Kind, Model, Strict, Values, Velocities, examples
from zwang.compiler.runtime.threads import is_compiling
from zwang.errors import (
    DescriptionError,
    LoadError,
    SimulationError,
    SimulationInterrupted,
    ZwangError,
    ZwangWarning,
    did_you_mean,
    visible,
)
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.samples import SAMPLES
from zwang.simulation.constraint_forces import point_force_labels
from zwang.simulation.constraint_options import describe_constraints

MINOR, SHOWN = ("ignored",), 8  # kinds of notes without effect on the motion, and how many `info` prints
RECORDINGS, PICTURES, PAGES = (".nc", ".zarr"), (".png", ".pdf", ".svg"), (".html", ".htm")
INTERRUPTED = 130  # exit status that shells expect after Ctrl-C
SPREAD = 0.1  # default standard deviation of random initial states, for several worlds
EXAMINED = {
    "drift": "gaps",
    "forces": "forces",
    "zwang": "zwang",
}  # derived quantities that a kind of plot needs beside the states
DOCUMENTS = (".urdf", ".xml", ".mjcf", ".json")


app = App(
    name="zwang",
    version=zw.__version__,
    help="Multibody dynamics by Gauss's principle of least constraint: derive the equations of motion of a "
    "mechanism, simulate it with compiled code, and compute its constraint forces and inverse kinematics.\n\n"
    "MODEL is the path of a URDF, MJCF or JSON file, or the name of a sample mechanism: "
    f"{', '.join(SAMPLES)}. `zwang COMMAND --help` describes a command.",
    help_epilogue=examples(
        "zwang demo",
        "zwang info furuta",
        "zwang simulate furuta --duration 2 --worlds 64 --plot run.png",
        "zwang equations furuta --format latex",
        "zwang --install-completion",
    ),
)
app.register_install_completion_command(
    help="Install tab completion for the shell you use, or for the one that --shell names."
)


class _Terminal(Console):
    """A console on which what a name holds is seen and not obeyed: see `visible`."""

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


out = _Terminal(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. An error is printed as one message; the exit status is then 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", ZwangWarning)
        warnings.showwarning = _show_warning
        try:
            status = app(arguments)
        except (ZwangError, OSError) as error:
            _Terminal(stderr=True, highlight=False).print(
                f"[bold red]error:[/] {escape(_message(error))}", soft_wrap=True
            )
            status = 1
        except KeyboardInterrupt:
            status = INTERRUPTED
            if is_compiling():  # a usual end would wait for LLVM
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def model_of(
    model: str | Path, *, base: Base = "fixed", strict: bool = True, symbolic: Sequence[str] = ()
) -> Mechanism:
    """The mechanism of a file, or a sample. Raises LoadError, with similar names, where there is neither."""
    name = str(model)
    if Path(name).exists():
        return zw.load(name, base=base, strict=strict, symbolic=symbolic)
    if name in SAMPLES:
        return SAMPLES[name]()
    raise LoadError(_missing(Path(name), DOCUMENTS, SAMPLES))


def _missing(path: Path, endings: tuple[str, ...], samples: Iterable[str] = ()) -> str:
    """The message for a path without a file, with similar names of samples and of files beside it."""
    folder = path.parent
    try:
        beside = sorted(
            str(folder / file.name) for file in folder.iterdir() if file.suffix.lower() in endings
        )
    except OSError:
        beside = []
    question = did_you_mean(path, [*samples, *beside])
    listed = f" The samples are: {', '.join(samples)}." if samples else ""
    what = "neither a file nor a sample" if samples else "no such file"
    return f"there is {what} {str(path)!r}.{' ' * bool(question)}{question}{listed}"


def _recording(path: Path) -> Any:
    """The recording of a file. Raises LoadError, with similar names, where there is none."""
    if not path.exists():
        raise LoadError(_missing(path, RECORDINGS))
    return zw.open_run(path)


# ---------------------------------------------------------------------------------------------- commands


@app.command(help_epilogue=examples("zwang info furuta", "zwang info robot.urdf --base free"))
def info(
    model: Model,
    *,
    base: Base = "fixed",
    strict: Strict = True,
    everything: Annotated[bool, Parameter(name="--all", help="Print every note.", negative=())] = False,
) -> None:
    """List a model's bodies, joints, inputs, constraints and frames, and the notes from reading its file."""
    m = model_of(model, base=base, strict=strict)
    out.print(f"[bold]{escape(m.name)}[/]  nq = {m.nq}, nv = {m.nv}, {len(m.bodies)} bodies, {_mass(m)}")
    out.print(_body_tree(m))
    for title, names in _lists(m).items():
        if names:
            shown = ", ".join(names[:12]) + (f", ... ({len(names)} in all)" if len(names) > 12 else "")
            out.print(f"[bold]{title}[/] {escape(shown)}")
    minor = [note for note in m.report.notes if note.kind in MINOR]
    hidden = 0 if everything else max(0, len(minor) - SHOWN)
    for note in (*(n for n in m.report.notes if n.kind not in MINOR), *minor[: len(minor) - hidden]):
        out.print(f"[yellow]{escape(note.kind)}[/] {escape(note.what)} [dim]{escape(note.where)}[/]")
    if hidden:
        out.print(f"{hidden} more notes without effect on the motion; --all prints them")


@app.command(help_epilogue=examples("zwang check robot.urdf"))
def check(model: Model, *, base: Base = "fixed", strict: Strict = True) -> int:
    """Look for values that are valid but implausible, such as angles in degrees or lengths in millimetres.

    The exit status is 1 if anything is implausible, repaired or unsupported, or if the file cannot be read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZwangWarning)
        m = model_of(model, base=base, strict=strict)
    found = [*zw.lint(m), *(note for note in m.report.notes if note.kind != "read")]
    for note in found:
        out.print(f"[yellow]{escape(note.kind)}:[/] {escape(note.what)} [dim]{escape(note.where)}[/]")
    out.print(f"{escape(m.name)}: {len(found)} notes" if found else f"{escape(m.name)}: no problems found")
    return 1 if any(note.kind not in MINOR for note in found) else 0


@app.command(
    help_epilogue=examples(
        "zwang simulate furuta --duration 2 --q0 alpha=0.1 --plot run.png",
        "zwang simulate four_bar --plot zwang.png --kind zwang",
        "zwang simulate robot.urdf --duration 2 --worlds 16 --out run.nc --html run.html",
        "zwang simulate four_bar --integrator rk4 --control motor=0.5 --out run.zarr",
    )
)
def simulate(
    model: Model,
    *,
    duration: Annotated[float, Parameter(help="Simulated time [s].")] = 2.0,
    step: Annotated[float | None, Parameter(help="Step size [s]; by default the model's own.")] = None,
    integrator: Annotated[
        str | None,
        Parameter(
            help="Integrator: euler, implicitfast or rk4 (fixed step), or dop853, radau or lsoda (error controlled); "
            "by default the model's own."
        ),
    ] = None,
    worlds: Annotated[
        int, Parameter(help="Number of copies simulated at once; their initial states differ by --spread.")
    ] = 1,
    spread: Annotated[
        float | None,
        Parameter(
            help="Standard deviation of the random initial states [rad, m, rad/s or m/s]; "
            "by default 0 for one world and 0.1 for several."
        ),
    ] = None,
    seed: Annotated[int, Parameter(help="Seed of the random initial states.")] = 0,
    q0: Coordinates = None,
    v0: Velocities = None,
    control: Inputs = None,
    param: Values = None,
    record: Annotated[
        int | None,
        Parameter(help="Record every RECORD-th step; by default every step, or fewer for very many worlds."),
    ] = None,
    forces: Annotated[
        bool | None,
        Parameter(help="Record contact and constraint forces; by default only with --html."),
    ] = None,
    out_file: Annotated[
        Path | None, Parameter(name="--out", help="Write the recording to this file (.nc or .zarr).")
    ] = None,
    plot: Annotated[Path | None, Parameter(help="Write a plot to this file (.png, .pdf or .svg).")] = None,
    kind: Kind = "overview",
    html: Annotated[
        Path | None, Parameter(help="Write a web page that plays the motion to this file.")
    ] = None,
    base: Base = "fixed",
    strict: Strict = True,
    compiled: Annotated[
        bool, Parameter(help="Run compiled code; --no-compiled runs the slow float reference.")
    ] = True,
) -> int:
    """Simulate a model. Write the motion as a recording, a plot or a web page.

    Ctrl-C ends the run; what was recorded is still written, and the exit status is 130.
    """
    _check_endings({"--out": (out_file, RECORDINGS), "--plot": (plot, PICTURES), "--html": (html, PAGES)})
    _check_counts(worlds, seed)
    m = model_of(model, base=base, strict=strict)
    if not m.nv:
        raise SimulationError(
            f"{model!r} has no joint that moves: there is nothing to simulate; `zwang info` shows what it has"
        )
    if param:
        m = m.subs(_pairs(param))
    q, v = _random_starts(
        m, worlds, (SPREAD if worlds > 1 else 0.0) if spread is None else spread, seed, q0, v0
    )
    kept = {"every": record, "forces": html is not None if forces is None else forces}
    began = time.perf_counter()
    status = 0
    try:
        run = zw.simulate(m, q, v, duration=duration, step=step, integrator=integrator, control=_pairs(control) or None,
                          worlds=worlds, record=kept, compiled=compiled)  # fmt: skip
    except SimulationInterrupted as error:
        if not any((out_file, plot, html)):
            raise
        _Terminal(stderr=True).print(f"[yellow]interrupted:[/] {escape(str(error))}", soft_wrap=True)
        run, status = error.recording, INTERRUPTED
    out.print(_summary(run, time.perf_counter() - began))
    if out_file is not None:
        zw.save(run, out_file)
    if plot is not None:
        _draw(run, plot, kind)
    if html is not None:
        zw.save_html(run, html)
    for path in (out_file, plot, html):
        if path is not None:
            out.print(f"wrote {escape(str(path))}")
    return status


@app.command(
    name="plot",
    help_epilogue=examples(
        "zwang plot run.nc", "zwang plot run.nc --kind phase --name alpha --out phase.png"
    ),
)
def plot_run(
    recording: Annotated[Path, Parameter(help="Path of a recording (.nc or .zarr).")],
    *,
    kind: Kind = "overview",
    name: Annotated[
        list[str] | None,
        Parameter(
            help="Plot only this coordinate, velocity, constraint or body. May be given several times.",
            negative=(),
        ),
    ] = None,
    out_file: Annotated[
        Path | None,
        Parameter(name="--out", help="File to write (.png, .pdf or .svg); by default RECORDING_KIND.png."),
    ] = None,
) -> None:
    """Plot a recording: time histories, phase portraits, energies, drift, forces, or Gauss's measure Z."""
    path = Path(f"{recording.stem}_{kind}.png") if out_file is None else out_file
    _check_endings({"--out": (path, PICTURES)})
    _draw(_recording(recording), path, kind, name)
    out.print(f"wrote {escape(str(path))}")


@app.command(
    help_epilogue=examples(
        "zwang view robot.urdf", "zwang view run.nc", "zwang view robot.urdf --html robot.html"
    )
)
def view(
    model: Annotated[
        Path,
        Parameter(
            help="Path of a URDF, MJCF or JSON file or of a recording (.nc, .zarr), or a sample's name."
        ),
    ],
    *,
    worlds: Annotated[int, Parameter(help="Number of worlds of a recording to show.")] = 16,
    trace: Annotated[
        list[str] | None,
        Parameter(help="Draw the path of this body or frame. May be given several times.", negative=()),
    ] = None,
    forces: Annotated[
        bool,
        Parameter(help="Compute the forces from the recorded states if the recording has none."),
    ] = True,
    html: Annotated[Path | None, Parameter(help="Write an offline web page to this file instead.")] = None,
    browser: Annotated[bool, Parameter(help="Open the page in the browser.")] = True,
    base: Base = "fixed",
    strict: Strict = True,
) -> None:
    """Show a model with a slider for each joint, or play a recording, in the browser.

    The page is served on the loopback address, so only this computer can open it.
    """
    _check_counts(worlds)
    recorded = model.suffix in RECORDINGS
    what: Any = _recording(model) if recorded else model_of(model, base=base, strict=strict)
    if recorded and forces and "force" not in what and point_force_labels(zw.mechanism_of(what)):
        what = zw.derived_quantities(what.isel(world=slice(0, worlds)), "forces")
    if html is not None:
        zw.save_html(what, html, worlds=worlds, traces=trace or ())
        out.print(f"wrote {escape(str(html))}")
        return
    with zw.view(what, worlds=worlds, traces=trace or (), browser=browser) as page:
        out.print(f"{escape(page.url)}\nPress Ctrl-C to stop.")
        page.wait()


@app.command(
    help_epilogue=examples(
        "zwang equations furuta",
        "zwang equations arm.urdf --symbolic mass --symbolic gravity --format latex",
    )
)
def equations(
    model: Model,
    *,
    symbolic: Annotated[
        list[str] | None,
        Parameter(
            help="Replace these numbers by symbols: mass, com, inertia, damping, friction or gravity. "
            "May be given several times.",
            negative=(),
        ),
    ] = None,
    method: Annotated[
        Literal["projection", "gauss", "newton_euler", "lagrange"],
        Parameter(help="Method of derivation; all methods give the same equations."),
    ] = "projection",
    format: Annotated[Literal["text", "latex", "html", "sympy"], Parameter(help="Output format.")] = "text",
    speeds: Annotated[
        list[str] | None,
        Parameter(
            help="The name of an independent generalised velocity. May be given several times; "
            "by default zwang chooses them.",
            negative=(),
        ),
    ] = None,
    base: Base = "fixed",
    strict: Strict = True,
) -> None:
    """Print the equations of motion: mass matrix times accelerations = right-hand side."""
    m = model_of(model, base=base, strict=strict, symbolic=symbolic or ())
    print(visible(zw.equations(m, speeds, method).written(format)))


@app.command(
    help_epilogue=examples(
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5",
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5 --rpy 3.14 0 0",
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5 --quaternion 0 1 0 0",
    )
)
def ik(
    model: Model,
    *,
    frame: Annotated[str, Parameter(help="Name of the body or frame to place.")],
    position: Annotated[
        tuple[float, float, float], Parameter(help="Target of the frame's origin, x y z [m].", negative=())
    ],
    quaternion: Annotated[
        tuple[float, float, float, float] | None,
        Parameter(help="Target orientation as a quaternion, w x y z.", negative=()),
    ] = None,
    rpy: Annotated[
        tuple[float, float, float] | None,
        Parameter(help="Target orientation as roll, pitch and yaw [rad], in URDF's convention.", negative=()),
    ] = None,
    base: Base = "fixed",
    strict: Strict = True,
) -> int:
    """Find a configuration that moves a frame to a target pose (inverse kinematics).

    The exit status is 1 if none was found.
    """
    m = model_of(model, base=base, strict=strict)
    if quaternion is not None and rpy is not None:
        raise DescriptionError("give the orientation by --quaternion or by --rpy, not by both")
    target: Any = np.array(position)
    if quaternion is not None:
        target = (zw.Frame("target", orientation=quaternion).orientation, target)
    elif rpy is not None:
        target = (from_rpy(*rpy), target)
    found = zw.robot.solve_ik(m, frame, target)
    for name, value in zip(m.coordinate_names, np.atleast_1d(found.q), strict=True):
        out.print(f"{escape(name):24} {value: .6f}")
    out.print(escape(str(found)))
    return 0 if np.all(found.converged) else 1


@app.command(help_epilogue=examples("zwang bench panda.urdf --worlds 4096"))
def bench(
    model: Model,
    *,
    worlds: Annotated[int, Parameter(help="Number of worlds evaluated in one call.")] = 4096,
    base: Base = "fixed",
    strict: Strict = True,
) -> None:
    """Measure how fast a model runs on this computer: compile time, and time a world for each function."""
    _check_counts(worlds)
    m = model_of(model, base=base, strict=strict)
    if not m.nv:
        raise SimulationError(f"{model!r} has no joint that moves: none of its functions does anything")
    rng = np.random.default_rng(0)
    q, v, tau = (
        _spread_rows(m, worlds, 0.3, rng),
        rng.normal(size=(worlds, m.nv)),
        rng.normal(size=(worlds, m.nv)),
    )
    fast = zw.compile(m)
    table = Table(
        "function",
        "operations",
        "ready after [s]",
        "one world [us]",
        f"{worlds:,} worlds [ns each]",
        box=None,
    )
    for name, arguments in {
        "forward_dynamics": (q, v, tau),
        "inverse_dynamics": (q, v, tau),
        "mass_matrix": (q,),
    }.items():
        function, one = getattr(fast, name), [x[0] for x in arguments]
        began = time.perf_counter()
        function(*arguments)
        ready = time.perf_counter() - began
        counted = f"{fast.count_operations(name)['total']:,}"
        table.add_row(name, counted, f"{ready:.3f}", f"{_seconds(function, one) * 1e6:.2f}",
                      f"{_seconds(function, arguments) / worlds * 1e9:.1f}")  # fmt: skip
    out.print(table)


@app.command(help_epilogue=examples("zwang demo", "zwang demo here --worlds 20000"))
def demo(
    folder: Annotated[Path, Parameter(help="Folder for the web page, the plot and the recording.")] = Path(
        "zwang-demo"
    ),
    *,
    worlds: Annotated[int, Parameter(help="Number of worlds with random parameters.")] = 4096,
) -> None:
    """Run a complete example: Furuta's pendulum, its equations of motion, and thousands of simulated worlds.

    Prints a report, and writes a web page, a plot and a recording.
    """
    importlib.import_module("zwang.demo").demonstrate(folder, worlds, out)  # loads every heavy library


# ---------------------------------------------------------------------------------------------- helpers


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _show_warning(message: Any, category: type, *_: Any, **__: Any) -> None:
    _Terminal(stderr=True, highlight=False).print(
        f"[yellow]warning:[/] {escape(str(message))}", soft_wrap=True
    )


def _check_endings(paths: dict[str, tuple[Path | None, tuple[str, ...]]]) -> None:
    """Check before a long simulation that its files can be written. Raises SimulationError."""
    for option, (path, endings) in paths.items():
        if path is None:
            continue
        if path.suffix not in endings:
            raise SimulationError(f"{option} {str(path)!r} must end in {' or '.join(endings)}")
        if not path.resolve().parent.is_dir():
            raise SimulationError(f"{option} {str(path)!r}: there is no folder {str(path.parent)!r}")


def _check_counts(worlds: int, seed: int = 0) -> None:
    """Raises SimulationError for numbers of worlds, and seeds, that cannot be."""
    if not 1 <= worlds <= MOST_WORLDS:
        raise SimulationError(f"--worlds is {worlds}; give a whole number from 1 to {MOST_WORLDS:,}")
    if seed < 0:
        raise SimulationError(f"--seed is {seed}; it must not be negative")


def _draw(run: Any, path: Path, kind: str, names: Sequence[str] | None = None) -> None:
    """Write a plot; derived quantities that the recording lacks are computed first."""
    needed = EXAMINED.get(kind)
    zw.plot(zw.derived_quantities(run, needed) if needed else run, path, kind=kind, names=names)


def _pairs(texts: Sequence[str] | None) -> dict[str, float]:
    """A dictionary from texts of the form name=value. Raises LoadError for any other form."""
    found = {}
    for text in texts or ():
        name, equals, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise LoadError(f"{text!r} is not name=value with a number, such as alpha=0.1")
    return found


def _random_starts(
    m: Mechanism, worlds: int, spread: float, seed: int, q0: Sequence[str] | None, v0: Sequence[str] | None
) -> tuple[Any, Any]:
    """q0 and v0 for `zw.simulate`: defaults, named values, and a random displacement for each world."""
    q, v = _pairs(q0), _pairs(v0)
    if spread == 0 and not m.constraints:
        return q, v
    begin = initial_state(m, q, v)
    rng = np.random.default_rng(seed)
    rows = _spread_rows(m, worlds, spread, rng, begin.q[0])
    speeds = begin.v[0] + spread * rng.normal(size=(worlds, m.nv))
    if any(getattr(c, "softness", None) is None for c in m.constraints):
        closed = [zw.assemble(m, *state) for state in zip(rows, speeds, strict=True)]
        rows, speeds = (np.array(part) for part in zip(*closed, strict=True))
    return rows, speeds


def _spread_rows(
    m: Mechanism, worlds: int, spread: float, rng: np.random.Generator, home: Any = None
) -> np.ndarray:
    """Configurations (worlds, nq) at random displacements from `home` or the default configuration."""
    home = np.array(m.home or m.neutral if home is None else home, dtype=float)
    moves = spread * rng.normal(size=(worlds, m.nv))
    return np.stack([zw.integrate_configuration(m, home, move, 1.0) for move in moves])


def _seconds(function: Any, arguments: Sequence[Any]) -> float:
    """Median time of a call [s]."""
    times = []
    until = time.perf_counter() + 0.5
    while time.perf_counter() < until or len(times) < 5:
        began = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def _mass(m: Mechanism) -> str:
    masses = [body.mass for body in m.bodies]
    return f"{sum(masses):.4g} kg" if not m.symbols else f"symbols {', '.join(m.symbols)}"


def _lists(m: Mechanism) -> dict[str, list[str]]:
    shapes = [g for b in m.bodies for g in b.geometry] + list(m.geometry)
    meshes = sum(isinstance(g, Mesh) for g in shapes)
    return {
        "inputs": list(m.inputs),
        "constraints": list(describe_constraints(m)),
        "frames": [f.name for f in m.frames],
        "geometry": [f"{len(shapes)} shapes, {meshes} of them meshes"] if shapes else [],
        "keyframes": [k.name for k in m.keyframes],
        "options": [f"integrator {m.options.integrator}, step size {m.options.timestep:g} s"],
    }


def _body_tree(m: Mechanism) -> Tree:
    """The tree of bodies, with their joints and joint limits."""
    root = Tree("world")
    nodes = {"world": root}
    joints: dict[str, list[Any]] = {}
    for joint in m.joints:
        joints.setdefault(joint.body, []).append(joint)
    for body in m.bodies:
        moves = []
        for joint in joints.get(body.name, ()):
            limits = joint.joint.limits
            moves.append(
                f"{joint.kind} {joint.name}" + (f" [{limits[0]:.4g}, {limits[1]:.4g}]" if limits else "")
            )
        how = escape(", ".join(moves)) or "[dim]fixed[/]"
        nodes[body.name] = nodes[body.parent].add(f"{escape(body.name)}  [cyan]{how}[/]")
    return root


def _summary(run: Any, seconds: float) -> Table:
    """A summary of a run in a few lines."""
    steps = round(run.attrs["duration"] / run.attrs["step"])
    worlds, stopped = run.sizes["world"], int(run["status"].sum())
    energy = run["energy"].values
    table = Table.grid(padding=(0, 2))
    table.add_row(
        "simulated",
        f"{worlds:,} worlds, {steps:,} steps of {run.attrs['step']:g} s, {run.attrs['integrator']}",
    )
    table.add_row("took", f"{seconds:.2f} s, compilation included; {run.attrs['path']}")
    with np.errstate(all="ignore"):
        change = np.nanmax(np.abs(energy - energy[:, :1]))
    table.add_row(
        "energy", f"{np.nanmean(energy[:, 0]):.6g} J at the start; changes by at most {change:.3g} J"
    )
    if stopped:
        table.add_row(
            "[red]stopped[/]", f"{stopped:,} worlds, the first at {float(run['stop_time'].min()):.4g} s"
        )
    return table
