"""Reductions in straight-line code: long chains c' = op(c, x_k), such as the sum of a dot product.

The operations of a chain are moved together, and terms x_k that are computed in many places are stored in an
array, from which the chain reads them in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from zwang.compiler.ir.program import Block, Instruction
from zwang.compiler.ir.verify import SIGNATURES
from zwang.compiler.passes.rolling_limits import RollingLimits
from zwang.compiler.passes.value_numbering import Values

OPERATIONS = frozenset({"add", "sub", "max", "min", "and", "or", "fma", "fnma"})
_LEAVES = ("const", "load", "true", "false", "input")
OF_NUMBERS = frozenset(
    op for op, (args, result) in SIGNATURES.items() if args and {*args, result} <= {"real", "bool"}
) | {"select"}
"""The operations that compute a number or truth value from numbers and truth values alone."""


@dataclass
class ChainLink:
    """One operation of a chain: its value, and those of the operations that compute its terms and nothing
    else, in order.
    """

    value: int
    terms: list[int] = field(default_factory=list)


@dataclass
class Reduction:
    """A chain of links: the argument of each operation that is the value of the link before it, and the
    arrays of terms.
    """

    links: list[ChainLink]
    argument: int
    arrays: list[int] = field(default_factory=list)


def with_reductions(block: Block, values: Values, limits: RollingLimits) -> tuple[Block, list[Reduction]]:
    """The block with the operations of each long chain side by side and their terms in arrays where they
    are computed in many places, and the chains.
    """
    return _Rewriting(block, values, limits.shortest_reduction).run()


class _Rewriting:
    def __init__(self, block: Block, values: Values, shortest: int) -> None:
        self.block, self.values, self.shortest = block, values, shortest
        self.made = {out: i for i in block.instructions for out in i.out}
        self.uses = Counter(a for i in block.instructions for a in i.args) + Counter(block.results)
        self.position = {out: p for p, i in enumerate(block.instructions) for out in i.out}

    def run(self) -> tuple[Block, list[Reduction]]:
        """See `with_reductions`."""
        reductions = [
            Reduction([ChainLink(v) for v in chain], argument) for chain, argument in self._chains()
        ]
        moved = {link.value for reduction in reductions for link in reduction.links}
        inserted: dict[int, list[Instruction]] = {}
        for reduction in reductions:
            for link in reduction.links:
                self._absorb(link, moved)
            terms = {term for link in reduction.links for term in link.terms}
            members = terms | {link.value for link in reduction.links}
            last = self.position[reduction.links[-1].value]
            inserted[last] = self._rewritten(reduction, members)
            moved |= terms
        if not reductions:
            return self.block, []
        instructions = []
        for p, instruction in enumerate(self.block.instructions):
            if p in inserted:
                instructions += inserted[p]
            elif not instruction.out or instruction.out[0] not in moved:
                instructions.append(instruction)
        return Block(self.block.parameters, tuple(instructions), self.block.results), reductions

    def _chains(self) -> list[tuple[list[int], int]]:
        """The values of each chain of at least `shortest` operations, in order, and the argument of each that
        continues it.
        """
        made = {i.out[0]: i for i in self.block.instructions if i.op in OPERATIONS}
        length: dict[tuple[int, int], int] = {}
        tails: dict[int, int] = {}
        for value, instruction in made.items():
            for k, a in enumerate(instruction.args):
                is_linked = a in made and made[a].op == instruction.op and self.uses[a] == 1
                length[value, k] = 1 + (length[a, k] if is_linked else 0)
                if length[value, k] >= self.shortest:
                    tails[value] = k
                    tails.pop(a, None)
        found = []
        for value, k in tails.items():
            chain = [value]
            while length[chain[-1], k] > 1:
                chain.append(made[chain[-1]].args[k])
            found.append((chain[::-1], k))
        return found

    def _absorb(self, link: ChainLink, members: set[int]) -> None:
        """Add to a link the operations whose only use it is, if they give a truth value or are cheap."""
        waiting = [a for a in self.made[link.value].args if a not in members]
        while waiting:
            a = waiting.pop()
            instruction = self.made.get(a)
            if instruction is None or self.uses[a] > 1 or instruction.op not in OF_NUMBERS:
                continue
            if self.values.kinds[a] == "bool" or all(map(self._is_leaf, instruction.args)):
                link.terms.append(a)
                waiting += [b for b in instruction.args if b not in members]
        link.terms.sort(key=self.position.__getitem__)

    def _is_leaf(self, value: int) -> bool:
        instruction = self.made.get(value)
        return instruction is None or instruction.op in _LEAVES

    def _rewritten(self, reduction: Reduction, members: set[int]) -> list[Instruction]:
        """The instructions of a chain, with those that store its terms in arrays and read them."""
        slots: dict[tuple[int, int], list[tuple[int, int]]] = {}  # (operation, argument): (link, value)
        for k, link in enumerate(reduction.links):
            for n, value in enumerate([link.value, *link.terms[::-1]]):
                for m, a in enumerate(self.made[value].args):
                    is_initial = value == link.value and m == reduction.argument
                    if a not in members and self.values.kinds[a] == "real" and not is_initial:
                        slots.setdefault((n, m), []).append((k, value))
        instructions: list[Instruction] = []
        replaced: dict[tuple[int, int], int] = {}  # (value, argument): the entry of an array
        for (_, m), places in slots.items():
            args = [self.made[value].args[m] for _, value in places]
            if len(places) >= self.shortest and not self._is_regular(args):
                array = self.values.new("array", len(reduction.links))
                entries = self._in_array(instructions, array, [k for k, _ in places], args)
                reduction.arrays.append(entries[0])
                replaced |= {(value, m): x for (_, value), x in zip(places, entries[1:], strict=True)}
        for link in reduction.links:
            for value in (*link.terms, link.value):
                made = self.made[value]
                args = tuple(replaced.get((value, m), a) for m, a in enumerate(made.args))
                instructions.append(Instruction(made.op, args, made.out, made.data))
        return instructions

    def _is_regular(self, values: Sequence[int]) -> bool:
        """Whether values are all one, all constants, or entries of one array."""
        made = [self.made.get(v) for v in values]
        if all(v == values[0] for v in values) or all(i is not None and i.op == "const" for i in made):
            return True
        arrays = {i.args[0] for i in made if i is not None and i.op == "load"}
        return len(arrays) == 1 and all(i is not None and i.op == "load" for i in made)

    def _in_array(
        self, instructions: list[Instruction], array: int, places: Sequence[int], terms: Sequence[int]
    ) -> list[int]:
        """Append the instructions that store terms at these places of a new array and read them; returns the
        array and what is read.
        """
        instructions.append(Instruction("empty", (), (array,), self.values.lengths[array]))
        indices = []
        for place, term in zip(places, terms, strict=True):
            indices.append(self.values.new("index"))
            after = self.values.new("array", self.values.lengths[array])
            instructions.append(Instruction("index", (), (indices[-1],), place))
            instructions.append(Instruction("store", (array, indices[-1], term), (after,)))
            array = after
        entries = [self.values.new("real") for _ in terms]
        for index, entry in zip(indices, entries, strict=True):
            instructions.append(Instruction("load", (array, index), (entry,)))
        return [array, *entries]
