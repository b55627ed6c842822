"""What is recorded beside the state: efforts, energies, positions of frames, forces, the Zwang, gaps; a function of the state, on any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.api.initial_conditions import InitialState
from zwang.api.settings_validation import RecordedQuantities
from zwang.constraint.context import row_context
from zwang.dynamics.energy import kinetic_energy, kinetic_energy_by_body, potential_energy, zwang_by_body
from zwang.dynamics.generalised_forces import spring_energy
from zwang.errors import SolveError
from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.constrained import ConstrainedSolution, gauss_problem
from zwang.simulation.constraint_forces import point_force_labels, point_forces
from zwang.simulation.constraint_residuals import residuals_at
from zwang.simulation.constraint_stage import constraint_model_of, solved
from zwang.simulation.rollout import Trajectory
from zwang.simulation.step import applied_forces

KEYS = ("tau", "energies", "positions", "constraints", "forces", "zwang", "held", "gaps")


def state_quantities(
    mechanism: Mechanism, wanted: RecordedQuantities, t: Any, q: Any, v: Any, z: Any, u: Any
) -> dict[str, np.ndarray]:
    """What `KEYS` name, at one time, state and control; what is not wanted is empty.

    tau (nv,); energies (2,): kinetic and potential [J]; positions (3 * frames,) [m]; constraints (nv,); forces (6 * n,): position [m]
    and force [N] of each of `acting(mechanism)`; zwang and held: the parts of Z [W/s] of `zwang_by_body`, and of the deviation from the
    motion without constraints; gaps: see `residuals_at`.
    """
    tree = mechanism.tree
    potential = potential_energy(tree, q) + spring_energy(mechanism, q)
    poses = link_poses(tree, q) if wanted.frames else []
    tau = applied_forces(mechanism, q, v, z, u)
    found = {
        "tau": tau,
        "energies": [kinetic_energy(tree, q, v), potential],
        "positions": [x for frame in wanted.frames for x in placement_pose(poses, tree.placement(frame)).p],
        **_restraining(mechanism, wanted, t, q, v, tau),
        "gaps": residuals_at(mechanism, q, v, t) if wanted.gaps else [],
    }
    return {key: np.array(found[key]) for key in KEYS}


def _restraining(mechanism: Mechanism, wanted: RecordedQuantities, t: Any, q: Any, v: Any, tau: Any) -> dict[str, Any]:
    """The efforts of constraints, the forces with a point, and the Zwang, as far as they are wanted."""
    found: dict[str, Any] = {"constraints": [], "forces": [], "zwang": [], "held": []}
    if not (wanted.constraints or wanted.forces or wanted.zwang):
        return found
    constraint_model = constraint_model_of(mechanism, wanted.h, wanted.stabilization)
    try:
        solution = solved(constraint_model, q, v, tau, t) if constraint_model is not None else None
    except SolveError:  # on floats, in the state in which a world stopped
        return _unknown(mechanism, wanted, q, v, tau)
    if wanted.constraints:
        found["constraints"] = solution.efforts if solution is not None else [0] * mechanism.nv
    if wanted.forces:
        found["forces"] = [0] * (6 * len(point_force_labels(mechanism)))
    if wanted.forces and constraint_model is not None and solution is not None:
        instant = row_context(mechanism, q, v, inverse_weights=constraint_model.weights, timestep=constraint_model.h)
        points = point_forces(instant, solution.rows, solution.solution)
        found["forces"] = [x for push in points for x in (*push.position, *push.force)]
    if wanted.zwang:
        found["zwang"], found["held"] = _zwang(mechanism, solution, q, v, tau)
    return found


def _unknown(mechanism: Mechanism, wanted: RecordedQuantities, q: Any, v: Any, tau: Any) -> dict[str, Any]:
    """What no solution tells: nan, as far as it is wanted."""
    zwang, held = _zwang(mechanism, None, q, v, tau) if wanted.zwang else ([], [])
    sizes = {
        "constraints": mechanism.nv if wanted.constraints else 0,
        "forces": 6 * len(point_force_labels(mechanism)) if wanted.forces else 0,
        "zwang": len(zwang),
        "held": len(held),
    }
    return {key: np.full(size, np.nan) for key, size in sizes.items()}


def _zwang(
    mechanism: Mechanism, solution: ConstrainedSolution | None, q: Any, v: Any, tau: Any
) -> tuple[list[Any], list[Any]]:
    """The parts of Z of `zwang_by_body`, and of the deviation from the motion without constraints, of `kinetic_energy_by_body`."""
    tree = mechanism.tree
    problem = solution.problem if solution is not None else gauss_problem(mechanism, q, v, tau)
    a = solution.solution.acceleration if solution is not None else problem.a_free
    deviation = a - problem.a_free if solution is not None else np.zeros(mechanism.nv, int)
    parts = zwang_by_body(tree, q, v, tau, a), kinetic_energy_by_body(tree, q, deviation)
    return list(parts[0].values()), list(parts[1].values())


def state_quantities_in_python(
    mechanism: Mechanism, begin: InitialState, wanted: RecordedQuantities, motion: Trajectory
) -> dict[str, np.ndarray]:
    """`observation` of every sample of every world, (worlds, samples, n)."""
    worlds = []
    for w in range(begin.worlds):
        row = {name: float(x[w]) for name, x in begin.params.items()}
        one = mechanism.subs(row) if row else mechanism
        times = motion.clock[w, :, 0] * wanted.h
        states = zip(times, motion.q[w], motion.v[w], motion.z[w], motion.u[w], strict=True)
        worlds.append([state_quantities(one, wanted, *state) for state in states])
    return {key: np.array([[x[key] for x in world] for world in worlds], dtype=float) for key in KEYS}
