"""The hostile and careless inputs of tests/badinputs: how each is tried, and how the outcome is judged."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import zwang as zw
from zwang.dynamics.aba import aba
from zwang.dynamics.generalised_forces import passive_forces
from zwang.errors import ZwangError, ZwangWarning
from zwang.mechanism.mechanism import Mechanism

FOLDER = Path(__file__).parents[1] / "badinputs"
STEPS, FEW = 300, 3
MIDDLE, LARGE = 50, 200  # speeds
PATIENCE = 8  # seconds on the clock for a second of the processor, before an input hangs


@dataclass
class Outcome:
    """What became of an input; seconds are of the processor, so that a busy machine is no fault of the input's."""

    error: str = ""
    typed: bool = True
    warnings: list[str] = field(default_factory=list)
    finite: bool = True
    seconds: float = 0.0
    megabytes: float = 0.0
    opened: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def said(self) -> str:
        """All that the user was told."""
        return "\n".join([self.error, *self.warnings])


def expectations(formats: tuple[str, ...]) -> list[dict[str, Any]]:
    """The cases of these formats."""
    cases = json.loads((FOLDER / "expectations.json").read_text(encoding="utf-8"))
    return [case for case in cases if case["format"] in formats]


def staged(folder: Path) -> Path:
    """A copy of the inputs with those that cannot be stored: pipes, devices, directories and very large files."""
    root = folder / "badinputs"
    shutil.copytree(FOLDER, root)
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    urdf = root / "urdf"
    (urdf / "zero.stl").symlink_to("/dev/zero")
    os.mkfifo(urdf / "fifo.stl")
    (urdf / "adir.stl").mkdir()
    for count in (1_000, 10_000):
        (urdf / f"chain_{count}.urdf").write_text(chain(count))
    (urdf / "star_100000_fixed.urdf").write_text(star(100_000))
    return root


def chain(count: int) -> str:
    """A URDF of `count` hinges in series."""
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    links = "".join(f'<link name="l{k}">{inertial}</link>\n' for k in range(count + 1))
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/>'
        f'<origin xyz="0 0 0.1"/><axis xyz="0 1 0"/></joint>\n'
        for k in range(count)
    )
    return f'<robot name="chain">\n{links}{joints}</robot>'


def star(count: int) -> str:
    """A URDF of `count` links, each fixed to the first."""
    links = "".join(f'<link name="l{k}"/>\n' for k in range(count + 1))
    joints = "".join(
        f'<joint name="j{k}" type="fixed"><parent link="l0"/><child link="l{k}"/></joint>\n'
        for k in range(1, count + 1)
    )
    return f'<robot name="star">\n{links}{joints}</robot>'


# ---------------------------------------------------------------------------------------------- trying


def try_file(path: Path) -> Outcome:
    """Load a file and, if it is accepted, simulate it; everything that the user would see is kept."""
    outcome = Outcome()
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught, watched(outcome.opened):
        warnings.simplefilter("always")
        try:
            mechanism = zw.load(path)
            outcome.finite = moves_finitely(mechanism)
            outcome.text = mechanism.to_json()
        except ZwangError as error:
            outcome.error = str(error)
        except Exception as error:
            outcome.error, outcome.typed = f"{type(error).__name__}: {error}", False
    outcome.seconds = time.process_time() - begin
    outcome.warnings = [str(w.message) for w in caught if issubclass(w.category, ZwangWarning)]
    return outcome


def moves_finitely(mechanism: Mechanism) -> bool:
    """Do 300 steps from home stay finite? Of larger mechanisms, fewer steps, or the acceleration at home alone."""
    if mechanism.nv == 0:
        return True
    if mechanism.nv > LARGE:
        q, v = np.array(mechanism.home or mechanism.neutral, float), np.zeros(mechanism.nv)
        a = aba(mechanism.tree, q, v, passive_forces(mechanism, q, v))
        return bool(np.isfinite(np.asarray(a, float)).all())
    small = mechanism.nv < MIDDLE
    steps = STEPS if small else FEW
    step = min(float(mechanism.options.timestep), 0.002)
    run = zw.simulate(mechanism, duration=steps * step, step=step, compiled=small)
    return bool(np.isfinite(run["q"].values).all() and np.isfinite(run["v"].values).all())


_opened: list[list[str]] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened and event in ("open", "os.open") and isinstance(arguments[0], (str, bytes, os.PathLike)):
        _opened[-1].append(os.path.realpath(os.fsdecode(arguments[0])))


sys.addaudithook(_audit)


@contextmanager
def watched(names: list[str]) -> Iterator[None]:
    """The files that Python opens meanwhile."""
    _opened.append(names)
    try:
        yield
    finally:
        _opened.pop()


def try_in_child(path: Path, seconds: float) -> Outcome:
    """The same in a process of its own, whose memory is measured, and which is ended if it hangs."""
    command = [sys.executable, "-m", "tests.io.child", str(path)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    patience = PATIENCE * seconds + 60
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=patience, env=environment, cwd=root
        )
    except subprocess.TimeoutExpired:
        return Outcome(error=f"hangs: no answer after {patience} s", typed=False, seconds=patience)
    if done.returncode != 0:
        return Outcome(error=f"crashes with code {done.returncode}: {done.stderr[-500:]}", typed=False)
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


# ---------------------------------------------------------------------------------------------- judging


def fault(case: dict[str, Any], outcome: Outcome, root: Path) -> str:
    """Why the outcome is not what the case asks for; empty if it is."""
    if not outcome.typed:
        return f"no error of zwang's: {outcome.error}"
    canary = case.get("canary")
    if canary and (canary in outcome.said or canary in outcome.text):
        return "what is outside leaked"
    outside = [name for name in outcome.opened if Path(name).is_relative_to(root / "outside")]
    if outside:
        return f"opened {outside}"
    if outcome.seconds > case["max_s"]:
        return f"took {outcome.seconds:.1f} s; {case['max_s']} s are allowed"
    if outcome.megabytes > case["max_mb"]:
        return f"took {outcome.megabytes:.0f} MB; {case['max_mb']} MB are allowed"
    return RULES[case["must"]](case, outcome)


SILENT = "accepted without a word"


def _accepted(case: dict[str, Any], outcome: Outcome) -> str:
    if outcome.error:
        return f"refused: {outcome.error}"
    return "" if outcome.finite else "its motion is not finite"


def _refused(case: dict[str, Any], outcome: Outcome) -> str:
    """A typed error that says where and what; where a warning will do, one such warning. Another fault's message is none."""
    if outcome.said.strip() == "":
        return SILENT
    if case["must"] == "reject" and not outcome.error:
        return f"only warned: {outcome.said}"
    told = [outcome.error] if outcome.error else outcome.warnings
    missing = [[words for words in _asked(case) if not _says(message, words)] for message in told]
    return (
        "" if [] in missing else f"no one message says all that is asked, lacking {missing}: {outcome.said}"
    )


def _asked(case: dict[str, Any]) -> list[list[str]]:
    """The alternatives, of which a message has to have one each: of where the fault is, and of what it is."""
    name = re.escape(Path(case["file"]).name)
    return [
        [name if word == "FILE" else word for word in case[key]] for key in ("where", "what") if case[key]
    ]


def _says(message: str, words: list[str]) -> bool:
    return any(re.search(word, message, re.IGNORECASE) for word in words)


def _bounded(case: dict[str, Any], outcome: Outcome) -> str:
    return _refused(case, outcome) if outcome.error else _accepted(case, outcome)


def _contained(case: dict[str, Any], outcome: Outcome) -> str:
    return "" if outcome.error or outcome.finite else "its motion is not finite"


RULES = {
    "accept": _accepted,
    "reject": _refused,
    "reject_or_warn": _refused,
    "bounded": _bounded,
    "contained": _contained,
}
