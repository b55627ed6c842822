"""System identification: which parameters of a mechanism the data can tell, their values and intervals."""

from __future__ import annotations

from zwang.identification.base_parameters import BaseParameters, base_parameters
from zwang.identification.excitation import Excitation, excitation
from zwang.identification.fit import Fit, fit
from zwang.identification.fixed_joints import with_fixed_joints
from zwang.identification.measurements import Measurements, measurements
from zwang.identification.parameters import Parameter
from zwang.identification.regressor import parameters, regressor
from zwang.identification.report import FitReport, report
from zwang.identification.sample_files import read_csv

__all__ = [
    "BaseParameters",
    "Excitation",
    "Fit",
    "FitReport",
    "Measurements",
    "Parameter",
    "base_parameters",
    "excitation",
    "fit",
    "measurements",
    "parameters",
    "read_csv",
    "regressor",
    "report",
    "with_fixed_joints",
]
