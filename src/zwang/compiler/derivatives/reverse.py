"""The vector-Jacobian product of a program with loops, branches and arrays, in reverse mode.

The program is executed again on traced values. Where it is inside a loop or branch, the values read from
arrays that change later, the carry and the results of inner loops are stored on tapes; the reverse sweep
computes all others again from these, runs every loop backwards, and accumulates the adjoints. An array has an
adjoint array: a load adds to it, a store takes from it. Source: Griewank, Walther, Evaluating Derivatives
(2008), Chapters 3, 12.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.compiler.derivatives.activity import (
    LEAVES,
    ArrayIdentity,
    accessed_arrays,
    active_values,
    carried,
    instructions_of,
    needed_values,
    settled_loads,
)
from zwang.compiler.derivatives.differentiate import PARTIALS
from zwang.compiler.ir.graph import RULES, Node
from zwang.compiler.ir.node_rules import add, bounds, gather_table, mul, neg, select
from zwang.compiler.ir.program import Block, For, Instruction, Program, blocks_of
from zwang.errors import TraceError
from zwang.scalar import ActiveIndices, cond, empty, fori_loop, lane_maximum, where, while_loop, zeros
from zwang.scalar.backend import current_backend

SINGULAR = frozenset({"div", "sqrt", "asin", "acos", "log", "acosh", "atanh", "pow", "atan2"})
"""Operations whose partial derivatives may be infinite where their result is not selected."""
INDEX_OPERATIONS: dict[str, Callable[..., Any]] = {
    "iadd": operator.add,
    "isub": operator.sub,
    "imul": operator.mul,
}


class Vjp(NamedTuple):
    """A program, the numbers of the inputs by which it is differentiated, and what its sweeps have to
    know.
    """

    program: Program
    inputs: tuple[int, ...]
    active: set[int]
    needed: set[int]
    settled: set[int]
    arrays: ArrayIdentity
    taped: dict[int, list[int]]

    @classmethod
    def of(cls, program: Program, names: Collection[str]) -> Vjp:
        """The product for the inputs of these names. Raises TraceError for a loop that repeats until a
        condition holds, or a compacted array inside of a loop, if a derivative passes through it.
        """
        inputs = tuple(k for k, port in enumerate(program.inputs) if port.name in names)
        active = active_values(program, inputs)
        settled = settled_loads(program)
        needed = needed_values(program, active, settled)
        taped = {id(program.body): list[int]()}
        for block, instruction in instructions_of(program.body):
            _check_reversible(program, block, instruction, active, needed)
            for inner in blocks_of(instruction):
                taped[id(inner)] = _leaves(program, instruction, inner, needed - settled)
        return cls(program, inputs, active, needed, settled, ArrayIdentity(program), taped)

    def __call__(self, inputs: Sequence[np.ndarray], cotangents: Sequence[Any]) -> list[np.ndarray]:
        """The products w^T J (size,) by each of the inputs, for the values of all inputs and the cotangents w
        of all outputs.
        """
        return _ReverseSweep(self, inputs).product(cotangents)


def _check_reversible(
    program: Program, block: Block, instruction: Instruction, active: set[int], needed: set[int]
) -> None:
    """Raises TraceError for an instruction that has no reverse."""
    if instruction.op == "while" and active.intersection(instruction.out):
        raise TraceError("the result of a loop until a condition holds has no derivative in reverse mode")
    if block is not program.body and instruction.op in ("compact", "input_array"):
        raise TraceError(f"the operation {instruction.op!r} inside a loop has no reverse")


def _leaves(program: Program, instruction: Instruction, block: Block, needed: set[int]) -> list[int]:
    """The values of an inner block that the reverse sweep reads from a tape."""
    skipped = 0 if instruction.op == "cond" else len(block.parameters) - len(instruction.args)
    kept = block.parameters[skipped : skipped + carried(instruction)]
    found = [p for p in kept if p in needed]
    for i in block.instructions:
        if i.op in LEAVES:
            found += [out for out in i.out if out in needed]
    return [value for value in found if program.kinds[value] in ("real", "bool")]


class _Place(NamedTuple):
    """Where the sweep is: the number of the iteration among all of the enclosing loops, and their count."""

    number: Any = 0
    count: int = 1


class _ReverseSweep:
    """One execution of a program and of its reverse."""

    def __init__(self, vjp: Vjp, inputs: Sequence[np.ndarray]) -> None:
        self.v, self.inputs = vjp, inputs
        self.kinds, self.lengths = vjp.program.kinds, vjp.program.lengths
        self.tapes: dict[int, Any] = {}
        self.gradient: dict[tuple[int, int], Any] = {}

    def product(self, cotangents: Sequence[Any]) -> list[np.ndarray]:
        body, env = self.v.program.body, dict[int, Any]()
        self._make_tapes(body, 1)
        self._forward(body, env, _Place())
        bars: dict[int, Any] = {}
        for value, bar in zip(body.results, cotangents, strict=True):
            self._accumulate(bars, value, bar)
        self._backward(body, env, bars, {}, _Place())
        ports = self.v.program.inputs
        return [
            np.array([self.gradient.get((n, k), 0) for k in range(ports[n].size)], dtype=object)
            for n in self.v.inputs
        ]

    def _make_tapes(self, block: Block, count: int) -> None:
        for instruction in block.instructions:
            times = instruction.data.count if isinstance(instruction.data, For) else 1
            for inner in blocks_of(instruction):
                if size := len(self.v.taped[id(inner)]) * count * times:
                    self.tapes[id(inner)] = empty((size,))
                self._make_tapes(inner, count * times)

    def _tapes_inside(self, instruction: Instruction) -> list[int]:
        """The tapes of the blocks of a loop or branch."""
        inner = [b for b in blocks_of(instruction)]
        inner += [b for block in inner for _, i in instructions_of(block) for b in blocks_of(i)]
        return [id(b) for b in inner if id(b) in self.tapes]

    # ------------------------------------------------------------------------------------ execution

    def _forward(self, block: Block, env: dict[int, Any], place: _Place) -> None:
        """Execute a block, whose parameters are known, and store what the reverse sweep reads."""
        self._record(block, env, block.parameters, place)
        for instruction in block.instructions:
            if blocks_of(instruction):
                self._control(instruction, env, place)
            else:
                env[instruction.out[0]] = self._evaluated(instruction, env)
            self._record(block, env, instruction.out, place)

    def _record(self, block: Block, env: Mapping[int, Any], values: Sequence[int], place: _Place) -> None:
        taped = self.v.taped[id(block)]
        for value in values:
            if value in taped:
                x = where(env[value], 1.0, 0.0) if self.kinds[value] == "bool" else env[value]
                position = place.number * len(taped) + taped.index(value)
                self.tapes[id(block)] = self.tapes[id(block)].set(position, x)

    def _evaluated(self, instruction: Instruction, env: Mapping[int, Any]) -> Any:
        """The result of an instruction that is not control flow."""
        op, data = instruction.op, instruction.data
        args = [env[a] for a in instruction.args]
        own = getattr(self, f"_{op}", None)
        if own is not None:
            return own(data, *args)
        return (INDEX_OPERATIONS.get(op) or RULES[op])(*args)

    def _const(self, data: float) -> Any:
        return data

    _index = _const

    def _true(self, _: None) -> bool:
        return True

    def _false(self, _: None) -> bool:
        return False

    def _input(self, data: tuple[int, int]) -> Any:
        return self.inputs[data[0]][data[1]]

    def _input_array(self, data: tuple[int, int, int]) -> Any:
        number, first, length = data
        array = empty((length,))
        for k in range(length):
            array = array.set(k, self.inputs[number][first + k])
        return array

    def _table(self, data: Any, i: Any) -> Any:
        return gather_table(data, i)

    _index_table = _table

    def _array(self, data: int) -> Any:
        return zeros((data,))

    def _empty(self, data: int) -> Any:
        return empty((data,))

    def _load(self, _: None, array: Any, i: Any) -> Any:
        return array[i]

    def _store(self, _: None, array: Any, i: Any, value: Any) -> Any:
        return array.set(i, value)

    def _gather(self, _: None, array: Any, position: Any) -> Any:
        return array.gather(position)

    def _scatter(self, _: None, array: Any, position: Any, value: Any) -> Any:
        return array.scatter(position, value)

    def _compact(self, _: int, flags: Any, end: Any) -> Any:
        return ActiveIndices(flags, end)

    def _active_index(self, _: int, items: Any, position: Any) -> Any:
        return items[position]

    def _active_count(self, _: int, items: Any) -> Any:
        return items.count

    def _lane_maximum(self, data: int, x: Any) -> Any:
        return lane_maximum(x, data)

    def _lane(self, _: None) -> Any:
        backend = current_backend()
        assert backend is not None
        return backend.lane_number()

    def _held(self, _: None, x: Any) -> Any:
        return x

    def _control(self, instruction: Instruction, env: dict[int, Any], place: _Place) -> None:
        """Execute a loop or branch; its tapes are carried along."""
        tapes = self._tapes_inside(instruction)
        if instruction.op == "cond":
            results = self._branch(instruction, env, place, tapes)
        elif instruction.op == "while":
            results = self._repeated(instruction, env)
        else:
            n = instruction.data.carried

            def body(i: Any, inner: _Place, carry: list[Any]) -> list[Any]:
                block = instruction.data.body
                values = self._entered(block, (i, *carry[:n], *(env[a] for a in instruction.args[n:])))
                self.tapes.update(zip(tapes, carry[n:], strict=True))
                self._forward(block, values, inner)
                return [*(values[r] for r in block.results), *(self.tapes[t] for t in tapes)]

            start = [*(env[a] for a in instruction.args[:n]), *(self.tapes[t] for t in tapes)]
            results = _loop(instruction, env, place, body, start, False)
        self.tapes.update(zip(tapes, results[len(instruction.out) :], strict=True))
        env.update(zip(instruction.out, results, strict=False))

    def _entered(self, block: Block, arguments: Sequence[Any]) -> dict[int, Any]:
        return dict(zip(block.parameters, arguments, strict=True))

    def _branch(
        self, instruction: Instruction, env: Mapping[int, Any], place: _Place, tapes: Sequence[int]
    ) -> list[Any]:
        """The results of a branch, and its tapes. The arrays that it changes are operands."""
        changed = {self.v.arrays.of(out) for out in instruction.out if self.kinds[out] == "array"}
        captured = instruction.args[1:]
        chosen = [
            k for k, a in enumerate(captured)
            if self.kinds[a] == "array" and self.v.arrays.of(a) in changed
        ]  # fmt: skip

        def run(block: Block) -> Callable[..., list[Any]]:
            def branch(*operands: Any) -> list[Any]:
                arguments = [env[a] for a in captured]
                for k, array in zip(chosen, operands, strict=False):
                    arguments[k] = array
                self.tapes.update(zip(tapes, operands[len(chosen) :], strict=True))
                values = self._entered(block, arguments)
                self._forward(block, values, place)
                return [*(values[r] for r in block.results), *(self.tapes[t] for t in tapes)]

            return branch

        data = instruction.data
        operands = [*(env[captured[k]] for k in chosen), *(self.tapes[t] for t in tapes)]
        return cond(env[instruction.args[0]], run(data.then), run(data.otherwise), *operands)

    def _repeated(self, instruction: Instruction, env: Mapping[int, Any]) -> list[Any]:
        """The results of a `while`, whose blocks have no tapes."""
        n = instruction.data.carried
        captured = [env[a] for a in instruction.args[n:]]

        def run(block: Block) -> Callable[[list[Any]], list[Any]]:
            def executed(carry: list[Any]) -> list[Any]:
                values = self._entered(block, [*carry, *captured])
                self._forward(block, values, _Place())
                return [values[r] for r in block.results]

            return executed

        condition, body = run(instruction.data.condition), run(instruction.data.body)
        start = [env[a] for a in instruction.args[:n]]
        return while_loop(lambda carry: condition(carry)[0], body, start)

    # ------------------------------------------------------------------------------------ reverse

    def _again(self, block: Block, env: dict[int, Any], place: _Place) -> None:
        """Compute the needed values of an inner block, from its parameters and its tape."""
        taped = self.v.taped[id(block)]
        for k, value in enumerate(taped):
            x = self.tapes[id(block)][place.number * len(taped) + k]
            env[value] = x > 0.5 if self.kinds[value] == "bool" else x
        for instruction in block.instructions:
            again = instruction.op not in LEAVES or instruction.out[0] in self.v.settled
            if again and instruction.op not in ("store", "scatter", "array", "empty"):
                if instruction.out[0] in self.v.needed:
                    env[instruction.out[0]] = self._evaluated(instruction, env)

    def _backward(
        self,
        block: Block,
        env: Mapping[int, Any],
        bars: dict[int, Any],
        arrays: dict[int, Any],
        place: _Place,
    ) -> None:
        """Add the adjoints of the results of a block to those of its parameters and of all arrays."""
        for instruction in reversed(block.instructions):
            if blocks_of(instruction):
                self._reverse_control(instruction, env, bars, arrays, place)
            elif instruction.op in ("load", "gather", "store", "scatter"):
                self._reverse_access(instruction, env, bars, arrays)
            elif instruction.op == "input_array" and instruction.out[0] in self.v.active:
                number, first, length = instruction.data
                adjoint = self._adjoint(arrays, instruction.out[0])
                for k in range(length):
                    self._add_gradient((number, first + k), adjoint[k])
            elif instruction.out[0] in self.v.active and instruction.out[0] in bars:
                bar = bars.pop(instruction.out[0])
                if instruction.op == "input":
                    self._add_gradient(instruction.data, bar)
                else:
                    self._reverse_operation(instruction, env, bars, bar)

    def _add_gradient(self, element: tuple[int, int], bar: Any) -> None:
        self.gradient[element] = add(self.gradient.get(element, 0), bar)

    def _accumulate(self, bars: dict[int, Any], value: int, bar: Any) -> None:
        if value in self.v.active and not _is_zero(bar):
            bars[value] = add(bars[value], bar) if value in bars else bar

    def _reverse_operation(
        self, instruction: Instruction, env: Mapping[int, Any], bars: dict[int, Any], bar: Any
    ) -> None:
        """The chain rule of an operation on real numbers."""
        op, args = instruction.op, instruction.args
        if op == "select":
            chosen = env[args[0]]
            self._accumulate(bars, args[1], select(chosen, bar, 0))
            self._accumulate(bars, args[2], select(chosen, 0, bar))
        elif op in ("add", "sub", "neg"):
            signs = {"add": (1, 1), "sub": (1, -1), "neg": (-1,)}[op]
            for a, s in zip(args, signs, strict=True):
                self._accumulate(bars, a, bar if s > 0 else neg(bar))
        else:
            values = [env[a] for a in args]
            y = RULES[op](*values)
            for a, rule in zip(args, PARTIALS[op], strict=True):
                if a in self.v.active:
                    part = mul(rule(y, *values), bar)
                    if op in SINGULAR:
                        part = where(RULES["eq"](bar, 0), 0, part)
                    self._accumulate(bars, a, part)

    def _adjoint(self, arrays: dict[int, Any], value: int) -> Any:
        """The adjoint array of an array, of zeros where nothing has been added."""
        name = self.v.arrays.of(value)
        if name not in arrays:
            arrays[name] = zeros((self.lengths[value],))
        return arrays[name]

    def _reverse_access(
        self, instruction: Instruction, env: Mapping[int, Any], bars: dict[int, Any], arrays: dict[int, Any]
    ) -> None:
        """Add the adjoint of a read element to that of the array; move that of a written one to its value."""
        op, x, out = instruction.op, instruction.args[0], instruction.out[0]
        reads = op in ("load", "gather")
        if out not in self.v.active or (reads and out not in bars):
            return
        name, adjoint, at = self.v.arrays.of(x), self._adjoint(arrays, x), env[instruction.args[1]]
        shared = op in ("load", "store")
        before = adjoint[at] if shared else adjoint.gather(at)
        if reads:
            after = add(before, bars.pop(out))
        else:
            self._accumulate(bars, instruction.args[2], before)
            after = 0.0
        arrays[name] = adjoint.set(at, after) if shared else adjoint.scatter(at, after)

    def _reverse_control(
        self, instruction: Instruction, env: Mapping[int, Any], bars: dict[int, Any], arrays: dict[int, Any],
        place: _Place,
    ) -> None:  # fmt: skip
        """The reverse of a loop or branch. Its state is the adjoints of the carry, of the captured values,
        and of the arrays outside.
        """
        if instruction.op == "while":
            return
        n, active = carried(instruction), self.v.active
        names = accessed_arrays(instruction, active, self.v.arrays)
        outs = [bars.pop(out, 0) if self.kinds[out] == "real" else 0 for out in instruction.out]
        if not names and all(_is_zero(bar) for bar in outs):
            return
        by_name = {self.v.arrays.of(v): v for v in self.lengths}
        adjoints = [self._adjoint(arrays, by_name[name]) for name in names]
        first = 1 if instruction.op == "cond" else n
        captured = [
            a for a in dict.fromkeys(instruction.args[first:]) if a in active and self.kinds[a] == "real"
        ]

        def inside(block: Block, values: dict[int, Any], at: _Place, results: Any, shared: Any) -> Any:
            """The adjoints after the reverse of a block: of its parameters, and of the arrays."""
            self._again(block, values, at)
            own, local = {}, dict(zip(names, shared, strict=True))
            for value, bar in zip(block.results, results, strict=True):
                self._accumulate(own, value, bar)
            self._backward(block, values, own, local, at)
            return own, [local[name] for name in names]

        state = (instruction, env, place, captured, outs, adjoints)
        of_carry, of_captured, adjoints = (
            self._reverse_branch(inside, *state)
            if instruction.op == "cond"
            else self._reverse_loop(inside, *state)
        )
        for a, bar in zip(instruction.args[:n], of_carry, strict=False):
            self._accumulate(bars, a, bar)
        for a, bar in zip(captured, of_captured, strict=True):
            self._accumulate(bars, a, bar)
        arrays.update(zip(names, adjoints, strict=True))

    def _reverse_branch(
        self, inside: Callable[..., Any], instruction: Instruction, env: Mapping[int, Any], place: _Place,
        captured: Sequence[int], outs: Sequence[Any], adjoints: Sequence[Any],
    ) -> tuple[list[Any], list[Any], list[Any]]:  # fmt: skip
        def run(block: Block) -> Callable[..., list[Any]]:
            def branch(*shared: Any) -> list[Any]:
                values = {
                    p: env[a] for p, a in zip(block.parameters, instruction.args[1:], strict=True) if a in env
                }
                own, after = inside(block, values, place, outs, shared)
                return [*_sums(own, block.parameters, instruction.args[1:], captured), *after]

            return branch

        data = instruction.data
        found = cond(env[instruction.args[0]], run(data.then), run(data.otherwise), *adjoints)
        return [], found[: len(captured)], found[len(captured) :]

    def _reverse_loop(
        self, inside: Callable[..., Any], instruction: Instruction, env: Mapping[int, Any], place: _Place,
        captured: Sequence[int], outs: Sequence[Any], adjoints: Sequence[Any],
    ) -> tuple[list[Any], list[Any], list[Any]]:  # fmt: skip
        block, n = instruction.data.body, instruction.data.carried
        kept = block.parameters[1 : 1 + n]
        moving = [k for k in range(n) if self.kinds[kept[k]] == "real" and kept[k] in self.v.active]

        def body(i: Any, inner: _Place, state: list[Any]) -> list[Any]:
            before = state[: len(moving)]
            totals, shared = (
                state[len(moving) : len(moving) + len(captured)],
                state[len(moving) + len(captured) :],
            )
            values = {block.parameters[0]: i}
            pairs = zip(block.parameters[1 + n :], instruction.args[n:], strict=True)
            values |= {p: env[a] for p, a in pairs if a in env}
            results: list[Any] = [0] * n
            for k, bar in zip(moving, before, strict=True):
                results[k] = bar
            own, after = inside(block, values, inner, results, shared)
            sums = _sums(own, block.parameters[1 + n :], instruction.args[n:], captured)
            return [
                *(own.get(kept[k], 0.0) for k in moving),
                *(add(x, y) for x, y in zip(totals, sums, strict=True)),
                *after,
            ]

        start = [*(1.0 * outs[k] for k in moving), *(0.0 for _ in captured), *adjoints]
        found = _loop(instruction, env, place, body, start, True)
        of_carry: list[Any] = [0] * n
        for k, bar in zip(moving, found, strict=False):
            of_carry[k] = bar
        return (
            of_carry,
            found[len(moving) : len(moving) + len(captured)],
            found[len(moving) + len(captured) :],
        )


def _sums(
    own: Mapping[int, Any], parameters: Sequence[int], arguments: Sequence[int], captured: Sequence[int]
) -> list[Any]:
    """The adjoints of captured values: each the sum over the parameters that stand for it."""
    found: dict[int, Any] = dict.fromkeys(captured, 0)
    for p, a in zip(parameters, arguments, strict=True):
        if a in found and p in own:
            found[a] = add(found[a], own[p])
    return [found[a] for a in captured]


def _loop(
    instruction: Instruction, env: Mapping[int, Any], place: _Place, body: Callable[..., list[Any]],
    start: list[Any], backwards: bool,
) -> list[Any]:  # fmt: skip
    """The carry after a `for`, run forwards or backwards; body(index, place, carry)."""
    data = instruction.data
    captured = instruction.args[data.carried :]
    count = place.count * data.count

    def at(i: Any, local: Any, carry: list[Any]) -> list[Any]:
        return body(i, _Place(place.number * data.count + local, count), carry)

    if data.over_active:
        items = env[captured[0]]
        if backwards:
            return fori_loop(0, items.count, lambda p, c: at(items[p], items[p], c), start, reverse=True)
        backend = current_backend()
        assert backend is not None
        return backend.active_loop(items.items, items.flags.shape[0], lambda i, c: at(i, i, c), start)
    if data.dynamic:
        lower, upper = env[captured[0]], env[captured[1]]
        return fori_loop(
            lower, upper, lambda i, c: at(i, i - bounds(i)[0], c), start, reverse=data.reverse != backwards
        )
    return fori_loop(0, data.count, lambda i, c: at(i, i, c), start, reverse=backwards, unroll=False)


def _is_zero(x: Any) -> bool:
    return not isinstance(x, Node) and x == 0
