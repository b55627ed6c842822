"""Values against the types that annotations declare: of the fields of parts, and of the arguments of public functions."""

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
from typing import Any, NamedTuple, TypeVar

import numpy as np

from zwang.errors import ArgumentError, DescriptionError, ZwangError
from zwang.scalar import is_scalar

Made = TypeVar("Made", bound=type)
Called = TypeVar("Called", bound=Callable[..., Any])

LARGEST = 2**1023  # of integers that a float can hold


class Declared(NamedTuple):
    """What an annotation asks for: whether a value is that, and how to say it."""

    holds: Callable[[Any], bool]
    words: str


_WORDS = {
    "Mechanism": "a zw.Mechanism, as zw.load(path) returns",
    "Workspace": "what zw.robot.workspace returns",
}


def _is_real(value: Any) -> bool:
    if type(value) is float:  # the abstract classes below take long to ask
        return True
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < LARGEST
    return isinstance(value, numbers.Real | np.floating | np.integer) and not isinstance(
        value, np.timedelta64
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


_SIMPLE = {
    "None": Declared(lambda x: x is None, "None"),
    "str": Declared(lambda x: isinstance(x, str), "a text"),
    "bool": Declared(lambda x: isinstance(x, bool | np.bool_), "True or False"),
    "int": Declared(_is_whole, "a whole number"),
    "float": Declared(lambda x: _is_real(x) and x == x, "a number"),
    "Number": Declared(
        lambda x: (_is_real(x) and x == x) or (not isinstance(x, int | float) and is_scalar(x)), "a number"
    ),
    "Path": Declared(lambda x: isinstance(x, os.PathLike), "a path"),
    "os.PathLike[str]": Declared(lambda x: isinstance(x, os.PathLike), "a path"),
}


def validated(kind: Made) -> Made:
    """A dataclass of parts whose fields are held to their annotations when it is built; lists become tuples.

    Where building fails by an error that is none of zwang's, the field at fault is named. Raises DescriptionError.
    """
    build = kind.__init__
    known = functools.cache(lambda: _of_fields(kind))

    @functools.wraps(build)
    def built(self: Any, *arguments: Any, **named: Any) -> None:
        try:
            build(self, *arguments, **named)
        except ZwangError:
            raise
        except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
            given = (
                inspect.signature(kind).bind(*arguments, **named).arguments
            )  # a wrong signature stays Python's error
            _check(kind, given, known())
            shown = ", ".join(f"{name} = {short_repr(value)}" for name, value in given.items())
            raise DescriptionError(f"no {kind.__name__} can be made of {shown}: {error}") from error
        if type(self) is kind:
            _settle(self, known())
            _check(kind, vars(self), known())

    kind.__init__ = built  # type: ignore[misc]
    return kind


def validated_arguments(*leave: str) -> Callable[[Called], Called]:
    """For public functions: arguments are held to their annotations, but those that the function checks itself.

    Raises ArgumentError, naming the argument.
    """

    def decorate(function: Called) -> Called:
        names = list(inspect.signature(function).parameters)
        known = functools.cache(lambda: _of_parameters(function, leave))

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            table = known()
            for name, value in (*zip(names, arguments, strict=False), *named.items()):
                if name in table and not table[name].holds(value):
                    what = f"{name} of {function.__name__} is {short_repr(value)}"
                    raise ArgumentError(f"{what}; it must be {table[name].words}")
            return function(*arguments, **named)

        return called  # type: ignore[return-value]

    return decorate


def short_repr(value: Any) -> str:
    """A value as text of bounded length."""
    try:
        text = repr(value)
    except Exception:  # what a stranger's object does to show itself is its own affair
        text = f"a {type(value).__name__}"
    return text if len(text) < 60 else text[:57] + "..."


def _settle(part: Any, known: Mapping[str, Declared]) -> None:
    for name, words in known.items():
        value = getattr(part, name)
        if isinstance(value, list | np.ndarray) and words.words != "a number":
            object.__setattr__(
                part, name, tuple(value.tolist() if isinstance(value, np.ndarray) and value.ndim else value)
            )
        elif isinstance(value, fractions.Fraction | np.number):
            object.__setattr__(part, name, value.item() if isinstance(value, np.number) else float(value))


def _check(kind: type, given: Mapping[str, Any], known: Mapping[str, Declared]) -> None:
    for name, declared in known.items():
        if name in given and not declared.holds(given[name]):
            where = f"{name} of {kind.__name__.lower()}"
            own = given.get("name")
            where += f" {own!r}" if isinstance(own, str) and own and name != "name" else ""
            raise DescriptionError(f"{where} is {short_repr(given[name])}; it must be {declared.words}")


def _of_fields(kind: type) -> dict[str, Declared]:
    found = {f.name: _declared(str(f.type), vars(sys.modules[kind.__module__])) for f in fields(kind)}  # type: ignore[arg-type]
    return {name: declared for name, declared in found.items() if declared is not None}


def _of_parameters(function: Callable[..., Any], leave: tuple[str, ...]) -> dict[str, Declared]:
    names = getattr(function, "__globals__", {})
    parameters = inspect.signature(function).parameters.values()
    single = [
        p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in leave
    ]
    found = {p.name: _declared(str(p.annotation), names) for p in single}
    return {name: declared for name, declared in found.items() if declared is not None}


def _declared(annotation: str, names: Mapping[str, Any]) -> Declared | None:
    """What an annotation asks for; None where it asks for nothing that can be told."""
    parts = [_one(part, names) for part in _split(annotation, "|")]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if len(known) == 1:
        return known[0]
    words = list(dict.fromkeys(part.words for part in known))
    first, *others = (part.holds for part in reversed(known))  # None stands last, and is what most values are
    return Declared(lambda x: first(x) or any(holds(x) for holds in others), " or ".join(words))


def _one(part: str, names: Mapping[str, Any]) -> Declared | None:
    if part in _SIMPLE:
        return _SIMPLE[part]
    head, bracket, inside = part.partition("[")
    if bracket and head in ("tuple", "Sequence", "Iterable"):
        return _of_several(head, _split(inside[:-1], ","), names)
    if head == "Literal":
        allowed = ast.literal_eval(f"({inside[:-1]},)")
        return Declared(lambda x: isinstance(x, str) and x in allowed, " or ".join(map(repr, allowed)))
    if head == "Mapping":
        return Declared(lambda x: isinstance(x, Mapping), "a dictionary")
    if head == "Callable":
        return Declared(callable, "a function")
    kind = names.get(part)
    if isinstance(kind, type) and kind is not Any:
        return Declared(lambda x: isinstance(x, kind), _WORDS.get(part, f"a {part}"))
    if isinstance(kind, types.GenericAlias):
        return _declared(str(kind).replace("collections.abc.", ""), names)
    return _declared(kind, names) if isinstance(kind, str) else None


def _of_several(head: str, inside: list[str], names: Mapping[str, Any]) -> Declared | None:
    """A list of values of one kind, or of a fixed length; a text counts as a sequence of texts."""
    fixed = head == "tuple" and inside[-1] != "..."
    items = [_declared(item, names) for item in inside if item != "..."]
    if not fixed and items[0] is None:
        return Declared(_is_several, "a list")
    plain = [Declared(lambda _: True, "any") if item is None else item for item in items]
    text = head != "tuple" and inside[0] == "str"

    def holds(value: Any) -> bool:
        if isinstance(value, str):
            return text
        if (
            head == "Iterable"
            and isinstance(value, Iterable)
            and not isinstance(value, Sequence | np.ndarray | Set | Mapping)
        ):
            return not isinstance(value, bytes)  # it can be walked once only, by the function itself
        if not _is_several(value) or (fixed and len(value) != len(plain)):
            return False
        kinds = plain if fixed else plain * len(value)
        return all(item.holds(x) for item, x in zip(kinds, value, strict=True))

    words = [item.words for item in plain]
    return Declared(holds, f"({', '.join(words)})" if fixed else f"a list, each of it {words[0]}")


def _is_several(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence | Mapping | Set) and not isinstance(
        value, str | bytes | bytearray | memoryview
    )


def _split(text: str, at: str) -> list[str]:
    """The parts of an annotation between separators that stand in no bracket."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == at and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [part.strip() for part in found]
