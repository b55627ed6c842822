"""What is recorded beside the state: efforts, energies, positions of frames, forces; a function of the state, on any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.instant import instant_of
from zwang.gauss.applied import spring_energy
from zwang.gauss.energy import kinetic_energy, potential_energy
from zwang.kinematics.poses import link_poses, place_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.simulate.constraints import restraint_of, solved
from zwang.simulate.forces import acting, pushes
from zwang.simulate.rollout import Motion
from zwang.simulate.settings import Wanted
from zwang.simulate.start import Start
from zwang.simulate.step import applied_efforts

KEYS = ("tau", "energies", "positions", "constraints", "forces")


def observation(
    mechanism: Mechanism, wanted: Wanted, t: Any, q: Any, v: Any, z: Any, u: Any
) -> dict[str, np.ndarray]:
    """What `KEYS` name, at one time, state and control.

    tau (nv,); energies (2,): kinetic and potential [J]; positions (3 * frames,) [m]; constraints (nv,) or (0,); forces (6 * n,) or (0,):
    position [m] and force [N] of each of `acting(mechanism)`.
    """
    tree = mechanism.tree
    potential = potential_energy(tree, q) + spring_energy(mechanism, q)
    poses = link_poses(tree, q) if wanted.frames else []
    tau = applied_efforts(mechanism, q, v, z, u)
    efforts, forces = _restraining(mechanism, wanted, t, q, v, tau)
    found = (
        tau,
        [kinetic_energy(tree, q, v), potential],
        [x for frame in wanted.frames for x in place_pose(poses, tree.place(frame)).p],
        efforts,
        forces,
    )
    return {key: np.array(values) for key, values in zip(KEYS, found, strict=True)}


def _restraining(mechanism: Mechanism, wanted: Wanted, t: Any, q: Any, v: Any, tau: Any) -> tuple[Any, Any]:
    """The efforts of constraints, and the forces with a point, as far as they are wanted."""
    if not (wanted.constraints or wanted.forces):
        return [], []
    restraint = restraint_of(mechanism, wanted.h, wanted.drift)
    if restraint is None:
        return [0] * mechanism.nv if wanted.constraints else [], [0] * (6 * len(acting(mechanism)))
    found = solved(restraint, q, v, tau, t)
    forces: list[Any] = []
    if wanted.forces:
        instant = instant_of(mechanism, q, v, known=restraint.weights, timestep=restraint.h)
        for push in pushes(instant, found.rows, found.solution.force):
            forces += [*push.position, *push.force]
    return found.efforts if wanted.constraints else [], forces


def observed_in_python(
    mechanism: Mechanism, begin: Start, wanted: Wanted, motion: Motion
) -> dict[str, np.ndarray]:
    """`observation` of every sample of every world, (worlds, samples, n)."""
    worlds = []
    for w in range(begin.worlds):
        row = {name: float(x[w]) for name, x in begin.params.items()}
        one = mechanism.subs(row) if row else mechanism
        times = motion.clock[w, :, 0] * wanted.h
        states = zip(times, motion.q[w], motion.v[w], motion.z[w], motion.u[w], strict=True)
        worlds.append([observation(one, wanted, *state) for state in states])
    return {key: np.array([[x[key] for x in world] for world in worlds], dtype=float) for key in KEYS}
