"""A description as a document: to JSON and back, its symbols, and values for them. No code in a document is ever run."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from zwang import scalar
from zwang.errors import LoadError, ZwangError
from zwang.mechanism import bodies, constraints, force_elements, geometry, joints, report
from zwang.mechanism.numbers import FrozenArray

FORMAT = "zwang 1"
_KEYS = {"kind": "kind_"}  # a field's key where its name is taken: "kind" is that of the part
_PLAIN = str | bool | int | float | FrozenArray
_ROOMS = (force_elements, joints, bodies, report, constraints, geometry)


def _kinds(root: type) -> dict[str, type]:
    """The classes that a document may name, and no others."""
    found = {root.__name__: root}
    for room in _ROOMS:
        for name, value in vars(room).items():
            if isinstance(value, type) and is_dataclass(value) and value.__module__ == room.__name__:
                found[name] = value
    return found


def symbols_in(value: Any) -> set[str]:
    """The names of all symbols in a description."""
    if is_dataclass(value):
        return set().union(*(symbols_in(getattr(value, f.name)) for f in fields(value)))
    if isinstance(value, tuple):
        return set().union(*(symbols_in(item) for item in value))
    if value is None or isinstance(value, _PLAIN):
        return set()
    return {str(symbol) for symbol in scalar.symbols_of(value)}


def substitute_symbols(value: Any, values: Mapping[str, Any]) -> Any:
    """The description with `values` for the symbols of these names; parts are built, and so checked, again."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{f.name: substitute_symbols(getattr(value, f.name), values) for f in fields(value)})
    if isinstance(value, tuple):
        return tuple(substitute_symbols(item, values) for item in value)
    if value is None or isinstance(value, _PLAIN):
        return value
    return scalar.substitute(value, {s: values[str(s)] for s in scalar.symbols_of(value) if str(s) in values})


def to_json(value: Any) -> str:
    """The description as JSON text; floats keep every bit, expressions are kept as trees."""
    return json.dumps(
        {"format": FORMAT, "value": _encoded(value)}, indent=1, allow_nan=False, ensure_ascii=False
    )


def from_json(text: str, root: type) -> Any:
    """The description that `to_json` wrote. Raises LoadError for anything else."""
    if not isinstance(text, str | bytes):
        raise LoadError(f"this is no JSON text but a {type(text).__name__}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"this is no JSON text: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT or "value" not in document:
        raise LoadError(f"this JSON text is no mechanism: it must have the entry format = {FORMAT!r}")
    try:
        value = _decoded(document["value"], _kinds(root))
    except LoadError:
        raise
    except (
        ZwangError,
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise LoadError(f"this JSON text is no mechanism: {error}") from None
    if not isinstance(value, root):
        raise LoadError(f"this JSON text describes a {type(value).__name__}, not a {root.__name__}")
    return value


def _encoded(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        shown = {f.name: getattr(value, f.name) for f in fields(value)}
        plain = {f.name: f.default for f in fields(value)}
        kept = {k: _encoded(v) for k, v in shown.items() if type(v) is not type(plain[k]) or v != plain[k]}
        return {"kind": type(value).__name__, **{_KEYS.get(name, name): part for name, part in kept.items()}}
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, FrozenArray):
        return _encoded_block(np.asarray(value))
    return {"expression": scalar.to_data(value)}


def _encoded_block(array: np.ndarray) -> dict[str, Any]:
    """An array's bytes, little-endian, as base64 text."""
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    text = base64.b64encode(array.astype(kind).tobytes()).decode("ascii")
    return {"of": kind, "columns": array.shape[1], "block": text}


def _decoded_block(value: Mapping[str, Any]) -> FrozenArray:
    columns = value["columns"]
    if value["of"] not in ("<f8", "<i8") or type(columns) is not int or columns < 1:
        raise LoadError("this JSON text has a block of numbers that is damaged")
    array = np.frombuffer(base64.b64decode(value["block"], validate=True), dtype=value["of"])
    return FrozenArray(array.reshape(-1, columns), columns, float if value["of"] == "<f8" else int)


def _decoded(value: Any, kinds: dict[str, type]) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item, kinds) for item in value)
    if not isinstance(value, dict):
        return value
    if set(value) == {"number"}:
        return float(value["number"])
    if set(value) == {"block", "columns", "of"}:
        return _decoded_block(value)
    if set(value) == {"expression"}:
        return scalar.from_data(value["expression"])
    names: dict[Any, Any] = {key: name for name, key in _KEYS.items()}
    arguments = {names.get(k, k): _decoded(v, kinds) for k, v in value.items() if k != "kind"}
    if value.get("kind") not in kinds:
        raise LoadError(f"this JSON text has a part of the unknown kind {value.get('kind')!r}")
    return kinds[value["kind"]](**arguments)
