"""Descriptions of mechanisms: valid and invalid values, names, serialisation, and error messages."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.mechanisms import random_mechanism
from zwang.errors import DescriptionError, LoadError, ParameterError, UnknownNameError


def body(name: str = "b", **fields) -> zw.Body:
    return zw.Body(
        **{"name": name, "joint": zw.Revolute(f"{name} joint"), "mass": 1, "com": (0.1, 0, 0), **fields}
    )


def single(**fields) -> zw.Mechanism:
    return zw.Mechanism(bodies=[body()], **fields)


WRONG = {
    "negative mass": (lambda: body(mass=-1), "mass of body 'b'"),
    "text for mass": (lambda: body(mass="1"), "mass of body 'b'"),
    "NaN": (lambda: body(com=(0, math.nan, 0)), "com of body 'b'"),
    "infinity": (lambda: body(mass=math.inf), "mass of body 'b'"),
    "short vector": (lambda: body(com=(0, 1)), "3 numbers"),
    "triangle": (lambda: body(inertia=(1, 1, 3)), "triangle"),
    "negative moment": (lambda: body(inertia=(1, -1, 1)), "negative"),
    "unsymmetric inertia": (lambda: body(inertia=((1, 0.1, 0), (0, 1, 0), (0, 0, 1))), "symmetric"),
    "two numbers of inertia": (lambda: body(inertia=(1, 2)), "principal moments"),
    "one number of inertia": (lambda: body(inertia=0.1), "inertia of body 'b' is 0.1; give 3 principal"),
    "a symbol of inertia": (
        lambda: body(inertia=sp.Symbol("J")),
        "inertia of body 'b' is J; give 3 principal",
    ),
    "zero axis": (lambda: zw.Revolute("r", axis=(0, 0, 0)), "axis of joint 'r'"),
    "NaN axis": (lambda: zw.Revolute("r", axis=(0, math.nan, 0)), "axis of joint 'r'"),
    "zero quaternion": (lambda: body(orientation=(0, 0, 0, 0)), "orientation of body 'b'"),
    "no rotation": (lambda: body(orientation=((1, 0, 0), (0, 1, 0), (0, 0, -1))), "not a rotation"),
    "limits": (lambda: zw.Revolute("r", limits=(1, -1)), "limits of joint 'r'"),
    "armature": (lambda: zw.Revolute("r", armature=-1), "armature of joint 'r'"),
    "parallel axes": (lambda: zw.Universal("u", axis=(1, 0, 0), second_axis=(-2, 0, 0)), "parallel"),
    "no joint": (lambda: body(joint="revolute"), "zw.Revolute"),
    "no name": (lambda: body(""), "name"),
    "damping": (lambda: zw.Damper("r", -1), "damper on joint 'r'"),
    "no radius": (lambda: zw.Sphere(0.0, name="s"), "radius of sphere 's'"),
    "density without shape": (lambda: body(density=1000), "no shape with a volume"),
    "two bodies of a name": (lambda: zw.Mechanism(bodies=[body(), body()]), "twice"),
    "two joints of a name": (
        lambda: zw.Mechanism(bodies=[body("a", joint=zw.Ball("j")), body("c", joint=zw.Ball("j"))]),
        "joint name 'j'",
    ),
    "a body called world": (lambda: zw.Mechanism(bodies=[body("world")]), "world"),
    "frame named as a body": (lambda: zw.Mechanism(bodies=[body()], frames=[zw.Frame("b", "b")]), "twice"),
    "own parent": (lambda: zw.Mechanism(bodies=[body(parent="b")]), "own parent"),
    "cycle": (lambda: zw.Mechanism(bodies=[body("a", parent="c"), body("c", parent="a")]), "cycle"),
    "parent behind": (lambda: zw.Mechanism(bodies=[body("a", parent="c"), body("c")]), "parent first"),
    "no mass": (lambda: zw.Mechanism(bodies=[body(mass=0, com=(0, 0, 0))]), "body 'b' moves"),
    "home": (lambda: zw.Mechanism(bodies=[body()], home=(0, 0)), "home"),
    "motor on a ball": (
        lambda: zw.Mechanism(
            bodies=[body(joint=zw.Ball("j"), inertia=(1, 1, 1))], forces=[zw.Motor("m", "j")]
        ),
        "3 speeds",
    ),
    "actuator without target": (lambda: zw.Actuator("a"), "target"),
    "gears of an actuator": (
        lambda: single(forces=[zw.Actuator("a", "b joint", gear=(1, 2))]),
        "gear of actuator 'a'",
    ),
    "range of three": (lambda: zw.Motor("m", "j", control_range=(0, 1, 2)), r"give \(lower, upper\)"),
    "range that is a number": (lambda: zw.Revolute("r", limits=3), r"give \(lower, upper\)"),
    "a number for an attitude": (lambda: body(orientation=3), r"quaternion \(w, x, y, z\)"),
    "roll, pitch, yaw for an attitude": (lambda: body(orientation=(0, 0, 1)), "from_rpy"),
    "pitch": (lambda: zw.Screw("s", pitch=math.nan), "pitch of joint 's'"),
    "softness": (lambda: zw.Softness(solref=(1, 2, 3)), "solref"),
    "text for a softness": (lambda: zw.Revolute("r", limit_softness="soft"), "limit_softness of joint 'r'"),
    "no shape": (lambda: body(geometry=[3]), "geometry of body 'b'"),
    "no body": (lambda: zw.Mechanism(bodies=[3]), "bodies of mechanism"),
    "one body": (lambda: zw.Mechanism(bodies=body()), "list of zw.Body"),
    "no force": (lambda: single(forces=["push"]), "forces of mechanism"),
    "no constraint": (lambda: single(constraints=["loop"]), "constraints of mechanism"),
    "no options": (lambda: single(options="rk4"), "zw.Options"),
    "cone": (lambda: zw.Options(cone="round"), "cone"),
    "motor without name": (lambda: zw.Motor("", "j"), "motor"),
    "frame without name": (lambda: zw.Frame("", "b"), "frame"),
    "input that is no text": (lambda: zw.Wrench("b", input=3), "input"),
    "point without body": (lambda: zw.PointSpring("b", ("c", (0, 0, 0)), 1), "body name"),
    "negative damping between points": (
        lambda: zw.PointSpring(("b", (0, 0, 0)), ("c", (0, 0, 0)), 1, damping=-1),
        "must not be negative",
    ),
    "rest of a spring on a ball": (
        lambda: zw.Mechanism(
            bodies=[body(joint=zw.Ball("j"), inertia=(1, 1, 1))], forces=[zw.Spring("j", 1, rest=0.5)]
        ),
        "a ball or free joint",
    ),
    "spring to itself": (lambda: zw.Spring("j", 1, relative_to="j"), "same joint"),
    "negative distance": (
        lambda: zw.Distance("d", ("b", (0, 0, 0)), ("c", (0, 0, 0)), -1),
        "length of distance",
    ),
    "tendon of nothing": (lambda: zw.Tendon("t"), "tendon 't'"),
    "keyframe": (lambda: single(keyframes=[zw.Keyframe("k", q=(1, 2))]), "q of keyframe 'k'"),
    "NaN in a keyframe": (lambda: zw.Keyframe("k", q=(math.nan,)), "q of keyframe 'k'"),
    "home without attitude": (
        lambda: zw.Mechanism(bodies=[body(joint=zw.Ball("j"), inertia=(1, 1, 1))], home=(0, 0, 0, 0)),
        "quaternion of joint 'j'",
    ),
    "timestep": (lambda: zw.Options(timestep=0), "timestep"),
    "condim": (lambda: zw.Surface(condim=2), "condim"),
    "limits of several coordinates": (
        lambda: zw.Cylindrical("c", limits=(0, 1)),
        "limits of joint 'c'.*omit",
    ),
    "limits of a free joint": (lambda: zw.Free("f", limits=(0, 1)), "limits of joint 'f'"),
    "reference of several coordinates": (
        lambda: zw.Planar("p", reference=0.1),
        "reference of joint 'p' is 0.1.*position",
    ),
    "reference of a ball": (lambda: zw.Ball("b", reference=1), "reference of joint 'b'"),
    "axis of a ball": (lambda: zw.Ball("b", axis=(1, 0, 0)), "axis of joint 'b'.*every axis"),
    "axis of a free joint": (lambda: zw.Free("f", axis=(0, 1, 0)), "axis of joint 'f'"),
    "solver": (lambda: zw.Options(solver="magic"), "solver is 'magic'.*'newton'"),
    "disabled": (lambda: zw.Options(disabled=("contacts",)), "disabled contains 'contacts'.*contact"),
    "one disabled": (lambda: zw.Options(disabled="contact"), "tuple"),
    "enabled": (lambda: zw.Options(enabled=("gravity",)), "enabled contains 'gravity'"),
    "activation": (
        lambda: zw.Actuator("a", "j", activation=("slow", ())),
        "activation of actuator 'a'.*'slow'.*filterexact",
    ),
    "activation without a constant": (
        lambda: zw.Actuator("a", "j", activation=("filter", ())),
        "time constant",
    ),
    "activation at once": (lambda: zw.Actuator("a", "j", activation=("filter", (0,))), "positive"),
    "activation by a name": (lambda: zw.Actuator("a", "j", activation="filter"), "kind, parameters"),
    "lower limit of a ball joint": (lambda: zw.Ball("b", limits=(0.5, 1)), r"'b' are \(0.5, 1\)"),
    "negative limits of a ball joint": (lambda: zw.Ball("b", limits=(-1.5, -1)), "largest angle"),
    "two keyframes of a name": (
        lambda: single(keyframes=[zw.Keyframe("k"), zw.Keyframe("k")]),
        "keyframe name 'k'",
    ),
}


@pytest.mark.parametrize(
    ("joints", "mass", "formula", "law", "meanings"),
    [
        ("xy", "x", "y - x**2", None, "'x' .* 'h': it is a coordinate and a parameter"),
        ("xy", "t", "y - x - t**2", None, "'t' .* the time and a parameter"),
        ("ty", 2, "y - t**2", None, "'t' .* a coordinate and the time"),
        (["x", "N"], 2, "N - x**2", "-0.3 * N", "'N' .* 'f': it is a coordinate and the magnitude"),
        (["x", "x_dot"], 2, "x_dot - x**2", "-x_dot", "'x_dot' .* 'f': it is a coordinate and a velocity"),
        ("xy", "x_dot", "y - x**2", "-x_dot", "'x_dot' .* 'f': it is a parameter and a velocity"),
    ],
)
def test_names_in_formulas_have_one_meaning(joints, mass, formula, law, meanings):
    """The value of a parameter would take the place of the coordinate or of the time in the formula."""

    def mechanism(constraints):
        slides = [zw.Prismatic(n, axis=a) for n, a in zip(joints, ((1, 0, 0), (0, 1, 0)), strict=True)]
        bead = zw.Body("bead", tuple(slides), mass=sp.Symbol(mass) if isinstance(mass, str) else mass)
        return zw.Mechanism("bead", [bead], constraints=constraints)

    parsed = {name: sp.Symbol(name) for name in ("x", "y", "t", "N", "x_dot")}
    guide = zw.Holonomic("h", sp.sympify(formula, parsed))
    laws = [zw.NonIdeal("f", "h", {"x": sp.sympify(law, parsed)})] if law else []
    with pytest.raises(DescriptionError, match=f"the symbol {meanings}.*rename"):
        mechanism([guide, *laws])
    assert mechanism([]).nv == 2  # files without formulas may have such names


def test_fields_of_joints_with_several_coordinates():
    assert zw.Ball("b", limits=(0, 1)).limits == (0, 1)
    least = sp.Symbol("least")
    assert zw.Ball("b", limits=(least, 1)).limits == (least, 1)
    assert zw.Universal("u", reference=0).reference == 0
    assert zw.Actuator("a", "j", activation=("filter", 0.1)).activation == ("filter", (0.1,))
    assert zw.Options(disabled=["contact"]).disabled == ("contact",)


def test_overflowing_masses_raise_without_numpy_warnings(recwarn):
    far = zw.Mechanism(bodies=[body(mass=1e300, com=(1e10, 0, 0), inertia=(0, 1, 1))])
    assert not np.isfinite(np.asarray(far.tree.links[0].J, float)).all()
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


@pytest.mark.parametrize("what", WRONG)
def test_invalid_parts_raise_with_their_name(what):
    make, words = WRONG[what]
    with pytest.raises(DescriptionError, match=words):
        make()


UNKNOWN = {
    "parent": lambda: zw.Mechanism(bodies=[body(parent="c")]),
    "frame": lambda: zw.Mechanism(bodies=[body()], frames=[zw.Frame("f", "c")]),
    "motor": lambda: zw.Mechanism(bodies=[body()], forces=[zw.Motor("m", "elbow")]),
    "spring": lambda: zw.Mechanism(
        bodies=[body()], forces=[zw.PointSpring(("b", (0, 0, 0)), ("c", (0, 0, 0)), 1)]
    ),
    "coupling": lambda: zw.Mechanism(
        bodies=[body()], constraints=[zw.JointCoupling("x", "b joint", "elbow")]
    ),
    "joint": lambda: zw.Mechanism(bodies=[body()]).joint("b jiont"),
    "body": lambda: zw.Mechanism(bodies=[body()]).body("q"),
}


CYLINDRICAL = zw.Cylindrical("c", axis=(0, 0, 1))


@pytest.mark.parametrize(
    ("parts", "remedy"),
    [
        (
            {"constraints": [zw.JointCoupling("k", "c", "d")]},
            "a Holonomic constraint.* c.angle, c.disp",
        ),
        ({"forces": [zw.Motor("m", "c")]}, "an Actuator with one gear for each of them, or a Wrench"),
        ({"forces": [zw.Spring("c", 1.0)]}, "a PointSpring"),
        ({"tendons": [zw.Tendon("t", joints=[("c", 1.0)])]}, "joints of one speed each"),
    ],
)
def test_the_error_for_a_joint_of_several_speeds_names_the_remedy_for_its_part(parts, remedy):
    bodies = [body("a", joint=CYLINDRICAL), body("b", joint=zw.Revolute("d"))]
    with pytest.raises(DescriptionError, match=f"which is cylindrical and has 2 speeds.*{remedy}"):
        zw.Mechanism(bodies=bodies, **parts)


def test_a_formula_couples_an_angle_of_a_cylindrical_joint_as_its_error_says():
    """angle = 2 d: both turn with the acceleration tau_d / (I_d + 4 I_c) of d."""
    bodies = [
        body("a", joint=CYLINDRICAL, com=(0, 0, 0), inertia=(1, 1, 1)),
        body("b", joint=zw.Revolute("d"), com=(0, 0, 0), inertia=(2, 2, 3.0)),
    ]
    row = zw.Holonomic("k", sp.Symbol("c.angle") - 2 * sp.Symbol("d"))
    m = zw.Mechanism(bodies=bodies, constraints=[row], gravity=(0, 0, 0))
    found = zw.constrained_dynamics(m, [0, 0, 0], [0, 0, 0], [0, 0, 1.4])
    np.testing.assert_allclose(found.acceleration, [0.4, 0, 0.2], atol=1e-12)


@pytest.mark.parametrize("what", UNKNOWN)
def test_an_unknown_name_raises_with_the_valid_names(what):
    with pytest.raises(UnknownNameError, match="names are: '"):
        UNKNOWN[what]()


def test_a_misspelt_name_raises_with_a_suggestion():
    with pytest.raises(UnknownNameError, match="Did you mean 'b joint'"):
        zw.Mechanism(bodies=[body()]).joint("b jiont")


@pytest.mark.parametrize("seed", range(6))
def test_json_gives_an_equal_mechanism(seed):
    m = random_mechanism(seed)
    assert zw.Mechanism.from_json(m.to_json()) == m


def furuta() -> zw.Mechanism:
    m, L = sp.symbols("m L", positive=True)
    k = sp.Symbol("k")
    return zw.Mechanism(
        bodies=[
            body(
                mass=m,
                com=(L / 3, 0, 0),
                inertia=(m * L**2 / 12, sp.sqrt(2) * m, sp.Rational(1, 2) * m * sp.pi),
            )
        ],
        forces=[zw.Spring("b joint", (k, 0, k**2), rest=sp.sin(L))],
    )


def test_json_keeps_expressions_and_their_assumptions():
    m = furuta()
    again = zw.Mechanism.from_json(m.to_json())
    assert again == m and again.symbols == ("L", "k", "m")


def test_subs_accepts_names_and_symbols():
    m = furuta()
    numbers = m.subs({"m": 2, sp.Symbol("L", positive=True): 3, "k": 3})
    assert numbers.symbols == ()
    assert float(numbers.bodies[0].com[0]) == pytest.approx(1)
    assert float(numbers.forces[0].stiffness[2]) == 9
    with pytest.raises(ParameterError, match="'M'"):
        m.subs({"M": 1})
    with pytest.raises(ParameterError, match=r"'L': ..., 'k': ..., 'm': ..."):
        zw.mass_matrix(m, [0.0])
    with pytest.raises(DescriptionError, match="mass of body 'b' is -1"):
        m.subs({"m": -1, "L": 3, "k": 1})


JSON_OF_VERSION_0_1 = """{"format": "zwang 1", "value": {"kind": "Mechanism", "name": "old",
 "bodies": [
  {"kind": "Body", "name": "a", "joint": {"kind": "Revolute", "name": "ja"}, "mass": 1, "com": [0.1, 0, 0],
   "inertia": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]},
  {"kind": "Body", "name": "b", "joint": {"kind": "Prismatic", "name": "jb"}, "mass": 1,
   "inertia": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}],
 "constraints": [
  {"kind": "Couple", "name": "c", "joint": "ja", "to": "jb", "coefficients": [0, 2]},
  {"kind": "CoupleTendons", "name": "d", "tendon": "ta", "to": "tb"}],
 "tendons": [
  {"kind": "Tendon", "name": "ta", "joints": [["ja", 1]]}, {"kind": "Tendon", "name": "tb", "joints":
    [["jb", 1]]}]
}}"""


def test_json_of_version_0_1_is_read_with_its_class_names_and_written_with_the_new_ones():
    m = zw.Mechanism.from_json(JSON_OF_VERSION_0_1)
    assert m.constraints == (zw.JointCoupling("c", "ja", "jb", (0, 2)), zw.TendonCoupling("d", "ta", "tb"))
    text = m.to_json()
    assert '"format": "zwang 2"' in text and "Couple" not in text.replace("JointCoupling", "")
    assert zw.Mechanism.from_json(text) == m


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '{"format": "zwang 1", "value": {"kind": "Popen"}}',
        '{"format": "zwang 1", "value": {"kind": "Mechanism", "colour": 1}}',
        '{"format": "zwang 1", "value": {"kind": "Sphere", "radius": 1}}',
        "\x80\x03c",
        '{"format": "zwang 1", "value": ' + "[" * 100_000,
    ],
)
def test_invalid_json_raises(text):
    with pytest.raises(LoadError):
        zw.Mechanism.from_json(text)


def test_code_in_json_is_not_executed(tmp_path):
    target = tmp_path / "x"
    evil = f'__import__("pathlib").Path({str(target)!r}).touch()'
    for kind in (evil, "exec", "Symbol.__class__"):
        text = (
            zw.Mechanism(bodies=[body()])
            .to_json()
            .replace('"mass": 1', f'"mass": {{"expression": {{"sympy": [{kind!r}]}}}}'.replace("'", '"'))
        )
        with pytest.raises(LoadError):
            zw.Mechanism.from_json(text)
    assert not target.exists()


def test_matrices_of_sympy_are_those_of_their_elements():
    """The items of a matrix of SymPy are its nine elements, which were taken for its rows."""
    J, angle = sp.symbols("J alpha")
    R = sp.Matrix([[1, 0, 0], [0, sp.cos(angle), -sp.sin(angle)], [0, sp.sin(angle), sp.cos(angle)]])
    I = sp.Matrix([[J, J / 4, 0], [J / 4, 2 * J, 0], [0, 0, 2 * J]])
    for kind in (sp.Matrix, sp.ImmutableMatrix):
        turned = body(inertia=kind(I), orientation=kind(R))
        assert turned == body(inertia=I.tolist(), orientation=R.tolist())
        assert turned.inertia[0] == (J, J / 4, 0) and turned.orientation[2][1] == sp.sin(angle)
    assert body(inertia=sp.Matrix([J, J, 2 * J])) == body(inertia=(J, J, 2 * J))


SHAPES = [
    zw.Sphere(0.3, position=(0.1, 0.2, 0.3)),
    zw.Capsule(0.2, 0.5, orientation=(0.5, 0.5, 0.5, 0.5)),
    zw.Cylinder(0.2, 0.5, position=(0, 0.1, 0)),
    zw.Box(0.1, 0.2, 0.4, position=(0, 0, 1)),
    zw.Ellipsoid(0.1, 0.2, 0.3),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: type(s).__name__)
def test_inertia_of_a_shape_equals_that_of_sampled_points(shape):
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.5, 0.5, (400_000, 3))
    x, y, z = points.T
    inside = {
        "Sphere": x**2 + y**2 + z**2 < 0.09,
        "Capsule": x**2 + y**2 + np.maximum(abs(z) - 0.25, 0) ** 2 < 0.04,
        "Cylinder": (x**2 + y**2 < 0.04) & (abs(z) < 0.25),
        "Box": (abs(x) < 0.05) & (abs(y) < 0.1) & (abs(z) < 0.2),
        "Ellipsoid": (x / 0.1) ** 2 + (y / 0.2) ** 2 + (z / 0.3) ** 2 < 1,
    }[type(shape).__name__]
    cloud = points[inside] @ np.array(shape.orientation, float).T + np.array(shape.position, float)
    made = body(geometry=[shape], density=1000)
    mass = 1000 * inside.mean()
    spread = np.cov(cloud.T) * mass
    assert made.mass == pytest.approx(mass, rel=0.03)
    np.testing.assert_allclose(np.array(made.com, float), cloud.mean(0), atol=8e-3)
    want = np.trace(spread) * np.eye(3) - spread
    np.testing.assert_allclose(np.array(made.inertia, float), want, atol=0.04 * abs(want).max())


def test_inertia_of_a_box_mesh_equals_that_of_the_box():
    corners = [(x, y, z) for x in (-0.5, 0.5) for y in (-1, 1) for z in (0, 3)]
    faces = [
        (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6),
        (0, 6, 4), (1, 5, 7), (1, 7, 3),
    ]  # fmt: skip
    made = body(geometry=[zw.Mesh(vertices=corners, faces=faces)], density=2)
    box = body(geometry=[zw.Box(1, 2, 3, position=(0, 0, 1.5))], density=2)
    assert made.mass == pytest.approx(box.mass)
    np.testing.assert_allclose(np.array(made.com, float), np.array(box.com, float), atol=1e-12)
    np.testing.assert_allclose(np.array(made.inertia, float), np.array(box.inertia, float), atol=1e-12)


def test_joints_have_names_kinds_and_slices():
    m = zw.Mechanism(
        bodies=[
            body("a", joint=zw.Free("base"), inertia=(1, 1, 1)),
            body("c", parent="a", joint=zw.Revolute("hip")),
        ]
    )
    assert [(j.name, j.kind, j.q, j.v) for j in m.joints] == [
        ("base", "free", slice(0, 7), slice(0, 6)),
        ("hip", "revolute", slice(7, 8), slice(6, 7)),
    ]
    assert m.coordinate_names[3] == "base.qw" and m.coordinate_names[7] == "hip"
    assert m.neutral == (0, 0, 0, 1, 0, 0, 0, 0)
    assert all(isinstance(x, float) for x in m.neutral)  # of which an array takes other values


def test_a_mechanism_is_immutable_and_comparable():
    assert random_mechanism(1) == random_mechanism(1) != random_mechanism(2)
    with pytest.raises(AttributeError):
        random_mechanism(1).name = "x"
    assert "5 bodies" in repr(random_mechanism(1))


def test_contacts_refer_to_existing_shapes_and_bodies():
    with pytest.raises(UnknownNameError, match="shape 'foot'"):
        single(contacts=[zw.ContactPair("c", ("foot", "floor"))])
    with pytest.raises(UnknownNameError, match="body 'leg'"):
        single(contacts=[zw.ContactExclude(("leg", "b"))])


def test_lists_become_tuples():
    m = single(
        forces=[zw.Motor("m", "b joint", control_range=[-1, 1])],
        keyframes=[zw.Keyframe("k", q=[1])],
        tendons=[zw.Tendon("t", joints={"b joint": 2})],
    )
    assert zw.Mechanism.from_json(m.to_json()) == m
    assert len({m, m.replace()}) == 1


def test_an_actuator_has_a_gear_for_each_generalised_velocity():
    m = zw.Mechanism(
        gravity=(0, 0, 0),
        bodies=[body(joint=zw.Planar("j"), com=(0, 0, 0), inertia=(1, 1, 1))],
        forces=[zw.Actuator("a", "j", gear=(1, 2, 3))],
    )
    run = zw.simulate(m, duration=0.002, control={"a": 0.5})
    np.testing.assert_allclose(run.tau.values[0, 0], [0.5, 1, 1.5])
