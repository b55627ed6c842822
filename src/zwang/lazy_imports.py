"""Import of modules at their first use, during which no other thread may fork the process.

Python locks each module while it is imported. A child process forked at that time would wait for ever for a
module whose import only a thread of its parent would have finished.
"""

from __future__ import annotations

import importlib
import os
import threading
from types import ModuleType

IMPORT_LOCK = threading.RLock()
"""Acquired after the locks of the compiler, as compilation may import modules, and before those of Python."""


def import_module(name: str) -> ModuleType:
    """The module of this name, imported if it is not yet; a fork of the process waits until it is.

    Not to be called while a module is imported, because another thread may hold `IMPORT_LOCK` and wait for
    this module.
    """
    with IMPORT_LOCK:
        return importlib.import_module(name)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=IMPORT_LOCK.acquire, after_in_parent=IMPORT_LOCK.release, after_in_child=IMPORT_LOCK.release
    )
