"""The linear-quadratic regulator of a linear model."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from zwang.api.analysis.linearize import LinearModel
from zwang.api.arguments import validation
from zwang.api.arguments.validation import validated_arguments
from zwang.errors import ArgumentError, ShapeError, SimulationWarning, SolveError, StateError

ROUNDING = 1e-9  # of the elements of a weight, relative to the largest
NEWTON_STEPS = 12
ACCURATE = 1e-6  # largest relative change of the feedback in the last of Newton's steps
MARGIN = 1e-8  # of poles from the boundary of stability, relative to the largest, or to 1 if discrete


class Regulator(NamedTuple):
    """The feedback u = -K y for the deviations y of a linear model's states, and u of its inputs.

    K (m, n). cost (n, n): the cost from y is y^T cost y. poles (n,): of the closed loop.
    """

    K: np.ndarray
    cost: np.ndarray
    poles: np.ndarray


@validated_arguments("model")
def lqr(model: LinearModel, Q: npt.ArrayLike, R: npt.ArrayLike) -> Regulator:
    """The feedback that minimises the integral, or the sum over all steps, of y^T Q y + u^T R u.

    model: continuous or discrete, of `zw.linearize`. Q: (n, n) symmetric and positive semidefinite, or its
    diagonal (n,). R: (m, m) symmetric and positive definite, or its diagonal (m,).
    Gives a SimulationWarning for a model that is not `steady`, as it changes along the motion.
    The closed loop is asymptotically stable: the real parts of its poles are below -1e-8 times the largest
    pole, and the absolute values of those of a discrete model below 1 - 1e-8.
    Raises ArgumentError, also for other weights and for a model without inputs, StateError, ShapeError, and
    SolveError where no feedback stabilises the model so, Q does not see a state that does not decay by
    itself, or K is not accurate to 1e-6.
    Source: SciPy's solutions of the algebraic Riccati equations; Anderson, Moore, Optimal Control
    (1990), Chapters 2 and 3.
    """
    if not isinstance(model, LinearModel):
        raise ArgumentError(
            f"model is {validation.short_repr(model)}; it must be a LinearModel, such as "
            "zw.linearize(mechanism, q) returns"
        )
    n, m = model.B.shape
    if not n:
        raise ArgumentError("the model has no states, so that there is nothing to stabilise")
    if not m:
        raise ArgumentError(
            "the model has no inputs, so that no feedback acts on it; give zw.linearize inputs"
        )
    if not model.steady:
        warnings.warn(
            "the model is that of a state that moves or accelerates, and changes along the motion: its "
            "feedback holds for a moment only; linearise about an equilibrium, which zw.trim finds, or a "
            "steady motion, or take the gain of zw.control.ilqr along the motion",
            SimulationWarning,
            stacklevel=3,
        )
    q, r = _weight(Q, n, "Q"), _weight(R, m, "R")
    # inputs w with u = w / sqrt(diagonal), whose weights on the diagonal are 1
    diagonal = r.diagonal()
    T = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    r = r * np.outer(T, T)
    if not (diagonal > 0).all() or not np.linalg.eigvalsh(r).min() > 0:
        raise ArgumentError("R must be positive definite, so that every input has a cost")
    S, K = _Riccati(model.A, model.B * T, q, r, model.step is not None).solution()
    return Regulator(T[:, None] * K, S, np.linalg.eigvals(model.A - model.B @ (T[:, None] * K)))


class _Riccati(NamedTuple):
    """The algebraic Riccati equation of a model and the weights q, r of its states and inputs."""

    A: np.ndarray
    B: np.ndarray
    q: np.ndarray
    r: np.ndarray
    is_discrete: bool

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """The cost S (n, n) and the feedback K (m, n), by SciPy and a few of Newton's steps.

        S may be as large as q, or, where control is expensive, as the cost of the control that stabilises the
        model, |A| / |B|^2, or 1 / |B|^2 of a discrete model. SciPy's solution is tried in both units.
        Raises SolveError.
        """
        rate = 1.0 if self.is_discrete else float(np.abs(self.A).max(initial=0.0))
        units = np.array([np.abs(self.q).max(initial=0.0), rate / max(np.abs(self.B).max() ** 2, 1e-300)])
        errors: list[SolveError] = []
        for unit in np.where((units > 0) & np.isfinite(units), units, 1.0):
            try:
                return self._refined(self._by_scipy(float(unit)))
            except SolveError as error:
                errors.append(error)
            except (np.linalg.LinAlgError, ValueError) as error:
                errors.append(_without_solution(str(error)))
        raise errors[0]

    def _by_scipy(self, unit: float) -> np.ndarray:
        """S, from the equation for S / unit and inputs of which each has the weight 1."""
        solve = scipy.linalg.solve_discrete_are if self.is_discrete else scipy.linalg.solve_continuous_are
        return unit * solve(self.A, self.B * np.sqrt(unit), self.q / unit, self.r)

    def _refined(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """S and K after Newton's steps, of which each solves a Lyapunov equation of the closed loop. Raises
        SolveError for a closed loop that is not stable, and for a feedback that keeps changing.

        Source: Kleinman, "On an iterative technique for Riccati equation computations" (IEEE Transactions on
        Automatic Control 13, 1968); Hewer (16, 1971) for discrete models.
        """
        K, change = self._feedback(S), np.inf
        for _ in range(NEWTON_STEPS):
            self._check_stable(K)
            S = S + self._newton_step(S, K)
            S = (S + S.T) / 2
            new = self._feedback(S)
            last, change = change, np.abs(new - K).max() / max(np.abs(new).max(), 1e-300)
            K = new
            if change <= 1e-15 or (change < ACCURATE and change >= last / 2):
                break
        self._check_stable(K)
        if not change <= ACCURATE:
            raise SolveError(
                f"the feedback is known only up to a relative error of {change:.2g}, as the model or the "
                "weights are ill-conditioned; reduce the states, or give weights of more similar sizes"
            )
        return S, K

    def _feedback(self, S: np.ndarray) -> np.ndarray:
        """K = r^-1 B^T S, or (r + B^T S B)^-1 B^T S A of a discrete model."""
        BS = self.B.T @ S
        if self.is_discrete:
            return np.linalg.solve(self.r + BS @ self.B, BS @ self.A)
        return np.linalg.solve(self.r, BS)

    def _newton_step(self, S: np.ndarray, K: np.ndarray) -> np.ndarray:
        """The change D of S with F^T D + D F = -residual, or F^T D F - D = -residual, F = A - B K."""
        F, AS = self.A - self.B @ K, self.A.T @ S
        # of states in units in which the elements of F are of similar sizes: F = T G T^-1 with a diagonal T.
        # Small poles beside large elements make LAPACK perturb the equation
        G, (T, _) = scipy.linalg.matrix_balance(F, permute=False, separate=True)
        units = np.outer(T, T)
        if self.is_discrete:
            residual = AS @ self.A - S - K.T @ (self.r + self.B.T @ S @ self.B) @ K + self.q
            return scipy.linalg.solve_discrete_lyapunov(G.T, units * residual) / units
        residual = AS + AS.T - K.T @ self.r @ K + self.q
        return scipy.linalg.solve_continuous_lyapunov(G.T, -units * residual) / units

    def _check_stable(self, K: np.ndarray) -> None:
        """Raises SolveError for a pole of A - B K that is not stable, or only by less than the margin."""
        poles = np.linalg.eigvals(self.A - self.B @ K)
        size = np.abs(poles).max(initial=0.0)
        margin = 1 - np.abs(poles) if self.is_discrete else -poles.real / max(size, 1e-300)
        if (margin > MARGIN).all():
            return
        pole = f"the pole {poles[np.argmin(margin)]:.6g} of the closed loop is"
        if margin.min() > 0:
            beside = "" if self.is_discrete else f" of the largest, whose absolute value is {size:.2g}"
            raise _without_solution(
                f"{pole} stable by {margin.min():.1g} only{beside}",
                "a pole is nearer to the boundary of stability than the method resolves, or ",
            )
        raise _without_solution(f"{pole} not stable")


def _without_solution(reason: str, otherwise: str = "") -> SolveError:
    return SolveError(
        f"{otherwise}no feedback stabilises this model: a state that does not decay is not controlled, or Q "
        f"does not see it; reduce the states or change the weights ({reason})"
    )


def _weight(W: npt.ArrayLike, size: int, name: str) -> np.ndarray:
    array = validation.real_values(W, name)
    array = np.diag(array) if array.ndim == 1 else array
    if array.shape != (size, size):
        raise ShapeError(f"{name} must have the shape ({size}, {size}) or ({size},); it is {array.shape}")
    if not np.isfinite(array).all():
        raise StateError(f"{name} must hold finite numbers")
    largest = np.abs(array).max(initial=0.0)
    if np.abs(array - array.T).max(initial=0.0) > ROUNDING * largest:
        raise ArgumentError(f"{name} must be symmetric")
    array = (array + array.T) / 2
    if np.linalg.eigvalsh(array).min(initial=0.0) < -ROUNDING * largest:
        raise ArgumentError(f"{name} must have no negative eigenvalue, as it weighs squares")
    return array
