"""Candidate pairs of geoms and their contact parameters: MuJoCo's rules, and MuJoCo's values on random
models.
"""

import mujoco
import numpy as np
import pytest

from zwang.collision import candidate_pairs
from zwang.errors import UnknownNameError
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism.contact_pairs import ContactExclude


def read(world, after=""):
    return read_mjcf("pairs.xml", text=f"<mujoco><worldbody>{world}</worldbody>{after}</mujoco>")


def names(mechanism):
    return {frozenset((pair.a.shape.name, pair.b.shape.name)) for pair in candidate_pairs(mechanism)}


def touching(*couples):
    return {frozenset(couple) for couple in couples}


def ball(name, inner="", joint="<joint/>", **attributes):
    more = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    return f'<body name="{name}">{joint}<geom name="{name}" size=".1" {more}/>{inner}</body>'


def test_parent_and_child_do_not_touch_but_grandchildren_do():
    m = read(ball("a", ball("b", ball("c"))))
    assert names(m) == touching("ac")


def test_the_world_does_not_count_as_a_parent():
    m = read('<geom name="w" type="plane" size="1 1 1"/>' + ball("a", ball("b")))
    assert names(m) == touching("wa", "wb")


def test_bodies_welded_together_are_one():
    m = read(ball("a", ball("b", ball("c"), joint="")))  # b is part of a, so c is a's child
    assert names(m) == set()


def test_several_joints_are_one_body():
    m = read(ball("a", ball("b", joint="<joint/><joint axis='1 0 0'/><joint type='slide'/>")))
    assert names(m) == set()


def test_masks_exclusions_and_explicit_pairs():
    world = ball("a") + ball("b", contype=2, conaffinity=1) + ball("c", contype=2, conaffinity=4) + ball("d")
    assert names(read(world)) == touching("ab", "bd", "ad")
    after = (
        '<contact><exclude body1="a" body2="b"/><pair geom1="a" geom2="c" condim="6"/>'
        '<pair geom1="a" geom2="b"/></contact>'
    )
    m = read(world, after)
    assert names(m) == touching("ac", "ab", "bd", "ad")
    explicit = next(p for p in candidate_pairs(m) if {p.a.shape.name, p.b.shape.name} == {"a", "c"})
    assert explicit.condim == 6


def test_disabled_contacts_leave_no_pairs():
    text = (
        '<mujoco><option><flag contact="disable"/></option><worldbody>'
        + ball("a")
        + ball("b")
        + "</worldbody></mujoco>"
    )
    assert candidate_pairs(read_mjcf("pairs.xml", text=text)) == ()


def test_an_unknown_name_is_an_error_that_lists_the_valid_ones():
    m = read(ball("a") + ball("b"))
    with pytest.raises(UnknownNameError, match="'a', 'b'"):
        candidate_pairs(m.replace(contacts=(ContactExclude(("a", "nobody")),)))


def random_ball(rng, name):
    """Random attributes, with both formats of solref and priorities that are sometimes equal."""
    direct = rng.random() < 0.3
    return dict(
        condim=rng.choice([1, 3, 4, 6]),
        friction=" ".join(map(str, rng.uniform(0, 2, 3) * (rng.random() > 0.2))),
        priority=rng.integers(0, 2),
        solref=" ".join(map(str, -rng.uniform(10, 100, 2) if direct else rng.uniform(0.01, 1, 2))),
        solimp=" ".join(
            map(str, [*rng.uniform(0.1, 0.9, 2), 0.01, rng.uniform(0.2, 0.8), rng.uniform(1, 3)])
        ),
        solmix=rng.choice([0, 0.5, 1, 2]),
        margin=rng.uniform(0, 0.1),
        gap=rng.uniform(0, 0.1),
    )


@pytest.mark.parametrize("seed", range(15))
def test_mixed_contact_parameters_are_mujocos(seed):
    rng = np.random.default_rng(seed)
    world = "".join(ball(name, joint="<freejoint/>", **random_ball(rng, name)) for name in "abcd")
    xml = f"<mujoco><worldbody>{world}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_fwdPosition(model, data)  # all spheres are concentric
    pairs = candidate_pairs(read_mjcf("pairs.xml", text=xml))
    assert len(pairs) == len(data.contact) == 6
    for pair, contact in zip(pairs, data.contact, strict=True):
        assert (pair.a.index, pair.b.index) == tuple(contact.geom)
        assert pair.condim == contact.dim and pair.margin == pytest.approx(contact.includemargin)
        np.testing.assert_allclose(pair.friction, contact.friction, rtol=1e-14)
        np.testing.assert_allclose(pair.solref, contact.solref, rtol=1e-14)
        np.testing.assert_allclose(pair.solimp, contact.solimp, rtol=1e-14)
