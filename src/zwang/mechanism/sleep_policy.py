"""Which kinematic trees of a mechanism may sleep, by MuJoCo's rules.

A tree sleeps or is awake as a whole; the motion of trees that may sleep is in `zwang.simulation.sleeping`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zwang.errors import DescriptionError
from zwang.mechanism.consistency import references
from zwang.mechanism.force_elements import Actuator, Motor, PointSpring, Spring
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.tree import WORLD

SLEEP = "sleep"
"""The enable flag of the options without which all bodies stay awake."""


def sleep_policies(mechanism: Mechanism) -> tuple[str, ...]:
    """For each kinematic tree "never", "allowed", or "init", which sleeps from the beginning.

    `Body.sleep` of the first body with joints decides. With "auto" a tree may sleep unless an actuator acts
    on it, or a spring, a damper or a tendon with one of these, or with an actuator, connects it with another
    tree, or a tendon with two others. Without the option "sleep" no tree may.
    Raises DescriptionError for a tree that must not sleep, and whose `Body.sleep` is "allowed" or "init".
    Source: MuJoCo documentation, XML reference, "body/sleep".
    """
    count = max(mechanism.tree.kinematic_trees, default=-1) + 1
    if SLEEP not in mechanism.options.enabled:
        return ("never",) * count
    given = ["auto"] * count
    for body in mechanism.bodies:
        if body.sleep != "auto":
            [tree] = _trees_of(mechanism, [("body", body.name)])
            given[tree] = body.sleep
    actuated = {
        t for f in mechanism.forces if isinstance(f, Actuator | Motor) for t in _of_part(mechanism, f)
    }
    connected = _connected(mechanism)
    for tree, why in {**dict(connected), **_with_activation(mechanism)}.items():
        if given[tree] in ("allowed", "init"):
            body = _first_body(mechanism, tree)
            raise DescriptionError(f"body {body!r} has sleep={given[tree]!r}, but {why}; remove one of them")
    awake = {*actuated, *connected}
    return tuple(
        ("never" if tree in awake else "allowed") if policy == "auto" else policy
        for tree, policy in enumerate(given)
    )


def _connected(mechanism: Mechanism) -> dict[int, str]:
    """The trees that elements without constraint rows connect with others, and what does, in words."""
    found: dict[int, str] = {}
    for force in mechanism.forces:
        if isinstance(force, Spring | PointSpring):
            trees = _of_part(mechanism, force)
            if len(trees) > 1:
                found |= dict.fromkeys(trees, "a spring connects it with another kinematic tree")
    driven = {f.tendon for f in mechanism.forces if isinstance(f, Actuator)}
    for tendon in mechanism.tendons:
        trees = _of_tendon(mechanism, tendon)
        pulls = tendon.has_spring or tendon.has_damper or tendon.name in driven
        if len(trees) > 2 or (len(trees) == 2 and pulls):
            found |= dict.fromkeys(trees, f"tendon {tendon.name!r} connects it with another kinematic tree")
    return found


def _with_activation(mechanism: Mechanism) -> dict[int, str]:
    """The trees on which actuators with states act, and which ones, in words."""
    return {
        tree: f"actuator {force.name!r}, which has a state, acts on it"
        for force in mechanism.forces
        if isinstance(force, Actuator) and force.states
        for tree in _of_part(mechanism, force)
    }


def _of_part(mechanism: Mechanism, part: Any) -> set[int]:
    """The trees on which a force element acts."""
    return _trees_of(mechanism, references(part))


def _of_tendon(mechanism: Mechanism, tendon: Tendon) -> set[int]:
    """The trees that change the length of a tendon."""
    parts = [("joint", name) for name, _ in tendon.joints]
    return _trees_of(mechanism, [*parts, *(("frame", name) for name in tendon.path if name is not None)])


def _trees_of(mechanism: Mechanism, parts: Iterable[tuple[str, str]]) -> set[int]:
    """The trees of these parts, (kind, name)."""
    found: set[int] = set()
    for kind, name in parts:
        if kind == "tendon":
            found |= _of_tendon(mechanism, next(t for t in mechanism.tendons if t.name == name))
        elif kind == "joint":
            found.add(mechanism.tree.kinematic_trees[mechanism.joint(name).v.start])
        elif (link := mechanism.tree.placement(name).link) != WORLD:
            found.add(mechanism.tree.kinematic_trees[mechanism.tree.links[link].v.start])
    return found


def _first_body(mechanism: Mechanism, tree: int) -> str:
    """The name of the first body with joints of a tree."""
    trees = mechanism.tree.kinematic_trees
    return next(joint.body for joint in mechanism.joints if trees[joint.v.start] == tree)
