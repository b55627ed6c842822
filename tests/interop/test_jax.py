"""Functions of a mechanism in JAX: values against the compiled ones, derivatives against differences."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import zwang as zw
from tests.interop import cases
from tests.interop.exported_models import driven_loop, four_bar
from zwang.api.functions.function_table import FUNCTIONS as TABLE
from zwang.errors import (
    ArgumentError,
    ParameterError,
    ShapeError,
    StateError,
    TraceError,
    UnknownNameError,
)
from zwang.mechanism.samples import double_pendulum

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
interop = pytest.importorskip("zwang.interop.jax")
jax.config.update("jax_enable_x64", True)

ARM = cases.arm_on_a_ball()
FAST = zw.compile(ARM)
STATE = cases.state(ARM)
PARAMS = {"payload": 0.7}
TOLERANCE = 1e-6  # of derivatives, relative to the largest


def arguments(name: str, state=STATE) -> list[np.ndarray]:
    return [state[argument] for argument in cases.ARRAYS.get(name) or TABLE[name].arguments]


def in_jax(name: str):
    return interop.function(getattr(FAST, name), **cases.FUNCTIONS[name])


def native(name: str, *arrays, params=PARAMS):
    return getattr(FAST, name)(*arrays, **cases.FUNCTIONS[name], params=params)


def close(found, expected, tolerance=TOLERANCE):
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def test_no_worlds_have_derivatives_too():
    function, none = interop.function(zw.compile(double_pendulum()).forward_dynamics), jnp.zeros((0, 2))
    assert jax.grad(lambda q: function(q, none, none).sum())(none).shape == (0, 2)
    assert jax.jvp(lambda q: function(q, none, none), (none,), (none,))[1].shape == (0, 2)


@pytest.mark.parametrize("name", cases.FUNCTIONS)
def test_values_are_those_of_the_compiled_function(name):
    for worlds in ((), (2, 3)):
        given = arguments(name, cases.state(ARM, worlds))
        found, expected = in_jax(name)(*given, params=PARAMS), native(name, *given)
        assert isinstance(expected, type(found)) or isinstance(found, jax.Array)
        assert list(map(np.shape, jax.tree.leaves(found))) == list(map(np.shape, jax.tree.leaves(expected)))
        np.testing.assert_array_equal(cases.flat(found), cases.flat(expected))


def test_labelled_arrays_are_read_by_their_labels():
    q = xr.DataArray(
        STATE["q"][::-1], dims="coordinate", coords={"coordinate": list(ARM.coordinate_names[::-1])}
    )
    close(in_jax("mass_matrix")(q, params=PARAMS), native("mass_matrix", STATE["q"]))


@pytest.mark.parametrize("name", cases.FUNCTIONS)
def test_derivatives_by_every_argument_are_those_of_differences(name):
    given = [*arguments(name), np.array(0.7)]
    function, count = in_jax(name), len(given)

    def derived(*x):
        return function(*x[:-1], params={"payload": x[-1]})

    J = jax.tree.leaves(jax.jit(jax.jacfwd(derived, argnums=tuple(range(count))))(*given))
    for k, x in enumerate(given):

        def of_one(y, k=k):
            *arrays, payload = [*given[:k], y, *given[k + 1 :]]
            return native(name, *arrays, params={"payload": float(payload)})

        rows = [np.asarray(leaf).reshape(-1, np.size(x)) for leaf in J[k::count]]  # of each result
        close(np.concatenate(rows), cases.central_differences(of_one, x))


def test_forward_and_reverse_mode_agree_and_reverse_is_the_transpose():
    f = in_jax("forward_dynamics")
    given = arguments("forward_dynamics")
    rng = np.random.default_rng(1)
    tangents = tuple(rng.normal(size=x.shape) for x in given)
    w = rng.normal(size=ARM.nv)
    _, change = jax.jvp(lambda *x: f(*x, params=PARAMS), tuple(map(jnp.asarray, given)), tangents)
    _, pull = jax.vjp(lambda *x: f(*x, params=PARAMS), *given)
    close(sum(c @ t for c, t in zip(pull(w), tangents, strict=True)), w @ change, 1e-13)
    forward, reverse = (
        mode(lambda q: f(q, *given[1:], params=PARAMS))(given[0]) for mode in (jax.jacfwd, jax.jacrev)
    )
    close(forward, reverse, 1e-13)


def test_the_derivative_along_a_quaternion_is_zero_and_equals_the_tangent_space_derivatives():
    """d a / dq G(q) is `forward_dynamics_derivatives(...).dq`, and q itself is in the null space."""
    q, v, tau = arguments("forward_dynamics")
    J = jax.jacfwd(in_jax("forward_dynamics"))(q, v, tau, params=PARAMS)
    quaternion = ARM.joint("ball").q
    close(np.asarray(J)[:, quaternion] @ q[quaternion], np.zeros(ARM.nv), 1e-12)
    G = cases.central_differences(lambda w: native("integrate_configuration", q, w, 1.0), np.zeros(ARM.nv))
    close(J @ G, FAST.forward_dynamics_derivatives(q, v, tau, params=PARAMS).dq, 1e-8)


def test_vmap_is_one_call_and_nested_maps_broadcast():
    worlds = cases.state(ARM, (4, 3))
    q, v, tau = (worlds[name] for name in ("q", "v", "tau"))

    def f(q, v, tau):
        return in_jax("forward_dynamics")(q, v, tau, params=PARAMS)

    over_both = jax.vmap(jax.vmap(f, in_axes=(0, 0, None)), in_axes=(0, None, 0))
    found = jax.jit(over_both)(q, v[0], tau[:, 0])
    np.testing.assert_array_equal(found, native("forward_dynamics", q, v[0], tau[:, :1]))
    code = jax.jit(jax.vmap(f)).lower(q[0], v[0], tau[0]).as_text()
    assert code.count("custom_call @zwang_") == 1 and "while" not in code


def test_the_hessian_is_that_of_differences():
    f = in_jax("energy")
    q, v = arguments("energy")
    H = jax.hessian(lambda q: f(q, v, params=PARAMS).potential)(q)
    gradient = jax.grad(lambda q: f(q, v, params=PARAMS).potential)
    close(H, cases.central_differences(gradient, q))
    f = in_jax("forward_dynamics")
    *rest, tau = arguments("forward_dynamics")
    mixed = jax.jacfwd(jax.jacrev(lambda q: f(q, *rest[1:], tau, params=PARAMS)))(q)
    J = jax.jacrev(lambda q: f(q, *rest[1:], tau, params=PARAMS))
    close(np.asarray(mixed).reshape(-1, ARM.nq), cases.central_differences(J, q))


def test_derivatives_at_removable_singularities_are_finite():
    f = interop.function(FAST.integrate_configuration)
    q = STATE["q"]
    J = jax.jacrev(f, argnums=1)(q, np.zeros(ARM.nv), 0.1, params=PARAMS)
    by_differences = cases.central_differences(
        lambda v: native("integrate_configuration", q, v, 0.1), np.zeros(ARM.nv)
    )
    close(J, by_differences)
    difference = interop.function(FAST.difference_configuration)
    J = jax.jacrev(difference)(q, q, params=PARAMS)
    close(J, cases.central_differences(lambda x: native("difference_configuration", x, q), q))


def test_the_gradient_of_a_rollout_is_that_of_differences():
    step = interop.function(FAST.step, step=0.01, integrator="euler")
    q, v = STATE["q"], STATE["v"]

    def loss(controls, payload):
        def body(state, control):
            after = step(*state, control, params={"payload": payload})
            return (after.q, after.v), after.v

        _, speeds = jax.lax.scan(body, (jnp.asarray(q), jnp.asarray(v)), controls)
        return (speeds**2).sum()

    controls = 0.1 * np.random.default_rng(2).normal(size=(20, 2))
    by_controls, by_payload = jax.jit(jax.grad(loss, argnums=(0, 1)))(controls, 0.7)
    close(by_controls.reshape(1, -1), cases.central_differences(jax.jit(lambda u: loss(u, 0.7)), controls))
    close(
        by_payload, cases.central_differences(jax.jit(lambda m: loss(controls, m[0])), np.array([0.7]))[0, 0]
    )


def swing_loss(repeat):
    """The squared angles and speeds of a double pendulum after some steps that `repeat` runs with its body,
    state and controls (steps, 2).
    """
    fast = zw.compile(double_pendulum())
    step = interop.function(fast.step, step=0.05, integrator="implicitfast")

    def body(state, control):
        after = step(*state, control)
        return (after.q, after.v), None

    def loss(controls):
        q, v = repeat(body, (jnp.array([0.4, -0.3]), jnp.array([0.1, 0.2])), controls)
        return (q**2).sum() + (v**2).sum()

    return loss


def in_scan(body, state, controls):
    return jax.lax.scan(body, state, controls)[0]


def in_checkpointed_scan(body, state, controls):
    return jax.lax.scan(jax.checkpoint(body), state, controls)[0]


def in_loop(body, state, controls):
    for control in controls:
        state, _ = body(state, control)
    return state


SECOND_DERIVATIVES = {
    "hessian": jax.hessian,
    "jacrev of jacrev": lambda f: jax.jacrev(jax.jacrev(f)),
    "jacfwd of jacfwd": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "jvp of grad": lambda f: (
        lambda x: jnp.stack([jax.jvp(jax.grad(f), (x,), (e.reshape(x.shape),))[1] for e in jnp.eye(x.size)])
    ),
}


@pytest.mark.parametrize(
    ("form", "repeat"), [*((form, in_scan) for form in SECOND_DERIVATIVES), ("hessian", in_checkpointed_scan)]
)
def test_second_derivatives_of_a_scan_are_those_of_differences_and_of_a_loop(form, repeat):
    controls = 5 * np.random.default_rng(3).normal(size=(3, 2))
    second = SECOND_DERIVATIVES[form]
    H = second(swing_loss(repeat))(controls).reshape(6, 6)
    close(H, cases.central_differences(jax.jit(jax.grad(swing_loss(in_loop))), controls))
    close(H, second(swing_loss(in_loop))(jnp.asarray(controls)).reshape(6, 6), 1e-13)
    many = np.stack([controls, -2 * controls])
    over_worlds = jax.jit(jax.vmap(second(swing_loss(repeat))))(many).reshape(2, 6, 6)
    close(over_worlds[0], H, 1e-13)
    close(over_worlds[1], second(swing_loss(repeat))(many[1]).reshape(6, 6), 1e-13)


def test_a_second_derivative_of_a_scan_with_contacts_is_refused():
    step = interop.function(zw.compile(cases.falling_ball()).step, step=0.002)
    q, v, control = cases.rolling()

    def distance(v):
        def body(state, _):
            return step(*state, control)[:2], None

        return jax.lax.scan(body, (jnp.asarray(q), v), length=3)[0][0][0]

    close(jax.grad(distance)(v)[None], cases.central_differences(jax.jit(distance), v))
    with pytest.raises(TraceError, match="only the first derivatives are known"):
        jax.hessian(distance)(v)


def test_another_platform_calls_back(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    f = interop.function(zw.compile(ARM).mass_matrix)
    q = cases.state(ARM, (5,))["q"]
    found = jax.vmap(lambda x: f(x, params=PARAMS))(q)
    np.testing.assert_array_equal(found, FAST.mass_matrix(q, params=PARAMS))


def test_the_first_and_later_calls_with_one_world_and_with_so_many_that_threads_compute_them():
    f = jax.jit(in_jax("forward_dynamics"))
    for worlds in ((), (1,), (3,), (2, 60_000)):
        given = [np.broadcast_to(x, (*worlds, x.size)) for x in arguments("forward_dynamics")]
        expected = FAST.forward_dynamics(*given, params=PARAMS)
        for _ in range(2):
            np.testing.assert_array_equal(f(*given, params=PARAMS), expected)


def test_single_precision():
    fast = zw.compile(ARM, dtype="float32")
    f = interop.function(fast.bias_forces)
    q, v = (STATE[name].astype("float32") for name in ("q", "v"))
    found = f(q, v, params={"payload": np.float32(0.7)})
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, fast.bias_forces(q, v, params=PARAMS))
    np.testing.assert_array_equal(f(q, v, params={"payload": 0.7}), found)  # a float takes the type
    slope = jax.grad(lambda payload: f(q, v, params={"payload": payload}).sum())(0.7)
    assert np.isclose(slope, jax.grad(lambda p: f(q, v, params={"payload": p}).sum())(np.float32(0.7)))
    with pytest.raises(
        StateError, match=r"'v' is float64, and bias_forces .* float32: convert it by .astype"
    ):
        f(q, v.astype(float), params={"payload": np.float32(0.7)})


def test_arguments_of_another_type_are_named():
    f = in_jax("forward_dynamics")
    q, v, tau = arguments("forward_dynamics")
    with pytest.raises(
        StateError, match=r"'tau' is float32, and forward_dynamics of mechanism 'arm on a ball'"
    ):
        f(q, v, tau.astype("float32"), params=PARAMS)
    with pytest.raises(StateError, match=r"'tau' is float16, .*: convert it by .astype\('float64'\)\n"):
        f(q, v, tau.astype("float16"), params=PARAMS)
    with pytest.raises(StateError, match="'v' is an array of complex128"):
        f(q, v + 0j, tau, params=PARAMS)
    before = [jnp.asarray(x) for x in (q, v, tau)]  # which keep their float64
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(StateError, match=r"'q' is float32.*jax_enable_x64"):
            f(q, v, tau, params=PARAMS)
        with pytest.raises(StateError, match=r"'q' is float32.*jax_enable_x64"):
            f(*before, params=PARAMS)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_a_traced_value_in_a_function_of_numbers_is_explained():
    remedy = "q.* make a function by zwang.interop.jax.function"
    for call in (
        lambda q: zw.mass_centre(ARM.subs({"payload": 1}), q),
        lambda q: FAST.mass_centre(q, params=PARAMS),
    ):
        with pytest.raises(StateError, match=remedy):
            jax.jit(call)(STATE["q"])


def test_wrong_calls_are_explained():
    f = in_jax("forward_dynamics")
    q, v, tau = arguments("forward_dynamics")
    with pytest.raises(ParameterError, match="'payload' has no value"):
        f(q, v, tau)
    with pytest.raises(ShapeError, match=r"'q' has the shape \(5,\); .* takes \(..., 6\)"):
        f(q[:5], v, tau, params=PARAMS)
    with pytest.raises(ShapeError, match="do not broadcast"):
        f(np.tile(q, (2, 1)), np.tile(v, (3, 1)), tau, params=PARAMS)
    with pytest.raises(ArgumentError, match=r"'tau' is missing: .* takes q, v, tau"):
        f(q, v, params=PARAMS)
    with pytest.raises(ArgumentError, match="'force' is no argument"):
        f(q, v, force=tau, params=PARAMS)
    with pytest.raises(ArgumentError, match="4 arguments"):
        f(q, v, tau, tau, params=PARAMS)
    with pytest.raises(ArgumentError, match=r"give a method of zw.compile\(mechanism\)"):
        interop.function(zw.forward_dynamics)
    with pytest.raises(ArgumentError, match="rollout is no function that can be used here"):
        interop.function(FAST.rollout)
    with pytest.raises(ArgumentError, match="frame is missing"):
        interop.function(FAST.frame_pose)
    with pytest.raises(UnknownNameError, match="tool"):
        interop.function(FAST.frame_pose, frame="tol")
    with pytest.raises(ArgumentError, match="'frame' is no option of step"):
        interop.function(FAST.step, frame="tool")
    with pytest.raises(zw.errors.DescriptionError, match=r"step is .*Trace"):
        jax.jit(lambda h: interop.function(FAST.step, step=h)(STATE["q"], STATE["v"], np.zeros(2)))(0.1)


def test_a_step_with_contacts_has_the_derivatives_of_differences():
    """A ball that rolls and slips on the floor."""
    fast = zw.compile(cases.falling_ball())
    q, v, control = cases.rolling()
    step = interop.function(fast.step, step=0.002)
    after = jax.jit(step)(q, v, control)
    np.testing.assert_array_equal(after.v, fast.step(q, v, control, step=0.002).v)
    given = (q, v, control)
    for k in range(3):

        def native_step(x, k=k):
            return tuple(fast.step(*given[:k], x, *given[k + 1 :], step=0.002))[:2]

        J = jax.jacrev(lambda *x: step(*x)[:2], argnums=k)(*given)
        close(np.concatenate(J), cases.central_differences(native_step, given[k]))
    over_worlds = jax.vmap(jax.jacfwd(lambda v, q: step(q, v, control).v), in_axes=(0, None))
    found = over_worlds(np.stack([v, 2 * v]), q)
    close(found[1], jax.jacfwd(lambda v: step(q, v, control).v)(2 * v), 1e-13)
    with pytest.raises(TraceError, match="only the first derivatives are known"):
        jax.hessian(lambda v: step(q, v, control).v.sum())(v)


def test_the_step_of_a_mechanism_that_depends_on_time():
    m = driven_loop()
    fast, q, zero = zw.compile(m), np.array(m.home, float), np.zeros(2)
    found = interop.function(fast.step, step=0.002)(q, zero, zero, time=np.array([0.3, 0.5]))
    expected = fast.step(q, zero, zero, step=0.002, time=[0.3, 0.5])
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)
    with pytest.raises(
        ArgumentError, match="'time' is missing: constraint 'ring' depends on the time t, and"
    ):
        interop.function(fast.step, step=0.002)(q, zero, zero)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_step_with_a_constraint_that_depends_on_time_has_the_derivatives_of_differences(integrator):
    """Also by the time; the driven slide is x = A (1 - cos 3 t) at the end of the step."""
    fast, h, t, A = zw.compile(cases.driven_pendulum()), 0.002, 0.5, 0.4
    given = (*cases.driven(t, A), np.array(t), np.array(A))
    step = interop.function(fast.step, step=h, integrator=integrator)

    def in_jax(q, v, control, time, A):
        return step(q, v, control, time=time, params={"A": A})[:2]

    def native_step(q, v, control, time, A):
        params = {"A": float(A)}
        found = fast.step(q, v, control, time=time, params=params, step=h, integrator=integrator)
        return tuple(found)[:2]

    for k, x in enumerate(given):
        J = jax.jacrev(lambda *x: in_jax(*x), argnums=k)(*given)
        J = np.concatenate([np.reshape(part, (-1, x.size)) for part in J])
        by_one = cases.central_differences(
            lambda y, k=k, x=x: native_step(*given[:k], np.reshape(y, x.shape), *given[k + 1 :]),
            np.atleast_1d(x),
        )
        close(J, by_one)
    by_time, by_amplitude = jax.jacfwd(lambda t, A: in_jax(*given[:3], t, A)[0][0], argnums=(0, 1))(t, A)
    close(by_time, 3 * A * np.sin(3 * (t + h)), 1e-9)
    close(by_amplitude, 1 - np.cos(3 * (t + h)), 1e-9)


def test_the_gradient_of_a_rollout_with_a_driven_constraint_is_that_of_differences():
    fast, h, A = zw.compile(cases.driven_pendulum()), 0.01, 0.4
    q, v, _ = cases.driven(0.5, A)
    step = interop.function(fast.step, step=h)

    def loss(controls):
        def body(state, control):
            *state, t = state
            after = step(*state, control, time=t, params={"A": A})
            return (after.q, after.v, t + h), None

        (_, v_end, _), _ = jax.lax.scan(body, (jnp.asarray(q), jnp.asarray(v), 0.5), controls)
        return (v_end**2).sum()

    controls = np.random.default_rng(5).normal(size=(6, 4))
    close(jax.grad(loss)(controls).reshape(1, -1), cases.central_differences(jax.jit(loss), controls))


def test_a_step_that_reduces_the_coordinates_has_an_error_for_derivatives():
    fast = zw.compile(four_bar())
    q, zero, control = np.array(fast.mechanism.home, float), np.zeros(fast.mechanism.nv), np.ones(1)
    step = interop.function(fast.step, step=0.002, coordinate_reduction=True)
    expected = fast.step(q, zero, control, step=0.002, coordinate_reduction=True)
    np.testing.assert_array_equal(step(q, zero, control).q, expected.q)
    with pytest.raises(TraceError, match=r"it reduces the coordinates.*omit coordinate_reduction=..."):
        jax.jacfwd(lambda v: step(q, v, control).q)(zero)


def test_functions_with_loops_have_values_and_an_error_for_derivatives():
    fast = zw.compile(cases.falling_ball())
    q, v, _ = cases.rolling()
    wrenches = interop.function(fast.external_wrenches)
    np.testing.assert_array_equal(wrenches(q, v), fast.external_wrenches(q, v))
    with pytest.raises(TraceError, match=r"external_wrenches of mechanism 'ball' cannot be differentiated"):
        jax.jacfwd(lambda v: wrenches(q, v))(v)
    law = zw.CoulombFriction("dry", joint="slide", coefficient=0.3)
    block = zw.Body("block", zw.Prismatic("slide", (1, 0, 0)), mass=1)
    dry = interop.function(
        zw.compile(zw.Mechanism("block", [block], constraints=[law])).step, integrator="rk4"
    )
    stops = jax.jacfwd(lambda v: dry(np.zeros(1), v, np.zeros(1)).q)(np.array([5e-3]))
    close(stops, [[5e-3 / (0.3 * 9.81)]], 1e-13)  # it stops within the step, after v^2 / (2 mu g)


def test_a_given_jacobian_is_used():
    """Energies with a Jacobian by differences of the flat function."""
    q, v = arguments("energy")
    x = np.concatenate([q, v])

    def jacobian(q, v, parameters):
        given = np.concatenate([q, v, parameters])
        return cases.central_differences(
            lambda x: FAST.energy(x[:6], x[6:11], params={"payload": float(x[11])}), given
        )

    energy = interop.function(FAST.energy, jacobian=jacobian)
    found = jax.jacrev(lambda x: energy(x[:6], x[6:], params=PARAMS).potential)(x)
    expected = jax.jacrev(lambda x: in_jax("energy")(x[:6], x[6:], params=PARAMS).potential)(x)
    close(found, expected)
    with pytest.raises(TraceError, match="only the first derivatives are known"):
        jax.hessian(lambda q: energy(q, v, params=PARAMS).kinetic)(q)
    wrong = interop.function(FAST.energy, jacobian=lambda *x: np.zeros((2, 2)))
    with pytest.raises(Exception, match=r"ShapeError: jacobian returned an array of the shape \(2, 2\)"):
        jax.jacfwd(lambda v: wrong(q, v, params=PARAMS).kinetic)(v).block_until_ready()


def test_without_jax_the_error_has_the_command():
    code = cases.run_in_a_new_process_without("jax")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'zwang[jax]'" in done.stdout


def test_completion_lists_the_function_alone():
    assert dir(interop) == ["function"]
