"""Parameters of a real robot from its recorded motion, beside those that its identification published.

    git clone https://github.com/marcocognetti/FrankaEmikaPandaDynModel
    python benchmarks/real_robot.py FrankaEmikaPandaDynModel [--cutoff 10] [--estimator ordinary]

The folder has a record of a Franka Emika Panda: positions, velocities and torques at 1 kHz during 20 s. Its
authors published the 43 inertial coefficients and the 21 of friction that classical least squares gives for
this record (Table III of the supplementary material, "CLS"). The script fits the same coefficients and prints
both, with zwang's 95 % intervals; then, for a fit without the last fifth of the record, the residual of each
joint on both parts, beside that of the published coefficients.

Source: Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca, Dynamic identification of the Franka Emika Panda
robot with retrieval of feasible parameters using penalty-based optimization, IEEE Robotics and Automation
Letters 4(4) (2019) 4147, and its supplementary material of 15 October 2019.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import sympy as sp
from scipy.stats import t as student

import zwang as zw

D = (0.333, 0.0, 0.316, 0.0, 0.384, 0.0, 0.0)  # modified Denavit-Hartenberg parameters [m]
A = (0.0, 0.0, 0.0, 0.0825, -0.0825, 0.0, 0.088)
RIGHT = np.pi / 2
ALPHA = (0.0, -RIGHT, RIGHT, RIGHT, -RIGHT, RIGHT, RIGHT)
RECORD = Path("matlab/data/Exciting_Traj/Trajectory_1/rbt_log")
KINDS = ("inertia", "damping", "friction", "offset")

# coefficients by Table III, "CLS": masses m, first moments c, inertias J at the link frames, lengths a, b,
# d3, d5. In the second one the table counts m3 twice, a misprint: no force tells that combination.
PUBLISHED = {
    "J2yy + J1zz": 0.0204,
    "J2xx - J2yy + J3yy + d3**2*m3 + 2*d3*c3z + (a**2 + d3**2)*(m4 + m5 + m6 + m7)": 0.9188,
    "J2xy": -0.0033,
    "J2xz": 0.0042,
    "J2yz": -0.0155,
    "J3yy + J2zz + d3**2*m3 + 2*d3*c3z + (a**2 + d3**2)*(m4 + m5 + m6 + m7)": 0.9346,
    "J3xx - J3yy + J4yy - a**2*m4": 0.0149,
    "J3xy + a*c4z": 0.0127,
    "J3xz": -0.0061,
    "J3yz": -0.0138,
    "J4yy + J3zz + a**2*m4 + 2*a**2*(m5 + m6 + m7)": 0.0825,
    "J4xx - J4yy + J5yy + 2*d5*c5z + (d5**2 - a**2)*(m5 + m6 + m7)": 0.5462,
    "J4xy + a*d5*(m5 + m6 + m7) + a*c5z": 0.1202,
    "J4xz": 0.0040,
    "J4yz": 0.0078,
    "J5yy + J4zz + (a**2 + d5**2)*(m5 + m6 + m7) + 2*d5*c5z": 0.6196,
    "J5xx - J5yy + J6yy + b**2*m7": 0.0114,
    "J5xy": 0.0036,
    "J5xz": -0.0102,
    "J5yz": 0.0080,
    "J6yy + J5zz + b**2*m7": 0.0216,
    "J6xx - J6yy + J7yy - b**2*m7": -0.0157,
    "J6xy + b*c7z": 0.0014,
    "J6xz": 0.0047,
    "J6yz": 0.0006,
    "J7yy + J6zz + b**2*m7": 0.0145,
    "J7xx - J7yy": 0.0024,
    "J7xy": 0.0049,
    "J7xz": 0.0023,
    "J7yz": -0.0027,
    "J7zz": -0.0043,
    "c2x": 0.0288,
    "c2y - d3*(m3 + m4 + m5 + m6 + m7) - c3z": -3.1363,
    "a*(m4 + m5 + m6 + m7) + c3x": 0.6803,
    "c3y - c4z": -0.0121,
    "c4x - a*(m5 + m6 + m7)": -0.4726,
    "d5*(m5 + m6 + m7) + c4y + c5z": 1.7517,
    "c5x": -0.0005,
    "c5y - c6z": 0.0817,
    "b*m7 + c6x": 0.1637,
    "c6y - c7z": -0.0623,
    "c7x": 0.0013,
    "c7y": 0.0048,
}
VISCOUS = (0.0665, 0.1987, 0.0399, 0.2257, 0.1023, -0.0132, 0.0638)
DRY = (0.2450, 0.1523, 0.1827, 0.3591, 0.2669, 0.1658, 0.2109)
OFFSETS = (-0.1073, -0.1566, -0.0686, -0.2522, 0.0045, 0.0910, -0.0127)
for head, values in (("fv", VISCOUS), ("fc", DRY), ("fo", OFFSETS)):
    PUBLISHED |= {f"{head}{k}": x for k, x in enumerate(values, start=1)}
LENGTHS = {"a": 0.0825, "b": 0.088, "d3": 0.316, "d5": 0.384}


def panda() -> zw.Mechanism:
    """The arm with massless links at its link frames, to be identified."""
    m = zw.robot.from_dh(d=D, a=A, alpha=ALPHA, convention="modified", name="panda")
    bodies = [
        replace(b, mass=1.0, inertia=(0.01, 0.01, 0.01), joint=replace(b.joint, armature=0)) for b in m.bodies
    ]
    return m.replace(bodies=bodies)


def record(folder: Path, name: str) -> np.ndarray:
    """A file of the record, (samples, 7) or (samples,)."""
    values = np.loadtxt(folder / RECORD / f"exciting_traj_{name}.txt")
    return values if name == "time" else values.reshape(-1, 7)


def combination(text: str, names: list[str]) -> np.ndarray:
    """The row p of a published coefficient p pi."""
    form, row = sp.sympify(text), np.zeros(len(names))
    form = form.subs(LENGTHS)
    for symbol in form.free_symbols:
        row[names.index(_parameter(symbol.name))] = float(form.coeff(symbol))
    return row


def _parameter(symbol: str) -> str:
    """zwang's name of a published symbol: J2xy, c2x (first moment), m2, fv1, fc1, fo1."""
    kind = symbol.rstrip("0123456789xyz")
    rest = symbol[len(kind) :]
    if kind in ("fv", "fc", "fo"):
        return {"fv": "damping_q", "fc": "friction_q", "fo": "offset_q"}[kind] + rest
    link, axes = f"link{rest[0]}", rest[1:]
    return {"J": f"I_{link}_{axes}", "c": f"mc_{link}_{axes}", "m": f"m_{link}"}[kind]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cutoff", type=float, default=10.0)
    parser.add_argument("--estimator", choices=("ordinary", "weighted"), default="ordinary")
    options = parser.parse_args()
    q, v, tau, time = (record(options.folder, name) for name in ("positions", "velocity", "torques", "time"))
    even = np.arange(0, time[-1], 1e-3)  # the stamps jitter; the robot samples each millisecond
    q, v, tau = (np.stack([np.interp(even, time, x) for x in values.T], axis=1) for values in (q, v, tau))
    m = panda()
    samples = zw.identify.measurements(m, even, q, tau, v=v, cutoff=options.cutoff)
    fit = zw.identify.fit(
        m, samples, kinds=KINDS, estimator=options.estimator, consistent=False, held_back=0.0
    )
    print(f"{len(fit.base)} coefficients of {len(samples)} samples\n")
    rows = published_rows(fit)
    compare(fit, rows)
    part = zw.identify.fit(m, samples, kinds=KINDS, estimator=options.estimator, held_back=0.2)
    residuals(part, np.linalg.solve(rows, list(PUBLISHED.values())))


def published_rows(fit: zw.identify.Fit) -> np.ndarray:
    """R of the published coefficients R beta. Stops where they are no combinations of base parameters."""
    names = [p.name for p in fit.base.parameters]
    P = np.array([combination(text, names) for text in PUBLISHED])
    R, *_ = np.linalg.lstsq(fit.base.matrix.T, P.T, rcond=None)
    if np.abs(fit.base.matrix.T @ R - P.T).max() > 1e-9:
        raise SystemExit("a published coefficient is no combination of base parameters")
    return R.T


def compare(fit: zw.identify.Fit, R: np.ndarray) -> None:
    """Print the published and our coefficients, with our 95 % intervals."""
    ours = R @ fit.beta
    half = student.ppf(0.975, fit.freedom) * np.sqrt(np.einsum("ij,jk,ik->i", R, fit.estimate.covariance, R))
    published = np.array(list(PUBLISHED.values()))
    inside = np.abs(published - ours) <= half
    print("| coefficient [SI] | published | zwang | +- (95 %) | published value inside |")
    print("| --- | --- | --- | --- | --- |")
    for row in zip(PUBLISHED, published, ours, half, inside, strict=True):
        print("| {} | {:.4f} | {:.4f} | {:.4f} | {} |".format(*row[:4], "yes" if row[4] else "no"))
    print(f"\n{inside.sum()} of {len(inside)} published values lie in zwang's intervals\n")


def residuals(fit: zw.identify.Fit, published: np.ndarray) -> None:
    """Print the root mean squares of residuals, of both sets of coefficients on both parts of the record."""
    assert fit.test is not None
    print("| joint | torque [N m] | residual | held back | published coefficients | there |")
    print("| --- | --- | --- | --- | --- | --- |")
    columns = [np.sqrt(np.mean(fit.measured(fit.train) ** 2, axis=0))]
    for beta in (fit.beta, published):
        for part in (fit.train, fit.test):
            forces = fit.forces.at(part).forces(beta)
            columns.append(np.sqrt(np.mean(part.filtered(part.tau - forces) ** 2, axis=0)))
    for k, row in enumerate(np.array(columns).T):
        print(f"| {k + 1} | " + " | ".join(f"{x:.3f}" for x in row) + " |")


if __name__ == "__main__":
    main()
