"""Identification by simulation of a seven-axis arm: 70 inertial coordinates from 10 s at 100 Hz.

    python benchmarks/simulation_fit.py [--threads 1] [--repetitions 3] [--compare]
    python benchmarks/simulation_fit.py --coverage 200

An arm with wrong inertias is to follow a simulated record of another one, made by MuJoCo: torques of a
controller, 1,000 samples, steps of 2 ms, errors of the positions of 2e-4 rad. The fit ends when the residuals
are 1.01 times the errors. zwang knows positions and torques alone, and finds the states at the starts of its
20 windows too. `--compare` runs the algorithm of the example `rizon_inertia` of the package mjbatch, which is
given the exact states at the starts: Levenberg-Marquardt with the differences of 71 simulations in one batch,
and five steps along each direction. Needs `pip install mjbatch`.
`--coverage` fits records that differ in their errors alone, and prints the fraction of true combinations
within their 95 % intervals: for two links with inertias and damping, the same with dry friction, whose steps
are constrained, and this arm, which is fitted until it converges.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np

import zwang as zw
from tests.identification.test_simulation_fit import arm as two_links
from tests.identification.test_simulation_fit import exact_record
from zwang.errors import SolveError
from zwang.identification.consistent_fit import with_parameters
from zwang.identification.parameters import parameters_of
from zwang.identification.pseudo_inertia import parameters_of_pseudo_inertia, pseudo_inertia
from zwang.mechanism.mechanism import Mechanism

try:
    from mjbatch import Batch
except ImportError:  # the comparison is then not available
    Batch = None

STEP, EVERY, SAMPLES, WINDOW = 0.002, 5, 1000, 50
NOISE, STOP, SPREAD = 2e-4, 1.01, 0.35
DIFFERENCE = 1e-6
BANDWIDTH = 10.0  # of the controller [rad/s]
LINKS = (
    ((0, 0, 0.155), (0, 0, 0, 1.0), 0,
     3.596, (0.0001, 0.0035, 0.15), (0.9996, 0.0271, 0, 0), (0.0274, 0.02736, 0.00704)),
    ((0, 0.03, 0.21), (1.0, 0, 0, 0), 1,
     2.69, (-0.0003, 0.0361, 0.0998), (0.7071, -0.0017, 0.0017, 0.7071), (0.0239, 0.023, 0.0036)),
    ((0, 0.035, 0.205), (1.0, 0, 0, 0), 0,
     2.354, (-0.0123, -0.0012, 0.1366), (0.992, -0.0169, 0.0725, 0.1025), (0.01455, 0.01369, 0.00376)),
    ((-0.02, -0.03, 0.19), (0, 0, 0, 1.0), 1,
     2.354, (-0.0129, 0.0313, 0.1034), (0.851, -0.0051, 0.0639, 0.5213), (0.0186, 0.01805, 0.00274)),
    ((-0.02, 0.025, 0.195), (0, 0, 0, 1.0), 0,
     2.31, (0.0003, 0.0014, 0.1363), (0.9997, 0.0254, 0, 0), (0.0142, 0.01353, 0.00367)),
    ((0, 0.03, 0.19), (1.0, 0, 0, 0), 1,
     2.223, (0.0202, 0.0596, 0.0724), (0.8582, 0.0779, -0.159, 0.4819), (0.01002, 0.00828, 0.0034)),
    ((-0.015, 0.073, 0.11), (1.0, 0, -1.0, 0), 0,
     0.768, (0.0003, 0, 0.0257), (1, 0, 0, 0), (0.001, 0.0009, 0.0009)),
)  # fmt: skip
"""Position [m] and quaternion in the parent, whether the axis is y (1) or z (0), mass [kg], centre of mass
[m], quaternion and moments [kg m^2] of the principal axes: rounded numbers of a Flexiv Rizon 4, as the MuJoCo
Menagerie has them.
"""
LINE = 0.5 ** np.arange(5)
MOST_ITERATIONS = 25
LARGEST = 0.8  # of a coordinate


def lower_root(P: np.ndarray, x: np.ndarray) -> np.ndarray:
    """L U (..., 4, 4) for P = L L^T, with the lower triangular U of the coordinates x (..., 10)."""
    U = np.zeros((*x.shape[:-1], 4, 4))
    U[..., range(4), range(4)] = np.exp(x[..., :4])
    rows, columns = np.tril_indices(4, -1)
    U[..., rows, columns] = x[..., 4:]
    return np.linalg.cholesky(P) @ U


def moved(m: Mechanism, x: np.ndarray) -> Mechanism:
    """The mechanism with the coordinates x (70,) of its bodies, zero for the mechanism itself."""
    parameters = parameters_of(m, "inertia")
    pi = np.array([float(p.value) for p in parameters]).reshape(-1, 10)
    P = np.array([pseudo_inertia(part) for part in pi])
    root = lower_root(P, x.reshape(-1, 10))
    return with_parameters(m, parameters, parameters_of_pseudo_inertia(root @ root.swapaxes(1, 2)).ravel())


def arm() -> Mechanism:
    """The arm of `LINKS`, with motors at its joints."""
    bodies, parent = [], "world"
    for k, (position, turn, axis, mass, com, frame, moments) in enumerate(LINKS, start=1):
        joint = zw.Revolute(f"joint{k}", axis=(0, axis, 1 - axis))
        R = rotation(np.array(frame, dtype=float))
        bodies.append(
            zw.Body(
                f"link{k}", joint, parent=parent, position=position, orientation=rotation(np.array(turn)),
                mass=mass, com=com, inertia=R @ np.diag(moments) @ R.T,
            )
        )  # fmt: skip
        parent = f"link{k}"
    motors = [zw.Motor(f"motor{k}", f"joint{k}") for k in range(1, 8)]
    options = zw.Options(timestep=STEP, integrator="implicitfast")
    return zw.Mechanism("arm", bodies, forces=motors, options=options)


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """The rotation matrix of a quaternion."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quaternion / np.linalg.norm(quaternion))
    return matrix.reshape(3, 3)


def compiled_mujoco(m: Mechanism) -> mujoco.MjModel:
    """The mechanism in MuJoCo."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        zw.write_mjcf(m, path)
        return mujoco.MjModel.from_xml_path(str(path))


def reference(t: np.ndarray) -> np.ndarray:
    """Angles (..., 7): slow large motions, and faster small ones."""
    middle = np.array([0.0, -0.45, 0.1, 1.5, 0.0, 0.7, 0.0])
    size = np.array([0.6, 0.3, 0.6, 0.4, 0.7, 0.3, 0.8])
    small = np.array([0.08, 0.08, 0.16, 0.10, 0.23, 0.18, 0.3])
    frequencies = np.array([0.37, 0.43, 0.59, 0.53, 0.83, 0.71, 1.07])
    slow = np.sin(2 * np.pi * frequencies / 3 * t[..., None] + 0.9 * np.arange(7))
    fast = np.sin(2 * np.pi * frequencies * t[..., None] + 0.7 * np.arange(7))
    return middle + np.sin(np.clip(t, 0, 2) * np.pi / 4)[..., None] ** 2 * (size * slow + small * fast)


def record(m: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Exact states (samples + 1, 14) and torques (samples + 1, 7) of a controlled motion, by MuJoCo."""
    model, period = compiled_mujoco(m), STEP * EVERY
    data = mujoco.MjData(model)
    data.qpos[:] = reference(np.zeros(()))
    states, torques = [np.concatenate([data.qpos, data.qvel])], []
    for k in range(SAMPLES + 1):
        before, now, after = reference((k + np.array([-1.0, 0.0, 1.0])) * period)
        speed, acceleration = (after - before) / (2 * period), (after - 2 * now + before) / period**2
        a = acceleration + BANDWIDTH**2 * (now - data.qpos) + 2 * BANDWIDTH * (speed - data.qvel)
        torques.append(zw.inverse_dynamics(m, np.array(data.qpos), np.array(data.qvel), a))
        data.ctrl[:] = torques[-1]
        mujoco.mj_step(model, data, EVERY)
        states.append(np.concatenate([data.qpos, data.qvel]))
    return np.array(states[: SAMPLES + 1]), np.array(torques)


def fitted(m: Mechanism, q: np.ndarray, torques: np.ndarray) -> zw.identify.SimulationFit:
    """zwang's fit."""
    return zw.identify.fit_by_simulation(
        m, np.arange(SAMPLES + 1) * STEP * EVERY, q, torques, window=WINDOW, spread=SPREAD, deviation=NOISE,
        stop_at=STOP,
    )  # fmt: skip


class Differences:
    """The algorithm of mjbatch's example, on exact states at the starts of windows."""

    def __init__(self, m: Mechanism, states: np.ndarray, q: np.ndarray, torques: np.ndarray, threads: int):
        self.model = compiled_mujoco(m)
        bodies = [b for b in range(self.model.nbody) if self.model.body_dofnum[b]]
        self.bodies = np.array(bodies)
        inertial = np.array([float(p.value) for p in parameters_of(m, "inertia")]).reshape(-1, 10)
        self.P = np.array([pseudo_inertia(part) for part in inertial])
        first = np.arange(0, SAMPLES, WINDOW)
        self.starts = states[first]
        self.torques = np.stack([torques[k : k + WINDOW] for k in first], axis=1)
        self.target = np.stack([q[k + 1 : k + 1 + WINDOW] for k in first], axis=1)
        self.probe = Batch(self.model, 71 * len(first), threads)
        self.line = Batch(self.model, len(LINE) * len(first), threads)

    def written(self, batch: Batch, x: np.ndarray) -> None:
        """Gives every simulation its inertias, x (candidates, 70)."""
        count = len(self.starts)
        root = lower_root(self.P, x.reshape(len(x), -1, 10))
        P = root @ root.swapaxes(-1, -2)
        mass, c = P[..., 3, 3], P[..., :3, 3] / P[..., 3, 3, None]
        central = P[..., :3, :3] - mass[..., None, None] * c[..., :, None] * c[..., None, :]
        I = np.trace(central, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - central
        moments, R = np.linalg.eigh(I)
        R[..., 0] *= np.linalg.det(R)[..., None]
        quaternions = np.zeros((*mass.shape, 4))
        for quaternion, matrix in zip(quaternions.reshape(-1, 4), R.reshape(-1, 9), strict=True):
            mujoco.mju_mat2Quat(quaternion, matrix)
        fields = {"body_mass": mass, "body_ipos": c, "body_inertia": moments, "body_iquat": quaternions}
        for name, values in fields.items():
            batch.expand(name)[:, self.bodies] = np.repeat(values, count, axis=0)
        batch.set_const()

    def residuals(self, batch: Batch, x: np.ndarray) -> np.ndarray:
        """(candidates, samples) of simulated less measured angles."""
        count = len(self.starts)
        self.written(batch, x)
        batch.reset()
        q, v, control = (batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
        q[:], v[:] = np.tile(self.starts[:, :7], (len(x), 1)), np.tile(self.starts[:, 7:], (len(x), 1))
        batch.forward()
        found = np.empty((WINDOW, len(x), count, 7))
        for k in range(WINDOW):
            control[:] = np.tile(self.torques[k], (len(x), 1))
            batch.step(nstep=EVERY)
            found[k] = q.reshape(len(x), count, 7)
        return (found - self.target[:, None]).swapaxes(0, 1).reshape(len(x), -1)

    def fitted(self, x: np.ndarray) -> tuple[float, int]:
        """The residuals' root mean square [rad], and the number of Jacobians."""
        mu, jacobians, rms = 1e-3, 0, float("nan")
        changes = np.concatenate([np.zeros((1, 70)), DIFFERENCE * np.eye(70)])
        r = self.residuals(self.probe, x + changes)
        n = r.shape[1]
        weight = (NOISE / SPREAD) ** 2 / n
        cost = np.mean(r[0] ** 2) + weight * x @ x
        for _ in range(MOST_ITERATIONS):
            jacobians += 1
            J = (r[1:] - r[0]).T / DIFFERENCE
            H, g = J.T @ J / n + weight * np.eye(70), J.T @ r[0] / n + weight * x
            while True:
                step = -np.linalg.solve(H + mu * np.diag(np.diag(H)), g)
                tried = np.clip(x + LINE[:, None] * step, -LARGEST, LARGEST)
                errors = self.residuals(self.line, tried)
                costs = (errors**2).mean(axis=1) + weight * (tried**2).sum(axis=1)
                best = int(np.argmin(costs))
                if costs[best] < cost:
                    break
                if mu > 1e5:
                    return rms, jacobians
                mu *= 10
            drop, x, cost, mu = cost - costs[best], tried[best], costs[best], max(mu / 10, 1e-12)
            rms = float(np.sqrt((errors[best] ** 2).mean()))
            if rms <= STOP * NOISE or drop < 1e-5 * cost:
                return rms, jacobians
            r = self.residuals(self.probe, x + changes)
        return rms, jacobians


def coverage_line(
    name: str, model: Mechanism, truth: Mechanism, motion: tuple, repetitions: int, **options
) -> None:
    """The fraction of true combinations within their intervals, and that of each combination.

    motion: time, exact coordinates and controls.
    """
    t, q, control = motion
    kinds = options.get("kinds", ("inertia",))
    exact = {p.name: float(p.value) for kind in kinds for p in parameters_of(truth, kind)}
    inside, failed, began = [], 0, time.process_time()
    for seed in range(repetitions):
        noisy = q + NOISE * np.random.default_rng(seed).normal(size=q.shape)
        try:
            found = zw.identify.fit_by_simulation(model, t, noisy, control, **options)
        except SolveError:
            failed += 1
            continue
        beta = found.known.base.matrix @ np.array([exact[p.name] for p in found.parameters])
        lower, upper = found.interval.T
        inside.append((lower <= beta) & (beta <= upper))
    each = np.mean(inside, axis=0)
    print(
        f"{name}: {len(exact)} parameters, {each.size} combinations, {len(inside)} fits, {failed} failed, "
        f"within the intervals {100 * np.mean(inside):.2f} %, single combinations {100 * each.min():.0f} to "
        f"{100 * each.max():.0f} %, CPU {(time.process_time() - began) / repetitions:.2f} s a fit",
        flush=True,
    )


def coverage_lines(repetitions: int, error: float) -> None:
    """The coverage of two links, without and with dry friction, and of the arm."""
    smooth = ("inertia", "damping")
    for name, friction, kinds in (
        ("two links", 0.0, smooth),
        ("with dry friction", 0.3, (*smooth, "friction")),
    ):
        truth, model = two_links(friction=friction), two_links(0.6, 0.3, friction / 2)
        coverage_line(name, model, truth, exact_record(truth), repetitions, kinds=kinds)
    nominal = arm()
    truth = moved(nominal, np.random.default_rng(4).normal(0, 0.6 * error, 70))
    model = moved(nominal, np.random.default_rng(12).uniform(-error, error, 70))
    states, torques = record(truth)
    motion = np.arange(SAMPLES + 1) * STEP * EVERY, states[:, :7], torques
    coverage_line("seven-axis arm", model, truth, motion, repetitions, window=WINDOW, spread=SPREAD)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--error", type=float, default=0.3, help="largest error of a coordinate at the start")
    parser.add_argument("--coverage", type=int, default=0, help="repetitions with other errors")
    options = parser.parse_args()
    if options.coverage:
        coverage_lines(options.coverage, options.error)
        return
    model = arm()
    truth = moved(model, np.random.default_rng(4).normal(0, 0.6 * options.error, 70))
    start = np.random.default_rng(12).uniform(-options.error, options.error, 70)
    states, torques = record(truth)
    q = states[:, :7] + NOISE * np.random.default_rng(10).normal(size=(SAMPLES + 1, 7))
    first = moved(model, start)
    peer = Differences(model, states, q, torques, options.threads) if options.compare else None
    for k in range(options.repetitions):
        began, used = time.perf_counter(), time.process_time()
        found = fitted(first, q, torques)
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        exact = [float(p.value) for p in parameters_of(truth, "inertia")]
        lower, upper = found.interval.T
        inside = (lower < found.known.base.matrix @ exact) & (found.known.base.matrix @ exact < upper)
        rms = float(np.sqrt(np.mean(found.deviation**2)))
        line = (
            f"{'with compilation' if k == 0 else 'compiled'}: {seconds:.2f} s (CPU {processor:.2f} s), "
            f"rms {rms / NOISE:.3f} errors, {inside.sum()} of {len(inside)} true values within intervals"
        )
        if peer is not None:
            began, used = time.perf_counter(), time.process_time()
            rms, jacobians = peer.fitted(start)
            theirs, processor = time.perf_counter() - began, time.process_time() - used
            line += f"; differences of MuJoCo: {theirs:.2f} s ({processor:.2f} s), {jacobians} Jacobians, "
            line += f"rms {rms / NOISE:.3f}, ratio {theirs / seconds:.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
