"""Measurements in CSV files, read strictly: an error names the line and the column."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments.validation import numeric_mechanism
from zwang.errors import LoadError, StateError, did_you_mean
from zwang.identification.measurements import Measurements, measurements
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr, validated_arguments

MOST_VALUES = 200_000_000  # of a file
LONGEST_HEADER = 1_000_000  # characters
SEPARATORS = ",;\t"
OTHERS = {" ": "spaces", "|": "vertical bars", ":": "colons"}
"""What may separate columns in other files, by name."""
COMMENTS = ("#", "%", "//")
DISPLACED = 0.01  # [rad or m] from its value that a coordinate which is fixed may have been


@validated_arguments()
def read_csv(
    mechanism: Mechanism,
    path: str | Path,
    *,
    cutoff: float | None = None,
    delay: ArrayLike = 0.0,
    check_units: bool = True,
    ignore: Sequence[str] = (),
    fixed: Mapping[str, float] | None = None,
) -> Measurements:
    """Measurements of a motion from a CSV file with a header, checked as by `measurements`.

    Columns, in any order, separated by commas, semicolons or tabs: "time" [s]; "q_NAME" of every
    coordinate and "tau_NAME" of every velocity, with the names of `mechanism.coordinate_names` and
    `mechanism.speed_names`; either all or none of "v_NAME", and of "a_NAME". cutoff [Hz], delay [s],
    check_units: as for `measurements`. ignore: columns of the file that are not read, such as those of
    joints that `with_fixed_joints` has fixed. fixed: the values [rad or m] of coordinates that are fixed,
    whose columns "q_NAME" may not be away from them by more than 0.01.
    Raises LoadError, with the line and the column, for a missing or unknown column, a name in ignore that is
    no column, or what is no number; and what `measurements` raises, also for fixed coordinates.
    """
    m, path = numeric_mechanism(mechanism), Path(path)
    wanted = {"q": m.coordinate_names, "tau": m.speed_names, "v": m.speed_names, "a": m.speed_names}
    ignored = set(ignore)
    columns = column_names(path)
    check_ignored(ignored, columns, str(path))
    ignored |= {f"q_{name}" for name in fixed or ()}
    known = ["time", *(f"{kind}_{name}" for kind, names in wanted.items() for name in names)]
    for k, column in enumerate(columns):
        if column not in known and column not in ignored:
            raise LoadError(
                f"{path}: {_unknown(columns, k, known)} The columns of mechanism {m.name!r} are "
                f"{', '.join(known[:12])}{', ...' if len(known) > 12 else ''}"
            )
    if fixed:
        _check_fixed(path, fixed)
    header, rows = _rows_of(path, lambda column: column not in ignored)
    at = {column: k for k, column in enumerate(header)}
    values: dict[str, np.ndarray] = {}
    for kind, names in wanted.items():
        columns = [f"{kind}_{name}" for name in names]
        missing = [column for column in columns if column not in at]
        if missing and (kind in ("q", "tau") or len(missing) < len(columns)):
            raise LoadError(f"{path}: there is no column {missing[0]!r}; its columns are {', '.join(header)}")
        if not missing:
            values[kind] = rows[:, [at[column] for column in columns]]
    if "time" not in at:
        raise LoadError(f"{path}: there is no column 'time'; its columns are {', '.join(header)}")
    try:
        return measurements(
            m, rows[:, at["time"]], values["q"], values["tau"], v=values.get("v"), a=values.get("a"),
            cutoff=cutoff, delay=delay, check_units=check_units,
        )  # fmt: skip
    except StateError as error:
        raise StateError(f"{path}: {error}") from error


def column_names(path: Path) -> list[str]:
    """The names of the columns of a file, by its header. Raises LoadError."""
    with _opened(path) as (_, columns):
        return columns


def check_ignored(ignored: Iterable[str], columns: Sequence[str], where: str) -> None:
    """Raises LoadError for a name of a column to be ignored that is no column."""
    for name in sorted(ignored):
        if name not in columns:
            remedy = did_you_mean(name, columns) or "Leave this name out."
            raise LoadError(
                f"{where}: ignore=[{short_repr(name)}] names no column. {remedy} The columns are "
                f"{', '.join(columns)}"
            )


def _unknown(columns: Sequence[str], k: int, known: Sequence[str]) -> str:
    """What is wrong with column k, which is not known, and the remedy."""
    column = columns[k]
    if column:
        remedy = did_you_mean(column, known) or f"Leave it out by ignore=[{short_repr(column)}]."
        if "time" not in columns:
            remedy = "There is no column 'time': give the times this name."
        return f"column {column!r} is unknown. {remedy}"
    remedy = "pandas writes no such column with to_csv(..., index=False)"
    if k == len(columns) - 1:
        remedy = "leave out separators at the ends of lines"
    return f"column {k + 1} of {len(columns)} has no name; {remedy}, or give ignore=['']."


def _check_fixed(path: Path, fixed: Mapping[str, float]) -> None:
    """Raises StateError for a column of a fixed coordinate that is away from its value."""
    values = {f"q_{name}": value for name, value in fixed.items()}
    header, rows = _rows_of(path, values.__contains__)
    for column, found in zip(header, rows.T, strict=True):
        away = found[~(np.abs(found - values[column]) <= DISPLACED)]
        if len(away):
            raise StateError(
                f"{path}: {column!r} is {away[0]:.6g} where its joint is fixed at {values[column]:.6g}; do "
                "not fix the joint, or give a model in which it has this position"
            )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, list[str]]]:
    """The reader of the lines of a file after its header, and the names of the columns. Raises LoadError."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header_line = next(filter(str.strip, iter(lambda: file.readline(LONGEST_HEADER), "")), "")
            file.seek(0)
            lines = csv.reader(file, delimiter=_separator(header_line))
            named = ([column.strip() for column in line] for line in lines)
            columns = next(filter(any, named), [])
            if not columns:
                raise LoadError(f"{path} is empty; its first line must name the columns")
            _check_header(columns, f"{path}, line {lines.line_num}")
            yield lines, columns
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise LoadError(f"{path} cannot be read: {reason}; give a CSV file in UTF-8") from error


def _rows_of(path: Path, wanted: Callable[[str], bool]) -> tuple[list[str], np.ndarray]:
    """The header and the numbers of a file, of the wanted columns. Raises LoadError with the line."""
    with _opened(path) as (lines, columns):
        header = [column for column in columns if wanted(column)]
        chosen = set(header)
        rows: list[list[float]] = []
        for line in lines:
            if line:
                rows.append(_numbers(line, columns, chosen, f"{path}, line {lines.line_num}"))
            if len(rows) * len(header) > MOST_VALUES:
                raise LoadError(f"{path} has more than {MOST_VALUES:,} values; give a shorter record")
    return header, np.array(rows, dtype=float).reshape(len(rows), len(header))


def _check_header(columns: list[str], where: str) -> None:
    """Raises LoadError for a comment, names that occur twice, and columns with another separator."""
    _check_comment(columns, where)
    unnamed = [str(k + 1) for k, column in enumerate(columns) if not column]
    if len(unnamed) > 1:
        raise LoadError(
            f"{where}: columns {', '.join(unnamed)} of {len(columns)} have no names; name them, and leave "
            "out separators at the ends of lines"
        )
    if len(set(columns)) < len(columns):
        twice = next(c for c in columns if columns.count(c) > 1)
        raise LoadError(f"{where}: column {twice!r} occurs twice; leave one out")
    found = next((name for mark, name in OTHERS.items() if mark in columns[0]), None)
    if len(columns) == 1 and found is not None:
        raise LoadError(
            f"{where}: the columns are separated by {found}, {columns[0][:40]!r}; separate them by commas, "
            "semicolons or tabs (delimiter=',' of numpy.savetxt, sep=',' of pandas)"
        )


def _check_comment(line: list[str], where: str) -> None:
    """Raises LoadError for a line that is a comment."""
    if line[0].lstrip().startswith(COMMENTS):
        raise LoadError(
            f"{where} is a comment, {line[0].strip()[:40]!r}; leave such lines out (numpy.savetxt writes a "
            "header without '#' with comments='')"
        )


def _separator(header: str) -> str:
    """The separator by which a header has the column of the time, or else most columns."""

    def columns(separator: str) -> tuple[bool, int]:
        found = [column.strip() for column in next(csv.reader([header], delimiter=separator), [])]
        return "time" in found, len(found)

    return max(SEPARATORS, key=columns)


def _numbers(line: list[str], columns: list[str], chosen: set[str], where: str) -> list[float]:
    """The numbers of a line in the chosen columns. Raises LoadError."""
    _check_comment(line, where)
    if len(line) != len(columns):
        end = ", and the line ends with a separator" if not line[-1].strip() else ""
        raise LoadError(f"{where} has {len(line)} values; the header has {len(columns)} columns{end}")
    found = []
    for text, column in zip(line, columns, strict=True):
        if column not in chosen:
            continue
        try:
            if "_" in text:  # which Python's numbers may contain
                raise ValueError(text)
            found.append(float(text))
        except ValueError:
            remedy = "; write a decimal point" if "," in text else ""
            if not text.strip():
                remedy = "; leave such lines out, or interpolate the value"
            raise LoadError(f"{where}: {column!r} is {text[:40]!r}, which is no number{remedy}") from None
    return found
