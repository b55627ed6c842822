"""Equations as LaTeX, HTML, text and Python; names from files are escaped and never become markup or code."""

from __future__ import annotations

import html as html_text
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sympy as sp

if TYPE_CHECKING:
    from zwang.symbolic.equations import Equations

_ESCAPES = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "^": r"\^{}", "&": r"\&", "%": r"\%", "$": r"\$",
            "#": r"\#", "~": r"\~{}", "<": r"\textless{}", ">": r"\textgreater{}"}  # fmt: skip
_GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
          "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi",
          "Sigma", "Phi", "Psi", "Omega"}  # fmt: skip
SEEN, MOST = (
    12,
    150,
)  # formulas of one part in a notebook: more named subexpressions are folded, more of any part cut


@dataclass(frozen=True)
class DerivationStep:
    """One line of the report: what it is, its letter in LaTeX, and the expression."""

    title: str
    letter: str
    value: Any


def symbol(name: str) -> str:
    """A name as LaTeX: letters and Greek names in mathematics, `a_b` with an index, everything else as escaped text."""
    head, *tail = name.split("_")
    if not re.fullmatch(r"[A-Za-z]+\d*", head) or not all(re.fullmatch(r"[A-Za-z0-9,]+", t) for t in tail):
        return rf"\text{{{escaped(name)}}}"
    letters, digits = re.fullmatch(r"([A-Za-z]+)(\d*)", head).groups()  # type: ignore[union-attr]
    indices = ([digits] if digits else []) + [_token(t) for t in tail]
    index = rf"_{{{', '.join(indices)}}}" if indices else ""
    return _token(letters) + index


def _token(token: str) -> str:
    if token in _GREEK:
        return "\\" + token
    return token if len(token) == 1 or token.isdigit() else rf"\mathrm{{{token}}}"


def escaped(text: str) -> str:
    """Any text inside LaTeX's text mode."""
    return "".join(_ESCAPES.get(c, c) for c in text if c.isprintable())


def _names(expression: Any, latex: Mapping[sp.Symbol, str]) -> dict[sp.Symbol, str]:
    symbols = expression.free_symbols
    return {s: latex.get(s) or symbol(s.name) for s in symbols}


def to_latex(expression: Any, latex: Mapping[sp.Symbol, str]) -> str:
    """An expression or matrix as LaTeX."""
    return sp.latex(expression, symbol_names=_names(expression, latex), mat_delim="[", full_prec=False)


# ---------------------------------------------------------------------------------------------- the report


def steps_of(e: Equations) -> list[DerivationStep]:
    """The five steps of seed 003, Sec. 3.2.2."""
    steps = []
    for k, (name, (R, x)) in enumerate(e.frames.items(), 1):
        steps.append(DerivationStep(f"Step 1. Frame {k}: rotation of {name}", rf"R^{{(0,{k})}}", R))
        steps.append(DerivationStep(f"Step 1. Mass centre of {name}", rf"x_{{{k}}}", x))
    for k, (name, (velocity, turning)) in enumerate(e.motions.items(), 1):
        steps.append(
            DerivationStep(
                f"Step 1. Velocity of the mass centre of {name}, in world axes", rf"\dot x_{{{k}}}", velocity
            )
        )
        steps.append(
            DerivationStep(f"Step 1. Angular velocity of {name}, in its own axes", rf"\omega_{{{k}}}", turning)
        )
    names = ", ".join(e.bodies)
    steps += [
        DerivationStep(f"Step 1. Velocities of {names}, one below the other", r"\dot X", e.X_dot),
        DerivationStep("Step 2. Essential speeds", "u", e.speeds),
        DerivationStep("Step 2. Constraints in velocity form, X_dot = B u", "B", e.B),
    ]
    if any(x != 0 for x in e.drift):
        steps.append(DerivationStep("Step 2. Velocities that constraints give by themselves", r"\dot X_0", e.drift))
    steps += [
        DerivationStep("Step 2. Rate of B", r"\dot B", e.B_dot),
        DerivationStep("Step 3. Masses and inertias", "M", e.M_blocks),
        DerivationStep("Step 3. Angular velocities", "D", e.D),
        DerivationStep("Step 3. Applied forces and torques", r"\Gamma", e.Gamma),
        DerivationStep("Step 3. Mass matrix M* = B^T M B", r"M^{*}", e.mass_matrix),
        DerivationStep("Step 3. Right-hand side B^T (Gamma - D M X_dot - M B_dot u)", "r", e.right_hand_side),
        *(DerivationStep(f"Step 3. Generalised force of {name}", rf"Q_{{{k}}}", force)
          for k, (name, force) in enumerate(e.generalized_forces.items(), 1)),
        DerivationStep("Kinetic energy", "K", e.kinetic_energy),
        DerivationStep("Potential energy", "P", e.potential_energy),
        DerivationStep("Step 5. Constraint forces on the bodies", "Q^c", e.constraint_forces),
        *(DerivationStep(f"Step 5. Force of constraint {name}, row by row", rf"\lambda_{{{k}}}", force)
          for k, (name, force) in enumerate(e.multipliers.items(), 1)),
    ]  # fmt: skip
    return steps


def entries_of(value: Any) -> list[Any]:
    """The entries of a matrix, or the one expression."""
    return list(value) if isinstance(value, sp.MatrixBase) else [value]


def rewritten(steps: list[DerivationStep], entries: Iterator[Any]) -> list[DerivationStep]:
    """The steps with other entries, in order."""
    found = []
    for step in steps:
        value = step.value
        if isinstance(value, sp.MatrixBase):
            value = sp.Matrix(*value.shape, [next(entries) for _ in value])
        else:
            value = next(entries)
        found.append(replace(step, value=value))
    return found


def latex(e: Equations, *, report: bool = False) -> str:
    """The equations of motion; definitions first if they are large; with `report`, all steps before, of large ones in their own definitions."""
    names = e.symbols.latex
    lines = []
    if report:
        named, steps = e.cse_steps()
        lines += [rf"{to_latex(s, names)} &= {to_latex(x, names)} \\" for s, x in named]
        lines += [
            rf"&\text{{{escaped(s.title)}}} \\ {s.letter} &= {to_latex(s.value, names)} \\" for s in steps
        ]
        if named:
            last = rf"M^{{*}} {to_latex(e.u_dot, names)} &= r"
            return "\\begin{aligned}\n" + "\n".join([*lines, last]) + "\n\\end{aligned}"
    defined, mass, rhs = e._shared_form
    if not defined:
        body = f"{to_latex(mass, names)} {to_latex(e.u_dot, names)} = {to_latex(rhs, names)}"
        return rf"\begin{{aligned}} {' '.join(lines)} &{body} \end{{aligned}}" if lines else body
    lines += [rf"{to_latex(s, names)} &= {to_latex(x, names)} \\" for s, x in defined]
    lines += _entries(mass, rhs, names)
    lines.append(rf"M^{{*}} {to_latex(e.u_dot, names)} &= r")
    return "\\begin{aligned}\n" + "\n".join(lines) + "\n\\end{aligned}"


def _entries(mass: sp.Matrix, rhs: sp.Matrix | None, names: Mapping[sp.Symbol, str]) -> list[str]:
    """The entries of a symmetric matrix on and above the diagonal that are not zero, and of a column, one a line."""
    lines = [
        rf"M_{{{i + 1},{j + 1}}} &= {to_latex(mass[i, j], names)} \\"
        for i in range(mass.rows) for j in range(i, mass.cols) if mass[i, j] != 0
    ]  # fmt: skip
    return lines + (
        [] if rhs is None else [rf"r_{{{i + 1}}} &= {to_latex(x, names)} \\" for i, x in enumerate(rhs)]
    )


def mass_matrix_latex(e: Equations) -> str:
    """M* alone, with its own definitions."""
    defined, mass = e.mass_matrix_cse()
    if not defined:
        return to_latex(mass, e.symbols.latex)
    lines = [rf"{to_latex(s, {})} &= {to_latex(x, e.symbols.latex)} \\" for s, x in defined]
    return (
        "\\begin{aligned}\n" + "\n".join(lines + _entries(mass, None, e.symbols.latex)) + "\n\\end{aligned}"
    )


def html(e: Equations, most: int | None = None) -> str:
    """The equations as HTML by parts: named subexpressions, mass matrix, right-hand side; then, folded, how they come about.

    Formulas are LaTeX between $$, for MathJax or KaTeX; of each part at most so many.
    """
    names = e.symbols.latex
    defined, mass, rhs = e._shared_form
    sought = rf"u = {to_latex(e.speeds, names)}, \quad M^{{*}} {to_latex(e.u_dot, names)} = r"
    matrix, column = "Mass matrix", "Right-hand side"
    parts = [_part(f"Essential speeds, and equations by the method {e.method!r}", [sought])]
    if defined:
        definitions = [f"{to_latex(s, names)} = {to_latex(x, names)}" for s, x in defined]
        title = f"Named subexpressions, {len(defined)} of them"
        parts.append(_folded(title, _flowing(_formulas(definitions, most)), shut=len(defined) > SEEN))
        entries = [line.removesuffix(r" \\").replace(" &= ", " = ") for line in _entries(mass, None, names)]
        parts.append(_part(f"{matrix}: what is not zero, on and above the diagonal", entries, most))
        parts.append(
            _part(column, [f"r_{{{i + 1}}} = {to_latex(x, names)}" for i, x in enumerate(rhs)], most)
        )
    else:
        parts.append(_part(matrix, [f"M^{{*}} = {to_latex(mass, names)}"]))
        parts.append(_part(column, [f"r = {to_latex(rhs, names)}"]))
    if e.form == "expanded":
        steps = [_part(s.title, [f"{s.letter} = {to_latex(s.value, names)}"]) for s in e.steps()]
        parts.append(_folded("How they come about, step by step", "\n".join(steps)))
    heading = f"<h3>Equations of motion of {html_text.escape(e.mechanism.name)}</h3>"
    return "\n".join(['<div class="zwang-equations tex2jax_process">', heading, *parts, "</div>"])


def _part(title: str, formulas: list[str], most: int | None = None) -> str:
    return f"<p>{html_text.escape(title)}</p>\n{_formulas(formulas, most)}"


def _formulas(formulas: list[str], most: int | None) -> str:
    """Formulas, one below the other, or as many of them as a page can typeset."""
    lines = [
        f'<div style="max-width:100%;overflow-x:auto;overflow-y:hidden">$${html_text.escape(x)}$$</div>'
        for x in formulas[:most]
    ]
    if len(lines) < len(formulas):
        lines.append(
            f"<p>and {len(formulas) - len(lines):,} more, which .latex(), .text(), .html() and .sympy() have</p>"
        )
    return "\n".join(lines)


def _flowing(inner: str) -> str:
    """Short formulas side by side, as many as there is room for."""
    return f'<div style="display:flex;flex-wrap:wrap;gap:0 2.5em;align-items:center">\n{inner}\n</div>'


def _folded(title: str, inner: str, shut: bool = True) -> str:
    return (
        f"<details{'' if shut else ' open'}><summary>{html_text.escape(title)}</summary>\n{inner}\n</details>"
    )


def text(e: Equations) -> str:
    """One line an equation, definitions first."""
    defined, mass, rhs = e._shared_form
    lines = [f"Equations of motion of {_line(e.mechanism.name)} by the method {e.method!r}: M u_dot = r"]
    lines.append(f"u = ({', '.join(_line(s.name) for s in e.symbols.u)})")
    lines += [f"{s} = {_line(_plain(x))}" for s, x in defined]
    lines += [
        f"M[{i + 1},{j + 1}] = {_line(_plain(mass[i, j]))}"
        for i in range(mass.rows)
        for j in range(i, mass.cols)
        if mass[i, j] != 0
    ]
    lines += [f"r[{i + 1}] = {_line(_plain(x))}" for i, x in enumerate(rhs)]
    return "\n".join(lines)


def _plain(expression: Any) -> str:
    """As text, floats without trailing zeros."""
    return sp.sstr(expression, full_prec=False)


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def python(e: Equations) -> str:
    """Python that builds M and r with SymPy; a symbol's name is only ever a string in it."""
    defined, mass, rhs = e._shared_form
    expressions = [*(x for _, x in defined), *mass, *rhs]
    inner = {s for s, _ in defined}
    symbols = sorted(set().union(*(x.free_symbols for x in expressions)) - inner, key=str)
    safe = {s: sp.Symbol(f"s{k}") for k, s in enumerate(symbols)} | {
        s: sp.Symbol(f"x{k}") for k, (s, _) in enumerate(defined)
    }
    lines = ["import sympy as sp", "from sympy import *", ""]
    lines += [f"{safe[s]} = sp.Symbol({s.name!r}, {_assumptions(s)})" for s in symbols]
    lines += [f"{safe[s]} = {x.xreplace(safe)}" for s, x in defined]
    lines += [
        f"M = sp.{sp.srepr(mass.shape) and 'Matrix'}({[[_Code(x.xreplace(safe)) for x in row] for row in mass.tolist()]})"
    ]
    lines += [f"r = sp.Matrix({[_Code(x.xreplace(safe)) for x in rhs]})"]
    return "\n".join(lines) + "\n"


class _Code:
    """An expression that shows as itself inside a list."""

    def __init__(self, expression: sp.Expr) -> None:
        self.expression = expression

    def __repr__(self) -> str:
        return str(self.expression)


def _assumptions(s: sp.Symbol) -> str:
    return "positive=True" if s.is_positive else "real=True" if s.is_real else "commutative=True"
