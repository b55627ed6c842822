"""Ctrl-C at any time, with any number of threads: the recording is kept and the process continues."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import xarray as xr

import zwang as zw
from tests.faults.processes import run
from zwang.errors import SimulationInterrupted
from zwang.mechanism.samples import FURUTA, furuta

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
PRESS = """
import os, signal, threading, time
import numpy as np
import zwang as zw
from zwang.mechanism.samples import FURUTA, furuta

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
MUCH_LATER = 20.0  # seconds; all that is interrupted here would take minutes


def interrupted(work, after):
    sent = []

    def press():
        time.sleep(after)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    key = threading.Thread(target=press)
    key.start()
    try:
        work()
    except KeyboardInterrupt as stop:
        key.join()
        assert time.monotonic() - sent[0] < MUCH_LATER
        return stop
    raise AssertionError("it was not interrupted")
"""


@POSIX
def test_an_interrupt_while_threads_write_does_not_crash() -> None:
    """Without waiting for its threads this process ends with SIGSEGV."""
    run(
        PRESS
        + """
pendulum = furuta(**FURUTA)
rng = np.random.default_rng(0)
q, v = rng.normal(size=(2, 4000, 2))
none = np.zeros(1)
fast = zw.compile(pendulum, threads=4)
short = dict(steps=50, step=1e-3)
expected = fast.rollout(q, v, none, **short)
for k in range(12):
    steps = 3_000_000
    stop = interrupted(
        lambda: fast.rollout(q, v, none, steps=steps, step=1e-3, every=steps), 0.02 + 0.02 * k
    )
    junk = [np.empty(4000 * 2 * n) for n in range(1, 40)]  # what was free is used again
    for x in junk:
        x.fill(k)
    assert all((x == k).all() for x in junk)
found = fast.rollout(q, v, none, **short)
assert np.array_equal(found.q, expected.q) and np.array_equal(found.v, expected.v)
"""
    )


@POSIX
def test_calls_with_one_world_and_with_many_worlds_are_interrupted() -> None:
    run(
        PRESS
        + """
pendulum = furuta(**FURUTA)
alone = zw.compile(pendulum, threads=1)
q, v = [0.1, 0.2], [0.0, 0.0]
expected = alone.forward_dynamics(q, v, q)
alone.rollout(q, v, [0.0], steps=10, step=1e-3)
for after in (0.05, 0.3):
    steps = 2_000_000_000
    interrupted(lambda: alone.rollout(q, v, [0.0], steps=steps, step=1e-3, every=steps), after)
    for threads in (1, 2):
        many = zw.compile(pendulum, threads=threads)
        many.forward_dynamics(np.zeros((9, 2)), np.zeros((9, 2)), np.zeros((9, 2)))
        Q = np.broadcast_to(np.array(q), (6_000_000, 2))
        interrupted(lambda: [many.forward_dynamics(Q, Q, Q) for _ in range(1000)], after)
assert np.array_equal(alone.forward_dynamics(q, v, q), expected)
"""
    )


@POSIX
def test_an_interrupted_step_of_worlds_is_undone_or_completed() -> None:
    """Calls that take long, calls that are too short to be stopped, and those whose states take long to
    copy.
    """
    run(
        PRESS
        + """
from zwang.gym import VectorEnv

pendulum = furuta(**FURUTA)
observed = lambda s: [s.time, *s.q(), *s.v()]
worlds = zw.Worlds(pendulum, 3000, threads=2, step=1e-3, observe=lambda s: {"now": observed(s)})
start = np.random.default_rng(0).normal(size=(3000, 2))
worlds.reset(q=start)
for substeps, after in ((400_000, 0.3), (400_000, 0.5), (200, 0.1), (200, 0.17)):
    worlds.step(substeps=50)
    before = worlds.observation["now"].copy()
    interrupted(lambda: [worlds.step(substeps=substeps) for _ in range(1000)], after)
    state = np.column_stack([worlds.time, worlds.q, worlds.v])
    assert np.array_equal(worlds.observation["now"], state) and np.ptp(worlds.time) == 0
    steps = round(worlds.time[0] / 1e-3) - round(before[0, 0] / 1e-3)
    assert steps == 0 if substeps > 200 else steps % substeps == 0
    assert steps or np.array_equal(state, before)
undisturbed = worlds.with_count(3000)
undisturbed.reset(q=start)
undisturbed.step(substeps=round(worlds.time[0] / 1e-3))
assert np.array_equal(undisturbed.q, worlds.q)
cheap = zw.Worlds(pendulum, 1_000_000, threads=2)
cheap.step()
interrupted(lambda: [cheap.step(substeps=2) for _ in range(10_000)], 0.4)
assert np.ptp(cheap.time) == 0 and cheap.time[0] > 0

envs = VectorEnv(pendulum, observed, lambda s: 0.0, num_envs=500, frame_skip=20)
envs.reset(seed=0)
envs.step(np.zeros((500, 1)))
for k in range(8):
    interrupted(lambda: [envs.step(np.zeros((500, 1))) for _ in range(100_000)], 0.01 + 0.002 * k)
    assert np.allclose(envs.worlds.time, envs._episodes.elapsed * envs.dt, rtol=1e-9)
"""
    )


@POSIX
def test_compilation_is_interrupted_and_repeated() -> None:
    run(
        PRESS
        + """
os.environ["ZWANG_CACHE"] = "off"
pendulum = furuta(**FURUTA)
reference = zw.simulate(pendulum, {"alpha": 0.1}, duration=0.05, worlds=4, progress=False)


def again_and_again():
    for k in range(10_000):
        zw.compile(furuta(**{**FURUTA, "m_p": 0.02 + 0.001 * k})).forward_dynamics([0, 0], [0, 0], [0, 0])


for k in range(7):
    interrupted(again_and_again, 0.1 + 0.07 * k)
run = zw.simulate(furuta(**FURUTA), {"alpha": 0.1}, duration=0.05, worlds=4, progress=False)
assert np.array_equal(run.q, reference.q)
"""
    )


@POSIX
def test_an_interrupted_simulation_keeps_its_recording() -> None:
    run(
        PRESS
        + """
pendulum = furuta(**FURUTA)
for worlds in (1, 50):
    zw.simulate(pendulum, {"alpha": 0.1}, duration=0.05, worlds=worlds, progress=False)
    asked = dict(step=1e-3, worlds=worlds, record=100, progress=False)
    stop = interrupted(lambda: zw.simulate(pendulum, {"alpha": 0.1}, duration=1e5, **asked), 0.8)
    kept = stop.recording
    assert kept.attrs["interrupted"] and kept.attrs["intended_duration"] == 1e5
    assert not isinstance(stop, Exception)
    assert kept.sizes["time"] > 1 and np.isfinite(kept.q).all()
    until = min(kept.sizes["time"] - 1, 500)
    whole = zw.simulate(pendulum, {"alpha": 0.1}, duration=until * 0.1, **asked)
    assert np.array_equal(whole.q, kept.q[:, : until + 1])
    assert np.array_equal(whole.tau, kept.tau[:, : until + 1])
"""
    )


def pressed(t, q, v):
    """A control function during which the key is pressed."""
    if t > 0.05:
        raise KeyboardInterrupt
    return [0.3 * float(np.cos(t))]


@pytest.mark.parametrize("compiled", [True, False])
def test_the_partial_recording_equals_a_shorter_run(compiled: bool) -> None:
    pendulum = furuta(**FURUTA)
    asked = {"step": 0.001, "worlds": 2, "record": 5, "compiled": compiled, "progress": False}
    with pytest.raises(SimulationInterrupted, match="interrupted at") as caught:
        zw.simulate(pendulum, {"alpha": [0.1, 0.2]}, duration=0.5, control=pressed, **asked)
    kept = caught.value.recording
    assert caught.value.recording is kept and 0 < kept.attrs["duration"] <= 0.051
    shorter = zw.simulate(
        pendulum,
        {"alpha": [0.1, 0.2]},
        duration=kept.attrs["duration"],
        control=lambda t, q, v: [0.3 * float(np.cos(t))],
        **asked,
    )
    kept.attrs = {name: x for name, x in kept.attrs.items() if name in shorter.attrs}
    xr.testing.assert_equal(
        kept.drop_vars("control").isel(time=slice(-1)), shorter.drop_vars("control").isel(time=slice(-1))
    )
    assert np.array_equal(kept.q, shorter.q) and not kept.status.any()


@pytest.mark.parametrize(
    ("stage", "steps"),
    [
        ("api.runs.simulate.check_coordinate_reduction", 0),
        ("api.runs.simulate.warn_of_penetrations", 0),
        ("simulation.rollout.trajectory_of", 20),
        ("api.runs.simulate.recording_of", 20),
        ("api.runs.simulate.warn_of_failures", 20),
    ],
)
def test_an_interrupt_before_and_after_the_steps_keeps_what_is_computed(stage, steps, monkeypatch) -> None:
    pendulum, keys = furuta(**FURUTA), [KeyboardInterrupt]
    asked = {"step": 0.01, "progress": False}
    whole = zw.simulate(pendulum, {"alpha": 0.1}, duration=0.2, **asked)
    name, _, function = f"zwang.{stage}".rpartition(".")
    original = getattr(sys.modules[name], function)

    def interrupted_once(*arguments, **named):
        if keys:
            raise keys.pop()
        return original(*arguments, **named)

    monkeypatch.setattr(sys.modules[name], function, interrupted_once)
    with pytest.raises(SimulationInterrupted) as caught:
        zw.simulate(pendulum, {"alpha": 0.1}, duration=0.2, **asked)
    kept = caught.value.recording
    assert np.array_equal(kept.q, whole.q[:, : steps + 1]) and kept.sizes["time"] == steps + 1


def test_error_controlled_runs_report_the_time_reached() -> None:
    pendulum = furuta(**FURUTA)
    keys = [KeyboardInterrupt]

    def second_world(t, q, v):
        if q[1] == 0.2 and keys:
            raise keys.pop()
        return [0.0]

    asked = {"duration": 0.2, "step": 0.01, "integrator": "dop853", "compiled": False, "progress": False}
    whole = zw.simulate(pendulum, {"alpha": [0.1]}, control=lambda t, q, v: [0.0], **asked)
    with pytest.raises(SimulationInterrupted) as caught:
        zw.simulate(pendulum, {"alpha": [0.1, 0.2, 0.3]}, control=second_world, **asked)
    kept = caught.value.recording
    assert np.array_equal(kept.q[0], whole.q[0])
    causes = kept.stop_cause.attrs["flag_meanings"].split()
    assert [causes[k] for k in kept.stop_cause.values] == ["none", "interrupted", "interrupted"]
    assert kept.status.values.tolist() == [0, 1, 1] and np.isnan(kept.q[1:, 1:]).all()


@POSIX
def test_the_command_line_saves_the_partial_recording(tmp_path) -> None:
    run(
        PRESS
        + """
import sys
from zwang.cli import main

path = sys.argv[1]
zw.simulate(furuta(**FURUTA), duration=0.05, progress=False)
asked = ["simulate", "furuta", "--step", "0.001", "--record", "100", "--out", path]


def work():
    try:
        main([*asked, "--duration", "100000"])
    except SystemExit as end:
        assert end.code == 130, end.code
        raise KeyboardInterrupt


interrupted(work, 1.5)
kept = zw.open_run(path)
assert kept.attrs["interrupted"] == 1 and kept.attrs["intended_duration"] == 1e5
""",
        tmp_path / "run.nc",
    )


@POSIX
def test_an_interrupt_while_the_first_file_is_loaded_is_not_lost() -> None:
    """trimesh imports SciPy inside `except BaseException`."""
    run(
        PRESS
        + """
import sys

class PressesKey:
    def find_spec(self, name, path=None, target=None):
        if name == "scipy.spatial._ckdtree" and not pressed:
            pressed.append(name)
            os.kill(os.getpid(), signal.SIGINT)

pressed = []
sys.meta_path.insert(0, PressesKey())
text = "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
try:
    zw.load("a.xml", text=text)
    raise AssertionError("the interrupt was lost")
except KeyboardInterrupt:
    assert pressed
assert zw.load("a.xml", text=text).nv == 1
import trimesh
assert trimesh.grouping.cKDTree([[0, 0]]).n == 1
"""
    )
