"""Removal of slip from a solution: MuJoCo's "noslip" solver, projected Gauss-Seidel on the friction forces
alone, without their regularisation.

    minimise  1/2 f_t^T A f_t + f_t^T (y0 + A f_n)    over the friction forces f_t,    A = J M^-1 J^T

The normal forces f_n, and the forces of all other rows, keep the values of the solution with softness. The
method is not iterated to convergence: it makes at most as many sweeps as the options say, in the order of the
rows, and stops in each island (the trees of bodies that active rows connect) where a sweep improves the cost
by less than a tolerance times the sum of the island's diagonal of M. With X = L^-T J^T and M = L^T D L, the
state of the iteration is f and w = X^T f:

    A = X D^-1 X^T,    J a - aref = y0 + X D^-1 w,    y0 = J a_free - aref,    a = a_free + L^-1 D^-1 w

Source: MuJoCo documentation, Computation, "Solver algorithms", and XML reference, "noslip_iterations".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
from zwang.constraint.islands import trees_of
from zwang.constraint.rows import Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import SimulationError
from zwang.scalar import (
    MutableArray,
    clip,
    cond,
    equal,
    logical_and,
    maximum,
    table,
    where,
    while_loop,
    zeros,
)
from zwang.scalar.stacked_pytree import StackedPytree
from zwang.solver.friction_ellipsoid import minimiser_in_ellipsoid
from zwang.solver.noslip_problem import NoslipProblem
from zwang.solver.solution import Solution

SMALLEST_DIAGONAL = 1e-10  # of A in a contact
ALLOWED_INCREASE = 1e-10  # of the cost in the update of a contact; a larger one is undone


class Noslip(NamedTuple):
    """iterations: the largest number of sweeps. tolerance: the least improvement of the cost in a sweep,
    relative to the sum of the diagonal of the mass matrix. islands: whether each island stops by itself;
    otherwise all stop together.
    """

    iterations: int
    tolerance: Any
    islands: bool = True


class _SweepState(NamedTuple):
    """Forces f of all rows, w = X^T f (nv,), and the improvement of the cost in this sweep, by island."""

    f: MutableArray
    w: np.ndarray
    improvement: MutableArray


def without_slip(problem: GaussProblem, rows: Rows, found: Solution, noslip: Noslip) -> Solution:
    """The solution with the friction forces of contacts and joints improved by `noslip.iterations` sweeps.

    Raises SimulationError for hard rows, which MuJoCo does not have.
    """
    if rows.any_hard:
        raise SimulationError(
            "the noslip solver (noslip_iterations) needs soft constraints, and some are hard: give them a "
            "softness, or set noslip_iterations to 0, as hard contacts do not slip"
        )
    if not rows.count:
        return found
    return _Sweeps(NoslipProblem(problem, rows, found, noslip.islands), noslip).solution()


class _Sweeps(NamedTuple):
    """The sweeps over the friction forces of a problem."""

    p: NoslipProblem
    noslip: Noslip

    def solution(self) -> Solution:
        """The solution after the sweeps."""
        force = self.p.problem.force_of(np.array(self.p.found.acceleration) - self.p.problem.a_free)
        w = self.p.M.solve_transposed(force)
        start = 0.0, _SweepState(self.p.forces(), w, self.p.cost_of_softness()), self._all_open()
        sums = self.p.sums_of_inertia()

        def unfinished(carry: Any) -> Any:
            count, _, is_open = carry
            return logical_and(count < self.noslip.iterations, self._any(is_open))

        def sweep(carry: Any) -> Any:
            count, state, is_open = carry
            state = self._over_contacts(self._over_friction(state, is_open), is_open)
            improvement = state.improvement
            for t in range(self.p.tree_count):
                goes_on = logical_and(is_open[t] > 0, improvement[t] >= self.noslip.tolerance * sums[t])
                is_open = is_open.set(t, where(goes_on, 1.0, 0.0))
                improvement = improvement.set(t, 0.0)
            return count + 1, state._replace(improvement=improvement), is_open

        _, state, _ = while_loop(unfinished, sweep, start)
        change = self.p.M.solve_scaled(state.w)
        own = scalar_array([state.f[i] for i in range(len(self.p.rows))])
        row_force = None if self.p.found.row_force is None else state.f
        return self.p.found._replace(
            acceleration=self.p.problem.a_free + change, force=own, row_force=row_force
        )

    def _all_open(self) -> MutableArray:
        """1 for every island: none is finished."""
        is_open = zeros(self.p.tree_count)
        for t in range(self.p.tree_count):
            is_open = is_open.set(t, 1.0)
        return is_open

    def _any(self, is_open: MutableArray) -> Any:
        return reduce(maximum, [is_open[t] for t in range(self.p.tree_count)]) > 0

    def _over_friction(self, state: _SweepState, is_open: MutableArray) -> _SweepState:
        """The state after the update of every row of dry friction; islands that are finished keep theirs."""
        for block in self.p.friction:
            label = self.p.labels[trees_of(block.columns, self.p.tree_of)[0]]
            for i, row in enumerate(block.places):
                acts = is_open.gather(label) > 0
                update = partial(self._clipped, row=row, bound=block.bound[i], label=label)
                state = cond(acts, update, lambda s: s, state)
        return state

    def _clipped(self, state: _SweepState, row: int, bound: Any, label: Any) -> _SweepState:
        """f_i = clip(f_i - y_i / A_ii)."""
        A, y, f = self._local(state, [row])
        inverse = 1 / maximum(A[0, 0], TINY)
        new = clip(f[0] - y[0] * inverse, -bound, bound)
        change = new - f[0]
        improvement = -(change * change / (2 * inverse) + change * y[0])
        return self._changed(state, [row], np.array([new]), np.array([change]), improvement, label)

    def _over_contacts(self, state: _SweepState, is_open: MutableArray) -> _SweepState:
        """The state after the update of every active contact with friction, in their order."""
        if not self.p.contacts:
            return state
        forms = sorted({contact.form for contact in self.p.contacts})
        # of each form the first rows of its contacts, and 0 for other contacts, which may have fewer rows
        starts = [table([c.start if c.form == form else 0 for c in self.p.contacts]) for form in forms]
        trees = table([c.trees[0] for c in self.p.contacts])
        numbers = StackedPytree([1.0 * forms.index(c.form) for c in self.p.contacts])
        most = max(len(c.friction) for c in self.p.contacts)
        frictions = StackedPytree(
            [(*c.friction, *(1.0,) * (most - len(c.friction))) for c in self.p.contacts]
        )

        def visit(number: Any, state: _SweepState) -> _SweepState:
            label = self.p.labels[trees[number]]

            def update(state: _SweepState) -> _SweepState:
                for k, (is_cone, n) in enumerate(forms):
                    friction = frictions[number][: n - 1]
                    own = self._cone_updated if is_cone else self._pyramid_updated
                    start = starts[k][number]
                    work = partial(own, start=start, n=n, friction=friction, label=label)
                    if len(forms) == 1:
                        return work(state)
                    state = cond(equal(numbers[number], k), work, lambda s: s, state)
                return state

            return cond(is_open.gather(label) > 0, update, lambda s: s, state)

        return self.p.active_contacts.for_each(visit, state)

    def _pyramid_updated(
        self, state: _SweepState, start: Any, n: int, friction: Any, label: Any
    ) -> _SweepState:
        """Both edges of each friction direction, f = (m + x, m - x) with their mean m kept."""
        for i in range(0, n, 2):
            rows = [start + i, start + i + 1]
            A, y, f = self._local(state, rows)
            b = y - A @ f
            m = (f[0] + f[1]) / 2
            curvature = A[0, 0] + A[1, 1] - A[0, 1] - A[1, 0]
            slope = m * (A[0, 0] - A[1, 1]) + b[0] - b[1]
            flat = curvature < TINY
            x = where(flat, 0.0, clip(-slope / where(flat, 1.0, curvature), -m, m))
            state = self._accepted(state, rows, np.array([m + x, m - x]), (A, y, f), label)
        return state

    def _cone_updated(self, state: _SweepState, start: Any, n: int, friction: Any, label: Any) -> _SweepState:
        """The friction forces of an elliptic cone, under the normal force that they have."""
        normal, rows = state.f[start], [start + i for i in range(1, n)]
        A, y, f = self._local(state, rows)
        found = minimiser_in_ellipsoid(A, y - A @ f, friction, normal)
        new = np.array([where(normal < TINY, 0.0, x) for x in found])
        return self._accepted(state, rows, new, (A, y, f), label)

    def _local(self, state: _SweepState, rows: Sequence[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A (n, n) of these rows, bounded from below on its diagonal, y = J a - aref, and f."""
        nv = self.p.cost.nv
        X = np.array([[self.p.X[i, k] for k in range(nv)] for i in rows])
        scaled = X * self.p.M.reciprocals
        A = scaled @ X.T
        for i in range(len(rows)):
            A[i, i] = maximum(A[i, i], SMALLEST_DIAGONAL if len(rows) > 1 else TINY)
        y = np.array([self.p.y0[i] for i in rows]) + scaled @ state.w
        return A, y, np.array([state.f[i] for i in rows])

    def _accepted(self, state: _SweepState, rows: Any, new: Any, local: Any, label: Any) -> _SweepState:
        """The state with new forces of these rows, unless they increase the cost."""
        A, y, f = local
        change = new - f
        increase = change @ (A @ change) / 2 + change @ y
        undone = increase > ALLOWED_INCREASE
        new = np.array([where(undone, old, x) for old, x in zip(f, new, strict=True)])
        return self._changed(state, rows, new, new - f, where(undone, 0.0, -increase), label)

    def _changed(
        self, state: _SweepState, rows: Sequence[Any], new: Any, change: Any, improvement: Any, label: Any
    ) -> _SweepState:
        """The state with these forces, and the improvement counted in their island."""
        f, w, total = state
        for i, x, dx in zip(rows, new, change, strict=True):
            f = f.set(i, x)
            w = w + np.array([self.p.X[i, k] for k in range(self.p.cost.nv)]) * dx
        return _SweepState(f, w, total.scatter(label, total.gather(label) + improvement))
