"""Vectorised environments: the form of results as in Gymnasium's SyncVectorEnv, and closed forms."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import sympy as sp

import zwang as zw
import zwang.gym
from zwang.errors import ArgumentError, ParameterError, ShapeError, SimulationError
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.scalar import cos

MODES = ("NextStep", "SameStep")


def block() -> zw.Mechanism:
    """A block of mass m on a rail, with a motor of 1 N per unit."""
    mass = sp.symbols("m", positive=True)
    body = zw.Body("block", zw.Prismatic("rail", axis=(1, 0, 0)), mass=mass)
    push = zw.Motor("push", "rail", control_range=(-2, 2))
    return zw.Mechanism("block on a rail", [body], forces=[push])


def block_env(count: int = 3, **arguments) -> zwang.gym.VectorEnv:
    """Blocks whose episode ends at 1 m; the reward is the path of a step."""
    given = {
        "observation": lambda s: [s.q("rail"), s.v()],
        "reward": lambda s: s.q("rail") - s.before.q("rail"),
        "terminated": lambda s: s.q("rail") > 1,
        "infos": lambda s: {"mass": s.parameter("m"), "place": s.com},
        "reset_infos": ("mass",),
        "step": 0.01,
        "frame_skip": np.int64(10),
        "params": {"m": 2.0},
    }
    return zwang.gym.VectorEnv(**{"mechanism": block(), "num_envs": count} | given | arguments)


def test_bounds_that_differ_between_worlds_or_episodes_are_infinite():
    limit = sp.Symbol("limit", positive=True)
    rail = block()
    m = rail.replace(forces=(zw.Motor("push", "rail", control_range=(-limit, 1.5)),))

    def low(given, **arguments):
        space = block_env(mechanism=m, params={"m": 2.0, "limit": given}, **arguments).single_action_space
        assert space.high == 1.5
        return float(space.low[0])

    assert low(2.0) == -2 and low([1.0, 2.0, 3.0]) == -np.inf
    assert low(2.0, random_parameters=lambda rng: {"limit": rng.uniform(1, 2)}) == -np.inf


def assert_same(found, expected, path=""):
    """Equal types, keys and values."""
    assert type(found) is type(expected), path
    if isinstance(expected, dict):
        assert set(found) == set(expected), path
        for key in expected:
            assert_same(found[key], expected[key], f"{path}/{key}")
    elif expected.dtype == object:
        for a, b in zip(found, expected, strict=True):
            assert (a is None) == (b is None), path
            assert a is None or np.allclose(a, b, atol=1e-7), path
    else:
        assert found.dtype == expected.dtype and np.allclose(found, expected, atol=1e-7), path


@pytest.mark.parametrize("mode", MODES)
def test_results_have_the_form_of_gymnasiums_vector_environment(mode):
    limit = {"max_episode_steps": 17, "num_envs": 4}
    ours = gymnasium.make_vec("zwang/Hopper-v5", autoreset_mode=mode, **limit)
    modes = {"autoreset_mode": mode}
    theirs = gymnasium.make_vec("Hopper-v5", vectorization_mode="sync", vector_kwargs=modes, **limit)
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert ours.dt == theirs.envs[0].unwrapped.dt
    for space in (
        "observation_space", "action_space", "single_observation_space", "single_action_space",
    ):  # fmt: skip
        assert getattr(ours, space) == getattr(theirs, space)
    for found, expected in zip(ours.reset(seed=7), theirs.reset(seed=7), strict=True):
        assert_same(found, expected)
    assert ours.np_random_seed == theirs.np_random_seed == (7, 8, 9, 10)
    rng, terminations, truncations = np.random.default_rng(2), 0, 0
    for _ in range(50):
        actions = rng.uniform(-1, 1, (4, 3))
        found, expected = ours.step(actions), theirs.step(actions)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        terminations, truncations = terminations + found[2].sum(), truncations + found[3].sum()
    assert terminations and truncations


def test_without_autoreset_finished_environments_wait_for_a_reset():
    env = block_env(autoreset_mode="Disabled", max_episode_steps=np.int64(4))
    env.reset(seed=0)
    for k in range(4):
        *_, truncated, _ = env.step(np.zeros((3, 1)))
        assert truncated.all() == (k == 3)
    with pytest.raises(SimulationError, match=r"\[0, 1, 2\] have finished"):
        env.step(np.zeros((3, 1)))
    mask = np.array([True, False, True])
    _, infos = env.reset(options={"reset_mask": mask})
    assert np.array_equal(infos["_mass"], mask) and "place" not in infos
    with pytest.raises(SimulationError, match=r"\[1\] have finished"):
        env.step(np.zeros((3, 1)))
    with pytest.raises(ArgumentError, match="reset_mask"):
        env.reset(options={"reset_mask": np.zeros(3, bool)})
    env.reset(options={"reset_mask": ~mask})
    env.step(np.zeros((3, 1)))


def test_a_block_moves_as_newton_says():
    """x = F t^2 / (2 m), up to the h F t / (2 m) of semi-implicit Euler, with h = 0.01 s and m = 2 kg."""
    env = block_env()
    observation, infos = env.reset(seed=1)
    assert not observation.any() and np.array_equal(infos["mass"], [2, 2, 2])
    force = np.array([[1.0], [2.0], [-2.0]])
    last = 0.0
    for k in range(1, 10):
        t = 0.1 * k
        observation, reward, terminated, _, infos = env.step(force)
        x = force[:, 0] * (t * t + 0.01 * t) / 4
        np.testing.assert_allclose(observation, np.stack([x, force[:, 0] * t / 2], axis=1), atol=1e-13)
        np.testing.assert_allclose(reward, x - last, atol=1e-13)
        np.testing.assert_allclose(infos["place"][:, 0], x, atol=1e-13)
        assert not terminated.any()
        last = x
    while not terminated.any():
        observation, _, terminated, _, _ = env.step(force)
    assert list(terminated) == [False, True, False] and observation[1, 0] > 1
    observation, reward, terminated, *_ = env.step(force)
    assert not observation[1].any() and reward[1] == 0 and not terminated.any() and observation[0].all()


def test_parameters_and_initial_states_are_drawn_at_each_reset():
    def initial_state(random):
        return [random.uniform(0, 0.5)], [0.0]

    env = block_env(initial_state=initial_state, random_parameters=lambda random: {"m": random.uniform(1, 3)})
    observation, infos = env.reset(seed=11)
    for k in range(3):
        random = np.random.default_rng(11 + k)
        assert infos["mass"][k] == random.uniform(1, 3) and observation[k, 0] == random.uniform(0, 0.5)
    masses = infos["mass"].copy()
    start = observation.copy()
    observation, *_ = env.step(np.ones((3, 1)))
    np.testing.assert_allclose(observation[:, 1], 0.1 / masses, rtol=1e-12)
    _, infos = env.reset(options={"reset_mask": np.array([False, True, False])})
    assert infos["mass"][1] not in (0, masses[1])
    assert np.array_equal(env.worlds.params["m"][[0, 2]], masses[[0, 2]])
    for seed in (11, np.int64(11), np.arange(11, 14), [11, np.int32(12), 13]):
        again, _ = env.reset(seed=seed)
        assert np.array_equal(again, start)


def test_an_episode_begins_in_the_home_of_its_parameters():
    m = block().replace(home=(sp.Symbol("m", positive=True) / 4,))
    env = block_env(mechanism=m, random_parameters=lambda random: {"m": random.uniform(1, 3)})
    for seed in (11, 12):
        observation, infos = env.reset(seed=seed)
        assert np.array_equal(observation[:, 0], infos["mass"] / 4) and len({*infos["mass"]}) == 3


def test_symbols_that_a_draw_omits_have_the_values_of_the_parameters():
    def heavy_at_times(random):
        return {"m": 5.0} if random.uniform() < 0.5 else {}

    env, generators = (
        block_env(random_parameters=heavy_at_times),
        [np.random.default_rng(k) for k in range(3)],
    )
    for seed in (0, *[None] * 5):
        _, infos = env.reset(seed=seed)
        expected = [5.0 if random.uniform() < 0.5 else 2.0 for random in generators]
        assert infos["mass"].tolist() == expected
    with pytest.raises(ParameterError, match="weight"):
        block_env(random_parameters=lambda random: {"weight": 1.0}).reset()


def test_a_failed_step_terminates_its_environment_with_the_reason():
    env = block_env()
    env.reset(seed=0)
    before, *_ = env.step(np.ones((3, 1)))
    observation, reward, terminated, truncated, infos = env.step([[1.0], [np.nan], [1.0]])
    assert list(terminated) == [False, True, False] and not truncated.any()
    assert infos["failure_reason"][1] == "bad_control" and list(infos["_failure_reason"]) == list(terminated)
    assert reward[1] == 0 and np.array_equal(observation[1], before[1])
    observation, *_, infos = env.step(np.ones((3, 1)))
    assert not observation[1].any() and "failure_reason" not in infos


def test_contact_forces_and_sensors_of_a_resting_sphere():
    """A sphere of 2 kg that rests on the ground is carried by 2 * 9.81 N, in this and in the last stage."""
    xml = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 0.1"><freejoint/><geom size="0.1" mass="2"/><site name="s" size="0.2"/></body>
    </worldbody><sensor><touch name="touch" site="s"/><accelerometer name="a" site="s"/></sensor></mujoco>"""
    env = zwang.gym.VectorEnv(
        read_mjcf("ball.xml", text=xml),
        observation=lambda s: [
            s.contact_force("ball"), s.last_stage.contact_force("ball"), s.external_wrenches[1][3:],
            s.last_stage.external_wrenches[1][3:], s.constraint_force[:3], s.last_stage.constraint_force[:3],
            -s.contact_force("world"),
        ],
        reward=lambda s: s.sensor("touch"),
        infos=lambda s: {"a": s.sensor("a"), "v_dot": s.last_stage.acceleration},
        frame_skip=1500,
    )  # fmt: skip
    env.reset()
    observation, reward, *_, infos = env.step(np.zeros((1, 6)))
    np.testing.assert_allclose(observation.reshape(7, 3), [[0, 0, 2 * 9.81]] * 7, atol=1e-6)
    np.testing.assert_allclose(reward, 2 * 9.81, atol=1e-6)
    np.testing.assert_allclose(infos["a"][0], [0, 0, 9.81], atol=1e-6)
    np.testing.assert_allclose(infos["v_dot"][0], np.zeros(6), atol=1e-6)


def test_a_single_environment_equals_one_of_many():
    many = block_env(2)
    env = zwang.gym.Env(many.environment)
    other = zwang.gym.VectorEnv(many.environment, num_envs=3)
    assert other.worlds.q is not many.worlds.q and np.array_equal(other.worlds.params["m"], [2, 2, 2])
    assert np.array_equal(env.reset(seed=3)[0], many.reset(seed=3)[0][0])
    for force in (1.0, -0.5, 2.0):
        one, two = env.step([force]), many.step([[force], [0.0]])
        assert np.array_equal(one[0], two[0][0]) and one[1] == two[1][0] and one[4]["mass"] == 2.0


def test_a_number_may_be_returned_in_an_array():
    envs = block_env(reward=lambda s: s.q(), terminated=lambda s: [s.q("rail") > 1])
    expected = block_env(reward=lambda s: s.q("rail"))
    for each in (envs, expected):
        each.reset(seed=0)
    for force in (1.0, -2.0):
        actions = np.array([[force], [2.0], [0.0]])
        for found, right in zip(envs.step(actions)[:4], expected.step(actions)[:4], strict=True):
            assert_same(found, right)


def _observation_of_block(s):
    return [s.q(), s.v()]


def _place_of_block(s):
    return s.q("rail")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_environments_step_on_their_own(copied):
    given = {
        "observation": _observation_of_block,
        "reward": _place_of_block,
        "terminated": None,
        "infos": None,
    }
    envs = block_env(**given, reset_infos=())
    one = zwang.gym.Env(envs.environment)
    for env in (envs, one):
        env.reset(seed=1)
        env.step(np.full(env.action_space.shape, 1.0))
        twin = copied(env)
        for force in (2.0, -1.0, 0.5):
            actions = np.full(env.action_space.shape, force)
            mine, other = env.step(actions), twin.step(actions)
            for a, b in zip(mine[:4], other[:4], strict=True):
                assert np.array_equal(a, b)
            assert np.array_equal(np.ravel(mine[0])[:1], env.worlds.q[0])
        twin.step(actions)
        assert not np.array_equal(twin.worlds.q, env.worlds.q)


def only_the_first_is_reset() -> zwang.gym.VectorEnv:
    envs = block_env(2)
    envs.reset(options={"reset_mask": np.array([True, False])})
    return envs


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: block_env(autoreset_mode="Never"), ArgumentError, "NextStep"),
        (lambda: block_env(max_episode_steps=0), ArgumentError, "max_episode_steps"),
        (lambda: block_env(frame_skips=3), ArgumentError, r"mean 'frame_skip'\?.* given_positions$"),
        (lambda: block_env(infos=lambda s: [s.q()]).reset(), ArgumentError, r"infos returned .* dictionary"),
        (lambda: block_env().step(np.zeros((3, 1))), SimulationError, r"\[0, 1, 2\] have no episode yet"),
        (lambda: only_the_first_is_reset().step(np.zeros((2, 1))), SimulationError, r"\[1\] have no episode"),
        (
            lambda: zwang.gym.Env(block_env().environment).step([0.0]),
            SimulationError,
            r"reset\(\) before step",
        ),
        (lambda: zwang.gym.VectorEnv(block(), lambda s: [0.0], 3.0), ArgumentError, "reward"),
        (lambda: block_env().step(np.zeros(3)), ShapeError, r"\(3, 1\)"),
        (lambda: block_env().reset(seed=[1, 2]), ShapeError, "seed"),
        (lambda: block_env().reset(seed=1.5), ArgumentError, "seed is 1.5"),
        (lambda: block_env().reset(seed=[1, -2, 3]), ArgumentError, "seed is -2"),
        (lambda: zwang.gym.Env(block_env().environment).reset(seed="a"), ArgumentError, "seed is 'a'"),
        (lambda: block_env().render(), SimulationError, "rgb_array"),
        (lambda: block_env(render_mode="human"), ArgumentError, "zwang.gym.Env"),
        (lambda: zwang.gym.VectorEnv(block_env().environment, reward=cos), ArgumentError, "reward"),
        (lambda: block_env(reset_infos=("weight",)), TypeError, "weight"),
        (lambda: block_env(reward=lambda s: s.q()[[0, 0]]), ArgumentError, r"reward .* one number"),
        (
            lambda: block_env(reward=lambda s: {"r": s.q()}),
            ArgumentError,
            "reward returned a dict",
        ),
        (
            lambda: zwang.gym.VectorEnv(block(), lambda s: {"q": s.q()}, lambda s: 0.0, params={"m": 1}),
            ArgumentError,
            "observation returned values of the type dict; it must .* the values of a dictionary",
        ),
        (lambda: block_env(terminated=lambda s: s.v()[[0, 0]]), ArgumentError, "terminated"),
        (
            lambda: block_env(reward=lambda s: s.v("rail") + np.random.normal()),
            ArgumentError,
            "'reward' differ",
        ),
        (lambda: block_env(initial_state=lambda r: [0.3]).reset(), ArgumentError, "initial_state returned"),
        (lambda: block_env(initial_state=lambda r: ([1, 2], [3])).reset(), ArgumentError, r"q \(1,\)"),
        (lambda: block_env(random_parameters=lambda r: None).reset(), ArgumentError, "random_parameters"),
        (lambda: gymnasium.make("zwang/Ant-v5", main_body=99), ArgumentError, "main_body is 99"),
        (lambda: block_env(2.5), ArgumentError, "num_envs is 2.5"),
        (lambda: block_env().reset(options=5), ArgumentError, "options is 5.*dictionary"),
        (lambda: block_env().reset(options={"reset_mask": [[1], [1, 2]]}), ArgumentError, "reset_mask"),
        *(
            (lambda n=n: block_env(given_positions=n), ArgumentError, "given_positions is " + said)
            for n, said in ((-1, "-1"), (1.5, "1.5"), (True, "True"), (2, "2; it must be at most nq = 1"))
        ),
        (
            lambda: block_env(given_positions=1, observation=lambda s: [], reset_infos=()),
            ArgumentError,
            "given_positions is 1, but the observation has 0 elements",
        ),
        *(
            (lambda x=x: block_env(reset_infos=x), ArgumentError, "reset_infos is")
            for x in (None, "mass", (1,), 5)
        ),
        (lambda: block_env(infos=lambda s: {1: s.v()}), ArgumentError, "infos returned .* dictionary"),
        (
            lambda: zwang.gym.Environment(5, _observation_of_block, _place_of_block),
            ArgumentError,
            "Mechanism",
        ),
    ],
)
def test_wrong_arguments_are_named(call, error, named):
    with pytest.raises(error, match=named):
        call()


@pytest.mark.parametrize("kind", [zwang.gym.VectorEnv, zwang.gym.Env])
@pytest.mark.parametrize(
    ("names", "named"),
    [
        (("x", "_x"), "'_x', which is the name of the mask of the info 'x'"),
        *((("x", name), repr(name)) for name in ("failure_reason", "final_obs", "final_info")),
        *((("x", name), repr(name)) for name in ("_failure_reason", "_final_obs", "_final_info")),
    ],
)
def test_infos_that_would_take_the_place_of_others_are_named(kind, names, named):
    given = {"reset_infos": (), "infos": lambda s: dict.fromkeys(names, s.q("rail"))}
    with pytest.raises(ArgumentError, match=f"infos has {named}.* give it another name"):
        kind(block(), lambda s: s.q(), lambda s: 0.0, params={"m": 2.0}, **given)


def test_an_info_may_begin_with_an_underscore():
    env = block_env(infos=lambda s: {"_x": s.q("rail"), "xx": 1.0}, reset_infos=["_x"])
    _, infos = env.reset(seed=0)
    assert set(infos) == {"_x", "__x"}
    assert set(env.step(np.zeros((3, 1)))[-1]) == {"_x", "__x", "xx", "_xx"}


def test_importing_zwang_does_not_import_gymnasium():
    code = "import sys, zwang; print('gymnasium' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
