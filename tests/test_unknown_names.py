"""Messages for unknown names: the question "Did you mean ...?", and the similar names before the others."""

from __future__ import annotations

import string

import pytest

from zwang.errors import UnknownNameError, did_you_mean, nearest_names

NAMES = ("shoulder", "elbow", "wrist_1", "wrist_2", "wrist_3", "Hand")


@pytest.mark.parametrize("known", NAMES)
@pytest.mark.parametrize("letter", ["", "x"])
def test_one_wrong_letter_is_found(known, letter):
    """Whichever letter is left out or replaced, the name is among those asked about."""
    for k in range(len(known)):
        assert known in nearest_names(known[:k] + letter + known[k + 1 :], NAMES)


@pytest.mark.parametrize("known", NAMES)
def test_two_letters_exchanged_and_other_case_are_found(known):
    exchanged = known[0] + known[2] + known[1] + known[3:]
    assert known in nearest_names(exchanged, NAMES)
    assert nearest_names(known.swapcase(), NAMES)[0] == known


def test_the_question_names_one_two_or_three():
    assert did_you_mean("elbo", NAMES) == "Did you mean 'elbow'?"
    assert did_you_mean("wrist_1", ["wrist_2", "wrist_1"]) == "Did you mean 'wrist_1' or 'wrist_2'?"
    assert did_you_mean("wrist", NAMES) == "Did you mean 'wrist_3', 'wrist_2' or 'wrist_1'?"
    assert did_you_mean("qqqq", NAMES) == "" and did_you_mean("elbow", []) == ""


def test_similar_names_come_first_and_the_others_keep_their_order():
    text = str(UnknownNameError("joint", "wrst_2", NAMES))
    assert text.startswith("there is no joint 'wrst_2'. Did you mean 'wrist_2'")
    listed = text.split("are: ")[1].split(", ")
    assert listed[0] == "'wrist_2'" and set(listed) == {repr(name) for name in NAMES}
    rest = [name for name in NAMES if not name.startswith("wrist")]
    assert listed[-3:] == [repr(name) for name in rest]


def test_of_many_names_only_similar_ones_are_listed():
    many = [f"{a}{b}" for a in string.ascii_lowercase for b in string.digits]
    text = str(UnknownNameError("body", "torsoo", [*many, "torso"]))
    assert "Did you mean 'torso'?" in text
    assert text.endswith("The body names are: 'torso', and 260 others")
    far = str(UnknownNameError("body", "????", many))
    assert "'a0', 'a1'" in far and far.endswith("'b1', and 248 others")


def test_without_names_nothing_is_asked():
    assert (
        str(UnknownNameError("sensor", "imu", [])) == "there is no sensor 'imu'. The sensor names are: (none)"
    )
    assert "'3'" in str(UnknownNameError("joint", 3, ["3", "x"]))  # a wrong type is answered, too


def test_very_long_names_are_not_compared():
    """The comparison takes the square of the length; a hostile file may have names of a million letters."""
    long = "ab" * 10**6
    assert nearest_names(long, [long[:-1]]) == [] and nearest_names("ab", [long, "abc"]) == ["abc"]
