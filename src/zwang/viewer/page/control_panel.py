"""The panel beside the scene on viser's page: playback controls, plots, display options, and a slider for
each joint.

viser treats labels as plain text. Callbacks are coroutines: they run in viser's event loop, which continues
to run when a script ends, unlike viser's thread pool. A callback only changes the requested state; the page's
thread draws it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.viewer.page.display_options import DisplayOptions
from zwang.viewer.page.server_guard import uplot, viser
from zwang.viewer.playback import Playback

SPEEDS = {f"{x:g}x": x for x in (0.05, 0.1, 0.25, 0.5, 1, 2, 5)}
COLORS = ("#2f6db3", "#d0632a", "#3f8f5f", "#8a5fb0", "#b58a1d", "#c04a5e", "#4aa0aa", "#6b6f76")
ENERGY_COLORS = {"kinetic": "#d0632a", "potential": "#3f8f5f", "total": "#23262b"}
POINTS_PER_LINE, INITIAL_LINES, PLOT_HEIGHT = (
    600,
    4,
    150,
)  # points of a line; lines plotted initially; height of a plot in pixels
PLOT_MARGIN = 0.06  # margin above and below the lines, relative to their range
SLIDER_STEPS = 1000  # number of steps of a slider
NO_CHOICE = "(select)"
CONSTRAINTS_NOTE = "Sliders move each joint independently, so loops and other constraints are violated."


class PlaybackControl(Protocol):
    """The interface of the page that the panel controls."""

    show: DisplayOptions
    chosen: int
    speed: float
    playing: bool

    def play(self, on: bool) -> None: ...
    def seek(self, t: float) -> None: ...
    def set_configuration(self, world: int, q: np.ndarray | None) -> None: ...
    def changed(self) -> None: ...
    def reset_camera(self) -> None: ...


@dataclass
class Slider:
    """A slider of one coordinate, or of the rotation of a ball joint about one of its body-fixed axes.

    q: index of the coordinate, None for a ball joint; speed: index of the generalised velocity;
    angle: the rotation [rad] about the axis that the user has applied so far.
    """

    bar: Any
    q: int | None
    speed: int
    angle: float = 0.0


class ControlPanel:
    """The panel of a page; `follow` updates it to the page's current state."""

    def __init__(
        self,
        server: viser.ViserServer,
        scene_data: dict[str, Any],
        playback: Playback,
        player: PlaybackControl,
    ):
        self.gui, self.scene_data, self.playback, self.player = server.gui, scene_data, playback, player
        self.sliders: list[Slider] = []
        self._boxes: dict[str, Any] = {}
        self._parts = [part for joint in scene_data["models"][0]["joints"] for part in joint["parts"]]
        self.plots: list[TimePlot] = []
        if scene_data["run"] is not None:
            self._add_time_controls()
            self._add_plots()
        self._add_display_options()
        self._add_joint_sliders()

    def follow(self, t: float, playing: bool) -> None:
        """Update the time, the plots, the display options and the sliders to the time t [s]."""
        for name, box in self._boxes.items():
            box.value = getattr(self.player.show, name)
        if self.scene_data["run"] is not None:
            self._bar.value = float(np.clip(t, self.playback.start, self.playback.end))
            self._play.label = "Pause" if playing else "Play"
            for plot in self.plots:
                plot.set_time(t)
        q = self.playback.configuration(self.player.chosen, t)
        by_hand = self.player.chosen in self.playback.manual_configurations
        for slider in self.sliders:
            slider.angle = slider.angle if by_hand else 0.0
            value = slider.angle if slider.q is None else float(q[slider.q])
            slider.bar.value = float(np.clip(value, slider.bar.min, slider.bar.max))

    # ----------------------------------------------------------------------------------------------- the time

    def _add_time_controls(self) -> None:
        start, end = self.playback.start, self.playback.end
        with self.gui.add_folder("Time"):
            self._play = self.gui.add_button("Play")
            self._bar = self.gui.add_slider(
                "t [s]", start, max(end, start + 1e-9), max(end - start, 1e-9) / SLIDER_STEPS, start
            )
            speed = self.gui.add_dropdown("playback speed", tuple(SPEEDS), initial_value="1x")
            note = self.scene_data["run"]["note"]
            self.note = self.gui.add_markdown(note) if note else None
        self._on_click(self._play, lambda: self.player.play(not self.player.playing))
        self._on_user_change(self._bar, self.player.seek)
        self._on_user_change(speed, lambda value: setattr(self.player, "speed", SPEEDS[value]))

    def _add_plots(self) -> None:
        run, times = self.scene_data["run"], self.playback.times
        with self.gui.add_folder("Plots"):
            energies = {
                f"{name} [J]": (values, ENERGY_COLORS[name]) for name, values in run["energies"].items()
            }
            self.plots.append(TimePlot(self.gui, "energy", times, energies))
            unit = self._parts[0]["unit"] if self._parts else ""
            self.plotted = [k for k, part in enumerate(self._parts) if part["unit"] == unit][:INITIAL_LINES]
            self.plots.append(TimePlot(self.gui, "coordinates", times, self._lines()))
            names = [f"{k + 1}: {part['name']}" for k, part in enumerate(self._parts)]
            choice = self.gui.add_dropdown("add or remove", (NO_CHOICE, *names), initial_value=NO_CHOICE)
        self._on_user_change(choice, lambda name: self._toggle_line(choice, names, name))
        self._show_world()

    def _lines(self) -> dict[str, tuple[np.ndarray, str]]:
        """The plotted coordinates by label: values (worlds, times) and a colour."""
        q = self.scene_data["run"]["q"]
        return {
            f"{self._parts[k]['name']} [{self._parts[k]['unit']}]": (
                q[:, :, self._parts[k]["q"]],
                COLORS[k % len(COLORS)],
            )
            for k in self.plotted
        }

    def _toggle_line(self, choice: Any, names: list[str], name: str) -> None:
        if name == NO_CHOICE:
            return
        k = names.index(name)
        self.plotted = (
            [i for i in self.plotted if i != k] if k in self.plotted else sorted([*self.plotted, k])
        )
        self.plots[1].set_lines(self._lines())
        choice.value = NO_CHOICE

    def _show_world(self) -> None:
        for plot in self.plots:
            plot.world = self.player.chosen
            plot.draw()

    # ------------------------------------------------------------------------------------------ what is shown

    def _add_display_options(self) -> None:
        run, traces, worlds = (
            self.scene_data["run"],
            bool(self.scene_data["traces"]),
            len(self.scene_data["worlds"]),
        )
        shapes = [shape for model in self.scene_data["models"] for shape in model["shapes"]]
        kinds = run["forces"]["kinds"] if run and run["forces"] else []
        boxes = {
            "names": ("names", "names of bodies and frames", True),
            "frames": ("frames", "axes of bodies and frames: x red, y green, z blue", True),
            "mass": ("centres of mass", "centres of mass of the bodies, and the total one in gold", True),
            "contacts": ("contact forces", "contact points and contact forces", "contact" in kinds),
            "constraints": (
                "constraint forces",
                "forces of constraints between points",
                "constraint" in kinds,
            ),
            "paths": ("paths", "paths of the traced frames", traces and run is not None),
            "ellipsoids": (
                "velocity ellipsoids",
                "velocities of the traced frames at |v| = 1; 0.2 m is drawn for 1 m/s",
                traces,
            ),
            "contact_shapes": (
                "collision shapes",
                "shapes that are used for contact only",
                any(s["hidden"] for s in shapes),
            ),
            "overlay": (
                "overlay worlds",
                "all worlds at the same position, the selected one opaque",
                worlds > 1,
            ),
            "follow": ("follow", "the camera follows the centre of mass", run is not None),
        }
        with self.gui.add_folder("Show"):
            if worlds > 1:
                names = tuple(world["name"] for world in self.scene_data["worlds"])
                chosen = self.gui.add_dropdown("world", names)
                self._on_user_change(chosen, lambda name: self._select_world(names.index(name)))
            for name, (label, hint, there) in boxes.items():
                if there:
                    self._boxes[name] = self.gui.add_checkbox(
                        label, getattr(self.player.show, name), hint=hint
                    )
                    self._on_user_change(
                        self._boxes[name], lambda value, name=name: self._set_option(name, value)
                    )
            if kinds:
                arrow_scale = self.gui.add_slider("arrow scale", 0.1, 5.0, 0.1, 1.0)
                self._on_user_change(arrow_scale, lambda value: self._set_option("arrow_scale", value))
            self._on_click(self.gui.add_button("Reset view"), self.player.reset_camera)

    def _set_option(self, name: str, value: Any) -> None:
        setattr(self.player.show, name, value)
        self.player.changed()

    def _select_world(self, world: int) -> None:
        self.player.chosen = world
        self._show_world()
        self.player.changed()

    # --------------------------------------------------------------------------------------------- the joints

    def _add_joint_sliders(self) -> None:
        model, m = self.scene_data["models"][0], self.playback.mechanisms[0]
        if not model["joints"]:
            return
        with self.gui.add_folder("Joints", expand_by_default=self.scene_data["run"] is None):
            for joint, index in zip(model["joints"], m.joints, strict=True):
                for part in joint["parts"]:
                    self._add_slider(
                        joint, part if part["limited"] else self._range_with_recording(part), part["q"], 0
                    )
                for axis in range(3) if joint["ball"] is not None else ():
                    part = {
                        "name": f"{joint['name']} rotation {'xyz'[axis]}",
                        "unit": "rad",
                        "low": -np.pi,
                        "high": np.pi,
                    }
                    self._add_slider(joint, part, None, index.v.stop - 3 + axis)
            if model["constraints"]:
                self.gui.add_markdown(CONSTRAINTS_NOTE)
            reset = self.gui.add_button(
                "Default configuration" if self.scene_data["run"] is None else "Back to the recording"
            )
        self._on_click(reset, lambda: self.player.set_configuration(self.player.chosen, None))

    def _add_slider(self, joint: dict[str, Any], part: dict[str, Any], q: int | None, speed: int) -> None:
        low, high = float(part["low"]), float(part["high"])
        value = float(self.playback.configuration(0, self.playback.start)[q]) if q is not None else 0.0
        bar = self.gui.add_slider(
            f"{part['name']} [{part['unit']}]",
            low,
            high,
            max(high - low, 1e-9) / SLIDER_STEPS,
            float(np.clip(value, low, high)),
            hint=f"{joint['kind']} joint of {joint['body']}, {low:.4g} to {high:.4g} {part['unit']}",
        )
        slider = Slider(bar, q, speed)
        self.sliders.append(slider)
        self._on_user_change(bar, lambda value: self._joint_moved(slider, float(value)))

    def _range_with_recording(self, part: dict[str, Any]) -> dict[str, Any]:
        """The range of a coordinate without limits, extended to the recorded values."""
        if self.scene_data["run"] is None:
            return part
        q = self.scene_data["run"]["q"][:, :, part["q"]]
        with np.errstate(all="ignore"):
            return {
                **part,
                "low": min(part["low"], float(np.nanmin(q))),
                "high": max(part["high"], float(np.nanmax(q))),
            }

    def _joint_moved(self, slider: Slider, x: float) -> None:
        """Move a joint from its present configuration to the slider's value x."""
        m: Mechanism = self.playback.mechanisms[self.player.chosen]
        q = np.array(
            self.playback.configuration(
                self.player.chosen, self._bar.value if self.scene_data["run"] else 0.0
            )
        )
        if slider.q is not None:
            q[slider.q] = x
        else:
            v = np.zeros(m.nv)
            v[slider.speed] = x - slider.angle
            slider.angle = x
            q = np.asarray(integrate_configuration(m.tree, q, v), dtype=float)
        self.player.set_configuration(self.player.chosen, q)

    def _on_user_change(self, element: Any, callback: Callable[[Any], None]) -> None:
        """Call back with the value when a user changes an element, but not when the page itself does."""

        async def updated(event: Any) -> None:
            if event.client_id is not None:
                callback(element.value)

        element.on_update(updated)

    def _on_click(self, button: Any, callback: Callable[[], None]) -> None:
        async def clicked(_: Any) -> None:
            callback()

        button.on_click(clicked)


class TimePlot:
    """A plot of lines over time for one world, with a vertical line at the present time."""

    def __init__(
        self, gui: viser.GuiApi, title: str, times: np.ndarray, lines: dict[str, tuple[np.ndarray, str]]
    ):
        self.world, self._t = 0, float(times[0])
        self._chosen = np.unique(np.linspace(0, len(times) - 1, POINTS_PER_LINE).round().astype(int))
        self._times, self._lines = times[self._chosen], lines
        scales = self._scales()
        self.chart = gui.add_uplot(
            self._data(),
            self._series(),
            title=title,
            height=PLOT_HEIGHT,
            scales=scales,
            legend={"show": True},
            axes=({"size": 30}, {"size": 50}),  # type: ignore[arg-type]
        )

    def set_lines(self, lines: dict[str, tuple[np.ndarray, str]]) -> None:
        """Replace the lines."""
        self._lines = lines
        self.chart.scales = self._scales()
        self.chart.series, self.chart.data = self._series(), self._data()

    def set_time(self, t: float) -> None:
        """Move the vertical line to the time t [s]."""
        if t != self._t:
            self._t = t
            self.draw()

    def draw(self) -> None:
        """Redraw the lines of the selected world."""
        self.chart.data = self._data()

    def _series(self) -> tuple[uplot.Series, ...]:
        lines = [
            {"label": name, "stroke": color, "width": 1.5, "points": {"show": False}}
            for name, (_, color) in self._lines.items()
        ]
        now = {"label": "now", "stroke": "#c04a5e", "width": 1.2, "points": {"show": False}}
        return ({"label": "t [s]"}, *lines, now)  # type: ignore[return-value]

    def _data(self) -> tuple[np.ndarray, ...]:
        """The data of all series: the times, the lines, and the vertical line at the present time.

        uPlot has one common abscissa, so the present time is inserted three times, and the last series rises
        from the lower bound to the upper one and back there.
        """
        k = int(np.searchsorted(self._times, self._t))
        lines = [np.insert(x, k, [np.interp(self._t, self._times, x)] * 3) for x in self._values()]
        low, high = self._span
        present = np.insert(np.full(len(self._times), low), k, [low, high, low])
        return np.insert(self._times, k, [self._t] * 3), *lines, present

    def _values(self) -> list[np.ndarray]:
        """The values of the selected world; a world that stopped early keeps its last valid value."""
        found = []
        for line, _ in self._lines.values():
            x = line[self.world, self._chosen]
            good = np.maximum.accumulate(np.where(np.isfinite(x), np.arange(len(x)), 0))
            found.append(np.nan_to_num(x[good]))
        return found

    def _scales(self) -> dict[str, Any]:
        """The range of the lines over all worlds, which does not change during playback."""
        values = np.concatenate([np.ravel(line) for line, _ in self._lines.values()] or [np.zeros(1)])
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        margin = max(PLOT_MARGIN * (high - low), 1e-6 * abs(high), 1e-9)
        self._span = (low - margin, high + margin)
        return {"x": {"time": False}, "y": {"range": self._span}}
