"""The scene and the control panel of the live page, tested on the server without a browser."""

from __future__ import annotations

import importlib
import socket
import time

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import zwang as zw
from tests.mechanisms import random_mechanism
from tests.viewer.scenes import shapes, two_floors
from zwang.errors import SimulationWarning
from zwang.mechanism.samples import double_pendulum, four_bar, furuta
from zwang.viewer import motion_samples

pytest.importorskip("viser")

ALL = ("names", "frames", "mass", "ellipsoids", "contact_shapes", "follow")


@pytest.fixture
def show():
    """Opens the page of a mechanism or a recording, paused."""
    opened = []

    def go(what, **options):
        opened.append(zw.view(what, browser=False, **options))
        page = opened[-1]._page
        page.play(False)
        page.draw()
        return page

    yield go
    for page in opened:
        page.close()


def instances(node) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (n, 3, 3) and positions (n, 3) of a node's instances."""
    return Rotation.from_quat(np.roll(node.batched_wxyzs, -1, axis=1)).as_matrix(), np.array(
        node.batched_positions
    )


def test_every_surface_has_the_pose_of_its_link(show):
    m = random_mechanism(3, bodies=7)
    page = show(m)
    q = np.asarray(
        zw.integrate_configuration(m, m.neutral, np.random.default_rng(3).normal(size=m.nv), 1), dtype=float
    )
    page.set_configuration(0, q)
    page.draw()
    body_poses = {m.tree.placements[b.name].link: zw.frame_pose(m, q, b.name) for b in m.bodies}
    base = {
        link: m.tree.placements[b.name] for b in m.bodies if (link := m.tree.placements[b.name].link) >= 0
    }
    for node in page.scene._nodes:
        R, p = (part[0] for part in instances(node.node))
        body_R, body_p = body_poses[node.part.link]
        placement = base[node.part.link]  # the body's frame on its link
        np.testing.assert_allclose(R @ np.asarray(placement.R, float), page.scene.root @ body_R, atol=1e-6)
        np.testing.assert_allclose(
            p + R @ np.asarray(placement.p, float), page.scene.root @ body_p, atol=1e-5
        )


def test_up_is_against_gravity_and_a_level_plane_is_the_ground(show):
    page = show(shapes())
    assert page.scene.floor == 0.0 and not [n for n in page.scene._nodes if n.part.link < 0]
    page = show(double_pendulum().replace(gravity=(0, -9.81, 0)))
    np.testing.assert_allclose(page.scene.root @ (0, -9.81, 0), (0, 0, -9.81))


def test_the_ground_replaces_the_planes_of_all_worlds_at_its_height(show):
    """Worlds with different parameters have their own models; a lower plane is drawn for each of them."""
    page = show(two_floors())
    planes = [node for node in page.scene._nodes if node.part.link < 0]
    assert page.scene.floor == 0.0 and [node.part.vertices[0, 2] for node in planes] == [-0.5] * 3


def test_a_motion_that_is_shown_inexactly_has_a_note(show, monkeypatch):
    run = zw.simulate(double_pendulum(), [2, 0], duration=2, step=0.01, compiled=False)
    monkeypatch.setattr(motion_samples, "MAXIMUM_BYTES", 300)
    with pytest.warns(SimulationWarning, match="samples per second") as found:
        page = show(run)
    assert page.panel.note.content == str(found[0].message)


def test_worlds_are_apart_or_overlaid_with_the_selected_one_opaque(show):
    run = zw.simulate(
        double_pendulum(), [[1.0, 0], [2.0, 0], [3.0, 0]], duration=0.1, step=0.01, compiled=False
    )
    page = show(run)
    node = page.scene._nodes[0].node
    positions = instances(node)[1]
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=2)[~np.eye(3, dtype=bool)]
    assert apart.min() > page.scene.extent / 2 and node.batched_opacities is None
    page.show.overlay, page.chosen = True, 1
    page.draw()
    np.testing.assert_allclose(instances(node)[1], np.zeros((3, 3)), atol=1e-6)
    assert node.batched_opacities[1] == 1.0 and node.batched_opacities[0] == node.batched_opacities[2] < 0.5


def test_worlds_with_different_parameters_have_different_shapes(show):
    numbers = {name: 1.0 for name in furuta().symbols}
    m = furuta(**{name: x for name, x in numbers.items() if name != "L_r"})
    page = show(zw.simulate(m, params={"L_r": [1.0, 2.0]}, duration=0.02, step=0.01, compiled=False))
    ends = {node.worlds[0]: instances(node.node)[1][0] for node in page.scene._nodes if node.part.link == 1}
    apart = page.scene.offsets
    assert np.linalg.norm(ends[1] - apart[1]) == pytest.approx(2 * np.linalg.norm(ends[0] - apart[0]))


def test_every_annotation_is_drawn_for_every_kind_of_mechanism(show):
    """No mass, shapes or joints; a recording with one sample; a world that stopped early."""
    run = zw.simulate(double_pendulum(), [1.0, 0], duration=0.5, step=0.01, compiled=False)
    stopped = run.copy(deep=True)
    stopped["q"][0, 10:], stopped["energy"][0, 10:] = np.nan, np.nan
    ball = zw.Mechanism(bodies=[zw.Body("b", zw.Ball("ball"), mass=1, inertia=(1, 1, 1))])
    massless = zw.Mechanism(bodies=[zw.Body("b", zw.Revolute("j", limits=(0.1, np.inf), armature=1))])
    plane = zw.Mechanism(geometry=[zw.Plane()])
    for what in (ball, massless, plane, run.isel(time=slice(0, 1)), run.isel(time=slice(20, 30)), stopped,
                 run.drop_vars(["kinetic_energy", "status"])):  # fmt: skip
        page = show(what)
        for mark in ALL:
            setattr(page.show, mark, True)
        page.seek(page.playback.end)
        page.draw()
        assert np.isfinite(page.scene.camera()).all()
        for slider in page.panel.sliders:
            page.panel._joint_moved(slider, 0.01)
        page.draw()


def test_arrows_start_at_points_of_application_and_have_a_limited_length(show):
    ball = zw.Body("ball", zw.Prismatic("z"), position=(0, 0, 0.1), mass=2, geometry=[zw.Sphere(0.1)])
    m = zw.Mechanism("ball", [ball], geometry=[zw.Plane()])
    run = zw.simulate(m, duration=1.0, step=0.005, record={"forces": True}, compiled=False)
    page = show(run)
    page.seek(1.0)
    page.draw()
    ((start, end),) = page.scene.annotations._nodes["force contact"][0].points
    np.testing.assert_allclose(start, 0, atol=2e-3)
    np.testing.assert_allclose(end - start, (0, 0, 0.35 * page.scene.extent), rtol=1e-3, atol=1e-6)
    page.show.arrow_scale = 100.0
    page.draw()
    ((start, end),) = page.scene.annotations._nodes["force contact"][0].points
    assert np.linalg.norm(end - start) == pytest.approx(1.5 * page.scene.extent, rel=1e-4)
    page.show.contacts = False
    page.draw()
    assert not page.scene.annotations._nodes["force contact"][0].visible


def test_paths_follow_the_frame(show):
    run = zw.simulate(double_pendulum(), [2.0, 1.0], duration=0.5, step=0.005, compiled=False)
    page = show(run, traces=["lower"])
    (line,) = page.scene.annotations._nodes["paths"]
    first, last = line.points[0, 0], line.points[-1, 1]
    for point, q in ((first, run.q.values[0, 0]), (last, run.q.values[0, -1])):
        np.testing.assert_allclose(
            point, page.scene.root @ zw.frame_pose(double_pendulum(), q, "lower")[1], atol=1e-4
        )
    np.testing.assert_array_equal(line.points[1:, 0], line.points[:-1, 1])


def test_sliders_are_within_limits_and_turn_a_free_body_about_its_own_axes(show):
    bar = show(shapes()).panel.sliders[0].bar
    assert (bar.min, bar.max) == (-0.5, 2.0)
    m = zw.Mechanism(bodies=[zw.Body("b", zw.Free("f"), mass=1, inertia=(1, 1, 1))])
    page = show(m)
    sliders = page.panel.sliders
    assert [s.q for s in sliders] == [0, 1, 2, None, None, None]
    page.panel._joint_moved(sliders[3], 0.5)
    page.panel._joint_moved(sliders[1], 0.2)
    page.panel._joint_moved(sliders[5], -0.3)
    q = zw.integrate_configuration(m, m.neutral, [0, 0.2, 0, 0.5, 0, 0], 1)
    q = zw.integrate_configuration(m, q, [0, 0, 0, 0, 0, -0.3], 1)
    np.testing.assert_allclose(page.playback.configuration(0, 0.0), q, atol=1e-12)


def test_plots_show_the_chosen_coordinates_of_the_chosen_world(show):
    run = zw.simulate(four_bar(), [[*four_bar().home]] * 2, duration=0.1, step=0.01, compiled=False)
    run["q"][1] += 1.0
    page = show(run)
    chart = page.panel.plots[1].chart
    assert len(chart.data) == 1 + 3 + 1
    page.panel._select_world(1)
    np.testing.assert_allclose(chart.data[1][-1], run.q.values[1, -1, 0])
    names = [f"{k + 1}: {name}" for k, name in enumerate(run.coordinate.values)]
    page.panel._toggle_line(type("Choice", (), {"value": ""})(), names, names[0])
    assert len(chart.data) == len(chart.series) == 1 + 2 + 1
    page.seek(0.05)
    page.draw()
    now = chart.data[-1]
    assert chart.data[0][int(np.argmax(now))] == pytest.approx(0.05)


def test_the_playback_waits_for_a_browser(show):
    page = show(zw.simulate(double_pendulum(), [2.0, 1.0], duration=0.5, step=0.01, compiled=False))
    page.play(True)
    time.sleep(0.3)
    assert page.playing and page.t == 0.0 and not page.server.get_clients()


def test_a_page_that_cannot_be_built_leaves_no_server(monkeypatch):
    ports = []

    def broken(server, *_):
        ports.append(server.get_port())
        raise RuntimeError("broken")

    monkeypatch.setattr(importlib.import_module("zwang.viewer.page.viser_page"), "ViserScene", broken)
    with pytest.raises(RuntimeError, match="broken"):
        zw.view(double_pendulum(), browser=False)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", ports[0]), timeout=1).close()
