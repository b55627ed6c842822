"""The derivatives of the generalised forces of all soft contacts, each from its own two bodies.

The wrench W of a contact on b (-W acts on a), about the world's origin, depends on the poses of both bodies,
on the spatial velocity V = V_b - V_a, and on A = J_b x - J_a x for the accelerations x. Its derivatives

    K_a, K_b = dW/ds (a or b displaced by the screw s),    K_V = dW/dV,    K_A = dW/dA

(6, 6) give those by every coordinate: with its screw S_k, and V_k the velocity of the link that carries its
joint, so that dV_b/dq_k = S_k x (V_b - V_k),

    dW/dq_k = K_b S_k + K_V S_k x (V_b - V_k) + K_A S_k x (A_b - A_k)    where k moves b
            + K_a S_k - K_V S_k x (V_a - V_k) - K_A S_k x (A_a - A_k)    where k moves a
    dW/dv_k = +-K_V S_k,    dW/da_k = +-K_A S_k    (+ if k moves b alone, - if it moves a alone)

The generalised force of a velocity j between the bodies is +-S_j^T W. The screw S_j changes by S_k x S_j
where the joint of k carries that of j or is the same, so that

    d(S_j^T W)/dq_k = S_j^T (dW/dq_k - [k carries j] S_k x* W)

Source of the spatial cross products: Featherstone, Rigid Body Dynamics Algorithms (2008), Section 2.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual_control_flow import Tangent, parts, tangents
from zwang.algebra.rotations import cross, skew
from zwang.collision import (
    ContactPoint,
    Pair,
    PairGroup,
    PlacedShape,
    contact_points_between,
    if_volumes_overlap,
    is_fixed_to_world,
    over_near_pairs,
)
from zwang.constraint.contact import (
    has_moving_surface,
    is_active,
    link_screws_at,
    pair_inverse_weights,
    surface_velocities,
    surface_velocity,
)
from zwang.constraint.contact_groups import (
    NO_CONTACT_POINT,
    contact_groups,
    point_transform,
    rows_of_contact_point,
)
from zwang.constraint.context import RowContext
from zwang.constraint.group_kinematics import GroupKinematics, group_kinematics, links_of, spatial_motions
from zwang.constraint.rows import JointScrews
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import (
    MutableArray,
    empty,
    fori_loop,
    lane_maximum,
    logical_or,
    table,
    where,
)
from zwang.scalar.stacked_pytree import StackedPytree
from zwang.solver.cones import forces_of_rows

ROWS_AT_A_TIME = 4  # generalised forces in an iteration; those of a pair are padded to a multiple of this
NUMBERS = 13  # of a contact point
UNIT = np.eye(6, dtype=int)


class ContactTerms(NamedTuple):
    """Sums over all contacts, in arrays.

    by_state (2 nv or more, nv): entry (k, j) is the derivative of the generalised force j by coordinate k,
    and (nv + k, j) that by velocity k. by_a (nv, nv): by acceleration k.
    """

    by_state: MutableArray
    by_a: MutableArray


def add_contacts(context: RowContext, pairs: Sequence[Pair], a: Any, terms: ContactTerms) -> ContactTerms:
    """The sums with those of the active contacts of all pairs at the accelerations a (nv,). All pairs must be
    soft.
    """
    screws, kinematics = link_screws_at(context), group_kinematics(context, pairs)
    accelerations = spatial_motions(screws, a)
    for group in contact_groups(pairs, [tuple(_moving_sides(pair)) for pair in pairs]):
        contacts = _GroupContacts(context, group, kinematics, accelerations)
        terms = over_near_pairs(group, kinematics.shapes, contacts.visit, terms)
    return terms


def _moving_sides(pair: Pair) -> list[int]:
    """Which shapes move, 0 for a and 1 for b."""
    return [n for n, shape in enumerate((pair.a, pair.b)) if not is_fixed_to_world(shape)]


class _Column(NamedTuple):
    """A velocity that moves a shape of a pair: its sign in V_b - V_a, whether it moves a and b, and whether
    it counts.
    """

    velocity: Any
    sign: Any
    moves: tuple[Any, Any]
    counts: float = 1.0


def _rows(screws: JointScrews, pair: Pair) -> list[_Column]:
    """The velocities between the shapes, padded by ones that count for nothing."""
    own = screws.signs(pair.links)
    found = [_Column(k, float(s), (float(s < 0), float(s > 0))) for k, s in own.items()]
    return found + [_Column(found[-1].velocity, 0.0, (0.0, 0.0), 0.0)] * (-len(found) % ROWS_AT_A_TIME)


def _columns(screws: JointScrews, pair: Pair) -> list[_Column]:
    """The velocities by whose coordinates the wrench is differentiated: those of `_rows`, and with friction
    also those that move both shapes, because the tangents of a contact frame depend on the world's axes.
    """
    found = [column for column in _rows(screws, pair) if column.counts]
    if pair.condim > 1:
        a, b = (set(_velocities_moving(screws, link)) for link in pair.links)
        found += [_Column(k, 0.0, (1.0, 1.0)) for k in sorted(a & b)]
    return found


class _ColumnsOfPairs:
    """The velocities of all pairs of a group, one pair after another; most: those of a pair, at most."""

    def __init__(self, of_pairs: Sequence[Sequence[_Column]]) -> None:
        counts = [len(own) for own in of_pairs]
        self.most = max(counts)
        # entries behind the last, which are not read, bound the index of any velocity of any pair
        behind = [of_pairs[-1][-1]] * (self.most - counts[-1])
        self._columns = StackedPytree([*(column for own in of_pairs for column in own), *behind])
        self._first, self._counts = table([0, *np.cumsum(counts[:-1])]), table(counts)
        self._blocks = table([count // ROWS_AT_A_TIME for count in counts])

    def of(self, number: Any, k: Any) -> _Column:
        """Velocity k of a pair."""
        return self._columns[self._first[number] + k]

    def count(self, number: Any) -> Any:
        """The number of velocities of a pair."""
        return self._counts[number]

    def blocks(self, number: Any) -> Any:
        """The number of times that a pair has `ROWS_AT_A_TIME` velocities."""
        return self._blocks[number]


def _velocities_moving(screws: JointScrews, link: int) -> list[int]:
    """The velocities that move a link."""
    spans = [screws.velocities[i] for i in screws.path(link)]
    return [k for span in spans for k in range(span.start, span.stop)]


class _GroupContacts:
    """The contacts of a pair-type group. sides: which shapes move, 0 for a and 1 for b."""

    def __init__(
        self, context: RowContext, group: PairGroup, kinematics: GroupKinematics, accelerations: MutableArray
    ) -> None:
        tree, pairs = context.mechanism.tree, group.pairs
        self.context, self.group, self.kinematics = context, group, kinematics
        self.motions = kinematics.spatial_velocities, accelerations
        self.links = links_of(tree, group)
        self.inverse_weights = StackedPytree(pair_inverse_weights(context, pairs))
        self.sides = _moving_sides(pairs[0])
        screws = link_screws_at(context)
        self.rows = _ColumnsOfPairs([_rows(screws, pair) for pair in pairs])
        self.columns = _ColumnsOfPairs([_columns(screws, pair) for pair in pairs])
        self.bases = table(_bases(tree))
        self.carries = table(_carries(tree))
        self.surfaces = None
        if any(map(has_moving_surface, pairs)):
            self.surfaces = StackedPytree([surface_velocities(pair) for pair in pairs])

    def visit(self, number: Any, terms: ContactTerms) -> ContactTerms:
        """The sums with those of a pair's contacts.

        A pair that is active in some world is visited in all, and adds zeros where it is not: so the sums are
        not written under the mask of a branch.
        """
        pair, (a, b) = self.group.pair(number), self.group.placed(number, self.kinematics.shapes)

        def found_points(carry: tuple[MutableArray, Any]) -> tuple[MutableArray, Any]:
            stored = carry[0]
            points, active = contact_points_between(pair, a, b), 0.0 > 1.0
            for point in points:
                active = logical_or(active, is_active(self.context, pair, point, np.zeros(3)))
            for k, x in enumerate(_numbers(points)):
                stored = stored.set((0, k), x * 1.0)
            return stored, where(active, 1.0, 0.0)

        stored = empty((1 + 6 * len(self.sides), NUMBERS * pair.count))
        for k, x in enumerate(_numbers([NO_CONTACT_POINT] * pair.count)):
            stored = stored.set((0, k), x)
        stored, active = if_volumes_overlap(pair, a, b, found_points, (stored, 0.0))
        times = lane_maximum(active, 1)
        _, terms = fori_loop(0, times, lambda _, carry: self._with_pair(number, *carry), (stored, terms))
        return terms

    def _with_pair(
        self, number: Any, stored: MutableArray, terms: ContactTerms
    ) -> tuple[MutableArray, ContactTerms]:
        """The sums with those of the active points of a pair. stored: the numbers of its points, and space
        for their derivatives by the screws of both sides, which are filled in.
        """
        pair, screws = self.group.pair(number), StackedPytree([tuple(row) for row in np.eye(6)])
        for at, side in enumerate(self.sides):

            def differentiate(d: Any, stored: MutableArray, at: int = at, side: int = side) -> MutableArray:
                with tangents():
                    shapes = self._shapes(number, side, np.array(screws[d]))
                    slopes = _numbers(contact_points_between(pair, *shapes))
                for k, x in enumerate(slopes):
                    stored = stored.set((1 + 6 * at + d, k), parts(x)[1] * 1.0)
                return stored

            stored = fori_loop(0, 6, differentiate, stored, unroll=False)

        def add_point(k: Any, terms: ContactTerms) -> ContactTerms:
            point, *slopes = (
                [stored[i, NUMBERS * k + c] for c in range(NUMBERS)] for i in range(stored.shape[0])
            )
            active = is_active(self.context, pair, _point(point), np.zeros(3))
            times = lane_maximum(where(active, 1.0, 0.0), 1)
            return fori_loop(
                0, times, lambda _, terms: self._with_point(number, (point, slopes, active), terms), terms
            )

        return stored, fori_loop(0, pair.count, add_point, terms, unroll=pair.count == 1)

    def _shapes(self, number: Any, side: int, screw: Any) -> tuple[PlacedShape, PlacedShape]:
        """The shapes (a, b) of a pair, of which that of a side is displaced by a screw, as tangents."""
        a, b = self.group.placed(number, self.kinematics.shapes)
        return (displaced(a, screw), b) if side == 0 else (a, displaced(b, screw))

    def _with_point(self, number: Any, contact: tuple[Any, Any, Any], terms: ContactTerms) -> ContactTerms:
        """The sums with those of a contact point: its numbers, their derivatives by the screws of the sides,
        and whether it is active.
        """
        point, slopes, active = contact
        links, columns = self.links[number], list[np.ndarray]()
        V, A = (_six(x, links[1]) - _six(x, links[0]) for x in self.motions)
        W = self._wrench(number, point, V, A)
        with tangents():
            for side, own in zip(self.sides, np.split(np.arange(len(slopes)), len(self.sides)), strict=True):
                for i, unit in zip(own, UNIT, strict=True):
                    moved = _tangents(point, slopes[i])
                    columns.append(self._wrench(number, moved, V, A, (side, unit)))
            columns += [self._wrench(number, point, _tangents(V, unit), A) for unit in UNIT]
            columns += [self._wrench(number, point, V, _tangents(A, unit)) for unit in UNIT]
        K = np.array(
            [[where(active, parts(x)[1], 0.0) for x in column] for column in columns], dtype=object
        ).T
        W = np.array([where(active, x, 0.0) for x in W])
        return self._with_blocks(number, np.split(K, len(self.sides) + 2, axis=1), W, terms)

    def _wrench(
        self, number: Any, point: list[Any], V: Any, A: Any, moved: tuple[int, Any] | None = None
    ) -> np.ndarray:
        """The wrench W (6,) of a contact point on b. moved: the side and the screw of its displacement."""
        pair, contact, surface = self.group.pair(number), _point(point), None
        if self.surfaces is not None:
            placed = self.group.placed(number, self.kinematics.shapes)
            shapes = placed if moved is None else self._shapes(number, *moved)
            surface = surface_velocity(self.surfaces[number], shapes, contact)
        J = point_transform(contact.position), V
        weights = self.inverse_weights[number]
        rows = rows_of_contact_point(self.context, pair, contact, J, weights, moving=surface)
        return rows.J.T @ forces_of_rows(rows, rows.J @ A - rows.aref)

    def _with_blocks(
        self, number: Any, K: list[np.ndarray], W: np.ndarray, terms: ContactTerms
    ) -> ContactTerms:
        """The sums with the derivatives of +-S_j^T W by all coordinates, velocities and accelerations."""
        *K_s, K_V, K_A = K
        nv, links = self.context.mechanism.nv, self.links[number]

        def read(j: Any, screws: MutableArray) -> MutableArray:
            row = self.rows.of(number, j)
            for c, x in enumerate(row.sign * _six(self.kinematics.screws, row.velocity)):
                screws = screws.set((j, c), x)
            return screws

        screws = fori_loop(0, self.rows.count(number), read, empty((self.rows.most, 6)), unroll=False)

        def add_column(i: Any, terms: ContactTerms) -> ContactTerms:
            column = self.columns.of(number, i)
            k, S = column.velocity, _six(self.kinematics.screws, column.velocity)
            turned, by_v, by_a = force_cross(S, W), column.sign * (K_V @ S), column.sign * (K_A @ S)
            by_q: Any = 0
            for side, K_side in zip(self.sides, K_s, strict=True):
                change = K_side @ S
                for motion, K_motion in zip(self.motions, (K_V, K_A), strict=True):
                    D = motion_cross(S, _six(motion, links[side]) - _six(motion, self.bases[k]))
                    change = change + (2 * side - 1) * (K_motion @ D)
                by_q = by_q + column.moves[side] * change

            def add_rows(block: Any, terms: ContactTerms) -> ContactTerms:
                by_state, of_a = terms.by_state, terms.by_a
                for j in range(ROWS_AT_A_TIME):
                    j = block * ROWS_AT_A_TIME + j
                    l, S_j = self.rows.of(number, j).velocity, _six(screws, j)
                    own = S_j @ by_q - column.counts * self.carries[k, l] * (S_j @ turned)
                    by_state = by_state.set((k, l), by_state[k, l] + own)
                    by_state = by_state.set((nv + k, l), by_state[nv + k, l] + S_j @ by_v)
                    of_a = of_a.set((k, l), of_a[k, l] + S_j @ by_a)
                return ContactTerms(by_state, of_a)

            return fori_loop(0, self.rows.blocks(number), add_rows, terms, unroll=False)

        return fori_loop(0, self.columns.count(number), add_column, terms, unroll=False)


def _carries(tree: Tree) -> np.ndarray:
    """Entry (k, j) is 1 where the joint of velocity k carries that of j or is the same, else 0 (nv, nv)."""
    found = np.zeros((tree.nv, tree.nv))
    for i, link in enumerate(tree.links):
        for k in tree.path(i):
            found[tree.links[k].v, link.v] = 1.0
    return found


def _bases(tree: Tree) -> np.ndarray:
    """For each velocity (nv,) the link that carries its joint; the world is the last."""
    found = np.zeros(tree.nv, int)
    for link in tree.links:
        found[link.v] = len(tree.links) if link.parent == WORLD else link.parent
    return found


def _six(array: MutableArray, i: Any) -> np.ndarray:
    """Row i (6,) of an array."""
    return np.array([array[i, c] for c in range(6)])


def _numbers(points: Sequence[ContactPoint]) -> list[Any]:
    """The numbers of contact points: distance, position, frame."""
    return [x for p in points for x in (p.distance, *p.position, *np.ravel(p.frame))]


def _point(numbers: list[Any]) -> ContactPoint:
    """The contact point with these numbers."""
    return ContactPoint(numbers[0], np.array(numbers[1:4]), np.array(numbers[4:]).reshape(3, 3))


def _tangents(values: Any, rates: Any) -> Any:
    return np.array([Tangent(x, dx) for x, dx in zip(values, rates, strict=True)], dtype=object)


def displaced(shape: PlacedShape, screw: Any) -> PlacedShape:
    """The shape as tangents along a screw (6,) about the world's origin, linear before angular."""
    u, w = screw[:3], screw[3:]
    R = _tangents(np.ravel(shape.R), np.ravel(skew(w) @ shape.R)).reshape(3, 3)
    return shape._replace(R=R, p=_tangents(shape.p, u + cross(w, shape.p)))


def motion_cross(s: Any, V: Any) -> np.ndarray:
    """s x V (6,): the rate of a motion vector V that is fixed to a body with the spatial velocity s."""
    return np.concatenate([cross(s[3:], V[:3]) + cross(s[:3], V[3:]), cross(s[3:], V[3:])])


def force_cross(s: Any, W: Any) -> np.ndarray:
    """s x* W (6,): the rate of a wrench W that is fixed to a body with the spatial velocity s."""
    return np.concatenate([cross(s[3:], W[:3]), cross(s[:3], W[:3]) + cross(s[3:], W[3:])])
