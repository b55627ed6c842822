"""Contact pairs and contact exclusions of a compiled MJCF model."""

from __future__ import annotations

import numpy as np

from zwang.io.mjcf.read.compiled_model import MjcfModel
from zwang.io.mjcf.read.read_bodies import GEOM
from zwang.io.mjcf.read.read_sensors import SENSOR
from zwang.io.mjcf.solver_parameters import solref_of
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.numbers import clipped_solimp


def explicit_contacts(source: MjcfModel) -> tuple[ContactPair | ContactExclude, ...]:
    """The explicit contact pairs and the contact exclusions of the model."""
    m = source.model
    _check_height_fields(source)
    found: list[ContactPair | ContactExclude] = []
    for p in range(m.npair):
        shapes = tuple(m.geom(int(g)).name for g in (m.pair_geom1[p], m.pair_geom2[p]))
        if np.any(m.pair_adhesion[p]):
            source.unsupported(f"the adhesion of the contact pair {shapes}", source.location("pair", p))
        _check_is_sensed(source, p, shapes)
        reference = tuple(float(x) for x in m.pair_solreffriction[p])
        found.append(
            ContactPair(
                m.pair(p).name,
                shapes,
                condim=int(m.pair_dim[p]),
                friction=tuple(float(x) for x in m.pair_friction[p]),
                solref=solref_of(m.pair_solref[p]),
                solreffriction=solref_of(reference) if any(reference) else (),
                solimp=clipped_solimp(m.pair_solimp[p].tolist()),
                margin=float(m.pair_margin[p]),
                gap=float(m.pair_gap[p]),
            )
        )
    for e in range(m.nexclude):
        signature = int(m.exclude_signature[e])
        found.append(
            ContactExclude((source.name("body", signature >> 16), source.name("body", signature & 0xFFFF)))
        )
    return tuple(found)


def _check_is_sensed(source: MjcfModel, p: int, shapes: tuple[str, ...]) -> None:
    """Report a contact pair of shapes that are fixed to each other, if there are contact sensors: the contact
    moves nothing, and has no quantities here.
    """
    m = source.model
    first, second = (m.body_weldid[m.geom_bodyid[int(g)]] for g in (m.pair_geom1[p], m.pair_geom2[p]))
    if first == second and np.any(m.sensor_type == SENSOR.mjSENS_CONTACT):
        source.inexact(
            f"the contact pair {shapes} of shapes fixed to each other, which contact sensors of MuJoCo find",
            "leaves it out, also of contact sensors",
            source.location("pair", p),
        )


def _check_height_fields(source: MjcfModel) -> None:
    """Report contacts of height fields that MuJoCo 4.0 finds otherwise."""
    m = source.model
    fields = [g for g in range(m.ngeom) if m.geom_type[g] == GEOM.mjGEOM_HFIELD]
    explicit = {frozenset((int(a), int(b))) for a, b in zip(m.pair_geom1, m.pair_geom2, strict=True)}
    for field in fields:
        for g in range(m.ngeom):
            masks = (
                m.geom_contype[g] & m.geom_conaffinity[field],
                m.geom_contype[field] & m.geom_conaffinity[g],
            )
            same = m.body_weldid[m.geom_bodyid[g]] == m.body_weldid[m.geom_bodyid[field]]
            if frozenset((g, field)) not in explicit and (same or not any(masks)):
                continue
            what = f"the contact of a height field with geom {m.geom(g).name or g!r}"
            if m.geom_type[g] in (GEOM.mjGEOM_BOX, GEOM.mjGEOM_MESH):
                source.inexact(
                    f"{what}, a box or a mesh, whose depth MuJoCo underestimates, as its search for the "
                    "deepest point ends early",
                    "has the exact depth",
                    source.location("geom", g),
                )
