"""The page `docs/models.md` from the results of `benchmarks.models`."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

Result = dict[str, Any]

AGREES = 1e-6  # relative error of accelerations and sensors
OVERLAP = 1e-7  # [m] by which overlaps along two normals differ
INTRODUCTION = """# Models by other people

The MJCF files in packages and folders that other people publish, loaded and compared with MuJoCo {version}.
This page is written by

```bash
python -m benchmarks.models {sources}
```

which runs each file in a process of its own, with limits of time and memory. Packages of MJCF files contain
parts of models, too, which are included by others and which MuJoCo itself does not load; they are counted,
but not listed.

- **strict**: `zw.load(file, asset_dirs=[folder])` accepts the file, so that it means in zwang what it means
  in MuJoCo. Otherwise the reason is given.
- **qacc**: the largest error of the generalised acceleration, relative to the largest acceleration or 1, in
  the initial state, in up to three keyframes, and in two states along a motion with random controls. MuJoCo
  solves to a tolerance of 1e-15 and finds contacts to 1e-12; bodies that may sleep are awake.
- **sensors**: the largest error of `sensordata` in the same states, likewise.
- **200 steps**: the largest error of the coordinates during 200 compiled steps with random controls.
- **compile**: seconds from the loaded mechanism to the result of the first 200 steps, without cache.
- **1 world**, **1,024**: the time of `mj_step` with the model's options, divided by that of a step of zwang,
  for one world and for each of 1,024 worlds, on one thread; these worlds move alike.

An entry `-` was not measured. The counts tell how many files of each source were measured so far; only these
are listed. Contacts are unique only up to the choice of the points of a manifold and, for shapes with many
small faces, the accuracy of the search for the deepest point; contacts at a distance of zero, and normals of
shapes whose axes meet, are decided by rounding. Where accelerations differ by more than 1e-6, the section on
differences tells the error that remains without contacts. Of shapes that overlap it tells by how much the
overlap along zwang's normal is less or more than that along MuJoCo's, computed independently: the penetration
depth is the least of all. "Exact touch" is a distance of zero, up to rounding.

`python -m tests.oracles.random_mjcf 300` compares 300 random models, of trees with all kinds of joints and
shapes, actuators, tendons, equalities, sensors and options. The models that differ have overlaps so deep that
there are several ways apart (a box or a mesh beyond about a tenth of its size), cylinders that nearly lie on
another shape, where MuJoCo has one more point, or curved shapes, whose contacts MuJoCo finds by iteration.
Two differences are those of MuJoCo, where zwang is exact: the term Jdot v of connect and weld constraints on
a body that has a ball joint before a slide joint, and the depth of boxes and meshes in height fields. Strict
loading refuses both.
"""
WIDTH = 100


def table(results: Iterable[Result]) -> str:
    """The page in Markdown."""
    results = list(results)
    totals = {r["source"]: r["found"] for r in results if "found" in r}
    rows = sorted(
        (Row(r) for r in results if "floats" in r), key=lambda row: (row.source.lower(), row.file.lower())
    )
    sources = list(dict.fromkeys(row.source for row in rows))
    version = next((row.version for row in rows if row.version), "")
    shown = " ".join(f"{source}=FOLDER" for source in sources)
    listed = [row for row in rows if row.of_mujoco]
    parts = [
        INTRODUCTION.format(version=version, sources=shown),
        "## Counts\n",
        counts(rows, sources, totals),
    ]
    parts += ["\n## Reasons of rejection\n", reasons(listed)]
    parts += ["\n## Differences and limits\n", differences(listed)]
    for source in sources:
        parts += [f"\n## {source}\n", models([row for row in listed if row.source == source])]
    return "\n".join(parts).rstrip() + "\n"


class Row:
    """What is shown of the result of one file."""

    def __init__(self, result: Result):
        self.source, self.file = result["source"], result["file"]
        stages = result["floats"]
        self.stages = {stage["stage"]: stage for stage in stages}
        self.states = [stage for stage in stages if stage["stage"] == "state"]
        self.sensors = [stage for stage in stages if stage["stage"] == "sensors"]
        self.compiled = {stage["stage"]: stage for stage in result.get("compiled", ())}
        mujoco = self.stages.get("mujoco", {"error": "not read"})
        self.version = mujoco.get("version", "")
        self.of_mujoco = "error" not in mujoco

    @property
    def is_strict(self) -> bool:
        """Whether the file loads."""
        return "error" not in self.stages.get("load", {"error": ""})

    @property
    def reason(self) -> str:
        """Why the file does not load; empty if it does."""
        load = self.stages.get("load")
        return self.ending if load is None else load.get("error", "")

    @property
    def ending(self) -> str:
        """How the process ended, unless it ended as it should."""
        return ended(self.stages)

    @property
    def refusals(self) -> list[str]:
        """Errors raised in states."""
        return [state["error"] for state in self.states if "error" in state]

    @property
    def qacc(self) -> float | None:
        """The largest error of the acceleration."""
        return largest(state["qacc"] for state in self.states if "qacc" in state)

    @property
    def smooth(self) -> float | None:
        """The largest error without contacts, where that with contacts is large."""
        return largest(state["smooth"] for state in self.states if "smooth" in state)

    @property
    def sensor(self) -> float | None:
        """The largest error of a sensor."""
        return largest(sensor["error"] for sensor in self.sensors)

    @property
    def agrees(self) -> bool:
        """Whether all that was measured agrees."""
        return (self.qacc or 0) <= AGREES and (self.sensor or 0) <= AGREES

    def of_compiled(self, stage: str, name: str) -> Any:
        """A number of a stage of the compiled comparison, or None."""
        return self.compiled.get(stage, {}).get(name)


def ended(stages: dict[str, Result]) -> str:
    """How a process ended, in words; empty if it completed all stages."""
    end = stages.get("ended")
    if end is None:
        return ""
    if end["code"] is None:
        return end["error"]
    if end["code"] < 0:
        return f"ended by signal {-end['code']}"
    return end["error"].splitlines()[-1] if end["error"] else f"exit status {end['code']}"


def largest(values: Iterable[float]) -> float | None:
    """The largest number, NaN counting as infinite; None without numbers."""
    found = [math.inf if math.isnan(x) else x for x in values]
    return max(found, default=None)


def counts(rows: list[Row], sources: list[str], totals: dict[str, int]) -> str:
    """The table of counts by source; `totals` of the files that are there."""
    lines = [
        "| source | files | measured | MuJoCo loads | strict | compared | within 1e-6 | differ | stopped | "
        "parts |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, chosen in [*((s, [r for r in rows if r.source == s]) for s in sources), ("all", rows)]:
        loads = [row for row in chosen if row.of_mujoco]
        strict = [row for row in loads if row.is_strict]
        compared = [row for row in strict if row.qacc is not None]
        agree = sum(row.agrees for row in compared)
        there = sum(totals.get(source, 0) for source in ([name] if name in totals else sources))
        files = str(there) if there else "-"
        stopped = sum(bool(row.ending) for row in loads)
        lines.append(
            f"| {name} | {files} | {len(chosen)} | {len(loads)} | {len(strict)} | {len(compared)} | "
            f"{agree} | {len(compared) - agree} | {stopped} | {len(chosen) - len(loads)} |"
        )
    return "\n".join(lines)


def kind_of(reason: str) -> str:
    """A reason without names, places and numbers, by which reasons are counted."""
    text = re.sub(r"^[^:]*(, line \d+[^:]*)?: ", "", reason)
    text = text.removesuffix("; strict=False omits it").removesuffix(" is not supported")
    return re.sub(r"\b\d+\b", "n", re.sub(r"'[^']*'", "...", text))


def reasons(rows: list[Row]) -> str:
    """The reasons for which files are rejected, the most frequent ones first."""
    count = Counter(kind_of(row.reason) for row in rows if not row.is_strict)
    count.update(kind_of(row.refusals[0]) for row in rows if row.refusals)
    lines = ["| files | reason |", "| --- | --- |"]
    lines += [
        f"| {n} | {escaped(reason)} |" for reason, n in sorted(count.items(), key=lambda x: (-x[1], x[0]))
    ]
    return "\n".join(lines)


def differences(rows: list[Row]) -> str:
    """The files that differ, with the error without contacts, and those whose comparison was stopped."""
    lines = ["| file | qacc | without contacts | sensors | remark |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        if row.is_strict and (not row.agrees or row.ending or ended(row.compiled)):
            remark = "; ".join(x for x in (row.ending, *worst(row), compiled_end(row)) if x)
            numbers = " | ".join(map(number, (row.qacc, row.smooth, row.sensor)))
            lines.append(f"| {row.source}: {escaped(row.file)} | {numbers} | {escaped(remark)} |")
    return "\n".join(lines)


def worst(row: Row) -> list[str]:
    """The numbers of active constraint rows where they differ, how the overlaps along the contact normals of
    both programs differ, whether shapes touch at a distance of zero, and types of sensors that differ.
    """
    rows = [s["rows"] for s in row.states if "rows" in s and s["rows"][0] != s["rows"][1]]
    found = [f"{ours} constraint rows, MuJoCo {theirs}" for ours, theirs in rows[:1]]
    differences = np.max([s["overlaps"] for s in row.states if "overlaps" in s] or [(0.0, 0.0)], axis=0)
    found += [
        f"overlap {1e3 * x:.2g} mm {word} than along MuJoCo's normal"
        for x, word in zip(differences, ("less", "more"), strict=True)
        if x > OVERLAP
    ]
    if any(s.get("touch") and not s["qacc"] <= AGREES for s in row.states):
        found.append("exact touch")
    wrong = [sensor for sensor in row.sensors if not sensor["error"] <= AGREES]
    return found + sorted({f"sensor {sensor['worst']}" for sensor in wrong})


def compiled_end(row: Row) -> str:
    end = ended(row.compiled)
    return f"compiled: {end}" if end else ""


def models(rows: list[Row]) -> str:
    """The table of the models of a source."""
    lines = [
        "| file | strict | qacc | sensors | 200 steps | compile, s | 1 world | 1,024 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    by_folder: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_folder[row.file.rpartition("/")[0]].append(row)
    for row in (row for folder in by_folder.values() for row in folder):
        strict = "yes" if row.is_strict else shortened(kind_of(row.reason))
        speed = [ratio(row.of_compiled("speed", name)) for name in ("one", "many")]
        cells = [
            escaped(row.file), escaped(strict), number(row.qacc), number(row.sensor),
            number(row.of_compiled("drift", "steps")), seconds(row.of_compiled("compile", "seconds")), *speed,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def number(value: float | None) -> str:
    """An error with one digit."""
    return "-" if value is None else f"{value:.0e}" if value else "0"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def shortened(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def escaped(text: str) -> str:
    """Text for a cell of a table."""
    return re.sub(r"([|<>*_`\[\]$])", r"\\\1", " ".join(text.split()))
