"""Worlds that keep their state between steps, against MuJoCo, closed forms and simulations on floats."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import mujoco
import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import (
    ArgumentError,
    ParameterError,
    ShapeError,
    SimulationError,
    StateError,
    UnknownNameError,
    ZwangError,
)
from zwang.mechanism.samples import four_bar
from zwang.scalar import sin

MODELS = Path(__file__).parents[2] / "examples" / "models"


def walker() -> zw.Mechanism:
    return zw.load(MODELS / "walker2d.xml")


def pendulum() -> zw.Mechanism:
    """A point mass m on a light rod of length l, with a motor; m and l are symbols."""
    m, l = sp.symbols("m l", positive=True)
    rod = zw.Body("rod", zw.Revolute("hinge", axis=(0, 1, 0)), mass=m, com=(0, 0, -l))
    frame = zw.Frame("tip", "rod", position=(0, 0, -l))
    return zw.Mechanism("pendulum", [rod], forces=[zw.Motor("motor", "hinge")], frames=[frame])


def height(s):
    return {"height": s.com[2]}


def controls(worlds: zw.Worlds, steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (steps, *worlds.control.shape))


def test_steps_with_contact_equal_mujoco():
    """A walker falls onto its feet with random controls that change at every step."""
    model = mujoco.MjModel.from_xml_path(str(MODELS / "walker2d.xml"))
    data = mujoco.MjData(model)
    worlds = zw.Worlds(walker(), 3)
    contacts = 0
    for u in controls(worlds, 60):
        data.ctrl[:] = u[1]
        mujoco.mj_step(model, data)
        contacts += data.ncon
        worlds.step(u)
        np.testing.assert_allclose(worlds.q[1], data.qpos, atol=1e-7)
    assert contacts > 20
    np.testing.assert_allclose(worlds.time, data.time)
    np.testing.assert_allclose(worlds.v[1], data.qvel, atol=1e-5)


def test_the_period_of_a_pendulum():
    """From rest at 0.1 rad the pendulum is at -0.1 rad after half the period 2 pi sqrt(l / g) (1 + ...)."""
    for length in (0.3, 1.0):
        half = np.pi * np.sqrt(length / 9.81) * (1 + 0.1**2 / 16 + 11 * 0.1**4 / 3072)
        params = {"m": 2.0, "l": length}
        worlds = zw.Worlds(pendulum(), 2, step=half / 2000, integrator="rk4", params=params)
        worlds.reset([1], q={"hinge": 0.1})
        worlds.step(substeps=2000)
        np.testing.assert_allclose(worlds.q[:, 0], [0, -0.1], atol=1e-9)
        np.testing.assert_allclose(worlds.time, half)


def test_n_calls_equal_one_call_and_a_rollout_bit_for_bit():
    one, two = zw.Worlds(walker(), 9), zw.Worlds(walker(), 9)
    u = controls(one, 1)[0]
    start = one.q.copy(), one.v.copy()
    for _ in range(40):
        one.step(u)
    two.step(u, substeps=25)
    two.step(substeps=15)
    expected = zw.compile(walker()).rollout(*start, u, steps=40)
    for worlds in (one, two):
        assert np.array_equal(worlds.q, expected.q[:, -1]) and np.array_equal(worlds.v, expected.v[:, -1])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_steps_of_free_bodies_equal_a_rollout_bit_for_bit(dtype):
    """Quaternions are normalised in every step, and stay as they are where they are unit quaternions."""
    inertia = {"mass": 2.0, "inertia": (0.1, 0.3, 0.2)}
    m = zw.Mechanism(bodies=[zw.Body("a", zw.Free("fa"), **inertia), zw.Body("b", zw.Ball("fb"), **inertia)])
    worlds = zw.Worlds(m, 8, step=0.01, dtype=dtype)
    worlds.set(v=np.random.default_rng(0).normal(size=(8, m.nv)))
    start = worlds.q.copy(), worlds.v.copy()
    for _ in range(100):
        worlds.step()
    found = zw.compile(m, dtype=dtype).rollout(*start, np.zeros((8, m.nv)), steps=100, step=0.01)
    assert np.array_equal(worlds.q, found.q[:, -1]) and np.array_equal(worlds.v, found.v[:, -1])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_world_does_not_depend_on_the_others(threads):
    many = zw.Worlds(walker(), 21, threads=threads)
    us = controls(many, 30)
    for u in us:
        many.step(u)
    for w in (0, 13, 20):
        alone = zw.Worlds(walker())
        for u in us:
            alone.step(u[w])
        assert np.array_equal(alone.q[0], many.q[w]) and np.array_equal(alone.v[0], many.v[w])


def test_short_calls_do_not_depend_on_threads():
    """Calls in quick succession, whose controls come in any layout, by turns with resets of some worlds."""
    found = []
    for threads in (1, 2, 5):
        worlds = zw.Worlds(walker(), 1003, threads=threads)
        for k, u in enumerate(controls(worlds, 60)):
            worlds.step((u, np.asfortranarray(u), u[::-1], u.astype(np.float32), None)[k % 5])
            expected = (u, u, u[::-1], u.astype(np.float32), None)[k % 5]
            assert expected is None or np.array_equal(worlds.control, expected)
            if k % 7 == 0:
                worlds.reset(np.arange(k, 1003, 11))
        found.append((worlds.q.copy(), worlds.v.copy(), worlds.solver_status))
    for other in found[1:]:
        assert all(np.array_equal(x, y) for x, y in zip(found[0], other, strict=True))


def test_observations_do_not_depend_on_threads():
    """Enough work for several threads, whose pieces of the worlds are observed where they are stepped."""

    def observe(s):
        return {"gained": s.com - s.before.com, "work": s.actuator_force @ s.before.v()}

    one, two = (zw.Worlds(walker(), 203, threads=n, observe=observe) for n in (1, 2))
    for u in controls(one, 6):
        before = zw.mass_centre(walker(), one.q[7])
        for worlds in (one, two):
            worlds.step(u, substeps=50)
        for name, values in one.observation.items():
            assert np.array_equal(values, two.observation[name])
        gained = zw.mass_centre(walker(), one.q[7]) - before
        np.testing.assert_allclose(one.observation["gained"][7], gained, atol=1e-12)


def test_new_values_of_a_symbol_are_validated_after_valid_ones():
    worlds = zw.Worlds(pendulum().subs({"l": 1.0}), 3, params={"m": 1.0})
    worlds.set(params={"m": [0.5, 1.0, 2.0]})
    worlds.set([1], params={"m": 1.5})
    for wrong in (-1.0, [0.7, np.nan, 0.8], [0.7, 0.8, -1e-9]):
        with pytest.raises((ParameterError, StateError)):
            worlds.set(params={"m": wrong})
    assert list(worlds.params["m"]) == [0.5, 1.5, 2.0]


def test_a_failed_world_is_marked_and_reset_alone():
    worlds, reference = zw.Worlds(walker(), 5), zw.Worlds(walker(), 5)
    us = controls(worlds, 30)
    for u in us[:10]:
        worlds.step(u)
        reference.step(u)
    broken = us[10].copy()
    broken[2, 0] = np.nan
    worlds.step(broken)
    reference.step(us[10])
    last = worlds.q[2].copy()
    for u in us[11:20]:
        worlds.step(u)
        reference.step(u)
    others = [0, 1, 3, 4]
    assert list(worlds.failed) == [False, False, True, False, False]
    assert worlds.failure_reason[2] == "bad_control" and worlds.status[2] and not worlds.status[others].any()
    assert np.array_equal(worlds.q[2], last) and worlds.time[2] == pytest.approx(10 * 0.002)
    assert np.array_equal(worlds.q[others], reference.q[others])
    worlds.reset(worlds.failed)
    fresh = zw.Worlds(walker())
    for u in us[20:]:
        worlds.step(u)
        reference.step(u)
        fresh.step(u[2])
    assert not worlds.failed.any() and np.array_equal(worlds.q[2], fresh.q[0])
    assert np.array_equal(worlds.v[others], reference.v[others])


def test_parameters_change_between_steps():
    """A pendulum of another length from now on has the state of one that always had it, set to that state."""
    worlds = zw.Worlds(pendulum(), 3, step=1e-3, params={"m": 1.0, "l": [0.5, 1.0, 2.0]})
    worlds.reset(q={"hinge": 1.0})
    worlds.step(substeps=100)
    worlds.set([1], params={"l": 0.7})
    worlds.params["m"][2] = 3.0  # the worlds' memory
    state = worlds.q.copy(), worlds.v.copy()
    worlds.step(0.3, substeps=50)
    for w, (m, l) in enumerate([(1.0, 0.5), (1.0, 0.7), (3.0, 2.0)]):
        numeric = pendulum().subs({"m": m, "l": l})
        run = zw.simulate(
            numeric,
            state[0][w],
            state[1][w],
            duration=0.05,
            step=1e-3,
            control={"motor": 0.3},
            compiled=False,
        )
        np.testing.assert_allclose(worlds.q[w], run.q.values[0, -1], rtol=1e-12)


def test_the_friction_of_a_contact_is_a_parameter_of_each_world():
    """A box that slides at v0 stops after v0^2 / (2 mu g); mu is the larger of the two coefficients. With a
    number in place of the symbol the states are the same.
    """

    def box_on_floor(mu):
        rough = zw.Surface(friction=(mu, 0.005, 0.0001))
        box = zw.Box(x=0.8, y=0.8, z=0.1, surface=zw.Surface(friction=(0.3, 0.005, 0.0001)))
        body = zw.Body("box", zw.Free("base"), mass=1, inertia=(0.1, 0.1, 0.2, 0, 0, 0), geometry=[box])
        return zw.Mechanism("sliding box", [body], geometry=[zw.Plane(surface=rough)])

    def stopped(mechanism, count, **settings):
        worlds = zw.Worlds(mechanism, count, step=1e-3, **settings)
        worlds.reset(q={"base.z": 0.05}, v={"base.vx": 2.0})
        worlds.step(substeps=900)
        assert not worlds.failed.any()
        return worlds.q

    values = np.array([0.2, 0.5, 0.8])
    q = stopped(box_on_floor(sp.symbols("mu", positive=True)), 3, params={"mu": values})
    np.testing.assert_allclose(q[:, 0], 2.0**2 / (2 * np.maximum(values, 0.3) * 9.81), rtol=0.02)
    np.testing.assert_allclose(stopped(box_on_floor(0.5), 1)[0], q[1], atol=1e-9)


def test_an_observation_is_that_of_the_state_after_the_last_substep():
    def observe(s):
        tip = s.pose("tip").p
        gained = s.pose("tip").p - s.before.pose("tip").p
        return {
            "state": [s.q("hinge"), s.v("hinge"), sin(s.q("hinge"))],
            "tip": tip,
            "gained": gained,
            "speed": s.velocity("tip")[:3],
            "com": s.com,
            "rest": [s.time, s.control("motor"), s.parameter("l")],
            "is_high": tip[2] > 0.0,
        }

    lengths = np.array([0.5, 1.0, 2.0])
    worlds = zw.Worlds(pendulum(), 3, step=1e-2, params={"m": 1.0, "l": lengths}, observe=observe)
    worlds.reset(q={"hinge": [0.2, 3.0, -1.0]})

    def check(before):
        q, v, o = worlds.q[:, 0], worlds.v[:, 0], worlds.observation
        tip = np.stack([-lengths * np.sin(q), 0 * q, -lengths * np.cos(q)], axis=1)
        speed = np.stack([-lengths * np.cos(q) * v, 0 * q, lengths * np.sin(q) * v], axis=1)
        np.testing.assert_allclose(o["state"], np.stack([q, v, np.sin(q)], axis=1), atol=1e-14)
        for name, expected in (("tip", tip), ("com", tip), ("speed", speed), ("gained", tip - before)):
            np.testing.assert_allclose(o[name], expected, atol=1e-13)
        np.testing.assert_allclose(o["rest"], np.stack([worlds.time, worlds.control[:, 0], lengths], axis=1))
        assert np.array_equal(o["is_high"], tip[:, 2] > 0) and o["is_high"].shape == (3,)
        return tip

    kept = worlds.observation["tip"]
    tip = check(worlds.observation["tip"].copy())
    for substeps in (1, 3, 7, 3):
        worlds.step(0.1, substeps=substeps)
        tip = check(tip)
    worlds.reset([1], q={"hinge": 0.4})
    tip[1] = worlds.observation["tip"][1]
    np.testing.assert_allclose(tip[1], [-np.sin(0.4), 0, -np.cos(0.4)])
    assert kept is worlds.observation["tip"]


def commanded(s):
    """What commands and the parameter of one name are."""
    error = s.command("speed") - s.v("hinge")
    return {"error": error, "m": 2 * s.command("m")[1], "both": [s.parameter("m"), *s.command("m")]}


@pytest.mark.parametrize(("integrator", "damping"), [("euler", 1), ("implicitfast", 1), ("rk4", 2)])
def test_forces_of_hard_contacts_are_those_of_the_integrator(integrator, damping):
    """f = m (g + a) with the acceleration a = -(c u + r / h) / h with which a contact closes slowly."""
    r, u, h = 1e-5, -0.01, 0.01
    surface = zw.Surface(hard=True)
    slider = zw.Prismatic("z", (0, 0, 1))
    ball = zw.Body("ball", slider, mass=2, geometry=[zw.Sphere(0.1, surface=surface)])
    ground = [zw.Plane(surface=surface)]
    m = zw.Mechanism("drop", [ball], geometry=ground, gravity=(0, 0, -9.81))

    def observe(s):
        return {"force": s.contact_force("ball")}

    worlds = zw.Worlds(m, 1, step=h, integrator=integrator, observe=observe)
    worlds.reset(q=[[0.1 + r]], v=[[u]])
    expected = 2 * (9.81 - (damping * u + r / h) / h)
    np.testing.assert_allclose(worlds.contacts.force.ravel()[0], expected, rtol=1e-12)
    np.testing.assert_allclose(worlds.observation["force"].ravel()[2], expected, rtol=1e-12)


def test_observations_read_the_commands_of_each_world():
    """Commands have the names of parameters and of values here, and are still three different things."""
    worlds = zw.Worlds(
        pendulum(),
        3,
        step=1e-2,
        params={"m": 1.5, "l": 1.0},
        commands={"speed": 2, "m": (3, 4)},
        observe=commanded,
    )
    worlds.commands["speed"][:] = 1, 2, 3
    worlds.commands["m"][1] = 5, 6
    worlds.step(0.3)
    worlds.reset([2], v={"hinge": 0.7})
    for w in (worlds, pickle.loads(pickle.dumps(worlds)), copy.copy(worlds)):
        np.testing.assert_allclose(w.observation["error"], [1, 2, 3] - w.v[:, 0], atol=1e-15)
        assert w.observation["m"].tolist() == [8, 12, 8] and w.params["m"].tolist() == [1.5] * 3
        assert w.observation["both"].tolist() == [[1.5, 3, 4], [1.5, 5, 6], [1.5, 3, 4]]
        w.step()
        np.testing.assert_allclose(w.observation["error"], [1, 2, 3] - w.v[:, 0], atol=1e-15)
    assert worlds.with_count(2, params={"m": 1, "l": 1}).commands["m"].tolist() == [[3, 4], [3, 4]]


@pytest.mark.parametrize("commands", [3, {"a": "fast"}, {"a": np.inf}, {"a": []}, {2: 1.0}])
def test_invalid_commands_are_errors(commands):
    with pytest.raises(ArgumentError, match="commands"):
        zw.Worlds(pendulum(), 1, step=1e-2, params={"m": 1, "l": 1}, commands=commands)
    with pytest.raises(UnknownNameError, match="speed"):
        zw.Worlds(pendulum(), step=1e-2, params={"m": 1, "l": 1}, observe=lambda s: {"x": s.command("speed")})


def test_copies_and_pickles_continue_alike():
    worlds = zw.Worlds(walker(), 4, seed=3, observe=height)
    us = controls(worlds, 20)
    for u in us[:10]:
        worlds.step(u)
    copies = [pickle.loads(pickle.dumps(worlds)), copy.deepcopy(worlds), copy.copy(worlds)]
    for u in us[10:]:
        worlds.step(u)
        for other in copies:
            other.step(u)
    for other in copies:
        assert np.array_equal(other.q, worlds.q) and np.array_equal(other.time, worlds.time)
        assert other.random.random() == copy.deepcopy(worlds.random).random()
    assert np.array_equal(copies[1].observation["height"], worlds.observation["height"])


def test_worlds_of_another_count_have_the_same_programs():
    worlds = zw.Worlds(pendulum(), 2, params={"m": 1.0, "l": [0.5, 1.0]}, observe=height)
    worlds.step(0.3)
    many = worlds.with_count(3, params={"m": 1.0, "l": [0.5, 1.0, 2.0]})
    assert len(many) == 3 and not many.q.any() and np.allclose(many.observation["height"], [-0.5, -1, -2])
    many.step(0.3)
    assert np.array_equal(many.q[:2], worlds.q) and many.q is not worlds.q
    with pytest.raises(ArgumentError, match="count"):
        worlds.with_count(0)


def test_the_memory_of_a_world_is_its_state_and_two_bytes_for_each_limit_and_contact():
    """A step of the walker keeps the status of 20 limits and candidate contacts."""
    worlds = zw.Worlds(walker(), 256)
    sizes = [len(pickle.dumps(worlds.with_count(count))) for count in (256, 512)]
    of_state = worlds.q.shape[1] + worlds.v.shape[1] + worlds.control.shape[1] + 5  # with time and statuses
    assert (sizes[1] - sizes[0]) / 256 < 8 * of_state + 2 * 30


def test_other_libraries_share_the_memory():
    for count in (1, 5):
        worlds = zw.Worlds(walker(), count)
        shared = np.from_dlpack(worlds.q)
        worlds.step(substeps=3)
        assert np.array_equal(shared, worlds.q) and np.shares_memory(shared, worlds.q)
        for array in (worlds.q, worlds.v, worlds.control):  # the vector registers of most CPUs hold 2 to 8
            assert array.ctypes.data % 64 == 0 and (count > 1 or array.flags.c_contiguous)


def test_jax_shares_arrays_without_gaps():
    """As the table in docs/howto/step_many_worlds.md has it; the states of 32 worlds have gaps."""
    jax = pytest.importorskip("jax")
    from_dlpack = jax.numpy.from_dlpack

    def shared(array: np.ndarray) -> bool:
        return from_dlpack(array, copy=False).unsafe_buffer_pointer() == array.ctypes.data

    options = {"observe": lambda s: {"q": s.q()}, "commands": {"target": (1, 2)}, "dtype": "float32"}
    few, gap, odd = (zw.Worlds(walker(), n, **options) for n in (3, 32, 48))
    for worlds in (few, gap, odd):
        arrays = worlds.observation["q"], worlds.commands["target"], worlds.q[:, 0]
        assert all(map(shared, arrays[: 2 if worlds is few else 3]))
    assert all(map(shared, (few.q, few.control, odd.q, odd.v, odd.control)))
    with pytest.raises(Exception, match=r"stri"):
        from_dlpack(gap.q)
    one = zw.Worlds(walker(), 1, **options)
    assert shared(one.q) and shared(one.q[:, 0])
    assert from_dlpack(one.q[:, 1]).unsafe_buffer_pointer() != one.q[:, 1].ctypes.data


def test_consecutive_worlds_are_neighbours_in_memory_and_observations_have_rows():
    """Views of a state that lies lane by lane read and write the worlds, also through `__dlpack__`."""
    worlds, rows = (zw.Worlds(walker(), 40, observe=lambda s: {"q": s.q(), "v": s.v()}) for _ in range(2))
    shared = np.from_dlpack(worlds.v)
    assert worlds.q.strides[0] == worlds.q.itemsize and np.shares_memory(shared, worlds.v)
    pushed = np.random.default_rng(0).normal(size=worlds.v.shape)
    shared[:] += pushed
    rows.set(v=pushed)
    for u in controls(worlds, 5):
        worlds.step(np.asfortranarray(u), substeps=2)
        rows.step(u, substeps=2)
    assert np.array_equal(shared, rows.v) and np.array_equal(worlds.q, rows.q)
    assert worlds.observation["q"].flags.c_contiguous
    assert np.array_equal(worlds.observation["q"], worlds.q)
    assert np.array_equal(worlds.observation["v"], worlds.v)


def test_single_precision_and_loops():
    worlds = zw.Worlds(four_bar(), 2, dtype="float32", step=1e-3)
    double = zw.Worlds(four_bar(), 2, step=1e-3)
    for each in (worlds, double):
        each.step({"motor": 0.1}, substeps=100)
    assert worlds.q.dtype == np.float32 and not worlds.failed.any()
    np.testing.assert_allclose(worlds.q, double.q, atol=1e-3)


def test_the_name_of_a_keyframe_is_a_start_with_controls_and_mocap_poses():
    text = """<mujoco><worldbody><body name="hand" mocap="true" pos="0 0 1"><geom size=".01"/></body>
    <body><freejoint/><geom size=".1" mass="1"/></body><body><joint name="j" axis="0 1 0"/>
    <geom size=".1" pos="0 0 -.3"/></body></worldbody>
    <actuator><general joint="j" dyntype="filter" dynprm="1"/><motor joint="j"/></actuator><keyframe>
    <key name="up" qpos="0 0 2 2 0 0 0 3" qvel="0 0 1 0 0 0 .5" act="0.7" ctrl="0.4 -1" mpos="1 2 3"/>
    </keyframe></mujoco>"""
    mechanism = zw.load("hand.xml", text=text)
    with pytest.raises(SimulationError, match="mocap body 'hand'"):
        zw.Worlds(mechanism).reset(q="up")
    mechanism, params = zw.with_mocap_parameters(mechanism)
    worlds = zw.Worlds(mechanism, 3, params=params)
    worlds.step([1.0, 2.0])
    others = [x[[0, 2]].copy() for x in (worlds.q, worlds.v, worlds.activation, worlds.control)]
    worlds.reset([1], q="up")
    state = [x[1].tolist() for x in (worlds.q, worlds.v, worlds.activation, worlds.control)]
    assert state == [[0, 0, 2, 1, 0, 0, 0, 3], [0, 0, 1, 0, 0, 0, 0.5], [0.7], [0.4, -1]]
    assert worlds.params["hand.x"].tolist() == [0, 1, 0] and worlds.params["hand.z"].tolist() == [1, 3, 1]
    for x, kept in zip((worlds.q, worlds.v, worlds.activation, worlds.control), others, strict=True):
        assert np.array_equal(x[[0, 2]], kept)
    worlds.reset([1], q="up", v={"j": 2.0}, activation=[0.1])
    assert worlds.v[1, -1] == 2 and worlds.activation[1, 0] == 0.1
    with pytest.raises(UnknownNameError, match="up"):
        worlds.reset(q="down")


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: zw.Worlds(walker(), 0), ArgumentError, "count"),
        (lambda: zw.Worlds(walker(), True), ArgumentError, "count"),
        (lambda: zw.Worlds(walker(), step=-1.0), ArgumentError, "step"),
        (lambda: zw.Worlds(walker(), integrator="eular"), UnknownNameError, "euler"),
        (lambda: zw.Worlds("walker"), ZwangError, "Mechanism"),
        (lambda: zw.Worlds(pendulum()), ParameterError, "'l'"),
        (lambda: zw.Worlds(pendulum(), params={"m": -1.0, "l": 1.0}), ParameterError, "mass"),
        (lambda: zw.Worlds(walker(), observe=lambda s: s.q("knee")), ZwangError, "knee"),
        (lambda: zw.Worlds(walker(), observe=lambda s: [1.0]), ArgumentError, "dictionary"),
        (lambda: zw.Worlds(walker()).step(np.zeros(3)), ShapeError, "control"),
        (lambda: zw.Worlds(walker()).step(1.0), ShapeError, "control"),
        (lambda: zw.Worlds(walker(), 3).step(np.ones((3, 1))), ShapeError, "control"),
        (lambda: zw.Worlds(walker(), 3).reset(q=[[0.1], [0.2], [0.3]]), ShapeError, "q"),
        (lambda: zw.Worlds(walker(), 3).set(v=0.5), ShapeError, "v"),
        (lambda: zw.Worlds(walker()).step(np.zeros(6) * 1j), StateError, "control"),
        (lambda: zw.Worlds(walker()).step("up"), StateError, "control"),
        (lambda: zw.Worlds(walker()).step({"motr": 1}), UnknownNameError, "motr"),
        (lambda: zw.Worlds(walker()).step(substeps=0), ArgumentError, "substeps"),
        (lambda: zw.Worlds(walker()).step(substeps=1.5), ArgumentError, "substeps"),
        (lambda: zw.Worlds(walker()).step(substeps=True), ArgumentError, "substeps is True"),
        (lambda: zw.Worlds(walker()).step(substeps=1.0), ArgumentError, "substeps is 1.0"),
        (lambda: zw.Worlds(walker(), 2, seed=-1), ArgumentError, "seed is -1"),
        (lambda: zw.Worlds(walker(), 3).reset([3]), ArgumentError, "mask"),
        (lambda: zw.Worlds(walker(), 4).reset([1, 0, 0, 1]), ArgumentError, "dtype=bool"),
        (lambda: zw.Worlds(walker(), 3).reset([True, False]), ShapeError, "mask"),
        (lambda: zw.Worlds(walker(), 3).reset([0], q=np.zeros((2, 9))), ShapeError, "q"),
        (lambda: zw.Worlds(walker()).set(q=np.full(9, np.nan)), StateError, "q"),
        (lambda: zw.Worlds(walker()).set(params={"m": 1}), ParameterError, "'m'"),
    ],
)
def test_invalid_calls_are_reported_by_name(call, error, named):
    with pytest.raises(error, match=named):
        call()


def test_assignment_to_an_array_of_the_state_changes_the_worlds():
    top = zw.Body("top", zw.Ball("b"), mass=1, com=(0, 0, 1), inertia=(1, 1, 1))
    worlds = zw.Worlds(zw.Mechanism("top", [top]), 2)
    memory = worlds.q
    worlds.q, worlds.v = [2.0, 0, 0, 0], [[1, 2, 3], [4, 5, 6]]
    worlds.v += 1
    assert worlds.q is memory and memory.tolist() == [[1, 0, 0, 0]] * 2
    assert worlds.v.tolist() == [[2, 3, 4], [5, 6, 7]]
    other = zw.Worlds(zw.Mechanism("top", [top]), 2)
    other.set(v=worlds.v)
    for each in (worlds, other):
        each.step(substeps=5)
    assert np.array_equal(worlds.q, other.q)
    with pytest.raises(ShapeError, match="v must have the shape"):
        worlds.v = [1, 2]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_not_set_keeps_its_bits(dtype):
    """The time after n steps is n h, and a quaternion is rounded by the steps alone."""
    top = zw.Body("top", zw.Ball("b"), mass=1, com=(0, 0, 1), inertia=(1, 2, 3))
    worlds, alone = (zw.Worlds(zw.Mechanism("top", [top]), 2, step=0.001, dtype=dtype) for _ in range(2))
    for each in (worlds, alone):
        each.reset(v=[0.3, 2.0, 1.0])
        each.step(substeps=1001)
    for k in range(40):
        worlds.set([k % 2], control=[0, 0, 0])
        worlds.set([0, 1], v=worlds.v)
        worlds.step()
        alone.step()
        assert np.array_equal(worlds.q, alone.q) and np.array_equal(worlds.time, alone.time)
    assert worlds.time.tolist() == [1041 * 0.001] * 2


@pytest.mark.parametrize("name", ["mechanism", "count", "step_size", "integrator", "time"])
def test_what_the_programs_were_made_for_is_not_assigned(name):
    worlds = zw.Worlds(four_bar(), 2)
    before = getattr(worlds, name)
    for each in (worlds, copy.copy(worlds), pickle.loads(pickle.dumps(worlds)), worlds.with_count(2)):
        with pytest.raises(AttributeError, match=name):
            setattr(each, name, before)


@pytest.mark.parametrize("count", [1, 19])
def test_the_clock_of_single_precision_does_not_stop(count):
    """2^24 is the last whole number with a successor; times are those of double precision."""
    h = 1e-4
    bead = zw.Mechanism("bead", [zw.Body("bead", zw.Prismatic("x", axis=(1, 0, 0)), mass=1)])
    single, double = (
        zw.Worlds(bead, count, step=h, dtype=dtype, observe=lambda s: {"time": s.time})
        for dtype in ("float32", "float64")
    )
    starts = h * np.array([0, -3, 0.25, 2**20 - 1, 2**24 - 5, 2.0**36])
    for start in starts:
        for each in (single, double):
            each.set(time=start)
            each.step(substeps=2**20 + 7)
        np.testing.assert_allclose(single.time, double.time, rtol=1e-12)
        np.testing.assert_allclose(single.observation["time"], double.time, rtol=2**-23)
    single.reset([0])
    assert single.time[0] == 0 and np.all(single.time[1:] == double.time[1:])


@pytest.mark.parametrize("count", [8, 11, 24])
def test_states_that_are_written_between_steps_are_those_of_the_next_step(count):
    """The warm start lies lane by lane, also of worlds that are reset, copied or set alone."""
    worlds = zw.Worlds(walker(), count)
    us = controls(worlds, 12)
    for u in us[:6]:
        worlds.step(u)
    worlds.reset([0, count - 1])
    again = pickle.loads(pickle.dumps(worlds))
    for u in us[6:]:
        worlds.step(u)
        again.step(u)
    assert np.array_equal(worlds.q, again.q) and np.array_equal(worlds.solver_status, again.solver_status)
    for w in (0, 3, count - 1):
        alone = zw.Worlds(walker())
        for u in us[6 * (w != 3) :]:
            alone.step(u[w])
        assert np.array_equal(alone.q[0], worlds.q[w]) and np.array_equal(alone.v[0], worlds.v[w])


def test_sensors_and_contacts_of_the_present_states():
    """Balls of different masses rest on a floor: the contact force and the touch sensor bear the weight, and
    the motor's force is part of it at once.
    """
    mass, pad = sp.symbols("mass", positive=True), zw.Sphere(radius=0.1)
    ball = zw.Body("ball", zw.Prismatic("z", axis=(0, 0, 1)), position=(0, 0, 0.1), mass=mass, geometry=[pad])
    m = zw.Mechanism(
        "ball on a floor", [ball], geometry=[zw.Plane()], forces=[zw.Motor("press", "z")],
        frames=[zw.Frame("skin", "ball")],
        sensors=[zw.JointSensor("height", "position", "z"), zw.TouchSensor("touch", "skin", zw.Sphere(0.2))],
    )  # fmt: skip
    masses = np.array([0.5, 1.0, 2.0])
    worlds = zw.Worlds(m, 3, step=0.002, params={"mass": masses})
    worlds.reset(q={"z": 0.05})
    assert not worlds.contacts.active.any() and not worlds.sensors["touch"].any()
    worlds.step(substeps=2000)
    found, weight = worlds.contacts, 9.81 * masses
    np.testing.assert_allclose(found.force[:, 0, 0], weight, rtol=1e-6)
    np.testing.assert_allclose(found.distance[:, 0], worlds.q[:, 0], atol=1e-14)
    np.testing.assert_allclose(worlds.sensors["touch"][:, 0], weight, rtol=1e-6)
    np.testing.assert_allclose(worlds.sensors["height"], worlds.q)
    worlds.set(control=[[-1.0], [-2.0], [-3.0]])
    pressed = copy.copy(worlds).contacts.force[:, 0, 0]
    assert np.all(pressed > weight) and np.array_equal(pressed, worlds.contacts.force[:, 0, 0])
    (record,) = worlds.contacts.records(1)
    assert record.bodies == ("world", "ball") and record.force[0] == pressed[1]
