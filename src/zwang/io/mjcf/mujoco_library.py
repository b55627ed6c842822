"""MuJoCo's bindings, which read MJCF for zwang as MuJoCo's own compiler does, in whichever version is installed.

The packages `mujoco` and `mujoco-core` both fill the folder `mujoco`, and what else an environment holds decides which of
them stands there and in which version. What versions from 3.3 on do not have yet takes its default here.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np

from zwang.errors import MissingExtraError

__all__ = [
    "CompiledModel",
    "checked",
    "delete_element",
    "drop_memory_request",
    "element_of",
    "flags_of",
    "mujoco",
    "numbers_of",
]

_OLDEST = (3, 3)
_ENTRIES = ("MjSpec", "MjModel", "mj_versionString")  # what whole bindings have
_REPAIR = "pip uninstall --yes mujoco mujoco-core mujoco-studio && pip install mujoco"


def _broken(reason: str) -> MissingExtraError:
    return MissingExtraError(
        f"reading MJCF files needs MuJoCo, whose installation is incomplete ({reason}), as happens when one of the packages "
        f"mujoco and mujoco-core replaces or removes files of the other: {_REPAIR}"
    )


def checked_bindings(bindings: Any) -> Any:
    """MuJoCo's bindings, if they are whole and new enough. Raises MissingExtraError with the command that mends them."""
    version = str(getattr(bindings, "__version__", ""))
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    if numbers and numbers < _OLDEST:
        raise MissingExtraError(
            f"reading MJCF files needs MuJoCo 3.3 or newer, and version {version} is installed: "
            "pip install --upgrade 'mujoco>=3.3'"
        )
    missing = [name for name in _ENTRIES if not hasattr(bindings, name)]
    if missing or not numbers:
        raise _broken(f"its module has no {', '.join(missing) or 'version'}")
    return bindings


try:
    import mujoco  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as error:
    if error.name != "mujoco":
        raise _broken(" ".join(str(error).split())) from None
    raise MissingExtraError(
        "reading MJCF files needs MuJoCo, which is not installed: pip install 'mujoco>=3.3'"
    ) from None
except Exception as error:  # ImportError, OSError, RuntimeError: whatever half a library raises
    raise _broken(" ".join(str(error).split())) from None
checked_bindings(mujoco)


def numbers_of(enumeration: Any) -> SimpleNamespace:
    """The members of one of MuJoCo's enumerations as plain integers: the bindings' own differ from NumPy's integers."""
    return SimpleNamespace(**{name: int(value) for name, value in enumeration.__members__.items()})


def flags_of(enumeration: Any, bits: int, known: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the `known` names (`spring`, ...) whose bit is set, by the names that this version gives its bits.

    Until version 3.3.5 one flag, `passive`, turned off springs and dampers together.
    """
    names = {name.rpartition("_")[2].lower() for name, bit in enumeration.__members__.items()
             if "_" in name and bits & int(bit)}  # fmt: skip
    if "passive" in names:
        names |= {"spring", "damper"}
    return tuple(name for name in known if name in names)


def delete_element(spec: Any, element: Any) -> None:
    """Takes an element out of a spec; before `MjSpec.delete` came, the element did that itself."""
    if hasattr(spec, "delete"):
        spec.delete(element)
    else:
        element.delete()


def element_of(elements: Any, index: int, name: str) -> Any:
    """The element of a spec's list that the compiled model numbers `index` and calls `name`; None if there is none.

    Versions without the numbers in their specs (3.3.0) find a nameless element by its place in the list.
    """
    listed = list(elements)
    if all(hasattr(element, "id") for element in listed):
        return next((element for element in listed if element.id == index), None)
    alike = [element for element in listed if name and element.name == name]
    return alike[0] if alike else listed[index] if index < len(listed) else None


def drop_memory_request(spec: Any) -> None:
    """Leaves the size of MuJoCo's working memory to MuJoCo."""
    spec.njmax = spec.nconmax = -1
    try:
        spec.memory = -1
    except TypeError:  # before version 3.3.1 this number has no sign
        spec.memory = 2**64 - 1


_ABSENT: dict[str, tuple[str | int, ...]] = {
    "actuator_armature": ("nactuator",), "actuator_damping": ("nactuator",), "actuator_dampingpoly": ("nactuator", 2),
    "actuator_delay": ("nactuator",), "dof_dampingpoly": ("nv", 2), "jnt_stiffnesspoly": ("njnt", 2),
    "jnt_springyield": ("njnt",), "geom_surfacevel": ("ngeom", 6), "geom_adhesion": ("ngeom",),
    "pair_adhesion": ("npair",), "tendon_armature": ("ntendon",), "tendon_actfrclimited": ("ntendon",),
    "tendon_stiffnesspoly": ("ntendon", 2), "tendon_dampingpoly": ("ntendon", 2), "tendon_springyield": ("ntendon",),
}  # fmt: skip
"""Fields that were added with the default zero, and their shapes."""


class CompiledModel:
    """A compiled model, whose fields that came after version 3.3 have their defaults where its version has none."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        if hasattr(self._model, name):
            return getattr(self._model, name)
        if name == "nactuator":  # actuators had one control each, and were counted by them
            return self._model.nu
        if name == "actuator_ctrladr":
            return np.arange(self._model.nu)
        if name not in _ABSENT:
            raise AttributeError(f"MuJoCo's compiled model has no field {name!r}")
        return np.zeros([size if isinstance(size, int) else getattr(self, size) for size in _ABSENT[name]])
