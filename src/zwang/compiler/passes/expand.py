"""From a program with elementary functions to one of basic operations only."""

from __future__ import annotations

from dataclasses import replace

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Program, While
from zwang.compiler.passes import elementary
from zwang.compiler.passes.elementary import BINARY, CIRCULAR, UNARY, Circular, Reduced
from zwang.compiler.passes.program_builder import Operand, ProgramBuilder, select

ELEMENTARY = frozenset([*UNARY, *BINARY, *CIRCULAR])
TOGETHER = 8  # angles that share one test for huge ones


def expand(program: Program, dtype: str) -> Program:
    """The same program for one type, "float64" or "float32", with every elementary function written out.

    Angles that are known at the same place are reduced together: their sines and cosines share one test for huge
    ones, whose code is out of line.
    """
    page = ProgramBuilder(dtype, dict(program.kinds), dict(program.lengths), max(program.kinds, default=-1) + 1)
    body = _expand_block(page, program.body)
    return Program(program.inputs, program.outputs, body, page.kinds, page.lengths)


def _expand_block(page: ProgramBuilder, block: Block) -> Block:
    with page.block():
        _Expansion(page, block).run()
        return Block(block.parameters, tuple(page.instructions), block.results)


class _Expansion:
    """One block being rewritten."""

    def __init__(self, page: ProgramBuilder, block: Block):
        self.page, self.block = page, block
        self.known = set(block.parameters)
        self.done: set[int] = set()  # outputs of instructions that were written ahead of their turn
        self.makers = {i.out[0]: i for i in block.instructions if i.op in ("input", "const")}
        self.circular = [i for i in block.instructions if i.op in CIRCULAR]
        self.next_circular = 0

    def run(self) -> None:
        for instruction in self.block.instructions:
            if instruction.out and instruction.out[0] in self.done:
                continue
            if instruction.op in CIRCULAR:
                self._circular_group(instruction)
            elif instruction.op in ELEMENTARY:
                arguments = [Operand(self.page, a) for a in instruction.args]
                self._rename(elementary.write(self.page, instruction.op, arguments), instruction.out[0])
            else:
                self._keep(instruction)

    def _keep(self, instruction: Instruction) -> None:
        data = instruction.data
        if isinstance(data, Cond):
            then, otherwise = (_expand_block(self.page, b) for b in (data.then, data.otherwise))
            data = Cond(then, otherwise, data.rare)
        elif isinstance(data, While):
            condition, body = (_expand_block(self.page, b) for b in (data.condition, data.body))
            data = While(condition, body, data.carried)
        elif isinstance(data, For):
            data = replace(data, body=_expand_block(self.page, data.body))
        if data is not instruction.data:
            instruction = Instruction(instruction.op, instruction.args, instruction.out, data)
        self.page.instructions.append(instruction)
        self.known.update(instruction.out)

    def _rename(self, term: Operand, value: int) -> None:
        """The last instruction written gives this value of the program."""
        last = self.page.instructions.pop()
        assert last.out == (term.value,)
        del self.page.kinds[term.value]
        self.page.instructions.append(Instruction(last.op, last.args, (value,), last.data))
        self.known.add(value)
        self.done.add(value)

    # ---------------------------------------------------------------------------------- sin, cos, tan

    def _circular_group(self, first: Instruction) -> None:
        """This function, and those further on whose arguments are known here."""
        group = self._ready(first)
        angles = list(dict.fromkeys(i.args[0] for i in group))
        for angle in angles:
            if angle not in self.known:
                self.done.add(angle)
                self._keep(self.makers[angle])
        with_rest = any(instruction.op == "tan" for instruction in group)
        reduced = self._reduce([Operand(self.page, angle) for angle in angles], with_rest)
        circulars = {angle: Circular(r) for angle, r in zip(angles, reduced, strict=True)}
        for instruction in group:
            circular = circulars[instruction.args[0]]
            self._rename(getattr(circular, instruction.op)(), instruction.out[0])

    def _ready(self, first: Instruction) -> list[Instruction]:
        while self.circular[self.next_circular] is not first:
            self.next_circular += 1
        group: list[Instruction] = []
        angles: set[int] = set()
        for instruction in self.circular[self.next_circular : self.next_circular + 8 * TOGETHER]:
            angle = instruction.args[0]
            ready = angle in self.known or angle in self.makers
            if instruction.out[0] not in self.done and ready and (angle in angles or len(angles) < TOGETHER):
                group.append(instruction)
                angles.add(angle)
        return group

    def _reduce(self, angles: list[Operand], with_rest: bool) -> list[Reduced]:
        plain = [elementary.reduce_plain(x, with_rest=with_rest) for x in angles]
        huge = [elementary.is_huge(x) for x in angles]
        any_huge = huge[0]
        for one in huge[1:]:
            any_huge = any_huge | one
        parts = 3 if with_rest else 2
        otherwise = [term for reduced in plain for term in reduced[:parts] if term is not None]
        terms = self.page.rarely(any_huge, angles, otherwise, _reduce_again)
        return [Reduced(*terms[n : n + parts]) for n in range(0, len(terms), parts)]


def _reduce_again(angles: list[Operand], plain: list[Operand]) -> list[Operand]:
    """The reductions anew where they are huge; in a loop, to keep the code short."""
    page, count = angles[0].page, len(angles)
    parts = len(plain) // count
    places = [page.position(n) for n in range(count)]
    stores = []
    for terms in (angles, *(plain[part::parts] for part in range(parts))):
        store = page.write("array", (), "array", count)
        page.lengths[store.value] = count
        for place, term in zip(places, terms, strict=True):
            store = store.store(place, term)
        stores.append(store)

    def again(n: Operand, carry: list[Operand], captured: list[Operand]) -> list[Operand]:
        x = captured[0].load(n)
        huge = elementary.is_huge(x)
        reduced = elementary.reduce_huge(x, with_rest=parts == 3)
        return [
            store.store(n, select(huge, new, store.load(n)))
            for store, new in zip(carry, reduced[:parts], strict=True)
            if new is not None
        ]

    results = page.loop(count, stores[1:], stores[:1], again)
    return [store.load(place) for place in places for store in results]
