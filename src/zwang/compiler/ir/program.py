"""The program: what the tracer hands to every back end (LLVM, C, PTX).

A program is data: blocks of instructions in single-assignment form over numbered values, in an order in which
every value is defined before it is used. Control flow is structured: an instruction may own blocks.

Kinds of values
    real    one floating-point number a lane
    bool    one truth value a lane
    index   one integer shared by all lanes (loop counters, table positions)
    array   a scratch array of reals, one a lane; written in place, used linearly (the old value dies with a store)

Operations, with `args -> out` and `data`
    const                () -> real             data: float
    input                () -> real             data: (input number, element number)
    add sub mul div      (a, b) -> real
    fma fms fnma         (a, b, c) -> real      a*b+c, a*b-c, c-a*b, each rounded once
    neg abs sqrt floor   (a) -> real
    sin cos tan asin acos exp log   (a) -> real
    atan2 pow copysign   (a, b) -> real
    min max              (a, b) -> real         NaN if either is, as numpy.minimum does; of equals, the second
    lt le eq ne          (a, b) -> bool         ordered, so false on NaN, but ne, which is true on NaN
    and or xor           (p, q) -> bool
    not                  (p) -> bool
    true false           () -> bool
    select               (p, a, b) -> real|bool    a where p else b; no arithmetic on the value not taken
    index                () -> index            data: int
    iadd isub imul       (i, j) -> index
    table                (i) -> real            data: tuple of floats; a constant table, read at a uniform index
    itable               (i) -> index           data: tuple of ints
    array                () -> array            data: length; filled with zeros
    blank                () -> array            data: length; filled with nothing that may be read
    load                 (x, i) -> real         element i of array x
    store                (x, i, a) -> array     array x with element i set to a
    gather               (x, p) -> real         element p of array x, each lane's own; p is a whole number, outside x the nearest inside, of NaN 0
    scatter              (x, p, a) -> array     array x with element p, each lane's own and found likewise, set to a
    highest              (p) -> index           data: int; the highest whole number p among the lanes that count, from 0 to data, of NaN 0
    bit                  (a) -> bool            data: int; whether that bit of a's representation is set, 0 lowest
    bit_and bit_or       (a) -> real            data: int; on the 64 (float32: 32) bits of a
    bit_add              (a) -> real            data: int; modulo 2**64 (2**32)
    shift_left shift_right   (a) -> real        data: int; filling with zero bits
    choose               (x, n) -> array        data: length of x; the indices below n at which x is above 0 (in some lane that counts), and, last, their number
    pick                 (x, i) -> index        data: the highest it may be; entry i of a list of `choose`, 0 behind the last
    count                (x) -> index           data: the highest it may be; how many entries a list of `choose` has
    while                (carry..., captured...) -> carry...   data: While(condition, body, carried)
    when                 (p, captured...) -> results...        data: When(then, otherwise)
    for                  (carry..., captured...) -> carry...   data: For(count, body, carried)

In `while`, the condition block has the parameters (carry..., captured...) and one bool result; the body has the
same parameters and the carry as results. A lane whose condition is false keeps its carry, bit for bit, while other
lanes go on; the loop ends when no lane wants another turn. In `when`, both blocks have the captured values as
parameters and the same results; each is run if any lane wants it, and each lane takes the results of its own
branch. In `for`, the body has the parameters (index, carry..., captured...) and the carry as results; the indices are those below
the count, or those in a list of `choose`, or those from one captured index up to, but without, another.
An array may be carried; lanes that are done do not write to it.

The operations on bits are what elementary functions are made of. They depend on the type: only `elementary.expand`
writes them, into a program that is then for that type alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

Kind = Literal["real", "bool", "index", "array"]


@dataclass(frozen=True)
class Instruction:
    """One operation: `out` are the numbers of the values that it defines, `args` of those that it reads."""

    op: str
    args: tuple[int, ...]
    out: tuple[int, ...]
    data: Any = None


@dataclass(frozen=True)
class Block:
    """Instructions in order, between the values that come in and the values that go out."""

    parameters: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class While:
    condition: Block
    body: Block
    carried: int


@dataclass(frozen=True)
class Cond:
    then: Block
    otherwise: Block
    rare: bool = False  # `then` is hardly ever wanted: keep its code out of the way


@dataclass(frozen=True)
class For:
    count: int  # of turns; with the following, at most
    body: Block
    carried: int
    chosen: bool = False  # the first captured value is a list of `choose`: only those indices
    spans: bool = False  # the first two captured values are indices: from the one, below the other
    backwards: bool = False  # of a span: from the other end


@dataclass(frozen=True)
class Port:
    """A named array at the door: its flat size per world. Names are opaque text, never identifiers.

    `shape` is that of one world's array, for whoever calls the program; back ends need the size only.
    """

    name: str
    size: int
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Program:
    """A whole function: flat inputs to flat outputs, one world a lane.

    `body` has no parameters (inputs are read by `input` instructions); its results are the elements of all outputs,
    one after the other. `kinds` gives the kind of every value, and for arrays `lengths` their length.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    body: Block
    kinds: dict[int, Kind]
    lengths: dict[int, int]


def blocks_of(instruction: Instruction) -> tuple[Block, ...]:
    """The blocks that an instruction owns."""
    data = instruction.data
    if isinstance(data, While):
        return (data.condition, data.body)
    if isinstance(data, Cond):
        return (data.then, data.otherwise)
    return (data.body,) if isinstance(data, For) else ()


def with_blocks(instruction: Instruction, change: Callable[[Block], Block]) -> Instruction:
    """The instruction with each of its blocks changed."""
    data = instruction.data
    if isinstance(data, While):
        return replace(
            instruction, data=replace(data, condition=change(data.condition), body=change(data.body))
        )
    if isinstance(data, Cond):
        return replace(
            instruction, data=replace(data, then=change(data.then), otherwise=change(data.otherwise))
        )
    if isinstance(data, For):
        return replace(instruction, data=replace(data, body=change(data.body)))
    return instruction
