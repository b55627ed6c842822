"""Many numbers that pass between blocks together are passed in one array.

The inputs and outputs of a program, the captured and carried numbers of its loops and branches, and the
results of its branches become an array each where they are many. Inside a block they are then loads and
stores at constant positions, which `loop_rolling` finds in loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Program, While, blocks_of
from zwang.compiler.passes.rolling_limits import RollingLimits
from zwang.compiler.passes.value_numbering import Values

Place = tuple[int, int]  # an array and a position in it


def pass_numbers_in_arrays(program: Program, values: Values, limits: RollingLimits) -> Block:
    """The body of the program with many numbers between its blocks in arrays; it computes the same bits.

    values: those of the program, to which new ones are added.
    """
    return _ArrayPassing(program, values, limits).body()


@dataclass
class _BlockWithPlaces:
    """The instructions of a block, in which a constant index occurs once; the places of numbers that are in
    arrays which are not overwritten, and those of them that are not read yet; and the values that do not come
    from an array.
    """

    instructions: list[Instruction] = field(default_factory=list)
    places: dict[int, Place] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)
    single: set[int] = field(default_factory=set)
    indices: dict[int, int] = field(default_factory=dict)


class _ArrayPassing:
    def __init__(self, program: Program, values: Values, limits: RollingLimits) -> None:
        self.source, self.limits = program, limits
        self.kinds, self.lengths, self._value = values.kinds, values.lengths, values.new

    def body(self) -> Block:
        """The rewritten body."""
        writer = _BlockWithPlaces()
        used = [i.data[0] for i in self.source.body.instructions if i.op == "input"]
        for number, port in enumerate(self.source.inputs):
            if used.count(number) >= self.limits.many_numbers:
                array = self._value("array", port.size)
                writer.instructions.append(Instruction("input_array", (), (array,), (number, 0, port.size)))
                elements = [
                    i for i in self.source.body.instructions if i.op == "input" and i.data[0] == number
                ]
                self._place(writer, {i.out[0]: (array, i.data[1]) for i in elements})
        self._write_instructions(writer, self.source.body)
        results = self._results_by_port(writer)
        return Block((), tuple(writer.instructions), tuple(results))

    def _results_by_port(self, writer: _BlockWithPlaces) -> list[int]:
        """The results of the program, with an array for each output of many numbers."""
        results, position = [], 0
        found = self.source.body.results
        for port in self.source.outputs:
            size, start = 0, position
            while size < port.size:
                size += self.lengths[found[position]] if self.kinds[found[position]] == "array" else 1
                position += 1
            own = found[start:position]
            if len(own) == port.size >= self.limits.many_numbers:
                own = (self._packed(writer, own),)
            self._read(writer, own)
            results += own
        return results

    # ---------------------------------------------------------------------------------------- blocks

    def _block(
        self, block: Block, places: dict[int, Place], packed: Sequence[int] = (), array: int | None = None
    ) -> Block:
        """A block whose parameters with a place are read from there; `packed` are the positions of results
        that are returned in one array, which is the last result: a version of `array`, or a new one.
        """
        writer = _BlockWithPlaces()
        writer.single.update(block.parameters)
        self._place(writer, places)
        self._write_instructions(writer, block)
        together = set(packed)
        results = [r for k, r in enumerate(block.results) if k not in together]
        self._read(writer, block.results)
        if packed:
            values = [block.results[k] for k in packed]
            results.append(
                self._packed(writer, values) if array is None else self._stored(writer, array, values)
            )
        return Block(block.parameters, tuple(writer.instructions), tuple(results))

    def _write_instructions(self, writer: _BlockWithPlaces, block: Block) -> None:
        for instruction in block.instructions:
            if blocks_of(instruction):
                self._control(writer, instruction)
            elif instruction.out[0] not in writer.places:
                self._write(writer, instruction)
                if instruction.op not in ("load", "gather") and writer.single.issuperset(instruction.args):
                    writer.single.add(instruction.out[0])

    def _place(self, writer: _BlockWithPlaces, places: dict[int, Place]) -> None:
        """Define values as the entries of arrays at these places."""
        writer.places |= places
        writer.unread.update(places)

    def _read(self, writer: _BlockWithPlaces, values: Iterable[int]) -> None:
        """Read those of the values that are in arrays and not read yet."""
        for value in values:
            if value in writer.unread:
                writer.unread.discard(value)
                array, position = writer.places[value]
                args = array, self._index(writer, position)
                writer.instructions.append(Instruction("load", args, (value,)))

    def _write(self, writer: _BlockWithPlaces, instruction: Instruction) -> None:
        self._read(writer, instruction.args)
        writer.instructions.append(instruction)

    def _packed(self, writer: _BlockWithPlaces, values: Sequence[int]) -> int:
        """A new array of these numbers."""
        array = self._value("array", len(values))
        writer.instructions.append(Instruction("empty", (), (array,), len(values)))
        return self._stored(writer, array, values)

    def _stored(self, writer: _BlockWithPlaces, array: int, values: Iterable[int]) -> int:
        """The array with these numbers stored from its beginning on."""
        values = list(values)
        self._read(writer, values)  # of which some may be entries of the array itself
        for position, value in enumerate(values):
            after = self._value("array", self.lengths[array])
            args = array, self._index(writer, position), value
            writer.instructions.append(Instruction("store", args, (after,)))
            array = after
        return array

    def _index(self, writer: _BlockWithPlaces, position: int) -> int:
        if position not in writer.indices:
            writer.indices[position] = self._value("index")
            writer.instructions.append(Instruction("index", (), (writer.indices[position],), position))
        return writer.indices[position]

    # --------------------------------------------------------------------------------- loops, branches

    def _control(self, writer: _BlockWithPlaces, instruction: Instruction) -> None:
        data = instruction.data
        if isinstance(data, Cond):
            self._cond(writer, instruction, data)
        else:
            self._loop(writer, instruction, data)

    def _cond(self, writer: _BlockWithPlaces, instruction: Instruction, data: Cond) -> None:
        places = self._captured_places(writer, instruction, 1)
        kept = [0, *(k for k in range(1, len(instruction.args)) if k not in places)]
        numbers = [n for n, out in enumerate(instruction.out) if self.kinds[out] == "real"]
        packed = numbers if len(numbers) >= self.limits.many_numbers else []
        arrays = list(dict.fromkeys(array for array, _ in places.values()))
        branches = []
        for branch in (data.then, data.otherwise):
            inner, inside = self._inside(arrays, {branch.parameters[k - 1]: p for k, p in places.items()})
            parameters = (*(branch.parameters[k - 1] for k in kept[1:]), *inside)
            branches.append(self._block(replace(branch, parameters=parameters), inner, packed))
        together = set(packed)
        out = [o for n, o in enumerate(instruction.out) if n not in together]
        result = self._value("array", len(packed)) if packed else None
        args = (*(instruction.args[k] for k in kept), *arrays)
        new_out = (*out, *([] if result is None else [result]))
        then, otherwise = branches
        new_data = replace(data, then=then, otherwise=otherwise)
        self._write(writer, Instruction("cond", args, new_out, new_data))
        writer.single.update(out)
        if result is not None:
            self._place(writer, {instruction.out[n]: (result, k) for k, n in enumerate(packed)})

    def _loop(self, writer: _BlockWithPlaces, instruction: Instruction, data: While | For) -> None:
        skip = int(isinstance(data, For))  # the parameters of the body of `for` begin with the index
        bounds = data.over_active + 2 * data.dynamic if isinstance(data, For) else 0
        places = self._captured_places(writer, instruction, data.carried + bounds)
        numbers = [k for k in range(data.carried) if self.kinds[instruction.args[k]] == "real"]
        packed = numbers if len(numbers) >= self.limits.many_numbers else []
        together = set(packed)
        carried = [k for k in range(data.carried) if k not in together]
        captured = [k for k in range(data.carried, len(instruction.args)) if k not in places]
        arrays = list(dict.fromkeys(array for array, _ in places.values()))
        initial = [self._packed(writer, [instruction.args[k] for k in packed])] if packed else []
        blocks = {}
        for name in ("body",) if skip else ("condition", "body"):
            block = getattr(data, name)
            inner, inside = self._inside(
                arrays, {block.parameters[k + skip]: place for k, place in places.items()}
            )
            own = [self._value("array", len(packed))] if packed else []
            inner |= {block.parameters[k + skip]: (own[0], n) for n, k in enumerate(packed)}
            parameters = (
                *block.parameters[:skip], *(block.parameters[k + skip] for k in carried), *own,
                *(block.parameters[k + skip] for k in captured), *inside,
            )  # fmt: skip
            returned = packed if name == "body" else ()
            array = own[0] if own else None
            blocks[name] = self._block(replace(block, parameters=parameters), inner, returned, array)
        out = [instruction.out[k] for k in carried]
        result = [self._value("array", len(packed))] if packed else []
        args = (
            *(instruction.args[k] for k in carried), *initial,
            *(instruction.args[k] for k in captured), *arrays,
        )  # fmt: skip
        new_data = replace(data, carried=len(carried) + len(initial), **blocks)
        self._write(writer, Instruction(instruction.op, args, (*out, *result), new_data))
        writer.single.update(out)
        if result:
            self._place(writer, {instruction.out[k]: (result[0], n) for n, k in enumerate(packed)})

    def _captured_places(
        self, writer: _BlockWithPlaces, instruction: Instruction, first: int
    ) -> dict[int, Place]:
        """The places of captured numbers, by the position of the argument; they begin at position `first`."""
        args = instruction.args
        reals = [k for k in range(first, len(args)) if self.kinds[args[k]] == "real"]
        missing = [k for k in reals if args[k] not in writer.places and args[k] not in writer.single]
        if len(missing) >= self.limits.many_numbers:
            array = self._packed(writer, [args[k] for k in missing])
            writer.places |= {args[k]: (array, n) for n, k in enumerate(missing)}
        places = {k: writer.places[args[k]] for k in reals if args[k] in writer.places}
        return places if len(places) >= self.limits.few_numbers else {}

    def _inside(self, arrays: Sequence[int], places: dict[int, Place]) -> tuple[dict[int, Place], list[int]]:
        """The places of parameters in a block, and its parameters for these arrays."""
        inside = {array: self._value("array", self.lengths[array]) for array in arrays}
        return {value: (inside[array], n) for value, (array, n) in places.items()}, list(inside.values())
