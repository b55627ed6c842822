"""Muscles against MuJoCo's functions at random lengths, velocities and activations, and the properties of the
curves.
"""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from zwang.compiler.ir.program import blocks_of
from zwang.compiler.pipeline import trace_and_optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.dynamics.muscles import (
    activation_derivative,
    activation_derivatives_of,
    force_length,
    force_velocity,
    muscle_damping_slope,
    muscle_force,
    muscle_forces,
    passive_force_length,
)
from zwang.errors import DescriptionError
from zwang.mechanism.force_elements import Muscle

NORMAL = Muscle(strength=100, length_range=(0.2, 0.8))


def random_muscle(rng):
    """A muscle, and its parameters in MuJoCo's order."""
    low, high = np.sort(rng.uniform(0.5, 1.5, 2))
    rest = [
        rng.uniform(0.3, 0.7),
        rng.uniform(1.3, 2),
        rng.uniform(1, 3),
        rng.uniform(0.5, 2),
        rng.uniform(1.1, 1.6),
    ]
    strength = rng.uniform(10, 500)
    return Muscle(strength, (0.2, 0.9), (low, high), *rest), np.array([low, high, strength, 200, *rest])


def test_force_equals_mujoco():
    rng = np.random.default_rng(1)
    for _ in range(200):
        muscle, numbers = random_muscle(rng)
        length, speed, activation = rng.uniform(0, 1.2), rng.normal() * 2, rng.uniform()
        ends = np.array([0.2, 0.9])
        gain = mujoco.mju_muscleGain(length, speed, ends, 1.0, numbers)
        bias = mujoco.mju_muscleBias(length, ends, 1.0, numbers)
        assert muscle_force(muscle, length, speed, activation) == pytest.approx(
            gain * activation + bias, rel=1e-12
        )


def test_the_damping_slope_is_the_derivative_of_the_force():
    rng, h = np.random.default_rng(2), 1e-6
    for _ in range(200):
        muscle, _ = random_muscle(rng)
        length, speed, activation = rng.uniform(0.2, 0.9), rng.normal(), rng.uniform()
        low, high = (muscle_force(muscle, length, speed + s, activation) for s in (-h, h))
        slope = muscle_damping_slope(muscle, length, speed, activation)
        assert (high - low) / (2 * h) == pytest.approx(slope, abs=1e-5 * muscle.strength)
        assert slope <= 0


@pytest.mark.parametrize("width", [0, 0.3])
def test_activation_equals_mujoco(width):
    rng = np.random.default_rng(2)
    for _ in range(100):
        control, activation = rng.uniform(-0.5, 1.5), rng.uniform()
        numbers = np.array([0.01, 0.04, width])
        theirs = mujoco.mju_muscleDynamics(control, activation, numbers)
        assert activation_derivative((0.01, 0.04, width), control, activation) == pytest.approx(
            theirs, rel=1e-12
        )


def test_many_compiled_muscles_are_loops_and_equal_mujoco():
    rng, count = np.random.default_rng(4), 150
    muscles = [random_muscle(rng) for _ in range(count)]
    for k in range(0, count, 10):  # another form: no force beyond that at rest
        numbers = muscles[k][1]
        numbers[-1] = 1
        muscles[k] = replace(muscles[k][0], lengthening=1.0), numbers
    parameters = [(0.01, 0.04, width) for width in rng.choice([0.0, 0.2], count)]

    def function(lengths, speeds, activations):
        states = zip(lengths, speeds, activations, strict=True)
        forces = muscle_forces([(m, *state) for (m, _), state in zip(muscles, states, strict=True)])
        driven = zip(parameters, lengths, activations, strict=True)
        return np.array([*forces, *activation_derivatives_of(list(driven))])

    program = trace_and_optimise(function, dict.fromkeys(("lengths", "speeds", "activations"), count))
    straight = [i for i in program.body.instructions if not blocks_of(i)]
    assert len(straight) < 20 * count  # inputs, results, and their places in arrays
    lengths, speeds, activations = rng.uniform(0, 1.2, count), rng.normal(size=count), rng.uniform(size=count)
    found = CompiledFunction(program)(lengths, speeds, activations)
    ends = np.array([0.2, 0.9])
    for k, (_, numbers) in enumerate(muscles):
        gain = mujoco.mju_muscleGain(lengths[k], speeds[k], ends, 1.0, numbers)
        bias = mujoco.mju_muscleBias(lengths[k], ends, 1.0, numbers)
        rate = mujoco.mju_muscleDynamics(lengths[k], activations[k], np.array(parameters[k]))
        assert found[k] == pytest.approx(gain * activations[k] + bias, rel=1e-10, abs=1e-10)
        assert found[count + k] == pytest.approx(rate, rel=1e-10)


def test_the_curves_are_continuous():
    for L in (0.5, 0.75, 1.0, 1.3, 1.6):
        for curve in (force_length, passive_force_length):
            assert curve(NORMAL, L - 1e-9) == pytest.approx(curve(NORMAL, L + 1e-9), abs=1e-7)
    assert force_length(NORMAL, 1) == 1 and force_velocity(NORMAL, 0) == 1
    assert force_velocity(NORMAL, -1) == 0 and force_velocity(NORMAL, 5) == NORMAL.lengthening
    assert passive_force_length(NORMAL, NORMAL.longest) == pytest.approx(1.5 * NORMAL.passive)


def test_a_muscle_is_never_in_compression():
    rng = np.random.default_rng(3)
    for _ in range(100):
        assert muscle_force(NORMAL, rng.uniform(0, 1), rng.normal(), rng.uniform()) <= 0


def test_a_muscle_without_a_range_of_lengths_is_rejected():
    with pytest.raises(DescriptionError, match="length_range"):
        Muscle(100, (0.5, 0.5))
