"""Linear estimation of base parameters with covariances: least squares by joint, robust, or total.

The rows of all samples are whitened joint by joint. Errors of measured forces are correlated in time where
data are filtered; the covariance of the rows of a joint is therefore multiplied by the integrated
autocorrelation time of the joint's residuals, T = 1 + 2 sum_k rho_k up to the first rho_k <= 0 (Sokal 1997).
Both this time and the variance are corrected for the part of slow errors that the parameters take from the
residuals (`corrected_times`). For Huber's loss rho_k is that of the clipped residuals psi, as outliers would
hide the correlation of others.
Sources: Swevers et al. (1997) for weighting by joint; Huber, Robust Statistics (1981), Section
7.6; Golub, Van Loan, SIAM J. Numerical Analysis 17 (1980) 883 for total least squares; Demmel et al., SIAM J.
Scientific Computing 34 (2012) A206 for the QR factorisation of a tall matrix by blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular

from zwang.errors import SolveError

Estimator = Literal["weighted", "ordinary", "total"]
Loss = Literal["linear", "huber"]

LARGEST_RATIO = 1.4  # of the variances of errors and residuals, that of p T = 0.3 N
HUBER = (
    1.345  # standard deviations beyond which a residual counts linearly: 95 % efficiency for normal errors
)
MAD = 1.4826  # standard deviation of a normal distribution by its median absolute deviation
EXACT = 1e-8  # of the measured forces, the smallest standard deviation of their errors
ROUNDS = 50  # of reweighting at most
WORST_CONDITION = 1e8  # of the scaled regressor, beyond which the data do not tell the base parameters
CHUNK = 2000  # samples whose rows are computed or factorised at a time


@dataclass(frozen=True)
class LinearEstimate:
    """beta (n,) with a root F (n, m) of its covariance F F^T, which is accurate also where the covariance, of
    the squared condition number, is not positive definite by rounding; standard deviation of the force errors
    by joint (nv,) [N m, N]; autocorrelation times by joint (nv,) [samples]; condition numbers of the
    regressor as it is, which `zw.identify.excitation` minimises, and with its columns scaled to unit length,
    which does not depend on the units of the parameters; weights by joint (nv,) of the residuals that beta
    minimises. pi: with priors, the parameters of which beta consists.
    """

    beta: np.ndarray
    root: np.ndarray
    noise: np.ndarray
    correlation: np.ndarray
    condition: float
    scaled_condition: float
    weights: np.ndarray
    pi: np.ndarray | None = None

    @property
    def covariance(self) -> np.ndarray:
        """The covariance (n, n) of beta."""
        return self.root @ self.root.T


def estimate(
    W: np.ndarray,
    tau: np.ndarray,
    estimator: Estimator,
    loss: Loss,
    names: tuple[str, ...],
    lengths: tuple[int, ...] = (),
) -> LinearEstimate:
    """beta with tau = W beta, by least squares.

    W (N, nv, n), tau (N, nv). names: of the base parameters, for errors. lengths: the samples of each of
    several trials. Raises SolveError where the data do not tell all base parameters.
    """
    n = W.shape[-1]
    scale = np.sqrt(sum(np.einsum("tji,tji->i", W[part], W[part]) for part in chunks(len(W))))
    conditions = check_excitation(W, scale, names)
    if estimator == "total":
        return _total(W / scale, tau, scale, conditions, lengths)
    weights = np.ones(tau.shape[1])
    robust = np.ones(tau.shape)
    x = _least_squares(W, scale, tau, weights, robust)
    for _ in range(ROUNDS if loss == "huber" else int(estimator == "weighted")):
        residual = tau - W @ (x / scale)
        if estimator == "weighted":
            weights = 1 / error_deviations(residual, tau, n, loss)
        if loss == "huber":
            robust = robust_weights(residual / error_deviations(residual, tau, n, loss))
        before, x = x, _least_squares(W, scale, tau, weights, robust)
        if np.linalg.norm(x - before) <= 1e-10 * np.linalg.norm(x):
            break
    residual = tau - W @ (x / scale)
    noise = error_deviations(residual, tau, n, loss)
    bound = HUBER if loss == "huber" else np.inf
    psi = np.clip(residual / noise, -bound, bound)
    correlation, ratio = corrected_times(autocorrelation_times(psi, lengths), n / tau.size)
    variance = noise**2
    if loss == "huber":  # E psi^2 / (E psi')^2
        variance = variance * (psi**2).mean(axis=0) / (np.abs(psi) < bound).mean(axis=0) ** 2
    root = _sandwich(W, scale, weights, variance * ratio * correlation) / scale[:, None]
    return LinearEstimate(x / scale, root, noise, correlation, *conditions, weights)


def chunks(count: int) -> Iterator[slice]:
    """The samples in parts of `CHUNK`, so that memory is needed for the rows of few of them."""
    return (slice(begin, begin + CHUNK) for begin in range(0, count, CHUNK))


def triangular_factor(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """R (n, n) of the QR factorisation of the matrix of all blocks (rows, n), one below the other."""
    R: np.ndarray | None = None
    for block in blocks:
        R = np.asarray(np.linalg.qr(block if R is None else np.vstack([R, block]), mode="r"))
    assert R is not None
    return R


def condition_number(W: np.ndarray) -> float:
    """The ratio of the largest and the smallest singular value of W."""
    s = np.linalg.svd(W, compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > 0 else float("inf")


def check_excitation(W: np.ndarray, scale: np.ndarray, names: tuple[str, ...]) -> tuple[float, float]:
    """The condition numbers of W (N, nv, n), and with its columns scaled to unit length, by their lengths
    (n,). Raises SolveError where the latter is too large.
    """
    still, n = [name for name, size in zip(names, scale, strict=True) if not size > 0], len(scale)
    rows = W.shape[0] * W.shape[1]
    if rows < 2 * n:
        raise SolveError(
            f"{rows} measured forces are too few for {n} base parameters; give at least "
            f"{2 * n}, better a hundred times as many"
        )
    if still:
        raise SolveError(f"the motion does not excite {', '.join(still[:3])}; plan one with "
                         "zw.identify.excitation")  # fmt: skip
    R = triangular_factor((W[part] / scale).reshape(-1, n) for part in chunks(len(W)))
    condition = condition_number(R)
    if condition > WORST_CONDITION:
        weakest = np.linalg.svd(R)[2][-1]
        weak = [names[i] for i in np.argsort(-np.abs(weakest))[:3]]
        raise SolveError(
            f"the motion cannot tell apart {'; '.join(weak)}: the condition number of the base regressor "
            f"with columns of unit length is {condition:.1e}; move all joints, also at the same time: "
            "zw.identify.excitation plans a motion"
        )
    return condition_number(R * scale), condition


def autocorrelation_times(residual: np.ndarray, lengths: tuple[int, ...] = ()) -> np.ndarray:
    """Integrated autocorrelation time T >= 1 (nv,) [samples] of the residuals (N, nv) of each joint.

    lengths: the samples of each of several trials, between which there is no correlation.
    """
    trials = np.split(residual - residual.mean(axis=0), np.cumsum(lengths)[:-1])
    n = max(map(len, trials))
    spectrum = sum(np.abs(np.fft.rfft(x, 2 * n, axis=0)) ** 2 for x in trials)
    rho = np.fft.irfft(spectrum, axis=0)[: n // 2]
    times = np.ones(residual.shape[1])
    for j, column in enumerate(rho.T):
        if column[0] > 0:
            negative = np.flatnonzero(column <= 0)
            end = int(negative[0]) if len(negative) else len(column)
            times[j] = max(1.0, 1 + 2 * float((column[1:end] / column[0]).sum()))
    return times


def corrected_times(times: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The autocorrelation times T (nv,) of errors by those T0 of residuals from which parameters were fitted,
    and the ratio (nv,) of the variances of the errors and of the residuals with N - p degrees of freedom.

    share: p / N, of p parameters fitted to N rows. The parameters of slow motions take about p T of the N
    parts of the residuals, those of low frequencies, in which correlated errors have their variance. Both are
    therefore less by the factor (1 - p T / N) / (1 - p / N); T solves T0 = T times this factor. Where p T is
    no small part of N, what is left in the residuals tells little, and `LARGEST_RATIO` is taken.
    """
    s = min(share, 0.5)
    ratio = 2 * (1 - s) / (1 + np.sqrt(np.maximum(1 - 4 * s * (1 - s) * times, 0)))
    ratio = np.minimum(ratio, LARGEST_RATIO)
    return times * ratio, ratio


def robust_weights(residual: np.ndarray) -> np.ndarray:
    """Weights by which the squares of residuals, by their standard deviations, have Huber's influence."""
    return np.sqrt(np.minimum(1, HUBER / np.maximum(np.abs(residual), 1e-300)))


def _least_squares(
    W: np.ndarray, scale: np.ndarray, tau: np.ndarray, weights: np.ndarray, robust: np.ndarray
) -> np.ndarray:
    """x (n,) of the least weighted residuals of tau = W (x / scale)."""

    def columns(part: slice) -> np.ndarray:
        factor = weights * robust[part]
        rows = factor[..., None] * (W[part] / scale)
        return np.column_stack([rows.reshape(-1, len(scale)), (factor * tau[part]).ravel()])

    R = triangular_factor(map(columns, chunks(len(W))))
    return solve_triangular(R[:-1, :-1], R[:-1, -1])


def error_deviations(residual: np.ndarray, tau: np.ndarray, n: int, loss: Loss) -> np.ndarray:
    """Standard deviation of the residuals by joint; that of normal errors without outliers for Huber. It is
    at least that of exact data, whose residuals are rounding errors and tell nothing.
    """
    if loss == "huber":
        size = MAD * np.median(np.abs(residual), axis=0)
    else:
        freedom = len(residual) - n / residual.shape[1]
        size = np.sqrt((residual**2).sum(axis=0) / freedom)
    return np.maximum(size, EXACT * max(float(np.sqrt(np.mean(tau**2))), 1e-300))


def _sandwich(W: np.ndarray, scale: np.ndarray, weights: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """A root F (n, n) of F F^T = H^-1 G H^-1, with H = sum_j w_j^2 A_j^T A_j and
    G = sum_j w_j^4 s_j^2 A_j^T A_j of the scaled columns A = W / scale.

    variance (nv,): s_j^2 = sigma_j^2 T_j, for Huber's loss with sigma_j^2 E psi^2 / (E psi')^2 instead of
    sigma_j^2 (Huber 1981, Section 7.6).
    """
    n = len(scale)

    def rows(part: slice) -> np.ndarray:
        return weights[:, None] * (W[part] / scale)

    # H = R^T R, and G = R^T M R with M = sum_j w_j^2 s_j^2 Q_j^T Q_j of the orthonormal columns Q = w A R^-1
    R = triangular_factor(rows(part).reshape(-1, n) for part in chunks(len(W)))
    M = np.zeros((n, n))
    for part in chunks(len(W)):
        Q = solve_triangular(R, rows(part).reshape(-1, n).T, trans=1).T.reshape(-1, *W.shape[1:])
        Q *= (weights * np.sqrt(variance))[:, None]
        M += Q.reshape(-1, n).T @ Q.reshape(-1, n)
    return solve_triangular(R, np.linalg.cholesky(M))


def _total(A: np.ndarray, tau: np.ndarray, scale: np.ndarray, conditions: tuple[float, float],
           lengths: tuple[int, ...]) -> LinearEstimate:  # fmt: skip
    """Total least squares on [A tau], each joint's rows whitened, each column scaled to the length of tau.

    The errors of every column are taken to be as large, relative to the column, as those of tau.
    """
    n = A.shape[-1]
    first = estimate(A, tau, "weighted", "linear", tuple(map(str, range(n))))
    rows = (A / first.noise[:, None]).reshape(-1, n)
    y = (tau / first.noise).ravel()
    length = np.linalg.norm(y)
    columns = np.linalg.norm(rows, axis=0)
    Z = rows * (length / columns)
    R = np.asarray(np.linalg.qr(np.column_stack([Z, y]), mode="r"))
    _, s, Vt = np.linalg.svd(R)
    _, of_columns, V = np.linalg.svd(R[:-1, :-1])
    if not of_columns[-1] > s[-1] or abs(Vt[-1, -1]) < 1e-12:
        raise SolveError(
            "total least squares has no solution: the errors are as large as the weakest column; excite the "
            'motion more, or use estimator="weighted"'
        )
    x = -Vt[-1, :-1] / Vt[-1, -1]
    back = length / columns / scale
    beta = x * back
    residual = tau - A @ (beta * scale)
    correlation, ratio = corrected_times(autocorrelation_times(residual, lengths), n / tau.size)
    # C = T e^2 (1 + |x|^2) (Z^T Z - s^2)^-1 with the smallest singular value s of [Z y], e^2 = s^2 / freedom
    error = s[-1] * np.sqrt((1 + x @ x) * float((ratio * correlation).max()) / (len(y) - n))
    root = error * back[:, None] * V.T / np.sqrt((of_columns - s[-1]) * (of_columns + s[-1]))
    noise = error_deviations(residual, tau, n, "linear")
    return LinearEstimate(beta, root, noise, correlation, *conditions, 1 / noise)
