"""The offline page: it is self-contained, treats names as text, and contains the recorded motion."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

import zwang as zw
from tests.mechanisms import random_mechanism, random_quaternion
from tests.viewer.scenes import HOSTILE, Elements, array, link_poses, pose, scene_in, shapes, two_floors
from zwang.errors import ParameterError, ShapeError, SimulationWarning, UnknownNameError
from zwang.mechanism.samples import double_pendulum, four_bar, furuta
from zwang.viewer import html_page, motion_samples
from zwang.viewer.html_page import page_html


def hostile() -> zw.Mechanism:
    bodies = [zw.Body(name, zw.Revolute(f"joint {name}"), mass=1, com=(0.1, 0, 0)) for name in HOSTILE]
    frames = [zw.Frame(f"frame {name}", name) for name in HOSTILE]
    return zw.Mechanism(HOSTILE[0], bodies, frames=frames)


def test_a_page_needs_nothing_from_outside():
    """No address, no file; and its policy allows only its own script, named by its hash, and no
    connection.
    """
    page = page_html(zw.simulate(double_pendulum(), duration=0.1, step=0.01, compiled=False))
    elements = Elements(page)
    for tag, attributes, _ in elements.found:
        assert not attributes.keys() & {"src", "srcset", "action", "data", "onload", "onerror"}
        assert attributes.get("href", "data:,") == "data:,", tag
    assert "http:" not in page and "https:" not in page and "@import" not in page and "url(" not in page
    policy = next(
        a["content"] for _, a, _ in elements.found if a.get("http-equiv") == "Content-Security-Policy"
    )
    script, style = elements.texts("script")[1], elements.texts("style")[0]
    for text, kind in ((script, "script-src"), (style, "style-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "connect-src 'none'" in policy


def test_names_are_data_and_never_markup():
    page = page_html(hostile())
    elements = Elements(page)
    assert page.isascii()
    assert [tag for tag, _, _ in elements.found].count("script") == 2 and "img" not in [
        t for t, _, _ in elements.found
    ]
    scene = scene_in(page)
    assert scene["title"] == HOSTILE[0]
    assert [b["name"] for b in scene["models"][0]["bodies"]] == list(HOSTILE)
    assert [j["name"] for j in scene["models"][0]["joints"]] == [f"joint {name}" for name in HOSTILE]
    assert elements.texts("title") == [f"{HOSTILE[0]} - zwang"]


def test_every_kind_of_shape_has_its_size_pose_and_color():
    scene = scene_in(page_html(shapes()))
    found = {s["kind"]: s for s in scene["models"][0]["shapes"]}
    assert {kind: s["size"] for kind, s in found.items()} == {
        "plane": [], "box": [0.3, 0.4, 0.5], "sphere": [0.2], "capsule": [0.1, 0.6], "cylinder": [0.1, 0.7],
        "ellipsoid": [0.1, 0.2, 0.3], "mesh": [],
    }  # fmt: skip
    assert found["plane"]["link"] == -1 and found["box"]["link"] == 0
    assert found["sphere"]["color"] == [1, 0, 0, 0.5] and found["sphere"]["pose"][9:] == [1, 0, 0]


def test_a_mesh_is_stored_once_with_an_error_below_a_65535th_of_its_size():
    vertices = np.random.default_rng(0).normal(size=(50, 3))
    faces = np.random.default_rng(1).integers(0, 50, (80, 3))
    bodies = [
        zw.Body(
            f"b{k}",
            zw.Revolute(f"j{k}"),
            mass=1,
            inertia=(1, 1, 1),
            geometry=[zw.Mesh(vertices=vertices, faces=faces)],
        )
        for k in range(3)
    ]
    scene = scene_in(page_html(zw.Mechanism(bodies=bodies)))
    (mesh,) = scene["meshes"]
    assert [s["mesh"] for s in scene["models"][0]["shapes"]] == [0, 0, 0]
    read = mesh["low"] + array(scene, mesh["vertices"]).reshape(-1, 3) / 65535 * mesh["span"]
    np.testing.assert_allclose(read, vertices, atol=np.ptp(vertices, axis=0).max() / 65535)
    np.testing.assert_array_equal(array(scene, mesh["faces"]).reshape(-1, 3), faces)


def test_collision_shapes_are_hidden_if_there_are_visual_shapes():
    box, eye, group = (
        zw.Box(1, 1, 1),
        zw.Sphere(0.1, visual_only=True),
        zw.Sphere(0.2, surface=zw.Surface(group=3)),
    )
    body = zw.Body("b", zw.Revolute("j"), mass=1, inertia=(1, 1, 1), geometry=[box, eye, group])
    scene = scene_in(page_html(zw.Mechanism(bodies=[body], geometry=[box])))
    assert [(s["body"], s["kind"], s["hidden"]) for s in scene["models"][0]["shapes"]] == [
        ("world", "box", False), ("b", "box", True), ("b", "sphere", False), ("b", "sphere", True),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_link_poses_of_a_page_agree_with_forward_kinematics(seed):
    m = random_mechanism(seed)
    rng = np.random.default_rng(seed)
    q = rng.normal(size=m.nq)
    for j in m.joints:
        if j.kind in ("ball", "free"):
            q[j.q.stop - 4 : j.q.stop] = random_quaternion(rng)
    model = scene_in(page_html(m))["models"][0]
    poses = link_poses(model, q)
    for placement in model["bodies"] + model["frames"]:
        R, p = zw.frame_pose(m, q, placement["name"])
        np.testing.assert_allclose(
            (poses[placement["link"]] @ pose(placement["pose"]))[:3], np.column_stack([R, p]), atol=1e-12
        )
    centre = sum(m * (poses[link] @ [x, y, z, 1])[:3] for link, x, y, z, m in model["rigid_bodies"])
    np.testing.assert_allclose(
        centre / sum(s[4] for s in model["rigid_bodies"]), zw.mass_centre(m, q), atol=1e-12
    )


def test_the_motion_of_a_page_is_the_recorded_one():
    run = zw.simulate(double_pendulum(), [[1, 0], [2, 0], [3, 0]], duration=1, step=0.001, integrator="rk4")
    scene = scene_in(page_html(run, worlds=2, traces=["lower"]))
    times = array(scene, scene["run"]["times"])
    assert len(scene["worlds"]) == 2 and len(times) == 61 and scene["traces"] == ["lower"]
    kept = run.sel(time=times, method="nearest").isel(world=slice(2))
    np.testing.assert_allclose(kept.time, times, atol=1e-6)
    np.testing.assert_allclose(array(scene, scene["run"]["q"]).reshape(2, 61, 2), kept.q, atol=1e-6)
    for name, variable in (("kinetic", "kinetic_energy"), ("total", "energy")):
        read = array(scene, scene["run"]["energies"][name]).reshape(2, 61)
        np.testing.assert_allclose(read, kept[variable], rtol=1e-5, atol=1e-5)


def test_a_long_motion_is_thinned_and_a_short_one_is_not():
    run = zw.simulate(double_pendulum(), [1, 0], duration=0.05, step=0.001)
    assert scene_in(page_html(run))["run"]["times"]["count"] == 4
    slow = zw.simulate(double_pendulum(), [1, 0], duration=0.5, step=0.1)
    assert scene_in(page_html(slow))["run"]["times"]["count"] == 6


def test_samples_are_denser_where_the_motion_between_them_would_differ():
    """A body turns by 5 rad in a sixtieth of a second; arcs between samples pass the recorded rotations."""
    body = zw.Body("b", zw.Free("f"), mass=1, inertia=(0.1, 0.1, 0.1))
    m = zw.Mechanism(bodies=[body], gravity=(0, 0, 0))
    run = zw.simulate(m, v0=[0.1, 0, 0, 0, 0, 300.0], duration=0.1, step=0.001, compiled=False)
    scene = scene_in(page_html(run))
    times, recorded = array(scene, scene["run"]["times"]), run.q.values[0]
    q = array(scene, scene["run"]["q"]).reshape(len(times), 7)
    arcs = Slerp(times, Rotation.from_quat(q[:, [4, 5, 6, 3]]))(run.time.values)
    away = arcs.inv() * Rotation.from_quat(recorded[:, [4, 5, 6, 3]])
    assert np.abs(away.magnitude()).max() < 0.02 and 20 < len(times) < 50


def test_a_long_motion_keeps_60_samples_per_second():
    run = zw.simulate(double_pendulum(), [0.1, 0], duration=150, step=0.01, integrator="rk4")
    times = array(scene := scene_in(page_html(run)), scene["run"]["times"])
    assert len(times) == 9001 and scene["run"]["note"] is None
    np.testing.assert_array_equal(np.isin(times, run.time), True)  # in double precision


def test_a_page_that_is_too_large_says_how_well_it_shows_the_motion(monkeypatch):
    """The error is that of linear interpolation by NumPy."""
    run = zw.simulate(double_pendulum(), [[2, 0], [1, 0]], duration=10, step=0.01, integrator="rk4")
    monkeypatch.setattr(motion_samples, "MAXIMUM_BYTES", 40 * (8 + 2 * 4 * 5))  # 40 samples of 2 worlds
    with pytest.warns(SimulationWarning, match=r"keeps 4 samples per second.*run.sel\(time=slice") as found:
        scene = scene_in(page_html(run))
    times = array(scene, scene["run"]["times"])
    q = array(scene, scene["run"]["q"]).reshape(2, 40, 2)
    shown = np.array([[np.interp(run.time, times, x) for x in world.T] for world in q])
    error = np.abs(shown - run.q.values.swapaxes(1, 2)).max()
    assert f"by up to {error:.2g} rad" in str(found[0].message) == scene["run"]["note"]


def test_a_world_that_stopped_is_shown_where_it_stopped():
    run = zw.simulate(double_pendulum(), [1.0, 0], duration=1, step=0.001)
    run["q"][0, 555:] = np.nan
    scene = scene_in(page_html(run))
    q = array(scene, scene["run"]["q"]).reshape(-1, 2)
    last = q[np.isfinite(q).all(axis=1)][-1]
    np.testing.assert_allclose(last, run.q.values[0, 554], atol=0.005)


DRAWN_PLANES = """
import fs from "node:fs";
const read = (name) => fs.readFileSync(`${process.argv[2]}/${name}`, "utf8");
const names = ["playback.js", "shapes.js", "charts.js", "camera.js", "scene.js"];
(0, eval)(names.map(read).join("\\n") + "\\nglobalThis.Scene = Scene; globalThis.unpack = unpack;");
const data = JSON.parse(fs.readFileSync(0, "utf8"));
const renderer = { geometry: (key) => ({ key, bounds: { low: [-1, -1, -1], high: [1, 1, 1] } }) };
const scene = new Scene(data, await unpack(data.pack), renderer);
const heights = scene.items(0, 0, {}).filter((item) => item.shadowless).map((item) => item.pose[11]);
console.log(JSON.stringify([scene.floor, heights]));
"""


@pytest.mark.needs("node")
def test_the_ground_replaces_the_planes_of_all_worlds_at_its_height(tmp_path):
    """Worlds with different parameters have their own models; a lower plane is drawn for each of them."""
    (tmp_path / "planes.mjs").write_text(DRAWN_PLANES)
    scene = scene_in(page_html(two_floors()))
    web = Path(html_page.__file__).parent / "web"
    done = subprocess.run(
        ["node", "planes.mjs", web], cwd=tmp_path, input=json.dumps(scene), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [0, [-0.5] * 3] and len(scene["models"]) == 3


def test_a_single_name_is_accepted_for_traces(tmp_path):
    zw.save_html(double_pendulum(), tmp_path / "a.html", traces="lower")
    assert scene_in((tmp_path / "a.html").read_text())["traces"] == ["lower"]


def test_a_page_needs_no_names_of_version_0_1_and_shows_samples_in_the_order_of_time():
    run = zw.simulate(double_pendulum(), [1, 0], duration=2, step=0.01, progress=False)
    expected = page_html(run)
    for changed in (run.drop_vars(["stop_time", "stop_cause"]), run.isel(time=slice(None, None, -1))):
        assert page_html(changed) == expected


def test_worlds_with_their_own_parameters_have_their_own_links():
    numbers = {name: 1.0 for name in furuta().symbols}
    m = furuta(**{name: x for name, x in numbers.items() if name != "L_r"})
    run = zw.simulate(m, params={"L_r": [1.0, 2.0]}, duration=0.02, step=0.01, compiled=False)
    scene = scene_in(page_html(run))
    assert [w["model"] for w in scene["worlds"]] == [0, 1]
    assert [model["links"][1]["pose"][9:] for model in scene["models"]] == [[1, 0, 0], [2, 0, 0]]


def test_bodies_without_shapes_are_sticks_and_spheres():
    bodies = [
        zw.Body("a", zw.Revolute("first", axis=(0, 1, 0)), mass=8, com=(0, 0, -1)),
        zw.Body(
            "b",
            zw.Revolute("second", axis=(0, 1, 0)),
            parent="a",
            position=(0, 0, -2),
            mass=1,
            com=(0, 0, -1),
        ),
    ]
    scene = scene_in(page_html(zw.Mechanism(bodies=bodies)))
    shapes = scene["models"][0]["shapes"]
    sticks = {s["body"]: s for s in shapes if s["kind"] == "capsule"}
    assert sticks["a"]["size"][1] == 2 and sticks["b"]["size"][1] == 1
    np.testing.assert_allclose(sticks["a"]["pose"][9:], (0, 0, -1))
    balls = {s["body"]: s for s in shapes if s["kind"] == "sphere"}
    assert balls["a"]["size"][0] == pytest.approx(2 * balls["b"]["size"][0])  # as the cube root of the mass
    np.testing.assert_allclose(balls["b"]["pose"][9:], (0, 0, -1))


def test_a_free_body_without_shapes_is_the_ellipsoid_of_its_inertia():
    rng = np.random.default_rng(3)
    R = zw.Frame("f", orientation=random_quaternion(rng)).orientation
    I = np.array(R) @ np.diag([2.0, 3, 4]) @ np.array(R).T
    m = zw.Mechanism(bodies=[zw.Body("top", zw.Free("f"), mass=5, inertia=(I + I.T) / 2)])
    (shape,) = scene_in(page_html(m))["models"][0]["shapes"]
    T, a2 = pose(shape["pose"]), np.array(shape["size"]) ** 2
    assert shape["kind"] == "ellipsoid" and np.linalg.det(T) == pytest.approx(1)
    np.testing.assert_allclose(T[:3, :3] @ np.diag(a2.sum() - a2) @ T[:3, :3].T * 5 / 5, I, atol=1e-9)


@pytest.mark.parametrize(
    "gravity", [(0, 0, -9.81), (0, -9.81, 0), (0, 9.81, 0), (-9.81, 0, 0), (9.81, 0, 0), (0, 0, 0)]
)
def test_up_is_against_gravity(gravity):
    root = np.reshape(scene_in(page_html(double_pendulum().replace(gravity=gravity)))["root"], (3, 3))
    assert np.linalg.det(root) == pytest.approx(1)
    np.testing.assert_allclose(root @ root.T, np.eye(3), atol=0)
    np.testing.assert_allclose(root @ gravity, (0, 0, -np.linalg.norm(gravity)))


def test_springs_rods_and_the_number_of_constraints_are_in_the_scene_data():
    spring = zw.PointSpring(("upper", (0, 0, -0.5)), ("world", (1, 0, 0)), 3.0)
    rod = zw.Distance("rod", ("lower", (0, 0, -1)), ("world", (0, 0, -3)), 1.0)
    m = double_pendulum().replace(forces=[spring], constraints=[rod])
    model = scene_in(page_html(m))["models"][0]
    assert [(line["kind"], line["points"]) for line in model["lines"]] == [
        ("spring", [[0, 0, 0, -0.5], [-1, 1, 0, 0]]), ("rod", [[1, 0, 0, -1], [-1, 0, 0, -3]]),
    ]  # fmt: skip
    assert model["constraints"] == 1 and scene_in(page_html(four_bar()))["models"][0]["constraints"] == 1


def test_sliders_have_the_limits_of_their_joints():
    (part,) = scene_in(page_html(shapes()))["models"][0]["joints"][0]["parts"]
    assert (part["low"], part["high"], part["limited"], part["unit"]) == (-0.5, 2, True, "m")
    m = zw.Mechanism(bodies=[zw.Body("b", zw.Free("f"), mass=1, inertia=(1, 1, 1))])
    (joint,) = scene_in(page_html(m))["models"][0]["joints"]
    assert [p["name"] for p in joint["parts"]] == ["f.x", "f.y", "f.z"] and joint["ball"] == 3


def test_save_html_writes_the_page(tmp_path):
    zw.save_html(four_bar(), tmp_path / "a.html")
    assert (tmp_path / "a.html").read_bytes() == page_html(four_bar()).encode("ascii")


def test_unsuitable_arguments_raise_errors():
    run = zw.simulate(double_pendulum(), duration=0.05, step=0.01)
    for what, error, said in (
        (furuta(), ParameterError, "L_r"),
        (run[["q"]], ShapeError, "recording"),
        ("panda.urdf", ShapeError, "str"),
        (run.isel(world=slice(0)), ShapeError, "empty"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            page_html(what)
    with pytest.raises(UnknownNameError, match="hand"):
        page_html(run, traces=["hand"])
