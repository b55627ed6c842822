"""Measurements of a motion, their filters, and the checks that name what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its filters load when they are first used
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.api.compilation.compiled import compile
from zwang.errors import ShapeError, StateError
from zwang.identification.recorded_values import check_finite, recorded_values
from zwang.mechanism.joint_index import JointIndex
from zwang.mechanism.labelled_arrays import has_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr, validated_arguments

LEAST_SAMPLES = 20  # of a record; a fit needs more, depending on its parameters
UNEVEN = 0.01  # relative deviation of sampling intervals, or of times by the interval, that counts as even
STILL = 1e-4  # range of a coordinate [rad or m] below which its joint never moves
NOISE = 0.01  # largest range [rad or m] of a coordinate that may be nothing but noise
CERTAIN = 4  # standard deviations of a ratio of variances within which noise is recognised
SWEPT = 1.5  # of the standard deviation of noise, displacement in one interval that is a motion
DEGREES = 180 / np.pi
COARSE = 1.0  # [rad] by which no joint turns from one sample to the next
OFTEN = 0.99  # of the steps, which outliers do not reach
LONGEST_INTERVAL = 2.5  # of neighbouring samples, by the median; longer ones are gaps, without interpolation
PERIODS = 3  # of the cutoff at each end that the filter affects
ORDER = 4  # of the Butterworth filter; zero-phase filtering doubles it
COLUMNS = 16  # that are filtered at a time, with several times their memory


@dataclass(frozen=True)
class Measurements:
    """Samples of a motion: time (N,) [s], q (N, nq), v, a (N, nv) and tau (N, nv) [SI], each a row.

    cutoff [Hz]: of the low-pass filter of q, v and a; a fit passes tau and the regressor through the same
    filter. lengths: the samples of each trial, where several follow each other; a filter does not cross their
    ends. Build one with `zw.identify.measurements`, which checks the data, computes what is missing, and
    reads labels; here a labelled array raises ShapeError.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    cutoff: float | None = None
    lengths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raises ShapeError for labelled arrays, which only a mechanism can bring into its order."""
        for name in ("q", "v", "a", "tau"):
            if has_labels(getattr(self, name)):
                raise ShapeError(
                    f"{name} has labels, by which only zw.identify.measurements(mechanism, time, q, tau) "
                    f"reads it; use that, or give numpy.asarray({name}), which is read by position"
                )

    @classmethod
    def joined(cls, trials: Sequence[Measurements]) -> Measurements:
        """Several trials as one record. Raises StateError unless all have one cutoff."""
        if len({part.cutoff for part in trials}) > 1:
            cutoffs = ", ".join(str(part.cutoff) for part in trials)
            raise StateError(f"the trials have the cutoffs {cutoffs}; give all of them the same cutoff")
        parts = [part for trial in trials for part in trial.trials]
        rows = ((part.time, part.q, part.v, part.a, part.tau) for part in parts)
        time, q, v, a, tau = map(np.concatenate, zip(*rows, strict=True))
        return cls(time, q, v, a, tau, trials[0].cutoff, tuple(map(len, parts)))

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, rows: slice) -> Measurements:
        q, v, a, tau = (x[rows] for x in (self.q, self.v, self.a, self.tau))
        of_trial = np.repeat(np.arange(len(self.lengths)), self.lengths)[rows]
        lengths = tuple(int(n) for n in np.bincount(of_trial) if n) if self.lengths else ()
        return Measurements(self.time[rows], q, v, a, tau, self.cutoff, lengths)

    @property
    def trials(self) -> list[Measurements]:
        """The trials, each a record of its own."""
        ends = np.cumsum(self.lengths or (len(self),)).tolist()
        rows = (slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False))
        return [replace(self[part], lengths=()) for part in rows]

    @property
    def margin(self) -> int:
        """The samples at each end of one trial that the filter affects."""
        if self.cutoff is None:
            return 0
        return int(np.ceil(PERIODS / (self.cutoff * sampling_interval(self.time))))

    @property
    def inner_lengths(self) -> tuple[int, ...]:
        """The samples of each of several trials that the ends do not affect after the filter."""
        return tuple(len(trial) - 2 * trial.margin for trial in self.trials) if self.lengths else ()

    @property
    def inner(self) -> np.ndarray:
        """The samples (rows,) that the ends of trials do not affect after the filter; all without one."""
        rows = np.split(np.arange(len(self)), np.cumsum(self.lengths)[:-1])
        cuts = (trial.margin for trial in self.trials)
        return np.concatenate([part[cut : len(part) - cut] for part, cut in zip(rows, cuts, strict=True)])

    @property
    def elapsed(self) -> np.ndarray:
        """The times (N,) [s] of the samples, where trials follow each other without a pause."""
        times = [self.trials[0].time]
        for trial in self.trials[1:]:
            times.append(times[-1][-1] + trial.time - trial.time[0])
        return np.concatenate(times)

    def filtered(self, x: np.ndarray) -> np.ndarray:
        """x (N, ...) of all samples, filtered forwards and backwards, in the inner samples.

        Raises StateError where a trial has no samples left.
        """
        if self.cutoff is None:
            return x
        if self.lengths:
            parts = zip(self.trials, np.split(x, np.cumsum(self.lengths)[:-1]), strict=True)
            return np.concatenate([trial.filtered(part) for trial, part in parts])
        if len(self) - 2 * self.margin < LEAST_SAMPLES:
            raise StateError(
                f"{len(self)} samples are too few for a cutoff of {self.cutoff:g} Hz; give a longer record, "
                "or a higher cutoff"
            )
        cut = self.margin
        return _low_pass(x, self.cutoff, sampling_interval(self.time))[cut : len(self) - cut]

    def held_back(self, fraction: float) -> tuple[Measurements, Measurements | None]:
        """The samples without and of this fraction at the end of each trial; of a trial in which the filter
        would leave too few, none are held back.
        """
        train, test = [], []
        for trial in self.trials:
            count = len(trial) - round(fraction * len(trial))
            if len(trial) - count < 2 * trial.margin + (LEAST_SAMPLES if trial.margin else 1):
                count = len(trial)
            train.append(trial[:count])
            test += [trial[count:]] if count < len(trial) else []
        if not self.lengths:
            return train[0], test[0] if test else None
        return Measurements.joined(train), Measurements.joined(test) if test else None


@validated_arguments()
def measurements(
    mechanism: Mechanism,
    time: ArrayLike,
    q: ArrayLike,
    tau: ArrayLike,
    *,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    cutoff: float | None = None,
    delay: ArrayLike = 0.0,
    check_units: bool = True,
) -> Measurements:
    """Checked samples of a motion, with velocities and accelerations by central differences if not given.

    time (N,) [s]: increasing, and evenly spaced where anything is differentiated or filtered. q (N, nq), tau
    (N, nv): coordinates and generalised forces of the motors [SI]. v, a (N, nv): velocities and
    accelerations; what is missing is computed by central differences on the tangent space. The elements of
    labelled arrays, as of recordings, and the columns of tables (of pandas, polars, pyarrow ...) are read by
    their labels.
    cutoff [Hz]: q, v and a are low-pass filtered forwards and backwards by a Butterworth filter of order 4,
    so that no phase is lost; three periods of the cutoff are left out at both ends. A fit then passes tau and
    the regressor through the same filter, so that tau = Y pi still holds, also for dry friction. Give at
    least five times the highest frequency of the motion. By default nothing is filtered.
    delay [s]: of the records of tau behind those of q, v and a; a number, or one for each velocity (nv,). The
    forces are read that much later, between the samples by cubic splines, but not in gaps of more than
    2.5 median intervals, whose samples are left out; negative where the motion is late.
    Of several delays, the true one leaves the smallest residuals in a fit.
    check_units: whether to reject magnitudes that indicate wrong units.

    Raises ShapeError and StateError that name the joint and the sample: values that are not finite, too few
    samples, time that does not increase or is unevenly spaced, joints that do not move but for noise of q,
    angles that jump by 2 pi, degrees for radians, given velocities that are not the derivative of the
    coordinates, torques far from those of the model.
    Source: Gautier, IEEE ICRA 1997, 1922 (filtering of the data and of the regressor).
    """
    m = validation.numeric_mechanism(mechanism)
    t = _finite(time, (None,), "time", ("time",))
    n = len(t)
    coordinates = _finite(q, (n, m.nq), "q", m.coordinate_names)
    forces = _finite(tau, (n, m.nv), "tau", m.speed_names)
    given = {name: _finite(x, (n, m.nv), name, m.speed_names)
             for name, x in (("v", v), ("a", a)) if x is not None}  # fmt: skip
    _check_time(t, even=len(given) < 2 or cutoff is not None)
    _check_motion(m, t, coordinates, given.get("v"))
    if check_units:
        check_angles(m, t, coordinates, "check_units=False")
    check_unwrapped(m, coordinates)
    t, coordinates, forces, given = _without_delay(t, coordinates, forces, given, delay)
    record = _differentiated(m, t, coordinates, forces, given, cutoff)
    if check_units:
        if "v" in given:
            _check_velocities(m, record)
        _check_forces(m, record)
    return record


def _finite(value: Any, shape: tuple[int | None, ...], name: str, columns: Sequence[str]) -> np.ndarray:
    """`value` as finite floats of that shape. Raises ShapeError or StateError with the column and sample."""
    x = recorded_values(value, name, columns)
    wanted = tuple(x.shape[0] if size is None and x.ndim else size for size in shape)
    if x.ndim != len(shape) or x.shape != wanted:
        text = ", ".join("samples" if size is None else str(size) for size in shape)
        raise ShapeError(f"{name} must have the shape ({text}); its shape is {x.shape}")
    if len(x) < LEAST_SAMPLES:
        count = f"{len(x)} sample{'s' * (len(x) != 1)}"
        raise StateError(f"{name} has {count}; give at least {LEAST_SAMPLES}, better thousands")
    check_finite(x, name, columns)
    return x


def _check_time(t: np.ndarray, even: bool) -> None:
    """Raises StateError where the time does not increase, or is uneven although it must not be."""
    steps = np.diff(t)
    back = np.flatnonzero(steps <= 0)
    if len(back):
        k = int(back[0])
        word = "stands still" if steps[k] == 0 else "goes backwards"
        raise StateError(
            f"time {word} at sample {k + 1}: {t[k]:.6g} s, then {t[k + 1]:.6g} s; sort the samples, and "
            "leave repeated ones out"
        )
    if even and not is_even(t):
        k = int(np.argmax(np.abs(steps - np.median(steps))))
        raise StateError(
            f"time is unevenly spaced: the step at sample {k + 1} is {steps[k]:.6g} s, the mean "
            f"{sampling_interval(t):.6g} s; interpolate the data to an even spacing, or give v and a without "
            "cutoff; times that are only rounded are numpy.linspace(time[0], time[-1], len(time))"
        )
    check_seconds(t)


def check_seconds(t: np.ndarray) -> None:
    """Raises StateError where samples follow each other too slowly for dynamics, as in milliseconds."""
    middle = float(np.median(np.diff(t)))
    if middle >= 1:
        raise StateError(
            f"the median time step is {middle:.6g} s; too slow for dynamics, so give the time in seconds"
        )


def sampling_interval(t: np.ndarray) -> float:
    """Mean of the intervals of times (N,) [s], to which the rounding of single times adds least."""
    return float(t[-1] - t[0]) / (len(t) - 1)


def is_even(t: np.ndarray) -> bool:
    """Whether times (N,) [s] are evenly spaced, apart from rounding: a time away from the line through all of
    them has an even interval to the next one, as where the clock drifts.
    """
    h = sampling_interval(t)
    deviation = t - t[0] - h * np.arange(len(t))
    away = np.abs(deviation - (deviation.max() + deviation.min()) / 2) > UNEVEN * h
    return not (((np.abs(np.diff(t) - h) > UNEVEN * h) & (away[1:] | away[:-1])).any())


def _check_motion(m: Mechanism, t: np.ndarray, q: np.ndarray, v: np.ndarray | None) -> None:
    """Raises StateError for joints that never move. v: the given velocities (N, nv)."""
    ranges, size = np.ptp(q, axis=0), np.std(q, axis=0)
    noisy = _is_noise(q)
    if v is not None:  # a motion between the samples, too fast for them, is none of noise
        swept = np.sqrt(np.mean(v**2, axis=0)) * np.median(np.diff(t))
        for joint in m.joints:
            noisy[joint.q] &= swept[joint.v].max() <= SWEPT * size[joint.q].max()
    still = [j for j in m.joints if (noisy | (ranges <= STILL))[j.q].all()]
    if still:
        largest = max(float(ranges[joint.q].max()) for joint in still)
        raise StateError(
            f"joints {', '.join(repr(joint.name) for joint in still)} never move: their coordinates range "
            f"over at most {largest:.2g}, which is below {STILL:g} or the noise of q; give a motion of these "
            "joints too, or fix them by zw.identify.with_fixed_joints (zwang identify --fix)"
        )


def _is_noise(q: np.ndarray) -> np.ndarray:
    """Which coordinates (nq,) of q (N, nq) are constant but for small errors that are independent of each
    other. Those of the variance s^2 give second differences of the variance 6 s^2 (von Neumann 1941), with
    the standard deviation sqrt(1.9 / N) of the ratio, and means of n of them have the variance s^2 / n. A
    motion has smaller differences, unless there are fewer than five samples for each of its periods, and
    larger means, unless it is much smaller than the errors.
    """
    variance, count = np.mean(np.diff(q, 2, axis=0) ** 2, axis=0) / 6, int(np.sqrt(len(q)))
    blocks = q[: len(q) // count * count].reshape(-1, count, q.shape[1])
    is_fast = np.var(q, axis=0) <= (1 + CERTAIN * np.sqrt(1.9 / len(q))) * variance
    largest = (1 + CERTAIN * np.sqrt(2 / len(blocks))) * variance / count
    is_steady = np.var(blocks.mean(axis=1), axis=0) <= largest
    return (np.ptp(q, axis=0) <= NOISE) & is_fast & is_steady


def check_angles(m: Mechanism, t: np.ndarray, q: np.ndarray, remedy: str) -> None:
    """Raises StateError, with a remedy besides radians, for angles that are degrees by their magnitude. A
    joint without limits may turn many times, so that its angles count as degrees only where it would also
    turn too fast.
    """
    for joint in _turning(m):
        x = q[:, joint.q]
        largest = float(np.abs(x).max())
        limits, speed_limit = (getattr(joint.joint, name, None) for name in ("limits", "velocity_limit"))
        bound = 4 * np.pi if limits is None else 2 * max(abs(float(end)) for end in limits)
        if not (np.isfinite(bound) and largest > max(bound, 2 * np.pi)):
            continue
        steps = np.abs(np.diff(x, axis=0)[:, 0])
        rate = steps / COARSE if not speed_limit else steps / np.diff(t) / (2 * float(speed_limit))
        if limits is not None and largest / DEGREES <= bound:
            raise StateError(
                f"joint {joint.name!r} turns to {largest:.4g}, beyond {bound / 2:.4g} rad; this looks like "
                f"degrees: give radians, or {remedy}"
            )
        if limits is None and np.quantile(rate, OFTEN) > 1:
            raise StateError(
                f"joint {joint.name!r} turns to {largest:.4g}, by up to {steps.max():.4g} from one sample to "
                "the next; this looks like degrees: give radians, a velocity_limit of the joint "
                f"that allows it, or {remedy}"
            )


def check_unwrapped(m: Mechanism, q: np.ndarray) -> None:
    """Raises StateError for angles that jump by 2 pi, as those wrapped to +-pi do. Without the jump, the step
    is nearer to its neighbours; steps of a fast joint, or of degrees, are near them as they are.
    """
    for joint in _turning(m):
        steps = np.diff(q[:, joint.q], axis=0)[:, 0]
        around = np.pad(steps, 1, mode="reflect")
        expected = (around[:-2] + around[2:]) / 2
        continuous = steps - 2 * np.pi * np.sign(steps)
        jumps = np.flatnonzero(
            (np.abs(continuous) < COARSE) & (np.abs(continuous - expected) < np.abs(steps - expected))
        )
        if len(jumps):
            k = int(jumps[0])
            raise StateError(
                f"joint {joint.name!r} jumps by {steps[k]:.4g} rad, about 2 pi, at sample {k + 1}; make its "
                "angles continuous by numpy.unwrap"
            )


def _turning(m: Mechanism) -> list[JointIndex]:
    """The joints whose coordinate is an angle."""
    return [j for j in m.joints if j.kind in ("revolute", "screw")]


def _without_delay(
    t: np.ndarray, q: np.ndarray, tau: np.ndarray, given: dict[str, np.ndarray], delay: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The samples with tau(t + delay) for tau(t), without those for which there is none, beyond the record
    or in a gap.
    """
    lags = validation.real_values(delay, "delay")
    if lags.shape not in ((), tau.shape[1:]) or not np.isfinite(lags).all():
        raise ShapeError(
            f"delay must be a finite time in seconds, or one for each of the {tau.shape[1]} velocities; it "
            f"is {short_repr(delay)}"
        )
    if not lags.any():
        return t, q, tau, given
    lags = np.broadcast_to(lags, tau.shape[1:])
    shifted = np.full(tau.shape, np.nan)
    for piece in np.split(np.arange(len(t)), np.flatnonzero(_gaps(t)) + 1):
        for k, lag in enumerate(lags):
            inside = (t + lag >= t[piece[0]]) & (t + lag <= t[piece[-1]])
            if len(piece) > 1:
                shifted[inside, k] = scipy.interpolate.CubicSpline(t[piece], tau[piece, k])(t[inside] + lag)
    rows = np.isfinite(shifted).all(axis=1)
    if np.count_nonzero(rows) < LEAST_SAMPLES:
        raise StateError(
            f"with a delay of {abs(lags).max():g} s, fewer than {LEAST_SAMPLES} samples remain of "
            f"{t[-1] - t[0]:g} s; give a longer record, or the delay in seconds"
        )
    return t[rows], q[rows], shifted[rows], {name: x[rows] for name, x in given.items()}


def _gaps(t: np.ndarray) -> np.ndarray:
    """Which intervals (N - 1,) between the samples are gaps."""
    intervals = np.diff(t)
    return intervals > LONGEST_INTERVAL * np.median(intervals)


def _differentiated(m: Mechanism, t: np.ndarray, q: np.ndarray, tau: np.ndarray,
                    given: dict[str, np.ndarray], cutoff: float | None) -> Measurements:  # fmt: skip
    """The filtered samples with velocities and accelerations."""
    step, cut = sampling_interval(t), 0
    if cutoff is not None:
        if not 0 < cutoff < 0.5 / step:
            raise StateError(
                f"cutoff is {cutoff:g} Hz; it must lie between 0 and half the sampling rate, {0.5 / step:g}"
            )
        q = _low_pass(_continuous(m, q), cutoff, step)
        given = {name: _low_pass(x, cutoff, step) for name, x in given.items()}
        cut = int(np.ceil(PERIODS / (cutoff * step)))
    v, a = given.get("v"), given.get("a")
    if v is None or a is None:
        between = compile(m).difference_configuration(q[1:], q[:-1]) / step
        # v_k = (v_{k-1/2} + v_{k+1/2}) / 2,  a_k = (v_{k+1/2} - v_{k-1/2}) / h
        middle = (between[1:] + between[:-1]) / 2
        slope = np.diff(between, axis=0) / step if v is None else (v[2:] - v[:-2]) / (2 * step)
        v = middle if v is None else v[1:-1]
        a = slope if a is None else a[1:-1]
        t, q, tau = t[1:-1], q[1:-1], tau[1:-1]
    keep = slice(cut, len(t) - cut)
    if len(t[keep]) < LEAST_SAMPLES:
        raise StateError(
            f"only {len(t[keep])} samples remain after the ends affected by the filter are left out; "
            "give a longer record, or a higher cutoff"
        )
    return Measurements(t, q, v, a, tau, cutoff)[keep]


def _low_pass(x: np.ndarray, cutoff: float, step: float) -> np.ndarray:
    """x (N, ...) after a Butterworth filter, forwards and backwards."""
    filtered = np.empty((len(x), x[0].size))
    sections = scipy.signal.butter(ORDER, cutoff, fs=1 / step, output="sos")
    for begin in range(0, filtered.shape[1], COLUMNS):
        part = slice(begin, begin + COLUMNS)
        filtered[:, part] = scipy.signal.sosfiltfilt(sections, x.reshape(filtered.shape)[:, part], axis=0)
    return filtered.reshape(x.shape)


def _continuous(m: Mechanism, q: np.ndarray) -> np.ndarray:
    """q with the signs of its quaternions chosen such that they change continuously."""
    q = q.copy()
    for joint in m.joints:
        if joint.kind in ("ball", "free"):
            part = slice(joint.q.stop - 4, joint.q.stop)
            flips = np.sign(np.einsum("ij,ij->i", q[1:, part], q[:-1, part]))
            q[1:, part] *= np.cumprod(np.where(flips < 0, -1, 1))[:, None]
    return q


def _check_velocities(m: Mechanism, record: Measurements) -> None:
    """Raises StateError where v is not the derivative of q: degrees, or milliseconds.

    The displacements are those over the span of samples in which each coordinate moves most, against which
    the errors of q count least: between successive samples they may be larger than the motion. What happens
    in gaps of the record is not known.
    """
    known = ~_gaps(record.time)[:, None]
    moved = compile(m).difference_configuration(record.q[1:], record.q[:-1])
    swept = (record.v[1:] + record.v[:-1]) / 2 * np.diff(record.time)[:, None]
    paths = [np.cumsum(np.pad(x * known, ((1, 0), (0, 0))), axis=0) for x in (moved, swept)]
    for k, name in enumerate(m.speed_names):
        ratio = _ratio_of_displacements(paths[0][:, k], paths[1][:, k])
        if abs(ratio - 1) > 0.5:
            guess = "degrees" if abs(ratio / DEGREES - 1) < 0.2 else "another unit of time or of length"
            raise StateError(
                f"v of {name!r} is {ratio:.4g} times the derivative of q: this looks like {guess}; give "
                "rad, m and s, or check_units=False"
            )


def _ratio_of_displacements(moved: np.ndarray, swept: np.ndarray) -> float:
    """The displacements of one path (N,) by those of another, by least squares over the span of 2^n samples
    with the largest mean square; 1 without a motion.
    """
    spans = 2 ** np.arange(int(np.log2(len(moved) - 1)) + 1)
    span = max(spans, key=lambda n: float(np.mean((moved[n:] - moved[:-n]) ** 2)))
    by, of = (x[span:] - x[:-span] for x in (moved, swept))
    size = float(by @ by)
    return float(of @ by) / size if size > 0 else 1.0


def _check_forces(m: Mechanism, record: Measurements) -> None:
    """Raises StateError where the forces differ from those of the model by more than a factor of 100."""
    model = compile(m).inverse_dynamics(record.q, record.v, record.a)
    measured, predicted = np.sqrt(np.mean(record.tau**2)), np.sqrt(np.mean(model**2))
    if measured == 0:
        raise StateError("tau is zero throughout; give the measured forces of the motors [N m, N]")
    ratio = measured / predicted if predicted > 0 else 1.0
    if not 0.01 < ratio < 100:
        raise StateError(
            f"tau is {ratio:.3g} times as large as the forces of the model, root mean squares; give N m and "
            "N (currents times torque constants and gear ratios), a cutoff= where a is differentiated from "
            "noisy coordinates, or check_units=False"
        )
