"""Loops, branches and scratch arrays on traced scalars.

A body is traced once, on parameters in place of the carry. What it uses from outside is captured when the graph is
lowered. A scratch array that is only read and set at plain integers stays a list of nodes and costs nothing; it
becomes an array of the program when a loop carries it or reads it at a traced index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.compiler.ir.graph import (
    Array,
    Control,
    Graph,
    Index,
    Node,
    Real,
    Scope,
    Truth,
    number_or_real,
    user_line,
)
from zwang.compiler.ir.node_rules import check_span, index_node, truth
from zwang.errors import TraceError
from zwang.scalar import MutableArray, leaves_of, rebuild, structure_of
from zwang.scalar.arrays import clamped_index

_TURNS = 3
"""After so many turns the size of a whole unrolled loop is guessed."""


@dataclass(frozen=True, eq=False)
class TracedBody:
    """A traced body: the nodes that stand for its carry and those that it gives."""

    scope: Scope
    parameters: tuple[Node, ...]
    results: tuple[Node, ...]


# ---------------------------------------------------------------------------------------------- scratch arrays


class TracedArray(MutableArray):
    """A scratch array while tracing: a list of scalars, or the node of one version of an array.

    `origin` is shared by all versions of one array, `scope` is that in which this version was made.
    """

    __slots__ = ("graph", "node", "origin", "scope")

    def __init__(
        self, graph: Graph, shape: tuple[int, ...], elements: list | None, node: Array | None, origin: object
    ) -> None:
        super().__init__(shape, elements)
        self.graph = graph
        self.node = node
        self.origin = origin
        self.scope = graph.innermost

    def as_node(self) -> Array:
        """The node of this version; a list of scalars is stored into a new array, in the list's own scope."""
        self._check_alive()
        if self.node is None:
            graph, elements = self.graph, self._elements or []
            length = len(elements)
            # zeros are not filled in where every element is set anyway
            uninitialised = None in elements or all(type(x) is Real or x != 0 for x in elements)
            node = array_node(graph, "blank" if uninitialised else "array", (), length, length, self.scope)
            for i, element in enumerate(elements):
                if element is not None and (uninitialised or type(element) is Real or element != 0):
                    args = (node, index_node(graph, i), real_node(graph, element))
                    node = array_node(graph, "store", args, None, length, self.scope)
            self.node, self._elements = node, None
        return self.node

    def consume(self) -> Array:
        """The node of this version, which may not be used any more."""
        node = self.as_node()
        self.node = None
        return node

    def copy(self) -> TracedArray:
        """The same version once more, to try something with it."""
        elements = None if self._elements is None else list(self._elements)
        again = TracedArray(self.graph, self.shape, elements, self.node, self.origin)
        again.scope = self.scope
        return again

    def end(self) -> None:
        """Let this version not be used any more."""
        self.node = self._elements = None

    def _load(self, position: Any) -> Any:
        self._check_alive()
        if self._elements is not None and type(position) is int:
            if self._elements[position] is None:
                raise TraceError(f"{user_line()}: this element of a blank scratch array was never set")
            return self._elements[position]
        graph, array = self.graph, self.as_node()
        check_span(whole(position), array.length)
        return graph.make(Real, "load", (array, index_node(graph, position)))

    def _store(self, position: Any, value: Any) -> MutableArray:
        self._check_inside()
        value = number_or_real(value)
        if self._elements is not None and type(position) is int:
            elements, self._elements = self._elements, None
            elements[position] = value
            return TracedArray(self.graph, self.shape, elements, None, self.origin)
        array = self.consume()
        check_span(whole(position), array.length)
        args = (array, index_node(self.graph, position), real_node(self.graph, value))
        node = array_node(self.graph, "store", args, None, args[0].length)
        return TracedArray(self.graph, self.shape, None, node, self.origin)

    def gather(self, position: Any) -> Any:
        self._check_alive()
        place = self._own_place(position)
        if type(place) is int:
            return self._load(place)
        return self.graph.make(Real, "gather", (self.as_node(), place))

    def scatter(self, position: Any, value: Any) -> MutableArray:
        self._check_inside()
        place, value = self._own_place(position), real_node(self.graph, value)
        if type(place) is int:
            return self._store(place, value)
        array = self.consume()
        args = (array, place, value)
        node = array_node(self.graph, "scatter", args, None, args[0].length)
        return TracedArray(self.graph, self.shape, None, node, self.origin)

    def _own_place(self, position: Any) -> Any:
        """A position as a traced real, or, if it is known already, as an integer inside the array."""
        length = math.prod(self.shape)
        check_span(0, length)
        place = real_node(self.graph, position)
        return clamped_index(place.data, length) if place.op == "const" else place

    def _check_inside(self) -> None:
        self._check_alive()
        if self.scope is not self.graph.innermost:
            raise TraceError(
                f"{user_line()}: a loop or branch sets an element of a scratch array from outside: "
                "carry the array, or give it to when() as an operand, and return it"
            )

    def _check_alive(self) -> None:
        if self._elements is None and self.node is None:
            raise TraceError(
                f"{user_line()}: this scratch array was changed by set(), or carried into a loop: "
                "use the array that came out of it"
            )
        if not self.scope.open:
            raise TraceError(
                f"{user_line()}: a scratch array made inside a loop or branch is used outside it"
            )


def whole(position: Any) -> Any:
    """A position in a table or array: an int or an index that all lanes share."""
    if type(position) in (int, Index):
        return position
    if isinstance(position, np.integer):
        return int(position)
    raise TraceError(
        f"{user_line()}: a table or scratch array is read at an integer or at an index of for_each, "
        f"not at a traced {type(position).__name__.lower()}, which may differ from lane to lane"
    )


def array_node(
    graph: Graph, op: str, args: tuple, data: Any, length: int, scope: Scope | None = None
) -> Array:
    """A version of a scratch array."""
    node = graph.unshared(Array, op, args, data, scope)
    node.length = length
    return node


def real_node(graph: Graph, value: Any) -> Real:
    """A number or traced real as a node."""
    value = number_or_real(value)
    if value is NotImplemented:
        raise TraceError(f"{user_line()}: a number is needed here")
    return value if type(value) is Real else graph.constant(value)


def truth_node(graph: Graph, value: Any) -> Truth:
    """A truth value as a node."""
    value = truth(value)
    return graph.make(Truth, "true" if value else "false", ()) if type(value) is bool else value


# ---------------------------------------------------------------------------------------------- carries


def _start(graph: Graph, leaf: Any) -> Node:
    """The node of a carried value before a loop; an array that is carried in is used up."""
    if isinstance(leaf, TracedArray):
        return leaf.consume()
    if isinstance(leaf, Index):
        raise TraceError(
            f"{user_line()}: an index is carried: carry a number (1.0 * index), or read the index from a table"
        )
    if isinstance(leaf, (Truth, bool, np.bool_)):
        return truth_node(graph, leaf)
    return real_node(graph, leaf)


def _stand_in(graph: Graph, op: str, args: tuple, data: Any, like: Node, leaf: Any) -> Any:
    """A new value of the kind of `like`: a body's parameter or a loop's result, as the user sees it."""
    if type(like) is Array:
        node = array_node(graph, op, args, data, like.length)
        return TracedArray(graph, leaf.shape, None, node, leaf.origin)
    return graph.unshared(type(like), op, args, data)


def _node_of(value: Any) -> Node:
    return value.as_node() if isinstance(value, TracedArray) else value


def _results(graph: Graph, given: Any, init: Any, parameters: Sequence[Any], what: str) -> tuple[Node, ...]:
    """The nodes that a body gives back, of the kinds and in the structure of the carry."""
    if structure_of(given) != structure_of(init):
        raise TraceError(
            f"{user_line()}: {what} has to return the structure that it was given: "
            f"{structure_of(init)}, not {structure_of(given)}"
        )
    nodes = []
    for value, parameter in zip(leaves_of(given), parameters, strict=True):
        if isinstance(parameter, TracedArray):
            nodes.append(_same_array(value, parameter, what))
        elif type(parameter) is Truth:
            nodes.append(truth_node(graph, value))
        else:
            nodes.append(real_node(graph, value))
    return tuple(nodes)


def _same_array(value: Any, parameter: TracedArray, what: str) -> Node:
    if not isinstance(value, TracedArray) or value.origin is not parameter.origin:
        raise TraceError(
            f"{user_line()}: {what} has to return each scratch array in its own place of the carry"
        )
    return value.as_node()


def _after(graph: Graph, control: Node, bodies: Sequence[Node], init: Any) -> Any:
    leaves = leaves_of(init)
    out = [_stand_in(graph, "result", (control,), k, bodies[k], leaves[k]) for k in range(len(leaves))]
    return rebuild(init, out)


# ---------------------------------------------------------------------------------------------- loops


def while_loop(graph: Graph, condition: Callable, body: Callable, init: Any) -> Any:
    """Trace a loop that each lane leaves when its own condition fails."""
    leaves = leaves_of(init)
    start = [_start(graph, leaf) for leaf in leaves]

    scope, parameters, carry = _open(graph, start, leaves, init)
    nodes = tuple(map(_node_of, parameters))
    test = truth_node(graph, condition(carry))
    _check_unchanged(parameters, "the condition of while_loop")
    graph.leave()
    asks = TracedBody(scope, nodes, (test,))

    turns = _body(graph, start, leaves, init, body, "the body of while_loop")
    control = graph.unshared(Control, "while", tuple(start), (asks, turns))
    return _after(graph, control, start, init)


def _open(graph: Graph, start: Sequence[Node], leaves: Sequence[Any], init: Any) -> tuple[Scope, list, Any]:
    scope = graph.enter(keeps=False)
    parameters = [
        _stand_in(graph, "parameter", (), None, node, leaf) for node, leaf in zip(start, leaves, strict=True)
    ]
    return scope, parameters, rebuild(init, parameters)


def _body(
    graph: Graph, start: Sequence[Node], leaves: Sequence[Any], init: Any, body: Callable, what: str
) -> TracedBody:
    scope, parameters, carry = _open(graph, start, leaves, init)
    nodes = tuple(map(_node_of, parameters))
    results = _results(graph, body(carry), init, parameters, what)
    graph.leave()
    return TracedBody(scope, nodes, results)


def _check_unchanged(values: Sequence[Any], what: str) -> None:
    for value in values:
        if isinstance(value, TracedArray) and value.node is None:
            raise TraceError(f"{user_line()}: {what} may read a scratch array, not change it")


def static_loop(graph: Graph, count: int, body: Callable, init: Any, unroll: bool | None, limit: int) -> Any:
    """Unroll a loop over indices where that makes at most `limit` nodes, else trace it as a loop."""
    if unroll is False and count > 0:
        return indexed_loop(graph, range(count), body, init)
    arrays = [leaf for leaf in leaves_of(init) if isinstance(leaf, TracedArray)]
    carry = _with_copies(init) if arrays else init
    start, largest = graph.count, 0
    for i in range(count):
        before = graph.count
        carry = body(i, carry)
        largest = max(largest, graph.count - before)
        if unroll is None and (graph.count - start > limit or (i == _TURNS and largest * count > limit)):
            return indexed_loop(graph, range(count), body, init)
    for array in arrays:
        array.end()
    return carry


def _with_copies(init: Any) -> Any:
    return rebuild(
        init, [leaf.copy() if isinstance(leaf, TracedArray) else leaf for leaf in leaves_of(init)]
    )


def indexed_loop(
    graph: Graph,
    indices: range,
    body: Callable,
    init: Any,
    items: Array | None = None,
    ends: tuple[Any, ...] = (),
    backwards: bool = False,
) -> Any:
    """A loop over these indices, or over those among them that `choose` found, or that lie between two ends."""
    leaves = leaves_of(init)
    start = [_start(graph, leaf) for leaf in leaves]
    scope, parameters, carry = _open(graph, start, leaves, init)
    index = graph.unshared(Index, "parameter", (), indices)
    nodes = (index, *map(_node_of, parameters))
    results = _results(graph, body(index, carry), init, parameters, "the body of for_each")
    given = [index_node(graph, end) for end in ends] if items is None else [items]
    inside = [graph.unshared(Index, "parameter", (), None) for _ in ends]
    listed = inside if items is None else [array_node(graph, "parameter", (), None, items.length)]
    graph.leave()
    data = len(indices), TracedBody(scope, (*nodes, *listed), results), len(start), backwards
    control = graph.unshared(Control, "for", (*start, *given), data)
    return _after(graph, control, start, init)


def active_indices(graph: Graph, flags: TracedArray, end: Any) -> Array:
    """The list of the indices below the end at which the flags are above zero."""
    array = flags.as_node()
    return array_node(graph, "choose", (array, index_node(graph, end)), array.length, array.length + 1)


# ---------------------------------------------------------------------------------------------- branches


def cond(graph: Graph, predicate: Truth, then: Callable, otherwise: Callable, operands: tuple) -> Any:
    """Trace both branches; each is run only if some lane wants it."""
    leaves = leaves_of(operands)
    arrays = [leaf for leaf in leaves if isinstance(leaf, TracedArray)]
    versions = [array.as_node() for array in arrays]
    taken = _branch(graph, then, operands, arrays)
    not_taken = _branch(graph, otherwise, operands, arrays)
    if structure_of(taken[0]) != structure_of(not_taken[0]):
        raise TraceError(
            f"{user_line()}: the two branches of when() have to return the same structure: "
            f"{structure_of(taken[0])} and {structure_of(not_taken[0])}"
        )
    kinds = _common_kinds(leaves_of(taken[0]), leaves_of(not_taken[0]))
    sides = [_close(graph, side, kinds) for side in (taken, not_taken)]
    returned = {leaf.origin for leaf in leaves_of(taken[0]) if isinstance(leaf, TracedArray)}
    for array in arrays:
        if array.origin in returned:
            array.consume()
    control = graph.unshared(Control, "cond", (predicate, *versions), tuple(sides))
    return _joined(graph, control, taken[0], kinds)


def _branch(graph: Graph, function: Callable, operands: tuple, arrays: Sequence[TracedArray]) -> tuple:
    """The results of a branch, its scope, and the parameters that stand for the arrays among its operands."""
    scope = graph.enter(keeps=True)
    nodes = tuple(array_node(graph, "parameter", (), None, array.as_node().length) for array in arrays)
    parameters = [
        TracedArray(graph, array.shape, None, node, array.origin)
        for array, node in zip(arrays, nodes, strict=True)
    ]
    inside = iter(parameters)
    leaves = [next(inside) if isinstance(leaf, TracedArray) else leaf for leaf in leaves_of(operands)]
    given = function(*rebuild(operands, leaves))
    results = [leaf.consume() if isinstance(leaf, TracedArray) else leaf for leaf in leaves_of(given)]
    returned = {leaf.origin for leaf in leaves_of(given) if isinstance(leaf, TracedArray)}
    _check_unchanged([p for p in parameters if p.origin not in returned], "a branch that does not return it")
    graph.leave()
    return given, scope, nodes, results


def _common_kinds(taken: Sequence[Any], not_taken: Sequence[Any]) -> list[type[Node]]:
    kinds: list[type[Node]] = []
    for a, b in zip(taken, not_taken, strict=True):
        if isinstance(a, TracedArray) or isinstance(b, TracedArray):
            if not (isinstance(a, TracedArray) and isinstance(b, TracedArray) and a.origin is b.origin):
                raise TraceError(
                    f"{user_line()}: both branches of when() have to return the same scratch array"
                )
            kinds.append(Array)
        else:
            kinds.append(Truth if _is_truth(a) and _is_truth(b) else Real)
    return kinds


def _is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_, Truth))


def _close(graph: Graph, side: tuple, kinds: Sequence[type[Node]]) -> TracedBody:
    _, scope, parameters, results = side
    nodes = []
    for value, kind in zip(results, kinds, strict=True):
        convert = {Array: lambda _, v: v, Truth: truth_node, Real: real_node}[kind]
        nodes.append(convert(graph, value))
    return TracedBody(scope, parameters, tuple(nodes))


def _joined(graph: Graph, control: Node, given: Any, kinds: Sequence[type[Node]]) -> Any:
    out = []
    for k, (kind, leaf) in enumerate(zip(kinds, leaves_of(given), strict=True)):
        if kind is Array:
            node = array_node(graph, "result", (control,), k, math.prod(leaf.shape))
            out.append(TracedArray(graph, leaf.shape, None, node, leaf.origin))
        else:
            out.append(graph.unshared(kind, "result", (control,), k))
    return rebuild(given, out)


def new_scratch(graph: Graph, shape: tuple[int, ...], uninitialised: bool) -> TracedArray:
    """A scratch array of zeros, or of elements not yet set."""
    return TracedArray(graph, shape, [None if uninitialised else 0.0] * math.prod(shape), None, object())
