"""The switches of equality constraints as parameters of a mechanism."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from zwang.errors import DescriptionError
from zwang.mechanism.consistency import EQUALITIES
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.scalar import symbol


class EqualityParameters(NamedTuple):
    """A mechanism whose soft loops and couplings have symbols as switches, and the values of these symbols by
    name.

    The symbol of a constraint is `NAME.active`: 1 where it acts, 0 where it does not.
    """

    mechanism: Mechanism
    values: dict[str, float]


@validated_arguments()
def with_equality_parameters(mechanism: Mechanism) -> EqualityParameters:
    """The mechanism with switches of its soft loops and couplings as parameters, and their values.

    mechanism: one with such constraints, active or not, as those of an MJCF file (its element `equality`).
    The values, which are those of the description at first, are the `params` of compiled functions and of
    `zw.simulate`. They may differ from world to world and from call to call of `step`, so that a gripper's
    weld, for example, is switched on when it holds an object; it acts as MuJoCo's `eq_active`. Hard
    constraints and those without a name have no switches. Raises DescriptionError for a mechanism without
    constraints that have one.
    """
    constraints, values = [], {}
    for group, value in ((mechanism.constraints, 1.0), (mechanism.inactive_constraints, 0.0)):
        for constraint in group:
            if isinstance(constraint, EQUALITIES) and constraint.softness is not None and constraint.name:
                name = f"{constraint.name}.active"
                values[name] = value
                constraint = replace(constraint, active=symbol(name))
            elif value == 0:
                continue
            constraints.append(constraint)
    if not values:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has no soft loop or coupling with a name; give one a zw.Softness"
        )
    return EqualityParameters(mechanism.replace(constraints=constraints, inactive_constraints=()), values)
