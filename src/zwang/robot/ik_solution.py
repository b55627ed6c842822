"""What inverse kinematics answers: the joints, whether they are right, and if not, why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

REASONS = {
    "converged": "the frame is at its target within the tolerance and the joints are within their limits",
    "unreachable": "no start came to the target: the residual is the smallest that was found; the target is out of reach",
    "limit": "the target can be reached only by joints beyond their limits; change the target, or pass limits=False",
    "singular": "the search ended where the frame cannot move towards its target; allow restarts or give another q0",
    "iterations": "the search was not over when its iterations ended; allow more iterations or restarts",
}


class Residual(NamedTuple):
    """How far from its target the frame is: the largest distance [m] and angle [rad] over the frames."""

    position: Any
    orientation: Any


@dataclass(frozen=True)
class Trace:
    """The iteration table of one search: q[k] (k = 0 is the start) and the residuals there."""

    q: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.q)

    def __getitem__(self, k: int) -> np.ndarray:
        return self.q[k]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.q, dtype=dtype)

    def __str__(self) -> str:
        head = "".join(f"{name:>12}" for name in ("iteration", *self.names, "error [m]", "[rad]"))
        rows = [
            f"{k:>12}" + "".join(f"{x:>12.5g}" for x in (*q, position, orientation))
            for k, (q, position, orientation) in enumerate(
                zip(self.q, self.position, self.orientation, strict=True)
            )
        ]
        return "\n".join([head, *rows])


@dataclass(frozen=True)
class IKSolution:
    """The answer for one target, or for a batch of shape (...).

    q (..., nq): the joints, the best found where not converged. converged (...): whether the residual is within the tolerance and
    q within the limits. reason (...): "converged", "unreachable", "limit", "singular" or "iterations". residual: metres
    and radians. iterations (...): turns over all starts. starts (...): how many were tried. trace: the iteration table of
    a single target, made when asked for.
    """

    q: np.ndarray
    converged: Any
    reason: Any
    residual: Residual
    iterations: Any
    starts: Any
    record: Callable[[], Trace] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def trace(self) -> Trace | None:
        """The iteration table from q0, of a single target; None for a batch."""
        return self.record() if self.record is not None else None

    def __getstate__(self) -> dict[str, Any]:
        """All of it, for a copy or another process: the iteration table is made before, since the search stays here."""
        return {**vars(self), "trace": self.trace, "record": None}

    def __len__(self) -> int:
        return len(self.q) if self.q.ndim > 1 else 1

    def explain(self, index: Any = ()) -> str:
        """One sentence on a target's outcome, with the remedy."""
        reason = str(np.asarray(self.reason)[index])
        position = float(np.asarray(self.residual.position)[index])
        orientation = float(np.asarray(self.residual.orientation)[index])
        return f"{reason}: {REASONS[reason]} (residual {position:.3g} m, {orientation:.3g} rad)"

    def __str__(self) -> str:
        if np.ndim(self.converged) == 0:
            return self.explain()
        counts = {name: int(np.sum(self.reason == name)) for name in REASONS}
        shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"{np.size(self.converged)} targets: {shown}"
