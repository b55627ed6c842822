"""`load`: detection of the format, symbols for numbers, and files that are not mechanisms."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zwang as zw
from tests.io.urdfs import loaded, pendulum, written
from zwang.errors import LoadError, ParameterError, PlausibilityWarning, UnsupportedError, ZwangError

MJCF = (
    '<mujoco><worldbody><body name="arm"><joint name="j"/><geom size=".1" pos="1 0 0"/></body>'
    "</worldbody></mujoco>"
)

# 10^(10^9) would be evaluated immediately, without end.
POWER = (
    '{"format": "zwang 1", "value": {"kind": "Mechanism", "gravity": [0, 0, {"expression": {"sympy": '
    '["Pow", ["Rational", 10, 1], ["Rational", 1000000000, 1]]}}]}}'
)


@pytest.mark.parametrize("name", ["a.urdf", "a.xml", "a.txt", "a"])
def test_the_content_decides_about_the_format(tmp_path: Path, name: str) -> None:
    assert zw.load(written(tmp_path, pendulum(), name)).report.format == "urdf"
    assert zw.load(written(tmp_path, MJCF, name)).report.format == "mjcf"
    text = '<?xml version="1.0"?>\n<!-- <robot> -->\n' + MJCF
    assert zw.load(written(tmp_path, text, name)).report.format == "mjcf"


def test_a_loaded_json_file_equals_the_mechanism(tmp_path: Path) -> None:
    m = loaded(tmp_path, pendulum())
    assert zw.load(written(tmp_path, m.to_json(), "m.json")) == m


def test_a_text_is_read_as_the_content_of_a_file(tmp_path: Path) -> None:
    """Formats, folders and messages are those of a file with this text at the path."""
    for text, format in ((pendulum(), "urdf"), (MJCF, "mjcf")):
        m = zw.load("no/such/file.xml", text=text)
        assert (m.bodies, m.report.format) == (zw.load(written(tmp_path, text, "file.xml")).bodies, format)
        assert zw.load("m.json", text=m.to_json()) == m
    included = written(tmp_path, MJCF, "arm.xml")
    outer = f'<mujoco><include file="{included.name}"/></mujoco>'
    assert zw.load(tmp_path / "outer.xml", text=outer).bodies == zw.load(included).bodies
    with pytest.raises(LoadError, match=r"part\.urdf.*line 1"):
        zw.load("part.urdf", text="<robot")
    with pytest.raises(LoadError, match="surrogate"):
        zw.load("part.urdf", text="<robot name='\ud800'/>")


def test_the_declared_encoding_does_not_apply_to_a_text() -> None:
    declared = '<?xml version="1.0" encoding="iso-8859-1"?>'
    assert "knöchel" in [b.name for b in zw.load("a", text=declared + MJCF.replace("arm", "knöchel")).bodies]
    urdf = declared + '<robot name="knöchel"><link name="base"/></robot>'
    assert zw.load("a", text=urdf).name == "knöchel"


def test_a_text_in_place_of_a_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="text="):
        zw.load(MJCF)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("hello", "not a valid document|XML"),
        ("<sdf version='1.7'/>", "SDF"),
        ("<html/>", "<html>"),
        ("{}", "format"),
        ("[1, 2]", "format"),
        ('{"format": "zwang 1", "value": {"kind": "Path"}}', "unknown kind"),
        ('{"format": "zwang 1", "value": {"kind": "Mechanism", "bodies": "abc"}}', "not a valid mechanism"),
        ('{"format": "zwang 1", "value": {"kind": "Mechanism", "gravity": [1e400, 0, 0]}}', "finite"),
        ('{"format": "zwang 1", "value": ' + "[" * 100_000, "JSON"),
        (POWER, "too large"),
    ],
)
def test_invalid_documents_raise(tmp_path: Path, text: str, message: str) -> None:
    for name in ("file.urdf", "file.json"):
        with pytest.raises(ZwangError, match=message):
            zw.load(written(tmp_path, text, name))


def test_missing_and_special_files_raise(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.urdf")
    for name, message in (("pipe.urdf", "pipe"), ("", "directory"), ("none.urdf", "no file")):
        with pytest.raises(LoadError, match=message):
            zw.load(tmp_path / name)
    with pytest.raises(LoadError, match="device"):
        zw.load("/dev/zero")
    with pytest.raises(LoadError, match="path"):
        zw.load(7)  # type: ignore[arg-type]


def test_a_free_base_requires_urdf(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="freejoint"):
        zw.load(written(tmp_path, MJCF), base="free")
    with pytest.raises(LoadError, match="floating"):
        zw.load(written(tmp_path, pendulum()), base="floating")  # type: ignore[arg-type]


def test_symbolic_replaces_numbers_by_symbols(tmp_path: Path) -> None:
    plain = loaded(tmp_path, pendulum(inside='<axis xyz="0 1 0"/><dynamics damping="0.5" friction="0.25"/>'))
    m = loaded(
        tmp_path,
        pendulum(inside='<axis xyz="0 1 0"/><dynamics damping="0.5" friction="0.25"/>'),
        symbolic=("mass", "com", "inertia", "damping", "friction", "gravity"),
    )
    names = {"m_arm", "c_arm_x", "c_arm_y", "c_arm_z", "d_shoulder", "f_shoulder", "g"}
    names |= {f"I_arm_{pair}" for pair in ("xx", "yy", "zz", "xy", "xz", "yz")}
    assert set(m.symbols) == names  # the base is fixed to the world: its mass has no effect
    values = {
        "m_arm": 1.0,
        "c_arm_x": 0,
        "c_arm_y": 0,
        "c_arm_z": -0.25,
        "d_shoulder": 0.5,
        "f_shoulder": 0.25,
        "g": 9.81,
    }
    values |= {
        f"I_arm_{pair}": 0.01 if pair[0] == pair[1] else 0 for pair in ("xx", "yy", "zz", "xy", "xz", "yz")
    }
    numeric = m.subs(values)
    for q, v in np.random.default_rng(0).normal(size=(5, 2)):
        np.testing.assert_allclose(
            zw.forward_dynamics(numeric, [q], [v], [0]), zw.forward_dynamics(plain, [q], [v], [0]), rtol=1e-14
        )


def test_an_unknown_kind_of_symbol_raises_with_the_valid_kinds(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="mass, com, inertia"):
        loaded(tmp_path, pendulum(), symbolic=("masses",))


def test_implausible_files_warn(tmp_path: Path) -> None:
    far = pendulum().replace("0 0 -0.25", "0 0 -250")
    with pytest.warns(PlausibilityWarning, match="millimetres"):
        zw.load(written(tmp_path, far))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zw.load(written(tmp_path, pendulum()))


WRONG = [
    None, True, -1, 0, 1e308, 10**30, "", "a", [], {}, [1, 2, 3], {"kind": "Body"}, {"number": "nan"},
    {"number": "x"}, {"expression": {"sympy": ["Symbol", "y", {}]}}, {"expression": {}},
    {"block": "AAAA", "columns": 3, "of": "<f8"},
    {"expression": {"sympy": ["Float", [0, 1, 10**15, 1], 53]}},
]  # fmt: skip


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_json_loads_or_raises(data: st.DataObject, tmp_path: Path) -> None:
    """A document with an arbitrary wrong value gives a mechanism or a LoadError."""
    document = json.loads(loaded(tmp_path, pendulum(), symbolic=("mass",)).to_json())
    places = [location for location in _places(document["value"]) if location]
    *path, last = data.draw(st.sampled_from(places))
    part = document["value"]
    for step in path:
        part = part[step]
    part[last] = data.draw(st.sampled_from(WRONG))
    try:
        assert zw.load(written(tmp_path, json.dumps(document), "m.json")).tree.nv <= 1
    except LoadError as error:
        assert "m.json" in str(error)


def _places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every part of a document."""
    yield path
    parts = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, part in parts:
        yield from _places(part, (*path, key))


def test_a_xacro_file_raises_with_the_remedy(tmp_path: Path) -> None:
    text = '<robot xmlns:xacro="x"><xacro:property name="a" value="1"/><link name="b"/></robot>'
    with pytest.raises(UnsupportedError, match="convert it to URDF by xacro"):
        zw.load(written(tmp_path, text))


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ('<worldbody><flexcomp name="f" type="grid" count="2 2 1" spacing=".1 .1 .1" dim="2" mass="1"/>'
         '</worldbody><equality><connect body1="f_0" anchor="0 0 0"/></equality>', "'f' is a deformable"),
        ('<asset><mesh name="nut"><plugin plugin="mujoco.sdf.nut"/></mesh></asset>', "is a plugin"),
    ],
    ids=["flex", "plugin"],
)  # fmt: skip
def test_what_is_rejected_without_an_unsupported_part_names_that_part(parts, named):
    text = MJCF.replace("<mujoco>", f"<mujoco>\n{parts}", 1)
    for strict in (True, False):
        with pytest.raises(UnsupportedError, match=rf"line 2.*{named}.*not supported"):
            zw.load("m.xml", text=text, strict=strict)
