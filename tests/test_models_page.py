"""A sample of the table docs/models.md, measured again, and the limits of its measurements."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("the limits of a process are those of POSIX", allow_module_level=True)

from benchmarks import model_comparison
from benchmarks.model_table import AGREES, Row, table
from benchmarks.models import measured

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
SAMPLE = ("inverted_double_pendulum.xml", "half_cheetah.xml", "reacher.xml")


def assets() -> Path:
    """The folder of Gymnasium's models."""
    files = metadata.files("gymnasium") or ()
    return Path(str(next(f for f in files if f.name == SAMPLE[0]).locate())).parent


def cells_of(source: str) -> dict[str, list[str]]:
    """The cells of each model of a source, by file."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {source}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if "|" in line]
    return {row[0].replace("\\", ""): row[1:] for row in rows[2:]}


@pytest.mark.parametrize("name", SAMPLE)
def test_the_table_tells_what_is_measured(name: str, capsys: pytest.CaptureFixture[str]):
    listed = cells_of("Gymnasium")[name]
    model_comparison.main("floats", str(assets() / name), str(assets()))
    stages = [model_comparison.json.loads(line) for line in capsys.readouterr().out.splitlines()]
    row = Row({"source": "Gymnasium", "file": name, "floats": stages})
    assert listed[0] == ("yes" if row.is_strict else row.reason)
    assert not row.ending and not row.refusals
    assert row.qacc is not None and row.qacc <= AGREES and float(listed[1]) <= AGREES
    assert len(row.states) >= 3


def test_a_comparison_that_takes_too_long_is_stopped(tmp_path: Path):
    path = tmp_path / "model.xml"
    path.write_text("<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>")
    stages = measured("floats", path, tmp_path, seconds=0.1, memory=8)
    assert stages[-1]["stage"] == "ended"
    assert "stopped after" in Row({"source": "s", "file": "f", "floats": stages}).ending


def test_differences_and_reasons_are_shown():
    stages: list[dict[str, Any]] = [
        {"stage": "mujoco", "version": "4.0.0", "nv": 1},
        {"stage": "load", "seconds": 1.0},
        {"stage": "state", "name": "zero", "qacc": float("nan"), "smooth": 1e-15},
    ]
    refused = [
        stages[0],
        {"stage": "load", "error": "b.xml, line 3: actuator 'x' with a delay is not supported"},
    ]
    aborted = [*stages[:2], {"stage": "ended", "code": -6, "error": ""}]
    page = table(
        {"source": "S", "file": f"{name}.xml", "floats": found}
        for name, found in (("a", stages), ("b", refused), ("c", aborted))
    )
    assert "| S | - | 3 | 3 | 2 | 1 | 0 | 1 | 1 | 0 |" in page
    assert "| 1 | actuator ... with a delay |" in page
    assert "| S: a.xml | inf | 1e-15 | - |" in page
    assert "ended by signal 6" in page
