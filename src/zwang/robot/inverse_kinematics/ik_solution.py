"""Results of inverse kinematics: the joint coordinates, their residuals, and the reason for a failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

REASONS = {
    "converged": "the frame is at its target within the tolerance and the joints are within their limits",
    "unreachable": (
        "no start converged to the target; the target is out of reach; the residual is the smallest found"
    ),
    "limit": "the target can be reached only beyond the joint limits; change it, or pass limits=False",
    "singular": (
        "the search ended where the frame cannot move towards its target; allow restarts or give another q0"
    ),
    "iterations": "the search reached its iteration limit; allow more iterations or restarts",
}


class Residual(NamedTuple):
    """The distance of the frames from their targets: the largest distance [m] and the largest angle [rad]."""

    position: Any
    orientation: Any


@dataclass(frozen=True)
class Trace:
    """The iteration table of one search.

    q (k, nq): the iterates, of which the first is the start. position (k,) [m], orientation (k,) [rad]: their
    residuals. names: of the coordinates. `trace[k]` is iterate k, and `print(trace)` shows the table.
    """

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
    """The result of `solve_ik` for one target, or for a batch of targets of shape (...).

    q (..., nq): the joint coordinates; where not converged, the best that were found.
    converged (...): whether the residual is within the tolerance and q is within the limits.
    reason (...): "converged", "unreachable", "limit", "singular" or "iterations".
    residual: the position residual (...) [m] and the orientation residual (...) [rad].
    iterations (...): their number over all starts. starts (...): the number of starts that were tried.
    trace: the iteration table of a single target, computed at its first use; None for a batch.
    """

    q: np.ndarray
    converged: np.ndarray | bool
    reason: np.ndarray | str
    residual: Residual
    iterations: np.ndarray | int
    starts: np.ndarray | int
    make_trace: Callable[[], Trace] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def trace(self) -> Trace | None:
        """The iteration table from q0 of a single target; None for a batch."""
        return self.make_trace() if self.make_trace is not None else None

    def __getstate__(self) -> dict[str, Any]:
        """The state for a copy or another process, with the trace, since the search is not copied."""
        return {**vars(self), "trace": self.trace, "make_trace": None}

    def __len__(self) -> int:
        return len(self.q) if self.q.ndim > 1 else 1

    def explain(self, index: Any = ()) -> str:
        """A sentence on the outcome of one target, with the remedy.

        index: the target's index in the batch; omit it for a single target.
        """
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
