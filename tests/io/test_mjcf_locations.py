"""Errors and notes on MJCF files name the file and the line of the element, in all files of a model."""

import random

import pytest

from tests.io.test_mjcf import model, read
from zwang.errors import LoadError
from zwang.io.mjcf.read.compiled_model import compile_model
from zwang.io.mjcf.read.model_files import read_model_files
from zwang.io.mjcf.read.read_mjcf import read_mjcf

CHILD = """<mujoco>
<worldbody>
<body name="link">


<joint name="y" springyield=".1" stiffness="1"/>
<geom size=".1"/></body>
</worldbody></mujoco>"""
SOUND = CHILD.replace('springyield=".1" stiffness="1"', "")
ATTACHING = """<mujoco><asset><model name="ch" file="child.xml"/></asset>
<worldbody>{}<attach model="ch" body="link" prefix="L_"/></worldbody></mujoco>"""
INCLUDING = """<mujoco>
<include file="child.xml"/></mujoco>"""
PLASTIC = '\n<body><joint name="y" springyield=".1" stiffness="1"/><geom size=".1"/></body>'


def test_errors_name_the_file_the_line_and_the_element():
    for text, words in (
        (model(joint='damping="-1"'), ("test.xml, line 4", "shoulder", "damping")),
        (model(joint='armature="-1"'), ("test.xml, line 4", "shoulder", "armature")),
        (model(joint='stiffness="nan"'), ("test.xml, line 4", "shoulder", "NaN")),
        (model(joint='typ="hinge"'), ("test.xml, line 4", "typ")),
        (model(before='<option timestep="0"/>'), ("test.xml, line 2", "timestep")),
        (model(after='<actuator><motor name="m" joint="no"/></actuator>'), ("test.xml, line 6", "no")),
    ):
        with pytest.raises(LoadError) as caught:
            read(text)
        for word in words:
            assert word in str(caught.value)


def test_errors_in_included_files_state_the_line(tmp_path):
    (tmp_path / "part.xml").write_text(
        '<mujoco>\n\n<worldbody><body name="b"><joint name="k" damping="-1"/><geom size="1"/>'
        "</body></worldbody></mujoco>"
    )
    with pytest.raises(LoadError, match=r"part\.xml, line 3.*'k'"):
        read(model(before='<include file="part.xml"/>'), tmp_path)


def test_an_error_without_words_in_an_included_file_names_that_file(tmp_path):
    part = "<mujoco><worldbody>\n<body><joint/></body></worldbody></mujoco>"
    (tmp_path / "part.xml").write_text(part)
    with pytest.raises(LoadError, match=r"^part\.xml.*mass and inertia"):
        read(model(before='<include file="part.xml"/>'), tmp_path)


@pytest.mark.parametrize(
    ("main", "child", "place"),
    [
        (ATTACHING.format(""), CHILD, "child.xml, line 6"),
        (ATTACHING.format(""), CHILD.replace('name="y"', ""), "child.xml, line 6"),
        (ATTACHING.format(PLASTIC), SOUND, "main.xml, line 3"),
        (ATTACHING.format(""), SOUND.replace("<joint", '<joint class="zz"'), "child.xml, line 6"),
        (ATTACHING.format(""), SOUND.replace("<joint", '<joint damping="-1"'), "child.xml, line 6"),
        (ATTACHING.format("").replace('"link"', '"lonk"'), SOUND, "main.xml, line 2"),
        (INCLUDING, CHILD, "child.xml, line 6"),
        (INCLUDING, CHILD.replace('name="y"', ""), "child.xml, line 6"),
        (INCLUDING, SOUND.replace("<joint", '<joint class="zz"'), "child.xml, line 6"),
        (INCLUDING, SOUND.replace("<joint", '<joint typ="zz"'), "child.xml, line 6"),
        (INCLUDING, SOUND.replace('size=".1"', 'size="a"'), "child.xml, line 7"),
        (INCLUDING.replace("<include", '<option timestep="0"/><include'), SOUND, "main.xml, line 2"),
        (
            '<mujoco><option timestep=".001"/>\n\n<option><flag override="enable"/></option></mujoco>',
            "",
            "main.xml, line 3",
        ),
        (
            INCLUDING.replace("<include", '<option timestep=".01"/><include'),
            SOUND.replace("<worldbody>", '<option integrator="discrete"/><worldbody>'),
            "child.xml, line 2",
        ),
    ],
)
def test_errors_name_the_file_and_the_line_in_all_files_of_a_model(main, child, place, tmp_path):
    (tmp_path / "child.xml").write_text(child)
    with pytest.raises(LoadError) as caught:
        read_mjcf(tmp_path / "main.xml", text=main)
    assert str(caught.value).startswith(f"{place}: ")


def test_a_note_on_an_equality_has_the_line_of_the_equality_not_that_of_its_joint():
    text = model(after='<equality><joint name="shoulder" joint1="shoulder" solref="-1 1"/></equality>')
    notes = read(text).report.of_kind("repaired")
    assert [note.where for note in notes] == ["test.xml, line 6"]


def test_an_element_of_one_of_several_copies_of_an_included_file_has_its_line(tmp_path):
    (tmp_path / "part.xml").write_text(
        '<mujoco>\n<body name="p"><joint name="k"/>\n<geom name="g" size=".1"/><geom size=".2"/></body>\n'
        "</mujoco>"
    )
    (tmp_path / "leaf.xml").write_text(
        '<mujoco><worldbody><body><geom size=".3"/></body></worldbody></mujoco>'
    )
    source = compiled(
        tmp_path,
        '<mujoco><include file="leaf.xml"/><worldbody><replicate count="2" sep="-" offset="1 0 0">'
        '<include file="part.xml"/></replicate></worldbody></mujoco>',
    )
    assert [source.name("geom", g) for g in range(5)] == ["geom0", "g-0", "geom2", "g-1", "geom4"]
    named, unnamed = "part.xml, line 3", "leaf.xml or part.xml"
    assert [source.location("geom", g) for g in range(5)] == [unnamed, named, unnamed, named, unnamed]


def compiled(folder, text):
    return compile_model(read_model_files(folder / "main.xml", text), strict=True)


KINDS = ("geom", "site", "joint", "body", "frame", "include")


class RandomFiles:
    """Random documents that include each other, without names; each element tells its file and its line."""

    def __init__(self, seed):
        self.random, self.documents = random.Random(seed), []

    def document(self, depth, section=""):
        """The number of a new document with bodies, in a section of the world or as the world's contents."""
        number, lines = len(self.documents), []
        self.documents.append(lines)
        lines.append("<mujoco>")
        for _ in range(self.random.randint(1, 2)):
            lines.append(section and f"<{section}>")
            self.contents(number, lines, depth, is_body=False)
            lines.append(section and f"</{section}>")
            if section and self.random.random() < 0.5:
                lines.append(
                    f'<include file="{self.document(depth - 1, section)}.xml"/>' if depth > 0 else ""
                )
        lines.append("</mujoco>")
        return number

    def contents(self, number, lines, depth, is_body):
        for kind in ("site", *self.random.choices(KINDS, k=self.random.randint(1, 4))):
            code = (1 + len(lines)) * 1e-3 + number
            if kind in ("geom", "site"):
                lines.append(f'<{kind} size="{code}"/>')
            elif kind == "joint" and is_body:
                lines.append(f'<joint type="slide" armature="{code}"/>')
            elif kind == "include" and depth > 0 and not is_body:
                lines.append(f'<include file="{self.document(depth - 1)}.xml"/>')
            elif kind in ("body", "frame") and depth > 0:
                lines.append(f'<body><geom size="{code}"/>' if kind == "body" else "<frame>")
                self.contents(number, lines, depth - 1, is_body or kind == "body")
                lines.append(f"</{kind}>")


@pytest.mark.parametrize("seed", range(12))
def test_elements_without_names_in_included_files_have_their_lines(seed, tmp_path):
    files = RandomFiles(seed)
    files.document(4, "worldbody")
    for number, lines in enumerate(files.documents):
        (tmp_path / f"{number}.xml").write_text("\n".join(lines))
    source = compiled(tmp_path, (tmp_path / "0.xml").read_text())
    m = source.model
    for kind, codes in (("geom", m.geom_size[:, 0]), ("site", m.site_size[:, 0]), ("joint", m.dof_armature)):
        for k, code in enumerate(codes):
            number = int(code)
            name = f"{number}.xml" if number else "main.xml"
            assert source.location(kind, k) == f"{name}, line {round((code - number) * 1e3)}"
