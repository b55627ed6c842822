"""Motors of limited torque that hold a mechanism: the balance of virtual work, by linear programming.

With the displacements v = B u that joint couplings and loops allow, torques tau of the joints balance
generalised forces Q if B^T (tau - Q) = 0. Motors without a limit balance what does work on their own motion:
there remains P (tau - Q) = 0 with the rows P of B^T along which they are at rest, and |tau_i| <= r_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from zwang.errors import SolveError
from zwang.robot.velocity_transformation import RANK, null_space

SOLVED, UNBOUNDED = 0, 3  # statuses of `scipy.optimize.linprog`
ROUNDING = 1e-9  # of shares of limits, relative to the largest


@dataclass(frozen=True)
class LimitedMotors:
    """The l motors with torques between -r and r, r > 0.

    P (k, nv): the displacements along which all other motors are at rest, one in each row. moves (nv,):
    which joints have these motors. limits (l,): r.
    """

    P: np.ndarray
    moves: np.ndarray
    limits: np.ndarray

    @staticmethod
    def of(B: np.ndarray, torque_limits: np.ndarray) -> LimitedMotors:
        """The motors of a velocity transformation B (nv, n) and torque limits (nv,): infinite ones hold any
        torque, 0 is that of passive joints.
        """
        moves = np.isfinite(torque_limits) & (torque_limits > 0)
        P = _null_space(B[np.isinf(torque_limits)]).T @ B.T
        return LimitedMotors(P, moves, torque_limits[moves])

    def balancing(self, Q: np.ndarray, scale: float) -> np.ndarray | None:
        """The least torques (l,) that balance Q (nv,), regardless of their limits.

        None if there are none: if Q does work on motions that no motor restrains. scale: of the numbers that
        make up Q.
        """
        L, work = self.P[:, self.moves], self.P @ Q
        tau = np.linalg.pinv(L, rcond=RANK) @ work
        return tau if np.abs(L @ tau - work).max(initial=0) <= RANK * scale else None

    def shares(self, Q: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """The least shares of the limits x (l, m) with which torques r x balance the columns of Q (nv, n) in
        the m combinations that can be balanced, and all n combinations (n, n), these first, in its columns.
        """
        L, work, N, n = self.P[:, self.moves], self.P @ Q, self._redundancy, Q.shape[1]
        tau = np.linalg.pinv(L, rcond=RANK) @ work
        x = tau / self.limits[:, None]
        x = x - N @ (np.linalg.pinv(N) @ x)
        # the combinations with the smallest remainders first
        _, s, Vt = np.linalg.svd(L @ tau - work)
        held = np.concatenate([np.zeros(n), s[::-1]])[-n:] <= RANK * scale
        axes = Vt[::-1].T
        return x @ axes[:, held], axes

    def least_used(self, tau: np.ndarray) -> np.ndarray | None:
        """Torques (l,) that balance the same forces as tau (l,), with the smallest largest share of their
        limits; None if it is above 1.
        """
        # the least t with |x + N z| <= t, x = tau / r
        x, N = tau / self.limits, self._redundancy
        if not N.shape[1]:
            return tau if np.abs(x).max(initial=0) <= 1 + ROUNDING else None
        bound = -np.ones((len(x), 1))
        A, b = np.block([[N, bound], [-N, bound]]), np.concatenate([-x, x])
        found = _minimum([*np.zeros(N.shape[1]), 1], A, b, free=N.shape[1])
        assert found is not None  # t is not negative
        x = x + N @ found[:-1]
        return x * self.limits if np.abs(x).max(initial=0) <= 1 + ROUNDING else None

    def largest_factor(self, tau: np.ndarray, load: np.ndarray) -> float:
        """The largest s for which torques that balance the forces of tau + s load are within the limits.

        tau (l,): within the limits. load (l,): the largest share of a limit is above 0.
        """
        # the largest s with |x + s y + N z| <= 1, y = load / r
        x, y, N = tau / self.limits, load / self.limits, self._redundancy
        unit = np.abs(y).max()
        if not N.shape[1]:
            loaded = np.abs(y) > ROUNDING * unit
            return max(0.0, float(np.min((1 - np.sign(y) * x)[loaded] / np.abs(y[loaded]))))
        A = np.block([[N, y[:, None] / unit], [-N, -y[:, None] / unit]])
        found = _minimum([*np.zeros(N.shape[1]), -1], A, np.concatenate([1 - x, 1 + x]), free=N.shape[1])
        return np.inf if found is None else float(found[-1] / unit)

    @property
    def _redundancy(self) -> np.ndarray:
        """Torques (l, m) that do no work, as shares of the limits."""
        N = _null_space(self.P[:, self.moves]) / self.limits[:, None]
        return N / np.abs(N).max(axis=0, initial=1e-300)


def _null_space(A: np.ndarray) -> np.ndarray:
    """The null space of A (m, n), which may have no rows or no columns."""
    return null_space(A) if A.size else np.eye(A.shape[1])


def _minimum(cost: Sequence[float], A: np.ndarray, b: np.ndarray, free: int) -> np.ndarray | None:
    """The x of the least cost . x with A x <= b, of which the first `free` may be negative; None if there is
    no least one. Raises SolveError.
    """
    bounds = [(None, None)] * free + [(0, None)]
    found = linprog(cost, A, b, bounds=bounds, options={"presolve": False})
    if found.status not in (SOLVED, UNBOUNDED):
        raise SolveError(
            f"the linear program of the torques failed: {found.message}; give torque limits of similar sizes"
        )
    return found.x if found.status == SOLVED else None
