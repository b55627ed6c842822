"""LLVM IR of branches and loops, under masks: each lane takes its own path, and a loop ends when all lanes
have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from zwang.compiler.backends.llvm.array_emitter import ArrayEmitter
from zwang.compiler.backends.llvm.writer import ArraySlot, FunctionWriter, Location, StackSlot
from zwang.compiler.ir.program import (
    Block,
    Cond,
    For,
    Instruction,
    Kind,
    While,
    captured_origin,
    merged_arrays,
)
from zwang.compiler.ir.uniformity import uniform_values


class ControlFlowEmitter(ArrayEmitter):
    """The emitter extended by `cond`, `while` and `for`."""

    def _op_cond(self, writer: FunctionWriter, instruction: Instruction) -> None:
        condition = writer.operand(instruction.args[0])
        cond: Cond = instruction.data
        kinds: list[Kind] = [self._kind(out) for out in instruction.out]
        self._forbid_index(kinds, "cond")
        merged = self._merged_arrays(writer, instruction)
        if self.lanes.width == 1 or instruction.args[0] in self._uniform:
            results = self._either_branch(writer, instruction, condition, merged)
        else:
            yes = self._emit_branch(writer, cond.then, condition, instruction, merged, rare=cond.rare)
            no = self._emit_branch(writer, cond.otherwise, writer.negation(condition), instruction, merged)
            results = [
                "" if array is not None else writer.select_lanes(condition, self.lanes.kind(kind), a, b)
                for kind, array, a, b in zip(kinds, merged, yes, no, strict=True)
            ]
        for out, array, result in zip(instruction.out, merged, results, strict=True):
            writer.define(out, result if array is None else array)

    @cached_property
    def _uniform(self) -> set[int]:
        """The values that are the same in all lanes."""
        return uniform_values(self.program)

    def _either_branch(
        self,
        writer: FunctionWriter,
        instruction: Instruction,
        condition: str,
        merged: list[ArraySlot | None],
    ) -> list[str]:
        """Emit a `cond` of which all lanes take the same branch; returns its results (an empty string for an
        array).
        """
        cond: Cond = instruction.data
        if self.lanes.width > 1:
            condition = writer.assign(f"extractelement {self.lanes.truth} {condition}, i64 0")
        blocks = cond.then, cond.otherwise
        unchanged = [self._unchanged(writer, block, instruction, merged) for block in blocks]
        before, after = writer.label, writer.new_label()
        labels = [after if same is not None else writer.new_label() for same in unchanged]
        if labels[0] == labels[1]:
            labels[1] = writer.new_label()  # both are empty, and differ in their results
            unchanged[1] = None
        writer.branch(condition, labels[0], labels[1], rare=cond.rare)
        incoming = []
        for block, same, label, rare in zip(blocks, unchanged, labels, (cond.rare, False), strict=True):
            if same is not None:
                incoming.append((same, before))
                continue
            writer.begin_block(label)
            results = self._emit_body(writer, block, instruction, merged, writer.mask, rare=rare)
            incoming.append((results, writer.label))
            writer.jump(after)
        writer.begin_block(after)
        (yes, first), (no, second) = incoming
        return [
            "" if array is not None else self._phi(writer, self._kind(out), [(a, first), (b, second)])
            for out, array, a, b in zip(instruction.out, merged, yes, no, strict=True)
        ]

    def _unchanged(
        self, writer: FunctionWriter, block: Block, instruction: Instruction, merged: list[ArraySlot | None]
    ) -> list[str] | None:
        """The results of a branch without instructions (an empty string for an array); None if it has some,
        or copies an array.
        """
        if block.instructions:
            return None
        captured = dict(zip(block.parameters, instruction.args[1:], strict=True))
        values = [captured[result] for result in block.results]
        if all(m is None or m == writer.location_of(p) for m, p in zip(merged, values, strict=True)):
            return ["" if m else writer.operand(p) for m, p in zip(merged, values, strict=True)]
        return None

    def _merged_arrays(self, writer: FunctionWriter, instruction: Instruction) -> list[ArraySlot | None]:
        """The location of each array that a `cond` returns: that of the captured array of which both branches
        return a later version, or a new one.
        """
        block, new = instruction.data.then, merged_arrays(self.program, instruction)
        locations: list[ArraySlot | None] = []
        for out, result in zip(instruction.out, block.results, strict=True):
            if self._kind(out) != "array":
                locations.append(None)
            elif out in new:
                locations.append(self.new_array(out, self.program.lengths[out]))
            else:
                locations.append(writer.array(instruction.args[1 + (captured_origin(block, result) or 0)]))
        return locations

    def _emit_branch(
        self,
        writer: FunctionWriter,
        block: Block,
        condition: str,
        instruction: Instruction,
        merged: list[ArraySlot | None],
        *,
        rare: bool = False,
    ) -> list[str]:
        """Emit a branch, which is executed if any lane takes it; returns its results (an empty string for an
        array).
        """
        unchanged = self._unchanged(writer, block, instruction, merged)
        if unchanged is not None:
            return unchanged
        active = writer.active_condition(condition)
        before, inside, after = writer.label, writer.new_label(), writer.new_label()
        writer.branch(writer.any_lane(active), inside, after, rare=rare)
        writer.begin_block(inside)
        results = self._emit_body(writer, block, instruction, merged, active, rare=rare)
        end = writer.label
        writer.jump(after)
        writer.begin_block(after)
        kinds: list[Kind] = [self._kind(r) for r in block.results]
        return [
            self._phi(writer, kind, [(operand, end), (self._default_value(kind), before)])
            if kind != "array"
            else ""
            for kind, operand in zip(kinds, results, strict=True)
        ]

    def _emit_body(
        self,
        writer: FunctionWriter,
        block: Block,
        instruction: Instruction,
        merged: list[ArraySlot | None],
        mask: str | None,
        *,
        rare: bool,
    ) -> list[str]:
        """Emit the block of a branch under a mask; returns its results (an empty string for an array)."""
        with writer.scope():
            writer.mask = mask if self.lanes.width > 1 else None
            if rare:
                results = self._out_of_line(writer, block, instruction.args[1:])
            else:
                results = self._inline(writer, block, instruction.args[1:])
            copies = [(t, results[n]) for n, t in enumerate(merged) if t is not None]
            self._copy_arrays(
                writer, [t for t, _ in copies], [s for _, s in copies if isinstance(s, ArraySlot)]
            )
        return [result if isinstance(result, str) else "" for result in results]

    def _default_value(self, kind: Kind) -> str:
        return self.lanes.zero if kind == "real" else self.lanes.false

    def _phi(self, writer: FunctionWriter, kind: Kind, incoming: list[tuple[str, str]]) -> str:
        pairs = ", ".join(f"[ {operand}, %{label} ]" for operand, label in incoming)
        return writer.assign(f"phi {self.lanes.kind(kind)} {pairs}")

    def _inline(
        self, writer: FunctionWriter, block: Block, arguments: Sequence[int]
    ) -> list[str | ArraySlot]:
        """Emit a block in place; returns its results."""
        for parameter, argument in zip(block.parameters, arguments, strict=True):
            writer.define(parameter, writer.location_of(argument))
        self.block(writer, block)
        return [self._result(writer, result) for result in block.results]

    def _result(self, writer: FunctionWriter, value: int) -> str | ArraySlot:
        return writer.array(value) if self._kind(value) == "array" else writer.operand(value)

    def _out_of_line(
        self, writer: FunctionWriter, block: Block, arguments: Sequence[int]
    ) -> list[str | ArraySlot]:
        """Emit a block as a function of its own and call it; returns its results."""
        values: dict[int, Location] = {}
        for parameter, argument in zip(block.parameters, arguments, strict=True):
            values[parameter], _ = writer.shared_location(argument, self.frame, self._kind(parameter))
        callee = self._new_callee(writer, values)
        self.block(callee, block)
        results: list[StackSlot | ArraySlot] = []
        for value in block.results:
            if self._kind(value) == "array":
                results.append(callee.array(value))
            else:
                slot = self.frame.slot(self._kind(value))
                callee.store_slot(slot, callee.operand(value))
                results.append(slot)
        self._call_function(writer, callee, "cold noinline")
        return [writer.load_slot(r) if isinstance(r, StackSlot) else r for r in results]

    # -------------------------------------------------------------------------------------------- loops

    def _op_for(self, writer: FunctionWriter, instruction: Instruction) -> None:
        loop: For = instruction.data
        if loop.count == 0:
            for out, argument in zip(instruction.out, instruction.args[: loop.carried], strict=True):
                writer.define(out, writer.location_of(argument))
            return
        if loop.over_active or loop.dynamic:
            self._dynamic_for(writer, instruction, loop)
            return
        carry = _LoopCarry(self, writer, instruction, loop.carried)
        head, after = writer.new_label(), writer.new_label()
        before = writer.label
        writer.jump(head)
        writer.begin_block(head)
        counter = writer.reserve_line()
        index, following = writer.new_name(), writer.new_name()
        with writer.scope():
            carry.enter(before, loop.body.parameters[1:])
            writer.define(loop.body.parameters[0], index)
            self.block(writer, loop.body)
            results = carry.leave(loop.body.results)
        writer.line(f"{following} = add i64 {index}, 1")
        writer.lines[counter] = f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{writer.label} ]"
        carry.close(results)
        writer.branch(writer.assign(f"icmp ult i64 {following}, {loop.count}"), head, after)
        writer.begin_block(after)
        carry.define(instruction.out, results)

    def _dynamic_for(self, writer: FunctionWriter, instruction: Instruction, loop: For) -> None:
        """A loop over active indices or between dynamic bounds, which may be empty."""
        active_list = writer.array(instruction.args[loop.carried]) if loop.over_active else None
        carry = _LoopCarry(self, writer, instruction, loop.carried)
        if active_list is None:
            lower, upper = (writer.operand(a) for a in instruction.args[loop.carried : loop.carried + 2])
        else:
            lower, upper = "0", self._list_entry(writer, active_list, str(loop.count))
        head, inside, after = writer.new_label(), writer.new_label(), writer.new_label()
        before = writer.label
        writer.jump(head)
        writer.begin_block(head)
        counter, position, following = writer.reserve_line(), writer.new_name(), writer.new_name()
        with writer.scope():
            old_values = carry.enter(before, loop.body.parameters[1:])
            writer.branch(writer.assign(f"icmp slt i64 {position}, {upper}"), inside, after)
            writer.begin_block(inside)
            index = position if active_list is None else self._list_entry(writer, active_list, position)
            if loop.reverse:
                last = writer.assign(f"sub i64 {upper}, 1")
                index = writer.assign(f"sub i64 {last}, {writer.assign(f'sub i64 {position}, {lower}')}")
            writer.define(loop.body.parameters[0], index)
            self.block(writer, loop.body)
            results = carry.leave(loop.body.results)
        writer.line(f"{following} = add i64 {position}, 1")
        writer.lines[counter] = (
            f"  {position} = phi i64 [ {lower}, %{before} ], [ {following}, %{writer.label} ]"
        )
        carry.close(results)
        writer.jump(head)
        writer.begin_block(after)
        carry.define(instruction.out, old_values)

    def _op_while(self, writer: FunctionWriter, instruction: Instruction) -> None:
        loop: While = instruction.data
        carry = _LoopCarry(self, writer, instruction, loop.carried)
        self._forbid_index([self._kind(a) for a in instruction.args[: loop.carried]], "while")
        head, inside, after = writer.new_label(), writer.new_label(), writer.new_label()
        before = writer.label
        writer.jump(head)
        writer.begin_block(head)
        with writer.scope():
            old_values = carry.enter(before, loop.condition.parameters)
            self.block(writer, loop.condition)
            active = writer.active_condition(writer.operand(loop.condition.results[0]))
            writer.branch(writer.any_lane(active), inside, after)
            writer.begin_block(inside)
            with writer.scope():
                carry.bind(loop.body.parameters, old_values)
                writer.mask = active if self.lanes.width > 1 else None
                self.block(writer, loop.body)
                new_values = carry.leave(loop.body.results)
        if self.lanes.width > 1:
            new_values = carry.blend(active, new_values, old_values)
        carry.close(new_values)
        writer.jump(head)
        writer.begin_block(after)
        carry.define(instruction.out, old_values)

    def _forbid_index(self, kinds: Sequence[Kind], op: str) -> None:
        if "index" in kinds:
            raise ValueError(f"an index is the same in all lanes, so {op!r} cannot return one; use a real")


class _LoopCarry:
    """The carried values of a loop: phi instructions at its head for numbers, memory for arrays."""

    def __init__(
        self, module: ControlFlowEmitter, writer: FunctionWriter, instruction: Instruction, carried: int
    ):
        self.module, self.writer = module, writer
        self.captured = [writer.location_of(argument) for argument in instruction.args[carried:]]
        self.kinds = [module._kind(argument) for argument in instruction.args[:carried]]
        self.initial: list[str | ArraySlot] = [module._result(writer, a) for a in instruction.args[:carried]]

    def enter(self, before: str, parameters: Sequence[int]) -> list[str | ArraySlot]:
        """At the head of the loop: reserve a phi for each number; returns the carry inside the loop."""
        self.before = before
        self.phis = [self.writer.reserve_line() if isinstance(value, str) else -1 for value in self.initial]
        self.inside: list[str | ArraySlot] = [
            self.writer.new_name() if isinstance(value, str) else value for value in self.initial
        ]
        self.bind(parameters, self.inside)
        return self.inside

    def bind(self, parameters: Sequence[int], carry: list[str | ArraySlot]) -> None:
        """Set the locations of a block's parameters to the carry and the captured values."""
        for parameter, location in zip(parameters, [*carry, *self.captured], strict=True):
            self.writer.scopes[-1][parameter] = location

    def leave(self, results: Sequence[int]) -> list[str | ArraySlot]:
        """The results of an iteration; arrays at other locations are copied back, in the active lanes."""
        new_values = [self.module._result(self.writer, result) for result in results]
        copies = [(o, n) for o, n in zip(self.inside, new_values, strict=True) if isinstance(o, ArraySlot)]
        self.module._copy_arrays(
            self.writer, [o for o, _ in copies], [n for _, n in copies if isinstance(n, ArraySlot)]
        )
        return [o if isinstance(o, ArraySlot) else n for o, n in zip(self.inside, new_values, strict=True)]

    def blend(
        self, active: str, new_values: list[str | ArraySlot], old_values: list[str | ArraySlot]
    ) -> list[str | ArraySlot]:
        """The new carry in the active lanes, the old carry in the lanes that have left the loop."""
        lanes = self.module.lanes
        return [
            self.writer.select_lanes(active, lanes.kind(kind), new, old)
            if isinstance(new, str) and isinstance(old, str)
            else new
            for kind, new, old in zip(self.kinds, new_values, old_values, strict=True)
        ]

    def close(self, results: list[str | ArraySlot]) -> None:
        """At the end of an iteration: complete the phi instructions."""
        for kind, line, name, start, result in zip(
            self.kinds, self.phis, self.inside, self.initial, results, strict=True
        ):
            if line >= 0:
                incoming = f"[ {start}, %{self.before} ], [ {result}, %{self.writer.label} ]"
                self.writer.lines[line] = f"  {name} = phi {self.module.lanes.kind(kind)} {incoming}"

    def define(self, out: Sequence[int], results: list[str | ArraySlot]) -> None:
        """Set the locations of the loop's results."""
        for value, result in zip(out, results, strict=True):
            self.writer.define(value, result)
