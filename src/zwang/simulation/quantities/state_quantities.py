"""Derived quantities of one state: forces, energies, frame positions, Gauss's measure Z, residuals; on any
scalar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.context import RowContext, row_context
from zwang.constraint.rows import no_rows
from zwang.dynamics.energy import (
    kinetic_energy_by_body,
    kinetic_energy_of,
    potential_energy_of,
    zwang_by_body,
)
from zwang.dynamics.generalised_forces import spring_energy_of
from zwang.errors import SolveError
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import (
    applied_forces,
    bearing_loads_of,
    inputs_by_name,
)
from zwang.simulation.constrained import ConstrainedSolution, gauss_problem
from zwang.simulation.constraint_stage import constraint_model_of, solved
from zwang.simulation.initial_state import InitialState
from zwang.simulation.quantities.constraint_forces import point_force_labels, point_forces
from zwang.simulation.quantities.constraint_multipliers import multiplier_labels, multipliers
from zwang.simulation.quantities.constraint_residuals import residuals_at
from zwang.simulation.quantities.joint_wrenches import joint_wrenches, last_links, loads_on_bodies
from zwang.simulation.quantities.sensor_values import SensedState, sensor_values
from zwang.simulation.rollout import Trajectory
from zwang.simulation.settings import RecordedQuantities
from zwang.solver.solution import Solution

KEYS = (
    "tau", "energies", "positions", "constraints", "forces", "zwang", "held", "violations", "reactions",
    "sensors", "multipliers",
)  # fmt: skip


def state_quantities(
    mechanism: Mechanism, wanted: RecordedQuantities, t: Any, q: Any, v: Any, z: Any, u: Any
) -> dict[str, np.ndarray]:
    """The quantities named by `KEYS` at the time t [s], in the state (q, v, z), under the control u.

    tau (nv,): applied generalised force. energies (2,): kinetic and potential [J]. positions (3 * frames,)
    [m]. constraints (nv,): generalised constraint force. forces (6 * n,): for each of `point_force_labels`
    its position [m] and force [N]. zwang: the parts of Z of `zwang_by_body` [W/s]. held: the parts of the Z
    of the constraints, that is of the deviation from the unconstrained motion. violations: see
    `residuals_at`.
    reactions (6 * joints,): force [N] and torque [N m] of each joint on its body, see `joint_wrenches`.
    sensors: see `sensor_values`.
    multipliers: of the rows of the constraints, see `multiplier_labels`.
    Quantities that are not wanted are empty.
    """
    tree = mechanism.tree
    kinematics = Kinematics(tree, q, v)
    potential = potential_energy_of(kinematics) + spring_energy_of(mechanism, kinematics)
    tau = applied_forces(mechanism, kinematics, z, u, t, wanted.step.actuator_step)
    sensed = SensedState(mechanism, t, q, v, z, u, wanted.step)
    found = {
        "tau": tau,
        "energies": [kinetic_energy_of(kinematics), potential],
        "positions": [x for frame in wanted.frames for x in kinematics.frame_pose(frame).p],
        **_constraint_quantities(mechanism, wanted, t, kinematics, tau, (z, u)),
        "violations": residuals_at(mechanism, q, v, t) if wanted.violations else [],
        "sensors": _sensors(sensed, wanted),
    }
    return {key: np.array(found[key]) for key in KEYS}


def _constraint_quantities(
    mechanism: Mechanism,
    wanted: RecordedQuantities,
    t: Any,
    kinematics: Kinematics,
    tau: Any,
    driven: tuple[Any, Any],
) -> dict[str, Any]:
    """Generalised constraint force, point forces, Gauss's measure Z and reactions, as far as they are wanted.

    driven: the activations and the control.
    """
    found: dict[str, Any] = {"constraints": [], "forces": [], "zwang": [], "held": [], "reactions": []}
    found["multipliers"] = []
    needed = (wanted.constraints, wanted.forces, wanted.zwang, wanted.reactions, wanted.multipliers)
    if not any(needed):
        return found
    constraint_model = constraint_model_of(mechanism, wanted.step.for_forces)
    try:
        solution = None
        if constraint_model is not None:
            bearings = bearing_loads_of(
                constraint_model.released, kinematics.q, kinematics.v, *driven, t, wanted.step.actuator_step
            )
            solution = solved(constraint_model, kinematics, tau, t, bearings=bearings)
    except SolveError:  # on floats, in the last state of a failed world
        return _not_a_number(mechanism, wanted, kinematics, tau)
    if wanted.constraints:
        found["constraints"] = solution.constraint_force if solution is not None else [0] * mechanism.nv
    if wanted.forces:
        found["forces"] = [0] * (6 * len(point_force_labels(mechanism)))
    context = row_context(
        mechanism,
        kinematics,
        inverse_weights=constraint_model.weights if constraint_model is not None else None,
        step=wanted.step,
        time=t,
    )
    if wanted.forces and solution is not None:
        points = point_forces(context, solution.rows, solution.solution)
        found["forces"] = [x for point in points for x in (*point.position, *point.force)]
    if wanted.multipliers and solution is not None:
        found["multipliers"] = multipliers(context, solution.solution)
    if wanted.zwang:
        found["zwang"], found["held"] = _zwang(solution, kinematics, tau)
    if wanted.reactions:
        found["reactions"] = _reactions(context, solution, tau, driven)
    return found


def _sensors(state: SensedState, wanted: RecordedQuantities) -> np.ndarray:
    """The values of the wanted sensors; NaN in the last state of a failed world, on floats."""
    try:
        return sensor_values(state, wanted.sensors)
    except SolveError:
        return np.full(sum(state.mechanism.sensor(name).quantity.size for name in wanted.sensors), np.nan)


def _reactions(
    context: RowContext, solution: ConstrainedSolution | None, tau: Any, driven: tuple[Any, Any]
) -> list[Any]:
    """Force and torque of each joint on its body."""
    mechanism = context.mechanism
    if solution is None:
        problem = gauss_problem(context.kinematics, tau)
        free = Solution(np.array(problem.a_free), np.zeros(0), 0.0, True)
        solution = ConstrainedSolution(problem, no_rows(mechanism.nv), free)
    inputs = inputs_by_name(mechanism, *driven, context.time, context.step.actuator_step)
    loads, by_name = loads_on_bodies(context, solution, inputs)
    loads += [load for by_body in by_name.values() for load in by_body.values()]
    wrenches = joint_wrenches(
        context.kinematics, solution.solution.acceleration, loads, last_links(mechanism)
    )
    return [x for wrench in wrenches for part in wrench for x in part]


def _not_a_number(
    mechanism: Mechanism, wanted: RecordedQuantities, kinematics: Kinematics, tau: Any
) -> dict[str, Any]:
    """NaN for the quantities that are wanted and have no solution."""
    zwang, held = _zwang(None, kinematics, tau) if wanted.zwang else ([], [])
    sizes = {
        "constraints": mechanism.nv if wanted.constraints else 0,
        "forces": 6 * len(point_force_labels(mechanism)) if wanted.forces else 0,
        "zwang": len(zwang),
        "held": len(held),
        "reactions": 6 * len(mechanism.joints) if wanted.reactions else 0,
        "multipliers": len(multiplier_labels(mechanism)) if wanted.multipliers else 0,
    }
    return {key: np.full(size, np.nan) for key, size in sizes.items()}


def _zwang(
    solution: ConstrainedSolution | None, kinematics: Kinematics, tau: Any
) -> tuple[list[Any], list[Any]]:
    """The parts of Z by `zwang_by_body`, and those of the deviation from the unconstrained motion."""
    tree, q, v = kinematics.tree, kinematics.q, kinematics.v
    problem = solution.problem if solution is not None else gauss_problem(kinematics, tau)
    a = solution.solution.acceleration if solution is not None else problem.a_free
    deviation = a - problem.a_free if solution is not None else np.zeros(tree.nv, int)
    parts = zwang_by_body(tree, q, v, tau, a), kinetic_energy_by_body(tree, q, deviation)
    return list(parts[0].values()), list(parts[1].values())


def state_quantities_in_python(
    mechanism: Mechanism, initial: InitialState, wanted: RecordedQuantities, motion: Trajectory
) -> dict[str, np.ndarray]:
    """The state quantities (worlds, samples, n) of all samples of all worlds, computed on floats."""
    worlds = []
    for w in range(initial.worlds):
        row = initial.parameters_of_world(w)
        one = mechanism.subs(row) if row else mechanism
        times = motion.clock[w, :, 0] * wanted.step.size
        states = zip(times, motion.q[w], motion.v[w], motion.z[w], motion.u[w], strict=True)
        worlds.append([state_quantities(one, wanted, *state) for state in states])
    return {key: np.array([[x[key] for x in world] for world in worlds], dtype=float) for key in KEYS}
