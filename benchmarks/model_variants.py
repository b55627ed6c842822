"""Random variants of models that other people made, compared with MuJoCo.

    python -m benchmarks.model_variants [--count 300] [--first 0] [--results FILE] [--seconds 60]
                                        [--memory 12] NAME=FOLDER|PACKAGE ...

Each variant is one of the files that both programs load, drawn at random, whose options, gains, sizes,
masses, ranges, and parameters of friction, contact, joints, tendons and equalities are changed at random
through MuJoCo's MjSpec. Accelerations and sensors are compared in several states, as for `docs/models.md`. A
variant is determined by its number. Results are written to a file of JSON lines; the variants that do not
agree are printed, then the counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import zwang as zw
from benchmarks.model_table import AGREES, Row
from benchmarks.models import PROCESSES, ROOT, files_of, folder_of, measured
from zwang.errors import ZwangError

RESULTS = ROOT / "build" / "variants.jsonl"
CHANGES = 5  # kinds of change in a variant
LARGEST = 400_000  # bytes of a file that is drawn
DRAWS = 100  # files that are tried for a variant
Random = np.random.Generator
INTEGRATORS = ("EULER", "IMPLICITFAST", "RK4")
FLAGS = (
    "FRICTIONLOSS", "LIMIT", "GRAVITY", "EULERDAMP", "REFSAFE", "FILTERPARENT", "SPRING", "DAMPER",
    "ACTUATION",
)  # fmt: skip
PRIMITIVES = ("SPHERE", "CAPSULE", "CYLINDER", "ELLIPSOID", "BOX")


def factor(rng: Random, largest: float = 2.0) -> float:
    """A random factor between 1 / largest and largest."""
    return float(np.exp(rng.uniform(-1, 1) * np.log(largest)))


def some(rng: Random, elements: Any) -> list[Any]:
    """About a third of the elements, at least one if there is one."""
    elements = list(elements)
    if not elements:
        return []
    chosen = rng.uniform(size=len(elements)) < 1 / 3
    chosen[rng.integers(len(elements))] = True
    return [x for x, is_chosen in zip(elements, chosen, strict=True) if is_chosen]


def softness(rng: Random) -> tuple[list[float], list[float]]:
    """A random solref and solimp."""
    direct = [-(10 ** rng.uniform(2, 4)), -(10 ** rng.uniform(0.5, 2.5))]
    solref = direct if rng.uniform() < 0.3 else [10 ** rng.uniform(-2, -0.7), rng.uniform(0.5, 1.5)]
    low = rng.uniform(0.3, 0.9)
    solimp = [
        low,
        rng.uniform(low, 0.99),
        10 ** rng.uniform(-4, -1),
        rng.uniform(0.2, 0.8),
        rng.integers(1, 4),
    ]
    return [float(x) for x in solref], [float(x) for x in solimp]


def change_options(spec: Any, rng: Random) -> None:
    option = spec.option
    option.timestep *= factor(rng)
    option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{rng.choice(INTEGRATORS)}")
    option.cone = rng.choice([mujoco.mjtCone.mjCONE_PYRAMIDAL, mujoco.mjtCone.mjCONE_ELLIPTIC])
    option.impratio = factor(rng, 10)
    option.gravity = np.array(option.gravity) * factor(rng) + rng.normal(size=3)


def change_flags(spec: Any, rng: Random) -> None:
    for name in rng.choice(FLAGS, 2, replace=False):
        spec.option.disableflags ^= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))


def change_medium(spec: Any, rng: Random) -> None:
    spec.option.density, spec.option.viscosity = rng.uniform(0, 1000), rng.uniform(0, 0.1)
    spec.option.wind = rng.normal(size=3)


def change_friction(spec: Any, rng: Random) -> None:
    for geom in some(rng, spec.geoms):
        geom.friction = np.array(geom.friction) * [factor(rng), factor(rng, 5), factor(rng, 5)]
        geom.condim = rng.choice([1, 3, 4, 6])


def change_contact(spec: Any, rng: Random) -> None:
    for geom in some(rng, spec.geoms):
        geom.solref, geom.solimp = softness(rng)
        geom.margin, geom.gap = rng.uniform(0, 0.02), rng.uniform(0, 0.01)
        geom.solmix, geom.priority = rng.uniform(0.1, 2), rng.integers(0, 2)


def change_sizes(spec: Any, rng: Random) -> None:
    kinds = [getattr(mujoco.mjtGeom, f"mjGEOM_{name}") for name in PRIMITIVES]
    for geom in some(rng, [g for g in spec.geoms if g.type in kinds]):
        geom.size = np.array(geom.size) * factor(rng, 1.3)
        geom.density *= factor(rng)


def change_masses(spec: Any, rng: Random) -> None:
    for body in some(rng, spec.bodies[1:]):
        if body.explicitinertial:
            scale = factor(rng)
            body.mass *= scale
            body.inertia, body.fullinertia = (
                np.array(body.inertia) * scale,
                np.array(body.fullinertia) * scale,
            )
        body.gravcomp = rng.choice([0.0, rng.uniform(0, 1)])


def change_joints(spec: Any, rng: Random) -> None:
    for joint in some(rng, [j for j in spec.joints if j.type != mujoco.mjtJoint.mjJNT_FREE]):
        joint.armature = rng.uniform(0, 0.1)
        joint.frictionloss = rng.uniform(0, 0.5)
        for name in ("stiffness", "damping"):
            values = np.array(getattr(joint, name), float)
            values.flat[0] = rng.uniform(0, 2)
            setattr(joint, name, values if values.ndim else float(values))
        joint.springref = rng.uniform(-0.3, 0.3)


def change_ranges(spec: Any, rng: Random) -> None:
    for joint in some(rng, [j for j in spec.joints if j.range[0] < j.range[1]]):
        middle, half = (joint.range[0] + joint.range[1]) / 2, (joint.range[1] - joint.range[0]) / 2
        half *= factor(rng)
        joint.range = [0.0 if joint.type == mujoco.mjtJoint.mjJNT_BALL else middle - half, middle + half]
        joint.solref_limit, joint.solimp_limit = softness(rng)
        joint.margin = rng.uniform(0, 0.1)


def change_gains(spec: Any, rng: Random) -> None:
    for actuator in some(rng, spec.actuators):
        scale = factor(rng)
        actuator.gainprm, actuator.biasprm = (
            np.array(actuator.gainprm) * scale,
            np.array(actuator.biasprm) * scale,
        )
        actuator.gear = np.array(actuator.gear) * factor(rng)
        if rng.uniform() < 0.5:
            largest = 10 ** rng.uniform(-1, 2)
            actuator.forcerange, actuator.forcelimited = [-largest, largest], 1


def change_tendons(spec: Any, rng: Random) -> None:
    for tendon in some(rng, spec.tendons):
        tendon.frictionloss = rng.uniform(0, 0.5)
        for name in ("stiffness", "damping"):
            values = np.array(getattr(tendon, name), float)
            values.flat[0] = rng.uniform(0, 2)
            setattr(tendon, name, values if values.ndim else float(values))
        tendon.solref_limit, tendon.solimp_limit = softness(rng)


def change_equalities(spec: Any, rng: Random) -> None:
    for equality in some(rng, spec.equalities):
        equality.solref, equality.solimp = softness(rng)
        equality.active = rng.integers(0, 2)


KINDS: tuple[Callable[[Any, Random], None], ...] = (
    change_options, change_flags, change_medium, change_friction, change_contact, change_sizes, change_masses,
    change_joints, change_ranges, change_gains, change_tendons, change_equalities,
)  # fmt: skip


def write_variant(path: Path, number: int, to: Path) -> list[str]:
    """Write the variant of this number as a file; the names of what was changed. Raises ValueError if MuJoCo
    cannot compile it.
    """
    rng = np.random.default_rng([number, 1])
    spec = mujoco.MjSpec.from_file(str(path))
    for name in ("meshdir", "texturedir"):
        setattr(spec, name, str((path.parent / getattr(spec, name)).resolve()))
    kinds = [KINDS[k] for k in rng.choice(len(KINDS), CHANGES, replace=False)]
    for change in kinds:
        change(spec, rng)
    spec.compile()
    to.write_text(spec.to_xml())
    mujoco.MjModel.from_xml_path(str(to))
    return [change.__name__.removeprefix("change_") for change in kinds]


def original_loads(path: str, folder: str) -> None:
    """End this process with 0 if both programs load the file."""
    try:
        zw.load(path, asset_dirs=[folder])
        mujoco.MjModel.from_xml_path(path)
    except (ZwangError, ValueError):
        sys.exit(1)


def loads(path: Path, folder: Path) -> bool:
    """Whether both programs load the file, in a process of its own."""
    process = PROCESSES.Process(target=original_loads, args=(str(path), str(folder)))
    process.start()
    process.join(60)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode == 0


def variant(number: int, files: list[tuple[str, Path, Path]], limits: tuple[float, float]) -> dict[str, Any]:
    """The result of the variant of this number."""
    rng = np.random.default_rng([number, 0])
    with tempfile.TemporaryDirectory() as scratch:
        to = Path(scratch) / "variant.xml"
        for _ in range(DRAWS):
            source, folder, path = files[rng.integers(len(files))]
            try:
                changes = write_variant(path, number, to)
            except (ValueError, mujoco.FatalError):
                continue
            if loads(path, folder):
                break
        else:
            raise SystemExit(f"none of {DRAWS} files could be changed and loaded")
        stages = measured("floats", to, folder, *limits)
    file = path.relative_to(folder).as_posix()
    return {"source": source, "file": file, "number": number, "changes": changes, "floats": stages}


def outcome(result: dict[str, Any]) -> str:
    """In a word."""
    row = Row(result)
    if not row.is_strict:
        return "refused"
    if row.qacc is None:
        return "not compared"
    return "agrees" if row.agrees else "differs"


def main() -> None:
    """Measure the variants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="NAME=SOURCE")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--memory", type=float, default=12, help="GB of address space")
    given = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "ZWANG_CACHE": "off"}  # of the processes
    PROCESSES.set_forkserver_preload(["benchmarks.model_comparison"])
    given.results.parent.mkdir(parents=True, exist_ok=True)
    files = []
    for argument in given.sources:
        name, _, source = argument.rpartition("=")
        folder = folder_of(source)
        small = [path for path in files_of(folder) if path.stat().st_size < LARGEST]
        files += [(name or folder.name, folder, path) for path in small]
    if not files:
        raise SystemExit("the sources have no MJCF files")
    counts: Counter[str] = Counter()
    for number in range(given.first, given.first + given.count):
        result = variant(number, files, (given.seconds, given.memory))
        with given.results.open("a") as file:
            file.write(json.dumps(result) + "\n")
        kind, row = outcome(result), Row(result)
        counts[kind] += 1
        if kind != "agrees":
            told = row.reason if kind == "refused" else row.ending if kind == "not compared" else row.qacc
            print(number, kind, result["source"], result["file"], *result["changes"], told, flush=True)
    print(f"{dict(counts)}; agreement is a difference of at most {AGREES:g}")


if __name__ == "__main__":
    main()
