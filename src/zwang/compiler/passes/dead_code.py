"""Dead-code elimination: instructions, carried values and captured values that no output needs are removed.

A carried value that the body returns unchanged is captured instead.
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Program, While, blocks_of


def remove_dead_code(program: Program) -> Program:
    """The program without instructions and values that its outputs do not depend on."""
    elimination = _DeadCodeElimination()
    body, before = elimination.block(program.body), program.body
    while body != before and any(map(blocks_of, body.instructions)):
        body, before = elimination.block(body), body
    defined: set[int] = set()
    _collect_defined(body, defined)
    return replace(
        program,
        body=body,
        kinds={number: kind for number, kind in program.kinds.items() if number in defined},
        lengths={number: length for number, length in program.lengths.items() if number in defined},
    )


def _collect_defined(block: Block, numbers: set[int]) -> None:
    """Add the numbers of all values that a block and its nested blocks define."""
    numbers.update(block.parameters)
    for instruction in block.instructions:
        numbers.update(instruction.out)
        for inner in blocks_of(instruction):
            _collect_defined(inner, numbers)


class _DeadCodeElimination:
    """Dead-code elimination, which remembers the blocks that it has reduced.

    The live results of a loop are found by iteration, so the blocks of nested loops are met many times,
    nearly always with the same results. What remains of a block depends on its instructions and results only.
    """

    def __init__(self) -> None:
        self.reduced: dict[tuple[int, tuple[int, ...]], tuple[Block, Block]] = {}

    def block(self, block: Block) -> Block:
        """The block without instructions that its results do not depend on; its parameters are unchanged."""
        key = id(block.instructions), block.results
        if key not in self.reduced:
            self.reduced[key] = block, self._reduce(block)  # the first keeps the identity from being reused
        found = self.reduced[key][1]
        return Block(block.parameters, found.instructions, found.results)

    def _reduce(self, block: Block) -> Block:
        instructions, replacement = _with_invariants_captured(block)
        results = tuple([replacement.get(r, r) for r in block.results])
        live = set(results)
        kept = []
        for instruction in reversed(instructions):
            if live.isdisjoint(instruction.out):
                continue
            if instruction.data.__class__ in (While, For, Cond):
                instruction = self._control(instruction, live)
            live.update(instruction.args)
            kept.append(instruction)
        kept.reverse()
        unchanged = len(kept) == len(block.instructions) and all(map(is_, kept, block.instructions))
        return Block(block.parameters, block.instructions if unchanged else tuple(kept), results)

    def _control(self, instruction: Instruction, live: set[int]) -> Instruction:
        """The loop or branch with its live results only, and the arguments that these need."""
        reduced = (self._branch if isinstance(instruction.data, Cond) else self._loop)(instruction, live)
        pairs = zip(blocks_of(reduced), blocks_of(instruction), strict=True)
        unchanged = (reduced.args, reduced.out) == (instruction.args, instruction.out) and all(
            new.instructions is old.instructions and new == old for new, old in pairs
        )
        return instruction if unchanged else reduced

    def _loop(self, instruction: Instruction, live: set[int]) -> Instruction:
        data, skip = instruction.data, int(isinstance(instruction.data, For))
        carried = [k for k in range(data.carried) if instruction.out[k] in live]
        while True:
            reduced = _with_arguments(instruction, carried, list(range(data.carried, len(instruction.args))))
            blocks = {
                name: self.block(getattr(reduced.data, name))
                for name in (("body",) if skip else ("condition", "body"))
            }
            used = set().union(*(_used(block) for block in blocks.values()))
            if skip:  # the active indices, or the bounds, are always used
                first = skip + data.carried
                used.update(data.body.parameters[first : first + data.over_active + 2 * data.dynamic])
            parameters = [
                {getattr(data, name).parameters[k + skip] for name in blocks}
                for k in range(len(instruction.args))
            ]
            needed = [k for k in range(data.carried) if k in carried or parameters[k] & used]
            if needed == carried:
                break
            carried = needed
        final = replace(reduced, data=replace(reduced.data, **blocks))
        captured = [k for k in range(len(carried), len(final.args)) if _parameters_at(final, k + skip) & used]
        return _with_arguments(final, list(range(len(carried))), captured)

    def _branch(self, instruction: Instruction, live: set[int]) -> Instruction:
        """The `cond` with its live results only, and the captured values that these need."""
        data = instruction.data
        live_results = [k for k, out in enumerate(instruction.out) if out in live]
        then, otherwise = (
            self.block(
                Block(block.parameters, block.instructions, tuple(block.results[k] for k in live_results))
            )
            for block in (data.then, data.otherwise)
        )
        used = _used(then) | _used(otherwise)
        captured = [
            k
            for k in range(len(instruction.args) - 1)
            if then.parameters[k] in used or otherwise.parameters[k] in used
        ]
        then, otherwise = (
            Block(tuple(block.parameters[k] for k in captured), block.instructions, block.results)
            for block in (then, otherwise)
        )
        args = (instruction.args[0], *(instruction.args[k + 1] for k in captured))
        out = tuple(instruction.out[k] for k in live_results)
        return Instruction(instruction.op, args, out, replace(data, then=then, otherwise=otherwise))


def _with_invariants_captured(block: Block) -> tuple[list[Instruction], dict[int, int]]:
    """The instructions, whose loops capture values that they carry unchanged, and the values that replace
    these.
    """
    replacement: dict[int, int] = {}
    instructions = []
    for instruction in block.instructions:
        if not replacement.keys().isdisjoint(instruction.args):
            instruction = replace(instruction, args=tuple(replacement.get(a, a) for a in instruction.args))
        if isinstance(instruction.data, (While, For)):
            instruction = _capture_unchanged(instruction, replacement)
        if instruction.out:
            instructions.append(instruction)
    return instructions, replacement


def _capture_unchanged(instruction: Instruction, replacement: dict[int, int]) -> Instruction:
    """The loop with unchanged carried values captured; `replacement` is extended by its results for them."""
    data, skip = instruction.data, int(isinstance(instruction.data, For))
    fixed = [k for k in range(data.carried) if data.body.results[k] == data.body.parameters[k + skip]]
    for k in fixed:
        replacement[instruction.out[k]] = instruction.args[k]
    changing = [k for k in range(data.carried) if k not in fixed]
    # the active indices, or the bounds, of the loop stay first among the captured values
    captured = [*range(data.carried, len(instruction.args)), *fixed]
    return _with_arguments(instruction, changing, captured) if fixed else instruction


def _with_arguments(instruction: Instruction, carried: list[int], captured: list[int]) -> Instruction:
    """The loop with the arguments at the positions `carried` carried and those at `captured` captured."""
    data, positions = instruction.data, [*carried, *captured]
    skip = int(isinstance(data, For))
    blocks = {}
    for name in ("body",) if skip else ("condition", "body"):
        block = getattr(data, name)
        parameters = (*block.parameters[:skip], *(block.parameters[k + skip] for k in positions))
        results = block.results if name == "condition" else tuple(block.results[k] for k in carried)
        blocks[name] = Block(parameters, block.instructions, results)
    return Instruction(
        instruction.op,
        tuple(instruction.args[k] for k in positions),
        tuple(instruction.out[k] for k in carried),
        replace(data, carried=len(carried), **blocks),
    )


def _parameters_at(instruction: Instruction, k: int) -> set[int]:
    return {block.parameters[k] for block in blocks_of(instruction)}


def _used(block: Block) -> set[int]:
    return set(block.results).union(*(instruction.args for instruction in block.instructions))
