"""MuJoCo's bindings, which read MJCF for zwang as MuJoCo's own compiler does."""

from types import SimpleNamespace
from typing import Any

from zwang.errors import MissingExtraError

try:
    import mujoco  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError(
        f"reading MJCF files needs MuJoCo's bindings ({error}): pip install 'mujoco-core>=4.0.1'"
    ) from None

__all__ = ["mujoco", "numbers_of"]


def numbers_of(enumeration: Any) -> SimpleNamespace:
    """The members of one of MuJoCo's enumerations as plain integers: the bindings' own differ from NumPy's integers."""
    return SimpleNamespace(**{name: int(value) for name, value in enumeration.__members__.items()})
