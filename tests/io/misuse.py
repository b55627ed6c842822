"""Misuse of the programming interface, by the names that tests/badinputs/expectations.json gives it: what a careless or hostile caller does.

Each function does the thing and returns what zwang gave; an error of zwang's, a TypeError at the call, or finite numbers are good.
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
    """One hinge."""
    arm = zw.Body(
        "arm", zw.Revolute("shoulder", axis=(0, 1, 0)), mass=1, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1)
    )
    return zw.Mechanism("pendulum", [arm])


def double() -> Mechanism:
    """Two hinges: a larger mechanism than `pendulum`."""
    arm = pendulum().bodies[0]
    hand = zw.Body(
        "hand", zw.Revolute("wrist"), "arm", (0, 0, -1), mass=1, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1)
    )
    return zw.Mechanism("double", [arm, hand])


def floating() -> Mechanism:
    """One free body."""
    return zw.Mechanism("floating", [zw.Body("ball", zw.Free("root"), mass=1, inertia=(0.1, 0.2, 0.2))])


def _moved(mechanism: Mechanism, q: Any, *, by_compiled: bool = True) -> Any:
    """The motion from q by every way in: the reference, a simulation, and the compiled function.

    The compiled functions look at shapes only: a world that is NaN stays so, and the others are right.
    """
    zero = np.zeros(mechanism.nv)
    answers = [
        lambda: zw.forward_dynamics(mechanism, q, zero, zero),
        lambda: zw.simulate(mechanism, q, zero, duration=0.1, step=0.01)["q"].values,
    ]
    if by_compiled:
        answers.append(lambda: zw.compile(mechanism, cache=False).forward_dynamics(q, zero, zero))
    return _all_the_same(answers)


def _all_the_same(calls: list[Callable[[], Any]]) -> Any:
    """All answers, or the error, which every call must raise."""
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


class AsProper(NamedTuple):
    """What a misuse gave, and what the proper use gives: the judge holds one against the other."""

    answers: np.ndarray
    of_proper_use: np.ndarray


def _loaded(folder: Path, name: str, data: bytes) -> Any:
    path = folder / name
    path.write_bytes(data)
    return zw.load(path)


def qpos_nan(folder: Path) -> Any:
    return _moved(pendulum(), [np.nan], by_compiled=False)


def qpos_too_long(folder: Path) -> Any:
    return _moved(pendulum(), [0.0, 0.0])


def qpos_too_short(folder: Path) -> Any:
    return _moved(double(), [0.0])


def qpos_string(folder: Path) -> Any:
    return _moved(pendulum(), ["left"])


def qpos_noncontiguous(folder: Path) -> Any:
    q = np.array([0.3, 9.0, 0.5, 9.0])[::2]
    found, plain = _moved(double(), q), _moved(double(), q.copy())
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_array_equal(a, b)
    return found


def quat_zero(folder: Path) -> Any:
    return _moved(floating(), [0, 0, 1, 0, 0, 0, 0], by_compiled=False)


def quat_unnormalised(folder: Path) -> Any:
    found, unit = _moved(floating(), [0, 0, 1, 2, 0, 0, 0]), _moved(floating(), [0, 0, 1, 1, 0, 0, 0])
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
    return _moved(pendulum(), np.array(large.neutral, float))


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
    """One compiled object from two threads at once: there is nothing in it to fight over, so the answers are right."""
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
    return AsProper(np.array(found), np.array(expected))


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
    """When unpickled, it makes a file."""

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
