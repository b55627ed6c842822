"""Seed 002's primal problem, with the deformations as unknowns of their own, gives what its reduced form and its dual give.

    least of  1/2 |x - a_free|_M^2 + 1/2 |J x - aref - w|_{R^-1}^2 + g(w)

w is what the rows miss beyond their softness: 0 of an equality, free at the cost bound |w| of dry friction, not negative of limits and
contacts, in the dual cone of elliptic ones. Solved here by accelerated proximal gradients in w, which share nothing with `zwang.solver`.
"""

import numpy as np
import pytest

from tests.solver.random_problems import random_problem
from zwang.solver.solve import SOLVERS, solve

ROUNDS, STANDSTILL = 60_000, 1e-15


def nearest(rows, z):
    """The w that makes 1/2 |w - z|_{R^-1}^2 + g(w) least."""
    w = np.array(z)
    for i, kind in enumerate(rows.kinds):
        if kind == "equality":
            w[i] = 0
        elif kind == "friction":
            w[i] = np.sign(z[i]) * max(abs(z[i]) - rows.R[i] * rows.bound[i], 0)
        elif kind in ("limit", "contact"):
            w[i] = max(z[i], 0)
    for cone in (
        rows.cones
    ):  # in u = (mu w_0, friction_j w_j) the metric is round, and the dual cone is u_0 >= mu |u_1...|
        scale = np.array([cone.mu, *cone.friction])
        u = scale * z[cone.start : cone.stop]
        w[cone.start : cone.stop] = on_cone(u[0], u[1:], cone.mu) / scale
    return w


def on_cone(height, across, slope):
    """The point of height >= slope |across| that is nearest."""
    size = np.linalg.norm(across)
    if height >= slope * size:
        return np.array([height, *across])
    if slope * height + size <= 0:
        return np.zeros(1 + len(across))
    along = (slope * height + size) / (1 + slope * slope)
    return np.array([slope * along, *(along * across / size)])


def primal(problem, rows):
    """Accelerations and forces of the primal problem, by proximal gradients with momentum and restarts (O'Donoghue, Candes 2015)."""
    response = np.linalg.solve(problem.M, rows.J.T)
    S = np.linalg.inv(rows.J @ response + np.diag(rows.R))
    c = rows.J @ problem.a_free - rows.aref
    w = point = nearest(rows, c)
    t = 1.0
    for _ in range(ROUNDS):
        new = nearest(rows, point - rows.R * (S @ (point - c)))
        if (point - new) @ ((new - w) / rows.R) > 0:  # uphill: forget the momentum
            t, point = 1.0, w
            continue
        later = (1 + np.sqrt(1 + 4 * t * t)) / 2
        step, w, t, share = new - w, new, later, (t - 1) / later
        point = w + share * step
        if np.abs(step).max() <= STANDSTILL * (1 + np.abs(w).max()) and share > 0:
            break
    force = S @ (w - c)
    return problem.a_free + response @ force, force


@pytest.mark.parametrize("seed", range(5))
def test_primal_reduced_primal_dual_and_conjugate_gradients_are_one(seed):
    problem, rows = random_problem(seed)
    a, force = primal(problem, rows)
    for name in SOLVERS:
        found = solve(problem, rows, solver=name)
        assert np.abs(found.acceleration - a).max() < 1e-9 * np.abs(a).max(), name
        assert np.abs(found.force - force).max() < 1e-9 * np.abs(force).max(), name
