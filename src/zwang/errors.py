"""The exceptions and warnings of zwang. Each says what is wrong, by name, what is allowed, and the fix."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # control, format (bidi among them), surrogate, private, separators


def visible(text: str) -> str:
    """The text with every character that a terminal would obey, not show, as its escape: ESC becomes \\x1b. Line ends and tabs stay.

    Names come from files, and what they hold must not move a cursor, colour a line, set a title or turn the reading direction.
    """
    if text.isprintable():
        return text
    return "".join(
        repr(c)[1:-1] if c not in "\n\t" and unicodedata.category(c) in _HIDDEN else c for c in text
    )

LONGEST_NAME = 200  # characters; longer names, which only hostile files have, are not compared


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
    """A mechanism, or a part of one, that cannot be: the message names the part and the mend."""


class UnknownNameError(ZwangError, KeyError):
    """A name that does not exist; the message lists the valid names, similar ones first."""

    def __init__(self, kind: str, name: object, valid: Iterable[str]):
        super().__init__(kind, name)
        self.kind, self.name, self.valid = kind, name, tuple(valid)

    def __str__(self) -> str:
        near = nearest_names(self.name, self.valid)
        names = [*near, *(known for known in self.valid if known not in near)]
        listed = ", ".join(repr(known) for known in names[:20]) + (", ..." if len(names) > 20 else "")
        question = did_you_mean(self.name, near)
        return visible(
            f"there is no {self.kind} {self.name!r}.{' ' * bool(question)}{question} "
            f"The {self.kind} names are: {listed or '(none)'}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """As it was made, so that it comes back from another process; a name that is no plain value comes as its text."""
        name = self.name if self.name is None or isinstance(self.name, str | int | float) else repr(self.name)
        return type(self), (self.kind, name, self.valid)


class ArgumentError(ZwangError, TypeError):
    """An argument of another kind than a function takes: the message names it and says what is allowed."""


class LoadError(ZwangError, ValueError):
    """A file that cannot be read as a mechanism: the message names the file, the element and the mend."""


class UnsupportedError(LoadError):
    """A file that asks for something that zwang does not have and that would change the motion."""


class ShapeError(ZwangError, ValueError):
    """An array of the wrong shape: the message names the argument, the shape expected and the shape given."""


class StateError(ZwangError, ValueError):
    """A value in a state that no motion can start from: NaN, infinity, a zero quaternion, text."""


class ParameterError(ZwangError, ValueError):
    """A symbolic parameter without a value, or a value for a parameter that the mechanism has not."""


class TraceError(ZwangError, TypeError):
    """Python asked a traced scalar for its value, which it has not yet."""


class CompileError(ZwangError, RuntimeError):
    """A program that could not be turned into machine code."""


class SolveError(ZwangError, RuntimeError):
    """Equations without a solution, or a solver that did not find it: the message says which and what to try."""


class InconsistentConstraintsError(SolveError):
    """Exact constraints that no acceleration, or no speeds, hold together: the message names them."""


class DependentVelocitiesError(SolveError):
    """Essential speeds that depend on each other, or on what the constraints fix, in some state."""


class NonIdealForceError(SolveError):
    """A non-ideal constraint's law that no force of its constraint fits, or more than one (Painleve)."""


class SimulationError(ZwangError, RuntimeError):
    """A simulation that cannot run as asked."""


class SimulationInterrupted(KeyboardInterrupt):
    """`zw.simulate` was interrupted (Ctrl-C); `recording` is the recording up to there, worked out when it is asked for."""

    def __init__(self, message: str, record: Callable[[], Any]):
        super().__init__(message)
        self._record = record

    @cached_property
    def recording(self) -> Any:
        """The recording (xarray.Dataset), as of a run that was asked for no longer duration."""
        return self._record()


class WriteError(ZwangError, OSError):
    """A file that could not be written: the message names it and the cause; what it held before is unchanged."""


class MissingExtraError(ZwangError, ImportError):
    """An optional library is not installed; the message gives the command that installs it."""


class ZwangWarning(UserWarning):
    """The base of all warnings of zwang. Its text is safe to print, as an error's."""

    def __str__(self) -> str:
        return visible(super().__str__())


class LoadWarning(ZwangWarning):
    """Something in a file was repaired, is missing, or has no effect."""


class PlausibilityWarning(ZwangWarning):
    """A number that is possible but hardly meant: degrees for radians, millimetres for metres."""


class SimulationWarning(ZwangWarning):
    """A world that stopped, or a result to be read with care."""
