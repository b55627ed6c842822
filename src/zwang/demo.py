"""`zwang demo`: from a mechanism with symbols to its equations, thousands of worlds, checks of accuracy, and
files.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console

from zwang.api.runs.simulate import simulate
from zwang.errors import WriteError
from zwang.kinematics.poses import frame_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.samples import FURUTA, four_bar, furuta
from zwang.recording.dataset import save
from zwang.recording.energy_change import energy_drift
from zwang.symbolic.equations import equations
from zwang.viewer.html_page import save_html
from zwang.viewer.plot import plot

DURATION, STEP = 2.0, 0.002
GAINS = (0.0316, -0.497, 0.0202, -0.0380)
"""Gains of a linear-quadratic regulator for theta, alpha [N m/rad] and their rates [N m s/rad], nominal
parameters.
"""
PAGE_WORLDS = 9  # worlds on the web page
BALANCE_WORLDS = 64  # worlds recorded at every step, for the energy balance


def demonstrate(folder: Path, worlds: int, out: Console) -> None:
    """Run the demonstration with this number of worlds: print a report to `out`, and write
    files to `folder`.
    """
    began = time.perf_counter()
    _make_folder(folder)
    pendulum = furuta()
    out.print(
        "[bold]1. A mechanism with symbols[/]: Furuta's pendulum, "
        "an actuated arm that carries a pendulum at its end."
    )
    out.print("[bold]2. Its equations of motion[/], mass matrix * accelerations = right-hand side:\n")
    print(equations(pendulum), "\n")
    out.print(
        f"[bold]3. {worlds:,} worlds[/] with random masses, lengths, friction and initial states, "
        "balanced by a state feedback."
    )
    started = time.perf_counter()
    run = randomised(pendulum, worlds, duration=DURATION, step=STEP, record=10)
    seconds = time.perf_counter() - started
    steps = worlds * round(DURATION / STEP)
    out.print(f"   {steps:,} Runge-Kutta steps took {seconds:.2f} s, including compilation and recording.")
    out.print("[bold]4. Checks of accuracy:[/]")
    for line in conservation_report(run):
        out.print(line)
    page, picture, recording = (folder / f"furuta.{suffix}" for suffix in ("html", "png", "nc"))
    save_html(run, page, worlds=PAGE_WORLDS)
    plot(run, picture)
    save(run, recording)
    out.print("[bold]5. Files written:[/]")
    out.print(f"   {page}: a web page that plays {min(PAGE_WORLDS, worlds)} of the worlds")
    out.print(f"   {picture}: a plot")
    out.print(f"   {recording}: the recording, which zw.open_run or xarray can open")
    out.print(
        f"\nThe demonstration took {time.perf_counter() - began:.1f} s. "
        "Next: zwang simulate four_bar --duration 5 --html four_bar.html"
    )


def _make_folder(folder: Path) -> None:
    """Raises WriteError, before anything is computed, where there cannot be the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if folder.is_file() else error.strerror
        raise WriteError(
            f"the folder {str(folder)!r} cannot be made: {reason}; give another folder"
        ) from error


def randomised(pendulum: Mechanism, worlds: int, *, duration: float, step: float, record: int) -> xr.Dataset:
    """A recording of worlds with random parameters near the nominal ones and random initial states near
    upright.

    A state feedback (see `balance`) balances the pendulum. duration and step are in seconds; every
    `record`-th step is recorded.
    """
    rng = np.random.default_rng(1829)
    varied = ("m_r", "L_r", "m_p", "L_p", "B_r", "B_p")
    params = {
        name: FURUTA[name] * rng.uniform(0.9, 1.1, worlds) if name in varied else FURUTA[name]
        for name in FURUTA
    }
    params["J_r2"] = params["J_r3"] = params["m_r"] * params["L_r"] ** 2 / 12  # slender rods
    params["J_p1"] = params["J_p2"] = params["m_p"] * params["L_p"] ** 2 / 12
    return simulate(
        pendulum, {"alpha": rng.normal(0, 0.15, worlds)}, {"alpha": rng.normal(0, 0.5, worlds)},
        duration=duration, step=step, integrator="rk4", control=balance, params=params, record=record,
    )  # fmt: skip


def balance(t: Any, q: Any, v: Any) -> dict[str, Any]:
    """The motor torque [N m] by linear state feedback, from a linear-quadratic regulator about the upright
    position.
    """
    theta, alpha = q
    return {"tau": GAINS[0] * theta + GAINS[1] * alpha + GAINS[2] * v[0] + GAINS[3] * v[1]}


def conservation_report(run: xr.Dataset) -> list[str]:
    """Lines that state how well energy is conserved and constraints are satisfied."""
    upright = np.abs(run["q"].sel(coordinate="alpha").values[:, -1]) < 0.05
    imbalance = energy_balance(randomised(furuta(), BALANCE_WORLDS, duration=1.0, step=STEP / 10, record=1))
    frictionless = furuta(**{**FURUTA, "B_r": 0.0, "B_p": 0.0})
    free = simulate(
        frictionless, {"alpha": 0.1}, duration=DURATION, step=STEP / 2, integrator="rk4", progress=False
    )
    linkage = four_bar()
    linkage_run = simulate(linkage, duration=2.0, step=0.001, integrator="rk4", progress=False)
    drift, violation = np.abs(energy_drift(free)).max(), loop_violation(linkage, linkage_run)
    return [
        f"   Worlds: {upright.mean():.1%} of the pendulums are upright at the end; "
        f"{int(run['status'].sum())} worlds stopped early.",
        f"   Energy balance: energy change and work differ by at most {imbalance:.1e} of the kinetic energy "
        f"({BALANCE_WORLDS} worlds, 1 s).",
        f"   Energy conservation: without friction and motor torque, the energy changes by {drift:.1e} of "
        f"the largest kinetic energy or range of potential energy ({DURATION:g} s).",
        f"   Hard constraints: the loop of a four-bar linkage stays closed within {violation:.1e} m (2 s).",
    ]


def energy_balance(run: xr.Dataset) -> float:
    """The largest error max_t |E(t) - E(0) - W(t)| of a world, relative to its largest kinetic energy.

    W is the work of the motor minus the energy dissipated by the dampers (trapezoidal rule).
    """
    theta, u = run["q"].sel(coordinate="theta").values, run["control"].values[..., 0]
    damping = run["parameters"].sel(parameter=["B_r", "B_p"]).values  # of theta and alpha, in the order of v
    dissipated_power = (damping[:, None, :] * run["v"].values ** 2).sum(axis=-1)
    step = run.attrs["step"]
    work = u[:, :-1] * np.diff(theta) - step * (dissipated_power[:, 1:] + dissipated_power[:, :-1]) / 2
    change = run["energy"].values[:, 1:] - run["energy"].values[:, :1]
    error = np.abs(change - np.cumsum(work, axis=1)).max(axis=1)
    return float((error / run["kinetic_energy"].values.max(axis=1)).max())


def loop_violation(linkage: Mechanism, run: xr.Dataset) -> float:
    """The largest distance [m] between the two points that the first constraint of a linkage connects."""
    loop = linkage.constraints[0]
    distances = []
    for q in run["q"].values[0, ::20]:
        ends = [
            R @ np.array(point) + p
            for (body, point) in (loop.a, loop.b)
            for R, p in [frame_pose(linkage.tree, q, body)]
        ]
        distances.append(np.linalg.norm(np.asarray(ends[0] - ends[1], dtype=float)))
    return float(max(distances))
