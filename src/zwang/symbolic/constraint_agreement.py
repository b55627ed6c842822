"""Contradictions between hard constraints, before a derivation that keeps their independent rows only."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.assembly import assemble_state
from zwang.constraint.hard import all_velocity_level_rows, depends_on_time, hard_constraints
from zwang.constraint.row_sizes import row_tolerances
from zwang.errors import InconsistentConstraintsError, SolveError
from zwang.mechanism.constraints import Holonomic, Pfaffian
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.serialization import symbol_names
from zwang.symbolic.numeric_probe import (
    TIME,
    NumericProbe,
    independent_rows,
    numeric_probe,
    random_configurations,
    rank,
    relative_rows,
    row_sizes_near,
)

CONSTANCY = 1e-9  # relative difference of coefficients that are constant
CONTRADICTION = 1e-6  # of violations relative to the size of their row; less is rounding of a description
NEGLIGIBLE = 1e-6  # coefficient of a row in a combination


def check_agreement(mechanism: Mechanism, probe: NumericProbe) -> None:
    """Dependent rows of hard constraints agree, so that some of them can be left out.

    probe: of the mechanism. Only constraints without symbols are judged: the values of symbols decide whether
    dependent rows agree, as in over-constrained linkages. At a configuration near that of the probe which
    satisfies the constraints, some velocity must satisfy them as well. Where none is found, no combination of
    violations with constant coefficients may be a constant other than 0.
    Raises InconsistentConstraintsError, naming the constraints.
    """
    hard = hard_constraints(mechanism)
    judged = [c for c in hard if not _parameters(mechanism, c)]
    if not judged:
        return
    if len(judged) < len(hard):
        probe = numeric_probe(mechanism.replace(constraints=judged))
    numbers, q, _ = probe
    try:
        assemble_state(numbers, q, None, TIME)
    except InconsistentConstraintsError:
        raise
    except SolveError:
        _check_positions(numbers)


def _parameters(mechanism: Mechanism, constraint: Any) -> set[str]:
    """The names of the symbols on which the rows of a constraint depend."""
    own = symbol_names(constraint) & set(mechanism.symbols)
    if isinstance(constraint, Holonomic | Pfaffian):
        return own
    tree = mechanism.tree
    lengths = tuple((link.joint, link.R, link.p, link.reference) for link in tree.links)
    return own | symbol_names((lengths, tuple(tree.placements.values()), mechanism.tendons))


def _check_positions(numbers: Mechanism) -> None:
    """Raises InconsistentConstraintsError if the violation of a row, less those of independent rows times
    constant coefficients, is a constant other than 0.
    """
    at = [_positions(numbers, q) for q in random_configurations(numbers)]
    names, A, _, sizes, scale = at[0]  # sizes at one configuration, as those of formulas depend on it
    kept = independent_rows(A)
    if any(rank(A[kept]) < len(kept) or rank(A) > len(kept) for _, A, *_ in at):
        return
    for k in sorted({*range(len(A))} - {*kept}):
        found = []
        for _, A, g, *_ in at:
            c = np.linalg.lstsq(A[kept].T, A[k], rcond=None)[0]
            found.append([*c, (g[k] - c @ g[kept]) / sizes[k]])
        *first, constant = found[0]
        if abs(constant) > CONTRADICTION and np.allclose(found, found[0], rtol=CONSTANCY, atol=CONSTANCY):
            others = [names[i] for i, c in zip(kept, first, strict=True) if abs(c) > NEGLIGIBLE]
            listed = ", ".join(repr(name) for name in dict.fromkeys([*others, names[k]]))
            timed = any(depends_on_time(c) for c in hard_constraints(numbers))
            raise InconsistentConstraintsError(
                f"the hard constraints {listed} of mechanism {numbers.name!r} contradict each other: no "
                f"configuration satisfies them{f' at t = {TIME} s' * timed}, as a combination of their "
                f"violations is {constant * sizes[k] * scale[k]:.3g} everywhere; remove one, or give one a "
                "softness"
            )


def _positions(numbers: Mechanism, q: np.ndarray) -> tuple[list[str], *tuple[np.ndarray, ...]]:
    """Names, Jacobian (k, nv), violations (k,) and tolerances (k,) of the holonomic rows at q, relative to
    the sizes of the rows, and these sizes (k,).
    """
    rows = all_velocity_level_rows(numbers, q, np.zeros(numbers.nv), TIME)
    A, scale = np.array(rows.A, dtype=float), row_sizes_near(numbers)
    sizes = np.array(row_tolerances(numbers, hard_constraints(numbers), q, A), dtype=float) / scale
    kept = [i for i, r in enumerate(rows.position) if r is not None]
    g = np.array([rows.position[i] for i in kept], dtype=float) / scale[kept]
    names = [rows.names[i] for i in kept]
    return names, relative_rows(numbers, A, scale)[kept], g, sizes[kept], scale[kept]
