"""Loop rolling: operations that repeat in straight-line code become loops over tables.

The equations of a hundred free bodies are traced body by body. This pass finds the repetition (`repetition`)
and writes a loop for each kind of components: their constants become tables, what differs in position becomes
an index, and what other instructions read of their values becomes an array. Each operation stays what it is,
and each reduction keeps its order, so that the program computes the same bits.

Source of the idea: Rocha, Petoumenos, Franke, Bhatotia and O'Boyle, "Loop rolling for code size reduction"
(CGO 2022), who align isomorphic code of a basic block.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zwang.compiler.ir.program import Block, For, Instruction, Program, blocks_of, with_blocks
from zwang.compiler.passes.array_passing import pass_numbers_in_arrays
from zwang.compiler.passes.dead_code import remove_dead_code
from zwang.compiler.passes.reductions import with_reductions
from zwang.compiler.passes.repetition import (
    LEAVES,
    OF_INDICES,
    Component,
    Repetition,
    Stretch,
    overwritten_arrays,
)
from zwang.compiler.passes.rolling_limits import LIMITS, RollingLimits
from zwang.compiler.passes.value_numbering import Values
from zwang.scalar.arrays import Entries


def roll_loops(program: Program, limits: RollingLimits = LIMITS) -> Program:
    """The program with repeated straight-line code in loops, if that makes it much smaller."""
    size = _size(program.body)
    if size < limits.smallest_program:
        return program
    values = Values.of(program)
    before = values.next_value
    passed = pass_numbers_in_arrays(program, values, limits)
    if values.next_value == before:  # equal bodies would have many numbers together
        return program
    writings: dict[int, _BlockWriting] = {}
    if _find_repetition(passed, values, limits, writings) > limits.largest_bound * size:
        return program
    body = _rolled(passed, writings)
    if _size(body) > limits.largest_ratio * size:
        return program
    return remove_dead_code(replace(program, body=body, kinds=values.kinds, lengths=values.lengths))


def _size(block: Block) -> int:
    return sum(1 + sum(map(_size, blocks_of(i))) for i in block.instructions)


def _find_repetition(
    block: Block, values: Values, limits: RollingLimits, writings: dict[int, _BlockWriting]
) -> int:
    """A lower bound of the size of a block with its repetition, and that of its inner blocks, in loops.

    writings: by `id`, those of the blocks with repetition, to which they are added.
    """
    inner = [b for i in block.instructions for b in blocks_of(i)]
    least = sum(_find_repetition(b, values, limits, writings) for b in inner)
    if len(block.instructions) >= limits.smallest_block:
        side_by_side, reductions = with_reductions(block, values, limits)
        repetition = Repetition(side_by_side, reductions, values, limits)
        if repetition.kinds:
            writings[id(block)] = writing = _BlockWriting(repetition, values)
            return least + writing.least_size
    return least + len(block.instructions)


def _rolled(block: Block, writings: Mapping[int, _BlockWriting]) -> Block:
    """The block with its repetition, and that of its inner blocks, in loops."""

    def inner(block: Block) -> Block:
        return _rolled(block, writings)

    writing = writings.get(id(block))
    order = writing and _ordered(writing.nodes, writing.dependencies(), writing.first_position)
    if writing is None or order is None:
        instructions = tuple([with_blocks(i, inner) for i in block.instructions])
        return Block(block.parameters, instructions, block.results)
    return writing.block(order, inner)


def _ordered(
    nodes: Iterable[int], before: dict[int, set[int]], position: Callable[[int], int]
) -> list[int] | None:
    """The nodes in an order in which each one follows those before it; None if there is none."""
    users: dict[int, list[int]] = {}
    for node, others in before.items():
        for other in others:
            users.setdefault(other, []).append(node)
    pending = {node: len(before[node]) for node in nodes}
    ready = [(position(node), node) for node, count in pending.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, node = heapq.heappop(ready)
        order.append(node)
        for user in users.get(node, ()):
            pending[user] -= 1
            if not pending[user]:
                heapq.heappush(ready, (position(user), user))
    return order if len(order) == len(pending) else None


class _BlockWriting:
    """The new instructions of a block. Its nodes are the instructions that stay, by their positions, and the
    loops of the repeated kinds: -1 for the first one, -2 for the second, and so on.
    """

    def __init__(self, repetition: Repetition, values: Values) -> None:
        self.found, self.values = repetition, values
        self.made, self.source = repetition.made, repetition.instructions
        rolled = {p for kind in repetition.kinds for c in kind.components for p in c.members}
        self.storing: list[set[int]] = [set() for _ in repetition.runs]  # the nodes that store
        looped = set()
        for n, kind in enumerate(repetition.kinds):
            for component in kind.components:
                for run, position, _ in component.stores:
                    self.storing[run].add(-1 - n)
                    looped.add((run, position))
        self.stores: dict[int, tuple[int, int, int]] = {}  # the stores that stay, by their positions
        for n, run in enumerate(repetition.runs):
            for position, (value, p) in run.entries.items():
                if (n, position) not in looped:
                    self.stores[p] = n, position, value
                    self.storing[n].add(p)
        kept = [p for p in range(len(self.source)) if p not in rolled and self._stays(p)]
        self.nodes = [*kept, *(-1 - n for n in range(len(repetition.kinds)))]
        self.instructions: list[Instruction] = []
        self.ready: set[int] = set(repetition.block.parameters)
        self.indices: dict[int, int] = {}
        self.versions: dict[int, int] = {}
        self.exports: dict[tuple[int, int], int] = {}

    def _stays(self, p: int) -> bool:
        """Whether an instruction is a node; the others are written where they are needed."""
        i = self.source[p]
        if p in self.found.in_run:
            return p in self.stores
        out = i.out[0] if i.out else None
        if out in self.found.alias or i.op in LEAVES or i.op in OF_INDICES:
            return False
        return out not in self.found.entries or out in self.found.operations

    def first_position(self, node: int) -> int:
        """The position of an instruction, or of the first one in a loop."""
        if node >= 0:
            return node
        kind = self.found.kinds[-1 - node]
        return min((p for c in kind.components for p in c.members), default=0)

    # ----------------------------------------------------------------------------------- dependencies

    def dependencies(self) -> dict[int, set[int]]:
        """The nodes that each node comes after."""
        before: dict[int, set[int]] = {node: set() for node in self.nodes}
        readers: dict[int, list[tuple[int, Any]]] = {}  # of an array: nodes, and what they read
        stored: dict[tuple[int, int], set[int]] = {}  # (node, run): positions
        for node in self.nodes:
            reads: dict[Stretch, set[int]] = {}
            for p in self._positions(node):
                i = self.source[p]
                if i.out and i.out[0] in self.found.entries:
                    stretch, position = self.found.entries[i.out[0]]
                    reads.setdefault(stretch, set()).add(position)
                    before[node] |= self._makers_of_stretch(stretch)
                elif p not in self.found.in_run:
                    for a in i.args:
                        before[node] |= self._makers(a)
                        if self.values.kinds[a] == "array":
                            readers.setdefault(a, []).append((node, None))
            for n, position, value in self._stores_of(node):
                run = self.found.runs[n]
                before[node] |= self._makers(value) | self._makers_of_stretch(Stretch(run.base, run.start))
                stored.setdefault((node, n), set()).add(position)
            for stretch, positions in reads.items():
                readers.setdefault(stretch.array, []).append((node, (stretch.start, positions)))
        for (node, n), positions in stored.items():
            for reader, read in readers.get(self.found.runs[n].base, ()):
                apart = read and read[0] == self.found.runs[n].start and read[1].isdisjoint(positions)
                if not apart:
                    before[node].add(reader)
        for node in self.nodes:
            if node >= 0:
                for a in overwritten_arrays(self.source[node], self.values.kinds):
                    before[node].update(reader for reader, _ in readers.get(a, ()))
            before[node].discard(node)
        return before

    def _positions(self, node: int) -> list[int]:
        if node >= 0:
            return [node]
        return [p for c in self.found.kinds[-1 - node].components for p in c.members]

    def _stores_of(self, node: int) -> list[tuple[int, int, int]]:
        if node >= 0:
            return [self.stores[node]] if node in self.stores else []
        return [s for c in self.found.kinds[-1 - node].components for s in c.stores]

    def _makers(self, value: int) -> set[int]:
        """The nodes that make a value, but for constants."""
        value = self.found.value(value)
        if self.values.kinds[value] == "array":
            return self._makers_of_array(value)
        if value in self.found.found_in:
            return {-1 - self.found.found_in[value][0]}
        if value in self.found.entries and value not in self.found.operations:
            return self._makers_of_stretch(self.found.entries[value][0])
        p = self.made.get(value)
        if p is None or self._stays(p):
            return set() if p is None else {p}
        return set().union(*(self._makers(a) for a in self.source[p].args))

    def _makers_of_stretch(self, stretch: Stretch) -> set[int]:
        makers = self._makers_of_array(stretch.array)
        return makers if stretch.start is None else makers | self._makers(stretch.start)

    def _makers_of_array(self, array: int) -> set[int]:
        if array in self.found.final_run:
            n = self.found.final_run[array]
            return self.storing[n] | self._makers_of_array(self.found.runs[n].base)
        p = self.made.get(array)
        return {p} if p is not None else set()

    # ---------------------------------------------------------------------------------------- writing

    @property
    def least_size(self) -> int:
        """A lower bound of the number of instructions of the new block."""
        firsts = [kind.components[0] for kind in self.found.kinds]
        return len(self.nodes) + sum(len(c.members) + len(c.stores) for c in firsts)

    def block(self, order: Sequence[int], inner: Callable[[Block], Block]) -> Block:
        """The new block, of nodes in this order. inner: makes the new blocks of its instructions."""
        block = self.found.block
        self._find_exports(block)
        for node in order:
            if node < 0:
                _LoopWriting(self, -1 - node).write()
            elif node in self.stores:
                run, _, value = self.stores[node]
                self._store(node, run, value)
            else:
                i = with_blocks(self.source[node], inner)
                args = tuple([self.operand(a) for a in i.args])
                if i.out and i.out[0] in self.found.entries:
                    args = self.current(self.found.entries[i.out[0]][0].array), self.operand(i.args[1])
                self.instructions.append(Instruction(i.op, args, i.out, i.data))
                self.ready.update(i.out)
        results = tuple([self.operand(r) for r in block.results])
        return Block(block.parameters, tuple(self.instructions), results)

    def _find_exports(self, block: Block) -> None:
        """Find which values of the loops are read elsewhere."""
        kinds = self.found.kinds
        for kind in kinds:
            for code in kind.codes:
                for argument in code[1:]:
                    if isinstance(argument, tuple) and argument[0] == "kind":
                        kinds[argument[1]].exports.add(argument[2])
        needed = [a for node in self.nodes if node >= 0 and node not in self.stores
                  for a in self.source[node].args]  # fmt: skip
        needed += [value for _, _, value in self.stores.values()]
        needed += [kind.initial for kind in kinds if kind.initial is not None]
        for value in (*needed, *block.results):
            place = self.found.found_in.get(self.found.value(value))
            if place and kinds[place[0]].initial is None:
                kinds[place[0]].exports.add(place[2])

    def operand(self, value: int) -> int:
        """The value in the new block, read or made here where it is not yet."""
        value = self.found.value(value)
        if self.values.kinds[value] == "array":
            return self.current(value)
        if value in self.ready:
            return value
        if value in self.found.found_in:
            kind, component, member = self.found.found_in[value]
            self._read_export(value, self.exports[kind, member], component)
        elif value in self.found.entries:
            array = self.current(self.found.entries[value][0].array)
            self.write("load", (array, self.operand(self.source[self.made[value]].args[1])), value)
        else:
            i = self.source[self.made[value]]
            self.write(i.op, tuple([self.operand(a) for a in i.args]), value, i.data)
        return value

    def _read_export(self, value: int, array: int, position: int) -> None:
        if self.values.kinds[value] == "real":
            self.write("load", (array, self.index(position)), value)
            return
        number, zero = self.values.new("real"), self.values.new("real")
        self.write("load", (array, self.index(position)), number)
        self.write("const", (), zero, 0.0)
        self.write("ne", (number, zero), value)

    def write(self, op: str, args: tuple[int, ...], out: int, data: Any = None) -> int:
        """Append an instruction."""
        self.instructions.append(Instruction(op, args, (out,), data))
        self.ready.add(out)
        return out

    def index(self, position: int) -> int:
        """A constant index."""
        if position not in self.indices:
            self.indices[position] = self.write("index", (), self.values.new("index"), position)
        return self.indices[position]

    def current(self, array: int) -> int:
        """The version of an array to be read now."""
        if array in self.versions:
            return self.versions[array]
        if array in self.found.final_run:
            return self.current(self.found.runs[self.found.final_run[array]].base)
        return array

    def _store(self, p: int, run: int, value: int) -> None:
        base = self.found.runs[run].base
        after = self.values.new("array", self.values.lengths[base])
        args = self.current(base), self.operand(self.source[p].args[1]), self.operand(value)
        self.versions[base] = self.write("store", args, after)


class _LoopWriting:
    """The loop of one repeated kind."""

    def __init__(self, outer: _BlockWriting, number: int) -> None:
        self.outer, self.number, self.values = outer, number, outer.values
        self.found, self.kind = outer.found, outer.found.kinds[number]
        self.index = self.values.new("index")
        self.instructions: list[Instruction] = []
        self.cache: dict[Any, int] = {}
        self.captured: dict[int, int] = {}  # values outside, and the parameters for them
        self.arrays: dict[int, int] = {}  # arrays that are stored into, and their present version inside

    def write(self) -> None:
        """Write the loop into the outer block."""
        kind, outer = self.kind, self.outer
        first = kind.components[0]
        bases = list(dict.fromkeys(self.found.runs[run].base for run, _, _ in first.stores))
        initial = [outer.current(base) for base in bases]
        exports = sorted(kind.exports)
        count = len(kind.components)
        for _ in exports:
            initial.append(outer.write("empty", (), self.values.new("array", count), count))
        parameters = [self.values.new("array", self.values.lengths[a]) for a in initial]
        self.arrays = dict(zip(bases, parameters, strict=False))
        exported = parameters[len(bases) :]
        carry = []
        if kind.initial is not None:
            initial.append(outer.operand(kind.initial))
            carry.append(self.values.like(initial[-1]))
        local = self._members(carry)
        for n, (run, _, _) in enumerate(first.stores):
            self._store(run, n, local, carry)
        for k, member in enumerate(exports):
            exported[k] = self._exported(exported[k], local[member])
        results = [*(self.arrays[base] for base in bases), *exported, *(local[-1:] if carry else ())]
        inner = self.index, *parameters, *carry, *self.captured.values()
        body = Block(inner, tuple(self.instructions), tuple(results))
        out = [self.values.new("array", self.values.lengths[a]) for a in parameters]
        outer.versions |= dict(zip(bases, out, strict=False))
        outer.exports |= {(self.number, m): o for m, o in zip(exports, out[len(bases) :], strict=True)}
        if carry:
            out.append(self.found.instructions[kind.components[-1].members[-1]].out[0])
        args = *initial, *self.captured
        outer.instructions.append(Instruction("for", args, tuple(out), For(count, body, len(initial))))
        outer.ready.update(out)

    def _members(self, carry: list[int]) -> list[int]:
        """Write the operations; returns their values inside the loop."""
        local: list[int] = []
        for n, p in enumerate(self.kind.components[0].members):
            i = self.found.instructions[p]
            if i.op == "load":
                positions = [self._entry(c, n)[1] for c in self.kind.components]
                local.append(self._load(self.found.entries[i.out[0]][0], positions))
                continue
            columns = zip(
                *([self.found.value(a) for a in self._instruction(c, n).args] for c in self.kind.components),
                strict=True,
            )
            codes = self.kind.codes[n][1:]
            args = [
                self._operand(code, column, local, carry) for code, column in zip(codes, columns, strict=True)
            ]
            local.append(self._write(i.op, args, self.values.kinds[i.out[0]], i.data))
        return local

    def _instruction(self, component: Component, member: int) -> Instruction:
        return self.found.instructions[component.members[member]]

    def _entry(self, component: Component, member: int) -> tuple[Stretch, int]:
        return self.found.entries[self._instruction(component, member).out[0]]

    def _operand(self, code: Any, column: Sequence[int], local: Sequence[int], carry: Sequence[int]) -> int:
        """What an operation reads; column: the value for each component."""
        what, detail, member = code
        if what == "member":
            return local[detail]
        if what == "carried":
            return carry[0]
        if what == "constant":
            return self._constant([self.found.constants[value] for value in column])
        if what == "entry":
            return self._load(detail, [self.found.entries[value][1] for value in column])
        if what == "kind":
            positions = [self.found.found_in[value][1] for value in column]
            number = self._load(Stretch(self.outer.exports[detail, member], None), positions)
            is_real = self.values.kinds[column[0]] == "real"
            return number if is_real else self._write("ne", [number, self._constant([0.0])], "bool")
        return self._outside(self.outer.operand(detail))

    def _store(self, run: int, n: int, local: Sequence[int], carry: Sequence[int]) -> None:
        stores = [c.stores[n] for c in self.kind.components]
        code = self.kind.codes[len(self.kind.components[0].members) + n][1]
        value = self._operand(code, [v for _, _, v in stores], local, carry)
        base, positions = self.found.runs[run].base, [position for _, position, _ in stores]
        index = self._position(positions, self.found.runs[run].start)
        self.arrays[base] = self._stored([self.arrays[base], index, value])

    def _exported(self, array: int, value: int) -> int:
        """The array with the value stored at the number of the component."""
        if self.values.kinds[value] == "bool":
            value = self._write("select", [value, self._constant([1.0]), self._constant([0.0])], "real")
        return self._stored([array, self.index, value])

    def _stored(self, args: Sequence[int]) -> int:
        after = self._write("store", args, "array")
        self.values.lengths[after] = self.values.lengths[args[0]]
        return after

    def _load(self, stretch: Stretch, positions: Sequence[int]) -> int:
        array, index = self._array(stretch.array), self._position(positions, stretch.start)
        return self._once(("load", array, index), lambda: self._write("load", [array, index], "real"))

    def _array(self, array: int) -> int:
        """An array inside the loop: one that it stores into, or a captured one."""
        return self.arrays[array] if array in self.arrays else self._outside(self.outer.current(array))

    def _outside(self, value: int) -> int:
        """The parameter for a value of the outer block."""
        if value not in self.captured:
            self.captured[value] = self.values.like(value)
        return self.captured[value]

    def _constant(self, numbers: Sequence[float]) -> int:
        """A constant, or an entry of a table of them."""
        key = Entries(numbers) if len({repr(x) for x in numbers}) > 1 else repr(numbers[0])
        if isinstance(key, str):
            return self._once(key, lambda: self._write("const", [], "real", float(numbers[0])))
        return self._once(key, lambda: self._write("table", [self.index], "real", key))

    def _position(self, positions: Sequence[int], start: int | None = None) -> int:
        """The index of these positions behind `start`."""
        index = self._place(positions)
        if start is None:
            return index
        outside = self._outside(self.outer.operand(start))
        if not any(positions):
            return outside
        return self._once(("behind", outside, index), lambda: self._write("iadd", [outside, index], "index"))

    def _place(self, positions: Sequence[int]) -> int:
        """Positions as an index: constant, linear in the number of the component, or from a table."""
        first = positions[0]
        stride = positions[1] - first if len(positions) > 1 else 0
        if any(p != first + k * stride for k, p in enumerate(positions)) or stride < 0 or first < 0:
            key = Entries(positions)
            return self._once(("at", key), lambda: self._write("index_table", [self.index], "index", key))
        index = self.index if stride else self._whole(first)
        if stride > 1:
            index = self._once(
                ("times", stride), lambda: self._write("imul", [self.index, self._whole(stride)], "index")
            )
        if stride and first:
            start = index
            index = self._once(
                ("from", first, stride), lambda: self._write("iadd", [start, self._whole(first)], "index")
            )
        return index

    def _whole(self, number: int) -> int:
        return self._once(("index", number), lambda: self._write("index", [], "index", number))

    def _once(self, key: Any, make: Callable[[], int]) -> int:
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]

    def _write(self, op: str, args: Sequence[int], kind: Any, data: Any = None) -> int:
        out = self.values.new(kind)
        self.instructions.append(Instruction(op, tuple(args), (out,), data))
        return out
