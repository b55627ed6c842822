"""Instruction scheduling for low register pressure.

Instructions are pure except those on arrays, where a store comes after all reads of the version that it
overwrites. Any order with these dependencies is valid, and the order does not change a result.

Two orders are compared, and the one with the fewer transfers between registers and memory is taken: the order
of tracing, which is that of the source, and a greedy order. The greedy scheduler always continues with the
instruction that ends the lifetime of the most values, or after which another instruction can. Inputs and
constants do not count, because they are read from memory where they are used.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import replace

from zwang.compiler.ir.program import Block, Instruction, Program, with_blocks

_INSPECTED_USERS = 16
"""Number of users of a value that the greedy scheduler looks ahead to."""

LARGE = 20_000
"""A block with more instructions than this keeps the order of tracing: there, instruction fetches dominate.
"""

LEAVES = frozenset({"input", "const", "index", "true", "false", "lane"})
"""Instructions that occupy no register for long, since they are placed just before their first use."""


def schedule(program: Program) -> Program:
    """The program with the instructions of each block reordered so that few values are live at a time."""
    return replace(program, body=_block(program.body))


def _block(block: Block) -> Block:
    instructions = [with_blocks(instruction, _block) for instruction in block.instructions]
    graph = _Graph(instructions, block.results)
    best: Sequence[int] = range(len(instructions))
    if len(instructions) <= LARGE:
        transfers = traffic(graph, best)
        if transfers:
            order = _Greedy(graph).run()
            best = order if traffic(graph, order, transfers) < transfers else best
    placed = _with_leaves_late(graph, best)
    return Block(block.parameters, tuple(instructions[k] for k in placed), block.results)


class _Graph:
    """The dependencies between the instructions of a block, by position."""

    def __init__(self, instructions: Sequence[Instruction], results: Sequence[int]) -> None:
        self.instructions = instructions
        self.producer = {out: k for k, instruction in enumerate(instructions) for out in instruction.out}
        self.leaf = [instruction.op in LEAVES for instruction in instructions]
        self.before = [
            list(dict.fromkeys(self.producer[a] for a in instruction.args if a in self.producer))
            for instruction in instructions
        ]
        self.roots = list(dict.fromkeys(self.producer[r] for r in results if r in self.producer))
        self.values = [[k for k in before if not self.leaf[k]] for before in self.before]
        self._order_array_accesses()
        self.uses = [0] * len(instructions)
        for before in self.values:
            for k in before:
                self.uses[k] += 1
        for k in self.roots:
            self.uses[k] += 1

    def _order_array_accesses(self) -> None:
        """Add dependencies: an instruction that overwrites an array comes after all reads of the previous
        version.
        """
        readers: dict[int, list[int]] = {}
        for k, instruction in enumerate(self.instructions):
            if instruction.op in ("store", "scatter", "while", "for", "cond"):
                known = dict.fromkeys(self.before[k])
                for a in instruction.args:
                    known.update(dict.fromkeys(readers.get(a, ())))
                self.before[k] = list(known)
            if instruction.op in (
                "load",
                "gather",
                "compact",
                "active_index",
                "active_count",
                "while",
                "for",
                "cond",
            ):
                for a in instruction.args:
                    readers.setdefault(a, []).append(k)


class _Greedy:
    """Greedy scheduling from the beginning of the block.

    The next instruction is the one that ends the lifetime of the most values. Ties are broken by whether it
    enables another instruction to do so, then by position.
    """

    def __init__(self, graph: _Graph) -> None:
        self.graph = graph
        size = len(graph.instructions)
        self.done = list(graph.leaf)
        self.users: list[list[int]] = [[] for _ in range(size)]
        for k, before in enumerate(graph.before):
            for b in before:
                self.users[b].append(k)
        self.pending = [sum(not graph.leaf[b] for b in before) for before in graph.before]
        self.remaining_uses = list(graph.uses)
        self.heap: list[tuple[int, int]] = []

    def run(self) -> list[int]:
        order: list[int] = []
        for k, pending in enumerate(self.pending):
            if pending == 0 and not self.done[k]:
                self._push(k)
        while self.heap:
            priority, k = heapq.heappop(self.heap)
            if self.done[k]:
                continue
            if self._priority(k) < -priority:
                self._push(k)
                continue
            self.done[k] = True
            order.append(k)
            self._update_after(k)
        return order

    def _push(self, k: int) -> None:
        heapq.heappush(self.heap, (-self._priority(k), k))

    def _priority(self, k: int) -> int:
        remaining, values, pending = self.remaining_uses, self.graph.values, self.pending
        ended = 0
        for b in values[k]:
            ended += remaining[b] == 1
        ahead, single_use = 0, self.graph.uses[k] == 1
        for user in self.users[k][:_INSPECTED_USERS]:
            if pending[user] == 1:
                ended_next = int(single_use)
                for b in values[user]:
                    ended_next += b != k and remaining[b] == 1
                if ended_next > ahead:
                    ahead = ended_next
        return 2 * ended + ahead

    def _update_after(self, k: int) -> None:
        """After instruction k: push the instructions that became possible or whose priority increased."""
        for b in self.graph.values[k]:
            self.remaining_uses[b] -= 1
            if self.remaining_uses[b] == 1:
                self._reconsider([user for user in self.users[b] if not self.done[user]])
        for user in self.users[k]:
            self.pending[user] -= 1
            self._reconsider([user])

    def _reconsider(self, users: list[int]) -> None:
        for user in users:
            if self.pending[user] == 0:
                self._push(user)
            elif self.pending[user] == 1:
                for b in self.graph.before[user]:
                    if not self.done[b] and self.pending[b] == 0:
                        self._push(b)


def traffic(graph: _Graph, order: Sequence[int], most: float = math.inf, registers: int = 28) -> int:
    """The number of stores and loads of the optimal register allocation for this order (Belady's
    algorithm), or one that is not below `most` if that number is not.
    """
    values, leaf = graph.values, graph.leaf
    next_uses: list[list[int]] = [[] for _ in graph.instructions]
    for t in range(len(order) - 1, -1, -1):
        for b in values[order[t]]:
            next_uses[b].append(t)
    in_registers: set[int] = set()
    stored: set[int] = set()
    latest: list[tuple[int, int]] = []  # a heap of the values in registers by next use; some are out of date
    transfers = 0
    for k in order:
        for b in values[k]:
            uses = next_uses[b]
            uses.pop()
            if b not in in_registers:
                transfers += 1
                in_registers.add(b)
            if uses:
                heapq.heappush(latest, (-uses[-1], -b))
            else:
                in_registers.discard(b)
        if not leaf[k] and next_uses[k]:
            in_registers.add(k)
            heapq.heappush(latest, (-next_uses[k][-1], -k))
        while len(in_registers) > registers:
            t, b = heapq.heappop(latest)
            if -b in in_registers and next_uses[-b][-1] == -t:
                in_registers.discard(-b)
                transfers += -b not in stored
                stored.add(-b)
        if transfers >= most:
            break
    return transfers


def _with_leaves_late(graph: _Graph, order: Sequence[int]) -> list[int]:
    """The same order with inputs and constants moved just before their first use."""
    placed: list[int] = []
    done: set[int] = set()
    for k in order:
        if graph.leaf[k]:
            continue
        for b in graph.before[k]:
            if graph.leaf[b] and b not in done:
                done.add(b)
                placed.append(b)
        placed.append(k)
    placed += [k for k in graph.roots if graph.leaf[k] and k not in done]
    return placed
