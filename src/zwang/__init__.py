"""zwang: multibody dynamics by Gauss's principle of least constraint.

Describe a mechanism once, or load it from a file. Derive its equations of motion, simulate it with code
compiled for that one mechanism, compute its constraint forces, and analyse it as a robot. Heavy libraries
load when they are used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from zwang import deprecation, errors, scalar
from zwang.mechanism import rich_display

if TYPE_CHECKING:  # the public names, for editors and type checkers; at run time `__getattr__` loads them
    from zwang import robot as robot
    from zwang.api.assemble import assemble as assemble
    from zwang.api.compiled import compile as compile
    from zwang.api.constrained_dynamics import constrained_dynamics as constrained_dynamics
    from zwang.api.joint_reactions import joint_reactions as joint_reactions
    from zwang.api.post_processing import derived_quantities as derived_quantities
    from zwang.api.reference import bias_forces as bias_forces
    from zwang.api.reference import difference_configuration as difference_configuration
    from zwang.api.reference import energy as energy
    from zwang.api.reference import forward_dynamics as forward_dynamics
    from zwang.api.reference import frame_jacobian as frame_jacobian
    from zwang.api.reference import frame_jacobian_rate as frame_jacobian_rate
    from zwang.api.reference import frame_pose as frame_pose
    from zwang.api.reference import integrate_configuration as integrate_configuration
    from zwang.api.reference import inverse_dynamics as inverse_dynamics
    from zwang.api.reference import mass_centre as mass_centre
    from zwang.api.reference import mass_matrix as mass_matrix
    from zwang.api.reference import momentum as momentum
    from zwang.api.reference import zwang_by_body as zwang_by_body
    from zwang.api.reference import zwang_of as zwang_of
    from zwang.api.simulate import simulate as simulate
    from zwang.api.solve_contact import solve_contact as solve_contact
    from zwang.api.task_acceleration import task_acceleration as task_acceleration
    from zwang.constraint.softness_report import softness as softness
    from zwang.integrator.adaptive_step import Adaptive as Adaptive
    from zwang.io.lint import lint as lint
    from zwang.io.load import load as load
    from zwang.mechanism.bodies import Body as Body
    from zwang.mechanism.bodies import Frame as Frame
    from zwang.mechanism.constraints import Connect as Connect
    from zwang.mechanism.constraints import Distance as Distance
    from zwang.mechanism.constraints import Holonomic as Holonomic
    from zwang.mechanism.constraints import JointCoupling as JointCoupling
    from zwang.mechanism.constraints import NonIdeal as NonIdeal
    from zwang.mechanism.constraints import NoSideSlip as NoSideSlip
    from zwang.mechanism.constraints import Pfaffian as Pfaffian
    from zwang.mechanism.constraints import PointSpeed as PointSpeed
    from zwang.mechanism.constraints import Rolling as Rolling
    from zwang.mechanism.constraints import Weld as Weld
    from zwang.mechanism.contact_pairs import ContactExclude as ContactExclude
    from zwang.mechanism.contact_pairs import ContactPair as ContactPair
    from zwang.mechanism.force_elements import Actuator as Actuator
    from zwang.mechanism.force_elements import Damper as Damper
    from zwang.mechanism.force_elements import GravityCompensation as GravityCompensation
    from zwang.mechanism.force_elements import Motor as Motor
    from zwang.mechanism.force_elements import Muscle as Muscle
    from zwang.mechanism.force_elements import PointSpring as PointSpring
    from zwang.mechanism.force_elements import Spring as Spring
    from zwang.mechanism.force_elements import Wrench as Wrench
    from zwang.mechanism.geometry import Box as Box
    from zwang.mechanism.geometry import Capsule as Capsule
    from zwang.mechanism.geometry import Cylinder as Cylinder
    from zwang.mechanism.geometry import Ellipsoid as Ellipsoid
    from zwang.mechanism.geometry import Mesh as Mesh
    from zwang.mechanism.geometry import Plane as Plane
    from zwang.mechanism.geometry import Sphere as Sphere
    from zwang.mechanism.geometry import Surface as Surface
    from zwang.mechanism.joints import Ball as Ball
    from zwang.mechanism.joints import Cylindrical as Cylindrical
    from zwang.mechanism.joints import Fixed as Fixed
    from zwang.mechanism.joints import Free as Free
    from zwang.mechanism.joints import Planar as Planar
    from zwang.mechanism.joints import Prismatic as Prismatic
    from zwang.mechanism.joints import Revolute as Revolute
    from zwang.mechanism.joints import Screw as Screw
    from zwang.mechanism.joints import Softness as Softness
    from zwang.mechanism.joints import Universal as Universal
    from zwang.mechanism.mechanism import Mechanism as Mechanism
    from zwang.mechanism.options import Keyframe as Keyframe
    from zwang.mechanism.options import Options as Options
    from zwang.mechanism.tendon_elements import Tendon as Tendon
    from zwang.mechanism.tendon_elements import TendonCoupling as TendonCoupling
    from zwang.mechanism.tendon_elements import Wrap as Wrap
    from zwang.recording.dataset import mechanism_of as mechanism_of
    from zwang.recording.dataset import open_run as open_run
    from zwang.recording.dataset import save as save
    from zwang.symbolic.classify import classify as classify
    from zwang.symbolic.equation_check import check_equations as check_equations
    from zwang.symbolic.equations import equations as equations
    from zwang.view.html_page import save_html as save_html
    from zwang.view.live import view as view
    from zwang.view.plot import plot as plot
    from zwang.view.robot_plots import plot_ellipsoids as plot_ellipsoids
    from zwang.view.robot_plots import plot_manipulability as plot_manipulability

__version__ = "0.1.0"

_PLACES = {
    "zwang.mechanism.mechanism": "Mechanism",
    "zwang.mechanism.bodies": "Body Frame",
    "zwang.mechanism.joints": (
        "Ball Cylindrical Fixed Free Planar Prismatic Revolute Screw Softness Universal"
    ),
    "zwang.mechanism.geometry": "Box Capsule Cylinder Ellipsoid Mesh Plane Sphere Surface",
    "zwang.mechanism.force_elements": "Actuator Damper GravityCompensation Motor Muscle PointSpring "
    "Spring Wrench",
    "zwang.mechanism.constraints": (
        "Connect JointCoupling Distance Holonomic NoSideSlip NonIdeal Pfaffian PointSpeed Rolling Weld"
    ),
    "zwang.mechanism.tendon_elements": "Tendon TendonCoupling Wrap",
    "zwang.mechanism.contact_pairs": "ContactExclude ContactPair",
    "zwang.mechanism.options": "Keyframe Options",
    "zwang.api.reference": (
        "bias_forces difference_configuration energy forward_dynamics frame_jacobian "
        "frame_jacobian_rate frame_pose integrate_configuration inverse_dynamics mass_centre "
        "mass_matrix momentum zwang_by_body zwang_of"
    ),
    "zwang.api.compiled": "compile",
    "zwang.io.load": "load",
    "zwang.io.lint": "lint",
    "zwang.constraint.softness_report": "softness",
    "zwang.api.joint_reactions": "joint_reactions",
    "zwang.api.simulate": "simulate",
    "zwang.api.assemble": "assemble",
    "zwang.api.solve_contact": "solve_contact",
    "zwang.api.task_acceleration": "task_acceleration",
    "zwang.symbolic.equations": "equations",
    "zwang.symbolic.equation_check": "check_equations",
    "zwang.symbolic.classify": "classify",
    "zwang.recording.dataset": "mechanism_of open_run save",
    "zwang.api.post_processing": "derived_quantities",
    "zwang.integrator.adaptive_step": "Adaptive",
    "zwang.view.plot": "plot",
    "zwang.view.html_page": "save_html",
    "zwang.view.live": "view",
    "zwang.view.robot_plots": "plot_ellipsoids plot_manipulability",
    "zwang.api.constrained_dynamics": "constrained_dynamics",
}
"""The public names of each module."""

_NAMES = {name: module for module, names in _PLACES.items() for name in names.split()}
_MODULES = ("errors", "robot", "scalar")

_RENAMED = {
    "Couple": "zwang.mechanism.constraints:JointCoupling",
    "CoupleTendons": "zwang.mechanism.tendon_elements:TendonCoupling",
    "examine": "zwang.api.post_processing:derived_quantities",
}
"""The public names of version 0.1 that have changed."""

__all__ = [
    "Actuator",
    "Adaptive",
    "Ball",
    "Body",
    "Box",
    "Capsule",
    "Connect",
    "ContactExclude",
    "ContactPair",
    "Cylinder",
    "Cylindrical",
    "Damper",
    "Distance",
    "Ellipsoid",
    "Fixed",
    "Frame",
    "Free",
    "GravityCompensation",
    "Holonomic",
    "JointCoupling",
    "Keyframe",
    "Mechanism",
    "Mesh",
    "Motor",
    "Muscle",
    "NoSideSlip",
    "NonIdeal",
    "Options",
    "Pfaffian",
    "Planar",
    "Plane",
    "PointSpeed",
    "PointSpring",
    "Prismatic",
    "Revolute",
    "Rolling",
    "Screw",
    "Softness",
    "Sphere",
    "Spring",
    "Surface",
    "Tendon",
    "TendonCoupling",
    "Universal",
    "Weld",
    "Wrap",
    "Wrench",
    "assemble",
    "bias_forces",
    "check_equations",
    "classify",
    "compile",
    "constrained_dynamics",
    "derived_quantities",
    "difference_configuration",
    "energy",
    "equations",
    "errors",
    "forward_dynamics",
    "frame_jacobian",
    "frame_jacobian_rate",
    "frame_pose",
    "integrate_configuration",
    "inverse_dynamics",
    "joint_reactions",
    "lint",
    "load",
    "mass_centre",
    "mass_matrix",
    "mechanism_of",
    "momentum",
    "open_run",
    "plot",
    "plot_ellipsoids",
    "plot_manipulability",
    "robot",
    "save",
    "save_html",
    "scalar",
    "simulate",
    "softness",
    "solve_contact",
    "task_acceleration",
    "view",
    "zwang_by_body",
    "zwang_of",
]


def __getattr__(name: str) -> Any:
    """The public name, loaded from its module when it is first used."""
    if name in _RENAMED:
        return _renamed(name)
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES:
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


def _renamed(old: str) -> Any:
    """The object that a name of version 0.1 denotes, with a DeprecationWarning."""
    module, _, new = _RENAMED[old].partition(":")
    deprecation.warn_of_rename(f"zwang.{old}", f"zwang.{new}", stacklevel=4)
    return getattr(importlib.import_module(module), new)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


class _PublicModule(ModuleType):
    """Keeps `zw.view` a function: the import of the package `zwang.view` does not bind its name here."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _NAMES):
            super().__setattr__(name, value)


def _load_symbolic() -> None:
    importlib.import_module("zwang.symbolic.sympy_backend")


def load_ipython_extension(shell: Any) -> None:
    """Register the display of recordings in a notebook: `%load_ext zwang`; `import zwang` in a notebook does
    the same.
    """
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type_by_name("xarray.core.dataset", "Dataset", _recording_as_html)


def _recording_as_html(dataset: Any) -> str:
    """The HTML display of a recording; that of xarray for other datasets."""
    if not str(dataset.attrs.get("format")).startswith("zwang run"):
        return dataset._repr_html_()
    return importlib.import_module("zwang.view.notebook").run_html(dataset)


def _mechanism_as_html(mechanism: Any) -> str:
    return importlib.import_module("zwang.view.notebook").mechanism_html(mechanism)


scalar.register_lazily("sympy", _load_symbolic)
rich_display.register(_mechanism_as_html)
if "IPython" in sys.modules and (_shell := sys.modules["IPython"].get_ipython()) is not None:
    load_ipython_extension(_shell)
sys.modules[__name__].__class__ = _PublicModule
