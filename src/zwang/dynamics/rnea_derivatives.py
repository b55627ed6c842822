"""Derivatives of inverse dynamics from sums over the subtrees.

All vectors are in world axes at one fixed point, linear parts first. Let S_i be the motion that the
generalised velocity i gives a link l, whose parent is p, and all links of its subtree; v and a the spatial
velocities and accelerations of the links. A displacement along S_i carries the subtree along, and changes the
velocity and the acceleration of its link k relative to this motion by

    dv = v_p x S_i,    da - v_k x dv    with    da = a_p x S_i + v_p x dv;

a change of the generalised velocity changes them by dv = S_i and da = (v_l + v_p) x S_i likewise. With the
sums over a subtree of the inertias, I, of their Coriolis terms, B, and of the inertial forces, F, the
generalised forces change by

    S_j^T (I_i da + 2 B_i dv + S_i x* F_i)    of a joint j between l and the world, where the last term is for
                                              displacements, and
    S_j^T (I_j da + 2 B_j dv)                 of a joint j of l or of a link in its subtree.

2 B dv = 2 integral (dw x r_dot, r x (dw x r_dot)) dm, for the angular part dw of dv, and points r of the
bodies with the velocities r_dot, so that it follows from the momentum and from Q = integral r_dot r^T dm.
Source: Singh, Russo, Wensing, "Efficient analytical derivatives of rigid-body dynamics using spatial vector
algebra", IEEE Robotics and Automation Letters 7 (2022) 1776; here in moments of mass, as `rnea`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
from zwang.dynamics.crba import transform_inertia
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.velocities import SpatialVector
from zwang.mechanism.tree import WORLD, Link
from zwang.scalar import MutableArray, fori_loop, table, zeros
from zwang.scalar.stacked_pytree import StackedPytree

AT_REST = SpatialVector(np.zeros(3, int), np.zeros(3, int))


class Subtree(NamedTuple):
    """Sums over the bodies of a subtree: mass, first moment h (3,), second moment J (3, 3), momentum (3,),
    Q = integral r_dot r^T dm (3, 3), and the inertial force with its moment.
    """

    mass: Any
    h: np.ndarray
    J: np.ndarray
    momentum: np.ndarray
    Q: np.ndarray
    force: SpatialVector

    def plus(self, other: Subtree) -> Subtree:
        """The sums over both."""
        return Subtree(
            self.mass + other.mass, self.h + other.h, self.J + other.J, self.momentum + other.momentum,
            self.Q + other.Q, _sum(self.force, other.force),
        )  # fmt: skip

    def inertial(self, a: SpatialVector) -> SpatialVector:
        """I a."""
        trace = self.J[0, 0] + self.J[1, 1] + self.J[2, 2]
        force = self.mass * a.linear + cross(a.angular, self.h)
        return SpatialVector(force, cross(self.h, a.linear) + trace * a.angular - self.J @ a.angular)

    def coriolis(self, dw: np.ndarray) -> SpatialVector:
        """2 B dv for the angular part dw (3,) of dv."""
        trace = self.Q[0, 0] + self.Q[1, 1] + self.Q[2, 2]
        return SpatialVector(2 * cross(dw, self.momentum), 2 * (trace * dw - self.Q @ dw))

    def coriolis_transposed(self, s: SpatialVector) -> np.ndarray:
        """c (3,) for which s^T 2 B dv = c^T dw."""
        trace = self.Q[0, 0] + self.Q[1, 1] + self.Q[2, 2]
        return 2 * (cross(self.momentum, s.linear) + trace * s.angular - self.Q.T @ s.angular)


class JointMotion(NamedTuple):
    """S (6,) of a generalised velocity; dv and da of a displacement along it; and da of the velocity, whose
    dv is S.
    """

    S: SpatialVector
    dv: SpatialVector
    da: SpatialVector
    velocity_da: SpatialVector


class RneaDerivatives:
    """The derivatives of the generalised forces `rnea(tree, q, v, a)` without tendons, at a state whose poses
    are known, for the generalised accelerations a (nv,).

    They are arrays (nv, nv) with a row for each direction i and a column for each force j; only elements of
    velocities of which one moves the other, see `related`, are written, the others are zero.
    """

    def __init__(self, kinematics: Kinematics, a: Any) -> None:
        self.tree = kinematics.tree
        motions, subtrees = _motions_and_subtrees(kinematics, a)
        self._motions, self._subtrees = StackedPytree(motions), StackedPytree(subtrees)

    def by_displacement(self) -> MutableArray:
        """By displacements dq in the tangent space."""

        def wrench(subtree: Subtree, x: JointMotion) -> SpatialVector:
            force = _sum(subtree.inertial(x.da), subtree.coriolis(x.dv.angular))
            return _sum(force, _wrench_cross(x.S, subtree.force))

        return self._over_pairs(wrench, lambda x: (x.dv.angular, x.da))

    def by_velocity(self) -> MutableArray:
        """By the generalised velocities."""

        def wrench(subtree: Subtree, x: JointMotion) -> SpatialVector:
            return _sum(subtree.inertial(x.velocity_da), subtree.coriolis(x.S.angular))

        return self._over_pairs(wrench, lambda x: (x.S.angular, x.velocity_da))

    def by_acceleration(self) -> MutableArray:
        """By the generalised accelerations: the mass matrix without the armature of tendons."""
        found = self._over_pairs(lambda subtree, x: subtree.inertial(x.S), lambda x: (np.zeros(3, int), x.S))
        for link in self.tree.links:
            for k in range(link.v.start, link.v.stop):
                found = found.set((k, k), found[k, k] + link.armature)
        return found

    @cached_property
    def related(self) -> list[tuple[int, int]]:
        """The pairs (i, j) of velocities of one link, or of links of which one carries the other."""
        above = self._velocities_above()
        pairs = [pair for i, own in enumerate(above) for j in own for pair in ((i, j), (j, i))]
        return sorted([*pairs, *self._pairs_of_links()])

    def dense(self, array: MutableArray) -> np.ndarray:
        """The derivatives (nv, nv) of one of the arrays, with a row for each force."""
        found = np.zeros((self.tree.nv, self.tree.nv), int).astype(object)
        for i, j in self.related:
            found[j, i] = array[i, j]
        return found

    def add(self, array: MutableArray, to: MutableArray, factor: Any, first_row: int = 0) -> MutableArray:
        """`to` plus a factor times one of the arrays, from this row on."""
        pairs = table(self.related)

        def visit(k: Any, to: MutableArray) -> MutableArray:
            i, j = pairs[k]
            return to.set((i + first_row, j), to[i + first_row, j] + factor * array[i, j])

        return fori_loop(0, len(pairs), visit, to)

    def _over_pairs(self, wrench: Any, change: Any) -> MutableArray:
        """The derivatives by changes, of which each has a wrench on its subtree, and its dw and da."""
        above = self._velocities_above()
        numbers = [len(own) for own in above]
        counts, starts = table(numbers), table([0, *accumulate(numbers[:-1])])
        # a bound of the places is the sum of the largest start and the largest count
        columns = table([*chain(*above), *[0] * max(numbers, default=0), 0])
        links = table([i for i, link in enumerate(self.tree.links) for _ in range(link.joint.nv)])

        def rows(i: Any) -> Any:
            """What projects the changes of motions in the subtree onto the generalised velocity i."""
            x, subtree = self._motions[i], self._subtrees[links[i]]
            return x, subtree, subtree.inertial(x.S), subtree.coriolis_transposed(x.S)

        def visit(i: Any, found: MutableArray) -> MutableArray:
            x, subtree, I_S, B_S = rows(i)
            own = wrench(subtree, x)

            def pair(t: Any, found: MutableArray) -> MutableArray:
                j = columns[starts[i] + t]
                other = self._motions[j]
                dw, da = change(other)
                found = found.set((i, j), _dot(other.S, own))
                return found.set((j, i), _dot(I_S, da) + B_S @ dw)

            return fori_loop(0, counts[i], pair, found)

        found = fori_loop(0, self.tree.nv, visit, zeros((self.tree.nv, self.tree.nv)))
        of_links = table(self._pairs_of_links())

        def of_link(k: Any, found: MutableArray) -> MutableArray:
            i, j = of_links[k]
            _, _, I_S, B_S = rows(i)
            dw, da = change(self._motions[j])
            return found.set((j, i), _dot(I_S, da) + B_S @ dw)

        return fori_loop(0, len(of_links), of_link, found)

    def _velocities_above(self) -> list[list[int]]:
        """For each generalised velocity those of the links between its link and the world."""
        links, found = self.tree.links, list[list[int]]()
        for link in links:
            above = self.tree.path(link.parent)
            found += [[k for i in above for k in range(links[i].v.start, links[i].v.stop)]] * link.joint.nv
        return found

    def _pairs_of_links(self) -> list[tuple[int, int]]:
        """The pairs of generalised velocities of one link, those of each with itself included."""
        velocities = [range(link.v.start, link.v.stop) for link in self.tree.links]
        return [(i, j) for own in velocities for i in own for j in own]


def _motions_and_subtrees(kinematics: Kinematics, a: Any) -> tuple[list[JointMotion], list[Subtree]]:
    """The motions of the generalised velocities, and the sums over the subtrees of the links."""
    tree, v, a = kinematics.tree, np.asarray(kinematics.v), np.asarray(a)
    world = AT_REST, SpatialVector(-tree.gravity, np.zeros(3, int))  # as in `rnea`
    states = list[tuple[SpatialVector, SpatialVector]]()
    motions, subtrees = list[JointMotion](), list[Subtree]()
    for i, (link, origin) in enumerate(zip(tree.links, _origins(kinematics), strict=True)):
        R, p = kinematics.poses[i].R, kinematics.poses[i].p - origin
        v_parent, a_parent = states[link.parent] if link.parent != WORLD else world
        columns = [_transformed(R, p, s) for s in kinematics.motion_subspaces[i].T]
        joint_velocity = _combination(columns, v[link.v])
        velocity = _sum(v_parent, joint_velocity)
        acceleration = _sum(a_parent, _combination(columns, a[link.v]))
        acceleration = _sum(acceleration, _motion_cross(velocity, joint_velocity))
        states.append((velocity, acceleration))
        for S in columns:
            dv = _motion_cross(v_parent, S)
            da = _sum(_motion_cross(a_parent, S), _motion_cross(v_parent, dv))
            motions.append(JointMotion(S, dv, da, _sum(_motion_cross(velocity, S), dv)))
        subtrees.append(_of_body(link, R, p, velocity, acceleration))
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent != WORLD:
            subtrees[link.parent] = subtrees[link.parent].plus(subtrees[i])
    return motions, subtrees


def _of_body(link: Link, R: Any, p: Any, velocity: SpatialVector, acceleration: SpatialVector) -> Subtree:
    """The sums over the body of a link alone."""
    mass, h, J = transform_inertia(link.mass, link.h, link.J, R, p)
    at_rest = Subtree(mass, h, J, np.zeros(3, int), np.zeros((3, 3), int), AT_REST)
    momentum = at_rest.inertial(velocity)
    # F = I a + v x* (I v)
    force = _sum(at_rest.inertial(acceleration), _wrench_cross(velocity, momentum))
    Q = np.outer(velocity.linear, h) + np.stack([cross(velocity.angular, column) for column in J.T], axis=1)
    return at_rest._replace(momentum=momentum.linear, Q=Q, force=force)


def _origins(kinematics: Kinematics) -> list[Any]:
    """The point for each link that all links of its tree have in common: where the first of them that is not
    on a slide is, so that a distance from the world's origin costs no accuracy.
    """
    links, origins, roots = kinematics.tree.links, dict[int, Any](), list[int]()
    for i, link in enumerate(links):
        roots.append(i if link.parent == WORLD else roots[link.parent])
        if link.joint.kind != "prismatic":
            origins.setdefault(roots[i], kinematics.poses[i].p)
    return [origins.get(root, kinematics.poses[root].p) for root in roots]


def _transformed(R: Any, p: Any, s: Any) -> SpatialVector:
    """A motion s (6,) in the axes and at the origin of a frame with the pose (R, p), in world axes."""
    linear, angular = R @ s[:3], R @ s[3:]
    return SpatialVector(linear + cross(p, angular), angular)


def _combination(columns: Sequence[SpatialVector], factors: Any) -> SpatialVector:
    total = AT_REST
    for x, factor in zip(columns, factors, strict=True):
        total = SpatialVector(total.linear + factor * x.linear, total.angular + factor * x.angular)
    return total


def _sum(x: SpatialVector, y: SpatialVector) -> SpatialVector:
    return SpatialVector(x.linear + y.linear, x.angular + y.angular)


def _dot(x: SpatialVector, y: SpatialVector) -> Any:
    return x.linear @ y.linear + x.angular @ y.angular


def _motion_cross(v: SpatialVector, x: SpatialVector) -> SpatialVector:
    """v x x, the rate of a motion x that is carried along by the velocity v (Featherstone 2008, Eq. 2.31)."""
    return SpatialVector(cross(v.angular, x.linear) + cross(v.linear, x.angular), cross(v.angular, x.angular))


def _wrench_cross(v: SpatialVector, f: SpatialVector) -> SpatialVector:
    """v x* f, the rate of a wrench f that is carried along (Featherstone 2008, Eq. 2.32)."""
    return SpatialVector(cross(v.angular, f.linear), cross(v.angular, f.angular) + cross(v.linear, f.linear))
