"""The constants of a mechanism that decide which of its bodies sleep, and when."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import norm
from zwang.collision.pairs import candidate_pairs
from zwang.collision.shapes import radius, sizes_of, type_of_shape
from zwang.constraint.contact import contact_name
from zwang.constraint.hard import is_hard_constraint
from zwang.errors import SimulationError
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import placement_pose
from zwang.mechanism.consistency import references
from zwang.mechanism.constraints import Connect, Distance, JointCoupling, Weld
from zwang.mechanism.force_elements import Wrench
from zwang.mechanism.geometry import HeightField, Plane
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.mocap import mocap_groups
from zwang.mechanism.numbers import exact_array
from zwang.mechanism.sleep_policy import SLEEP, sleep_policies
from zwang.mechanism.tree import WORLD
from zwang.scalar import (
    maximum,
)
from zwang.simulation.constraint_options import contact_enabled
from zwang.simulation.impact_stage import has_hard_contacts

SMALLEST_SIZE = 1e-5  # [m] of a body, as in MuJoCo
SLEEPING_INTEGRATORS = ("euler", "implicitfast", "implicit")
SOFT = (Connect, Weld, Distance, JointCoupling)  # constraints that may connect trees that sleep


class SleepRule(NamedTuple):
    """What decides about sleep, for trees 0, ..., count - 1.

    tree_of (nv,): the tree of each velocity. velocities: the numbers of those of each tree. lengths (nv,):
    l_k. tolerance [m/s]. may_sleep, initially (count,): whether a tree may sleep, and does so from the
    beginning, if it is at `home` (nq,). coordinates: of each tree, as slices of q. inputs: for each tree the
    numbers of the controls that are forces from outside. mocap: the names of contacts and constraints with
    mocap bodies.
    """

    tree_of: tuple[int, ...]
    velocities: tuple[tuple[int, ...], ...]
    lengths: tuple[Any, ...]
    tolerance: float
    may_sleep: tuple[bool, ...]
    initially: tuple[bool, ...]
    home: tuple[Any, ...]
    coordinates: tuple[tuple[slice, ...], ...]
    inputs: tuple[tuple[int, ...], ...]
    mocap: frozenset[str]

    @property
    def count(self) -> int:
        """The number of kinematic trees."""
        return len(self.may_sleep)


def sleeping_trees(mechanism: Mechanism) -> int:
    """The number of the kinematic trees if some of them may sleep, else 0."""
    policies = sleep_policies(mechanism)
    return 0 if all(policy == "never" for policy in policies) else len(policies)


def sleeping_bodies(mechanism: Mechanism) -> dict[str, int]:
    """The numbers of the trees that may sleep, by the name of their first body with joints."""
    policies, trees = sleep_policies(mechanism), mechanism.tree.kinematic_trees
    found: dict[str, int] = {}
    for joint in mechanism.joints:
        tree = trees[joint.v.start]
        if policies[tree] != "never" and tree not in found.values():
            found[joint.body] = tree
    return found


def check_sleep(mechanism: Mechanism, integrator: str) -> None:
    """Raises SimulationError if bodies may sleep in a simulation that cannot stop them."""
    if not sleeping_trees(mechanism):
        return
    what = None
    if integrator not in SLEEPING_INTEGRATORS:
        what = f"the integrator {integrator!r}; use one of {', '.join(map(repr, SLEEPING_INTEGRATORS))}"
    elif has_hard_contacts(mechanism):
        what = "hard contacts; give them a softness"
    elif others := [c for c in mechanism.constraints if not isinstance(c, SOFT) or is_hard_constraint(c)]:
        what = f"the constraint {others[0].name!r}; give only soft loops and couplings of joints"
    elif "island" in mechanism.options.disabled:
        what = "the disabled option 'island'; enable it"
    if what is not None:
        raise SimulationError(
            f"mechanism {mechanism.name!r} has bodies that may sleep (the enabled option {SLEEP!r}), which "
            f"does not work with {what}, or disable sleep"
        )


def sleep_rule(mechanism: Mechanism) -> SleepRule | None:
    """The rule of a mechanism in which some tree may sleep, else None."""
    if not sleeping_trees(mechanism):
        return None
    policies, tree_of = sleep_policies(mechanism), mechanism.tree.kinematic_trees
    coordinates: list[list[slice]] = [[] for _ in policies]
    velocities: list[list[int]] = [[] for _ in policies]
    for joint in mechanism.joints:
        coordinates[tree_of[joint.v.start]].append(joint.q)
        velocities[tree_of[joint.v.start]] += range(joint.v.start, joint.v.stop)
    return SleepRule(
        tree_of,
        tuple(map(tuple, velocities)),
        tuple(velocity_lengths(mechanism)),
        mechanism.options.sleep_tolerance,
        tuple(policy != "never" for policy in policies),
        tuple(policy == "init" for policy in policies),
        tuple(mechanism.home or mechanism.neutral),
        tuple(map(tuple, coordinates)),
        _inputs_of_trees(mechanism, len(policies)),
        _mocap_constraints(mechanism),
    )


def velocity_lengths(mechanism: Mechanism) -> list[Any]:
    """For each generalised velocity the length that makes it a velocity of points: 1 for translations, the
    size of the body [m] for rotations.

    The size is the largest distance from the centre of mass to a joint of the body or of its children, and to
    a point of the bounding sphere of a shape. Source: MuJoCo, `dof_length`, computed by `mj_setConst`.
    """
    poses = Kinematics(mechanism.tree, exact_array(mechanism.home or mechanism.neutral)).poses
    centres = {"world": None} | {b.name: _point(mechanism, poses, b.name, b.com) for b in mechanism.bodies}
    sizes: dict[str, Any] = dict.fromkeys(centres, SMALLEST_SIZE)
    for body in mechanism.bodies:
        for joint in body.joints:
            anchor = _point(mechanism, poses, body.name, getattr(joint, "position", (0, 0, 0)))
            for name in (body.name, body.parent):
                if centres[name] is not None:
                    sizes[name] = maximum(sizes[name], norm(anchor - centres[name]))
        for shape in body.geometry:
            if not isinstance(shape, HeightField | Plane):
                far = radius(type_of_shape(shape), sizes_of(shape))
                distance = norm(np.array(shape.position) - np.array(body.com))
                sizes[body.name] = maximum(sizes[body.name], far + distance)
    return [
        1 if part.kind == "prismatic" else sizes[index.body]
        for index in mechanism.joints
        for part in index.joint.elementary_joints
        for _ in range(part.nv)
    ]


def _point(mechanism: Mechanism, poses: Any, body: str, point: Any) -> np.ndarray:
    """The position of a point of a body in world axes."""
    pose = placement_pose(poses, mechanism.tree.placement(body))
    return pose.p + pose.R @ np.array(point)


def _inputs_of_trees(mechanism: Mechanism, count: int) -> tuple[tuple[int, ...], ...]:
    """For each tree the numbers of the controls that are forces from outside: wrenches, or the generalised
    forces of a mechanism without inputs.
    """
    tree, found = mechanism.tree, [list[int]() for _ in range(count)]
    if not mechanism.inputs:
        for k, own in enumerate(tree.kinematic_trees):
            found[own].append(k)
    for force in mechanism.forces:
        if isinstance(force, Wrench) and force.input is not None:
            link = tree.placement(force.body).link
            if link != WORLD:
                own = tree.kinematic_trees[tree.links[link].v.start]
                found[own].append(mechanism.inputs.index(force.input))
    return tuple(map(tuple, found))


def _mocap_constraints(mechanism: Mechanism) -> frozenset[str]:
    """The names of the contacts and constraints with mocap bodies, and with bodies fixed to these.

    Raises SimulationError for such a constraint without a name.
    """
    bodies = mocap_groups(mechanism.bodies)
    if not bodies:
        return frozenset()
    fixed = {*bodies} | {frame.name for frame in mechanism.frames if frame.body in bodies}
    names = set()
    for constraint in mechanism.constraints:
        if any(name in fixed for _, name in references(constraint)):
            if not constraint.name:
                kind = type(constraint).__name__
                raise SimulationError(f"a {kind} with a mocap body, in a world that sleeps, needs a name")
            names.add(constraint.name)
    for pair in candidate_pairs(mechanism) if contact_enabled(mechanism) else ():
        if pair.a.body in bodies or pair.b.body in bodies:
            names |= {contact_name(pair, k) for k in range(pair.count)}
    return frozenset(names)
