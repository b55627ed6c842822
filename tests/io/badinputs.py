"""The malicious and mistaken inputs of tests/badinputs: how each is run and its outcome judged."""

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
STEPS, FEW_STEPS = 300, 3
MEDIUM, LARGE = 50, 200  # speeds
SLOW_MACHINE = 3  # times the processor time that is allowed, on a machine that others use
WALL_CLOCK_FACTOR = 8  # wall-clock seconds for each second of processor time until a timeout


@dataclass
class Outcome:
    """The outcome of an input; seconds are processor time, so that they do not depend on the load."""

    error: str = ""
    typed: bool = True
    warnings: list[str] = field(default_factory=list)
    finite: bool = True
    seconds: float = 0.0
    megabytes: float = 0.0
    opened: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def messages(self) -> str:
        """All messages to the user."""
        return "\n".join([self.error, *self.warnings])


def expectations(formats: tuple[str, ...]) -> list[dict[str, Any]]:
    """The cases of these formats."""
    cases = json.loads((FOLDER / "expectations.json").read_text(encoding="utf-8"))
    return [case for case in cases if case["format"] in formats]


def staged(folder: Path) -> Path:
    """A copy of the inputs, with pipes, devices, directories and very large files added."""
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
    """A URDF of `count` revolute joints in series."""
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
    """A URDF of `count` links that are fixed to the first."""
    links = "".join(f'<link name="l{k}"/>\n' for k in range(count + 1))
    joints = "".join(
        f'<joint name="j{k}" type="fixed"><parent link="l0"/><child link="l{k}"/></joint>\n'
        for k in range(1, count + 1)
    )
    return f'<robot name="star">\n{links}{joints}</robot>'


# ---------------------------------------------------------------------------------------------- running


def try_file(path: Path) -> Outcome:
    """Load a file and, if it is accepted, simulate it; all messages are recorded."""
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
    """Whether 300 steps remain finite; for larger mechanisms, fewer steps, or the initial acceleration."""
    if mechanism.nv == 0:
        return True
    if mechanism.nv > LARGE:
        q, v = np.array(mechanism.home or mechanism.neutral, float), np.zeros(mechanism.nv)
        a = aba(mechanism.tree, q, v, passive_forces(mechanism, q, v))
        return bool(np.isfinite(np.asarray(a, float)).all())
    small = mechanism.nv < MEDIUM
    steps = STEPS if small else FEW_STEPS
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
    """Context that records the files that Python opens."""
    _opened.append(names)
    try:
        yield
    finally:
        _opened.pop()


def try_in_child(paths: list[Path], seconds: float) -> list[Outcome]:
    """The outcomes in a separate process, whose memory is measured, and which is terminated if it hangs."""
    command = [sys.executable, "-m", "tests.io.child", *map(str, paths)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    patience, failed = WALL_CLOCK_FACTOR * seconds + 60, ""
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=root
    )
    try:
        out, messages = child.communicate(timeout=patience)
        if child.returncode != 0:
            failed = f"crashes with code {child.returncode}: {messages[-500:]}"
    except subprocess.TimeoutExpired:
        child.kill()
        out, _ = child.communicate()
        failed = f"hangs: no response after {patience} s"
    found = [Outcome(**json.loads(line)) for line in out.splitlines() if line.startswith("{")]
    if failed:  # in the first file without an outcome; the later ones have none
        found += [Outcome(error=failed, typed=False)] * (len(paths) - len(found))
    return found


# ---------------------------------------------------------------------------------------------- judging


def failure(case: dict[str, Any], outcome: Outcome, root: Path) -> str:
    """Why the outcome differs from the expected one; empty if it does not."""
    if not outcome.typed:
        return f"no error of zwang's: {outcome.error}"
    canary = case.get("canary")
    if canary and (canary in outcome.messages or canary in outcome.text):
        return "what is outside leaked"
    outside = [name for name in outcome.opened if Path(name).is_relative_to(root / "outside")]
    if outside:
        return f"opened {outside}"
    if outcome.seconds > SLOW_MACHINE * case["max_s"]:
        return f"took {outcome.seconds:.1f} s; {case['max_s']} s are allowed"
    if outcome.megabytes > case["max_mb"]:
        return f"took {outcome.megabytes:.0f} MB; {case['max_mb']} MB are allowed"
    return RULES[case["must"]](case, outcome)


SILENT = "accepted without an error or a warning"


def _accepted(case: dict[str, Any], outcome: Outcome) -> str:
    if outcome.error:
        return f"refused: {outcome.error}"
    return "" if outcome.finite else "its motion is not finite"


def _refused(case: dict[str, Any], outcome: Outcome) -> str:
    """Whether an error, or a permitted warning, states the location and the problem of the case."""
    if outcome.messages.strip() == "":
        return SILENT
    if case["must"] == "reject" and not outcome.error:
        return f"only warned: {outcome.messages}"
    messages = [outcome.error] if outcome.error else outcome.warnings
    missing = [[words for words in _asked(case) if not _says(message, words)] for message in messages]
    return (
        ""
        if [] in missing
        else f"no one message says all that is asked, lacking {missing}: {outcome.messages}"
    )


def _asked(case: dict[str, Any]) -> list[list[str]]:
    """The accepted texts for the location and for the problem; a message must contain one of each."""
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
