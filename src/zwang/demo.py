"""The demonstration: from a mechanism with symbols to equations, thousands of worlds, a report, a page and files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console

from zwang.api.simulate import simulate
from zwang.kinematics.poses import frame_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.samples import FURUTA, four_bar, furuta
from zwang.recording.record import save
from zwang.symbolic.equations import equations
from zwang.view.html_page import save_html
from zwang.view.plot import energy_drift, plot

DURATION, STEP = 2.0, 0.002
GAINS = (
    0.0316,
    -0.497,
    0.0202,
    -0.0380,
)  # of a linear-quadratic regulator for the nominal pendulum [N m/rad, N m s/rad]
SHOWN = 9  # worlds on the page
WATCHED = 64  # worlds recorded at every step, to add up the work done on them


def demonstrate(folder: Path, worlds: int, out: Console) -> None:
    """Print, simulate, report and write; files go to `folder`."""
    began = time.perf_counter()
    pendulum = furuta()
    out.print(
        "[bold]1. A mechanism with symbols[/]: Furuta's pendulum, a driven arm with a pendulum across its end"
    )
    out.print("[bold]2. Its equations[/], mass matrix * accelerations = right-hand side:\n")
    print(equations(pendulum), "\n")
    out.print(
        f"[bold]3. {worlds:,} worlds[/], each with its own masses, lengths, friction and start, balanced by a controller"
    )
    started = time.perf_counter()
    run = randomised(pendulum, worlds, duration=DURATION, step=STEP, record=10)
    seconds = time.perf_counter() - started
    out.print(
        f"   {worlds * round(DURATION / STEP):,} Runge-Kutta steps in {seconds:.2f} s, compiling and recording included"
    )
    out.print("[bold]4. Is it right?[/]")
    for line in report(run):
        out.print(line)
    folder.mkdir(parents=True, exist_ok=True)
    page, picture, recording = (folder / f"furuta.{ending}" for ending in ("html", "png", "nc"))
    save_html(run, page, worlds=SHOWN)
    plot(run, picture)
    save(run, recording)
    out.print(
        f"[bold]5. Kept[/]: the page {page}, which plays {min(SHOWN, worlds)} of the worlds, the picture {picture}, "
        f"and the recording {recording} (zw.open_run, or xarray)"
    )
    out.print(
        f"\nAll in {time.perf_counter() - began:.1f} s. Next: zwang simulate four_bar --duration 5 --html four_bar.html"
    )


def randomised(pendulum: Mechanism, worlds: int, *, duration: float, step: float, record: int) -> xr.Dataset:
    """Worlds with parameters around the real ones and random starts near upright, under feedback that balances them."""
    rng = np.random.default_rng(1829)
    changed = ("m_r", "L_r", "m_p", "L_p", "B_r", "B_p")
    params = {
        name: FURUTA[name] * rng.uniform(0.9, 1.1, worlds) if name in changed else FURUTA[name]
        for name in FURUTA
    }
    params["J_r2"] = params["J_r3"] = params["m_r"] * params["L_r"] ** 2 / 12  # slender rods
    params["J_p1"] = params["J_p2"] = params["m_p"] * params["L_p"] ** 2 / 12
    return simulate(
        pendulum, {"alpha": rng.normal(0, 0.15, worlds)}, {"alpha": rng.normal(0, 0.5, worlds)},
        duration=duration, step=step, integrator="rk4", control=balance, params=params, record=record,
    )  # fmt: skip


def balance(t: Any, q: Any, v: Any) -> dict[str, Any]:
    """Linear state feedback [N m], from a regulator of the nominal pendulum upright."""
    theta, alpha = q
    return {"tau": GAINS[0] * theta + GAINS[1] * alpha + GAINS[2] * v[0] + GAINS[3] * v[1]}


def report(run: xr.Dataset) -> list[str]:
    """Energy and constraints in figures."""
    upright = np.abs(run["q"].sel(coordinate="alpha").values[:, -1]) < 0.05
    missing = energy_balance(randomised(furuta(), WATCHED, duration=1.0, step=STEP / 10, record=1))
    frictionless = furuta(**{**FURUTA, "B_r": 0.0, "B_p": 0.0})
    free = simulate(
        frictionless, {"alpha": 0.1}, duration=DURATION, step=STEP / 2, integrator="rk4", progress=False
    )
    linkage = four_bar()
    turned = simulate(linkage, duration=2.0, step=0.001, integrator="rk4", progress=False)
    return [
        f"   {upright.mean():.1%} of the worlds stand upright at the end; {int(run['status'].sum())} stopped early",
        f"   energy less work done: {missing:.1e} of the kinetic energy at most, in {WATCHED} worlds",
        f"   energy without friction and drive, {DURATION:g} s of free swinging: changes by {np.abs(energy_drift(free)).max():.1e} of its swing",
        f"   constraint: the exact loop of a four-bar linkage stays closed to {loop_gap(linkage, turned):.1e} m over 2 s",
    ]


def energy_balance(run: xr.Dataset) -> float:
    """The largest of |E - E_0 - work| over the largest kinetic energy: the motor's work less what the dampers take."""
    theta, u = run["q"].sel(coordinate="theta").values, run["control"].values[..., 0]
    damping = (
        run["parameters"].sel(parameter=["B_r", "B_p"]).values
    )  # of theta and alpha, in the order of the speeds
    lost = (damping[:, None, :] * run["v"].values ** 2).sum(axis=-1)
    steps = u[:, :-1] * np.diff(theta) - run.attrs["step"] * (lost[:, 1:] + lost[:, :-1]) / 2
    change = run["energy"].values[:, 1:] - run["energy"].values[:, :1]
    missing = np.abs(change - np.cumsum(steps, axis=1)).max(axis=1)
    return float((missing / run["kinetic_energy"].values.max(axis=1)).max())


def loop_gap(linkage: Mechanism, run: xr.Dataset) -> float:
    """The largest distance [m] between the two points that the loop of a linkage holds together."""
    loop = linkage.constraints[0]
    gaps = []
    for q in run["q"].values[0, ::20]:
        ends = [
            R @ np.array(point) + p
            for (body, point) in (loop.a, loop.b)
            for R, p in [frame_pose(linkage.tree, q, body)]
        ]
        gaps.append(np.linalg.norm(np.asarray(ends[0] - ends[1], dtype=float)))
    return float(max(gaps))
