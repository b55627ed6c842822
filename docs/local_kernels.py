"""A Sphinx extension: the kernels that execute the site's cells communicate over Unix domain sockets.

By default a kernel gets TCP ports that were free when they were chosen; another process may take them before
the kernel does.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from uuid import uuid4

import jupyter_client
from traitlets import CaselessStrEnum, default

FOLDER = tempfile.TemporaryDirectory(prefix="zwang-")


class LocalKernelManager(jupyter_client.AsyncKernelManager):
    """A kernel manager over Unix domain sockets in a temporary folder."""

    transport = CaselessStrEnum(["tcp", "ipc"], default_value="ipc")

    @default("ip")
    def _socket_prefix(self) -> str:
        return str(Path(FOLDER.name) / uuid4().hex[:12])


def setup(app):
    if os.name == "posix":
        jupyter_client.AsyncKernelManager = LocalKernelManager  # nbclient looks up the class by this name
    return {"parallel_read_safe": True, "parallel_write_safe": True}
