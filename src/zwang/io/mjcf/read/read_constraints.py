"""Equality constraints of a compiled MJCF model."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zwang.io.mjcf.inexact_in_mujoco import has_joint_after_ball
from zwang.io.mjcf.mujoco_library import mujoco, numbers_of
from zwang.io.mjcf.read.compiled_model import MjcfModel
from zwang.io.mjcf.read.read_bodies import JOINT, zeroed
from zwang.io.mjcf.solver_parameters import softness_of
from zwang.io.structural_numbers import matrix_of
from zwang.mechanism.constraints import Connect, JointCoupling, Weld
from zwang.mechanism.tendon_elements import TendonCoupling

EQUALITY, OBJECT = numbers_of(mujoco.mjtEq), numbers_of(mujoco.mjtObj)


class Equalities(NamedTuple):
    """Equality constraints that act from the beginning, and others."""

    active: tuple[Any, ...]
    inactive: tuple[Any, ...]


def equalities(source: MjcfModel, kept_tendons: set[str]) -> Equalities:
    """The equality constraints; `kept_tendons` are the names of the tendons that were read."""
    m = source.model
    found: tuple[list[Any], list[Any]] = ([], [])
    for e in range(m.neq):
        name, where = source.name("equality", e), source.location("equality", e)
        active = bool(m.eq_active0[e])
        if not active:
            source.note(
                "ignored",
                f"equality {name!r} is not active, unless zw.with_equality_parameters switches it on",
                where,
            )
        with source.at("equality", e):
            constraint = _equality(source, e, name, kept_tendons)
        if constraint is None:
            report = source.unsupported if active else partial(source.note, "ignored")
            report(f"equality {name!r} ({mujoco.mjtEq(int(m.eq_type[e])).name[5:].lower()})", where)
        else:
            found[not active].append(constraint)
    return Equalities(tuple(found[0]), tuple(found[1]))


def _equality(source: MjcfModel, e: int, name: str, kept_tendons: set[str]) -> Any:
    m = source.model
    data, kind = m.eq_data[e], int(m.eq_type[e])
    softness = softness_of(m.eq_solref[e], m.eq_solimp[e])
    first, second = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    if kind in (EQUALITY.mjEQ_CONNECT, EQUALITY.mjEQ_WELD):
        _check_joint_order(source, e, name)
    if kind == EQUALITY.mjEQ_CONNECT:
        a, b = _ends(source, e, data[0:3], data[3:6])
        return Connect(name, (a[0], a[1]), (b[0], b[1]), softness)
    if kind == EQUALITY.mjEQ_WELD:
        a, b = _ends(source, e, data[3:6], data[0:3])
        R = np.array(a[2]) @ np.array(b[2]).T if a[2] is not None else np.array(matrix_of(data[6:10]))
        orientation: Any = tuple(tuple(row) for row in R.tolist())
        return Weld(name, a[0], b[0], a[1], orientation, b[1], float(data[10]), softness)
    if kind not in (EQUALITY.mjEQ_JOINT, EQUALITY.mjEQ_TENDON):
        return None
    target = "joint" if kind == EQUALITY.mjEQ_JOINT else "tendon"
    names = [source.name(target, first), source.name(target, second) if second >= 0 else None]
    if target == "tendon" and not all(n is None or n in kept_tendons for n in names):
        return None
    coupling = JointCoupling if target == "joint" else TendonCoupling
    return coupling(name, str(names[0]), names[1], _trimmed(data[:5]), softness)


def _check_joint_order(source: MjcfModel, e: int, name: str) -> None:
    """Report a body that a connect or weld constraint moves, if `has_joint_after_ball`."""
    m = source.model
    bodies = [int(m.eq_obj1id[e]), int(m.eq_obj2id[e])]
    if m.eq_objtype[e] == OBJECT.mjOBJ_SITE:
        bodies = [int(m.site_bodyid[s]) for s in bodies]
    for body in bodies:
        while body > 0:
            begin = int(m.body_jntadr[body])
            kinds = m.jnt_type[begin : begin + int(m.body_jntnum[body])].tolist()
            if has_joint_after_ball([kind == JOINT.mjJNT_BALL for kind in kinds]):
                source.inexact(
                    f"equality {name!r} with a ball joint before another joint of body "
                    f"{source.name('body', body)!r}, whose velocity-product term is inexact in MuJoCo",
                    "has the exact term",
                    source.location("equality", e),
                )
                return
            body = int(m.body_parentid[body])


def _trimmed(coefficients: Any) -> tuple[Any, ...]:
    """The coefficients without trailing zeros, but at least two of them."""
    values = zeroed(coefficients)
    while len(values) > 2 and values[-1] == 0:
        values = values[:-1]
    return values


def _ends(source: MjcfModel, e: int, first: Any, second: Any) -> list[tuple[str, tuple[Any, ...], Any]]:
    """(body, point, rotation) at both ends; the rotation is None except for sites."""
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
