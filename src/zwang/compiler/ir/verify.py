"""What every program has to be, asked between passes: well-formed, or the pass before it is at fault.

Also the signature of each operation, which is what other passes need to know of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Kind, Program, While
from zwang.errors import CompileError

_R, _B, _I, _A = "real", "bool", "index", "array"
SIGNATURES: dict[str, tuple[tuple[Kind, ...], Kind]] = {
    **dict.fromkeys(("const", "input"), ((), _R)),
    **dict.fromkeys(("add", "sub", "mul", "div", "atan2", "pow", "copysign", "min", "max"), ((_R, _R), _R)),
    **dict.fromkeys(("fma", "fms", "fnma"), ((_R, _R, _R), _R)),
    **dict.fromkeys(("neg", "abs", "sqrt", "floor"), ((_R,), _R)),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "exp", "log"), ((_R,), _R)),
    **dict.fromkeys(("lt", "le", "eq", "ne"), ((_R, _R), _B)),
    **dict.fromkeys(("and", "or", "xor"), ((_B, _B), _B)),
    "not": ((_B,), _B),
    **dict.fromkeys(("true", "false"), ((), _B)),
    "index": ((), _I),
    **dict.fromkeys(("iadd", "isub", "imul"), ((_I, _I), _I)),
    "table": ((_I,), _R),
    "itable": ((_I,), _I),
    **dict.fromkeys(("array", "blank"), ((), _A)),
    "choose": ((_A, _I), _A),
    "pick": ((_A, _I), _I),
    "count": ((_A,), _I),
    "load": ((_A, _I), _R),
    "gather": ((_A, _R), _R),
    "scatter": ((_A, _R, _R), _A),
    "highest": ((_R,), _I),
    "store": ((_A, _I, _R), _A),
    "bit": ((_R,), _B),
    **dict.fromkeys(("bit_and", "bit_or", "bit_add", "shift_left", "shift_right"), ((_R,), _R)),
}  # type: ignore[assignment]


def verify(program: Program) -> Program:
    """The program itself, if it keeps all rules of `program.py`; else a CompileError that says which it breaks."""
    checker = _Checker(program)
    checker.block(program.body, ())
    size = sum(port.size for port in program.outputs)
    checker.need(len(program.body.results) == size, f"{len(program.body.results)} results for {size} outputs")
    return program


class _Checker:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.defined: set[int] = set()

    def need(self, holds: bool, what: str) -> None:
        if not holds:
            raise CompileError(f"a pass of the compiler made a wrong program: {what}")

    def block(self, block: Block, parameters: tuple[Kind, ...]) -> tuple[Kind, ...]:
        """Check a block whose parameters are of these kinds; the kinds of its results."""
        visible: set[int] = set()
        dead: set[int] = set()
        self._define(block.parameters, parameters, visible)
        for instruction in block.instructions:
            for a in instruction.args:
                self.need(
                    a in visible, f"{instruction.op} reads {a}, which is not defined before it in its block"
                )
                self.need(a not in dead, f"{instruction.op} reads the array {a} after it was changed")
            self._define(instruction.out, self._kinds(instruction), visible)
            dead.update(self._changed(instruction))
        for r in block.results:
            self.need(
                r in visible and r not in dead, f"the result {r} is not defined in its block, or was changed"
            )
        return self._kinds_of(block.results)

    def _define(self, numbers: Sequence[int], kinds: Sequence[Kind], visible: set[int]) -> None:
        self.need(
            len(numbers) == len(kinds), f"{len(numbers)} values are defined where {len(kinds)} are given"
        )
        for number, kind in zip(numbers, kinds, strict=True):
            self.need(number not in self.defined, f"the value {number} is defined twice")
            self.need(self.program.kinds.get(number) == kind, f"the value {number} should be of kind {kind}")
            self.need(kind != "array" or number in self.program.lengths, f"the array {number} has no length")
            self.defined.add(number)
            visible.add(number)

    def _kinds_of(self, numbers: Sequence[int]) -> tuple[Kind, ...]:
        return tuple(self.program.kinds[number] for number in numbers)

    def _kinds(self, instruction: Instruction) -> tuple[Kind, ...]:
        """The kinds of what an instruction defines, its arguments being of the right kinds."""
        kinds = self._kinds_of(instruction.args)
        if instruction.op in ("while", "for", "when"):
            return self._control(instruction, kinds)
        if instruction.op == "select":
            right = (
                len(kinds) == 3
                and kinds[0] == "bool"
                and kinds[1] == kinds[2]
                and kinds[1] in ("real", "bool")
            )
            self.need(right, f"select of {kinds}")
            return (kinds[1],)
        self.need(instruction.op in SIGNATURES, f"there is no operation {instruction.op!r}")
        args, result = SIGNATURES[instruction.op]
        self.need(kinds == args, f"{instruction.op} of {kinds} where {args} is needed")
        return (result,)

    def _control(self, instruction: Instruction, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
        data = instruction.data
        if isinstance(data, Cond):
            self.need(kinds[:1] == ("bool",), "when without a truth value")
            then, otherwise = self.block(data.then, kinds[1:]), self.block(data.otherwise, kinds[1:])
            self.need(then == otherwise, f"the branches of when give {then} and {otherwise}")
            return then
        assert isinstance(data, (While, For))
        carry = kinds[: data.carried]
        self.need("index" not in carry, "an index is carried")
        if isinstance(data, For):
            items = ("array",) * data.chosen + ("index", "index") * data.spans
            given = kinds[data.carried : data.carried + len(items)]
            self.need(given == items, f"a loop goes over {given} where {items} is needed")
        if isinstance(data, While):
            self.need(
                self.block(data.condition, kinds) == ("bool",), "the condition of while gives no truth value"
            )
            self.need(
                self.block(data.body, kinds) == carry, "the body of while gives other kinds than the carry"
            )
        else:
            self.need(
                self.block(data.body, ("index", *kinds)) == carry, "the body of for changes the carry's kinds"
            )
        return carry

    def _changed(self, instruction: Instruction) -> list[int]:
        """The arrays that may not be read after this instruction."""
        if instruction.op in ("store", "scatter"):
            return [instruction.args[0]]
        if isinstance(instruction.data, (While, For)):
            carry = instruction.args[: instruction.data.carried]
            return [a for a in carry if self.program.kinds[a] == "array"]
        if isinstance(instruction.data, Cond):
            results = set(instruction.data.then.results)
            changed = _lineage(instruction.data.then, results)
            return [
                a
                for a, p in zip(instruction.args[1:], instruction.data.then.parameters, strict=True)
                if p in changed and self.program.kinds[a] == "array"
            ]
        return []


def _lineage(block: Block, results: set[int]) -> set[int]:
    """The values of which an array among the results is a later version."""
    wanted = set(results)
    for instruction in reversed(block.instructions):
        if instruction.op in ("store", "scatter") and instruction.out[0] in wanted:
            wanted.add(instruction.args[0])
        elif isinstance(instruction.data, (While, For)):
            wanted.update(a for a, o in zip(instruction.args, instruction.out, strict=False) if o in wanted)
        elif isinstance(instruction.data, Cond):
            inner = {
                r for r, o in zip(instruction.data.then.results, instruction.out, strict=True) if o in wanted
            }
            origin = _lineage(instruction.data.then, inner)
            pairs = zip(instruction.args[1:], instruction.data.then.parameters, strict=True)
            wanted.update(a for a, p in pairs if p in origin)
    return wanted
