"""What is recorded beside the state: efforts, energies, positions of frames, forces, the Zwang, gaps; a function of the state, on any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.instant import instant_of
from zwang.errors import SolveError
from zwang.gauss.applied import spring_energy
from zwang.gauss.energy import kinetic_energy, kinetic_energy_by_body, potential_energy, zwang_by_body
from zwang.kinematics.poses import link_poses, place_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.simulate.constrained import Constrained, gauss_problem
from zwang.simulate.constraints import restraint_of, solved
from zwang.simulate.forces import acting, pushes
from zwang.simulate.gaps import gaps_at
from zwang.simulate.rollout import Motion
from zwang.simulate.settings import Wanted
from zwang.simulate.start import Start
from zwang.simulate.step import applied_efforts

KEYS = ("tau", "energies", "positions", "constraints", "forces", "zwang", "held", "gaps")


def observation(
    mechanism: Mechanism, wanted: Wanted, t: Any, q: Any, v: Any, z: Any, u: Any
) -> dict[str, np.ndarray]:
    """What `KEYS` name, at one time, state and control; what is not wanted is empty.

    tau (nv,); energies (2,): kinetic and potential [J]; positions (3 * frames,) [m]; constraints (nv,); forces (6 * n,): position [m]
    and force [N] of each of `acting(mechanism)`; zwang and held: the parts of Z [W/s] of `zwang_by_body`, and of the deviation from the
    motion without constraints; gaps: see `gaps_at`.
    """
    tree = mechanism.tree
    potential = potential_energy(tree, q) + spring_energy(mechanism, q)
    poses = link_poses(tree, q) if wanted.frames else []
    tau = applied_efforts(mechanism, q, v, z, u)
    found = {
        "tau": tau,
        "energies": [kinetic_energy(tree, q, v), potential],
        "positions": [x for frame in wanted.frames for x in place_pose(poses, tree.place(frame)).p],
        **_restraining(mechanism, wanted, t, q, v, tau),
        "gaps": gaps_at(mechanism, q, v, t) if wanted.gaps else [],
    }
    return {key: np.array(found[key]) for key in KEYS}


def _restraining(mechanism: Mechanism, wanted: Wanted, t: Any, q: Any, v: Any, tau: Any) -> dict[str, Any]:
    """The efforts of constraints, the forces with a point, and the Zwang, as far as they are wanted."""
    found: dict[str, Any] = {"constraints": [], "forces": [], "zwang": [], "held": []}
    if not (wanted.constraints or wanted.forces or wanted.zwang):
        return found
    restraint = restraint_of(mechanism, wanted.h, wanted.drift)
    try:
        solution = solved(restraint, q, v, tau, t) if restraint is not None else None
    except SolveError:  # on floats, in the state in which a world stopped
        return _unknown(mechanism, wanted, q, v, tau)
    if wanted.constraints:
        found["constraints"] = solution.efforts if solution is not None else [0] * mechanism.nv
    if wanted.forces:
        found["forces"] = [0] * (6 * len(acting(mechanism)))
    if wanted.forces and restraint is not None and solution is not None:
        instant = instant_of(mechanism, q, v, known=restraint.weights, timestep=restraint.h)
        points = pushes(instant, solution.rows, solution.solution)
        found["forces"] = [x for push in points for x in (*push.position, *push.force)]
    if wanted.zwang:
        found["zwang"], found["held"] = _zwang(mechanism, solution, q, v, tau)
    return found


def _unknown(mechanism: Mechanism, wanted: Wanted, q: Any, v: Any, tau: Any) -> dict[str, Any]:
    """What no solution tells: nan, as far as it is wanted."""
    zwang, held = _zwang(mechanism, None, q, v, tau) if wanted.zwang else ([], [])
    sizes = {
        "constraints": mechanism.nv if wanted.constraints else 0,
        "forces": 6 * len(acting(mechanism)) if wanted.forces else 0,
        "zwang": len(zwang),
        "held": len(held),
    }
    return {key: np.full(size, np.nan) for key, size in sizes.items()}


def _zwang(
    mechanism: Mechanism, solution: Constrained | None, q: Any, v: Any, tau: Any
) -> tuple[list[Any], list[Any]]:
    """The parts of Z of `zwang_by_body`, and of the deviation from the motion without constraints, of `kinetic_energy_by_body`."""
    tree = mechanism.tree
    problem = solution.problem if solution is not None else gauss_problem(mechanism, q, v, tau)
    a = solution.solution.acceleration if solution is not None else problem.a_free
    deviation = a - problem.a_free if solution is not None else np.zeros(mechanism.nv, int)
    parts = zwang_by_body(tree, q, v, tau, a), kinetic_energy_by_body(tree, q, deviation)
    return list(parts[0].values()), list(parts[1].values())


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
