"""Rendering of environments: pictures as arrays of pixels, and a live page in the browser."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from zwang.api.batch.world_arguments import whole_number
from zwang.api.batch.worlds import Worlds
from zwang.errors import ArgumentError, SimulationError
from zwang.lazy_imports import import_module
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr

SIZE = 480  # width and height of a picture [pixels], as in Gymnasium
ENV_MODES, VECTOR_MODES = ("human", "rgb_array"), ("rgb_array",)


class Rendering:
    """The pictures of the worlds of an environment, in its render mode; None for no pictures.

    modes: the render modes that the environment has. dt: the duration of its step [s]. size: width and height
    of a picture in pixels. The libraries for drawing are loaded with the first picture.
    Raises ArgumentError for a render mode that is none of `modes`, and for a size without pixels.
    """

    def __init__(
        self, mode: str | None, modes: tuple[str, ...], worlds: Worlds, dt: float, size: tuple[int, int]
    ):
        if mode is not None and not (isinstance(mode, str) and mode in modes):
            live = (
                '; for a live page use zwang.gym.Env with render_mode="human"'
                if isinstance(mode, str) and mode == "human"
                else ""
            )
            raise ArgumentError(
                f"render_mode is {short_repr(mode)}; it must be None or one of {list(modes)}{live}"
            )
        width, height = (
            whole_number(pixels, name, "a whole number of pixels")
            for name, pixels in zip(("width", "height"), size, strict=True)
        )
        self.mode, self.size, self._worlds, self._dt = mode, (width, height), worlds, dt
        self.metadata: dict[str, Any] = {"render_modes": list(modes), "render_fps": max(1, round(1 / dt))}
        self._renderers: dict[int, tuple[Any, Any]] = {}
        self._view: Any = None
        self._shown_at = 0.0

    def picture(self, world: int) -> np.ndarray:
        """The picture (height, width, 3) of a world: red, green, blue, from 0 to 255.

        Raises SimulationError if the environment was made without render_mode="rgb_array".
        """
        if self.mode != "rgb_array":
            raise SimulationError(
                f"there are no pictures with render_mode={self.mode!r}; make the environment with "
                'render_mode="rgb_array"'
            )
        values = tuple(x[world] for x in self._worlds.params.values())
        known, renderer = self._renderers.get(world, (None, None))
        if renderer is None or known != values:
            drawing = import_module("zwang.viewer.frame_renderer")
            renderer = drawing.FrameRenderer(self._mechanism(world), self.size)
            self._renderers[world] = values, renderer
        return renderer.draw(self._worlds.q[world])

    def show(self, world: int) -> None:
        """Show a world on the live page, at most one step of the environment later than the last one.

        The page shows the parameters of the first episode. Raises MissingExtraError without the extra `view`.
        """
        if self._view is None:
            self._view = import_module("zwang.viewer.page.live").view(self._mechanism(world))
        self._view.show(self._worlds.q[world])
        time.sleep(max(0.0, self._shown_at + self._dt - time.monotonic()))
        self._shown_at = time.monotonic()

    def close(self) -> None:
        """Close the live page."""
        self._renderers.clear()
        if self._view is not None:
            self._view.close()
            self._view = None

    def _mechanism(self, world: int) -> Mechanism:
        """The mechanism with the parameters of a world."""
        values = {name: float(x[world]) for name, x in self._worlds.params.items()}
        return self._worlds.mechanism.subs(values) if values else self._worlds.mechanism
