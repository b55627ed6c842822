"""Contact pairs and contact exclusions of a compiled MJCF model."""

from __future__ import annotations

import numpy as np

from zwang.io.mjcf.compiled_model import MjcfModel
from zwang.io.mjcf.solver_parameters import solimp_of, solref_of
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair


def contacts(source: MjcfModel) -> tuple[ContactPair | ContactExclude, ...]:
    """The explicit contact pairs and the contact exclusions of the model."""
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
    for e in range(m.nexclude):
        signature = int(m.exclude_signature[e])
        found.append(
            ContactExclude((source.name("body", signature >> 16), source.name("body", signature & 0xFFFF)))
        )
    return tuple(found)
