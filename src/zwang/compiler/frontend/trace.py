"""Tracing: a function runs once on traced scalars, and the recorded expression graph becomes a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zwang import scalar
from zwang.compiler.frontend import traced_control_flow
from zwang.compiler.ir.graph import (
    RULES,
    Graph,
    Index,
    Node,
    Real,
    Truth,
    named_numpy_errors,
    number_or_real,
    user_line,
)
from zwang.compiler.ir.lower import lower
from zwang.compiler.ir.node_rules import bounds, check_bounds, gather_table
from zwang.compiler.ir.program import Port, Program
from zwang.errors import TraceError
from zwang.scalar.arrays import clamped_index
from zwang.scalar.backend import common_backend
from zwang.scalar.pytree import leaves_of, rebuild

UNROLLED_NODES = 5_000
"""A `for_each` loop that would create more nodes than this when unrolled is compiled as a loop."""

_SAME_NAME = ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "sinh", "cosh", "tanh", "sech",
              "asinh", "acosh", "atanh", "floor", "atan2", "copysign")  # fmt: skip
_RULE_OF = dict(zip(_SAME_NAME, _SAME_NAME, strict=True)) | {
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
    """The backend of traced scalars: each primitive creates a node. Control flow needs the graph that is
    traced.

    unroll: number of nodes up to which a `for_each` loop is unrolled. holds: whether results of
    `without_derivatives` are marked by the operation "held".
    """

    def __init__(self, graph: Graph | None = None, unroll: int = UNROLLED_NODES, holds: bool = False) -> None:
        self._graph = graph
        self._unroll = unroll
        self._holds = holds
        for primitive, rule in _RULE_OF.items():
            setattr(self, primitive, _primitive(RULES[rule]))

    logical_and = staticmethod(RULES["and"])
    logical_or = staticmethod(RULES["or"])
    logical_not = staticmethod(RULES["not"])

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        backend = common_backend(x, y)
        # of dual numbers of traced values
        return (
            backend.where(condition, x, y) if backend.rank > self.rank else RULES["select"](condition, x, y)
        )

    def is_truth(self, x: Any) -> bool:
        return type(x) is Truth

    @property
    def graph(self) -> Graph:
        if self._graph is None:
            raise TraceError(f"{user_line()}: a loop over traced values lies outside the traced function")
        return self._graph

    def gather_table(self, table: scalar.Table, index: Any) -> Any:
        return gather_table(table.entries, traced_control_flow.uniform_index(index))

    def allocate(self, shape: tuple[int, ...], uninitialised: bool) -> scalar.MutableArray:
        return traced_control_flow.new_array(self.graph, shape, uninitialised)

    def active_indices(self, flags: Any, end: Any) -> Any:
        end = traced_control_flow.uniform_index(end)
        check_bounds(end, flags.shape[0] + 1)
        return traced_control_flow.active_indices(self.graph, flags, end)

    def active_index(self, items: Any, position: Any, length: int) -> Any:
        check_bounds(traced_control_flow.uniform_index(position), length)
        return self.graph.make(
            Index, "active_index", (items, traced_control_flow.index_node(self.graph, position)), length - 1
        )

    def count(self, items: Any, length: int) -> Any:
        return self.graph.make(Index, "active_count", (items,), length)

    def active_loop(self, items: Any, count: int, body: Callable, init: Any) -> Any:
        if not count:
            return traced_control_flow.static_loop(self.graph, 0, body, init, True, 0)
        return traced_control_flow.indexed_loop(self.graph, range(count), body, init, active=items)

    def dynamic_loop(self, ends: tuple[Any, Any], backwards: bool, body: Callable, init: Any) -> Any:
        lower, upper = map(traced_control_flow.uniform_index, ends)
        indices = range(bounds(lower)[0], bounds(upper)[1])
        if not indices:
            return traced_control_flow.static_loop(self.graph, 0, body, init, True, 0)
        if indices.start < 0:
            raise TraceError(
                f"{user_line()}: the lower bound of a loop may be {indices.start}, "
                "which gives indices below 0: begin it at 0 or later"
            )
        return traced_control_flow.indexed_loop(
            self.graph, indices, body, init, bounds=(lower, upper), reverse=backwards
        )

    def lane_number(self) -> Any:
        return self.graph.make(Real, "lane", ())

    def without_derivatives(self, function: Callable, operands: tuple) -> Any:
        found = function(*operands)
        return rebuild(found, [self._held(x) for x in leaves_of(found)]) if self._holds else found

    def _held(self, x: Any) -> Any:
        if isinstance(x, traced_control_flow.TracedArray):
            raise TraceError(f"{user_line()}: an array cannot be held without derivatives in reverse mode")
        return self.graph.make(Real, "held", (x,)) if type(x) is Real else x

    def lane_maximum(self, x: Any, limit: int) -> Any:
        x = traced_control_flow.real_node(self.graph, x)
        if x.op == "const":
            return clamped_index(x.data, limit + 1)
        return self.graph.make(Index, "lane_maximum", (x,), limit)

    def while_loop(self, condition: Callable, body: Callable, init: Any) -> Any:
        return traced_control_flow.while_loop(self.graph, condition, body, init)

    def cond(self, predicate: Any, then: Callable, otherwise: Callable, operands: tuple) -> Any:
        graph = self._graph or predicate.graph
        return traced_control_flow.cond(
            graph, traced_control_flow.truth_node(graph, predicate), then, otherwise, operands
        )

    def static_loop(self, count: int, body: Callable, init: Any, unroll: bool | None) -> Any:
        return traced_control_flow.static_loop(self.graph, count, body, init, unroll, self._unroll)


def _primitive(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The primitive that applies a rule to numbers, indices and traced reals."""

    def call(*args: Any) -> Any:
        reals = [a if type(a) is Real else number_or_real(a) for a in args]
        if any(a is NotImplemented for a in reals):
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TraceError(
                f"{user_line()}: a primitive of traced scalars does not take these types: {kinds}"
            )
        return rule(*reals)

    return call


_TRACE_BACKEND = TraceBackend()
for _kind in (Real, Truth, Index, traced_control_flow.TracedArray):
    scalar.register(_kind, _TRACE_BACKEND)


class CarriedValues:
    """Values that a program carries from one step to the next, zeros in the first step: a state, and a warm
    start.

    The size of the warm start is determined by the first and only call of `warm_start`, which follows that
    of `state`, if there is one. largest: a bound of the absolute values, if all of them are integers.
    """

    def __init__(self, graph: Graph, port: int) -> None:
        self._graph, self._port = graph, port
        self.size = 0
        self._largest: list[int] = []
        self._first: Any = ()
        self._state: Any = ()
        self._kept: Any = ()

    def state(self, size: int, largest: int = 0) -> np.ndarray:
        """The `size` values that the previous step stored with `keep_state`."""
        self._largest.append(largest)
        self._first = self._state = _input(self._graph, self._port, (size,))
        return self._first

    def keep_state(self, values: Any) -> None:
        """Store the state for the next step."""
        self._state = values

    def warm_start(self, size: int, largest: int = 0) -> scalar.MutableArray:
        """The `size` values that the previous step stored with `keep`. Raises TraceError at a second call."""
        if self.size:
            raise TraceError(
                f"{user_line()}: warm_start() of the carried values is called twice: "
                "pass on the result of the first call"
            )
        self._largest.append(largest)
        self.size, values = size, traced_control_flow.new_array(self._graph, (size,), uninitialised=True)
        for k, value in enumerate(_input(self._graph, self._port, (self.total,))[len(self._first) :]):
            values = values.set(k, value)
        return values

    def keep(self, values: Any) -> None:
        """Store `size` values for the next step: a mutable array, which is copied as a whole, or a list."""
        self._kept = values

    @property
    def total(self) -> int:
        """The number of all values."""
        return len(self._first) + self.size

    @property
    def largest(self) -> int:
        """A bound of the absolute values of all, which are integers; 0 if they are not."""
        return 0 if 0 in self._largest else max(self._largest, default=0)

    @property
    def stored(self) -> Any:
        """All values that the program stores."""
        if not len(self._first):
            return self._kept
        return [*self._state, *(self._kept[k] for k in range(math.prod(_array(self._kept).shape)))]


def trace(
    function: Callable[..., Any],
    inputs: Mapping[str, int | tuple[int, ...]],
    *,
    unroll: int = UNROLLED_NODES,
    carried: str = "",
    holds: bool = False,
) -> Program:
    """The program of a function, obtained by running the function once on traced scalars.

    function: called with one array of traced scalars for each input, in order, or a scalar where the shape is
    (). It returns an array, a scalar or a nested list of them, which becomes the output "out", or a tuple of
    these ("out0", "out1", ...) or a dictionary of them.
    inputs: maps the name of each input to its shape; an integer n means (n,).
    unroll: number of nodes up to which each `for_each` loop is unrolled.
    carried: name of values that the program carries from step to step. If it is not empty, the function also
    gets the keyword argument `carried`, a `CarriedValues`; if it uses this, the values become the last input
    and last output.
    holds: see `TraceBackend`; for a program that is differentiated in reverse mode.

    The operations of the program are those of the function in the same order, with common subexpressions
    shared and constants folded by `ir.node_rules`. Raises TraceError, which names the line of the function,
    where Python needs the number of a traced value, where NumPy has a function that traced values do not, or
    where an output is not a number.
    """
    graph = Graph()
    shapes = {name: _shape(shape) for name, shape in inputs.items()}
    arrays = [_input(graph, number, shape) for number, shape in enumerate(shapes.values())]
    values = CarriedValues(graph, len(shapes))
    with scalar.use_backend(TraceBackend(graph, unroll, holds)), named_numpy_errors():
        outputs = named_outputs(function(*arrays, carried=values) if carried else function(*arrays))
    if values.total:
        _check_carried(carried, values, shapes, outputs)
        shapes, outputs = {**shapes, carried: (values.total,)}, {**outputs, carried: values.stored}
    arrays_of = {name: _array(value) for name, value in outputs.items()}
    results = [node for name, array in arrays_of.items() for node in _output_nodes(graph, name, array)]
    bounds = {carried: values.largest}
    return lower(
        graph,
        [Port(name, math.prod(shape), shape, bounds.get(name, 0)) for name, shape in shapes.items()],
        [
            Port(name, math.prod(array.shape), array.shape, bounds.get(name, 0))
            for name, array in arrays_of.items()
        ],
        results,
    )


def _check_carried(name: str, carried: CarriedValues, *others: Mapping[str, Any]) -> None:
    """Raise TraceError if a step stores another number of values than it reads, or if their name is taken."""
    stored = math.prod(_array(carried.stored).shape)
    if stored != carried.total:
        raise TraceError(
            f"the carried values {name!r} are {carried.total} at the start of a step, "
            f"but keep() stores {stored}: store the same number"
        )
    if any(name in ports for ports in others):
        raise TraceError(
            f"the carried values {name!r} have the name of another input or output: choose another name"
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


def named_outputs(returned: Any) -> dict[str, Any]:
    """What a traced function returns, by the names of the outputs."""
    if isinstance(returned, Mapping):
        return {str(name): value for name, value in returned.items()}
    if isinstance(returned, tuple):
        return {f"out{k}": value for k, value in enumerate(returned)}
    return {"out": returned}


def _array(value: Any) -> np.ndarray | traced_control_flow.TracedArray:
    is_mutable = isinstance(value, traced_control_flow.TracedArray)
    return value if is_mutable else np.asarray(value, dtype=object)


def _output_nodes(graph: Graph, name: str, values: Any) -> list[Node]:
    """The nodes of the elements of an output, or that of the mutable array that has them."""
    if isinstance(values, traced_control_flow.TracedArray):
        elements = values.known_elements()
        if elements is None:
            return [values.as_node()]
        return [_output(graph, name, element) for element in elements]
    return [_output(graph, name, element) for element in values.flat]


def _output(graph: Graph, name: str, element: Any) -> Real:
    if isinstance(element, (Truth, bool, np.bool_)):
        raise TraceError(f"output {name!r} has a truth value: return zwang.scalar.where(condition, 1, 0)")
    number = number_or_real(element)
    if number is NotImplemented:
        raise TraceError(
            f"output {name!r} has a {type(element).__name__}, which is neither a number nor a traced scalar"
        )
    if type(number) is Real and number.graph is not graph:
        raise TraceError(f"output {name!r} has a value of another trace")
    return traced_control_flow.real_node(graph, number)
