"""Trajectory optimisation by the iterative linear-quadratic regulator (iLQR).

    backward   Q_x = l_x + A^T V_x,          Q_u = l_u + B^T V_x
               Q_xx = l_xx + A^T V_xx A,     Q_uu = l_uu + B^T V_xx B,     Q_ux = B^T V_xx A
               k = -(Q_uu + mu D)^-1 Q_u,    K = -(Q_uu + mu D)^-1 Q_ux
               V_x = Q_x + (Q_ux - mu D K)^T k,    V_xx = Q_xx + (Q_ux - mu D K)^T K
               all of them as the Hessians of functions of (u, x, 1)
    forward    u' = u + alpha k + K (x' - x)      for several alpha at once, each in a world of its own

A, B are the exact derivatives of the steps, contacts included; deviations x' - x are in the tangent space.
Controls stay within their ranges, beyond which B is zero. At a bound towards which the cost decreases, the
feedback of a control is zero. D is diagonal: the median over the steps of the diagonal elements of Q_uu in
the first backward pass. So mu has no unit, and neither the units of the controls nor a factor of all weights
change the iteration. iLQR is differential dynamic programming (DDP) without the second derivatives of the
steps, and l_xx is that of Gauss and Newton. Source:
Li, Todorov, "Iterative linear quadratic regulator design for nonlinear biological movement systems" (ICINCO
2004); Tassa, Mansard, Todorov, "Control-limited differential dynamic programming" (ICRA 2014), Sections II
and III.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import get_lapack_funcs

from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import parameter_values
from zwang.api.arguments.settings_validation import positive
from zwang.api.arguments.validation import validated_arguments
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.api.compilation.feedback_rollout import acting_bounds
from zwang.control.quadratic import Quadratic, TrajectoryCost, cost_over_steps
from zwang.errors import ArgumentError, ShapeError, SimulationError

STEP_SIZES = 2.0 ** -np.arange(0, 8)  # alpha: one for each lane of a vector of the widest registers
(POSV,) = get_lapack_funcs(("posv",), dtype=np.float64)  # solves with a positive definite matrix
SMALLEST_REGULARISATION, LARGEST_REGULARISATION = 1e-8, 1e10  # mu
FIRST_REGULARISATION = 1e-6
SINGULAR = 1e-13  # pivot of Q_uu + mu D, relative to its diagonal element, that is a rounding error
ACCEPTED = 1e-4  # smallest share of the expected decrease of the cost that is accepted


class TrajectoryResult(NamedTuple):
    """An optimised trajectory.

    q, v, activation: (steps + 1, size). control (steps, nu). gain (steps, nu, n): the feedback K about it,
    see `feedback` of `ilqr`; zero where the backward pass finds none.
    cost, and costs: of all iterations. iterations. converged: whether the cost has stopped decreasing, or no
    step decreases it and the backward pass promises no decrease.
    """

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    control: np.ndarray
    gain: np.ndarray
    cost: float
    costs: tuple[float, ...]
    iterations: int
    converged: bool


class _Trajectory(NamedTuple):
    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    u: np.ndarray
    cost: float


class _Trajectories(NamedTuple):
    """As `_Trajectory`, each array with the worlds first."""

    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    u: np.ndarray
    costs: np.ndarray

    def world(self, k: int) -> _Trajectory:
        """The trajectory of one world."""
        return _Trajectory(self.q[k], self.v[k], self.z[k], self.u[k], float(self.costs[k]))


class _Policy(NamedTuple):
    """The change k (steps, nu) of the controls, the feedback K (steps, nu, n), the decrease of the cost that
    they promise to first and second order, and the diagonals of Q_uu (steps, nu).
    """

    k: np.ndarray
    K: np.ndarray
    decrease: tuple[float, float]
    diagonals: np.ndarray

    @property
    def scale(self) -> np.ndarray:
        """The diagonal of D (nu,): the median of the diagonal elements of Q_uu that are positive; 1 where
        none is, so that the control neither costs nor acts.
        """
        return np.array([np.median(x[x > 0]) if (x > 0).any() else 1.0 for x in self.diagonals.T])


@validated_arguments()
def ilqr(
    fast: CompiledMechanism,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    control: npt.ArrayLike,
    cost: Quadratic,
    *,
    activation: npt.ArrayLike = (),
    step: float | None = None,
    integrator: str | None = None,
    time: float = 0.0,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    iterations: int = 100,
    tolerance: float = 1e-6,
    feedback: bool = True,
) -> TrajectoryResult:
    """Controls that minimise a quadratic cost over a trajectory, from a first guess of them.

    fast: the compiled mechanism, without symbols. q0 (nq,), v0 (nv,), activation (nz,): the start. control
    (steps, nu): the guess. step, integrator: as for `CompiledMechanism.step`. time [s]: of the start; a plan
    in a running loop begins at the present time, as constraints and set points may depend on it. bounds: the
    lowest and highest controls, each a number or (nu,), within the control ranges of the inputs, which always
    bound the controls. iterations: at most, 0 for the rollout of the guess.
    tolerance: of the relative decrease of the cost at which the method ends. feedback: whether `gain` is the
    feedback about the result, which takes the time of one more backward pass and of the derivatives along
    the result. If not, it is that of the last iteration, about the trajectory before; near convergence they
    agree.
    Raises ShapeError, StateError, ArgumentError for bounds without room and for negative `iterations` or
    `tolerance`, SimulationError for a guess that fails and for a trajectory with a step whose derivatives are
    not finite, and what `step_derivatives` raises.
    """
    if iterations < 0 or not 0 <= tolerance < np.inf:
        raise ArgumentError(
            f"iterations ({iterations}) must not be negative, and tolerance ({tolerance}) not negative and "
            "finite"
        )
    m, u = fast.mechanism, validation.real_values(control, "control")
    parameter_values(m, None)
    lowest, highest = acting_bounds(m, bounds)
    steps, nu = len(u) if u.ndim else 0, len(lowest)
    if u.shape != (steps, nu):
        raise ShapeError(f"control must have the shape (steps, {nu} inputs); its shape is {u.shape}")
    start = (
        validation.configuration(m, validation.vector(q0, m.nq, "q0", "nq")),
        validation.vector(v0, m.nv, "v0", "nv"),
        validation.activation_vector(m, activation),
    )
    h = m.options.timestep if step is None else positive(step, "step")
    times = time + h * np.arange(steps + 1)
    options = {"step": step, "integrator": integrator}
    over_steps = cost_over_steps(cost, fast, steps, start[2].size, nu)
    problem = _Problem(fast, over_steps, times, options, lowest, highest)
    best = problem.rollout(start, np.clip(u, lowest, highest))
    if not np.isfinite(best.cost):
        raise SimulationError("the rollout of the first guess fails: give controls that keep it finite")
    return _descent(problem, best, iterations, tolerance, feedback)


def _descent(
    problem: _Problem, best: _Trajectory, iterations: int, tolerance: float, feedback: bool
) -> TrajectoryResult:
    """The trajectory after the iteration from a first one."""
    costs, regularisation, converged, has_failed = [best.cost], FIRST_REGULARISATION, False, False
    derivatives: np.ndarray | None = None
    scale: np.ndarray | None = None
    gain = np.zeros((*best.u.shape, problem.cost.W.shape[1]))
    for _ in range(iterations):
        if derivatives is None:
            derivatives = problem.derivatives(best)
        while (policy := problem.policy(best, derivatives, regularisation, scale)) is None:
            regularisation *= 10
            if regularisation > LARGEST_REGULARISATION:
                break
        if scale is None and policy is not None:
            scale = policy.scale
        new = None if policy is None else problem.improved(best, policy)
        if new is None or policy is None:
            plain = None if has_failed else problem.policy(best, derivatives, SMALLEST_REGULARISATION, scale)
            has_failed = True
            if plain is not None:
                gain = plain.K
                converged = -sum(plain.decrease) <= tolerance * abs(best.cost)
            regularisation *= 10
            if converged or regularisation > LARGEST_REGULARISATION:
                break
            continue
        regularisation = max(regularisation / 5, SMALLEST_REGULARISATION)
        converged, has_failed = best.cost - new.cost <= tolerance * abs(best.cost), False
        best, derivatives, gain = new, None, policy.K
        costs.append(best.cost)
        if converged:
            break
    if feedback:
        derivatives = problem.derivatives(best) if derivatives is None else derivatives
        gain = problem.gain(best, derivatives, scale)
    return TrajectoryResult(
        best.q, best.v, best.z, best.u, gain, best.cost, tuple(costs), len(costs) - 1, bool(converged)
    )


def _check_finite(A: np.ndarray, B: np.ndarray) -> None:
    """Raises SimulationError, with the first step whose derivatives A, B (steps, n, ...) are not finite."""
    finite = np.isfinite(A).all(axis=(1, 2)) & np.isfinite(B).all(axis=(1, 2))
    if not finite.all():
        raise SimulationError(
            f"step {int(np.argmin(finite))} of the trajectory has derivatives that are not finite numbers: "
            "a force or constraint has no derivative in its state; start from another state or other controls"
        )


class _Problem(NamedTuple):
    """The mechanism, the cost, the times (steps + 1,) of the states, the options of the steps, and the
    bounds of the controls.
    """

    fast: CompiledMechanism
    cost: TrajectoryCost
    times: np.ndarray
    options: dict[str, Any]
    lowest: np.ndarray
    highest: np.ndarray

    def rollout(self, start: tuple[np.ndarray, ...], u: np.ndarray) -> _Trajectory:
        """The trajectory under given controls."""
        still = [np.broadcast_to(x, (len(u), x.size)) for x in start]
        return self._rollouts(start, u[None], np.zeros((*u.shape, self.cost.W.shape[1])), still).world(0)

    def _rollouts(self, start: Any, u: np.ndarray, gain: np.ndarray, reference: Any) -> _Trajectories:
        """The trajectories under controls (worlds, steps, nu) and feedback, from one start."""
        q, v, z = (np.broadcast_to(x, (len(u), x.size)) for x in start)
        run = self.fast.feedback_rollout(
            q, v, u, gain, reference, activation=z, time=self.times[0], bounds=(self.lowest, self.highest),
            **self.options,
        )  # fmt: skip
        states = [np.concatenate([x[:, None], y], axis=1) for x, y in zip((q, v, z), run, strict=False)]
        costs = self.cost.of(states[0], states[1], states[2], run.control)
        return _Trajectories(states[0], states[1], states[2], run.control, costs)

    def derivatives(self, at: _Trajectory) -> np.ndarray:
        """F = [B A 0; 0 0 1] (steps, n + 1, nu + n + 1) along a trajectory, in one batch: (du, dx, 1) to
        (dx', 1).
        """
        found = self.fast.step_derivatives(
            at.q[:-1], at.v[:-1], at.u, activation=at.z[:-1], time=self.times[:-1], **self.options
        )
        _check_finite(found.A, found.B)
        steps, n, nu = found.B.shape
        F = np.zeros((steps, n + 1, nu + n + 1))
        F[:, :n, :nu], F[:, :n, nu:-1], F[:, n, -1] = found.B, found.A, 1
        return F

    def policy(
        self, at: _Trajectory, F: np.ndarray, mu: float, scale: np.ndarray | None = None
    ) -> _Policy | None:
        """The backward pass; None if a Hessian is not positive definite, up to rounding.

        Gradients are the last column and row of the Hessians, which belong to the constant 1. scale (nu,):
        the diagonal of D; without it D is the diagonal of Q_uu, where this is not zero, and differs between
        the steps.
        """
        H = self.cost.expansion(at.q, at.v, at.z, at.u)
        nu = at.u.shape[1]
        V = H[-1, nu:, nu:]
        K, Q_u, diagonals = np.zeros((*at.u.shape, len(V))), np.zeros_like(at.u), np.zeros_like(at.u)
        mu_D = np.zeros_like(at.u) if scale is None else np.tile(mu * scale, (len(at.u), 1))
        at_lowest, at_highest = at.u <= self.lowest, at.u >= self.highest
        at_bound: np.ndarray = np.any(at_lowest | at_highest, axis=1)
        for i in reversed(range(len(at.u))):
            # Q = F^T V F + the cost of the step
            Q = F[i].T @ (V @ F[i]) + H[i]
            Q_ux, Q_u[i] = Q[:nu, nu:], Q[:nu, -1]
            # [K k] = -(Q_uu + mu D)^-1 [Q_ux Q_u]
            Q_uu = Q[:nu, :nu].copy()
            diagonals[i] = Q_uu.diagonal()
            if scale is None:
                mu_D[i] = mu * np.where(diagonals[i] > 0, diagonals[i], 1.0)
            Q_uu.flat[:: nu + 1] += mu_D[i]
            if at_bound[i]:  # controls at a bound towards which the cost decreases stay there
                held = np.flatnonzero((at_lowest[i] & (Q_u[i] > 0)) | (at_highest[i] & (Q_u[i] < 0)))
                Q_uu[held], Q_uu[:, held], Q_uu[held, held] = 0, 0, 1
                Q_ux = Q_ux.copy()
                Q_ux[held] = 0
            factor, solved, info = POSV(Q_uu, Q_ux)
            if info or (factor.diagonal() ** 2 <= SINGULAR * Q_uu.diagonal()).any():
                return None
            K[i] = -solved
            V = Q[nu:, nu:] - (Q_ux + mu_D[i, :, None] * solved).T @ solved
            V = (V + V.T) / 2
        k = K[:, :, -1]
        # k^T Q_u, and k^T Q_uu k / 2 = -k^T (Q_u + mu D k) / 2
        decrease = float((k * Q_u).sum()), float(-(k * (Q_u + mu_D * k)).sum() / 2)
        return _Policy(k, K[:, :, :-1], decrease, diagonals)

    def gain(self, at: _Trajectory, F: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
        """The feedback K about a trajectory without regularisation, or with the smallest for which the
        backward pass succeeds; zeros if there is none.
        """
        mu = 0.0
        while mu <= LARGEST_REGULARISATION:
            if (policy := self.policy(at, F, mu, scale)) is not None:
                return policy.K
            mu = max(10 * mu, SMALLEST_REGULARISATION)
        return np.zeros((*at.u.shape, self.cost.W.shape[1]))

    def improved(self, at: _Trajectory, policy: _Policy) -> _Trajectory | None:
        """The best trajectory under the policy over all step sizes, each in a world; None if none is
        better.
        """
        start, controls = (at.q[0], at.v[0], at.z[0]), at.u + STEP_SIZES[:, None, None] * policy.k
        found = self._rollouts(start, controls, policy.K, (at.q, at.v, at.z))
        first, second = policy.decrease
        expected = -(STEP_SIZES * first + STEP_SIZES**2 * second)
        decrease = at.cost - found.costs
        accepted = np.flatnonzero((decrease >= ACCEPTED * np.maximum(expected, 0)) & (decrease > 0))
        return found.world(accepted[np.argmin(found.costs[accepted])]) if len(accepted) else None
