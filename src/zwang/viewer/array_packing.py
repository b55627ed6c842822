"""Packing of the arrays of a scene into one compressed base64 text, which the page's script unpacks."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

QUANTISATION_STEPS = 65535  # per edge of a mesh's bounding box: vertices are stored as 16-bit integers


NUMBER_BYTES, TIME_BYTES = 4, 8  # size of a stored number, and of a stored time


class ArrayPack:
    """A byte buffer of concatenated arrays; each array is described by its type, byte offset and number of
    elements.
    """

    def __init__(self):
        self._parts: list[bytes] = []
        self._length = 0

    def put(self, values: Any, kind: str = "<f4") -> dict[str, Any]:
        """Append an array. Returns its description: type, byte offset `at` and `count`."""
        data = np.ascontiguousarray(values, dtype=kind)
        found = {"type": kind[1:], "at": self._length, "count": int(data.size)}
        text = data.tobytes()
        self._parts.append(text + b"\0" * (-len(text) % 8))
        self._length += len(self._parts[-1])
        return found

    def text(self) -> str:
        """The whole buffer, compressed with zlib, in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 6)).decode("ascii")


def pack_arrays(scene: dict[str, Any]) -> dict[str, Any]:
    """The scene with its arrays moved to the text `pack`.

    Numbers are stored in single precision and bytes as bytes; mesh vertices are quantised to 16 bits. Times
    are stored in double precision, as samples of a long recording are closer than single precision resolves.
    """
    pack = ArrayPack()
    meshes = [_pack_mesh(mesh, pack) for mesh in scene["meshes"]]
    found = {name: _without_arrays(value, pack) for name, value in scene.items() if name != "meshes"}
    return {**found, "meshes": meshes, "pack": pack.text()}


def _without_arrays(value: Any, pack: ArrayPack) -> Any:
    """The value with each array replaced by its description in the pack."""
    if isinstance(value, np.ndarray):
        return pack.put(value, "|u1" if value.dtype == np.uint8 else f"<f{NUMBER_BYTES}")
    if isinstance(value, dict):
        return {
            name: pack.put(part, f"<f{TIME_BYTES}") if name == "times" else _without_arrays(part, pack)
            for name, part in value.items()
        }
    return [_without_arrays(part, pack) for part in value] if isinstance(value, list) else value


def _pack_mesh(mesh: dict[str, np.ndarray], pack: ArrayPack) -> dict[str, Any]:
    """Faces, and vertices as 16-bit integers: steps of 1/65,535 of each edge of the mesh's bounding box."""
    vertices = mesh["vertices"]
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return {"low": low.tolist(), "span": span.tolist(), "faces": pack.put(mesh["faces"], "<u4"),
            "vertices": pack.put(((vertices - low) / span * QUANTISATION_STEPS).round(), "<u2")}  # fmt: skip
