"""Linear estimation of base parameters with covariances: least squares by joint, robust, or total.

The rows of all samples are whitened by trial and joint. Errors of measured forces are correlated in time
where data are filtered; the covariance of the rows of a joint is therefore multiplied by the integrated
autocorrelation time of the joint's residuals, T = 1 + 2 sum_k rho_k up to the first rho_k <= 0 (Sokal 1997).
Trials may differ in both, as slow and fast ones do (`error_groups`).
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
SHORT = 200  # samples of a trial below which its residuals alone do not tell their correlation
CHUNK = 2000  # samples whose rows are computed or factorised at a time


@dataclass(frozen=True)
class LinearEstimate:
    """beta (n,) with a root F (n, m) of its covariance F F^T, which is accurate also where the covariance, of
    the squared condition number, is not positive definite by rounding; standard deviation of the force errors
    by joint (nv,) [N m, N], of several trials the root mean square; autocorrelation times by joint (nv,)
    [samples], of several trials the harmonic mean; condition numbers of the regressor as it is, which
    `zw.identify.excitation` minimises, and with its columns scaled to unit length, which does not depend on
    the units of the parameters; weights (N, nv) of the residuals that beta minimises. pi: with priors, the
    parameters of which beta consists.
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
    weights = robust = np.broadcast_to(1.0, tau.shape)
    x = _least_squares(W, scale, tau, weights)
    for _ in range(ROUNDS if loss == "huber" else int(estimator == "weighted")):
        residual = tau - W @ (x / scale)
        errors = force_errors(residual, tau, n, loss, lengths)
        if estimator == "weighted":
            weights = errors.weights
        if loss == "huber":
            robust = robust_weights(residual * errors.weights)
        before, x = x, _least_squares(W, scale, tau, weights * robust)
        if np.linalg.norm(x - before) <= 1e-10 * np.linalg.norm(x):
            break
    errors = force_errors(tau - W @ (x / scale), tau, n, loss, lengths)
    root = _sandwich(W, scale, weights, errors) / scale[:, None]
    return LinearEstimate(x / scale, root, *errors.by_joint, *conditions, weights)


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


def error_groups(count: int, lengths: tuple[int, ...]) -> list[tuple[np.ndarray, tuple[int, ...]]]:
    """The samples (rows,) of each group of trials whose errors have one deviation and one correlation by
    joint, and the lengths of its trials: every trial alone, but all of less than `SHORT` samples together.

    count: of all samples. lengths: of several trials.
    """
    trials = np.split(np.arange(count), np.cumsum(lengths)[:-1])
    short = [rows for rows in trials if len(rows) < SHORT]
    groups = [[rows] for rows in trials if len(rows) >= SHORT] + ([short] if short else [])
    return [(np.concatenate(group), tuple(map(len, group))) for group in groups]


@dataclass(frozen=True)
class SampleErrors:
    """The errors of samples, by groups of trials and joints (groups, nv): their standard deviation sigma,
    their autocorrelation time T, and the variance s^2 = sigma^2 T by which they count in sums over many
    samples. group: of each sample (N,).
    """

    group: np.ndarray
    deviation: np.ndarray
    times: np.ndarray
    variance: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """1 / sigma of each sample (N, nv)."""
        return (1 / self.deviation)[self.group]

    @property
    def by_joint(self) -> tuple[np.ndarray, np.ndarray]:
        """The root mean square of sigma, and the harmonic mean of T, over the samples (nv,)."""
        share = np.bincount(self.group) / len(self.group)
        return np.sqrt(share @ self.deviation**2), 1 / (share @ (1 / self.times))


def force_errors(
    residual: np.ndarray, tau: np.ndarray, n: int, loss: Loss, lengths: tuple[int, ...]
) -> SampleErrors:
    """The errors of the forces tau (N, nv) by trial and joint, from the residuals (N, nv) of n parameters,
    which are taken to be fitted to each trial in proportion to its samples. lengths: of several trials.
    """
    groups = error_groups(len(tau), lengths)
    bound, mean = HUBER if loss == "huber" else np.inf, np.zeros(tau.shape[1])
    of_samples, deviations, times, variances = np.zeros(len(tau), dtype=int), [], [], []
    for k, (rows, _) in enumerate(groups):
        part, of_samples[rows] = residual[rows], k
        deviations.append(error_deviations(part, tau, n * len(rows) / len(tau), loss))
        mean += np.clip(part / deviations[k], -bound, bound).sum(axis=0) / len(tau)
    for deviation, (rows, own) in zip(deviations, groups, strict=True):
        psi = np.clip(residual[rows] / deviation, -bound, bound)
        T, ratio = corrected_times(autocorrelation_times(psi - mean, own), n / tau.size)
        variance = deviation**2 * ratio * T
        if loss == "huber":  # E psi^2 / (E psi')^2
            variance = variance * (psi**2).mean(axis=0) / (np.abs(psi) < bound).mean(axis=0) ** 2
        times.append(T)
        variances.append(variance)
    return SampleErrors(of_samples, *map(np.array, (deviations, times, variances)))


def autocorrelation_times(residual: np.ndarray, lengths: tuple[int, ...] = ()) -> np.ndarray:
    """Integrated autocorrelation time T >= 1 (nv,) [samples] of the residuals (N, nv) of each joint, whose
    means are zero.

    lengths: the samples of each of several trials, between which there is no correlation.
    """
    times = np.ones(residual.shape[1])
    for j, column in enumerate(residual.T):
        trials = np.split(column, np.cumsum(lengths)[:-1])
        n = max(map(len, trials))
        spectrum = sum(np.abs(np.fft.rfft(x, 2 * n)) ** 2 for x in trials)
        rho = np.fft.irfft(spectrum)[: n // 2]
        if rho[0] > 0:
            negative = np.flatnonzero(rho <= 0)
            end = int(negative[0]) if len(negative) else len(rho)
            times[j] = max(1.0, 1 + 2 * float((rho[1:end] / rho[0]).sum()))
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


def _least_squares(W: np.ndarray, scale: np.ndarray, tau: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """x (n,) of the least residuals of tau = W (x / scale) with the weights (N, nv)."""

    def columns(part: slice) -> np.ndarray:
        rows = weights[part, :, None] * (W[part] / scale)
        return np.column_stack([rows.reshape(-1, len(scale)), (weights[part] * tau[part]).ravel()])

    R = triangular_factor(map(columns, chunks(len(W))))
    return solve_triangular(R[:-1, :-1], R[:-1, -1])


def error_deviations(residual: np.ndarray, tau: np.ndarray, n: float, loss: Loss) -> np.ndarray:
    """Standard deviation of the residuals of n parameters by joint; that of normal errors without outliers
    for Huber. It is at least that of exact data, whose residuals are rounding errors and tell nothing.
    """
    if loss == "huber":
        size = MAD * np.median(np.abs(residual), axis=0)
    else:
        freedom = len(residual) - n / residual.shape[1]
        size = np.sqrt((residual**2).sum(axis=0) / freedom)
    return np.maximum(size, EXACT * max(float(np.sqrt(np.mean(tau**2))), 1e-300))


def _sandwich(W: np.ndarray, scale: np.ndarray, weights: np.ndarray, errors: SampleErrors) -> np.ndarray:
    """A root F (n, n) of F F^T = H^-1 G H^-1, with H = sum_j w_j^2 A_j^T A_j and
    G = sum_j w_j^4 s_j^2 A_j^T A_j of the scaled columns A = W / scale of each joint and trial j.

    weights (N, nv): w_j. errors: s_j^2 = sigma_j^2 T_j, for Huber's loss with sigma_j^2 E psi^2 / (E psi')^2
    instead of sigma_j^2 (Huber 1981, Section 7.6).
    """
    n = len(scale)

    def rows(part: slice) -> np.ndarray:
        return weights[part, :, None] * (W[part] / scale)

    # H = R^T R, and G = R^T M R with M = sum_j w_j^2 s_j^2 Q_j^T Q_j of the orthonormal columns Q = w A R^-1
    R = triangular_factor(rows(part).reshape(-1, n) for part in chunks(len(W)))
    M = np.zeros((n, n))
    for part in chunks(len(W)):
        Q = solve_triangular(R, rows(part).reshape(-1, n).T, trans=1).T.reshape(-1, *W.shape[1:])
        Q *= (weights[part] * np.sqrt(errors.variance)[errors.group[part]])[..., None]
        M += Q.reshape(-1, n).T @ Q.reshape(-1, n)
    return solve_triangular(R, np.linalg.cholesky(M))


def _total(A: np.ndarray, tau: np.ndarray, scale: np.ndarray, conditions: tuple[float, float],
           lengths: tuple[int, ...]) -> LinearEstimate:  # fmt: skip
    """Total least squares on [A tau], the rows of each trial and joint whitened, each column scaled to the
    length of tau.

    The errors of every column are taken to be as large, relative to the column, as those of tau.
    """
    n = A.shape[-1]
    first = estimate(A, tau, "weighted", "linear", tuple(map(str, range(n))), lengths)
    weights = force_errors(tau - A @ first.beta, tau, n, "linear", lengths).weights
    rows = (weights[..., None] * A).reshape(-1, n)
    y = (weights * tau).ravel()
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
    errors = force_errors(tau - A @ (beta * scale), tau, n, "linear", lengths)
    widened = float((errors.variance / errors.deviation**2).max())
    # C = T e^2 (1 + |x|^2) (Z^T Z - s^2)^-1 with the smallest singular value s of [Z y], e^2 = s^2 / freedom
    error = s[-1] * np.sqrt((1 + x @ x) * widened / (len(y) - n))
    root = error * back[:, None] * V.T / np.sqrt((of_columns - s[-1]) * (of_columns + s[-1]))
    return LinearEstimate(beta, root, *errors.by_joint, *conditions, errors.weights)
