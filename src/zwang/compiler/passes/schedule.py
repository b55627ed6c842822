"""The order of instructions: few values alive at a time, so that few have to leave the registers.

Instructions are pure but for scratch arrays, where a change comes after all reads of the version that it replaces.
So any order that keeps these edges is right, and none changes a result.

Three orders are tried, and that is taken which would move the fewest values between registers and memory: the
tracer's own, which is that of the algorithm's text, and two that always go on with the instruction that ends the most
values, or after which another can. Inputs and constants are left out of the count: they are read from memory where
they are used.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from zwang.compiler.ir.program import Block, Instruction, Program, with_blocks

_USERS = 16
"""Of how many users of a value it is asked what they would end."""

LARGE = 20_000
"""A block with more instructions than this stays in the tracer's order: to fetch the code costs more than to move values."""

LEAVES = frozenset({"input", "const", "index", "true", "false"})
"""Instructions that take no register for long: they are placed just before their first use."""


def schedule(program: Program) -> Program:
    """The program with the instructions of each block in an order that keeps few values alive."""
    return replace(program, body=_block(program.body))


def _block(block: Block) -> Block:
    instructions = [with_blocks(instruction, _block) for instruction in block.instructions]
    graph = _Graph(instructions, block.results)
    orders = [list(range(len(instructions)))]
    if len(instructions) <= LARGE:
        orders += [_Greedy(graph, shares=shares).run() for shares in (False, True)]
    best = min(orders, key=lambda chosen: traffic(graph, chosen)) if len(orders) > 1 else orders[0]
    placed = _leaves_late(graph, best)
    return Block(block.parameters, tuple(instructions[k] for k in placed), block.results)


class _Graph:
    """Which instructions of a block have to come before which, by position."""

    def __init__(self, instructions: Sequence[Instruction], results: Sequence[int]) -> None:
        self.instructions = instructions
        self.maker = {out: k for k, instruction in enumerate(instructions) for out in instruction.out}
        self.leaf = [instruction.op in LEAVES for instruction in instructions]
        self.before = [
            list(dict.fromkeys(self.maker[a] for a in instruction.args if a in self.maker))
            for instruction in instructions
        ]
        self.roots = list(dict.fromkeys(self.maker[r] for r in results if r in self.maker))
        self.values = [[k for k in before if not self.leaf[k]] for before in self.before]
        self._keep_arrays()
        self.uses = [0] * len(instructions)
        for before in self.values:
            for k in before:
                self.uses[k] += 1
        for k in self.roots:
            self.uses[k] += 1

    def _keep_arrays(self) -> None:
        """A store, loop or branch that changes an array comes after those that read the version before."""
        readers: dict[int, list[int]] = {}
        for k, instruction in enumerate(self.instructions):
            if instruction.op in ("store", "scatter", "while", "for", "cond"):
                for a in instruction.args:
                    self.before[k] += [r for r in readers.get(a, []) if r not in self.before[k]]
            if instruction.op in ("load", "gather", "choose", "pick", "count", "while", "for", "cond"):
                for a in instruction.args:
                    readers.setdefault(a, []).append(k)


class _Greedy:
    """From the beginning: always the instruction that ends the most values; of equal ones, that which readies another
    to end some; of equal ones (with `shares`) that whose arguments have the fewest other uses; else the first.
    """

    def __init__(self, graph: _Graph, shares: bool) -> None:
        self.graph, self.shares = graph, shares
        size = len(graph.instructions)
        self.done = list(graph.leaf)
        self.users: list[list[int]] = [[] for _ in range(size)]
        for k, before in enumerate(graph.before):
            for b in before:
                self.users[b].append(k)
        self.waits = [sum(not graph.leaf[b] for b in before) for before in graph.before]
        self.left = list(graph.uses)
        self.heap: list[tuple[float, int]] = []

    def run(self) -> list[int]:
        order: list[int] = []
        for k, waits in enumerate(self.waits):
            if waits == 0 and not self.done[k]:
                self._offer(k)
        while self.heap:
            worth, k = heapq.heappop(self.heap)
            if self.done[k]:
                continue
            if self._worth(k) < -worth:
                self._offer(k)
                continue
            self.done[k] = True
            order.append(k)
            self._follow(k)
        return order

    def _offer(self, k: int) -> None:
        heapq.heappush(self.heap, (-self._worth(k), k))

    def _worth(self, k: int) -> float:
        left, values = self.left, self.graph.values
        ends = sum([left[b] == 1 for b in values[k]])
        ahead = 0
        for user in self.users[k][:_USERS]:
            if self.waits[user] == 1:
                then = sum([left[b] == 1 for b in values[user] if b != k]) + (self.graph.uses[k] == 1)
                ahead = max(ahead, then)
        shared = sum([1 / left[b] for b in values[k]]) / 64 if self.shares else 0
        return 2 * ends + ahead + shared

    def _follow(self, k: int) -> None:
        """After instruction k: offer what has become possible, or worth more."""
        for b in self.graph.values[k]:
            self.left[b] -= 1
            if self.left[b] == 1:
                self._reconsider([user for user in self.users[b] if not self.done[user]])
        for user in self.users[k]:
            self.waits[user] -= 1
            self._reconsider([user])

    def _reconsider(self, users: list[int]) -> None:
        for user in users:
            if self.waits[user] == 0:
                self._offer(user)
            elif self.waits[user] == 1:
                for b in self.graph.before[user]:
                    if not self.done[b] and self.waits[b] == 0:
                        self._offer(b)


def traffic(graph: _Graph, order: Sequence[int], registers: int = 28) -> int:
    """Stores and loads that the best allocation for this order needs (Belady: out goes what is used last)."""
    next_uses: list[list[int]] = [[] for _ in graph.instructions]
    for t in range(len(order) - 1, -1, -1):
        for b in graph.values[order[t]]:
            next_uses[b].append(t)
    held: set[int] = set()
    stored: set[int] = set()
    moves = 0
    for k in order:
        for b in graph.values[k]:
            next_uses[b].pop()
            if b not in held:
                moves += 1
                held.add(b)
        for b in graph.values[k]:
            if not next_uses[b]:
                held.discard(b)
        if not graph.leaf[k] and next_uses[k]:
            held.add(k)
        while len(held) > registers:
            out = max(held, key=lambda b: (next_uses[b][-1], b))
            held.discard(out)
            moves += out not in stored
            stored.add(out)
    return moves


def _leaves_late(graph: _Graph, order: Sequence[int]) -> list[int]:
    """The same order with inputs and constants just before their first use."""
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
