"""Linear models of mechanisms with symbols, as SymPy matrices by shared definitions, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import sympy as sp
from scipy.sparse.csgraph import connected_components

from zwang.api.analysis.constrained_dynamics import check_inertia
from zwang.api.analysis.linear_outputs import LinearOutput, linear_outputs
from zwang.api.analysis.linearize import (
    RANK,
    LinearModel,
    independent_states,
    is_steady,
    number_of_name,
    ordered_poles,
    state_names,
)
from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import Parameters, parameter_value, stacked_values
from zwang.api.compilation.programs import compile_function
from zwang.constraint.hard import hard_constraints, is_hard_constraint, velocity_level_rows_at
from zwang.dynamics.crba import crba
from zwang.errors import DescriptionError, ParameterError, ShapeError, StateError
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero, substitute, symbols_of
from zwang.simulation.applied_forces import activations
from zwang.simulation.constraint_options import with_acting_constraints
from zwang.simulation.controls import control_names
from zwang.symbolic import typesetting
from zwang.symbolic.expression_forms import CSEForm, Definition, mechanism_in_scalars
from zwang.symbolic.identical_zeros import identical_zeros
from zwang.symbolic.latex_names import latex_symbols
from zwang.symbolic.linear_matrices import (
    LinearisationState,
    Structure,
    frame_rows,
    linear_matrices,
    structure,
)
from zwang.symbolic.numeric_probe import independent_columns, kinematics_near, value_near
from zwang.symbolic.sympy_backend import substitute_in, unreal_part
from zwang.symbolic.sympy_types import as_expr, free_symbols_in, matrix_entries

CONSISTENT = 1e-9  # violation and velocity residual of the state, where the symbols have values near 1
NAMES = ("A", "B", "C", "D", "displacement")


class LinearMatrices(NamedTuple):
    """A (..., n, n), B (..., n, m), C (..., p, n), D (..., p, m) and the displacement T (..., N, n)."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    displacement: np.ndarray


@dataclass(frozen=True)
class _Text:
    """The matrices of a linear model as a function of its symbols, on any scalar.

    state: q, v, activation and control, and the time. columns: the chosen inputs. outputs: of the state and
    of frames. zeros: the entries of A and B that are zero for all values.
    """

    mechanism: Mechanism
    state: tuple[tuple[Any, ...], ...]
    time: float
    chosen: Structure
    columns: list[int]
    outputs: tuple[LinearOutput, ...]
    zeros: tuple[np.ndarray, np.ndarray] | None = None

    def matrices(self, of: Callable[[sp.Expr], Any]) -> LinearMatrices:
        """The matrices. of: the scalar of a SymPy expression."""
        m = mechanism_in_scalars(self.mechanism, of)
        q, v, z, u = (
            _array([of(as_expr(x)) if isinstance(x, sp.Basic) else x for x in part]) for part in self.state
        )
        at = LinearisationState(q, v, z, u, self.time)
        found = linear_matrices(m, at, self.chosen)
        rows = [
            frame_rows(m, at, x.frame)[list(x.axes)] @ found.T if x.frame else found.T[list(x.states)]
            for x in self.outputs
        ]
        C = np.concatenate([np.zeros((0, len(self.chosen.states)), int), *rows])
        D = np.zeros((len(C), len(self.columns)), int)
        A, B = found.A, found.B[:, self.columns]
        if self.zeros is not None:
            A, B = (np.where(zero, 0, x) for x, zero in zip((A, B), self.zeros, strict=True))
        return LinearMatrices(A, B, C, D, found.T)


@dataclass(frozen=True, eq=False)
class SymbolicLinearModel:
    """y_dot = A y + B u with the outputs C y + D u of a mechanism with symbols: deviations from a state.

    A (n, n), B (n, m), C (p, n), D (p, m), displacement (N, n): SymPy matrices as those of `LinearModel`, in
    the symbols of the mechanism and of the state, and of `definitions`: the common subexpressions (symbol,
    expression), each in terms of those before. states, inputs, outputs: their names. symbols: the names of
    all symbols, which `at`, `matrices` and `poles` take. q, v, control: the state and the control about which
    it holds.
    """

    A: sp.Matrix
    B: sp.Matrix
    C: sp.Matrix
    D: sp.Matrix
    displacement: sp.Matrix
    definitions: list[Definition]
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    symbols: tuple[str, ...]
    q: sp.Matrix
    v: sp.Matrix
    control: sp.Matrix
    _text: _Text = field(repr=False)
    _functions: dict[tuple[str, ...], Callable[[np.ndarray], Any]] = field(default_factory=dict, repr=False)

    def matrices(self, params: Parameters) -> LinearMatrices:
        """A, B, C, D and the displacement as numbers, by machine code that the first call compiles.

        params: for each of `symbols` a number, or one for each point of an array (...).
        Raises ParameterError for a missing value or an unknown symbol, and ShapeError. A singular mass matrix
        is not reported, unlike by `at`.
        """
        return LinearMatrices(*self._compiled(NAMES, params))

    def poles(self, params: Parameters) -> np.ndarray:
        """The eigenvalues (..., n) of A by decreasing real part, of many points at once; where the real parts
        differ by rounding errors only, by imaginary part.

        params: as for `matrices`. Where entries of A that are zero for all values divide it into blocks, the
        eigenvalues are those of the blocks on its diagonal. Whether the motion is steady is not checked,
        unlike by `at(...).poles`.
        """
        (A,) = self._compiled(("A",), params)
        parts = [_eigenvalues(A[..., block, :][..., block]) for block in self._blocks]
        values = np.concatenate([np.zeros((*A.shape[:-2], 0)), *parts], axis=-1)
        return ordered_poles(values)

    def at(self, params: Parameters) -> LinearModel:
        """The `LinearModel` for one value of each symbol.

        Raises ParameterError, ShapeError, and StateError, with the name of a generalised velocity, for a
        singular mass matrix.
        """
        found = self.matrices(params)
        if found.A.ndim != 2:
            raise ShapeError(
                f"at() takes one value for each symbol; these are {found.A.shape[:-2]} points: give "
                "matrices() or poles() many"
            )
        known = {str(name): float(np.asarray(x)) for name, x in params.items()}
        q, v, activation, control = (
            np.array([_value(x, known) for x in part], dtype=float) for part in self._text.state
        )
        m = self._text.mechanism
        m = m.subs({name: known[name] for name in m.symbols})
        check_inertia(m, crba(m.tree, q))
        state = LinearisationState(q, v, activation, control, self._text.time)
        a = linear_matrices(m, state, self._text.chosen).a.astype(float)
        return LinearModel(
            *found[:4], self.states, self.inputs, self.outputs, None, q, v, control, found.displacement,
            False, is_steady(_along_motion(m, state, self._text.chosen, a), m, v, a),
        )  # fmt: skip

    def latex(self) -> str:
        """The matrices A and B, and C and D if they are not those of the states, in bold letters, after their
        definitions.
        """
        return "\\begin{aligned}\n" + "\n".join(self._lines()) + "\n\\end{aligned}"

    def _lines(self) -> list[str]:
        letters = "AB" if self.outputs == self.states else "ABCD"
        matrices = [(letter, getattr(self, letter)) for letter in letters]
        values = [*(x for _, x in self.definitions), *(matrix for _, matrix in matrices)]
        symbols = set[sp.Symbol]().union(*map(free_symbols_in, values), (s for s, _ in self.definitions))
        shown = latex_symbols(s.name for s in symbols)
        latex = {s: shown[s.name] for s in symbols}
        lines = [rf"{latex[s]} &= {typesetting.to_latex(x, latex)} \\" for s, x in self.definitions]
        return lines + [
            rf"\mathbf{{{letter}}} &= {typesetting.to_latex(matrix, latex)} \\"
            for letter, matrix in matrices
            if matrix
        ]

    def _repr_latex_(self) -> str:
        return "$$" + self.latex() + "$$"

    def __repr__(self) -> str:
        return (
            f"<linear model of {self._text.mechanism.name!r}: states {', '.join(self.states)}; "
            f"{len(self.symbols)} symbols, {len(self.definitions)} definitions>"
        )

    def _compiled(self, names: tuple[str, ...], params: Parameters) -> list[np.ndarray]:
        """Some of the matrices as numbers."""
        values = _values(params, self.symbols)
        if names not in self._functions:
            self._functions[names] = self._function(names)
        found = self._functions[names](values)
        arrays = found if isinstance(found, tuple) else (found,)
        return [
            np.asarray(x).reshape(*values.shape[:-1], *getattr(self, name).shape)
            for name, x in zip(names, arrays, strict=True)
        ]

    def _function(self, names: tuple[str, ...]) -> Callable[[np.ndarray], Any]:
        """The machine code of some of the matrices."""
        number = {name: k for k, name in enumerate(self.symbols)}

        def text(values: Any) -> dict[str, Any]:
            def of(x: sp.Expr) -> Any:
                return substitute_in(x, {s: values[number[s.name]] for s in free_symbols_in(x)})

            found = self._text.matrices(of)._asdict()
            return {name: np.ravel(found[name]) for name in names}

        return compile_function(text, {"parameters": len(self.symbols)})

    @cached_property
    def _blocks(self) -> list[np.ndarray]:
        """The states of each diagonal block of A in block triangular form."""
        n = self.A.rows
        pattern = np.array([x != 0 for x in matrix_entries(self.A)]).reshape(n, n)
        count, labels = connected_components(pattern, directed=True, connection="strong")
        return [np.flatnonzero(labels == k) for k in range(count)]


def symbolic_linear_model(
    mechanism: Mechanism,
    state: tuple[Any, Any, Any, Any],
    time: float,
    states: Sequence[str] | None,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
) -> SymbolicLinearModel:
    """The linear model of a mechanism with symbols, see `zw.linearize`. state: q, v, activation, control."""
    m = with_acting_constraints(mechanism)
    check_smooth(m)
    names, all_states = control_names(m), state_names(m)
    sizes = {"q": m.nq, "v": m.nv, "activation": len(activations(m)), "control": len(names)}
    at = tuple(_vector(x, n, name) for (name, n), x in zip(sizes.items(), state, strict=True))
    chosen = _structure(m, at, time, all_states, states)
    own = tuple(all_states[k] for k in chosen.states)
    columns = [number_of_name(name, names, "input") for name in (names if inputs is None else inputs)]
    wanted = _outputs(m, all_states, own if outputs is None else outputs)
    text = _Text(m, at, time, chosen, columns, wanted)
    form = CSEForm()
    found = text.matrices(form.of)
    zeros = (identical_zeros(form, found.A), identical_zeros(form, found.B))
    found = found._replace(A=np.where(zeros[0], 0, found.A), B=np.where(zeros[1], 0, found.B))
    definitions, written = form.definitions([x for matrix in found for x in matrix.flat])
    matrices: dict[str, Any] = {}
    for name, matrix in found._asdict().items():
        matrices[name] = sp.Matrix(*matrix.shape, written[: matrix.size])
        written = written[matrix.size :]
    output_names = tuple(name for output in wanted for name in output.names)
    symbols = dict.fromkeys((*m.symbols, *sorted({s.name for s in form.inputs})))
    q, v, _, u = (sp.Matrix(part) for part in at)
    return SymbolicLinearModel(
        **matrices, definitions=definitions, states=own, inputs=tuple(names[k] for k in columns),
        outputs=output_names, symbols=tuple(symbols), q=q, v=v, control=u, _text=replace(text, zeros=zeros),
    )  # fmt: skip


def _along_motion(
    m: Mechanism, at: LinearisationState, chosen: Structure, a: np.ndarray
) -> Callable[[float], np.ndarray]:
    """A of a mechanism in numbers after a time [s] of the motion of a state with constant accelerations a
    (nv,).
    """

    def moved(dt: float) -> np.ndarray:
        q = integrate_configuration(m.tree, at.q, at.v + dt / 2 * a, dt).astype(float)
        state = at._replace(q=q, v=at.v + dt * a, t=at.t + dt)
        return linear_matrices(m, state, chosen).A.astype(float)

    return moved


def check_smooth(m: Mechanism) -> None:
    """Raises DescriptionError, with its name, for what acts by cases or through softness."""
    wrong = [
        f"constraint {c.name!r} ({type(c).__name__})" for c in m.constraints if not is_hard_constraint(c)
    ]
    elements = (*(index.joint for index in m.joints), *m.tendons)
    wrong += [f"dry friction of {x.name!r}" for x in elements if not is_zero(getattr(x, "friction", 0))]
    wrong += [f"limits of {x.name!r}" for x in elements if x.limits is not None]
    wrong += ["contacts"] if validation.candidate_count(m) else []
    if wrong:
        raise DescriptionError(
            f"mechanism {m.name!r} has {wrong[0]}, and a linear model with symbols has hard equality "
            "constraints only: give values, params=..., for one in numbers, or leave this out"
        )


def _structure(
    m: Mechanism, at: tuple[tuple[Any, ...], ...], time: float, names: list[str], states: Any
) -> Structure:
    """The structure at values of the symbols near 1. Raises StateError for a state off the constraints."""
    numbers = kinematics_near(m)
    q, v, z, u = (np.array([value_near(sp.sympify(x)) for x in part], dtype=float) for part in at)
    if hard_constraints(m):
        A, a, violation = (np.asarray(x, dtype=float) for x in velocity_level_rows_at(numbers, q, time))
        residual = np.concatenate([violation, A @ v + a])
        if np.abs(residual).max() > CONSISTENT:
            raise StateError(
                f"the state does not satisfy the constraints of mechanism {m.name!r} for all values of its "
                f"symbols (residual {np.abs(residual).max():.3g} where they are near 1); give q and v as "
                "expressions that do, or values, params=..."
            )

    def chosen(G: np.ndarray) -> list[int]:
        T = scipy.linalg.null_space(G, rcond=RANK) if len(G) else np.eye(G.shape[1])
        return independent_states(T, numbers, names, states)

    return structure(numbers, LinearisationState(q, v, z, u, time), independent_columns, chosen)


def _outputs(m: Mechanism, states: list[str], wanted: Sequence[str]) -> tuple[LinearOutput, ...]:
    """The outputs of these names. Raises DescriptionError for sensors."""
    found = linear_outputs(m, states, wanted)
    for name, output in zip(wanted, found, strict=True):
        if output.sensors:
            raise DescriptionError(
                f"output {name!r} is a sensor, which a linear model with symbols does not have; give values, "
                "params=..., or an entry of the state or a frame"
            )
    return tuple(found)


def _value(x: Any, known: Mapping[str, float]) -> float:
    """The value of an entry of the state for values of the symbols."""
    return float(substitute(x, {s: known[str(s)] for s in symbols_of(x)}))


def _vector(values: Any, size: int, name: str) -> tuple[Any, ...]:
    """A vector of numbers and expressions; zero where it is None. Raises ShapeError or StateError."""
    if values is None:
        return (0,) * size
    entries = list(np.asarray(values, dtype=object).flat)
    if len(entries) != size:
        raise ShapeError(f"{name} must have {size} elements; it has {len(entries)}")
    made = []
    for k, x in enumerate(entries):
        what = "a number or a SymPy expression"
        value = as_expr(x) if isinstance(x, sp.Expr) else validation.real(x, f"{name}[{k}]", what)
        if isinstance(x, sp.Expr) and (reason := unreal_part(x)):
            raise StateError(f"{name} contains {x}, which {reason}")
        made.append(int(value) if isinstance(value, float) and value.is_integer() else value)
    return tuple(made)


def _values(params: Any, names: tuple[str, ...]) -> np.ndarray:
    """The values (..., symbols) of these symbols. Raises ParameterError and ShapeError."""
    if not isinstance(params, Mapping):
        raise ParameterError(f"params is {params!r}; give a dictionary from symbols to numbers or arrays")
    given = {str(name): value for name, value in params.items()}
    unknown, missing = sorted(given.keys() - set(names)), [name for name in names if name not in given]
    if unknown or missing:
        what = f"unknown are {', '.join(unknown)}" if unknown else f"missing are {', '.join(missing)}"
        raise ParameterError(f"params must have a value for each of {', '.join(names)}; {what}")
    return stacked_values({name: parameter_value(name, given[name]) for name in names})


def _array(values: Sequence[Any]) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _eigenvalues(A: np.ndarray) -> np.ndarray:
    return A[..., 0] if A.shape[-1] == 1 else np.linalg.eigvals(A)
