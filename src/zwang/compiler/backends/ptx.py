"""A program as PTX for NVIDIA's processors, by the same LLVM text as for the host: one lane, one thread a world.

The kernel is `.entry zwang(...)`, with these parameters: for every input, then every output, that is not empty, a
pointer to numbers in global memory, the distance from one world to the next and from one element to the next, both in
numbers (64-bit); at last the number of worlds (64-bit). Neighbouring threads are neighbouring worlds, so reading is
fastest with the worlds side by side: world distance 1, element distance the number of worlds.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from zwang.compiler.backends.llvm.control_flow_emitter import ControlFlowEmitter
from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.writer import FunctionWriter, InputElement
from zwang.compiler.ir.program import Program
from zwang.compiler.passes.expand import expand
from zwang.compiler.runtime.kernel import doors
from zwang.errors import CompileError

REGISTERS = ("tid.x", "ntid.x", "ctaid.x")


class PointerSignature:
    """The door of a graphics processor: a pointer to this world's first element for each port, and a stride."""

    def __init__(self, program: Program):
        inputs, outputs = doors(program)
        filled = [number for number, port in enumerate(program.inputs) if port.size]
        self._input_numbers = {number: place for place, number in enumerate(filled)}
        self._outputs = [
            (len(inputs) + place, element)
            for place, port in enumerate(outputs)
            for element in range(port.size)
        ]
        self.ports = range(len(inputs) + len(outputs))
        pairs = [f"ptr addrspace(1) %base{n}, i64 %stride{n}" for n in self.ports]
        self.parameters = ", ".join([*pairs, "ptr %scratch"])
        self.arguments = self.parameters

    def load(self, writer: FunctionWriter, element: InputElement) -> str:
        address = self._address(writer, self._input_numbers[element.port], element.element)
        return writer.let(f"load {writer.lanes.real}, {address}, !invariant.load !1")

    def store(self, writer: FunctionWriter, position: int, operand: str) -> None:
        writer.row(f"store {writer.lanes.real} {operand}, {self._address(writer, *self._outputs[position])}")

    def _address(self, writer: FunctionWriter, port: int, element: int) -> str:
        far = writer.let(f"mul i64 %stride{port}, {element}")
        place = writer.let(f"getelementptr {writer.lanes.real}, ptr addrspace(1) %base{port}, i64 {far}")
        return f"ptr addrspace(1) {place}"


def ptx(program: Program, dtype: str = "float64", *, arch: str = "sm_80") -> str:
    """The PTX text of the program's kernel, for processors of the given architecture or newer."""
    if not re.fullmatch(r"sm_\d{2,3}[a-z]?", arch):
        raise CompileError(f"arch is {arch!r}; it must be like 'sm_80'")
    text = ptx_llvm(program, dtype)
    try:
        module = llvm.parse_assembly(text)
        module.verify()
        return _target_machine(arch).emit_assembly(module)
    except RuntimeError as error:
        raise CompileError(f"LLVM makes no PTX of this program: {error}") from error


def ptx_llvm(program: Program, dtype: str) -> str:
    """The LLVM text that the PTX is made from."""
    expanded = expand(program, dtype)
    lanes = Lanes(dtype, 1)
    door = PointerSignature(expanded)
    module = ControlFlowEmitter(expanded, lanes, door)
    parameters = "".join(f"ptr addrspace(1) %data{n}, i64 %world{n}, i64 %stride{n}, " for n in door.ports)
    module.body(f"define ptx_kernel void @zwang({parameters}i64 %worlds)", ["@prologue@"], "inside")
    # How much scratch memory there is, is known only now.
    text = module.text().replace("@prologue@", "\n".join(_prologue(door, lanes, module.scratch.size)), 1)
    declared = "\n".join(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}()" for name in REGISTERS)
    return f'target triple = "nvptx64-nvidia-cuda"\n{text}{declared}\n'


def _prologue(door: PointerSignature, lanes: Lanes, scratch: int) -> list[str]:
    """Which world this thread has, and where its data are; threads beyond the last world stop."""
    rows = [
        f"  %narrow_{name[:-2]} = call i32 @llvm.nvvm.read.ptx.sreg.{name}()\n"
        f"  %{name[:-2]} = zext i32 %narrow_{name[:-2]} to i64"
        for name in REGISTERS
    ]
    rows += [
        "  %before = mul i64 %ctaid, %ntid",
        "  %world = add i64 %before, %tid",
        f"  %scratch = alloca [{max(scratch, 1)} x i8], align 8",
        "  %is_one = icmp ult i64 %world, %worlds",
        "  br i1 %is_one, label %inside, label %outside",
        "outside:",
        "  ret void",
        "inside:",
    ]
    for n in door.ports:
        rows.append(f"  %far{n} = mul i64 %world, %world{n}")
        rows.append(f"  %base{n} = getelementptr {lanes.real}, ptr addrspace(1) %data{n}, i64 %far{n}")
    return rows


@cache
def _target_machine(arch: str) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    return target.create_target_machine(cpu=arch, opt=2, codemodel="default")
