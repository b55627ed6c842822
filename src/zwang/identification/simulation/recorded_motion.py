"""A recorded motion with its controls, checked, and divided into windows that are simulated side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zwang.api.arguments import validation
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.errors import ShapeError, StateError
from zwang.identification.linear_estimation import MAD, Loss
from zwang.identification.measurements import check_unwrapped, is_even, sampling_interval
from zwang.identification.simulation.output_error import Iterate, OutputError
from zwang.identification.simulation.sensitivities import Windows
from zwang.mechanism.labelled_arrays import without_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.controls import control_names

LEAST_SAMPLES = 10
SLOPE = 4  # samples to each side, from which the velocities at the starts of windows are guessed
DIVIDED = 1e-3  # relative difference by which a step may be adapted to divide the sampling time
MISSED = 0.01  # of the sampling time, between the last sample and the end of the simulation
UNCERTAIN = 20.0  # how much less a first guess of a velocity counts than its errors would allow
THIRD_DIFFERENCE = np.sqrt(20.0)  # standard deviation of the third difference of independent errors of 1


@dataclass(frozen=True)
class RecordedMotion:
    """A checked record: time (N,), measured q (N, nq), control (N, nu), and the states q0 (N, nq), v (N, nv)
    from which windows start, given or guessed.
    """

    m: Mechanism
    time: np.ndarray
    q: np.ndarray
    control: np.ndarray
    q0: np.ndarray
    v: np.ndarray

    @classmethod
    def checked(
        cls, m: Mechanism, fast: CompiledMechanism, time: Any, q: Any, control: Any, v: Any
    ) -> RecordedMotion:
        """Raises ShapeError and StateError, with the argument."""
        t = validation.real_values(time, "time")
        if t.ndim != 1 or len(t) < LEAST_SAMPLES:
            raise ShapeError(f"time has the shape {t.shape}; give at least {LEAST_SAMPLES} instants, (N,)")
        if not np.isfinite(t).all() or not (np.diff(t) > 0).all() or not is_even(t):
            raise StateError("time must increase in even steps; interpolate the data to an even spacing")
        arrays = {"q": (q, m.coordinate_names), "control": (control, control_names(m))}
        if v is not None:
            arrays["v"] = (v, m.speed_names)
        found = {}
        for name, (value, labels) in arrays.items():
            x, shape = (
                validation.real_values(without_labels(value, labels, name), name),
                (len(t), len(labels)),
            )
            if x.shape != shape:
                raise ShapeError(f"{name} must have the shape {shape}; its shape is {x.shape}")
            if not np.isfinite(x).all():
                row = int(np.argwhere(~np.isfinite(x))[0][0])
                raise StateError(f"{name} has a value that is not finite in sample {row}; leave it out")
            found[name] = x
        check_unwrapped(m, found["q"])
        v = found["v"] if "v" in found else _slopes(fast, t, found["q"])
        return cls(m, t, found["q"], found["control"], found["q"], v)

    def replaced(self, problem: OutputError, fitted: Iterate, are_unknown: bool) -> RecordedMotion:
        """The record with guesses of the states by a fit of short windows, if the starts are unknown."""
        if not are_unknown:
            return self
        states = problem.simulator.trajectory(fitted.windows, problem.values(fitted.p))
        q0, v = self.q0.copy(), self.v.copy()
        for known, x in zip((q0, v), states, strict=True):
            inner = x[:, :-1].reshape(-1, x.shape[-1])
            known[: len(inner)] = inner
        return replace(self, q0=q0, v=v)

    def step(self, given: float | None, largest: float) -> float:
        """The step [s] of a simulation with whole numbers of steps between the samples: the given one, or
        else the largest one up to `largest`. A step is adapted where it would miss the last sample by more
        than `MISSED` sampling times. Raises StateError for a given step that is not positive or does not
        divide these.
        """
        if given is not None and not given > 0:
            raise StateError(f"step is {given}; it must be positive")
        period = sampling_interval(self.time)
        h = largest if given is None else given
        every = max(1, round(period / h))
        if given is None and h * every < period * (1 - DIVIDED):
            every += 1
        if abs(h * every - period) * len(self.time) <= MISSED * period:
            return h
        if given is not None and abs(h * every - period) > DIVIDED * period:
            raise StateError(
                f"the step {h:g} s does not divide the sampling time {period:.9g} s; leave step out, or give "
                f"a fraction of the sampling time, such as step={period / math.ceil(period / h):.9g}"
            )
        return period / every

    def windows(self, h: float, size: int | None) -> tuple[Windows, np.ndarray, np.ndarray]:
        """The windows, the measured q (W, samples + 1, nq), and which samples count (W, samples + 1, 1): the
        end of a window is the start of the next one, where it counts.
        """
        every = round(sampling_interval(self.time) / h)
        count = len(self.time) - 1
        if size is not None and not size >= 3:
            raise StateError(f"window is {size}; it must have at least 3 samples")
        size = min(size or count, count)
        starts = size * np.arange(count // size)
        rows = starts[:, None] + np.arange(size + 1)
        control = np.repeat(self.control[rows[:, :-1]], every, axis=1)
        mask = np.ones((len(starts), size + 1, 1))
        mask[:-1, -1] = 0
        windows = Windows(self.q0[starts], self.v[starts], control, self.time[starts], every)
        return windows, self.q[rows], mask

    def deviations(self, model: CompiledMechanism, given: Any, loss: Loss) -> np.ndarray:
        """The standard deviations (nv,) of the errors of q; for Huber's loss those without outliers."""
        nv = self.m.nv
        if given is not None:
            found = validation.real_values(given, "deviation")
            if found.shape not in ((), (nv,)):
                raise ShapeError(f"deviation must be a number or ({nv},) numbers; its shape is {found.shape}")
            found = np.broadcast_to(found, (nv,))
            if not (np.isfinite(found) & (found > 0)).all():
                raise StateError(f"deviation is {found.tolist()}; it must be positive and finite")
            return found
        rates = model.difference_configuration(self.q[1:], self.q[:-1])
        third = np.diff(rates, 2, axis=0)
        size = np.sqrt(np.mean(third**2, axis=0))
        if loss == "huber":
            typical = MAD * np.median(np.abs(third), axis=0)
            size = np.where(typical > 0, typical, size)  # 0 where the record mostly rests
        return np.maximum(size / THIRD_DIFFERENCE, 1e-9)

    def slope_precision(self, deviations: np.ndarray) -> np.ndarray:
        """1 / the deviation (nv,) by which guessed velocities may be wrong: `UNCERTAIN` times that of a slope
        through samples with these errors.
        """
        h, lags = sampling_interval(self.time), np.arange(-SLOPE, SLOPE + 1)
        slope = deviations / (h * np.sqrt((lags**2).sum()))
        return 1 / (UNCERTAIN * slope)


def _slopes(fast: CompiledMechanism, t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Velocities (N, nv) by polynomials of degree 3 through `SLOPE` samples to each side."""
    h, n, nv = sampling_interval(t), len(t), fast.mechanism.nv
    lags = [k for k in range(-2 * SLOPE, 2 * SLOPE + 1) if k]
    v = np.zeros((n, nv))
    first = np.clip(np.arange(n) - SLOPE, 0, max(n - 1 - 2 * SLOPE, 0))
    inside = {k: np.clip(np.arange(n) + k, 0, n - 1) for k in lags}
    moved = {k: fast.difference_configuration(q[rows], q) for k, rows in inside.items()}
    for i in range(n):
        used = [k for k in lags if first[i] <= i + k <= min(first[i] + 2 * SLOPE, n - 1)]
        powers = h * np.array(used)
        A = np.stack([powers, powers**2, powers**3], axis=1)
        v[i] = np.linalg.lstsq(A, np.array([moved[k][i] for k in used]), rcond=None)[0][0]
    return v
