"""Models of other packages, written as URDF and MJCF and read again: differences, and who reads the files.

    python -W ignore -m benchmarks.written_files

Needs `pip install '.[test]'`; dm_control and yourdfpy are left out where they are not installed. Each model
is compared with what zwang reads from its file: mass matrix, bias and passive forces, poses and actuator
forces at a random state, relative to the largest entry if that exceeds 1. MuJoCo, Pinocchio (URDF) and
yourdfpy (URDF) must read the file without an error.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium
import mujoco
import numpy as np

import zwang as zw
from tests.io.round_trip import loaded, orders
from tests.io.test_urdf import real_robots
from tests.mechanisms import random_state
from zwang.dynamics.generalised_forces import controlled_forces, passive_forces
from zwang.io.urdf.read_urdf import read_urdf
from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activations


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, relative to the largest entry if that exceeds 1."""
    return float(np.abs(a - b).max(initial=0) / max(1.0, np.abs(a).max(initial=0)))


def difference(old: Mechanism, new: Mechanism) -> float:
    """The largest relative difference of the dynamics of two descriptions at a random state."""
    iq, iv = orders(old, new)
    q, v, _, _ = random_state(old, 0)
    rng = np.random.default_rng(0)
    control = dict(zip(old.inputs, rng.normal(size=len(old.inputs)), strict=True))
    activation = dict(zip(activations(old), rng.normal(size=len(activations(old))), strict=True))
    pairs = [(passive_forces(old, q, v)[iv], passive_forces(new, q[iq], v[iv]))]
    if old.nv:
        pairs += [
            (zw.mass_matrix(old, q)[np.ix_(iv, iv)], zw.mass_matrix(new, q[iq])),
            (zw.bias_forces(old, q, v)[iv], zw.bias_forces(new, q[iq], v[iv])),
        ]
    if set(old.inputs) == set(new.inputs):
        forces = [controlled_forces(m, *x, control, activation)
                  for m, x in ((old, (q, v)), (new, (q[iq], v[iv])))]  # fmt: skip
        pairs.append((np.asarray(forces[0], float)[iv], np.asarray(forces[1], float)))
    ours, theirs = link_poses(old.tree, q), link_poses(new.tree, q[iq])
    for name, placement in old.tree.placements.items():
        if name in new.tree.placements:
            poses = placement_pose(ours, placement), placement_pose(theirs, new.tree.placements[name])
            pairs.append((np.column_stack(poses[0]), np.column_stack(poses[1])))
    return max(relative(np.asarray(a, float), np.asarray(b, float)) for a, b in pairs)


def urdf_readers() -> dict[str, Callable[[str], object]]:
    """Functions that read a URDF, by the program's name."""
    import pinocchio  # noqa: PLC0415

    found = {"MuJoCo": mujoco.MjModel.from_xml_path, "Pinocchio": pinocchio.buildModelFromUrdf}
    if importlib.util.find_spec("yourdfpy"):
        import yourdfpy  # noqa: PLC0415

        found["yourdfpy"] = lambda path: yourdfpy.URDF.load(path, load_meshes=False)
    return found


def models(package: str) -> Iterator[Mechanism]:
    """The mechanisms of the files of a package that zwang reads."""
    if package == "example-robot-data":
        for path in real_robots():
            with contextlib.suppress(zw.errors.LoadError):  # a file without a single link
                yield read_urdf(path, strict=False, meshes=False)
        return
    if package == "Gymnasium":
        folder = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    else:
        folder = Path(str(importlib.util.find_spec("dm_control").origin)).parent
    for path in sorted(folder.rglob("*.xml")):
        try:
            mujoco.MjModel.from_xml_path(str(path))
        except ValueError:  # a part of a model
            continue
        with contextlib.suppress(zw.errors.LoadError):
            yield loaded(path, strict=False, asset_dirs=[folder / "suite"] if package == "dm_control" else [])


def line(package: str, ending: str) -> str:
    """The row of a package in the table."""
    readers = urdf_readers() if ending == "urdf" else {"MuJoCo": mujoco.MjModel.from_xml_path}
    read, count, worst, seconds, incomplete = dict.fromkeys(readers, 0), 0, 0.0, 0.0, 0
    write = zw.write_urdf if ending == "urdf" else zw.write_mjcf
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / f"model.{ending}"
        for m in models(package):
            began = time.process_time()
            report = write(m, file, strict=False)
            seconds += time.process_time() - began
            count += 1
            if report.of_kind("unsupported"):
                incomplete += 1
            if ending == "xml" or not any(j.joint.armature for j in m.joints if j.joint.nv == 1):
                worst = max(worst, difference(m, loaded(file)))
            for reader, call in readers.items():
                with contextlib.suppress(ValueError), open(os.devnull, "w") as quiet:
                    with contextlib.redirect_stdout(quiet):
                        call(str(file))
                    read[reader] += 1
    by = ", ".join(f"{reader} {number}" for reader, number in read.items())
    kind = {"urdf": "URDF", "xml": "MJCF"}[ending]
    return (
        f"| {package} | {kind} | {count} | {worst:.1e} | {by} | {incomplete} | {1e3 * seconds / count:.0f} |"
    )


def main() -> None:
    print("| models of | written as | files | largest difference | read by | incomplete | ms a file |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print(line("example-robot-data", "urdf"), flush=True)
    packages = ["example-robot-data", "Gymnasium"]
    packages += ["dm_control"] * (importlib.util.find_spec("dm_control") is not None)
    for package in packages:
        print(line(package, "xml"), flush=True)


if __name__ == "__main__":
    main()
