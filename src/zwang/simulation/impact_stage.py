"""The impacts of hard contacts within a step: located in time, where the velocity jumps.

A step with hard contacts consists of parts:

    trial        a part over the rest of the step, in which all contacts act as constraints. It is accepted
                 where no contact acts on an approach faster than the resting speed: such a contact closes
                 within the step, by an impact.
    free         the same part, in which contacts that approach faster than the resting speed do not act. The
                 first of them closes at the root of its signed distance along the path; where none closes,
                 the part is accepted.
    to_impact    the part up to this time. There the velocity jumps, see `constraint.impact`; the rest of the
                 step follows as a trial.

After MOST_IMPACTS impacts in one step the trial is accepted in any case: what is left of the impacts, such as
the end of the bouncing of a ball, is without rebound, and the solver status is NOT_CONVERGED.

With laws of Coulomb friction in a Runge-Kutta method, every part ends where the sliding of a law stops, see
`integrator.stick_slip`; the rest of the step follows as a trial, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.collision import candidate_pairs
from zwang.collision.pairs import collision_shapes
from zwang.constraint.context import RowContext, row_context
from zwang.constraint.coulomb_friction import FrictionState
from zwang.constraint.impact import NEVER, earliest_closing, hard_contact_pairs, impact_rows
from zwang.dynamics.crba import crba_of
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.gauss import GaussProblem
from zwang.integrator.fixed_step import (
    StageNode,
    State,
    StateSpace,
    SubStep,
    displacement_at,
    runge_kutta_4_part,
    semi_implicit_euler_part,
)
from zwang.integrator.stick_slip import (
    PartToStop,
    SlidingSystem,
    TrialSubstep,
    part_to_stop,
)
from zwang.kinematics.configuration import integrate_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import (
    MutableArray,
    absolute,
    clip,
    cond,
    equal,
    fori_loop,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    where,
    while_loop,
    zeros,
)
from zwang.simulation.constraint_options import contact_enabled
from zwang.simulation.constraint_stage import ConstrainedMotion, ConstraintModel
from zwang.simulation.solver_status import CONVERGED, solver_status, worst_solver_status
from zwang.simulation.solver_status import NOT_CONVERGED as SOLVER_NOT_CONVERGED
from zwang.simulation.status import (
    INCONSISTENT_CONSTRAINTS,
    NONE,
    NOT_CONVERGED,
    status_if,
    worst_status,
)
from zwang.simulation.switching import (
    closing_is_switching,
    divided_is_switching,
    impact_is_switching,
    is_at_an_end,
    is_switching,
    stage_is_switching,
)
from zwang.solver.linearised import TO_BE_FOUND
from zwang.solver.solve import solve

MOST_IMPACTS = 20  # in one step; a row of six touching balls needs up to 15
MOST_STOPS = 100  # of Coulomb friction in one step
LOCATION_TOLERANCE = 1e-9  # [parts] of the time of impact, whose error Newton's method then squares
LOCATION_ITERATIONS = 30
TANGENT_ITERATIONS = 3  # for the derivative of the time of impact, of a root that was located
TRIAL, FREE, TO_IMPACT = 0.0, 1.0, 2.0

PARTS = {
    "euler": semi_implicit_euler_part,
    "implicitfast": semi_implicit_euler_part,
    "implicit": semi_implicit_euler_part,
    "rk4": runge_kutta_4_part,
}
"""The parts of a step of each integrator of fixed step size."""


class PartRate(NamedTuple):
    """The state derivative in a part of a step.

    status, solver: of the state derivative, and of the constraint solver. closes: see `ConstrainedMotion`.
    motion: the constrained motion.
    """

    v_dot: Any
    z_dot: Any
    status: Any
    solver: Any
    closes: Any
    motion: ConstrainedMotion


PartDerivative = Callable[[Any, Any, Any, StageNode, Any, Any], PartRate]
"""The rate at (q, v, z, node of the step, whether approaching contacts act, signs of the
sliding speeds of the laws of Coulomb friction as in `PartToStop`).
"""


class SlidingLaws(NamedTuple):
    """The laws of Coulomb friction at whose stops a step is divided.

    speeds(state, elapsed), signs(speeds): as in `SlidingSystem`. released(signs, friction): see
    `released_signs`.
    """

    speeds: Callable[[State, Any], Any]
    signs: Callable[[Any], np.ndarray]
    released: Callable[[Any, Any], np.ndarray]


class Evaluation(NamedTuple):
    """What a step is evaluated for, besides its result.

    tangents: whether the state is tangents. switching: whether it is to be found out if a small change of the
    state changes the contacts, their status, or the impacts; the derivatives are then one-sided. impacts:
    whether the impacts and the stops of sliding are logged, see `LoggedImpact`.
    """

    tangents: bool = False
    switching: bool = False
    impacts: bool = False


class LoggedImpact(NamedTuple):
    """An impact at the time `elapsed` [s] after the beginning of a step: the configuration q, and the
    velocities before and after it. Of a stop of Coulomb friction both are the same.
    """

    elapsed: float
    q: np.ndarray
    v_before: np.ndarray
    v_after: np.ndarray


class _PartMemory(NamedTuple):
    """What the stages of a part hand on, see `integrator.fixed_step`: whether a contact closes in one of
    them, and the worst statuses so far. rows_switch, closing_switches: whether rows, or the closing of a
    contact, are switching in one of them; None where this is not to be found out.
    """

    closes: Any
    status: Any
    solver: Any
    rows_switch: Any = None
    closing_switches: Any = None

    def with_stage(self, new: _PartMemory) -> _PartMemory:
        """The memory after one more stage."""
        both = (self.rows_switch, new.rows_switch), (self.closing_switches, new.closing_switches)
        return _PartMemory(
            logical_or(self.closes, new.closes),
            worst_status([self.status, new.status]),
            worst_solver_status([self.solver, new.solver]),
            *(None if y is None else logical_or(x, y) for x, y in both),
        )


class _Parts(NamedTuple):
    """The progress of a step.

    state: at the beginning of the next part, `elapsed` [s] after that of the step. size [s]: of that part.
    phase: TRIAL, FREE or TO_IMPACT. impacts: their number. stops: the number of parts that ended at a stop of
    Coulomb friction. status: of what was accepted. solver: the worst solver status of all parts. done:
    whether the step is complete. switching, log: see `Evaluation`; None where they are not asked for.
    """

    state: State
    elapsed: Any
    size: Any
    phase: Any
    impacts: Any
    stops: Any
    status: Any
    solver: Any
    done: Any
    switching: Any = None
    log: MutableArray | None = None


class StepEnd(NamedTuple):
    """The state after a step, its status, the solver status, and `switching` and the log of impacts as in
    `Evaluation`.
    """

    state: State
    status: Any
    solver: Any
    switching: Any
    log: MutableArray | None = None


class _Path(NamedTuple):
    """A part of a step, of this size [s], from a state at the time t [s]."""

    model: ConstraintModel
    state: State
    part: SubStep
    size: Any
    t: Any


def has_hard_contacts(mechanism: Mechanism) -> bool:
    """Whether a pair of shapes has a hard contact, so that impacts may occur."""
    is_hard = any(shape.shape.surface.hard for shape in collision_shapes(mechanism))
    return is_hard and contact_enabled(mechanism) and bool(hard_contact_pairs(candidate_pairs(mechanism)))


def step_with_impacts(
    model: ConstraintModel,
    integrator: str,
    derivative: PartDerivative,
    space: StateSpace,
    state: State,
    t: Any,
    evaluation: Evaluation = Evaluation(),
    laws: SlidingLaws | None = None,
) -> StepEnd:
    """The end of one step in which hard contacts may close by impacts.

    derivative: the state derivative, see `PartDerivative`. t [s]: the time at the beginning of the step.
    laws: at whose stops the step is divided; None for no such laws.
    """
    h, no_change = model.step.size, 0.0 > 1.0 if evaluation.switching else None

    def integrated(s: _Parts, state: State, signs: Any, size: Any) -> tuple[SubStep, FrictionState | None]:
        """A part of this size, and what Coulomb friction does at its beginning."""
        friction: list[FrictionState | None] = []

        def at(
            q: Any, v: Any, z: Any, node: StageNode, memory: _PartMemory | None
        ) -> tuple[Any, Any, _PartMemory]:
            node = node._replace(dt=s.elapsed + node.dt)
            rate = derivative(q, v, z, node, equal(s.phase, TRIAL), signs)
            found = _stage_memory(model, rate, laws, s.elapsed <= 0, evaluation.switching)
            if memory is None:
                friction.append(rate.motion.friction)
                return rate.v_dot, rate.z_dot, found
            return rate.v_dot, rate.z_dot, memory.with_stage(found)

        # the stages are long, and traced as a loop
        part = PARTS[integrator](at, space._replace(unroll=False), state, size, h, s.elapsed <= 0)
        return part, friction[0]

    def iterate(s: _Parts) -> _Parts:
        stop = _first_stop(laws, s, lambda *given: integrated(s, *given), evaluation)
        s = s._replace(size=stop.size)
        part, friction = integrated(s, s.state, stop.signs, s.size)
        found: _PartMemory = part.memory
        closes = logical_and(found.closes, s.impacts < MOST_IMPACTS)
        too_many = where(logical_and(found.closes, logical_not(closes)), SOLVER_NOT_CONVERGED, CONVERGED)
        path = _Path(model, s.state, part, s.size, t + s.elapsed)
        share = cond(equal(s.phase, FREE), lambda: _closing_share(path, evaluation.tangents), lambda: 1.0)
        impact = logical_and(equal(s.phase, TO_IMPACT), stop.is_whole)
        unchanged = _Impact(part.end, 1.0 * NONE, 1.0 * CONVERGED, no_change)
        after = cond(impact, lambda: _after_impact(path, evaluation), lambda: unchanged)
        unresolved = status_if(logical_not(logical_and(stop.is_found, s.stops < MOST_STOPS)), NOT_CONVERGED)
        status = worst_status([found.status, after.status, unresolved])
        solver = worst_solver_status([s.solver, found.solver, after.solver, too_many])
        progress = _next(s, part, after.state, closes, share, status, h, stop.is_whole)
        log, switching = _log_after(s, progress, impact, part.end, after.state), None
        if evaluation.switching:
            switching = logical_or(after.switching, _switching(s, path, friction, share, progress, stop))
        return progress._replace(solver=solver, log=log, switching=switching)

    start = _Parts(
        _copied(state), 0.0, 1.0 * h, TRIAL, 0.0, 0.0, 1.0 * NONE, 1.0 * CONVERGED, 0.0 > 1.0, no_change,
        zeros(impact_log_size(model.mechanism)) if evaluation.impacts else None,
    )  # fmt: skip
    last = while_loop(lambda s: logical_not(s.done), iterate, start)
    return StepEnd(last.state, last.status, last.solver, last.switching, last.log)


def _stage_memory(
    model: ConstraintModel, rate: PartRate, laws: SlidingLaws | None, at_start: Any, switching: bool
) -> _PartMemory:
    """What one stage hands on; at_start: whether the step begins with its part. switching: see
    `Evaluation`.
    """
    found = _PartMemory(rate.closes, rate.status, rate.solver)
    if not switching:
        return found
    rows = is_switching if laws is None else stage_is_switching
    return found._replace(
        rows_switch=rows(model, rate.motion, at_start),
        closing_switches=closing_is_switching(model, rate.motion),
    )


def impact_log_size(mechanism: Mechanism) -> int:
    """The size of the log of the impacts and stops of sliding in a step: their number, and room for the first
    MOST_IMPACTS of them.
    """
    return 1 + MOST_IMPACTS * _impact_size(mechanism)


def logged_impacts(mechanism: Mechanism, log: np.ndarray) -> list[LoggedImpact]:
    """The impacts and stops of sliding in the log of a step, in the order of time."""
    size, ends = _impact_size(mechanism), np.cumsum([1, mechanism.nq, mechanism.nv])
    rows = log[1:].reshape(MOST_IMPACTS, size)[: int(log[0])]
    return [LoggedImpact(float(row[0]), *np.split(row, ends)[1:]) for row in rows]


def _impact_size(mechanism: Mechanism) -> int:
    """The size of one impact in a log."""
    return 1 + mechanism.nq + 2 * mechanism.nv


def logged(log: MutableArray, elapsed: Any, before: State, v_after: Any) -> MutableArray:
    """The log with one more impact or stop at the time `elapsed` [s] in the step, while there is room for it:
    the state before it, and the velocities (nv,) after it.
    """
    numbers, number = [elapsed, *before.q, *before.v, *v_after], log[0]

    def extended(log: MutableArray) -> MutableArray:
        for i, x in enumerate(numbers):
            log = log.scatter(1 + len(numbers) * number + i, x)
        return log.set(0, number + 1)

    return cond(number < MOST_IMPACTS, extended, _same, log)


def _log_after(s: _Parts, progress: _Parts, impact: Any, end: State, after: State) -> MutableArray | None:
    """The log after a part that ends in the state `end`, at an impact, at a stop or at neither; None without
    a log.
    """
    if s.log is None:
        return None
    divides = logical_or(impact, progress.stops > s.stops)
    return cond(divides, lambda log: logged(log, s.elapsed + s.size, end, after.v), _same, s.log)


def _same(log: MutableArray) -> MutableArray:
    """The log itself."""
    return log


def _first_stop(
    laws: SlidingLaws | None,
    s: _Parts,
    integrated: Callable[[State, Any, Any], tuple[SubStep, FrictionState | None]],
    evaluation: Evaluation,
) -> PartToStop:
    """The part that ends at the first stop of the laws, or after the size of the next part.

    integrated(state, signs, size): a part, and what Coulomb friction does at its beginning.
    """
    if laws is None:
        return PartToStop(s.size, np.zeros(0), 0.0 < 1.0, 0.0 < 1.0, 0.0 > 1.0)

    def substep(state: State, signs: np.ndarray, elapsed: Any, size: Any) -> TrialSubstep:
        part, friction = integrated(state, signs, size)
        begun = laws.released(signs, friction)
        return TrialSubstep(part.end, part.memory.status, begun, lambda: 0.0 > 1.0)

    def speeds(state: State, elapsed: Any) -> Any:
        return laws.speeds(state, s.elapsed + elapsed)

    system = SlidingSystem(substep, speeds, laws.signs)
    return part_to_stop(system, s.state, s.size, tangents=evaluation.tangents, switching=evaluation.switching)


def _next(
    s: _Parts, part: SubStep, after: State, closes: Any, share: Any, status: Any, h: Any, whole: Any
) -> _Parts:
    """The progress after a part: accepted, to be repeated, or followed by the rest of the step.

    whole: whether the part did not end at a stop of Coulomb friction.
    """
    trial, free, to_impact = (equal(s.phase, phase) for phase in (TRIAL, FREE, TO_IMPACT))
    impact, stop = logical_and(to_impact, whole), logical_not(whole)
    is_clear = logical_or(logical_and(trial, logical_not(closes)), logical_and(free, share >= 1))
    accepted = logical_or(is_clear, logical_and(to_impact, stop))
    # a failure ends the step, but not that of a part that is repeated
    failed = logical_and(logical_or(accepted, impact), status > NONE)
    done = logical_or(logical_and(is_clear, whole), failed)
    reached = State(part.end.q, part.step_velocity, part.end.z)
    moved = State(
        *(
            where(logical_or(accepted, failed), x, where(impact, y, z))
            for x, y, z in zip(reached, after, s.state, strict=True)
        )
    )
    elapsed = where(logical_or(accepted, to_impact), s.elapsed + s.size, s.elapsed)
    approaches = logical_and(free, logical_not(accepted))
    size = where(approaches, share * s.size, maximum(h - elapsed, 0.0))
    phase = where(approaches, TO_IMPACT, where(logical_and(trial, logical_not(accepted)), FREE, TRIAL))
    impacts = s.impacts + where(impact, 1.0, 0.0)
    stops = s.stops + where(logical_and(accepted, stop), 1.0, 0.0)
    status = where(done, status, 1.0 * NONE)
    return _Parts(moved, elapsed, size, phase, impacts, stops, status, s.solver, done)


def _closing_share(path: _Path, tangents: bool) -> Any:
    """The share of a part after which the first approaching contact closes; 1 where none does.

    Newton's method on the signed distance, from the beginning of the part: an overestimate leads past the
    root, from where the iteration approaches it without a change of sign, as gravity bends the path to the
    obstacle. A contact that would be passed through within the step is found, too. Further steps on tangents
    have the derivative of the root.
    """
    size = path.size

    def unfinished(s: tuple[Any, Any, Any]) -> Any:
        share, time, iterations = s
        at_end = logical_and(share >= 1, time > 0)
        at_beginning = logical_and(share <= 0, time <= 0)
        located = absolute(time) <= LOCATION_TOLERANCE * size
        finished = logical_or(located, logical_or(at_end, at_beginning))
        return logical_and(logical_not(finished), iterations < LOCATION_ITERATIONS)

    def iterate(s: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        share, time, iterations = s
        share = _newton_step(share, time, size)
        return share, _closing_time(path, share), iterations + 1

    start = (0.0, _closing_time(path, 0.0), 0.0)
    share, time, iterations = while_loop(unfinished, iterate, start)
    if tangents:
        share, time, _ = fori_loop(
            0, TANGENT_ITERATIONS, lambda _, s: iterate(s), (share, time, iterations), unroll=False
        )
    return where(time < NEVER / 2, _newton_step(share, time, size), 1.0)


def _closing_time(path: _Path, share: Any) -> Any:
    """The time [s] until the first approaching contact closes, from a share of the path on; see
    `earliest_closing`.
    """
    model, part = path.model, path.part
    x, rate = displacement_at(part.mean_rate, part.start_rate, part.end_rate, share, path.size)
    q = integrate_configuration(model.mechanism.tree, path.state.q, x)
    context = _context(model, Kinematics(model.mechanism.tree, q, rate), path.t)
    return earliest_closing(context, hard_contact_pairs(candidate_pairs(model.mechanism)))


def _context(model: ConstraintModel, kinematics: Kinematics, t: Any) -> RowContext:
    """The context of the contacts at the time t [s]."""
    return row_context(model.mechanism, kinematics, inverse_weights=model.weights, step=model.step, time=t)


def _newton_step(share: Any, time: Any, size: Any) -> Any:
    """The share after this time, within the part."""
    return clip(share + time / where(size > 0, size, 1.0), 0.0, 1.0)


class _Impact(NamedTuple):
    """The state after an impact, its status, the status of the solver, and `switching` as in `Evaluation`."""

    state: State
    status: Any
    solver: Any
    switching: Any = None


def _after_impact(path: _Path, evaluation: Evaluation) -> _Impact:
    """The state with the velocity after the impact of the contacts that are closed at the end of a path."""
    model, state, t = path.model, path.part.end, path.t + path.size
    kinematics = Kinematics(model.mechanism.tree, state.q, state.v)
    context = _context(model, kinematics, t)
    rows = impact_rows(context, hard_contact_pairs(candidate_pairs(model.mechanism)))
    parents = tuple(velocity_parents(model.mechanism.tree))
    problem = GaussProblem(crba_of(kinematics), np.zeros(model.mechanism.nv), parents)
    solution = solve(problem, rows, start=TO_BE_FOUND if evaluation.tangents else None)
    status = worst_status(
        [
            status_if(solution.failed, NOT_CONVERGED),
            status_if(solution.inconsistent, INCONSISTENT_CONSTRAINTS),
        ]
    )
    after = State(state.q, state.v + solution.acceleration, state.z)
    switching = impact_is_switching(context, rows, solution, path.size) if evaluation.switching else None
    return _Impact(after, status, 1.0 * solver_status(solution), switching)


def _switching(
    s: _Parts, path: _Path, friction: FrictionState | None, share: Any, found: _Parts, stop: PartToStop
) -> Any:
    """Whether a small change of the state would change the contacts, the stops or the time of the impact of a
    part, or it would have in a part before.
    """
    accepted = _any([found.done, equal(s.phase, TO_IMPACT), found.elapsed > s.elapsed])

    memory: _PartMemory = path.part.memory
    of_rows = memory.rows_switch
    if friction is not None and len(stop.signs):
        divided = divided_is_switching(of_rows, friction, stop.signs, s.elapsed <= 0)
        of_rows = logical_or(stop.switching, divided)
    of_rows = logical_and(accepted, of_rows)
    of_location = cond(
        equal(s.phase, FREE),
        lambda: is_at_an_end(share, _closing_time(path, 0.0), _closing_time(path, 1.0), path.size),
        lambda: 0.0 > 1.0,
    )
    too_many = s.impacts >= MOST_IMPACTS
    return _any([s.switching, of_rows, of_location, memory.closing_switches, too_many])


def _any(conditions: Iterable[Any]) -> Any:
    """Whether one of the conditions holds."""
    return reduce(logical_or, conditions)


def _copied(state: State) -> State:
    """The state as arrays."""
    return State(*(np.array(x) for x in state))
