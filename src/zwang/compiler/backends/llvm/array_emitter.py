"""LLVM IR of constant tables and mutable arrays."""

from __future__ import annotations

from collections.abc import Callable

from zwang.compiler.backends.llvm.constant_tables import table_name
from zwang.compiler.backends.llvm.straight_line_emitter import StraightLineEmitter
from zwang.compiler.backends.llvm.writer import ArraySlot, FunctionWriter, InputElement
from zwang.compiler.ir.program import Instruction

FLAGS_AT_A_TIME = 8  # that are tested together for zeros
AT_A_TIME = 8  # elements that an iteration of a loop sets or copies


class ArrayEmitter(StraightLineEmitter):
    """The emitter extended by tables and arrays. An array is updated in place, in the active lanes only."""

    def new_array(self, value: int, length: int) -> ArraySlot:
        """The place of a new array in the stack frame; arrays that are never needed together share it."""
        return ArraySlot(self.storage.offsets[value] * self.lanes.bytes, length)

    def _table_entry(self, writer: FunctionWriter, instruction: Instruction, scalar: str) -> str:
        """The entry of a constant table as a scalar."""
        name = table_name(instruction.data)
        self.tables[name] = instruction.data
        index = writer.operand(instruction.args[0])
        address = writer.assign(f"getelementptr inbounds {scalar}, ptr {name}, i64 {index}")
        return writer.assign(f"load {scalar}, ptr {address}")

    def _op_index_table(self, writer: FunctionWriter, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self._table_entry(writer, instruction, "i64"))

    def _op_table(self, writer: FunctionWriter, instruction: Instruction) -> None:
        lanes = self.lanes
        entry = self._table_entry(writer, instruction, lanes.scalar)
        if lanes.width > 1:
            first = writer.assign(f"insertelement {lanes.real} poison, {lanes.scalar} {entry}, i64 0")
            zeros = f"<{lanes.width} x i32> zeroinitializer"
            entry = writer.assign(f"shufflevector {lanes.real} {first}, {lanes.real} poison, {zeros}")
        writer.define(instruction.out[0], entry)

    def _op_array(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array = self.new_array(instruction.out[0], instruction.data)
        real = self.lanes.real

        def set_zero(index: str) -> None:
            writer.line(f"store {real} {self.lanes.zero}, ptr {writer.element_address(array, index)}")

        self._for_each_element(writer, array.length, set_zero)
        self.allocated_in[array.offset] = writer, writer.mask
        writer.define(instruction.out[0], array)

    def _op_empty(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array = self.new_array(instruction.out[0], instruction.data)
        self.allocated_in[array.offset] = writer, writer.mask
        writer.define(instruction.out[0], array)

    def _op_input_array(self, writer: FunctionWriter, instruction: Instruction) -> None:
        number, first, length = instruction.data
        array, source = self.new_array(instruction.out[0], length), InputElement(number, first)

        def copy(index: str) -> None:
            operand = self.signature.load_input_at(writer, source, index)
            writer.line(f"store {self.lanes.real} {operand}, ptr {writer.element_address(array, index)}")

        self._for_each_element(writer, length, copy)
        self.allocated_in[array.offset] = writer, writer.mask
        writer.define(instruction.out[0], array)

    def export_array(self, writer: FunctionWriter, array: ArraySlot, position: int) -> None:
        """Store all elements of an array in the output, from this position on."""

        def copy(index: str) -> None:
            operand = writer.assign(f"load {self.lanes.real}, ptr {writer.element_address(array, index)}")
            self.signature.store_output_at(writer, position, index, operand)

        self._for_each_element(writer, array.length, copy)

    def _op_compact(self, writer: FunctionWriter, instruction: Instruction) -> None:
        """The list of active indices has a number in its first lane per entry; the last entry is their
        count.
        """
        length, flags = instruction.data, writer.array(instruction.args[0])
        end, active_list, lanes = (
            writer.operand(instruction.args[1]),
            self.new_array(instruction.out[0], length + 1),
            self.lanes,
        )
        before, head, skip, inside, after = writer.label, *(writer.new_label() for _ in range(4))
        index, next_index, count, next_count, beyond = (writer.new_name() for _ in range(5))
        writer.jump(head)
        writer.begin_block(head)
        writer.line(f"{index} = phi i64 [ 0, %{before} ], [ {next_index}, %{inside} ], [ {beyond}, %{skip} ]")
        writer.line(f"{count} = phi i64 [ 0, %{before} ], [ {next_count}, %{inside} ], [ {count}, %{skip} ]")
        is_inside = writer.assign(f"icmp slt i64 {index}, {end}")
        look = writer.new_label()
        writer.branch(is_inside, look, after)
        writer.begin_block(look)
        writer.branch(self._only_zeros(writer, flags, index, beyond, inside), skip, inside)
        writer.begin_block(skip)
        writer.jump(head)
        writer.begin_block(inside)
        flag = writer.assign(f"load {lanes.real}, ptr {writer.element_address(flags, index)}")
        is_active = writer.any_lane(
            writer.active_condition(writer.assign(f"fcmp ogt {lanes.real} {flag}, {lanes.zero}"))
        )
        number = writer.assign(f"uitofp i64 {index} to {lanes.scalar}")
        writer.line(f"store {lanes.scalar} {number}, ptr {writer.element_address(active_list, count)}")
        writer.line(f"{next_count} = add i64 {count}, {writer.assign(f'zext i1 {is_active} to i64')}")
        writer.line(f"{next_index} = add i64 {index}, 1")
        writer.jump(head)
        writer.begin_block(after)
        number = writer.assign(f"uitofp i64 {count} to {lanes.scalar}")
        writer.line(f"store {lanes.scalar} {number}, ptr {writer.element_address(active_list, str(length))}")
        writer.define(instruction.out[0], active_list)

    def _only_zeros(
        self, writer: FunctionWriter, flags: ArraySlot, index: str, beyond: str, inside: str
    ) -> str:
        """Whether none of the next flags, up to the index `beyond`, is positive, as i1; branches to `inside`
        where this is not worth a test. Most flags of a long array are zero.
        """
        writer.line(f"{beyond} = add i64 {index}, {FLAGS_AT_A_TIME}")
        is_complete = writer.assign(f"icmp sle i64 {beyond}, {flags.length}")
        rest = writer.assign(f"and i64 {index}, {FLAGS_AT_A_TIME - 1}")
        is_first = writer.assign(f"icmp eq i64 {rest}, 0")
        test = writer.new_label()
        writer.branch(writer.assign(f"and i1 {is_complete}, {is_first}"), test, inside)
        writer.begin_block(test)
        count, scalar = FLAGS_AT_A_TIME * self.lanes.width, self.lanes.scalar
        address = writer.element_address(flags, index)
        loaded = writer.assign(f"load <{count} x {scalar}>, ptr {address}, align {self.lanes.scalar_bytes}")
        positive = writer.assign(f"fcmp ogt <{count} x {scalar}> {loaded}, zeroinitializer")
        packed = writer.assign(f"bitcast <{count} x i1> {positive} to i{count}")
        return writer.assign(f"icmp eq i{count} {packed}, 0")

    def _op_active_index(self, writer: FunctionWriter, instruction: Instruction) -> None:
        active_list, position = writer.array(instruction.args[0]), writer.operand(instruction.args[1])
        inside = writer.assign(f"icmp slt i64 {position}, {self._active_count(writer, active_list)}")
        entry = self._list_entry(writer, active_list, position)
        writer.define(instruction.out[0], writer.assign(f"select i1 {inside}, i64 {entry}, i64 0"))

    def _op_active_count(self, writer: FunctionWriter, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self._active_count(writer, writer.array(instruction.args[0])))

    def _active_count(self, writer: FunctionWriter, active_list: ArraySlot) -> str:
        """The number of entries of a list of active indices."""
        return self._list_entry(writer, active_list, str(active_list.length - 1))

    def _list_entry(self, writer: FunctionWriter, active_list: ArraySlot, position: str) -> str:
        """An entry of a list of active indices."""
        number = writer.assign(
            f"load {self.lanes.scalar}, ptr {writer.element_address(active_list, position)}"
        )
        return writer.assign(f"fptoui {self.lanes.scalar} {number} to i64")

    def _op_load(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array, index = instruction.args
        address = writer.element_address(writer.array(array), writer.operand(index))
        writer.define(instruction.out[0], writer.assign(f"load {self.lanes.real}, ptr {address}"))

    def _op_store(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array, index, value = instruction.args
        target = writer.array(array)
        address, operand = writer.element_address(target, writer.operand(index)), writer.operand(value)
        if self.allocated_in.get(target.offset) == (writer, writer.mask):  # no other lane uses it
            writer.line(f"store {self.lanes.real} {operand}, ptr {address}")
        else:
            self._store(writer, address, operand)
        writer.define(instruction.out[0], target)

    def _op_gather(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array, position = instruction.args
        addresses, lanes = (
            self._lane_addresses(writer, writer.array(array), writer.operand(position)),
            self.lanes,
        )
        if lanes.width == 1:
            writer.define(instruction.out[0], writer.assign(f"load {lanes.real}, ptr {addresses}"))
            return
        pointers, mask = lanes.vector("ptr"), writer.mask or lanes.true
        name = f"@llvm.masked.gather.{lanes.suffix}.v{lanes.width}p0"
        self.intrinsics.add(f"{lanes.real} {name}({pointers}, i32, {lanes.truth}, {lanes.real})")
        rest = f"i32 {lanes.bits // 8}, {lanes.truth} {mask}, {lanes.real} {lanes.zero}"
        found = writer.assign(f"call {lanes.real} {name}({pointers} {addresses}, {rest})")
        writer.define(instruction.out[0], found)

    def _op_scatter(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array, position, value = instruction.args
        stored, operand, lanes = writer.array(array), writer.operand(value), self.lanes
        addresses = self._lane_addresses(writer, stored, writer.operand(position))
        if lanes.width == 1:
            writer.line(f"store {lanes.real} {operand}, ptr {addresses}")
        else:
            pointers, mask = lanes.vector("ptr"), writer.mask or lanes.true
            name = f"@llvm.masked.scatter.{lanes.suffix}.v{lanes.width}p0"
            self.intrinsics.add(f"void {name}({lanes.real}, {pointers}, i32, {lanes.truth})")
            rest = f"i32 {lanes.bits // 8}, {lanes.truth} {mask}"
            writer.line(f"call void {name}({lanes.real} {operand}, {pointers} {addresses}, {rest})")
        writer.define(instruction.out[0], stored)

    def _lane_addresses(self, writer: FunctionWriter, array: ArraySlot, position: str) -> str:
        """The address of an element for each lane; the position is clamped to the array."""
        lanes, most = self.lanes, self.lanes.number(float(array.length - 1))
        first, whole = writer.address(array.offset), lanes.vector("i64")
        above = writer.assign(f"fcmp ogt {lanes.real} {position}, {lanes.zero}")
        position = writer.select_lanes(above, lanes.real, position, lanes.zero)
        below = writer.assign(f"fcmp olt {lanes.real} {position}, {most}")
        position = writer.select_lanes(below, lanes.real, position, most)
        number = writer.assign(f"fptosi {lanes.real} {position} to {whole}")
        if lanes.width > 1:
            far = writer.assign(f"mul {whole} {number}, {lanes.splat('i64', str(lanes.width))}")
            own = ", ".join(f"i64 {lane}" for lane in range(lanes.width))
            number = writer.assign(f"add {whole} {far}, <{own}>")
        return writer.assign(f"getelementptr inbounds {lanes.scalar}, ptr {first}, {whole} {number}")

    def _op_lane(self, writer: FunctionWriter, instruction: Instruction) -> None:
        lanes = self.lanes
        numbers = [lanes.literal(float(lane)) for lane in range(lanes.width)]
        vector = ", ".join(f"{lanes.scalar} {number}" for number in numbers)
        writer.define(instruction.out[0], f"<{vector}>" if lanes.width > 1 else numbers[0])

    def _op_lane_maximum(self, writer: FunctionWriter, instruction: Instruction) -> None:
        lanes, found = self.lanes, writer.operand(instruction.args[0])
        above = writer.active_condition(writer.assign(f"fcmp ogt {lanes.real} {found}, {lanes.zero}"))
        found = writer.select_lanes(above, lanes.real, found, lanes.zero)
        if lanes.width > 1:
            name = f"@llvm.vector.reduce.fmax.{lanes.suffix}"
            self.intrinsics.add(f"{lanes.scalar} {name}({lanes.real})")
            found = writer.assign(f"call {lanes.scalar} {name}({lanes.real} {found})")
        most = lanes.literal(float(instruction.data))
        below = writer.assign(f"fcmp olt {lanes.scalar} {found}, {most}")
        found = writer.assign(f"select i1 {below}, {lanes.scalar} {found}, {lanes.scalar} {most}")
        writer.define(instruction.out[0], writer.assign(f"fptosi {lanes.scalar} {found} to i64"))

    def _store(self, writer: FunctionWriter, address: str, operand: str) -> None:
        """Store an operand in the active lanes only."""
        real = self.lanes.real
        if writer.mask is not None:
            old = writer.assign(f"load {real}, ptr {address}")
            operand = writer.select_lanes(writer.mask, real, operand, old)
        writer.line(f"store {real} {operand}, ptr {address}")

    def _copy_array(self, writer: FunctionWriter, target: ArraySlot, source: ArraySlot) -> None:
        """Copy an array in the active lanes."""

        def copy(index: str) -> None:
            entry = writer.assign(f"load {self.lanes.real}, ptr {writer.element_address(source, index)}")
            self._store(writer, writer.element_address(target, index), entry)

        self._for_each_element(writer, source.length, copy)

    def _copy_arrays(
        self, writer: FunctionWriter, targets: list[ArraySlot], sources: list[ArraySlot]
    ) -> None:
        """Copy several arrays in the active lanes, as if simultaneously."""
        copies = [(t, s) for t, s in zip(targets, sources, strict=True) if t != s]
        if any(t == s for t, _ in copies for _, s in copies):
            temporaries = [self.frame.array(s.length) for _, s in copies]
            self._copy_arrays(writer, temporaries, [s for _, s in copies])
            copies = [(t, b) for (t, _), b in zip(copies, temporaries, strict=True)]
        for target, source in copies:
            self._copy_array(writer, target, source)

    def _for_each_element(self, writer: FunctionWriter, count: int, body: Callable[[str], None]) -> None:
        """Emit `body` for every index below the count, as a loop over `AT_A_TIME` of them if the count is
        large.
        """
        chunks = count // AT_A_TIME
        if chunks > 1:
            before, head, after = writer.label, writer.new_label(), writer.new_label()
            chunk, next_chunk = writer.new_name(), writer.new_name()
            writer.jump(head)
            writer.begin_block(head)
            writer.line(f"{chunk} = phi i64 [ 0, %{before} ], [ {next_chunk}, %{head} ]")
            first = writer.assign(f"mul i64 {chunk}, {AT_A_TIME}")
            for k in range(AT_A_TIME):
                body(writer.assign(f"add i64 {first}, {k}") if k else first)
            writer.line(f"{next_chunk} = add i64 {chunk}, 1")
            writer.branch(writer.assign(f"icmp ult i64 {next_chunk}, {chunks}"), head, after)
            writer.begin_block(after)
        for index in range(chunks * AT_A_TIME if chunks > 1 else 0, count):
            body(str(index))
