"""Fits by simulation find the parameters of simulated records within their intervals, contacts included."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import zwang as zw
from zwang.errors import DescriptionError, ParameterError, ShapeError, StateError, UnknownNameError
from zwang.identification.simulation.recorded_trials import RecordedTrials
from zwang.identification.simulation.sensitivities import Simulator, Windows
from zwang.identification.simulation.unknowns import unknowns_of
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism.controllers import Pid
from zwang.mechanism.mechanism import Mechanism

NOISE = 2e-4


def arm(scale: float = 1.0, damping: float = 0.1, friction: float = 0.0) -> Mechanism:
    """Two links, the second one with a mass of 1.2 times `scale`."""
    lower = zw.Body(
        "lower", zw.Revolute("hip", axis=(0, 1, 0), armature=0.02, friction=friction), mass=2.0,
        com=(0.02, 0.01, -0.2), inertia=(0.03, 0.03, 0.005),
    )  # fmt: skip
    upper = zw.Body(
        "upper", zw.Revolute("knee", axis=(1, 0, 0)), parent="lower", position=(0, 0, -0.4),
        mass=1.2 * scale, com=(0.0, 0.03, -0.15), inertia=(0.012, 0.012, 0.003),
    )  # fmt: skip
    forces = [zw.Damper("hip", damping), zw.Damper("knee", damping)]
    return zw.Mechanism("arm", [lower, upper], forces=forces)


@cache
def exact_record(m: Mechanism, samples: int = 301) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """time, exact q, and forces of a record at 100 Hz, linear between the samples."""
    t = np.arange(samples) * 0.01
    tau = np.stack([3 * np.sin(4 * t) + 1.5 * np.sin(9 * t), np.sin(5 * t + 1) + np.sin(11 * t)], axis=1)
    middles = 0.01 * (np.arange(5 * (samples - 1)) + 0.5) / 5
    acting = np.stack([np.interp(middles, t, x) for x in tau.T], axis=1)
    run = zw.compile(m).rollout(np.array([0.3, -0.2]), np.zeros(2), acting, steps=5 * (samples - 1), every=5)
    return t, np.concatenate([[[0.3, -0.2]], run[0]]), tau


def record(m: Mechanism, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """time, q with noise, and forces of a record at 100 Hz."""
    t, q, tau = exact_record(m)
    return t, q + NOISE * np.random.default_rng(seed).normal(size=q.shape), tau


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
def test_sensitivities_are_those_of_differences_of_simulations(integrator):
    unknowns = unknowns_of(arm(), ("inertia", "armature", "damping"), None, {})
    simulator = Simulator(unknowns, unknowns.mechanism, 0.002, integrator)
    assert simulator.is_smooth == (integrator != "rk4")
    rng = np.random.default_rng(0)
    windows = Windows(
        rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2, 6, 2)), np.zeros(2), 3,
        np.zeros((2, 6, 2)),
    )  # fmt: skip
    p, e = unknowns.start, 1e-6
    values, by_p = unknowns.values(p)
    _, _, S, X = simulator.derivatives(windows, values, True)
    for k in range(len(p)):
        step = e * np.eye(len(p))[k]
        plus, minus = (simulator.trajectory(windows, unknowns.values(p + s)[0])[0] for s in (step, -step))
        assert np.abs((plus - minus) / (2 * e) - (S @ by_p)[..., k]).max() < 1e-7
    for k in range(4):
        step = e * np.eye(4)[k]
        moved = (windows.moved(windows.q + s[:2], windows.v + s[2:]) for s in (step, -step))
        plus, minus = (simulator.trajectory(w, values)[0] for w in moved)
        assert np.abs((plus - minus) / (2 * e) - X[..., k]).max() < 1e-7


K = sp.Symbol("k")


def driven(*forces) -> Mechanism:
    """A pendulum with a damper and these forces at its joint."""
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1.0, com=(0.05, 0, -0.3),
                   inertia=(0.1, 0.1, 0.1))  # fmt: skip
    return zw.Mechanism("driven", [body], forces=[zw.Damper("j", 0.1), *forces])


@pytest.mark.parametrize(
    "force",
    [
        zw.Actuator("a", joint="j", gain=(K, 0, 0)),
        zw.Actuator("a", joint="j", bias=(K, 0, 0)),
        zw.Actuator("a", joint="j", pid=Pid(K, 0, 1.0)),
        zw.Actuator("a", joint="j", pid=Pid(5.0, 0, 1.0), gear=(K,)),
        zw.Motor("a", "j", control_range=(-K, K)),
    ],
    ids=["gain", "bias", "pid", "gear", "range"],
)
def test_sensitivities_contain_the_symbols_and_the_feedback_of_actuators(force):
    unknowns = unknowns_of(driven(force), (), None, {"k": 1.3})
    simulator = Simulator(unknowns, unknowns.mechanism, 0.002, "euler")
    windows = Windows(
        np.array([[0.3]]), np.array([[0.5]]), np.full((1, 6, 1), 2.0), np.zeros(1), 3, np.zeros((1, 6, 1))
    )
    k, e = unknowns.start, 1e-5
    _, _, S, X = simulator.derivatives(windows, k, True)
    plus, minus = (simulator.trajectory(windows, k + s)[0] for s in (e, -e))
    np.testing.assert_allclose(S[..., 0], (plus - minus) / (2 * e), atol=1e-9)
    for column, move in enumerate(np.eye(2) * e):
        moved = (windows.moved(windows.q + s[0], windows.v + s[1]) for s in (move, -move))
        plus, minus = (simulator.trajectory(w, k)[0] for w in moved)
        np.testing.assert_allclose(X[..., column], (plus - minus) / (2 * e), atol=1e-9)


def test_actuators_with_states_are_rejected():
    t = np.arange(21) * 0.01
    for actuator in (
        zw.Actuator("a", joint="j", pid=Pid(5.0, 1.0, 1.0)),
        zw.Actuator("a", joint="j", activation=("integrator", ())),
    ):
        with pytest.raises(DescriptionError, match="actuator 'a' of mechanism 'driven' has states"):
            zw.identify.fit_by_simulation(driven(actuator), t, t[:, None], 0 * t[:, None], kinds=("damping",))


def test_true_combinations_lie_within_their_intervals_as_often_as_these_say():
    true, model = arm(), arm(scale=0.6, damping=0.3)
    kinds = ("inertia", "damping")
    exact = np.array([float(p.value) for p in zw.identify.parameters(true, kinds)])
    inside = []
    for seed in range(8):
        t, q, tau = record(true, seed)
        found = zw.identify.fit_by_simulation(model, t, q, tau, kinds=kinds)
        beta, (lower, upper) = found.known.base.matrix @ exact, found.interval.T
        assert np.abs(found.deviation / NOISE - 1).max() < 0.15
        inside.append(np.mean((lower <= beta) & (beta <= upper)))
        assert all(b.mass > 0 for b in found.mechanism.bodies)
    assert np.mean(inside) > 0.88


def test_the_fitted_mechanism_moves_as_the_true_one():
    true = arm()
    t, q, tau = record(true)
    found = zw.identify.fit_by_simulation(arm(0.6, 0.3), t, q, tau, kinds=("inertia", "damping"), starts=2)
    state = [0.5, 0.7], [1.0, -1.0], [2.0, 1.0]
    error = zw.inverse_dynamics(found.mechanism, *state) - zw.inverse_dynamics(true, *state)
    assert np.abs(error).max() < 0.02
    assert len(found.start_costs) == 2 and "residuals" in str(found)


def test_measured_forces_act_above_the_range_of_their_joint():
    """The inertia J and the damping c of J v_dot + c v = u, with u constant over each step, whose exact
    solution the record is; the effort limit that the fitted mechanism keeps does not cut the forces off.
    """
    J, c, h, t = 0.05, 0.4, 0.01, np.arange(201) * 0.01
    u, state = 1.3 * np.sin(5 * t) + 0.4 * np.sin(17 * t), np.zeros((len(t), 2))
    decay = np.exp(-c / J * h)
    for k, (x, v) in enumerate(state[:-1]):
        final = u[k] / c
        state[k + 1] = x + final * h + (v - final) * J / c * (1 - decay), final + (v - final) * decay
    joint = zw.Revolute("j", axis=(0, 0, 1), effort_limit=1.0, actuator_range=(-1.0, 1.0))
    body = zw.Body("rotor", joint, mass=1.0, inertia=(0.02, 0.02, 0.03))
    m = zw.Mechanism("rotor", [body], forces=[zw.Damper("j", 0.2)])
    q = state[:, :1] + NOISE * np.random.default_rng(0).normal(size=(len(t), 1))
    assert np.mean(abs(u) > 1.0) > 0.3
    fit = zw.identify.fit_by_simulation(
        m, t, q, u[:, None], kinds=("inertia", "damping"), integrator="rk4", interpolation="held"
    )
    found = dict(zip(fit.known.combinations, fit.beta, strict=True))
    assert found["I_rotor_zz"] == pytest.approx(J, rel=5e-3) and found["damping_j"] == pytest.approx(
        c, rel=5e-3
    )
    assert fit.mechanism.joint("j").joint.actuator_range == (-1.0, 1.0)


def test_dry_friction_is_found_by_simulation():
    true, model = arm(friction=0.3), arm(friction=0.1, damping=0.2)
    t, q, tau = record(true)
    found = zw.identify.fit_by_simulation(model, t, q, tau, kinds=("damping", "friction"))
    values = {"friction_hip": 0.3, "friction_knee": 0.0, "damping_hip": 0.1, "damping_knee": 0.1}
    for name, (low, high) in zip(found.known.combinations, found.interval, strict=True):
        assert low - 1e-3 < values[name] < high + 1e-3, name
    assert abs(found.value("friction_hip") - 0.3) < 0.01


def test_a_symbol_is_found_through_contacts():
    """The mass of a ball that rolls and bounces on a plane follows from its motion under known forces."""
    text = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 .1"/>
      <body pos="0 0 .3"><joint name="x" type="slide" axis="1 0 0"/>
        <joint name="z" type="slide" axis="0 0 1"/>
        <geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""
    ball = read_mjcf("ball.xml", text=text)
    mass, n = sp.Symbol("mass", positive=True), 121
    body = replace(ball.bodies[0], mass=mass)
    m = ball.replace(bodies=(body, *ball.bodies[1:]))
    t = np.arange(n) * 0.01
    tau = np.stack([3 * np.sin(6 * t), 2 * np.sin(9 * t)], axis=1)
    run = zw.compile(m).rollout(
        [0, 0.05], [0.5, 0], np.repeat(tau[:-1], 5, axis=0), steps=5 * (n - 1), every=5, params={"mass": 1.3}
    )
    q = np.concatenate([[[0, 0.05]], run[0]])
    q = q + NOISE * np.random.default_rng(0).normal(size=q.shape)
    found = zw.identify.fit_by_simulation(
        m, t, q, tau, kinds=(), guess={"mass": 1.0}, window=30, interpolation="held"
    )
    ((low, high),) = found.interval
    assert low < 1.3 < high and high - low < 0.05


def test_times_of_a_clock_at_any_rate_are_simulated():
    """Unix times at 150 Hz, rounded, for a model with a step of 2 ms."""
    sled = zw.Body("sled", zw.Prismatic("x", axis=(1, 0, 0)), mass=sp.Symbol("mass", positive=True))
    m = zw.Mechanism("sled", [sled], forces=[zw.Motor("push", "x")])
    k = np.arange(201)
    t, push = np.round(1.7e9 + k / 150, 4), 6 * np.sin(k / 30)[:, None]
    x = np.zeros((201, 1))  # under constant forces between the samples
    v = np.cumsum(np.pad(push[:-1] / 1.5 / 150, ((1, 0), (0, 0))), axis=0)
    x[1:] = np.cumsum((v[1:] + v[:-1]) / 2 / 150, axis=0)
    x += NOISE * np.random.default_rng(0).normal(size=x.shape)
    fits = [
        zw.identify.fit_by_simulation(m, t, x, push, kinds=(), guess={"mass": 1.0}, step=step)
        for step in (None, 1 / 600)
    ]
    np.testing.assert_allclose(fits[0].beta, fits[1].beta, rtol=2e-4)  # the last time is rounded
    ((low, high),) = fits[0].interval
    assert low < 1.5 < high and high - low < 0.05
    with pytest.raises(StateError, match=r"step 0.004 s does not divide .* 0.00666.*such as step=0.00333"):
        zw.identify.fit_by_simulation(m, t, x, push, kinds=(), guess={"mass": 1.0}, step=0.004)


def test_two_springs_of_one_joint_are_found_by_their_sum():
    true, model = (driven(zw.Motor("a", "j"), *(zw.Spring("j", k, rest=0.1) for k in ks))
                   for ks in ((2.0, 6.0), (1.0, 3.0)))  # fmt: skip
    t = np.arange(101) * 0.01
    u = np.sin(7 * t)[:, None]
    run = zw.compile(true).rollout([0.1], [0], np.repeat(u[:-1], 5, axis=0), steps=500, every=5)
    q = np.concatenate([[[0.1]], run[0]])
    found = zw.identify.fit_by_simulation(model, t, q, u, kinds=("stiffness",), deviation=1e-5)
    assert abs(found.value("stiffness_j") - 8) < 0.01
    forces = (zw.inverse_dynamics(m, [0.5], [0.3], [1.0]) for m in (true, found.mechanism))
    np.testing.assert_allclose(*forces, rtol=1e-3)


def test_impacts_at_limits_may_leave_local_minima_which_are_told():
    """A block between two stops. Windows of 4 samples without an impact lead to a local minimum of the whole
    record, and one of 10 samples has a minimum far from the record.
    """
    mass, damping = sp.symbols("mass c", positive=True)
    slide = zw.Prismatic("slide", axis=(1, 0, 0), limits=(-0.05, 0.05))
    block = zw.Mechanism("block", [zw.Body("block", slide, mass=mass)],
                         forces=[zw.Motor("push", "slide"), zw.Damper("slide", damping)])  # fmt: skip
    t, true = np.arange(301) * 0.01, {"c": 1.0, "mass": 1.5}
    push = 6 * np.sin(5 * t)[:, None]
    run = zw.compile(block).rollout(
        [0], [0], np.repeat(push[:-1], 5, axis=0), steps=1500, every=5, params=true
    )
    x = np.concatenate([[[0]], run[0]]) + 1e-5 * np.random.default_rng(0).normal(size=(301, 1))
    settings = {"kinds": (), "guess": {"mass": 1.2, "c": 0.7}, "deviation": 1e-5}
    whole = zw.identify.fit_by_simulation(block, t, x, push, window=None, **settings)
    for name, (low, high) in zip(whole.known.combinations, whole.interval, strict=True):
        assert low < true[name] < high and high - low < 0.02
    assert whole.deviation[0] < 1.1e-5 and whole.reason.startswith("converged: the cost no longer decreases")
    short = zw.identify.fit_by_simulation(block, t, x, push, window=10, **settings)
    ratio = short.deviation[0] / 1e-5
    told = f"residuals of slide are {ratio:.3g} times their deviations"
    assert ratio > 3 and told in str(short)
    del settings["deviation"]
    default = zw.identify.fit_by_simulation(block, t, x, push, window=10, **settings)
    assert 0.8e-5 < default.errors[0] < 1.5e-5 and "residuals of slide are" in default.reason


def test_an_upper_bound_alone_leaves_what_the_record_does_not_tell_at_the_guess():
    """The moment of inertia normal to the axis does not move the pendulum."""
    damping, hidden = sp.symbols("c hidden", real=True)
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1.0, com=(0.05, 0, -0.3),
                   inertia=(0.1, 0.1, hidden))  # fmt: skip
    m = zw.Mechanism("p", [body], forces=[zw.Motor("a", "j"), zw.Damper("j", damping)])
    t = np.arange(101) * 0.01
    u = np.sin(7 * t)[:, None]
    run = zw.compile(m).rollout(
        [0.1], [0], np.repeat(u[:-1], 5, axis=0), steps=500, every=5, params={"c": 0.3, "hidden": 0.1}
    )
    q = np.concatenate([[[0.1]], run[0]])
    found = zw.identify.fit_by_simulation(
        m, t, q, u, kinds=(), guess={"c": 0.1, "hidden": 0.1}, deviation=1e-5, bounds={"hidden": (-np.inf, 1)}
    )
    assert abs(found.value("c") - 0.3) < 1e-5
    assert abs(found.value("hidden") - 0.1) < 0.02


def test_symbols_keep_their_signs():
    """The record is that of a damper which drives the pendulum."""
    t = np.arange(101) * 0.01
    u = np.sin(7 * t)[:, None]
    unsigned, signed = (
        driven(zw.Motor("a", "j"), zw.Damper("j", sp.Symbol("c", **assumed)))
        for assumed in ({"real": True}, {"positive": True})
    )
    run = zw.compile(signed).rollout(
        [0.1], [0], np.repeat(u[:-1], 5, axis=0), steps=500, every=5, params={"c": -0.15}
    )
    q = np.concatenate([[[0.1]], run[0]])
    settings = {"kinds": (), "guess": {"c": 0.1}, "deviation": 1e-5}
    found = zw.identify.fit_by_simulation(signed, t, q, u, **settings)
    bounded = zw.identify.fit_by_simulation(unsigned, t, q, u, bounds={"c": (0, np.inf)}, **settings)
    assert 0 <= found.value("c") < 1e-3
    assert abs(found.value("c") - bounded.value("c")) < 1e-3
    with pytest.raises(DescriptionError, match=r"c = -0\.15, .*must not be negative.*bounds=\{'c': "):
        zw.identify.fit_by_simulation(unsigned, t, q, u, **settings)


def test_a_kind_and_a_symbol_of_one_element_are_rejected():
    t = np.arange(21) * 0.01
    for kind, force in (("stiffness", zw.Spring("j", 1.0, rest=K)), ("stiffness", zw.Spring("j", K))):
        with pytest.raises(DescriptionError, match="leave that kind out"):
            zw.identify.fit_by_simulation(
                driven(force), t, t[:, None], 0 * t[:, None], kinds=(kind,), guess={"k": 0.1}
            )


def test_what_the_record_does_not_tell_has_no_interval():
    """Without gravity and with the knee held, the hip tells a single moment of inertia."""
    m = arm().replace(gravity=(0, 0, 0))
    t = np.arange(101) * 0.01
    tau = np.zeros((101, 2))
    run = zw.compile(m).rollout([0, 0], [0, 0], np.repeat(tau[:-1], 5, axis=0), steps=500, every=5)
    q = np.concatenate([np.zeros((1, 2)), run[0]])
    q = q + NOISE * np.random.default_rng(0).normal(size=q.shape)
    found = zw.identify.fit_by_simulation(m, t, q, tau, deviation=NOISE)
    width = found.interval[:, 1] - found.interval[:, 0]
    assert (np.isinf(width) | (width > 1)).all()


def test_priors_bounds_and_single_bodies():
    t, q, tau = record(arm())
    found = zw.identify.fit_by_simulation(
        arm(scale=0.7), t, q, tau, kinds=("inertia",), bodies=("upper",), priors={"m_upper": (1.2, 1e-3)}
    )
    assert abs(found.value("m_upper") - 1.2) < 5e-3
    assert {p.of for p in found.parameters} == {"upper"}
    held = zw.identify.fit_by_simulation(
        arm(damping=0.3), t, q, tau, kinds=("damping",), bounds={"damping_hip": (0.25, 0.5)}
    )
    assert 0.25 < held.value("damping_hip") < 0.26


def test_outliers_have_little_weight_with_hubers_loss():
    t, q, tau = record(arm())
    q = q.copy()
    q[10::40] += 0.02
    robust, plain = (
        zw.identify.fit_by_simulation(
            arm(damping=0.3), t, q, tau, kinds=("damping",), deviation=NOISE, loss=loss
        ).value("damping_hip")
        for loss in ("huber", "linear")
    )
    assert abs(robust - 0.1) < 0.2 * abs(plain - 0.1) + 1e-3


def test_outliers_hardly_widen_the_intervals_of_hubers_loss():
    """The true values deviate by the standard deviations that the fit states, which outliers of 100 times the
    errors hardly increase.
    """
    deviations, widths = [], []
    for seed in range(15):
        t, q, tau = record(arm(), seed)
        rng = np.random.default_rng(100 + seed)
        spoiled = q + (rng.random(q.shape) < 0.05) * 100 * NOISE * rng.normal(size=q.shape)
        plain, robust = (
            zw.identify.fit_by_simulation(arm(damping=0.3), t, x, tau, kinds=("damping",), loss="huber")
            for x in (q, spoiled)
        )
        assert robust.errors.max() < 2 * NOISE and "local minimum" not in robust.reason
        sizes = [np.sqrt(np.diag(x.known.covariance)) for x in (plain, robust)]
        deviations.append((robust.beta - 0.1) / sizes[1])
        widths.append(sizes[1] / sizes[0])
    assert 0.7 < np.sqrt(np.mean(np.square(deviations))) < 1.3  # of 30 standard normal numbers, +-0.13
    assert np.mean(widths) < 1.3


def test_known_velocities_need_no_unknown_starts():
    """Exact states at the starts of windows: the parameters alone are fitted."""
    t, q, tau = exact_record(arm())
    v = np.gradient(q, t, axis=0, edge_order=2)
    found = zw.identify.fit_by_simulation(
        arm(damping=0.3), t, q, tau, v=v, kinds=("damping",), window=None, deviation=NOISE
    )
    np.testing.assert_allclose(found.p, 0.1, rtol=0.02)


@pytest.mark.parametrize("window", [50, None])
def test_several_trials_are_fitted_together(window):
    """Two trials of different lengths, in either order, tell the true values, and with the same windows more
    exactly than each alone.
    """
    rng, kinds = np.random.default_rng(3), ("damping",)
    trials = []
    for samples in (201, 131):
        t, q, tau = exact_record(arm(), samples)
        trials.append((t + samples, q + NOISE * rng.normal(size=q.shape), tau))

    def fit(*record):
        return zw.identify.fit_by_simulation(
            arm(damping=0.3), *record, kinds=kinds, window=window, deviation=NOISE
        )

    both = fit(*zip(*trials, strict=True))
    assert both.measured.shape[:2] == ((6, 51) if window else (2, 131))
    lower, upper = both.interval.T
    assert ((lower < 0.1) & (upper > 0.1)).all()
    for trial in trials if window else []:
        assert (upper - lower < np.diff(fit(*trial).interval).ravel()).all()
    swapped = fit(*zip(*trials[::-1], strict=True))
    np.testing.assert_allclose(swapped.p, both.p, rtol=1e-5)
    assert "<svg" in zw.identify.report(both)._repr_html_()


def swinging(t, force, held: bool) -> np.ndarray:
    """Angles (N,) of a pendulum of mass 2 kg at 0.3 m with damping 0.2 under force(t), by scipy."""

    def rates(s, x, u):
        return [x[1], (u(s) - 2 * 9.81 * 0.3 * np.sin(x[0]) - 0.2 * x[1]) / 0.23]

    if not held:
        return solve_ivp(rates, (0, t[-1]), [0.1, 0], t_eval=t, rtol=1e-9, atol=1e-11, args=(force,)).y[0]
    states = [np.array([0.1, 0.0])]
    for begin, end in pairwise(t):
        constant = (lambda _, u=force(begin): u,)
        done = solve_ivp(rates, (begin, end), states[-1], rtol=1e-9, atol=1e-11, args=constant)
        states.append(done.y[:, -1])
    return np.array(states)[:, 0]


PENDULUM = zw.Mechanism("p", [zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=2, com=(0, 0, -0.3),
                                      inertia=(0.05, 0.05, 0.05))])  # fmt: skip
TRUE = {"mc_b_x": 0.0, "mc_b_z": -0.6, "I_b_yy": 0.23, "damping_j": 0.2}


@pytest.mark.parametrize("interpolation", ["held", "linear"])
def test_forces_that_are_held_and_those_that_a_sensor_samples(interpolation):
    """By the other interpolation the forces come half a sampling time early or late: another damping."""
    t, noise = np.arange(600) * 0.01, 3e-4 * np.random.default_rng(0).normal(size=600)

    def force(s):
        return 2 * np.sin(3 * s) + 0.5 * np.sin(1.8 * s)

    q, damping = swinging(t, force, interpolation == "held") + noise, {}
    for chosen in ("held", "linear"):
        found = zw.identify.fit_by_simulation(
            PENDULUM, t, q[:, None], force(t)[:, None], kinds=("inertia", "damping"), integrator="rk4",
            interpolation=chosen, window=None,
        )  # fmt: skip
        damping[chosen] = found.value("damping_j")
        away = found.beta - [TRUE[name] for name in found.known.combinations]
        if chosen == interpolation:
            assert (np.abs(away) < 3 * np.sqrt(np.diag(found.known.covariance))).all()
    assert damping.pop(interpolation) == pytest.approx(0.2, rel=0.005)
    assert abs(damping.popitem()[1] / 0.2 - 1) > 0.03


def test_forces_without_inputs_are_linear_and_inputs_are_held_by_default():
    t = np.arange(100) * 0.01
    u = np.sin(7 * t)[:, None]
    for m, default in ((PENDULUM, "linear"), (driven(zw.Motor("a", "j")), "held")):
        fits = [
            zw.identify.fit_by_simulation(m, t, u, u, kinds=("damping",), interpolation=x, stop_at=1e9)
            for x in (None, default, "held" if default == "linear" else "linear")
        ]
        np.testing.assert_array_equal(fits[0].simulated, fits[1].simulated)
        assert np.abs(fits[0].simulated - fits[2].simulated).max() > 1e-5


def test_the_errors_of_an_encoder_are_those_of_its_resolution_at_rest_too():
    """Errors of rounding to multiples of r have the deviation r / sqrt(12). A joint that rests for most of
    the record has third differences of 0 there, and they still have a positive deviation.
    """
    m = zw.Mechanism("block", [zw.Body("block", zw.Prismatic("slide", axis=(1, 0, 0)), mass=1)])
    fast, t, resolution = zw.compile(m), np.arange(500) * 0.01, 5e-3
    motion = 0.5 * np.sin(4 * t) + 0.3 * np.sin(9 * t + 1)
    found = []
    for x in (motion, np.where(t < 3, motion[300], motion)):
        x = (resolution * np.round(x / resolution))[:, None]
        trials = RecordedTrials.checked(m, fast, t, x, np.zeros((500, 1)), None, True, True)
        found.append(trials.deviations(fast, None)[0, 0] / (resolution / np.sqrt(12)))
    assert 0.8 < found[0] < 1.25 and 0.4 < found[1] < 1.25


def test_the_information_of_trials_with_different_errors_adds():
    rng, t, trials = np.random.default_rng(0), np.arange(600) * 0.01, []
    for rate, noise in ((0.8, 3e-4), (2.5, 3e-3)):
        u = 3 * np.sin(rate * t)
        q = swinging(t, lambda s, rate=rate: 3 * np.sin(rate * s), False)
        trials.append((t, q[:, None] + noise * rng.normal(size=(600, 1)), u[:, None]))
    both, *alone = (
        zw.identify.fit_by_simulation(PENDULUM, *record, kinds=("inertia", "damping"), integrator="rk4")
        for record in (tuple(zip(*trials, strict=True)), *trials)
    )
    expected = np.linalg.inv(sum(np.linalg.inv(x.known.covariance) for x in alone))
    sizes, known = (np.sqrt(np.diag(C)) for C in (both.known.covariance, expected))
    np.testing.assert_allclose(sizes, known, rtol=0.1)
    assert both.errors[0] == pytest.approx(np.sqrt((9e-8 + 9e-6) / 2), rel=0.1)


def test_invalid_trials_are_told_by_number():
    t, q, tau = record(arm())
    fit = zw.identify.fit_by_simulation
    with pytest.raises(ShapeError, match="time has 2 trials, and q has 1"):
        fit(arm(), [t, t], [q], [tau, tau])
    with pytest.raises(ShapeError, match="time has 2 trials, and q has 0"):
        fit(arm(), [t, t], 5, [tau, tau])
    with pytest.raises(ShapeError, match="trial 2: v is None; give it for all trials"):
        fit(arm(), [t, t], [q, q], [tau, tau], v=[q, None])
    with pytest.raises(ShapeError, match=r"time has the shape \(301, 1\)"):
        fit(arm(), t[:, None], q, tau)
    with pytest.raises(StateError, match="trial 2: time must increase in even steps"):
        fit(arm(), [t, t[::-1]], [q, q], [tau, tau])
    with pytest.raises(StateError, match=r"trial 2 has the sampling time 0\.02 s, and trial 1 has 0\.01 s"):
        fit(arm(), [t, 2 * t], [q, q], [tau, tau])


def test_invalid_calls_are_told_by_name():
    t, q, tau = record(arm())
    fit = zw.identify.fit_by_simulation
    with pytest.raises(ShapeError, match="control must have the shape"):
        fit(arm(), t, q, tau[:5])
    with pytest.raises(StateError, match="even steps"):
        fit(arm(), t[::-1], q, tau)
    with pytest.raises(StateError, match="sample 7"):
        bad = q.copy()
        bad[7] = np.nan
        fit(arm(), t, bad, tau)
    with pytest.raises(StateError, match="does not divide"):
        fit(arm(), t, q, tau, step=0.003)
    with pytest.raises(UnknownNameError, match="offset"):
        fit(arm(), t, q, tau, kinds=("offset",))
    with pytest.raises(UnknownNameError, match="moving body"):
        fit(arm(), t, q, tau, bodies=("hand",))
    with pytest.raises(DescriptionError, match="give a prior"):
        fit(arm(), t, q, tau, bounds={"m_upper": (0, 1)})
    with pytest.raises(StateError, match=r"damping_hip.* is not negative; give a positive upper bound"):
        fit(arm(), t, q, tau, kinds=("damping",), bounds={"damping_hip": (-1, 0)})
    for level in (95, 1.0, 0.0):
        with pytest.raises(StateError, match=f"level is {level}; it must be between 0 and 1"):
            fit(arm(), t, q, tau, level=level)
    with pytest.raises(StateError, match="starts is 0"):
        fit(arm(), t, q, tau, starts=0)
    with pytest.raises(StateError, match="value of the prior of 'm_upper' is nan"):
        fit(arm(), t, q, tau, priors={"m_upper": (np.nan, 0.1)})
    with pytest.raises(DescriptionError, match="nothing is unknown"):
        fit(arm(), t, q, tau, kinds=())
    with pytest.raises(ParameterError, match="no guess"):
        fit(arm().replace(gravity=(0, 0, -sp.Symbol("g", positive=True))), t, q, tau, kinds=())


def test_damping_that_the_model_lacks_and_errors_of_the_steps():
    """500 kg with 2000 N s/m follow the matrix exponential; the model has no damping."""
    m = zw.Mechanism("gantry", [zw.Body("b", zw.Prismatic("x", axis=(1, 0, 0)), mass=450.0)])
    t = np.arange(600) * 0.01
    u = (3000 * np.sin(3 * t) + 2000 * np.sin(1.1 * t))[:, None]
    advance = expm(0.01 * np.array([[0, 1, 0], [0, -2000 / 500, 1 / 500], [0, 0, 0]]))
    y = np.zeros((600, 2))
    for k in range(599):
        y[k + 1] = (advance @ [*y[k], u[k, 0]])[:2]
    errors, exact = np.random.default_rng(0).normal(size=(600, 1)), np.array([500.0, 2000.0])

    def fitted(noise: float, integrator: str, spread: float) -> zw.identify.SimulationFit:
        return zw.identify.fit_by_simulation(
            m, t, y[:, :1] + noise * errors, u, kinds=("inertia", "damping"), integrator=integrator,
            spread=spread, interpolation="held",
        )  # fmt: skip

    for spread in (1.0, 10.0):
        rough = fitted(5e-3, "rk4", spread)
        assert (np.abs(rough.beta - exact) < 3 * np.sqrt(np.diag(rough.known.covariance))).all()
        assert rough.reason == "converged: the cost no longer decreases"
    sharp = fitted(1e-5, "euler", 1.0)
    change = np.abs(sharp.beta - exact)
    assert change[1] > 3 * np.sqrt(sharp.known.covariance[1, 1]) and change[1] < sharp.known.discretisation[1]
    assert "the size of the steps changes damping_x by about" in sharp.reason
    assert (np.abs(fitted(1e-5, "rk4", 1.0).interval.mean(axis=1) - exact) < [0.2, 1.0]).all()
