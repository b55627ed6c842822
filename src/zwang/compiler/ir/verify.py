"""Verification that a program is well formed, run between passes to detect an incorrect pass.

The module also contains the signature (kinds of arguments and result) of each operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Kind, Program, While
from zwang.errors import CompileError

_R, _B, _I, _A = "real", "bool", "index", "array"
SIGNATURES: dict[str, tuple[tuple[Kind, ...], Kind]] = {
    **dict.fromkeys(("const", "input", "lane"), ((), _R)),
    **dict.fromkeys(("add", "sub", "mul", "div", "atan2", "pow", "copysign", "min", "max"), ((_R, _R), _R)),
    **dict.fromkeys(("fma", "fms", "fnma"), ((_R, _R, _R), _R)),
    **dict.fromkeys(("neg", "abs", "sqrt", "floor"), ((_R,), _R)),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "exp", "log"), ((_R,), _R)),
    **dict.fromkeys(("sinh", "cosh", "tanh", "sech", "asinh", "acosh", "atanh"), ((_R,), _R)),
    **dict.fromkeys(("lt", "le", "eq", "ne"), ((_R, _R), _B)),
    **dict.fromkeys(("and", "or", "xor"), ((_B, _B), _B)),
    "not": ((_B,), _B),
    **dict.fromkeys(("true", "false"), ((), _B)),
    "index": ((), _I),
    **dict.fromkeys(("iadd", "isub", "imul"), ((_I, _I), _I)),
    "table": ((_I,), _R),
    "index_table": ((_I,), _I),
    **dict.fromkeys(("array", "empty", "input_array"), ((), _A)),
    "compact": ((_A, _I), _A),
    "active_index": ((_A, _I), _I),
    "active_count": ((_A,), _I),
    "load": ((_A, _I), _R),
    "gather": ((_A, _R), _R),
    "scatter": ((_A, _R, _R), _A),
    "lane_maximum": ((_R,), _I),
    "store": ((_A, _I, _R), _A),
    "bit": ((_R,), _B),
    **dict.fromkeys(("bit_and", "bit_or", "bit_add", "shift_left", "shift_right"), ((_R,), _R)),
}  # type: ignore[assignment]


def verify(program: Program) -> Program:
    """The program itself, after a check of all rules of `program.py`.

    Raises CompileError, which names the rule, if the program violates one.
    """
    checker = _Checker(program)
    checker.block(program.body, ())
    size = sum(port.size for port in program.outputs)
    found = sum(program.lengths[r] if program.kinds[r] == _A else 1 for r in program.body.results)
    checker.require(found == size, f"{found} results for {size} outputs")
    return program


class _Checker:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.defined: set[int] = set()

    def require(self, condition: bool, violation: str) -> None:
        if not condition:
            raise _invalid(violation)

    def block(self, block: Block, parameters: tuple[Kind, ...]) -> tuple[Kind, ...]:
        """Check a block whose parameters have these kinds; return the kinds of its results."""
        visible: set[int] = set()
        invalidated: set[int] = set()
        self._define(block.parameters, parameters, visible)
        for instruction in block.instructions:
            for a in instruction.args:
                if a not in visible:
                    raise _invalid(f"{instruction.op} reads {a}, which is not defined before it in its block")
                if a in invalidated:
                    raise _invalid(f"{instruction.op} reads the array {a} after it was overwritten")
            self._define(instruction.out, self._kinds(instruction), visible)
            invalidated.update(self._overwritten(instruction))
        for r in block.results:
            if r not in visible or r in invalidated:
                raise _invalid(f"the result {r} is not defined in its block, or was overwritten")
        return self._kinds_of(block.results)

    def _define(self, numbers: Sequence[int], kinds: Sequence[Kind], visible: set[int]) -> None:
        if len(numbers) != len(kinds):
            raise _invalid(f"{len(numbers)} values are defined, but there are {len(kinds)} results")
        for number, kind in zip(numbers, kinds, strict=True):
            if number in self.defined:
                raise _invalid(f"the value {number} is defined twice")
            if self.program.kinds.get(number) != kind:
                raise _invalid(f"the value {number} should have the kind {kind}")
            if kind == "array" and number not in self.program.lengths:
                raise _invalid(f"the array {number} has no length")
            self.defined.add(number)
            visible.add(number)

    def _kinds_of(self, numbers: Sequence[int]) -> tuple[Kind, ...]:
        return tuple([self.program.kinds[number] for number in numbers])

    def _kinds(self, instruction: Instruction) -> tuple[Kind, ...]:
        """The kinds of an instruction's results, after a check of the kinds of its arguments."""
        kinds = self._kinds_of(instruction.args)
        if instruction.op in ("while", "for", "cond"):
            return self._control(instruction, kinds)
        if instruction.op == "select":
            right = (
                len(kinds) == 3
                and kinds[0] == "bool"
                and kinds[1] == kinds[2]
                and kinds[1] in ("real", "bool")
            )
            if not right:
                raise _invalid(f"select of {kinds}")
            return (kinds[1],)
        if instruction.op not in SIGNATURES:
            raise _invalid(f"there is no operation {instruction.op!r}")
        args, result = SIGNATURES[instruction.op]
        if kinds != args:
            raise _invalid(f"{instruction.op} of {kinds}; it takes {args}")
        return (result,)

    def _control(self, instruction: Instruction, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
        data = instruction.data
        if isinstance(data, Cond):
            self.require(kinds[:1] == ("bool",), "the condition of cond is not a truth value")
            then, otherwise = self.block(data.then, kinds[1:]), self.block(data.otherwise, kinds[1:])
            self.require(then == otherwise, f"the branches of cond return {then} and {otherwise}")
            return then
        assert isinstance(data, (While, For))
        carry = kinds[: data.carried]
        self.require("index" not in carry, "an index is carried by a loop")
        if isinstance(data, For):
            expected = ("array",) * data.over_active + ("index", "index") * data.dynamic
            bounds = kinds[data.carried : data.carried + len(expected)]
            self.require(
                bounds == expected, f"the range of a loop is given by {bounds} instead of {expected}"
            )
        if isinstance(data, While):
            self.require(
                self.block(data.condition, kinds) == ("bool",),
                "the condition of while returns no truth value",
            )
            self.require(
                self.block(data.body, kinds) == carry,
                "the body of while returns kinds other than those of the carry",
            )
        else:
            self.require(
                self.block(data.body, ("index", *kinds)) == carry,
                "the body of for returns kinds other than those of the carry",
            )
        return carry

    def _overwritten(self, instruction: Instruction) -> list[int]:
        """The arrays that an instruction overwrites, so that they may not be read after it."""
        if instruction.op in ("store", "scatter"):
            return [instruction.args[0]]
        if isinstance(instruction.data, (While, For)):
            carry = instruction.args[: instruction.data.carried]
            return [a for a in carry if self.program.kinds[a] == "array"]
        if isinstance(instruction.data, Cond):
            results = set(instruction.data.then.results)
            overwritten = _lineage(instruction.data.then, results)
            return [
                a
                for a, p in zip(instruction.args[1:], instruction.data.then.parameters, strict=True)
                if p in overwritten and self.program.kinds[a] == "array"
            ]
        return []


def _invalid(violation: str) -> CompileError:
    return CompileError(f"a pass of the compiler produced an invalid program: {violation}")


def _lineage(block: Block, results: set[int]) -> set[int]:
    """The values of the block of which an array among the results is a later version."""
    versions = set(results)
    for instruction in reversed(block.instructions):
        if instruction.op in ("store", "scatter") and instruction.out[0] in versions:
            versions.add(instruction.args[0])
        elif isinstance(instruction.data, (While, For)):
            versions.update(
                a for a, o in zip(instruction.args, instruction.out, strict=False) if o in versions
            )
        elif isinstance(instruction.data, Cond):
            inner = {
                r
                for r, o in zip(instruction.data.then.results, instruction.out, strict=True)
                if o in versions
            }
            origin = _lineage(instruction.data.then, inner)
            pairs = zip(instruction.args[1:], instruction.data.then.parameters, strict=True)
            versions.update(a for a, p in pairs if p in origin)
    return versions
