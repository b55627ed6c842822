"""The command line: every command says in a line what the library says in a call."""

from __future__ import annotations

import importlib
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

import zwang as zw
from zwang.algebra.rotations import from_rpy
from zwang.api.start import initial_state
from zwang.errors import DescriptionError, LoadError, SimulationError, ZwangError, ZwangWarning
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.samples import SAMPLES
from zwang.simulation.constraint_forces import point_force_labels
from zwang.simulation.constraint_stage import describe_constraints

MINOR, SHOWN = ("ignored",), 8  # remarks of no consequence, and how many of them are shown
RECORDINGS, PICTURES, PAGES = (".nc", ".zarr"), (".png", ".pdf", ".svg"), (".html", ".htm")
SPREAD = 0.1  # of random starts, where there are several worlds
EXAMINED = {
    "drift": "gaps",
    "forces": "forces",
    "zwang": "zwang",
}  # what a kind of picture needs beside the states

app = App(
    name="zwang",
    version=zw.__version__,
    help="Mechanisms by Gauss's principle of least constraint: equations on paper, motion at hardware speed.\n\n"
    f"MODEL is a URDF, MJCF or JSON file, or one of the samples: {', '.join(SAMPLES)}.",
    help_epilogue="Try: `zwang demo`, then `zwang simulate furuta --duration 2 --worlds 64 --plot run.png`.",
)
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)

Model = Annotated[str, Parameter(help="a URDF, MJCF or JSON file, or a sample's name")]
Strict = Annotated[
    bool, Parameter(help="refuse what is impossible or missing in a file, instead of repairing it")
]
Base = Annotated[
    Literal["fixed", "free"], Parameter(help="how a URDF's root stands: fixed to the ground, or free")
]
Kind = Annotated[
    Literal["overview", "time", "phase", "energy", "drift", "forces", "zwang"],
    Parameter(help="what the picture shows: an overview; all over time; speeds against coordinates; energies; what drifts; "
              "forces of constraints and contacts; the Zwang by body"),
]  # fmt: skip
Named = Annotated[list[str] | None, Parameter(help="name=value, as often as needed", negative=())]


def _examples(*lines: str) -> str:
    """What help ends with."""
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)


def _where_there_is(name: str, *examples: str) -> Any:
    """A command of a part of zwang that may be missing."""
    return (
        app.command(help_epilogue=_examples(*examples)) if name in zw.__all__ else lambda function: function
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. What goes wrong is said in one message, with exit status 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", ZwangWarning)
        warnings.showwarning = _show_warning
        try:
            status = app(arguments)
        except (ZwangError, OSError) as error:
            Console(stderr=True).print(f"[bold red]error:[/] {escape(_message(error))}", soft_wrap=True)
            status = 1
        except KeyboardInterrupt:
            status = 130
    sys.exit(status if isinstance(status, int) else 0)


def model_of(
    name: str, *, base: Base = "fixed", strict: bool = True, symbolic: Sequence[str] = ()
) -> Mechanism:
    """The mechanism of a file, or a sample."""
    if name in SAMPLES and not Path(name).exists():
        return SAMPLES[name]()
    return zw.load(name, base=base, strict=strict, symbolic=symbolic)


# ---------------------------------------------------------------------------------------------- commands


@app.command(help_epilogue=_examples("zwang info furuta", "zwang info robot.urdf --base free"))
def info(
    model: Model,
    *,
    base: Base = "fixed",
    strict: Strict = True,
    everything: Annotated[bool, Parameter(name="--all", help="show every remark", negative=())] = False,
) -> None:
    """What a model has: its bodies and joints, what drives and restricts it, and what its reader says."""
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
        out.print(f"and {hidden} more without effect on the motion; --all shows them")


@app.command(help_epilogue=_examples("zwang check robot.urdf"))
def check(model: Model, *, base: Base = "fixed", strict: Strict = True) -> int:
    """Look for what is possible but hardly meant: degrees for radians, millimetres, implausible densities.

    Exit status 1 if anything is implausible, repaired or unsupported, or if the file cannot be read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZwangWarning)
        m = model_of(model, base=base, strict=strict)
    found = [*zw.lint(m), *(note for note in m.report.notes if note.kind != "read")]
    for note in found:
        out.print(f"[yellow]{escape(note.kind)}:[/] {escape(note.what)} [dim]{escape(note.where)}[/]")
    out.print(f"{escape(m.name)}: {len(found)} remarks" if found else f"{escape(m.name)}: nothing to remark")
    return 1 if any(note.kind not in MINOR for note in found) else 0


@app.command(
    help_epilogue=_examples(
        "zwang simulate furuta --duration 2 --q0 alpha=0.1 --plot run.png",
        "zwang simulate four_bar --plot zwang.png --kind zwang",
        "zwang simulate robot.urdf --duration 2 --worlds 16 --out run.nc --html run.html",
        "zwang simulate four_bar --integrator rk4 --control motor=0.5 --out run.zarr",
    )
)
def simulate(
    model: Model,
    *,
    duration: Annotated[float, Parameter(help="seconds")] = 2.0,
    step: Annotated[float | None, Parameter(help="seconds; by default the model's own")] = None,
    integrator: Annotated[
        str | None, Parameter(help="euler, rk4, dop853, radau, lsoda; by default the model's")
    ] = None,
    worlds: Annotated[int, Parameter(help="how many at once; their starts differ by --spread")] = 1,
    spread: Annotated[
        float | None, Parameter(help="standard deviation of random starts; 0.1 with several worlds")
    ] = None,
    seed: Annotated[int, Parameter(help="of the random starts")] = 0,
    q0: Named = None,
    v0: Named = None,
    control: Named = None,
    param: Named = None,
    record: Annotated[int | None, Parameter(help="keep every so many steps")] = None,
    forces: Annotated[
        bool | None, Parameter(help="record forces of contacts and constraints, too; by default for --html")
    ] = None,
    out_file: Annotated[Path | None, Parameter(name="--out", help="recording: .nc (NetCDF) or .zarr")] = None,
    plot: Annotated[Path | None, Parameter(help="picture: .png, .pdf or .svg")] = None,
    kind: Kind = "overview",
    html: Annotated[Path | None, Parameter(help="page that plays the motion")] = None,
    base: Base = "fixed",
    strict: Strict = True,
    compiled: Annotated[
        bool, Parameter(help="run in machine code; --no-compiled runs the float reference, slowly")
    ] = True,
) -> None:
    """Simulate a model, and keep the motion as a file, a picture or a page."""
    _check_endings({"--out": (out_file, RECORDINGS), "--plot": (plot, PICTURES), "--html": (html, PAGES)})
    m = model_of(model, base=base, strict=strict)
    if param:
        m = m.subs(_pairs(param))
    q, v = _random_starts(
        m, worlds, (SPREAD if worlds > 1 else 0.0) if spread is None else spread, seed, q0, v0
    )
    kept = {"every": record, "forces": html is not None if forces is None else forces}
    began = time.perf_counter()
    run = zw.simulate(m, q, v, duration=duration, step=step, integrator=integrator, control=_pairs(control) or None,
                      worlds=worlds, record=kept, compiled=compiled)  # fmt: skip
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


@app.command(
    name="plot",
    help_epilogue=_examples(
        "zwang plot run.nc", "zwang plot run.nc --kind phase --name alpha --out phase.png"
    ),
)
def plot_run(
    recording: Annotated[Path, Parameter(help="a recording (.nc, .zarr)")],
    *,
    kind: Kind = "overview",
    name: Annotated[
        list[str] | None,
        Parameter(help="only this coordinate, speed, constraint or body; as often as needed", negative=()),
    ] = None,
    out_file: Annotated[
        Path | None,
        Parameter(name="--out", help="picture: .png, .pdf or .svg; by default RECORDING_KIND.png"),
    ] = None,
) -> None:
    """Draw a recording: histories, phase portraits, energies, drift, forces, the Zwang by body."""
    path = Path(f"{recording.stem}_{kind}.png") if out_file is None else out_file
    _check_endings({"--out": (path, PICTURES)})
    _draw(zw.open_run(recording), path, kind, name)
    out.print(f"wrote {escape(str(path))}")


@app.command(
    help_epilogue=_examples(
        "zwang view robot.urdf", "zwang view run.nc", "zwang view robot.urdf --html robot.html"
    )
)
def view(
    model: Annotated[
        str, Parameter(help="a URDF, MJCF or JSON file, a sample's name, or a recording (.nc, .zarr)")
    ],
    *,
    worlds: Annotated[int, Parameter(help="of a recording: how many are shown")] = 16,
    trace: Annotated[
        list[str] | None, Parameter(help="body or frame whose path is drawn", negative=())
    ] = None,
    forces: Annotated[
        bool, Parameter(help="work out the forces of a recording that has none, from its states")
    ] = True,
    html: Annotated[Path | None, Parameter(help="write the page to a file instead")] = None,
    browser: Annotated[bool, Parameter(help="open the browser")] = True,
    base: Base = "fixed",
    strict: Strict = True,
) -> None:
    """Show a model, with sliders for its joints, or play a recording, on a page that this machine alone can see."""
    recorded = Path(model).suffix in (".nc", ".zarr")
    what: Any = zw.open_run(model) if recorded else model_of(model, base=base, strict=strict)
    if recorded and forces and "force" not in what and point_force_labels(zw.mechanism_of(what)):
        what = zw.examine(what.isel(world=slice(0, worlds)), "forces")
    if html is not None:
        zw.save_html(what, html, worlds=worlds, traces=trace or ())
        out.print(f"wrote {escape(str(html))}")
        return
    with zw.view(what, worlds=worlds, traces=trace or (), browser=browser) as page:
        out.print(f"{escape(page.url)}\nCtrl-C ends it")
        page.wait()


@_where_there_is(
    "equations",
    "zwang equations furuta",
    "zwang equations arm.urdf --symbolic mass --symbolic gravity --format latex",
)
def equations(
    model: Model,
    *,
    symbolic: Annotated[
        list[str] | None,
        Parameter(help="numbers to turn into symbols: mass, com, inertia, damping, gravity", negative=()),
    ] = None,
    method: Literal["projection", "gauss", "newton_euler", "lagrange"] = "projection",
    format: Literal["text", "latex", "html", "sympy"] = "text",
    speeds: Annotated[
        list[str] | None,
        Parameter(help="the essential speeds, by name; by default they are chosen", negative=()),
    ] = None,
    base: Base = "fixed",
    strict: Strict = True,
) -> None:
    """The equations of motion: mass matrix times accelerations = right-hand side."""
    m = model_of(model, base=base, strict=strict, symbolic=symbolic or ())
    print(zw.equations(m, speeds, method).written(format))


@app.command(
    help_epilogue=_examples(
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5",
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5 --rpy 3.14 0 0",
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5 --quaternion 0 1 0 0",
    )
)
def ik(
    model: Model,
    *,
    frame: Annotated[str, Parameter(help="the frame to be moved")],
    position: Annotated[
        tuple[float, float, float], Parameter(help="where its origin is wanted [m]", negative=())
    ],
    quaternion: Annotated[
        tuple[float, float, float, float] | None, Parameter(help="its attitude (w, x, y, z)", negative=())
    ] = None,
    rpy: Annotated[
        tuple[float, float, float] | None,
        Parameter(help="its attitude by roll, pitch and yaw [rad], as URDF has them", negative=()),
    ] = None,
    base: Base = "fixed",
    strict: Strict = True,
) -> int:
    """A configuration that brings a frame to a place (inverse kinematics). Exit status 1 if none was found."""
    m = model_of(model, base=base, strict=strict)
    if quaternion is not None and rpy is not None:
        raise DescriptionError("give the attitude by --quaternion or by --rpy, not by both")
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


@app.command(help_epilogue=_examples("zwang bench panda.urdf --worlds 4096"))
def bench(
    model: Model,
    *,
    worlds: Annotated[int, Parameter(help="worlds at once")] = 4096,
    base: Base = "fixed",
    strict: Strict = True,
) -> None:
    """How fast a model runs here: compile times, and nanoseconds a world for each function."""
    m = model_of(model, base=base, strict=strict)
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


@app.command(help_epilogue=_examples("zwang demo", "zwang demo here --worlds 20000"))
def demo(
    folder: Annotated[Path, Parameter(help="where the page, the picture and the recording go")] = Path(
        "zwang-demo"
    ),
    *,
    worlds: Annotated[int, Parameter(help="randomised worlds")] = 4096,
) -> None:
    """A real mechanism from description to equations, thousands of worlds, a report, a page, a picture and a file."""
    importlib.import_module("zwang.demo").demonstrate(folder, worlds, out)  # it needs every heavy library


# ---------------------------------------------------------------------------------------------- helpers


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _show_warning(message: Any, category: type, *_: Any, **__: Any) -> None:
    Console(stderr=True).print(f"[yellow]warning:[/] {escape(str(message))}", soft_wrap=True)


def _check_endings(paths: dict[str, tuple[Path | None, tuple[str, ...]]]) -> None:
    """What is to be written can be, before a long simulation. Raises SimulationError."""
    for option, (path, endings) in paths.items():
        if path is None:
            continue
        if path.suffix not in endings:
            raise SimulationError(f"{option} {str(path)!r} must end in {' or '.join(endings)}")
        if not path.resolve().parent.is_dir():
            raise SimulationError(f"{option} {str(path)!r}: there is no folder {str(path.parent)!r}")


def _draw(run: Any, path: Path, kind: str, names: Sequence[str] | None = None) -> None:
    """Write a picture; what it needs and the recording does not hold is found first."""
    needed = EXAMINED.get(kind)
    zw.plot(zw.examine(run, needed) if needed else run, path, kind=kind, names=names)


def _pairs(texts: Sequence[str] | None) -> dict[str, float]:
    """name=value texts as a dictionary. Raises LoadError for another form."""
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
    """q0 and v0 for `zw.simulate`: named values over home and rest, then random differences between worlds."""
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
    """Configurations (worlds, nq) at random distances from home."""
    home = np.array(m.home or m.neutral if home is None else home, dtype=float)
    moves = spread * rng.normal(size=(worlds, m.nv))
    return np.stack([zw.integrate_configuration(m, home, move, 1.0) for move in moves])


def _seconds(function: Any, arguments: Sequence[Any]) -> float:
    """Median time of a call."""
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
        "driven by": list(m.inputs),
        "restricted by": list(describe_constraints(m)),
        "frames": [f.name for f in m.frames],
        "shapes": [f"{len(shapes)}, of these {meshes} meshes"] if shapes else [],
        "states": [k.name for k in m.keyframes],
        "options": [f"{m.options.integrator}, step {m.options.timestep:g} s"],
    }


def _body_tree(m: Mechanism) -> Tree:
    """Bodies under their parents, with their joints and limits."""
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
    """What a run was, in a few lines."""
    steps = round(run.attrs["duration"] / run.attrs["step"])
    worlds, stopped = run.sizes["world"], int(run["status"].sum())
    energy = run["energy"].values
    table = Table.grid(padding=(0, 2))
    table.add_row(
        "simulated",
        f"{worlds:,} worlds, {steps:,} steps of {run.attrs['step']:g} s, {run.attrs['integrator']}",
    )
    table.add_row("took", f"{seconds:.2f} s, compiling included; {run.attrs['path']}")
    with np.errstate(all="ignore"):
        change = np.nanmax(np.abs(energy - energy[:, :1]))
    table.add_row(
        "energy", f"{np.nanmean(energy[:, 0]):.6g} J at the start, changes by at most {change:.3g} J"
    )
    if stopped:
        table.add_row(
            "[red]stopped[/]", f"{stopped:,} worlds, the first at {float(run['stop_time'].min()):.4g} s"
        )
    return table
