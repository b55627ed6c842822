"""The fit finds what the data tell within its intervals, and names what is wrong with the data."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import zwang as zw
from tests.identification.robots import robot, with_friction
from zwang.errors import DescriptionError, ShapeError, SolveError, StateError, UnknownNameError
from zwang.identification.consistent_fit import consistent_parameters
from zwang.identification.linear_estimation import autocorrelation_times
from zwang.identification.measurements import DEGREES
from zwang.identification.pseudo_inertia import inertial_parameters, is_consistent
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.samples import double_pendulum

KINDS = ("inertia", "armature", "damping", "friction", "offset")


def motion(nv: int, samples: int, seed: int = 0, step: float = 0.01) -> tuple[np.ndarray, ...]:
    """time, q, v, a of sums of sines at each joint."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) * step
    q, v, a = np.zeros((3, samples, nv))
    for j in range(nv):
        q[:, j] = rng.normal()
        for k in range(1, 6):
            w, size, phase = 0.6 * k, rng.normal() * 0.5, rng.uniform(0, 6.28)
            q[:, j] += size * np.sin(w * t + phase)
            v[:, j] += size * w * np.cos(w * t + phase)
            a[:, j] -= size * w * w * np.sin(w * t + phase)
    return t, q, v, a


@cache
def true_arm(name: str) -> Mechanism:
    return with_friction(robot(name), 0.1, 0.3, 0.5)


@cache
def wrong_model(name: str) -> Mechanism:
    """The arm with masses and inertias off by up to a factor of two, and no friction."""
    rng = np.random.default_rng(5)
    bodies = [
        replace(
            b,
            mass=b.mass * rng.uniform(0.5, 2),
            com=tuple(np.array(b.com) + 0.02 * rng.normal(size=3)),
            inertia=np.array(b.inertia) * rng.uniform(0.5, 2),
        )
        for b in robot(name).bodies
    ]
    return robot(name).replace(bodies=bodies)


@cache
def record(name: str, samples: int = 1500) -> tuple[zw.identify.Measurements, np.ndarray, np.ndarray]:
    """Exact measurements of the true arm, its pi, and the standard deviation of realistic force errors."""
    true = true_arm(name)
    t, q, v, a = motion(true.nv, samples)
    pi = np.array([float(p.value) for p in zw.identify.parameters(true, KINDS)])
    tau = zw.identify.regressor(true, q, v, a, kinds=KINDS) @ pi
    return zw.identify.Measurements(t, q, v, a, tau), pi, 0.03 * np.abs(tau).max(axis=0)


def with_noise(samples: zw.identify.Measurements, noise: np.ndarray, seed: int) -> zw.identify.Measurements:
    return replace(
        samples, tau=samples.tau + noise * np.random.default_rng(seed).normal(size=samples.tau.shape)
    )


def test_true_base_parameters_lie_within_their_intervals_as_often_as_these_say():
    exact, pi, noise = record("ur10")
    inside = []
    for seed in range(8):
        found = zw.identify.fit(wrong_model("ur10"), with_noise(exact, noise, seed), kinds=KINDS)
        beta = found.base.matrix @ pi
        lower, upper = found.interval.T
        inside += list((lower <= beta) & (beta <= upper))
        assert found.is_consistent() and not found.outside
    # 8 x 58 intervals of 95 %: the fraction inside has a standard deviation of about 1 %
    assert 0.915 < np.mean(inside) < 0.985


def test_exact_data_give_the_true_mechanism_forces():
    exact, _, _ = record("panda")
    found = zw.identify.fit(wrong_model("panda"), exact, kinds=KINDS)
    assert np.abs(found.residuals(found.train)).max() < 1e-8
    q, v, a = exact.q[::100], exact.v[::100], exact.a[::100]
    expected = zw.compile(true_arm("panda")).inverse_dynamics(q, v, a)
    result = zw.compile(found.mechanism).inverse_dynamics(q, v, a)
    np.testing.assert_allclose(result, expected, atol=1e-3)
    frictions = [j.joint.friction for j in found.mechanism.joints]
    np.testing.assert_allclose(frictions, 0.5, atol=1e-4)


def test_the_mechanism_of_a_fit_has_its_parameters():
    exact, _, noise = record("ur10")
    found = zw.identify.fit(wrong_model("ur10"), with_noise(exact, noise, 1), kinds=KINDS)
    values = [float(p.value) for p in zw.identify.parameters(found.mechanism, KINDS)]
    offsets = [p.kind == "offset" for p in found.base.parameters]
    np.testing.assert_allclose(values, np.where(offsets, 0, found.pi), atol=1e-10)


def test_the_consistent_fit_does_not_depend_on_its_start():
    """Random log-Cholesky coordinates are consistent; from all the fit ends in the same parameters."""
    exact, _, noise = record("ur10")
    found = zw.identify.fit(wrong_model("ur10"), with_noise(exact, noise, 2), kinds=("inertia",))
    model = np.array([float(p.value) for p in found.base.parameters])
    rng = np.random.default_rng(0)
    free = (np.full(60, -np.inf), np.full(60, np.inf))
    for _ in range(10):
        start = np.concatenate([inertial_parameters(rng.normal(size=10))[0] for _ in range(6)])
        assert all(is_consistent(part) for part in start.reshape(-1, 10))
        again = consistent_parameters(found.base, found.beta, found.estimate.root, model, free, start=start)
        assert again.converged and all(is_consistent(part) for part in again.pi.reshape(-1, 10))
        np.testing.assert_allclose(again.pi, found.pi, rtol=1e-3, atol=1e-5)


def test_a_model_without_masses_gives_the_same_base_parameters():
    exact, _, noise = record("ur10")
    model = robot("ur10")
    joints = {b.name: tuple(replace(j, armature=1e-3) for j in b.joints) for b in model.bodies}
    empty = [
        replace(b, mass=0, com=(0, 0, 0), inertia=(0, 0, 0), joint=joints[b.name] or b.joint)
        for b in model.bodies
    ]
    found = zw.identify.fit(model.replace(bodies=empty), with_noise(exact, noise, 1), kinds=KINDS)
    assert found.is_consistent() and not found.outside
    again = zw.identify.fit(wrong_model("ur10"), with_noise(exact, noise, 1), kinds=KINDS)
    np.testing.assert_allclose(found.beta, again.beta, atol=1e-8)


def test_log_cholesky_coordinates_have_an_exact_jacobian():
    theta = np.random.default_rng(1).normal(size=10) * 0.5
    pi, J = inertial_parameters(theta)
    h = 1e-6
    steps = h * np.eye(10)
    numeric = [
        (inertial_parameters(theta + s)[0] - inertial_parameters(theta - s)[0]) / (2 * h) for s in steps
    ]
    np.testing.assert_allclose(J, np.array(numeric).T, rtol=0, atol=1e-8 * abs(J).max())
    assert is_consistent(pi)


def test_an_ordinary_fit_is_numpys_least_squares():
    exact, _, noise = record("ur10")
    data = with_noise(exact, noise, 3)
    found = zw.identify.fit(robot("ur10"), data, kinds=KINDS, estimator="ordinary", held_back=0.0)
    Y = zw.identify.regressor(robot("ur10"), data.q, data.v, data.a, kinds=KINDS)
    W = Y[..., list(found.base.independent)].reshape(-1, len(found.base))
    expected = np.linalg.lstsq(W, data.tau.ravel(), rcond=None)[0]
    np.testing.assert_allclose(found.beta, expected, rtol=1e-8, atol=1e-10)
    assert found.test is None


def test_outliers_hardly_change_a_huber_fit():
    exact, pi, noise = record("ur10")
    rng = np.random.default_rng(0)
    data = with_noise(exact, noise, 4)
    hits = rng.uniform(size=data.tau.shape) < 0.05
    data = replace(data, tau=np.where(hits, data.tau + 100 * noise, data.tau))
    error = {}
    for loss in ("linear", "huber"):
        found = zw.identify.fit(robot("ur10"), data, kinds=KINDS, loss=loss)
        error[loss] = np.linalg.norm((found.beta - found.base.matrix @ pi) / found.standard_deviation)
        last = np.linalg.norm(found.beta - found.base.matrix @ pi)
        error[loss + " absolute"] = last
    assert error["huber absolute"] < 0.1 * error["linear absolute"]


def test_total_least_squares_removes_the_bias_of_a_noisy_regressor():
    """One joint: tau = I a + d v with equal relative errors in a, v and tau; least squares is biased to 0."""
    m = zw.Mechanism("wheel", (zw.Body("wheel", zw.Revolute("axle"), inertia=(1, 1, 2)),), gravity=(0, 0, 0))
    m = m.replace(forces=[zw.Damper("axle", 2.0)])
    n, rng = 20_000, np.random.default_rng(0)
    t = np.arange(n) * 1e-3
    v, a = rng.normal(size=(2, n, 1))
    tau = 2 * a + 2 * v
    error = 0.3
    noisy = zw.identify.Measurements(
        t, v, v + error * rng.normal(size=v.shape), a + error * rng.normal(size=a.shape),
        tau + error * np.std(tau) * rng.normal(size=tau.shape),
    )  # fmt: skip
    plain = zw.identify.fit(m, noisy, held_back=0.0)
    total = zw.identify.fit(m, noisy, held_back=0.0, estimator="total")
    assert (np.abs(plain.beta - 2) > 0.1).all()
    assert (np.abs(total.beta - 2) < 4 * total.standard_deviation).all()
    assert (total.standard_deviation < 0.03).all()


def test_priors_and_bounds():
    exact, _, noise = record("ur10")
    data = with_noise(exact, 20 * noise, 5)
    plain = zw.identify.fit(robot("ur10"), data, kinds=KINDS, consistent=False)
    name = "friction_wrist_3_joint"
    k = plain.base.combinations.index(name)
    informed = zw.identify.fit(robot("ur10"), data, kinds=KINDS, priors={name: (0.5, 0.001)})
    assert informed.standard_deviation[k] <= 0.001 and abs(informed.beta[k] - 0.5) < 0.004
    assert plain.standard_deviation[k] > 0.01
    bounded = zw.identify.fit(
        robot("ur10"), data, kinds=KINDS, consistent=False, bounds={"m_wrist_3_link": (0.1, 0.2)}
    )
    assert 0.1 <= bounded.pi[[p.name for p in bounded.base.parameters].index("m_wrist_3_link")] <= 0.2
    with pytest.raises(DescriptionError, match="has no bounds together with consistent"):
        zw.identify.fit(robot("ur10"), data, kinds=KINDS, bounds={"m_wrist_3_link": (0, 1)})
    with pytest.raises(UnknownNameError, match="m_wrist_3_link"):
        zw.identify.fit(robot("ur10"), data, kinds=KINDS, priors={"m_wrist_3": (0, 1)})


def test_correlated_errors_widen_the_intervals():
    """For x_k = r x_(k-1) + e_k the integrated autocorrelation time is (1 + r) / (1 - r)."""
    rng, r = np.random.default_rng(0), 0.8
    x = np.zeros((100_000, 1))
    noise = rng.normal(size=x.shape)
    for k in range(1, len(x)):
        x[k] = r * x[k - 1] + noise[k]
    np.testing.assert_allclose(autocorrelation_times(x), (1 + r) / (1 - r), rtol=0.1)
    np.testing.assert_allclose(autocorrelation_times(noise), 1, atol=0.05)


def test_filtered_positions_give_the_parameters():
    """From noisy positions alone, with a low-pass filter and central differences."""
    true = double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7)
    t, q, v, a = motion(2, 8000, seed=3, step=0.002)
    tau = zw.compile(true).inverse_dynamics(q, v, a)
    rng = np.random.default_rng(0)
    data = zw.identify.measurements(
        true, t, q + 1e-4 * rng.normal(size=q.shape), tau + 0.2 * rng.normal(size=q.shape), cutoff=10.0
    )
    inner = (t >= data.time[0] - 1e-9) & (t <= data.time[-1] + 1e-9)
    np.testing.assert_allclose(data.v, v[inner], atol=0.01 * abs(v).max())
    np.testing.assert_allclose(data.a, a[inner], atol=0.1 * abs(a).max())
    found = zw.identify.fit(double_pendulum(1, 1, 0.5, 0.7), data)
    assert (found.estimate.correlation > 2).all()
    np.testing.assert_allclose(found.beta, found.base.matrix @ [
        float(p.value) for p in zw.identify.parameters(true)], atol=0.03)  # fmt: skip


@pytest.mark.parametrize(("rate", "digits", "start"), [(60, 4, 0.0), (75, 4, 12.0), (1000, 9, 1.7e9)])
@pytest.mark.parametrize("cutoff", [None, 5.0])
def test_rounded_times_do_not_change_the_sampling_interval(rate, digits, start, cutoff):
    """Central differences of sin(w t) are cos(w t) sin(w h) / h and -sin(w t) (2 sin(w h / 2) / h)^2."""
    m = zw.Mechanism("wheel", [zw.Body("wheel", zw.Revolute("axle"), inertia=(1, 1, 2))], gravity=(0, 0, 0))
    w, h, n = 3.0, 1 / rate, 20 * rate
    angle = w * h * np.arange(n)[:, None]
    printed = np.round(start + h * np.arange(n), digits)
    data = zw.identify.measurements(m, printed, np.sin(angle), -2 * w**2 * np.sin(angle), cutoff=cutoff)
    cut = (n - len(data)) // 2
    passed = 1 if cutoff is None else 1 / (1 + (w / (2 * np.pi * cutoff)) ** 8)  # of the filter, both ways
    v, a = np.cos(angle) * np.sin(w * h) / h, -np.sin(angle) * (2 * np.sin(w * h / 2) / h) ** 2
    inner = slice(rate, -rate)  # without what the filter leaves at the ends
    np.testing.assert_allclose(data.v[inner], passed * v[cut : n - cut][inner], atol=2e-5 * w)
    np.testing.assert_allclose(data.a[inner], passed * a[cut : n - cut][inner], atol=5e-5 * w**2)


def test_a_clock_that_drifts_is_even_and_a_gap_is_not():
    m = zw.Mechanism("wheel", [zw.Body("wheel", zw.Revolute("axle"), inertia=(1, 1, 2))], gravity=(0, 0, 0))
    k = np.arange(2000)
    t = 0.01 * k + 2e-8 * k**2  # 0.08 s late after 20 s
    q, tau = np.sin(t)[:, None], -2 * np.sin(t)[:, None]
    np.testing.assert_allclose(zw.identify.measurements(m, t, q, tau).v[:, 0], np.cos(t[1:-1]), atol=0.02)
    for gap in (3, 1000, 1998):
        late = t + 0.005 * (k >= gap)
        with pytest.raises(StateError, match=f"unevenly spaced: the step at sample {gap} is 0.0150"):
            zw.identify.measurements(m, late, q, tau)


@pytest.mark.parametrize("delay", [0.05, -0.05])
def test_delayed_forces_are_not_read_in_gaps_of_a_record(delay):
    """One lost sample is interpolated; of 1.5 s nothing is known, up to the delay before or after them."""
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1, com=(0.1, 0, 0), inertia=(0.01,) * 3)
    m, every = zw.Mechanism("m", [body]), np.arange(1000) * 0.01
    lost = (np.abs(every - 3.0) < 0.75) | (np.abs(every - 7.0) < 0.75) | np.isclose(every, 5.0)
    t = every[~lost]
    q, v, a = (x[:, None] for x in (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)))

    def exact(t):
        return -9 * np.sin(3 * t) * 0.02 - 9.81 * 0.1 * np.cos(np.sin(3 * t))

    tau = exact(t - delay)[:, None]
    found = zw.identify.measurements(m, t, q, tau, v=v, a=a, delay=delay)
    np.testing.assert_allclose(found.tau[:, 0], exact(found.time), atol=2e-4)
    read = found.time + delay
    assert len(found.time) == len(t) - 15 and (np.abs(read - 3.0) > 0.74).all()


def test_delayed_forces_are_read_later():
    """Each force is recorded late by a time of its own; the motion is known at every time."""
    true = double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7)
    dynamics, w = zw.compile(true).inverse_dynamics, np.array([3.0, 4.1])

    def motion_at(t):
        angle = t[:, None] * w
        return np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)

    t, late = np.arange(2000) * 0.002, np.array([0.0073, -0.0031])
    q, v, a = motion_at(t)
    tau = np.stack([dynamics(*motion_at(t - lag))[:, k] for k, lag in enumerate(late)], axis=1)
    args, given = (true, t, q, tau), {"v": v, "a": a}
    residuals = {}
    for name, delay in (("none", 0.0), ("half", late / 2), ("true", late)):
        record = zw.identify.measurements(*args, **given, delay=delay)
        expected = dynamics(record.q, record.v, record.a)
        residuals[name] = abs(record.tau - expected).max() / abs(expected).max()
    assert residuals["true"] < 1e-6 and residuals["half"] > 1e-3 and residuals["none"] > residuals["half"]
    for delay, error, what in (
        ([0.1], ShapeError, "one for each of the 2 velocities"),
        (np.nan, ShapeError, "finite time"),
        (100.0, StateError, "fewer than 20 samples remain"),
    ):
        with pytest.raises(error, match=what):
            zw.identify.measurements(*args, **given, delay=delay)


def spoiled(change) -> dict[str, np.ndarray]:
    exact, _, _ = record("ur10")
    data = {name: np.array(getattr(exact, name)) for name in ("time", "q", "v", "a", "tau")}
    change(data)
    return data


BAD = {
    "tau of 'wrist_1_joint' is nan in sample 7": lambda d: d["tau"].__setitem__((7, 3), np.nan),
    "time goes backwards at sample 10": lambda d: d["time"].__setitem__(10, 0.0),
    "time stands still at sample 10": lambda d: d["time"].__setitem__(10, d["time"][9]),
    "joints 'elbow_joint' never move": lambda d: d["q"].__setitem__((slice(None), 2), 0.5),
    "looks like degrees: give radians": lambda d: d["q"].__imul__(180 / np.pi),
    "v of 'shoulder_pan_joint' is 57.* times the derivative of q: this looks like degrees": (
        lambda d: d["v"].__imul__(180 / np.pi)
    ),
    "another unit of time": lambda d: d["time"].__imul__(20.0),
    "tau is .* times as large as the forces of the model": lambda d: d["tau"].__imul__(1e4),
    "tau is zero throughout": lambda d: d["tau"].__imul__(0),
    "too slow for dynamics": lambda d: d["time"].__imul__(1000.0),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_data_are_told_by_name(message):
    data = spoiled(BAD[message])
    with pytest.raises(StateError, match=message):
        zw.identify.measurements(robot("ur10"), **data)


@pytest.mark.parametrize("cutoff", [None, 10.0])
def test_a_joint_without_limits_turns_many_times(cutoff):
    t = np.arange(1000) * 0.01
    q, v, a = 4 * t + 0.5 * np.sin(5 * t), 4 + 2.5 * np.cos(5 * t), -12.5 * np.sin(5 * t)
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1.0, com=(0.05, 0, -0.3),
                   inertia=(0.1, 0.1, 0.1))  # fmt: skip
    m = zw.Mechanism("pendulum", [body])
    tau = zw.compile(m).inverse_dynamics(*(x[:, None] for x in (q, v, a)))
    found = zw.identify.fit(m, zw.identify.measurements(m, t, q[:, None], tau, cutoff=cutoff))
    exact = found.base.matrix @ [float(p.value) for p in zw.identify.parameters(m)]
    np.testing.assert_allclose(found.beta, exact, atol=1e-4)
    wrapped = np.angle(np.exp(1j * q))[:, None]
    k = np.flatnonzero(np.diff(wrapped[:, 0]) < -3)[0] + 1
    with pytest.raises(StateError, match=rf"joint 'j' jumps by -6.* at sample {k}; .*numpy.unwrap"):
        zw.identify.measurements(m, t, wrapped, tau, cutoff=cutoff)
    with pytest.raises(StateError, match=r"joint 'j' jumps by -6.*numpy.unwrap"):
        zw.identify.fit_by_simulation(m, t, wrapped, tau)
    for limited in (m, m.replace(bodies=[replace(body, joint=replace(body.joint, velocity_limit=8.0))])):
        with pytest.raises(StateError, match="looks like degrees"):
            zw.identify.measurements(limited, t, 2 * DEGREES * np.sin(8 * t)[:, None], tau)


def test_degrees_whose_steps_pass_2_pi_are_no_wrapped_angles():
    """The degrees of a joint that turns many times move by 2 pi from one sample to the next now and then."""
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1.0, com=(0.05, 0, -0.3), inertia=(1, 1, 1))
    m, t = zw.Mechanism("pendulum", [body]), np.arange(400) * 0.01
    q = (4 * t + 20 * np.sin(t))[:, None]
    assert (np.abs(np.abs(np.diff(DEGREES * q, axis=0)) - 2 * np.pi) < 0.1).any()
    tau = zw.compile(m).inverse_dynamics(q, 0 * q, 0 * q)
    for read in (zw.identify.measurements, zw.identify.fit_by_simulation):
        with pytest.raises(StateError, match=r"'j' turns to .*looks like degrees: give radians"):
            read(m, t, DEGREES * q, tau)
        with pytest.raises(StateError, match="give the time in seconds"):
            read(m, 1000 * t, q, tau)


@pytest.mark.parametrize("noise", [1e-5, 1e-4, 1e-3])
def test_velocities_are_checked_with_noisy_positions(noise):
    """At 1 kHz the differences of successive positions are mostly noise; units are still told."""
    t = np.arange(0, 10, 0.001)[:, None]
    q, v = 0.3 * np.sin(0.8 * t), 0.24 * np.cos(0.8 * t)
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.4), inertia=(0.1, 0.1, 0.1))
    m = zw.Mechanism("pendulum", [body])
    tau = zw.compile(m).inverse_dynamics(q, v, -0.64 * q)
    rough = q + noise * np.random.default_rng(0).normal(size=q.shape)
    found = zw.identify.measurements(m, t[:, 0], rough, tau, v=v, a=-0.64 * q)
    np.testing.assert_array_equal(found.v, v)
    for factor, unit in ((DEGREES, "degrees"), (1e-3, "another unit of time")):
        with pytest.raises(StateError, match=f"v of 'j' is .* this looks like {unit}"):
            zw.identify.measurements(m, t[:, 0], rough, tau, v=factor * v)


def test_short_or_misshapen_data_are_told_by_name():
    exact, _, _ = record("ur10")
    t, q, tau = exact.time, exact.q, exact.tau
    m = robot("ur10")
    with pytest.raises(StateError, match="has 10 samples; give at least 20"):
        zw.identify.measurements(m, t[:10], q[:10], tau[:10])
    with pytest.raises(ShapeError, match=r"q must have the shape \(1500, 6\)"):
        zw.identify.measurements(m, t, q[:, :5], tau)
    with pytest.raises(StateError, match="unevenly spaced"):
        zw.identify.measurements(m, np.concatenate([t[:700], t[700:] + 0.1]), q, tau)
    with pytest.raises(StateError, match="cutoff is 60"):
        zw.identify.measurements(m, t, q, tau, cutoff=60.0)
    with pytest.raises(SolveError, match="are too few"):
        zw.identify.fit(m, exact[:20], kinds=KINDS)


def test_a_motion_that_cannot_tell_parameters_apart_is_told():
    """Small motions of one frequency, all joints in step."""
    m = robot("ur10")
    t = np.arange(1000) * 0.01
    q = np.tile(1e-3 * np.sin(t)[:, None], 6)
    v, a = np.tile(1e-3 * np.cos(t)[:, None], 6), -q
    data = zw.identify.Measurements(t, q, v, a, zw.compile(m).inverse_dynamics(q, v, a))
    with pytest.raises(SolveError, match="cannot tell apart"):
        zw.identify.fit(m, data)


@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("estimator", ["weighted", "ordinary", "total"])
def test_short_records_tell_what_they_can(estimator, consistent):
    """At a condition number of 1e6 to 1e8 the covariance is singular by rounding, and the values are still
    found within their intervals, which are wide.
    """
    true = with_friction(double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7), 0.1, 0.3, 0.5)
    kinds = ("inertia", "armature", "damping", "friction")
    pi = np.array([float(p.value) for p in zw.identify.parameters(true, kinds)])
    t, q, v, a = motion(2, 40, seed=1)
    tau = zw.identify.regressor(true, q, v, a, kinds=kinds) @ pi
    data = with_noise(zw.identify.Measurements(t, q, v, a, tau), np.full(2, 0.05), 0)
    found = zw.identify.fit(
        true, data, kinds=kinds, estimator=estimator, consistent=consistent, held_back=0.0, level=0.9999
    )
    assert 1e6 < found.estimate.scaled_condition < 1e8
    beta, (lower, upper) = found.base.matrix @ pi, found.interval.T
    assert ((lower < beta) & (beta < upper)).all() and np.isfinite(found.pi).all()


def test_constraints_are_rejected():
    m = robot("ur10").replace(constraints=[zw.JointCoupling("gear", "elbow_joint", "wrist_1_joint", (0, 1))])
    with pytest.raises(DescriptionError, match="has constraints"):
        zw.identify.fit(m, record("ur10")[0])


def test_parameters_that_are_not_fitted_are_those_of_the_model():
    """Springs, dampers, armature or inertia of a true model: the others are found as if these were known."""
    m = double_pendulum().replace(forces=[zw.Spring("elbow", 30.0), zw.Damper("shoulder", 4.0)])
    t, q, v, a = motion(2, 800)
    samples = zw.identify.Measurements(t, q, v, a, zw.compile(m).inverse_dynamics(q, v, a))
    for kinds in (("inertia",), ("inertia", "damping", "friction"), ("stiffness",), ("friction", "offset")):
        found = zw.identify.fit(m, samples, kinds=kinds)
        assert np.abs(found.residuals(found.train)).max() < 1e-8
        same = zw.compile(found.mechanism).inverse_dynamics(q, v, a)
        np.testing.assert_allclose(same, samples.tau, atol=1e-5)
    rough = m.replace(
        constraints=[zw.CoulombFriction("bearing", joint="elbow", coefficient=0.2, radius=0.05)]
    )
    # the friction of a bearing, by its load, which the known inertias make
    load = zw.identify.fit(rough, samples, kinds=("damping",))
    assert abs(load.pi[[p.name for p in load.base.parameters].index("mu_bearing")]) < 1e-6


def test_dry_friction_that_is_not_fitted_is_that_of_the_model():
    """It is subtracted, as damping is, also with the default kinds; a switch of the model turns it off."""
    m = with_friction(double_pendulum(), 0.0, 0.2, 0.4)
    t, q, v, a = motion(2, 800)
    smooth = zw.compile(m).inverse_dynamics(q, v, a)
    off = m.replace(options=replace(m.options, disabled=("frictionloss",)))
    for model, tau in ((m, smooth + 0.4 * np.sign(v)), (off, smooth)):
        for kinds in (("inertia", "damping"), ("damping",), None):
            found = zw.identify.fit(model, zw.identify.Measurements(t, q, v, a, tau), kinds=kinds)
            assert np.abs(found.residuals(found.train)).max() < 1e-8
            dampers = [f.coefficient for f in found.mechanism.forces if isinstance(f, zw.Damper)]
            np.testing.assert_allclose(dampers, 0.2, atol=1e-6)
    joints = tuple((j.name, 1.0) for j in m.joints)
    roped = m.replace(tendons=[zw.Tendon("rope", joints=joints, friction=0.1)])
    with pytest.raises(DescriptionError, match="tendon 'rope' has dry friction, which is not fitted"):
        zw.identify.fit(roped, zw.identify.Measurements(t, q, v, a, smooth))


def test_priors_that_are_not_finite_are_told_by_name():
    """An infinite standard deviation tells nothing: the fit is that without the prior."""
    m = double_pendulum()
    t, q, v, a = motion(2, 400)
    samples = zw.identify.Measurements(t, q, v, a, zw.compile(m).inverse_dynamics(q, v, a))
    name = f"m_{m.bodies[1].name}"
    for prior, message in (
        ((np.nan, 0.01), "the value of the prior"),
        ((np.inf, 1.0), "the value of the prior"),
        ((1.0, np.nan), "the standard deviation of the prior"),
    ):
        with pytest.raises(StateError, match=f"{message} of '{name}' is (nan|inf)"):
            zw.identify.fit(m, samples, priors={name: prior})
    plain, vague = (zw.identify.fit(m, samples, priors=priors) for priors in (None, {name: (9.0, np.inf)}))
    np.testing.assert_array_equal(vague.pi, plain.pi)
    with pytest.raises(UnknownNameError, match="there is no parameter 'm_nothing'"):
        zw.identify.fit(m, samples, priors={"m_nothing": (1.0, np.inf)})


@pytest.mark.parametrize("consistent", [True, False, "lmi"])
def test_a_weighed_body_keeps_its_mass_where_data_tell_only_sums(consistent):
    """The masses of a double pendulum's links enter only in combinations; one of them has been weighed."""
    true, model = double_pendulum(m1=1.0, m2=0.5), double_pendulum(m1=1.3, m2=0.8)
    t, q, v, a = motion(2, 800)
    tau = zw.compile(true).inverse_dynamics(q, v, a) + 0.01 * np.random.default_rng(1).normal(size=(800, 2))
    name = f"m_{model.bodies[1].name}"
    samples, priors = zw.identify.Measurements(t, q, v, a, tau), {name: (0.5, 0.001)}
    found = zw.identify.fit(model, samples, kinds=("inertia",), priors=priors, consistent=consistent)
    assert found.status(name) == "combined"
    mass = found.pi[[p.name for p in found.base.parameters].index(name)]
    assert abs(mass - 0.5) < 0.003


@pytest.mark.parametrize("kinds", [("inertia", "damping", "friction"), ("inertia", "armature"), None])
def test_exact_data_of_an_arm_without_friction_give_its_forces(kinds):
    """Residuals that are rounding errors are no measure of the errors of the forces."""
    m = robot("ur10")
    q, v, a = np.random.default_rng(0).normal(size=(3, 600, m.nv))
    samples = zw.identify.Measurements(
        np.arange(600) * 0.01, q, v, a, zw.compile(m).inverse_dynamics(q, v, a)
    )
    found = zw.identify.fit(m, samples, kinds=kinds)
    again = zw.compile(found.mechanism).inverse_dynamics(q, v, a)
    np.testing.assert_allclose(again, samples.tau, atol=1e-6)
    assert not found.outside


@pytest.mark.parametrize(
    ("kinds", "springs"),
    [
        (None, lambda k, m: [zw.Spring("j", k, rest=0.1), zw.Spring("j", m, rest=0.1)]),
        (
            None,
            lambda k, m: [zw.PointSpring(("world", (0.3, 0, 0.5)), ("b", (0, 0, -0.3)), x) for x in (k, m)],
        ),
        ("inertia", lambda k, m: [zw.Damper("j", 0.2), zw.Damper("j", 0.5)]),
    ],
    ids=["joint", "points", "damper"],
)
def test_two_elements_of_one_joint_have_the_sum_of_their_coefficients(kinds, springs):
    def pendulum(k: float, m: float) -> Mechanism:
        body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1.0, com=(0.05, 0, -0.3),
                       inertia=(0.1, 0.1, 0.1))  # fmt: skip
        return zw.Mechanism("pendulum", [body], forces=springs(k, m))

    t, q, v, a = motion(1, 300)
    true = pendulum(2.0, 6.0)
    samples = zw.identify.Measurements(t, q, v, a, zw.compile(true).inverse_dynamics(q, v, a))
    found = zw.identify.fit(pendulum(1.0, 3.0), samples, kinds=kinds)
    state = [0.5], [0.3], [1.0]
    exact = zw.inverse_dynamics(true, *state)
    np.testing.assert_allclose(zw.inverse_dynamics(found.mechanism, *state), exact, atol=1e-6)
    assert kinds or [p.value for p in zw.identify.parameters(true, "stiffness")] == [8.0]


@pytest.mark.parametrize("consistent", [True, "lmi"])
def test_bounds_without_nonnegative_values_are_told(consistent):
    samples = record("ur10")[0]
    name = f"damping_{true_arm('ur10').joints[0].name}"
    for bounds in ((-2, -1), (-2, 0)):
        with pytest.raises(StateError, match=f"bounds of '{name}' .* is not negative; give a positive upper"):
            zw.identify.fit(
                true_arm("ur10"), samples, kinds=KINDS, bounds={name: bounds}, consistent=consistent
            )
