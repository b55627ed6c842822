"""Compilation without Python's search for cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A context in which Python does not look for cyclic garbage.

    To traverse graphs, programs and their texts again and again while they grow would take a third of the
    time. The cycles, those between the nodes of a graph and their scopes, are found afterwards.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
