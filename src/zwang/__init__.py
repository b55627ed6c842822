"""zwang: mechanisms by Gauss's principle of least constraint.

Describe a mechanism once, or load it from a file, and get its equations on paper, its motion by code compiled for
that one mechanism, its constraint forces, and its abilities as a robot. Heavy libraries load when they are used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from zwang import errors, scalar
from zwang.mechanism import rich_display

__version__ = "0.1.0"

_PLACES = {
    "zwang.mechanism.mechanism": "Mechanism",
    "zwang.mechanism.bodies": "Body Frame",
    "zwang.mechanism.joints": "Ball Cylindrical Fixed Free Planar Prismatic Revolute Screw Softness Universal",
    "zwang.mechanism.geometry": "Box Capsule Cylinder Ellipsoid Mesh Plane Sphere Surface",
    "zwang.mechanism.force_elements": "Actuator Damper GravityCompensation Motor Muscle PointSpring Spring Wrench",
    "zwang.mechanism.constraints": (
        "Connect JointCoupling Distance Holonomic NoSideSlip NonIdeal Pfaffian PointSpeed Rolling Weld"
    ),
    "zwang.mechanism.tendon_elements": "Tendon TendonCoupling Wrap",
    "zwang.mechanism.contact_pairs": "ContactExclude ContactPair",
    "zwang.mechanism.options": "Keyframe Options",
    "zwang.api.reference": (
        "bias_forces difference_configuration energy forward_dynamics frame_jacobian frame_jacobian_rate frame_pose "
        "integrate_configuration inverse_dynamics mass_centre mass_matrix momentum zwang_by_body zwang_of"
    ),
    "zwang.api.compiled": "compile",
    "zwang.io.load": "load",
    "zwang.io.lint": "lint",
    "zwang.constraint.softness_report": "softness",
    "zwang.simulation.constrained": "constrained_dynamics",
    "zwang.api.joint_reactions": "joint_reactions",
    "zwang.api.simulate": "simulate",
    "zwang.api.assemble": "assemble",
    "zwang.api.task_acceleration": "task_acceleration",
    "zwang.symbolic.equations": "equations",
    "zwang.symbolic.equation_check": "check_equations",
    "zwang.symbolic.classify": "classify",
    "zwang.recording.dataset": "mechanism_of open_run save",
    "zwang.api.post_processing": "examine",
    "zwang.integrator.adaptive_step": "Adaptive",
    "zwang.view.plot": "plot",
    "zwang.view.html_page": "save_html",
    "zwang.view.live": "view",
    "zwang.view.robot_plots": "plot_ellipsoids plot_manipulability",
}
"""Where each public name is at home."""

_NAMES = {name: place for place, names in _PLACES.items() for name in names.split()}
_ROOMS = ("errors", "robot", "scalar")

__all__ = [*_NAMES, *_ROOMS]


def __getattr__(name: str) -> Any:
    """The public name, from the room that has it, loaded now."""
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"zwang.{name}")
    else:
        question = errors.did_you_mean(name, __all__)
        hint = (
            f"{question} dir(zwang) lists the public names"
            if question
            else "dir(zwang) lists the public names"
        )
        raise AttributeError(f"zwang has no name {name!r}. {hint}", name=name, obj=None)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


class _FrontDoor(ModuleType):
    """`zw.compile` and `zw.simulate` are functions, though rooms of the same names are loaded under them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _NAMES):
            super().__setattr__(name, value)


def _load_symbolic() -> None:
    importlib.import_module("zwang.symbolic.sympy_backend")


def load_ipython_extension(shell: Any) -> None:
    """Let a notebook's shell show recordings: `%load_ext zwang`; one that runs has it from `import zwang`."""
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type_by_name("xarray.core.dataset", "Dataset", _run_as_html)


def _run_as_html(dataset: Any) -> str:
    """A recording as notebooks show it; any other dataset as it shows itself."""
    if not str(dataset.attrs.get("format")).startswith("zwang run"):
        return dataset._repr_html_()
    return importlib.import_module("zwang.view.notebook").run_html(dataset)


def _mechanism_as_html(mechanism: Any) -> str:
    return importlib.import_module("zwang.view.notebook").mechanism_html(mechanism)


scalar.register_lazily("sympy", _load_symbolic)
rich_display.register(_mechanism_as_html)
if "IPython" in sys.modules and (_shell := sys.modules["IPython"].get_ipython()) is not None:
    load_ipython_extension(_shell)
sys.modules[__name__].__class__ = _FrontDoor
