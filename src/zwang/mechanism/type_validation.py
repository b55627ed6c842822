"""Validation of values against type annotations, for fields of dataclasses and arguments of functions."""

from __future__ import annotations

import ast
import fractions
import functools
import inspect
import numbers
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import numpy as np

from zwang.errors import ArgumentError, DescriptionError, ZwangError, did_you_mean
from zwang.scalar import is_scalar

Class = TypeVar("Class", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])

LARGEST = 2**1023  # of the integers that can be converted to a float


class TypeCheck(NamedTuple):
    """The predicate of an annotation, and the description of the accepted values for messages."""

    accepts: Callable[[Any], bool]
    description: str


_DESCRIPTIONS = {
    "Mechanism": "a zw.Mechanism, as zw.load(path) returns",
    "Workspace": "a result of zw.robot.workspace",
}


def _is_real(value: Any) -> bool:
    if type(value) is float:  # the common case; instance checks against abstract base classes are slow
        return True
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < LARGEST
    return isinstance(value, numbers.Real | np.floating | np.integer) and not isinstance(
        value, np.timedelta64
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


_SIMPLE = {
    "None": TypeCheck(lambda x: x is None, "None"),
    "str": TypeCheck(lambda x: isinstance(x, str), "a string"),
    "bool": TypeCheck(lambda x: isinstance(x, bool | np.bool_), "True or False"),
    "int": TypeCheck(_is_integer, "an integer"),
    "float": TypeCheck(lambda x: _is_real(x) and x == x, "a number"),
    "Number": TypeCheck(
        lambda x: (_is_real(x) and x == x) or (not isinstance(x, int | float) and is_scalar(x)), "a number"
    ),
    "Path": TypeCheck(lambda x: isinstance(x, os.PathLike), "a path"),
    "os.PathLike[str]": TypeCheck(lambda x: isinstance(x, os.PathLike), "a path"),
}


def validated(kind: Class) -> Class:
    """Class decorator for dataclasses: fields are validated against their annotations.

    Lists and arrays become tuples. If building fails by an error other than zwang's own, the invalid field is
    named. Instances raise DescriptionError.
    """
    build = kind.__init__
    checks_of_fields = functools.cache(lambda: _field_checks(kind))

    @functools.wraps(build)
    def built(self: Any, *arguments: Any, **named: Any) -> None:
        try:
            build(self, *arguments, **named)
        except ZwangError:
            raise
        except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
            given = _bound(kind, arguments, named)
            _check_fields(kind, given, checks_of_fields())
            shown = ", ".join(f"{name} = {short_repr(value)}" for name, value in given.items())
            raise DescriptionError(f"{kind.__name__} cannot be built from {shown}: {error}") from error
        if type(self) is kind:
            _convert_fields(self, checks_of_fields())
            _check_fields(kind, vars(self), checks_of_fields())

    kind.__init__ = built  # type: ignore[misc]
    return kind


def _bound(kind: type, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name. Raises TypeError, as Python does, where they do not match the signature."""
    signature = inspect.signature(kind)
    for name in named:
        if name not in signature.parameters:
            question, valid = did_you_mean(name, signature.parameters), ", ".join(signature.parameters)
            raise TypeError(f"{kind.__name__} has no argument {name!r}. {question} It has: {valid}")
    try:
        return signature.bind(*arguments, **named).arguments
    except TypeError as error:
        raise TypeError(f"{kind.__name__}: {error}") from None


def validated_arguments(*exempt: str) -> Callable[[Function], Function]:
    """Decorator for public functions: arguments are validated against their annotations.

    exempt: parameters that the function validates itself, as it does those collected by *args or **kwargs.
    For a list of names, a single name is accepted; the function receives a list of one. The function raises
    ArgumentError, naming the argument.
    """

    def decorate(function: Function) -> Function:
        parameters = inspect.signature(function).parameters.values()
        # the arguments collected by *args have no annotation of their own: the function validates them
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        lists = {p.name for p in parameters if _is_list_of_names(str(p.annotation))} - {*exempt}
        checks_of_parameters = functools.cache(lambda: _parameter_checks(function, exempt))

        def as_list(name: str, value: Any) -> Any:
            return (value,) if name in lists and isinstance(value, str) else value

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            checks = checks_of_parameters()
            if lists:
                first = [as_list(name, value) for name, value in zip(names, arguments, strict=False)]
                arguments = (*first, *arguments[len(first) :])
                named = {name: as_list(name, value) for name, value in named.items()}
            for name, value in (*zip(names, arguments, strict=False), *named.items()):
                if name in checks and not checks[name].accepts(value):
                    what = f"{name} of {function.__name__} is {short_repr(value)}"
                    raise ArgumentError(f"{what}; it must be {checks[name].description}")
            return function(*arguments, **named)

        return called  # type: ignore[return-value]

    return decorate


def _is_list_of_names(annotation: str) -> bool:
    """Whether an annotation stands for a list of strings, and not also for one string."""
    parts = set(_split(annotation, "|"))
    return bool(parts & {"Sequence[str]", "Iterable[str]"}) and "str" not in parts


def short_repr(value: Any) -> str:
    """The repr of a value, truncated to 60 characters."""
    try:
        text = repr(value)
    except Exception:  # the repr of a user's class can raise anything
        text = f"a {type(value).__name__}"
    return text if len(text) < 60 else text[:57] + "..."


def _convert_fields(part: Any, checks: Mapping[str, TypeCheck]) -> None:
    """Replace lists and arrays by tuples, and fractions and NumPy scalars by Python numbers."""
    for name, check in checks.items():
        value = getattr(part, name)
        if isinstance(value, list | np.ndarray) and check.description != "a number":
            items = value.tolist() if isinstance(value, np.ndarray) and value.ndim else value
            object.__setattr__(part, name, tuple(items))
        elif isinstance(value, fractions.Fraction | np.number):
            object.__setattr__(part, name, value.item() if isinstance(value, np.number) else float(value))


def _check_fields(kind: type, given: Mapping[str, Any], checks: Mapping[str, TypeCheck]) -> None:
    for field, check in checks.items():
        if field in given and not check.accepts(given[field]):
            where = f"{field} of {kind.__name__.lower()}"
            name = given.get("name")
            where += f" {name!r}" if isinstance(name, str) and name and field != "name" else ""
            raise DescriptionError(f"{where} is {short_repr(given[field])}; it must be {check.description}")


def _field_checks(kind: type) -> dict[str, TypeCheck]:
    namespace = vars(sys.modules[kind.__module__])
    found = {f.name: _check_of(str(f.type), namespace) for f in fields(kind)}  # type: ignore[arg-type]
    return {name: check for name, check in found.items() if check is not None}


def _parameter_checks(function: Callable[..., Any], exempt: tuple[str, ...]) -> dict[str, TypeCheck]:
    namespace = getattr(function, "__globals__", {})
    parameters = inspect.signature(function).parameters.values()
    single = [
        p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in exempt
    ]
    found = {p.name: _check_of(str(p.annotation), namespace) for p in single}
    return {name: check for name, check in found.items() if check is not None}


def _check_of(annotation: str, namespace: Mapping[str, Any]) -> TypeCheck | None:
    """The check of an annotation, whose names are looked up in `namespace`; None if it cannot be checked."""
    parts = [_check_of_alternative(part, namespace) for part in _split(annotation, "|")]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if len(known) == 1:
        return known[0]
    descriptions = list(dict.fromkeys(part.description for part in known))
    # the last alternative is tried first: it is often None, the most frequent value
    first, *others = (part.accepts for part in reversed(known))
    return TypeCheck(lambda x: first(x) or any(accepts(x) for accepts in others), " or ".join(descriptions))


def _check_of_alternative(part: str, namespace: Mapping[str, Any]) -> TypeCheck | None:
    """The check of an annotation without `|` at its top level."""
    if part in _SIMPLE:
        return _SIMPLE[part]
    head, bracket, inside = part.partition("[")
    if bracket and head in ("tuple", "Sequence", "Iterable"):
        return _check_of_sequence(head, _split(inside[:-1], ","), namespace)
    if head == "Literal":
        allowed = ast.literal_eval(f"({inside[:-1]},)")
        return TypeCheck(lambda x: isinstance(x, str) and x in allowed, " or ".join(map(repr, allowed)))
    if head == "Mapping":
        return TypeCheck(lambda x: isinstance(x, Mapping), "a dictionary")
    if head == "Callable":
        return TypeCheck(callable, "a function")
    kind = namespace.get(part)
    if get_origin(kind) is Literal:  # an alias
        names = get_args(kind)
        return TypeCheck(lambda x: isinstance(x, str) and x in names, " or ".join(map(repr, names)))
    if isinstance(kind, type) and kind is not Any:
        return TypeCheck(lambda x: isinstance(x, kind), _DESCRIPTIONS.get(part, f"a {part}"))
    if isinstance(kind, types.GenericAlias):
        return _check_of(str(kind).replace("collections.abc.", ""), namespace)
    return _check_of(kind, namespace) if isinstance(kind, str) else None


def _check_of_sequence(head: str, inside: list[str], namespace: Mapping[str, Any]) -> TypeCheck | None:
    """The check of tuple[...], Sequence[...] or Iterable[...]; a string is a sequence of strings."""
    fixed = head == "tuple" and inside[-1] != "..."
    items = [_check_of(item, namespace) for item in inside if item != "..."]
    if not fixed and items[0] is None:
        return TypeCheck(_is_sequence, "a list")
    known = [TypeCheck(lambda _: True, "any") if item is None else item for item in items]
    string = head != "tuple" and inside[0] == "str"

    def accepts(value: Any) -> bool:
        if isinstance(value, str):
            return string
        if head == "Iterable" and isinstance(value, Iterable):
            if not isinstance(value, Sequence | np.ndarray | Set | Mapping):
                return True  # an iterator, which must not be consumed here
        if not _is_sequence(value) or (fixed and len(value) != len(known)):
            return False
        checks = known if fixed else known * len(value)
        return all(check.accepts(x) for check, x in zip(checks, value, strict=True))

    descriptions = [item.description for item in known]
    text = f"({', '.join(descriptions)})" if fixed else f"a list in which each element is {descriptions[0]}"
    return TypeCheck(accepts, text)


def _is_sequence(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return True
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence | Mapping | Set) and not isinstance(
        value, str | bytes | bytearray | memoryview
    )


def _split(text: str, separator: str) -> list[str]:
    """The parts of an annotation between separators outside brackets."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == separator and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [part.strip() for part in found]
