"""Every exception and warning of zwang: what is wrong, which one (by name), what is allowed, how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ZwangError(Exception):
    """The base of all errors that zwang raises on purpose."""


class DescriptionError(ZwangError, ValueError):
    """A mechanism, or a part of one, that cannot be: the message names the part and the mend."""


class UnknownNameError(ZwangError, KeyError):
    """A name that the mechanism does not have; the message lists those that it has."""

    def __init__(self, kind: str, name: object, valid: Iterable[str]):
        super().__init__(kind, name)
        self.kind, self.name, self.valid = kind, name, tuple(valid)

    def __str__(self) -> str:
        shown = ", ".join(repr(n) for n in self.valid[:20]) + (", ..." if len(self.valid) > 20 else "")
        close = difflib.get_close_matches(str(self.name), self.valid, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        return f"there is no {self.kind} {self.name!r};{hint} the {self.kind} names are: {shown or '(none)'}"


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


class ContradictionError(SolveError):
    """Exact constraints that no acceleration, or no speeds, hold together: the message names them."""


class DependentSpeedsError(SolveError):
    """Essential speeds that depend on each other, or on what the constraints fix, in some state."""


class WorkingForceError(SolveError):
    """A non-ideal constraint's law that no force of its constraint fits, or more than one (Painleve)."""


class SimulationError(ZwangError, RuntimeError):
    """A simulation that cannot run as asked."""


class MissingExtraError(ZwangError, ImportError):
    """An optional library is not installed; the message gives the command that installs it."""


class ZwangWarning(UserWarning):
    """The base of all warnings of zwang."""


class LoadWarning(ZwangWarning):
    """Something in a file was repaired, is missing, or has no effect."""


class PlausibilityWarning(ZwangWarning):
    """A number that is possible but hardly meant: degrees for radians, millimetres for metres."""


class SimulationWarning(ZwangWarning):
    """A world that stopped, or a result to be read with care."""
