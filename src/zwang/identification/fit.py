"""The fit of a mechanism's parameters to measurements, with intervals of what the data can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy  # its statistics load when they are first used
from scipy.linalg import block_diag

from zwang.api.arguments.validation import numeric_mechanism
from zwang.errors import DescriptionError, SolveError, StateError, UnknownNameError
from zwang.identification.base_parameters import BaseParameters, Combinations, Status, base_parameters
from zwang.identification.consistent_fit import (
    consistent_parameters,
    raised,
    scales,
    whitened,
    with_parameters,
)
from zwang.identification.fit_settings import Bounds, Priors, bounds_above, check_level, pairs_of, priors_of
from zwang.identification.force_model import (
    MOTOR,
    STRIBECK_FORCE,
    STRIBECK_VELOCITY,
    ForceModel,
    force_model,
)
from zwang.identification.linear_estimation import Estimator, LinearEstimate, Loss
from zwang.identification.lmi_fit import parameters_by_lmi
from zwang.identification.measurements import Measurements
from zwang.identification.nonlinear_estimation import estimate_forces
from zwang.identification.parameters import INERTIAL_KINDS, Parameter, index_of
from zwang.identification.pseudo_inertia import (
    PSEUDO_INERTIA_UNITS,
    is_consistent,
    pseudo_inertia,
    relative,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments

RIDGE = 1e-4  # root of the weight of the model besides bounds, in standard deviations of the data
OMITTED = ("offset", STRIBECK_FORCE, STRIBECK_VELOCITY, MOTOR)  # kinds of parameters that no mechanism has
UNDETERMINED = 1e-12  # relative singular value of a direction that neither the data nor the priors tell


@dataclass(frozen=True)
class Fit:
    """Parameters fitted to measurements: only `beta` is what the data tell, each with its interval.

    model: the mechanism with the parameters before. base: the base parameters, beta = B pi. estimate: the
    linear estimate, with its covariance. pi (parameters,): parameters that reproduce beta as well as their
    constraints allow, near those of the model where the data say nothing. consistent: whether pi is
    physically consistent by construction. level: of the intervals. train, test: the samples of the fit, and
    those that are held back. freedom: degrees of freedom of the intervals.
    misfit: the squared distance |C^-1/2 (B pi - beta)|^2 of pi from the estimate with the covariance C.
    largest_misfit: what errors of the forces let it exceed with a probability of at most 1 - level, where a
    consistent mechanism within the bounds produces the data.
    """

    model: Mechanism
    kinds: tuple[str, ...] | None
    base: BaseParameters
    estimate: LinearEstimate
    pi: np.ndarray
    consistent: bool
    level: float
    freedom: float
    train: Measurements
    test: Measurements | None
    forces: ForceModel
    misfit: float
    largest_misfit: float

    @property
    def beta(self) -> np.ndarray:
        """Estimates of the base parameters (n,)."""
        return self.estimate.beta

    @property
    def standard_deviation(self) -> np.ndarray:
        """Standard deviations of beta (n,)."""
        return np.linalg.norm(self.estimate.root, axis=1)

    @property
    def interval(self) -> np.ndarray:
        """Confidence intervals of beta (n, 2), each of the probability `level`, by Student's distribution."""
        half = scipy.stats.t.ppf((1 + self.level) / 2, self.freedom) * self.standard_deviation
        return np.stack([self.beta - half, self.beta + half], axis=1)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism with the fitted parameters pi, in which what the data do not tell is near the model.

        The inertia of bodies that are rigidly attached to a moving body is in that body. Offsets, Stribeck
        friction and motor constants are left out; `omitted` has them.
        Raises DescriptionError where pi is not physically consistent, which consistent=True excludes.
        """
        found = with_parameters(self.model, self.base.parameters, self.pi)
        return self.forces.fitted(found, self.base.parameters, self.pi)

    @property
    def omitted(self) -> dict[str, float]:
        """The fitted offsets, Stribeck friction and motor constants by name, which `mechanism` leaves out as
        its joints have none.
        """
        values = zip(self.base.parameters, self.pi, strict=True)
        return {p.name: float(x) for p, x in values if p.kind in OMITTED}

    @property
    def outside(self) -> tuple[int, ...]:
        """The base parameters whose value by pi lies outside their interval, and the one that is farthest
        from its estimate, where the data contradict every pi; else none.

        All values together decide: of many intervals some do not contain the true value.
        """
        if self.misfit <= self.largest_misfit:
            return ()
        away = np.abs(self.base.matrix @ self.pi - self.beta) / np.ptp(self.interval, axis=1)
        return tuple(int(i) for i in np.flatnonzero(away >= min(0.5, away.max())))

    def status(self, name: str) -> Status:
        """Whether data can tell a parameter "alone", only "combined" with others, or not ("invisible")."""
        names = [p.name for p in self.base.parameters]
        if name not in names:
            raise UnknownNameError("parameter", name, names)
        return self.base.status(names.index(name))

    def residuals(self, samples: Measurements) -> np.ndarray:
        """Measured forces less those by beta (inner samples, nv) [N m, N], filtered as in the fit; with
        closed loops those at the independent joints.
        """
        sampled = self.forces.at(samples)
        return samples.filtered(sampled.reduced(samples.tau) - sampled.forces(self.beta))

    def measured(self, samples: Measurements) -> np.ndarray:
        """The measured forces (inner samples, nv), filtered and reduced as in the fit."""
        closure = self.forces.closure
        tau = samples.tau
        if closure is not None:
            tau = (tau[:, None] @ closure.transformation(samples.q))[:, 0]
        return samples.filtered(tau)

    @property
    def force_names(self) -> tuple[str, ...]:
        """The generalised velocities of the columns of `residuals`."""
        return self.forces.names

    def is_consistent(self) -> bool:
        """Whether the inertia of every body in pi is that of a distribution of positive mass."""
        bodies = sum(p.kind == "mass" for p in self.base.parameters)
        return all(is_consistent(self.pi[10 * k : 10 * k + 10]) for k in range(bodies))


@validated_arguments()
def fit(
    mechanism: Mechanism,
    samples: Measurements | Sequence[Measurements],
    *,
    kinds: Sequence[str] | None = None,
    estimator: Estimator = "weighted",
    loss: Loss = "linear",
    priors: Priors | None = None,
    bounds: Bounds | None = None,
    consistent: bool | Literal["lmi"] = True,
    held_back: float = 0.2,
    level: float = 0.95,
    tolerance: float = 1e-7,
    stribeck: Sequence[str] = (),
    motors: Sequence[str] = (),
    independent: Sequence[str] | None = None,
) -> Fit:
    """Parameters of a mechanism fitted to measured forces, by linear least squares on base parameters, and
    with friction or motor constants that enter nonlinearly, by the Gauss-Newton method on them.

    mechanism: the model; its parameters complete what the data do not tell. samples: see
    `zw.identify.measurements`; of several trials of one mechanism a sequence, `train` and `test` of the
    result are then joined. kinds: as for `regressor`; name "friction" for dry friction. The inertia,
    armature, damping, stiffness and dry friction of kinds that are not named are those of the model.
    estimator: "weighted" (default) weighs each joint by the error of its forces, which a first pass
    estimates; "ordinary" weighs all alike; "total" (total least squares) assumes errors in the regressor
    too, in each column as large, relative to it, as those of the forces.
    loss: "linear" (default), or "huber" for outliers.
    priors: (value, standard deviation) of parameters by name, from a scale or from CAD; an infinite deviation
    tells nothing. bounds: (lower, upper) by name.
    consistent: whether pi is physically consistent by construction (default): each body is a distribution of
    positive mass, and armature, damping and friction are not negative. "lmi" does so by a semidefinite
    program with linear matrix inequalities, near the model in the sense of least squares, and takes bounds
    of all parameters; it needs the extra zwang[lmi]. The intervals are always those of the
    unconstrained estimate, so that they hold for any true value.
    held_back: the fraction of samples at the end of each trial that is held back for cross-validation.
    level: probability of the intervals. tolerance: as for `base_parameters`.

    The coefficients mu of `zw.CoulombFriction` in joints of the mechanism are fitted too: friction mu L
    sign v by the load L of the bearing. The part of the load that the forces do not tell, such as masses,
    follows the priors, and is else that of the model; the interval of mu does not contain its error.
    stribeck: joints with the friction s exp(-(v / w)^2) sign v besides that of kinds="friction"; its force s
    and velocity w are "stribeck_JOINT" and "stribeck_velocity_JOINT".
    motors: joints whose measured force is a signal, such as a current, and whose constant "motor_JOINT",
    force by signal (torque constant times gear ratio), is unknown. The constant of at least one joint must be
    known.
    independent: the joints of a mechanism with closed loops whose forces are used, as for `regressor`. Forces
    of passive joints in tau are 0.

    Errors of the forces must not depend on the motion; those of q, v and a, other than with "total", must be
    small: give `measurements` a cutoff. Correlation of the errors in time is accounted for by the
    autocorrelation of the residuals, approximately where its time is not short against the record.

    Raises SolveError where the motion does not tell all base parameters, the samples are too few, pi is not
    found to the tolerance of its solver, or a Stribeck force is below two of its standard deviations or its
    velocity above the largest one of the joint; DescriptionError for constraints other than those above, for
    dry friction of tendons, for coefficients mu that depend on the coordinates, for constants of all motors,
    and for bounds of inertial parameters together with consistent=True;
    MissingExtraError for "lmi" without cvxpy;
    StateError and UnknownNameError for invalid settings.
    Sources: Gautier, Khalil (1990); Swevers et al., IEEE Control Systems 27(5) (2007) 58; Lee,
    Wensing, Park (2020); Armstrong-Helouvry, Dupont, Canudas de Wit (1994).
    """
    m = numeric_mechanism(mechanism)
    trials = [samples] if isinstance(samples, Measurements) else list(samples)
    _check_settings(m, trials, held_back, level, estimator, loss)
    train, test = (trials[0] if len(trials) == 1 else Measurements.joined(trials)).held_back(held_back)
    names = None if kinds is None else tuple(kinds)
    slow, driven = tuple(stribeck), tuple(motors)
    linear = base_parameters(m, kinds=names, tolerance=tolerance, independent=independent)
    forces = force_model(m, names, linear, slow, driven, independent)
    base = forces.base
    if estimator == "total" and not forces.is_linear:
        raise StateError('estimator="total" is for linear parameters; use "weighted"')
    model = np.array([float(p.value) for p in base.parameters])
    weighed = priors_of(priors, base.parameters)
    forces = replace(forces, priors=weighed)

    def combined(found: LinearEstimate) -> LinearEstimate:
        return _with_priors(base, found, model, weighed) if weighed else found

    found = estimate_forces(forces, train, estimator, loss, combined)
    n, extra = len(linear.parameters), len(base) - len(linear)
    model[n:] = found.beta[len(found.beta) - extra :]  # of these the model knows nothing
    known, root = Combinations(base.parameters, base.matrix), found.root
    beta = found.beta
    if found.pi is not None:
        known, beta, root = _with_weighed(known, found, found.pi, weighed)
    lower, upper = _bounds_of(base.parameters, bounds or {}, consistent)
    if consistent == "lmi":
        pi, converged = parameters_by_lmi(known, beta, root, model, (lower, upper))
    elif consistent:
        result = consistent_parameters(known, beta, root, model, (lower, upper))
        pi, converged = result.pi, result.converged
    else:
        pi, converged = _nearest_parameters(known, beta, root, model, lower, upper)
    if not converged:
        raise SolveError(
            "the parameters that complete the base parameters were not found to the solver's tolerance; use "
            "samples with a lower condition number, other bounds, or another value of consistent"
        )
    rows = len(train) * len(forces.names)
    freedom = max((rows - len(base)) / float(found.correlation.max()), 1.0)
    misfit = _misfit(known, beta, root, model, pi)
    largest = len(beta) * float(scipy.stats.f.ppf(level, len(beta), freedom))
    return Fit(m, names, base, found, pi, bool(consistent), level, freedom, train, test, forces, misfit,
               largest)  # fmt: skip


def _misfit(
    base: Combinations, beta: np.ndarray, root: np.ndarray, model: np.ndarray, pi: np.ndarray
) -> float:
    """|C^-1/2 (B pi - beta)|^2 of parameters pi that minimise it within their constraints. That of true
    parameters within them is not less, and with estimated variances is distributed as n F(n, freedom).
    """
    M, target = whitened(base, beta, root, model)
    return float(np.linalg.norm(M @ pi - target) ** 2)


def _check_settings(m: Mechanism, trials: Sequence[Measurements], held_back: float, level: float,
                    estimator: str, loss: str) -> None:  # fmt: skip
    if not trials:
        raise StateError("samples has no trials; give one Measurements at least")
    for samples in trials:
        if samples.q.shape[1:] != (m.nq,) or samples.tau.shape[1:] != (m.nv,):
            raise StateError(
                f"the samples have nq = {samples.q.shape[-1]} and nv = {samples.tau.shape[-1]}; mechanism "
                f"{m.name!r} has nq = {m.nq} and nv = {m.nv}"
            )
    if not 0 <= held_back <= 0.9:
        raise StateError(f"held_back is {held_back}; it must be between 0 and 0.9")
    check_level(level)
    if estimator == "total" and loss == "huber":
        raise StateError('estimator="total" has no loss="huber"; choose one of them')


def _with_priors(base: BaseParameters, found: LinearEstimate, model: np.ndarray, priors: Priors
                 ) -> LinearEstimate:  # fmt: skip
    """beta and its covariance with priors of single parameters, by the rule of Gauss and Markov, and the
    parameters pi, which are those of the model in what neither the data nor the priors determine.

    In the parameters pi the information matrix is A^T A = B^T C^-1 B + diag(1 / s^2).
    """
    B = base.matrix
    precision, value = np.zeros(len(model)), model.copy()
    for name, (mean, deviation) in priors.items():
        k = index_of(base.parameters, name)
        precision[k], value[k] = 1 / deviation, mean
    A = np.vstack([np.linalg.solve(found.root, B), np.diag(precision)])
    y = np.concatenate([np.linalg.solve(found.root, found.beta - B @ model), precision * (value - model)])
    size = np.linalg.norm(A, axis=0)
    size = np.where(size > 0, size, 1)
    U, s, Vt = np.linalg.svd(A / size, full_matrices=False)
    told = s > UNDETERMINED * s[0]
    inverse = (Vt[told].T / s[told]) / size[:, None]
    pi = model + inverse @ (U[:, told].T @ y)
    return replace(found, beta=B @ pi, root=B @ inverse, pi=pi)


def _with_weighed(
    base: Combinations, found: LinearEstimate, pi: np.ndarray, priors: Priors
) -> tuple[Combinations, np.ndarray, np.ndarray]:
    """The base parameters and the parameters with priors, which those that complete the base parameters keep:
    combinations, values and root of the covariance. pi: the estimate with the priors.
    """
    chosen = [index_of(base.parameters, name) for name in priors]
    deviations = [deviation for _, deviation in priors.values()]
    matrix = np.vstack([base.matrix, np.eye(len(pi))[chosen]])
    root = np.asarray(block_diag(found.root, np.diag(deviations)))
    return base._replace(matrix=matrix), np.concatenate([found.beta, pi[chosen]]), root


def _bounds_of(parameters: tuple[Parameter, ...], bounds: Bounds, consistent: bool | str
               ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(lower, upper) of all parameters; 0 below those that are not negative where `consistent`."""
    lower, upper = np.full(len(parameters), -np.inf), np.full(len(parameters), np.inf)
    for k, p in enumerate(parameters):
        if consistent and p.is_nonnegative:
            lower[k] = 0
    for name, (low, high) in pairs_of(bounds, "bounds"):
        k = index_of(parameters, name)
        if consistent is True and parameters[k].kind in INERTIAL_KINDS:
            raise DescriptionError(
                f"bounds of {name!r}: an inertial parameter has no bounds together with consistent=True; "
                'give a prior, or consistent="lmi" or False'
            )
        lower[k], upper[k] = bounds_above(lower[k], name, low, high)
    return lower, upper


def _nearest_parameters(
    base: Combinations, beta: np.ndarray, root: np.ndarray, model: np.ndarray, lower: np.ndarray,
    upper: np.ndarray,
) -> tuple[np.ndarray, bool]:  # fmt: skip
    """pi within bounds that reproduces beta, nearest to the model in units of `scales`: of a body relative to
    its pseudo-inertia, of other parameters as in `consistent_fit`.
    """
    M, target = whitened(base, beta, root, model)
    first = 10 * [p.kind for p in base.parameters].count("mass")
    bodies = [raised(pseudo_inertia(part)) for part in model[:first].reshape(-1, 10)]
    units = [1 / np.linalg.norm(relative(PSEUDO_INERTIA_UNITS, P), axis=(1, 2)) for P in bodies]
    scale = np.concatenate([*units, scales(M[:, first:], target, model[first:])])
    A, y = M * scale, target - M @ model
    if not np.isfinite(lower).any() and not np.isfinite(upper).any():
        return model + scale * np.linalg.lstsq(A, y, rcond=None)[0], True
    A = np.vstack([A, RIDGE * np.eye(len(model))])
    y = np.concatenate([y, np.zeros(len(model))])
    done = scipy.optimize.lsq_linear(A, y, ((lower - model) / scale, (upper - model) / scale), tol=1e-12)
    return model + scale * done.x, bool(done.success)
