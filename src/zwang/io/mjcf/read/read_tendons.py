"""Tendons of a compiled MJCF model, and the frames of the geoms around which they wrap."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from zwang.io.mjcf.mujoco_library import flags_of, mujoco, numbers_of
from zwang.io.mjcf.read.compiled_model import MjcfModel
from zwang.io.mjcf.read.read_bodies import zeroed
from zwang.io.mjcf.read.unique_frames import UniqueFrames
from zwang.io.mjcf.solver_parameters import softness_of
from zwang.io.structural_numbers import matrix_of
from zwang.mechanism.bodies import Frame
from zwang.mechanism.tendon_elements import Tendon, Wrap

WRAP, TRANSMISSION, GEOM, GAIN = (
    numbers_of(kind) for kind in (mujoco.mjtWrap, mujoco.mjtTrn, mujoco.mjtGeom, mujoco.mjtGain)
)
WRAPPING = "wrapping geom"  # a kind of names
_WRAPPING_SHAPES: dict[int, Literal["sphere", "cylinder"]] = {
    WRAP.mjWRAP_SPHERE: "sphere",
    WRAP.mjWRAP_CYLINDER: "cylinder",
}


class TendonPath(NamedTuple):
    """The path of a tendon: joints with coefficients; or frames, divisors of branches, and wraps."""

    joints: tuple[tuple[str, Any], ...]
    frames: tuple[str | None, ...]
    divisors: tuple[Any, ...]
    wraps: tuple[Wrap, ...]


def tendons(source: MjcfModel) -> tuple[Tendon, ...]:
    """The fixed and spatial tendons of the model; those that zwang does not support are reported."""
    found = []
    for t in range(source.model.ntendon):
        with source.at("tendon", t):
            tendon = _tendon(source, t)
        if tendon is not None:
            found.append(tendon)
    return tuple(found)


def _tendon(source: MjcfModel, t: int) -> Tendon | None:
    m = source.model
    feature = _unsupported_feature(m, t)
    if feature:
        source.unsupported(
            f"tendon {source.name('tendon', t)!r} with {feature}", source.location("tendon", t)
        )
        return None
    path = _path(source, t)
    stiffness = _unless_disabled(source, "spring", [m.tendon_stiffness[t], *m.tendon_stiffnesspoly[t]])
    damping = _unless_disabled(source, "damper", _damping(m, t))
    return Tendon(
        name=source.name("tendon", t),
        joints=path.joints,
        path=path.frames,
        divisors=path.divisors,
        wraps=path.wraps,
        stiffness=stiffness[0],
        damping=damping[0],
        higher_stiffness=_trimmed(stiffness[1:]),
        higher_damping=_trimmed(damping[1:]),
        spring_length=_pair(m.tendon_lengthspring[t]),
        armature=zeroed([m.tendon_armature[t] + _rotor_inertia(m, t)])[0],
        limits=_pair(m.tendon_range[t]) if m.tendon_limited[t] else None,
        actuator_range=_actuator_range(source, t),
        friction=zeroed([m.tendon_frictionloss[t]])[0],
        limit_softness=softness_of(m.tendon_solref_lim[t], m.tendon_solimp_lim[t], m.tendon_margin[t]),
        friction_softness=softness_of(m.tendon_solref_fri[t], m.tendon_solimp_fri[t]),
    )


def _actuator_range(source: MjcfModel, t: int) -> tuple[Any, Any] | None:
    """The range of the actuators' total force on tendon t. MuJoCo clamps to such ranges only where another
    actuator than a plugin drives a tendon that has one.
    """
    m = source.model
    if not m.tendon_actfrclimited[t]:
        return None
    driven = np.where(m.actuator_trntype == TRANSMISSION.mjTRN_TENDON, m.actuator_trnid[:, 0], -1)
    by_others = driven[(driven >= 0) & (m.actuator_gaintype != GAIN.mjGAIN_USER)]
    if t in driven and not m.tendon_actfrclimited[by_others].any():
        name = f"actuatorfrcrange of tendon {source.name('tendon', t)!r}"
        source.note("ignored", f"{name}: MuJoCo does not clamp plugins to it", source.location("tendon", t))
        return None
    return _pair(m.tendon_actfrcrange[t])


def _path_elements(m: Any, t: int) -> range:
    """The indices of the path elements of tendon t."""
    return range(int(m.tendon_adr[t]), int(m.tendon_adr[t] + m.tendon_num[t]))


def _path(source: MjcfModel, t: int) -> TendonPath:
    m = source.model
    joints: list[tuple[str, Any]] = []
    frames: list[str | None] = []
    divisors: list[Any] = []
    wraps: list[Wrap] = []
    for w in _path_elements(m, t):
        kind, target = int(m.wrap_type[w]), int(m.wrap_objid[w])
        if kind == WRAP.mjWRAP_JOINT:
            joints.append((source.name("joint", target), float(m.wrap_prm[w])))
        elif kind == WRAP.mjWRAP_PULLEY:
            frames.append(None)
            divisors.append(float(m.wrap_prm[w]))
        elif kind == WRAP.mjWRAP_SITE:
            frames.append(source.name("site", target))
        else:
            side = _side(m, w)
            wraps.append(
                Wrap(
                    len(frames),
                    float(m.geom_size[target][0]),
                    _WRAPPING_SHAPES[kind],
                    source.name("site", side) if side >= 0 else None,
                )
            )
            frames.append(source.name(WRAPPING, target))
    if frames and frames[0] is not None:
        divisors.insert(0, 1)
    return TendonPath(tuple(joints), tuple(frames), tuple(divisors), tuple(wraps))


def _side(m: Any, w: int) -> int:
    """The index of the side site of path element w, or -1."""
    return round(float(m.wrap_prm[w]))


def name_wrapped_frames(source: MjcfModel, frames: UniqueFrames) -> None:
    """Add a frame for each geom around which a tendon wraps to the frames, unless they have it already.

    The names of these frames, which `tendons` needs, are those of the kind WRAPPING of the model.
    """
    m = source.model
    names = source.names[WRAPPING] = [""] * m.ngeom
    for geom in sorted({int(m.wrap_objid[w]) for w in range(m.nwrap) if m.wrap_type[w] in _WRAPPING_SHAPES}):
        sphere = bool(m.geom_type[geom] == GEOM.mjGEOM_SPHERE)
        names[geom] = frames.name_of(_geom_frame(source, geom), any_axes=sphere)


def _geom_frame(source: MjcfModel, geom: int) -> Frame:
    """The frame of a geom."""
    m = source.model
    body = source.name("body", int(m.geom_bodyid[geom]))
    name = f"{m.geom(geom).name or f'geom{geom}'} (wrapped)"
    return Frame(name, body, zeroed(m.geom_pos[geom]), matrix_of(m.geom_quat[geom]))


def _unsupported_feature(m: Any, t: int) -> str:
    """The feature of tendon t that is not supported; empty if there is none."""
    if m.tendon_springyield[t] > 0:
        return "a plastic spring (springyield)"
    if m.tendon_armature[t] + _rotor_inertia(m, t) != 0 and not _is_on_one_branch(m, t):
        return "armature and joints on different branches"
    return ""


def _is_on_one_branch(m: Any, t: int) -> bool:
    """Whether the bodies whose joints change the length of tendon t are on one path from the world.

    MuJoCo omits the elements of the mass matrix that the armature has between other bodies.
    """
    moved: set[int] = set()
    last: set[int] | None = None
    for w in _path_elements(m, t):
        kind, target = int(m.wrap_type[w]), int(m.wrap_objid[w])
        if kind == WRAP.mjWRAP_JOINT:
            moved.add(int(m.jnt_bodyid[target]))
        elif kind == WRAP.mjWRAP_PULLEY:
            last = None
        elif kind == WRAP.mjWRAP_SITE:
            chain = _ancestors(m, int(m.site_bodyid[target]))
            moved |= set() if last is None else last ^ chain
            last = chain
    moved = {body for body in moved if m.body_dofnum[body]}
    return not moved or moved <= _ancestors(m, max(moved))


def _ancestors(m: Any, body: int) -> set[int]:
    """A body with its ancestors, without the world."""
    found = set()
    while body:
        found.add(body)
        body = int(m.body_parentid[body])
    return found


def _actuators(m: Any, t: int) -> list[int]:
    """The indices of the actuators on tendon t."""
    on_tendons = m.actuator_trntype == TRANSMISSION.mjTRN_TENDON
    return [int(k) for k in np.flatnonzero(on_tendons) if m.actuator_trnid[k][0] == t]


def _rotor_inertia(m: Any, t: int) -> Any:
    """The armature that actuators add to tendon t: the inertia of the rotor times the square of the gear."""
    return sum(m.actuator_armature[k] * m.actuator_gear[k][0] ** 2 for k in _actuators(m, t))


def _damping(m: Any, t: int) -> Any:
    """The coefficients of the damper of tendon t, with those of its actuators times the square of the
    gear.
    """
    total = np.array([m.tendon_damping[t], *m.tendon_dampingpoly[t]], float)
    for k in _actuators(m, t):
        total = total + m.actuator_gear[k][0] ** 2 * np.array(
            [m.actuator_damping[k], *m.actuator_dampingpoly[k]]
        )
    return total


def _unless_disabled(source: MjcfModel, flag: str, values: Any) -> Any:
    """The values, or zeros if the flag disables this kind of force."""
    disabled = flags_of(mujoco.mjtDisableBit, source.model.opt.disableflags, (flag,))
    return (0,) * len(values) if disabled else zeroed(values)


def _trimmed(values: Any) -> Any:
    """The values up to the last one that is not zero."""
    last = max((i for i, x in enumerate(values, start=1) if x != 0), default=0)
    return tuple(values[:last])


def _pair(ends: Any) -> tuple[float, float]:
    return float(ends[0]), float(ends[1])
