"""Lowering of the expression graph to a program: the nodes that the outputs need, in order, block by
block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zwang.compiler.ir.graph import Array, Control, Graph, Index, Node, Real, TracedBody, Truth
from zwang.compiler.ir.program import Block, Cond, For, Instruction, Kind, Port, Program, While
from zwang.compiler.ir.sinking import escaped_value, sink

_KINDS: dict[type[Node], Kind] = {Real: "real", Truth: "bool", Index: "index", Array: "array"}
_REPEATED = frozenset({"const", "index", "true", "false", "lane"})
"""Operations that each block repeats, since that is cheaper than capturing their values."""


def lower(graph: Graph, inputs: Sequence[Port], outputs: Sequence[Port], results: Sequence[Node]) -> Program:
    """The program that computes the nodes `results`, the elements of all outputs in order.

    Nodes that the results do not depend on are omitted, and those that one branch alone needs are in it.
    Raises TraceError if a result was created inside a loop or branch.
    """
    sink(results, graph.root)
    lowering = _Lowering()
    body = TracedBody(graph.root, (), tuple(results))
    block, _ = lowering.block([body])[0]
    return Program(tuple(inputs), tuple(outputs), block, lowering.kinds, lowering.lengths)


class _Lowering:
    """The numbering of values with their kinds and lengths, and the lowered control flow."""

    def __init__(self) -> None:
        self.kinds: dict[int, Kind] = {}
        self.lengths: dict[int, int] = {}
        self.controls: dict[Node, tuple[Any, tuple[Node, ...]]] = {}

    def block(self, bodies: Sequence[TracedBody]) -> list[tuple[Block, tuple[Node, ...]]]:
        """The blocks of the bodies of one loop or branch; all capture the same outer nodes, which are also
        returned.
        """
        gathered = [self._gather(body) for body in bodies]
        captured = sorted({node for _, outer in gathered for node in outer}, key=lambda node: node.number)
        return [
            (self._emit(body, needed, captured), tuple(captured))
            for body, (needed, _) in zip(bodies, gathered, strict=True)
        ]

    def _gather(self, body: TracedBody) -> tuple[list[Node], set[Node]]:
        """The nodes of this body's scope that its results need, in order, and the outer nodes that they
        use.
        """
        needed: set[Node] = set()
        outer: set[Node] = set()
        waiting = list(body.results)
        while waiting:
            node = waiting.pop()
            if node in needed or node in outer or node.op in _REPEATED:
                continue
            if node.scope is not body.scope:
                _check_outer(node, body)
                outer.add(node)
                continue
            needed.add(node)
            waiting += node.args
            if type(node) is Control:
                waiting += self._control(node)[1]
        return sorted(needed, key=lambda node: node.number), outer

    def _control(self, node: Node) -> tuple[Any, tuple[Node, ...]]:
        """The lowered bodies of a loop or branch, and the nodes that it captures."""
        if node not in self.controls:
            if node.op == "for":
                count, body, carried, reverse = node.data
                [(block, captured)] = self.block([body])
                bounds = (
                    len(node.args) - carried
                )  # 0, 1 for active indices, 2 for the bounds of a dynamic loop
                self.controls[node] = For(count, block, carried, bounds == 1, bounds == 2, reverse), captured
            else:
                (first, captured), (second, _) = self.block(node.data)
                data = While(first, second, len(node.args)) if node.op == "while" else Cond(first, second)
                self.controls[node] = data, captured
        return self.controls[node]

    def _emit(self, body: TracedBody, needed: Sequence[Node], captured: Sequence[Node]) -> Block:
        writer = _Writer(self)
        parameters = [writer.define(node) for node in (*body.parameters, *captured)]
        results_of: dict[Node, dict[int, Node]] = {}
        for node in needed:
            if node.op == "result":
                results_of.setdefault(node.args[0], {})[node.data] = node
        for node in needed:
            if type(node) is Control:
                writer.control(node, *self._control(node), results_of[node])
            elif node.op not in ("result", "parameter"):
                writer.instruction(node)
        results = tuple(writer.number_of(node) for node in body.results)
        return Block(tuple(parameters), tuple(writer.instructions), results)


class _Writer:
    """Writes the instructions of one block."""

    def __init__(self, lowering: _Lowering) -> None:
        self.kinds = lowering.kinds
        self.lengths = lowering.lengths
        self.numbers: dict[Node, int] = {}
        self.instructions: list[Instruction] = []

    def define(self, node: Node) -> int:
        """A new value number for a node."""
        length = node.length if isinstance(node, Array) else None
        number = self.numbers[node] = self._new(_KINDS[type(node)], length)
        return number

    def _new(self, kind: Kind, length: int | None) -> int:
        number = len(self.kinds)
        self.kinds[number] = kind
        if kind == "array" and length is not None:
            self.lengths[number] = length
        return number

    def number_of(self, node: Node) -> int:
        """The value number of a node; a constant is emitted at its first use in the block."""
        number = self.numbers.get(node)
        if number is None:
            number = self.define(node)
            self.instructions.append(Instruction(node.op, (), (number,), node.data))
        return number

    def instruction(self, node: Node) -> None:
        args = tuple([self.number_of(a) for a in node.args])
        self.instructions.append(Instruction(node.op, args, (self.define(node),), node.data))

    def control(self, node: Node, data: Any, captured: Sequence[Node], results: dict[int, Node]) -> None:
        args = tuple(self.number_of(a) for a in (*node.args, *captured))
        body = data.then if node.op == "cond" else data.body
        out = []
        for k, value in enumerate(body.results):
            if k in results:
                out.append(self.define(results[k]))
            else:
                out.append(self._new(self.kinds[value], self.lengths.get(value)))
        self.instructions.append(Instruction(node.op, args, tuple(out), data))


def _check_outer(node: Node, body: TracedBody) -> None:
    scope = body.scope
    while scope.parent is not None:
        scope = scope.parent
        if scope is node.scope:
            return
    raise escaped_value()
