"""The motions of examples/trajectory_optimisation.py in the simulation, short versions."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import zwang as zw

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def motions():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import trajectory_optimisation  # noqa: PLC0415, examples are no package
    finally:
        sys.path.remove(str(EXAMPLES))
    return trajectory_optimisation


@pytest.mark.parametrize("name", ["cart_pole", "acrobot", "furuta"])
def test_swing_ups_end_upright_in_the_simulation_also_from_a_disturbed_start(motions, name):
    problem = getattr(motions, name)()
    plan = motions.planned(problem)
    assert np.abs(plan.control).max() <= problem.bounds[1]
    for change in (None, problem.disturbance):
        run = motions.simulated(problem, plan, change)
        q, v = run.q.values[0], run.v.values[0]
        assert np.abs(q[0] - problem.q).max() < 0.1 and np.abs(problem.q).max() > 3  # hangs
        assert np.abs(q[-1]).max() < 0.02 and np.abs(v[-1]).max() < 0.1
        assert change is not None or np.allclose(q, plan.q, atol=1e-6)


def test_the_quadruped_trots_on_alternating_diagonal_pairs(motions):
    """Its reference alone, as targets of the servos, does not get anywhere."""
    problem = motions.trot(1.0)
    plan = motions.planned(replace(problem, iterations=8))
    run = motions.simulated(problem, plan)
    trunk = run.q.values[0, :, :3]
    assert trunk[-1, 0] > 0.33 and abs(trunk[-1, 1]) < 0.02
    assert trunk[:, 2].min() > 0.3 and np.abs(run.q.values[0, :, 4:7]).max() < 0.02
    share, changes = motions.gait(run)
    assert share > 0.75 and changes == 3

    still = motions.simulated(problem, plan._replace(control=problem.guess, gain=0 * plan.gain))
    assert still.q.values[0, -1, 0] < 0.1

    disturbed = motions.simulated(problem, plan, problem.disturbance)
    assert disturbed.q.values[0, -1, 0] > 0.25 and disturbed.q.values[0, :, 2].min() > 0.3


def test_the_humanoid_keeps_its_balance_by_replanning(motions):
    """It falls under the same push if its servos hold their angles."""
    problem = motions.balance()
    run, times = motions.balanced(problem, zw.compile(problem.mechanism), 1.2)
    assert len(times) >= 24 and run.q.values[0, :, 2].min() > 0.88
    pushed = zw.with_applied_wrenches(problem.mechanism, "pelvis")

    def hold(t, q, v):
        return np.concatenate([np.zeros(len(problem.mechanism.inputs)), motions.pushes(t), np.zeros(3)])

    options = {"step": problem.step, "integrator": problem.integrator, "progress": False}
    fallen = zw.simulate(pushed, problem.q, duration=1.2, control=hold, **options)
    assert fallen.q.values[0, -1, 2] < 0.7


def test_an_unknown_problem_is_refused_with_the_names_of_all(motions, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["trajectory_optimisation.py", "furuta", "quadruped"])
    with pytest.raises(SystemExit):
        motions.main()
    told = capsys.readouterr().err
    assert all(name in told for name in ("'quadruped'", *motions.PROBLEMS))
