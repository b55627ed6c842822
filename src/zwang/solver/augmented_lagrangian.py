"""Hard rows beside soft ones by the augmented Lagrangian method (method of multipliers).

Each outer iteration solves a problem in which hard rows have a small regularisation R = rho and the
reference acceleration aref + rho f_k, where f_k are the forces found before. On the dual this is the
proximal point method. It converges to forces of the problem with R = 0 by a factor rho / (rho + A) in each
iteration. It needs no rank decision: the part of redundant rows' forces that is not determined stays at its
initial value, an even share. Source: Rockafellar, Math. Oper. Res. 1 (1976) 97.

Hard contacts obey Coulomb's law exactly. The convex problem lets a sliding contact separate with the normal
velocity y_0 = |(friction_j y_j)|, because its residual lies in the dual cone. The reference acceleration of
the normal is therefore lowered by this slip in each iteration. Source: De Saxce, Feng, Math. Comput.
Modelling 28 (1998) 225. Where a body is about to jam this fixed-point iteration is slow, and is accelerated
by Anderson's method of depth one. Source: Anderson, J. ACM 12 (1965) 547.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    MutableArray,
    absolute,
    clip,
    cond,
    empty,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    where,
    while_loop,
    zeros,
)
from zwang.solver.multipliers import is_inconsistent
from zwang.solver.primal_cost import PrimalCost, RowBlock, with_entries
from zwang.solver.solution import SMALLEST_SCALE, Solution, max_abs, slip_speed

INEQUALITY_COMPLIANCE = 1e-3  # rho of inequalities, relative to a row's inverse weight
EQUALITY_COMPLIANCE = 1e-5  # rho of equalities, whose rows are nearly dependent near singular configurations
ITERATIONS = 200
TOLERANCE = 1e-11  # of the change of the forces; rounding leaves 1e-12, because 1 / rho is large
USABLE_CHANGE = 1e-5  # of the accelerations, which are accurate to this where dependent forces still change
LONGEST_EXTRAPOLATION = 100.0  # of Anderson's method, in differences of the last two iterates
ROUNDING = 1e-11  # of the slip residuals, relative to the accelerations
INNER_TOLERANCE = 1e-13  # of the soft problems


class _AugmentedLagrangianState(NamedTuple):
    """State of the outer iteration.

    force: of all rows. slips: those assumed in the next iteration, one for each block of rows, of which
    hard cones have one. found_slips: those found in the last one. slip_residuals: found minus assumed slips
    of the last one. iterations: of all inner solvers. done: whether the method has converged. usable:
    whether the accelerations hardly changed in the last iteration.
    """

    a: np.ndarray
    force: MutableArray
    slips: MutableArray
    found_slips: MutableArray
    slip_residuals: MutableArray
    outer_iterations: Any
    iterations: Any
    done: Any
    usable: Any


class _Changes(NamedTuple):
    """The last iteration's changes, over all blocks: the largest change of a force, the largest force, the
    largest slip residual; sums of products of the slip residuals r, those before, and their changes d: r r,
    before before, d d, r d.
    """

    force: Any = 0.0
    largest_force: Any = 0.0
    slip: Any = 0.0
    square: Any = 0.0
    square_before: Any = 0.0
    square_change: Any = 0.0
    product: Any = 0.0


def augmented_lagrangian(
    problem: GaussProblem,
    rows: Rows,
    solver: Callable[..., Solution],
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
) -> Solution:
    """Solution of a problem some of whose rows are hard (R = 0), by the augmented Lagrangian method.

    solver: solves the soft problem of each outer iteration, such as `newton`. start: initial accelerations
    (nv,), by default the free ones. tolerance: of the relative change of the forces in one iteration, and of
    the slip residuals relative to the accelerations.
    """
    blocks = PrimalCost(problem, rows)
    method = _Method(problem, rows, blocks, _softened(rows, blocks), solver, tolerance)

    def unfinished(s: _AugmentedLagrangianState) -> Any:
        return logical_and(logical_not(s.done), s.outer_iterations < ITERATIONS)

    initial, no = np.array(problem.a_free if start is None else start), 0.0 > 1.0
    force, (slips, found_slips, residuals) = (
        zeros(blocks.count),
        [zeros(blocks.block_count) for _ in range(3)],
    )
    zero = _AugmentedLagrangianState(initial, force, slips, found_slips, residuals, 0.0, 0.0, no, no)
    last = while_loop(unfinished, method.iterate, zero)
    inconsistent = cond(last.done, lambda: False, lambda: is_inconsistent(rows, last.a))
    inaccurate = logical_or(inconsistent, logical_not(logical_or(last.done, last.usable)))
    own = array([last.force[i] for i in range(len(rows))])
    return Solution(
        last.a, own, last.iterations, last.done, inconsistent, inaccurate=inaccurate, row_force=last.force
    )


class _Method(NamedTuple):
    """The problem, its rows and their blocks; softened: the same rows with R + rho; the solver of soft
    problems.
    """

    problem: GaussProblem
    rows: Rows
    blocks: PrimalCost
    softened: Rows
    solver: Callable[..., Solution]
    tolerance: float

    def iterate(self, s: _AugmentedLagrangianState) -> _AugmentedLagrangianState:
        """One outer iteration: solve with R + rho and aref + rho f, the normals lowered by the slips; update
        both.
        """
        found = self.solver(self.problem, self._shifted(s), start=s.a, tolerance=INNER_TOLERANCE)
        a = found.acceleration
        force, slip_residuals, slips, change = self._compare(s, found)
        steady = change.force <= self.tolerance * change.largest_force
        done = logical_and(steady, change.slip <= self.tolerance * max_abs(a))
        usable = max_abs(a - s.a) <= USABLE_CHANGE * max_abs(a)
        share = _anderson_share(change, ROUNDING * max_abs(a))

        def extrapolate(block: RowBlock, arrays: Any) -> Any:
            if not _is_hard_cone(block):
                return arrays
            (assumed, before), slip = arrays, slips[block.number]
            next_slip = maximum(slip - share * (slip - before[block.number]), 0.0)
            return assumed.set(block.number, next_slip), before.set(block.number, slip)

        assumed, before = self.blocks.over_active_blocks(extrapolate, (s.slips, s.found_slips))
        outer_iterations, iterations = s.outer_iterations + 1, s.iterations + found.iterations
        return _AugmentedLagrangianState(
            a, force, assumed, before, slip_residuals, outer_iterations, iterations, done, usable
        )

    def _shifted(self, s: _AugmentedLagrangianState) -> Rows:
        """The softened rows with the reference acceleration aref + rho f, less the slip in the normal of a
        hard cone.
        """
        aref = empty(self.blocks.count)

        def shift(block: RowBlock, aref: MutableArray) -> MutableArray:
            first, *others = block.aref + _rho(block) * block.read(s.force)
            first = first - s.slips[block.number] if _is_hard_cone(block) else first
            return with_entries(aref, zip(block.row_numbers(), [first, *others], strict=True))

        return self.softened.with_array("aref", self.blocks.over_active_blocks(shift, aref))

    def _compare(self, s: _AugmentedLagrangianState, found: Solution) -> Any:
        """(forces, slip residuals, slips, changes) of the solution found."""
        y, slips = self.blocks.residual(found.acceleration), empty(self.blocks.block_count)

        def compare(block: RowBlock, carry: Any) -> Any:
            force, residuals, slips, c = carry
            for i in block.row_numbers():
                new = found.force_of(i)
                c = c._replace(
                    force=maximum(c.force, absolute(new - force[i])),
                    largest_force=maximum(c.largest_force, absolute(new)),
                )
                force = force.set(i, new)
            if block.cone is None or not block.hard:
                return force, residuals, slips, c
            number, before = block.number, residuals[block.number]
            slip = slip_speed(block.cone._replace(start=0), block.read(y))
            r = slip - s.slips[number]
            d = r - before
            c = c._replace(
                slip=maximum(c.slip, absolute(r)),
                square=c.square + r * r,
                square_before=c.square_before + before * before,
                square_change=c.square_change + d * d,
                product=c.product + r * d,
            )
            return force, residuals.set(number, r), slips.set(number, slip), c

        return self.blocks.over_active_blocks(compare, (s.force, s.slip_residuals, slips, _Changes()))


def _softened(rows: Rows, blocks: PrimalCost) -> Rows:
    """The rows with R = rho where they are hard."""

    def store(block: RowBlock, D: MutableArray) -> MutableArray:
        own = 1 / _rho(block) if block.hard else block.D
        return with_entries(D, zip(block.row_numbers(), own, strict=True))

    rho = [
        _compliance(k) * w if h else 0
        for k, w, h in zip(rows.kinds, rows.inverse_weight, rows.hard, strict=True)
    ]
    with_D = rows.with_array("D", blocks.over_active_blocks(store, empty(blocks.count)))
    return with_D.replaced(R=rows.R + array(rho))


def _rho(block: RowBlock) -> np.ndarray:
    """rho (n,) of a block's rows, 0 where they are soft."""
    zero = np.zeros(len(block.kinds), int)
    return _compliance(block.kinds[0]) * np.array(block.inverse_weight) if block.hard else zero


def _compliance(kind: str) -> float:
    return EQUALITY_COMPLIANCE if kind == "equality" else INEQUALITY_COMPLIANCE


def _is_hard_cone(block: RowBlock) -> bool:
    return block.hard and block.cone is not None


def _anderson_share(change: _Changes, rounding: Any) -> Any:
    """Share of the last change of the slips that Anderson's method of depth one takes back.

    The slips are then those at which the linear interpolant of the last two residuals is least.
    Extrapolation beyond the two iterates is used only if the residuals decrease; residuals below `rounding`
    are not used at all.
    """
    share = change.product / maximum(change.square_change, SMALLEST_SCALE)
    between = logical_and(share > 0, share < 1)
    decreasing = change.square < change.square_before
    trusted = logical_and(logical_or(between, decreasing), change.square > rounding * rounding)
    return where(trusted, clip(share, -LONGEST_EXTRAPOLATION, LONGEST_EXTRAPOLATION), 0.0)
