"""The LLVM IR of a program, on vectors with one world per lane.

No flag is set that would allow LLVM to change a result, and the fused multiply-adds are those of the program.
Hence the same program computes the same bits for every number of lanes (all NaNs are considered equal).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from zwang.compiler.backends.llvm.control_flow_emitter import ControlFlowEmitter
from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.straight_line_emitter import FUNCTION_SIZE_LIMIT
from zwang.compiler.backends.llvm.writer import ALIGNED_STACK, FunctionWriter, InputElement
from zwang.compiler.ir.program import Port, Program
from zwang.compiler.passes.expand import expand

PART_LENGTH = 400_000  # characters of a module that are worth a thread of their own
_NAME = re.compile(r"@(?:body|piece\d+|table_\w+)")  # of functions and tables


@dataclass(frozen=True)
class EmittedModule:
    """The LLVM IR of a program, and the size of the stack frame that `body` needs [bytes]. Its long tables
    are external variables (see `long_tables`).
    """

    emitter: ControlFlowEmitter

    @property
    def frame_bytes(self) -> int:
        return self.emitter.frame.size

    @property
    def text(self) -> str:
        """The text of one module."""
        return self._module(self.emitter.functions, self.emitter.table_texts(is_given=True))

    def parts(self, most: int, length: int = PART_LENGTH) -> list[str]:
        """The texts of at most so many modules, of about this length or more, which call each other's
        functions.
        """
        functions = sorted(self.emitter.functions, key=len, reverse=True)
        count = min(most, len(functions), -(-sum(map(len, functions)) // length))
        groups: list[list[str]] = [[] for _ in range(count)]
        for function in functions:  # into the group that is the shortest so far
            min(groups, key=lambda group: sum(map(len, group))).append(function)
        return [self.text] if count == 1 else [self._part(group) for group in groups]

    def _part(self, functions: list[str]) -> str:
        """The text of a module of some of the functions."""
        tables = {text.split(" ", 1)[0]: text for text in self.emitter.table_texts(is_given=True)}
        own = {_NAME.findall(function)[0] for function in functions}
        others = sorted({name for function in functions for name in _NAME.findall(function)} - own)
        parameters = self.emitter.signature.parameters
        heads = [tables.get(name, f"declare void {name}({parameters})") for name in others]
        return self._module([f.replace("define internal", "define", 1) for f in functions], heads)

    def _module(self, functions: Sequence[str], heads: Sequence[str]) -> str:
        return self.emitter.module_text(functions, heads) + ALIGNED_STACK


class BufferSignature:
    """The function signature on processors: inputs and outputs are arrays of lane vectors, one port after
    another.
    """

    parameters = "ptr noalias readonly %in, ptr noalias %out, ptr noalias %frame"
    arguments = "ptr %in, ptr %out, ptr %frame"

    def __init__(self, program: Program, lanes: Lanes):
        self.starts = port_starts(program.inputs)

    def load_input(self, writer: FunctionWriter, element: InputElement) -> str:
        position = self.starts[element.port] + element.element
        real = writer.lanes.real
        address = writer.assign(f"getelementptr inbounds {real}, ptr %in, i64 {position}")
        return writer.assign(f"load {real}, ptr {address}")

    def store_output(self, writer: FunctionWriter, position: int, operand: str) -> None:
        real = writer.lanes.real
        address = writer.assign(f"getelementptr inbounds {real}, ptr %out, i64 {position}")
        writer.line(f"store {real} {operand}, ptr {address}")

    def load_input_at(self, writer: FunctionWriter, element: InputElement, index: str) -> str:
        position = writer.assign(f"add i64 {index}, {self.starts[element.port] + element.element}")
        real = writer.lanes.real
        address = writer.assign(f"getelementptr inbounds {real}, ptr %in, i64 {position}")
        return writer.assign(f"load {real}, ptr {address}")

    def store_output_at(self, writer: FunctionWriter, position: int, index: str, operand: str) -> None:
        real, position_at = writer.lanes.real, writer.assign(f"add i64 {index}, {position}")
        address = writer.assign(f"getelementptr inbounds {real}, ptr %out, i64 {position_at}")
        writer.line(f"store {real} {operand}, ptr {address}")


def port_starts(ports: Sequence[Port]) -> list[int]:
    """The position of each port in its buffer, in lane vectors, and the length of the buffer."""
    return [0, *accumulate(port.size for port in ports)]


def emit(program: Program, lanes: Lanes, *, limit: int = FUNCTION_SIZE_LIMIT) -> EmittedModule:
    """The function `body(in, out, frame)` of the program.

    in, out: the elements of all ports, each a lane vector; ports begin at `port_starts`. frame: memory of
    `frame_bytes` bytes. All three are aligned to 128 bytes. limit: approximate maximum number of instructions
    of one LLVM function. The stack must be aligned as `ALIGNED_STACK` says. Raises ValueError for an
    operation that cannot be emitted.
    """
    expanded = expand(program, lanes.dtype)
    module = ControlFlowEmitter(expanded, lanes, BufferSignature(expanded, lanes), limit)
    module.body(f"define void @body({module.signature.parameters})")
    return EmittedModule(module)
