"""The live page: a mechanism or a recording on a viser server, the requested state, and the thread that draws
it.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from zwang.viewer.page.control_panel import ControlPanel
from zwang.viewer.page.display_options import DisplayOptions
from zwang.viewer.page.server_guard import guarded_server, quietly, viser
from zwang.viewer.page.viser_scene import FIELD_OF_VIEW, ViserScene
from zwang.viewer.playback import Playback, rigid_body_centres
from zwang.viewer.scene import SceneContent, scene_data_of

FRAMES_PER_SECOND, PANEL_UPDATES_PER_SECOND = 30, 8  # largest update rates of the scene and the panel [Hz]
NARROW_WINDOW = 600  # width in pixels below which viser puts the panel under the scene, as on a phone
MAXIMUM_TIME_STEP = 0.2  # largest time between two frames [s], when drawing is slow


class ViserPage:
    """The page at `url`, served and drawn until `close()` is called."""

    def __init__(self, what: SceneContent):
        scene_data = scene_data_of(what)
        self.playback = Playback(what.mechanisms, scene_data["run"])
        self.show, self.chosen, self.speed, self.playing, self.t = (
            DisplayOptions(),
            0,
            1.0,
            False,
            self.playback.start,
        )
        self.opened = threading.Event()
        self._redraw, self._closed, self._lock = threading.Event(), threading.Event(), threading.RLock()
        self._overlay, self._centre, self._panel_time = False, None, 0.0
        self.server, self.url = guarded_server(scene_data["title"])
        try:
            self._build(scene_data)
        except BaseException:  # stop the server if the page cannot be built
            self._stop_serving()
            raise
        self._thread = threading.Thread(target=self._run, name="zwang view", daemon=True)
        self._thread.start()
        self.play(scene_data["run"] is not None)

    def _build(self, scene_data: dict[str, Any]) -> None:
        """Create the scene and the panel."""
        self.scene = ViserScene(self.server, scene_data, self.playback)
        self.panel = ControlPanel(self.server, scene_data, self.playback, self)
        self._set_initial_camera()
        self.server.gui.main_panel.dock_right()
        self.server.on_client_connect(self._on_connect)
        self.draw()

    # ----------------------------------------------------------------------------------------------- requests

    def play(self, on: bool) -> None:
        """Play the recording, from its beginning if it has reached its end, or pause."""
        with self._lock:
            self.playing = on and self.playback.run is not None
            if self.playing:
                self.playback.manual_configurations.clear()
                self.t = self.playback.start if self.t >= self.playback.end else self.t
        self.changed()

    def seek(self, t: float) -> None:
        """Pause at the time t [s]."""
        with self._lock:
            self.playing = False
            self.playback.manual_configurations.clear()
            self.t = float(np.clip(t, self.playback.start, self.playback.end))
        self.changed()

    def set_configuration(self, world: int, q: np.ndarray | None) -> None:
        """Pause, and set the configuration q (nq,) of a world; None restores the recorded or
        the default one.
        """
        with self._lock:
            self.playing = False
            if q is None:
                self.playback.manual_configurations.pop(world, None)
            else:
                self.playback.manual_configurations[world] = q
        self.changed()

    def changed(self) -> None:
        """Request that the page be redrawn."""
        self._redraw.set()

    def reset_camera(self) -> None:
        """Reset the cameras such that they show all worlds."""
        for client in self.server.get_clients().values():
            self._reset_client_camera(client)

    def is_open(self, grace: float) -> bool:
        """Whether a browser has the page open, or opens it within `grace` seconds."""
        until = time.monotonic() + grace
        while not self.server.get_clients() and time.monotonic() < until:
            time.sleep(0.1)
        return bool(self.server.get_clients())

    # ------------------------------------------------------------------------------------------------ drawing

    def draw(self) -> None:
        """Draw the scene at the present time, and update the panel."""
        with self._lock, self.server.atomic():
            if self.show.overlay != self._overlay:
                self._overlay = self.show.overlay
                self.scene.arrange(self._overlay)
                self._set_initial_camera()
                self.reset_camera()
            self.scene.draw(self.t, self.chosen, self.show)
            self._follow()
            if not self.playing or time.monotonic() - self._panel_time > 1 / PANEL_UPDATES_PER_SECOND:
                self._panel_time = time.monotonic()
                self.panel.follow(self.t, self.playing)

    def close(self) -> None:
        """Stop drawing and serving."""
        self._closed.set()
        self._redraw.set()
        self._thread.join()
        self._stop_serving()

    def _stop_serving(self) -> None:
        with quietly():
            self.server.stop()

    def _run(self) -> None:
        """Draw the page whenever it changes, until it is closed."""
        before = time.monotonic()
        while not self._closed.is_set():
            requested = self._redraw.wait(1 / FRAMES_PER_SECOND if self.playing else None)
            self._redraw.clear()
            now = time.monotonic()
            advancing = self.playing and bool(
                self.server.get_clients()
            )  # time advances only while a browser is open
            if advancing:
                self._advance(min(now - before, MAXIMUM_TIME_STEP) * self.speed)
            before = now
            if (requested or advancing) and not self._closed.is_set():
                self.draw()
            self._closed.wait(max(now + 1 / FRAMES_PER_SECOND - time.monotonic(), 0.0))

    def _advance(self, dt: float) -> None:
        with self._lock:
            self.t = self.t + dt if self.t + dt <= self.playback.end else self.playback.start

    async def _on_connect(self, client: viser.ClientHandle) -> None:
        """Called when a browser has opened the page; in a portrait window the camera moves further away."""
        self.opened.set()
        self.changed()
        if client.camera.aspect < 1:
            self._reset_client_camera(client)

    def _reset_client_camera(self, client: viser.ClientHandle) -> None:
        with self._lock:
            position, target = self.scene.camera()
        away = (position - target) / min(1.0, max(client.camera.aspect, 0.2))
        if client.camera.image_width < NARROW_WINDOW:  # viser's panel is below the scene: shift the scene up
            target = target - np.array([0, 0, 0.45 * np.tan(FIELD_OF_VIEW / 2) * np.linalg.norm(away)])
        client.camera.position, client.camera.look_at = target + away, target

    def _set_initial_camera(self) -> None:
        """Set the camera of browsers that will open the page."""
        position, target = self.scene.camera()
        self.server.initial_camera.position, self.server.initial_camera.look_at = (
            tuple(position),
            tuple(target),
        )
        self.server.initial_camera.fov = FIELD_OF_VIEW

    def _follow(self) -> None:
        """Move the cameras with the centre of mass of the selected world."""
        centre = None
        if self.show.follow:
            points, masses = rigid_body_centres(
                self.scene.models[self.chosen], self.scene.poses(self.chosen, self.t)
            )
            centre = masses @ points / masses.sum() if masses.sum() > 0 else None
        if centre is not None and self._centre is not None:
            for client in self.server.get_clients().values():
                moved = centre - self._centre
                client.camera.position, client.camera.look_at = (
                    client.camera.position + moved,
                    client.camera.look_at + moved,
                )
        self._centre = centre
