"""Events at hard limits and contacts from which a force pushes the body back before they are closed, against
the closed form of a mass on a spring.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import ZwangWarning

H, OMEGA, WALL = 2e-3, 2 * math.pi, -0.5
ACCELERATION = -(OMEGA**2) * WALL  # of the spring at the wall
X = sp.Symbol("x")
FALLING = zw.Event(X - WALL, direction=-1)
WAYS = [
    {"integrator": "rk4"},
    {"integrator": "rk4", "compiled": False},
    {"integrator": "dop853"},
    {"integrator": "radau"},
]
NAMES = ["rk4", "rk4 in python", "dop853", "radau"]


def oscillator(joint, **parts):
    """A mass on a spring at the joint x, with the period of 1 s."""
    body = zw.Body("mass", joint, mass=1, position=(0.1 - WALL, 0, 0), geometry=parts.pop("shapes", []))
    return zw.Mechanism("oscillator", [body], gravity=(0, 0, 0), forces=[zw.Spring("x", OMEGA**2)], **parts)


def at_limit(softness=None):
    return oscillator(zw.Prismatic("x", axis=(1, 0, 0), limits=(WALL, 2), limit_softness=softness))


def at_contact():
    """A box before a plane, which its four corners reach at x = WALL."""
    surface = zw.Surface(hard=True)
    plane = zw.Plane(orientation=((0, 0, 1), (0, 1, 0), (-1, 0, 0)), surface=surface)
    shapes = [zw.Box(0.2, 0.3, 0.3, surface=surface)]
    return oscillator(zw.Prismatic("x", axis=(1, 0, 0)), shapes=shapes, geometry=[plane])


def run_of(mechanism, *start, **options):
    """The run, and the messages of its warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = zw.simulate(mechanism, *start, **{"step": H, "duration": 0.8, "progress": False, **options})
    assert all(issubclass(w.category, ZwangWarning) for w in told)
    return run, [str(w.message) for w in told]


def occurrences(run, name, world=0):
    found = run.event_time.sel(event=name).values[world]
    return found[np.isfinite(found)]


@pytest.mark.parametrize(
    ("mechanism", "way"),
    [*((at_limit, way) for way in WAYS), (at_contact, WAYS[2])],
    ids=[*NAMES, "contact, dop853"],
)
def test_a_touch_is_an_event_in_the_direction_of_the_approach(mechanism, way):
    """x = cos(w t) reaches the wall at 1/3 s. Values that turn elsewhere have no events."""
    events = {
        "hit": FALLING,
        "from below": zw.Event(WALL - X, direction=1),
        "leaves": zw.Event(X - WALL, direction=1),
        "before": X - WALL - 0.05,
        "behind": X - WALL + 5e-5,
    }
    run, told = run_of(mechanism(), [1.0], events=events, **way)
    (hit,) = occurrences(run, "hit")
    assert 0 < hit - 1 / 3 < 10 * H
    np.testing.assert_array_equal(occurrences(run, "from below"), [hit])
    assert len(occurrences(run, "leaves")) == len(occurrences(run, "behind")) == 0
    before = math.acos(WALL + 0.05) / OMEGA
    assert len(occurrences(run, "before")) == 2
    assert occurrences(run, "before")[0] == pytest.approx(before, abs=1e-7)
    distance = run.event_q.sel(event="hit").values[0, 0, 0] - WALL
    assert 0.5 < distance / (ACCELERATION * H * H) < 0.93
    assert [message.split(":")[0] for message in told] == [
        "event 'hit' did not come to zero",
        "event 'from below' did not come to zero",
    ]


@pytest.mark.parametrize("way", [WAYS[0], WAYS[2]], ids=["rk4", "dop853"])
def test_worlds_end_at_touches_that_the_closed_form_has(way):
    """Without the wall the amplitudes are beyond it by these multiples of a h^2; a terminal event ends those
    worlds that would pass it. Neighbours change no bit.
    """
    beyond = np.array([500.0, 3.0, 0.0, -1.1, -30.0])
    starts = (-WALL + beyond * ACCELERATION * H * H)[:, None]
    events = {"hit": zw.Event(X - WALL, direction=-1, terminal=True)}
    run, told = run_of(at_limit(), starts, events=events, **way)
    times = run.event_time.values[:, 0, 0]
    np.testing.assert_array_equal(np.isfinite(times), beyond >= 0)
    np.testing.assert_array_equal(run.termination_time.values, np.where(beyond >= 0, times, 0.8))
    assert len(told) == 1
    alone, _ = run_of(at_limit(), starts[1:2], events=events, **way)
    np.testing.assert_array_equal(alone.event_time.values[0], run.event_time.values[1])
    np.testing.assert_array_equal(alone.event_q.values[0], run.event_q.values[1])


@pytest.mark.parametrize("way", [WAYS[0], WAYS[2]], ids=["rk4", "dop853"])
def test_values_that_turn_near_zero_without_a_hard_limit_are_no_events(way):
    """y oscillates freely beside x, which a limit stops, and turns 2e-5 m before zero; so does x at a soft
    limit.
    """
    joint = zw.Prismatic("x", axis=(1, 0, 0), limits=(WALL, 2), limit_softness=None)
    free = zw.Prismatic("y", axis=(0, 1, 0))
    bodies = [zw.Body("mass", joint, mass=1), zw.Body("other", free, mass=1)]
    springs = [zw.Spring(name, OMEGA**2) for name in "xy"]
    m = zw.Mechanism("two", bodies, gravity=(0, 0, 0), forces=springs)
    start = [0.7, -WALL]
    events = {"turn": sp.Symbol("y") - WALL + 2e-5, "hit": X - WALL}
    run, told = run_of(m, start, events=events, **way)
    assert len(occurrences(run, "turn")) == 0 and len(occurrences(run, "hit")) == 1 and len(told) == 1
    soft = at_limit(zw.Softness())
    lowest, _ = run_of(soft, [1.0], events={"turn": zw.Event(sp.Symbol("x_dot"), direction=1)}, **way)
    least = float(lowest.event_q.sel(event="turn").values[0, 0, 0])
    run, told = run_of(soft, [1.0], events={"turn": X - least + 2e-5}, **way)
    assert len(occurrences(run, "turn")) == 0 and not told
