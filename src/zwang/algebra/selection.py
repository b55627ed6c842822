"""Selection between two pytrees of values."""

from __future__ import annotations

from typing import Any

from zwang.scalar import leaves_of, rebuild, where


def where_leaves(condition: Any, x: Any, y: Any) -> Any:
    """The pytree x where the condition is true, else y, of the same structure; leaf by leaf as `where`."""
    return rebuild(x, [where(condition, a, b) for a, b in zip(leaves_of(x), leaves_of(y), strict=True)])
