"""New names of joints in files whose names would be those of coordinates of other joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from zwang.io.unique_names import UniqueNames
from zwang.mechanism.joint_index import ambiguous_names
from zwang.mechanism.joints import Joint


class Renaming(NamedTuple):
    """The new name of a joint, and the reason with it in a sentence."""

    name: str
    message: str


def renamed_joints(kinds: Mapping[str, type[Joint]]) -> dict[str, Renaming]:
    """The new names, `NAME (joint)`, of the joints that have the name of a coordinate or generalised velocity
    of another joint, by their names in the file.

    kinds: the classes of all joints, by name.
    """
    taken = UniqueNames(kinds)
    found = {}
    for name, other in ambiguous_names(kinds).items():
        new = taken.new(f"{name} (joint)")
        reason = f"joint {name!r} has the name of a coordinate or velocity of the joint {other!r}"
        found[name] = Renaming(new, f"{reason}; it is named {new!r}")
    return found
