"""The compiler's pipeline from a function to an optimised program, and the operation count of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from zwang.compiler.frontend.trace import UNROLLED_NODES, trace
from zwang.compiler.ir.garbage_collection import without_garbage_collection
from zwang.compiler.ir.program import Block, Program, blocks_of
from zwang.compiler.ir.verify import verify
from zwang.compiler.passes.dead_code import remove_dead_code
from zwang.compiler.passes.fused_multiply_add import fuse
from zwang.compiler.passes.loop_rolling import roll_loops
from zwang.compiler.passes.schedule import schedule

NOT_COUNTED = frozenset(
    {
        "const",
        "input",
        "input_array",
        "index",
        "true",
        "false",
        "iadd",
        "isub",
        "imul",
        "table",
        "index_table",
        "array",
        "empty",
        "compact",
        "active_index",
        "active_count",
        "load",
        "store",
        "gather",
        "scatter",
        "lane",
        "lane_maximum",
    }
    | {"while", "cond", "for"}
)
"""Operations that are not arithmetic: constants, inputs, indices, array accesses and control flow itself."""


def optimise(program: Program) -> Program:
    """The program after dead-code elimination, fusion of multiply-adds, loop rolling and scheduling,
    verified.
    """
    return verify(schedule(roll_loops(fuse(remove_dead_code(program)))))


def trace_and_optimise(
    function: Callable[..., Any],
    inputs: Mapping[str, Any],
    carried: str = "",
    unroll: int = UNROLLED_NODES,
) -> Program:
    """The optimised program of a function; see `frontend.trace.trace` for the arguments."""
    with without_garbage_collection():
        return optimise(trace(function, inputs, carried=carried, unroll=unroll))


def count_operations(program: Program) -> dict[str, int]:
    """The number of operations of a program by kind, their sum "total" and the floating-point operations
    "flops".

    Each arithmetic instruction counts as one operation: an addition, a fused multiply-add, a sine, a
    comparison or a selection. Constants, inputs, indices, array accesses and control flow are not counted. A
    fused multiply-add is two flops, a comparison, selection or logical operation none, any other operation
    one. The body of a `for` counts as often as it is executed (at most, if its range is dynamic), condition
    and body of a `while` once, and both branches of a `cond` once.
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
        executions = times * instruction.data.count if instruction.op == "for" else times
        for inner in blocks_of(instruction):
            _count(inner, executions, counts)
