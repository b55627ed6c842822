"""The passes between the tracer and a back end, and the count of what is left to do."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.program import Block, Program, blocks_of
from zwang.compiler.ir.verify import verify
from zwang.compiler.passes.dead_code import remove_dead_code
from zwang.compiler.passes.fused_multiply_add import fuse
from zwang.compiler.passes.schedule import schedule

NOT_COUNTED = frozenset(
    {
        "const",
        "input",
        "index",
        "true",
        "false",
        "iadd",
        "isub",
        "imul",
        "table",
        "itable",
        "array",
        "blank",
        "choose",
        "pick",
        "count",
        "load",
        "store",
        "gather",
        "scatter",
        "highest",
    }
    | {"while", "cond", "for"}
)
"""Operations that are no arithmetic: constants, inputs, indices, memory, and control flow itself."""


def optimise(program: Program) -> Program:
    """The program pruned, with multiply-adds fused, in an order that keeps few values alive; checked."""
    return verify(schedule(fuse(remove_dead_code(program))))


def trace_and_optimise(function: Callable[..., Any], inputs: Mapping[str, Any], carried: str = "") -> Program:
    """The function traced, with a memory if it has a name, and optimised. Python's search for cycles of garbage rests meanwhile: a graph of nodes has none,
    and searching it takes a third of the time."""
    resting = gc.isenabled()
    gc.disable()
    try:
        return optimise(trace(function, inputs, carried=carried))
    finally:
        if resting:
            gc.enable()


def count_operations(program: Program) -> dict[str, int]:
    """How many operations a program has, by kind, with their sum as "total" and floating-point operations as "flops".

    Each arithmetic instruction counts as one, be it an addition, a fused multiply-add, a sine, a comparison or a
    choice; constants, inputs, indices, reads and writes of arrays and control flow count as none. A fused
    multiply-add is two flops, a comparison, choice or logical operation none, all else one. A `for` counts its body
    as often as it runs (over a span or what is chosen: as often as it can at most); of a `while`, condition and body count once; of a `when`, both branches.
    """
    counts: Counter[str] = Counter()
    _count(program.body, 1, counts)
    result = dict(sorted(counts.items()))
    fused = sum(result.get(op, 0) for op in ("fma", "fms", "fnma"))
    logical = sum(result.get(op, 0) for op in _LOGICAL)
    total = sum(result.values())
    return {**result, "total": total, "flops": total + fused - logical}


_LOGICAL = frozenset({"lt", "le", "eq", "ne", "and", "or", "xor", "not", "select"}) | frozenset(
    {"bit", "bit_and", "bit_or", "bit_add", "shift_left", "shift_right"}
)


def _count(block: Block, times: int, counts: Counter[str]) -> None:
    for instruction in block.instructions:
        if instruction.op not in NOT_COUNTED:
            counts[instruction.op] += times
        runs = times * instruction.data.count if instruction.op == "for" else times
        for inner in blocks_of(instruction):
            _count(inner, runs, counts)
