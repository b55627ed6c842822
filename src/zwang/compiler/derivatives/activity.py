"""Which values of a program a derivative passes through, which of them it needs, and which arrays are one.

A value is active if it depends on an input of the derivative and an output depends on it, both through
operations that have derivatives. A reverse sweep needs the values of those operands of active operations that
are not linear, and all from which these are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Program, While, blocks_of

WITHOUT_DERIVATIVE = frozenset({"held", "floor", "compact"})
LINEAR = frozenset({"add", "sub", "neg", "load", "store", "gather", "scatter", "held"})
"""Operations whose derivatives do not depend on the values of their real operands."""
POSITIONED = {"load": (1,), "store": (1,), "gather": (1,), "scatter": (1,), "select": (0,)}
"""The arguments by which these operations choose, which have no derivative."""
LEAVES = frozenset({"load", "gather", "while", "cond", "for"})
"""Operations whose results a reverse sweep does not compute again."""


class BlockLink(NamedTuple):
    """A block of a loop or branch: for each of its parameters the argument outside, None for an index, and
    for each of its results the value outside.
    """

    block: Block
    arguments: tuple[int | None, ...]
    outs: tuple[int, ...]


def links(instruction: Instruction) -> list[BlockLink]:
    """The blocks of a loop or branch. The condition of a `while` has no results outside."""
    data, args, out = instruction.data, instruction.args, instruction.out
    if isinstance(data, Cond):
        return [BlockLink(block, args[1:], out) for block in (data.then, data.otherwise)]
    if isinstance(data, For):
        return [BlockLink(data.body, (None, *args), out)]
    if isinstance(data, While):
        return [BlockLink(data.condition, args, ()), BlockLink(data.body, args, out)]
    return []


def carried(instruction: Instruction) -> int:
    """The number of values that a loop carries; 0 for a branch."""
    return getattr(instruction.data, "carried", 0)


def instructions_of(block: Block) -> Iterator[tuple[Block, Instruction]]:
    """All instructions of a block and of the blocks inside it, each with its own block."""
    for instruction in block.instructions:
        yield block, instruction
        for inner in blocks_of(instruction):
            yield from instructions_of(inner)


def active_values(program: Program, inputs: Collection[int]) -> set[int]:
    """The active values for the derivatives of all outputs by the inputs of these numbers."""
    everything = list(instructions_of(program.body))
    varied, useful = set[int](), set(program.body.results)
    differentiable = {value for value, kind in program.kinds.items() if kind in ("real", "array")}

    def forward(instruction: Instruction) -> set[int]:
        if instruction.op in ("input", "input_array"):
            return set(instruction.out) if instruction.data[0] in inputs else set()
        if blocks_of(instruction):
            return _spread(instruction, varied, True) & differentiable
        # an index made of numbers, and what a table has there, do not depend on an input continuously
        return differentiable.intersection(instruction.out) if varied & {*_operands(instruction)} else set()

    def backward(instruction: Instruction) -> set[int]:
        if blocks_of(instruction):
            return _spread(instruction, useful, False)
        return set(_operands(instruction)) if useful.intersection(instruction.out) else set()

    _close(varied, [i for _, i in everything], forward)
    _close(useful, [i for _, i in reversed(everything)], backward)
    return varied & useful


def _close(found: set[int], instructions: list[Instruction], more: Callable[[Instruction], set[int]]) -> None:
    """Add the values that each instruction contributes, until there are no more."""
    size = -1
    while size != len(found):
        size = len(found)
        for instruction in instructions:
            found |= more(instruction)


def _operands(instruction: Instruction) -> list[int]:
    """The arguments through which derivatives pass."""
    if instruction.op in WITHOUT_DERIVATIVE or instruction.op in ("lt", "le", "eq", "ne"):
        return []
    without = POSITIONED.get(instruction.op, ())
    return [a for k, a in enumerate(instruction.args) if k not in without]


def _spread(instruction: Instruction, known: set[int], forwards: bool) -> set[int]:
    """What a loop or branch adds: equal values inside and outside, and a carry from one iteration to the
    next.
    """
    found = set[int]()
    for link in links(instruction):
        for a, p in zip(link.arguments, link.block.parameters, strict=True):
            if a is not None and (a if forwards else p) in known:
                found.add(p if forwards else a)
        for result, out in zip(link.block.results, link.outs, strict=False):
            if (result if forwards else out) in known:
                found.add(out if forwards else result)
    if not isinstance(instruction.data, Cond):
        body = links(instruction)[-1]
        skipped = len(body.arguments) - len(instruction.args)
        for k in range(carried(instruction)):
            parameter, result = body.block.parameters[k + skipped], body.block.results[k]
            same = {instruction.args[k], parameter, result, instruction.out[k]}
            if forwards and known.intersection({instruction.args[k], result}):
                found |= same - {instruction.args[k], result}
            if not forwards and known.intersection({instruction.out[k], parameter}):
                found |= same - {instruction.out[k], parameter}
    return found


def settled_loads(program: Program) -> set[int]:
    """The results of those loads inside loops and branches whose arrays are not written any more: a reverse
    sweep can repeat them.
    """
    identity, written = ArrayIdentity(program), dict[int, int]()
    for position, outer in enumerate(program.body.instructions):
        for i in [outer, *(i for b in blocks_of(outer) for _, i in instructions_of(b))]:
            if i.op in ("store", "scatter"):
                written[identity.of(i.args[0])] = position
    found = set[int]()

    def search(block: Block, known: Collection[int], position: int) -> None:
        """The loads in a block, whose arrays in `known` begin outside of all loops and are not carried."""
        for i in block.instructions:
            if i.op in ("load", "gather") and i.args[0] in known:
                if written.get(identity.of(i.args[0]), -1) < position:
                    found.update(i.out)
            for link in links(i):
                pairs = list(zip(link.arguments, link.block.parameters, strict=True))
                captured = pairs[carried(i) + isinstance(i.data, For) :]
                search(link.block, {p for a, p in captured if a in known}, position)

    arrays = {value for value, kind in program.kinds.items() if kind == "array"}
    for position, outer in enumerate(program.body.instructions):
        if blocks_of(outer):
            of_body = arrays.intersection(outer.args)
            search(Block((), (outer,), ()), of_body, position)
    return found


def needed_values(program: Program, active: set[int], settled: set[int]) -> set[int]:
    """The values that a reverse sweep reads, and those from which it computes them again; settled: see
    `settled_loads`.
    """
    everything = list(instructions_of(program.body))
    needed = set[int]()

    def of_sweep(instruction: Instruction) -> set[int]:
        if not active.intersection(instruction.out) and not _changes(instruction, active):
            return set()
        if blocks_of(instruction):
            bounds = instruction.args[carried(instruction) :][: 2 if _is_dynamic(instruction) else 1]
            chosen = instruction.args[:1] if isinstance(instruction.data, Cond) else bounds
            return set(chosen)
        chosen = {instruction.args[k] for k in POSITIONED.get(instruction.op, ())}
        linear = instruction.op in LINEAR or instruction.op == "select"
        return chosen if linear else set(instruction.args)

    def again(instruction: Instruction) -> set[int]:
        if blocks_of(instruction):
            found = set[int]()
            for link in links(instruction):
                pairs = zip(link.arguments, link.block.parameters, strict=True)
                found |= {a for a, p in pairs if a is not None and p in needed}
            return found
        if not needed.intersection(instruction.out):
            return set()
        if instruction.op in LEAVES:
            return settled.intersection(instruction.out) and {instruction.args[1]}
        return set(instruction.args)

    for _, instruction in everything:
        needed |= of_sweep(instruction)
    _close(needed, [i for _, i in reversed(everything)], again)
    return needed


def _is_dynamic(instruction: Instruction) -> bool:
    return isinstance(instruction.data, For) and instruction.data.dynamic


def _changes(instruction: Instruction, active: set[int]) -> bool:
    """Whether a loop or branch contains active values, of which it may return none but arrays."""
    return any(active.intersection(i.out) for b in blocks_of(instruction) for _, i in instructions_of(b))


class ArrayIdentity:
    """Which values are versions of one array, and in which block this array begins."""

    def __init__(self, program: Program) -> None:
        self._same: dict[int, int] = {}
        arrays = {value for value, kind in program.kinds.items() if kind == "array"}
        for _, instruction in instructions_of(program.body):
            if instruction.op in ("store", "scatter"):
                self._join(instruction.args[0], instruction.out[0])
            for link in links(instruction):
                pairs = [*zip(link.arguments, link.block.parameters, strict=True)]
                pairs += zip(link.block.results, link.outs, strict=False)
                if carried(instruction):
                    pairs += zip(instruction.args[: carried(instruction)], instruction.out, strict=True)
                for a, b in pairs:
                    if a is not None and a in arrays and b in arrays:
                        self._join(a, b)
        self.inner: dict[int, set[int]] = {}
        self._find_inner(program.body, arrays)

    def of(self, value: int) -> int:
        """The representative of the versions of an array."""
        while value in self._same:
            value = self._same[value]
        return value

    def _join(self, a: int, b: int) -> None:
        a, b = self.of(a), self.of(b)
        if a != b:
            self._same[max(a, b)] = min(a, b)

    def _find_inner(self, block: Block, arrays: set[int]) -> set[int]:
        """The arrays of a block that do not enter it, also those of its inner blocks; `inner` has these of
        every block.
        """
        found = set[int]()
        for instruction in block.instructions:
            found |= {self.of(value) for value in instruction.out if value in arrays}
            for b in blocks_of(instruction):
                found |= self._find_inner(b, arrays)
        found -= {self.of(p) for p in block.parameters if p in arrays}
        self.inner[id(block)] = found
        return found


def accessed_arrays(instruction: Instruction, active: set[int], identity: ArrayIdentity) -> list[int]:
    """The arrays outside of a loop or branch that its active instructions read or write."""
    found: dict[int, Any] = {}
    for block in blocks_of(instruction):
        for _, i in instructions_of(block):
            if i.op in ("load", "store", "gather", "scatter") and i.out[0] in active:
                found[identity.of(i.args[0])] = None
    inside = set[int]().union(*(identity.inner[id(b)] for b in blocks_of(instruction)))
    return [array for array in found if array not in inside]
