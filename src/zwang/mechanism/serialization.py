"""Mechanisms as JSON documents, the symbols in them, and substitution of symbols.

No code in a document is executed.
A document is {"format": "zwang 2", "value": part}. A part is an object with its class as "kind" and those
fields that differ from their defaults; tuples become lists. Documents of version 0.1 have the format "zwang
1" and, for the classes in `KINDS_OF_VERSION_1`, other names; they can be read as well.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from operator import is_
from typing import Any

import numpy as np

from zwang import scalar
from zwang.errors import LoadError, ZwangError
from zwang.mechanism import (
    bodies,
    constraints,
    contact_pairs,
    controllers,
    force_elements,
    geometry,
    joints,
    options,
    report,
    sensors,
    tendon_elements,
)
from zwang.mechanism.numbers import FrozenArray

FORMAT = "zwang 2"
READABLE_FORMATS = (FORMAT, "zwang 1")
KINDS_OF_VERSION_1 = {"Couple": "JointCoupling", "CoupleTendons": "TendonCoupling"}
"""The classes that had another name in version 0.1: old name to new name."""

_KEYS = {"kind": "kind_"}  # the key of a field whose name is reserved: "kind" is the class of the part
_ATOMS = str | bool | int | float | FrozenArray
_MODULES = (
    force_elements,
    controllers,
    joints,
    bodies,
    report,
    constraints,
    tendon_elements,
    contact_pairs,
    options,
    geometry,
    sensors,
)


def _kinds(root: type) -> dict[str, type]:
    """The classes that a document may name, `root` and the parts of a mechanism, by new and old names."""
    found = {root.__name__: root}
    for module in _MODULES:
        for name, value in vars(module).items():
            if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__:
                found[name] = value
    return found | {old: found[new] for old, new in KINDS_OF_VERSION_1.items()}


def symbols_in(value: Any) -> set[Any]:
    """All symbols in a part of a mechanism."""
    if is_dataclass(value):
        return set().union(*(symbols_in(getattr(value, f.name)) for f in fields(value)))
    if isinstance(value, tuple):
        return set().union(*(symbols_in(item) for item in value))
    if value is None or isinstance(value, _ATOMS):
        return set()
    return set(scalar.symbols_of(value))


def symbol_names(value: Any) -> set[str]:
    """The names of all symbols in a part of a mechanism."""
    return {str(symbol) for symbol in symbols_in(value)}


def substitute_symbols(value: Any, values: Mapping[str, Any]) -> Any:
    """The part with `values` for the symbols of these names. What contains such a symbol is built, and so
    validated, again; other parts are the same objects.
    """
    if value is None or isinstance(value, _ATOMS):
        return value
    if isinstance(value, tuple):
        items = tuple([substitute_symbols(item, values) for item in value])
        return value if all(map(is_, items, value)) else items
    if is_dataclass(value) and not isinstance(value, type):
        old = [getattr(value, f.name) for f in fields(value)]
        new = [substitute_symbols(part, values) for part in old]
        if all(map(is_, new, old)):
            return value
        return type(value)(**{f.name: part for f, part in zip(fields(value), new, strict=True)})
    return scalar.substitute(value, {s: values[str(s)] for s in scalar.symbols_of(value) if str(s) in values})


def to_json(value: Any) -> str:
    """The part as JSON text. Floats are written with all digits, expressions as trees."""
    return json.dumps(
        {"format": FORMAT, "value": _encoded(value)}, indent=1, allow_nan=False, ensure_ascii=False
    )


def from_json(text: str | bytes, root: type) -> Any:
    """The instance of `root` that `to_json` wrote, in this version or in version 0.1.

    Raises LoadError for other text.
    """
    if not isinstance(text, str | bytes):
        raise LoadError(f"JSON text is expected, not a {type(text).__name__}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"this is not valid JSON text: {error}") from None
    known = isinstance(document, dict) and document.get("format") in READABLE_FORMATS
    if not known or "value" not in document:
        raise LoadError(f"this JSON text is not a mechanism: it must have the entry format = {FORMAT!r}")
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
        raise LoadError(f"this JSON text is not a valid mechanism: {error}") from None
    if not isinstance(value, root):
        raise LoadError(f"this JSON text describes a {type(value).__name__}, not a {root.__name__}")
    return value


def _encoded(value: Any) -> Any:
    """`value` as JSON data; fields with their default values are omitted."""
    if is_dataclass(value) and not isinstance(value, type):
        given = {f.name: getattr(value, f.name) for f in fields(value)}
        default = {f.name: f.default for f in fields(value)}
        kept = {
            k: _encoded(v) for k, v in given.items() if type(v) is not type(default[k]) or v != default[k]
        }
        return {"kind": type(value).__name__, **{_KEYS.get(name, name): part for name, part in kept.items()}}
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, scalar.ExactNumber):
        return {"expression": scalar.to_data(value.expression)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, FrozenArray):
        return _encoded_array(np.asarray(value))
    return {"expression": scalar.to_data(value)}


def _encoded_array(array: np.ndarray) -> dict[str, Any]:
    """The bytes of an array, little-endian, as base64 text."""
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    text = base64.b64encode(array.astype(kind).tobytes()).decode("ascii")
    return {"of": kind, "columns": 1 if array.ndim == 1 else array.shape[1], "block": text}


def _decoded_array(value: Mapping[str, Any]) -> FrozenArray:
    """The array that `_encoded_array` wrote."""
    columns = value["columns"]
    if value["of"] not in ("<f8", "<i8") or type(columns) is not int or columns < 1:
        raise LoadError("this JSON text contains a damaged array of numbers")
    array = np.frombuffer(base64.b64decode(value["block"], validate=True), dtype=value["of"])
    return FrozenArray(array.reshape(-1, columns), columns, float if value["of"] == "<f8" else int)


def _decoded(value: Any, kinds: Mapping[str, type]) -> Any:
    """The value that `_encoded` wrote; `kinds` are the classes by name."""
    if isinstance(value, list):
        return tuple(_decoded(item, kinds) for item in value)
    if not isinstance(value, dict):
        return value
    if set(value) == {"number"}:
        return float(value["number"])
    if set(value) == {"block", "columns", "of"}:
        return _decoded_array(value)
    if set(value) == {"expression"}:
        return scalar.from_data(value["expression"])
    names: dict[Any, Any] = {key: name for name, key in _KEYS.items()}
    arguments = {names.get(k, k): _decoded(v, kinds) for k, v in value.items() if k != "kind"}
    if value.get("kind") not in kinds:
        raise LoadError(f"this JSON text contains a part of the unknown kind {value.get('kind')!r}")
    return kinds[value["kind"]](**arguments)
