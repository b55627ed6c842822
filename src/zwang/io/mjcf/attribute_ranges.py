"""Numbers in an MJCF file that are out of their range, with the line: what cannot be is refused, what MuJoCo replaces is remarked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zwang.io.xml import Element

_FRICTION = ("friction", "o_friction")
_SOLREF = ("solref", "solreflimit", "solreffriction", "solrefspring", "o_solref")
_SOLIMP = ("solimp", "solimplimit", "solimpfriction", "solimpspring", "o_solimp")
_SURE = 0.9  # of the largest part of a unit quaternion: a small turn


def check_ranges(elements: Sequence[Element]) -> None:
    """Raises LoadError for friction, iterations, tolerances and ratios that cannot be."""
    for element in elements:
        for attribute in _FRICTION if element.name in ("geom", "pair", "option") else ():
            if any(x < 0 for x in _numbers(element, attribute)):
                raise _error(element, attribute, "friction is not negative")
        if element.name != "option":
            continue
        for attribute in ("iterations", "ls_iterations", "impratio"):
            if any(x <= 0 for x in _numbers(element, attribute)):
                raise _error(element, attribute, "it must be positive")
        for attribute in ("tolerance", "ls_tolerance"):
            if any(x < 0 for x in _numbers(element, attribute)):
                raise _error(element, attribute, "it must not be negative")


def implausible_attributes(elements: Sequence[Element]) -> Iterator[tuple[Element, str]]:
    """What is hardly meant: softness that MuJoCo replaces, mirrored meshes, quaternions in another order."""
    for element in elements:
        for attribute in _SOLREF:
            x = _numbers(element, attribute)
            if len(x) == 2 and any(x) and not (min(x) > 0 or max(x) <= 0):
                yield (
                    element,
                    f"{_said(element, attribute)}; both numbers are positive, or both negative: MuJoCo takes its default instead",
                )
        for attribute in _SOLIMP:
            x = _numbers(element, attribute)
            if not all(0 <= d <= 1 for d in x[:2]):
                yield (
                    element,
                    f"{_said(element, attribute)}; an impedance is between 0 and 1, beyond which it is cut",
                )
            elif (
                any(d < 0 for d in x[2:3])
                or not all(0 <= d <= 1 for d in x[3:4])
                or any(d < 1 for d in x[4:5])
            ):
                yield (
                    element,
                    f"{_said(element, attribute)}; (d0, d, width >= 0, midpoint from 0 to 1, power >= 1) are cut to that",
                )
        scale = _numbers(element, "scale")
        if element.name == "mesh" and len(scale) == 3 and scale[0] * scale[1] * scale[2] < 0:
            yield element, f"{_said(element, 'scale')}: the mesh is mirrored"
    yield from _quaternions(elements)


def _quaternions(elements: Sequence[Element]) -> Iterator[tuple[Element, str]]:
    """Where no quaternion of a file is a small turn if read as (w, x, y, z), and some are if read as (x, y, z, w)."""
    found = [(element, _numbers(element, "quat")) for element in elements]
    found = [(element, q) for element, q in found if len(q) == 4 and any(q)]
    if any(abs(q[0]) >= _SURE * max(map(abs, q)) for _, q in found):
        return
    for element, q in found:
        if abs(q[3]) > _SURE * sum(x * x for x in q) ** 0.5:
            yield (
                element,
                f"{_said(element, 'quat')}, a half turn about z; it looks like (x, y, z, w), and MJCF's order is (w, x, y, z)",
            )


def _numbers(element: Element, attribute: str) -> list[float]:
    """The numbers of an attribute; none where it is not there, or is none of numbers, which MuJoCo tells."""
    try:
        return [float(word) for word in element.attributes.get(attribute, "").split()]
    except ValueError:
        return []


def _said(element: Element, attribute: str) -> str:
    return f"{attribute} of {element.title} is {element.attributes[attribute]!r}"


def _error(element: Element, attribute: str, rule: str) -> Exception:
    return element.error(f"{_said(element, attribute)}; {rule}")
