"""Machine code that is no longer needed is released."""

from __future__ import annotations

import gc

import zwang as zw
from zwang.compiler.runtime import processor


def compiled(mass: float):
    pendulum = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=mass, com=(0, 0, -1))
    return zw.compile(zw.Mechanism("p", [pendulum]))


def test_code_in_a_cycle_is_released_once_at_the_next_compilation():
    """The garbage collector finds the owner of the code in a cycle, but not the code, which would be released
    a second time.
    """
    held = compiled(1.5)
    held.forward_dynamics([0.3], [0.0], [0.0])
    gc.collect()
    compiled(2.5).forward_dynamics([0.3], [0.0], [0.0])
    for k in range(3):
        cycle: list = [compiled(3.5 + k)]
        cycle[0].forward_dynamics([0.3], [0.0], [0.0])
        cycle.append(cycle)
        trackers = list(processor._loaded.values())
        del cycle
        gc.collect()
        assert not any(tracker.closed for tracker in trackers)
    last = compiled(9.5)
    last.forward_dynamics([0.3], [0.0], [0.0])
    assert trackers[-1].closed and not processor._unloaded
