"""Storage of a program's long arrays in one workspace: arrays that are alive at different times overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from zwang.compiler.ir.program import Block, Instruction, Program, blocks_of, merged_arrays

CREATORS = ("array", "empty", "input_array", "compact")
"""The instructions that define a new array, beside a `cond` with `merged_arrays`; every other array value is
a version of one of these.
"""

Interval = tuple[int, int]


@dataclass
class ArrayStorage:
    """The offset of each long array in the workspace, by the number of its value, and the size of it all."""

    offsets: dict[int, int] = field(default_factory=dict)
    size: int = 0


def array_length(instruction: Instruction) -> int:
    """The number of elements that an array of the C code has; that of active indices has their count too."""
    if instruction.op == "input_array":
        return instruction.data[2]
    return instruction.data + 1 if instruction.op == "compact" else max(instruction.data, 1)


def array_storage(program: Program, longest_on_stack: int) -> ArrayStorage:
    """A place in the workspace for each array of more than `longest_on_stack` elements, by first fit."""
    storage = ArrayStorage()
    _place(program, program.body, {}, [], longest_on_stack, storage)
    return storage


def _place(
    program: Program, block: Block, outer: dict[int, int], taken: list[Interval], longest: int,
    storage: ArrayStorage,
) -> None:  # fmt: skip
    """Place the arrays of a block, and of the blocks inside it, beside the intervals that are taken.

    outer: for each array value from outside the array that it is a version of.
    """
    created = _versions(program, block, outer)
    last = _last_uses(block, created)
    alive: dict[int, Interval] = {}
    for position, instruction in enumerate(block.instructions):
        for root, length in _created_arrays(program, instruction):
            if length > longest:
                start = _first_fit([*taken, *alive.values()], length)
                storage.offsets[root] = start
                storage.size = max(storage.size, start + length)
                alive[root] = (start, start + length)
        for inner in blocks_of(instruction):
            _place(program, inner, _with_parameters(instruction, inner, created), [*taken, *alive.values()],
                   longest, storage)  # fmt: skip
        alive = {root: place for root, place in alive.items() if last[root] > position}


def _created_arrays(program: Program, instruction: Instruction) -> list[tuple[int, int]]:
    """The number and length of each array that an instruction creates."""
    if instruction.op == "cond":
        return [(out, max(program.lengths[out], 1)) for out in merged_arrays(program, instruction)]
    return [(instruction.out[0], array_length(instruction))] if instruction.op in CREATORS else []


def _versions(program: Program, block: Block, outer: dict[int, int]) -> dict[int, int]:
    """For each array value of a block the number of the array that it is a version of."""
    roots = dict(outer)
    for instruction in block.instructions:
        if instruction.op in CREATORS:
            roots[instruction.out[0]] = instruction.out[0]
        elif instruction.op in ("store", "scatter"):
            roots[instruction.out[0]] = roots[instruction.args[0]]
        elif instruction.op in ("while", "for"):
            pairs = zip(instruction.out, instruction.args, strict=False)
            roots |= {out: roots[start] for out, start in pairs if start in roots}
        elif instruction.op == "cond":
            then = instruction.data.then
            inner = _versions(program, then, _with_parameters(instruction, then, roots))
            pairs, merged = (
                zip(instruction.out, then.results, strict=True),
                merged_arrays(program, instruction),
            )
            roots |= {
                out: out if out in merged else inner[result] for out, result in pairs if result in inner
            }
    return roots


def _with_parameters(instruction: Instruction, inner: Block, roots: dict[int, int]) -> dict[int, int]:
    """`roots`, with the array parameters of a block that the instruction owns."""
    args = instruction.args[1:] if instruction.op == "cond" else instruction.args
    parameters: Iterable[int] = inner.parameters
    if instruction.op == "for":
        parameters = inner.parameters[1:]  # the first one is the index
    return roots | {p: roots[a] for p, a in zip(parameters, args, strict=True) if a in roots}


def _last_uses(block: Block, roots: dict[int, int]) -> dict[int, int]:
    """For each array the position of the last instruction that reads or defines a version of it."""
    last: dict[int, int] = {}
    for position, instruction in enumerate(block.instructions):
        for value in (*instruction.args, *instruction.out):
            if value in roots:
                last[roots[value]] = position
    for value in block.results:
        if value in roots:
            last[roots[value]] = len(block.instructions)
    return last


def _first_fit(taken: Iterable[Interval], length: int) -> int:
    """The smallest start of a free interval of this length."""
    start = 0
    for begin, end in sorted(taken):
        if begin - start >= length:
            break
        start = max(start, end)
    return start
