"""The expression graph: nodes of a traced function, equal ones shared.

A traced scalar is a node. Its operators ask the rules (`rules.py`) for the node of the result, so an algorithm that
runs on nodes writes down its own graph. Constants are no nodes to the algorithm: they stay Python numbers and fold
with each other, and only a node that uses one makes it a node of the graph.

Nodes live in scopes, one for the function and one for each body of a loop or branch. A node made inside a loop from
outer values only goes to the outer scope: what does not change in a loop is worked out before it. Branches keep what
is made inside them, since not working it out is their use.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from zwang.errors import TraceError

RULES: dict[str, Callable[..., Any]] = {}
"""The rule for each operation by its name in the program: arguments (nodes or numbers) to a node or a number."""


class Scope:
    """The nodes of one body; `keeps` says that nodes of outer values made in it stay in it."""

    __slots__ = ("depth", "keeps", "nodes", "open", "parent")

    def __init__(self, parent: Scope | None, keeps: bool) -> None:
        self.parent = parent
        self.keeps = keeps
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.nodes: dict[tuple, Node] = {}
        self.open = True


class Node:
    """One value of the graph: an operation on other nodes. Numbered in the order of creation."""

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
            "if, while, and, or, not and comparisons of arrays ask whether a traced value is true, known only at run time",
            "zwang.scalar.where, when, while_loop, logical_and, logical_or, logical_not, less or equal",
        )

    def __float__(self) -> NoReturn:
        refuse(
            "float() or a function of math or NumPy asks for the number in a traced value, which it has only at run time",
            "the function of the same name in zwang.scalar",
        )

    __complex__ = __float__

    def __int__(self) -> NoReturn:
        refuse(
            "int(), round() or an index asks for the integer in a traced value, which it has only at run time",
            "zwang.scalar.floor, or zwang.scalar.for_each and table for indices",
        )

    __index__ = __round__ = __trunc__ = __ceil__ = __int__


def refuse(what: str, instead: str) -> NoReturn:
    """Raise the TraceError that names the line of the user's code that is at work."""
    raise TraceError(f"{user_line()}: {what}. Use {instead}.")


def user_line() -> str:
    """File, line number and text of the innermost frame outside the compiler, NumPy and zwang.scalar."""
    here = Path(__file__).parent
    own = (str(here), str(here.parent / "scalar"), str(Path(np.__file__).parent), "<__array_function__")
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    name, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, line).strip()
    return f"{name}, line {line}" + (f": {text}" if text else "")


class Graph:
    """All nodes of one traced function."""

    __slots__ = ("constants", "count", "floor", "innermost", "root")

    def __init__(self) -> None:
        self.root = Scope(None, keeps=True)
        self.innermost = self.root
        self.floor = self.root
        self.constants: dict[Any, Node] = {}
        self.count = 0

    def constant(self, value: float) -> Real:
        """The node of a constant; -0.0 is not 0.0."""
        value = float(value)
        key = value if value else str(value)
        node = self.constants.get(key)
        if node is None:
            node = self.constants[key] = self._new(Real, "const", (), value, self.root)
        return node  # type: ignore[return-value]

    def unary(self, op: str, a: Node) -> Any:
        """The shared node op(a) of a's own kind."""
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
            raise TraceError(f"{user_line()}: values of two different traces meet; trace them together")
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
        """The shared node op(*args) with this data, in the outermost scope that may have it."""
        key = (op, *[a.number for a in args]) if data is None else (op, data, *[a.number for a in args])
        scope = self._home(args)
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
        """A node of its own in this scope (the innermost), equal to no other: parameters, loops, scratch arrays."""
        self._home(args)
        return self._new(kind, op, args, data, scope or self.innermost)

    def enter(self, keeps: bool) -> Scope:
        """Open the scope of a body."""
        scope = Scope(self.innermost, keeps)
        self.innermost = scope
        self.floor = scope if keeps else self.floor
        return scope

    def leave(self) -> None:
        """Close the innermost scope; its nodes may not be used outside."""
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

    def _home(self, args: tuple) -> Scope:
        """The deepest scope among the arguments."""
        home = self.root
        for a in args:
            if not a.scope.open or a.graph is not self:
                raise TraceError(
                    f"{user_line()}: a value made inside a loop or branch (or another trace) is used outside it; "
                    "return it from the body instead"
                )
            if a.scope.depth > home.depth:
                home = a.scope
        return home

    def _child(self, scope: Scope) -> Scope:
        """The scope just inside `scope` on the way to the innermost."""
        child = self.innermost
        while child.depth > scope.depth + 1:
            child = child.parent or self.root
        return child


_PLAIN = (float, int)


def _binary(name: str, swapped: bool = False) -> Any:
    """An operator of reals that answers by its rule."""

    def operator(self: Real, other: Any) -> Any:
        kind = type(other)
        if kind is not Real and kind not in _PLAIN:
            other = number_or_real(other)
            if other is NotImplemented:
                return NotImplemented
        return RULES[name](other, self) if swapped else RULES[name](self, other)

    return operator


def number_or_real(value: Any) -> Any:
    """`value` as a Python number or a real node; NotImplemented for what is neither."""
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
            f"{user_line()}: a truth value is used as a number: write zwang.scalar.where(it, 1, 0)"
        )
    return NotImplemented


def _ruled(name: str) -> Any:
    """A method that applies a rule, for NumPy's functions on arrays of objects: np.sin calls x.sin()."""

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
    __pow__, __rpow__ = _binary("pow"), _binary("pow", swapped=True)
    __lt__, __le__ = _binary("lt"), _binary("le")
    __gt__, __ge__ = _binary("lt", swapped=True), _binary("le", swapped=True)
    __eq__, __ne__ = _binary("eq"), _binary("ne")
    __neg__, __abs__, __floor__ = _ruled("neg"), _ruled("abs"), _ruled("floor")
    sqrt, sin, cos, tan, exp, log = map(_ruled, ("sqrt", "sin", "cos", "tan", "exp", "log"))
    arcsin, arccos, arctan2 = map(_ruled, ("asin", "acos", "atan2"))
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
        refuse("~ of a plain bool is no bool, so it is not offered", "zwang.scalar.logical_not")

    def as_number(self, other: Any = None) -> NoReturn:
        """Refuse to be one."""
        raise TraceError(
            f"{user_line()}: a truth value is used as a number: write zwang.scalar.where(it, 1, 0)"
        )

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = as_number


class Index(Node):
    """A traced integer that is the same in all lanes: a loop's index, or what follows from it."""

    __slots__ = ()

    def as_real(self) -> Real:
        """The real number equal to this index."""
        return RULES["real"](self)


def _indexed(whole: str, real: str, swapped: bool = False) -> Any:
    """An operator of indices: an index where the other is an integer, a real with anything else."""

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
    """One version of a scratch array of this length."""

    __slots__ = ("length",)

    length: int


class Control(Node):
    """A loop or branch; `data` holds its bodies, and "result" nodes stand for what it gives."""

    __slots__ = ()
