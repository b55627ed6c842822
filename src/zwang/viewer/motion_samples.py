"""The samples of a recording that a page stores, chosen such that the motion between them, which the page
interpolates, agrees with the recorded one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from zwang.mechanism.mechanism import Mechanism
from zwang.recording.dataset import coordinate_units
from zwang.viewer.playback import ball_coordinates, held_samples, interpolated_configuration

SAMPLES_PER_SECOND = 60  # of every motion, as far as the recording has them; more where a motion is fast
TOLERANCE = 0.005  # accepted error of the motion between samples: rad, or lengths of the mechanism's size
MAXIMUM_BYTES = 64_000_000  # of the stored samples of all worlds, before compression
SAMPLES_AT_ONCE = 100_000  # recorded samples that are compared in one block, which bounds the memory


class MotionSamples(NamedTuple):
    """The indices of the stored samples, and a sentence about the error if it exceeds the tolerance."""

    indices: np.ndarray
    warning: str | None


class _Motion(NamedTuple):
    """The recorded motion of one world: q (times, nq), which of the samples are finite, and the number of the
    first coordinate of each quaternion. Where samples are not finite, q is the last finite one.
    """

    q: np.ndarray
    finite: np.ndarray
    balls: list[int]


def motion_samples(run: xr.Dataset, m: Mechanism, extent: float, bytes_of_sample: int) -> MotionSamples:
    """Stored samples of a recording of m in the order of time: 60 per second, and more where the interpolated
    motion of a world differs from the recorded one by more than `TOLERANCE`, up to `MAXIMUM_BYTES` in all.

    Linear interpolation errs by less than h^2/8 max|d^2 q/dt^2| over an interval h. Intervals with a larger
    error than the tolerance are therefore halved, those with the largest error first.
    extent: the mechanism's size [m], to which errors of lengths are relative.
    """
    times = run["time"].values.astype(float)
    most = max(2, MAXIMUM_BYTES // bytes_of_sample)
    wanted = max(2, np.ceil(SAMPLES_PER_SECOND * (times[-1] - times[0])) + 1)
    first = np.linspace(0, len(times) - 1, int(min(len(times), most, wanted))).round().astype(int)
    units = coordinate_units(m)
    scale = np.array([extent if unit == "m" else 1.0 for unit in units])
    motions = [_motion(q, m) for q in run["q"].transpose("world", "time", ...).values]
    chosen = np.unique(first)
    left, right, remaining = chosen[:-1], chosen[1:], np.zeros(len(units))
    while len(left):
        errors = _interpolation_errors(times, motions, left, right) / scale
        largest = errors.max(axis=1, initial=0.0)
        order = np.argsort(-largest, kind="stable")
        bad = order[largest[order] > TOLERANCE]
        split, rest = np.split(bad, [max(0, most - len(chosen))])
        remaining = np.maximum(remaining, errors[rest].max(axis=0, initial=0.0))
        middle = (left[split] + right[split]) // 2
        chosen = np.union1d(chosen, middle)
        left, right = np.concatenate([left[split], middle]), np.concatenate([middle, right[split]])
    if not remaining.any():
        return MotionSamples(chosen, None)
    worst = int(remaining.argmax())
    duration = times[-1] - times[0]
    rate = len(chosen) / duration if duration > 0 else len(chosen)
    return MotionSamples(chosen, _sentence(rate, remaining[worst] * scale[worst], units[worst]))


def _sentence(rate: float, error: float, unit: str) -> str:
    unit = "in a quaternion" if unit == "1" else unit
    return (
        f"the page keeps {rate:.3g} samples per second of this long recording, and the motion that it shows "
        f"between them differs from the recorded one by up to {error:.2g} {unit}; show a part, "
        "run.sel(time=slice(start, end)), or fewer worlds"
    )


def _motion(q: np.ndarray, m: Mechanism) -> _Motion:
    held = held_samples(q)
    return _Motion(q[held], np.asarray(np.isfinite(q).all(axis=1)), ball_coordinates(m))


def _interpolation_errors(
    times: np.ndarray, motions: list[_Motion], left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """The largest error of each coordinate (n, nq) over all worlds at the recorded samples between `left` and
    `right`, the indices (n,) of stored samples.
    """
    errors = np.zeros((len(left), motions[0].q.shape[1]))
    blocks = 1 + int((right - left).sum()) // SAMPLES_AT_ONCE
    for block in np.array_split(np.flatnonzero(right - left > 1), blocks):
        if not len(block):
            continue
        inside = right[block] - left[block] - 1
        starts = np.cumsum(inside) - inside
        a, b = np.repeat(left[block], inside), np.repeat(right[block], inside)
        k = np.arange(inside.sum()) - np.repeat(starts, inside) + a + 1
        share = (times[k] - times[a]) / np.where(times[b] > times[a], times[b] - times[a], 1.0)
        with np.errstate(over="ignore", invalid="ignore"):  # of worlds that diverge
            for motion in motions:
                found = np.maximum.reduceat(_errors(motion, k, a, b, share), starts)
                errors[block] = np.fmax(errors[block], found)
    return errors


def _errors(motion: _Motion, k: np.ndarray, a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    """|interpolated - recorded| (n, nq) at the samples k between the stored samples a and b."""
    q, between = motion.q, motion.finite[a] & motion.finite[b]  # a world that has stopped keeps its sample a
    shown = interpolated_configuration(q[a], q[b], np.where(between, share, 0.0)[:, None], motion.balls)
    recorded = interpolated_configuration(shown, q[k], 1.0, motion.balls)  # with the signs of quaternions
    for i in motion.balls:
        shown[:, i : i + 4] /= np.linalg.norm(shown[:, i : i + 4], axis=1, keepdims=True)
    return np.abs(shown - recorded)
