"""What is recorded beside the state: efforts, energies, positions of frames; a function of the state, on any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.gauss.applied import spring_energy
from zwang.gauss.energy import kinetic_energy, potential_energy
from zwang.kinematics.poses import link_poses, place_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.simulate.rollout import Motion
from zwang.simulate.start import Start
from zwang.simulate.step import applied_efforts


def observation(
    mechanism: Mechanism, frames: tuple[str, ...], q: Any, v: Any, z: Any, u: Any
) -> dict[str, np.ndarray]:
    """tau (nv,), energies (2,): kinetic and potential [J], and positions (3 * frames,) [m] at one state and control."""
    tree = mechanism.tree
    potential = potential_energy(tree, q) + spring_energy(mechanism, q)
    poses = link_poses(tree, q) if frames else []
    positions = [x for frame in frames for x in place_pose(poses, tree.place(frame)).p]
    return {
        "tau": applied_efforts(mechanism, q, v, z, u),
        "energies": np.array([kinetic_energy(tree, q, v), potential]),
        "positions": np.array(positions),
    }


def observed_in_python(
    mechanism: Mechanism, begin: Start, frames: tuple[str, ...], motion: Motion
) -> dict[str, np.ndarray]:
    """`observation` of every sample of every world, (worlds, samples, n)."""
    worlds = []
    for w in range(begin.worlds):
        row = {name: float(x[w]) for name, x in begin.params.items()}
        one = mechanism.subs(row) if row else mechanism
        states = zip(motion.q[w], motion.v[w], motion.z[w], motion.u[w], strict=True)
        worlds.append([observation(one, frames, *state) for state in states])
    return {name: np.array([[x[name] for x in world] for world in worlds], dtype=float)
            for name in worlds[0][0]}  # fmt: skip
