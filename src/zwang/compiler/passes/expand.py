"""Expansion of elementary functions into basic operations."""

from __future__ import annotations

from dataclasses import replace

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Program, While
from zwang.compiler.passes import elementary
from zwang.compiler.passes.elementary import BINARY, CIRCULAR, UNARY, Circular, Reduced
from zwang.compiler.passes.program_builder import Operand, ProgramBuilder, select

ELEMENTARY = frozenset([*UNARY, *BINARY, *CIRCULAR])
GROUP_SIZE = 8  # angles that share one test for huge arguments


def expand(program: Program, dtype: str) -> Program:
    """The program for one type, "float64" or "float32", with every elementary function expanded.

    Angles that are known at the same position of a block are reduced as a group: their sines and cosines
    share one test for huge arguments, whose code is placed out of line.
    """
    builder = ProgramBuilder(
        dtype, dict(program.kinds), dict(program.lengths), max(program.kinds, default=-1) + 1
    )
    body = _expand_block(builder, program.body)
    return Program(program.inputs, program.outputs, body, builder.kinds, builder.lengths)


def _expand_block(builder: ProgramBuilder, block: Block) -> Block:
    with builder.block():
        _Expansion(builder, block).run()
        return Block(block.parameters, tuple(builder.instructions), block.results)


class _Expansion:
    """The expansion of one block."""

    def __init__(self, builder: ProgramBuilder, block: Block):
        self.builder, self.block = builder, block
        self.known = set(block.parameters)
        self.done: set[int] = (
            set()
        )  # results of instructions that were emitted earlier than in the original order
        self.makers = {i.out[0]: i for i in block.instructions if i.op in ("input", "const")}
        self.circular = [i for i in block.instructions if i.op in CIRCULAR]
        self.next_circular = 0

    def run(self) -> None:
        for instruction in self.block.instructions:
            if instruction.out and instruction.out[0] in self.done:
                continue
            if instruction.op in CIRCULAR:
                self._emit_circular_group(instruction)
            elif instruction.op in ELEMENTARY:
                arguments = [Operand(self.builder, a) for a in instruction.args]
                self._rename(elementary.write(self.builder, instruction.op, arguments), instruction.out[0])
            else:
                self._copy(instruction)

    def _copy(self, instruction: Instruction) -> None:
        """Emit an instruction unchanged but for the expansion of its blocks."""
        data = instruction.data
        if isinstance(data, Cond):
            then, otherwise = (_expand_block(self.builder, b) for b in (data.then, data.otherwise))
            data = Cond(then, otherwise, data.rare)
        elif isinstance(data, While):
            condition, body = (_expand_block(self.builder, b) for b in (data.condition, data.body))
            data = While(condition, body, data.carried)
        elif isinstance(data, For):
            data = replace(data, body=_expand_block(self.builder, data.body))
        if data is not instruction.data:
            instruction = Instruction(instruction.op, instruction.args, instruction.out, data)
        self.builder.instructions.append(instruction)
        self.known.update(instruction.out)

    def _rename(self, term: Operand, value: int) -> None:
        """Let the last emitted instruction define this value of the original program."""
        last = self.builder.instructions.pop()
        assert last.out == (term.value,)
        del self.builder.kinds[term.value]
        self.builder.instructions.append(Instruction(last.op, last.args, (value,), last.data))
        self.known.add(value)
        self.done.add(value)

    # ---------------------------------------------------------------------------------- sin, cos, tan

    def _emit_circular_group(self, first: Instruction) -> None:
        """Emit this function, and the following functions whose arguments are known here."""
        group = self._group_from(first)
        angles = list(dict.fromkeys(i.args[0] for i in group))
        for angle in angles:
            if angle not in self.known:
                self.done.add(angle)
                self._copy(self.makers[angle])
        with_error = any(instruction.op == "tan" for instruction in group)
        reduced = self._reduce([Operand(self.builder, angle) for angle in angles], with_error)
        circulars = {angle: Circular(r) for angle, r in zip(angles, reduced, strict=True)}
        for instruction in group:
            circular = circulars[instruction.args[0]]
            self._rename(getattr(circular, instruction.op)(), instruction.out[0])

    def _group_from(self, first: Instruction) -> list[Instruction]:
        """The circular functions that are emitted together with the first one."""
        while self.circular[self.next_circular] is not first:
            self.next_circular += 1
        group: list[Instruction] = []
        angles: set[int] = set()
        for instruction in self.circular[self.next_circular : self.next_circular + 8 * GROUP_SIZE]:
            angle = instruction.args[0]
            is_known = angle in self.known or angle in self.makers
            if (
                instruction.out[0] not in self.done
                and is_known
                and (angle in angles or len(angles) < GROUP_SIZE)
            ):
                group.append(instruction)
                angles.add(angle)
        return group

    def _reduce(self, angles: list[Operand], with_error: bool) -> list[Reduced]:
        """The reduced angles. If one of them is huge, the huge ones are reduced again by Payne and Hanek's
        method.
        """
        plain = [elementary.reduce_plain(x, with_error=with_error) for x in angles]
        huge = [elementary.is_huge(x) for x in angles]
        any_huge = huge[0]
        for one in huge[1:]:
            any_huge = any_huge | one
        parts = 3 if with_error else 2
        otherwise = [term for reduced in plain for term in reduced[:parts] if term is not None]
        terms = self.builder.rare_cond(any_huge, angles, otherwise, _reduce_huge_angles)
        return [Reduced(*terms[n : n + parts]) for n in range(0, len(terms), parts)]


def _reduce_huge_angles(angles: list[Operand], plain: list[Operand]) -> list[Operand]:
    """The reduced angles, with the huge ones reduced again; in a loop, to keep the code short."""
    builder, count = angles[0].builder, len(angles)
    parts = len(plain) // count
    positions = [builder.position(n) for n in range(count)]
    stores = []
    for terms in (angles, *(plain[part::parts] for part in range(parts))):
        store = builder.write("array", (), "array", count)
        builder.lengths[store.value] = count
        for position, term in zip(positions, terms, strict=True):
            store = store.store(position, term)
        stores.append(store)

    def reduce_angle(n: Operand, carry: list[Operand], captured: list[Operand]) -> list[Operand]:
        x = captured[0].load(n)
        huge = elementary.is_huge(x)
        reduced = elementary.reduce_huge(x, with_error=parts == 3)
        return [
            store.store(n, select(huge, new, store.load(n)))
            for store, new in zip(carry, reduced[:parts], strict=True)
            if new is not None
        ]

    results = builder.loop(count, stores[1:], stores[:1], reduce_angle)
    return [store.load(position) for position in positions for store in results]
