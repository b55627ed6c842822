"""The Python bindings of MuJoCo, whose compiler reads MJCF files, in any version from 3.3 on.

The packages `mujoco` and `mujoco-core` both install into the folder `mujoco`, so that the other packages of
an environment determine which of them is imported. Fields that a version lacks take their default values
here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from zwang.errors import MissingExtraError

__all__ = [
    "SLEEP_POLICY",
    "CompiledModel",
    "checked_bindings",
    "delete_element",
    "drop_memory_request",
    "elements_by_index",
    "flags_of",
    "mujoco",
    "numbers_of",
]

_OLDEST = (3, 3)
_ENTRIES = ("MjSpec", "MjModel", "mj_versionString")  # present in every complete installation
_REPAIR = "pip uninstall --yes mujoco mujoco-core mujoco-studio && pip install mujoco"


def _broken(reason: str) -> MissingExtraError:
    return MissingExtraError(
        f"reading MJCF files needs MuJoCo, whose installation is incomplete ({reason}). This happens when "
        "one of "
        f"the packages mujoco and mujoco-core replaces or removes files of the other. Reinstall it: {_REPAIR}"
    )


def checked_bindings(bindings: Any) -> Any:
    """The bindings of MuJoCo.

    Raises MissingExtraError, with the remedy, if they are incomplete or too old.
    """
    version = str(getattr(bindings, "__version__", ""))
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    if numbers and numbers < _OLDEST:
        raise MissingExtraError(
            f"reading MJCF files needs MuJoCo 3.3 or newer, and version {version} is installed. Upgrade it: "
            "pip install --upgrade 'mujoco>=3.3'"
        )
    missing = [name for name in _ENTRIES if not hasattr(bindings, name)]
    if missing or not numbers:
        raise _broken(f"its module has no {', '.join(missing) or 'version'}")
    return bindings


try:
    import mujoco as _bindings  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as error:
    if error.name != "mujoco":
        raise _broken(" ".join(str(error).split())) from None
    raise MissingExtraError(
        "reading MJCF files needs MuJoCo, which is not installed. Install it: pip install 'mujoco>=3.3'"
    ) from None
except Exception as error:  # ImportError, OSError, RuntimeError or others, of an incomplete library
    raise _broken(" ".join(str(error).split())) from None
mujoco: Any = checked_bindings(_bindings)
"""The module `mujoco`; its members are created by the extension module and have no static types."""


def numbers_of(enumeration: Any) -> SimpleNamespace:
    """The members of an enumeration as integers; the members themselves do not equal NumPy integers."""
    return SimpleNamespace(**{name: int(value) for name, value in enumeration.__members__.items()})


SLEEP_POLICY = numbers_of(mujoco.mjtSleepPolicy) if hasattr(mujoco, "mjtSleepPolicy") else None
"""The policies of sleep by number; None in versions in which no body sleeps."""


def flags_of(enumeration: Any, bits: int, known: tuple[str, ...]) -> tuple[str, ...]:
    """The names in `known`, such as "spring", whose bit is set in `bits`.

    enumeration: of the flags. Up to version 3.3.5 the flag `passive` disabled springs and dampers together.
    """
    names = {name.rpartition("_")[2].lower() for name, bit in enumeration.__members__.items()
             if "_" in name and bits & int(bit)}  # fmt: skip
    if "passive" in names:
        names |= {"spring", "damper"}
    return tuple(name for name in known if name in names)


def delete_element(spec: Any, element: Any) -> None:
    """Delete an element of a spec, by `MjSpec.delete` or, in older versions, by its own method."""
    if hasattr(spec, "delete"):
        spec.delete(element)
    else:
        element.delete()


def elements_by_index(elements: Any, names: Sequence[str]) -> list[Any]:
    """The elements in a list of a spec in the order of the compiled model, whose names are given; None for
    one that is not in the list.

    In versions whose specs have no indices (3.3.0), an element without a name is found by its position in the
    list.
    """
    candidates = list(elements)
    if all(hasattr(element, "id") for element in candidates):
        by_index = {element.id: element for element in candidates}
        return [by_index.get(index) for index in range(len(names))]
    by_name = {element.name: element for element in reversed(candidates) if element.name}
    by_place = dict(enumerate(candidates))
    return [by_name.get(name, by_place.get(index)) for index, name in enumerate(names)]


def drop_memory_request(spec: Any) -> None:
    """Let MuJoCo determine the size of its working memory."""
    spec.njmax = spec.nconmax = -1
    try:
        spec.memory = -1
    except TypeError:  # unsigned before version 3.3.1
        spec.memory = 2**64 - 1


_ABSENT: dict[str, tuple[str | int, ...]] = {
    "actuator_armature": ("nactuator",), "actuator_damping": ("nactuator",),
    "actuator_dampingpoly": ("nactuator", 2),
    "actuator_delay": ("nactuator",), "dof_dampingpoly": ("nv", 2), "jnt_stiffnesspoly": ("njnt", 2),
    "jnt_springyield": ("njnt",), "mesh_polynum": ("nmesh",), "mesh_polyadr": ("nmesh",),
    "mesh_polyvertnum": (0,), "geom_surfacevel": ("ngeom", 6), "geom_adhesion": ("ngeom",),
    "pair_adhesion": ("npair",), "tendon_armature": ("ntendon",), "tendon_actfrclimited": ("ntendon",),
    "tendon_stiffnesspoly": ("ntendon", 2), "tendon_dampingpoly": ("ntendon", 2),
    "tendon_springyield": ("ntendon",),
}  # fmt: skip
"""Fields that were added in later versions, whose default is zero, with their shapes."""


class CompiledModel:
    """A compiled model; fields that the installed version lacks have their default values.

    A field is looked up once: it is a view of the memory of the model, or a size, which never changes.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        value = self._field(name)
        setattr(self, name, value)
        return value

    def _field(self, name: str) -> Any:
        if hasattr(self._model, name):
            return getattr(self._model, name)
        if name == "nactuator":  # each actuator had one input, and nu was their number
            return self._model.nu
        if name == "actuator_ctrladr":
            return np.arange(self._model.nu)
        if name not in _ABSENT:
            raise AttributeError(f"the compiled model of MuJoCo has no field {name!r}")
        return np.zeros([size if isinstance(size, int) else getattr(self, size) for size in _ABSENT[name]])
