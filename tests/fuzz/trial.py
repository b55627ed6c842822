"""The outcome of a mutant: the file is loaded and used, and only errors of zwang are permitted."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zwang as zw
from tests.fuzz.corpus import Base, stage
from zwang.errors import ZwangError
from zwang.mechanism.mechanism import Mechanism

MOST_SPEEDS, FEW_SPEEDS, STEPS = 40, 12, 2


def outcome_of(call: Callable[[], Any]) -> tuple[str, str]:
    """("accepted" or "refused" or "foreign", message); exceptions other than zwang's are foreign."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except ZwangError as error:
            return (
                ("refused", str(error))
                if str(error).strip()
                else ("foreign", f"{type(error).__name__} says nothing")
            )
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-3:]
            trail = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(place))
            return "foreign", f"{type(error).__name__}: {str(error)[:200]} ({trail})"
    return "accepted", ""


def try_file(base: Base, folder: Path) -> dict[str, tuple[str, str]]:
    """The outcome of loading and using a file, with strict=True and strict=False."""
    stage(folder)
    path = folder / f"mutant{Path(base.name).suffix}"
    path.write_bytes(base.data)
    seen: list[Mechanism] = []
    ways = (("strict", True), ("lenient", False))
    return {name: outcome_of(lambda strict=strict: _used(path, strict, seen)) for name, strict in ways}


def _used(path: Path, strict: bool, seen: list[Mechanism]) -> None:
    """Load a file; display, serialise, deserialise and simulate the mechanism unless it is known already."""
    m = zw.load(path, strict=strict)
    if m in seen:
        return
    seen.append(m)
    assert all(isinstance(part, str) for part in (str(m.report), repr(m), m.name))
    outcome = outcome_of(lambda: _simulate(m))
    if outcome[0] == "foreign":
        raise AssertionError(f"of an accepted file: {outcome[1]}")
    if Mechanism.from_json(m.to_json()) != m:
        raise AssertionError("its JSON text gives another mechanism")


def _simulate(m: Mechanism) -> None:
    """Some reference functions in the default configuration, and two steps."""
    if m.symbols or m.nv > MOST_SPEEDS:
        return
    q, zero = np.array(m.home or m.neutral, dtype=float), np.zeros(m.nv)
    zw.energy(m, q, zero)
    zw.forward_dynamics(m, q, zero, zero)
    for name in [b.name for b in m.bodies][:3]:
        zw.frame_jacobian(m, q, name)
    if m.nv <= FEW_SPEEDS:
        zw.constrained_dynamics(m, q, zero, zero)
    if 0 < m.nv <= FEW_SPEEDS // 2:
        zw.simulate(m, q, duration=STEPS * 1e-4, step=1e-4, compiled=False, progress=False)
