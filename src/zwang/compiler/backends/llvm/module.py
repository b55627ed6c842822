"""A program as LLVM IR: text, a row an instruction, on vectors with one world a lane.

No flag that allows LLVM to change a result is set anywhere; fused multiply-adds are those of the program. So the
same program gives the same bits at every number of lanes (all NaNs counting as the same).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from zwang.compiler.backends.llvm.control_flow_emitter import ControlFlowEmitter
from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.packing import slack
from zwang.compiler.backends.llvm.straight_line_emitter import LIMIT
from zwang.compiler.backends.llvm.writer import FunctionWriter, InputElement
from zwang.compiler.ir.program import Port, Program
from zwang.compiler.passes.expand import expand


@dataclass(frozen=True)
class EmittedModule:
    """LLVM IR and what its caller must know: the scratch memory that `body` needs, in bytes."""

    text: str
    scratch: int


class BufferSignature:
    """The door of a processor: inputs and outputs are arrays of lane vectors, all ports one after the other.

    After each input there is some room: see `packing`.
    """

    parameters = "ptr noalias readonly %in, ptr noalias %out, ptr noalias %scratch"
    arguments = "ptr %in, ptr %out, ptr %scratch"

    def __init__(self, program: Program, lanes: Lanes):
        self.starts = input_starts(program.inputs, lanes)

    def load(self, writer: FunctionWriter, element: InputElement) -> str:
        position = self.starts[element.port] + element.element
        real = writer.lanes.real
        address = writer.let(f"getelementptr inbounds {real}, ptr %in, i64 {position}")
        return writer.let(f"load {real}, ptr {address}")

    def store(self, writer: FunctionWriter, position: int, operand: str) -> None:
        real = writer.lanes.real
        address = writer.let(f"getelementptr inbounds {real}, ptr %out, i64 {position}")
        writer.row(f"store {real} {operand}, ptr {address}")


def input_starts(ports: Sequence[Port], lanes: Lanes) -> list[int]:
    """Where each port begins among the inputs' lane vectors, and at last, where they end. Empty ports take no room."""
    sizes = [port.size + slack(lanes) if port.size else 0 for port in ports]
    return [0, *accumulate(sizes)]


def emit(program: Program, lanes: Lanes, *, limit: int = LIMIT) -> EmittedModule:
    """The function `body(in, out, scratch)` of the program, on lane vectors.

    in, out: the elements of all ports one after the other, each a lane vector, inputs from `input_starts`; scratch: as many bytes as the result
    says. All three are aligned to 128 bytes. At most about `limit` instructions go into one LLVM function.
    """
    expanded = expand(program, lanes.dtype)
    module = ControlFlowEmitter(expanded, lanes, BufferSignature(expanded, lanes), limit)
    module.body(f"define void @body({module.door.parameters})")
    return EmittedModule(module.text(), module.scratch.size)
