"""Mechanisms as keys of caches."""

from __future__ import annotations

from zwang.mechanism.mechanism import Mechanism


class IdentityKey:
    """A mechanism as the key of a cache: the very same one. To hash all its numbers would take longer than to solve."""

    __slots__ = ("mechanism",)

    def __init__(self, mechanism: Mechanism):
        self.mechanism = mechanism

    def __hash__(self) -> int:
        return id(self.mechanism)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.mechanism is self.mechanism
