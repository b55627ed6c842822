"""The LLVM IR of a program, on vectors with one world per lane.

No flag is set that would allow LLVM to change a result, and the fused multiply-adds are those of the program.
Hence the same program computes the same bits for every number of lanes (all NaNs are considered equal).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from zwang.compiler.backends.llvm.control_flow_emitter import ControlFlowEmitter
from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.straight_line_emitter import FUNCTION_SIZE_LIMIT
from zwang.compiler.backends.llvm.writer import ALIGNED_STACK, FunctionWriter, InputElement
from zwang.compiler.ir.program import Port, Program
from zwang.compiler.passes.expand import expand


@dataclass(frozen=True)
class EmittedModule:
    """The LLVM IR of a program, and the size of the stack frame that `body` needs [bytes]."""

    text: str
    frame_bytes: int


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
    return EmittedModule(module.text() + ALIGNED_STACK, module.frame.size)
