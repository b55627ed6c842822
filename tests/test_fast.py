"""Compiled functions equal the float reference at every width and type, for any arrays."""

from __future__ import annotations

import copy
import ctypes
import pickle
import subprocess
import threading

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.mechanisms import moved, random_mechanism, random_state
from zwang.errors import DescriptionError, ParameterError, ShapeError, UnknownNameError, ZwangError
from zwang.mechanism.samples import four_bar

ARGUMENTS = {
    "forward_dynamics": "q v tau",
    "inverse_dynamics": "q v a",
    "mass_matrix": "q",
    "bias_forces": "q v",
    "energy": "q v",
    "momentum": "q v",
    "mass_centre": "q",
    "zwang_of": "q v tau a",
}


def batch_of(m: zw.Mechanism, worlds: int, seed: int = 0) -> dict[str, np.ndarray]:
    states = [random_state(m, seed + k) for k in range(worlds)]
    return dict(zip(("q", "v", "tau", "a"), map(np.array, zip(*states, strict=True)), strict=True))


def results(value) -> list[np.ndarray]:
    return [np.asarray(x) for x in value] if isinstance(value, tuple) else [np.asarray(value)]


@pytest.fixture(scope="module", params=[0, 5])
def mechanism(request):
    return random_mechanism(request.param, bodies=4)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_function_equals_its_reference(mechanism, name):
    batch = batch_of(mechanism, 11)
    names = ARGUMENTS[name].split()
    found = results(getattr(zw.compile(mechanism), name)(*(batch[n] for n in names)))
    for w in range(11):
        expected = results(getattr(zw, name)(mechanism, *(batch[n][w] for n in names)))
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got[w], want, rtol=0, atol=1e-10 * max(1, abs(want).max()))


def test_frames(mechanism):
    fast, q = zw.compile(mechanism), batch_of(mechanism, 5)["q"]
    R, p = fast.frame_pose(q, "tip")
    for w in range(5):
        want = zw.frame_pose(mechanism, q[w], "tip")
        np.testing.assert_allclose(R[w], want.R, atol=1e-12)
        np.testing.assert_allclose(p[w], want.p, atol=1e-12)
        for axes in ("world", "body"):
            J = zw.frame_jacobian(mechanism, q[w], "tip", axes)
            np.testing.assert_allclose(fast.frame_jacobian(q, "tip", axes)[w], J, atol=1e-12)
    with pytest.raises(UnknownNameError, match="tip"):
        fast.frame_pose(q, "top")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_bits_at_every_width_and_number_of_worlds_and_threads(mechanism, dtype):
    batch = batch_of(mechanism, 37)
    arguments = [batch[n].astype(dtype) for n in ("q", "v", "tau")]
    whole = zw.compile(mechanism, dtype=dtype).forward_dynamics(*arguments)
    for lanes in (1, 2, 4, 8):
        again = zw.compile(mechanism, dtype=dtype, lanes=lanes, threads=2).forward_dynamics(*arguments)
        assert again.tobytes() == whole.tobytes()
    fast = zw.compile(mechanism, dtype=dtype)
    for worlds in (1, 3, 8, 9, 30):
        some = fast.forward_dynamics(*(a[:worlds] for a in arguments))
        assert some.tobytes() == whole[:worlds].tobytes()
    alone = fast.forward_dynamics(*(a[20] for a in arguments))
    assert alone.shape == (mechanism.nv,) and alone.tobytes() == whole[20].tobytes()


def test_a_world_with_nan_leaves_its_neighbours_alone(mechanism):
    batch = batch_of(mechanism, 16)
    fast = zw.compile(mechanism)
    before = fast.forward_dynamics(batch["q"], batch["v"], batch["tau"])
    broken = batch["v"].copy()
    broken[5] = np.nan
    after = fast.forward_dynamics(batch["q"], broken, batch["tau"])
    assert np.isnan(after[5]).any()
    kept = np.arange(16) != 5
    assert after[kept].tobytes() == before[kept].tobytes()


def test_single_precision_is_near(mechanism):
    batch = batch_of(mechanism, 4)
    arguments = [batch[n] for n in ("q", "v", "tau")]
    single = zw.compile(mechanism, dtype="float32").forward_dynamics(
        *(a.astype("float32") for a in arguments)
    )
    double = zw.compile(mechanism).forward_dynamics(*arguments)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-3 * abs(double).max())


def test_strides_and_broadcasting(mechanism):
    batch = batch_of(mechanism, 12)
    fast = zw.compile(mechanism)
    plain = fast.forward_dynamics(batch["q"], batch["v"], batch["tau"])
    turned = [np.asfortranarray(batch[n]) for n in ("q", "v", "tau")]
    assert fast.forward_dynamics(*turned).tobytes() == plain.tobytes()
    wide = [np.repeat(batch[n], 2, axis=-1)[:, ::2] for n in ("q", "v", "tau")]
    assert fast.forward_dynamics(*wide).tobytes() == plain.tobytes()
    one = fast.forward_dynamics(batch["q"], batch["v"], batch["tau"][0])
    assert one[0].tobytes() == plain[0].tobytes()
    boxed = fast.forward_dynamics(*(batch[n].reshape(3, 4, -1) for n in ("q", "v", "tau")))
    assert boxed.shape == (3, 4, mechanism.nv) and boxed.tobytes() == plain.tobytes()
    assert fast.mass_matrix(batch["q"].reshape(3, 4, -1)).shape == (3, 4, mechanism.nv, mechanism.nv)
    assert fast.forward_dynamics(*(a[:0] for a in batch.values() if a is not batch["a"])).shape == (
        0,
        mechanism.nv,
    )


def test_unnormalised_quaternions_are_the_same_attitude():
    m = zw.Mechanism(
        bodies=[zw.Body("b", joint=zw.Free("f"), mass=2, com=(0.1, 0, 0), inertia=(1, 1.2, 0.7))]
    )
    q, v, tau, _ = random_state(m, 1)
    scaled = q.copy()
    scaled[3:] *= 2
    fast = zw.compile(m)
    np.testing.assert_allclose(
        fast.forward_dynamics(scaled, v, tau), fast.forward_dynamics(q, v, tau), rtol=1e-13
    )


def test_derivatives_equal_finite_differences(mechanism):
    fast, h = zw.compile(mechanism), 1e-6
    q, v, tau, _ = random_state(mechanism, 3)
    found = fast.forward_dynamics_derivatives(q, v, tau)
    unit = np.eye(mechanism.nv)
    scale = abs(found.dq).max()

    def slope(function) -> np.ndarray:
        return np.stack([(function(h * e) - function(-h * e)) / (2 * h) for e in unit], axis=1)

    by_q = slope(lambda d: zw.forward_dynamics(mechanism, moved(mechanism, q, d), v, tau))
    by_v = slope(lambda d: zw.forward_dynamics(mechanism, q, v + d, tau))
    by_tau = slope(lambda d: zw.forward_dynamics(mechanism, q, v, tau + d))
    for got, want in ((found.dq, by_q), (found.dv, by_v), (found.dtau, by_tau)):
        np.testing.assert_allclose(got, want, atol=1e-6 * scale)
    inverse = fast.inverse_dynamics_derivatives(q, v, fast.forward_dynamics(q, v, tau))
    np.testing.assert_allclose(inverse.dtau @ found.dq, -inverse.dq, atol=1e-8 * abs(inverse.dq).max())


def furuta() -> zw.Mechanism:
    m_p, L, b = sp.symbols("m_p L b", positive=True)
    return zw.Mechanism(
        bodies=[
            zw.Body(
                "arm", joint=zw.Revolute("theta"), mass=0.3, com=(L / 2, 0, 0), inertia=(0.01, 0.02, 0.02)
            ),
            zw.Body(
                "rod",
                parent="arm",
                position=(L, 0, 0),
                joint=zw.Revolute("alpha", axis=(1, 0, 0)),
                mass=m_p,
                com=(0, 0, L / 2),
                inertia=(m_p * L**2 / 12, m_p * L**2 / 12, 0),
            ),
        ],
        forces=[zw.Damper("theta", b)],
    )


def test_symbols_are_inputs_with_one_value_a_world():
    m, fast = furuta(), zw.compile(furuta())
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 9, 2))
    params = {"m_p": rng.uniform(0.1, 0.5, 9), "L": 0.4, sp.Symbol("b", positive=True): 0.02}
    found = fast.forward_dynamics(q, v, tau, params=params)
    for w in range(9):
        numbers = m.subs({"m_p": params["m_p"][w], "L": 0.4, "b": 0.02})
        np.testing.assert_allclose(
            found[w], zw.forward_dynamics(numbers, q[w], v[w], tau[w]), rtol=1e-11, atol=1e-11
        )
    slopes = fast.forward_dynamics_derivatives(q, v, tau, params=params).parameters
    k, h = m.symbols.index("L"), 1e-6
    near = [fast.forward_dynamics(q, v, tau, params={**params, "L": 0.4 + s * h}) for s in (1, -1)]
    np.testing.assert_allclose(slopes[..., k], (near[0] - near[1]) / (2 * h), rtol=1e-5, atol=1e-5)


def test_derivatives_of_forward_dynamics_refuse_constraints_instead_of_leaving_their_forces_out():
    """The accelerations of a closed chain differ from those of its tree, and so do their derivatives."""
    m = four_bar()
    zero = np.zeros(m.nv)
    free, held = zw.forward_dynamics(m, m.home, zero, zero), zw.constrained_dynamics(m, m.home, zero, zero)
    assert np.abs(free - held.acceleration).max() > 0.1
    fast = zw.compile(m)
    for call in (
        lambda: fast.forward_dynamics_derivatives(m.home, zero, zero),
        lambda: fast.source("c", "forward_dynamics_derivatives"),
        lambda: zw.compile(m, outputs=["forward_dynamics_derivatives"]),
    ):
        with pytest.raises(DescriptionError, match=f"Connect {m.constraints[0].name!r}.*constraints="):
            call()
    off = m.replace(options=zw.Options(disabled=("equality",)))
    for open_chain in (m.replace(constraints=()), off):
        found = zw.compile(open_chain).forward_dynamics_derivatives(m.home, zero, zero)
        H = zw.mass_matrix(m, m.home)
        np.testing.assert_allclose(found.dtau @ H, np.eye(m.nv), atol=1e-9)


def test_invalid_calls_are_reported():
    m, fast = furuta(), zw.compile(furuta())
    q = np.zeros(2)
    with pytest.raises(ParameterError, match="'L'"):
        fast.forward_dynamics(q, q, q, params={"m_p": 1, "b": 0})
    with pytest.raises(ParameterError, match="'mass'"):
        fast.forward_dynamics(q, q, q, params={"m_p": 1, "b": 0, "L": 1, "mass": 3})
    numbers = zw.compile(m.subs({"m_p": 1, "b": 0, "L": 1}))
    with pytest.raises(ShapeError, match=r"'?tau'?.*\(.*2"):
        numbers.forward_dynamics(q, q, np.zeros(3))
    with pytest.raises(TypeError, match="Mechanism"):
        zw.compile("panda.urdf")
    with pytest.raises(UnknownNameError, match="forward_dynamics"):
        zw.compile(m, outputs=["forward_dynamic"])


def test_invalid_settings_are_reported_before_compilation():
    m = furuta()
    for settings, message in (
        ({"lanes": 3}, "lanes is 3"),
        ({"threads": 0}, "threads is 0"),
        ({"dtype": "float16"}, "float64"),
    ):
        with pytest.raises(ZwangError, match=message):
            zw.compile(m, **settings)
    fast, q = (
        zw.compile(m.subs({"m_p": 1, "b": 0, "L": 1}), lanes=np.int64(2), threads=np.int64(1)),
        np.zeros(2),
    )
    with pytest.raises(UnknownNameError, match=r"'foo'.*'rk4'"):
        fast.step(q, q, q, integrator="foo")
    for step in (-1, "a", np.nan):
        with pytest.raises(DescriptionError, match="positive time"):
            fast.step(q, q, q, step=step)
    with pytest.raises(TypeError, match=r"steps is 2\.5"):
        fast.rollout(q, q, q, steps=2.5)


def test_invalid_parameters_are_reported_by_name():
    fast, q = zw.compile(furuta()), np.zeros(2)
    for wrong in ("x", None, 1j):
        with pytest.raises(ParameterError, match="'L'"):
            fast.forward_dynamics(q, q, q, params={"m_p": 1, "b": 0, "L": wrong})
    with pytest.raises(ShapeError, match=r"'L' \(3,\).*'m_p' \(4,\)"):
        fast.forward_dynamics(q, q, q, params={"m_p": np.ones(4), "b": 0, "L": np.ones(3)})
    with pytest.raises(ParameterError, match="list"):
        fast.forward_dynamics(q, q, q, params=[1, 0, 1])


def test_empty_parameters_equal_none(mechanism):
    fast, state = zw.compile(mechanism), random_state(mechanism, 0)[:3]
    np.testing.assert_array_equal(fast.forward_dynamics(*state, params={}), fast.forward_dynamics(*state))


def test_functions_of_the_configuration_need_no_parameters():
    """Their results are those of any values: no joint's motion along its velocities depends on a symbol."""
    m, p = sp.symbols("m p", positive=True)
    joints = (zw.Free("base"), zw.Screw("s", axis=(m, 0, 1), pitch=p), zw.Ball("b"))
    bodies = [zw.Body("hull", joints[0], mass=m, inertia=(1, 1, 1))]
    bodies += [
        zw.Body(f"b{k}", j, "hull", (p, 0, 0), mass=1, inertia=(1, m, 1)) for k, j in enumerate(joints[1:])
    ]
    mechanism = zw.Mechanism("symbols", bodies)
    fast, (q, v) = zw.compile(mechanism), random_state(mechanism.subs({"m": 1.1, "p": 0.3}), 3)[:2]
    moved_on = fast.integrate_configuration(q, v, 0.4)
    gained = fast.difference_configuration(moved_on, q)
    for values in ({"m": 1.1, "p": 0.3}, {"m": 2.0, "p": 0.7}):
        numeric = mechanism.subs(values)
        np.testing.assert_allclose(moved_on, zw.integrate_configuration(numeric, q, v, 0.4), rtol=1e-12)
        np.testing.assert_allclose(gained, zw.difference_configuration(numeric, moved_on, q), atol=1e-12)
        assert np.array_equal(fast.integrate_configuration(q, v, 0.4, params=values), moved_on)
        assert np.array_equal(fast.difference_configuration(moved_on, q, params=values), gained)
    assert np.array_equal(fast.difference_configuration(moved_on, q, params={}), gained)
    with pytest.raises(ParameterError, match="'m' has no value"):
        fast.mass_matrix(q)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda fast: pickle.loads(pickle.dumps(fast))])
def test_a_copy_is_compiled_again(mechanism, again):
    fast, state = zw.compile(mechanism, dtype="float32", lanes=2), random_state(mechanism, 0)[:3]
    expected = fast.forward_dynamics(*state)
    assert again(fast).forward_dynamics(*state).tobytes() == expected.tobytes()


def test_a_mechanism_without_joints_has_empty_results():
    fast = zw.compile(zw.Mechanism(bodies=[zw.Body("b", mass=2, com=(1, 0, 0), joint=zw.Fixed())]))
    none = np.zeros((3, 0))
    assert fast.forward_dynamics(none, none, none).shape == (3, 0)
    assert fast.mass_matrix(none).shape == (3, 0, 0)
    assert fast.frame_jacobian(none, "b").shape == (3, 6, 0)
    assert fast.integrate_configuration(none, none, 0.1).shape == (3, 0)
    assert [x.shape for x in fast.step(none, none, none)] == [(3, 0)] * 3
    assert fast.forward_dynamics_derivatives(none, none, none).dq.shape == (3, 0, 0)
    np.testing.assert_array_equal(fast.mass_centre(none), [[1, 0, 0]] * 3)


def test_the_step_has_a_name(mechanism):
    fast = zw.compile(mechanism, outputs=["step"])
    assert fast.source("c", "step") == fast.source("c", ("step", mechanism.options.timestep, "euler"))
    assert fast.count_operations("step")["total"] > fast.count_operations()["total"]


def test_two_threads_may_share_one_object(mechanism):
    batch = batch_of(mechanism, 64)
    arguments = [batch[n] for n in ("q", "v", "tau")]
    fast = zw.compile(mechanism)
    expected = fast.forward_dynamics(*arguments).tobytes()
    wrong: list[int] = []

    def work() -> None:
        for k in range(200):
            if fast.forward_dynamics(*arguments).tobytes() != expected:
                wrong.append(k)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_operation_counts_and_source_code(mechanism):
    fast = zw.compile(mechanism)
    counts = fast.count_operations()
    assert counts["total"] == sum(n for op, n in counts.items() if op not in ("total", "flops"))
    assert "void compute(" in fast.source("c")
    assert "x double>" in fast.source("llvm")
    assert ".entry zwang" in fast.source("ptx")
    with pytest.raises(DescriptionError, match="fortran"):
        fast.source("fortran")


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (("step", -0.1, "rk4"), DescriptionError, "step is -0.1"),
        (("step", 0.1, "verlet"), UnknownNameError, "'verlet'"),
        (("frame_jacobian", "world", "tool"), DescriptionError, "axes is 'tool'"),
        (("jacobian", "mass_matrix", ("v",)), UnknownNameError, "'v'.*'q'"),
    ],
)
def test_a_wrong_argument_of_a_function_as_text_is_named(function, error, words):
    fast = zw.compile(zw.Mechanism(bodies=[zw.Body("b", zw.Prismatic("x"), mass=1)]))
    with pytest.raises(error, match=words):
        fast.source("c", function)


@pytest.mark.needs("cc")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_c_source_gives_the_compiled_bits(mechanism, dtype, tmp_path):
    fast = zw.compile(mechanism, dtype=dtype)
    (tmp_path / "fd.c").write_text(fast.source("c"))
    flags = ["-std=c99", "-O2", "-march=native", "-shared", "-fPIC", "-Wall", "-Werror"]
    subprocess.run(["cc", *flags, "-o", tmp_path / "fd.so", tmp_path / "fd.c", "-lm"], check=True)
    function = ctypes.CDLL(str(tmp_path / "fd.so")).compute
    for seed in range(3):
        state = [x.astype(dtype) for x in random_state(mechanism, seed)[:3]]
        out = np.empty(mechanism.nv, dtype)
        function(*(ctypes.c_void_p(x.ctypes.data) for x in (*state, out)))
        assert out.tobytes() == fast.forward_dynamics(*state).tobytes()


@pytest.mark.needs("ptxas")
def test_the_ptx_of_forward_dynamics_assembles(tmp_path):
    m = random_mechanism(1, bodies=3, kinds=(zw.Revolute,))
    (tmp_path / "fd.ptx").write_text(zw.compile(m).source("ptx"))
    subprocess.run(["ptxas", "-arch=sm_90", "-o", tmp_path / "fd.o", tmp_path / "fd.ptx"], check=True)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_rollout_equals_repeated_steps(integrator):
    m = random_mechanism(5, bodies=3)
    fast, batch = zw.compile(m), batch_of(m, 11)
    q, v = batch["q"], batch["v"]
    tau = np.random.default_rng(0).normal(size=(11, 12, m.nv))
    run = fast.rollout(q, v, tau, steps=12, every=3, step=1e-3, integrator=integrator)
    assert run.q.shape == (11, 4, m.nq) and run.v.shape == (11, 4, m.nv)
    at = (q, v)
    for k in range(12):
        at = fast.step(*at[:2], tau[:, k], step=1e-3, integrator=integrator)
        if (k + 1) % 3 == 0:
            assert (
                run.q[:, k // 3].tobytes() == at.q.tobytes() and run.v[:, k // 3].tobytes() == at.v.tobytes()
            )
    held = fast.rollout(q[0], v[0], tau[0, 0], steps=5, step=1e-3, integrator=integrator)
    assert held.q.shape == (5, m.nq)


def test_a_rollout_of_a_falling_body_follows_galilei():
    m = zw.Mechanism(bodies=[zw.Body("b", joint=zw.Prismatic("z"), mass=2)])
    run = zw.compile(m).rollout(
        np.zeros(1), np.zeros(1), np.zeros(1), steps=1000, step=1e-3, integrator="rk4"
    )
    np.testing.assert_allclose(run.q[-1], -9.81 / 2, rtol=1e-12)


def test_as_many_worlds_as_steps_are_not_mistaken_for_a_time_series():
    m = zw.Mechanism(bodies=[zw.Body("b", joint=zw.Prismatic("z"), mass=2)], gravity=(0, 0, 0))
    push = np.arange(5.0)[:, None]
    run = zw.compile(m).rollout(np.zeros((5, 1)), np.zeros((5, 1)), push, steps=5, step=1.0)
    np.testing.assert_allclose(run.v[:, :, 0], np.outer(push[:, 0] / 2, np.arange(1, 6)))
