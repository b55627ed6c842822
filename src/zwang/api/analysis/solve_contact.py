"""Contact forces with Coulomb friction for a given Delassus matrix, on floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.api.arguments import validation
from zwang.errors import ArgumentError, ShapeError, StateError
from zwang.mechanism.type_validation import validated_arguments
from zwang.scalar import mutable_array, zeros
from zwang.solver.hard_contact import (
    ContactForces,
    ContactProblem,
    contact_law_residuals,
    scaled_problem,
    solve_contact_problem,
)

SYMMETRY = 1e-9  # relative asymmetry of G above which it is refused
DIFFERENT = 1e-6  # relative difference of two accelerations that are not the same solution
STATUS = {
    "converged": "converged in {iterations} iterations, residual {residual:.1e}",
    "several": "several accelerations satisfy the laws of contact: one was found in {iterations} iterations, "
    "residual {residual:.1e}; rigid friction does not determine the motion (Painleve's paradox); "
    "reduce the friction or use a soft contact",
    "not_converged": "no forces were found that satisfy the laws of contact: residual {residual:.1e} after "
    "{iterations} iterations; check whether contacts that cannot move approach each other, or use a soft "
    "contact",
}


@dataclass(frozen=True)
class ContactSolution:
    """Forces of n contacts that satisfy the laws of Signorini, Coulomb and maximum dissipation.

    force (n, 3): normal force and two friction forces of each contact, in the order of the rows given.
    velocity (n, 3): c = G f + g. signorini, coulomb, dissipation: the largest residual of each law,
    dimensionless (see `zw.solve_contact`). iterations: of Newton's method. status: "converged"; "several"
    where another solution was found too; or "not_converged".
    """

    force: np.ndarray
    velocity: np.ndarray
    signorini: float
    coulomb: float
    dissipation: float
    iterations: int
    status: str

    @property
    def residual(self) -> float:
        """The largest one of the three residuals."""
        return max(self.signorini, self.coulomb, self.dissipation)

    @property
    def converged(self) -> bool:
        """Whether the forces satisfy the laws, and no other solution was found."""
        return self.status == "converged"

    @property
    def message(self) -> str:
        """The status as a sentence, with the remedy."""
        return STATUS[self.status].format(iterations=self.iterations, residual=self.residual)


@validated_arguments("mu")
def solve_contact(
    G: npt.ArrayLike, g: npt.ArrayLike, mu: npt.ArrayLike, *, normal: str = "first"
) -> ContactSolution:
    """Forces of hard contacts with Coulomb friction, by the proximal point method with a semismooth Newton
    method.

    With c = G f + g, the solution satisfies, for every contact with normal n and tangents t: f_n >= 0, c_n >=
    0, f_n c_n = 0 (Signorini); |f_t| <= mu f_n (Coulomb); f_t = -mu f_n c_t / |c_t| where c_t is not zero
    (maximum dissipation). c may be velocities after an impulse f, or accelerations under a force f.

    G: Delassus matrix J M^-1 J^T (3 n, 3 n), symmetric and positive semidefinite; redundant rows and masses
        of any ratio are allowed [1/kg].
    g: c without contact forces (3 n,) [m/s, or m/s^2].
    mu: coefficients of friction (n,), or one for all contacts; not negative.
    normal: "first" (default) if the rows of a contact are (normal, tangent, tangent), "last" for (tangent,
        tangent, normal).

    The residuals are dimensionless: lengths of vectors, in units of the largest sum |g| + |G| |f| of absolute
    terms in the rows of the contact, in the coordinates f_n / D_n, f_t / (mu D_t) and D_n c_n, mu D_t c_t in
    which G has the diagonal 1 for the normal, and 1 at most for the tangents. There the cone has the slope
    m = D_n / D_t. Signorini: |min(f_n, c_n)|. Coulomb: max(0, |f_t| - m f_n). Dissipation:
    |f_t - P(f_t - c_t)| with P the projection onto the disc of radius m f_n.

    Forces that G does not determine, as of a table with four legs, are one of the solutions; a c that is not
    determined has the status "several" if a change of one contact leads to the other. Returns a
    `ContactSolution`. Raises ShapeError, StateError or ArgumentError for invalid arguments. Source: Acary,
    Cadoux, Lemarechal, Malick, Z. Angew. Math. Mech. 91 (2011) 155, for the problem; `docs/theory`, "Hard
    rows", for the method.
    """
    G, g, friction = _validated(G, g, mu, normal)
    n, order = len(friction), _row_order(len(friction), normal)
    raw = _contact_problem(G[np.ix_(order, order)], g[order], n)
    factors = mutable_array(np.stack([np.ones(n), friction, friction], axis=1).ravel())
    problem, scale = scaled_problem(raw, factors, zeros(n))
    found = solve_contact_problem(problem, zeros(3 * n))
    status = "converged" if found.converged else "not_converged"
    if found.converged and _has_another_solution(problem, found):
        status = "several"
    f = np.array([found.f[i] * scale[i] for i in range(3 * n)])
    signorini, coulomb, dissipation = contact_law_residuals(problem, found.f)
    force = np.empty(3 * n)
    force[order] = f
    velocity = (G @ force + g).reshape(n, 3)
    return ContactSolution(
        force.reshape(n, 3), velocity, float(signorini), float(coulomb), float(dissipation),
        int(found.iterations), status,
    )  # fmt: skip


def _validated(
    G: npt.ArrayLike, g: npt.ArrayLike, mu: npt.ArrayLike, normal: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """G, g and the coefficient of friction of each contact."""
    if normal not in ("first", "last"):
        raise ArgumentError(f"normal is 'first' or 'last', not {normal!r}: the place of the normal row")
    G, g, mu = (
        validation.real_values(G, "G"),
        validation.real_values(g, "g").ravel(),
        validation.real_values(mu, "mu"),
    )
    for name, values in (("G", G), ("g", g), ("mu", mu)):
        if not np.isfinite(values).all():
            raise StateError(f"every element of {name} must be finite; it has NaN or infinity")
    if len(g) == 0 or len(g) % 3:
        raise ShapeError(f"g has three rows for each contact, shape (3 n,); {len(g)} were given")
    if G.shape != (len(g), len(g)):
        raise ShapeError(f"G has shape {(len(g), len(g))}, as g has {len(g)} rows; {G.shape} was given")
    n = len(g) // 3
    if mu.shape not in ((), (n,)):
        raise ShapeError(f"mu is one number or has shape {(n,)}, one for each contact; not {mu.shape}")
    if (mu < 0).any():
        raise ArgumentError(f"mu, the coefficient of friction, is not negative; {mu.min():g} was given")
    if np.abs(G - G.T).max() > SYMMETRY * np.abs(G).max() or (np.diag(G) < 0).any():
        raise ArgumentError(
            "G is the Delassus matrix J M^-1 J^T: symmetric, with a diagonal that is not negative; build it "
            "from the Jacobian and the mass matrix"
        )
    return (G + G.T) / 2, g, np.broadcast_to(mu, (n,))


def _row_order(n: int, normal: str) -> np.ndarray:
    """For each row of the solver, normal first, its row in the arguments."""
    own = [0, 1, 2] if normal == "first" else [2, 0, 1]
    return (3 * np.arange(n)[:, None] + own).ravel()


def _contact_problem(G: np.ndarray, g: np.ndarray, n: int) -> ContactProblem:
    """The problem of n contacts with friction, not scaled."""
    none, one, upper = np.zeros(n), np.ones(n), np.full(n, np.inf)
    laws = [mutable_array(x) for x in (none, upper, one)]
    return ContactProblem(n, 3, mutable_array(G), mutable_array(g), zeros((n, n)), *laws)


def _has_another_solution(p: ContactProblem, found: ContactForces) -> bool:
    """Whether the solver, started with one contact opened or closed, finds other accelerations."""
    size = max(abs(found.c[i]) for i in range(3 * p.count))
    for k in range(p.count):
        changed = _other_local_solution(p, found, k)
        if changed is None:
            continue
        start = p.with_block(mutable_array(np.array([found.f[i] for i in range(3 * p.count)])), k, changed)
        other = solve_contact_problem(p, start)
        change = max(abs(other.c[i] - found.c[i]) for i in range(3 * p.count))
        if other.converged and change > DIFFERENT * size:
            return True
    return False


def _other_local_solution(p: ContactProblem, found: ContactForces, k: int) -> list[Any] | None:
    """Forces of contact k that satisfy its laws too, while those of the others are held: no force where it
    is closed, a sticking one where it is open.
    """
    f, c = np.array(p.block(found.f, k)), np.array(p.block(found.c, k))
    G = np.array([[p.G[3 * k + i, 3 * k + j] for j in range(3)] for i in range(3)])
    free = c - G @ f
    if f[0] > 0:
        return [0.0, 0.0, 0.0] if free[0] > DIFFERENT * np.abs(G @ f).max() else None
    if c[0] <= 0:
        return None
    sticking = np.linalg.lstsq(G, -free, rcond=None)[0]
    is_solution = np.abs(G @ sticking + free).max() <= DIFFERENT * np.abs(free).max()
    inside = is_solution and np.hypot(*sticking[1:]) <= p.disc[k] * sticking[0] and sticking[0] > 0
    return sticking.tolist() if inside else None
