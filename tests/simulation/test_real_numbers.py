"""Values that are not real numbers are rejected by name in every public function: complex numbers, strings
and dates.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import ParameterError, SimulationError, StateError, ZwangError
from zwang.mechanism.samples import double_pendulum

PENDULUM = double_pendulum()
ZERO = np.zeros(2)
UNREAL = {
    "complex": [0.1 + 0.2j, 0],
    "complex array": np.array([0.1 + 0.2j, 0]),
    "complex without imaginary part": np.array([0.1 + 0j, 0]),
    "single complex in a list of objects": np.array([np.complex64(0.1 + 0.2j), 0.0], dtype=object),
    "double complex in a list of objects": np.array([np.complex128(0.1 + 0.2j), 0.0], dtype=object),
    "texts": ["0.1", "0"],
    "array of texts": np.array(["0.1", "0"]),
    "a text among numbers": [0.1, "0"],
    "texts as objects": np.array(["0.1", "0"], dtype=object),
    "bytes": np.array([b"0.1", b"0"]),
    "dates": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    "times": np.array([1, 2], dtype="timedelta64[s]"),
    "a time as an object": np.array([np.timedelta64(1, "s"), 0.0], dtype=object),
    "none": [None, 0.0],
}
REAL = {
    "fractions": [Fraction(1, 4), 0],
    "decimals": [Decimal("0.25"), 0],
    "symbolic numbers": [sp.Rational(1, 4), 0],
    "single precision": np.array([0.25, 0], dtype=np.float32),
    "strided": np.array([0.25, 9, 0, 9])[::2],
}


@pytest.fixture(scope="module")
def fast():
    return zw.compile(PENDULUM)


@pytest.mark.parametrize("what", UNREAL)
def test_reference_functions_reject_arguments_that_are_not_real(what):
    bad = UNREAL[what]
    for name, call in {
        "q": lambda: zw.forward_dynamics(PENDULUM, bad, ZERO, ZERO),
        "v": lambda: zw.bias_forces(PENDULUM, ZERO, bad),
        "tau": lambda: zw.constrained_dynamics(PENDULUM, ZERO, ZERO, bad),
    }.items():
        with pytest.raises(StateError, match=rf"^{name} must be 2 real numbers"):
            call()


@pytest.mark.parametrize("what", UNREAL)
def test_compiled_functions_reject_arguments_that_are_not_real(fast, what):
    bad = UNREAL[what]
    for name, call in {
        "q": lambda: fast.forward_dynamics(bad, ZERO, ZERO),
        "v": lambda: fast.step(ZERO, bad, ZERO),
        "control": lambda: fast.rollout(ZERO, ZERO, bad, steps=2),
        "tau": lambda: fast.forward_dynamics(ZERO, ZERO, bad),
    }.items():
        with pytest.raises(
            StateError, match=rf"'{name}' is not an array of real numbers|^{name} must hold real numbers"
        ):
            call()
    with pytest.raises(StateError, match="control must hold real numbers"):
        fast.rollout(ZERO, ZERO, np.array([UNREAL[what]] * 2), steps=2)


@pytest.mark.parametrize("what", UNREAL)
def test_a_simulation_rejects_arguments_that_are_not_real(what):
    bad = UNREAL[what]
    for name, error, arguments in (
        ("q0", StateError, {"q0": bad}),
        ("v0", StateError, {"v0": bad}),
        (r"q0\['shoulder'\]", StateError, {"q0": {"shoulder": bad}}),
        ("control", SimulationError, {"control": bad}),
        (r"control\['shoulder'\]", SimulationError, {"control": {"shoulder": bad}}),
        ("control", StateError, {"control": lambda t, q, v: bad}),
    ):
        with pytest.raises(error, match=name):
            zw.simulate(PENDULUM, **arguments, duration=0.02, step=0.01, progress=False)
    for integrator in ("euler", "dop853"):
        with pytest.raises(StateError, match="no real numbers"):
            zw.simulate(
                PENDULUM,
                control=lambda t, q, v: {"shoulder": bad[0], "elbow": bad[1]},
                duration=0.02,
                step=0.01,
                integrator=integrator,
                compiled=False,
                progress=False,
            )


def test_a_control_that_becomes_complex_is_rejected_at_that_step():
    def control(t, q, v):
        return np.array([np.complex128(1j), 0.0]) if t > 0.015 else np.zeros(2)

    with pytest.raises(StateError, match=r"control\(t, q, v\) returned .* no real numbers"):
        zw.simulate(PENDULUM, control=control, duration=0.05, step=0.01, progress=False)


@pytest.mark.parametrize("bad", [1j, np.complex128(1 + 1j), "1", np.datetime64("2020-01-01"), None, b"1"])
def test_parameters_that_are_not_real_are_rejected(bad):
    m = sp.Symbol("m")
    arm = zw.Body("arm", zw.Revolute("hinge", axis=(0, 1, 0)), mass=m, com=(0, 0, -1), inertia=(1, 1, 1))
    machine = zw.Mechanism(bodies=[arm])
    for values in (bad, [bad], np.array([bad], dtype=object)):
        with pytest.raises(ParameterError, match=r"'m'.*real number"):
            zw.simulate(machine, params={"m": values}, duration=0.1, progress=False)
        with pytest.raises(ParameterError, match=r"'m'.*real number"):
            zw.compile(machine).mass_matrix([0.0], params={"m": values})
    with pytest.raises(ZwangError, match="m"):
        machine.subs({"m": bad})


@pytest.mark.parametrize("bad", ["1", b"1", 1j, np.timedelta64(1, "s"), True, None, np.nan, 0, -1, np.inf])
def test_times_are_positive_real_numbers(fast, bad):
    with pytest.raises(SimulationError, match="duration is"):
        zw.simulate(PENDULUM, duration=bad, progress=False)
    if bad is not None:
        with pytest.raises(SimulationError, match="step is"):
            zw.simulate(PENDULUM, duration=1, step=bad, progress=False)
        with pytest.raises(ZwangError, match="step is"):
            fast.step(ZERO, ZERO, ZERO, step=bad)
    if not isinstance(bad, bool | int | float):
        with pytest.raises(ZwangError, match=r"dt (of integrate_configuration )?is"):
            zw.integrate_configuration(PENDULUM, ZERO, ZERO, bad)
        with pytest.raises(ZwangError, match="rtol of"):
            zw.Adaptive(rtol=bad)


@pytest.mark.parametrize("what", REAL)
def test_real_numbers_of_every_type_give_the_same_result(fast, what):
    q = REAL[what]
    expected = zw.forward_dynamics(PENDULUM, [0.25, 0.0], ZERO, ZERO)
    np.testing.assert_array_equal(zw.forward_dynamics(PENDULUM, q, ZERO, ZERO), expected)
    np.testing.assert_array_equal(
        fast.forward_dynamics(q, ZERO, ZERO), fast.forward_dynamics([0.25, 0.0], ZERO, ZERO)
    )
    run = zw.simulate(PENDULUM, q, control=q, duration=0.02, step=0.01, progress=False)
    same = zw.simulate(PENDULUM, [0.25, 0.0], control=[0.25, 0.0], duration=0.02, step=0.01, progress=False)
    np.testing.assert_array_equal(run.q, same.q)


# ------------------------------------------------------------------------------- arrays that can only be read


@pytest.mark.parametrize("integrator", ["euler", "rk4", "dop853", "radau", "lsoda"])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("state", ["q", "v"])
def test_a_control_function_cannot_change_the_state(integrator, compiled, state):
    def moving(t, q, v):
        x = q if state == "q" else v
        x[0] += 0.1
        return np.zeros(2)

    with pytest.raises(ValueError, match="read-only"):
        zw.simulate(
            PENDULUM,
            control=moving,
            duration=0.05,
            step=0.01,
            integrator=integrator,
            compiled=compiled,
            progress=False,
        )


@pytest.mark.parametrize("integrator", ["euler", "rk4", "dop853", "radau", "lsoda"])
@pytest.mark.parametrize("compiled", [True, False])
def test_arrays_kept_by_a_control_function_do_not_change(integrator, compiled):
    """Kept arrays hold the states of their times; a function that makes them writable writes to a copy."""
    kept = []

    def keeping(t, q, v):
        kept.append((float(t), np.array(q, float), q))
        q.setflags(write=True)
        q += 5.0
        return np.zeros(2)

    how = {"duration": 0.05, "step": 0.01, "integrator": integrator, "compiled": compiled, "progress": False}
    run = zw.simulate(PENDULUM, [0.3, 0.1], control=keeping, **how)
    alone = zw.simulate(PENDULUM, [0.3, 0.1], **how)
    np.testing.assert_allclose(run.q, alone.q, rtol=0, atol=1e-12)
    assert len(kept) >= 6
    for _, then, held in kept:
        np.testing.assert_array_equal(held, then + 5.0)
