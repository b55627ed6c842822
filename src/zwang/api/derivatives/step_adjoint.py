"""The adjoint of a step: the products of a cotangent with its derivatives, in reverse mode.

The constraint solver is replaced by one step of Newton's method from the known solution, whose derivative is
that of the solution (`zwang.solver.linearised`). In reverse mode this costs a few steps, however many
controls and velocities there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zwang.api.derivatives.step_derivatives import direction_sizes, settings_of, state_of, time_of
from zwang.compiler.derivatives.reverse import Vjp
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.program import Program
from zwang.compiler.passes.dead_code import remove_dead_code
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.errors import TraceError
from zwang.integrator.fixed_step import State
from zwang.kinematics.configuration import configuration_rate, velocities_of_rate
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import without_derivatives
from zwang.simulation.step import step
from zwang.solver.linearised import KnownSolutions

DISPLACEMENT = "dq"
"""The input for a displacement of the configuration, by which it is differentiated at 0."""
ADJOINT, COTANGENT, BY_CONTROL, BY_SYMBOLS = "adjoint", "cotangent", "by_control", "by_symbols"
"""The inputs and outputs of the adjoint: what is fed back from the following step, the derivatives of the
loss by the state after this one, those by its control, and the sum of those by the symbols.
"""


def displaced_step(m: Mechanism, options: tuple[float, str], values: Mapping[str, Any]) -> np.ndarray:
    """The state (n,) after a step in coordinates of the tangent space, up to a constant, of a state whose
    configuration is displaced by `DISPLACEMENT`. Raises TraceError for laws of Coulomb friction.
    """
    if coulomb_frictions(m):
        raise TraceError(f"the laws of Coulomb friction of mechanism {m.name!r} have no reverse mode")
    before, found = state_of(values), values["acceleration"]
    known = KnownSolutions(np.split(found, len(found) // m.nv) if len(found) else [])
    q = before.q + configuration_rate(m.tree, before.q, values[DISPLACEMENT])
    settings = settings_of(m, *options)
    after = step(settings, State(q, before.v, before.z), values["control"], time_of(values), known).state
    fixed = np.array(without_derivatives(lambda *x: list(x), *after.q), dtype=object)
    return np.concatenate([velocities_of_rate(m.tree, fixed, after.q), after.v, after.z])


def adjoint_step(
    function: Callable[..., Any], sizes: Mapping[str, int], m: Mechanism, parameters: str
) -> tuple[Callable[..., Any], dict[str, int]]:
    """The adjoint of a displaced step, as a function of arrays to be traced, and their sizes.

    function: of the arrays of these sizes. parameters: the name of the input for the values of the symbols.
    Raises TraceError where something has no derivative in reverse mode.
    """
    program = _traced(function, sizes)
    by = (DISPLACEMENT, "v", "activation", "control", parameters)
    vjp = Vjp.of(program, by)
    of_state = sum(list(direction_sizes(m).values())[:3])
    given = {name: size for name, size in sizes.items() if name not in (DISPLACEMENT, parameters)}
    given |= {ADJOINT: of_state, COTANGENT: of_state}
    given |= {BY_SYMBOLS: sizes[parameters], parameters: sizes[parameters]} if parameters in sizes else {}

    def adjoint(*arrays: Any) -> dict[str, Any]:
        values = dict(zip(given, arrays, strict=True))
        values[DISPLACEMENT] = np.zeros(m.nv)
        cotangents = values[ADJOINT] + values[COTANGENT]
        found = vjp([values[name] for name in sizes], cotangents)
        gradient = dict(zip([name for name in sizes if name in by], found, strict=True))
        after = np.concatenate([gradient[name] for name in ("v", "activation")])
        outputs = {ADJOINT: np.concatenate([gradient[DISPLACEMENT], after]), BY_CONTROL: gradient["control"]}
        if parameters in sizes:
            outputs[BY_SYMBOLS] = values[BY_SYMBOLS] + gradient[parameters]
        return outputs

    return adjoint, given


def _traced(function: Callable[..., Any], sizes: Mapping[str, int]) -> Program:
    """The program of a displaced step. Raises TraceError where it needs the derivatives of the values."""
    try:
        return remove_dead_code(trace(function, sizes, holds=True))
    except TypeError as error:
        raise TraceError(f"a step has no adjoint in reverse mode: {error}") from None
