"""Formation of fused multiply-adds by a fixed rule, so that all backends round identically.

A product is fused into the additions and subtractions that use it if nothing else in its block uses it. Each
addition takes one product only. Products with one use are processed first, then those with two and more, each
in order from the end of the block. Finally, an operation whose result is only negated is replaced by one that
computes the negative.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from zwang.compiler.ir.program import Block, Instruction, Program, with_blocks

MAXIMUM_USES = 3
"""A product with more uses than this is not fused."""


def fuse(program: Program) -> Program:
    """The program with multiply-adds fused by the rule above."""
    return replace(program, body=_block(program.body))


def _block(block: Block) -> Block:
    users: dict[int, list[int]] = {}
    for position, instruction in enumerate(block.instructions):
        for a in instruction.args:
            users.setdefault(a, []).append(position)
    for result in block.results:
        users.setdefault(result, []).append(-1)
    products_of = _fused_products(block, users)
    fused = {product for product, _ in products_of.values()}
    instructions = []
    for position, instruction in enumerate(block.instructions):
        if position in products_of:
            instructions.append(_fused(instruction, *products_of[position], block.instructions))
        elif position not in fused:
            instructions.append(with_blocks(instruction, _block))
    return _with_negations_absorbed(Block(block.parameters, tuple(instructions), block.results))


def _fused_products(block: Block, users: dict[int, list[int]]) -> dict[int, tuple[int, int]]:
    """For each addition that absorbs a product: the position of the product, and which argument it is."""
    instructions = block.instructions
    products = [p for p, instruction in enumerate(instructions) if instruction.op == "mul"]
    products_of: dict[int, tuple[int, int]] = {}
    for count in range(1, MAXIMUM_USES + 1):
        for product in reversed(products):
            value = instructions[product].out[0]
            positions = users.get(value, [])
            if len(positions) != count or len(set(positions)) != count:
                continue
            if all(
                p >= 0 and p not in products_of and instructions[p].op in ("add", "sub") for p in positions
            ):
                for p in positions:
                    products_of[p] = (product, instructions[p].args.index(value))
    return products_of


def _fused(
    instruction: Instruction, product: int, which: int, instructions: tuple[Instruction, ...]
) -> Instruction:
    """a*b + c, a*b - c or c - a*b as one instruction."""
    a, b = instructions[product].args
    c = instruction.args[1 - which]
    op = "fma" if instruction.op == "add" else ("fms", "fnma")[which]
    return Instruction(op, (a, b, c), instruction.out)


_NEGATIVE = {"sub": ("sub", (1, 0)), "fms": ("fnma", (0, 1, 2)), "fnma": ("fms", (0, 1, 2))}
"""For each operation the one that computes its negative (up to the sign of a zero), and its argument order.
"""


def _with_negations_absorbed(block: Block) -> Block:
    """The block with each negation absorbed into the operation that it negates, if that has no other use."""
    uses = Counter(a for instruction in block.instructions for a in instruction.args) + Counter(block.results)
    made = {
        instruction.out[0]: k
        for k, instruction in enumerate(block.instructions)
        if instruction.op in _NEGATIVE
    }
    instructions: list[Instruction | None] = list(block.instructions)
    for k, instruction in enumerate(block.instructions):
        if instruction.op == "neg" and instruction.args[0] in made and uses[instruction.args[0]] == 1:
            position_made = made[instruction.args[0]]
            op, order = _NEGATIVE[block.instructions[position_made].op]
            args = block.instructions[position_made].args
            instructions[position_made] = None
            instructions[k] = Instruction(op, tuple(args[i] for i in order), instruction.out)
    return Block(block.parameters, tuple(i for i in instructions if i is not None), block.results)
