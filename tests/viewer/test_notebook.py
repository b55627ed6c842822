"""Displays in notebooks: a table and a picture of a mechanism, a summary and a player of a recording; names
are text.
"""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest
import sympy as sp
import xarray as xr

import zwang as zw
from tests.mechanisms import random_mechanism
from tests.viewer.chromium import Browser
from tests.viewer.scenes import HOSTILE, Elements, array, scene_in
from zwang.mechanism.samples import FURUTA, double_pendulum, four_bar, furuta
from zwang.viewer import notebook
from zwang.viewer.notebook import mechanism_html, run_html


def picture_in(html: str) -> np.ndarray:
    """The picture (height, width, 4) of a page fragment."""
    data = next(attrs["src"] for tag, attrs, _ in Elements(html).found if tag == "img") or ""
    head, _, text = data.partition(",")
    assert head == "data:image/png;base64"
    return matplotlib.image.imread(io.BytesIO(base64.b64decode(text)), format="png")


def page_in(html: str) -> str:
    """The page inside the frame."""
    frame = next(attrs for tag, attrs, _ in Elements(html).found if tag == "iframe")
    assert frame["sandbox"] == "allow-scripts"
    return frame["srcdoc"] or ""


def rows(html: str) -> dict[str, str]:
    """The lines of two cells: facts by title."""
    cells = re.findall(r"<tr><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td></tr>", html)
    return dict(cells)


def swing(**options) -> xr.Dataset:
    return zw.simulate(double_pendulum(), {"shoulder": 1.0}, duration=0.2, step=0.01, **options)


def test_a_mechanism_shows_its_bodies_joints_and_masses_and_a_picture():
    html = zw.Mechanism._repr_html_(four_bar())
    assert html is not None
    texts = Elements(html).texts("td")
    for body in four_bar().bodies:
        at = texts.index(body.name)
        assert texts[at + 1 : at + 3] == [body.parent, f"revolute {body.joints[0].name}"]
        assert float(texts[at + 3]) == pytest.approx(float(body.mass), rel=1e-3)
    assert Elements(html).texts("th") == ["body", "parent", "joint", "mass [kg]"]
    facts = rows(html)
    assert facts["total mass"] == "1.7 kg" and facts["dimensions"] == "nq = 3 coordinates, nv = 3 velocities"
    assert facts["constraints"] == "Connect loop" and facts["inputs"] == "motor"
    image = picture_in(html)
    assert 0.01 < (image[..., 3] > 0).mean() < 0.6


def test_limits_have_their_units_and_several_joints_their_lines():
    joints = (
        zw.Prismatic("slide", axis=(1, 0, 0), limits=(-0.5, 2)),
        zw.Revolute("turn", axis=(0, 0, 1), limits=(-1, 1)),
    )
    html = mechanism_html(zw.Mechanism(bodies=[zw.Body("a", joints, mass=1, inertia=(1, 1, 1))]))
    assert "prismatic slide<br>revolute turn" in html
    assert "[-0.5, 2] m<br>[-1, 1] rad" in html and "limits" in Elements(html).texts("th")


def test_symbols_are_listed_and_set_to_one_in_the_picture():
    html = mechanism_html(furuta())
    assert "B_p, B_r" in rows(html)["symbols"] and "m_p" in Elements(html).texts("td")
    assert (picture_in(html)[..., 3] > 0).any() and "each symbol set to 1" in html


def test_a_missing_picture_is_explained():
    a = sp.symbols("a", positive=True)
    far = zw.Body("b", zw.Revolute("j", limits=(0, a - 2)), mass=1, inertia=(1, 1, 1))
    html = mechanism_html(zw.Mechanism(bodies=[far]))  # with 1 the limits are in the wrong order
    assert "no picture" in html and "<img" not in html


def test_a_long_table_is_shortened_and_counts_its_bodies():
    bodies = [
        zw.Body(f"b{k}", zw.Revolute(f"j{k}"), parent=f"b{k - 1}" if k else "world", mass=1, com=(1, 0, 0))
        for k in range(43)
    ]
    html = mechanism_html(zw.Mechanism(bodies=bodies))
    assert "and 3 more" in html and "b39" in html and "b40" not in html


@pytest.mark.parametrize("seed", range(4))
def test_random_mechanisms_have_pictures(seed):
    assert (picture_in(mechanism_html(random_mechanism(seed)))[..., 3] > 0).any()


def named(name: str) -> zw.Mechanism:
    body = zw.Body(name, zw.Revolute(name, axis=(0, 1, 0), limits=(-1, 1)), mass=1, com=(0, 0, -1))
    return zw.Mechanism(
        name=name, bodies=[body], forces=[zw.Motor(name, name)], frames=[zw.Frame(name + " end", name)]
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_and_change_no_markup(name):
    harmless = [(tag, sorted(attrs)) for tag, attrs, _ in Elements(mechanism_html(named("plain"))).found]
    html = mechanism_html(named(name))
    assert [(tag, sorted(attrs)) for tag, attrs, _ in Elements(html).found] == harmless
    assert any(name.replace("\u2028\u2029", "  ")[:40] in text for text in Elements(html).texts("td"))


@pytest.mark.parametrize("name", HOSTILE[:3])
def test_names_in_a_recording_are_text(name):
    def tags(run: xr.Dataset) -> list[str]:
        return [tag for tag, _, _ in Elements(run_html(run)).found]

    runs = [zw.simulate(named(n), duration=0.02, step=0.01) for n in ("plain", name)]
    assert tags(runs[0]) == tags(runs[1])
    assert scene_in(page_in(run_html(runs[1])))["title"] == name


def test_a_recording_shows_its_summary_and_plays():
    run = swing(worlds=3)
    html = run_html(run)
    facts = rows(html)
    assert facts["simulated"].startswith("0.2 s, integrator euler") and facts["worlds"] == "3"
    assert facts["recorded"].startswith("21 times: q, v, tau")
    reported = float(facts["energy"].split("at most ")[1].split(" J")[0])
    energy = run["energy"].values
    assert reported == pytest.approx(np.abs(energy - energy[:, :1]).max(), rel=1e-2)
    scene = scene_in(page_in(html))
    assert len(scene["worlds"]) == 3
    np.testing.assert_allclose(
        array(scene, scene["run"]["q"]).reshape(3, -1, 2)[:, -1], run["q"][:, -1], rtol=1e-6
    )
    assert "xarray.Dataset" in html


def test_worlds_with_different_parameters_are_listed_and_played(monkeypatch):
    numbers = {name: value for name, value in FURUTA.items() if name != "m_p"}
    m = furuta(**{name: value for name, value in numbers.items() if name != "g"})
    run = zw.simulate(m, {"alpha": 0.2}, duration=0.05, params={"g": 9.81, "m_p": [0.02, 0.03]})
    html = run_html(run)
    assert rows(html)["parameters"] == "g = 9.81, m_p = 0.02 to 0.03"
    assert len(scene_in(page_in(html))["worlds"]) == 2
    monkeypatch.setattr(notebook, "MAXIMUM_PAGE_BYTES", 1000)
    assert (picture_in(run_html(run))[..., 3] > 0).any()


def test_a_long_recording_has_a_picture_instead(monkeypatch):
    run = swing(worlds=2)
    monkeypatch.setattr(notebook, "MAXIMUM_PAGE_BYTES", 1000)
    html = run_html(run)
    assert "<iframe" not in html and "zw.save_html(run, path)" in html
    hanging = run_html(zw.simulate(double_pendulum(), duration=0.02, step=0.01))
    assert not np.array_equal(picture_in(html), picture_in(hanging))


def test_meshes_are_in_the_page_and_not_in_the_data():
    vertices = np.random.default_rng(0).normal(size=(3000, 3))
    body = zw.Body(
        "b",
        zw.Revolute("j"),
        mass=1,
        inertia=(1, 1, 1),
        geometry=[zw.Mesh(vertices=vertices.tolist(), faces=[(0, 1, 2), (2, 1, 0)], visual_only=True)],
    )
    run = zw.simulate(zw.Mechanism(bodies=[body]), duration=0.02, step=0.01)
    some = str(run["mechanism"].item())[20_000:20_060]
    assert some in run._repr_html_() and some not in run_html(run)


def test_worlds_that_stopped_early_are_counted():
    run = swing(worlds=2)
    run["status"][1], run["termination_time"][1] = 1, 0.07
    assert rows(run_html(run))["stopped early"] == "1 of 2 worlds, the first at 0.07 s"


def test_an_incomplete_recording_is_displayed_by_xarray():
    run = swing()
    for part in (run[["q", "v"]], run.isel(time=slice(0, 0)), run.isel(world=0)):
        assert run_html(part).count("zwang-run") == 0
    with xr.set_options(display_style="text"):
        assert "zwang-run" not in run_html(run)
    assert "zwang-run" in run_html(run.isel(time=slice(0, 5)))


CELL = """
import zwang as zw, xarray as xr
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
{load}
from zwang.mechanism.samples import double_pendulum
run = zw.simulate(double_pendulum(), duration=0.02, step=0.01)
for value in (double_pendulum(), run, xr.Dataset(), 3):
    data, _ = shell.display_formatter.format(value)
    print(data.get("text/html", "none").count("zwang-"), "text/plain" in data)
"""


def test_a_shell_displays_recordings_after_the_extension_is_loaded():
    pytest.importorskip("IPython")
    code = CELL.format(load="shell.run_line_magic('load_ext', 'zwang')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()[-4:]
    assert [line.split() for line in lines] == [["1", "True"], ["1", "True"], ["0", "True"], ["0", "True"]]


def test_a_notebook_displays_them_after_the_import(tmp_path):
    client, formats = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    code = (
        "import zwang as zw\nfrom zwang.mechanism.samples import double_pendulum\ndouble_pendulum()",
        "zw.simulate(double_pendulum(), {'shoulder': 1.0}, duration=0.1, step=0.01)",
        "zw.equations(double_pendulum())",
    )
    cells = [formats.v4.new_code_cell(text) for text in code]
    book = formats.v4.new_notebook(cells=cells)
    client.NotebookClient(
        book, kernel_name="python3", timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    mechanism, run, equations = (cell["outputs"][-1]["data"]["text/html"] for cell in book.cells)
    assert (picture_in(mechanism)[..., 3] > 0).any()
    assert scene_in(page_in(run))["run"] is not None
    assert "Equations of motion" in equations


@pytest.mark.needs("chromium")
def test_the_player_moves_inside_the_page(tmp_path):
    browser = Browser(tmp_path / "profile", (1000, 900))
    try:
        run = zw.simulate(double_pendulum(), {"shoulder": 2.0}, duration=3.0, step=0.01)
        (tmp_path / "run.html").write_text(f"<html><body>{run_html(run)}</body></html>", encoding="utf-8")
        browser.call("Page.navigate", url=(tmp_path / "run.html").as_uri())
        browser.until("document.readyState === 'complete' && Boolean(document.querySelector('iframe'))")
        seen: set[bytes] = set()
        for _ in range(40):
            browser.run("new Promise(done => setTimeout(done, 100))")
            seen.add(browser.screenshot())
            if len(seen) > 3:
                break
        assert len(seen) > 3, "the pictures do not change"
        assert browser.errors == []
    finally:
        browser.close()


UNUSUAL = {
    "nothing": zw.Mechanism(),
    "fixed": zw.Mechanism(bodies=[zw.Body("a", mass=1, com=(1, 0, 0))]),
    "ground": zw.Mechanism(geometry=[zw.Plane()]),
    "no mass": zw.Mechanism(bodies=[zw.Body("a", zw.Revolute("j", armature=1, limits=(-np.inf, np.inf)))]),
    "a point": zw.Mechanism(bodies=[zw.Body("a", zw.Free("j"), mass=1, inertia=(0, 0, 0))]),
    "far": zw.Mechanism(
        bodies=[zw.Body("a", zw.Revolute("j"), position=(1e9, 0, 0), mass=1, com=(1e-3, 0, 0))]
    ),
    "small": zw.Mechanism(bodies=[zw.Body("a", zw.Revolute("j"), mass=1e-9, com=(1e-9, 0, 0))]),
    "without gravity": zw.Mechanism(
        bodies=[zw.Body("a", zw.Screw("j", pitch=0.1), mass=1, inertia=(1, 1, 1))], gravity=(0, 0, 0)
    ),
    "springs": zw.Mechanism(
        bodies=[zw.Body("a", zw.Free("j"), mass=1, inertia=(1, 1, 1))],
        forces=[
            zw.PointSpring(("a", (0, 0, 1)), ("world", (0, 0, 3)), 10),
            zw.PointSpring(("a", (0, 0, 0)), ("world", (0, 0, 0)), 1),
        ],
    ),
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_unusual_mechanisms_have_pictures(what, recwarn):
    assert (picture_in(mechanism_html(UNUSUAL[what]))[..., 3] > 0).any()
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
