"""Tracing of loops, branches and mutable arrays.

The body of a loop is traced once, with parameters in place of the carry. Outer values that it uses are
captured when the graph is lowered. A mutable array that is read and written at Python integers only remains a
list of nodes and costs nothing; it becomes an array of the program when a loop carries it or when it is
accessed at a traced index.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
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
    TracedBody,
    Truth,
    number_or_real,
    user_line,
)
from zwang.compiler.ir.node_rules import check_bounds, index_node, truth
from zwang.errors import TraceError
from zwang.scalar import MutableArray, leaves_of, rebuild, structure_of
from zwang.scalar.arrays import clamped_index

_SIZE_ESTIMATE_ITERATIONS = 3
"""After this many unrolled iterations the size of the completely unrolled loop is estimated."""


# ------------------------------------------------------------------------------------------- mutable arrays


class TracedArray(MutableArray):
    """A mutable array during tracing: a list of scalars, or the node of one version of an array.

    `origin` is shared by all versions of one array; `scope` is the scope in which this version was created.
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
        """The node of this version. A list of scalars is first stored into a new array, in the scope of the
        list.
        """
        self._check_valid()
        if self.node is None:
            graph, elements = self.graph, self._elements or []
            length = len(elements)
            if (source := _input_elements(elements)) is not None:
                node = array_node(graph, "input_array", (), source, length, self.scope)
                self.node, self._elements = node, None
                return node
            # no zero fill where most elements are stored anyway
            zeros = sum(x is not None and type(x) is not Real and x == 0 for x in elements)
            uninitialised = None in elements or 2 * zeros < length
            node = array_node(graph, "empty" if uninitialised else "array", (), length, length, self.scope)
            for i, element in enumerate(elements):
                if element is not None and (uninitialised or type(element) is Real or element != 0):
                    args = (node, index_node(graph, i), real_node(graph, element))
                    node = array_node(graph, "store", args, None, length, self.scope)
            self.node, self._elements = node, None
        return self.node

    def known_elements(self) -> list[Any] | None:
        """The elements of an array that is a list of scalars and numbers; None for a node of the program."""
        return None if self.node is not None or None in (self._elements or []) else self._elements

    def consume(self) -> Array:
        """The node of this version, which becomes invalid."""
        node = self.as_node()
        self.node = None
        return node

    def copy(self) -> TracedArray:
        """A copy of this version, for a trial unrolling."""
        elements = None if self._elements is None else list(self._elements)
        duplicate = TracedArray(self.graph, self.shape, elements, self.node, self.origin)
        duplicate.scope = self.scope
        return duplicate

    def invalidate(self) -> None:
        """Make this version invalid."""
        self.node = self._elements = None

    def _load(self, position: Any) -> Any:
        self._check_valid()
        if self._elements is not None and type(position) is int:
            if self._elements[position] is None:
                raise TraceError(f"{user_line()}: this element of an uninitialised array was never set")
            return self._elements[position]
        graph, array = self.graph, self.as_node()
        check_bounds(uniform_index(position), array.length)
        return graph.make(Real, "load", (array, index_node(graph, position)))

    def _store(self, position: Any, value: Any) -> MutableArray:
        self._check_writable()
        value = number_or_real(value)
        if self._elements is not None and type(position) is int:
            elements, self._elements = self._elements, None
            elements[position] = value
            return TracedArray(self.graph, self.shape, elements, None, self.origin)
        array = self.consume()
        check_bounds(uniform_index(position), array.length)
        args = (array, index_node(self.graph, position), real_node(self.graph, value))
        node = array_node(self.graph, "store", args, None, args[0].length)
        return TracedArray(self.graph, self.shape, None, node, self.origin)

    def gather(self, position: Any) -> Any:
        self._check_valid()
        element = self._lane_position(position)
        if type(element) is int:
            return self._load(element)
        return self.graph.make(Real, "gather", (self.as_node(), element))

    def scatter(self, position: Any, value: Any) -> MutableArray:
        self._check_writable()
        element, value = self._lane_position(position), real_node(self.graph, value)
        if type(element) is int:
            return self._store(element, value)
        array = self.consume()
        args = (array, element, value)
        node = array_node(self.graph, "scatter", args, None, args[0].length)
        return TracedArray(self.graph, self.shape, None, node, self.origin)

    def _lane_position(self, position: Any) -> Any:
        """A position as a traced real or, if it is a constant, as an integer clamped to the array."""
        length = math.prod(self.shape)
        check_bounds(0, length)
        node = real_node(self.graph, position)
        return clamped_index(node.data, length) if node.op == "const" else node

    def _check_writable(self) -> None:
        self._check_valid()
        if self.scope is not self.graph.innermost:
            raise TraceError(
                f"{user_line()}: a loop or branch sets an element of an array from outside: "
                "carry the array, or pass it to cond() as an operand, and return it"
            )

    def _check_valid(self) -> None:
        if self._elements is None and self.node is None:
            raise TraceError(
                f"{user_line()}: this array was changed by set(), or was carried by a loop: "
                "use the array that set() or the loop returned"
            )
        if not self.scope.open:
            raise TraceError(f"{user_line()}: an array created inside a loop or branch is used outside it")


def _input_elements(elements: Sequence[Any]) -> tuple[int, int, int] | None:
    """(number of an input, its first element, length) if these are consecutive elements of one input."""
    if not elements or not all(type(x) is Real and x.op == "input" for x in elements):
        return None
    number, first = elements[0].data
    consecutive = [(number, first + k) for k in range(len(elements))]
    same = number >= 0 and [x.data for x in elements] == consecutive
    return (number, first, len(elements)) if same else None


def uniform_index(position: Any) -> Any:
    """A position in a table or array that all lanes share: an integer or an Index. Raises TraceError
    otherwise.
    """
    if type(position) in (int, Index):
        return position
    if isinstance(position, np.integer):
        return int(position)
    raise TraceError(
        f"{user_line()}: the index of a table or array must be an integer or a loop index of for_each, "
        f"not a traced {type(position).__name__.lower()}, which may differ from lane to lane"
    )


def array_node(
    graph: Graph, op: str, args: tuple, data: Any, length: int, scope: Scope | None = None
) -> Array:
    """A new version of a mutable array."""
    node = graph.unshared(Array, op, args, data, scope)
    node.length = length
    return node


def real_node(graph: Graph, value: Any) -> Real:
    """A number or traced real as a node. Raises TraceError for anything else."""
    value = number_or_real(value)
    if value is NotImplemented:
        raise TraceError(f"{user_line()}: a number is required here")
    return value if type(value) is Real else graph.constant(value)


def truth_node(graph: Graph, value: Any) -> Truth:
    """A truth value as a node. Raises TraceError for anything else."""
    value = truth(value)
    return graph.make(Truth, "true" if value else "false", ()) if type(value) is bool else value


# ---------------------------------------------------------------------------------------------- carries


def _initial_node(graph: Graph, leaf: Any) -> Node:
    """The node of a carried value before a loop. A carried array becomes invalid outside the loop."""
    if isinstance(leaf, TracedArray):
        return leaf.consume()
    if isinstance(leaf, Index):
        raise TraceError(
            f"{user_line()}: a loop carries an index: carry a number (1.0 * index), "
            "or read the index from a table"
        )
    if isinstance(leaf, (Truth, bool, np.bool_)):
        return truth_node(graph, leaf)
    return real_node(graph, leaf)


def _new_value(graph: Graph, op: str, args: tuple, data: Any, like: Node, leaf: Any) -> Any:
    """A new value of the kind of `like`, as the user sees it: a parameter of a body or a result of a loop."""
    if type(like) is Array:
        node = array_node(graph, op, args, data, like.length)
        return TracedArray(graph, leaf.shape, None, node, leaf.origin)
    return graph.unshared(type(like), op, args, data)


def _node_of(value: Any) -> Node:
    return value.as_node() if isinstance(value, TracedArray) else value


def _results(
    graph: Graph, returned: Any, init: Any, parameters: Sequence[Any], name: str
) -> tuple[Node, ...]:
    """The nodes that a body returns, after a check that kinds and structure are those of the carry."""
    if structure_of(returned) != structure_of(init):
        raise TraceError(
            f"{user_line()}: {name} has to return the structure of its argument, "
            f"{structure_of(init)}, not {structure_of(returned)}"
        )
    nodes = []
    for value, parameter in zip(leaves_of(returned), parameters, strict=True):
        if isinstance(parameter, TracedArray):
            nodes.append(_same_array(value, parameter, name))
        elif type(parameter) is Truth:
            nodes.append(truth_node(graph, value))
        else:
            nodes.append(real_node(graph, value))
    return tuple(nodes)


def _same_array(value: Any, parameter: TracedArray, name: str) -> Node:
    """The node of a returned array, which has to be a later version of the array at this position of the
    carry.
    """
    if not isinstance(value, TracedArray) or value.origin is not parameter.origin:
        raise TraceError(f"{user_line()}: {name} has to return each array at its own position of the carry")
    return value.as_node()


def _loop_results(graph: Graph, control: Node, initial: Sequence[Node], init: Any) -> Any:
    """The results of a loop in the structure of the carry."""
    leaves = leaves_of(init)
    out = [_new_value(graph, "result", (control,), k, initial[k], leaves[k]) for k in range(len(leaves))]
    return rebuild(init, out)


# ---------------------------------------------------------------------------------------------- loops


def while_loop(graph: Graph, condition: Callable, body: Callable, init: Any) -> Any:
    """Trace a loop that each lane leaves when its own condition is false; returns the final carry."""
    leaves = leaves_of(init)
    initial = [_initial_node(graph, leaf) for leaf in leaves]

    scope, parameters, carry = _open_body(graph, initial, leaves, init)
    nodes = tuple(map(_node_of, parameters))
    test = truth_node(graph, condition(carry))
    _check_unchanged(parameters, "the condition of while_loop")
    graph.leave()
    traced_condition = TracedBody(scope, nodes, (test,))

    traced_body = _body(graph, initial, leaves, init, body, "the body of while_loop")
    control = graph.unshared(Control, "while", tuple(initial), (traced_condition, traced_body))
    return _loop_results(graph, control, initial, init)


def _open_body(
    graph: Graph, initial: Sequence[Node], leaves: Sequence[Any], init: Any
) -> tuple[Scope, list, Any]:
    """Open the scope of a loop's body; returns the scope, its parameters, and these in the structure of the
    carry.
    """
    scope = graph.enter(keeps=False)
    parameters = [
        _new_value(graph, "parameter", (), None, node, leaf)
        for node, leaf in zip(initial, leaves, strict=True)
    ]
    return scope, parameters, rebuild(init, parameters)


def _body(
    graph: Graph, initial: Sequence[Node], leaves: Sequence[Any], init: Any, body: Callable, name: str
) -> TracedBody:
    scope, parameters, carry = _open_body(graph, initial, leaves, init)
    nodes = tuple(map(_node_of, parameters))
    results = _results(graph, body(carry), init, parameters, name)
    graph.leave()
    return TracedBody(scope, nodes, results)


def _check_unchanged(values: Sequence[Any], name: str) -> None:
    for value in values:
        if isinstance(value, TracedArray) and value.node is None:
            raise TraceError(f"{user_line()}: {name} may read an array, but not change it")


def static_loop(graph: Graph, count: int, body: Callable, init: Any, unroll: bool | None, limit: int) -> Any:
    """Trace a loop over 0 ... count - 1; returns the final carry.

    unroll: True or False, or None to unroll the loop if that creates at most about `limit` nodes. Without a
    limit, `sys.maxsize`, every loop is unrolled.
    """
    if unroll is False and count > 0 and limit < sys.maxsize:
        return indexed_loop(graph, range(count), body, init)
    arrays = [leaf for leaf in leaves_of(init) if isinstance(leaf, TracedArray)]
    carry = _with_copies(init) if arrays else init
    first_node, largest = graph.count, 0
    for i in range(count):
        before = graph.count
        carry = body(i, carry)
        largest = max(largest, graph.count - before)
        if unroll is None and (
            graph.count - first_node > limit or (i == _SIZE_ESTIMATE_ITERATIONS and largest * count > limit)
        ):
            return indexed_loop(graph, range(count), body, init)
    for array in arrays:
        array.invalidate()
    return carry


def _with_copies(init: Any) -> Any:
    return rebuild(init, [leaf.copy() if isinstance(leaf, TracedArray) else leaf for leaf in leaves_of(init)])


def indexed_loop(
    graph: Graph,
    indices: range,
    body: Callable,
    init: Any,
    active: Array | None = None,
    bounds: tuple[Any, ...] = (),
    reverse: bool = False,
) -> Any:
    """Trace a loop over `indices`; returns the final carry.

    active: the `compact` node of the active indices; the loop runs over these only. bounds: lower (inclusive)
    and upper (exclusive) bound of a dynamic loop; `indices` is then the range that contains all its indices.
    reverse: whether a dynamic loop runs from its upper to its lower bound.
    """
    leaves = leaves_of(init)
    initial = [_initial_node(graph, leaf) for leaf in leaves]
    scope, parameters, carry = _open_body(graph, initial, leaves, init)
    index = graph.unshared(Index, "parameter", (), indices)
    nodes = (index, *map(_node_of, parameters))
    results = _results(graph, body(index, carry), init, parameters, "the body of for_each")
    if active is None:
        range_args: list[Node] = [index_node(graph, bound) for bound in bounds]
        range_parameters: list[Node] = [graph.unshared(Index, "parameter", (), None) for _ in bounds]
    else:
        range_args = [active]
        range_parameters = [array_node(graph, "parameter", (), None, active.length)]
    graph.leave()
    data = len(indices), TracedBody(scope, (*nodes, *range_parameters), results), len(initial), reverse
    control = graph.unshared(Control, "for", (*initial, *range_args), data)
    return _loop_results(graph, control, initial, init)


def active_indices(graph: Graph, flags: TracedArray, end: Any) -> Array:
    """The `compact` node of the indices below `end` at which the flags are positive in some lane."""
    array = flags.as_node()
    return array_node(graph, "compact", (array, index_node(graph, end)), array.length, array.length + 1)


# ---------------------------------------------------------------------------------------------- branches


def cond(graph: Graph, predicate: Truth, then: Callable, otherwise: Callable, operands: tuple) -> Any:
    """Trace both branches, each of which is executed only if some lane takes it; returns their results."""
    leaves = leaves_of(operands)
    arrays = [leaf for leaf in leaves if isinstance(leaf, TracedArray)]
    versions = [array.as_node() for array in arrays]
    taken = _branch(graph, then, operands, arrays)
    not_taken = _branch(graph, otherwise, operands, arrays)
    if structure_of(taken[0]) != structure_of(not_taken[0]):
        raise TraceError(
            f"{user_line()}: the two branches of cond() have to return the same structure: "
            f"{structure_of(taken[0])} and {structure_of(not_taken[0])}"
        )
    kinds = _common_kinds(leaves_of(taken[0]), leaves_of(not_taken[0]), arrays)
    bodies = [_close_branch(graph, branch, kinds) for branch in (taken, not_taken)]
    returned = {leaf.origin for leaf in leaves_of(taken[0]) if isinstance(leaf, TracedArray)}
    for array in arrays:
        if array.origin in returned:
            array.consume()
    control = graph.unshared(Control, "cond", (predicate, *versions), tuple(bodies))
    return _branch_results(graph, control, taken[0], kinds)


def _branch(graph: Graph, function: Callable, operands: tuple, arrays: Sequence[TracedArray]) -> tuple:
    """What a branch returns, its scope, its parameters (the arrays among the operands), and its result
    leaves.
    """
    scope = graph.enter(keeps=True)
    nodes = tuple(array_node(graph, "parameter", (), None, array.as_node().length) for array in arrays)
    parameters = [
        TracedArray(graph, array.shape, None, node, array.origin)
        for array, node in zip(arrays, nodes, strict=True)
    ]
    remaining = iter(parameters)
    leaves = [next(remaining) if isinstance(leaf, TracedArray) else leaf for leaf in leaves_of(operands)]
    returned = function(*rebuild(operands, leaves))
    results = [leaf.consume() if isinstance(leaf, TracedArray) else leaf for leaf in leaves_of(returned)]
    origins = {leaf.origin for leaf in leaves_of(returned) if isinstance(leaf, TracedArray)}
    _check_unchanged([p for p in parameters if p.origin not in origins], "a branch that does not return it")
    graph.leave()
    return returned, scope, nodes, results


def _are_new(a: TracedArray, b: TracedArray, operands: Sequence[TracedArray]) -> bool:
    """Whether two arrays of one shape were created in the branches that return them."""
    origins = [array.origin for array in operands]
    return a.shape == b.shape and a.origin not in origins and b.origin not in origins


def _common_kinds(
    taken: Sequence[Any], not_taken: Sequence[Any], operands: Sequence[TracedArray]
) -> list[type[Node]]:
    """The kind of each result, given the leaves of both branches. Raises TraceError for different arrays."""
    kinds: list[type[Node]] = []
    for a, b in zip(taken, not_taken, strict=True):
        if isinstance(a, TracedArray) or isinstance(b, TracedArray):
            both = isinstance(a, TracedArray) and isinstance(b, TracedArray)
            if not both or not (a.origin is b.origin or _are_new(a, b, operands)):
                raise TraceError(
                    f"{user_line()}: both branches of cond() have to return the same array, or new ones of "
                    "one shape"
                )
            kinds.append(Array)
        else:
            kinds.append(Truth if _is_truth(a) and _is_truth(b) else Real)
    return kinds


def _is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_, Truth))


def _close_branch(graph: Graph, branch: tuple, kinds: Sequence[type[Node]]) -> TracedBody:
    """The body of a branch, with its results converted to the common kinds."""
    _, scope, parameters, results = branch
    nodes = []
    for value, kind in zip(results, kinds, strict=True):
        convert = {Array: lambda _, v: v, Truth: truth_node, Real: real_node}[kind]
        nodes.append(convert(graph, value))
    return TracedBody(scope, parameters, tuple(nodes))


def _branch_results(graph: Graph, control: Node, returned: Any, kinds: Sequence[type[Node]]) -> Any:
    """The results of `cond` in the structure that its branches return."""
    out = []
    for k, (kind, leaf) in enumerate(zip(kinds, leaves_of(returned), strict=True)):
        if kind is Array:
            node = array_node(graph, "result", (control,), k, math.prod(leaf.shape))
            out.append(TracedArray(graph, leaf.shape, None, node, leaf.origin))
        else:
            out.append(graph.unshared(kind, "result", (control,), k))
    return rebuild(returned, out)


def new_array(graph: Graph, shape: tuple[int, ...], uninitialised: bool) -> TracedArray:
    """A mutable array of zeros, or of elements that are not yet set."""
    return TracedArray(graph, shape, [None if uninitialised else 0.0] * math.prod(shape), None, object())
