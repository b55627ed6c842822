"""Trajectory optimisation by the iterative linear-quadratic regulator (iLQR).

    backward   Q_x = l_x + A^T V_x,          Q_u = l_u + B^T V_x
               Q_xx = l_xx + A^T V_xx A,     Q_uu = l_uu + B^T V_xx B + mu I,     Q_ux = B^T V_xx A
               k = -Q_uu^-1 Q_u,             K = -Q_uu^-1 Q_ux
    forward    u' = u + alpha k + K (x' - x)      for several alpha at once, each in a world of its own

A, B are the exact derivatives of the steps, contacts included; deviations x' - x are in the tangent space. At
the bounds of a control its feedback is zero. Source: Li, Todorov, "Iterative linear quadratic regulator
design for nonlinear biological movement systems" (ICINCO 2004); Tassa, Mansard, Todorov, "Control-limited
differential dynamic programming" (ICRA 2014), Sections II and III.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.api import validation
from zwang.api.compiled import CompiledMechanism
from zwang.api.validation import validated_arguments
from zwang.errors import ArgumentError, ShapeError, SimulationError

STEP_SIZES = 2.0 ** -np.arange(0, 11)  # alpha
SMALLEST_REGULARISATION, LARGEST_REGULARISATION = 1e-8, 1e10
ACCEPTED = 1e-4  # smallest share of the expected decrease of the cost that is accepted


@dataclass(frozen=True)
class Quadratic:
    """The cost sum_k (x_k - goal)^T W (x_k - goal) / 2 + u_k^T R u_k / 2, with other weights at the end.

    q (nq,): the configuration of the goal; its velocities and activations are zero. state, control, final:
    the diagonals of W (n,), R (nu,) and of W at the end (n,), of (dq, v, activation).
    """

    q: npt.ArrayLike
    state: npt.ArrayLike
    control: npt.ArrayLike
    final: npt.ArrayLike

    def deviations(self, fast: CompiledMechanism, q: Any, v: Any, z: Any) -> np.ndarray:
        """x - goal (..., n)."""
        dq = fast.difference_configuration(q, np.asarray(self.q, dtype=float))
        return np.concatenate([dq, v, z], axis=-1)

    def of(self, fast: CompiledMechanism, q: Any, v: Any, z: Any, u: Any) -> np.ndarray:
        """The cost (...) of states (..., steps + 1, size) and controls (..., steps, nu)."""
        x = self.deviations(fast, q, v, z)
        running = (x[..., :-1, :] ** 2 @ np.asarray(self.state)).sum(-1)
        effort = (u**2 @ np.asarray(self.control)).sum(-1)
        return (running + effort + x[..., -1, :] ** 2 @ np.asarray(self.final)) / 2


class TrajectoryResult(NamedTuple):
    """An optimised trajectory.

    q, v, activation: (steps + 1, size). control (steps, nu). gain (steps, nu, n): the feedback K about it.
    cost, and costs: of all iterations. iterations. converged: whether the cost has stopped decreasing.
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


class _Policy(NamedTuple):
    """The change k (steps, nu) of the controls, the feedback K (steps, nu, n), and the decrease of the cost
    that they promise to first and second order.
    """

    k: np.ndarray
    K: np.ndarray
    decrease: tuple[float, float]


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
    bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    iterations: int = 100,
    tolerance: float = 1e-6,
) -> TrajectoryResult:
    """Controls that minimise a quadratic cost over a trajectory, from a first guess of them.

    fast: the compiled mechanism, without symbols. q0 (nq,), v0 (nv,), activation (nz,): the start. control
    (steps, nu): the guess. step, integrator: as for `CompiledMechanism.step`. bounds: the lowest and highest
    controls, each a number or (nu,). iterations: at most. tolerance: of the relative decrease of the cost at
    which the method ends.
    Raises ShapeError, StateError, ArgumentError for bounds without room, SimulationError for a guess that
    fails, and what `step_derivatives` raises.
    """
    u = validation.array(control, "control")
    if u.ndim != 2:
        raise ShapeError(f"control must have the shape (steps, inputs); its shape is {u.shape}")
    lowest, highest = (-np.inf, np.inf) if bounds is None else checked_bounds(bounds, u.shape[1])
    if not np.all(lowest < highest):
        raise ArgumentError(f"bounds are {bounds!r}; every lowest control must be below the highest one")
    m = fast.mechanism
    start = (
        validation.vector(q0, m.nq, "q0", "nq"),
        validation.vector(v0, m.nv, "v0", "nv"),
        validation.array(activation, "activation"),
    )
    if start[2].ndim != 1:
        raise ShapeError(f"activation must have the shape (nz,); its shape is {start[2].shape}")
    validation.vector(cost.q, m.nq, "q of the cost", "nq")
    weights = _weights(cost, 2 * m.nv + start[2].size, u.shape[1])
    h = m.options.timestep if step is None else step
    times, options = h * np.arange(len(u)), {"step": step, "integrator": integrator}
    problem = _Problem(fast, cost, weights, times, options, lowest, highest)
    best = problem.rollout(start, np.clip(u, lowest, highest))
    if not np.isfinite(best.cost):
        raise SimulationError("the rollout of the first guess fails: give controls that keep it finite")
    costs, regularisation, converged, policy = [best.cost], 1e-6, False, None
    for _ in range(iterations):
        derivatives = problem.derivatives(best)
        while (policy := problem.policy(best, derivatives, regularisation)) is None:
            regularisation *= 10
            if regularisation > LARGEST_REGULARISATION:
                break
        new = None if policy is None else problem.improved(best, policy)
        if new is None:
            regularisation *= 10
            if regularisation > LARGEST_REGULARISATION:
                break
            continue
        regularisation = max(regularisation / 5, SMALLEST_REGULARISATION)
        converged = best.cost - new.cost <= tolerance * abs(best.cost)
        best = new
        costs.append(best.cost)
        if converged:
            break
    gain = np.zeros((*u.shape, len(weights[0]))) if policy is None else policy.K
    return TrajectoryResult(
        best.q, best.v, best.z, best.u, gain, best.cost, tuple(costs), len(costs) - 1, bool(converged)
    )


def checked_bounds(bounds: Sequence[npt.ArrayLike], nu: int) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest controls, each a number or (nu,). Raises ShapeError or StateError."""
    found = [validation.array(x, "bounds") for x in bounds]
    if any(x.shape not in ((), (nu,)) for x in found):
        raise ShapeError(
            f"bounds must be two numbers or arrays of the shape ({nu},); their shapes are "
            f"{', '.join(str(x.shape) for x in found)}"
        )
    return found[0], found[1]


def _weights(cost: Quadratic, n: int, nu: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights W (n,), R (nu,) and W at the end (n,). Raises ShapeError."""
    found = []
    for name, size in (("state", n), ("control", nu), ("final", n)):
        weights = validation.array(getattr(cost, name), f"{name} of the cost")
        if weights.shape != (size,):
            raise ShapeError(f"{name} of the cost must have the shape ({size},); it is {weights.shape}")
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ArgumentError(
                f"{name} of the cost is {weights.tolist()}; weights must be finite and not negative"
            )
        found.append(weights)
    return found[0], found[1], found[2]


class _Problem(NamedTuple):
    """The mechanism, the cost and its weights, the times and the options of the steps, and the bounds of the
    controls.
    """

    fast: CompiledMechanism
    cost: Quadratic
    weights: tuple[np.ndarray, np.ndarray, np.ndarray]
    times: np.ndarray
    options: dict[str, Any]
    lowest: Any
    highest: Any

    def rollout(self, start: tuple[np.ndarray, ...], u: np.ndarray) -> _Trajectory:
        """The trajectory under given controls."""
        run = self.fast.rollout(start[0], start[1], u, steps=len(u), activation=start[2], **self.options)
        q, v, z = [np.concatenate([x[None], y]) for x, y in zip(start, run, strict=True)]
        return _Trajectory(q, v, z, u, float(self.cost.of(self.fast, q, v, z, u)))

    def derivatives(self, at: _Trajectory) -> tuple[np.ndarray, np.ndarray]:
        """A (steps, n, n) and B (steps, n, nu) along a trajectory, in one batch."""
        found = self.fast.step_derivatives(
            at.q[:-1], at.v[:-1], at.u, activation=at.z[:-1], time=self.times, **self.options
        )
        return found.A, found.B

    def policy(
        self, at: _Trajectory, derivatives: tuple[np.ndarray, np.ndarray], regularisation: float
    ) -> _Policy | None:
        """The backward pass; None if a Hessian is not positive definite."""
        A, B = derivatives
        x = self.cost.deviations(self.fast, at.q, at.v, at.z)
        W, R, final = self.weights
        V_x, V_xx = final * x[-1], np.diag(final)
        k, K = np.zeros_like(at.u), np.zeros((*at.u.shape, A.shape[-1]))
        first = second = 0.0
        for i in reversed(range(len(at.u))):
            Q_x, Q_u = W * x[i] + A[i].T @ V_x, R * at.u[i] + B[i].T @ V_x
            V_xx_A = V_xx @ A[i]
            Q_xx, Q_ux = np.diag(W) + A[i].T @ V_xx_A, B[i].T @ V_xx_A
            Q_uu = np.diag(R) + B[i].T @ V_xx @ B[i]
            # controls at a bound towards which the cost decreases stay there
            held = ((at.u[i] <= self.lowest) & (Q_u > 0)) | ((at.u[i] >= self.highest) & (Q_u < 0))
            free = np.flatnonzero(~held)
            H = Q_uu[np.ix_(free, free)] + regularisation * np.eye(len(free))
            try:
                np.linalg.cholesky(H)
            except np.linalg.LinAlgError:
                return None
            k[i, free] = -np.linalg.solve(H, Q_u[free])
            K[i, free] = -np.linalg.solve(H, Q_ux[free])
            V_x = Q_x + K[i].T @ Q_uu @ k[i] + K[i].T @ Q_u + Q_ux.T @ k[i]
            V_xx = Q_xx + K[i].T @ Q_uu @ K[i] + K[i].T @ Q_ux + Q_ux.T @ K[i]
            V_xx = (V_xx + V_xx.T) / 2
            first, second = first + k[i] @ Q_u, second + k[i] @ Q_uu @ k[i] / 2
        return _Policy(k, K, (first, second))

    def improved(self, at: _Trajectory, policy: _Policy) -> _Trajectory | None:
        """The best trajectory under the policy over all step sizes, each in a world; None if none is
        better.
        """
        fast, worlds = self.fast, len(STEP_SIZES)
        q, v, z = (np.repeat(x[None, 0], worlds, axis=0) for x in (at.q, at.v, at.z))
        states, controls = [(q, v, z)], []
        for i in range(len(at.u)):
            dx = np.concatenate(
                [fast.difference_configuration(q, at.q[i]), v - at.v[i], z - at.z[i]], axis=-1
            )
            u = at.u[i] + STEP_SIZES[:, None] * policy.k[i] + dx @ policy.K[i].T
            u = np.clip(u, self.lowest, self.highest)
            q, v, z = fast.step(q, v, u, activation=z, time=self.times[i], **self.options)
            states.append((q, v, z))
            controls.append(u)
        found = [np.stack(x, axis=1) for x in zip(*states, strict=True)]
        u = np.stack(controls, axis=1)
        costs = self.cost.of(fast, found[0], found[1], found[2], u)
        costs = np.where(np.isfinite(costs), costs, np.inf)
        first, second = policy.decrease
        expected = -(STEP_SIZES * first + STEP_SIZES**2 * second)
        accepted = np.flatnonzero(at.cost - costs >= ACCEPTED * np.maximum(expected, 0))
        accepted = accepted[costs[accepted] < at.cost]
        if not len(accepted):
            return None
        k = accepted[np.argmin(costs[accepted])]
        return _Trajectory(found[0][k], found[1][k], found[2][k], u[k], float(costs[k]))
