"""System identification: which parameters of a mechanism the data can tell, their values and intervals."""

from __future__ import annotations

from zwang.api.compilation.closed_loops import closed_loop_motion
from zwang.identification.base_parameters import BaseParameters, base_parameters
from zwang.identification.excitation import Excitation, excitation
from zwang.identification.fit import Fit, fit
from zwang.identification.fixed_joints import with_fixed_joints
from zwang.identification.html_report import FitReport, report
from zwang.identification.measurements import Measurements, measurements
from zwang.identification.parameters import Parameter
from zwang.identification.regressor import parameters, regressor
from zwang.identification.sample_files import read_csv
from zwang.identification.simulation.simulation_fit import SimulationFit, fit_by_simulation
from zwang.identification.simulation.simulation_intervals import KnownCombinations

__all__ = [
    "BaseParameters",
    "Excitation",
    "Fit",
    "FitReport",
    "KnownCombinations",
    "Measurements",
    "Parameter",
    "SimulationFit",
    "base_parameters",
    "closed_loop_motion",
    "excitation",
    "fit",
    "fit_by_simulation",
    "measurements",
    "parameters",
    "read_csv",
    "regressor",
    "report",
    "with_fixed_joints",
]


def __dir__() -> list[str]:
    return sorted(__all__)
