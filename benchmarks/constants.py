"""The tuning constants of constraints, collisions and solvers: what another value costs.

    python -m benchmarks.constants [NAME ...] [--repetitions 3]

A tuning constant decides between ways that give the same motion, or when an iteration ends. For each one, the
package is copied with the constant changed, and its scenes are stepped by the copy and by the package itself,
in turn, each in a process of its own, on one thread. A line has the time of a step with the other value over
that with the value in use, above 1 where the other is slower, as the median of the repetitions, for one world
and for each of 128, or of 16 in large scenes; and the largest difference of the coordinates after 50 steps.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import zwang as zw
from benchmarks import contact
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism import samples

SOURCE = Path(__file__).parents[1] / "src"
STEPS, MANY, FEW = 50, 128, 16
SECONDS = 1.0  # in which the shortest time is looked for


class Tuning(NamedTuple):
    """A constant, by its module and name, other values of it, and the scenes that depend on it."""

    module: str
    name: str
    others: tuple[str, ...]
    scenes: tuple[str, ...]


TUNINGS = (
    Tuning("collision.sweep", "FEWEST_PAIRS", ("100", "100_000"), ("spheres25", "heap100")),
    Tuning("collision.sweep", "WIDTH", ("2", "8"), ("heap100",)),
    Tuning("collision.sweep", "MOST_CELLS", ("8", "64"), ("heap100",)),
    Tuning("collision.link_pairs", "PAIRS_PER_TEST", ("1", "1000"), ("clusters",)),
    Tuning("collision.pair_groups", "UNROLLED_PAIRS", ("0", "20"), ("walker2d", "ant")),
    Tuning("collision.convex.polyhedra", "FEWEST", ("8", "1000"), ("meshes",)),
    Tuning("collision.convex.direction_cells", "FINEST", ("4", "32"), ("meshes",)),
    Tuning("collision.convex.gjk", "TOLERANCE", ("1e-8, 1e-5", "1e-13, 1e-7"), ("meshes",)),
    Tuning("collision.convex.nearest_points", "SEPARATION", ("1e-3", "1e-1"), ("deep",)),
    Tuning("collision.convex.expanding_polytope", "TOLERANCE", ("1e-8, 1e-5", "1e-12, 1e-8"), ("deep",)),
    Tuning("collision.convex.contact_optimality", "CONVERGED", ("1e-4", "1e-8"), ("meshes",)),
    Tuning("constraint.contact_groups", "MOST_FIXED_COLUMNS", ("6", "24"), ("ant", "humanoid")),
    Tuning("constraint.contact_groups", "COLUMN_MULTIPLE", ("1", "8"), ("ant", "humanoid")),
    Tuning("constraint.coupled_rows", "FEWEST_VELOCITIES", ("1", "100"), ("ant", "boxes5")),
    Tuning("solver.primal_cost", "CHEAP_WIDTH", ("0", "8"), ("half_cheetah", "ant")),
    Tuning("solver.warm_start", "LISTED_PER_VELOCITY", ("1", "4"), ("heap100",)),
    Tuning("solver.warm_start", "FEWEST_LISTED", ("10", "100_000"), ("boxes25", "heap100")),
    Tuning("solver.newton", "TOLERANCE", ("1e-9", "1e-13"), ("half_cheetah", "ant", "boxes5")),
    Tuning("solver.newton", "LINE_SEARCH_TOLERANCE", ("0.1", "0.001"), ("half_cheetah", "ant", "boxes5")),
    Tuning("solver.line_search", "SMALLEST_BRACKET", ("1e-1", "1e-6"), ("ant", "boxes5")),
    Tuning("solver.hard_rows", "FEWEST_CONTACTS", ("1", "1000"), ("hard5",)),
    Tuning("solver.hard_rows", "CONTACTS_PER_VELOCITY", ("1", "8"), ("hard5",)),
    Tuning("solver.hard_contact", "NEWTON_ITERATIONS", ("5", "20"), ("hard5",)),
    Tuning("solver.multipliers", "PENALTY_COMPLIANCE", ("1e-3, 1e-2", "1e-7, 1e-4"), ("four_bar",)),
    Tuning("algebra.blocked_ldlt", "SIDES", ("(4,)", "(8,)"), ("boxes25", "heap100")),
    Tuning("algebra.dense_ldlt", "AT_ONCE", ("1", "4"), ("humanoid", "ant")),
    Tuning("algebra.woodbury", "FEW", ("1", "4"), ("humanoid", "ant")),
    Tuning("algebra.updated_matrix", "UNROLLED_MULTIPLICATIONS", ("100", "100_000"), ("ant", "humanoid")),
    Tuning("algebra.updated_matrix", "FILL_IN_RATIO", ("1", "100"), ("humanoid", "boxes5")),
    Tuning("algebra.updated_matrix", "UNROLLED_FILL_IN", ("100", "100_000"), ("humanoid", "boxes5")),
)


def file_of(tuning: Tuning, source: Path) -> Path:
    """The file that sets a constant, in the package in this folder."""
    return source / "zwang" / f"{tuning.module.replace('.', '/')}.py"


def line_of(tuning: Tuning) -> re.Pattern[str]:
    """The line of the source that sets a constant: its beginning, the value, and the comment."""
    return re.compile(rf"^({tuning.name} = )([^#\n]*?)(\s*#.*)?$", re.MULTILINE)


def value_of(tuning: Tuning) -> str:
    """The value in use, as it stands in the source. Raises LookupError if it is not found."""
    found = line_of(tuning).search(file_of(tuning, SOURCE).read_text())
    if found is None:
        raise LookupError(f"{tuning.module} sets no constant {tuning.name} in one line")
    return found[2]


def changed_copy(folder: Path, tuning: Tuning, value: str) -> Path:
    """A copy of the package in a folder, with another value of a constant."""
    target = folder / re.sub(r"\W", "_", f"{tuning.module}_{tuning.name}_{value}")
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    file = file_of(tuning, target)
    file.write_text(line_of(tuning).sub(rf"\g<1>{value}\g<3>", file.read_text()))
    return target


# ------------------------------------------------------------------------------------------------ scenes


def text_of(scene: str) -> str:
    """The MJCF of a scene."""
    if scene in ("meshes", "deep"):
        return meshes(8, 150, 0.15 if scene == "meshes" else 0.05)
    if scene == "clusters":
        return clusters(6, 8)
    return contact.text_of(scene)


def meshes(count: int, vertices: int, apart: float) -> str:
    """Free bodies with random convex meshes on each other on a floor, apart by a distance [m]."""
    rng, bodies, assets = np.random.default_rng(1), "", ""
    for k in range(count):
        points = rng.normal(size=(vertices, 3))
        points *= [0.1, 0.13, 0.08] / np.linalg.norm(points, axis=1)[:, None]
        assets += f"<mesh name='m{k}' vertex='{' '.join(map(repr, points.ravel().tolist()))}'/>"
        place = f"{0.05 * (k % 2)} {0.05 * (k % 3)} {0.1 + apart * k}"
        bodies += f"<body pos='{place}'><freejoint/><geom type='mesh' mesh='m{k}' mass='1'/></body>"
    floor = "<geom type='plane' size='5 5 .1'/>"
    return f"<mujoco><asset>{assets}</asset><worldbody>{floor}{bodies}</worldbody></mujoco>"


def clusters(count: int, shapes: int) -> str:
    """Free bodies of many spheres each, above a floor."""
    rng, bodies = np.random.default_rng(2), ""
    for k in range(count):
        inner = "".join(
            f"<geom size='.05' pos='{x} {y} {z}'/>" for x, y, z in rng.uniform(-0.1, 0.1, (shapes, 3))
        )
        bodies += f"<body pos='{0.3 * (k % 3)} {0.3 * (k // 3)} .15'><freejoint/>{inner}</body>"
    return f"<mujoco><worldbody><geom type='plane' size='5 5 .1'/>{bodies}</worldbody></mujoco>"


def mechanism_of(scene: str) -> zw.Mechanism:
    """The mechanism of a scene; hard5: boxes with hard contacts, four_bar: a loop closed by hard rows."""
    if scene == "four_bar":
        return samples.four_bar()
    m = read_mjcf("scene.xml", text=text_of("boxes5" if scene == "hard5" else scene), strict=False)
    return with_hard_surfaces(m) if scene == "hard5" else m


def with_hard_surfaces(m: zw.Mechanism) -> zw.Mechanism:
    """The mechanism with hard contacts of all its shapes."""

    def hard(shapes: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(replace(shape, surface=replace(shape.surface, hard=True)) for shape in shapes)

    bodies = tuple(replace(body, geometry=hard(body.geometry)) for body in m.bodies)
    return m.replace(bodies=bodies, geometry=hard(m.geometry))


def measured(scene: str) -> None:
    """Print the seconds of a step of one world and of each of many, and the coordinates of one world."""
    m = mechanism_of(scene)
    times = []
    for worlds in (1, FEW if scene in ("heap100", "boxes25") else MANY):
        w = zw.Worlds(m, worlds, threads=1)
        best, end_of_all = np.inf, time.perf_counter() + SECONDS
        while best == np.inf or time.perf_counter() < end_of_all:
            w.reset()
            start = time.perf_counter()
            w.step(substeps=STEPS)
            best = min(best, (time.perf_counter() - start) / STEPS / worlds)
        times.append(best)
        if worlds == 1:
            end = w.q[0].copy()
    print(*times, *end.tolist())


def run(scene: str, source: Path, cache: Path) -> list[float]:
    """What `measured` prints for a scene with the package in a folder."""
    path = os.pathsep.join([str(source), str(SOURCE.parent)])
    settings = os.environ | {"PYTHONPATH": path, "ZWANG_CACHE": str(cache)}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.constants", "--scene", scene]
    found = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(f"{scene} with {source.name} failed:\n{found.stderr[-2000:]}")
    return [float(x) for x in found.stdout.split()]


def compare(tuning: Tuning, value: str, scene: str, repetitions: int, folder: Path) -> str:
    """The line of the table for another value of a constant in a scene."""
    source = changed_copy(folder, tuning, value)
    runs = [
        (run(scene, SOURCE, folder / "cache"), run(scene, source, folder / "cache"))
        for _ in range(repetitions)
    ]
    shutil.rmtree(source)
    one, many = (statistics.median(new[k] / old[k] for old, new in runs) for k in (0, 1))
    old, new = runs[0]
    difference = max(abs(a - b) for a, b in zip(old[2:], new[2:], strict=True))
    values = f"{tuning.module}.{tuning.name} | {value_of(tuning)} | {value}"
    return f"| {values} | {scene} | {one:.2f} | {many:.2f} | {difference:.0e} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--scene", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scene:
        measured(options.scene)
        return
    print("| constant | value | other | scene | one world | many | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for tuning in TUNINGS:
        if options.names and tuning.name not in options.names:
            continue
        for value in tuning.others:
            for scene in tuning.scenes:
                if scene == "humanoid" and "ZWANG_HUMANOID" not in os.environ:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    print(compare(tuning, value, scene, options.repetitions, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
