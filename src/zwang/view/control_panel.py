"""The panel beside the scene on viser's page: the time, plots, what is shown, and a slider for each joint.

Labels are text to viser. What users do calls back in viser's event loop, which goes on at a script's end where its pool of threads does not;
it only changes what is wanted, and the player draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from viser import uplot

from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.view.playback import Playback
from zwang.view.server_guard import viser
from zwang.view.viser_scene import DisplayOptions

SPEEDS = {f"{x:g}x": x for x in (0.05, 0.1, 0.25, 0.5, 1, 2, 5)}
COLORS = ("#2f6db3", "#d0632a", "#3f8f5f", "#8a5fb0", "#b58a1d", "#c04a5e", "#4aa0aa", "#6b6f76")
ENERGY_COLORS = {"kinetic": "#d0632a", "potential": "#3f8f5f", "sum": "#23262b"}
PLOTTED, MOST_LINES, PLOT_HEIGHT = 600, 4, 150  # points of a line; lines at first; pixels
ROOM = 0.06  # above and below lines, by their extent
STEPS = 1000  # of a slider
CHOOSE = "(choose)"
APART = "Sliders turn every joint by itself: loops and other constraints open."


class PlaybackControl(Protocol):
    """What the panel tells."""

    show: DisplayOptions
    chosen: int
    speed: float
    playing: bool

    def play(self, on: bool) -> None: ...
    def seek(self, t: float) -> None: ...
    def set_by_hand(self, world: int, q: np.ndarray | None) -> None: ...
    def changed(self) -> None: ...
    def reset_camera(self) -> None: ...


@dataclass
class Slider:
    """A slider of one coordinate, or of a turn of a ball about one of its own axes; turn: how far that is by hand."""

    bar: Any
    q: int | None
    speed: int
    turn: float = 0.0


class ControlPanel:
    """Made once; `follow` shows where the player is."""

    def __init__(self, server: viser.ViserServer, picture: dict[str, Any], motion: Playback, player: PlaybackControl):
        self.gui, self.picture, self.motion, self.player = server.gui, picture, motion, player
        self.sliders: list[Slider] = []
        self._boxes: dict[str, Any] = {}
        self._parts = [part for joint in picture["models"][0]["joints"] for part in joint["parts"]]
        self.plots: list[Plot] = []
        if picture["run"] is not None:
            self._time()
            self._plots()
        self._shown()
        self._joints()

    def follow(self, t: float, playing: bool) -> None:
        """Show the time, in the plots too, what is shown, and where the joints are."""
        for name, box in self._boxes.items():
            box.value = getattr(self.player.show, name)
        if self.picture["run"] is not None:
            self._bar.value = float(np.clip(t, self.motion.start, self.motion.end))
            self._play.label = "Pause" if playing else "Play"
            for plot in self.plots:
                plot.mark(t)
        q = self.motion.configuration(self.player.chosen, t)
        by_hand = self.player.chosen in self.motion.hands
        for slider in self.sliders:
            slider.turn = slider.turn if by_hand else 0.0
            value = slider.turn if slider.q is None else float(q[slider.q])
            slider.bar.value = float(np.clip(value, slider.bar.min, slider.bar.max))

    # ---------------------------------------------------------------------------------------------- the time

    def _time(self) -> None:
        start, end = self.motion.start, self.motion.end
        with self.gui.add_folder("Time"):
            self._play = self.gui.add_button("Play")
            self._bar = self.gui.add_slider(
                "t [s]", start, max(end, start + 1e-9), max(end - start, 1e-9) / STEPS, start
            )
            speed = self.gui.add_dropdown("speed", tuple(SPEEDS), initial_value="1x")
        self._at_click(self._play, lambda: self.player.play(not self.player.playing))
        self._by_user(self._bar, self.player.seek)
        self._by_user(speed, lambda value: setattr(self.player, "speed", SPEEDS[value]))

    def _plots(self) -> None:
        run, times = self.picture["run"], self.motion.times
        with self.gui.add_folder("Plots"):
            energies = {
                f"{name} [J]": (values, ENERGY_COLORS[name]) for name, values in run["energies"].items()
            }
            self.plots.append(Plot(self.gui, "energy", times, energies))
            unit = self._parts[0]["unit"] if self._parts else ""
            self.plotted = [k for k, part in enumerate(self._parts) if part["unit"] == unit][:MOST_LINES]
            self.plots.append(Plot(self.gui, "coordinates", times, self._lines()))
            names = [f"{k + 1}: {part['name']}" for k, part in enumerate(self._parts)]
            choice = self.gui.add_dropdown("plot or not", (CHOOSE, *names), initial_value=CHOOSE)
        self._by_user(choice, lambda name: self._plot_or_not(choice, names, name))
        self._show_world()

    def _lines(self) -> dict[str, tuple[np.ndarray, str]]:
        """The coordinates that are plotted: values (worlds, times), and a colour."""
        q = self.picture["run"]["q"]
        return {f"{self._parts[k]['name']} [{self._parts[k]['unit']}]": (q[:, :, self._parts[k]["q"]], COLORS[k % len(COLORS)])
                for k in self.plotted}  # fmt: skip

    def _plot_or_not(self, choice: Any, names: list[str], name: str) -> None:
        if name == CHOOSE:
            return
        k = names.index(name)
        self.plotted = (
            [i for i in self.plotted if i != k] if k in self.plotted else sorted([*self.plotted, k])
        )
        self.plots[1].change(self._lines())
        choice.value = CHOOSE

    def _show_world(self) -> None:
        for plot in self.plots:
            plot.world = self.player.chosen
            plot.draw()

    # ------------------------------------------------------------------------------------------- what is shown

    def _shown(self) -> None:
        run, traces, worlds = self.picture["run"], bool(self.picture["traces"]), len(self.picture["worlds"])
        shapes = [shape for model in self.picture["models"] for shape in model["shapes"]]
        kinds = run["forces"]["kinds"] if run and run["forces"] else []
        boxes = {
            "names": ("names", "names of bodies and frames", True),
            "frames": ("frames", "axes of bodies and frames: x red, y green, z blue", True),
            "mass": ("centres of mass", "of bodies, and the whole one in gold", True),
            "contacts": ("contacts", "points and forces of contacts", "contact" in kinds),
            "constraints": ("constraint forces", "of constraints between points", "constraint" in kinds),
            "paths": ("paths", "where the traced frames go", traces and run is not None),
            "ellipsoids": ("manipulability", "velocities of the traced frames at unit joint speeds, a fifth of their size", traces),
            "contact_shapes": ("contact shapes", "shapes for contact, where others are for the eye", any(s["hidden"] for s in shapes)),
            "over": ("overlay worlds", "all worlds in one place, the chosen one solid", worlds > 1),
            "follow": ("follow", "the camera goes with the centre of mass", run is not None),
        }  # fmt: skip
        with self.gui.add_folder("Show"):
            if worlds > 1:
                names = tuple(world["name"] for world in self.picture["worlds"])
                chosen = self.gui.add_dropdown("world", names)
                self._by_user(chosen, lambda name: self._choose(names.index(name)))
            for name, (label, hint, there) in boxes.items():
                if there:
                    self._boxes[name] = self.gui.add_checkbox(
                        label, getattr(self.player.show, name), hint=hint
                    )
                    self._by_user(self._boxes[name], lambda value, name=name: self._switch(name, value))
            if kinds:
                arrows = self.gui.add_slider("arrow length", 0.1, 5.0, 0.1, 1.0)
                self._by_user(arrows, lambda value: self._switch("arrows", value))
            self._at_click(self.gui.add_button("Reset view"), self.player.reset_camera)

    def _switch(self, name: str, value: Any) -> None:
        setattr(self.player.show, name, value)
        self.player.changed()

    def _choose(self, world: int) -> None:
        self.player.chosen = world
        self._show_world()
        self.player.changed()

    # ----------------------------------------------------------------------------------------------- the joints

    def _joints(self) -> None:
        model, m = self.picture["models"][0], self.motion.mechanisms[0]
        if not model["joints"]:
            return
        with self.gui.add_folder("Joints", expand_by_default=self.picture["run"] is None):
            for joint, index in zip(model["joints"], m.joints, strict=True):
                for part in joint["parts"]:
                    self._slider(joint, part if part["limited"] else self._widened(part), part["q"], 0)
                for axis in range(3) if joint["ball"] is not None else ():
                    part = {
                        "name": f"{joint['name']} turn {'xyz'[axis]}",
                        "unit": "rad",
                        "low": -np.pi,
                        "high": np.pi,
                    }
                    self._slider(joint, part, None, index.v.stop - 3 + axis)
            if model["restricted"]:
                self.gui.add_markdown(APART)
            home = self.gui.add_button("Home" if self.picture["run"] is None else "Back to the recording")
        self._at_click(home, lambda: self.player.set_by_hand(self.player.chosen, None))

    def _slider(self, joint: dict[str, Any], part: dict[str, Any], q: int | None, speed: int) -> None:
        low, high = float(part["low"]), float(part["high"])
        value = float(self.motion.configuration(0, self.motion.start)[q]) if q is not None else 0.0
        bar = self.gui.add_slider(
            f"{part['name']} [{part['unit']}]", low, high, max(high - low, 1e-9) / STEPS, float(np.clip(value, low, high)),
            hint=f"{joint['kind']} joint of {joint['body']}, {low:.4g} to {high:.4g} {part['unit']}",
        )  # fmt: skip
        slider = Slider(bar, q, speed)
        self.sliders.append(slider)
        self._by_user(bar, lambda value: self._turned(slider, float(value)))

    def _widened(self, part: dict[str, Any]) -> dict[str, Any]:
        """A range without limits holds at least what was recorded."""
        if self.picture["run"] is None:
            return part
        q = self.picture["run"]["q"][:, :, part["q"]]
        with np.errstate(all="ignore"):
            return {
                **part,
                "low": min(part["low"], float(np.nanmin(q))),
                "high": max(part["high"], float(np.nanmax(q))),
            }

    def _turned(self, slider: Slider, x: float) -> None:
        """A joint moved by hand, from where it is."""
        m: Mechanism = self.motion.mechanisms[self.player.chosen]
        q = np.array(
            self.motion.configuration(self.player.chosen, self._bar.value if self.picture["run"] else 0.0)
        )
        if slider.q is not None:
            q[slider.q] = x
        else:
            v = np.zeros(m.nv)
            v[slider.speed] = x - slider.turn
            slider.turn = x
            q = np.asarray(integrate_configuration(m.tree, q, v), dtype=float)
        self.player.set_by_hand(self.player.chosen, q)

    def _by_user(self, element: Any, tell: Callable[[Any], None]) -> None:
        """Calls back when a user changes an element, not when the player does."""

        async def told(event: Any) -> None:
            if event.client_id is not None:
                tell(element.value)

        element.on_update(told)

    def _at_click(self, button: Any, act: Callable[[], None]) -> None:
        async def clicked(_: Any) -> None:
            act()

        button.on_click(clicked)


class Plot:
    """Lines over time, of one world, with a line at the present."""

    def __init__(
        self, gui: viser.GuiApi, title: str, times: np.ndarray, lines: dict[str, tuple[np.ndarray, str]]
    ):
        self.world, self._t = 0, float(times[0])
        self._chosen = np.unique(np.linspace(0, len(times) - 1, PLOTTED).round().astype(int))
        self._times, self._lines = times[self._chosen], lines
        scales = self._scales()
        self.chart = gui.add_uplot(
            self._data(), self._series(), title=title, height=PLOT_HEIGHT, scales=scales, legend={"show": True},
            axes=({"size": 30}, {"size": 50}),  # type: ignore[arg-type]
        )  # fmt: skip

    def change(self, lines: dict[str, tuple[np.ndarray, str]]) -> None:
        """Other lines."""
        self._lines = lines
        self.chart.scales = self._scales()
        self.chart.series, self.chart.data = self._series(), self._data()

    def mark(self, t: float) -> None:
        """Put the line of the present."""
        if t != self._t:
            self._t = t
            self.draw()

    def draw(self) -> None:
        """The lines of the world, anew."""
        self.chart.data = self._data()

    def _series(self) -> tuple[uplot.Series, ...]:
        lines = [
            {"label": name, "stroke": color, "width": 1.5, "points": {"show": False}}
            for name, (_, color) in self._lines.items()
        ]
        now = {"label": "now", "stroke": "#c04a5e", "width": 1.2, "points": {"show": False}}
        return ({"label": "t [s]"}, *lines, now)  # type: ignore[return-value]

    def _data(self) -> tuple[np.ndarray, ...]:
        """The times with the present thrice, the lines, and one at the bottom that goes up and down at the present."""
        k = int(np.searchsorted(self._times, self._t))
        lines = [np.insert(x, k, [np.interp(self._t, self._times, x)] * 3) for x in self._values()]
        low, high = self._span
        present = np.insert(np.full(len(self._times), low), k, [low, high, low])
        return np.insert(self._times, k, [self._t] * 3), *lines, present

    def _values(self) -> list[np.ndarray]:
        """The lines of the world; after a stop as at the last good sample."""
        found = []
        for line, _ in self._lines.values():
            x = line[self.world, self._chosen]
            good = np.maximum.accumulate(np.where(np.isfinite(x), np.arange(len(x)), 0))
            found.append(np.nan_to_num(x[good]))
        return found

    def _scales(self) -> dict[str, Any]:
        """The range of the lines of all worlds, which stays while these play."""
        values = np.concatenate([np.ravel(line) for line, _ in self._lines.values()] or [np.zeros(1)])
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        room = max(ROOM * (high - low), 1e-6 * abs(high), 1e-9)
        self._span = (low - room, high + room)
        return {"x": {"time": False}, "y": {"range": self._span}}
