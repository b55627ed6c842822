"""The primal problem with the deformations as unknowns has the same solution as its reduced and dual forms.

    minimise  1/2 |x - a_free|_M^2 + 1/2 |J x - aref - w|_{R^-1}^2 + g(w)

The deformation w is 0 for an equality, free at the cost bound |w| for dry friction, not negative for limits
and contacts, and in the dual cone for elliptic cones. The tests solve it by accelerated proximal gradients
in w, independently of `zwang.solver`. Source: MuJoCo documentation, Computation, "Primal problem".
"""

import numpy as np
import pytest

from tests.solver.random_problems import random_problem
from zwang.solver.solve import SOLVERS, solve

ITERATION_LIMIT, STEP_TOLERANCE = 60_000, 1e-15


def proximal_point(rows, z):
    """The minimiser w of 1/2 |w - z|_{R^-1}^2 + g(w)."""
    w = np.array(z)
    for i, kind in enumerate(rows.kinds):
        if kind == "equality":
            w[i] = 0
        elif kind == "friction":
            w[i] = np.sign(z[i]) * max(abs(z[i]) - rows.R[i] * rows.bound[i], 0)
        elif kind in ("limit", "contact"):
            w[i] = max(z[i], 0)
    # in u = (mu w_0, friction_j w_j) the metric is a multiple of the identity, the dual cone u_0 >= mu
    # |u_1...|
    for cone in rows.cones:
        scale = np.array([cone.mu, *cone.friction])
        u = scale * z[cone.start : cone.stop]
        w[cone.start : cone.stop] = project_on_cone(u[0], u[1:], cone.mu) / scale
    return w


def project_on_cone(height, radial, slope):
    """The projection of (height, radial) onto the cone height >= slope |radial|."""
    size = np.linalg.norm(radial)
    if height >= slope * size:
        return np.array([height, *radial])
    if slope * height + size <= 0:
        return np.zeros(1 + len(radial))
    along = (slope * height + size) / (1 + slope * slope)
    return np.array([slope * along, *(along * radial / size)])


def primal(problem, rows):
    """Acceleration and forces by proximal gradients with momentum and restarts (O'Donoghue, Candes 2015)."""
    response = np.linalg.solve(problem.M, rows.J.T)
    S = np.linalg.inv(rows.J @ response + np.diag(rows.R))
    c = rows.J @ problem.a_free - rows.aref
    w = point = proximal_point(rows, c)
    t = 1.0
    for _ in range(ITERATION_LIMIT):
        new = proximal_point(rows, point - rows.R * (S @ (point - c)))
        if (point - new) @ ((new - w) / rows.R) > 0:  # restart: the momentum points uphill
            t, point = 1.0, w
            continue
        later = (1 + np.sqrt(1 + 4 * t * t)) / 2
        step, w, t, share = new - w, new, later, (t - 1) / later
        point = w + share * step
        if np.abs(step).max() <= STEP_TOLERANCE * (1 + np.abs(w).max()) and share > 0:
            break
    force = S @ (w - c)
    return problem.a_free + response @ force, force


@pytest.mark.parametrize("seed", range(5))
def test_all_solvers_solve_the_primal_problem(seed):
    problem, rows = random_problem(seed)
    a, force = primal(problem, rows)
    for name in SOLVERS:
        found = solve(problem, rows, solver=name)
        assert np.abs(found.acceleration - a).max() < 1e-9 * np.abs(a).max(), name
        assert np.abs(found.force - force).max() < 1e-9 * np.abs(force).max(), name
