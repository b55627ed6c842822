"""Fused multiply-adds, formed by our own rule, so that every back end rounds alike.

A product is fused into the additions and subtractions that use it when it is used by nothing else in its block, and
each of them takes one product only. Products with one use are served first, then those with two and more, each in
order from the block's end. Then an operation whose only use is to be negated gives the negative at once, where it can.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from zwang.compiler.ir.program import Block, Instruction, Program, with_blocks

USES = 3
"""A product with more uses than this stays one."""


def fuse(program: Program) -> Program:
    """The program with its multiply-adds fused."""
    return replace(program, body=_block(program.body))


def _block(block: Block) -> Block:
    users: dict[int, list[int]] = {}
    for position, instruction in enumerate(block.instructions):
        for a in instruction.args:
            users.setdefault(a, []).append(position)
    for result in block.results:
        users.setdefault(result, []).append(-1)
    chosen = _choose(block, users)
    fused = {product for product, _ in chosen.values()}
    instructions = []
    for position, instruction in enumerate(block.instructions):
        if position in chosen:
            instructions.append(_fused(instruction, *chosen[position], block.instructions))
        elif position not in fused:
            instructions.append(with_blocks(instruction, _block))
    return _with_signs(Block(block.parameters, tuple(instructions), block.results))


def _choose(block: Block, users: dict[int, list[int]]) -> dict[int, tuple[int, int]]:
    """For each addition that takes a product in: the product's position, and which argument it is."""
    instructions = block.instructions
    products = [p for p, instruction in enumerate(instructions) if instruction.op == "mul"]
    chosen: dict[int, tuple[int, int]] = {}
    for count in range(1, USES + 1):
        for product in reversed(products):
            value = instructions[product].out[0]
            places = users.get(value, [])
            if len(places) != count or len(set(places)) != count:
                continue
            if all(p >= 0 and p not in chosen and instructions[p].op in ("add", "sub") for p in places):
                for p in places:
                    chosen[p] = (product, instructions[p].args.index(value))
    return chosen


def _fused(
    instruction: Instruction, product: int, which: int, instructions: tuple[Instruction, ...]
) -> Instruction:
    """a*b + c, a*b - c or c - a*b in one."""
    a, b = instructions[product].args
    c = instruction.args[1 - which]
    op = "fma" if instruction.op == "add" else ("fms", "fnma")[which]
    return Instruction(op, (a, b, c), instruction.out)


_NEGATIVE = {"sub": ("sub", (1, 0)), "fms": ("fnma", (0, 1, 2)), "fnma": ("fms", (0, 1, 2))}
"""What gives the negative of an operation (but for the sign of a zero), and of which of its arguments."""


def _with_signs(block: Block) -> Block:
    """The block without negations of values that are used for nothing else and can be negative themselves."""
    uses = Counter(a for instruction in block.instructions for a in instruction.args) + Counter(block.results)
    made = {
        instruction.out[0]: k
        for k, instruction in enumerate(block.instructions)
        if instruction.op in _NEGATIVE
    }
    instructions: list[Instruction | None] = list(block.instructions)
    for k, instruction in enumerate(block.instructions):
        if instruction.op == "neg" and instruction.args[0] in made and uses[instruction.args[0]] == 1:
            place = made[instruction.args[0]]
            op, order = _NEGATIVE[block.instructions[place].op]
            args = block.instructions[place].args
            instructions[place] = None
            instructions[k] = Instruction(op, tuple(args[i] for i in order), instruction.out)
    return Block(block.parameters, tuple(i for i in instructions if i is not None), block.results)
