"""What restricts in a compiled MJCF model: equalities, tendons, contact pairs; its options and keyframes."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.io.mjcf.compiled_model import MjcfModel
from zwang.io.mjcf.mujoco_library import flags_of, mujoco, numbers_of
from zwang.io.mjcf.read_bodies import matrix_of, zeroed
from zwang.io.mjcf.solver_parameters import softness_of, solimp_of, solref_of
from zwang.mechanism.constraints import Connect, JointCoupling, Weld
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.options import DISABLED, ENABLED, Keyframe, Options
from zwang.mechanism.tendon_elements import TendonCoupling

EQUALITY, OBJECT = numbers_of(mujoco.mjtEq), numbers_of(mujoco.mjtObj)
_CHANGING = {
    "override",
    "sleep",
    "diagexact",
    "ipc",
    "speculative",
}  # of the enabled flags, those that change the motion
_INTEGRATORS = ("euler", "rk4", "implicit", "implicitfast", "discrete")


def options(source: MjcfModel) -> Options:
    """The option element; what in it would change the motion and is not there is refused."""
    o = source.model.opt
    where = next(
        (f"{e.source}, line {e.line}" for e in source.files.elements() if e.name == "option"),
        source.files.source,
    )
    disabled = flags_of(mujoco.mjtDisableBit, o.disableflags, DISABLED)
    enabled = flags_of(mujoco.mjtEnableBit, o.enableflags, ENABLED)
    for name in enabled:
        if name in _CHANGING:
            source.unsupported(f"the option flag {name!r}", where)
    if o.density > 0 or o.viscosity > 0:
        source.unsupported(f"the fluid around (density {o.density:g}, viscosity {o.viscosity:g})", where)
    elif np.any(o.wind):
        source.note("ignored", "wind without a fluid's density or viscosity has no effect", where)
    if o.noslip_iterations > 0:
        source.unsupported("the noslip solver (noslip_iterations)", where)
    integrator = _INTEGRATORS[int(o.integrator)]
    if integrator == "discrete":
        source.unsupported("the integrator 'discrete'", where)
        integrator = "euler"
    return Options(
        timestep=float(o.timestep),
        integrator=integrator,
        cone=("pyramidal", "elliptic")[int(o.cone)],
        impratio=float(o.impratio),
        solver=("pgs", "cg", "newton")[int(o.solver)],
        iterations=int(o.iterations),
        tolerance=float(o.tolerance),
        contact="contact" not in disabled and "constraint" not in disabled,
        disabled=disabled,
        enabled=enabled,
    )


def equalities(source: MjcfModel, kept_tendons: set[str]) -> tuple[Any, ...]:
    """The equality constraints that are active."""
    m = source.model
    found = []
    for e in range(m.neq):
        name, where = source.name("equality", e), source.location("equality", e)
        if not m.eq_active0[e]:
            source.note("ignored", f"equality {name!r} is not active", where)
            continue
        with source.at("equality", e):
            constraint = _equality(source, e, name, kept_tendons)
        if constraint is None:
            source.unsupported(
                f"equality {name!r} ({mujoco.mjtEq(int(m.eq_type[e])).name[5:].lower()})", where
            )
        else:
            found.append(constraint)
    return tuple(found)


def _equality(source: MjcfModel, e: int, name: str, kept_tendons: set[str]) -> Any:
    m = source.model
    data, kind = m.eq_data[e], int(m.eq_type[e])
    soft = softness_of(m.eq_solref[e], m.eq_solimp[e])
    first, second = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    if kind == EQUALITY.mjEQ_CONNECT:
        a, b = _ends(source, e, data[0:3], data[3:6])
        return Connect(name, (a[0], a[1]), (b[0], b[1]), soft)
    if kind == EQUALITY.mjEQ_WELD:
        a, b = _ends(source, e, data[3:6], data[0:3])
        turn = np.array(a[2]) @ np.array(b[2]).T if a[2] is not None else np.array(matrix_of(data[6:10]))
        orientation: Any = tuple(tuple(row) for row in turn.tolist())
        return Weld(name, a[0], b[0], a[1], orientation, b[1], float(data[10]), soft)
    if kind not in (EQUALITY.mjEQ_JOINT, EQUALITY.mjEQ_TENDON):
        return None
    of = "joint" if kind == EQUALITY.mjEQ_JOINT else "tendon"
    names = [source.name(of, first), source.name(of, second) if second >= 0 else None]
    if of == "tendon" and not all(n is None or n in kept_tendons for n in names):
        return None
    return (JointCoupling if of == "joint" else TendonCoupling)(name, names[0], names[1], _trimmed(data[:5]), soft)


def _trimmed(coefficients: Any) -> tuple[Any, ...]:
    """Without zeros at the end, but with two at least."""
    values = zeroed(coefficients)
    while len(values) > 2 and values[-1] == 0:
        values = values[:-1]
    return values


def _ends(source: MjcfModel, e: int, first: Any, second: Any) -> list[tuple[str, tuple[Any, ...], Any]]:
    """Body, point and (of a site) rotation at both ends."""
    m = source.model
    ids = (int(m.eq_obj1id[e]), int(m.eq_obj2id[e]))
    if m.eq_objtype[e] == OBJECT.mjOBJ_SITE:
        return [
            (source.name("body", int(m.site_bodyid[s])), zeroed(m.site_pos[s]), matrix_of(m.site_quat[s]))
            for s in ids
        ]
    return [
        (source.name("body", b), zeroed(point), None) for b, point in zip(ids, (first, second), strict=True)
    ]


def contacts(source: MjcfModel) -> tuple[ContactPair | ContactExclude, ...]:
    """Explicit pairs of shapes, and bodies that never touch."""
    m = source.model
    found: list[ContactPair | ContactExclude] = []
    for p in range(m.npair):
        shapes = tuple(m.geom(int(g)).name for g in (m.pair_geom1[p], m.pair_geom2[p]))
        if np.any(m.pair_adhesion[p]):
            source.unsupported(f"the adhesion of the contact pair {shapes}", source.location("pair", p))
        reference = tuple(float(x) for x in m.pair_solreffriction[p])
        found.append(
            ContactPair(
                m.pair(p).name,
                shapes,
                condim=int(m.pair_dim[p]),
                friction=tuple(float(x) for x in m.pair_friction[p]),
                solref=solref_of(m.pair_solref[p]),
                solreffriction=solref_of(reference) if any(reference) else (),
                solimp=solimp_of(m.pair_solimp[p]),
                margin=float(m.pair_margin[p]),
                gap=float(m.pair_gap[p]),
            )
        )
    for x in range(m.nexclude):
        signature = int(m.exclude_signature[x])
        found.append(
            ContactExclude((source.name("body", signature >> 16), source.name("body", signature & 0xFFFF)))
        )
    return tuple(found)


def keyframes(source: MjcfModel, kept: list[str]) -> tuple[Keyframe, ...]:
    """The stored states; `kept` are the actuators that were read, in their order."""
    m = source.model
    names = [source.name("actuator", k) for k in range(m.nactuator)]
    controls = [int(m.actuator_ctrladr[names.index(name)]) for name in kept]
    states = [int(m.actuator_actadr[names.index(name)]) for name in kept]
    return tuple(
        Keyframe(
            source.name("key", k),
            q=tuple(m.key_qpos[k].tolist()),
            v=tuple(m.key_qvel[k].tolist()),
            control=tuple(float(m.key_ctrl[k][c]) for c in controls),
            activation=tuple(float(m.key_act[k][s]) for s in states if s >= 0),
            time=float(m.key_time[k]),
        )
        for k in range(m.nkey)
    )
