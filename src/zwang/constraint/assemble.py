"""All rows of a mechanism at one instant, in MuJoCo's order: equality, friction, limits, contacts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from zwang.constraint.contact_batches import contact_batches
from zwang.constraint.contact_rows import contact_rows, is_hard, screws_of
from zwang.constraint.equality import LOOPS, equality_rows
from zwang.constraint.exact import VELOCITY, velocity_rows
from zwang.constraint.friction import friction_rows
from zwang.constraint.instant import Instant
from zwang.constraint.limit import limit_rows
from zwang.constraint.listing import all_listed, can_be_listed
from zwang.constraint.rows import Rows, concatenated, no_rows
from zwang.contact import candidate_pairs
from zwang.scalar import Scratch, are_constant


def constraint_rows(
    instant: Instant, *, batched: bool = True, listing: Callable[[int], Scratch] | None = None
) -> Rows:
    """The rows of everything that restricts, less what the options disable; batched: traced soft contacts may come in batches; listing: with what is
    remembered of so many rows, they come as a list of those that act, where they are of the kinds that can be listed."""
    mechanism, disabled = instant.mechanism, instant.mechanism.options.disabled
    parts: list[Rows] = []
    if "constraint" in disabled:
        return concatenated(parts, mechanism.nv)
    if "equality" not in disabled:
        for c in mechanism.constraints:
            if isinstance(c, LOOPS):
                parts.append(equality_rows(instant, c))
            elif isinstance(c, VELOCITY):
                parts.append(velocity_rows(instant, c))
    if "frictionloss" not in disabled:
        parts += friction_rows(instant)
    if "limit" not in disabled:
        parts += limit_rows(instant)
    if "contact" not in disabled and mechanism.options.contact:
        if listing is not None and all(map(can_be_listed, parts)) and _pyramids(instant):
            pairs, screws = candidate_pairs(mechanism), screws_of(instant)
            found = all_listed(instant, concatenated(parts, mechanism.nv), pairs, screws, listing)
            return replace(no_rows(mechanism.nv), listed=found, screws=screws)
        parts += _contacts(instant, batched)
    return concatenated(parts, mechanism.nv)


def _pyramids(instant: Instant) -> bool:
    """Whether there are contacts, all of them soft and, if they have friction, in pyramids."""
    pairs, round_ = candidate_pairs(instant.mechanism), instant.mechanism.options.cone != "pyramidal"
    return bool(pairs) and not any(is_hard(pair) or (round_ and pair.condim > 1) for pair in pairs)


def _contacts(instant: Instant, batched: bool) -> list[Rows]:
    """The rows of contacts: pair by pair where positions are numbers, else as far as they are soft in batches."""
    pairs = candidate_pairs(instant.mechanism)
    if not pairs:
        return []
    screws, nv = screws_of(instant), instant.mechanism.nv
    if not batched or are_constant(*instant.q):
        return contact_rows(instant, pairs, screws)
    soft = [pair for pair in pairs if not is_hard(pair)]
    batches = contact_batches(instant, soft, screws) if soft else ()
    found = contact_rows(instant, [pair for pair in pairs if is_hard(pair)], screws)
    return [*found, replace(no_rows(nv), batches=batches, screws=screws)]
