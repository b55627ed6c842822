"""Nonlinear least squares of simulated against measured coordinates, with physically consistent parameters.

The unknowns are the parameters p, and the starts x_w of the windows, which enter the residuals of their own
window only. For a given change of p their best changes are those of a linear problem by window, so that they
are eliminated. With the thin factorisation dr_w/dx_w = Q_w R_w, a step minimises

    1/2 sum_w |(1 - Q_w Q_w^T)(r_w + J_w dp)|^2 + d(p | p_0) / s^2 + mu d(p | p_now),
    dx_w = -R_w^-1 Q_w^T (r_w + J_w dp).

The divergence d is infinite where a body is no distribution of positive mass (`consistent_fit`), so that
every iterate is consistent; the problem is convex, and Newton's method solves it. mu d(p | p_now) takes the
place of the damping of Levenberg and Marquardt, and is independent of units. While the
residuals are many times their deviations, errors of linearisation count as data errors would: mu is
proportional to the mean square of the weighted residuals. Several mu are tried in one batch of simulations.

Sources: Marquardt, J. SIAM 11 (1963) 431; Lee, Wensing, Park (2020) for d; Bock, in Modelling of Chemical
Reaction Systems (1981) 102 for windows; Golub, Pereyra, SIAM J. Numerical Analysis 10 (1973) 413 for the
elimination.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from zwang.api.compilation.compiled import CompiledMechanism
from zwang.identification.consistent_fit import Divergence, minimised
from zwang.identification.linear_estimation import HUBER, Loss, robust_weights
from zwang.identification.simulation.sensitivities import Simulator, Windows

FACTORS = np.array([0.0, 1e-2, 1.0])  # mu by the mean square of the residuals, tried together
FURTHER = np.array([10.0, 1e3, 1e5])  # tried if none of these decreases the cost
LEAST_DROP = 1e-6  # relative decrease of the cost below which the method has converged
ROUNDING = 1e-13  # relative size of the eigenvalues of J^T J that rounding cannot tell from zero


@dataclass(frozen=True)
class Target:
    """What is fitted.

    q (W, samples + 1, nq): measured, with the weights (W, samples + 1, nv) of the residuals [1/rad, 1/m].
    prior: the divergence d from the model, with the weight 1 / s^2. named: indices of single parameters with
    their values and precisions by priors. loss: of the residuals. v, v_precision (W, nv): a first guess
    of the velocities at the starts, which holds them near it while the parameters are far from the solution.
    with_starts: whether the starts are unknown. counts: of the windows of each trial.
    """

    q: np.ndarray
    weights: np.ndarray
    prior: Divergence
    prior_weight: float
    named: tuple[np.ndarray, np.ndarray, np.ndarray]
    loss: Loss
    v: np.ndarray
    v_precision: np.ndarray
    with_starts: bool
    counts: tuple[int, ...]


class Linearisation(NamedTuple):
    """Weighted residuals (W, rows), and their derivatives by the parameters (W, rows, n), and by the starts
    (W, rows, 2 nv), empty where these are known.
    """

    residuals: np.ndarray
    by_parameters: np.ndarray
    by_starts: np.ndarray

    def eliminated(self, J: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The residuals and the derivatives J (W, rows, n) less what changes of the starts explain; and Q."""
        if not self.by_starts.shape[-1]:
            return self.residuals, J, None
        Q = np.linalg.qr(self.by_starts)[0]
        Qt = Q.swapaxes(-1, -2)
        r = self.residuals[..., None]
        return (r - Q @ (Qt @ r))[..., 0], J - Q @ (Qt @ J), Q


@dataclass(frozen=True)
class Iterate:
    """p with the starts of the windows. cost; rms: of the weighted residuals, 1 where they are as large as
    their deviations. costs: of all iterates. reason: why the method ended, empty where it has not converged.
    """

    p: np.ndarray
    windows: Windows
    cost: float
    rms: float
    costs: tuple[float, ...] = field(default=())
    reason: str = ""


class System(NamedTuple):
    """The linear problem |M p - target|^2 at an iterate, its linearisation, and Q of the starts."""

    M: np.ndarray
    target: np.ndarray
    at: Linearisation
    Q: np.ndarray | None


@dataclass(frozen=True)
class OutputError:
    """The least-squares problem of the windows of all records."""

    simulator: Simulator
    model: CompiledMechanism
    target: Target

    def values(self, p: np.ndarray) -> np.ndarray:
        """The values of the symbols."""
        return self.simulator.unknowns.values(p)[0]

    def residuals(self, q: np.ndarray) -> np.ndarray:
        """Weighted differences (..., W, rows) of measured and simulated configurations."""
        target = self.target
        measured = np.broadcast_to(target.q, q.shape)
        difference = self.model.difference_configuration(measured, q) * target.weights
        return difference.reshape(*q.shape[:-2], -1)

    def discretisation(self, p: np.ndarray, windows: Windows) -> np.ndarray:
        """Bound (W, rows) of the errors of the residuals by the size of the steps."""
        coarse, fine = self.simulator.discretisation(windows, self.values(p))
        change = self.model.difference_configuration(fine, coarse) * self.target.weights
        return 2 * np.nan_to_num(change, nan=1e100).reshape(len(coarse), -1)

    def cost(self, residuals: np.ndarray, p: np.ndarray, v: np.ndarray) -> float:
        """Half the sum of squares, or of Huber's function, and of the priors; v: at the starts."""
        t = self.target
        size = np.minimum(np.abs(residuals), 1e100)
        if t.loss == "huber":
            rho = np.where(size <= HUBER, size**2 / 2, HUBER * (size - HUBER / 2))
        else:
            rho = size**2 / 2
        index, value, precision = t.named
        named = precision * (p[index] - value)
        guesses = (t.v_precision * (v - t.v)) ** 2
        total = rho.sum() + guesses.sum() / 2 + (named @ named) / 2
        total += t.prior_weight * (t.prior.value(p) - t.prior.value(t.prior.start()))
        return float(total) if np.isfinite(total) else float("inf")

    def linearised(self, p: np.ndarray, windows: Windows) -> Linearisation:
        """Residuals and derivatives at p, with the weights of the loss."""
        at = self.differentiated(p, windows)
        if self.target.loss != "huber":
            return at
        robust = robust_weights(at.residuals)
        weighted = (x * robust[..., None] for x in (at.by_parameters, at.by_starts))
        return Linearisation(at.residuals * robust, *weighted)

    def differentiated(self, p: np.ndarray, windows: Windows) -> Linearisation:
        """Residuals and derivatives at p. The derivative of the difference of two attitudes is taken to be
        that of small differences.
        """
        t = self.target
        values, by_p = self.simulator.unknowns.values(p)
        q, _, S, X = self.simulator.derivatives(windows, values, t.with_starts)
        r = self.residuals(q)
        weights = t.weights[..., None]
        J = (-weights * (S @ by_p)).reshape(*r.shape, len(p))
        Jx = (-weights * X).reshape(*r.shape, X.shape[-1])
        return Linearisation(r, J, Jx)

    def solved(
        self,
        p: np.ndarray,
        windows: Windows,
        iterations: int,
        stop_at: float | None,
        least_drop: float = LEAST_DROP,
    ) -> Iterate:
        """The minimum found from p; the method ends where the residuals are as small as `stop_at`, or the
        cost decreases by less than the fraction `least_drop`.
        """
        q, _ = self.simulator.trajectory(windows, self.values(p))
        r = self.residuals(q)
        now = Iterate(p, windows, self.cost(r, p, windows.v), self._rms(r))
        now = replace(now, costs=(now.cost,))
        for _ in range(iterations):
            if stop_at is not None and now.rms <= stop_at:
                return replace(now, reason="the residuals are as small as asked")
            if not np.isfinite(now.cost):
                return replace(now, reason="the simulation of the start fails")
            system = self._system(now)
            found = self._improved(now, system, FACTORS) or self._improved(now, system, FURTHER)
            if found is None:
                return replace(now, reason="converged: no step decreases the cost")
            drop, now = now.cost - found.cost, found
            if drop <= least_drop * max(now.cost, 1.0):
                return replace(now, reason="converged: the cost no longer decreases")
        return now

    def _improved(self, now: Iterate, system: System, factors: np.ndarray) -> Iterate | None:
        """The best of the steps for several mu; None if none decreases the cost."""
        t = self.target
        tried = []
        for mu in now.rms**2 * factors:
            kappa = t.prior_weight + mu
            nearer = t.prior.joined(now.p, mu / kappa)
            tried.append(minimised(system.M, system.target, nearer, kappa, now.p)[0])
        parameters = np.array(tried)
        moved = self._moved_starts(now, system, parameters - now.p)
        q, _ = self.simulator.trajectory(moved, np.array([self.values(p) for p in parameters]))
        r = self.residuals(q)
        costs = [self.cost(*parts) for parts in zip(r, parameters, moved.v, strict=True)]
        best = int(np.argmin(costs))
        if not costs[best] < now.cost:
            return None
        windows = now.windows.moved(moved.q[best], moved.v[best])
        return Iterate(parameters[best], windows, costs[best], self._rms(r[best]), (*now.costs, costs[best]))

    def _system(self, now: Iterate) -> System:
        """The linear least-squares problem at an iterate, with the priors of single parameters as rows."""
        at = self._with_guesses(self.linearised(now.p, now.windows), now.windows.v)
        r, J, Q = at.eliminated(at.by_parameters)
        J, flat = J.reshape(-1, len(now.p)), r.ravel()
        # |r + J dp|^2 = |M p - target|^2 + const with M = L^1/2 V^T, J^T J = V L V^T
        size = np.linalg.norm(J, axis=0)
        size = np.where(size > 0, size, 1)
        scaled = J / size
        eigenvalues, V = np.linalg.eigh(scaled.T @ scaled)
        kept = eigenvalues > ROUNDING * eigenvalues[-1]
        root, V = np.sqrt(eigenvalues[kept]), V[:, kept]
        M = root[:, None] * V.T * size
        target = M @ now.p - (V.T @ (scaled.T @ flat)) / root
        index, value, precision = self.target.named
        rows = precision[:, None] * np.eye(len(now.p))[index]
        return System(np.concatenate([M, rows]), np.concatenate([target, precision * value]), at, Q)

    def _with_guesses(self, at: Linearisation, v: np.ndarray) -> Linearisation:
        """The linearisation with rows for the first guesses of the velocities v at the starts."""
        t = self.target
        if not t.with_starts:
            return at
        nv = v.shape[-1]
        rows = np.zeros((len(v), nv, 2 * nv))
        rows[:, range(nv), nv + np.arange(nv)] = t.v_precision
        J = np.zeros((len(v), nv, at.by_parameters.shape[-1]))
        parts = (t.v_precision * (v - t.v), J, rows)
        return Linearisation(*(np.concatenate(pair, axis=1) for pair in zip(at, parts, strict=True)))

    def _moved_starts(self, now: Iterate, system: System, steps: np.ndarray) -> Windows:
        """The windows with the starts that belong to each change of p (m, n): q (m, W, nq), v (m, W, nv)."""
        q, v = (np.array(np.broadcast_to(x, (len(steps), *x.shape))) for x in (now.windows.q, now.windows.v))
        if system.Q is None:
            return now.windows.moved(q, v)
        at, nv, Qt = system.at, v.shape[-1], system.Q.swapaxes(-1, -2)
        R = Qt @ at.by_starts
        right = (Qt @ at.residuals[..., None])[..., 0] + np.einsum(
            "wxn,mn->mwx", Qt @ at.by_parameters, steps
        )
        dx = -np.linalg.solve(R[None], right[..., None])[..., 0]
        moved = self.model.integrate_configuration(q, np.ascontiguousarray(dx[..., :nv]), 1.0)
        return now.windows.moved(moved, v + dx[..., nv:])

    def _rms(self, residuals: np.ndarray) -> float:
        """Root mean square of the weighted residuals that count."""
        return float(np.sqrt((residuals**2).sum() / max(1, np.count_nonzero(self.target.weights))))
