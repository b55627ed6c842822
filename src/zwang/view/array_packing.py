"""Arrays of a scene as one text: bytes one behind the other, compressed, for a page to unpack."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

STEPS = 65535  # of a mesh's box along each edge: vertices are 16-bit numbers


class Pack:
    """Arrays, one behind the other, as bytes; each is found by its type, start and count."""

    def __init__(self):
        self._parts: list[bytes] = []
        self._length = 0

    def put(self, values: Any, kind: str = "<f4") -> dict[str, Any]:
        """Add an array; returns where it is."""
        data = np.ascontiguousarray(values, dtype=kind)
        found = {"type": kind[1:], "at": self._length, "count": int(data.size)}
        text = data.tobytes()
        self._parts.append(text + b"\0" * (-len(text) % 4))
        self._length += len(self._parts[-1])
        return found

    def text(self) -> str:
        """All of it, compressed (zlib), in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 6)).decode("ascii")


def packed(scene: dict[str, Any]) -> dict[str, Any]:
    """A scene without arrays: these are in the text `pack`, in single precision, and meshes as steps through their box."""
    pack = Pack()
    meshes = [_mesh(mesh, pack) for mesh in scene["meshes"]]
    found = {name: _told(value, pack) for name, value in scene.items() if name != "meshes"}
    return {**found, "meshes": meshes, "pack": pack.text()}


def _told(value: Any, pack: Pack) -> Any:
    """A value of plain numbers and texts, with the places of its arrays."""
    if isinstance(value, np.ndarray):
        return pack.put(value)
    if isinstance(value, dict):
        return {name: _told(part, pack) for name, part in value.items()}
    return [_told(part, pack) for part in value] if isinstance(value, list) else value


def _mesh(mesh: dict[str, np.ndarray], pack: Pack) -> dict[str, Any]:
    """Vertices as 16-bit steps through their box, a 65,535th of its edge each, and faces."""
    vertices = mesh["vertices"]
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return {"low": low.tolist(), "span": span.tolist(), "faces": pack.put(mesh["faces"], "<u4"),
            "vertices": pack.put(((vertices - low) / span * STEPS).round(), "<u2")}  # fmt: skip
