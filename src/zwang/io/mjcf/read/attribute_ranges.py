"""Ranges of MJCF attributes: invalid values are errors, values that MuJoCo replaces are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zwang.io.xml import Element

_FRICTION = ("friction", "o_friction")
_SOLREF = ("solref", "solreflimit", "solreffriction", "solrefspring", "o_solref")
_SOLIMP = ("solimp", "solimplimit", "solimpfriction", "solimpspring", "o_solimp")
_SMALL_ROTATION = 0.9  # least scalar part of a unit quaternion of a small rotation


def check_ranges(elements: Sequence[Element]) -> None:
    """Raises LoadError for invalid friction coefficients, iteration limits, tolerances and ratios."""
    for element in elements:
        for attribute in _FRICTION if element.name in ("geom", "pair", "option") else ():
            if any(x < 0 for x in _numbers(element, attribute)):
                raise _error(element, attribute, "friction must not be negative")
        if element.name != "option":
            continue
        for attribute in ("iterations", "ls_iterations", "impratio"):
            if any(x <= 0 for x in _numbers(element, attribute)):
                raise _error(element, attribute, "it must be positive")
        for attribute in ("tolerance", "ls_tolerance"):
            if any(x < 0 for x in _numbers(element, attribute)):
                raise _error(element, attribute, "it must not be negative")


def implausible_attributes(elements: Sequence[Element]) -> Iterator[tuple[Element, str]]:
    """(element, remark) on replaced solver parameters, mirrored meshes, and the order of quaternions."""
    for element in elements:
        for attribute in _SOLREF:
            x = _numbers(element, attribute)
            if len(x) == 2 and any(x) and not (min(x) > 0 or max(x) <= 0):
                yield (
                    element,
                    f"{_quoted(element, attribute)}; both numbers must be positive, or both negative; "
                    "MuJoCo uses its default instead",
                )
        for attribute in _SOLIMP:
            x = _numbers(element, attribute)
            if not all(0 <= d <= 1 for d in x[:2]):
                yield (
                    element,
                    f"{_quoted(element, attribute)}; an impedance must be between 0 and 1; it is clipped",
                )
            elif (
                any(d < 0 for d in x[2:3])
                or not all(0 <= d <= 1 for d in x[3:4])
                or any(d < 1 for d in x[4:5])
            ):
                yield (
                    element,
                    f"{_quoted(element, attribute)}; width >= 0, midpoint from 0 to 1 and power >= 1 are "
                    "required; they are clipped",
                )
        scale = _numbers(element, "scale")
        if element.name == "mesh" and len(scale) == 3 and scale[0] * scale[1] * scale[2] < 0:
            yield element, f"{_quoted(element, 'scale')}: the mesh is mirrored"
    yield from _quaternions(elements)


def _quaternions(elements: Sequence[Element]) -> Iterator[tuple[Element, str]]:
    """Remarks if no quaternion is a small rotation as (w, x, y, z), and some are as (x, y, z, w)."""
    found = [(element, _numbers(element, "quat")) for element in elements]
    found = [(element, q) for element, q in found if len(q) == 4 and any(q)]
    if any(abs(q[0]) >= _SMALL_ROTATION * max(map(abs, q)) for _, q in found):
        return
    for element, q in found:
        if abs(q[3]) > _SMALL_ROTATION * sum(x * x for x in q) ** 0.5:
            yield (
                element,
                f"{_quoted(element, 'quat')}, a half turn about z; it looks like (x, y, z, w), and the "
                "order of MJCF is (w, x, y, z)",
            )


def _numbers(element: Element, attribute: str) -> list[float]:
    """The numbers of an attribute; none if it is missing or not numeric, which MuJoCo reports."""
    if attribute not in element.attributes:
        return []
    try:
        return [float(word) for word in element.attributes[attribute].split()]
    except ValueError:
        return []


def _quoted(element: Element, attribute: str) -> str:
    return f"{attribute} of {element.title} is {element.attributes[attribute]!r}"


def _error(element: Element, attribute: str, rule: str) -> Exception:
    return element.error(f"{_quoted(element, attribute)}; {rule}")
