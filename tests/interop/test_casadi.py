"""Functions of a mechanism in CasADi: values, Jacobians against compiled ones, optimal control by Ipopt."""

from __future__ import annotations

import gc
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

import zwang as zw
from tests.interop import cases
from tests.interop.exported_models import driven_loop
from zwang.api.functions.function_table import FUNCTIONS as TABLE
from zwang.errors import ArgumentError
from zwang.kinematics.configuration import configuration_rate

casadi = pytest.importorskip("casadi")
interop = pytest.importorskip("zwang.interop.casadi")

ARM = cases.arm_on_a_ball()
FAST = zw.compile(ARM)
STATE = cases.state(ARM)
PAYLOAD = 0.7
EXACT = 1e-12  # relative to the largest
QUIET = {"ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes"}


def arguments(name: str) -> list[np.ndarray]:
    names = cases.ARRAYS.get(name) or TABLE[name].arguments
    time = [np.array([0.3])] if name == "sensors" else []
    return [*(STATE[argument] for argument in names), *time, np.array([PAYLOAD])]


def native(name: str, *arrays):
    *given, payload = arrays
    options = cases.FUNCTIONS[name]
    if name == "sensors":
        *given, time = given
        options = {"time": time[0]}
    return getattr(FAST, name)(*given, **options, params={"payload": float(np.ravel(payload)[0])})


def in_casadi(name: str):
    return interop.function(getattr(FAST, name), library=False, **cases.FUNCTIONS[name])


def outputs(found) -> list[np.ndarray]:
    found = found if isinstance(found, tuple | list) else [found]
    return [np.array(casadi.DM(x)) for x in found]


def close(found, expected, tolerance=EXACT):
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("name", cases.FUNCTIONS)
def test_values_are_those_of_the_compiled_function(name):
    given = arguments(name)
    function = in_casadi(name)
    names = [*function.name_in(), *function.name_out()]
    assert len({*names}) == len(names)  # as `factory` and expressions need
    found = outputs(function(*given))
    expected = native(name, *given)
    if isinstance(expected, dict):
        expected = list(expected.values())
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    kept = [np.asarray(x) for x in expected if x is not None and np.size(x)]
    assert [x.shape for x in found] == [x.shape if x.ndim == 2 else (x.size, 1) for x in kept]
    for x, y in zip(found, kept, strict=True):
        np.testing.assert_array_equal(x, y.reshape(x.shape))


@pytest.mark.parametrize("name", cases.FUNCTIONS)
def test_jacobians_are_those_of_differences(name):
    given = arguments(name)
    function = in_casadi(name)
    values = outputs(function(*given))
    blocks = outputs(function.jacobian()(*given, *values))
    for k, x in enumerate(given):

        def of_one(y, k=k):
            return [z.T for z in outputs(function(*given[:k], y, *given[k + 1 :]))]

        part = np.concatenate([blocks[o * len(given) + k] for o in range(len(values))])
        close(part, cases.central_differences(of_one, np.atleast_1d(x)), 1e-6)


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_jacobians_are_those_of_the_derivatives_of_the_dynamics(name):
    """On the tangent space, q_dot = G(q) v."""
    *given, payload = arguments(name)
    params = {"payload": PAYLOAD}
    expected = getattr(FAST, f"{name}_derivatives")(*given, params=params)
    function = in_casadi(name)
    by_q, by_v, by_last, by_parameters = outputs(
        function.jacobian()(*given, payload, function(*given, payload))
    )
    tree = ARM.subs(params).tree
    G = np.stack([configuration_rate(tree, given[0], unit) for unit in np.eye(ARM.nv)], axis=1).astype(float)
    close(by_q @ G, expected.dq)
    close(by_v, expected.dv)
    close(by_last, expected.dtau)
    close(by_parameters, expected.parameters)


def test_the_sparsity_pattern_has_the_structural_zeros():
    """A slide does not change the mass matrix of other branches, and no angle its own gravity torque."""
    two = zw.Mechanism(
        "two arms",
        [
            zw.Body("left", zw.Revolute("l", (0, 1, 0)), mass=1.0, com=(0.1, 0, 0), inertia=(0.01,) * 3),
            zw.Body("right", zw.Revolute("r", (0, 1, 0)), mass=2.0, com=(0.2, 0, 0), inertia=(0.01,) * 3),
        ],
    )
    dynamics = interop.function(zw.compile(two).forward_dynamics)
    by_q, by_v, by_tau = (dynamics.jacobian().sparsity_out(k) for k in range(3))
    assert by_q == by_tau == casadi.Sparsity.diag(2)
    assert by_v.nnz() == 0
    mass_matrix = interop.function(zw.compile(two).mass_matrix)
    assert mass_matrix.sparsity_out(0) == casadi.Sparsity.diag(2)
    assert mass_matrix.jacobian().sparsity_out(0).nnz() == 0


def test_hessians_are_those_of_differences():
    q, v, tau, payload = arguments("forward_dynamics")
    dynamics = in_casadi("forward_dynamics")
    x = casadi.MX.sym("x", ARM.nq + ARM.nv)
    energy = casadi.sumsqr(dynamics(x[: ARM.nq], x[ARM.nq :], tau, payload))
    H, gradient = casadi.hessian(energy, x)
    at = np.concatenate([q, v])
    hessian = casadi.Function("hessian", [x], [H])(at)
    slope = casadi.Function("gradient", [x], [gradient])
    close(np.array(hessian), cases.central_differences(lambda y: outputs(slope(y)), at), 1e-6)


def test_an_expression_keeps_its_function():
    """A function whose name is gone is still evaluated."""
    x = casadi.MX.sym("x", ARM.nq)
    centre = casadi.Function("centre", [x], [interop.function(FAST.mass_centre)(x, PAYLOAD)])
    gc.collect()
    found = np.array(centre.map(3)(np.tile(STATE["q"][:, None], 3)))
    expected = FAST.mass_centre(STATE["q"], params={"payload": PAYLOAD})
    np.testing.assert_array_equal(found, np.tile(expected[:, None], 3))


def test_a_swing_up_by_ipopt_is_the_motion_of_zwang():
    cart_pole = zw.Mechanism(
        "cart pole",
        [
            zw.Body("cart", zw.Prismatic("slide", (1, 0, 0)), mass=1.0),
            zw.Body("pole", zw.Revolute("hinge", (0, 1, 0)), parent="cart", mass=0.3, com=(0, 0, 0.5)),
        ],
        forces=[zw.Motor("push", "slide")],
    )
    fast, count, h = zw.compile(cart_pole), 30, 0.05
    step = interop.function(fast.step, step=h, integrator="rk4")
    opti = casadi.Opti()
    x, push = opti.variable(4, count + 1), opti.variable(count)
    for k in range(count):
        opti.subject_to(x[:, k + 1] == casadi.vertcat(*step(x[:2, k], x[2:, k], push[k])))
    opti.subject_to(x[:, 0] == casadi.vertcat(0, np.pi, 0, 0))
    opti.subject_to(x[:, count] == 0)
    opti.minimize(casadi.sumsqr(push))
    opti.set_initial(x[1, :], np.linspace(np.pi, 0, count + 1))
    opti.solver("ipopt", QUIET)
    solution = opti.solve()
    pushes = solution.value(push)
    run = fast.rollout([0, np.pi], [0, 0], pushes[:, None], steps=count, step=h, integrator="rk4")
    np.testing.assert_allclose(run.q[-1], 0, atol=1e-6)
    np.testing.assert_allclose(run.v[-1], 0, atol=1e-6)


def test_panda_moves_its_hand_to_a_point_by_ipopt():
    """The torques that Ipopt finds move Panda there, as the forward dynamics on floats says."""
    panda = zw.load(panda_file()).replace(forces=(), constraints=())
    fast = zw.compile(panda)
    dynamics = interop.function(fast.inverse_dynamics)
    pose = interop.function(fast.frame_pose, frame="panda_hand")
    start = np.array([0, -0.5, 0, -2.0, 0, 1.5, 0.7, 0.02, 0.02])
    goal = zw.frame_pose(panda, start, "panda_hand").p + np.array([0.1, 0.2, -0.1])
    count, h = 6, 0.1
    opti = casadi.Opti()
    q, v = opti.variable(9, count + 1), opti.variable(9, count + 1)
    a = opti.variable(9, count)
    tau = [dynamics(q[:, k], v[:, k], a[:, k]) for k in range(count)]
    for k in range(count):
        opti.subject_to(q[:, k + 1] == q[:, k] + h * v[:, k] + h**2 / 2 * a[:, k])
        opti.subject_to(v[:, k + 1] == v[:, k] + h * a[:, k])
        opti.subject_to(opti.bounded(-87, tau[k], 87))
    opti.subject_to(casadi.vertcat(q[:, 0], v[:, 0], v[:, count]) == casadi.vertcat(start, np.zeros(18)))
    opti.subject_to(pose(q[:, count])[1] == goal)
    opti.minimize(casadi.sumsqr(a) + 1e-3 * casadi.sumsqr(casadi.vertcat(*tau)))
    opti.set_initial(q, np.tile(start[:, None], count + 1))
    opti.solver("ipopt", QUIET | {"ipopt.hessian_approximation": "limited-memory"})
    solution = opti.solve()
    configurations, speeds, forces = (solution.value(x) for x in (q, v, casadi.horzcat(*tau)))
    np.testing.assert_allclose(zw.frame_pose(panda, configurations[:, -1], "panda_hand").p, goal, atol=1e-7)
    for k in range(count):
        found = zw.forward_dynamics(panda, configurations[:, k], speeds[:, k], forces[:, k])
        np.testing.assert_allclose(found, solution.value(a)[:, k], atol=1e-8)


def panda_file():
    try:
        files = metadata.files("example-robot-data") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return next(str(path.locate()) for path in files if path.as_posix().endswith("/urdf/panda.urdf"))


def test_a_step_with_contacts_has_the_derivatives_of_differences():
    fast = zw.compile(cases.falling_ball())
    given = cases.rolling()
    step = interop.function(fast.step, step=0.002)
    values = outputs(step(*given))
    np.testing.assert_array_equal(values[1].ravel(), fast.step(*given, step=0.002).v)
    blocks = outputs(step.jacobian()(*given, *values))
    for k, x in enumerate(given):

        def of_one(y, k=k):
            return outputs(step(*given[:k], y, *given[k + 1 :]))

        close(np.concatenate(blocks[k::3]), cases.central_differences(of_one, x), 1e-6)


def test_the_step_of_a_mechanism_that_depends_on_time():
    m = driven_loop()
    fast, q, zero = zw.compile(m), np.array(m.home, float), np.zeros(2)
    step = interop.function(fast.step, step=0.002, library=False)
    expected = fast.step(q, zero, zero, step=0.002, time=0.3)
    assert step.name_in() == ["q", "v", "control", "time"] and step.name_out() == ["q_next", "v_next"]
    for x, y in zip(outputs(step(q, zero, zero, 0.3)), expected[:2], strict=True):
        np.testing.assert_array_equal(x.ravel(), y)


def test_a_step_with_a_constraint_that_depends_on_time_has_the_derivatives_of_differences():
    """Also by the time, and within a function of CasADi that is mapped over times."""
    fast, h, t, A = zw.compile(cases.driven_pendulum()), 0.002, 0.5, 0.4
    given = [*cases.driven(t, A), np.array([t]), np.array([A])]
    step = interop.function(fast.step, step=h, library=False)
    values = outputs(step(*given))
    blocks = outputs(step.jacobian()(*given, *values))
    for k, x in enumerate(given):

        def of_one(y, k=k):
            return outputs(step(*given[:k], y, *given[k + 1 :]))

        close(np.concatenate(blocks[k :: len(given)]), cases.central_differences(of_one, x), 1e-6)
    v = casadi.MX.sym("v", 4)
    times = casadi.DM([[t, t + h]])
    many = step.map(2)(given[0], casadi.horzcat(v, v), given[2], times, A)[1]
    J = casadi.Function("J", [v], [casadi.jacobian(many, v)])(given[1]).full()
    close(J[:4], blocks[len(given) + 1])


def test_functions_with_loops_have_values_and_an_error_for_derivatives():
    fast = zw.compile(cases.falling_ball())
    q, v, control = cases.rolling()
    wrenches = interop.function(fast.external_wrenches)
    np.testing.assert_array_equal(
        outputs(wrenches(q, v, control, 0))[0], fast.external_wrenches(q, v, control)
    )
    with pytest.raises(RuntimeError, match="external_wrenches of mechanism 'ball' cannot be differentiated"):
        wrenches.jacobian()


def test_wrong_calls_are_explained():
    with pytest.raises(ArgumentError, match="computes in float32, and CasADi in float64"):
        interop.function(zw.compile(ARM, dtype="float32").mass_matrix)
    with pytest.raises(ArgumentError, match=r"give a method of zw.compile\(mechanism\)"):
        interop.function(ARM)
    for arguments in ({}, {"library": False}, {"symbolic": True}):
        with pytest.raises(ArgumentError, match="derivatives= is of a library that is written"):
            interop.function(zw.compile(ARM).mass_matrix, derivatives=1, **arguments)


def test_without_casadi_the_error_has_the_command():
    code = cases.run_in_a_new_process_without("casadi")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'zwang[casadi]'" in done.stdout


def test_the_stages_of_a_long_step_are_an_expression():
    """The stages of Runge and Kutta are a loop in the machine code of an arm with six joints."""
    fast = zw.compile(six_joints())
    step = interop.function(fast.step, step=0.01, integrator="rk4", symbolic=True)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 6))
    expected = fast.step(q, v, tau, step=0.01, integrator="rk4")
    for x, y in zip(outputs(step(q, v, tau)), expected[:2], strict=True):
        close(x.ravel(), y)
    symbols = [casadi.SX.sym(name, 6) for name in ("q", "v", "tau")]
    J = casadi.Function("J", symbols, [casadi.jacobian(step(*symbols)[1], symbols[1])])(q, v, tau)
    A = fast.step_derivatives(q, v, tau, step=0.01, integrator="rk4").A
    close(np.array(J), A[6:, 6:])


def test_a_long_chain_whose_matrix_is_factorised_in_blocks_is_an_expression():
    links = [
        zw.Body(f"link{k}", zw.Revolute(f"joint{k}", axis=(k % 2, 1, 0)), f"link{k - 1}" if k else "world",
                (0, 0, -0.1), mass=0.1, com=(0, 0, -0.05), inertia=(1e-4, 1e-4, 1e-5))
        for k in range(33)
    ]  # fmt: skip
    forces = [zw.Damper(f"joint{k}", 0.01) for k in range(33)]
    fast = zw.compile(zw.Mechanism("chain", links, forces=forces), lanes=1)
    options = {"step": 0.01, "integrator": "implicitfast"}
    q, v, control = np.random.default_rng(0).uniform(-0.3, 0.3, (3, 33))
    found = interop.function(fast.step, symbolic=True, **options)(q, v, 0.1 * control)
    expected = fast.step(q, v, 0.1 * control, **options)
    np.testing.assert_allclose(np.array(found[0]).ravel(), expected.q, atol=1e-9)


def six_joints() -> zw.Mechanism:
    """An arm of six joints with alternating axes."""
    axes = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    bodies = [
        zw.Body(
            f"link{k}", zw.Revolute(f"joint{k}", axis=axes[k % 3]), position=(0, 0.1, 0.3), mass=1,
            parent=f"link{k - 1}" if k else "world", com=(0.05, 0.1, 0.2), inertia=(0.01, 0.02, 0.03),
        )
        for k in range(6)
    ]  # fmt: skip
    return zw.Mechanism("arm", bodies)


def test_completion_lists_the_function_alone():
    assert dir(interop) == ["function"]
