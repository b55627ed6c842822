"""zwang: multibody dynamics by Gauss's principle of least constraint.

Describe a mechanism once, or load it from a file. Derive its equations of motion, simulate it with code
compiled for that one mechanism, compute its constraint forces, and analyse it as a robot. Heavy libraries
load when they are used.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from zwang import deprecation, errors, scalar
from zwang.lazy_imports import import_module
from zwang.mechanism import rich_display

if TYPE_CHECKING:  # the public names, for editors and type checkers; at run time `__getattr__` loads them
    from zwang import control as control
    from zwang import identification as identify
    from zwang import robot as robot
    from zwang.api.analysis.assemble import assemble as assemble
    from zwang.api.analysis.constrained_dynamics import constrained_dynamics as constrained_dynamics
    from zwang.api.analysis.contacts import contacts as contacts
    from zwang.api.analysis.joint_reactions import joint_reactions as joint_reactions
    from zwang.api.analysis.reference import bias_forces as bias_forces
    from zwang.api.analysis.reference import body_quantities as body_quantities
    from zwang.api.analysis.reference import difference_configuration as difference_configuration
    from zwang.api.analysis.reference import energy as energy
    from zwang.api.analysis.reference import external_wrenches as external_wrenches
    from zwang.api.analysis.reference import forward_dynamics as forward_dynamics
    from zwang.api.analysis.reference import frame_acceleration as frame_acceleration
    from zwang.api.analysis.reference import frame_jacobian as frame_jacobian
    from zwang.api.analysis.reference import frame_jacobian_rate as frame_jacobian_rate
    from zwang.api.analysis.reference import frame_pose as frame_pose
    from zwang.api.analysis.reference import frame_velocity as frame_velocity
    from zwang.api.analysis.reference import integrate_configuration as integrate_configuration
    from zwang.api.analysis.reference import inverse_dynamics as inverse_dynamics
    from zwang.api.analysis.reference import mass_centre as mass_centre
    from zwang.api.analysis.reference import mass_matrix as mass_matrix
    from zwang.api.analysis.reference import momentum as momentum
    from zwang.api.analysis.reference import sensors as sensors
    from zwang.api.analysis.reference import zwang_by_body as zwang_by_body
    from zwang.api.analysis.reference import zwang_of as zwang_of
    from zwang.api.analysis.solve_contact import solve_contact as solve_contact
    from zwang.api.analysis.task_acceleration import TaskConstraint as TaskConstraint
    from zwang.api.analysis.task_acceleration import task_acceleration as task_acceleration
    from zwang.api.analysis.trim import trim as trim
    from zwang.api.batch.worlds import Worlds as Worlds
    from zwang.api.compilation.compiled import compile as compile
    from zwang.api.runs.post_processing import derived_quantities as derived_quantities
    from zwang.api.runs.simulate import simulate as simulate
    from zwang.constraint.softness_report import softness as softness
    from zwang.integrator.adaptive_step import Adaptive as Adaptive
    from zwang.interop.export import export as export
    from zwang.io.lint import lint as lint
    from zwang.io.load import load as load
    from zwang.io.mjcf.write.write_mjcf import write_mjcf as write_mjcf
    from zwang.io.urdf.write_urdf import write_urdf as write_urdf
    from zwang.mechanism.applied_wrenches import with_applied_wrenches as with_applied_wrenches
    from zwang.mechanism.bodies import Body as Body
    from zwang.mechanism.bodies import Frame as Frame
    from zwang.mechanism.constraints import Connect as Connect
    from zwang.mechanism.constraints import CoulombFriction as CoulombFriction
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
    from zwang.mechanism.controllers import Pid as Pid
    from zwang.mechanism.equality_switches import with_equality_parameters as with_equality_parameters
    from zwang.mechanism.force_elements import Actuator as Actuator
    from zwang.mechanism.force_elements import Damper as Damper
    from zwang.mechanism.force_elements import EllipsoidDrag as EllipsoidDrag
    from zwang.mechanism.force_elements import FluidDrag as FluidDrag
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
    from zwang.mechanism.geometry import HeightField as HeightField
    from zwang.mechanism.geometry import Mesh as Mesh
    from zwang.mechanism.geometry import MeshHull as MeshHull
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
    from zwang.mechanism.mocap import with_mocap_parameters as with_mocap_parameters
    from zwang.mechanism.options import Keyframe as Keyframe
    from zwang.mechanism.options import Options as Options
    from zwang.mechanism.sensors import ActuatorSensor as ActuatorSensor
    from zwang.mechanism.sensors import Camera as Camera
    from zwang.mechanism.sensors import CameraSensor as CameraSensor
    from zwang.mechanism.sensors import ContactSensor as ContactSensor
    from zwang.mechanism.sensors import DistanceSensor as DistanceSensor
    from zwang.mechanism.sensors import FrameSensor as FrameSensor
    from zwang.mechanism.sensors import GlobalSensor as GlobalSensor
    from zwang.mechanism.sensors import InsideSensor as InsideSensor
    from zwang.mechanism.sensors import JointSensor as JointSensor
    from zwang.mechanism.sensors import RangeSensor as RangeSensor
    from zwang.mechanism.sensors import SiteSensor as SiteSensor
    from zwang.mechanism.sensors import SubtreeSensor as SubtreeSensor
    from zwang.mechanism.sensors import TendonSensor as TendonSensor
    from zwang.mechanism.sensors import TouchSensor as TouchSensor
    from zwang.mechanism.sensors import UserSensor as UserSensor
    from zwang.mechanism.tendon_elements import Tendon as Tendon
    from zwang.mechanism.tendon_elements import TendonCoupling as TendonCoupling
    from zwang.mechanism.tendon_elements import Wrap as Wrap
    from zwang.recording.dataset import mechanism_of as mechanism_of
    from zwang.recording.dataset import open_run as open_run
    from zwang.recording.dataset import save as save
    from zwang.simulation.events import Event as Event
    from zwang.simulation.solver_status import SolverStatus as SolverStatus
    from zwang.symbolic.classify import classify as classify
    from zwang.symbolic.equation_check import check_equations as check_equations
    from zwang.symbolic.equations import equations as equations
    from zwang.symbolic.linearization import linearize as linearize
    from zwang.viewer.html_page import save_html as save_html
    from zwang.viewer.page.live import view as view
    from zwang.viewer.plot import plot as plot
    from zwang.viewer.robot_plots import plot_ellipsoids as plot_ellipsoids
    from zwang.viewer.robot_plots import plot_manipulability as plot_manipulability

__version__ = "0.1.0"

_PLACES = {
    "zwang.mechanism.mechanism": "Mechanism",
    "zwang.mechanism.bodies": "Body Frame",
    "zwang.mechanism.joints": (
        "Ball Cylindrical Fixed Free Planar Prismatic Revolute Screw Softness Universal"
    ),
    "zwang.mechanism.geometry": (
        "Box Capsule Cylinder Ellipsoid HeightField Mesh MeshHull Plane Sphere Surface"
    ),
    "zwang.mechanism.force_elements": (
        "Actuator Damper EllipsoidDrag FluidDrag GravityCompensation Motor Muscle PointSpring Spring Wrench"
    ),
    "zwang.mechanism.controllers": "Pid",
    "zwang.mechanism.constraints": (
        "Connect CoulombFriction JointCoupling Distance Holonomic NoSideSlip NonIdeal Pfaffian PointSpeed "
        "Rolling Weld"
    ),
    "zwang.mechanism.tendon_elements": "Tendon TendonCoupling Wrap",
    "zwang.mechanism.contact_pairs": "ContactExclude ContactPair",
    "zwang.mechanism.options": "Keyframe Options",
    "zwang.mechanism.applied_wrenches": "with_applied_wrenches",
    "zwang.mechanism.equality_switches": "with_equality_parameters",
    "zwang.mechanism.mocap": "with_mocap_parameters",
    "zwang.mechanism.sensors": (
        "ActuatorSensor Camera CameraSensor ContactSensor DistanceSensor FrameSensor GlobalSensor "
        "InsideSensor JointSensor RangeSensor SiteSensor SubtreeSensor TendonSensor TouchSensor UserSensor"
    ),
    "zwang.api.analysis.reference": (
        "bias_forces body_quantities difference_configuration energy external_wrenches forward_dynamics "
        "frame_acceleration frame_jacobian frame_jacobian_rate frame_pose frame_velocity "
        "integrate_configuration inverse_dynamics mass_centre mass_matrix momentum sensors zwang_by_body "
        "zwang_of"
    ),
    "zwang.api.compilation.compiled": "compile",
    "zwang.interop.export": "export",
    "zwang.io.load": "load",
    "zwang.io.lint": "lint",
    "zwang.io.mjcf.write.write_mjcf": "write_mjcf",
    "zwang.io.urdf.write_urdf": "write_urdf",
    "zwang.constraint.softness_report": "softness",
    "zwang.api.analysis.contacts": "contacts",
    "zwang.api.analysis.joint_reactions": "joint_reactions",
    "zwang.api.runs.simulate": "simulate",
    "zwang.api.analysis.assemble": "assemble",
    "zwang.api.analysis.solve_contact": "solve_contact",
    "zwang.api.analysis.task_acceleration": "TaskConstraint task_acceleration",
    "zwang.api.analysis.trim": "trim",
    "zwang.api.batch.worlds": "Worlds",
    "zwang.symbolic.equations": "equations",
    "zwang.symbolic.equation_check": "check_equations",
    "zwang.symbolic.classify": "classify",
    "zwang.symbolic.linearization": "linearize",
    "zwang.recording.dataset": "mechanism_of open_run save",
    "zwang.api.runs.post_processing": "derived_quantities",
    "zwang.simulation.solver_status": "SolverStatus",
    "zwang.integrator.adaptive_step": "Adaptive",
    "zwang.viewer.plot": "plot",
    "zwang.viewer.html_page": "save_html",
    "zwang.viewer.page.live": "view",
    "zwang.viewer.robot_plots": "plot_ellipsoids plot_manipulability",
    "zwang.simulation.events": "Event",
    "zwang.api.analysis.constrained_dynamics": "constrained_dynamics",
}
"""The public names of each module."""

_NAMES = {name: module for module, names in _PLACES.items() for name in names.split()}
_MODULES = {
    "control": "zwang.control",
    "errors": "zwang.errors",
    "identify": "zwang.identification",
    "robot": "zwang.robot",
    "scalar": "zwang.scalar",
}
"""The public modules."""

_RENAMED = {
    "Couple": "zwang.mechanism.constraints:JointCoupling",
    "CoupleTendons": "zwang.mechanism.tendon_elements:TendonCoupling",
    "examine": "zwang.api.runs.post_processing:derived_quantities",
}
"""The public names of version 0.1 that have changed."""

__all__ = [
    "Actuator",
    "ActuatorSensor",
    "Adaptive",
    "Ball",
    "Body",
    "Box",
    "Camera",
    "CameraSensor",
    "Capsule",
    "Connect",
    "ContactExclude",
    "ContactPair",
    "ContactSensor",
    "CoulombFriction",
    "Cylinder",
    "Cylindrical",
    "Damper",
    "Distance",
    "DistanceSensor",
    "Ellipsoid",
    "EllipsoidDrag",
    "Event",
    "Fixed",
    "FluidDrag",
    "Frame",
    "FrameSensor",
    "Free",
    "GlobalSensor",
    "GravityCompensation",
    "HeightField",
    "Holonomic",
    "InsideSensor",
    "JointCoupling",
    "JointSensor",
    "Keyframe",
    "Mechanism",
    "Mesh",
    "MeshHull",
    "Motor",
    "Muscle",
    "NoSideSlip",
    "NonIdeal",
    "Options",
    "Pfaffian",
    "Pid",
    "Planar",
    "Plane",
    "PointSpeed",
    "PointSpring",
    "Prismatic",
    "RangeSensor",
    "Revolute",
    "Rolling",
    "Screw",
    "SiteSensor",
    "Softness",
    "SolverStatus",
    "Sphere",
    "Spring",
    "SubtreeSensor",
    "Surface",
    "TaskConstraint",
    "Tendon",
    "TendonCoupling",
    "TendonSensor",
    "TouchSensor",
    "Universal",
    "UserSensor",
    "Weld",
    "Worlds",
    "Wrap",
    "Wrench",
    "assemble",
    "bias_forces",
    "body_quantities",
    "check_equations",
    "classify",
    "compile",
    "constrained_dynamics",
    "contacts",
    "control",
    "derived_quantities",
    "difference_configuration",
    "energy",
    "equations",
    "errors",
    "export",
    "external_wrenches",
    "forward_dynamics",
    "frame_acceleration",
    "frame_jacobian",
    "frame_jacobian_rate",
    "frame_pose",
    "frame_velocity",
    "identify",
    "integrate_configuration",
    "inverse_dynamics",
    "joint_reactions",
    "linearize",
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
    "sensors",
    "simulate",
    "softness",
    "solve_contact",
    "task_acceleration",
    "trim",
    "view",
    "with_applied_wrenches",
    "with_equality_parameters",
    "with_mocap_parameters",
    "write_mjcf",
    "write_urdf",
    "zwang_by_body",
    "zwang_of",
]


def _loaded(name: str) -> Any:
    """The public name, loaded from its module when it is first used."""
    if name in _RENAMED:
        return _renamed(name)
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    elif name.startswith("__"):  # asked for by Python's own tools
        raise AttributeError(f"zwang has no name {name!r}", name=name, obj=None)
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


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every misspelt name
    __getattr__ = _loaded


def _renamed(old: str) -> Any:
    """The object that a name of version 0.1 denotes, with a DeprecationWarning."""
    module, _, new = _RENAMED[old].partition(":")
    deprecation.warn_of_rename(f"zwang.{old}", f"zwang.{new}", stacklevel=4)
    return getattr(import_module(module), new)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _load_symbolic() -> None:
    import_module("zwang.symbolic.sympy_backend")


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
    return import_module("zwang.viewer.notebook").run_html(dataset)


def _mechanism_as_html(mechanism: Any) -> str:
    return import_module("zwang.viewer.notebook").mechanism_html(mechanism)


scalar.register_lazily("sympy", _load_symbolic)
rich_display.register_html_writer(_mechanism_as_html)
if "IPython" in sys.modules and (_shell := sys.modules["IPython"].get_ipython()) is not None:
    load_ipython_extension(_shell)
