"""Events where hard friction ends a motion, against the closed forms of uniform deceleration."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import ZwangWarning

G, MU = 9.81, 0.5
WAYS = [
    {"integrator": "euler"},
    {"integrator": "implicit", "compiled": False},
    {"integrator": "rk4"},
    {"integrator": "rk4", "compiled": False},
    {"integrator": "rk45"},
    {"integrator": "dop853"},
    {"integrator": "radau"},
    {"integrator": "bdf", "compiled": False},
]


def block(incline=0.0, friction=MU, **options):
    """A block on a plane, x upwards along its slope."""
    joint = zw.Prismatic("x", axis=(1, 0, 0))
    gravity = (-G * math.sin(incline), 0, -G * math.cos(incline))
    law = zw.CoulombFriction("rough", friction, joint="x")
    bodies = [zw.Body("block", joint, mass=2), *options.pop("bodies", [])]
    return zw.Mechanism("block", bodies, gravity=gravity, constraints=[law], **options)


def occurrences(run, name):
    found = run.event_time.sel(event=name).values[0]
    return found[np.isfinite(found)]


def run_of(mechanism, *start, **options):
    return zw.simulate(mechanism, *start, **{"step": 0.01, "progress": False, **options})


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way.values())))
def test_a_sliding_block_stops_once_at_the_time_of_the_closed_form(way):
    """v0 / (mu g), after v0^2 / (2 mu g). Euler's methods, whose friction ends the motion within a step, give
    the end of this step.
    """
    v0, h = 2.0, 0.01
    stop = v0 / (MU * G)
    speed = sp.Symbol("x_dot")
    events = {
        "stop": zw.Event(speed, direction=-1),
        "any": lambda t, q, v: v[0],
        "start": zw.Event(speed, direction=1),
        "place": sp.Symbol("x") - 0.3,
    }
    run = run_of(block(), [0.0], [v0], duration=1.0, step=h, events=events, **way)
    one_step = way["integrator"] in ("euler", "implicit")
    expected, error = (h * math.ceil(stop / h), 1e-12) if one_step else (stop, 1e-8)
    np.testing.assert_allclose(occurrences(run, "stop"), [expected], atol=error)
    np.testing.assert_allclose(occurrences(run, "any"), [expected], atol=error)
    assert len(occurrences(run, "start")) == 0 and len(occurrences(run, "place")) == 1
    np.testing.assert_allclose(run.event_v.sel(event="stop").values[0, 0], [0.0], atol=1e-9)
    if not one_step:
        np.testing.assert_allclose(run.event_q.sel(event="stop").values[0, 0], [v0 * stop / 2], atol=1e-8)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way.values())))
def test_hard_joint_friction_stops_once(way):
    """Euler's methods stop at the end of a step; the others gradually, which a warning says."""
    h, v0, a = 0.01, 2.0, MU * G
    joint = zw.Prismatic("x", axis=(1, 0, 0), friction=a, friction_softness=None)
    m = zw.Mechanism("block", [zw.Body("block", joint, mass=1)], gravity=(0, 0, 0))
    slow, speed = 0.1, sp.Symbol("x_dot")
    events = {"stop": speed, "slow": zw.Event(speed - slow, direction=-1)}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = run_of(m, [0.0], [v0], duration=1.0, step=h, events=events, **way)
    one_step = way["integrator"] in ("euler", "implicit")
    assert [w.category for w in told] == ([] if one_step else [ZwangWarning])
    assert one_step or "event 'stop' came to zero gradually" in str(told[0].message)
    (stop,) = occurrences(run, "stop")
    assert 0 < stop - v0 / a < (1 if one_step else 25) * h
    np.testing.assert_allclose(occurrences(run, "slow"), [(v0 - slow) / a], atol=1e-6)


@pytest.mark.parametrize("way", WAYS[2:], ids=lambda way: " ".join(map(str, way.values())))
def test_a_block_that_slides_back_turns_once(way):
    """Up with the deceleration g (sin + mu cos), at rest for no time, and down with g (sin - mu cos)."""
    incline, v0 = 0.7, 2.0
    up, down = (G * (math.sin(incline) + s * MU * math.cos(incline)) for s in (1, -1))
    turn = v0 / up
    back = turn + math.sqrt(v0 * v0 / up / down)
    events = {"turn": sp.Symbol("x_dot"), "back": zw.Event(sp.Symbol("x"), direction=-1, terminal=True)}
    run = run_of(block(incline), [0.0], [v0], duration=1.5, events=events, **way)
    np.testing.assert_allclose(occurrences(run, "turn"), [turn], atol=1e-8)
    np.testing.assert_allclose(occurrences(run, "back"), [back], atol=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_stops_and_impacts_of_one_step_are_all_found(compiled):
    """A ball that bounces at t1 = sqrt(2 h / g), t1 (1 + 2 e) beside the block, which stops at t1 + 1 ms."""
    e, height = 0.5, 0.2
    surface = zw.Surface(hard=True, restitution=e)
    ball = zw.Body("ball", zw.Prismatic("z", axis=(0, 0, 1)), position=(0, 3, 0.1), mass=1,
                   geometry=[zw.Sphere(0.1, surface=surface)])  # fmt: skip
    m = block(bodies=[ball], geometry=[zw.Plane(surface=surface)])
    landing = math.sqrt(2 * height / G)
    v0 = MU * G * (landing + 1e-3)
    events = {"stop": sp.Symbol("x_dot"), "landing": zw.Event(sp.Symbol("z"), direction=-1),
              "impact": zw.Event(sp.Symbol("z_dot"), direction=1)}  # fmt: skip
    run = run_of(m, [0.0, height], [v0, 0.0], duration=2.2 * landing, step=0.02, integrator="rk4",
                 compiled=compiled, events=events)  # fmt: skip
    np.testing.assert_allclose(occurrences(run, "stop"), [landing + 1e-3], atol=1e-9)
    for name in ("landing", "impact"):
        np.testing.assert_allclose(occurrences(run, name), [landing, (1 + 2 * e) * landing], atol=1e-9)
