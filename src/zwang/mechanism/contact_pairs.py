"""Explicit contact pairs and contact exclusions, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zwang.errors import DescriptionError
from zwang.mechanism.geometry import checked_condim, checked_friction
from zwang.mechanism.numbers import Number, Numbers, checked_solimp, checked_solref, number, number_tuple
from zwang.mechanism.type_validation import validated


@validated
@dataclass(frozen=True)
class ContactPair:
    """Two shapes that can touch regardless of their bit masks, with their own contact attributes.

    geometry: the names of the shapes. friction: coefficients for sliding along two directions, torsional [m],
    rolling about two directions [m]. solreffriction: solref of the friction rows; if empty, that of the
    normal row. The other attributes are those of `Surface`. Raises DescriptionError as `Surface` does.
    """

    name: str
    geometry: tuple[str, str]
    condim: int = 3
    friction: Numbers = (1.0, 1.0, 0.005, 0.0001, 0.0001)
    solref: Numbers = (0.02, 1.0)
    solreffriction: Numbers = ()
    solimp: Numbers = (0.9, 0.95, 0.001, 0.5, 2.0)
    margin: Number = 0.0
    gap: Number = 0.0

    def __post_init__(self):
        where, put = f"contact pair {self.name!r}", object.__setattr__
        put(self, "geometry", _two_names(self.geometry, f"geometry of {where}"))
        put(self, "condim", checked_condim(self.condim, f"condim of {where}"))
        put(self, "friction", checked_friction(self.friction, 5, f"friction of {where}"))
        put(self, "solref", checked_solref(self.solref, f"solref of {where}"))
        solref = number_tuple(self.solreffriction, f"solreffriction of {where}", least=0)
        put(self, "solreffriction", solref and checked_solref(solref, f"solreffriction of {where}"))
        put(self, "solimp", checked_solimp(self.solimp, f"solimp of {where}"))
        for name in ("margin", "gap"):
            put(self, name, number(getattr(self, name), f"{name} of {where}"))


@validated
@dataclass(frozen=True)
class ContactExclude:
    """Two bodies without contacts between their shapes."""

    bodies: tuple[str, str]

    def __post_init__(self):
        object.__setattr__(self, "bodies", _two_names(self.bodies, "bodies of a contact exclusion"))


def _two_names(values: Any, where: str) -> tuple[str, str]:
    """`values` as two names. Raises DescriptionError."""
    names = tuple(values) if isinstance(values, tuple | list) else ()
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise DescriptionError(f"{where} is {values!r}; give two names, such as ('one', 'other')")
    return names
