"""Branches and loops as LLVM IR: each lane goes its own way, under masks, until no lane wants more."""

from __future__ import annotations

from collections.abc import Sequence

from zwang.compiler.backends.llvm.array_emitter import ArrayEmitter
from zwang.compiler.backends.llvm.writer import ArraySlot, FunctionWriter, Location, StackSlot
from zwang.compiler.ir.program import Block, Cond, For, Instruction, Kind, While


class ControlFlowEmitter(ArrayEmitter):
    """Text with `when`, `while` and `for`."""

    def _op_cond(self, writer: FunctionWriter, instruction: Instruction) -> None:
        condition = writer.get(instruction.args[0])
        when: Cond = instruction.data
        captured = [writer.where(argument) for argument in instruction.args[1:]]
        kinds: list[Kind] = [self._kind(out) for out in instruction.out]
        self._forbid_index(kinds, "cond")
        merged = [self._merge_array(when, captured, n) if k == "array" else None for n, k in enumerate(kinds)]
        yes = self._arm(writer, when.then, condition, instruction, merged, rare=when.rare)
        no = self._arm(writer, when.otherwise, writer.negate(condition), instruction, merged)
        for out, kind, array, a, b in zip(instruction.out, kinds, merged, yes, no, strict=True):
            if array is not None:
                writer.define(out, array)
            else:
                writer.define(out, writer.choose(condition, self.lanes.kind(kind), a, b))

    def _merge_array(self, when: Cond, captured: list[Location], n: int) -> ArraySlot:
        """Where an array that leaves both arms lives: in place if both give the same, else in a new one."""
        origins = [_origin(block, block.results[n]) for block in (when.then, when.otherwise)]
        places = [None if origin is None else captured[origin] for origin in origins]
        if isinstance(places[0], ArraySlot) and places[0] == places[1]:
            return places[0]
        return self.scratch.array(self.program.lengths[when.then.results[n]])

    def _arm(
        self,
        writer: FunctionWriter,
        block: Block,
        condition: str,
        instruction: Instruction,
        merged: list[ArraySlot | None],
        *,
        rare: bool = False,
    ) -> list[str]:
        """One side of a `when`, run if any lane wants it. Returns the results (of arrays: an empty text)."""
        if not block.instructions:
            given = dict(zip(block.parameters, instruction.args[1:], strict=True))
            places = [given[result] for result in block.results]
            if all(m is None or m == writer.where(p) for m, p in zip(merged, places, strict=True)):
                return ["" if m else writer.get(p) for m, p in zip(merged, places, strict=True)]
        active = writer.masked(condition)
        before, inside, after = writer.label, writer.new_label(), writer.new_label()
        writer.branch(writer.any(active), inside, after, rare=rare)
        writer.open(inside)
        with writer.scope():
            writer.mask = active if self.lanes.width > 1 else None
            if rare:
                results = self._out_of_line(writer, block, instruction.args[1:])
            else:
                results = self._inline(writer, block, instruction.args[1:])
            wanted = [(t, results[n]) for n, t in enumerate(merged) if t is not None]
            self._copies(writer, [t for t, _ in wanted], [s for _, s in wanted if isinstance(s, ArraySlot)])
        end = writer.label
        writer.jump(after)
        writer.open(after)
        kinds: list[Kind] = [self._kind(r) for r in block.results]
        return [
            self._phi(writer, kind, [(operand, end), (self._nothing(kind), before)])
            if isinstance(operand, str)
            else ""
            for kind, operand in zip(kinds, results, strict=True)
        ]

    def _nothing(self, kind: Kind) -> str:
        return self.lanes.zero if kind == "real" else self.lanes.false

    def _phi(self, writer: FunctionWriter, kind: Kind, ways: list[tuple[str, str]]) -> str:
        shown = ", ".join(f"[ {operand}, %{label} ]" for operand, label in ways)
        return writer.let(f"phi {self.lanes.kind(kind)} {shown}")

    def _inline(self, writer: FunctionWriter, block: Block, arguments: Sequence[int]) -> list[str | ArraySlot]:
        """The block, here; its results, as operands."""
        for parameter, argument in zip(block.parameters, arguments, strict=True):
            writer.define(parameter, writer.where(argument))
        self.block(writer, block)
        return [self._result(writer, result) for result in block.results]

    def _result(self, writer: FunctionWriter, value: int) -> str | ArraySlot:
        return writer.array(value) if self._kind(value) == "array" else writer.get(value)

    def _out_of_line(self, writer: FunctionWriter, block: Block, arguments: Sequence[int]) -> list[str | ArraySlot]:
        """The block as a function of its own, called here; its results, as operands."""
        values: dict[int, Location] = {}
        for parameter, argument in zip(block.parameters, arguments, strict=True):
            values[parameter], _ = writer.home(argument, self.scratch, self._kind(parameter))
        callee = self._callee(writer, values)
        self.block(callee, block)
        results: list[StackSlot | ArraySlot] = []
        for value in block.results:
            if self._kind(value) == "array":
                results.append(callee.array(value))
            else:
                slot = self.scratch.slot(self._kind(value))
                callee.put(slot, callee.get(value))
                results.append(slot)
        self._call(writer, callee, "cold noinline")
        return [writer.load(place) if isinstance(place, StackSlot) else place for place in results]

    # -------------------------------------------------------------------------------------------- loops

    def _op_for(self, writer: FunctionWriter, instruction: Instruction) -> None:
        loop: For = instruction.data
        if loop.count == 0:
            for out, argument in zip(instruction.out, instruction.args[: loop.carried], strict=True):
                writer.define(out, writer.where(argument))
            return
        if loop.chosen or loop.spans:
            self._for_some(writer, instruction, loop)
            return
        carry = _Carry(self, writer, instruction, loop.carried)
        turn, after = writer.new_label(), writer.new_label()
        before = writer.label
        writer.jump(turn)
        writer.open(turn)
        counter = writer.reserve()
        index, following = writer.fresh(), writer.fresh()
        with writer.scope():
            carry.enter(before, loop.body.parameters[1:])
            writer.define(loop.body.parameters[0], index)
            self.block(writer, loop.body)
            results = carry.leave(loop.body.results)
        writer.row(f"{following} = add i64 {index}, 1")
        writer.rows[counter] = f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{writer.label} ]"
        carry.close(results)
        writer.branch(writer.let(f"icmp ult i64 {following}, {loop.count}"), turn, after)
        writer.open(after)
        carry.define(instruction.out, results)

    def _for_some(self, writer: FunctionWriter, instruction: Instruction, loop: For) -> None:
        """The loop over a list of `choose` or a span, which may be empty."""
        listed = writer.array(instruction.args[loop.carried]) if loop.chosen else None
        carry = _Carry(self, writer, instruction, loop.carried)
        if listed is None:
            begin, count = (writer.get(a) for a in instruction.args[loop.carried : loop.carried + 2])
        else:
            begin, count = "0", self._entry(writer, listed, str(loop.count))
        turn, inside, after = writer.new_label(), writer.new_label(), writer.new_label()
        before = writer.label
        writer.jump(turn)
        writer.open(turn)
        counter, place, following = writer.reserve(), writer.fresh(), writer.fresh()
        with writer.scope():
            olds = carry.enter(before, loop.body.parameters[1:])
            writer.branch(writer.let(f"icmp slt i64 {place}, {count}"), inside, after)
            writer.open(inside)
            index = place if listed is None else self._entry(writer, listed, place)
            if loop.backwards:
                last = writer.let(f"sub i64 {count}, 1")
                index = writer.let(f"sub i64 {last}, {writer.let(f'sub i64 {place}, {begin}')}")
            writer.define(loop.body.parameters[0], index)
            self.block(writer, loop.body)
            results = carry.leave(loop.body.results)
        writer.row(f"{following} = add i64 {place}, 1")
        writer.rows[counter] = f"  {place} = phi i64 [ {begin}, %{before} ], [ {following}, %{writer.label} ]"
        carry.close(results)
        writer.jump(turn)
        writer.open(after)
        carry.define(instruction.out, olds)

    def _op_while(self, writer: FunctionWriter, instruction: Instruction) -> None:
        loop: While = instruction.data
        carry = _Carry(self, writer, instruction, loop.carried)
        self._forbid_index([self._kind(a) for a in instruction.args[: loop.carried]], "while")
        turn, inside, after = writer.new_label(), writer.new_label(), writer.new_label()
        before = writer.label
        writer.jump(turn)
        writer.open(turn)
        with writer.scope():
            olds = carry.enter(before, loop.condition.parameters)
            self.block(writer, loop.condition)
            active = writer.masked(writer.get(loop.condition.results[0]))
            writer.branch(writer.any(active), inside, after)
            writer.open(inside)
            with writer.scope():
                carry.bind(loop.body.parameters, olds)
                writer.mask = active if self.lanes.width > 1 else None
                self.block(writer, loop.body)
                news = carry.leave(loop.body.results)
        if self.lanes.width > 1:
            news = carry.blend(active, news, olds)
        carry.close(news)
        writer.jump(turn)
        writer.open(after)
        carry.define(instruction.out, olds)

    def _forbid_index(self, kinds: Sequence[Kind], op: str) -> None:
        if "index" in kinds:
            raise ValueError(f"an index is the same in all lanes, so {op!r} cannot give one; use a real")


def _origin(block: Block, value: int) -> int | None:
    """The number of the block's parameter that an array is a later version of, changed in place; None for a new array."""
    while value not in block.parameters:
        maker = next(i for i in block.instructions if value in i.out)
        if maker.op in ("store", "scatter"):
            value = maker.args[0]
        elif maker.op in ("for", "while"):
            value = maker.args[maker.out.index(value)]
        elif maker.op == "cond":
            n, arms = maker.out.index(value), (maker.data.then, maker.data.otherwise)
            first, second = (_origin(arm, arm.results[n]) for arm in arms)
            if first is None or first != second:
                return None
            value = maker.args[1 + first]
        else:
            return None
    return block.parameters.index(value)


class _Carry:
    """The values that a loop carries: phis at its head for numbers, memory for arrays."""

    def __init__(self, module: ControlFlowEmitter, writer: FunctionWriter, instruction: Instruction, carried: int):
        self.module, self.writer = module, writer
        self.captured = [writer.where(argument) for argument in instruction.args[carried:]]
        self.kinds = [module._kind(argument) for argument in instruction.args[:carried]]
        self.starts: list[str | ArraySlot] = [module._result(writer, a) for a in instruction.args[:carried]]

    def enter(self, before: str, parameters: Sequence[int]) -> list[str | ArraySlot]:
        """At the head of the loop: a phi for each number; returns what the carry is inside."""
        self.before = before
        self.phis = [self.writer.reserve() if isinstance(start, str) else -1 for start in self.starts]
        self.inside: list[str | ArraySlot] = [
            self.writer.fresh() if isinstance(start, str) else start for start in self.starts
        ]
        self.bind(parameters, self.inside)
        return self.inside

    def bind(self, parameters: Sequence[int], carry: list[str | ArraySlot]) -> None:
        for parameter, location in zip(parameters, [*carry, *self.captured], strict=True):
            self.writer.scopes[-1][parameter] = location

    def leave(self, results: Sequence[int]) -> list[str | ArraySlot]:
        """The results of one turn; arrays that are not where they were are copied there, in the lanes that count."""
        news = [self.module._result(self.writer, result) for result in results]
        moves = [(o, n) for o, n in zip(self.inside, news, strict=True) if isinstance(o, ArraySlot)]
        self.module._copies(
            self.writer, [o for o, _ in moves], [n for _, n in moves if isinstance(n, ArraySlot)]
        )
        return [o if isinstance(o, ArraySlot) else n for o, n in zip(self.inside, news, strict=True)]

    def blend(self, active: str, news: list[str | ArraySlot], olds: list[str | ArraySlot]) -> list[str | ArraySlot]:
        """The new carry where a lane is active, the old where it is done."""
        lanes = self.module.lanes
        return [
            self.writer.choose(active, lanes.kind(kind), new, old)
            if isinstance(new, str) and isinstance(old, str)
            else new
            for kind, new, old in zip(self.kinds, news, olds, strict=True)
        ]

    def close(self, results: list[str | ArraySlot]) -> None:
        """At the end of a turn: complete the phis."""
        for kind, row, name, start, result in zip(
            self.kinds, self.phis, self.inside, self.starts, results, strict=True
        ):
            if row >= 0:
                ways = f"[ {start}, %{self.before} ], [ {result}, %{self.writer.label} ]"
                self.writer.rows[row] = f"  {name} = phi {self.module.lanes.kind(kind)} {ways}"

    def define(self, out: Sequence[int], results: list[str | ArraySlot]) -> None:
        for value, result in zip(out, results, strict=True):
            self.writer.define(value, result)
