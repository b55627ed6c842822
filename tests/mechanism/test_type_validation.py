"""Arguments of functions are validated against their annotations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

import zwang as zw
from zwang.errors import ArgumentError
from zwang.mechanism.type_validation import validated_arguments


@validated_arguments()
def product(run: float, *wanted: str, compiled: bool = True, **more: float) -> tuple:
    return run, wanted, compiled, more


def test_arguments_collected_by_a_star_are_not_those_of_the_next_parameter():
    assert product(1.0, "constraints", "forces", compiled=False, x=2) == (
        1.0,
        ("constraints", "forces"),
        False,
        {"x": 2},
    )


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        (("a", "b"), {}, "run of product is 'a'; it must be a number"),
        ((1, "b"), {"compiled": "c"}, "compiled of product is 'c'; it must be True or False"),
        ((), {"run": "a"}, "run of product is 'a'"),
    ],
)
def test_an_argument_of_another_type_raises_with_its_name(arguments, named, message):
    with pytest.raises(ArgumentError, match=message):
        product(*arguments, **named)


@validated_arguments()
def names_of(
    first: Sequence[str], second: Iterable[str] | None = None, *, one_or_more: str | Sequence[str] = ()
) -> tuple:
    return first, second, one_or_more


def test_a_single_name_is_a_list_of_one_where_only_lists_are_meant():
    assert names_of("tip", "hand", one_or_more="tip") == (("tip",), ("hand",), "tip")
    assert names_of(second="tip", first=["a", "b"]) == (["a", "b"], ("tip",), ())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: zw.Sphere(0.1, colour="red"), r"Sphere has no argument 'colour'. Did you mean 'color'\?"),
        (lambda: zw.Body("link", masss=1), "Did you mean 'mass'.* It has: name, joint, parent"),
        (lambda: zw.Body(mass=1), "Body: missing a required argument: 'name'"),
    ],
)
def test_a_call_that_does_not_match_the_signature_names_the_arguments(build, message):
    with pytest.raises(TypeError, match=message):
        build()
