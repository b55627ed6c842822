"""Equations of motion as LaTeX, HTML, plain text and Python.

Names from files are escaped, so that they never become markup or code.
"""

from __future__ import annotations

import html as html_text
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from zwang.symbolic.derived_equations import DerivedEquations
from zwang.symbolic.expression_forms import Definition
from zwang.symbolic.latex_names import escaped, latex_symbol
from zwang.symbolic.sympy_types import free_symbols_in, matrix_entries, replaced

OPEN_DEFINITIONS = 12  # a notebook folds the definitions if there are more
MASS_MATRIX, RIGHT_HAND_SIDE, MULTIPLIERS = r"\mathbf{M}^{*}", r"\mathbf{r}", r"\boldsymbol{\lambda}"
LARGEST_PART = 150  # largest number of formulas that a notebook shows of one part


@dataclass(frozen=True)
class DerivationStep:
    """One step of the derivation: its title, its letter in LaTeX, and its expression or matrix."""

    title: str
    letter: str
    value: Any


def _names(expression: Any, latex: Mapping[sp.Symbol, str]) -> dict[sp.Symbol, str]:
    symbols = expression.free_symbols
    return {s: latex.get(s) or latex_symbol(s.name) for s in symbols}


def to_latex(expression: Any, latex: Mapping[sp.Symbol, str]) -> str:
    """An expression or matrix as LaTeX."""
    return sp.latex(expression, symbol_names=_names(expression, latex), mat_delim="[", full_prec=False)


# ---------------------------------------------------------------------------------------------- the report


REPORTED = (
    "frames", "body_velocities", "X_dot", "B", "velocity_offset", "B_dot", "M_blocks", "D", "Gamma",
    "mass_matrix", "right_hand_side", "generalized_forces", "kinetic_energy", "potential_energy",
    "constraint_forces", "multipliers",
)  # fmt: skip
"""The quantities of the steps."""


def steps_of(e: DerivedEquations) -> list[DerivationStep]:
    """The steps of the derivation (IMECE 2021-72324, Sec. 3.2.2), each with its matrix, written out."""
    return _steps(e, [getattr(e, name) for name in REPORTED])


def cse_steps_of(e: DerivedEquations) -> tuple[list[Definition], list[DerivationStep]]:
    """Definitions of the common subexpressions of all steps, and the steps in terms of them."""
    defined, written = e.cse(*REPORTED)
    return defined, _steps(e, written)


def _steps(e: DerivedEquations, reported: Sequence[Any]) -> list[DerivationStep]:
    """The steps of the derivation with the reported quantities.

    Matrices and columns have bold letters, which no name has.
    """
    of = dict(zip(REPORTED, reported, strict=True))
    steps: list[DerivationStep] = []
    for k, (name, (R, x)) in enumerate(of["frames"].items(), 1):
        steps.append(
            DerivationStep(f"Step 1. Frame {k}: rotation of {name}", rf"\mathbf{{R}}^{{(0,{k})}}", R)
        )
        steps.append(DerivationStep(f"Step 1. Centre of mass of {name}", rf"\mathbf{{x}}_{{{k}}}", x))
    for k, (name, (velocity, angular)) in enumerate(of["body_velocities"].items(), 1):
        steps.append(
            DerivationStep(
                f"Step 1. Velocity of the centre of mass of {name}, in world axes",
                rf"\dot{{\mathbf{{x}}}}_{{{k}}}",
                velocity,
            )
        )
        steps.append(
            DerivationStep(
                f"Step 1. Angular velocity of {name}, in body axes",
                rf"\boldsymbol{{\omega}}_{{{k}}}",
                angular,
            )
        )
    names = ", ".join(e.bodies)
    steps += [
        DerivationStep(f"Step 1. Stacked velocities of {names}", r"\dot{\mathbf{X}}", of["X_dot"]),
        DerivationStep("Step 2. Independent velocities", r"\mathbf{u}", e.speeds),
        DerivationStep("Step 2. Velocity transformation, X_dot = B u", r"\mathbf{B}", of["B"]),
    ]
    if any(x != 0 for x in matrix_entries(of["velocity_offset"])):
        steps.append(
            DerivationStep("Step 2. Velocities at u = 0", r"\dot{\mathbf{X}}_0", of["velocity_offset"])
        )
    steps += [
        DerivationStep("Step 2. Time derivative of B", r"\dot{\mathbf{B}}", of["B_dot"]),
        DerivationStep("Step 3. Masses and inertias", r"\mathbf{M}", of["M_blocks"]),
        DerivationStep("Step 3. Angular velocities", r"\mathbf{D}", of["D"]),
        DerivationStep("Step 3. Applied forces and torques", r"\boldsymbol{\Gamma}", of["Gamma"]),
        DerivationStep("Step 3. Mass matrix M* = B^T M B", MASS_MATRIX, of["mass_matrix"]),
        DerivationStep(
            "Step 3. Right-hand side B^T (Gamma - D M X_dot - M B_dot u)",
            RIGHT_HAND_SIDE,
            of["right_hand_side"],
        ),
        *(DerivationStep(f"Step 3. Generalised force of {name}", rf"\mathbf{{Q}}_{{{k}}}", force)
          for k, (name, force) in enumerate(of["generalized_forces"].items(), 1)),
        DerivationStep("Kinetic energy", r"E_{\text{kin}}", of["kinetic_energy"]),
        DerivationStep("Potential energy", r"E_{\text{pot}}", of["potential_energy"]),
        DerivationStep("Step 5. Constraint forces on the bodies", r"\mathbf{Q}^c", of["constraint_forces"]),
        *(DerivationStep(f"Step 5. Multipliers of constraint {name}", rf"{MULTIPLIERS}_{{{k}}}", force)
          for k, (name, force) in enumerate(((n, f) for n, f in of["multipliers"].items() if len(f)), 1)),
    ]  # fmt: skip
    return steps


def latex(e: DerivedEquations, *, report: bool = False) -> str:
    """The equations of motion as LaTeX, after the definitions of common subexpressions.

    report: whether the steps of the derivation come first, in their own definitions.
    """
    names = e.symbols.latex
    lines = []
    if report:
        named, steps = cse_steps_of(e)
        lines += [rf"{to_latex(s, names)} &= {to_latex(x, names)} \\" for s, x in named]
        lines += [
            rf"&\text{{{escaped(s.title)}}} \\ {s.letter} &= {to_latex(s.value, names)} \\" for s in steps
        ]
        if named:
            last = f"{MASS_MATRIX} {to_latex(e.u_dot, names)} &= {RIGHT_HAND_SIDE}"
            return "\\begin{aligned}\n" + "\n".join([*lines, last]) + "\n\\end{aligned}"
    defined, mass, rhs = e._cse
    if not defined:
        body = f"{to_latex(mass, names)} {to_latex(e.u_dot, names)} = {to_latex(rhs, names)}"
        return rf"\begin{{aligned}} {' '.join(lines)} &{body} \end{{aligned}}" if lines else body
    lines += [rf"{to_latex(s, names)} &= {to_latex(x, names)} \\" for s, x in defined]
    lines += _entries(mass, rhs, names)
    lines.append(f"{MASS_MATRIX} {to_latex(e.u_dot, names)} &= {RIGHT_HAND_SIDE}")
    return "\\begin{aligned}\n" + "\n".join(lines) + "\n\\end{aligned}"


def _entries(mass: sp.Matrix, rhs: sp.Matrix | None, names: Mapping[sp.Symbol, str]) -> list[str]:
    """Nonzero entries of a symmetric matrix on and above the diagonal, and of a column, line by line."""
    lines = [
        rf"\mathbf{{M}}_{{{i + 1},{j + 1}}} &= {to_latex(mass[i, j], names)} \\"
        for i in range(mass.rows) for j in range(i, mass.cols) if mass[i, j] != 0
    ]  # fmt: skip
    return lines + (
        []
        if rhs is None
        else [
            rf"{RIGHT_HAND_SIDE}_{{{i + 1}}} &= {to_latex(x, names)} \\"
            for i, x in enumerate(matrix_entries(rhs))
        ]
    )


def mass_matrix_latex(e: DerivedEquations) -> str:
    """M* alone as LaTeX, with its own definitions."""
    defined, mass = e.mass_matrix_cse()
    if not defined:
        return to_latex(mass, e.symbols.latex)
    lines = [rf"{to_latex(s, {})} &= {to_latex(x, e.symbols.latex)} \\" for s, x in defined]
    return (
        "\\begin{aligned}\n" + "\n".join(lines + _entries(mass, None, e.symbols.latex)) + "\n\\end{aligned}"
    )


def html(e: DerivedEquations, limit: int | None = None) -> str:
    """The equations as HTML: common subexpressions, mass matrix, right-hand side, and the folded derivation.

    Formulas are LaTeX between $$, for MathJax or KaTeX. limit: the largest number of formulas in each part.
    """
    names = e.symbols.latex
    defined, mass, rhs = e._cse
    unknowns = (
        rf"\mathbf{{u}} = {to_latex(e.speeds, names)}, \quad "
        f"{MASS_MATRIX} {to_latex(e.u_dot, names)} = {RIGHT_HAND_SIDE}"
    )
    matrix, column = "Mass matrix", "Right-hand side"
    parts = [_part(f"Independent velocities, and equations by the method {e.method!r}", [unknowns])]
    if defined:
        definitions = [f"{to_latex(s, names)} = {to_latex(x, names)}" for s, x in defined]
        title = f"Common subexpressions ({len(defined)})"
        parts.append(
            _folded(title, _side_by_side(_formulas(definitions, limit)), shut=len(defined) > OPEN_DEFINITIONS)
        )
        entries = [line.removesuffix(r" \\").replace(" &= ", " = ") for line in _entries(mass, None, names)]
        parts.append(_part(f"{matrix}: nonzero entries on and above the diagonal", entries, limit))
        parts.append(
            _part(
                column,
                [
                    f"{RIGHT_HAND_SIDE}_{{{i + 1}}} = {to_latex(x, names)}"
                    for i, x in enumerate(matrix_entries(rhs))
                ],
                limit,
            )
        )
    else:
        parts.append(_part(matrix, [f"{MASS_MATRIX} = {to_latex(mass, names)}"]))
        parts.append(_part(column, [f"{RIGHT_HAND_SIDE} = {to_latex(rhs, names)}"]))
    if e.form == "expanded":
        steps = [_part(s.title, [f"{s.letter} = {to_latex(s.value, names)}"]) for s in steps_of(e)]
        parts.append(_folded("Derivation, step by step", "\n".join(steps)))
    heading = f"<h3>Equations of motion of {html_text.escape(e.mechanism.name)}</h3>"
    return "\n".join(['<div class="zwang-equations tex2jax_process">', heading, *parts, "</div>"])


def _part(title: str, formulas: list[str], limit: int | None = None) -> str:
    return f"<p>{html_text.escape(title)}</p>\n{_formulas(formulas, limit)}"


def _formulas(formulas: list[str], limit: int | None) -> str:
    """Formulas one below the other, at most `limit` of them."""
    lines = [
        f'<div style="max-width:100%;overflow-x:auto;overflow-y:hidden">$${html_text.escape(x)}$$</div>'
        for x in formulas[:limit]
    ]
    if len(lines) < len(formulas):
        lines.append(
            f"<p>and {len(formulas) - len(lines):,} more, which .latex(), .text(), .html() and .sympy() "
            "include</p>"
        )
    return "\n".join(lines)


def _side_by_side(inner: str) -> str:
    """Short formulas side by side, in lines that wrap."""
    return f'<div style="display:flex;flex-wrap:wrap;gap:0 2.5em;align-items:center">\n{inner}\n</div>'


def _folded(title: str, inner: str, shut: bool = True) -> str:
    return (
        f"<details{'' if shut else ' open'}><summary>{html_text.escape(title)}</summary>\n{inner}\n</details>"
    )


def text(e: DerivedEquations) -> str:
    """One line for each equation, after the definitions."""
    defined, mass, rhs = e._cse
    lines = [f"Equations of motion of {_line(e.mechanism.name)} by the method {e.method!r}: M u_dot = r"]
    lines.append(f"u = ({', '.join(_line(s.name) for s in e.symbols.u)})")
    lines += [f"{s} = {_line(_plain(x))}" for s, x in defined]
    lines += [
        f"M[{i + 1},{j + 1}] = {_line(_plain(mass[i, j]))}"
        for i in range(mass.rows)
        for j in range(i, mass.cols)
        if mass[i, j] != 0
    ]
    lines += [f"r[{i + 1}] = {_line(_plain(x))}" for i, x in enumerate(matrix_entries(rhs))]
    return "\n".join(lines)


def _plain(expression: Any) -> str:
    """An expression as text, with floats without trailing zeros."""
    return sp.sstr(expression, full_prec=False)


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def python(e: DerivedEquations) -> str:
    """Python text that builds M and r with SymPy; names of symbols occur in it only as strings."""
    defined, mass, rhs = e._cse
    expressions = [*(x for _, x in defined), *matrix_entries(mass), *matrix_entries(rhs)]
    inner = {s for s, _ in defined}
    symbols = sorted(set[sp.Symbol]().union(*(free_symbols_in(x) for x in expressions)) - inner, key=str)
    safe = {s: sp.Symbol(f"s{k}") for k, s in enumerate(symbols)} | {
        s: sp.Symbol(f"x{k}") for k, (s, _) in enumerate(defined)
    }
    lines = ["import sympy as sp", "from sympy import *", ""]
    lines += [f"{safe[s]} = sp.Symbol({s.name!r}, {_assumptions(s)})" for s in symbols]
    lines += [f"{safe[s]} = {replaced(x, safe)}" for s, x in defined]
    rows: list[list[sp.Expr]] = mass.tolist()
    lines += [f"M = sp.Matrix({[[_Code(replaced(x, safe)) for x in row] for row in rows]})"]
    lines += [f"r = sp.Matrix({[_Code(replaced(x, safe)) for x in matrix_entries(rhs)]})"]
    return "\n".join(lines) + "\n"


class _Code:
    """An expression whose repr is its text, for use inside a list."""

    def __init__(self, expression: sp.Expr) -> None:
        self.expression = expression

    def __repr__(self) -> str:
        return str(self.expression)


def _assumptions(s: sp.Symbol) -> str:
    return "positive=True" if s.is_positive else "real=True" if s.is_real else "commutative=True"
