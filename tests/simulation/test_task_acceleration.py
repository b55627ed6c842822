"""Accelerations of frames by Gauss's principle: hard, soft, one-sided and cone rows, one world and many."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, lsq_linear, minimize

import zwang as zw
from tests.symbolic.machines import Z
from zwang.errors import DescriptionError, ShapeError, SolveError


def arm():
    bodies, parent, at = [], "world", (0, 0, 0)
    for k, length in enumerate((0.5, 0.4, 0.3)):
        bodies.append(
            zw.Body(
                f"link{k}",
                zw.Revolute(f"q{k}", axis=Z),
                parent,
                at,
                mass=1.0,
                com=(length / 2, 0, 0),
                inertia=(0.02,) * 3,
            )
        )
        parent, at = f"link{k}", (length, 0, 0)
    return zw.Mechanism("3R", bodies, gravity=(0, -9.81, 0), frames=[zw.Frame("tool", parent, at)])


def test_each_of_many_states_equals_a_single_state():
    m, rng = arm(), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 20, 3))
    wanted = rng.normal(size=(20, 2))
    many = zw.task_acceleration(m, q, v, tau, "tool", wanted, rows=(0, 1))
    for w in range(20):
        one = zw.task_acceleration(m, q[w], v[w], tau[w], "tool", wanted[w], rows=(0, 1))
        for field, x, y in zip(one._fields, one, many, strict=True):
            np.testing.assert_allclose(y[w], x, rtol=1e-8, atol=1e-8, err_msg=field)
    np.testing.assert_allclose(many.residual, 0, atol=1e-8)
    apart = zw.task_acceleration(m, q[7:8], v[7:8], tau[7:8], "tool", wanted[7:8], rows=(0, 1))
    assert np.array_equal(apart.acceleration[0], many.acceleration[7])


def test_no_other_acceleration_with_the_task_has_a_smaller_zwang():
    m, (q, v, tau) = arm(), np.random.default_rng(1).normal(size=(3, 3))
    wanted = np.array([0.3, -0.2])
    found = zw.task_acceleration(m, np.stack([q, q]), v, tau, "tool", wanted, rows=(0, 1))
    J, M, a = zw.frame_jacobian(m, q, "tool")[:2], zw.mass_matrix(m, q), found.acceleration[1]
    along = np.linalg.svd(J)[2][2]
    np.testing.assert_allclose(along @ M @ (a - found.free[1]), 0, atol=1e-10)
    np.testing.assert_allclose(J @ a + drift(m, q, v), wanted, atol=1e-7)
    np.testing.assert_allclose(M @ (a - found.free[1]), found.generalised_force[1], atol=1e-9)


def drift(m, q, v, h=1e-6):
    """J_dot v by differences along the motion."""
    ahead, behind = (zw.integrate_configuration(m, q, v, s * h) for s in (1, -1))
    return (zw.frame_jacobian(m, ahead, "tool") - zw.frame_jacobian(m, behind, "tool"))[:2] @ v / (2 * h)


def test_states_without_a_solution_are_nan():
    """The tool of a stretched arm at rest cannot accelerate along the arm; for one state that is an error by
    name.
    """
    m, still = arm(), np.zeros(3)
    states = np.array([[0.0, 0, 0], [0.0, 0.7, -0.4]])
    found = zw.task_acceleration(m, states, still, still, "tool", [1.0, 0.0], rows=(0, 1))
    assert np.isnan(found.acceleration[0]).all() and np.isfinite(found.acceleration[1]).all()
    assert found.residual[0, 0] == pytest.approx(-1.0)
    with pytest.raises(SolveError, match="task 0"):
        zw.task_acceleration(m, states[0], still, still, "tool", [1.0, 0.0], rows=(0, 1))
    with pytest.raises(ShapeError, match="desired"):
        zw.task_acceleration(m, states, still, still, "tool", [1.0, 0.0, 2.0], rows=(0, 1))


def stacked(m, q, v, tau, tasks):
    """J, a* - Jdot v, and the free acceleration of tasks, from public functions."""
    J = np.concatenate([zw.frame_jacobian(m, q, task.frame)[list(task.rows)] for task in tasks])
    bias = [zw.frame_jacobian_rate(m, q, v, task.frame)[list(task.rows)] for task in tasks]
    aref = np.concatenate([np.asarray(task.desired) for task in tasks]) - np.concatenate(bias)
    return J, aref, zw.forward_dynamics(m, q, v, tau)


def dual(m, q, v, tau, tasks):
    """A, R and a0 - a* of the dual problem, min 1/2 f^T (A + R) f + f^T (a0 - a*) over admissible f."""
    J, aref, free = stacked(m, q, v, tau, tasks)
    A = J @ np.linalg.solve(zw.mass_matrix(m, q), J.T)
    R, at = np.zeros(len(J)), 0
    for task in tasks:
        own = slice(at, at + len(task.rows))
        at += len(task.rows)
        diagonal = np.diag(A)[own]
        if task.kind == "cone":
            diagonal = diagonal[0] * np.array([1, *(task.friction[0] ** 2 / mu**2 for mu in task.friction)])
        R[own] = (1 - task.impedance) / task.impedance * diagonal
    return A, np.diag(R), J @ free - aref


@pytest.mark.parametrize("impedance", [0.2, 0.7, 0.99])
def test_a_soft_row_lies_between_the_free_and_the_desired_acceleration(impedance):
    """a1 = d a* + (1 - d) a0, Eq. (1) of the lecture note on Gauss's principle of least constraint."""
    m, (q, v, tau) = arm(), np.random.default_rng(2).normal(size=(3, 3))
    task = zw.TaskConstraint("tool", [0.7], rows=(1,), impedance=impedance)
    found = zw.task_acceleration(m, q, v, tau, task)
    J, _, free = stacked(m, q, v, tau, [task])
    drift_of_row = zw.frame_jacobian_rate(m, q, v, "tool")[1]
    expected = impedance * 0.7 + (1 - impedance) * (J[0] @ free + drift_of_row)
    assert J[0] @ found.acceleration + drift_of_row == pytest.approx(expected, rel=1e-10)
    assert found.residual[0] == pytest.approx(expected - 0.7, rel=1e-9)


BOX = {
    "hard": (
        zw.TaskConstraint("tool", [0.3], rows=(0,)),
        zw.TaskConstraint("link1", [-0.4], rows=(1,), kind="one_sided"),
        zw.TaskConstraint("link2", [0.0], rows=(5,), kind="friction", bound=0.02),
    ),
    "soft": (
        zw.TaskConstraint("tool", [0.3, -0.2], rows=(0, 1), impedance=0.9),
        zw.TaskConstraint("link1", [2.4], rows=(1,), kind="one_sided", impedance=0.8),
        zw.TaskConstraint("link2", [0.0], rows=(5,), kind="friction", bound=0.05, impedance=0.95),
    ),
    "mixed": (
        zw.TaskConstraint("tool", [0.3], rows=(1,)),
        zw.TaskConstraint("tool", [1.5], rows=(0,), kind="one_sided", impedance=0.8),
        zw.TaskConstraint("link1", [0.0], rows=(5,), kind="friction", bound=0.5, impedance=0.9),
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", BOX)
def test_the_problem_of_the_lecture_note_in_full_is_that_of_its_dual(name, seed):
    """Equality, friction and one-sided rows: forces by SciPy's bounded least squares on the dual problem."""
    m, tasks = arm(), BOX[name]
    q, v, tau = np.random.default_rng(seed).normal(size=(3, 3))
    q[1] = 1.0 + 0.2 * q[1]
    A, R, b = dual(m, q, v, tau, tasks)
    limits = {"equality": (-np.inf, np.inf), "one_sided": (0, np.inf)}
    bounds = [limits.get(t.kind, (-t.bound, t.bound)) for t in tasks for _ in t.rows]
    w, V = np.linalg.eigh(A + R)
    root = np.sqrt(w)[:, None] * V.T  # root^T root = A + R
    best = lsq_linear(root, -np.linalg.solve(root.T, b), np.transpose(bounds), method="bvls", tol=1e-14)
    found = zw.task_acceleration(m, q, v, tau, list(tasks))
    np.testing.assert_allclose(found.force, best.x, atol=1e-7 * max(1, np.abs(best.x).max()))
    J, _, free = stacked(m, q, v, tau, tasks)
    M = zw.mass_matrix(m, q)
    np.testing.assert_allclose(M @ (found.acceleration - free), J.T @ found.force, atol=1e-8)
    many = zw.task_acceleration(m, np.stack([q, q + 0.1]), v, tau, list(tasks))
    for field, one, both in zip(found._fields, found, many, strict=True):
        np.testing.assert_allclose(both[0], one, atol=1e-7, rtol=1e-7, err_msg=field)


@pytest.mark.parametrize("desired", [[3.0, 0.2], [3.0, -9.0], [-40.0, 1.0]])
def test_a_soft_cone_is_that_of_its_dual_and_has_three_regions(desired):
    """Sticking, sliding and separating: SciPy minimises the dual cost over the cone |f_1| <= mu f_0."""
    m, mu = arm(), 0.5
    q, v, tau = np.array([0.3, 0.9, -0.4]), np.array([0.2, 0.1, -0.3]), np.zeros(3)
    task = zw.TaskConstraint("tool", desired, rows=(1, 0), kind="cone", friction=(mu,), impedance=0.9)
    A, R, b = dual(m, q, v, tau, [task])
    found = zw.task_acceleration(m, q, v, tau, task)
    edges = LinearConstraint([[mu, 1], [mu, -1], [1, 0]], 0)
    best = minimize(
        lambda f: f @ (A + R) @ f / 2 + f @ b,
        [1.0, 0.0],
        jac=lambda f: (A + R) @ f + b,
        hess=lambda f: A + R,
        constraints=edges,
        method="trust-constr",
        options={"gtol": 1e-12, "xtol": 1e-14, "maxiter": 3000},
    ).x
    np.testing.assert_allclose(found.force, best, atol=1e-4 * max(1, np.abs(best).max()))
    many = zw.task_acceleration(m, np.stack([q, q]), v, tau, task)
    np.testing.assert_allclose(many.force[1], found.force, atol=1e-8)


def test_a_hard_cone_obeys_coulombs_law():
    """The tool presses on a floor: it sticks, or slides against the friction mu f_0 without leaving."""
    m, q, v = arm(), np.array([0.3, 0.9, -0.4]), np.zeros(3)
    task = zw.TaskConstraint("tool", [0.0, 0.0], rows=(1, 0), kind="cone", friction=(0.4,))
    slipping = 0
    for torque in np.linspace(-8, 8, 17):
        found = zw.task_acceleration(m, q, v, [torque, 0, 0], task)
        (normal, slip), (f, t) = found.residual, found.force
        assert f >= -1e-9 and abs(t) <= 0.4 * f + 1e-8 and normal >= -1e-8 and abs(f * normal) < 1e-7
        if f > 1e-6 and abs(slip) > 1e-6:
            assert t == pytest.approx(-np.sign(slip) * 0.4 * f, rel=1e-6)
            slipping += 1
    assert slipping


def five_bar():
    """A planar linkage of two degrees of freedom, closed by a pin, in a state that satisfies it."""

    def bar(name, parent, at):
        joint = zw.Revolute(name, axis=Z)
        return zw.Body(name, joint, parent, at, mass=1, com=(0.5, 0, 0), inertia=(0.05, 0.05, 0.09))

    bodies = [
        bar("left", "world", (0, 0, 0)), bar("upper left", "left", (1, 0, 0)),
        bar("right", "world", (1.2, 0, 0)), bar("upper right", "right", (1, 0, 0)),
    ]  # fmt: skip
    pin = zw.Connect("pin", ("upper left", (1, 0, 0)), ("upper right", (1, 0, 0)))
    frames = [zw.Frame("tool", "upper left", (1, 0, 0))]
    m = zw.Mechanism("five-bar", bodies, gravity=(0, -9.81, 0), constraints=[pin], frames=frames)
    return m, *zw.assemble(m, [2.0, -1.2, 1.1, 1.2], [0.5, 0.2, -0.3, 0.1])


FIVE_BAR = {
    "hard": zw.TaskConstraint("tool", [0.4, -0.7], rows=(0, 1)),
    "soft": zw.TaskConstraint("tool", [0.7], rows=(1,), impedance=0.3),
    "one-sided": zw.TaskConstraint("tool", [2.0], rows=(1,), kind="one_sided"),
    "friction": zw.TaskConstraint("upper left", [0.0], rows=(5,), kind="friction", bound=0.4),
    "cone": zw.TaskConstraint("tool", [0.5, 3.0], rows=(1, 0), kind="cone", friction=(0.3,)),
}


@pytest.mark.parametrize("name", FIVE_BAR)
def test_a_task_of_a_linkage_keeps_its_loop_closed(name):
    """The forces of the task, applied to the linkage, give the accelerations of `constrained_dynamics`."""
    (m, q, v), task, tau = five_bar(), FIVE_BAR[name], np.array([1.0, 0.0, -0.5, 0.2])
    found = zw.task_acceleration(m, q, v, tau, task)
    for applied, a in ((0, found.free), (found.generalised_force, found.acceleration)):
        np.testing.assert_allclose(zw.constrained_dynamics(m, q, v, tau + applied).acceleration, a, atol=1e-7)
    assert np.abs(found.force).max() > 1e-3
    J, M = zw.frame_jacobian(m, q, task.frame)[list(task.rows)], zw.mass_matrix(m, q)
    np.testing.assert_allclose(J.T @ found.force, found.generalised_force, atol=1e-10)
    d = found.acceleration - found.free
    assert found.zwang == pytest.approx(d @ M @ d / 2, rel=1e-9)
    if name == "hard":
        np.testing.assert_allclose(found.residual, 0, atol=1e-8)
    if name == "soft":  # a1 = d a* + (1 - d) a0
        expected = 0.3 * 0.7 + 0.7 * (J[0] @ found.free + zw.frame_jacobian_rate(m, q, v, "tool")[1])
        assert found.residual[0] + 0.7 == pytest.approx(expected, rel=1e-9)
    many = zw.task_acceleration(m, np.stack([q, q]), v, tau, task)
    for field, one, both in zip(found._fields, found, many, strict=True):
        np.testing.assert_allclose(both[1], one, atol=1e-6, rtol=1e-6, err_msg=field)


def test_a_task_that_contradicts_the_constraints_is_told_with_their_names():
    m, q, v = five_bar()
    tasks = [FIVE_BAR["hard"], zw.TaskConstraint("upper right", [5.0], rows=(5,))]
    with pytest.raises(SolveError, match="pin"):
        zw.task_acceleration(m, q, v, np.zeros(4), tasks)
    many = zw.task_acceleration(m, q[None], v, np.zeros(4), tasks)
    assert np.isnan(many.acceleration).all() and np.isfinite(many.free).all()


def test_constraints_of_a_task_act_at_its_time():
    """A cart on a driven rail, x_dot = 3 t^2: the rail accelerates with 6 t, whatever the cart does."""
    rail = zw.Body("rail", zw.Prismatic("x", (1, 0, 0)), mass=2)
    cart = zw.Body("cart", zw.Prismatic("y", (1, 0, 0)), "rail", mass=1)
    drive = zw.Pfaffian("drive", {"x": 1}, rate=-3 * zw.scalar.symbol("t") ** 2)
    m = zw.Mechanism("driven", [rail, cart], gravity=(0, 0, 0), constraints=[drive])
    for q in (np.zeros(2), np.zeros((1, 2))):
        found = zw.task_acceleration(m, q, [0.75, 0], [0, 0], "cart", [1.0], rows=(0,), time=0.5)
        np.testing.assert_allclose(found.free.ravel(), [3, -3], atol=1e-9)
        np.testing.assert_allclose(found.acceleration.ravel(), [3, -2], atol=1e-9)


def test_tasks_that_mean_nothing_are_refused():
    good = {"frame": "tool", "desired": [0.0], "rows": (0,)}
    for bad, match in (
        ({"kind": "both"}, "kind"),
        ({"impedance": 0.0}, "impedance"),
        ({"kind": "friction"}, "bound"),
        ({"bound": 1.0}, "bound"),
        ({"kind": "cone"}, "cone"),
        ({"rows": (0, 1), "kind": "cone", "friction": (-1.0,)}, "friction"),
        ({"rows": (7,)}, "rows"),
    ):
        with pytest.raises(DescriptionError, match=match):
            zw.TaskConstraint(**(good | bad))
    m, still = arm(), np.zeros(3)
    with pytest.raises(DescriptionError, match="desired"):
        zw.task_acceleration(m, still, still, still, "tool")
    with pytest.raises(DescriptionError, match="leave it out"):
        zw.task_acceleration(m, still, still, still, zw.TaskConstraint(**good), [0.0])
    with pytest.raises(ShapeError, match="1 elements"):
        wide = zw.TaskConstraint("tool", [0.0, 1.0], rows=(0,))
        zw.task_acceleration(m, still, still, still, wide)
