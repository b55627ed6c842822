"""Steps of many worlds by MuJoCo Warp, the peer of `benchmarks.gpu`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp


def by_warp(file: Path, start: Mapping[str, Any], count: int) -> tuple[Callable[[], None], np.ndarray]:
    """A function that steps all worlds once from the start, and the positions after it.

    start: the arrays q, v and control (worlds, size), which are repeated for `count` worlds.
    """
    model = mujoco.MjModel.from_xml_path(str(file))
    if model.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
        model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON  # Warp has no projected Gauss-Seidel method
    contacts = max(_most_contacts(model, start["q"][:512]), 8)
    rows = 8 * contacts + 2 * model.njnt
    m = mjw.put_model(model)
    d = mjw.put_data(model, mujoco.MjData(model), nworld=count, nconmax=2 * contacts, njmax=rows)
    given = {"qpos": start["q"], "qvel": start["v"], "ctrl": start["control"]}
    given["qacc_warmstart"] = np.zeros_like(start["v"])
    values = {
        name: wp.array(np.tile(x, (-(-count // len(x)), 1))[:count], dtype=wp.float32)
        for name, x in given.items()
    }

    def reset() -> None:
        for name, value in values.items():
            wp.copy(getattr(d, name), value)

    reset()
    mjw.step(m, d)
    after = d.qpos.numpy()[: len(start["q"])].copy()
    with wp.ScopedCapture() as capture:
        mjw.step(m, d)

    def run() -> None:
        reset()
        wp.capture_launch(capture.graph)
        wp.synchronize()

    return run, after


def _most_contacts(model: Any, positions: np.ndarray) -> int:
    """The largest number of contacts in these positions."""
    data, most = mujoco.MjData(model), 0
    for q in positions:
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        most = max(most, data.ncon)
    return most
