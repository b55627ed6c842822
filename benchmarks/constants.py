"""The constants of constraints, collisions and solvers: what another value costs, and what it changes.

    python -m benchmarks.constants [NAME ...] [--tolerances] [--repetitions 3]

A tuning constant decides between ways that give the same motion, or when an iteration ends. For each one, the
package is copied with the constant changed, and its scenes are stepped by the copy and by the package itself,
in turn, each in a process of its own, on one thread. A line has the time of a step with the other value over
that with the value in use, above 1 where the other is slower, as the median of the repetitions, for one world
and for each of 128, or of 16 in large scenes; and the largest difference of the numbers of the scene, such as
the coordinates after 50 steps. With --tolerances it does so for all other numerical constants of these
packages, with ten times and a tenth of each value, or with twice and half of it where it counts something: a
tolerance is well chosen where the difference is at the level of rounding and the times are the same.
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
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from benchmarks.constant_scenes import measured

SOURCE = Path(__file__).parents[1] / "src"


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
    Tuning("algebra.factorization", "UNROLLED_MULTIPLICATIONS", ("100", "100_000"), ("pinned_chain", "ant")),
    Tuning("algebra.factorization", "UNROLLED_WITH_ROWS", ("100", "10_000"), ("pinned_chain", "four_bar")),
    Tuning("algebra.dense_ldlt", "AT_ONCE", ("1", "4"), ("humanoid", "ant")),
    Tuning("algebra.woodbury", "FEW", ("1", "4"), ("humanoid", "ant")),
    Tuning("algebra.updated_matrix", "UNROLLED_MULTIPLICATIONS", ("100", "100_000"), ("ant", "humanoid")),
    Tuning("algebra.updated_matrix", "FILL_IN_RATIO", ("1", "100"), ("humanoid", "boxes5")),
    Tuning("algebra.updated_matrix", "UNROLLED_FILL_IN", ("100", "100_000"), ("humanoid", "boxes5")),
)


SCENES_OF_MODULES = {
    "collision.box_box": ("boxes5",),
    "collision.broad_phase": ("boxes25",),
    "collision.convex.contact_optimality": ("meshes", "flat"),
    "collision.convex.direction_cells": ("meshes",),
    "collision.convex.expanding_polytope": ("deep",),
    "collision.convex.face_tables": ("flat",),
    "collision.convex.flat_faces": ("flat",),
    "collision.convex.gjk": ("meshes", "flat"),
    "collision.convex.kinks": ("flat derivatives",),
    "collision.convex.least_overlap": ("deep",),
    "collision.convex.manifold": ("flat",),
    "collision.convex.nearest_points": ("deep", "flat"),
    "collision.convex.polygons": ("flat",),
    "collision.convex.polyhedra": ("meshes",),
    "collision.link_pairs": ("clusters",),
    "collision.sphere_capsule_cylinder": ("capsules",),
    "collision.sweep": ("heap100",),
    "constraint.assembly": ("four_bar assembled",),
    "constraint.contact": ("hard5",),
    "constraint.context": ("hard5", "hard5 single"),
    "constraint.coordinate_projection": ("four_bar", "four_bar single", "four_bar derivatives"),
    "constraint.coulomb_friction": ("coulomb", "coulomb single"),
    "constraint.coupled_rows": ("ant",),
    "constraint.hard": ("four_bar",),
    "constraint.independent_velocities": ("four_bar reduced",),
    "constraint.inverse_weights": ("four_bar",),
    "constraint.nonideal": ("nonideal", "nonideal single"),
    "constraint.softness": ("hard5",),
    "solver.conjugate_gradient": ("gradients",),
    "solver.coordinate_reduction": ("four_bar reduced",),
    "solver.friction_ellipsoid": ("gauss_seidel", "noslip"),
    "solver.hard_contact": ("hard5", "hard5 single"),
    "solver.hard_derivatives": ("hard5 derivatives",),
    "solver.hard_rows": ("hard5",),
    "solver.line_search": ("ant",),
    "solver.multipliers": ("four_bar", "four_bar single"),
    "solver.newton": ("ant", "boxes5", "boxes5 single"),
    "solver.noslip": ("noslip",),
    "solver.primal_cost": ("ant",),
    "solver.projected_gauss_seidel": ("gauss_seidel",),
    "algebra.convex_hull": ("meshes",),
    "algebra.dynamic_ldlt": ("boxes25",),
    "algebra.norms": ("ant",),
    "algebra.rotations": ("four_bar",),
    "algebra.woodbury": ("ant", "boxes5 single"),
}
"""The scenes that depend on the other constants of a module."""
GIVEN = {
    "collision.contact_point.FAR": "stands for infinity",
    "collision.rays.NOTHING": "stands for infinity",
    "constraint.impact.NEVER": "stands for infinity",
    "solver.line_search.UNBOUNDED": "stands for infinity",
    "constraint.coulomb_friction.SMALLEST_LOAD": "the smallest number of single precision",
    "constraint.nonideal.SMALLEST_FORCE": "the smallest number of single precision",
    "constraint.rows.MOST_ROWS_OF_A_BLOCK": "two bits each in a number of single precision",
    "solver.multipliers.FIRST_PASS": "a number of its own",
    "solver.solution.SMALLEST_SCALE": "the smallest number of single precision",
    "algebra.norms.TINY": "MuJoCo's",
    "collision.pairs.SMALLEST_FRICTION": "MuJoCo's",
    "collision.convex.manifold.ALIGNED": "MuJoCo's",
    "collision.convex.manifold.PARALLEL_EDGE": "MuJoCo's",
    "collision.plane.COUNT": "MuJoCo's",
    "collision.sphere_capsule_box.PARALLEL": "defines below which size MuJoCo's bound does not hold",
    "collision.sphere_capsule_box.TIE": "defines below which size MuJoCo's bound does not hold",
    "collision.box_box.PARALLEL_NORMALS": "MuJoCo's",
    "collision.box_box.PREFERENCE": "MuJoCo's",
    "collision.box_box.TIE": "MuJoCo's",
    "collision.box_box.DUPLICATE": "MuJoCo's",
    "constraint.softness.PENETRATION_CORRECTION": "defines how hard contacts close",
    "constraint.softness.CRITICAL_DAMPING": "defines how hard contacts close",
    "constraint.softness.LARGEST_CORRECTION_SPEED": "defines how hard contacts close",
    "constraint.context.SETTLING_STEPS": "defines Baumgarte stabilisation",
    "collision.convex.expanding_polytope.FACE": "a length",
    "collision.convex.kinks.NUMBERS": "a length",
    "collision.pair_groups._POSE_SIZE": "a length",
    "collision.distances._NUMBERS": "a length",
    "collision.shapes.MOST_SIZES": "a length",
    "constraint.contact_groups.LINK_COLUMNS": "a length",
    "constraint.row_arrays.WRENCH": "a length",
    "collision.pairs.MOST_PRISMS": "a limit of memory, named in an error",
    "collision.pairs.MOST_CANDIDATES": "a limit of memory, named in an error",
    "constraint.coupled_rows.MOST_ROWS": "a limit of memory",
    "constraint.assembly.SHOWN_COORDINATES": "of a message",
    "constraint.assembly.NEAR_ROUNDING": "of a message",
    "constraint.assembly.ROUNDING": "the rounding of positions, a few epsilon",
    "constraint.softness_report.BISECTIONS": "ends at neighbouring numbers",
    "algebra.inertia.TRIANGLE_TOLERANCE": "of descriptions that are refused",
    "algebra.inertia.SYMMETRY_TOLERANCE": "of descriptions that are refused",
    "algebra.inertia.LEAST_MOMENT": "of descriptions that are refused",
}
"""Numbers that no measurement chooses, with the reason."""

PACKAGES = ("collision", "constraint", "solver", "algebra")
NUMBER = r"-?\d[\d_]*(?:\.\d*)?(?:e-?\d+)?"
ABOVE_ONE = re.compile(rf"(?:1 \+ )?{NUMBER}")  # `1 + 1e-9`, too
CONSTANT = re.compile(
    rf"^(_?[A-Z][A-Z_]*) = (\(?{ABOVE_ONE.pattern}(?:, {ABOVE_ONE.pattern})*\)?)\s*(?:#.*)?$", re.MULTILINE
)


def constants() -> Iterator[tuple[str, str, str]]:
    """Module, name and value of all numerical constants of the packages."""
    for package in PACKAGES:
        for file in sorted((SOURCE / "zwang" / package).rglob("*.py")):
            module = ".".join(file.relative_to(SOURCE / "zwang").with_suffix("").parts)
            for name, value in CONSTANT.findall(file.read_text()):
                yield module, name, value


def tolerances() -> list[Tuning]:
    """All constants that are not in `TUNINGS`, nor given, with other values and scenes. Raises KeyError for a
    module without scenes.
    """
    known = {f"{tuning.module}.{tuning.name}" for tuning in TUNINGS} | GIVEN.keys()
    return [
        Tuning(module, name, (scaled(value, 0.1), scaled(value, 10)), SCENES_OF_MODULES[module])
        for module, name, value in constants()
        if f"{module}.{name}" not in known
    ]


def scaled(value: str, factor: float) -> str:
    """A constant times a factor of ten, or numbers that count something by a factor of two."""

    def number(found: re.Match[str]) -> str:
        text = found[0].removeprefix("1 + ")
        if re.fullmatch(r"-?[\d_]+", text):
            return str(max(1, round(int(text) * (2 if factor > 1 else 0.5))))
        x, one = Decimal(text), "1 + " if text != found[0] else ""
        if 1 < x < 1.1:  # an allowance
            return str(1 + (x - 1) * Decimal(str(factor)))
        return one + f"{float(x * Decimal(str(factor))):g}"

    return ABOVE_ONE.sub(number, value)


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
    parser.add_argument("--tolerances", action="store_true", help="all other constants")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--scene", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scene:
        measured(options.scene)
        return
    print("| constant | value | other | scene | one world | many | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for tuning in tolerances() if options.tolerances else TUNINGS:
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
