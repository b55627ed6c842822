"""Estimation of unknowns that enter the forces nonlinearly, by the Gauss-Newton method on linear estimates.

Each iteration is a linear estimation, with its weights by joint, its loss and its covariance, of the forces
linearised at the last unknowns. For given Stribeck velocities w, and with the loads of the model, the
equations are linear in all other unknowns; the starts are the best of some w (variable projection), by the
loss of the fit. The sum of the losses has several minima, of which the lowest counts. Source: Golub, Pereyra,
Inverse Problems 19 (2003) R1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from zwang.errors import SolveError
from zwang.identification.force_model import (
    LOAD_FRICTION,
    MOTOR,
    STRIBECK_FORCE,
    STRIBECK_VELOCITY,
    ForceModel,
    SampledForces,
)
from zwang.identification.linear_estimation import (
    HUBER,
    Estimator,
    LinearEstimate,
    Loss,
    error_deviations,
    estimate,
    robust_weights,
)
from zwang.identification.measurements import Measurements

ITERATIONS = 60
CONVERGED = 1e-2  # largest step in standard deviations at which the iteration ends
ROUNDING = 1e-9  # relative change of the forces at which it ends for exact data
FRACTIONS = (0.01, 0.03, 0.1, 0.3)  # of the largest velocity, of which the start tries Stribeck velocities
STARTING_ROWS = 1500  # samples that the start uses
LARGEST_FACTORS = {STRIBECK_VELOCITY: 2.0, MOTOR: 10.0}  # by which an unknown may change in one iteration
NEAR = 0.3  # step in standard deviations up to which the equations are linear enough for a whole one
NEGLIGIBLE = 1e-7  # relative increase of the cost that counts as none
SHORTEST = 1e-4  # step of the line search
ALIKE = 0.3  # correlation of a signal with the model's forces from which a motor constant starts
OUTSIDE = 1.0  # of the largest velocity: a Stribeck velocity beyond this is not told
SIGNIFICANT = 2.0  # standard deviations of a Stribeck force from 0, below which its velocity is not told
NEGATIVE = 3.0  # standard deviations by which errors may make Stribeck friction negative
CONTRADICTED = 20.0  # -2 log of a ratio of likelihoods beyond which data contradict a minimum
STARTS = 3  # from which the iteration begins
STARTING_ROUNDS = 6  # of reweighting for a start

Combine = Callable[[LinearEstimate], LinearEstimate]


def estimate_forces(
    model: ForceModel, samples: Measurements, estimator: Estimator, loss: Loss, combine: Combine
) -> LinearEstimate:
    """The estimate of all unknowns of the model; of the minima that the iteration finds from several starts,
    the one with the lowest cost of the data, or a physical one whose cost is hardly larger.

    combine: an estimate with what is known besides the data, such as priors. Raises SolveError where the data
    do not tell the unknowns, the iteration does not converge, or the minimum is unphysical.
    """
    sampled, names = model.at(samples), model.base.combinations
    measured = samples.filtered(sampled.reduced(samples.tau))
    if model.is_linear:
        known, W = sampled.linearised(np.zeros(len(model.base)))
        measured = measured - samples.filtered(known)
        lengths = samples.inner_lengths
        return combine(estimate(samples.filtered(W), measured, estimator, loss, names, lengths))
    residuals = _Residuals(model, samples, sampled, measured, loss)
    found: list[LinearEstimate] = []
    errors: list[SolveError] = []
    for theta in _starts(residuals):
        try:
            found.append(_refined(residuals, theta, estimator, combine))
        except SolveError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return _chosen(residuals, found)


@dataclass(frozen=True)
class _Residuals:
    """The filtered residuals of unknowns theta, and their cost."""

    model: ForceModel
    samples: Measurements
    sampled: SampledForces
    measured: np.ndarray
    loss: Loss

    def cost(self, theta: np.ndarray, weights: np.ndarray) -> float:
        """The sum of the losses that the linear estimate minimises."""
        return _cost((self.measured - self.samples.filtered(self.sampled.forces(theta))) * weights, self.loss)

    def searched(self, found: LinearEstimate, theta: np.ndarray, step: np.ndarray) -> np.ndarray:
        """theta + length step, with the length halved until the cost does not increase."""
        length = 1.0
        for kind, factor in LARGEST_FACTORS.items():  # w and k keep their signs
            for k in self.model.columns_of(kind):
                room = (1 - 1 / factor) if step[k] * theta[k] < 0 else factor - 1
                length = min(length, room * abs(theta[k]) / max(abs(step[k]), 1e-300))
        now = self.cost(theta, found.weights)
        while length > SHORTEST:
            tried = theta + length * step
            if self.cost(tried, found.weights) <= (1 + NEGLIGIBLE) * now:
                return tried
            length /= 2
        return theta + length * step


def _cost(residuals: np.ndarray, loss: Loss) -> float:
    """The sum of the losses of weighted residuals."""
    size = np.abs(residuals)
    if loss == "huber":
        return float(np.where(size <= HUBER, size**2, 2 * HUBER * size - HUBER**2).sum())
    return float((size**2).sum())


def _refined(
    residuals: _Residuals, theta: np.ndarray, estimator: Estimator, combine: Combine
) -> LinearEstimate:
    """The minimum that the Gauss-Newton method finds from theta. Raises SolveError."""
    model, samples, measured = residuals.model, residuals.samples, residuals.measured
    for _ in range(ITERATIONS):
        f, J = residuals.sampled.linearised(theta)
        W, r = samples.filtered(J), measured - samples.filtered(f)
        found = combine(estimate(W, r + W @ theta, estimator, residuals.loss, model.base.combinations,
                                 samples.inner_lengths))  # fmt: skip
        step = found.beta - theta
        deviation = np.linalg.norm(found.root, axis=1)
        rounding = ROUNDING * np.linalg.norm(measured) / np.linalg.norm(W.reshape(-1, len(theta)), axis=0)
        if (np.abs(step) <= np.maximum(CONVERGED * deviation, rounding)).all():
            return replace(found, beta=theta)
        is_near = (np.abs(step) <= NEAR * deviation).all()
        theta = theta + step if is_near else residuals.searched(found, theta, step)
    others = [p.name for p in model.base.parameters[len(model.linear.parameters) :]]
    raise SolveError(
        f"the fit of {', '.join(others[:3])} has not converged in {ITERATIONS} iterations; leave out joints "
        "without Stribeck friction or with a known motor constant, give a motion with more slow parts, or "
        "samples with less noise"
    )


def _chosen(residuals: _Residuals, found: list[LinearEstimate]) -> LinearEstimate:
    """The minimum with the lowest cost; if it is unphysical, the lowest of the physical ones that the data do
    not contradict. Raises SolveError where there is none.
    """
    weights, count = found[0].weights, residuals.measured.size
    costs = [(residuals.cost(x.beta, weights), k) for k, x in enumerate(found)]
    lowest = max(min(costs)[0], 1e-300)
    reasons = [_unphysical(residuals, x) for x in found]
    allowed = [(c, k) for c, k in costs if not reasons[k]]
    # -2 log of the ratio of the likelihoods, with the standard deviation that the residuals have
    if not allowed or (min(allowed)[0] > lowest and count * np.log(min(allowed)[0] / lowest) > CONTRADICTED):
        raise SolveError(reasons[min(costs)[1]])
    chosen = found[min(allowed)[1]]
    _check_significance(residuals.model, chosen)
    return chosen


def _check_significance(model: ForceModel, found: LinearEstimate) -> None:
    """Raises SolveError for a Stribeck force that may be 0: its velocity then has no normal errors, and the
    intervals of both, and of dry friction, do not hold.
    """
    deviation = np.linalg.norm(found.root, axis=1)
    for name, k in zip(model.stribeck, model.columns_of(STRIBECK_FORCE), strict=True):
        if not found.beta[k] >= SIGNIFICANT * deviation[k]:
            raise SolveError(
                f"the data do not tell the Stribeck friction of joint {name!r}: its force is "
                f"{found.beta[k]:.3g}, with the standard deviation {deviation[k]:.3g}; give more slow "
                "motion, or leave the joint out of stribeck="
            )


def _starts(residuals: _Residuals) -> list[np.ndarray]:
    """The best theta by linear estimation for some Stribeck velocities, varied joint by joint."""
    model, samples = residuals.model, residuals.samples
    first = _initial(model, samples, residuals.sampled, residuals.measured)
    _, theta, errors = _projected(residuals, first, None)
    tried = [_projected(residuals, theta, errors)]
    for name, k in zip(model.stribeck, model.columns_of(STRIBECK_VELOCITY), strict=True):
        best = min(tried, key=lambda x: x[0])[1]
        for fraction in FRACTIONS:
            theta = best.copy()
            theta[k] = fraction * _fastest(model, samples, name)
            tried.append(_projected(residuals, theta, errors))
    return [theta for _, theta, _ in sorted(tried, key=lambda x: x[0])[:STARTS]]


def _initial(
    model: ForceModel, samples: Measurements, sampled: SampledForces, measured: np.ndarray
) -> np.ndarray:
    """The model's base parameters and coefficients, Stribeck velocities at the largest of each joint, and
    motor constants by which the signals are nearest to the model's forces.
    """
    theta = np.array([float(x) for x in model.base.values])
    for name, k in zip(model.stribeck, model.columns_of(STRIBECK_VELOCITY), strict=True):
        theta[k] = _fastest(model, samples, name)
    expected = samples.filtered(sampled.forces(theta))
    for name, k in zip(model.motors, model.columns_of(MOTOR), strict=True):
        row = model.names.index(name)
        u, f = measured[:, row], expected[:, row]
        # u = f / k by least squares; where they hardly agree, by their sizes
        size = np.sqrt((f @ f) / max(float(u @ u), 1e-300)) or 1.0
        along = float(u @ f)
        theta[k] = f @ f / along if abs(along) > ALIKE * np.sqrt((u @ u) * (f @ f)) else size
    return theta


def _fastest(model: ForceModel, samples: Measurements, joint: str) -> float:
    return float(np.abs(samples.v[:, model.mechanism.joint(joint).v.start]).max())


def _projected(
    residuals: _Residuals, theta: np.ndarray, errors: np.ndarray | None
) -> tuple[float, np.ndarray, np.ndarray]:
    """The cost, theta with all but Stribeck velocities and motor constants by linear estimation with the
    loads of the model, and the standard deviations of its residuals by joint.

    errors: standard deviations of the forces by joint; by default those of the measured forces, so that no
    residual counts as an outlier.
    """
    model, samples = residuals.model, residuals.samples
    linear = theta.copy()
    linear[model.columns_of(STRIBECK_FORCE) + model.columns_of(LOAD_FRICTION)] = 0
    linear[: len(model.linear)] = np.array([float(x) for x in model.linear.values])
    rows = slice(None, None, max(1, len(residuals.measured) // STARTING_ROWS))
    W, y = samples.filtered(residuals.sampled.linearised(linear)[1])[rows], residuals.measured[rows]
    loss: Loss = "linear" if errors is None else residuals.loss
    size = np.maximum(np.sqrt((y**2).mean(axis=0)), 1e-300) if errors is None else errors
    fixed = model.columns_of(STRIBECK_VELOCITY) + model.columns_of(MOTOR)
    free = [k for k in range(len(theta)) if k not in fixed]
    A, b = W[..., free] / size[:, None], y / size
    scale = np.maximum(np.linalg.norm(A.reshape(-1, len(free)), axis=0), 1e-300)
    robust = np.ones(b.shape)
    for _ in range(STARTING_ROUNDS if loss == "huber" else 1):
        weighted = (robust[..., None] * A / scale).reshape(-1, len(free))
        x = np.linalg.lstsq(weighted, (robust * b).ravel(), rcond=1e-10)[0] / scale
        r = b - A @ x
        robust = robust_weights(r)
    found = theta.copy()
    found[free] = x
    return _cost(r, loss), found, error_deviations(size * r, y, len(free), residuals.loss)


def _unphysical(residuals: _Residuals, found: LinearEstimate) -> str:
    """Why Stribeck friction is none, if its velocity is so large that it is another one, or it is negative
    beyond its errors; else empty.
    """
    model, theta, deviation = residuals.model, found.beta, np.linalg.norm(found.root, axis=1)
    for name, k in zip(model.stribeck, model.columns_of(STRIBECK_VELOCITY), strict=True):
        if abs(theta[k]) > OUTSIDE * _fastest(model, residuals.samples, name):
            return (
                f"the Stribeck velocity of joint {name!r} would be {abs(theta[k]):.3g}, above its largest "
                "velocity, so that the data do not tell Stribeck friction from dry friction; leave "
                "the joint out of stribeck="
            )
    for name, k in zip(model.stribeck, model.columns_of(STRIBECK_FORCE), strict=True):
        if theta[k] < -NEGATIVE * deviation[k]:
            return (
                f"the Stribeck friction of joint {name!r} would be {theta[k]:.3g}, so that friction would be "
                "smaller at rest than in motion; leave the joint out of stribeck="
            )
    return ""
