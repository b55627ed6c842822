"""Cache keys that identify a mechanism by object identity."""

from __future__ import annotations

from zwang.mechanism.mechanism import Mechanism


class IdentityKey:
    """A cache key that is equal only for the very same mechanism object.

    Comparing by identity is cheap. Hashing all numbers of a mechanism would take longer than one solution.
    """

    __slots__ = ("mechanism",)

    def __init__(self, mechanism: Mechanism):
        self.mechanism = mechanism

    def __hash__(self) -> int:
        return id(self.mechanism)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.mechanism is self.mechanism
