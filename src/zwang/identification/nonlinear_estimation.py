"""Estimation of unknowns that enter the forces nonlinearly, by the Gauss-Newton method on linear estimates.

Each iteration is a linear estimation, with its weights by joint, its loss and its covariance, of the forces
linearised at the last unknowns. For given Stribeck velocities w, and with the loads of the model, the
equations are linear in all other unknowns; the start is the best of some w (variable projection). Source:
Golub, Pereyra, Inverse Problems 19 (2003) R1.
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
from zwang.identification.linear_estimation import HUBER, Estimator, LinearEstimate, Loss, estimate
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
OUTSIDE = 3.0  # of the largest velocity: a Stribeck velocity beyond this is not told

Combine = Callable[[LinearEstimate], LinearEstimate]


def estimate_forces(
    model: ForceModel, samples: Measurements, estimator: Estimator, loss: Loss, combine: Combine
) -> LinearEstimate:
    """The estimate of all unknowns of the model.

    combine: an estimate with what is known besides the data, such as priors. Raises SolveError where the data
    do not tell the unknowns, or the iteration does not converge.
    """
    sampled, names = model.at(samples), model.base.combinations
    measured = samples.filtered(sampled.reduced(samples.tau))
    if model.is_linear:
        known, W = sampled.linearised(np.zeros(len(model.base)))
        measured = measured - samples.filtered(known)
        return combine(estimate(samples.filtered(W), measured, estimator, loss, names))
    theta = _start(model, samples, sampled, measured)
    residuals = _Residuals(model, samples, sampled, measured, loss)
    for _ in range(ITERATIONS):
        f, J = sampled.linearised(theta)
        W, r = samples.filtered(J), measured - samples.filtered(f)
        found = combine(estimate(W, r + W @ theta, estimator, loss, names))
        step = found.beta - theta
        deviation = np.sqrt(np.diag(found.covariance))
        rounding = ROUNDING * np.linalg.norm(measured) / np.linalg.norm(W.reshape(-1, len(theta)), axis=0)
        if (np.abs(step) <= np.maximum(CONVERGED * deviation, rounding)).all():
            _check(model, samples, theta)
            return replace(found, beta=theta)
        is_near = (np.abs(step) <= NEAR * deviation).all()
        theta = theta + step if is_near else residuals.searched(found, theta, step)
    others = [p.name for p in model.base.parameters[len(model.linear.parameters) :]]
    raise SolveError(
        f"the fit of {', '.join(others[:3])} has not converged in {ITERATIONS} iterations; leave out joints "
        "without Stribeck friction or with a known motor constant, give a motion with more slow parts, or "
        "samples with less noise"
    )


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
        size = np.abs(self.measured - self.samples.filtered(self.sampled.forces(theta))) * weights
        if self.loss == "huber":
            return float(np.where(size <= HUBER, size**2, 2 * HUBER * size - HUBER**2).sum())
        return float((size**2).sum())

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


def _start(
    model: ForceModel, samples: Measurements, sampled: SampledForces, measured: np.ndarray
) -> np.ndarray:
    """theta by linear least squares for the best of some Stribeck velocities, joint by joint."""
    theta = _initial(model, samples, sampled, measured)
    best = _projected(model, samples, sampled, measured, theta)
    for name, k in zip(model.stribeck, model.columns_of(STRIBECK_VELOCITY), strict=True):
        for fraction in FRACTIONS:
            tried = best[1].copy()
            tried[k] = fraction * _fastest(model, samples, name)
            best = min(best, _projected(model, samples, sampled, measured, tried), key=lambda x: x[0])
    return best[1]


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
    model: ForceModel, samples: Measurements, sampled: SampledForces, measured: np.ndarray, theta: np.ndarray
) -> tuple[float, np.ndarray]:
    """The sum of squares, and theta, with all but Stribeck velocities and motor constants by linear least
    squares, with the loads of the model.
    """
    linear = theta.copy()
    linear[model.columns_of(STRIBECK_FORCE) + model.columns_of(LOAD_FRICTION)] = 0
    linear[: len(model.linear)] = np.array([float(x) for x in model.linear.values])
    rows = slice(None, None, max(1, len(measured) // STARTING_ROWS))
    W, y = samples.filtered(sampled.linearised(linear)[1])[rows], measured[rows]
    size = np.maximum(np.sqrt((y**2).mean(axis=0)), 1e-300)
    fixed = model.columns_of(STRIBECK_VELOCITY) + model.columns_of(MOTOR)
    free = [k for k in range(len(theta)) if k not in fixed]
    A, b = (W[..., free] / size[:, None]).reshape(-1, len(free)), (y / size).ravel()
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    x = np.linalg.lstsq(A / scale, b, rcond=1e-10)[0] / scale
    found = theta.copy()
    found[free] = x
    return float(((A @ x - b) ** 2).sum()), found


def _check(model: ForceModel, samples: Measurements, theta: np.ndarray) -> None:
    """Raises SolveError for Stribeck velocities at which the friction is another one."""
    for name, k in zip(model.stribeck, model.columns_of(STRIBECK_VELOCITY), strict=True):
        if abs(theta[k]) > OUTSIDE * _fastest(model, samples, name):
            raise SolveError(
                f"the Stribeck velocity of joint {name!r} would be {abs(theta[k]):.3g}, far above its "
                "largest velocity, so that the data do not tell Stribeck friction from dry friction; leave "
                "the joint out of stribeck="
            )
