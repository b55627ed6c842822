"""Plausibility checks of an MJCF file, whose warnings state file and line."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np

from zwang.errors import LoadError, PlausibilityWarning
from zwang.io.mjcf.mujoco_library import mujoco, numbers_of
from zwang.io.mjcf.read.attribute_ranges import check_ranges, implausible_attributes
from zwang.io.mjcf.read.compiled_model import MjcfModel

LARGEST_STEP = 0.1  # s
LARGEST_MASS = 1e9  # kg
JOINT = numbers_of(mujoco.mjtJoint)
_HINGES = (JOINT.mjJNT_HINGE, JOINT.mjJNT_BALL)


def check_plausibility(source: MjcfModel) -> None:
    """Warns with PlausibilityWarning of implausible numbers. Raises LoadError for invalid ones."""
    m, elements = source.model, list(source.files.elements())
    check_ranges(elements)
    for element, what in implausible_attributes(elements):
        location = f"{element.source}, line {element.line}"
        source.note("implausible", what, location)
        _warn(f"{location}: {what}")
    option = next((e for e in source.files.elements() if e.name == "option"), None)
    location = f"{option.source}, line {option.line}" if option is not None else source.files.source
    if not 0 < m.opt.timestep < math.inf:
        raise LoadError(f"{location}: timestep of <option> is {m.opt.timestep:g}; it must be positive")
    for dof in np.flatnonzero(~(np.asarray(m.dof_armature) >= 0)):
        joint = int(m.dof_jntid[dof])
        raise LoadError(f"{source.location('joint', joint)}: armature of joint "
                        f"{source.name('joint', joint)!r} is "
                        f"{m.dof_armature[dof]:g}; it must not be negative")  # fmt: skip
    if m.opt.timestep > LARGEST_STEP:
        _warn(
            f"{location}: timestep of <option> is {m.opt.timestep:g} s, which is too large for most "
            "mechanisms"
        )
    for message in (*_large_masses(source), *_stiff_springs(source), *_ranges_in_radians(source)):
        _warn(message)


def _warn(message: str) -> None:
    warnings.warn(message, PlausibilityWarning, stacklevel=4)


def _large_masses(source: MjcfModel) -> Iterator[str]:
    m = source.model
    for i in range(1, m.nbody):
        if m.body_mass[i] > LARGEST_MASS:
            yield (
                f"{source.location('body', i)}: body {source.name('body', i)!r} has the mass "
                f"{m.body_mass[i]:.3g} kg"
            )


def _stiff_springs(source: MjcfModel) -> Iterator[str]:
    """Springs for which an explicit step of size h is unstable: k h^2 > 4 m."""
    m = source.model
    for j in range(m.njnt):
        inertia = float(m.dof_M0[int(m.jnt_dofadr[j])])
        if m.jnt_stiffness[j] * m.opt.timestep * m.opt.timestep > 4 * inertia:
            name = source.name("joint", j)
            yield (
                f"{source.location('joint', j)}: the spring of joint {name!r} (stiffness "
                f"{m.jnt_stiffness[j]:.3g}) is too "
                f"stiff for the timestep {m.opt.timestep:g} s: a step would be unstable"
            )


def _ranges_in_radians(source: MjcfModel) -> Iterator[str]:
    """Ranges that look like radians in a file whose unit of angle is the degree."""
    m = source.model
    if not source.spec.compiler.degree:
        return
    for j in range(m.njnt):
        if not m.jnt_limited[j] or m.jnt_type[j] not in _HINGES:
            continue
        ends = np.degrees(np.abs(m.jnt_range[j]))
        wide = float(ends.max())
        if 0.5 < wide <= 2 * math.pi + 0.01 and _is_fraction_of_pi(wide):
            yield (
                f"{source.location('joint', j)}: the range of joint {source.name('joint', j)!r} reaches "
                f"{wide:.4g} degrees, "
                'which looks like radians; <compiler angle="radian"/> declares angles in radians'
            )


def _is_fraction_of_pi(x: float) -> bool:
    """Whether x is, within 2e-3, k pi / n for n = 1, 2, 3, 4 or 6 and k up to 2 n."""
    return any(abs(x - k * math.pi / n) < 2e-3 for n in (1, 2, 3, 4, 6) for k in range(1, 2 * n + 1))
