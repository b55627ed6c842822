"""Tracing: run a function once on traced scalars, and keep what it did as a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zwang import scalar
from zwang.compiler.frontend import traced_control_flow
from zwang.compiler.ir.graph import RULES, Graph, Index, Real, Truth, number_or_real, user_line
from zwang.compiler.ir.lower import lower
from zwang.compiler.ir.node_rules import check_span, gather_table, span
from zwang.compiler.ir.program import Port, Program
from zwang.errors import TraceError
from zwang.scalar.arrays import clamped_index

UNROLLED_NODES = 5_000
"""A `for_each` that would make more nodes than this when unrolled is compiled as a loop."""

_SAME = ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "floor", "atan2", "copysign")
_RULE_OF = dict(zip(_SAME, _SAME, strict=True)) | {
    "absolute": "abs",
    "power": "pow",
    "divide": "div",
    "minimum": "min",
    "maximum": "max",
    "less": "lt",
    "less_equal": "le",
    "equal": "eq",
    "not_equal": "ne",
}


class TraceBackend(scalar.Backend):
    """Traced scalars: each primitive is a node. Control flow needs the graph that is being traced."""

    def __init__(self, graph: Graph | None = None, unroll: int = UNROLLED_NODES) -> None:
        self._graph = graph
        self._unroll = unroll
        for primitive, rule in _RULE_OF.items():
            setattr(self, primitive, _primitive(RULES[rule]))

    where = staticmethod(RULES["select"])
    logical_and = staticmethod(RULES["and"])
    logical_or = staticmethod(RULES["or"])
    logical_not = staticmethod(RULES["not"])

    @property
    def graph(self) -> Graph:
        if self._graph is None:
            raise TraceError(
                f"{user_line()}: a loop over traced values is outside the function that is traced"
            )
        return self._graph

    def gather_table(self, table: scalar.Table, index: Any) -> Any:
        return gather_table(table.entries, traced_control_flow.whole(index))

    def allocate(self, shape: tuple[int, ...], uninitialised: bool) -> scalar.MutableArray:
        return traced_control_flow.new_scratch(self.graph, shape, uninitialised)

    def active_indices(self, flags: Any, end: Any) -> Any:
        end = traced_control_flow.whole(end)
        check_span(end, flags.shape[0] + 1)
        return traced_control_flow.active_indices(self.graph, flags, end)

    def active_index(self, items: Any, place: Any, length: int) -> Any:
        check_span(traced_control_flow.whole(place), length)
        return self.graph.make(Index, "pick", (items, traced_control_flow.index_node(self.graph, place)), length - 1)

    def count(self, items: Any, length: int) -> Any:
        return self.graph.make(Index, "count", (items,), length)

    def active_loop(self, items: Any, count: int, body: Callable, init: Any) -> Any:
        if not count:
            return traced_control_flow.static_loop(self.graph, 0, body, init, True, 0)
        return traced_control_flow.indexed_loop(self.graph, range(count), body, init, items)

    def dynamic_loop(self, ends: tuple[Any, Any], backwards: bool, body: Callable, init: Any) -> Any:
        begin, end = map(traced_control_flow.whole, ends)
        inside = range(span(begin)[0], span(end)[1])
        if not inside:
            return traced_control_flow.static_loop(self.graph, 0, body, init, True, 0)
        if inside.start < 0:
            raise TraceError(
                f"{user_line()}: a span that may begin at {inside.start} gives indices below 0: begin it at 0 or later"
            )
        return traced_control_flow.indexed_loop(self.graph, inside, body, init, ends=(begin, end), backwards=backwards)

    def lane_maximum(self, x: Any, limit: int) -> Any:
        x = traced_control_flow.real_node(self.graph, x)
        if x.op == "const":
            return clamped_index(x.data, limit + 1)
        return self.graph.make(Index, "highest", (x,), limit)

    def while_loop(self, condition: Callable, body: Callable, init: Any) -> Any:
        return traced_control_flow.while_loop(self.graph, condition, body, init)

    def cond(self, predicate: Any, then: Callable, otherwise: Callable, operands: tuple) -> Any:
        graph = self._graph or predicate.graph
        return traced_control_flow.cond(graph, traced_control_flow.truth_node(graph, predicate), then, otherwise, operands)

    def static_loop(self, count: int, body: Callable, init: Any, unroll: bool | None) -> Any:
        return traced_control_flow.static_loop(self.graph, count, body, init, unroll, self._unroll)


def _primitive(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule for arguments of any kind that is a number."""

    def call(*args: Any) -> Any:
        reals = [a if type(a) is Real else number_or_real(a) for a in args]
        if any(a is NotImplemented for a in reals):
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TraceError(f"{user_line()}: a traced scalar does not mix with these: {kinds}")
        return rule(*reals)

    return call


_READING = TraceBackend()
for _kind in (Real, Truth, Index, traced_control_flow.TracedArray):
    scalar.register(_kind, _READING)


class CarriedValues:
    """Numbers that a program takes along from one step to the next, zeros at first; how many is known when it asks for them."""

    def __init__(self, graph: Graph, port: int) -> None:
        self._graph, self._port = graph, port
        self.size = 0
        self.kept: list[Any] = []

    def warm_start(self, size: int) -> scalar.MutableArray:
        """So many numbers, as they were kept in the step before. To be asked once."""
        if self.size:
            raise TraceError(
                f"{user_line()}: the memory is recalled twice: pass on what the first recall gave"
            )
        self.size, numbers = size, traced_control_flow.new_scratch(self._graph, (size,), uninitialised=True)
        for k, number in enumerate(_input(self._graph, self._port, (size,))):
            numbers = numbers.set(k, number)
        return numbers

    def keep(self, numbers: Any) -> None:
        """Take these along, as many as are recalled."""
        self.kept = list(numbers)


def trace(
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    unroll: int = UNROLLED_NODES,
    carried: str = "",
) -> Program:
    """The program of a function, found by running it once on traced scalars.

    `inputs` maps names to shapes; the function is called with one array of traced scalars for each, in this order (a
    bare scalar for the shape ()). It returns an array, scalar, or nested list of such, which becomes the output "out",
    or a tuple ("out0", "out1", ...) or dictionary of them. The program's operations are those of the function, in
    the function's order, with equal ones shared and constants folded by the rules of `rules.py`, and no others.

    `for_each` loops are unrolled up to `unroll` nodes each. Raises TraceError, with the line of the function, where
    Python needs the number in a traced value. With a name for its `memory` the function is called with one, `memory`, too; if it makes use of
    it, it becomes the last input and output.
    """
    graph = Graph()
    shapes = {name: _shape(shape) for name, shape in inputs.items()}
    arrays = [_input(graph, number, shape) for number, shape in enumerate(shapes.values())]
    taken = CarriedValues(graph, len(shapes))
    with scalar.use_backend(TraceBackend(graph, unroll)):
        given = _named(function(*arrays, carried=taken) if carried else function(*arrays))
    if taken.size:
        _check_memory(carried, taken, shapes, given)
        shapes, given = {**shapes, carried: (taken.size,)}, {**given, carried: taken.kept}
    outputs = {name: _array(value) for name, value in given.items()}
    results = [_output(graph, name, element) for name, array in outputs.items() for element in array.flat]
    return lower(
        graph,
        [Port(name, math.prod(shape), shape) for name, shape in shapes.items()],
        [Port(name, array.size, array.shape) for name, array in outputs.items()],
        results,
    )


def _check_memory(name: str, carried: CarriedValues, *others: Mapping[str, Any]) -> None:
    kept = _array(carried.kept).size
    if kept != carried.size:
        raise TraceError(
            f"the memory {name!r} recalls {carried.size} numbers and keeps {kept}: it has to keep as many"
        )
    if any(name in ports for ports in others):
        raise TraceError(
            f"the memory {name!r} has the name of another input or output: give it one of its own"
        )


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _input(graph: Graph, number: int, shape: tuple[int, ...]) -> Any:
    nodes = [graph.make(Real, "input", (), (number, element)) for element in range(math.prod(shape))]
    if not shape:
        return nodes[0]
    array = np.empty(len(nodes), dtype=object)
    array[:] = nodes
    return array.reshape(shape)


def _named(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return {str(name): value for name, value in given.items()}
    if isinstance(given, tuple):
        return {f"out{k}": value for k, value in enumerate(given)}
    return {"out": given}


def _array(value: Any) -> np.ndarray:
    return np.asarray(value, dtype=object)


def _output(graph: Graph, name: str, element: Any) -> Real:
    if isinstance(element, (Truth, bool, np.bool_)):
        raise TraceError(f"output {name!r} holds a truth value: give zwang.scalar.where(it, 1, 0)")
    number = number_or_real(element)
    if number is NotImplemented:
        raise TraceError(
            f"output {name!r} holds a {type(element).__name__}, which is no number and no traced scalar"
        )
    if type(number) is Real and number.graph is not graph:
        raise TraceError(f"output {name!r} holds a value of another trace")
    return traced_control_flow.real_node(graph, number)
