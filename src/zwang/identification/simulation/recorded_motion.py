"""The record of one trial with its controls, checked, and divided into windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zwang.api.compilation.compiled import CompiledMechanism
from zwang.errors import ShapeError, StateError
from zwang.identification.measurements import (
    check_angles,
    check_seconds,
    check_unwrapped,
    is_even,
    sampling_interval,
)
from zwang.identification.recorded_values import check_finite, recorded_values
from zwang.identification.simulation.sensitivities import Windows
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.controls import control_names

LEAST_SAMPLES = 10
SLOPE = 4  # samples to each side, from which the velocities at the starts of windows are guessed


@dataclass(frozen=True)
class RecordedMotion:
    """A checked record: time (N,), measured q (N, nq), control (N, nu), and the states q0 (N, nq), v (N, nv)
    from which windows start, given or guessed.
    """

    time: np.ndarray
    q: np.ndarray
    control: np.ndarray
    q0: np.ndarray
    v: np.ndarray

    @classmethod
    def checked(
        cls, m: Mechanism, fast: CompiledMechanism, time: Any, q: Any, control: Any, v: Any,
        check_units: bool = True,
    ) -> RecordedMotion:  # fmt: skip
        """Raises ShapeError and StateError, with the argument; check_units: also for angles in degrees."""
        t = recorded_values(time, "time", ("time",))
        if t.ndim != 1 or len(t) < LEAST_SAMPLES:
            raise ShapeError(f"time has the shape {t.shape}; give at least {LEAST_SAMPLES} instants, (N,)")
        check_finite(t, "time", ("time",))
        if not (np.diff(t) > 0).all() or not is_even(t):
            raise StateError("time must increase in even steps; interpolate the data to an even spacing")
        check_seconds(t)
        arrays = {"q": (q, m.coordinate_names), "control": (control, control_names(m))}
        if v is not None:
            arrays["v"] = (v, m.speed_names)
        found = {}
        for name, (value, labels) in arrays.items():
            x, shape = recorded_values(value, name, labels), (len(t), len(labels))
            if x.shape != shape:
                raise ShapeError(f"{name} must have the shape {shape}; its shape is {x.shape}")
            check_finite(x, name, labels)
            found[name] = x
        if check_units:
            check_angles(m, t, found["q"], "check_units=False")
        check_unwrapped(m, found["q"])
        v = found["v"] if "v" in found else _slopes(fast, t, found["q"])
        return cls(t, found["q"], found["control"], found["q"], v)

    def with_states(self, q: np.ndarray, v: np.ndarray) -> RecordedMotion:
        """The record with these guesses of the first states (n, nq), (n, nv)."""
        q0, v0 = self.q0.copy(), self.v.copy()
        q0[: len(q)], v0[: len(v)] = q, v
        return replace(self, q0=q0, v=v0)

    def windows(self, h: float, size: int, held: bool) -> tuple[Windows, np.ndarray, np.ndarray]:
        """The windows, the measured q (W, samples + 1, nq), and which samples count (W, samples + 1, 1): the
        end of a window is the start of the next one, where it counts. held: whether the control is constant
        from each sample to the next, or else linear.
        """
        every = round(sampling_interval(self.time) / h)
        starts = size * np.arange((len(self.time) - 1) // size)
        rows = starts[:, None] + np.arange(size + 1)
        control = np.repeat(self.control[rows[:, :-1]], every, axis=1)
        change = np.zeros(control.shape)
        if not held:  # in the middles of the steps
            change = np.repeat(np.diff(self.control[rows], axis=1) / every, every, axis=1)
            control = control + change * np.tile(np.arange(every) + 0.5, size)[:, None]
        mask = np.ones((len(starts), size + 1, 1))
        mask[:-1, -1] = 0
        windows = Windows(self.q0[starts], self.v[starts], control, self.time[starts], every, change)
        return windows, self.q[rows], mask

    def third_differences(self, model: CompiledMechanism) -> np.ndarray:
        """The third differences (N - 3, nv) of the measured q."""
        return np.diff(model.difference_configuration(self.q[1:], self.q[:-1]), 2, axis=0)


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
