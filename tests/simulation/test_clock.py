"""Prescribed motions in steps and rollouts: step k begins at the time start + k h, however it is computed."""

import numpy as np
import pytest

import zwang as zw
from zwang.scalar import sin, symbol

t, angle = symbol("t"), symbol("angle")
RATE = 0.7
MOTIONS = {
    "product": angle - 0.3 * sin(2 * t),
    "sum": angle - 0.3 * sin(t + 0.7),
    "both": angle + 0.01 * (t + 0.3) ** 2 - 0.3 * sin(2 * t + 0.1),
}
STEPS, H = 300, 0.01


def driven(motion):
    crank = zw.Body("crank", zw.Revolute("angle", axis=(0, 1, 0)), mass=1, com=(0.3, 0, 0))
    return zw.Mechanism("driven", [crank], constraints=[zw.Holonomic("drive", motion)])


def at_time(motion, time):
    """The angle and its rate by the prescribed motion."""
    prescribed = -motion.subs(angle, 0)
    return [np.array([float(x.subs(t, time))]) for x in (prescribed, prescribed.diff(t))]


@pytest.mark.parametrize("start", [0.0, 0.3, 123.456])
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("motion", MOTIONS.values(), ids=MOTIONS)
def test_rollouts_of_prescribed_motions_have_the_bits_of_steps(motion, integrator, start):
    """Rollouts of each kind; worlds, whose clock begins at 0, too."""
    m = driven(motion)
    fast, u, options = zw.compile(m), np.zeros((STEPS, 1)), {"step": H, "integrator": integrator}
    first = at_time(motion, start)
    state, steps = first, []
    for k in range(STEPS):
        state = fast.step(*state, u[k], time=start + k * H, **options)[:2]
        steps.append(np.concatenate(state))
    run = fast.rollout(*first, u, steps=STEPS, time=start, **options)
    np.testing.assert_array_equal(np.concatenate([run.q, run.v], axis=-1), steps)
    no_gain = np.zeros((STEPS, 1, 2))
    reference = np.zeros((STEPS, 1)), np.zeros((STEPS, 1)), np.zeros((STEPS, 0))
    fed = fast.feedback_rollout(*first, u, no_gain, reference, time=start, **options)
    np.testing.assert_array_equal(fed.q, run.q)
    tangents = fast.rollout_tangents(*first, u, start_direction=[[1.0, 0]], time=start, **options)
    np.testing.assert_array_equal(tangents.q, run.q)
    last = fast.rollout_gradient(
        lambda states, span: np.ones((span.stop - span.start, 2)), *first, u, time=start, checkpoints=True,
        **options,
    )  # fmt: skip
    np.testing.assert_array_equal(last.q[-1], run.q[-1])
    if start == 0:
        worlds = zw.Worlds(m, 1, **options)
        worlds.reset(q=first[0], v=first[1])
        simulated = zw.simulate(
            m, q0=first[0], v0=first[1], duration=STEPS * H, integrator=integrator, step=H
        )
        np.testing.assert_array_equal(simulated["q"][0, 1:], run.q)
        for k in range(STEPS):
            worlds.step()
            np.testing.assert_array_equal(np.concatenate([worlds.q[0], worlds.v[0]]), steps[k])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_time_of_a_long_rollout_has_the_error_of_one_rounding(dtype):
    """A crank at a constant rate, whose angle is that of the time: a sum of the steps would drift off."""
    fast = zw.compile(driven(angle - RATE * t), dtype=dtype)
    start, steps, h = np.array([[0.0], [5.0]]), 200_000, 1e-3
    run = fast.rollout(
        RATE * start, np.full((2, 1), RATE), np.zeros(1), steps=steps, every=1000, step=h, time=start[:, 0]
    )
    times = start + h * np.arange(1000, steps + 1, 1000)
    np.testing.assert_allclose(run.q[..., 0], RATE * times, rtol=4 * np.finfo(dtype).eps)
