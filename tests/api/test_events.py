"""Events: closed forms, SciPy's solve_ivp, many worlds, terminal events, and their recordings."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import zwang as zw
from zwang.errors import ArgumentError, ShapeError, SimulationError, UnknownNameError, ZwangWarning
from zwang.scalar import sin, sqrt
from zwang.simulation.step_path import StepPath

G = 9.81
WAYS = [
    {"integrator": "euler"},
    {"integrator": "rk4"},
    {"integrator": "rk4", "compiled": False},
    {"integrator": "dop853"},
    {"integrator": "radau", "compiled": False},
]
NAMES = ["euler", "rk4", "rk4 in python", "dop853", "radau in python"]


def thrown():
    """A point that is thrown: z and x."""
    joints = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z", axis=(0, 0, 1)))
    return zw.Mechanism("stone", (zw.Body("stone", joints, mass=1, inertia=(1.0,) * 3),))


def pendulum(length=1.0):
    return zw.Mechanism(
        "pendulum", (zw.Body("bob", zw.Revolute("turn", axis=(0, 1, 0)), mass=1, com=(0, 0, -length)),)
    )


def run_of(mechanism, *start, **options):
    return zw.simulate(mechanism, *start, **{"step": 0.01, "progress": False, **options})


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_the_top_and_the_landing_of_a_throw_are_those_of_the_parabola(way):
    """For Euler's method those of the leapfrog parabola, whose velocities belong to h/2 before."""
    h, (vx, vz), z0 = 0.01, (3.0, 4.0), 1.2
    lag = h / 2 if way["integrator"] == "euler" else 0.0
    found = run_of(thrown(), [0, z0], [vx, vz], duration=2.0, **way, events={
        "top": zw.Event(lambda t, q, v: v[1], direction=-1),
        "rising": zw.Event(lambda t, q, v: v[1], direction=1),
        "landing": zw.Event(sp.Symbol("z"), terminal=True),
    })  # fmt: skip
    # velocity at the time 0 of the parabola
    w = vz - G * lag
    landing = (w + math.sqrt(w * w + 2 * G * z0)) / G
    assert found.event_time.values[0, 0] == pytest.approx([vz / G], abs=1e-10)
    assert np.isnan(found.event_time.values[0, 1]).all()
    assert found.event_time.values[0, 2] == pytest.approx([landing], abs=1e-10)
    np.testing.assert_allclose(found.event_q.values[0, 2, 0], [vx * landing, 0], atol=1e-9)
    np.testing.assert_allclose(found.event_v.values[0, 2, 0], [vx, vz - G * landing], atol=1e-9)
    # the world ends there
    assert found.status.values == 2 and found.attrs["duration"] == pytest.approx(2.0)
    assert found.termination_time.values == pytest.approx([landing], abs=1e-10)
    last = np.isfinite(found.q.values[0, :, 0])
    assert np.array_equal(last, found.time.values <= landing)
    flags = dict(
        zip(found.failure_reason.flag_values, found.failure_reason.flag_meanings.split(), strict=True)
    )
    assert flags[int(found.failure_reason.values[0])] == "terminal_event"


@pytest.mark.parametrize("integrator", ["dop853", "rk45", "radau", "bdf", "lsoda"])
def test_zeros_that_the_recording_shows_are_found_within_a_long_step(integrator):
    """A throw to z = 5.097 m, which error-controlled integrators pass in one step."""
    t = [(10 - root) / G for root in (math.sqrt(100 - 2 * G * 5), -math.sqrt(100 - 2 * G * 5))]
    events = {"both": sp.Symbol("z") - 5, "last": zw.Event(sp.Symbol("z") - 5, direction=-1, terminal=True)}
    found = run_of(thrown(), None, [0, 10], duration=2, integrator=integrator, events=events)
    np.testing.assert_allclose(found.event_time.values[0], [t, [t[1], np.nan]], atol=1e-7)
    assert found.status.values == 2 and np.isfinite(found.q.values[0, :, 1]).sum() == 1 + int(t[1] / 0.01)


@pytest.mark.parametrize("way", [{"integrator": "rk4", "step": 2e-3}, {"integrator": "dop853"}])
def test_events_are_those_of_scipy(way):
    def late(t, y):
        return y[0] - 0.4

    def turning(t, y):
        return y[1]

    turning.direction = -1
    reference = solve_ivp(
        lambda t, y: [y[1], -G * np.sin(y[0])], (0, 6), [2.0, 0.3], events=(late, turning),
        rtol=1e-11, atol=1e-12, method="DOP853",
    )  # fmt: skip
    events = {"late": lambda t, q, v: late(t, [*q, *v]), "turning": lambda t, q, v: turning(t, [*q, *v])}
    events["turning"].direction = -1
    found = run_of(pendulum(), [2.0], [0.3], duration=6.0, **way, events=events)
    for k, times in enumerate(reference.t_events):
        own = found.event_time.values[0, k]
        np.testing.assert_allclose(own[np.isfinite(own)], times, atol=1e-8)
        states = np.concatenate([found.event_q.values[0, k], found.event_v.values[0, k]], axis=-1)
        np.testing.assert_allclose(states[: len(times)], reference.y_events[k], atol=1e-7)


@pytest.mark.parametrize("compiled", [True, False])
def test_each_world_has_its_own_events_and_its_own_end(compiled):
    """Small oscillations of pendulums of different length: the n-th zero is at (n - 1/2) pi sqrt(l / g)."""
    length = sp.Symbol("length", positive=True)
    lengths = np.array([0.2, 0.5, 1.1, 3.0, 40.0])
    found = run_of(
        pendulum(length), np.full((5, 1), 1e-5), duration=4.0, integrator="rk4", compiled=compiled,
        params={"length": lengths}, record=7, events={"third": zw.Event(sp.Symbol("turn"), terminal=3)},
    )  # fmt: skip
    zeros = (np.arange(3) + 0.5) * math.pi * np.sqrt(lengths[:, None] / G)
    expected = np.where(zeros <= 4.0, zeros, np.nan)
    np.testing.assert_allclose(found.event_time.values[:, 0], expected, atol=1e-6)
    ended = zeros[:, 2] <= 4.0
    assert found.status.values.tolist() == np.where(ended, 2, 0).tolist()
    np.testing.assert_allclose(found.termination_time, np.where(ended, zeros[:, 2], 4.0), atol=1e-6)
    last = np.where(ended, zeros[:, 2], np.inf)
    assert np.array_equal(np.isfinite(found.q.values[..., 0]), found.time.values <= last[:, None])


def test_the_error_of_an_event_of_rk4_is_of_fourth_order():
    """The time of the third passage of a pendulum of large amplitude, by an elliptic integral."""
    amplitude = 2.0
    from_rest = sp.elliptic_k(sp.sin(sp.Float(amplitude, 30) / 2) ** 2) / sp.sqrt(sp.Float(G, 30))
    errors = []
    for steps in (100, 200, 400):
        found = run_of(pendulum(), [amplitude], duration=4.0, step=4.0 / steps, integrator="rk4",
                       events={"down": lambda t, q, v: q[0]})  # fmt: skip
        errors.append(abs(found.event_time.values[0, 0, 2] - 5 * float(from_rest)))
    assert errors[-1] < 1e-6 and math.log2(errors[0] / errors[2]) / 2 > 3.2


def test_the_path_between_steps_lies_on_the_manifold_and_has_fourth_order():
    """A body that rotates about a changing axis: a step by rk4 in halves against the path at 1/2."""
    top = zw.Mechanism("top", (zw.Body("top", zw.Ball("tip"), mass=0.5, com=(0, 0, 0.06),
                                        inertia=(6e-4, 6e-4, 4e-4)),))  # fmt: skip
    fast, q0, v0 = zw.compile(top), np.array([math.cos(0.3), math.sin(0.3), 0, 0]), np.array([2.0, 1.0, 9.0])
    errors = []
    for h in (0.02, 0.01):
        middle, end = (fast.step(q0, v0, np.zeros(3), step=size, integrator="rk4") for size in (h / 2, h))
        q, v = StepPath(top.tree, h, 0.0, q0, v0, end.q, end.v).at(0.5)
        assert np.linalg.norm(q) == pytest.approx(1)
        errors.append([np.abs(q - middle.q).max(), np.abs(v - middle.v).max()])
    ratios = np.log2(np.divide(*errors))
    assert ratios[0] > 3.5 and ratios[1] > 2.5


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_events_are_saved_and_loaded(tmp_path, suffix):
    if suffix == ".zarr":
        pytest.importorskip("zarr")
    for events in ({"down": sp.Symbol("turn")}, {"never": lambda t, q, v: q[0] + 100.0}):
        found = run_of(pendulum(), [[1.0], [2.0]], duration=1.5, integrator="rk4", events=events)
        path = tmp_path / f"run {len(events)} {next(iter(events))}{suffix}"
        zw.save(found, path)
        loaded = zw.open_run(path)
        for name in ("event_time", "event_q", "event_v", "event", "occurrence"):
            np.testing.assert_array_equal(loaded[name].values, found[name].values)
    assert found.event_time.shape == (2, 1, 0)
    assert loaded.event_time.attrs["units"] == "s" and loaded.event_v.attrs["units"] == "rad/s"


def test_functions_are_compiled_or_called_with_the_same_events():
    def called(t, q, v):
        return float(np.sin(float(q[0]) - 0.1 * t))

    expression = sp.sin(sp.Symbol("turn") - sp.Symbol("t") / 10)
    times = [
        run_of(pendulum(), [[1.0], [2.0]], duration=3.0, integrator="rk4", events={"e": function})
        .event_time.values
        for function in (called, lambda t, q, v: sin(q[0] - 0.1 * t), expression)
    ]  # fmt: skip
    np.testing.assert_allclose(times[1], times[0], atol=1e-12)
    np.testing.assert_allclose(times[2], times[0], atol=1e-12)


def test_a_control_function_and_events_work_together():
    found = run_of(thrown(), duration=1.0, control=lambda t, q, v: [2.0, G - 1.0], integrator="rk4",
                   events={"one metre": zw.Event(sp.Symbol("x") - 0.5, 1, True)})  # fmt: skip
    assert found.event_time.values[0, 0, 0] == pytest.approx(math.sqrt(0.5), abs=1e-10)
    assert found.event_q.values[0, 0, 0, 1] == pytest.approx(-0.25, abs=1e-9)


def test_what_is_no_event_is_refused_by_name():
    mechanism = pendulum()
    wrong = {
        r"event 'e' is 3": {"e": 3},
        r"event 'e' is a function with the arguments \(t, q\)": {"e": lambda t, q: q[0]},
        r"direction of an event": {"e": lambda t, q, v: q[0]},
    }
    wrong[r"direction of an event"]["e"].direction = "up"
    for match, events in wrong.items():
        with pytest.raises(SimulationError, match=match):
            run_of(mechanism, duration=0.1, events=events)
    with pytest.raises(SimulationError, match="terminal of an event"):
        zw.Event(sp.Symbol("turn"), terminal=-1)
    with pytest.raises(UnknownNameError, match="symbol of event 'e'"):
        run_of(mechanism, duration=0.1, events={"e": sp.Symbol("trun")})
    with pytest.raises(ArgumentError, match=r"events of simulate.*dictionary"):
        run_of(mechanism, duration=0.1, events=[lambda t, q, v: q[0]])
    for compiled in (True, False):
        with pytest.raises(ShapeError, match="event 'e' returned"):
            run_of(thrown(), duration=0.1, events={"e": lambda t, q, v: q}, compiled=compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_an_event_or_control_function_may_read_is_told(compiled):
    """A free joint has seven coordinates and six velocities of other names."""
    ball = zw.Mechanism("m", [zw.Body("ball", zw.Free("f"), mass=1, inertia=np.eye(3))])
    run = partial(run_of, ball, duration=0.01, compiled=compiled)
    for read, letter, first in (
        (lambda t, q, v: v.vz, "v", r"v\[2\] is 'f.vz', v\[0\] is 'f.vx'"),
        (lambda t, q, v: q.qw + v[0], "q", r"q\[3\] is 'f.qw', "),
    ):
        with pytest.raises(SimulationError, match=rf"event 'e' reads {letter}\.\w+, .* position: {first}"):
            run(events={"e": read})
        with pytest.raises(SimulationError, match=rf"control reads {letter}\.\w+, .* position: {first}"):
            run(control=read)
    with pytest.raises(IndexError) as found:
        run(events={"e": lambda t, q, v: v["f.vz"]})
    assert "event 'e'" in found.value.__notes__[0] and "v[2] is 'f.vz'" in found.value.__notes__[0]
    with pytest.raises(AttributeError, match="no attribute 'vz'"):  # of another value
        run(events={"e": lambda t, q, v: np.zeros(3).vz})
    with pytest.raises(SimulationError, match=r"'f.vz', the name of a generalised velocity.*'f.vz_dot'"):
        run(events={"e": sp.Symbol("f.vz")})


def test_error_controlled_integrators_refuse_restitution():
    surface = zw.Surface(hard=True, restitution=0.5, condim=1)
    ball = zw.Body("ball", zw.Free("free"), mass=1, geometry=(zw.Sphere(0.1, surface=surface),),
                   inertia=(0.1,) * 3)  # fmt: skip
    mechanism = zw.Mechanism("ball", (ball,), geometry=(zw.Plane(surface=surface),))
    with pytest.raises(SimulationError, match=r"restitution.*'dop853'.*fixed step size"):
        run_of(mechanism, duration=0.1, integrator="dop853")


@pytest.mark.parametrize("compiled", [False, True])
def test_events_are_found_where_a_limit_acts(compiled):
    """A mass that is thrown up under a stop at 0.3 m passes 0.1 m after 0.1 s."""
    joint = zw.Prismatic("z", (0, 0, 1), limits=(-1, 0.3))
    m = zw.Mechanism("lift", [zw.Body("mass", joint, mass=1)], gravity=(0, 0, -9.81))
    v0 = (0.1 + 9.81 * 0.1**2 / 2) / 0.1
    run = zw.simulate(
        m, [0.0], [v0], duration=0.2, step=1e-3, integrator="rk4", compiled=compiled, progress=False,
        events={"up": zw.Event(lambda t, q, v: q[0] - 0.1, direction=1)},
    )  # fmt: skip
    times = np.ravel(run.event_time.values)
    assert np.isclose(times[np.isfinite(times)][0], 0.1, atol=1e-6)


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_zeros_at_the_start_are_events_as_in_scipy(way):
    """A stone thrown up from the ground: the direction of a zero at the start is that of the first step."""
    height = {name: (lambda t, y: y[0]) for name in ("both", "rising", "falling")}
    for direction, function in zip((0, 1, -1), height.values(), strict=True):
        function.direction = direction
    reference = solve_ivp(lambda t, y: [y[1], -G], (0, 1), [0, 4.0], events=tuple(height.values()))
    events = {name: zw.Event(sp.Symbol("z"), f.direction) for name, f in height.items()}
    found = run_of(thrown(), [0, 0], [0, 4.0], duration=1.0, **way, events=events).event_time.values[0]
    for own, times in zip(found, reference.t_events, strict=True):
        np.testing.assert_allclose(own[np.isfinite(own)], times, atol=0.02)
    assert np.array_equal(found[:2, 0], [0, 0])
    ended = run_of(thrown(), [0, 0], [0, 4.0], duration=1.0, **way,
                   events={"ground": zw.Event(sp.Symbol("z"), terminal=True)})  # fmt: skip
    assert ended.termination_time.values == 0 and ended.event_time.values.tolist() == [[[0.0]]]
    assert np.isfinite(ended.q.values[0, :, 1]).sum() == 1
    landed = run_of(thrown(), [0, 0], [0, 4.0], duration=1.0, **way,
                    events={"ground": zw.Event(sp.Symbol("z"), -1, True)})  # fmt: skip
    assert landed.termination_time.values == pytest.approx(8 / G, abs=0.02)


def test_a_symbol_with_two_meanings_is_no_event():
    joints = [zw.Prismatic(name, axis=(1, 0, 0)) for name in ("a", "a_dot")]
    bodies = [zw.Body("first", joints[0], mass=1), zw.Body("second", joints[1], "first", mass=1)]
    with pytest.raises(SimulationError, match=r"symbol 'a_dot' of event 'e' has two meanings"):
        run_of(zw.Mechanism("m", bodies), duration=0.1, events={"e": sp.Symbol("a_dot")})


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_an_event_without_a_value_is_told(way):
    def rise(t, q, v):
        return sqrt(v[1] - 2.0) - 0.5  # not defined below 2 m/s; there the crossing is at 2.25 m/s

    with pytest.warns(ZwangWarning, match=r"event 'rise' is NaN at t = 0\.[0-9]+; where it has no value"):
        found = run_of(thrown(), [0, 1.0], [0, 4.0], duration=0.5, events={"rise": rise}, **way)
    if way["integrator"] in ("euler", "rk4"):  # the steps of the others reach beyond the crossing
        assert found.event_time.values[0, 0] == pytest.approx([(4.0 - 2.25) / G], abs=1e-9)


def ball(restitution, gravity=G, ceiling=None):
    """A ball whose height above a hard floor is z, with a hard ceiling or none."""
    surface = zw.Surface(hard=True, restitution=restitution, condim=1)
    walls = [zw.Plane(surface=surface)]
    if ceiling is not None:
        down = ((1, 0, 0), (0, -1, 0), (0, 0, -1))
        walls.append(zw.Plane(position=(0, 0, ceiling + 0.2), orientation=down, surface=surface))
    body = zw.Body("ball", zw.Prismatic("z", axis=(0, 0, 1)), position=(0, 0, 0.1), mass=1,
                   geometry=[zw.Sphere(0.1, surface=surface)])  # fmt: skip
    return zw.Mechanism("ball", [body], geometry=walls, gravity=(0, 0, -gravity))


def occurrences(run, event, world=0):
    found = run.event_time.sel(event=event).values[world]
    return found[np.isfinite(found)]


LANDING = {
    "landing": zw.Event(sp.Symbol("z"), direction=-1),
    "rising": zw.Event(sp.Symbol("z"), direction=1),
    "impact": zw.Event(sp.Symbol("z_dot"), direction=1),
    "top": zw.Event(lambda t, q, v: float(v[0]), direction=-1),
    "third": zw.Event(sp.Symbol("z"), terminal=3),
}


@pytest.mark.parametrize(
    "e, way",
    [
        (0.8, {"integrator": "rk4"}),
        (0.3, {"integrator": "rk4", "compiled": False}),
        (0.3, {"integrator": "euler"}),
        (0.8, {"integrator": "euler", "compiled": False}),
        (0.8, {"integrator": "implicit"}),
        (0.8, {"integrator": "rk4", "control": lambda t, q, v: [0.0 * float(q[0])]}),
    ],
)
def test_landings_on_a_hard_floor_are_those_of_the_bouncing_ball(e, way):
    """From rest at 1 m: t_1 = sqrt(2 / g), then bounces of 2 e^n t_1, with a top in the middle of each. The
    velocities of Euler's methods belong to h/2 before, and those at the beginning, too.
    """
    h = 0.01
    lag = 0.0 if way["integrator"] == "rk4" else h / 2
    w = G * lag  # downwards at the beginning, at the time of q
    fall = (math.sqrt(w * w + 2 * G) - w) / G
    flights = 2 * (fall + lag) * e ** np.arange(1, 3)
    landings = fall + np.concatenate([[0.0], np.cumsum(flights)])
    run = run_of(ball(e), [1.0], duration=float(landings[-1]) + 0.5 * h, record=7, **way, events=LANDING)
    # one bounce of Euler's leapfrog method rises by g h^2 / 8 more or less
    near = {"rtol": 0, "atol": 1e-9 if lag == 0 else 2e-4}
    np.testing.assert_allclose(occurrences(run, "landing"), landings, **near)
    np.testing.assert_allclose(occurrences(run, "impact"), landings, **near)
    np.testing.assert_allclose(occurrences(run, "top")[1:], landings[:-1] + flights / 2 + lag, **near)
    assert len(occurrences(run, "rising")) == 0
    np.testing.assert_allclose(occurrences(run, "third"), landings, **near)
    assert run.status.values == [2] and run.termination_time.values == pytest.approx(landings[2:], abs=2e-4)
    heights = run.event_q.sel(event="landing").values[0, :3, 0]
    np.testing.assert_allclose(heights, 0, atol=1e-9)


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_several_impacts_in_a_step_are_all_found(integrator):
    """Without gravity between two walls 1 m apart, with two or three impacts in each step of 0.1 s."""
    speed = 25.0
    run = run_of(ball(1.0, 0.0, 1.0), [0.3], [speed], duration=0.5, step=0.1, integrator=integrator, events={
        "floor": zw.Event(sp.Symbol("z"), direction=-1),
        "ceiling": zw.Event(sp.Symbol("z") - 1, direction=1),
        "middle": sp.Symbol("z") - sp.Rational(1, 2),
    })  # fmt: skip
    ceiling = np.arange(0.7, 12.5, 2.0) / speed
    np.testing.assert_allclose(occurrences(run, "ceiling"), ceiling, atol=1e-9)
    np.testing.assert_allclose(occurrences(run, "floor"), np.arange(1.7, 12.5, 2.0) / speed, atol=1e-9)
    np.testing.assert_allclose(occurrences(run, "middle"), np.arange(0.2, 12.5) / speed, atol=1e-9)


@pytest.mark.parametrize("way", [WAYS[0], WAYS[1], WAYS[2]], ids=NAMES[:3])
def test_a_ball_that_stays_on_the_floor_lands_once(way):
    lag = 0.005 if way["integrator"] == "euler" else 0.0
    fall = (math.sqrt((G * lag) ** 2 + 2 * G) - G * lag) / G
    events = {name: LANDING[name] for name in ("landing", "rising", "impact")} | {"any": sp.Symbol("z")}
    run = run_of(ball(0.0), [1.0], duration=0.6, events=events, **way)
    for name in ("landing", "impact", "any"):
        np.testing.assert_allclose(occurrences(run, name), [fall], atol=1e-9)
    assert len(occurrences(run, "rising")) == 0
    resting = run_of(ball(0.0), [0.0], duration=0.1, events=events, **way)
    assert occurrences(resting, "any").tolist() == [0] and len(occurrences(resting, "impact")) <= 1


@pytest.mark.parametrize("turn", [False, True], ids=["slide", "hinge"])
def test_a_hard_limit_is_reached_once(turn):
    """At constant speed. Euler's method closes it in one step; the others gradually, which a warning says."""
    kind, start, speed, h = (zw.Revolute if turn else zw.Prismatic), 1.0, -4.0, 1e-3
    joint = kind("x", axis=(0, 0, 1), limits=(0, 2), limit_softness=None)
    m = zw.Mechanism("m", [zw.Body("b", joint, mass=1, inertia=(1,) * 3)], gravity=(0, 0, 0))
    events = {"stop": sp.Symbol("x"), "close": sp.Symbol("x") - 0.02, "time": sp.Symbol("t") - 0.1}
    for integrator in ("euler", "rk4", "dop853"):
        options = {"duration": 0.5, "step": h, "integrator": integrator, "events": events}
        if integrator == "euler":
            run, late = run_of(m, [start], [speed], **options), h
        else:
            with pytest.warns(ZwangWarning, match=r"event 'stop' came to zero gradually") as told:
                run, late = run_of(m, [start], [speed], **options), 25 * h
            assert len(told) == 1
        stop = occurrences(run, "stop")
        assert len(stop) == 1 and 0.25 - h <= stop[0] <= 0.25 + late
        np.testing.assert_allclose(occurrences(run, "close"), [(start - 0.02) / -speed], atol=1e-9)
        np.testing.assert_allclose(occurrences(run, "time"), [0.1], atol=1e-9)


def test_an_error_controlled_landing_on_a_hard_floor_is_found_once_and_told():
    with pytest.warns(ZwangWarning, match=r"event 'landing' came to zero gradually"):
        run = run_of(ball(0.0), [1.0], duration=0.6, step=2e-3, integrator="dop853",
                     events={"landing": LANDING["landing"], "above": sp.Symbol("z") - 0.05})  # fmt: skip
    landing = occurrences(run, "landing")
    assert len(landing) == 1 and 0 < landing[0] - math.sqrt(2 / G) < 25 * 2e-3
    np.testing.assert_allclose(occurrences(run, "above"), [math.sqrt(1.9 / G)], atol=1e-8)
