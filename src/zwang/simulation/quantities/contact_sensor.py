"""Values of a contact sensor: the contacts between two parts of a mechanism, sorted into slots.

Source: MuJoCo documentation, XML reference, "contact" sensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY, norm
from zwang.algebra.rotations import cross
from zwang.collision import CollisionShape, Pair
from zwang.collision.rays import is_inside
from zwang.dynamics.sensed_motion import subtree_bodies
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.sensors import CONTACT_DATA, ContactSensor
from zwang.scalar import absolute, less, less_equal, logical_and, logical_not, logical_or, maximum, where
from zwang.simulation.quantities.contact_forces import ContactState


class _Match(NamedTuple):
    """A contact that may match: whether it does, whether from the second part to the first, the contact, and
    its place in MuJoCo's order.
    """

    matches: Any
    flipped: bool
    contact: ContactState
    order: Any


def contact_value(
    mechanism: Mechanism,
    kinematics: Kinematics,
    contacts: Sequence[tuple[Pair, ContactState]],
    sensor: ContactSensor,
) -> np.ndarray:
    """The elements of a contact sensor (count * size,): its slots one after the other."""
    candidates = _candidates(mechanism, kinematics, contacts, sensor)
    found: Any = sum((where(c.matches, 1.0, 0.0) for c in candidates), start=0)
    if sensor.reduce == "netforce":
        slots = [_net_force(candidates, found)]
    else:
        slots = _selected(candidates, sensor, found)
    empty = {name: np.zeros(size, int) for name, size in CONTACT_DATA.items()}
    slots += [empty] * (sensor.count - len(slots))
    return np.concatenate([slot[name] for slot in slots[: sensor.count] for name in sensor.data])


def _candidates(
    mechanism: Mechanism,
    kinematics: Kinematics,
    contacts: Sequence[tuple[Pair, ContactState]],
    sensor: ContactSensor,
) -> list[_Match]:
    """The contacts whose shapes match, with their direction."""
    one, two = (_shapes_of(mechanism, part) for part in (sensor.first, sensor.second))
    found = []
    starts: dict[int, int] = {}  # the number of the first contact of each pair
    for k, (pair, contact) in enumerate(contacts):
        start = starts.setdefault(id(pair), k)
        regular = _is_among(one, pair.a) and _is_among(two, pair.b)
        reverse = _is_among(one, pair.b) and _is_among(two, pair.a)
        if not regular and not reverse:
            continue
        matches = less_equal(contact.distance, pair.reach)  # as MuJoCo lists contacts
        if sensor.zone is not None and sensor.frame is not None:
            pose = kinematics.frame_pose(sensor.frame)
            matches = logical_and(matches, is_inside(sensor.zone, pose, contact.position))
        order = 2 * start + _order_in_pair(kinematics, pair, contact, k - start)
        found.append(_Match(matches, not regular, contact, order))
    return found


def _order_in_pair(kinematics: Kinematics, pair: Pair, contact: ContactState, number: int) -> Any:
    """What orders the contacts of one pair as MuJoCo does, below twice their number: the number in the pair,
    and of a box on a plane, with at most four contacts, that of the corner, of eight.
    """
    if pair.kinds != ("plane", "box"):
        return number
    R, p = kinematics.placement_pose(pair.b.placement)
    corner = R.T @ (contact.position + contact.frame[0] * (contact.distance / 2) - p)
    return sum((where(less(0, x), 2**i, 0) for i, x in enumerate(corner)), start=0)


def _shapes_of(mechanism: Mechanism, part: tuple[str, str] | None) -> tuple[str, set[str]] | None:
    """What identifies the shapes of a part: ("shape", names) or ("body", names); None for all shapes."""
    if part is None:
        return None
    kind, name = part
    return ("body", subtree_bodies(mechanism, name)) if kind == "subtree" else (kind, {name})


def _is_among(chosen: tuple[str, set[str]] | None, shape: CollisionShape) -> bool:
    if chosen is None:
        return True
    kind, names = chosen
    return (shape.shape.name if kind == "shape" else shape.body) in names


def _data(match: _Match, found: Any) -> dict[str, np.ndarray]:
    """The fields of one contact.

    In the opposite direction normal and tangent are reversed, and with them the frame is turned about its
    third axis; the force on the other part then has only its third component reversed.
    """
    contact, sign = match.contact, -1 if match.flipped else 1
    turned = np.array([1, 1, sign])
    return {
        "found": np.array([found]),
        "force": contact.force[:3] * turned,
        "torque": contact.force[3:] * turned,
        "distance": np.array([contact.distance]),
        "position": contact.position,
        "normal": contact.frame[0] * sign,
        "tangent": contact.frame[1] * sign,
    }


def _selected(candidates: Sequence[_Match], sensor: ContactSensor, found: Any) -> list[dict[str, Any]]:
    """One slot after the other: the contact of least criterion among those that are left."""
    criteria = [_criterion(sensor, match) for match in candidates]
    taken: list[Any] = [where(match.matches, 0.0, 1.0) for match in candidates]
    fields = [_data(match, found) for match in candidates]
    slots = []
    for _ in range(min(sensor.count, len(candidates))):
        best: tuple[Any, Any] = (np.inf, np.inf)
        chosen: Any = -1
        slot: dict[str, Any] = {name: np.zeros(CONTACT_DATA[name], int) for name in sensor.data}
        for k, criterion in enumerate(criteria):
            better = logical_and(less(taken[k], 0.5), _is_before(criterion, best))
            best = (where(better, criterion[0], best[0]), where(better, criterion[1], best[1]))
            chosen = where(better, k, chosen)
            for name in sensor.data:
                slot[name] = np.array(
                    [where(better, x, y) for x, y in zip(fields[k][name], slot[name], strict=True)]
                )
        taken = [where(less(absolute(chosen - k), 0.5), 1.0, x) for k, x in enumerate(taken)]
        slots.append(slot)
    return slots


def _criterion(sensor: ContactSensor, match: _Match) -> tuple[Any, Any]:
    """The numbers by which contacts are chosen, the least first; the second one decides if the first ones are
    equal.
    """
    if sensor.reduce == "mindist":
        return match.contact.distance, match.order
    if sensor.reduce == "maxforce":
        return -(match.contact.force[:3] @ match.contact.force[:3]), match.order
    return 0, match.order


def _is_before(one: tuple[Any, Any], other: tuple[Any, Any]) -> Any:
    """Whether one pair of numbers is before another one in lexicographic order."""
    tie = logical_and(logical_not(less(other[0], one[0])), less(one[1], other[1]))
    return logical_or(less(one[0], other[0]), tie)


def _net_force(candidates: Sequence[_Match], found: Any) -> dict[str, np.ndarray]:
    """The sum of all contacts in world axes, about the mean of their positions, weighted by the forces."""
    loads = []
    for match in candidates:
        contact, sign = match.contact, -1 if match.flipped else 1
        share = where(match.matches, 1.0, 0.0) * sign
        force, torque = (share * (contact.frame.T @ x) for x in (contact.force[:3], contact.force[3:]))
        loads.append((contact.position, force, torque))
    weights = [norm(force) for _, force, _ in loads]
    total = maximum(sum(weights, start=0), TINY)
    zero = np.zeros(3, int)
    point = sum((w / total * load[0] for w, load in zip(weights, loads, strict=True)), start=zero)
    force = sum((load[1] for load in loads), start=zero)
    torque = sum((t + cross(p - point, f) for p, f, t in loads), start=zero)
    return {
        "found": np.array([found]),
        "force": force,
        "torque": torque,
        "distance": np.zeros(1, int),
        "position": point,
        "normal": np.array([where(less(0, found), 1.0, 0.0), 0, 0]),
        "tangent": np.array([0, where(less(0, found), 1.0, 0.0), 0]),
    }
