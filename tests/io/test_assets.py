"""Mesh files: formats, scales, damaged files, and the folders in which they are permitted."""

from __future__ import annotations

import base64
import json
import struct
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh

import zwang as zw
from tests.io.urdfs import INERTIAL, loaded, pendulum, written
from zwang.errors import LoadError, LoadWarning
from zwang.io.meshes.collada import read_collada
from zwang.io.meshes.mesh_files import AssetRoots, MissingAsset, read_mesh
from zwang.mechanism.geometry import Mesh, wrong_faces


def with_mesh(name: str, more: str = "") -> str:
    return pendulum(
        INERTIAL + f'<collision><geometry><mesh filename="{name}" {more}/></geometry></collision>'
    )


@pytest.mark.parametrize("kind", ["stl", "stl_ascii", "obj", "ply", "off", "glb"])
def test_mesh_formats_give_the_same_box(tmp_path: Path, kind: str) -> None:
    box = trimesh.creation.box((1, 2, 3))
    path = tmp_path / f"box.{kind.split('_')[0]}"
    box.export(path, file_type=kind)
    vertices, faces = read_mesh(path, "here")
    assert len(faces) == 12
    assert len(np.unique(vertices, axis=0)) == 8
    mesh = Mesh(vertices=vertices, faces=faces)
    volume, centre, inertia = mesh.unit_properties()
    assert volume == pytest.approx(6)
    np.testing.assert_allclose(centre, 0, atol=1e-15)
    np.testing.assert_allclose(inertia, np.diag([13, 10, 5]) * 6 / 12, atol=1e-12)


COLLADA = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="0.001"/><up_axis>Y_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="12">0 0 0 1 0 0 1 1 0 0 1 0</float_array>
<technique_common><accessor source="#a" count="4" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<polylist count="1"><input semantic="VERTEX" source="#v" offset="0"/>
<input semantic="NORMAL" source="#p" offset="1"/>
<vcount>4</vcount><p>0 0 1 0 2 0 3 0</p></polylist></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><translate>0 0 5</translate><rotate>0 0 1 90</rotate>
<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes></COLLADA>"""


def test_collada_applies_units_and_nodes() -> None:
    vertices, faces = read_collada(COLLADA.encode(), "x.dae")
    np.testing.assert_allclose(
        vertices, np.array([[0, 0, 5], [0, 1, 5], [-1, 1, 5], [-1, 0, 5]]) * 1e-3, atol=1e-18
    )
    assert faces.tolist() == [[0, 1, 2], [0, 2, 3]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0 0 1 0 2 0 3 0", "0 0 1 0 2 0 9 0", "out of range"),
        ("<vcount>4", "<vcount>5", "vcount"),
        ("0 0 1 0 2 0 3 0", "0 0 1 0 2 0 x 0", "not a number"),
        ('url="#g"', 'url="../other.dae#g"', "no <geometry> with this id"),
        ('stride="3"', 'stride="7"', "stride"),
        ("90</rotate>", "</rotate>", "4 numbers"),
    ],
)
def test_damaged_collada_raises_with_the_line(old: str, new: str, message: str) -> None:
    with pytest.raises(LoadError, match=f"line .*{message}"):
        read_collada(COLLADA.replace(old, new).encode(), "x.dae")


def test_collada_of_unbounded_size_raises() -> None:
    nodes = "".join(
        f'<node id="n{k}"><instance_node url="#n{k + 1}"/><instance_node url="#n{k + 1}"/></node>'
        for k in range(50)
    )
    text = (
        f'<COLLADA><library_nodes>{nodes}<node id="n50"/></library_nodes><library_visual_scenes>'
        f"<visual_scene><node>"
    )
    text += '<instance_node url="#n0"/></node></visual_scene></library_visual_scenes></COLLADA>'
    with pytest.raises(LoadError, match="too large"):
        read_collada(text.encode(), "x.dae")
    with pytest.raises(LoadError, match="cycle"):
        read_collada(text.replace("n50", "n0", 1).encode(), "x.dae")


def _gltf(**accessor: object) -> bytes:
    buffer = "data:application/octet-stream;base64," + base64.b64encode(bytes(36)).decode()
    return json.dumps({
        "asset": {"version": "2.0"}, "buffers": [{"uri": buffer, "byteLength": 36}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", **accessor}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}], "scenes": [{"nodes": [0]}], "scene": 0,
    }).encode()  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty.stl", b"", "truncated"),
        ("none.stl", bytes(84), "no faces"),
        ("lying.stl", bytes(80) + struct.pack("<I", 2**31) + bytes(50), "claims 2147483648 triangles"),
        ("huge.gltf", _gltf(count=2_000_000_000), "too large"),
        ("list.gltf", b"[1]", "not valid"),
        ("words.obj", b"v a b c\nv 0 0 1\nv 0 1 0\nf 1 2 3\n", "words.obj"),
        ("no.obj", b"v 0 0 0\n", "no faces"),
        ("lying.ply", b"ply\nformat binary_little_endian 1.0\nelement vertex 4000000000\nproperty float x\n"
                      b"property float y\nproperty float z\nend_header\n", "lying.ply"),
        ("lying.off", b"OFF\n4000000000 1 0\n0 0 0\n", "lying.off"),
        ("mesh.fbx", b"x", "unknown mesh format"),
    ],
)  # fmt: skip
def test_damaged_meshes_raise(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(LoadError, match=message):
        read_mesh(tmp_path / name, "here")


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """outside/box.stl, and packages pkg (with package.xml) and plain (without), with meshes/box.stl each."""
    for folder in ("outside", "ws/pkg/meshes", "ws/pkg/urdf", "ws/plain/meshes"):
        (tmp_path / folder).mkdir(parents=True)
        trimesh.creation.box((1, 1, 1)).export(tmp_path / folder / "box.stl")
    (tmp_path / "ws/pkg/package.xml").write_text("<package/>")
    return tmp_path


INSIDE = ["box.stl", "package://pkg/meshes/box.stl", "./box.stl", "../urdf/box.stl"]
OUTSIDE = [
    *("../../../outside/box.stl", "package://pkg/../../outside/box.stl", "package://../outside/box.stl"),
    *(
        "file:///{root}/outside/box.stl",
        "/{root}/outside/box.stl",
        "link.stl",
        "http://127.0.0.1:9/box.stl",
        "a\0b.stl",
    ),
    *("../meshes/box.stl", "file:///{root}/outside/%2e%2e/outside/box.stl"),
    *("package://%2e%2e/outside/box.stl", "package://pkg/%2e%2e/%2e%2e/outside/box.stl"),
    *("package://pkg%2f../outside/box.stl", "package://pkg/%2f{root}/outside/box.stl"),
]


@pytest.mark.parametrize("name", INSIDE)
def test_files_inside_the_roots_are_found(folders: Path, name: str) -> None:
    roots = AssetRoots.of(folders / "ws/pkg/urdf/robot.urdf")
    assert roots.find(name, "here").name == "box.stl"


@pytest.mark.parametrize("name", OUTSIDE)
def test_files_outside_the_roots_are_not_opened(folders: Path, name: str) -> None:
    (folders / "ws/pkg/urdf/link.stl").symlink_to(folders / "outside/box.stl")
    with pytest.raises(LoadError):
        AssetRoots.of(folders / "ws/pkg/urdf/robot.urdf").find(name.replace("{root}", str(folders)), "here")


def test_packages_are_found_by_their_package_xml_or_in_package_dirs(folders: Path) -> None:
    name = "package://plain/meshes/box.stl"
    model = folders / "ws/pkg/urdf/robot.urdf"
    with pytest.raises(MissingAsset, match="package_dirs"):
        AssetRoots.of(model).find(name, "here")
    assert AssetRoots.of(model, [folders / "ws"]).find(name, "here").is_file()
    assert AssetRoots.of(model, [folders / "ws/plain"]).find(name, "here").is_file()


@pytest.mark.parametrize(
    ("manifest", "is_found"),
    [
        ("<package><name> arm_description </name></package>", True),
        ("<package><name>arm_description-rolling</name></package>", False),
        ("<package><name>arm_description</name><name>arm_description</name></package>", False),
        ("<package><name>arm_descr", False),
        ("", False),
    ],
)
def test_packages_have_the_name_in_their_package_xml(folders: Path, manifest: str, is_found: bool) -> None:
    """ROS finds a package by this name; its folder, such as a checkout of a branch, may have any."""
    package = (folders / "ws/pkg").rename(folders / "ws/arm_description-rolling")
    (package / "package.xml").write_text(manifest)
    name, model = "package://arm_description/meshes/box.stl", package / "urdf/robot.urdf"
    for roots in (
        AssetRoots.of(model),
        AssetRoots.of(folders / "robot.urdf", [folders / "ws"]),
        AssetRoots.of(folders / "robot.urdf", [package]),
    ):
        if is_found:
            assert roots.find(name, "here") == package / "meshes/box.stl"
        else:
            with pytest.raises(MissingAsset, match="package_dirs"):
                roots.find(name, "here")
    by_folder = "package://arm_description-rolling/meshes/box.stl"
    assert AssetRoots.of(model).find(by_folder, "here") == package / "meshes/box.stl"


@pytest.mark.parametrize("address", ["package://a%20b/{}", "file://{folder}/{}"])
def test_addresses_are_percent_decoded_unless_the_file_exists_as_written(folders: Path, address: str) -> None:
    package = (folders / "ws/plain").rename(folders / "ws/a b")
    (package / "meshes/box.stl").rename(package / "one%20two.stl")
    roots = AssetRoots.of(folders / "ws/a b/robot.urdf", [folders / "ws"])
    address = address.replace("{folder}", str(package))
    assert roots.find(address.format("one%20two.stl"), "here") == package / "one%20two.stl"
    assert roots.find(address.format("one%2520two.stl"), "here") == package / "one%20two.stl"
    (package / "one%20two.stl").rename(package / "one two.stl")
    assert roots.find(address.format("one%20two.stl"), "here") == package / "one two.stl"


def test_a_missing_visual_mesh_warns(tmp_path: Path) -> None:
    with pytest.warns(LoadWarning, match=r"line 3.*nowhere\.stl"):
        m = zw.load(written(tmp_path, with_mesh("nowhere.stl").replace("collision", "visual")))
    (mesh,) = m.body("arm").geometry
    assert (mesh.file, len(mesh.faces)) == ("nowhere.stl", 0)
    assert any("nowhere.stl" in note.what for note in m.report.of_kind("unsupported"))


@pytest.mark.parametrize("seen_first", [False, True])
def test_a_missing_collision_mesh_raises_or_is_repaired(tmp_path: Path, seen_first: bool) -> None:
    text = with_mesh("nowhere.stl")
    if seen_first:
        visual = '<visual><geometry><mesh filename="nowhere.stl"/></geometry></visual>'
        text = text.replace("<collision>", visual + "<collision>")
    path = written(tmp_path, text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(LoadError, match=r"line 3.*nowhere\.stl.*strict=False: the shape has no contacts"):
            zw.load(path)
    with pytest.warns(LoadWarning, match=r"line 3.*nowhere\.stl"):
        m = zw.load(path, strict=False)
    assert any("nowhere.stl" in note.what for note in m.report.of_kind("repaired"))


def test_a_mesh_is_scaled_and_kept_in_json(tmp_path: Path) -> None:
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "box.stl")
    m = loaded(tmp_path, with_mesh("box.stl", 'scale="1 2 -3"'))
    (mesh,) = m.body("arm").geometry
    assert mesh.unit_properties()[0] == pytest.approx(6)  # mirrored, with faces wound outward
    again = zw.Mechanism.from_json(m.to_json())
    assert again == m
    np.testing.assert_array_equal(again.body("arm").geometry[0].vertices, mesh.vertices)


def test_flat_meshes_warn(tmp_path: Path) -> None:
    (tmp_path / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.warns(LoadWarning, match="flat"):
        zw.load(written(tmp_path, with_mesh("flat.obj")))


def mesh_in(folder: Path) -> None:
    """A tetrahedron of edges 1 m in folder/t.obj."""
    folder.mkdir()
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
    (folder / "t.obj").write_text(corners + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")


def test_the_last_compiler_element_of_a_model_applies_to_its_included_files(tmp_path: Path) -> None:
    """As MuJoCo reads them: MjModel.from_xml_path finds the same mesh."""
    mesh_in(tmp_path / "meshes")
    (tmp_path / "assets.xml").write_text('<mujoco><asset><mesh name="t" file="t.obj"/></asset></mujoco>')
    (tmp_path / "settings.xml").write_text('<mujoco><compiler meshdir="meshes"/></mujoco>')
    path = tmp_path / "model.xml"
    path.write_text(
        '<mujoco><compiler meshdir="nowhere"/><include file="assets.xml"/><include file="settings.xml"/>'
        '<worldbody><body><freejoint/><geom type="mesh" mesh="t" density="6"/></body></worldbody></mujoco>'
    )
    assert mujoco.MjModel.from_xml_path(str(path)).body_mass[1] == pytest.approx(1)
    assert zw.load(path).bodies[0].mass == pytest.approx(1)


@pytest.mark.parametrize("inside", [False, True], ids=["elsewhere", "in its folder"])
def test_files_of_the_same_name_in_two_folders_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    """Also those that a document in another folder names: MuJoCo takes any file of that name if it finds none
    under the name that it expects.
    """
    mesh_in(tmp_path / "one")
    tetrahedron = (tmp_path / "one" / "t.obj").read_text()
    names = [f"{folder}{k}" for folder in ("inner", "outer") for k in range(6)]
    for size, name in enumerate(names, 1):
        folder = tmp_path / "meshes" / name[:5]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name[5:]}.obj").write_text(tetrahedron.replace("v 1", f"v {size}"))
    meshes = "".join(f'<mesh name="{name}" file="{name[:5]}/{name[5:]}.obj"/>' for name in names)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "assets.xml").write_text(f"<mujoco><asset>{meshes}</asset></mujoco>")
    (tmp_path / "robot").mkdir()
    geoms = "".join(
        f'<body name="{name}"><freejoint/><geom type="mesh" mesh="{name}" density="6"/></body>'
        for name in names
    )
    path = tmp_path / "robot" / "model.xml"
    path.write_text(
        f'<mujoco><compiler meshdir="../meshes"/><include file="../parts/assets.xml"/><worldbody>{geoms}'
        "</worldbody></mujoco>"
    )
    if inside:
        monkeypatch.chdir(path.parent)
    m = zw.load(path, asset_dirs=[tmp_path])
    assert [m.body(name).mass for name in names] == pytest.approx(range(1, 13))


def test_files_beside_the_folder_of_meshes_are_read(tmp_path: Path) -> None:
    """As MuJoCo reads them, which finds the same mesh: scenes of Unitree have height fields there."""
    mesh_in(tmp_path / "other")
    path = tmp_path / "model.xml"
    path.write_text(
        '<mujoco><compiler meshdir="meshes"/><asset><mesh name="t" file="../other/t.obj"/></asset>'
        '<worldbody><body><freejoint/><geom type="mesh" mesh="t" density="6"/></body></worldbody></mujoco>'
    )
    (tmp_path / "meshes").mkdir()
    assert mujoco.MjModel.from_xml_path(str(path)).body_mass[1] == pytest.approx(1)
    assert zw.load(path).bodies[0].mass == pytest.approx(1)


def test_meshes_of_attached_models_are_their_own(tmp_path: Path) -> None:
    """Each has a file of the same name in a folder of its own."""
    for size, part in enumerate(("arm", "hand"), 1):
        (tmp_path / part).mkdir()
        mesh_in(tmp_path / part / "meshes")
        corners = (tmp_path / part / "meshes" / "t.obj").read_text()
        (tmp_path / part / "meshes" / "t.obj").write_text(corners.replace("v 1", f"v {size}"))
        (tmp_path / part / f"{part}.xml").write_text(
            '<mujoco><compiler meshdir="meshes"/><asset><mesh name="t" file="t.obj"/></asset><worldbody>'
            f'<body name="{part}"><freejoint/><geom type="mesh" mesh="t" density="6"/></body></worldbody>'
            "</mujoco>"
        )
    models = "".join(f'<model name="{part}" file="{part}/{part}.xml"/>' for part in ("arm", "hand"))
    attached = "".join(f'<attach model="{part}" body="{part}" prefix="{part}_"/>' for part in ("arm", "hand"))
    path = tmp_path / "model.xml"
    path.write_text(f"<mujoco><asset>{models}</asset><worldbody>{attached}</worldbody></mujoco>")
    masses = mujoco.MjModel.from_xml_path(str(path)).body_mass[1:]
    assert [body.mass for body in zw.load(path).bodies] == pytest.approx(masses.tolist())
    assert sorted(masses) == pytest.approx([1, 2])


@pytest.mark.parametrize("strips", [False, True])
def test_the_folders_in_file_names_are_removed_with_strippath(tmp_path: Path, strips: bool) -> None:
    """Those of the main model, of an included document and of an attached model, whose own attribute does not
    count; each file is of another size, and the right ones are those of MuJoCo.
    """
    mesh_in(tmp_path / "inc")
    tetrahedron = (tmp_path / "inc" / "t.obj").read_text()
    for size, folder in enumerate((".", "cad", "inc", "inc/cad", "part", "part/cad"), 1):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in ("t.obj", "u.obj"):
            (tmp_path / folder / name).write_text(tetrahedron.replace("v 1", f"v {size}"))
    (tmp_path / "inc" / "inc.xml").write_text(
        '<mujoco><asset><mesh name="u" file="cad/u.obj"/></asset></mujoco>'
    )
    body = '<body name="{0}"><freejoint/><geom type="mesh" mesh="{0}" density="6"/></body>'
    (tmp_path / "part" / "part.xml").write_text(
        f'<mujoco><compiler strippath="{str(not strips).lower()}"/><asset><mesh name="t" file="cad/t.obj"/>'
        f"</asset><worldbody>{body.format('t')}</worldbody></mujoco>"
    )
    path, mark = tmp_path / "model.xml", "\\" if strips else "/"
    path.write_text(
        f'<mujoco><compiler strippath="{str(strips).lower()}"/><include file="inc/inc.xml"/><asset>'
        f'<mesh name="t" file="cad{mark}t.obj"/><model name="part" file="part/part.xml"/></asset><worldbody>'
        f'{body.format("t")}{body.format("u")}<attach model="part" body="t" prefix="p"/></worldbody></mujoco>'
    )
    masses = mujoco.MjModel.from_xml_path(str(path)).body_mass[1:]
    assert masses[[0, 2]] == pytest.approx([1, 5] if strips else [2, 6])
    assert [body.mass for body in zw.load(path).bodies] == pytest.approx(masses.tolist())


def test_files_that_mujoco_would_confuse_are_told(tmp_path: Path) -> None:
    """A file of an included document in a folder, and one that the model has in a folder of this name."""
    for folder in ("meshes", "meshes/sub", "sub"):
        mesh_in(tmp_path / folder)
    include = '<mujoco><asset><mesh name="a" file="t.obj"/></asset></mujoco>'
    (tmp_path / "sub" / "inc.xml").write_text(include)
    path = tmp_path / "model.xml"
    path.write_text(
        '<mujoco><compiler meshdir="meshes"/><include file="sub/inc.xml"/>'
        '<asset><mesh name="b" file="sub/t.obj"/></asset></mujoco>'
    )
    with_same = path.read_text().replace("</mujoco>", "<worldbody><body/></worldbody></mujoco>")
    assert zw.load(path, text=with_same).nv == 0  # the files are equal
    mesh = tmp_path / "meshes" / "sub" / "t.obj"
    mesh.write_text(mesh.read_text().replace("v 1", "v 2"))
    with pytest.raises(LoadError, match="rename"):
        zw.load(path)


@pytest.mark.parametrize(("height", "is_flat"), [(1e-2, False), (1e-5, True)])
def test_hulls_that_mujoco_finds_flat_are_computed(height: float, is_flat: bool) -> None:
    """The hull of a mesh that is nearly flat has two faces in MuJoCo."""
    text = (
        '<mujoco><asset><mesh name="roof" vertex="-.2 -.1 0  .2 -.1 0  .2 .1 0  -.2 .1 0  .03 .02 '
        f'{height}"/></asset><worldbody><geom type="plane" size="1 1 .1"/><body pos="0 0 -.01"><freejoint/>'
        '<geom type="mesh" mesh="roof" mass="1"/></body></worldbody></mujoco>'
    )
    m, model = zw.load("roof.xml", text=text), mujoco.MjModel.from_xml_string(text)
    assert (model.mesh_polynum[0] < 4) == is_flat == (m.bodies[0].geometry[0].hull is None)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    found = zw.constrained_dynamics(m, data.qpos, data.qvel, np.zeros(6))
    assert data.ncon >= 3
    np.testing.assert_allclose(found.acceleration[2], data.qacc[2], rtol=1e-6)


def test_faces_with_vertices_in_front_of_them_are_told() -> None:
    """Such as slivers, whose normals rounding decides."""
    cube = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    corners = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    normals = np.repeat(np.eye(3), 2, axis=0) * np.tile([-1, 1], 3)[:, None]
    counts, vertices = np.full(6, 4), np.arange(8)
    assert not wrong_faces(cube, vertices, normals, counts, np.ravel(corners)).any()
    normals[3] *= -1
    assert np.flatnonzero(wrong_faces(cube, vertices, normals, counts, np.ravel(corners))).tolist() == [3]


def test_meshes_outside_the_folder_of_an_mjcf_file_need_asset_dirs(tmp_path: Path) -> None:
    mesh_in(tmp_path / "meshes")
    (tmp_path / "robot").mkdir()
    path = tmp_path / "robot" / "model.xml"
    path.write_text(
        '<mujoco><compiler meshdir="../meshes"/><asset><mesh name="t" file="t.obj"/></asset>'
        '<worldbody><body><freejoint/><geom type="mesh" mesh="t" density="6"/></body></worldbody></mujoco>'
    )
    with pytest.raises(LoadError, match=r"outside of the folder of the model.*in asset_dirs"):
        zw.load(path)
    for argument in ("asset_dirs", "package_dirs"):
        with pytest.raises(LoadError, match=f"{argument}='.*meshs' is no folder"):
            zw.load(path, **{argument: [tmp_path / "meshes", tmp_path / "meshs"]})
    for folders in ([tmp_path / "meshes"], [tmp_path]):
        assert zw.load(path, asset_dirs=folders).bodies[0].mass == pytest.approx(1)


def test_points_without_faces_are_a_mesh_in_mjcf_alone(tmp_path: Path) -> None:
    """MuJoCo takes their convex hull."""
    mesh_in(tmp_path / "meshes")
    file = tmp_path / "meshes" / "t.obj"
    file.write_text("\n".join(line for line in file.read_text().splitlines() if line.startswith("v")))
    path = tmp_path / "model.xml"
    path.write_text(
        '<mujoco><asset><mesh name="t" file="meshes/t.obj"/></asset>'
        '<worldbody><body><freejoint/><geom type="mesh" mesh="t" density="6"/></body></worldbody></mujoco>'
    )
    assert zw.load(path).bodies[0].mass == pytest.approx(1)
    with pytest.raises(LoadError, match="has no faces"):
        read_mesh(file, "link")
    file.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n")
    with pytest.raises(LoadError, match="has no faces"):
        zw.load(path)


def test_meshes_of_a_linked_model_are_beside_the_link(tmp_path):
    """As MuJoCo takes them, from the folder of the path that is given; then from that of the file itself."""
    (tmp_path / "store").mkdir()
    (tmp_path / "robot").mkdir()
    part = '<asset><mesh name="m" file="m.obj"/></asset><worldbody><body><joint/><geom type="mesh" mesh="m"/>'
    (tmp_path / "store/r.xml").write_text(f"<mujoco>{part}</body></worldbody></mujoco>")
    vertices = "v .2 0 0\nv 0 .3 0\nv 0 0 .5\nv -.1 -.2 -.3\nf 1 2 3\nf 1 4 2\nf 1 3 4\nf 2 4 3\n"
    (tmp_path / "robot/m.obj").write_text(vertices)
    (tmp_path / "robot/r.xml").symlink_to(tmp_path / "store/r.xml")
    assert zw.load(tmp_path / "robot/r.xml").nv == 1
    with pytest.raises(MissingAsset, match="store"):
        zw.load(tmp_path / "store/r.xml")
    (tmp_path / "store/m.obj").write_text(vertices.replace("v .2", "v .4"))
    loaded = [zw.load(tmp_path / folder / "r.xml").bodies[0].mass for folder in ("robot", "store")]
    assert loaded[1] > 1.2 * loaded[0]
    (tmp_path / "robot/m.obj").unlink()
    assert zw.load(tmp_path / "robot/r.xml").bodies[0].mass == loaded[1]
