"""Values that are the same in all lanes by how they are computed: from constants, loop indices and tables."""

from __future__ import annotations

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Program

_UNIFORM = frozenset({"const", "table", "true", "false"})
_OF_UNIFORM = frozenset(
    {"lt", "le", "eq", "ne", "and", "or", "xor", "not", "add", "sub", "mul", "neg", "fma", "fms", "fnma"}
)


def uniform_values(program: Program) -> set[int]:
    """The numbers of such reals and truth values."""
    found: set[int] = set()
    _add_uniform(program.body, found)
    return found


def _add_uniform(block: Block, found: set[int]) -> None:
    for instruction in block.instructions:
        if instruction.op in _UNIFORM:
            found.update(instruction.out)
        elif instruction.op in _OF_UNIFORM:
            if all(a in found for a in instruction.args):
                found.update(instruction.out)
        else:
            for inner, first, arguments in _captured(instruction):
                found.update(
                    p for p, a in zip(inner.parameters[first:], arguments, strict=True) if a in found
                )
                _add_uniform(inner, found)


def _captured(instruction: Instruction) -> list[tuple[Block, int, tuple[int, ...]]]:
    """The blocks of a control-flow instruction, each with the number of its parameters before the captured
    values, and these.
    """
    data = instruction.data
    match instruction.op:
        case "cond":
            assert isinstance(data, Cond)
            return [(block, 0, instruction.args[1:]) for block in (data.then, data.otherwise)]
        case "for":
            assert isinstance(data, For)
            return [(data.body, 1 + data.carried, instruction.args[data.carried :])]
        case "while":
            return [
                (block, data.carried, instruction.args[data.carried :])
                for block in (data.condition, data.body)
            ]
    return []
