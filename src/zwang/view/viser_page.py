"""A mechanism or a motion on viser's page: what is wanted, and the thread that draws it."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from zwang.view.control_panel import ControlPanel
from zwang.view.playback import Playback, solid_centres
from zwang.view.scene import SceneContent, picture_of
from zwang.view.server_guard import guarded_server, quietly, viser
from zwang.view.viser_scene import ANGLE, DisplayOptions, ViserScene

PER_SECOND, PANEL_PER_SECOND = 30, 8  # how often the scene and the panel are drawn, at most
NARROW = 600  # pixels: a phone
LONGEST_STEP = 0.2  # seconds of play at once, when drawing is slow


class ViserPage:
    """The page of what is shown, at `url`, until `close()`."""

    def __init__(self, what: SceneContent):
        picture = picture_of(what)
        self.motion = Playback(what.mechanisms, picture["run"])
        self.show, self.chosen, self.speed, self.playing, self.t = DisplayOptions(), 0, 1.0, False, self.motion.start
        self.seen = threading.Event()
        self._wanted, self._closed, self._lock = threading.Event(), threading.Event(), threading.RLock()
        self._over, self._centre, self._told = False, None, 0.0
        self.server, self.url = guarded_server(picture["title"])
        try:
            self._fill(picture)
        except BaseException:  # no page is left half made
            self._stop_serving()
            raise
        self._thread = threading.Thread(target=self._run, name="zwang view", daemon=True)
        self._thread.start()
        self.play(picture["run"] is not None)

    def _fill(self, picture: dict[str, Any]) -> None:
        """The scene and the panel."""
        self.stage = ViserScene(self.server, picture, self.motion)
        self.panel = ControlPanel(self.server, picture, self.motion, self)
        self._aim()
        self.server.gui.main_panel.dock_right()
        self.server.on_client_connect(self._welcome)
        self.draw()

    # ------------------------------------------------------------------------------------- what users want

    def play(self, on: bool) -> None:
        """Play the recording, from the beginning if it is at its end; or pause."""
        with self._lock:
            self.playing = on and self.motion.run is not None
            if self.playing:
                self.motion.hands.clear()
                self.t = self.motion.start if self.t >= self.motion.end else self.t
        self.changed()

    def seek(self, t: float) -> None:
        """Pause at a time [s]."""
        with self._lock:
            self.playing = False
            self.motion.hands.clear()
            self.t = float(np.clip(t, self.motion.start, self.motion.end))
        self.changed()

    def set_by_hand(self, world: int, q: np.ndarray | None) -> None:
        """Pause, and put a world at q, or with None back at its recording or home."""
        with self._lock:
            self.playing = False
            if q is None:
                self.motion.hands.pop(world, None)
            else:
                self.motion.hands[world] = q
        self.changed()

    def changed(self) -> None:
        """Something is to be drawn."""
        self._wanted.set()

    def reset_camera(self) -> None:
        """Look at all worlds again."""
        for client in self.server.get_clients().values():
            self._look(client)

    def is_seen(self, grace: float) -> bool:
        """Whether a browser has the page open, or comes back to it within so many seconds."""
        until = time.monotonic() + grace
        while not self.server.get_clients() and time.monotonic() < until:
            time.sleep(0.1)
        return bool(self.server.get_clients())

    # ------------------------------------------------------------------------------------------- drawing

    def draw(self) -> None:
        """The scene now, and the panel."""
        with self._lock, self.server.atomic():
            if self.show.over != self._over:
                self._over = self.show.over
                self.stage.arrange(self._over)
                self._aim()
                self.reset_camera()
            self.stage.draw(self.t, self.chosen, self.show)
            self._follow()
            if not self.playing or time.monotonic() - self._told > 1 / PANEL_PER_SECOND:
                self._told = time.monotonic()
                self.panel.follow(self.t, self.playing)

    def close(self) -> None:
        """Stop drawing and serving."""
        self._closed.set()
        self._wanted.set()
        self._thread.join()
        self._stop_serving()

    def _stop_serving(self) -> None:
        with quietly():
            self.server.stop()

    def _run(self) -> None:
        """Draw what is wanted until the page is closed."""
        before = time.monotonic()
        while not self._closed.is_set():
            asked = self._wanted.wait(1 / PER_SECOND if self.playing else None)
            self._wanted.clear()
            now = time.monotonic()
            goes_on = self.playing and bool(self.server.get_clients())  # nothing plays where nobody looks
            if goes_on:
                self._go_on(min(now - before, LONGEST_STEP) * self.speed)
            before = now
            if (asked or goes_on) and not self._closed.is_set():
                self.draw()
            self._closed.wait(max(now + 1 / PER_SECOND - time.monotonic(), 0.0))

    def _go_on(self, dt: float) -> None:
        with self._lock:
            self.t = self.t + dt if self.t + dt <= self.motion.end else self.motion.start

    async def _welcome(self, client: viser.ClientHandle) -> None:
        """A page has opened; one that is higher than wide looks from further away."""
        self.seen.set()
        self.changed()
        if client.camera.aspect < 1:
            self._look(client)

    def _look(self, client: viser.ClientHandle) -> None:
        with self._lock:
            position, target = self.stage.camera()
        away = (position - target) / min(1.0, max(client.camera.aspect, 0.2))
        if client.camera.image_width < NARROW:  # viser's panel is below there: the scene goes up
            target = target - np.array([0, 0, 0.45 * np.tan(ANGLE / 2) * np.linalg.norm(away)])
        client.camera.position, client.camera.look_at = target + away, target

    def _aim(self) -> None:
        """Where new pages look from."""
        position, target = self.stage.camera()
        self.server.initial_camera.position, self.server.initial_camera.look_at = (
            tuple(position),
            tuple(target),
        )
        self.server.initial_camera.fov = ANGLE

    def _follow(self) -> None:
        """Move cameras with the chosen world's centre of mass."""
        centre = None
        if self.show.follow:
            points, masses = solid_centres(
                self.stage.models[self.chosen], self.stage.poses(self.chosen, self.t)
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
