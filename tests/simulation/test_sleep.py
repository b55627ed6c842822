"""Kinematic trees that sleep: against MuJoCo step by step, and floats against compiled code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.oracles.mujoco_models import RandomTree
from zwang.errors import DescriptionError, SimulationError, UnsupportedError
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism.sleep_policy import sleep_policies
from zwang.simulation.sleep_rule import velocity_lengths

OPTION = """<option tolerance="1e-14" iterations="200" ls_tolerance="1e-10" ls_iterations="100" {more}>
<flag sleep="enable"/></option>"""
FLOOR = '<geom name="floor" type="plane" size="2 2 .01"/>'
STACK = f"""<mujoco>{OPTION}<worldbody>{FLOOR}
<replicate count="2" offset="0 0 .3"><body name="b" pos="0 0 .15" sleep="init"><freejoint/>
<geom type="box" size=".1 .1 .1"/></body></replicate>
<body name="top" pos="0 0 .9" euler="10 20 30"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
</worldbody></mujoco>"""
DOMINOES = f"""<mujoco>{OPTION.replace("{more}", 'cone="elliptic" impratio="10" {more}')}<worldbody>{FLOOR}
<body name="first" pos="-.1 0 .089" euler="0 7 0"><freejoint/>
<geom type="box" size=".008 .044 .089" mass=".09"/></body>
<replicate count="3" offset=".1 0 0"><body name="d" pos="0 0 .089"><freejoint/>
<geom type="box" size=".008 .044 .089" mass=".09"/></body></replicate></worldbody></mujoco>"""
TENDONS = f"""<mujoco>{OPTION}<worldbody>{FLOOR}
<body name="a" pos=".3 0 1" sleep="init"><freejoint/><geom type="box" size=".1 .1 .1"/>
<site name="1" pos="-.1 -.1 -.1"/><site name="2" pos=".1 -.1 -.1"/></body>
<body name="b" pos="-.3 0 1" euler="10 20 30"><freejoint/><geom type="box" size=".1 .1 .1"/>
<site name="3" pos=".1 -.1 .1"/></body>
<body name="c" pos=".7 0 1" sleep="init"><freejoint/><geom type="box" size=".1 .1 .1"/>
<site name="4" pos="-.1 -.1 -.1"/></body></worldbody>
<tendon><spatial range="0 .6"><site site="1"/><site site="3"/></spatial>
<spatial range="0 .6"><site site="2"/><site site="4"/></spatial></tendon></mujoco>"""
LINKS = f"""<mujoco>{OPTION}<worldbody>{FLOOR}
<body name="a" pos="0 0 .5"><joint name="a" axis="1 0 0" damping=".1"/>
<geom type="box" size=".03 .1 .1"/></body>
<body name="b" pos=".4 0 .5"><joint name="b" axis="1 0 0" damping=".1"/>
<geom type="box" size=".03 .1 .1" pos="0 0 -.01"/></body>
<body name="c" pos="-.5 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="d" pos="-.5 .5 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody>
<equality><joint joint1="a" joint2="b" polycoef="0 -2 0 0 0"/>
<weld name="weld" body1="c" body2="d" active="false"/></equality></mujoco>"""
MOCAP = f"""<mujoco>{OPTION}<worldbody>{FLOOR}
<body name="hand" mocap="true" pos="0 0 .35"><geom type="box" size=".1 .1 .1"/><body name="finger">
<geom size=".05" pos=".15 0 0"/></body></body>
<body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="other" pos="1 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""

HAND = MOCAP[MOCAP.index('<body name="hand"') : MOCAP.index('<body name="box"')]
BOXES = MOCAP.replace(HAND, "")

Action = Callable[[int, Any, zw.Worlds], None]


def asleep(worlds: zw.Worlds) -> list[bool]:
    return [bool(x[0]) for x in worlds.asleep.values()]


def run_both(
    text: str,
    steps: int,
    action: Action | None = None,
    m: zw.Mechanism | None = None,
    params: dict[str, float] | None = None,
    **settings: Any,
) -> tuple[list[list[bool]], list[float]]:
    """Which trees sleep in MuJoCo after each step, and the errors of the coordinates; the trees that sleep
    here are the same. action(step, data, worlds) precedes each step.
    """
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    m = read_mjcf("sleep.xml", text=text) if m is None else m
    worlds, sleeping, errors = zw.Worlds(m, 1, params=params, **settings), [], []
    for k in range(steps):
        if action is not None:
            action(k, data, worlds)
        mujoco.mj_step(model, data)
        worlds.step()
        sleeping.append((data.tree_asleep >= 0).tolist())
        assert asleep(worlds) == sleeping[-1], k
        errors.append(float(np.abs(worlds.q[0] - data.qpos).max()))
    return sleeping, errors


@pytest.mark.parametrize("more", ["", 'integrator="implicitfast"', 'integrator="implicit"'])
def test_boxes_that_sleep_are_woken_by_another_that_falls(more):
    sleeping, errors = run_both(STACK.format(more=more), 400)
    assert sleeping[0] == [True, True, False] and [True, False, False] in sleeping
    assert max(errors[:300]) < 1e-9 and max(errors) < 1e-6


@pytest.mark.parametrize(("sleep", "last"), [("auto", 9), ("init", 8)])
def test_bodies_fall_asleep_a_step_earlier_beside_others_that_sleep_from_the_beginning(sleep, last):
    """MuJoCo counts the steps in which a body is slow from the reset on, which puts those others to sleep."""
    text = f"""<mujoco>{OPTION.format(more="sleep_tolerance='.05'")}<worldbody>{FLOOR}
    <body name="ball" pos="0 0 1"><joint axis="0 1 0" damping="2"/><geom size=".1" pos=".001 0 0"/></body>
    <body name="box" pos="1 0 .1" sleep="{sleep}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    </worldbody></mujoco>"""
    sleeping, errors = run_both(text, 14)
    assert not sleeping[last - 1][0] and sleeping[last][0] and max(errors) < 1e-9


def test_dominoes_fall_asleep_and_are_woken_one_by_one():
    sleeping, errors = run_both(DOMINOES.format(more=""), 800)
    counts = [sum(trees) for trees in sleeping]
    assert counts[0] == 0 and counts[100] == 3 and {2, 1, 0, 4} <= set(counts[100:])
    assert max(errors) < 1e-9


def test_a_tendon_at_its_limit_wakes_its_own_bodies_only():
    sleeping, errors = run_both(TENDONS.format(more=""), 400)
    assert sleeping[179] == [True, False, True] and sleeping[181] == [False, False, True]
    assert max(errors) < 1e-10


def test_an_equality_that_is_switched_on_wakes_both_bodies():
    """They slept each by itself."""
    m = read_mjcf("links.xml", text=LINKS.format(more=""))
    switched, values = zw.with_equality_parameters(m)

    def switch(k: int, data: Any, worlds: zw.Worlds) -> None:
        if k == 300:
            data.eq_active[1] = 1
            worlds.set(params=dict.fromkeys(values, 1.0))

    sleeping, errors = run_both(LINKS.format(more=""), 301, switch, switched, values)
    assert sleeping[299][2:] == [True, True] and sleeping[300][2:] == [False, False]
    assert sleeping[0][:2] == [False, False] and max(errors[:300]) < 1e-9
    assert errors[300] < 1e-4  # MuJoCo computes no contacts in the step in which an equality wakes a body


def test_a_mocap_body_wakes_what_it_touches():
    m, values = zw.with_mocap_parameters(read_mjcf("mocap.xml", text=MOCAP.format(more="")))

    def lower(k: int, data: Any, worlds: zw.Worlds) -> None:
        if 100 < k <= 130:
            data.mocap_pos[0, 2] -= 0.002
            pose = (*data.mocap_pos[0], *data.mocap_quat[0])
            worlds.set(params=dict(zip(values, pose, strict=True)))

    sleeping, errors = run_both(MOCAP.format(more=""), 200, lower, m, values)
    assert sleeping[100] == [True, True] and [False, True] in sleeping[101:]
    assert max(errors) < 1e-9


@pytest.mark.parametrize("text", [MOCAP, BOXES])
def test_forces_and_velocities_wake_a_body(text):
    """A wrench by `xfrc_applied`, generalised forces, and a velocity that is set."""
    text = text.format(more="")
    m = zw.with_applied_wrenches(read_mjcf("push.xml", text=text), "box")

    def push(k: int, data: Any, worlds: zw.Worlds) -> None:
        force = 3.0 if 60 <= k < 70 else 0.0
        data.body("box").xfrc_applied[0] = force
        worlds.control[0, m.inputs.index("box.fx")] = force

    sleeping, errors = run_both(text, 120, push, m)
    assert sleeping[59] == [True, True] and sleeping[60] == [False, True] and sleeping[-1] == [True, True]
    assert max(errors) < 1e-9

    def pull(k: int, data: Any, worlds: zw.Worlds) -> None:
        force = 3.0 if 60 <= k < 70 else 0.0
        data.qfrc_applied[6] = worlds.control[0, 6] = force

    plain = read_mjcf("pull.xml", text=text)
    sleeping, errors = run_both(text, 120, pull, plain)
    assert sleeping[60] == [True, False] and max(errors) < 1e-9

    def kick(k: int, data: Any, worlds: zw.Worlds) -> None:
        if k == 60:
            data.qvel[7] = worlds.v[0, 7] = 0.2

    sleeping, errors = run_both(text, 120, kick, plain)
    assert sleeping[60] == [True, False] and max(errors) < 1e-9


def test_a_configuration_that_is_set_wakes_the_bodies_of_its_world():
    worlds = zw.Worlds(read_mjcf("lift.xml", text=MOCAP.format(more="")), 2)
    worlds.step(substeps=60)
    assert worlds.asleep["box"].all()
    q = worlds.q[1].copy()
    q[2] += 0.1
    worlds.set([1], q=q)
    worlds.step()
    assert worlds.asleep["box"].tolist() == [True, False] and worlds.v[1, 2] < 0
    worlds.reset()
    assert not worlds.asleep["box"].any()


@pytest.mark.parametrize(
    ("text", "speed", "steps", "falls_asleep"),
    [
        (STACK, {14: -3.0}, 60, False),
        (TENDONS, {8: -8.0}, 60, False),
        (DOMINOES.replace('count="3"', 'count="2"'), {0: 0.35, 4: 4.0}, 60, True),
    ],
)
def test_floats_equal_compiled_code(text, speed, steps, falls_asleep):
    """A body that moves at first wakes another."""
    m = read_mjcf("sleep.xml", text=text.format(more=""))
    v = np.zeros(m.nv)
    v[[*speed]] = [*speed.values()]
    runs = [
        zw.simulate(m, m.home, v, duration=steps * 0.002, record=2, compiled=compiled, progress=False)
        for compiled in (True, False)
    ]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-10
    rollout = zw.compile(m).rollout(np.array(m.home), v, np.zeros(m.nv), steps=steps, every=steps)
    assert rollout.q[0] == pytest.approx(np.asarray(runs[0].q)[0, -1], abs=1e-10)
    still = ~runs[0].v.values[0, 1:].reshape(steps // 2, -1, 6).any(axis=-1)  # exactly, of bodies that sleep
    assert (still[:-1] & ~still[1:]).any() and (~still[:-1] & still[1:]).any() == falls_asleep


def test_results_do_not_depend_on_other_worlds():
    m = read_mjcf("sleep.xml", text=STACK.format(more=""))
    one, many = zw.Worlds(m, 1), zw.Worlds(m, 11, threads=2)
    many.v[:, 14] = np.linspace(0, -10, 11)
    one.v[:, 14] = many.v[3, 14]
    for worlds in (one, many):
        worlds.step(substeps=120)
    assert (
        np.array_equal(one.q[0], many.q[3])
        and len({tuple(x) for x in np.array([*many.asleep.values()]).T}) > 1
    )
    half = zw.Worlds(m, 3, dtype="float32")
    half.step(substeps=100)
    assert [x.tolist() for x in half.asleep.values()] == [[True] * 3] * 2 + [[False] * 3]


@pytest.mark.parametrize("seed", range(6))
def test_lengths_and_policies_equal_mujoco(seed):
    tree = RandomTree(seed).text
    model = mujoco.MjModel.from_xml_string(tree)
    m = read_mjcf("tree.xml", text=tree)
    assert np.array(velocity_lengths(m), float) == pytest.approx(model.dof_length, rel=1e-9)
    m = m.replace(options=replace(m.options, enabled=("sleep",)))
    awake = [int(p) in (1, 3) for p in model.tree_sleep_policy]
    assert [policy == "never" for policy in sleep_policies(m)] == awake


CONNECTED = """<mujoco><option><flag sleep="enable"/></option><worldbody>
<body name="a" sleep="{policy}"><freejoint/><geom size=".1"/><site name="a"/></body>
<body name="b" pos="1 0 0"><freejoint/><geom size=".1"/><site name="b"/></body>
<body name="c" pos="2 0 0"><freejoint/><geom size=".1"/><site name="c"/></body>
<body name="d" pos="3 0 0" sleep="never"><freejoint/><geom size=".1"/></body></worldbody>
<tendon><spatial name="t" {tendon}><site site="a"/><site site="b"/>{third}</spatial></tendon>
<actuator>{actuator}</actuator></mujoco>"""


@pytest.mark.parametrize(
    ("tendon", "third", "actuator"),
    [
        ('stiffness="1"', "", ""),
        ('damping="1"', "", ""),
        ('range="0 1"', "", ""),
        ("", '<site site="c"/>', ""),
        ("", "", '<motor tendon="t"/>'),
        ("", "", '<motor site="c" gear="1 0 0 0 0 0"/>'),
    ],
)
def test_trees_that_elements_connect_stay_awake(tendon, third, actuator):
    text = CONNECTED.format(policy="auto", tendon=tendon, third=third, actuator=actuator)
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("connected.xml", text=text)
    awake = [int(p) in (1, 3) for p in model.tree_sleep_policy]
    assert awake[3] and [policy == "never" for policy in sleep_policies(m)] == awake


def test_bodies_that_cannot_sleep_are_named():
    text = CONNECTED.format(policy="allowed", tendon="", third="", actuator="")
    m = read_mjcf("connected.xml", text=text)
    sprung = m.replace(tendons=[replace(m.tendons[0], stiffness=1)])
    with pytest.raises(DescriptionError, match="body 'a' has sleep='allowed', but tendon 't' connects it"):
        zw.Worlds(sprung)
    with pytest.raises(DescriptionError, match="body 'tip' has sleep='never'; give it to the first body"):
        tip = zw.Body("tip", parent="d", sleep="never")
        m.replace(bodies=(*m.bodies, tip))
    for integrator in ("rk4", "dop853"):
        with pytest.raises(SimulationError, match=f"may sleep .*the integrator '{integrator}'; use one of"):
            zw.simulate(m, duration=0.01, integrator=integrator, progress=False)
    with pytest.raises(SimulationError, match=r"may sleep .*constraint 'hold'"):
        hold = zw.Distance("hold", ("a", (0, 0, 0)), ("b", (0, 0, 0)), 1.0)
        zw.Worlds(m.replace(constraints=[hold])).step()
    with pytest.raises(
        SimulationError, match="has bodies that may sleep, so that its motion has no exact deriv"
    ):
        start = np.array(m.home), np.zeros(m.nv), np.zeros((3, m.nv))
        zw.compile(m).rollout_gradient(np.zeros((3, 2 * m.nv)), *start)


SINGLE = """<mujoco><option {more}><flag sleep="enable" {flag}/></option><worldbody>
<body name="a" sleep="{policy}"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("more", "flag", "why"),
    [
        ('integrator="RK4"', "", "with the integrator 'RK4'"),
        ("", 'island="disable"', "without islands"),
    ],
)
def test_sleep_that_is_not_that_of_mujoco_is_refused(more, flag, why):
    text = SINGLE.format(more=more, flag=flag, policy="auto")
    with pytest.raises(UnsupportedError, match=f"line 1: the option flag 'sleep' {why} is not supported"):
        read_mjcf("sleep.xml", text=text)
    assert "sleep" not in read_mjcf("sleep.xml", text=text, strict=False).options.enabled


def test_sleep_without_bodies_that_may_is_noted():
    m = read_mjcf("sleep.xml", text=SINGLE.format(more="", flag="", policy="never"))
    assert any("'sleep', as no body may sleep" in note.what for note in m.report.notes)
    assert zw.Worlds(m).asleep == {}


def test_sleep_is_kept_in_files(tmp_path):
    m = read_mjcf("sleep.xml", text=STACK.format(more='sleep_tolerance=".01"'))
    assert m.options.sleep_tolerance == 0.01 and [body.sleep for body in m.bodies] == ["init"] * 2 + ["auto"]
    zw.write_mjcf(m, tmp_path / "stack.xml")
    again = zw.load(tmp_path / "stack.xml")
    assert again.bodies == m.bodies and again.options == m.options
    assert zw.Mechanism.from_json(m.to_json()) == m
