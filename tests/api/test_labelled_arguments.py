"""Labelled arrays and tables are read by their labels, in whatever order these are, also by compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import zwang as zw
from zwang.errors import ShapeError, StateError
from zwang.mechanism.samples import FURUTA, furuta

Q = np.array([[0.3, 0.8], [-0.2, 1.1], [0.5, -0.4]])
V = np.array([[1.0, -2.0], [0.4, 0.7], [-0.3, 0.9]])
U = np.array([[0.05, 0.01], [0.02, -0.03], [-0.04, 0.02]])


class Table:
    """A table as those of polars: with names of its columns, and an array without them."""

    def __init__(self, values: np.ndarray, columns: list[str]):
        self.values, self.columns = values, columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.values, dtype)


class NamedTable(Table):
    """A table as those of pyarrow, whose `columns` are arrays."""

    def __init__(self, values: np.ndarray, columns: list[str]):
        super().__init__(values, columns)
        self.column_names, self.columns = columns, list(values.T)


@pytest.fixture(scope="module")
def mechanism() -> zw.Mechanism:
    m = furuta(**FURUTA)
    return m.replace(forces=[zw.Motor("arm", "theta"), zw.Motor("rod", "alpha")])


@pytest.fixture(scope="module")
def fast(mechanism: zw.Mechanism) -> Any:
    return zw.compile(mechanism)


def array_of(x: np.ndarray, dimension: str, names: tuple[str, ...]) -> xr.DataArray:
    """The rows, worlds, as the last axis of an array whose elements are in the other order."""
    return xr.DataArray(x[:, ::-1].T, dims=(dimension, "world"), coords={dimension: list(names[::-1])})


def turned(kind: str, m: zw.Mechanism) -> list[Any]:
    """Q, V and U with labels, their elements in the other order."""
    names, dimensions = (m.coordinate_names, m.speed_names, m.inputs), ("coordinate", "speed", "input")
    if kind == "array":
        return [array_of(*x) for x in zip((Q, V, U), dimensions, names, strict=True)]
    make: Any = {"pandas": pd.DataFrame, "polars": Table, "pyarrow": NamedTable}[kind]
    return [make(x[:, ::-1], columns=list(own[::-1])) for x, own in zip((Q, V, U), names, strict=True)]


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "pyarrow"])
def test_compiled_functions_read_labels_as_those_on_floats_do(
    kind: str, mechanism: zw.Mechanism, fast: Any
) -> None:
    q, v, u = turned(kind, mechanism)
    a = v  # accelerations have the labels of velocities
    for name, given, plain in (
        ("forward_dynamics", (q, v, a), (Q, V, V)),
        ("inverse_dynamics", (q, V, a), (Q, V, V)),
        ("mass_matrix", (q,), (Q,)),
        ("difference_configuration", (q, Q), (Q, Q)),
        ("zwang_of", (Q, V, v, a), (Q, V, V, V)),
    ):
        found, on_floats = getattr(fast, name)(*given), getattr(zw, name)
        expected = [on_floats(mechanism, *rows) for rows in zip(*plain, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    step = fast.step(q, v, u, step=0.01)
    for k in range(3):
        run = zw.simulate(mechanism, Q[k], V[k], control=U[k], duration=0.01, step=0.01, progress=False)
        np.testing.assert_allclose(step.v[k], run.v[0, -1], rtol=1e-9)


def test_rollouts_and_their_derivatives_read_labels(mechanism: zw.Mechanism, fast: Any) -> None:
    """What a rollout, a feedback rollout, derivatives and sensitivities compute is that of plain arrays."""
    plain, given = (Q, V, U), turned("polars", mechanism)
    by_time = np.stack([U, 2 * U], axis=-2)  # (worlds, steps, inputs)
    labelled = xr.DataArray(
        by_time[..., ::-1], dims=("world", "time", "input"), coords={"input": list(mechanism.inputs[::-1])}
    )
    gain = np.ones((2, 2, 4))
    goals = [Q[:2], V[:2], np.zeros((2, 0))]
    turned_goals = [Table(x[:, ::-1], list(n[::-1])) for x, n in zip(
        goals, (mechanism.coordinate_names, mechanism.speed_names), strict=False)]  # fmt: skip
    calls: list[tuple[Callable[..., Any], tuple, tuple]] = [
        (lambda *x: fast.rollout(*x, steps=2, step=0.01), plain, given),
        (lambda *x: fast.rollout(*x, steps=2, step=0.01), (Q, V, by_time), (Q, given[1], labelled)),
        (lambda *x: fast.step_derivatives(*x, step=0.01), plain, given),
        (fast.constrained_dynamics_derivatives, plain, given),
        (lambda *x: fast.forward_dynamics_derivatives(*x), (Q, V, V), (given[0], given[1], given[1])),
        (
            lambda *x: fast.rollout_gradient(np.ones((3, 2, 4)), *x)[1:],
            (Q, V, by_time),
            (*given[:2], labelled),
        ),
        (
            lambda q, v, u, *reference: fast.feedback_rollout(q, v, u, gain, reference),
            (Q, V, by_time, *goals),
            (*given[:2], labelled, *turned_goals, goals[2]),
        ),
    ]
    for call, of_plain, of_labelled in calls:
        for found, expected in zip(call(*of_labelled), call(*of_plain), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_motor_forces_of_closed_mechanisms_read_labels(mechanism: zw.Mechanism, fast: Any) -> None:
    q, v, _ = turned("array", mechanism)
    found = fast.inverse_dynamics(q, v, v, actuated=["theta", "alpha"])
    np.testing.assert_allclose(found.forces, fast.inverse_dynamics(Q, V, V), rtol=1e-9)
    np.testing.assert_array_equal(found.q, Q)


def test_labels_of_other_elements_are_refused_by_name(mechanism: zw.Mechanism, fast: Any) -> None:
    with pytest.raises(ShapeError, match="q has the unknown column 'elbow'"):
        fast.mass_matrix(Table(np.zeros((3, 3)), ["theta", "alpha", "elbow"]))
    with pytest.raises(ShapeError, match="v lacks the speed 'alpha'"):
        fast.momentum(Q, array_of(V, "speed", ("theta", "beta")))
    with pytest.raises(StateError, match="'q' is not an array of real numbers"):
        fast.mass_matrix(Table(np.array("a plan of a query"), ["theta", "alpha"]))
    for values in (Q.tolist(), [tuple(x) for x in Q]):  # without labels by position
        np.testing.assert_array_equal(fast.mass_matrix(values), fast.mass_matrix(Q))
