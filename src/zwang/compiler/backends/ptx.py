"""PTX code for NVIDIA GPUs from the same LLVM IR as on the host, with one lane and one thread per world.

The kernel `.entry zwang(...)` has three parameters for each nonempty input, then for each nonempty output: a
pointer to numbers in global memory, the stride from one world to the next, and the stride from one element to
the next, both in numbers (64-bit). The last parameter is the number of worlds (64-bit). Consecutive threads
process consecutive worlds, so memory accesses coalesce if the world stride is 1 and the element stride is the
number of worlds.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from zwang.compiler.backends.llvm.control_flow_emitter import ControlFlowEmitter
from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.template_files import fill_template
from zwang.compiler.backends.llvm.writer import FunctionWriter, InputElement
from zwang.compiler.ir.program import Program, nonempty_ports
from zwang.compiler.passes.expand import expand
from zwang.errors import CompileError

REGISTERS = ("tid.x", "ntid.x", "ctaid.x")


class PointerSignature:
    """The function signature on GPUs: for each port a pointer to this world's first element, and an element
    stride.
    """

    def __init__(self, program: Program):
        inputs, outputs = nonempty_ports(program)
        nonempty = [number for number, port in enumerate(program.inputs) if port.size]
        self._input_numbers = {number: position for position, number in enumerate(nonempty)}
        self._outputs = [
            (len(inputs) + position, element)
            for position, port in enumerate(outputs)
            for element in range(port.size)
        ]
        self.ports = range(len(inputs) + len(outputs))
        pairs = [f"ptr addrspace(1) %base{n}, i64 %stride{n}" for n in self.ports]
        self.parameters = ", ".join([*pairs, "ptr %frame"])
        self.arguments = self.parameters

    def load_input(self, writer: FunctionWriter, element: InputElement) -> str:
        address = self._address(writer, self._input_numbers[element.port], element.element)
        return writer.assign(f"load {writer.lanes.real}, {address}, !invariant.load !1")

    def store_output(self, writer: FunctionWriter, position: int, operand: str) -> None:
        writer.line(f"store {writer.lanes.real} {operand}, {self._address(writer, *self._outputs[position])}")

    def load_input_at(self, writer: FunctionWriter, element: InputElement, index: str) -> str:
        number = writer.assign(f"add i64 {index}, {element.element}")
        address = self._address(writer, self._input_numbers[element.port], number)
        return writer.assign(f"load {writer.lanes.real}, {address}, !invariant.load !1")

    def store_output_at(self, writer: FunctionWriter, position: int, index: str, operand: str) -> None:
        port, element = self._outputs[position]
        number = writer.assign(f"add i64 {index}, {element}")
        writer.line(f"store {writer.lanes.real} {operand}, {self._address(writer, port, number)}")

    def _address(self, writer: FunctionWriter, port: int, element: int | str) -> str:
        offset = writer.assign(f"mul i64 %stride{port}, {element}")
        address = writer.assign(
            f"getelementptr {writer.lanes.real}, ptr addrspace(1) %base{port}, i64 {offset}"
        )
        return f"ptr addrspace(1) {address}"


def ptx(program: Program, dtype: str = "float64", *, arch: str = "sm_80") -> str:
    """The PTX text of the program's kernel, for GPUs of the given architecture or newer.

    dtype: "float64" or "float32". Raises CompileError for an invalid `arch`, or if LLVM cannot generate the
    code.
    """
    if not re.fullmatch(r"sm_\d{2,3}[a-z]?", arch):
        raise CompileError(f"arch is {arch!r}; it must have the form 'sm_80'")
    text = ptx_llvm(program, dtype)
    try:
        module = llvm.parse_assembly(text)
        module.verify()
        return _target_machine(arch).emit_assembly(module)
    except RuntimeError as error:
        raise CompileError(f"LLVM cannot generate PTX for this program: {error}") from error


def ptx_llvm(program: Program, dtype: str) -> str:
    """The LLVM IR from which the PTX is generated."""
    expanded = expand(program, dtype)
    lanes = Lanes(dtype, 1)
    signature = PointerSignature(expanded)
    module = ControlFlowEmitter(expanded, lanes, signature)
    parameters = "".join(
        f"ptr addrspace(1) %data{n}, i64 %world{n}, i64 %stride{n}, " for n in signature.ports
    )
    module.body(f"define ptx_kernel void @zwang({parameters}i64 %worlds)", ["@prologue@"], "inside")
    # The size of the stack frame is known only after the body has been emitted.
    text = module.text().replace("@prologue@", "\n".join(_prologue(signature, lanes, module.frame.size)), 1)
    declared = "\n".join(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}()" for name in REGISTERS)
    return f'target triple = "nvptx64-nvidia-cuda"\n{text}{declared}\n'


def _prologue(signature: PointerSignature, lanes: Lanes, frame_bytes: int) -> list[str]:
    """The lines that compute this thread's world and the addresses of its data; surplus threads return."""
    registers = [
        f"  %narrow_{name[:-2]} = call i32 @llvm.nvvm.read.ptx.sreg.{name}()\n"
        f"  %{name[:-2]} = zext i32 %narrow_{name[:-2]} to i64"
        for name in REGISTERS
    ]
    prologue = fill_template(
        "ptx_prologue", thread_registers="\n".join(registers), frame_bytes=max(frame_bytes, 1)
    )
    addresses = [
        f"  %far{n} = mul i64 %world, %world{n}\n"
        f"  %base{n} = getelementptr {lanes.real}, ptr addrspace(1) %data{n}, i64 %far{n}"
        for n in signature.ports
    ]
    return [prologue, *addresses]


@cache
def _target_machine(arch: str) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    return target.create_target_machine(cpu=arch, opt=2, codemodel="default")
