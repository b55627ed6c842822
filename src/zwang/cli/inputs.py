"""What the arguments of several commands denote: models, numbers of worlds and name=value pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import zwang as zw
from zwang.cli.command_options import FILE_OPTIONS, FileOptions
from zwang.errors import LoadError, SimulationError, did_you_mean
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.mocap import moved_mocap_bodies
from zwang.mechanism.samples import SAMPLES
from zwang.mechanism.symbols import with_symbolic_parameters

MOST_WORLDS = 10_000_000  # of one command
DOCUMENTS = (".urdf", ".xml", ".mjcf", ".json")


def model_of(
    model: str | Path,
    files: FileOptions = FILE_OPTIONS,
    *,
    strict: bool = True,
    symbolic: Sequence[str] = (),
    param: Sequence[str] | None = None,
    keyframe: str | None = None,
) -> Mechanism:
    """The mechanism of a file, or a sample. Raises LoadError, with similar names, where there is neither.

    symbolic: the kinds of numbers that become symbols. param: values of symbols, as name=value.
    keyframe: one at whose poses the mocap bodies are.
    """
    name = str(model)
    if Path(name).exists():
        m = zw.load(name, strict=strict, symbolic=symbolic, **vars(files))
    elif name in SAMPLES:
        m = with_symbolic_parameters(SAMPLES[name](), symbolic)
    else:
        raise LoadError(missing_file_message(Path(name), DOCUMENTS, SAMPLES))
    m = m.subs(parse_pairs(param))
    if keyframe is None or not moved_mocap_bodies(m, m.keyframe(keyframe).mocap):
        return m
    moved, poses = zw.with_mocap_parameters(m, keyframe)
    return moved.subs(poses)


def missing_file_message(path: Path, endings: tuple[str, ...], samples: Iterable[str] = ()) -> str:
    """The message for a path without a file, with similar names of samples and of files beside it."""
    folder = path.parent
    try:
        neighbours = sorted(
            str(folder / file.name) for file in folder.iterdir() if file.suffix.lower() in endings
        )
    except OSError:
        neighbours = []
    question = did_you_mean(path, [*samples, *neighbours])
    samples_text = f" The samples are: {', '.join(samples)}." if samples else ""
    what = "neither a file nor a sample" if samples else "no such file"
    return f"there is {what} {str(path)!r}.{' ' * bool(question)}{question}{samples_text}"


def check_keyframe(keyframe: str | None, others: Mapping[str, Any]) -> None:
    """Raises SimulationError for a keyframe beside options of the initial state that it gives."""
    given = [name for name, value in others.items() if value is not None]
    if keyframe is not None and given:
        raise SimulationError(f"--keyframe gives the whole initial state; leave out {' and '.join(given)}")


def check_counts(worlds: int, seed: int = 0) -> None:
    """Check the number of worlds and the seed. Raises SimulationError for values that are out of range."""
    if not 1 <= worlds <= MOST_WORLDS:
        raise SimulationError(f"--worlds is {worlds}; give a whole number from 1 to {MOST_WORLDS:,}")
    if seed < 0:
        raise SimulationError(f"--seed is {seed}; it must not be negative")


def parse_pairs(texts: Sequence[str] | None) -> dict[str, float]:
    """A dictionary from texts of the form name=value. Raises LoadError for any other form, and for a name
    that is given twice.
    """
    found = {}
    for text in texts or ():
        name, equals, value = text.rpartition("=")
        if name in found:
            raise LoadError(f"{name!r} has two values, {found[name]:g} and {value}; give one")
        try:
            found[name] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise LoadError(f"{text!r} is not 'name=value' with a number, such as alpha=0.1")
    return found
