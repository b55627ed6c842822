"""The records of several trials of one mechanism, whose windows are simulated side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zwang.api.arguments import validation
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.errors import ShapeError, StateError
from zwang.identification.linear_estimation import MAD, error_groups
from zwang.identification.measurements import sampling_interval
from zwang.identification.simulation.recorded_motion import SLOPE, RecordedMotion
from zwang.identification.simulation.sensitivities import Windows
from zwang.mechanism.mechanism import Mechanism

DIVIDED = 1e-3  # relative difference by which a step may be adapted to divide the sampling time
MISSED = 0.01  # of the sampling time, between the last sample and the end of the simulation
SAME = 1e-4  # relative difference of the sampling times of trials, which one step divides
UNCERTAIN = 20.0  # how much less a first guess of a velocity counts than its errors would allow
RESTING = 1e-6  # median of third differences by their root mean square, below which it is one of rounding
THIRD_DIFFERENCE = np.sqrt(20.0)  # standard deviation of the third difference of independent errors of 1


@dataclass(frozen=True)
class RecordedTrials:
    """The checked records of one or more trials, evenly sampled with one sampling time. held: whether the
    control is constant from each sample to the next, or else linear.
    """

    trials: tuple[RecordedMotion, ...]
    held: bool

    @classmethod
    def checked(
        cls, m: Mechanism, fast: CompiledMechanism, time: Any, q: Any, control: Any, v: Any, held: bool,
        check_units: bool,
    ) -> RecordedTrials:  # fmt: skip
        """The records of one trial, or of several, for which each argument is a sequence.

        check_units: as for `fit_by_simulation`. Raises ShapeError and StateError, with the argument and the
        trial.
        """
        times = _times_of_trials(time)
        if times is None:
            return cls((RecordedMotion.checked(m, fast, time, q, control, v, check_units),), held)
        given = {"q": q, "control": control} | ({} if v is None else {"v": v})
        for name, value in given.items():
            count = len(value) if hasattr(value, "__len__") else 0
            if count != len(times):
                raise ShapeError(f"time has {len(times)} trials, and {name} has {count}; give one each")
        trials = []
        for k, t in enumerate(times):
            parts = {name: value[k] for name, value in given.items()}
            missing = [name for name, value in parts.items() if value is None]
            if missing:
                raise ShapeError(f"trial {k + 1}: {missing[0]} is None; give it for all trials, or for none")
            try:
                given_parts = {"v": None, **parts, "check_units": check_units}
                trials.append(RecordedMotion.checked(m, fast, t, **given_parts))
            except (ShapeError, StateError) as error:
                raise type(error)(f"trial {k + 1}: {error}") from error
        first, *others = (sampling_interval(trial.time) for trial in trials)
        for k, period in enumerate(others, start=2):
            if abs(period - first) > SAME * first:
                raise StateError(
                    f"trial {k} has the sampling time {period:.6g} s, and trial 1 has {first:.6g} s; "
                    "interpolate one of them to the other"
                )
        return cls(tuple(trials), held)

    @property
    def q(self) -> np.ndarray:
        """The measured coordinates (N, nq) of all trials."""
        return np.concatenate([trial.q for trial in self.trials])

    def size(self, window: int | None) -> int:
        """The number of samples of a window after its start, up to those of the shortest trial.

        Raises StateError for a window of less than 3.
        """
        if window is not None and not window >= 3:
            raise StateError(f"window is {window}; it must have at least 3 samples")
        shortest = min(len(trial.time) - 1 for trial in self.trials)
        return shortest if window is None else min(window, shortest)

    def windows(self, h: float, window: int | None) -> tuple[Windows, np.ndarray, np.ndarray]:
        """The windows, the measured q (W, samples + 1, nq), and which samples count (W, samples + 1, 1)."""
        size = self.size(window)
        parts = (trial.windows(h, size, self.held) for trial in self.trials)
        windows, measured, mask = zip(*parts, strict=True)
        states = ((w.q, w.v, w.control, w.time, w.change) for w in windows)
        q, v, control, time, change = map(np.concatenate, zip(*states, strict=True))
        joined = Windows(q, v, control, time, windows[0].every, change)
        return joined, np.concatenate(measured), np.concatenate(mask)

    def counts(self, size: int) -> list[int]:
        """The number of windows with `size` samples after their start in each trial."""
        return [(len(trial.time) - 1) // size for trial in self.trials]

    def with_states(self, q: np.ndarray, v: np.ndarray) -> RecordedTrials:
        """The records with guesses of the states at the samples of the windows (W, samples + 1, n)."""
        counts = self.counts(q.shape[1] - 1)
        parts = (np.split(x[:, :-1], np.cumsum(counts)[:-1]) for x in (q, v))
        states = zip(self.trials, *parts, strict=True)
        flat = ((x, *(s.reshape(-1, s.shape[-1]) for s in of_trial)) for x, *of_trial in states)
        return replace(self, trials=tuple(trial.with_states(*guess) for trial, *guess in flat))

    def step(self, given: float | None, largest: float) -> float:
        """The step [s] of a simulation with whole numbers of steps between the samples: the given one, or
        else the largest one up to `largest`. A step is adapted where it would miss the last sample by more
        than `MISSED` sampling times. Raises StateError for a given step that is not positive or does not
        divide these.
        """
        if given is not None and not given > 0:
            raise StateError(f"step is {given}; it must be positive")
        period, count = sampling_interval(self.trials[0].time), max(len(x.time) for x in self.trials)
        h = largest if given is None else given
        every = max(1, round(period / h))
        if given is None and h * every < period * (1 - DIVIDED):
            every += 1
        if abs(h * every - period) * count <= MISSED * period:
            return h
        if given is not None and abs(h * every - period) > DIVIDED * period:
            raise StateError(
                f"the step {h:g} s does not divide the sampling time {period:.9g} s; leave step out, or give "
                f"a fraction of the sampling time, such as step={period / math.ceil(period / h):.9g}"
            )
        return period / every

    def deviations(self, model: CompiledMechanism, given: Any) -> np.ndarray:
        """The standard deviations (trials, nv) of errors of q, by default those without outliers."""
        nv = model.mechanism.nv
        if given is not None:
            found = validation.real_values(given, "deviation")
            if found.shape not in ((), (nv,)):
                raise ShapeError(f"deviation must be a number or ({nv},) numbers; its shape is {found.shape}")
            found = np.broadcast_to(found, (len(self.trials), nv))
            if not (np.isfinite(found) & (found > 0)).all():
                raise StateError(f"deviation is {found[0].tolist()}; it must be positive and finite")
            return found
        of_trials = [trial.third_differences(model) for trial in self.trials]
        third, lengths = np.concatenate(of_trials), tuple(map(len, of_trials))
        deviations = np.empty(third.shape)
        for rows, _ in error_groups(len(third), lengths):
            size = np.sqrt(np.mean(third[rows] ** 2, axis=0))
            typical = MAD * np.median(np.abs(third[rows]), axis=0)  # hardly changed by impacts and outliers
            size = np.where(typical > RESTING * size, typical, size)
            deviations[rows] = np.maximum(size / THIRD_DIFFERENCE, 1e-9)
        return deviations[np.cumsum((0, *lengths[:-1]))]

    def slope_precision(self, deviations: np.ndarray) -> np.ndarray:
        """1 / the deviation (..., nv) by which guessed velocities may be wrong: `UNCERTAIN` times that of a
        slope through samples with these errors.
        """
        h, lags = sampling_interval(self.trials[0].time), np.arange(-SLOPE, SLOPE + 1)
        slope = deviations / (h * np.sqrt((lags**2).sum()))
        return 1 / (UNCERTAIN * slope)


def _times_of_trials(time: Any) -> Sequence[Any] | None:
    """The times of several trials, a sequence of arrays or an array of them by rows; None for one trial."""
    if getattr(time, "ndim", 0) == 2 and time.shape[1] > 1:
        return list(np.asarray(time))
    is_sequence = isinstance(time, Sequence) and len(time) > 0 and np.ndim(time[0]) == 1
    return time if is_sequence else None
