"""Constant tables and scratch arrays as LLVM IR."""

from __future__ import annotations

from collections.abc import Callable

from zwang.compiler.backends.llvm.straight_line_emitter import StraightLineEmitter
from zwang.compiler.backends.llvm.writer import ArraySlot, FunctionWriter
from zwang.compiler.ir.program import Instruction


class ArrayEmitter(StraightLineEmitter):
    """Text with tables and arrays. An array is written in place, in the lanes that count only."""

    def _table_entry(self, writer: FunctionWriter, instruction: Instruction, scalar: str) -> str:
        key = (instruction.op, tuple(instruction.data))
        name = self.tables.setdefault(key, f"@table{len(self.tables)}")
        index = writer.get(instruction.args[0])
        address = writer.let(f"getelementptr inbounds {scalar}, ptr {name}, i64 {index}")
        return writer.let(f"load {scalar}, ptr {address}")

    def _op_itable(self, writer: FunctionWriter, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self._table_entry(writer, instruction, "i64"))

    def _op_table(self, writer: FunctionWriter, instruction: Instruction) -> None:
        lanes = self.lanes
        entry = self._table_entry(writer, instruction, lanes.scalar)
        if lanes.width > 1:
            first = writer.let(f"insertelement {lanes.real} poison, {lanes.scalar} {entry}, i64 0")
            zeros = f"<{lanes.width} x i32> zeroinitializer"
            entry = writer.let(f"shufflevector {lanes.real} {first}, {lanes.real} poison, {zeros}")
        writer.define(instruction.out[0], entry)

    def _op_array(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array = self.scratch.array(instruction.data)
        real = self.lanes.real

        def clear(index: str) -> None:
            writer.row(f"store {real} {self.lanes.zero}, ptr {writer.element_address(array, index)}")

        self._each(writer, array.length, clear)
        self.born[array.offset] = writer, writer.mask
        writer.define(instruction.out[0], array)

    def _op_blank(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array = self.scratch.array(instruction.data)
        self.born[array.offset] = writer, writer.mask
        writer.define(instruction.out[0], array)

    def _op_choose(self, writer: FunctionWriter, instruction: Instruction) -> None:
        """The list holds numbers in its first lane; the last is how many of the others there are."""
        length, flags = instruction.data, writer.array(instruction.args[0])
        end, listed, lanes = writer.get(instruction.args[1]), self.scratch.array(length + 1), self.lanes
        before, turn, inside, after = writer.label, *(writer.new_label() for _ in range(3))
        index, following, place, behind = (writer.fresh() for _ in range(4))
        writer.jump(turn)
        writer.open(turn)
        writer.row(f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{inside} ]")
        writer.row(f"{place} = phi i64 [ 0, %{before} ], [ {behind}, %{inside} ]")
        writer.branch(writer.let(f"icmp slt i64 {index}, {end}"), inside, after)
        writer.open(inside)
        flag = writer.let(f"load {lanes.real}, ptr {writer.element_address(flags, index)}")
        wanted = writer.any(writer.masked(writer.let(f"fcmp ogt {lanes.real} {flag}, {lanes.zero}")))
        number = writer.let(f"uitofp i64 {index} to {lanes.scalar}")
        writer.row(f"store {lanes.scalar} {number}, ptr {writer.element_address(listed, place)}")
        writer.row(f"{behind} = add i64 {place}, {writer.let(f'zext i1 {wanted} to i64')}")
        writer.row(f"{following} = add i64 {index}, 1")
        writer.jump(turn)
        writer.open(after)
        number = writer.let(f"uitofp i64 {place} to {lanes.scalar}")
        writer.row(f"store {lanes.scalar} {number}, ptr {writer.element_address(listed, str(length))}")
        writer.define(instruction.out[0], listed)

    def _op_pick(self, writer: FunctionWriter, instruction: Instruction) -> None:
        listed, place = writer.array(instruction.args[0]), writer.get(instruction.args[1])
        inside = writer.let(f"icmp slt i64 {place}, {self._entries(writer, listed)}")
        entry = self._entry(writer, listed, place)
        writer.define(instruction.out[0], writer.let(f"select i1 {inside}, i64 {entry}, i64 0"))

    def _op_count(self, writer: FunctionWriter, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self._entries(writer, writer.array(instruction.args[0])))

    def _entries(self, writer: FunctionWriter, listed: ArraySlot) -> str:
        """How many there are in the list of `choose`."""
        return self._entry(writer, listed, str(listed.length - 1))

    def _entry(self, writer: FunctionWriter, listed: ArraySlot, place: str) -> str:
        """An entry of the list of `choose`."""
        number = writer.let(f"load {self.lanes.scalar}, ptr {writer.element_address(listed, place)}")
        return writer.let(f"fptoui {self.lanes.scalar} {number} to i64")

    def _op_load(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array, index = instruction.args
        address = writer.element_address(writer.array(array), writer.get(index))
        writer.define(instruction.out[0], writer.let(f"load {self.lanes.real}, ptr {address}"))

    def _op_store(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array, index, value = instruction.args
        place = writer.array(array)
        address, operand = writer.element_address(place, writer.get(index)), writer.get(value)
        if self.born.get(place.offset) == (writer, writer.mask):  # it holds nothing for other lanes
            writer.row(f"store {self.lanes.real} {operand}, ptr {address}")
        else:
            self._store(writer, address, operand)
        writer.define(instruction.out[0], place)

    def _op_gather(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array, position = instruction.args
        places, lanes = self._own_places(writer, writer.array(array), writer.get(position)), self.lanes
        if lanes.width == 1:
            writer.define(instruction.out[0], writer.let(f"load {lanes.real}, ptr {places}"))
            return
        pointers, mask = lanes.vector("ptr"), writer.mask or lanes.true
        name = f"@llvm.masked.gather.{lanes.suffix}.v{lanes.width}p0"
        self.intrinsics.add(f"{lanes.real} {name}({pointers}, i32, {lanes.truth}, {lanes.real})")
        rest = f"i32 {lanes.bits // 8}, {lanes.truth} {mask}, {lanes.real} {lanes.zero}"
        found = writer.let(f"call {lanes.real} {name}({pointers} {places}, {rest})")
        writer.define(instruction.out[0], found)

    def _op_scatter(self, writer: FunctionWriter, instruction: Instruction) -> None:
        array, position, value = instruction.args
        stored, operand, lanes = writer.array(array), writer.get(value), self.lanes
        places = self._own_places(writer, stored, writer.get(position))
        if lanes.width == 1:
            writer.row(f"store {lanes.real} {operand}, ptr {places}")
        else:
            pointers, mask = lanes.vector("ptr"), writer.mask or lanes.true
            name = f"@llvm.masked.scatter.{lanes.suffix}.v{lanes.width}p0"
            self.intrinsics.add(f"void {name}({lanes.real}, {pointers}, i32, {lanes.truth})")
            rest = f"i32 {lanes.bits // 8}, {lanes.truth} {mask}"
            writer.row(f"call void {name}({lanes.real} {operand}, {pointers} {places}, {rest})")
        writer.define(instruction.out[0], stored)

    def _own_places(self, writer: FunctionWriter, array: ArraySlot, position: str) -> str:
        """The addresses of elements, in each lane its own; never outside the array, whatever the position."""
        lanes, most = self.lanes, self.lanes.number(float(array.length - 1))
        first, whole = writer.address(array.offset), lanes.vector("i64")
        above = writer.let(f"fcmp ogt {lanes.real} {position}, {lanes.zero}")
        position = writer.choose(above, lanes.real, position, lanes.zero)
        below = writer.let(f"fcmp olt {lanes.real} {position}, {most}")
        position = writer.choose(below, lanes.real, position, most)
        number = writer.let(f"fptosi {lanes.real} {position} to {whole}")
        if lanes.width > 1:
            far = writer.let(f"mul {whole} {number}, {lanes.splat('i64', str(lanes.width))}")
            own = ", ".join(f"i64 {lane}" for lane in range(lanes.width))
            number = writer.let(f"add {whole} {far}, <{own}>")
        return writer.let(f"getelementptr inbounds {lanes.scalar}, ptr {first}, {whole} {number}")

    def _op_highest(self, writer: FunctionWriter, instruction: Instruction) -> None:
        lanes, found = self.lanes, writer.get(instruction.args[0])
        above = writer.masked(writer.let(f"fcmp ogt {lanes.real} {found}, {lanes.zero}"))
        found = writer.choose(above, lanes.real, found, lanes.zero)
        if lanes.width > 1:
            name = f"@llvm.vector.reduce.fmax.{lanes.suffix}"
            self.intrinsics.add(f"{lanes.scalar} {name}({lanes.real})")
            found = writer.let(f"call {lanes.scalar} {name}({lanes.real} {found})")
        most = lanes.literal(float(instruction.data))
        below = writer.let(f"fcmp olt {lanes.scalar} {found}, {most}")
        found = writer.let(f"select i1 {below}, {lanes.scalar} {found}, {lanes.scalar} {most}")
        writer.define(instruction.out[0], writer.let(f"fptosi {lanes.scalar} {found} to i64"))

    def _store(self, writer: FunctionWriter, address: str, operand: str) -> None:
        """To the lanes that count only."""
        real = self.lanes.real
        if writer.mask is not None:
            old = writer.let(f"load {real}, ptr {address}")
            operand = writer.choose(writer.mask, real, operand, old)
        writer.row(f"store {real} {operand}, ptr {address}")

    def _copy(self, writer: FunctionWriter, target: ArraySlot, source: ArraySlot) -> None:
        def copy(index: str) -> None:
            entry = writer.let(f"load {self.lanes.real}, ptr {writer.element_address(source, index)}")
            self._store(writer, writer.element_address(target, index), entry)

        self._each(writer, source.length, copy)

    def _copies(self, writer: FunctionWriter, targets: list[ArraySlot], sources: list[ArraySlot]) -> None:
        """Array by array, as if all at once."""
        moves = [(t, s) for t, s in zip(targets, sources, strict=True) if t != s]
        if any(t == s for t, _ in moves for _, s in moves):
            between = [self.scratch.array(s.length) for _, s in moves]
            self._copies(writer, between, [s for _, s in moves])
            moves = [(t, b) for (t, _), b in zip(moves, between, strict=True)]
        for target, source in moves:
            self._copy(writer, target, source)

    def _each(self, writer: FunctionWriter, count: int, body: Callable[[str], None]) -> None:
        """The body for every index below the count; a loop where they are many."""
        if count <= 4:
            for index in range(count):
                body(str(index))
            return
        before, turn, after = writer.label, writer.new_label(), writer.new_label()
        index, following = writer.fresh(), writer.fresh()
        writer.jump(turn)
        writer.open(turn)
        writer.row(f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{turn} ]")
        body(index)
        writer.row(f"{following} = add i64 {index}, 1")
        writer.branch(writer.let(f"icmp ult i64 {following}, {count}"), turn, after)
        writer.open(after)
