"""Constant tables of a program as global variables of LLVM.

Long ones, as those of the vertices of meshes, stay outside the code: their addresses are given where it is
loaded. LLVM would take seconds to read and to write them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.ir.program import Block, Program, blocks_of
from zwang.scalar.arrays import Entries

LONG = 256  # entries


def table_name(entries: Entries) -> str:
    """The name of a table's global variable, by its content."""
    return f"@table_{entries.digest[:32]}"


def table_data(entries: Entries, lanes: Lanes) -> np.ndarray:
    """The entries as they lie in memory."""
    with np.errstate(over="ignore"):
        return entries.numbers if entries.are_indices else entries.numbers.astype(lanes.dtype, copy=False)


def long_tables(program: Program, lanes: Lanes) -> dict[str, np.ndarray]:
    """The data of a program's long tables by the names of their symbols."""
    found = {table_name(entries)[1:]: entries for entries in _tables(program.body) if len(entries) >= LONG}
    return {name: table_data(entries, lanes) for name, entries in found.items()}


def _tables(block: Block) -> Iterator[Entries]:
    for instruction in block.instructions:
        if instruction.op in ("table", "index_table"):
            yield instruction.data
        for inner in blocks_of(instruction):
            yield from _tables(inner)
