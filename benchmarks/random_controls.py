"""Robots that move at random: the time of a step against MuJoCo's, in worlds of which no two are alike.

Every tenth of a second each world gets controls drawn uniformly from their ranges. MuJoCo steps a few worlds
with the same controls, one after the other.

    python benchmarks/random_controls.py FILE.xml ... [--worlds 1 64] [--duration 2]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np

import zwang as zw

HELD = 0.1  # [s] for which controls are kept
PEERS = 4  # worlds of MuJoCo at most


def processor_time(work: Callable[[], None]) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def line(file: str, count: int, duration: float) -> str:
    """A row of the table: microseconds of a step and world."""
    model = mujoco.MjModel.from_xml_path(file)
    peers = [mujoco.MjData(model) for _ in range(min(count, PEERS))]
    limited = model.actuator_ctrllimited[:, None] > 0
    low, high = np.where(limited, model.actuator_ctrlrange, [-1.0, 1.0]).T
    worlds = zw.Worlds(zw.load(file), count, step=model.opt.timestep, threads=1)
    substeps = max(1, round(HELD / model.opt.timestep))
    rng, own, other, contacts = np.random.default_rng(0), 0.0, 0.0, 0
    for _ in range(round(duration / HELD)):
        controls = rng.uniform(low, high, (count, model.nu))

        def with_mujoco(controls: np.ndarray = controls) -> None:
            for data, control in zip(peers, controls, strict=False):
                data.ctrl[:] = control
                mujoco.mj_step(model, data, substeps)

        own += processor_time(lambda c=controls: worlds.step(c if model.nu else None, substeps=substeps))
        other += processor_time(with_mujoco)
        contacts += sum(data.ncon for data in peers)
    steps = round(duration / HELD) * substeps
    own, other = own / steps / count * 1e6, other / steps / len(peers) * 1e6
    mean = contacts / len(peers) / round(duration / HELD)
    failed = int((worlds.status != 0).sum())
    name = "/".join(Path(file).parts[-2:])
    return f"| {name} | {count} | {mean:.1f} | {own:.1f} | {other:.1f} | {other / own:.2f} | {failed} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--worlds", nargs="+", type=int, default=[1, 64])
    parser.add_argument("--duration", type=float, default=2.0)
    options = parser.parse_args()
    print("| file | worlds | contacts | zwang, us | MuJoCo, us | ratio | failed |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for file in options.files:
        for count in options.worlds:
            print(line(file, count, options.duration), flush=True)


if __name__ == "__main__":
    main()
