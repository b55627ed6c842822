"""Collada files: parts and transformations, against closed forms and Assimp, which Pinocchio uses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.io.urdfs import INERTIAL, pendulum
from zwang.errors import LoadError
from zwang.io.meshes.collada import read_collada
from zwang.mechanism.geometry import Mesh

VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3.0]])
VERTEX = '<input semantic="VERTEX" source="#v" offset="0"/>'
TRIANGLES = f'<triangles count="4">{VERTEX}<p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>'
XYZ = "".join(f'<param name="{axis}" type="float"/>' for axis in "XYZ")
ACCESSOR = f'<accessor source="#a" count="4" stride="3">{XYZ}</accessor>'
INSTANCE = '<instance_geometry url="#g"/>'


def numbers_of(rows: np.ndarray) -> str:
    return " ".join(map(str, np.ravel(rows)))


def document(
    surface: str = TRIANGLES,
    node: str = INSTANCE,
    accessor: str = ACCESSOR,
    numbers: str = numbers_of(VERTICES),
    libraries: str = "",
) -> str:
    """A tetrahedron with its right angle at the origin and edges of 1, 2 and 3 m there."""
    return f"""<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset><library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="{len(numbers.split())}">{numbers}</float_array>
<technique_common>{accessor}</technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
{surface}</mesh></geometry></library_geometries>{libraries}
<library_visual_scenes><visual_scene id="s"><node>{node}</node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def triangles_of(text: str) -> np.ndarray:
    """The corners (m, 3, 3) of the triangles that zwang reads."""
    vertices, faces = read_collada(text.encode(), "x.dae")
    return vertices[faces]


def triangles_of_assimp(text: str, folder: Path) -> np.ndarray:
    """The corners (m, 3, 3) of the triangles that Pinocchio reads through Assimp."""
    pinocchio = pytest.importorskip("pinocchio", exc_type=ImportError)
    (folder / "x.dae").write_text(text)
    shape = '<collision><geometry><mesh filename="package://x.dae"/></geometry></collision>'
    path = folder / "x.urdf"
    path.write_text(pendulum(INERTIAL + shape))
    model, kind = pinocchio.buildModelFromUrdf(str(path)), pinocchio.GeometryType.COLLISION
    (found,) = pinocchio.buildGeomFromUrdf(model, str(path), kind, None, [str(folder)]).geometryObjects
    vertices, count = found.geometry.vertices(), found.geometry.num_tris
    triangles = [found.geometry.tri_indices(k) for k in range(count)]
    return np.array([[vertices[t[k]] for k in range(3)] for t in triangles])


def ordered(triangles: np.ndarray) -> np.ndarray:
    """Triangles in lexical order, each with its first corner in lexical order; the orientation stays."""
    found = [min(np.roll(t, k, axis=0).tolist() for k in range(3)) for t in np.round(triangles, 5)]
    return np.array(sorted(found))


def volume(triangles: np.ndarray) -> float:
    vertices: object = triangles.reshape(-1, 3)
    faces: object = np.arange(len(triangles) * 3).reshape(-1, 3)
    return Mesh(vertices=vertices, faces=faces).unit_properties()[0]  # type: ignore[arg-type]


SPREAD = np.insert(np.insert(VERTICES, 3, 7, axis=1), 0, 8, axis=1)  # 8 x y z 7 for each vertex
SAME = {
    "strip": document(f'<tristrips count="1">{VERTEX}<p>0 2 1 3 0 2</p></tristrips>'),
    "strips and triangles": document(
        f'<triangles count="2">{VERTEX}<p>0 2 1 0 1 3</p></triangles>'
        f'<tristrips count="2">{VERTEX}<p>0 3 2</p><p>1 2 3</p></tristrips>'
    ),
    "fans": document(f'<trifans count="2">{VERTEX}<p>0 2 1 3 2</p><p>1 2 3</p></trifans>'),
    "offset": document(
        accessor=ACCESSOR.replace("stride", 'offset="3" stride'), numbers="9 9 9 " + numbers_of(VERTICES)
    ),
    "order": document(
        accessor=ACCESSOR.replace('"X"', '"x"').replace('"Z"', '"X"').replace('"x"', '"Z"'),
        numbers=numbers_of(VERTICES[:, ::-1]),
    ),
    "further numbers": document(
        accessor=f'<accessor source="#a" count="4" stride="5"><param type="float"/>{XYZ}<param type="float"/>'
        "</accessor>",
        numbers=numbers_of(SPREAD),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_parts_of_a_mesh_give_the_same_tetrahedron(name: str) -> None:
    plain = triangles_of(document())
    assert volume(plain) == pytest.approx(1, rel=1e-15)
    np.testing.assert_array_equal(ordered(triangles_of(SAME[name])), ordered(plain))


SQUARE = numbers_of(np.array([[0, 0, 0], [1, 0, 0], [1, 2, 0], [0, 2, 0]]))
IN_ASSIMP = {  # one element each; it takes a fan for a polygon, which must be convex
    "strip": SAME["strip"],
    "strips": document(f'<tristrips count="2">{VERTEX}<p>0 3 2</p><p>1 2 3</p></tristrips>'),
    "fan": document(f'<trifans count="1">{VERTEX}<p>0 1 2 3</p></trifans>', numbers=SQUARE),
    "order": SAME["order"],
}


@pytest.mark.parametrize("name", IN_ASSIMP)
def test_assimp_reads_the_same_parts(name: str, tmp_path: Path) -> None:
    found, expected = triangles_of(IN_ASSIMP[name]), triangles_of_assimp(IN_ASSIMP[name], tmp_path)
    np.testing.assert_allclose(ordered(found), ordered(expected), atol=1e-5)


def test_strips_joined_by_repeated_vertices_have_no_empty_triangles() -> None:
    text = document(f'<tristrips count="1">{VERTEX}<p>0 2 1 3 3 0 0 3 2</p></tristrips>')
    assert len(triangles_of(text)) == 3


def test_accessors_may_refer_to_the_array_of_another_source() -> None:
    other = f'<source id="q"><float_array id="b" count="12">{numbers_of(2 * VERTICES)}</float_array></source>'
    text = document(surface=other + TRIANGLES, accessor=ACCESSOR.replace("#a", "#b"))
    np.testing.assert_array_equal(triangles_of(text), 2 * triangles_of(document()))


def test_lookat_poses_the_node_as_in_assimp(tmp_path: Path) -> None:
    """Which does not make the direction up perpendicular to the line of sight, as it is here."""
    text = document(node=f"<lookat>1 2 3 5 2 0 0 -1 0</lookat>{INSTANCE}")
    expected = triangles_of_assimp(text, tmp_path)
    np.testing.assert_allclose(ordered(triangles_of(text)), ordered(expected), atol=1e-5)


def test_lookat_maps_the_line_of_sight_to_the_negative_z_axis() -> None:
    eye, interest, up = np.array([[1, 2, 3], [4, 0, 1], [0.1, 0.2, 1]])
    node = f"<lookat>{numbers_of(np.stack([eye, interest, up]))}</lookat>{INSTANCE}"
    vertices, _ = read_collada(document(node=node).encode(), "x.dae")
    np.testing.assert_allclose(vertices[0], eye, atol=1e-15)
    right, above, back = (vertices[1:] - eye) / [[1], [2], [3]]
    toward = (interest - eye) / np.linalg.norm(interest - eye)
    np.testing.assert_allclose(back, -toward, atol=1e-15)
    np.testing.assert_allclose(np.cross(above, back), right, atol=1e-15)
    assert abs(np.linalg.det([up, above, back])) < 1e-15 and above @ up > 0


def test_skew_turns_its_first_axis_by_the_angle_towards_the_second() -> None:
    """And keeps the plane perpendicular to the first axis."""
    node = f"<skew>30 0 2 0 3 0 0</skew>{INSTANCE}"
    vertices, _ = read_collada(document(node=node).encode(), "x.dae")
    expected = VERTICES + np.array([[0, 0, 0], [0, 0, 0], [2 / 3**0.5, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(vertices, expected, atol=1e-15)


@pytest.mark.parametrize(
    "node",
    [
        "<scale>-1 1 1</scale>",
        "<matrix>-1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</matrix>",
        "<scale>-1 -1 -1</scale><translate>3 2 1</translate>",
        "<scale>-1 1 1</scale><scale>1 -1 1</scale>",
    ],
)
def test_faces_of_mirrored_nodes_are_wound_outward(node: str) -> None:
    """So that the volume stays positive: a tetrahedron has a sixth of the product of its edges."""
    triangles = triangles_of(document(node=node + INSTANCE))
    assert volume(triangles) == pytest.approx(1 * 2 * 3 / 6, rel=1e-12)


def test_lines_are_ignored() -> None:
    lines = (
        f'<lines count="1">{VERTEX}<p>0 1</p></lines><linestrips count="1">{VERTEX}<p>0 1 2</p></linestrips>'
    )
    np.testing.assert_array_equal(triangles_of(document(lines + TRIANGLES)), triangles_of(document()))


CONTROLLER = '<library_controllers><controller id="c"><skin source="#g"/></controller></library_controllers>'
HOLES = f'<polygons count="1">{VERTEX}<ph><p>0 2 1</p><h>0 1 2</h></ph></polygons>'
REFUSED = {
    "holes": (document(HOLES), "<ph>.*save it again"),
    "controller": (
        document(node='<instance_controller url="#c"/>', libraries=CONTROLLER),
        "<instance_controller>.*save it again",
    ),
    "convex mesh": (
        document().replace("<mesh>", "<convex_mesh>").replace("</mesh>", "</convex_mesh>"),
        "<convex_mesh>.*save the mesh as triangles",
    ),
    "oblique skew": (document(node=f"<skew>30 0 1 0 1 1 0</skew>{INSTANCE}"), "<skew>.*perpendicular"),
    "steep skew": (document(node=f"<skew>90 0 1 0 1 0 0</skew>{INSTANCE}"), "<skew>.*<matrix>"),
    "up along the line of sight": (
        document(node=f"<lookat>0 0 0 0 0 1 0 0 2</lookat>{INSTANCE}"),
        "<lookat> has an up direction along its line of sight",
    ),
    "no line of sight": (document(node=f"<lookat>1 0 0 1 0 0 0 0 2</lookat>{INSTANCE}"), "<lookat>.*zero"),
    "two coordinates": (
        document(accessor=ACCESSOR.replace('<param name="Z" type="float"/>', "")),
        r"<accessor> of positions has stride 3 and the <param>s \['X', 'Y'\]",
    ),
    "beyond the array": (
        document(accessor=ACCESSOR.replace('count="4"', 'count="5"')),
        "<accessor> with count 5, stride 3 and offset 0 exceeds the 12 numbers",
    ),
    "huge count": (
        document(accessor=ACCESSOR.replace('count="4"', 'count="1e18"')),
        "count of <accessor> is 1e.18; it must be an integer",
    ),
    "no array": (
        document(accessor=ACCESSOR.replace("#a", "#b")),
        "source of <accessor> is '#b': the file has no <float_array>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_parts_that_are_not_supported_raise_with_the_line(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(LoadError, match=rf"x\.dae, line \d+.*{message}"):
        read_collada(text.encode(), "x.dae")
