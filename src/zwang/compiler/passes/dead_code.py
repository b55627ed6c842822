"""Leave out what no output needs: instructions, carried values, captured values.

A carried value that the body gives back unchanged is captured instead.
"""

from __future__ import annotations

from dataclasses import replace

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Program, While, blocks_of


def remove_dead_code(program: Program) -> Program:
    """The program without what its outputs do not need."""
    body, before = _block(program.body), program.body
    while body != before and any(map(blocks_of, body.instructions)):
        body, before = _block(body), body
    kept: set[int] = set()
    _defined(body, kept)
    return replace(
        program,
        body=body,
        kinds={number: kind for number, kind in program.kinds.items() if number in kept},
        lengths={number: length for number, length in program.lengths.items() if number in kept},
    )


def _defined(block: Block, numbers: set[int]) -> None:
    numbers.update(block.parameters)
    for instruction in block.instructions:
        numbers.update(instruction.out)
        for inner in blocks_of(instruction):
            _defined(inner, numbers)


def _block(block: Block) -> Block:
    """The block without what its results do not need; its parameters stay."""
    instructions, same = _unchanging(block)
    results = tuple(same.get(r, r) for r in block.results)
    live = set(results)
    kept = []
    for instruction in reversed(instructions):
        if live.isdisjoint(instruction.out):
            continue
        if instruction.data.__class__ in (While, For, Cond):
            instruction = _control(instruction, live)
        live.update(instruction.args)
        kept.append(instruction)
    return Block(block.parameters, tuple(reversed(kept)), results)


def _unchanging(block: Block) -> tuple[list[Instruction], dict[int, int]]:
    """The instructions with carries that do not change captured instead, and what stands for their results."""
    same: dict[int, int] = {}
    instructions = []
    for instruction in block.instructions:
        if same:
            instruction = replace(instruction, args=tuple(same.get(a, a) for a in instruction.args))
        if isinstance(instruction.data, (While, For)):
            instruction = _capture_unchanged(instruction, same)
        if instruction.out:
            instructions.append(instruction)
    return instructions, same


def _capture_unchanged(instruction: Instruction, same: dict[int, int]) -> Instruction:
    data, skip = instruction.data, int(isinstance(instruction.data, For))
    fixed = [k for k in range(data.carried) if data.body.results[k] == data.body.parameters[k + skip]]
    for k in fixed:
        same[instruction.out[k]] = instruction.args[k]
    moving = [k for k in range(data.carried) if k not in fixed]
    captured = [
        *range(data.carried, len(instruction.args)),
        *fixed,
    ]  # the list of a chosen loop, or the ends of a span, stay first
    return _select(instruction, moving, captured) if fixed else instruction


def _select(instruction: Instruction, carried: list[int], captured: list[int]) -> Instruction:
    """The loop with only these of its arguments carried, and these captured."""
    data, kept = instruction.data, [*carried, *captured]
    skip = int(isinstance(data, For))
    blocks = {}
    for name in ("body",) if skip else ("condition", "body"):
        block = getattr(data, name)
        parameters = (*block.parameters[:skip], *(block.parameters[k + skip] for k in kept))
        results = block.results if name == "condition" else tuple(block.results[k] for k in carried)
        blocks[name] = Block(parameters, block.instructions, results)
    return Instruction(
        instruction.op,
        tuple(instruction.args[k] for k in kept),
        tuple(instruction.out[k] for k in carried),
        replace(data, carried=len(carried), **blocks),
    )


def _control(instruction: Instruction, live: set[int]) -> Instruction:
    """The loop or branch with only the results that are live, and what these need."""
    if isinstance(instruction.data, Cond):
        return _branch(instruction, live)
    data, skip = instruction.data, int(isinstance(instruction.data, For))
    carried = [k for k in range(data.carried) if instruction.out[k] in live]
    while True:
        chosen = _select(instruction, carried, list(range(data.carried, len(instruction.args))))
        blocks = {
            name: _block(getattr(chosen.data, name))
            for name in (("body",) if skip else ("condition", "body"))
        }
        used = set().union(*(_used(block) for block in blocks.values()))
        if skip:  # of a chosen loop the list stays, of one over a span its two ends
            first = skip + data.carried
            used.update(data.body.parameters[first : first + data.chosen + 2 * data.spans])
        own = [
            {getattr(data, name).parameters[k + skip] for name in blocks}
            for k in range(len(instruction.args))
        ]
        needed = [k for k in range(data.carried) if k in carried or own[k] & used]
        if needed == carried:
            break
        carried = needed
    final = replace(chosen, data=replace(chosen.data, **blocks))
    captured = [k for k in range(len(carried), len(final.args)) if _parameters(final, k + skip) & used]
    return _select(final, list(range(len(carried))), captured)


def _parameters(instruction: Instruction, k: int) -> set[int]:
    return {block.parameters[k] for block in blocks_of(instruction)}


def _used(block: Block) -> set[int]:
    return set(block.results).union(*(instruction.args for instruction in block.instructions))


def _branch(instruction: Instruction, live: set[int]) -> Instruction:
    data = instruction.data
    wanted = [k for k, out in enumerate(instruction.out) if out in live]
    then, otherwise = (
        _block(Block(block.parameters, block.instructions, tuple(block.results[k] for k in wanted)))
        for block in (data.then, data.otherwise)
    )
    used = _used(then) | _used(otherwise)
    kept = [
        k
        for k in range(len(instruction.args) - 1)
        if then.parameters[k] in used or otherwise.parameters[k] in used
    ]
    then, otherwise = (
        Block(tuple(block.parameters[k] for k in kept), block.instructions, block.results)
        for block in (then, otherwise)
    )
    args = (instruction.args[0], *(instruction.args[k + 1] for k in kept))
    out = tuple(instruction.out[k] for k in wanted)
    return Instruction(instruction.op, args, out, replace(data, then=then, otherwise=otherwise))
