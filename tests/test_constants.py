"""The benchmark of constants names those that exist, with the value in use between the others."""

import ast

import numpy as np
import pytest

from benchmarks.constant_scenes import mechanism_of, work_of
from benchmarks.constants import GIVEN, TUNINGS, changed_copy, constants, scaled, tolerances, value_of

ALL = (*TUNINGS, *tolerances())


@pytest.mark.parametrize("tuning", ALL, ids=lambda tuning: f"{tuning.module}.{tuning.name}")
def test_the_value_in_use_is_between_the_others(tuning):
    low, high = sorted(np.min(eval(value, {}, {})) for value in tuning.others)
    assert low <= np.min(eval(value_of(tuning), {}, {})) <= high
    assert value_of(tuning) not in tuning.others


def test_every_numerical_constant_is_measured_or_given():
    names = {f"{module}.{name}" for module, name, _ in constants()}
    measured = {f"{tuning.module}.{tuning.name}" for tuning in ALL}
    assert not names - measured - GIVEN.keys()
    assert not GIVEN.keys() - names
    assert len(measured) > 130


def test_other_values_keep_the_form_of_a_constant():
    assert scaled("1e-10, 2e-6", 10) == "1e-09, 2e-05"
    assert scaled("1 + 1e-9", 0.1) == "1 + 1e-10"
    assert scaled("1.001", 0.1) == "1.0001"
    assert scaled("(2.0, 25.0)", 10) == "(20, 250)"
    assert scaled("100_000", 10) == "200000"
    assert ast.literal_eval(scaled("3", 0.1)) == 2


@pytest.mark.parametrize(
    "scene", sorted({scene.partition(" ")[0] for tuning in tolerances() for scene in tuning.scenes})
)
def test_a_scene_is_a_mechanism(scene):
    assert mechanism_of(scene).nv


@pytest.mark.parametrize("scene", ["four_bar assembled", "four_bar reduced", "nonideal single"])
def test_a_scene_gives_numbers(scene):
    work = work_of(scene, 1)
    work.run()
    assert np.isfinite(np.asarray(work.numbers(), float)).all()


def test_the_copy_differs_in_one_line(tmp_path):
    tuning = TUNINGS[0]
    copy = changed_copy(tmp_path, tuning, "17") / "zwang" / "collision" / "sweep.py"
    assert "\nFEWEST_PAIRS = 17  #" in copy.read_text()
