"""The order of instructions: few values alive at a time, so that few have to leave the registers.

Instructions are pure but for scratch arrays, where a change comes after all reads of the version that it replaces.
So any order that keeps these edges is right, and none changes a result.

The order is depth first from the results: before an instruction come its arguments with all that only they still
need, the argument with the largest need first (Sethi and Ullman's rule, on a graph). Inputs and constants are left
out of the count: they are read from memory where they are used.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from zwang.compile.program import Block, For, Instruction, Program, When, While

LEAVES = frozenset({"input", "const", "index", "true", "false"})
"""Instructions that take no register for long: they are placed just before their first use."""


def order(program: Program) -> Program:
    """The program with the instructions of each block in an order that keeps few values alive."""
    return replace(program, body=_block(program.body))


def _block(block: Block) -> Block:
    instructions = [_with_blocks(instruction) for instruction in block.instructions]
    graph = _Graph(instructions, block.results)
    orders = [list(range(len(instructions))), depth_first(graph), greedy(graph)]
    best = min(orders, key=lambda chosen: traffic(graph, chosen))
    placed = _leaves_late(graph, best)
    return Block(block.parameters, tuple(instructions[k] for k in placed), block.results)


def _with_blocks(instruction: Instruction) -> Instruction:
    data = instruction.data
    if isinstance(data, While):
        return replace(
            instruction, data=replace(data, condition=_block(data.condition), body=_block(data.body))
        )
    if isinstance(data, When):
        return replace(
            instruction, data=replace(data, then=_block(data.then), otherwise=_block(data.otherwise))
        )
    if isinstance(data, For):
        return replace(instruction, data=replace(data, body=_block(data.body)))
    return instruction


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
            if instruction.op == "store" or instruction.op in ("while", "for", "when"):
                for a in instruction.args:
                    self.before[k] += [r for r in readers.get(a, []) if r not in self.before[k]]
            if instruction.op in ("load", "while", "for", "when"):
                for a in instruction.args:
                    readers.setdefault(a, []).append(k)


def depth_first(graph: _Graph) -> list[int]:
    """Arguments before what uses them, those that need the most registers first."""
    need = _needs(graph)
    done = [False] * len(graph.instructions)
    order: list[int] = []
    for root in graph.roots:
        stack = [(root, False)]
        while stack:
            k, ready = stack.pop()
            if ready:
                order.append(k)
            elif not done[k]:
                done[k] = True
                stack.append((k, True))
                waiting = [b for b in graph.before[k] if not done[b]]
                stack += [(b, False) for b in sorted(waiting, key=lambda b: (need[b], -b))]
    return order


def _needs(graph: _Graph) -> list[int]:
    """Sethi and Ullman's number of each instruction, as if the graph were a tree."""
    need = [0] * len(graph.instructions)
    for k, before in enumerate(graph.values):
        own = sorted((need[b] for b in before), reverse=True)
        need[k] = 0 if graph.leaf[k] else max([1, *(n + i for i, n in enumerate(own))])
    return need


def greedy(graph: _Graph) -> list[int]:
    """From the end backwards: always the instruction whose removal leaves the fewest values alive."""
    after = [0] * len(graph.instructions)
    for before in graph.before:
        for b in before:
            after[b] += 1
    alive: set[int] = set(graph.roots)
    ready = [(_price(graph, k, alive), -k, k) for k in range(len(after)) if after[k] == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        price, _, k = heapq.heappop(ready)
        now = _price(graph, k, alive)
        if now != price:
            heapq.heappush(ready, (now, -k, k))
            continue
        order.append(k)
        alive.discard(k)
        alive.update(graph.values[k])
        for b in graph.before[k]:
            after[b] -= 1
            if after[b] == 0:
                heapq.heappush(ready, (_price(graph, b, alive), -b, b))
    return order[::-1]


def _price(graph: _Graph, k: int, alive: set[int]) -> int:
    """By how many the values alive grow, going backwards over instruction k."""
    return sum(b not in alive for b in graph.values[k]) - (k in alive)


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
