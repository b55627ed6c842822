"""Contact problems with Coulomb friction: random ones, bodies, stacks of cubes; and the laws of contact."""

from itertools import product

import numpy as np

UP = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])  # normal, tangent, tangent


def skew(p):
    return np.cross(p, np.eye(3)).T * 1.0


def point_rows(r):
    """Rows (3, 6) of the velocity of a body at the offset r from its centre of mass."""
    return UP @ np.hstack([np.eye(3), -skew(r)])


def random_problem(rng):
    """A Delassus matrix of random rows, often with fewer velocities than rows, and c = 0 attainable."""
    n = 3 * rng.integers(1, 6)
    nv = rng.integers(1, n + 4)
    J = rng.normal(size=(n, nv)) * (rng.random((n, nv)) < rng.uniform(0.3, 1))
    spread = rng.choice([1.0, 3.0])
    inverse_masses = 10 ** rng.uniform(-spread, spread, nv)
    mu = rng.uniform(0, 1.5, n // 3) * (rng.random(n // 3) > 0.1)
    return J * inverse_masses @ J.T, J @ rng.normal(size=nv), mu


def bodies(rng):
    """Rigid bodies that touch each other and the ground at random points, with random normals."""
    count, contacts = rng.integers(1, 4), rng.integers(1, 6)
    spread = rng.choice([1.0, 3.0])
    mass = 10 ** rng.uniform(-spread, spread, count)
    inertia = mass[:, None] * rng.uniform(0.02, 0.2, (count, 3))
    inverse_masses = np.hstack([np.repeat(1 / mass[:, None], 3, axis=1), 1 / inertia]).ravel()
    J = np.zeros((3 * contacts, 6 * count))
    for i in range(contacts):
        a, b = rng.integers(-1, count), rng.integers(0, count)
        frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        for body, sign in ((b, 1), (a, -1)):
            if body >= 0 and (sign > 0 or a != b):
                block = np.hstack([np.eye(3), -skew(rng.uniform(-0.5, 0.5, 3))])
                J[3 * i : 3 * i + 3, 6 * body : 6 * body + 6] += sign * frame @ block
    return J * inverse_masses @ J.T, J @ rng.normal(size=6 * count), rng.uniform(0, 1.2, contacts)


def stack(masses, mu, velocity, points=4):
    """Cubes of side 1 m on each other, which touch at `points` points: hyperstatic for more than three.

    velocity (6 n,): of all cubes without contact forces.
    """
    rows = []
    for k in range(len(masses)):
        for i in range(points):
            angle = 2 * np.pi * (i + 0.5) / points
            r = 0.6 * np.array([np.cos(angle), np.sin(angle), 0])
            row = np.zeros((3, 6 * len(masses)))
            row[:, 6 * k : 6 * k + 6] = point_rows(r - 0.5 * UP[0])
            if k:
                row[:, 6 * k - 6 : 6 * k] = -point_rows(r + 0.5 * UP[0])
            rows.append(row)
    J = np.vstack(rows)
    inverse_masses = np.array([[1, 1, 1, 6, 6, 6]]) / np.array(masses)[:, None]
    return J * inverse_masses.ravel() @ J.T, J @ velocity, np.full(len(J) // 3, mu)


def random_stack(rng):
    """One to three cubes of very unequal masses under gravity, at rest or moving."""
    n = rng.integers(1, 4)
    velocity = np.tile([0, 0, -9.81e-3, 0, 0, 0], n) + rng.normal(size=6 * n) * rng.choice([0, 1e-3, 0.1])
    return stack(10 ** rng.uniform(-3, 3, n), rng.uniform(0, 1), velocity, rng.choice([3, 4]))


def violations(G, g, mu, f):
    """The largest violation of the laws of Signorini, of Coulomb and of maximum dissipation.

    Each is relative to the terms of c = G f + g at the contact and, for forces, to those over the diagonal or
    to the largest friction.
    """
    f, c = f.reshape(-1, 3), (G @ f.ravel() + g).reshape(-1, 3)
    terms = (np.abs(G) @ np.abs(f).ravel() + np.abs(g)).reshape(-1, 3).max(axis=1)
    scale = np.maximum(terms, 1e-150)
    diagonal = np.diag(G).reshape(-1, 3).max(axis=1)
    slip = np.linalg.norm(c[:, 1:], axis=1)
    signorini = np.abs(np.minimum(f[:, 0] * diagonal, c[:, 0])) / scale
    coulomb = np.maximum(np.linalg.norm(f[:, 1:], axis=1) - mu * f[:, 0], 0) * diagonal / scale
    power = (f[:, 1:] * c[:, 1:]).sum(axis=1) + mu * f[:, 0] * slip  # zero if the dissipation is largest
    largest = np.maximum(scale, mu * f[:, 0] * diagonal)
    return signorini.max(), coulomb.max(), (np.abs(power) * diagonal / (scale * largest)).max()


def planar_solutions(G, g, mu):
    """All c = G f + g of a planar problem with rows (normal, tangent), by enumeration of the contacts' modes.

    Modes: open, sticking, slipping to either side. G is regular.
    """
    n, found = len(mu), []
    for modes in product(("open", "stick", 1, -1), repeat=n):
        A, b = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
        for i, mode in enumerate(modes):
            rows = 2 * i, 2 * i + 1
            for row in rows:
                A[row], b[row] = (np.eye(2 * n)[row], 0) if mode == "open" else (G[row], -g[row])
            if mode in (1, -1):
                A[rows[1]], b[rows[1]] = np.eye(2 * n)[rows[1]] + mode * mu[i] * np.eye(2 * n)[rows[0]], 0
        if abs(np.linalg.det(A)) < 1e-12:
            continue
        f = np.linalg.solve(A, b)
        c, near = G @ f + g, 1e-9
        ok = (f[::2] > -near).all() and (c[::2] > -near).all()
        ok = ok and (np.abs(f[1::2]) <= mu * f[::2] + near).all()
        ok = ok and all(m not in (1, -1) or m * c[2 * i + 1] > -near for i, m in enumerate(modes))
        if ok and not any(np.allclose(c, other, atol=1e-7) for other in found):
            found.append(c)
    return found
