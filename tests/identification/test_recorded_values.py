"""Missing values of any library are named as NaN is, and dates and durations with the seconds to give."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import zwang as zw
from zwang.errors import StateError
from zwang.identification.recorded_values import recorded_values
from zwang.mechanism.samples import double_pendulum

T = np.arange(40) * 0.01
Q = np.stack([np.sin(9 * T), np.cos(7 * T)], axis=1)


def arm() -> zw.Mechanism:
    return double_pendulum()


def table(dtype: str) -> pd.DataFrame:
    found = pd.DataFrame(Q[:, ::-1], columns=list(arm().coordinate_names)[::-1]).astype(dtype)
    found.iloc[7, 0] = pd.NA
    return found


def objects(missing: object) -> np.ndarray:
    found = Q.astype(object)
    found[7, 1] = missing
    return found


@pytest.mark.parametrize(
    "q",
    [
        table("Float64"),
        table("object"),
        objects(None),
        objects(pd.NaT),
        objects(pd.NA).tolist(),
        np.ma.masked_array(Q, mask=(np.arange(80) == 15).reshape(40, 2)),
    ],
    ids=["Float64", "object", "None", "NaT", "list", "masked"],
)
def test_missing_values_are_named_by_joint_and_sample(q):
    m = arm()
    name = m.coordinate_names[1]
    with pytest.raises(StateError, match=rf"q of '{name}' is nan in sample 7 \(1 values .*interpolate them"):
        zw.identify.measurements(m, T, q, Q)


def test_missing_samples_may_be_left_out():
    """The other elements of a masked array and of a nullable table are the numbers."""
    masked, names = np.ma.masked_array(Q, mask=Q > 0.5), arm().coordinate_names
    found = recorded_values(masked, "q", names)
    np.testing.assert_array_equal(found, np.where(Q > 0.5, np.nan, Q))
    np.testing.assert_array_equal(
        recorded_values(table("Float64").drop(index=7), "q", names), np.delete(Q, 7, 0)
    )


@pytest.mark.parametrize(
    "t",
    [
        pd.to_timedelta(T, unit="s"),
        pd.Series(pd.to_timedelta(T, unit="s")),
        (T * 1e6).round().astype("timedelta64[us]"),
        pd.Timestamp("2026-01-01") + pd.to_timedelta(T, unit="s"),
        pd.Series(pd.Timestamp("2026-01-01", tz="Europe/Berlin") + pd.to_timedelta(T, unit="s")),
        np.datetime64("2026-01-01") + (T * 1e6).round().astype("timedelta64[us]"),
        [datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=x) for x in T],
        [datetime.timedelta(seconds=x) for x in T],
    ],
    ids=["index", "series", "array", "dates", "dates with zone", "datetime64", "datetime", "timedelta"],
)
def test_the_remedy_for_times_gives_the_seconds(t):
    with pytest.raises(StateError, match=r"^time holds (dates|durations).*give seconds as floats") as caught:
        zw.identify.measurements(arm(), t, Q, Q)
    remedy = str(caught.value).partition("for example ")[2]
    if not isinstance(t, list):
        seconds = eval(remedy, {"numpy": np, "time": t})
        np.testing.assert_allclose(np.asarray(seconds, float), T, atol=1e-9)
