"""The repetition in a block: components of its operations that differ in constants and positions alone.

A component is a connected set of operations on numbers of one level. Constants, entries of arrays, and
numbers that do not come from arrays connect nothing. A level is the number of barriers on the way from the
block's beginning: loops and branches, reductions, and arrays of which all entries are stored. So what a
component reads from another one is of a lower level, and components of one kind can run in one loop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from zwang.compiler.ir.program import Block, Cond, For, Instruction, While
from zwang.compiler.passes.reductions import OF_NUMBERS, Reduction
from zwang.compiler.passes.rolling_limits import RollingLimits
from zwang.compiler.passes.value_numbering import Values

OF_INDICES = frozenset({"iadd", "isub", "imul", "index_table"})
LEAVES = frozenset({"const", "true", "false", "index", "input", "lane"})

Argument = tuple[str, Any, int]
"""What an operation reads: ("member", number in the component, 0), ("carried", None, 0), ("constant", None,
0), ("entry", a `Stretch`, 0), ("value", value, 0) or ("kind", number of a kind, member)."""


class Stretch(NamedTuple):
    """The entries of an array from an index on, or from the beginning on (None)."""

    array: int
    start: int | None


@dataclass
class StoreRun:
    """Consecutive stores to versions of one array: `final` is the last one.

    entries: for each position behind the index `start` the value that is stored there last, and the position
    of that store in the block. base: the array before them. start: None for positions from the beginning.
    """

    base: int
    final: int
    start: int | None = None
    entries: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Component:
    """Connected operations, by their positions in the block, and the stores of their values: the store run,
    the position in the array, and the value.
    """

    level: int
    members: list[int] = field(default_factory=list)
    stores: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass
class RepeatedKind:
    """Components that become one loop, and the code of what their operations read.

    links: whether they are the links of a reduction, in order, whose value is carried by the loop.
    """

    components: list[Component]
    codes: tuple[Any, ...]
    initial: int | None = None
    exports: set[int] = field(default_factory=set)


class Repetition:
    """The analysis of one block.

    instructions: of the block. alias: values that are those of other values, as they are read where they were
    stored. runs: the store runs. kinds: the kinds of components that repeat. found_in: for each value that
    they compute the kind, the number of the component, and the member.
    """

    def __init__(
        self, block: Block, reductions: list[Reduction], values: Values, limits: RollingLimits
    ) -> None:
        self.limits = limits
        self.block, self.values, self.instructions = block, values, block.instructions
        self.made = {out: p for p, i in enumerate(self.instructions) for out in i.out}
        self.at = self._positions()
        constants = ("const", "true", "false")
        self.constants = {i.out[0]: i.data for i in self.instructions if i.op in constants}
        self.alias: dict[int, int] = {}
        self.entries: dict[int, tuple[Stretch, int]] = {}  # what a load reads
        self.runs: list[StoreRun] = []
        self.in_run: set[int] = set()  # positions of stores that belong to runs
        self.kinds: list[RepeatedKind] = []
        self.found_in: dict[int, tuple[int, int, int]] = {}
        self._find_runs({array for r in reductions for array in r.arrays})
        self.overwritten = self._overwritten()
        self.links = {link.value: r for r in reductions for link in r.links}
        self.terms = {term for r in reductions for link in r.links for term in link.terms}
        self._find_levels(reductions)
        self._find_components(reductions)

    def value(self, value: int) -> int:
        """The value itself, or the one that it was found to be."""
        return self.alias.get(value, value)

    def is_leaf(self, value: int) -> bool:
        """Whether a value is a constant, or an entry of an array that stays what it is."""
        if value not in self.entries:
            return value in self.constants
        return self.entries[value][0].array not in self.overwritten

    # ------------------------------------------------------------------------------------ store runs

    def _positions(self) -> dict[int, tuple[int | None, int]]:
        """Each index as one that is known only at run time, if any, plus a number."""
        at: dict[int, tuple[int | None, int]] = {}
        for i in self.instructions:
            if i.op == "index":
                at[i.out[0]] = None, i.data
            elif i.op == "iadd":
                (start, offset), (other, number) = (at.get(a, (a, 0)) for a in i.args)
                if start is None or other is None:
                    at[i.out[0]] = other if start is None else start, offset + number
        return at

    def _stretch(self, i: Instruction) -> tuple[Stretch, int]:
        """What a load or store accesses."""
        start, position = self.at.get(i.args[1], (i.args[1], 0))
        return Stretch(i.args[0], start), position

    def _find_runs(self, kept: set[int]) -> None:
        """Find the store runs, and what is read from arrays."""
        fixed = kept | self._read_otherwise()
        place: dict[int, tuple[int, int]] = {}  # of a version: its run, and its number of stores
        stored: list[dict[int, list[tuple[int, int]]]] = []  # by run and position: number of store, value
        for p, i in enumerate(self.instructions):
            if i.op == "store":
                (array, start), position = self._stretch(i)
                if array not in place or array in fixed or self.runs[place[array][0]].start != start:
                    self.runs.append(StoreRun(array, array, start))
                    stored.append({})
                    place[array] = len(self.runs) - 1, 0
                run, count = place[array]
                value = self.value(i.args[2])
                self.in_run.add(p)
                stored[run].setdefault(position, []).append((count + 1, value))
                place[i.out[0]] = run, count + 1
                self.runs[run].final = i.out[0]
                self.runs[run].entries[position] = value, p
            elif i.op == "load":
                stretch, position = self._stretch(i)
                if stretch.array in place and stretch.array not in fixed:
                    run, count = place[stretch.array]
                    earlier = [v for n, v in stored[run].get(position, ()) if n <= count]
                    if earlier:
                        self.alias[i.out[0]] = earlier[-1]
                    stretch = stretch._replace(array=self.runs[run].base)
                self.entries[i.out[0]] = stretch, position
        self.final_run = {run.final: n for n, run in enumerate(self.runs)}

    def _read_otherwise(self) -> set[int]:
        """The versions of arrays that are read as a whole, or from another index on than the one from which
        on they were written.
        """
        start: dict[int, int | None] = {}
        found = {r for r in self.block.results if self.values.kinds[r] == "array"}
        for i in self.instructions:
            if i.op not in ("load", "store"):
                found.update(a for a in i.args if self.values.kinds[a] == "array")
                continue
            stretch, _ = self._stretch(i)
            if stretch.array in start and start[stretch.array] != stretch.start:
                found.add(stretch.array)
            if i.op == "store":
                start[i.out[0]] = stretch.start
        return found

    def _overwritten(self) -> set[int]:
        """The arrays that are overwritten in the block, but for the store runs' own versions."""
        found = {run.base for run in self.runs}
        for i in self.instructions:
            found.update(overwritten_arrays(i, self.values.kinds))
        return found

    # ---------------------------------------------------------------------------------------- levels

    def _find_levels(self, reductions: list[Reduction]) -> None:
        """The level of each value, and which values connect components."""
        self.level: dict[int, int] = dict.fromkeys(self.block.parameters, 0)
        self.single = {v for v in self.block.parameters if self.values.kinds[v] != "array"}
        self.uses = Counter(self.value(a) for i in self.instructions for a in i.args)
        self.operations: set[int] = set()
        ends = {r.links[-1].value: r for r in reductions}
        for p, i in enumerate(self.instructions):
            if not i.out:
                continue
            out = i.out[0]
            if out in self.alias:
                self.level[out] = self.level[self.alias[out]]
            elif i.op in LEAVES or i.op in OF_INDICES:
                self.level[out] = max((self.level[a] for a in i.args), default=0)
                self.single.add(out)
            elif out in self.entries:
                self.level[out] = max(self.level[self.entries[out][0].array], self.level[i.args[1]])
                if not self.is_leaf(out):
                    self.operations.add(out)
            elif p in self.in_run:
                array, index, value = i.args
                self.level[out] = max(self.level[array], self.level[index], self.level[self.value(value)] + 1)
            elif out in self.links or out in self.terms:
                args = [self.value(a) for a in i.args]
                self.level[out] = max(self.level[a] + (a in self.operations) for a in args)
                if out in ends:
                    self.level[out] += 1
                    self.single.add(out)
            elif i.op in OF_NUMBERS:
                self._operation_level(i)
            else:
                above = 1 + max((self.level[self.value(a)] for a in i.args), default=-1)
                self.level.update(dict.fromkeys(i.out, above))
                self.single.update(o for o in i.out if self.values.kinds[o] != "array")

    def _operation_level(self, i: Instruction) -> None:
        out, args = i.out[0], [self.value(a) for a in i.args]
        if all(a in self.single for a in args):
            self.single.add(out)
            self.level[out] = max(self.level[a] for a in args)
            return
        self.operations.add(out)
        self.level[out] = max(self.level[a] + (not self.connects(a) and not self.is_leaf(a)) for a in args)

    def connects(self, value: int) -> bool:
        """Whether the use of a value connects it with its users."""
        return value in self.operations and self.uses[value] <= self.limits.many_uses

    # ------------------------------------------------------------------------------------ components

    def _find_components(self, reductions: list[Reduction]) -> None:
        root = {value: value for value in self.operations}

        def find(value: int) -> int:
            while root[value] != value:
                root[value] = root[root[value]]
                value = root[value]
            return value

        for value in self.operations:
            for a in self._args(value):
                if a in self.operations and self.level[a] == self.level[value] and self.connects(a):
                    root[find(a)] = find(value)
        components: dict[int, Component] = {}
        for value in sorted(self.operations, key=self.made.__getitem__):
            component = components.setdefault(find(value), Component(self.level[value]))
            component.members.append(self.made[value])
        owner = {v: components[find(v)] for v in self.operations}
        loose = self._attach_stores(owner)
        for component in components.values():
            component.stores.sort()
        by_level: dict[int, list[Component | Reduction]] = {}
        for component in (*components.values(), *loose):
            by_level.setdefault(component.level, []).append(component)
        for reduction in reductions:
            by_level.setdefault(self.level[reduction.links[-1].value], []).append(reduction)
        for level in sorted(by_level):
            self._classify(by_level[level])

    def _args(self, value: int) -> list[int]:
        i = self.instructions[self.made[value]]
        return [self.value(a) for a in i.args] if i.op != "load" else []

    def _attach_stores(self, owner: dict[int, Component]) -> list[Component]:
        """Give the components the stores of their values, where nothing reads the array on a higher level;
        the other stores become components of their own.
        """
        read = self._levels_of_readers()
        loose = []
        for n, run in enumerate(self.runs):
            below = max(read.get(run.base, 0), self.level[run.base])
            below = below if run.start is None else max(below, self.level[run.start])
            for position, (value, _) in run.entries.items():
                component = owner.get(value)
                if component is not None and component.level >= below:
                    component.stores.append((n, position, value))
                else:
                    level = 1 + max(below, self.level[value])
                    loose.append(Component(level, [], [(n, position, value)]))
        return loose

    def _levels_of_readers(self) -> dict[int, int]:
        """For each array the highest level of the instructions that read it."""
        found: dict[int, int] = {}
        for p, i in enumerate(self.instructions):
            if p not in self.in_run:
                for a in i.args:
                    if self.values.kinds[a] == "array":
                        a = self.entries[i.out[0]][0].array if i.op == "load" else a
                        found[a] = max(found.get(a, 0), *(self.level[out] for out in i.out))
        return found

    def _classify(self, found: list[Component | Reduction]) -> None:
        """Find the components of one level that are of one kind."""
        alike: dict[Any, list[Component]] = {}
        for item in found:
            if isinstance(item, Component):
                alike.setdefault(self.codes(item), []).append(item)
            else:
                self._classify_links(item)
        for codes, components in alike.items():
            self._add(components, codes, None)

    def _classify_links(self, reduction: Reduction) -> None:
        """Make each stretch of links that are alike a loop."""
        links = []
        previous = self._args(reduction.links[0].value)[reduction.argument]
        level = self.level[reduction.links[-1].value]
        for link in reduction.links:
            component = Component(level, [self.made[v] for v in (*link.terms, link.value)])
            links.append((component, previous, self.codes(component, previous)))
            previous = link.value
        start = 0
        for end in range(1, len(links) + 1):
            if end == len(links) or links[end][2] != links[start][2]:
                self._add([c for c, _, _ in links[start:end]], links[start][2], links[start][1])
                start = end

    def _add(self, components: list[Component], codes: Any, initial: int | None) -> None:
        size = len(components[0].members) + len(components[0].stores)
        saving = (len(components) - 1) * size
        is_large = len(components) >= self.limits.fewest_components and saving >= self.limits.least_saving
        if not is_large or not self._may_follow_each_other(components):
            return
        for k, component in enumerate(components):
            for n, p in enumerate(component.members):
                self.found_in[self.instructions[p].out[0]] = len(self.kinds), k, n
        self.kinds.append(RepeatedKind(components, codes, initial))

    def _may_follow_each_other(self, components: list[Component]) -> bool:
        """Whether no component reads an entry of an array which one before it overwrites."""
        written: set[tuple[Stretch, int]] = set()
        arrays: set[int] = set()
        starts = {Stretch(self.runs[n].base, self.runs[n].start) for n, _, _ in components[0].stores}
        for component in components:
            for p in component.members:
                entry = self.entries.get(self.instructions[p].out[0])
                if entry is None or entry[0].array not in arrays:
                    continue
                if entry in written or entry[0] not in starts:
                    return False
            for n, position, _ in component.stores:
                written.add((Stretch(self.runs[n].base, self.runs[n].start), position))
                arrays.add(self.runs[n].base)
        return True

    def codes(self, component: Component, previous: int | None = None) -> tuple[Any, ...]:
        """What the operations and stores of a component are, but for constants and positions; those of two
        components are equal if they are of one kind. previous: the value that a reduction carries.
        """
        local = {self.instructions[p].out[0]: n for n, p in enumerate(component.members)}
        found: list[Any] = []
        for p in component.members:
            i = self.instructions[p]
            if i.op == "load":
                found.append(("load", self.entries[i.out[0]][0]))
            else:
                found.append((i.op, *(self._code(self.value(a), local, previous) for a in i.args)))
        return (*found, *((run, self._code(value, local, previous)) for run, _, value in component.stores))

    def _code(self, value: int, local: dict[int, int], previous: int | None) -> Argument:
        if value in local:
            return "member", local[value], 0
        if value == previous:
            return "carried", None, 0
        if value in self.constants:
            data = self.constants[value]
            return ("constant", None, 0) if isinstance(data, float) else ("value", value, 0)
        if self.is_leaf(value):
            return "entry", self.entries[value][0], 0
        if value in self.found_in:
            kind, _, member = self.found_in[value]
            if self.kinds[kind].initial is None:
                return "kind", kind, member
        return "value", value, 0


def overwritten_arrays(i: Instruction, kinds: dict[int, Any]) -> list[int]:
    """The arrays among the arguments of an instruction, stores excepted, that it overwrites."""
    if i.op == "scatter":
        return [i.args[0]]
    if isinstance(i.data, (While, For)):
        return [a for a in i.args[: i.data.carried] if kinds[a] == "array"]
    if isinstance(i.data, Cond):
        changed = _lineage(i.data.then)[0] | _lineage(i.data.otherwise)[0]
        return [a for k, a in enumerate(i.args[1:]) if k in changed and kinds[a] == "array"]
    return []


def _lineage(block: Block) -> tuple[set[int], list[int | None]]:
    """The positions of the parameters of a block that it overwrites, and for each result that of the
    parameter of which it is a version.
    """
    origin: dict[int, int] = {parameter: k for k, parameter in enumerate(block.parameters)}
    changed: set[int] = set()
    for i in block.instructions:
        pairs: list[tuple[int, int]] = []  # an argument that is overwritten, and its next version
        if i.op in ("store", "scatter"):
            pairs = [(i.args[0], i.out[0])]
        elif isinstance(i.data, (While, For)):
            pairs = list(zip(i.args[: i.data.carried], i.out, strict=True))
        elif isinstance(i.data, Cond):
            inside, origins = _lineage(i.data.then)
            pairs = [
                (i.args[1 + k], out)
                for k, out in zip(origins, i.out, strict=True)
                if k is not None and k in inside
            ]
        for before, after in pairs:
            if before in origin:
                changed.add(origin[before])
                origin[after] = origin[before]
    return changed, [origin.get(result) for result in block.results]
