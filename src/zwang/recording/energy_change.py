"""The change of energy during a recording; energies that overflow are left out of it, and counted."""

from __future__ import annotations

import numpy as np
import xarray as xr


def energy_change(run: xr.Dataset) -> np.ndarray:
    """E(t) - E(0) (worlds, times) [J], NaN where one of them is not finite."""
    energy = _finite(run, "energy")
    with np.errstate(all="ignore"):
        return energy - energy[:, :1]


def energy_drift(run: xr.Dataset) -> np.ndarray:
    """The relative energy change (worlds, times): E(t) - E(0), over the largest kinetic energy or the range
    of potential energy of the world, whichever is larger; NaN where an energy is not finite.
    """
    kinetic, potential = _finite(run, "kinetic_energy"), _finite(run, "potential_energy")
    with np.errstate(all="ignore"):
        spread = np.fmax.reduce(potential, axis=1) - np.fmin.reduce(potential, axis=1)
        scale = np.fmax(np.fmax.reduce(kinetic, axis=1), spread)
        return energy_change(run) / np.where(scale > 0, scale, 1.0)[:, None]


def energy_summary(run: xr.Dataset) -> str:
    """The mean initial energy, the largest change, also relative to the energy that the motion exchanges, and
    in how many worlds it overflows, as text.
    """
    energy = run["energy"].transpose("world", "time").values
    change, relative = (float(_largest(f(run))) for f in (energy_change, energy_drift))
    initial = energy[:, 0][np.isfinite(energy[:, 0])]
    mean = " on average" if len(energy) > 1 else ""
    text = (
        f"{initial.mean():.6g} J initially{mean}, changes by at most {change:.3g} J, at most {relative:.2g} "
        "of the largest kinetic energy or range of potential energy"
        if initial.size
        else ""
    )
    valid = np.isfinite(run["q"].transpose("world", "time", ...).values).all(axis=2)
    overflows = int((valid & ~np.isfinite(energy)).any(axis=1).sum())
    where = f" in {overflows:,} of {len(energy):,} worlds" if len(energy) > 1 else ""
    note = f"too large for a number{where}" if overflows else ""
    return "; ".join(part for part in (text, note) if part)


def _finite(run: xr.Dataset, name: str) -> np.ndarray:
    """An energy (worlds, times), NaN where it is not finite."""
    values = run[name].transpose("world", "time").values
    return np.where(np.isfinite(values), values, np.nan)


def _largest(change: np.ndarray) -> float:
    """The largest magnitude of the finite elements, 0 without any."""
    return np.max(np.abs(change[np.isfinite(change)]), initial=0.0)
