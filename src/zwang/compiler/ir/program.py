"""The intermediate representation: the program that the frontend produces and that passes and backends read.

A program is data: blocks of instructions in static single-assignment form over numbered values. Every value
is defined before it is used. Control flow is structured: a loop or conditional instruction owns its blocks.

Kinds of values
    real    one floating-point number per lane
    bool    one truth value per lane
    index   one integer shared by all lanes (loop counters, positions in tables)
    array   a mutable array of reals, one array per lane; it is updated in place and used linearly:
            after a store the previous version may not be read

Operations, written as `arguments -> result`, with the instruction's `data`
    const            () -> real             data: float
    input            () -> real             data: (input number, element number)
    input_array      () -> array            data: (input number, first element, length); a copy of these
    add sub mul div  (a, b) -> real
    fma fms fnma     (a, b, c) -> real      a*b+c, a*b-c, c-a*b, each rounded once
    neg abs sqrt floor   (a) -> real
    sin cos tan asin acos exp log   (a) -> real
    sinh cosh tanh sech asinh acosh atanh   (a) -> real
    atan2 pow copysign   (a, b) -> real
    held             (a) -> real            a, without its derivative; only in programs to be differentiated
    min max          (a, b) -> real         NaN if either is NaN; of equal values the second
    lt le eq ne      (a, b) -> bool         false on NaN, except ne, which is true on NaN
    and or xor       (p, q) -> bool
    not              (p) -> bool
    true false       () -> bool
    select           (p, a, b) -> real|bool a where p, else b
    index            () -> index            data: int
    iadd isub imul   (i, j) -> index
    table            (i) -> real            data: tuple of floats; an entry of a constant table
    index_table      (i) -> index           data: tuple of ints; an entry of a constant table of indices
    array            () -> array            data: length; filled with zeros
    empty            () -> array            data: length; uninitialised
    load             (x, i) -> real         element i of array x
    store            (x, i, a) -> array     array x with element i set to a
    gather           (x, p) -> real         element p of array x, p may differ between lanes. The position
                                            is clamped to the array; a NaN position means element 0
    scatter          (x, p, a) -> array     array x with element p set to a; position as in gather
    lane             () -> real             the number of the lane in its vector register, from 0 on
    lane_maximum     (p) -> index           data: int; the maximum of the integers p over the active
                                            lanes, clamped to 0 ... data; NaN counts as 0
    bit              (a) -> bool            data: int; whether that bit of a is set; bit 0 is the lowest
    bit_and bit_or   (a) -> real            data: int; on the 64 (float32: 32) bits of a
    bit_add          (a) -> real            data: int; modulo 2**64 (2**32)
    shift_left shift_right   (a) -> real        data: int; shifts in zero bits
    compact          (x, n) -> array        data: length of x; the active indices: those i < n at
                                            which x[i] > 0 in some active lane, in increasing order;
                                            the last entry is their count
    active_index     (x, i) -> index        data: upper bound; entry i of a `compact` result, else 0
    active_count     (x) -> index           data: upper bound; number of entries of a `compact` result
    while            (carry..., captured...) -> carry...  data: While(condition, body, carried)
    cond             (p, captured...) -> results...  data: Cond(then, otherwise)
    for              (carry..., captured...) -> carry...  data: For(count, body, carried)

In `while`, the condition block has the parameters (carry..., captured...) and one bool result; the body has
the same parameters and returns the carry. A lane whose condition is false keeps its carry unchanged, bit
for bit, while other lanes continue; the loop ends when the condition is false in every lane. In `cond`,
both blocks have the captured values as parameters and results of the same kinds; a block is executed if any
lane takes it, and each lane uses the results of its own branch. In `for`, the body has the parameters
(index, carry..., captured...) and returns the carry. The indices are those below the count, or the entries
of a `compact` result, or those from one captured index (inclusive) to another (exclusive). An array may be
carried; lanes that have left a loop do not write to it.

The bit operations implement the elementary functions. They depend on the floating-point type, so only
`passes.expand` emits them, and its result is valid for that type only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

Kind = Literal["real", "bool", "index", "array"]
ARRAY_VERSIONS = frozenset({"store", "scatter", "for", "while", "cond"})
"""The operations whose results may be later versions of arrays that they read."""


@dataclass(frozen=True)
class Instruction:
    """One operation. `args` are the numbers of the values that it reads, `out` of those that it defines."""

    op: str
    args: tuple[int, ...]
    out: tuple[int, ...]
    data: Any = None


@dataclass(frozen=True)
class Block:
    """A sequence of instructions with the values that enter it (parameters) and leave it (results)."""

    parameters: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[int, ...]

    @cached_property
    def array_versions(self) -> dict[int, Instruction]:
        """The instruction that defines each later version of an array."""
        return {out: i for i in self.instructions if i.op in ARRAY_VERSIONS for out in i.out}


@dataclass(frozen=True)
class While:
    """The blocks of a `while`; the first `carried` arguments are the carry, the others are captured
    values.
    """

    condition: Block
    body: Block
    carried: int


@dataclass(frozen=True)
class Cond:
    """The two branches of a `cond`."""

    then: Block
    otherwise: Block
    rare: bool = False  # `then` is seldom executed: backends place its code out of line


@dataclass(frozen=True)
class For:
    """The body of a `for` and its range. The first `carried` arguments are the carry, the others are
    captured.
    """

    count: int  # number of iterations; an upper bound if `over_active` or `dynamic`
    body: Block
    carried: int
    over_active: bool = (
        False  # the first captured value is a `compact` result; the loop runs over its indices
    )
    dynamic: bool = (
        False  # the first two captured values are the lower (inclusive) and upper (exclusive) bound
    )
    reverse: bool = False  # a dynamic loop runs from its upper to its lower bound


@dataclass(frozen=True)
class Port:
    """A named input or output: its number of elements per world.

    `shape` is the shape of one world's array, which only callers need; backends use the size. Names are
    opaque text and never become identifiers in generated code. `largest`: if all numbers are integers, a
    bound of their absolute values, so that arrays of integers may hold them; otherwise 0.
    """

    name: str
    size: int
    shape: tuple[int, ...] = ()
    largest: int = 0


@dataclass(frozen=True)
class Program:
    """A function from flat inputs to flat outputs, evaluated for one world per lane.

    `body` has no parameters, since inputs are read by `input` instructions. Its results are the elements
    of all outputs in order, where an array stands for all of its own. `kinds` maps each value to its kind
    and `lengths` each array to its length.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    body: Block
    kinds: dict[int, Kind]
    lengths: dict[int, int]


CONTROL_FLOW = frozenset({"while", "cond", "for"})


def blocks_of(instruction: Instruction) -> tuple[Block, ...]:
    """The blocks that a control-flow instruction owns; empty for all others."""
    if instruction.op not in CONTROL_FLOW:  # most are not
        return ()
    data = instruction.data
    if isinstance(data, While):
        return (data.condition, data.body)
    return (data.then, data.otherwise) if isinstance(data, Cond) else (data.body,)


def with_blocks(instruction: Instruction, change: Callable[[Block], Block]) -> Instruction:
    """The instruction with `change` applied to each block that it owns."""
    if instruction.op not in CONTROL_FLOW:
        return instruction
    data = instruction.data
    if isinstance(data, While):
        return replace(
            instruction, data=replace(data, condition=change(data.condition), body=change(data.body))
        )
    if isinstance(data, Cond):
        return replace(
            instruction, data=replace(data, then=change(data.then), otherwise=change(data.otherwise))
        )
    return replace(instruction, data=replace(data, body=change(data.body)))


def captured_origin(block: Block, value: int) -> int | None:
    """The number of the block's parameter of which an array is a later version, or None for a new array."""
    while value not in block.parameters:
        producer = block.array_versions.get(value)
        if producer is None:
            return None
        if producer.op in ("store", "scatter"):
            value = producer.args[0]
        elif producer.op in ("for", "while"):
            value = producer.args[producer.out.index(value)]
        else:
            n, branches = producer.out.index(value), (producer.data.then, producer.data.otherwise)
            first, second = (captured_origin(branch, branch.results[n]) for branch in branches)
            if first is None or first != second:
                return None
            value = producer.args[1 + first]
    return block.parameters.index(value)


def merged_arrays(program: Program, instruction: Instruction) -> list[int]:
    """The array results of a `cond` that are no later version of one captured array: they get the elements of
    the array that the branch returns.
    """
    branches, found = blocks_of(instruction), []
    for n, out in enumerate(instruction.out):
        if program.kinds[out] == "array":
            origins = {captured_origin(branch, branch.results[n]) for branch in branches}
            if None in origins or len(origins) > 1:
                found.append(out)
    return found


def nonempty_ports(program: Program) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """The inputs and outputs that have elements, which are those that compiled code reads and writes.

    There is at least one input: a program without any gets a port of one unused element.
    """
    inputs = tuple(port for port in program.inputs if port.size)
    outputs = tuple(port for port in program.outputs if port.size)
    return inputs or (Port("", 1),), outputs
