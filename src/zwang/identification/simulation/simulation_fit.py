"""The fit of a mechanism's parameters to a recorded motion by simulation (output error)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.api.compilation.cache_key import IdentityKey
from zwang.api.compilation.compiled import CompiledMechanism, compile
from zwang.errors import DescriptionError, SolveError, StateError
from zwang.identification.consistent_fit import Divergence
from zwang.identification.fit_settings import Bounds, Priors, bounds_above, check_level, pairs_of, priors_of
from zwang.identification.linear_estimation import MAD, Loss
from zwang.identification.parameters import Parameter, index_of
from zwang.identification.pseudo_inertia import parameters_of_pseudo_inertia, pseudo_inertia
from zwang.identification.simulation.output_error import Iterate, OutputError, Target
from zwang.identification.simulation.recorded_trials import RecordedTrials
from zwang.identification.simulation.sensitivities import Simulator, Windows
from zwang.identification.simulation.simulation_intervals import KnownCombinations, known_combinations
from zwang.identification.simulation.unknowns import SYMBOL, Unknowns, unknowns_of
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr, validated_arguments

INSIDE = 0.98  # fraction of the range of a joint within which its limits do not act
GROWING = (4, 16)  # samples of the windows of the first fits, whose problems are nearly linear
ENOUGH, NEARLY = 1.2, 0.1  # weighted residuals, or the relative decrease of the cost, at which these end
LARGE = 3.0  # residuals by their deviations, above which the minimum is doubtful
COARSE = 0.5  # standard deviations by which the size of the steps may change a combination without a word
START = 0.3  # deviation of the dimensionless coordinates of random starts


@dataclass(frozen=True)
class SimulationFit:
    """Parameters fitted by simulation, with intervals of the combinations that the record tells.

    model: the mechanism before. mechanism: the fitted one; each of its bodies is physically consistent.
    parameters: what was fitted, with the model's values. p (n,): the fitted values; where the record says
    nothing they are those of the model. known: the combinations that the record can tell, with intervals.
    deviation (nv,): root mean squares of the residuals of each coordinate [rad, m]. errors (nv,): the
    standard deviations of the errors of measured coordinates that the fit assumed, of several trials their
    root mean square. costs: of the iterations.
    start_costs: of the fits from all starts. reason: why the fit ended. time (windows, samples) [s],
    measured, simulated (windows, samples, nq): the coordinates of each window.
    """

    model: Mechanism
    mechanism: Mechanism
    parameters: tuple[Parameter, ...]
    p: np.ndarray
    known: KnownCombinations
    deviation: np.ndarray
    costs: tuple[float, ...]
    start_costs: tuple[float, ...]
    reason: str
    errors: np.ndarray
    time: np.ndarray
    measured: np.ndarray
    simulated: np.ndarray

    @property
    def beta(self) -> np.ndarray:
        """The estimates of the combinations (m,)."""
        return self.known.beta

    @property
    def interval(self) -> np.ndarray:
        """Confidence intervals of beta (m, 2); infinite where the record does not tell a combination."""
        return self.known.interval

    def value(self, name: str) -> float:
        """The fitted value of a parameter."""
        return float(self.p[index_of(self.parameters, name)])

    def __str__(self) -> str:
        lines = [f"{len(self.beta)} combinations of {len(self.p)} parameters, {100 * self.known.level:g} %"]
        for text, unit, (low, high) in zip(
            self.known.combinations, self.known.units, self.interval, strict=True
        ):
            told = f"{low:.6g} to {high:.6g} {unit}" if np.isfinite(high - low) else "not told by the record"
            lines.append(f"  {text}: {told}")
        names = ", ".join(
            f"{name} {x:.3g}" for name, x in zip(self.model.speed_names, self.deviation, strict=True)
        )
        return "\n".join([*lines, f"  residuals: {names}", f"  {self.reason}"])


@validated_arguments()
def fit_by_simulation(
    mechanism: Mechanism,
    time: ArrayLike | Sequence[ArrayLike],
    q: ArrayLike | Sequence[ArrayLike],
    control: ArrayLike | Sequence[ArrayLike],
    *,
    v: ArrayLike | Sequence[ArrayLike] | None = None,
    kinds: Sequence[str] = ("inertia",),
    bodies: Sequence[str] | None = None,
    guess: Mapping[Any, float] | None = None,
    priors: Priors | None = None,
    bounds: Bounds | None = None,
    spread: float = 1.0,
    deviation: ArrayLike | None = None,
    window: int | None = 50,
    interpolation: Literal["held", "linear"] | None = None,
    loss: Loss = "linear",
    starts: int = 1,
    step: float | None = None,
    integrator: str | None = None,
    iterations: int = 50,
    stop_at: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    check_units: bool = True,
) -> SimulationFit:
    """Parameters for which simulated coordinates are nearest to measured ones, by a damped Gauss-Newton
    method with exact derivatives of the steps.

    No velocities or accelerations are measured or differentiated, and contacts, limits, dry friction and
    loops are simulated as they are.

    The windows grow: short ones first, for which the problem is nearly linear, and then those that are asked
    for. If these leave residuals larger than their deviations, the fit is repeated without the short ones,
    and the smaller cost counts. `reason` tells residuals of more than three times their deviations, and
    errors by the size of the steps that are not small against the intervals: the errors of the default
    integrator are in proportion to that size, those of "rk4" to its fourth power.

    time (N,) [s], evenly spaced. q (N, nq): measured. control (N, nu), or the measured generalised forces
    (N, nv) for a mechanism without inputs, also above the `actuator_range` of a joint. The elements of
    labelled arrays, as of recordings, and the columns of tables are read by their labels. Of several trials,
    evenly sampled with one sampling time, give sequences of these arrays, one of each trial; their lengths
    may differ.
    v (N, nv): velocities, if the states q, v at the starts of windows are known exactly; by default they are
    unknowns too, from first guesses by a local polynomial.
    kinds: some of "inertia", "armature", "damping", "friction" and "stiffness". Symbols of the mechanism are
    further unknowns, and need a guess by name; with symbols leave "inertia" out. bodies: those of which the
    inertia is unknown, by default all.
    priors: (value, standard deviation) by name; an infinite deviation tells nothing. bounds: (lower, upper)
    by name, not of inertial parameters; armature, damping, friction, and symbols that are positive or
    nonnegative by SymPy's assumptions are not negative. spread: s, relative error of the model; its
    entropic divergence (Lee, Wensing, Park 2020) counts with the weight 1 / s^2, and decides what the record
    does not tell. deviation: standard deviation of the errors of q [rad, m], a number or (nv,), by default
    estimated from the median of third differences, which impacts and outliers hardly change. window: samples
    that are simulated from one start, None for all of the (shortest) trial; those after the last whole window
    of a trial are not used.
    interpolation: of the control between the samples. "held": row k acts from time k to time k + 1, as do
    commands of a digital controller; the last row is not used. "linear": rows are values at the times, as
    those of sensors are. By default inputs are held, and measured forces of mechanisms without any linear.
    loss: "linear", or "huber" for outliers. starts: the fit begins at the model, and at starts - 1 random
    points about it; the best result counts.
    step [s], integrator: of the simulation, by default the mechanism's; a step must divide the sampling
    time, and by default the mechanism's is reduced until it does. iterations: at most. stop_at: ends when the
    weighted residuals are as small as this, such as 1.01 times the deviation. level: of the intervals.
    check_units: whether to reject angles that are degrees by their magnitude, as of a joint without limits
    that turns by more than 1 rad from one sample to the next.

    Limits of joints that the record stays away from are left out. With hard constraints the combinations are
    those that move the mechanism, such as "friction_left + friction_right" of coupled fingers. The intervals
    are those of the linearised problem without the priors; `known.discretisation` is about the change of each
    combination by the size of the steps, which they do not cover. Nor do they cover the changes of the times
    of impacts, at limits or in contacts. Errors of q that are correlated over many samples are partly taken
    for starts of the windows, so that intervals are too narrow: with the correlation 0.9 from sample to
    sample, 88 % instead of 95 % of the true values lay in those of records of 201 samples, and 95 % for 401.
    Give long records for such errors.

    Raises ShapeError and StateError for invalid data, DescriptionError for actuators with states
    (activations, PID controllers), SimulationError where the steps have no exact derivatives,
    UnknownNameError, and SolveError if the fit does not converge.
    Sources: Ljung, System Identification (1999), Section 7.5; Rucker, Wensing (2022).
    """
    m = validation.checked_mechanism(mechanism)
    chosen = tuple(kinds)
    given = tuple(
        (str(name), validation.real(value, f"guess[{short_repr(name)}]", "a number"))
        for name, value in (guess or {}).items()
    )
    check_level(level)
    _check_counts(starts, iterations, seed)
    named_bodies = None if bodies is None else tuple(bodies)
    key = (IdentityKey(m), chosen, named_bodies, given)
    unknowns, model = _unknowns(*key)
    held = interpolation == "held" or (interpolation is None and bool(m.inputs))
    record = RecordedTrials.checked(unknowns.model, model, time, q, control, v, held, check_units)
    options = unknowns.model.options
    away = frozenset(j.name for j in unknowns.model.joints if _is_away(j, record.q))
    h = record.step(None if step is None else validation.real(step, "step", "positive"), options.timestep)
    simulator = _simulator(key, away, h, integrator or options.integrator)
    deviations = record.deviations(model, deviation)
    prior = _prior(unknowns, spread, dict(pairs_of(bounds or {}, "bounds")))
    named = _named(unknowns, priors_of(priors, unknowns.parameters))

    search = _Search(simulator, model, prior, 1 / spread**2, named, loss, v is None, deviations, iterations)
    if not unknowns.start[unknowns.inertial :].all():
        search = search.scaled(record, window)
        prior = search.prior
    rng = np.random.default_rng(seed)
    first = [_start(prior, rng if k else None) for k in range(starts)]
    found = [search.from_start(p, record, window, stop_at) for p in first]
    problem, best = min(found, key=lambda x: x[1].cost)
    if not best.reason or not np.isfinite(best.cost):
        raise SolveError(
            f"the fit by simulation has not converged: {best.reason or f'{iterations} iterations'}; give a "
            "shorter window, a nearer model, more starts, or more iterations"
        )
    return _result(problem, best, tuple(x.cost for _, x in found), level)


def _check_counts(starts: int, iterations: int, seed: int) -> None:
    for name, count in (("starts", starts), ("iterations", iterations)):
        if count < 1:
            raise StateError(f"{name} is {count}; it must be 1 or more")
    if seed < 0:
        raise StateError(f"seed is {seed}; it must be 0 or a positive integer")


@dataclass(frozen=True)
class _Search:
    """What all fits of the same records have in common."""

    simulator: Simulator
    model: CompiledMechanism
    prior: Divergence
    prior_weight: float
    named: tuple[np.ndarray, np.ndarray, np.ndarray]
    loss: Loss
    with_starts: bool
    deviations: np.ndarray
    iterations: int

    def problem(self, record: RecordedTrials, size: int | None) -> tuple[OutputError, Windows]:
        """The problem of windows with `size` samples."""
        windows, measured, mask = record.windows(self.simulator.h, size)
        counts = record.counts(measured.shape[1] - 1)
        deviations = np.repeat(self.deviations, counts, axis=0)
        target = Target(
            measured, mask / deviations[:, None], self.prior, self.prior_weight, self.named, self.loss,
            windows.v, record.slope_precision(deviations), self.with_starts, tuple(counts),
        )  # fmt: skip
        return OutputError(self.simulator, self.model, target), windows

    def scaled(self, record: RecordedTrials, window: int | None) -> _Search:
        """The search with scales of the scalars that are 0 in the model: those that alone would explain the
        residuals of the shortest windows, or errors as large as their deviations.
        """
        unknowns, p = self.simulator.unknowns, self.prior.start()
        problem, windows = self.problem(record, min(GROWING[0], record.size(window)))
        at = problem.differentiated(p, windows)
        r, J, _ = at.eliminated(at.by_parameters[..., unknowns.inertial :])
        size = np.sqrt(max(float((r**2).sum()), np.count_nonzero(problem.target.weights)))
        columns = np.linalg.norm(J.reshape(-1, J.shape[-1]), axis=0)
        told = np.divide(size, columns, out=np.ones(len(columns)), where=columns > 0)
        x0 = unknowns.start[unknowns.inertial :]
        scale = np.where((x0 == 0) & np.isfinite(told), told, self.prior.scale)
        lower, upper = self.prior.lower, self.prior.upper
        return replace(self, prior=Divergence.of(unknowns.start, scale, lower, upper))

    def from_start(
        self, p: np.ndarray, record: RecordedTrials, window: int | None, stop_at: float | None
    ) -> tuple[OutputError, Iterate]:
        """The fit from p, with windows that grow. Where its residuals are larger than their deviations, it
        may be a local minimum to which the short windows led, so that the fit without these is tried too.
        """
        sizes = [size for size in GROWING if size < record.size(window)]
        found = [self._grown(p, record, sizes, window, stop_at)]
        if sizes and not found[0][1].rms <= ENOUGH:
            found.append(self._grown(p, record, [], window, stop_at))
        return min(found, key=lambda x: x[1].cost)

    def _grown(
        self, p: np.ndarray, record: RecordedTrials, sizes: Sequence[int], window: int | None,
        stop_at: float | None,
    ) -> tuple[OutputError, Iterate]:  # fmt: skip
        """The fit from p, after those of windows of these sizes."""
        for size in sizes:
            problem, windows = self.problem(record, size)
            short = problem.solved(p, windows, self.iterations, ENOUGH, NEARLY)
            p = short.p
            if self.with_starts:
                states = problem.simulator.trajectory(short.windows, problem.values(p))
                record = record.with_states(*states)
        problem, windows = self.problem(record, window)
        return problem, problem.solved(p, windows, self.iterations, stop_at)


def _result(problem: OutputError, best: Iterate, costs: tuple[float, ...], level: float) -> SimulationFit:
    """The fit with its intervals. Raises SolveError where a limit acts that was left out."""
    unknowns = problem.simulator.unknowns
    p = best.p
    q, _ = problem.simulator.trajectory(best.windows, problem.values(p))
    _check_limits(unknowns.model, problem.simulator.mechanism, q)
    weights, loss = problem.target.weights, problem.target.loss
    counted = weights[..., 0] > 0
    r, deviations = problem.residuals(q).reshape(weights.shape)[counted], 1 / weights[counted]
    # outliers are no misfit for Huber's loss
    ratios = MAD * np.median(np.abs(r), axis=0) if loss == "huber" else _rms(r)
    windows = best.windows
    errors = problem.discretisation(p, windows)
    lengths = tuple(q.shape[1] * count for count in problem.target.counts)
    known = known_combinations(unknowns, problem.differentiated(p, windows), p, level, loss, errors, lengths)
    samples = problem.simulator.h * windows.every * np.arange(q.shape[1])
    return SimulationFit(
        unknowns.model, _fitted(unknowns, p), unknowns.parameters, p, known, _rms(r * deviations), best.costs,
        costs, _reason(best, unknowns.model, ratios, known), _rms(deviations),
        windows.time[:, None] + samples, problem.target.q, q,
    )  # fmt: skip


def _rms(x: np.ndarray) -> np.ndarray:
    """The root mean squares (nv,) of x (N, nv)."""
    return np.sqrt((x**2).mean(axis=0))


def _reason(best: Iterate, m: Mechanism, ratios: np.ndarray, known: KnownCombinations) -> str:
    """Why the fit ended, where its residuals are large, `ratios` (nv,) times their deviations, and where
    errors of the steps are not small against those of the record.
    """
    found, k = [best.reason], int(np.argmax(ratios))
    if ratios[k] > LARGE:
        found.append(
            f"but the residuals of {m.speed_names[k]} are {ratios[k]:.3g} times their deviations, as in a "
            "local minimum or where the model lacks a force; give another window, or more starts"
        )
    told = np.isfinite(known.interval).all(axis=1)
    deviations = np.sqrt(np.diag(known.covariance))
    told &= deviations > 0
    moved = np.divide(known.discretisation, deviations, out=np.zeros(len(told)), where=told)
    k = int(np.argmax(moved))
    if moved[k] > COARSE:
        word = "but" if len(found) == 1 else "and"
        found.append(
            f"{word} the size of the steps changes {known.combinations[k]} by about {moved[k]:.3g} standard "
            'deviations, which the intervals do not cover; give a smaller step=, or integrator="rk4"'
        )
    return ", ".join(found)


def _fitted(unknowns: Unknowns, p: np.ndarray) -> Mechanism:
    """The fitted mechanism. Raises DescriptionError with the symbols if these make no mechanism."""
    try:
        return unknowns.fitted(p)
    except DescriptionError as error:
        own = {x.name: f"{v:.4g}" for x, v in zip(unknowns.parameters, p, strict=True) if x.kind == SYMBOL}
        if not own:
            raise
        name, values = next(iter(own)), ", ".join(f"{name} = {v}" for name, v in own.items())
        raise DescriptionError(
            f"the fit finds {values}, for which there is no mechanism: {error}. Bound such a symbol by "
            f"bounds={{{name!r}: (lower, upper)}}, or declare it by sympy.Symbol({name!r}, positive=True)"
        ) from error


_Key = tuple[IdentityKey, tuple[str, ...], tuple[str, ...] | None, tuple[tuple[str, float], ...]]


@lru_cache(maxsize=16)
def _unknowns(
    same: IdentityKey,
    kinds: tuple[str, ...],
    bodies: tuple[str, ...] | None,
    guess: tuple[tuple[str, float], ...],
) -> tuple[Unknowns, CompiledMechanism]:
    """The unknowns, and the functions of the model; kept for the mechanisms used last."""
    found = unknowns_of(same.mechanism, kinds, bodies, dict(guess))
    return found, compile(found.model)


@lru_cache(maxsize=16)
def _simulator(key: _Key, away: frozenset[str], h: float, integrator: str) -> Simulator:
    """The compiled steps of a mechanism with unknowns, without the limits that the record stays away from,
    and, as measured forces have acted, without the ranges of joints whose forces were measured.
    """
    unknowns = _unknowns(*key)[0]
    m = unknowns.mechanism

    def as_recorded(joint: Any) -> Any:
        joint = replace(joint, limits=None) if joint.name in away else joint
        has_range = not m.inputs and getattr(joint, "actuator_range", None) is not None
        return replace(joint, actuator_range=None) if has_range else joint

    bodies = [replace(b, joint=tuple(map(as_recorded, b.joints))) if b.joints else b for b in m.bodies]
    stateful = [f.name for f in m.forces if isinstance(f, Actuator) and f.states]
    if stateful:
        raise DescriptionError(
            f"actuator {stateful[0]!r} of mechanism {m.name!r} has states, of an activation or of a PID "
            "controller, which are not measured; leave it out, or give its force as the control of a motor"
        )
    return Simulator(unknowns, m.replace(bodies=bodies), h, integrator)


def _is_away(index: Any, q: np.ndarray) -> bool:
    """Whether a joint of one coordinate stays away from its limits."""
    limits = index.joint.limits
    if limits is None or index.kind not in ("revolute", "prismatic", "screw"):
        return False
    middle, half = sum(limits) / 2, (limits[1] - limits[0]) / 2
    return bool((np.abs(q[:, index.q] - middle) < INSIDE * half).all())


def _check_limits(model: Mechanism, simulated: Mechanism, q: np.ndarray) -> None:
    """Raises SolveError where a simulated coordinate exceeds limits that were left out."""
    for joint, other in zip(model.joints, simulated.joints, strict=True):
        if joint.joint.limits != other.joint.limits and not _is_away(joint, q.reshape(-1, q.shape[-1])):
            raise SolveError(
                f"the fitted motion of joint {joint.name!r} reaches its limits, and the record does not; "
                "give a shorter window, or a nearer model"
            )


def _named(unknowns: Unknowns, priors: Priors
           ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Indices, values and precisions of the priors of single parameters."""
    index = [index_of(unknowns.parameters, name) for name in priors]
    means = np.array([mean for mean, _ in priors.values()], dtype=float)
    return np.array(index, dtype=int), means, np.array([1 / s for _, s in priors.values()], dtype=float)


def _prior(unknowns: Unknowns, spread: float, bounds: Bounds) -> Divergence:
    """The divergence from the model, with the bounds of the scalars."""
    if not 0 < spread < np.inf:
        raise StateError(f"spread is {spread}; it must be positive and finite")
    n = unknowns.inertial
    lower, upper = unknowns.least.copy(), np.full(len(unknowns.least), np.inf)
    for name, (low, high) in bounds.items():
        k = index_of(unknowns.parameters, name)
        if k < n:
            raise DescriptionError(f"bounds of {name!r}: an inertial parameter has none; give a prior")
        lower[k - n], upper[k - n] = bounds_above(lower[k - n], name, low, high)
    x0 = unknowns.start[n:]
    return Divergence.of(unknowns.start, np.where(x0 == 0, 1.0, np.abs(x0)), lower, upper)


def _start(prior: Divergence, rng: np.random.Generator | None) -> np.ndarray:
    """The parameters of the model, or random consistent ones about it, within the bounds."""
    p = prior.start()
    if rng is None:
        return p
    n = 10 * len(prior.inverses)
    for k in range(0, n, 10):
        U = np.linalg.cholesky(pseudo_inertia(p[k : k + 10]))
        U = U @ (np.diag(np.exp(START * rng.normal(size=4))) + np.tril(START * rng.normal(size=(4, 4)), -1))
        p[k : k + 10] = parameters_of_pseudo_inertia(U @ U.T)
    room = np.minimum(p[n:] - prior.lower, prior.upper - p[n:])
    p[n:] += np.where(np.isfinite(room), room, prior.scale) * rng.uniform(-0.7, 0.7, len(p) - n)
    return p
