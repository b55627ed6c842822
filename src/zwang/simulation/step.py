"""One time step of a mechanism, stage by stage.

The state is (q, v, z): configuration, generalised velocities, activations of actuators. One step of size h is

     1. kinematics           poses and velocities of the links                     `Kinematics`
     2. passive forces       springs, dampers, gravity compensation, tendons       `applied_forces`
     3. controlled forces    motors, actuators and wrenches at the given control   `applied_forces`
     4. activation dynamics  z_dot                                                 `activation_rate`
     5. collision            contact points of the geometry                        `constraint_rows`
     6. constraint rows      J, reference acceleration aref, regularisation R      `constraint_rows`
     7. unconstrained motion M (CRBA) and a_free = M^-1 (tau - h(q, v))            `gauss_problem`
     8. constraint solver    a = argmin 1/2 |a - a_free|^2_M + sum_i s_i(J_i a - aref_i)
                                                                                   `constrained_motion`
     9. implicit damping     (M + h D) a' = M a                                    `constrained_acceleration`
    10. integrator           q, v, z at the end of the step                        STEPPERS
        with hard contacts   impacts located in time, where v jumps                `step_with_impacts`
        with dry friction    stops of sliding located in time, in several stages   `step_with_stops`
    11. stabilisation        projection onto the hard constraints                  `stabilised`
    12. sleep                trees of bodies that are slow stay where they are     `next_sleep`
    13. status               the worst failure of all stages                       `worst_status`

Stages 1 to 9 are the state derivative; a Runge-Kutta method evaluates it several times. Without constraints
stages 5 to 8 are replaced by the articulated-body algorithm. The text runs on floats; traced, it becomes
the compiled step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.context import StepForm
from zwang.constraint.coulomb_friction import (
    FrictionState,
    SlidingModes,
    coulomb_frictions,
    friction_laws,
    released_signs,
    sliding_signs,
)
from zwang.constraint.rows import WarmStart
from zwang.deprecation import renamed_attributes
from zwang.integrator.fixed_step import (
    RUNGE_KUTTA_STAGES,
    StageNode,
    State,
    StateSpace,
    runge_kutta_4,
    semi_implicit_euler,
)
from zwang.integrator.stick_slip import SlidingSystem, TrialSubstep, step_with_stops
from zwang.kinematics.configuration import displacement_rate, integrate_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import MutableArray, cond, equal, fori_loop, logical_not, logical_or, zeros
from zwang.simulation.applied_forces import (
    activation_rate,
    applied_forces,
    bearing_loads_of,
    next_activation,
)
from zwang.simulation.constraint_stage import (
    ConstrainedMotion,
    ConstraintModel,
    constrained_motion,
    constraint_model_of,
    stabilised,
    time_or_error,
)
from zwang.simulation.damping import is_linear
from zwang.simulation.impact_stage import (
    Evaluation,
    PartRate,
    SlidingLaws,
    has_hard_contacts,
    impact_log_size,
    logged,
    step_with_impacts,
)
from zwang.simulation.implicit_damping import (
    constrained_acceleration,
    has_implicit_joint_damping,
    tree_with_implicit_damping,
    unconstrained_acceleration,
)
from zwang.simulation.settings import CoordinateReduction
from zwang.simulation.sleep_rule import check_sleep, sleep_rule
from zwang.simulation.sleeping import next_sleep
from zwang.simulation.solver_status import CONVERGED, worst_solver_status
from zwang.simulation.status import CONSTRAINT_VIOLATED, NONE, NOT_CONVERGED, status_if, worst_status
from zwang.simulation.step_settings import StepSettings
from zwang.simulation.switching import divided_is_switching, is_switching, stage_is_switching
from zwang.solver.linearised import TO_BE_FOUND, KnownSolution, KnownSolutions

STEPPERS = {
    "euler": semi_implicit_euler,
    "implicitfast": semi_implicit_euler,
    "implicit": semi_implicit_euler,
    "rk4": runge_kutta_4,
}
"""The integration method of each integrator of fixed step size."""
MULTISTAGE = ("rk4",)
"""The integrators with several stages, in which a velocity-level law cannot hold at the end of the step."""


class Stage(NamedTuple):
    """The time [s] and the state of a state derivative, and the solution of Gauss's problem there: the
    constrained acceleration (nv,), without implicit damping; empty for an unconstrained mechanism.
    """

    t: Any
    state: State
    acceleration: Any

    def as_array(self, control: Any) -> np.ndarray:
        """All numbers in one array, with the control between the state and the acceleration."""
        return np.concatenate([np.array([self.t]), *self.state, control, self.acceleration])


@renamed_attributes(point="state")
class StepResult(NamedTuple):
    """The state after a step, its status, and the statuses of the constraint rows for the next warm start.

    status: NONE if the state is valid, see `simulation.status`. row_status: None for solvers without a
    warm start. solver_status: the worst one of all stages, see `simulation.solver_status`. motion: the
    constrained motion at the beginning of the step, None for an unconstrained mechanism. last_stage: that
    of the last state derivative; None if the step is divided at impacts or stops. switching: see
    `Evaluation`; None for an unconstrained mechanism. accelerations (stages nv,): those of all stages, where
    switching is asked for and the step is not divided. impacts: the log of the impacts and stops, if it is
    asked for.
    """

    state: State
    status: Any
    row_status: MutableArray | None = None
    solver_status: Any = CONVERGED
    motion: ConstrainedMotion | None = None
    last_stage: Stage | None = None
    switching: Any = None
    accelerations: Sequence[Any] = ()
    sleep: np.ndarray | None = None
    impacts: MutableArray | None = None


class StateDerivative(NamedTuple):
    """The time derivatives of the state, v_dot (nv,) and z_dot (nz,), with status and row statuses as in
    `StepResult`. motion: the constrained motion. closes: see `ConstrainedMotion`. friction: what the laws of
    Coulomb friction do.
    """

    v_dot: np.ndarray
    z_dot: np.ndarray
    status: Any
    row_status: MutableArray | None = None
    motion: ConstrainedMotion | None = None
    closes: Any = False
    friction: FrictionState | None = None


def step_settings(
    mechanism: Mechanism,
    h: float,
    integrator: str = "euler",
    stabilization: str = "projection",
    coordinate_reduction: CoordinateReduction = False,
) -> StepSettings:
    """The settings of steps of size h [s].

    integrator: "euler" (semi-implicit, joint damping implicit), "implicitfast" (all damping implicit),
    "implicit" (all damping and bias forces implicit) or "rk4", each as in MuJoCo; the disabled option
    "eulerdamp" makes Euler's damping explicit. stabilization: of hard constraints, "projection" or
    "baumgarte".
    coordinate_reduction: False, True, or the independent velocities; see `zw.simulate`.
    """
    constant = integrator == "euler" and has_implicit_joint_damping(mechanism) and is_linear(mechanism)
    tree = tree_with_implicit_damping(mechanism, h) if constant else mechanism.tree
    form = StepForm(h, stabilization, integrator in MULTISTAGE)
    constraint_model = constraint_model_of(mechanism, form, coordinate_reduction)
    has_impacts = constraint_model is not None and has_hard_contacts(mechanism)
    return StepSettings(mechanism, h, integrator, tree, constraint_model, has_impacts, sleep_rule(mechanism))


def step(
    s: StepSettings,
    state: State,
    control: Any,
    t: Any = None,
    warm_start: WarmStart | KnownSolutions | None = None,
    *,
    switching: bool = False,
    sleep: Any = None,
    impacts: bool = False,
) -> StepResult:
    """The state one step after `state`, at a constant control, with the worst status of all stages.

    control: one number for each input (nu,); for a mechanism without inputs the generalised force (nv,) [N
    m, N]. t [s]: the time at the beginning of the step; required if a constraint depends on time.
    warm_start: the row statuses at the end of the previous step; for a state of tangents the known solutions.
    switching, impacts: see `Evaluation`; the latter for divided steps only, see `has_divided_steps`. sleep:
    the numbers of the trees that the previous step left, see `sleeping`; without them no tree sleeps. Raises
    SimulationError if the time is required and None, and where trees cannot sleep.
    """
    t = time_or_error(s.mechanism, t)
    evaluation = Evaluation(isinstance(warm_start, KnownSolutions), switching, impacts)
    # 10. integrator
    if s.constraint_model is not None and s.has_impacts:
        result = _with_impacts(s, s.constraint_model, state, control, t, evaluation)
    elif s.constraint_model is not None and _has_stops(s):
        result = _divided_at_stops(s, s.constraint_model, state, control, t, evaluation)
    else:
        result, _ = _integrated(s, state, control, t, s.h, warm_start, evaluation)
    # 11. stabilisation of the hard constraints
    end = result.state
    q, v, violated = stabilised(s.constraint_model, end.q, end.v, t + s.h, tangents=evaluation.tangents)
    end = State(q, v, end.z)
    # 12. sleep
    if s.sleep is not None and sleep is not None:
        check_sleep(s.mechanism, s.integrator)
        found = next_sleep(s.sleep, state, control, sleep, result.motion and result.motion.found.rows)
        end, sleep = found.held(s.sleep, state, end), found.numbers
    # 13. status
    status = worst_status([result.status, status_if(violated, CONSTRAINT_VIOLATED)])
    return result._replace(state=end, status=status, sleep=sleep)


class _StageMemory(NamedTuple):
    """What the stages of a step hand on, see `integrator.fixed_step`: the last one, its row statuses, and the
    worst statuses of all so far; these are None for an unconstrained mechanism. switching, accelerations: as
    in `StepResult`, so far.
    """

    last: Stage
    row_status: MutableArray | None = None
    status: Any = None
    solver: Any = None
    switching: Any = None
    accelerations: MutableArray | None = None

    @property
    def warm_start(self) -> Any:
        """The initial guess of the next solution: the row statuses, or for other solvers the acceleration."""
        row_status = self.row_status
        return self.last.acceleration if row_status is None else lambda size, largest: row_status

    def with_stage(self, new: _StageMemory) -> _StageMemory:
        """The memory after one more stage. Its row statuses overwrite those of the stage before, as a loop
        over the stages carries one array.
        """
        row_status, found = self.row_status, new.row_status
        if row_status is not None and found is not None:
            row_status = fori_loop(0, found.shape[0], lambda i, kept: kept.set(i, found[i]), row_status)
        status = worst_status([self.status, new.status])
        solver = worst_solver_status([self.solver, new.solver])
        switching = None if new.switching is None else logical_or(self.switching, new.switching)
        return _StageMemory(new.last, row_status, status, solver, switching, self.accelerations)

    def with_acceleration(self, number: Any, a: np.ndarray) -> _StageMemory:
        """The memory with the acceleration (nv,) of a stage, if accelerations are kept."""
        kept = self.accelerations
        if kept is None:
            return self
        for i, x in enumerate(a):
            kept = kept.set(len(a) * number + i, x)
        return self._replace(accelerations=kept)


def _integrated(
    s: StepSettings, state: State, control: Any, t: Any, h: Any, warm_start: Any, evaluation: Evaluation,
    modes: SlidingModes | None = None, at_start: Any = True,
) -> tuple[StepResult, FrictionState | None]:  # fmt: skip
    """The state after the time h [s] by the integration method, with the worst status of all stages; and what
    Coulomb friction does at the beginning. at_start: whether a step begins there.

    The stages of a constrained mechanism, which are long, are traced as a loop, except where their solutions
    are known: derivatives run slower in a loop, and reverse mode has no adjoint of its contacts.
    """
    model, changes = s.constraint_model, is_switching if modes is None else stage_is_switching
    first: list[StateDerivative] = []

    def derivative(
        q: Any, v: Any, z: Any, node: StageNode, memory: _StageMemory | None
    ) -> tuple[Any, Any, _StageMemory]:
        """Stages 1 to 9 at a node; the solver's initial guess is the preceding solution."""
        if isinstance(warm_start, KnownSolutions):
            guess: Any = warm_start.of_stage(node.number)
        elif isinstance(warm_start, KnownSolution) or memory is None:
            guess = warm_start
        else:
            guess = memory.warm_start
        lag = node.position_lag
        found = state_derivative(s, q, v, z, control, t + node.dt, guess, modes=modes, position_lag=lag)
        motion = found.motion
        last = Stage(t + node.dt, State(q, v, z), np.zeros(0) if motion is None else motion.a)
        new = _StageMemory(last)
        if motion is not None and model is not None:
            switching = changes(model, motion, at_start) if evaluation.switching else None
            new = _StageMemory(last, found.row_status, found.status, motion.solver_status, switching)
        if memory is None:
            first.append(found)
            if evaluation.switching and modes is None and motion is not None:
                stages = RUNGE_KUTTA_STAGES if s.integrator in MULTISTAGE else 1
                new = new._replace(accelerations=zeros(stages * len(motion.a)))
        elif motion is not None:
            new = memory.with_stage(new)
        return found.v_dot, found.z_dot, new.with_acceleration(node.number, last.acceleration)

    space = state_space(s.mechanism)
    if model is not None:
        space = space._replace(unroll=isinstance(warm_start, KnownSolutions))
    elif evaluation.tangents or evaluation.switching:
        space = space._replace(unroll=True)
    end, memory = STEPPERS[s.integrator](derivative, space, state, h)
    kept = memory.accelerations
    result = StepResult(
        end, NONE if memory.status is None else memory.status, memory.row_status,
        CONVERGED if memory.solver is None else memory.solver, first[0].motion, memory.last,
        memory.switching, () if kept is None else [kept[i] for i in range(*kept.shape)],
    )  # fmt: skip
    return result, first[0].friction


def _with_impacts(
    s: StepSettings, model: ConstraintModel, state: State, control: Any, t: Any, evaluation: Evaluation
) -> StepResult:
    """The state after a step that is divided at the impacts of hard contacts, and with several stages also
    where the sliding of a law of Coulomb friction stops.
    """
    known = TO_BE_FOUND if evaluation.tangents else None
    laws = _sliding_laws(s, t) if _has_stops(s) else None

    def part(q: Any, v: Any, z: Any, node: StageNode, approaching_active: Any, signs: Any) -> PartRate:
        """Stages 1 to 9 in a part of a step between impacts and stops."""
        modes = None if laws is None else SlidingModes(signs, True, s.h)
        found = state_derivative(
            s, q, v, z, control, t + node.dt, known, approaching_active, modes, node.position_lag
        )
        motion = found.motion
        assert motion is not None
        return PartRate(found.v_dot, found.z_dot, found.status, motion.solver_status, found.closes, motion)

    if laws is not None and evaluation.tangents:
        state = _at_rest(s, state, control, t, laws.signs(laws.speeds(state, 0.0)))
    space = state_space(s.mechanism)
    end = step_with_impacts(model, s.integrator, part, space, state, t, evaluation, laws)
    return StepResult(end.state, end.status, None, end.solver, switching=end.switching, impacts=end.log)


def has_divided_steps(mechanism: Mechanism, integrator: str) -> bool:
    """Whether steps are divided at impacts of hard contacts or at stops of sliding."""
    return has_hard_contacts(mechanism) or _divides_at_stops(mechanism, integrator)


def _has_stops(s: StepSettings) -> bool:
    """Whether steps are divided where the sliding of a law of Coulomb friction stops."""
    return _divides_at_stops(s.mechanism, s.integrator)


def _divides_at_stops(mechanism: Mechanism, integrator: str) -> bool:
    return integrator in MULTISTAGE and bool(coulomb_frictions(mechanism))


def _sliding_laws(s: StepSettings, t: Any) -> SlidingLaws:
    """The laws of Coulomb friction in a step that begins at the time t [s]."""

    def speeds(state: State, elapsed: Any) -> Any:
        return friction_laws(s.mechanism, state.q, state.v, t + elapsed).speeds

    def released(signs: Any, friction: Any) -> np.ndarray:
        return released_signs(s.mechanism, signs, friction)

    return SlidingLaws(speeds, sliding_signs, released)


def _divided_at_stops(
    s: StepSettings, model: ConstraintModel, state: State, control: Any, t: Any, evaluation: Evaluation
) -> StepResult:
    """The state after a step that is divided where the sliding of a law of Coulomb friction stops."""
    known, laws = TO_BE_FOUND if evaluation.tangents else None, _sliding_laws(s, t)

    def substep(state: State, signs: Any, elapsed: Any, size: Any) -> TrialSubstep:
        modes = SlidingModes(signs, True, s.h)
        begins = elapsed <= 0
        end, friction = _integrated(s, state, control, t + elapsed, size, known, evaluation, modes, begins)
        assert friction is not None
        signs = laws.released(signs, friction)
        return TrialSubstep(
            end.state, end.status, signs, lambda: divided_is_switching(end.switching, friction, signs, begins)
        )

    if evaluation.tangents:
        state = _at_rest(s, state, control, t, laws.signs(laws.speeds(state, 0.0)))

    def with_stop(log: MutableArray, end: State, elapsed: Any) -> MutableArray:
        return logged(log, elapsed, end, end.v)

    end = step_with_stops(
        SlidingSystem(substep, laws.speeds, laws.signs, with_stop), state, s.h,
        tangents=evaluation.tangents, switching=evaluation.switching,
        log=zeros(impact_log_size(s.mechanism)) if evaluation.impacts else None,
    )  # fmt: skip
    incomplete = status_if(logical_not(end.is_complete), NOT_CONVERGED)
    status = worst_status([end.status, incomplete])
    return StepResult(end.state, status, switching=end.switching, impacts=end.log)


def _at_rest(s: StepSettings, state: State, control: Any, t: Any, signs: Any) -> State:
    """The state, tangents, in which no sliding speed of a law at rest changes.

    Such a law would slide for the time in which its friction takes away the change of its speed, and this
    time vanishes with the change. Its force at rest removes a sliding speed u by the acceleration -u / h; so
    the change of the velocity is h times the difference that the removal makes.
    """

    def acceleration(settling_time: Any) -> np.ndarray:
        modes = SlidingModes(signs, True, settling_time)
        return state_derivative(s, *state, control, t, TO_BE_FOUND, modes=modes).v_dot

    def stopped() -> np.ndarray:
        return state.v + s.h * (acceleration(s.h) - acceleration(None))

    rests = reduce(logical_or, [equal(sign, 0) for sign in signs])
    return state._replace(v=cond(rests, stopped, lambda: np.array(state.v)))


def state_derivative(
    s: StepSettings,
    q: Any,
    v: Any,
    z: Any,
    control: Any,
    t: Any = 0,
    warm_start: Any = None,
    approaching_active: Any = True,
    modes: SlidingModes | None = None,
    position_lag: Any = 0,
) -> StateDerivative:
    """The time derivative of the state at the time t [s]: stages 1 to 9.

    approaching_active: whether hard contacts that approach faster than the resting speed act; position_lag:
    that of the stage; see `RowContext`.
    modes: of Coulomb friction, see `SlidingModes`.
    """
    # 1. kinematics, computed once for all stages
    kinematics = Kinematics(s.mechanism.tree, q, v)
    # 2., 3. passive and controlled forces
    tau = applied_forces(s.mechanism, kinematics, z, control, t, s.actuator_step)
    # 4. activation dynamics
    z_dot = activation_rate(s.mechanism, kinematics, z, control, t, s.actuator_step)
    if s.constraint_model is None:
        return StateDerivative(unconstrained_acceleration(s, kinematics, z, control, tau, t), z_dot, NONE)
    # 5. to 8. collision, constraint rows, unconstrained motion, constraint solver
    bearings = bearing_loads_of(s.constraint_model.released, q, v, z, control, t, s.actuator_step)
    motion = constrained_motion(
        s.constraint_model, kinematics, tau, t, warm_start, approaching_active, modes=modes,
        bearings=bearings, position_lag=position_lag,
    )  # fmt: skip
    # 9. implicit damping
    if (
        s.constraint_model.hard
    ):  # the acceleration of the total force has less rounding than that of the solver
        a = unconstrained_acceleration(s, kinematics, z, control, tau + motion.constraint_force, t)
        return StateDerivative(
            a, z_dot, motion.status, motion=motion, closes=motion.closes, friction=motion.friction
        )
    a = constrained_acceleration(s, motion, kinematics, z, control, t)
    return StateDerivative(a, z_dot, motion.status, motion.row_status, motion, motion.closes, motion.friction)


def state_space(mechanism: Mechanism) -> StateSpace:
    """The operations of an integrator on the configuration manifold and on the activations."""
    tree = mechanism.tree
    return StateSpace(
        integrate=lambda q, v, dt: integrate_configuration(tree, q, v, dt),
        advance=lambda z, z_dot, dt: next_activation(mechanism, z, z_dot, dt),
        displacement_rate=lambda u, v: displacement_rate(tree, u, v),
    )
