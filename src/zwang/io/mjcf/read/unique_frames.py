"""The frames of a mechanism: those of the sites, and those that tendons and sensors need in addition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from zwang.mechanism.bodies import Frame


class UniqueFrames:
    """Frames with unique names, which no body has either.

    sites: the first frames. bodies: the names of all bodies.
    """

    def __init__(self, sites: Iterable[Frame], bodies: Iterable[str]):
        self._by_name = {site.name: site for site in sites}
        self._bodies = set(bodies)

    def name_of(self, frame: Frame, *, any_axes: bool = False) -> str:
        """The name of a frame: its own, with a number if a body or a frame elsewhere has it already.

        any_axes: whether the directions of its axes have no meaning. The frame is added unless it is one of
        the frames.
        """
        name, count = frame.name, 1
        while name in self._bodies or not self._is_free(replace(frame, name=name), any_axes):
            count += 1
            name = f"{frame.name} {count}"
        self._by_name.setdefault(name, replace(frame, name=name))
        return name

    def _is_free(self, frame: Frame, any_axes: bool) -> bool:
        """Whether no other frame than this one has its name."""
        found = self._by_name.get(frame.name, frame)
        return frame == (replace(found, orientation=frame.orientation) if any_axes else found)

    def all(self) -> tuple[Frame, ...]:
        """The frames, in the order in which they were added."""
        return tuple(self._by_name.values())
