"""Portable C99 source of a program: one function, which evaluates one world per call and allocates no memory.

The only external functions are sqrt, fma, fabs, floor and copysign of libm, which are exact. Hence the
results equal those of the other backends, bit for bit. Identifiers are formed from value numbers; the names
of inputs and outputs appear in a comment only, without special characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template

import numpy as np
import numpy.typing as npt

from zwang.compiler.backends.array_storage import ArrayStorage, array_length, array_storage
from zwang.compiler.ir.program import Block, Instruction, Port, Program, merged_arrays
from zwang.compiler.passes.expand import expand
from zwang.errors import CompileError
from zwang.scalar.arrays import Entries

FRAME = 1024
"""The bytes of the stack that a function has for its arguments, saved registers and inlined helpers."""
DIGITS = 16
"""Of the digest in the name of a constant table."""

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "eq": "==", "ne": "!="} | {
    "and": "&",
    "or": "|",
    "xor": "^",
    "iadd": "+",
    "isub": "-",
    "imul": "*",
}
_FORMATS = {
    "fma": "fma@({0}, {1}, {2})",
    "fms": "fma@({0}, {1}, -{2})",
    "fnma": "fma@(-{0}, {1}, {2})",
    "neg": "-{0}",
    "abs": "fabs@({0})",
    "sqrt": "sqrt@({0})",
    "floor": "floor@({0})",
    "copysign": "copysign@({0}, {1})",
    "min": "({0} < {1} || {0} != {0}) ? {0} : {1}",
    "max": "({0} > {1} || {0} != {0}) ? {0} : {1}",
    "not": "!{0}",
    "true": "1",
    "false": "0",
    "select": "{0} ? {1} : {2}",
    "load": "{0}[{1}]",
}
_BIT_OPERATIONS = {
    "bit_and": "bits & UINT{0}_C({1})",
    "bit_or": "bits | UINT{0}_C({1})",
    "bit_add": "bits + UINT{0}_C({1})",
    "shift_left": "bits << {2}",
    "shift_right": "bits >> {2}",
}


@dataclass(frozen=True)
class CFunction:
    """The C99 text of one function, to stand below `preamble` and its constant tables.

    tables: the texts of these by their names, which are those of equal tables of other functions, too.
    work: the number of elements of its argument `work`, the workspace for long arrays; 0 if it has none.
    stack: an upper bound of the bytes of its variables and arrays, as of code that is not optimised.
    """

    text: str
    tables: Mapping[str, str]
    work: int
    stack: int


def c_text(functions: Sequence[CFunction]) -> str:
    """The text of functions below their constant tables, each of which is written once."""
    tables = {name: text for function in functions for name, text in function.tables.items()}
    return "\n".join([*tables.values(), "", *(function.text for function in functions)])


def source(program: Program, name: str = "compute", dtype: str = "float64") -> str:
    """The C99 source of `void NAME(const double *in0, ..., double *out0, ...)`; for "float32" of floats.

    Each pointer refers to the flat array of one input or output of one world. Compile without contraction of
    expressions (gcc: -ffp-contract=off, which -std=c99 implies) and without -ffast-math. Raises CompileError
    for a name that is not a C identifier, or another dtype.
    """
    function = c_function(program, name, dtype)
    return "\n".join([*_comment(program), preamble(dtype), c_text([function])])


def c_function(
    program: Program,
    name: str,
    dtype: str = "float64",
    *,
    arguments: tuple[Sequence[str], Sequence[str]] | None = None,
    tables: str = "table",
    storage: str = "",
    longest_on_stack: int | None = None,
) -> CFunction:
    """One function of a C99 file, as that of `source`.

    arguments: the names of the inputs and outputs, by default in0, in1, ... and out0, out1, ...; none may be
    a letter with a number. An empty name omits an argument without elements. tables: the prefix of the names
    of its constant tables, the same for functions that share them. storage: "static" for a function of this
    file alone.
    longest_on_stack: arrays with more elements lie in a workspace, the last argument `work`; by default all
    are on the stack. Raises CompileError for a name that is not a C identifier, or another dtype.
    """
    for word in (name, tables):
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", word):
            raise CompileError(
                f"the function's name {word!r} is not a C identifier: use letters, digits and _"
            )
    if dtype not in ("float64", "float32"):
        raise CompileError(f"dtype is {dtype!r}; it must be 'float64' or 'float32'")
    program = expand(program, dtype)
    inputs, outputs = arguments or (
        [f"in{k}" for k in range(len(program.inputs))],
        [f"out{k}" for k in range(len(program.outputs))],
    )
    placed = ArrayStorage() if longest_on_stack is None else array_storage(program, longest_on_stack)
    text = _CWriter(program, dtype, inputs, tables, placed.offsets)
    text.block(program.body, [])
    starts = np.cumsum([0, *(port.size for port in program.outputs)])
    elements = text.elements(program.body.results)
    for output, port, start in zip(outputs, program.outputs, starts, strict=False):
        text.store_output(output, elements[start : start + port.size])
    pointers = [f"const {text.real} *{x}" for x in inputs if x]
    pointers += [f"{text.real} *{x}" for x in outputs if x] + [f"{text.real} *work"] * bool(placed.size)
    empty = [x for x, port in zip(outputs, program.outputs, strict=True) if port.size == 0]
    unused = [f"    (void){x};" for x in (*inputs, *empty) if x]
    head = f"{storage} void {name}({', '.join(pointers) or 'void'})".strip()
    lines = [head, "{", *unused, *text.lines, "}", ""]
    stack = text.size // 8 * text.stack_elements + 8 * text.variables + FRAME
    return CFunction("\n".join(lines), text.tables, placed.size, stack)


def _comment(program: Program) -> list[str]:
    rows = [
        "/* One call evaluates one world; arrays are flat, row by row, and may not overlap in part.",
        " *",
    ]
    for kind, ports in (("in", program.inputs), ("out", program.outputs)):
        rows += [f" * {kind}{k}[{port.size}]: {_sanitised(port)}" for k, port in enumerate(ports)]
    return [*rows, " */"]


def _sanitised(port: Port) -> str:
    """The name of a port without characters that could end a comment."""
    return re.sub(r"[^A-Za-z0-9_. -]", "_", port.name)[:60]


def preamble(dtype: str, functions: str | None = None) -> str:
    """Include directives, types and helper functions of a C file, from the template `c_preamble.c`.

    functions: their text, of which the helper functions that it does not call are left out.
    """
    real, word, bits = ("double", "uint64_t", 64) if dtype == "float64" else ("float", "uint32_t", 32)
    text = resources.files("zwang.compiler.backends").joinpath("c_preamble.c").read_text(encoding="utf-8")
    head, *helpers = text.split("\nstatic inline ")
    for helper in helpers:
        name = re.split(r"[ (]", helper)[1]
        if functions is None or f"{name}(" in functions:
            head += f"\nstatic inline {helper}"
    return Template(head).substitute(real=real, word=word, bits=bits)


def c_number(value: float, dtype: str) -> str:
    """A number of the type `real` as a C expression, with as many digits as identify it."""
    return c_numbers([value], dtype)[0]


def c_numbers(values: npt.ArrayLike, dtype: str) -> list[str]:
    """Numbers (n,) of the type `real` as C expressions, with as many digits as identify them."""
    with np.errstate(over="ignore"):
        numbers = np.asarray(values, dtype=dtype)
    if dtype == "float64":
        return [_literal(repr(x), "") for x in numbers.tolist()]
    return [_literal(str(x), "f") for x in numbers]


def _literal(text: str, suffix: str) -> str:
    """A number in Python's notation as a C expression."""
    if "n" in text:
        return {"nan": "(real)NAN", "inf": "(real)INFINITY"}.get(text, "(-(real)INFINITY)")
    text += suffix if "." in text or "e" in text else f".0{suffix}"
    return f"({text})" if text.startswith("-") else text


class _CWriter:
    """The lines of the function's body, and the C expression of each value."""

    def __init__(
        self,
        program: Program,
        dtype: str,
        inputs: Sequence[str],
        tables: str,
        places: Mapping[int, int],
    ) -> None:
        self.program, self.inputs, self.table_prefix, self.places = program, inputs, tables, places
        self.dtype, self.real = dtype, "double" if dtype == "float64" else "float"
        self.size = 64 if dtype == "float64" else 32
        self.suffix = "" if dtype == "float64" else "f"
        self.names: dict[int, str] = {}
        self.lines: list[str] = []
        self.tables: dict[str, str] = {}  # by name
        self.depth = 1
        self.variables, self.stack_elements = 0, 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, block: Block, arguments: Sequence[str]) -> list[str]:
        """Write a block whose parameters have these expressions; returns the expressions of its results."""
        self.names.update(zip(block.parameters, arguments, strict=True))
        for instruction in block.instructions:
            write = getattr(self, f"_{instruction.op}", None)
            if write is None:
                self._define(instruction, self._expression(instruction))
            else:
                write(instruction, [self.names[a] for a in instruction.args])
        return [self.names[r] for r in block.results]

    def _define(self, instruction: Instruction, expression: str) -> None:
        out = instruction.out[0]
        kind = {"real": "real", "bool": "int", "index": "int"}[self.program.kinds[out]]
        self.names[out] = f"v{out}"
        self.variables += 1
        self.line(f"const {kind} v{out} = {expression};")

    def _expression(self, instruction: Instruction) -> str:
        op, args = instruction.op, [self.names[a] for a in instruction.args]
        if op in _INFIX:
            return f"{args[0]} {_INFIX[op]} {args[1]}"
        if op in _FORMATS:
            return _FORMATS[op].replace("@", self.suffix).format(*args)
        if op in _BIT_OPERATIONS:
            return self._bit_operation(op, args[0], instruction.data)
        if op == "bit":
            return f"(int)(bits_of({args[0]}) >> {instruction.data} & 1u)"
        raise CompileError(f"the C backend does not support the operation {op!r}")

    def _bit_operation(self, op: str, arg: str, data: int) -> str:
        expression = _BIT_OPERATIONS[op].format(self.size, hex(data % 2**self.size), data)
        return f"of_bits((word)({expression.replace('bits', f'bits_of({arg})', 1)}))"

    # ---------------------------------------------------------------------------- constants, inputs, tables

    def _const(self, instruction: Instruction, args: list[str]) -> None:
        self.names[instruction.out[0]] = c_number(instruction.data, self.dtype)

    def _index(self, instruction: Instruction, args: list[str]) -> None:
        self.names[instruction.out[0]] = (
            str(instruction.data) if instruction.data >= 0 else f"({instruction.data})"
        )

    def _input(self, instruction: Instruction, args: list[str]) -> None:
        number, element = instruction.data
        self._define(instruction, f"{self.inputs[number]}[{element}]")

    def _input_array(self, instruction: Instruction, args: list[str]) -> None:
        self._declare_array(instruction)
        number, first, length = instruction.data
        source = f"{self.inputs[number]}[{first} + i]"
        self.line(f"for (int i = 0; i < {length}; ++i) a{instruction.out[0]}[i] = {source};")

    def elements(self, values: Sequence[int]) -> list[tuple[str, int | None]]:
        """The expression of each value and None; for an array, its name and the number of each element."""
        found: list[tuple[str, int | None]] = []
        for value in values:
            name = self.names[value]
            if self.program.kinds[value] == "array":
                found += [(name, i) for i in range(self.program.lengths[value])]
            else:
                found.append((name, None))
        return found

    def store_output(self, output: str, elements: Sequence[tuple[str, int | None]]) -> None:
        """Store the elements of one output; those of an array that fills it in a loop."""
        names = {name for name, i in elements if i is not None}
        if len(names) == 1 and [i for _, i in elements] == list(range(len(elements))):
            self.variables += 1
            self.line(f"for (int i = 0; i < {len(elements)}; ++i) {output}[i] = {names.pop()}[i];")
            return
        for k, (name, i) in enumerate(elements):
            self.line(f"{output}[{k}] = {name if i is None else f'{name}[{i}]'};")

    def _table(self, instruction: Instruction, args: list[str]) -> None:
        self._define(instruction, f"{self._constants('real', instruction.data)}[{args[0]}]")

    def _index_table(self, instruction: Instruction, args: list[str]) -> None:
        self._define(instruction, f"{self._constants('int', instruction.data)}[{args[0]}]")

    def _constants(self, kind: str, data: Entries) -> str:
        """The name of the constant array of these numbers, by its content."""
        name = f"{self.table_prefix}{kind}_{data.digest[:DIGITS]}"
        if name not in self.tables:
            values = data.numbers.tolist()
            texts = c_numbers(values, self.dtype) if kind == "real" else [str(i) for i in values]
            rows = [", ".join(texts[k : k + 8]) for k in range(0, len(texts), 8)]
            entries = ",\n    ".join(rows)
            self.tables[name] = f"static const {kind} {name}[{len(texts)}] = {{\n    {entries},\n}};"
        return name

    # ------------------------------------------------------------------------------------ mutable arrays

    def _array(self, instruction: Instruction, args: list[str]) -> None:
        out = instruction.out[0]
        self._empty(instruction, args)
        self.line(f"for (int i = 0; i < {instruction.data}; ++i) a{out}[i] = 0;")

    def _empty(self, instruction: Instruction, args: list[str]) -> None:
        self._declare_array(instruction)

    def _declare_array(self, instruction: Instruction) -> None:
        """Declare an array on the stack, or a pointer to its place in the workspace."""
        self._declare(instruction.out[0], array_length(instruction))

    def _declare(self, out: int, length: int) -> None:
        self.names[out] = f"a{out}"
        self.variables += 2  # the pointer, and the index of a loop over the array
        if out in self.places:
            self.line(f"real *const a{out} = work + {self.places[out]};")
            return
        self.stack_elements += length
        self.line(f"real a{out}[{length}];")

    def _compact(self, instruction: Instruction, args: list[str]) -> None:
        self._declare_array(instruction)
        out, count = instruction.out[0], instruction.data
        self.line(f"for (int i = 0; i <= {count}; ++i) a{out}[i] = 0;")
        append = f"a{out}[(int)a{out}[{count}]] = i; a{out}[{count}] += 1;"
        self.line(f"for (int i = 0; i < {args[1]}; ++i) if ({args[0]}[i] > 0) {{ {append} }}")

    def _active_index(self, instruction: Instruction, args: list[str]) -> None:
        self._define(instruction, f"(int){args[0]}[{args[1]}]")

    def _active_count(self, instruction: Instruction, args: list[str]) -> None:
        list_length = self.program.lengths[instruction.args[0]]
        self._define(instruction, f"(int){args[0]}[{list_length - 1}]")

    def _store(self, instruction: Instruction, args: list[str]) -> None:
        self.names[instruction.out[0]] = args[0]
        self.line(f"{args[0]}[{args[1]}] = {args[2]};")

    def _gather(self, instruction: Instruction, args: list[str]) -> None:
        self._define(instruction, f"{args[0]}[{self._clamped_position(instruction, args)}]")

    def _scatter(self, instruction: Instruction, args: list[str]) -> None:
        self.names[instruction.out[0]] = args[0]
        self.line(f"{args[0]}[{self._clamped_position(instruction, args)}] = {args[2]};")

    def _clamped_position(self, instruction: Instruction, args: list[str]) -> str:
        return f"clamped({args[1]}, {self.program.lengths[instruction.args[0]] - 1})"

    def _lane(self, instruction: Instruction, args: list[str]) -> None:
        self._define(instruction, "0")

    def _lane_maximum(self, instruction: Instruction, args: list[str]) -> None:
        self._define(instruction, f"clamped({args[0]}, {instruction.data})")

    # ------------------------------------------------------------------------------------ control flow

    def _carry(self, instruction: Instruction, args: list[str]) -> list[str]:
        """Declare variables for the carried values of a loop; returns their names. An array is its own
        variable.
        """
        names = []
        for out, start in zip(instruction.out, args, strict=False):
            kind = self.program.kinds[out]
            self.names[out] = start if kind == "array" else f"v{out}"
            names.append(self.names[out])
            self.variables += 2  # and its copy, where the loop assigns all at once
            if kind != "array":
                self.line(f"{'real' if kind == 'real' else 'int'} v{out} = {start};")
        return names

    def _assign(self, names: Sequence[str], values: Sequence[str]) -> None:
        """Assign all values as if simultaneously: a value that another assignment overwrites is copied
        first.
        """
        pairs = [(name, value) for name, value in zip(names, values, strict=True) if name != value]
        overwritten = {name for name, _ in pairs}
        assignments = []
        for name, value in pairs:
            if value in overwritten:
                kind = "int" if self.program.kinds[int(name[1:])] == "bool" else "real"
                self.line(f"const {kind} next_{name} = {value};")
                value = f"next_{name}"
            assignments.append((name, value))
        for name, value in assignments:
            self.line(f"{name} = {value};")

    def _while(self, instruction: Instruction, args: list[str]) -> None:
        data = instruction.data
        carry, captured = self._carry(instruction, args[: data.carried]), args[data.carried :]
        self.line("for (;;) {")
        self.depth += 1
        [condition] = self.block(data.condition, [*carry, *captured])
        self.line(f"if (!{condition}) break;")
        self._assign(carry, self.block(data.body, [*carry, *captured]))
        self._end()

    def _for(self, instruction: Instruction, args: list[str]) -> None:
        data = instruction.data
        carry, captured = self._carry(instruction, args[: data.carried]), args[data.carried :]
        index = f"i{data.body.parameters[0]}"
        self.variables += 2
        counter, lower, upper = index, "0", str(data.count)
        if data.over_active:
            counter, upper = f"n{index}", f"{captured[0]}[{data.count}]"
        if data.dynamic:
            lower, upper = captured[:2]
        forward = f"int {counter} = {lower}; {counter} < {upper}; ++{counter}"
        reverse = f"int {counter} = {upper} - 1; {counter} >= {lower}; --{counter}"
        self.line(f"for ({reverse if data.reverse else forward}) {{")
        self.depth += 1
        if data.over_active:
            self.line(f"const int {index} = (int){captured[0]}[{counter}];")
        self._assign(carry, self.block(data.body, [index, *carry, *captured]))
        self._end()

    def _cond(self, instruction: Instruction, args: list[str]) -> None:
        data = instruction.data
        reals = [out for out in instruction.out if self.program.kinds[out] != "array"]
        self.variables += len(reals)
        for out in reals:
            self.line(f"{'real' if self.program.kinds[out] == 'real' else 'int'} v{out};")
        for out in merged_arrays(self.program, instruction):
            self._declare(out, max(self.program.lengths[out], 1))
        self.line(f"if ({args[0]}) {{")
        self._branch(instruction, data.then, args[1:])
        self.line("} else {")
        self._branch(instruction, data.otherwise, args[1:])
        self.line("}")

    def _branch(self, instruction: Instruction, block: Block, captured: Sequence[str]) -> None:
        self.depth += 1
        values, merged = self.block(block, captured), merged_arrays(self.program, instruction)
        for out, value in zip(instruction.out, values, strict=True):
            if out in merged:
                self.names[out] = f"a{out}"
                self.line(f"for (int i = 0; i < {self.program.lengths[out]}; ++i) a{out}[i] = {value}[i];")
            else:
                self.names[out] = value if self.program.kinds[out] == "array" else f"v{out}"
            if self.program.kinds[out] != "array":
                self.line(f"v{out} = {value};")
        self.depth -= 1

    def _end(self) -> None:
        self.depth -= 1
        self.line("}")
