"""The expression graph of a traced function, with common subexpressions shared.

A traced scalar is a node. Its operators look up the rule of the operation (`node_rules.py`), which returns
the node of the result, so an algorithm that runs on nodes records its own graph. Constants remain Python
numbers and are folded; a constant becomes a node only when another node uses it.

Nodes belong to scopes: one for the function and one for each body of a loop or branch. A node created inside
a loop from outer values only is placed in the outer scope, so loop-invariant expressions are computed before
the loop. Branches keep the nodes created inside them, so that they are not computed when the branch is not
taken.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from zwang.errors import TraceError
from zwang.scalar.primitives import floored_division

RULES: dict[str, Callable[..., Any]] = {}
"""For each operation of the program its rule, a function from nodes or numbers to a node or a number."""


class Scope:
    """The nodes of one body. If `keeps` is true, nodes that use outer values only stay in this scope too."""

    __slots__ = ("depth", "keeps", "nodes", "open", "parent")

    def __init__(self, parent: Scope | None, keeps: bool) -> None:
        self.parent = parent
        self.keeps = keeps
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.nodes: dict[tuple, Node] = {}
        self.open = True


class Node:
    """One value of the graph: an operation on other nodes. Nodes are numbered in the order of creation."""

    __slots__ = ("args", "data", "graph", "number", "op", "scope")

    def __init__(self, graph: Graph, op: str, args: tuple, data: Any, number: int, scope: Scope) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.data = data
        self.number = number
        self.scope = scope

    def __repr__(self) -> str:
        parts = [f"%{a.number}" for a in self.args] + ([] if self.data is None else [repr(self.data)])
        return f"%{self.number} = {self.op}({', '.join(parts)})"

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        refuse(
            "if, while, and, or, not and comparisons of arrays need the truth value of a traced value, "
            "which is known only at run time",
            "zwang.scalar.where, cond, while_loop, logical_and, logical_or, logical_not, less or equal",
        )

    def __float__(self) -> NoReturn:
        refuse(
            "float() or a function of math or NumPy needs the number of a traced value, "
            "which is known only at run time",
            "the function of the same name in zwang.scalar",
        )

    __complex__ = __float__

    def __int__(self) -> NoReturn:
        refuse(
            "int(), round() or an index needs the integer of a traced value, which is known only at run time",
            "zwang.scalar.floor, or zwang.scalar.for_each and table for indices",
        )

    __index__ = __round__ = __trunc__ = __ceil__ = __int__


def refuse(what: str, instead: str) -> NoReturn:
    """Raise a TraceError that names the line of the user's code and the function of zwang.scalar to use
    instead.
    """
    raise TraceError(f"{user_line()}: {what}. Use {instead}.")


def user_line(frame: FrameType | None = None) -> str:
    """File, line number and text of the innermost frame outside the compiler, zwang.scalar and NumPy.

    frame: where the search begins, by default the caller.
    """
    compiler = Path(__file__).parents[1]
    own = (
        str(compiler),
        str(compiler.parent / "scalar"),
        str(Path(np.__file__).parent),
        "<__array_function__",
    )
    frame = frame or sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    name, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, line).strip()
    return f"{name}, line {line}" + (f": {text}" if text else "")


@contextmanager
def named_numpy_errors() -> Iterator[None]:
    """Context in which NumPy's errors about functions that traced values do not have become TraceErrors."""
    try:
        yield
    except (TypeError, AttributeError) as error:
        if isinstance(error, TraceError) or not (
            isinstance(getattr(error, "obj", None), Node) or "ufunc" in str(error)
        ):
            raise
        *_, (frame, _) = walk_tb(error.__traceback__)
        raise TraceError(
            f"{user_line(frame)}: a function that traced values do not have ({error}). Write it with "
            "Python's operators and the functions of zwang.scalar, such as exp, sqrt, atan2 and where."
        ) from error


class Graph:
    """All nodes of one traced function, and the scope that is being traced."""

    __slots__ = ("constants", "count", "floor", "innermost", "root")

    def __init__(self) -> None:
        self.root = Scope(None, keeps=True)
        self.innermost = self.root
        self.floor = self.root
        self.constants: dict[Any, Node] = {}
        self.count = 0

    def constant(self, value: float) -> Real:
        """The node of a constant; -0.0 and 0.0 are different nodes."""
        value = float(value)
        key = value if value else str(value)
        node = self.constants.get(key)
        if node is None:
            node = self.constants[key] = self._new(Real, "const", (), value, self.root)
        return node  # type: ignore[return-value]

    def unary(self, op: str, a: Node) -> Any:
        """The shared node op(a), of the same kind as a."""
        if self.innermost is not self.root or not a.scope.open:
            return self.make(type(a), op, (a,))
        nodes = self.root.nodes
        key = (op, a.number)
        node = nodes.get(key)
        if node is None:
            node = nodes[key] = type(a)(self, op, (a,), None, self.count, self.root)
            self.count += 1
        return node

    def binary(self, op: str, a: Node, b: Node) -> Real:
        """The shared node op(a, b), a real."""
        if a.graph is not b.graph:
            raise TraceError(
                f"{user_line()}: an operation combines values of two different traces; trace them together"
            )
        if self.innermost is not self.root:
            return self.make(Real, op, (a, b))
        nodes = self.root.nodes
        key = (op, a.number, b.number)
        node = nodes.get(key)
        if node is None:
            node = nodes[key] = Real(self, op, (a, b), None, self.count, self.root)
            self.count += 1
        return node  # type: ignore[return-value]

    def make(self, kind: type[Node], op: str, args: tuple, data: Any = None) -> Any:
        """The shared node op(*args) with this data, in the outermost scope where all its arguments are
        known.
        """
        key = (op, *[a.number for a in args]) if data is None else (op, data, *[a.number for a in args])
        scope = self._scope_of(args)
        while True:
            node = scope.nodes.get(key)
            if node is not None:
                return node
            if scope.depth >= self.floor.depth:
                break
            scope = self._child(scope)
        node = scope.nodes[key] = self._new(kind, op, args, data, scope)
        return node

    def unshared(self, kind: type[Node], op: str, args: tuple, data: Any, scope: Scope | None = None) -> Any:
        """A new node in `scope` (default: the innermost), never shared: a parameter, a loop or an array
        version.
        """
        self._scope_of(args)
        return self._new(kind, op, args, data, scope or self.innermost)

    def enter(self, keeps: bool) -> Scope:
        """Open the scope of a body and return it."""
        scope = Scope(self.innermost, keeps)
        self.innermost = scope
        self.floor = scope if keeps else self.floor
        return scope

    def leave(self) -> None:
        """Close the innermost scope, whose nodes may not be used from now on."""
        scope = self.innermost
        scope.open = False
        self.innermost = scope.parent or self.root
        self.floor = self.innermost
        while not self.floor.keeps:
            self.floor = self.floor.parent or self.root

    def _new(self, kind: type[Node], op: str, args: tuple, data: Any, scope: Scope) -> Node:
        node = kind(self, op, args, data, self.count, scope)
        self.count += 1
        return node

    def _scope_of(self, args: tuple) -> Scope:
        """The innermost scope among those of the arguments."""
        scope = self.root
        for a in args:
            if not a.scope.open or a.graph is not self:
                raise TraceError(
                    f"{user_line()}: a value created inside a loop or branch (or in another trace) "
                    "is used outside it; return it from the body instead"
                )
            if a.scope.depth > scope.depth:
                scope = a.scope
        return scope

    def _child(self, scope: Scope) -> Scope:
        """The child of `scope` that contains the innermost scope."""
        child = self.innermost
        while child.depth > scope.depth + 1:
            child = child.parent or self.root
        return child


_PLAIN = (float, int)


def _binary(name: str, swapped: bool = False) -> Any:
    """An operator of real nodes that applies the rule of the operation."""

    def operator(self: Real, other: Any) -> Any:
        kind = type(other)
        if kind is not Real and kind not in _PLAIN:
            other = number_or_real(other)
            if other is NotImplemented:
                return NotImplemented
        return RULES[name](other, self) if swapped else RULES[name](self, other)

    return operator


def number_or_real(value: Any) -> Any:
    """`value` as a Python number or a real node; NotImplemented if it is neither. Raises TraceError for truth
    values.
    """
    if type(value) is Real or type(value) in _PLAIN:
        return value
    if isinstance(value, (bool, float, int)):
        return float(value) if isinstance(value, float) else int(value)
    if isinstance(value, (np.floating, np.integer, np.bool_)):
        return value.item()
    if isinstance(value, Index):
        return value.as_real()
    if isinstance(value, Truth):
        raise TraceError(
            f"{user_line()}: a truth value is used as a number: write zwang.scalar.where(condition, 1, 0)"
        )
    return NotImplemented


def _divided(choose: Callable[[tuple[Any, Any]], Any], swapped: bool = False) -> Any:
    """An operator of reals and indices that chooses of the floored quotient and its remainder."""

    def operator(self: Node, other: Any) -> Any:
        mine, other = number_or_real(self), number_or_real(other)
        if other is NotImplemented:
            return NotImplemented
        return choose(floored_division(other, mine) if swapped else floored_division(mine, other))

    return operator


def _ruled(name: str) -> Any:
    """A method that applies a rule, for NumPy functions on object arrays: np.sin calls x.sin()."""

    def method(self: Real, *others: Any) -> Any:
        return RULES[name](self, *(number_or_real(other) for other in others))

    return method


class Real(Node):
    """A traced real number."""

    __slots__ = ()

    __add__, __radd__ = _binary("add"), _binary("add", swapped=True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", swapped=True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", swapped=True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", swapped=True)
    __floordiv__, __rfloordiv__ = _divided(itemgetter(0)), _divided(itemgetter(0), swapped=True)
    __mod__, __rmod__ = _divided(itemgetter(1)), _divided(itemgetter(1), swapped=True)
    __divmod__, __rdivmod__ = _divided(tuple), _divided(tuple, swapped=True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", swapped=True)
    __lt__, __le__ = _binary("lt"), _binary("le")
    __gt__, __ge__ = _binary("lt", swapped=True), _binary("le", swapped=True)
    __eq__, __ne__ = _binary("eq"), _binary("ne")
    __neg__, __abs__, __floor__ = _ruled("neg"), _ruled("abs"), _ruled("floor")
    sqrt, sin, cos, tan, exp, log = map(_ruled, ("sqrt", "sin", "cos", "tan", "exp", "log"))
    sinh, cosh, tanh = map(_ruled, ("sinh", "cosh", "tanh"))
    arcsin, arccos, arctan2 = map(_ruled, ("asin", "acos", "atan2"))
    arcsinh, arccosh, arctanh = map(_ruled, ("asinh", "acosh", "atanh"))
    __hash__ = Node.__hash__

    def __pos__(self) -> Real:
        return self

    def conjugate(self) -> Real:
        return self

    def square(self) -> Real:
        return RULES["mul"](self, self)


class Truth(Node):
    """A traced truth value."""

    __slots__ = ()

    def __and__(self, other: Any) -> Any:
        return RULES["and"](self, other)

    def __or__(self, other: Any) -> Any:
        return RULES["or"](self, other)

    def __xor__(self, other: Any) -> Any:
        return RULES["xor"](self, other)

    def __invert__(self) -> NoReturn:
        refuse("~ of a Python bool is an integer, so ~ is not supported", "zwang.scalar.logical_not")

    def as_number(self, other: Any = None) -> NoReturn:
        """Raise TraceError: a truth value is not a number."""
        raise TraceError(
            f"{user_line()}: a truth value is used as a number: write zwang.scalar.where(condition, 1, 0)"
        )

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = as_number


class Index(Node):
    """A traced integer that all lanes share: a loop index, or an integer expression of loop indices."""

    __slots__ = ()

    __floordiv__, __rfloordiv__ = Real.__floordiv__, Real.__rfloordiv__
    __mod__, __rmod__ = Real.__mod__, Real.__rmod__
    __divmod__, __rdivmod__ = Real.__divmod__, Real.__rdivmod__

    def as_real(self) -> Real:
        """The real number equal to this index."""
        return RULES["real"](self)


def _indexed(whole: str, real: str, swapped: bool = False) -> Any:
    """An operator of indices: the result is an index if the other operand is an integer, else a real."""

    def operator(self: Index, other: Any) -> Any:
        if whole and (isinstance(other, (int, np.integer)) or type(other) is Index):
            rule, mine, other = RULES[whole], self, other if type(other) is Index else int(other)
        else:
            rule, mine, other = RULES[real], self.as_real(), number_or_real(other)
            if other is NotImplemented:
                return NotImplemented
        return rule(other, mine) if swapped else rule(mine, other)

    return operator


for _name, _whole, _real in (
    ("add", "iadd", "add"),
    ("sub", "isub", "sub"),
    ("mul", "imul", "mul"),
    ("truediv", "", "div"),
):
    setattr(Index, f"__{_name}__", _indexed(_whole, _real))
    setattr(Index, f"__r{_name}__", _indexed(_whole, _real, swapped=True))
for _name, _real, _swapped in (
    ("lt", "lt", False),
    ("le", "le", False),
    ("gt", "lt", True),
    ("ge", "le", True),
    ("eq", "eq", False),
    ("ne", "ne", False),
):
    setattr(Index, f"__{_name}__", _indexed("", _real, _swapped))
Index.__hash__ = Node.__hash__  # type: ignore[method-assign]


class Array(Node):
    """One version of a mutable array with `length` elements."""

    __slots__ = ("length",)

    length: int


class Control(Node):
    """A loop or branch; `data` has its bodies, and "result" nodes represent its results."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class TracedBody:
    """The traced body of a loop or branch: the nodes of its parameters and of its results."""

    scope: Scope
    parameters: tuple[Node, ...]
    results: tuple[Node, ...]
