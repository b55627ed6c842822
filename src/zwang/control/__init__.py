"""Feedback and trajectories from a mechanism's exact derivatives, and planning by its batched steps."""

from zwang.control.ilqr import TrajectoryResult, ilqr
from zwang.control.lqr import Regulator, lqr
from zwang.control.predictive_sampling import SampledPlan, predictive_sampling
from zwang.control.quadratic import Quadratic

__all__ = [
    "Quadratic",
    "Regulator",
    "SampledPlan",
    "TrajectoryResult",
    "ilqr",
    "lqr",
    "predictive_sampling",
]


def __dir__() -> list[str]:
    return sorted(__all__)
