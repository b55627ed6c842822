"""One text for all scalars: collision, constraint rows and solvers do not ask whether values are numbers.

What such a question may still decide is listed below, by function: which rows and entries exist at all.
Formulas are chosen by `where` and `cond`, whose branches fold away where the condition is known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "zwang"
PACKAGES = ("constraint", "collision", "solver")
PREDICATES = {"are_constant", "value_is_constant", "is_zero", "is_scalar", "symbols_of"}
NUMBERS = {
    "int",
    "float",
    "complex",
    "bool",
    "bool_",
    "number",
    "integer",
    "floating",
    "generic",
    "FLOATS",
    "Real",
}

ABSENT, SPARSE = (
    "what does not exist has no rows",
    "entries that are zero by structure are not stored or computed",
)
ALLOWED = {
    "constraint/friction.py friction_rows": ABSENT,
    "constraint/friction.py has_hard_friction": ABSENT,
    "constraint/limit.py _ends": ABSENT,
    "constraint/limit.py _are_separate": "limits that are never active together share a row",
    "constraint/hard.py acting_constraints": ABSENT,
    "constraint/hard.py depends_on_time": "the symbols of an expression",
    "constraint/hard.py formula": "the symbols of an expression",
    "constraint/equality.py _mean_squares": SPARSE,
    "constraint/inverse_weights.py hard_inverse_weights": SPARSE,
    "constraint/group_kinematics.py GroupKinematics.relative_velocity": "the world, by its index, is at rest",
    "collision/pair_groups.py _placement_of": "the index of an unrolled loop",
    "collision/pairs.py _prism_pairs": "an error where the number of prisms would not be known",
    "constraint/rows.py Rows.hard": "hard rows have R = 0 by structure",
    "constraint/rows.py RowGroup.block": SPARSE,
    "constraint/rows.py Rows._block": SPARSE,
    "constraint/independent_velocities.py independent_velocities": "the type of an argument",
    "constraint/independent_velocities.py _check_numbers": "an error for coefficients that are not numbers",
    "solver/coordinate_reduction.py forces_of": ABSENT,
    "solver/coordinate_reduction.py gauss_jordan": SPARSE,
    "solver/multipliers.py solve_multipliers": ABSENT,
    "solver/primal_cost.py PrimalCost._hessian": SPARSE,
}


def branches(text: str) -> set[str]:
    """The functions and methods of a module that ask whether a value is a constant or a Python number."""

    def visit(node: ast.AST, owner: str, depth: int) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            inner, below = owner, depth
            if isinstance(child, ast.FunctionDef | ast.ClassDef) and not depth:
                inner = f"{owner}.{child.name}".lstrip(".")
                below = int(isinstance(child, ast.FunctionDef))
            if is_question(child):
                yield inner
            yield from visit(child, inner, below)

    return set(visit(ast.parse(text), "", 0))


def is_question(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Name | ast.Attribute) and name_of(node) in PREDICATES
    asks = isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "type")
    return asks and bool(NUMBERS & {name_of(x) for argument in node.args[1:] for x in ast.walk(argument)})


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def test_only_structure_depends_on_whether_values_are_constants():
    found = {
        f"{file.relative_to(SOURCE).as_posix()} {owner}"
        for package in PACKAGES
        for file in (SOURCE / package).rglob("*.py")
        for owner in branches(file.read_text(encoding="utf-8"))
    }
    assert found == set(ALLOWED)


def unexplained(text: str) -> list[str]:
    """The numbers at the top of a module without a comment, on their lines or above, or a docstring below."""
    lines, body = text.splitlines(), ast.parse(text).body
    found = []
    for node, following in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.Assign) or not is_number(node.value):
            continue
        own = "#" in "".join(lines[node.lineno - 1 : node.end_lineno]) or lines[node.lineno - 2].startswith(
            "#"
        )
        if not (own or (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant))):
            found.append(ast.unparse(node))
    return found


def is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(is_number, node.elts))
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(number, ast.Constant) and isinstance(number.value, int | float)


def test_every_number_has_a_sentence():
    for package in (*PACKAGES, "algebra"):
        for file in (SOURCE / package).rglob("*.py"):
            assert not unexplained(file.read_text(encoding="utf-8")), file
    assert unexplained(
        '"""A."""\nA = -1\nB = 2  # why\nC = 3\n"""why"""\n# why\nD, E = 1, 2.0\nF = f(1)'
    ) == ["A = -1"]


def test_the_questions_are_found():
    assert branches("def f(x):\n    if is_zero(x):\n        return 0") == {"f"}
    assert branches(
        "class A:\n    def g(self, x):\n        def h():\n            scalar.are_constant(x)"
    ) == {"A.g"}
    assert branches("y = [x for x in z if isinstance(x, (np.floating, str))]") == {""}
    assert not branches("from zwang.scalar import is_zero\ndef f(x):\n    return isinstance(x, Plane)")
