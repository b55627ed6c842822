"""The report of a fit: what was found with its interval, what only in combinations, and what not at all."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zwang.atomic import write_file
from zwang.errors import visible
from zwang.identification.excitation import advice_to_plan
from zwang.identification.fit import Fit
from zwang.identification.report_format import (
    STYLE,
    Table,
    digits_of,
    figure,
    html_of,
    interval_text,
    text_of,
)
from zwang.identification.simulation import simulation_report
from zwang.identification.simulation.simulation_fit import SimulationFit
from zwang.mechanism.type_validation import validated_arguments

POOR_CONDITION = 100.0  # of the scaled base regressor, above which a better motion is worth planning
WORSE = 1.5  # ratio of the residuals held back to those of the fit that deserves a sentence


@dataclass(frozen=True)
class FitReport:
    """The report of a fit as text (`str`), in notebooks, and as a self-contained HTML file (`save`)."""

    fit: Fit | SimulationFit

    def __str__(self) -> str:
        summary, tables, _ = _contents(self.fit)
        return visible("\n\n".join([summary, *map(text_of, tables)]))

    def _repr_html_(self) -> str:
        summary, tables, plots = _contents(self.fit)
        lines = "".join(f"<p>{html.escape(visible(line))}</p>" for line in summary.split("\n"))
        return f"{lines}{''.join(map(html_of, tables))}{plots}"

    def html(self) -> str:
        """The report as the text of a self-contained HTML page without scripts."""
        title = html.escape(visible(f"Identification of {self.fit.model.name}"))
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{title}</title>'
            f"<style>{STYLE}</style></head><body><h1>{title}</h1>{self._repr_html_()}</body></html>"
        )

    def save(self, path: str | Path) -> None:
        """Write the HTML page. Raises WriteError if the file cannot be written."""
        write_file(path, self.html().encode("ascii", "xmlcharrefreplace"))


@validated_arguments()
def report(fit: Fit | SimulationFit) -> FitReport:
    """The report of a fit to forces or by simulation, as text, in notebooks and as HTML.

    It lists every base parameter with its confidence interval; every parameter as found alone, as bound to
    others in a combination, or as invisible; and the residuals of every joint, also on the samples that were
    held back, or of every coordinate of a fit by simulation. No fitted number stands without its interval.
    """
    return FitReport(fit)


def _contents(fit: Fit | SimulationFit) -> tuple[str, list[Table], str]:
    """Sentences, tables, and plots as HTML."""
    if isinstance(fit, SimulationFit):
        part = simulation_report
        return part.summary(fit), part.tables(fit), part.plots(fit)
    return _summary(fit), _tables(fit), _plots(fit)


def _summary(fit: Fit) -> str:
    """The sentences above the tables."""
    base, samples = fit.base, len(fit.train)
    counts = {status: 0 for status in ("alone", "combined", "invisible")}
    for k in range(len(base.parameters)):
        counts[base.status(k)] += 1
    of_trials = f" of {len(fit.train.lengths)} trials" if fit.train.lengths else ""
    lines = [
        f"Mechanism {fit.model.name!r}: {samples} samples{of_trials} tell {len(base)} base parameters of "
        f"{len(base.parameters)} parameters. Of these, {counts['alone']} are found alone, "
        f"{counts['combined']} only in combinations with others, and {counts['invisible']} not at all.",
        f"Intervals have a probability of {100 * fit.level:g} %. The condition number of the base regressor "
        f"is {fit.estimate.condition:.3g}, and with its columns scaled to unit length "
        f"{fit.estimate.scaled_condition:.3g}.",
    ]
    if fit.estimate.scaled_condition > POOR_CONDITION:
        lines.append(
            "The condition number of the scaled columns is high, so that some intervals are wide"
            f"{advice_to_plan(fit.model)}."
        )
    if fit.outside:
        names = "; ".join(base.combinations[k] for k in fit.outside)
        lines.append(
            "No physically consistent mechanism within the bounds explains the forces, so that the data, the "
            "model or its friction are in doubt. The squared distance of the nearest one from all values "
            f"found together is {fit.misfit:.3g}; for correct data it exceeds {fit.largest_misfit:.3g} with "
            f"a probability of at most {100 * (1 - fit.level):.3g} %. Farthest are: {names}."
        )
    ratio = _held_back_ratio(fit)
    if ratio > WORSE:
        lines.append(
            f"The residuals held back are up to {ratio:.2g} times as large as those of the fit: the fit does "
            "not describe other motions as well; give more samples, or other kinds of parameters."
        )
    return "\n".join(lines)


def _held_back_ratio(fit: Fit) -> float:
    if fit.test is None:
        return 1.0
    ours, others = (_rms(fit.residuals(part)) for part in (fit.train, fit.test))
    return float((others / np.maximum(ours, 1e-12 * max(float(_rms(fit.train.tau).max()), 1e-300))).max())


def _tables(fit: Fit) -> list[Table]:
    return [_base_table(fit), _parameter_table(fit), _joint_table(fit)]


def _base_table(fit: Fit) -> Table:
    heads = ("base parameter", "model", "found", "interval", "unit")
    rows = []
    for k, text in enumerate(fit.base.combinations):
        unit = fit.base.parameters[fit.base.independent[k]].unit
        digits = digits_of(*fit.interval[k])
        rows.append([text, f"{fit.base.values[k]:.4g}", f"{fit.beta[k]:.{digits}g}", _range(fit, k), unit])
    return "Base parameters", heads, rows


def _parameter_table(fit: Fit) -> Table:
    heads = ("parameter", "model", "status", "interval or combination", "unit")
    rows = []
    for k, parameter in enumerate(fit.base.parameters):
        status = fit.base.status(k)
        model = f"{float(parameter.value):.4g}"
        rows.append([parameter.name, model, _WORDS[status], _what_is_known(fit, k), parameter.unit])
    return "Parameters", heads, rows


_WORDS = {"alone": "found", "combined": "bound to others", "invisible": "invisible"}


def _what_is_known(fit: Fit, k: int) -> str:
    """The interval of a parameter found alone; the base parameters that contain it; or that none does."""
    status = fit.base.status(k)
    if status == "invisible":
        return "moves no joint"
    rows = np.flatnonzero(np.abs(fit.base.matrix[:, k]) > 1e-6)
    if status == "alone":
        return _range(fit, int(rows[0]))
    return "in " + "; ".join(fit.base.combinations[i] for i in rows)


def _range(fit: Fit, k: int) -> str:
    """The interval of a base parameter."""
    return interval_text(*fit.interval[k])


def _joint_table(fit: Fit) -> Table:
    heads = [
        "velocity",
        "force rms",
        "residual rms",
        "held-back residual rms",
        "explained",
        "correlated over",
    ]
    train = _rms(fit.residuals(fit.train))
    test = None if fit.test is None else _rms(fit.residuals(fit.test))
    force = _rms(fit.measured(fit.train))
    rows = []
    for k, name in enumerate(fit.force_names):
        explained = 1 - (train[k] / force[k]) ** 2 if force[k] > 0 else 0.0
        rows.append([name, f"{force[k]:.4g}", f"{train[k]:.4g}", "-" if test is None else f"{test[k]:.4g}",
                     f"{100 * explained:.2f} %", f"{fit.estimate.correlation[k]:.3g} samples"])  # fmt: skip
    return "Residuals by joint [N m, N]", heads, rows


def _rms(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(x**2, axis=0))


def _plots(fit: Fit) -> str:
    """Measured and fitted forces of every joint, of the samples held back if there are any."""
    part = fit.train if fit.test is None else fit.test
    what = "the fit" if fit.test is None else "the samples held back"
    measured, time = fit.measured(part), part.elapsed[part.inner]
    fitted = measured - fit.residuals(part)
    figures = "".join(
        figure(name, time, measured[:, k], fitted[:, k]) for k, name in enumerate(fit.force_names)
    )
    return (
        f"<h2>Forces of {what}</h2><p>Grey: measured. Blue: by the base parameters found. Horizontally time, "
        f"{time[0]:.4g} to {time[-1]:.4g} s.</p>{figures}"
    )
