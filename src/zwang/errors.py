"""The exceptions and warnings of zwang. A message names the error, the allowed values, and the remedy."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from zwang import deprecation

__all__ = [
    "ArgumentError",
    "CompileError",
    "DependentVelocitiesError",
    "DescriptionError",
    "FormatError",
    "InconsistentConstraintsError",
    "LoadError",
    "LoadWarning",
    "MissingExtraError",
    "NonIdealForceError",
    "ParameterError",
    "PlausibilityWarning",
    "ShapeError",
    "SimulationError",
    "SimulationInterrupted",
    "SimulationWarning",
    "SolveError",
    "StateError",
    "TraceError",
    "UnknownNameError",
    "UnsupportedError",
    "WriteError",
    "ZwangError",
    "ZwangWarning",
]

# control, format (with bidirectional), surrogate, private, unassigned, separators
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def visible(text: str) -> str:
    """The text with all control and format characters escaped, except line ends and tabs: ESC becomes \\x1b.

    Names come from files; they must not move a cursor, set colours or a title, or change the reading
    direction.
    """
    if text.isprintable():
        return text
    return "".join(
        repr(c)[1:-1] if c not in "\n\t" and unicodedata.category(c) in _HIDDEN else c for c in text
    )


MOST_NAMES = 12  # that a message lists; of more, only those that are similar
LONGEST_NAME = 200  # characters; longer names occur only in hostile files, and are not compared


def nearest_names(name: object, valid: Iterable[str], count: int = 3) -> list[str]:
    """At most `count` names in `valid` that are similar to `name`, the most similar first; case is ignored.

    Two names are similar where `difflib.SequenceMatcher` gives a ratio of at least 0.6.
    """
    spellings: dict[str, list[str]] = {}
    for known in valid:
        if len(known) <= LONGEST_NAME:
            spellings.setdefault(known.casefold(), []).append(known)
    wanted = str(name)[: LONGEST_NAME + 1]
    if len(wanted) > LONGEST_NAME:
        return []
    close = difflib.get_close_matches(wanted.casefold(), spellings, n=count)
    return [known for folded in close for known in spellings[folded]][:count]


def did_you_mean(name: object, valid: Iterable[str]) -> str:
    """The question after an unknown name: "Did you mean 'a' or 'b'?"; empty if no name is similar."""
    near = [repr(known) for known in nearest_names(name, valid)]
    if not near:
        return ""
    return f"Did you mean {', '.join(near[:-1]) + ' or ' * (len(near) > 1) + near[-1]}?"


class ZwangError(Exception):
    """The base of all errors that zwang raises on purpose. Its text is safe to print: see `visible`."""

    def __str__(self) -> str:
        return visible(super().__str__())


class DescriptionError(ZwangError, ValueError):
    """An invalid mechanism, or an invalid part of one: the message names the part and the remedy."""


class UnknownNameError(ZwangError, KeyError):
    """A name that does not exist; the message lists the valid names, of many only the similar ones."""

    def __init__(self, kind: str, name: object, valid: Iterable[str]):
        super().__init__(kind, name)
        # NumPy's strings become Python's, whose repr is the text alone
        self.kind, self.name = kind, str(name) if isinstance(name, str) else name
        self.valid = tuple(map(str, valid))

    def __str__(self) -> str:
        near = nearest_names(self.name, self.valid)
        names = [*near, *(known for known in self.valid if known not in near)]
        shown = names if len(names) <= MOST_NAMES else near or names[:MOST_NAMES]
        others = len(names) - len(shown)
        listed = ", ".join(map(repr, shown)) + (f", and {others} others" if others else "")
        question = did_you_mean(self.name, near)
        return visible(
            f"there is no {self.kind} {self.name!r}.{' ' * bool(question)}{question} "
            f"The {self.kind} names are: {listed or '(none)'}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickling: the arguments of the constructor, with a name of an unusual type as text."""
        name = self.name if self.name is None or isinstance(self.name, str | int | float) else repr(self.name)
        return type(self), (self.kind, name, self.valid)


class ArgumentError(ZwangError, TypeError):
    """An argument of the wrong type: the message names it and says what is allowed."""


class LoadError(ZwangError, ValueError):
    """A file that cannot be loaded: the message names the file, the element and the remedy."""


class UnsupportedError(LoadError):
    """A file with an element that zwang does not support and that affects the motion."""


class FormatError(ZwangError, ValueError):
    """A mechanism that a file format cannot describe: the message names each part and the remedy."""


class ShapeError(ZwangError, ValueError):
    """An array of the wrong shape: the message names the argument, the shape expected and the shape given."""


class StateError(ZwangError, ValueError):
    """An invalid value in a state: NaN, infinity, a zero quaternion, text."""


class ParameterError(ZwangError, ValueError):
    """A symbol without a value, or a value for a symbol that the mechanism does not have."""


class TraceError(ZwangError, TypeError):
    """Python code needs the value of a traced scalar, which has none."""


class CompileError(ZwangError, RuntimeError):
    """A program that cannot be compiled to machine code."""


class SolveError(ZwangError, RuntimeError):
    """Equations without a solution, or a solver that did not converge: the message names the remedy."""


class InconsistentConstraintsError(SolveError):
    """Hard constraints that no acceleration, or no velocity, satisfies together: the message names them."""


class DependentVelocitiesError(SolveError):
    """Independent velocities that depend on each other, or are fixed by the constraints, in some state."""


class NonIdealForceError(SolveError):
    """The law of a non-ideal constraint that no force, or more than one force, satisfies (Painleve)."""


class SimulationError(ZwangError, RuntimeError):
    """Invalid settings of a simulation."""


class SimulationInterrupted(KeyboardInterrupt):
    """`zw.simulate` was interrupted (Ctrl-C); `recording` is the recording up to there, computed on first
    access.
    """

    def __init__(self, message: str, record: Callable[[], Any]):
        super().__init__(message)
        self._record = record

    @cached_property
    def recording(self) -> Any:
        """The recording (xarray.Dataset) of the completed steps."""
        return self._record()


class WriteError(ZwangError, OSError):
    """A file that could not be written: the message names it and the reason; its previous content is
    unchanged.
    """


class MissingExtraError(ZwangError, ImportError):
    """An optional library is not installed; the message gives the command that installs it."""


class ZwangWarning(UserWarning):
    """The base of all warnings of zwang. Its text is safe to print: see `visible`."""

    def __str__(self) -> str:
        return visible(super().__str__())


class LoadWarning(ZwangWarning):
    """An element of a file was repaired, is missing, or has no effect."""


class PlausibilityWarning(ZwangWarning):
    """A number that is valid but implausible: degrees for radians, millimetres for metres."""


class SimulationWarning(ZwangWarning):
    """A world that failed, or a result of limited validity."""


__getattr__ = deprecation.module_getattr(
    __name__,
    {
        "ContradictionError": "InconsistentConstraintsError",
        "DependentSpeedsError": "DependentVelocitiesError",
        "WorkingForceError": "NonIdealForceError",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
