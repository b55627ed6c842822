"""The contents of the report of a fit by simulation: sentences, tables and plots."""

from __future__ import annotations

import numpy as np

from zwang.identification.excitation import advice_to_plan
from zwang.identification.report_format import Table, digits_of, figure, interval_text
from zwang.identification.simulation.simulation_fit import SimulationFit

POOR_CONDITION = 1000.0  # of the scaled derivatives, above which a better motion is worth planning
UNTOLD = "not told by the record"


def summary(fit: SimulationFit) -> str:
    """The sentences above the tables."""
    known, told = fit.known, [bool(np.isfinite(row).all()) for row in fit.interval]
    lines = [
        f"Mechanism {fit.model.name!r}: the record tells {sum(told)} of {len(told)} combinations of "
        f"{len(fit.parameters)} parameters, by simulation of {fit.measured.shape[0]} windows of "
        f"{fit.measured.shape[1] - 1} samples.",
        f"Intervals have a probability of {100 * known.level:g} %. The condition number of the scaled "
        f"derivatives is {known.condition:.3g}. {fit.reason[:1].upper()}{fit.reason[1:]}.",
    ]
    if known.condition > POOR_CONDITION:
        lines.append(
            f"The condition number is high, so that some intervals are wide{advice_to_plan(fit.model)}."
        )
    if len(fit.start_costs) > 1:
        costs = ", ".join(f"{x:.4g}" for x in sorted(fit.start_costs))
        lines.append(f"Costs of the fits from all starts: {costs}.")
    return "\n".join(lines)


def tables(fit: SimulationFit) -> list[Table]:
    """Combinations with intervals; every parameter with its status; residuals by coordinate."""
    return [_combinations(fit), _parameters(fit), _residuals(fit)]


def plots(fit: SimulationFit) -> str:
    """Measured and simulated coordinates over time, where windows and trials follow each other."""
    samples = fit.time - fit.time[:, :1]
    time = (fit.time[0, 0] + samples + samples[0, -1] * np.arange(len(samples))[:, None]).ravel()
    figures = "".join(
        figure(name, time, fit.measured[..., k].ravel(), fit.simulated[..., k].ravel())
        for k, name in enumerate(fit.model.coordinate_names)
    )
    return (
        "<h2>Coordinates</h2><p>Grey: measured. Blue: simulated with the parameters found. Horizontally "
        f"time, {time[0]:.4g} to {time[-1]:.4g} s.</p>{figures}"
    )


def _combinations(fit: SimulationFit) -> Table:
    base = fit.known.base
    before = base.matrix @ np.array([float(p.value) for p in fit.parameters])
    rows = []
    for k, text in enumerate(base.combinations):
        lower, upper = fit.interval[k]
        is_told = bool(np.isfinite(upper - lower))
        found = f"{fit.beta[k]:.{digits_of(lower, upper)}g}" if is_told else "-"
        interval = interval_text(lower, upper) if is_told else UNTOLD
        rows.append([text, f"{before[k]:.4g}", found, interval, fit.known.units[k]])
    return "Combinations", ("combination", "model", "found", "interval", "unit"), rows


def _parameters(fit: SimulationFit) -> Table:
    base, rows = fit.known.base, []
    for k, parameter in enumerate(fit.parameters):
        status = base.status(k)
        within = np.flatnonzero(np.abs(base.matrix[:, k]) > 1e-6)
        told = [i for i in within if np.isfinite(fit.interval[i]).all()]
        if status == "invisible":
            words, text = "invisible", "moves no joint"
        elif not told:
            words, text = "not told", UNTOLD
        elif status == "alone":
            words, text = "found", interval_text(*fit.interval[told[0]])
        else:
            words, text = "bound to others", "in " + "; ".join(base.combinations[i] for i in told)
        rows.append([parameter.name, f"{float(parameter.value):.4g}", words, text, parameter.unit])
    return "Parameters", ("parameter", "model", "status", "interval or combination", "unit"), rows


def _residuals(fit: SimulationFit) -> Table:
    rows = [
        [name, f"{x:.4g}", f"{s:.4g}", f"{x / s:.3g}"]
        for name, x, s in zip(fit.model.speed_names, fit.deviation, fit.errors, strict=True)
    ]
    heads = ("coordinate", "residual rms", "errors of the measurement", "ratio")
    return "Residuals by coordinate [rad, m]", heads, rows
