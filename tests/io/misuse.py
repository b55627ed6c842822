"""Misuses of the programming interface, by the names in tests/badinputs/expectations.json.

Each function performs the misuse and returns the results of zwang. An error of zwang, a TypeError at the
call, or finite numbers are accepted outcomes.
"""

from __future__ import annotations

import pickle
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import zwang as zw
from zwang.errors import ZwangError
from zwang.mechanism.mechanism import Mechanism


def pendulum() -> Mechanism:
    """One revolute joint."""
    arm = zw.Body(
        "arm", zw.Revolute("shoulder", axis=(0, 1, 0)), mass=1, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1)
    )
    return zw.Mechanism("pendulum", [arm])


def double() -> Mechanism:
    """Two revolute joints: a larger mechanism than `pendulum`."""
    arm = pendulum().bodies[0]
    hand = zw.Body(
        "hand", zw.Revolute("wrist"), "arm", (0, 0, -1), mass=1, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1)
    )
    return zw.Mechanism("double", [arm, hand])


def floating() -> Mechanism:
    """One free body."""
    return zw.Mechanism("floating", [zw.Body("ball", zw.Free("root"), mass=1, inertia=(0.1, 0.2, 0.2))])


def _motion(mechanism: Mechanism, q: Any, *, by_compiled: bool = True) -> Any:
    """The motion from q by the reference functions, by a simulation, and by compiled functions.

    Compiled functions validate shapes only: a world that is NaN remains NaN without effect on others.
    """
    zero = np.zeros(mechanism.nv)
    results = [
        lambda: zw.forward_dynamics(mechanism, q, zero, zero),
        lambda: zw.simulate(mechanism, q, zero, duration=0.1, step=0.01)["q"].values,
    ]
    if by_compiled:
        results.append(lambda: zw.compile(mechanism, cache=False).forward_dynamics(q, zero, zero))
    return _all_the_same(results)


def _all_the_same(calls: list[Callable[[], Any]]) -> Any:
    """The results of all calls, or the error, which every call must raise."""
    found: list[Any] = []
    errors: list[Exception] = []
    for call in calls:
        try:
            found.append(call())
        except (ZwangError, TypeError) as error:
            errors.append(error)
    if errors and found:
        raise AssertionError(f"one way in refuses it ({errors[0]}), another one does not")
    if errors:
        raise errors[0]
    return found


class Comparison(NamedTuple):
    """The results of a misuse and of the proper use, which the judge compares."""

    results: np.ndarray
    expected: np.ndarray


def _loaded(folder: Path, name: str, data: bytes) -> Any:
    path = folder / name
    path.write_bytes(data)
    return zw.load(path)


def qpos_nan(folder: Path) -> Any:
    return _motion(pendulum(), [np.nan], by_compiled=False)


def qpos_too_long(folder: Path) -> Any:
    return _motion(pendulum(), [0.0, 0.0])


def qpos_too_short(folder: Path) -> Any:
    return _motion(double(), [0.0])


def qpos_string(folder: Path) -> Any:
    return _motion(pendulum(), ["left"])


def qpos_noncontiguous(folder: Path) -> Any:
    q = np.array([0.3, 9.0, 0.5, 9.0])[::2]
    found, plain = _motion(double(), q), _motion(double(), q.copy())
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_array_equal(a, b)
    return found


def quat_zero(folder: Path) -> Any:
    return _motion(floating(), [0, 0, 1, 0, 0, 0, 0], by_compiled=False)


def quat_unnormalised(folder: Path) -> Any:
    found, unit = _motion(floating(), [0, 0, 1, 2, 0, 0, 0]), _motion(floating(), [0, 0, 1, 1, 0, 0, 0])
    for a, b in zip(found, unit, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    return found


def mass_negative_runtime(folder: Path) -> Any:
    symbolic = zw.load(_saved(folder), symbolic=("mass",))
    return symbolic.subs({"m_arm": -1})


def _saved(folder: Path) -> Path:
    path = folder / "pendulum.json"
    path.write_text(pendulum().to_json())
    return path


def _frame_asked(frame: Any) -> Any:
    m = pendulum()
    calls = [
        lambda: zw.frame_pose(m, [0.0], frame),
        lambda: zw.frame_jacobian(m, [0.0], frame),
        lambda: zw.compile(m, cache=False).frame_pose([0.0], frame),
        lambda: m.body(frame),
        lambda: m.joint(frame),
    ]
    return _all_the_same(calls)


def index_out_of_range(folder: Path) -> Any:
    return _frame_asked(10**6)


def index_negative(folder: Path) -> Any:
    return _frame_asked(-5)


def fd_step_jac_wrong_frame(folder: Path) -> Any:
    return _frame_asked("hand")


def foreign_data(folder: Path) -> Any:
    large = double()
    return _motion(pendulum(), np.array(large.neutral, float))


def none_argument(folder: Path) -> Any:
    m = pendulum()
    calls = [
        lambda: zw.forward_dynamics(m, None, [0.0], [0.0]),
        lambda: zw.forward_dynamics(None, [0.0], [0.0], [0.0]),  # type: ignore[arg-type]
        lambda: zw.compile(None),  # type: ignore[arg-type]
        lambda: zw.load(None),  # type: ignore[arg-type]
    ]
    return _all_the_same(calls)


def two_threads_one_data(folder: Path) -> Any:
    """Concurrent calls of one compiled object, which has no mutable state, give correct results."""
    m = double()
    fast = zw.compile(m, cache=False)
    q = np.random.default_rng(1).normal(size=(2, 500, 2))
    zero = np.zeros((500, 2))
    expected = [fast.forward_dynamics(part, zero, zero) for part in q]
    found: list[Any] = [None, None]

    def work(k: int) -> None:
        for _ in range(50):
            found[k] = fast.forward_dynamics(q[k], zero, zero)
            if not np.array_equal(found[k], expected[k]):
                return

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Comparison(np.array(found), np.array(expected))


def load_binary_garbage(folder: Path) -> Any:
    return _loaded(folder, "model.mjb", np.random.default_rng(0).bytes(10_000))


def load_binary_truncated(folder: Path) -> Any:
    whole = pendulum().to_json().encode()
    return _loaded(folder, "model.json", whole[: len(whole) // 2])


def load_binary_bitflip(folder: Path) -> Any:
    mesh = zw.Mesh(vertices=[(0, 0, 0), (1, 0, 0), (0, 1, 0)], faces=[(0, 1, 2)])
    m = zw.Mechanism("m", [zw.Body("b", geometry=(mesh,))])
    return _loaded(
        folder, "model.json", m.to_json().replace('"columns": 3', '"columns": 1073741827', 1).encode()
    )


class _Runs:
    """An object that creates a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def load_pickle_untrusted(folder: Path) -> Any:
    sign = folder / "code was run"
    for name in ("model.pkl", "model.json", "model.urdf"):
        try:
            _loaded(folder, name, pickle.dumps(_Runs(sign)))
        except ZwangError:
            continue
    assert not sign.exists()
    return _loaded(folder, "model.mjb", struct.pack("<I", 54321) + pickle.dumps(_Runs(sign)))


def load_directory(folder: Path) -> Any:
    return zw.load(folder)
