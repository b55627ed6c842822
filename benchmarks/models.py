"""The table of models that other people made, compared with MuJoCo: `docs/models.md`.

    python -m benchmarks.models [--results FILE] [--table FILE] [--seconds 60] [--compile-seconds 90]
                                [--memory 12] [--no-compile] NAME=FOLDER|PACKAGE ...

Each source is a folder, or an installed package, with MJCF files, and a name for the table. Every file that
MuJoCo loads is compared by `benchmarks.model_comparison` in a process of its own, with limits of time and
memory, so that no file can stop the others. The results are written to a file of JSON lines, one a file;
files that are in it already are not measured again. Without sources, the table is made of these results.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import model_comparison
from benchmarks.model_table import table

ROOT = Path(__file__).parents[1]
WALL = 10  # wall time at most, in multiples of the time of computing, on a machine with other work
PROCESSES = multiprocessing.get_context("forkserver")
ERRORS = ".errors"
RESULTS, TABLE = ROOT / "build" / "models.jsonl", ROOT / "docs" / "models.md"


def files_of(folder: Path) -> list[Path]:
    """The files in the folder whose root element may be <mujoco>, small ones first."""
    found = [path for path in folder.rglob("*.xml") if b"<mujoco" in path.read_bytes()[:20_000]]
    return sorted(found, key=lambda path: (path.stat().st_size, path))


def folder_of(source: str) -> Path:
    """The folder of a source, which is a folder or the name of a package."""
    if Path(source).is_dir():
        return Path(source)
    spec = importlib.util.find_spec(source)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{source} is neither a folder nor an installed package")
    return Path(next(iter(spec.submodule_search_locations)))


def run_stage(stage: str, file: str, folder: str, limits: tuple[float, float], log: str) -> None:
    """Run a stage of the comparison in this process, within limits; what it prints is written to `log`."""
    seconds, memory = limits
    resource.setrlimit(resource.RLIMIT_AS, (int(memory * 2**30), int(memory * 2**30)))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for stream, name in ((sys.stdout, log), (sys.stderr, log + ERRORS)):
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, stream.fileno())
    model_comparison.main(stage, file, folder)


def measured(stage: str, file: Path, folder: Path, seconds: float, memory: float) -> list[dict[str, Any]]:
    """The stages of a comparison; the last one tells how the process ended."""
    with tempfile.TemporaryDirectory() as scratch:
        log = str(Path(scratch) / "log")
        arguments = (stage, str(file), str(folder), (seconds, memory), log)
        process = PROCESSES.Process(target=run_stage, args=arguments)
        process.start()
        process.join(WALL * seconds)
        if process.is_alive():
            process.kill()
            process.join()
            error = f"stopped after {WALL * seconds:g} s"
        elif process.exitcode == -signal.SIGXCPU:
            error = f"stopped after {seconds:g} s of computing"
        else:
            error = ""
        text, errors = (Path(name).read_text(errors="replace") if Path(name).exists() else ""
                        for name in (log, log + ERRORS))  # fmt: skip
    ended = {"code": None, "error": error} if error else {"code": process.exitcode, "error": errors[-300:]}
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return lines if lines and lines[-1]["stage"] == "end" else [*lines, {"stage": "ended", **ended}]


def compare(source: str, folder: Path, path: Path, given: argparse.Namespace, known: dict[str, Any]) -> Any:
    """The result of one file: what is known of it, and what is still to be measured."""
    result = {"source": source, "file": path.relative_to(folder).as_posix(), **known}
    if "floats" not in result:
        result["floats"] = measured("floats", path, folder, given.seconds, given.memory)
    strict = any(s["stage"] == "load" and "error" not in s for s in result["floats"])
    if strict and given.compile and "compiled" not in result:
        result["compiled"] = measured("compiled", path, folder, given.compile_seconds, given.memory)
    return result


def read(results: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The results in a file of JSON lines, of which the last one of a file counts."""
    lines = results.read_text().splitlines() if results.exists() else []
    return {(r["source"], r["file"]): r for r in map(json.loads, lines)}


def append(results: Path, result: dict[str, Any]) -> None:
    """Write one more line."""
    with results.open("a") as file:
        file.write(json.dumps(result) + "\n")


def main() -> None:
    """Measure the sources, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sources", nargs="*", metavar="NAME=SOURCE")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--seconds", type=float, default=60, help="of computing, for accelerations")
    parser.add_argument("--compile-seconds", type=float, default=90, help="likewise, for compiled steps")
    parser.add_argument("--memory", type=float, default=12, help="GB of address space")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--match", default="", help="measure only files whose path contains this, again")
    given = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "ZWANG_CACHE": "off"}  # of the processes
    PROCESSES.set_forkserver_preload(["benchmarks.model_comparison"])
    given.results.parent.mkdir(parents=True, exist_ok=True)
    known = read(given.results)
    for argument in given.sources:
        name, _, source = argument.rpartition("=")
        folder = folder_of(source)
        total = {"source": name or folder.name, "file": "", "found": len(files_of(folder))}
        if known.get((total["source"], "")) != total:
            known[total["source"], ""] = total
            append(given.results, total)
        for path in files_of(folder):
            key = (name or folder.name, path.relative_to(folder).as_posix())
            if given.match not in key[1]:
                continue
            old = {} if given.match else known.get(key, {})
            result = compare(
                key[0], folder, path, given, {k: old[k] for k in ("floats", "compiled") if k in old}
            )
            if result != old:
                known[key] = result
                append(given.results, result)
    given.table.write_text(table(list(known.values())))


if __name__ == "__main__":
    main()
