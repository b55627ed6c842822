// The page: playback controls, display options, sliders, charts, and the drawing loop.

const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5],
  MOST_LINES = 4;
const $ = (id) => document.getElementById(id);

function element(tag, text = "", className = "") {
  const e = document.createElement(tag);
  e.textContent = text;
  e.className = className;
  return e;
}

class Page {
  constructor(data, buffer) {
    this.data = data;
    this.renderer = new Renderer($("picture"));
    this.scene = new Scene(data, buffer, this.renderer);
    this.playback = this.scene.playback;
    this.camera = new OrbitCamera($("picture"), () => {
      this.stale = true;
    });
    Object.assign(this, {
      t: this.playback ? this.playback.start : 0,
      playing: false,
      speed: 1,
      chosen: 0,
      stale: true,
      aspect: 1,
    });
    this.shown = {
      names: false,
      frames: false,
      mass: false,
      shapes: false,
      follow: false,
      ellipsoids: false,
      paths: true,
      contact: true,
      constraint: true,
    };
    this.paths = this.scene.paths(data.traces);
    $("title").textContent = data.title;
    this.options();
    this.worlds();
    this.rows = [];
    this.sliders();
    if (this.playback) this.player();
    this.simulation = data.simulation ? new Simulation(this, data.simulation, buffer) : null;
    $("fold").onclick = () => {
      document.body.classList.toggle("folded");
      this.stale = true;
    };
    document.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => {
      this.stale = true;
    }).observe($("scene"));
    this.resize();
    this.look();
    this.begin();
  }

  begin() {
    // the address fragment #t=1.5 pauses the playback at that time
    const at = new URLSearchParams(location.hash.slice(1)).get("t");
    if (this.playback && at !== null && Number.isFinite(+at)) this.seek(+at);
    else if (this.playback) this.play(true);
    requestAnimationFrame((now) => this.frame(now));
  }

  look() {
    // move the camera such that it shows all worlds over the whole motion
    const worlds = this.data.worlds.map((_, k) => k);
    const whole = this.scene.range(worlds, worlds.length > 4 ? 4 : 24);
    const most =
      2.5 * this.scene.extent + (this.scene.overlay ? 0 : this.scene.spacing * Math.sqrt(worlds.length));
    // a body that flies away does not determine the camera
    const tooFar = Math.hypot(...minus(whole.high, whole.low)) > 3 * most;
    this.whole = tooFar ? this.scene.range(worlds, 1) : whole;
    this.camera.fit(this.whole, this.aspect);
    this.stale = true;
  }

  motionChanged() {
    // draw another motion
    this.scene.manual.fill(null);
    this.paths.forEach((path) => this.renderer.release(path.geometry));
    this.paths = this.scene.paths(this.data.traces);
    this.charts();
  }

  // ------------------------------------------------------------------------------------------ controls

  options() {
    const toggle = (label, title, act, when = true, pressed = false) => {
      if (!when) return;
      const b = element("button", label);
      b.title = title;
      b.setAttribute("aria-pressed", String(pressed));
      b.onclick = () => {
        const on = b.getAttribute("aria-pressed") !== "true";
        b.setAttribute("aria-pressed", String(on));
        act(on);
        this.stale = true;
      };
      $("options").append(b);
    };
    const set = (name) => (on) => {
      this.shown[name] = on;
    };
    const shapes = this.data.models.flatMap((m) => m.shapes);
    toggle("names", "names of bodies and frames (n)", set("names"));
    toggle("frames", "axes of bodies and frames: x red, y green, z blue (f)", set("frames"));
    toggle("centres of mass", "centres of mass of the bodies, and the total one in gold (m)", set("mass"));
    toggle(
      "contact forces",
      "contact points and forces; the total weight would be an arrow of a third of the mechanism's size",
      set("contact"),
      this.scene.hasForces("contact"),
      true,
    );
    toggle(
      "constraint forces",
      "forces of constraints between points",
      set("constraint"),
      this.scene.hasForces("constraint"),
      true,
    );
    toggle(
      "paths",
      "paths of the traced frames",
      set("paths"),
      this.data.traces.length > 0 && Boolean(this.playback),
      true,
    );
    toggle(
      "velocity ellipsoids",
      "velocities of the traced frames at |v| = 1; 0.2 m is drawn for 1 m/s",
      set("ellipsoids"),
      this.data.traces.length > 0,
    );
    toggle(
      "collision shapes",
      "shapes that are used for contact only (c)",
      set("shapes"),
      shapes.some((s) => s.hidden),
    );
    toggle("follow", "the camera follows the centre of mass", set("follow"), Boolean(this.playback));
    toggle(
      "overlay",
      "all worlds at the same position, the selected one opaque (o)",
      (on) => {
        this.scene.arrange(on);
        this.paths.forEach((path) => this.renderer.release(path.geometry));
        this.paths = this.scene.paths(this.data.traces);
        this.look();
      },
      this.data.worlds.length > 1,
    );
    const reset = element("button", "reset view");
    reset.title = "show the whole scene (r)";
    reset.onclick = () => this.look();
    $("options").append(reset);
  }

  key(event) {
    if (event.target.tagName === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
    const press = (word) => [...$("options").children].find((b) => b.textContent === word)?.click();
    const word = {
      n: "names",
      f: "frames",
      m: "centres of mass",
      c: "collision shapes",
      o: "overlay",
      r: "reset view",
    }[event.key];
    if (word) press(word);
    else if (event.key === " " && this.playback && event.target.tagName !== "BUTTON") {
      this.play(!this.playing);
      event.preventDefault();
    }
  }

  worlds() {
    if (this.data.worlds.length < 2) return;
    $("which").hidden = false;
    this.data.worlds.forEach((w, k) => {
      const o = element("option", w.name.replace(/^world /, ""));
      o.value = k;
      $("world").append(o);
    });
    $("world").onchange = () => {
      this.chosen = +$("world").value;
      this.charts();
      this.stale = true;
    };
  }

  player() {
    $("player").hidden = false;
    const bar = $("time");
    bar.min = this.playback.start;
    bar.max = this.playback.end;
    bar.oninput = () => this.seek(+bar.value);
    for (const s of SPEEDS) {
      const o = element("option", `${s}\u00d7`);
      o.value = s;
      o.selected = s === 1;
      $("speed").append(o);
    }
    $("speed").onchange = () => {
      this.speed = +$("speed").value;
    };
    $("play").onclick = () => this.play(!this.playing);
    this.play(false);
    $("charts").hidden = false;
    if (this.data.run.note) $("charts").append(element("p", this.data.run.note, "note"));
    const seek = (part) => this.seek(this.playback.start + part * (this.playback.end - this.playback.start));
    this.plots = {
      energy: new Chart($("charts"), "energy [J]", seek),
      chosen: new Chart($("charts"), "coordinates", seek),
    };
    const parts = this.rows.filter((r) => r.part.q !== undefined);
    const unitOf = parts[0]?.part.unit;
    parts
      .filter((r) => r.part.unit === unitOf)
      .slice(0, MOST_LINES)
      .forEach((r) => r.dot.setAttribute("aria-pressed", "true"));
    this.charts();
  }

  charts() {
    const { playback, chosen } = this,
      n = playback.count;
    this.plots.energy.show(
      playback.times,
      playback.energies.map(({ name, values }) => ({
        name,
        color: ENERGY_COLORS[name],
        values: values.subarray(chosen * n, (chosen + 1) * n),
      })),
    );
    const rows = this.rows.filter((r) => r.dot && r.dot.getAttribute("aria-pressed") === "true");
    this.plots.chosen.show(
      playback.times,
      rows.map((r) => ({
        name: `${r.part.name} [${r.part.unit}]`,
        color: r.color,
        values: playback.series(chosen, r.part.q),
      })),
    );
    this.stale = true;
  }

  // ------------------------------------------------------------------------------------------- sliders

  sliders() {
    const model = this.scene.models[0],
      box = $("joints");
    if (model.joints.length) box.append(element("h2", "joints"));
    for (const joint of model.joints) {
      for (const part of joint.parts)
        this.slider(box, part.limited ? part : this.rangeWithRecording(part), joint);
      if (joint.ball !== null) {
        ["x", "y", "z"].forEach((axis, i) =>
          this.slider(
            box,
            {
              name: `${joint.name} rotation ${axis}`,
              unit: "rad",
              low: -Math.PI,
              high: Math.PI,
              ball: joint.ball,
              axis: i,
            },
            joint,
          ),
        );
      }
    }
    if (model.constraints)
      box.append(
        element(
          "p",
          "Sliders move each joint independently, so loops and other constraints are violated.",
          "note",
        ),
      );
    const back = element("button", this.playback ? "back to the recording" : "default configuration");
    back.onclick = () => {
      this.scene.manual[this.chosen] = null;
      this.stale = true;
    };
    if (model.joints.length) box.append(back);
  }

  rangeWithRecording(part) {
    // the range of a coordinate without limits, extended to the recorded values
    const found = { ...part };
    const all = this.playback ? this.data.worlds.map((_, w) => this.playback.series(w, part.q)) : [];
    for (const series of all)
      for (const x of series) {
        if (x < found.low) found.low = x;
        if (x > found.high) found.high = x;
      }
    return found;
  }

  slider(box, part, joint) {
    const row = element("div", "", "row"),
      label = element("span", "", "name"),
      bar = element("input");
    const value = element("output"),
      color = COLORS[this.rows.length % COLORS.length];
    Object.assign(bar, { type: "range", min: part.low, max: part.high, step: "any" });
    bar.setAttribute("aria-label", part.name);
    const range = `${formatNumber(part.low, 0.01)} to ${formatNumber(part.high, 0.01)} ${part.unit}`;
    label.title = `${part.name}: ${joint.kind} joint of ${joint.body}, ${range}`;
    let dot = null;
    if (this.playback && part.q !== undefined) {
      dot = element("button", "", "dot");
      dot.style.backgroundColor = color;
      dot.setAttribute("aria-pressed", "false");
      dot.setAttribute("aria-label", `plot ${part.name}`);
      dot.onclick = () => {
        dot.setAttribute("aria-pressed", String(dot.getAttribute("aria-pressed") !== "true"));
        this.charts();
      };
      label.append(dot);
    }
    label.append(part.name);
    row.append(label, value, bar);
    box.append(row);
    this.rows.push({ part, bar, value, dot, color, angle: 0 });
    const last = this.rows[this.rows.length - 1];
    bar.oninput = () => this.jointMoved(last, +bar.value);
  }

  jointMoved(row, x) {
    // move a joint to the slider's value x
    this.play(false);
    const q = Array.from(this.scene.configuration(this.chosen, this.t)),
      { part } = row;
    if (part.q !== undefined) q[part.q] = x;
    else {
      // rotate by the difference about the body-fixed axis
      const r = [0, 0, 0];
      r[part.axis] = x - row.angle;
      row.angle = x;
      multiply(q.slice(part.ball, part.ball + 4), exponential(r)).forEach((c, i) => {
        q[part.ball + i] = c;
      });
    }
    this.scene.manual[this.chosen] = q;
    this.stale = true;
  }

  showValues() {
    const q = this.scene.configuration(this.chosen, this.t);
    for (const row of this.rows) {
      const { part, bar, value } = row;
      if (!this.scene.manual[this.chosen]) row.angle = 0;
      const x = part.q !== undefined ? q[part.q] : row.angle;
      if (document.activeElement !== bar || this.playing) bar.value = x;
      value.textContent = `${formatNumber(x, 0.001)} ${part.unit}`;
    }
  }

  // ------------------------------------------------------------------------------------------ the loop

  play(on) {
    if (!this.playback) return;
    this.playing = on;
    $("play").textContent = on ? "\u275a\u275a" : "\u25b6";
    if (on) this.scene.manual.fill(null);
    if (on && this.t >= this.playback.end) this.t = this.playback.start;
    this.before = null;
    this.stale = true;
  }

  seek(t) {
    this.play(false);
    this.scene.manual.fill(null);
    this.t = Math.min(this.playback.end, Math.max(this.playback.start, t));
    this.stale = true;
  }

  resize() {
    const canvas = $("picture"),
      ratio = Math.min(window.devicePixelRatio || 1, 2);
    const w = Math.max(1, Math.round(canvas.clientWidth * ratio)),
      h = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    this.aspect = w / h;
  }

  frame(now) {
    if (this.playing) {
      const passed = this.before === null ? 0 : (Math.min(now - this.before, 100) / 1000) * this.speed;
      this.before = now;
      this.t += passed;
      if (this.t > this.playback.end) this.t = this.playback.start;
      this.stale = true;
    }
    if (this.simulation) this.simulation.update();
    if (this.stale) {
      this.stale = false;
      this.draw();
    }
    requestAnimationFrame((next) => this.frame(next));
  }

  draw() {
    const { scene, camera, shown } = this;
    this.resize();
    if (shown.follow) this.follow();
    const { low, high } = this.whole,
      middle = shown.follow ? camera.target.slice() : low.map((x, i) => (x + high[i]) / 2);
    const radius = Math.max(0.5 * Math.hypot(...minus(high, low)), 0.5 * scene.extent) * 1.25;
    this.renderer.draw({
      items: scene.items(this.t, this.chosen, shown),
      paths: shown.paths ? this.paths : [],
      eye: camera.eye,
      target: camera.target,
      angle: camera.angle,
      floor: scene.floor,
      cell: scene.cell,
      middle,
      radius,
    });
    this.label();
    this.showValues();
    if (this.playback) {
      $("time").value = this.t;
      const stop = this.playback.stopped[this.chosen];
      $("clock").textContent =
        stop !== null && this.t > stop
          ? `stopped early at ${stop.toFixed(2)} s`
          : `${this.t.toFixed(2)} / ${this.playback.end.toFixed(2)} s`;
      for (const chart of Object.values(this.plots)) chart.draw(this.t);
    }
  }

  follow() {
    const centre = centreOfMass(this.scene.models[this.chosen], this.scene.poses(this.chosen, this.t));
    if (centre) this.camera.target = centre;
  }

  label() {
    const named = this.shown.names ? this.named() : [];
    const labels = $("labels");
    while (labels.children.length < named.length) labels.append(element("span"));
    [...labels.children].forEach((span, k) => {
      const at = k < named.length ? this.renderer.project(named[k].at) : null;
      span.hidden = !at;
      if (!at) return;
      if (span.textContent !== named[k].name) span.textContent = named[k].name;
      span.style.left = `${at[0].toFixed(1)}px`;
      span.style.top = `${at[1].toFixed(1)}px`;
    });
  }

  named() {
    const model = this.scene.models[this.chosen],
      poses = this.scene.poses(this.chosen, this.t);
    return [...model.bodies, ...model.frames].map(({ name, link, pose }) => ({
      name,
      at: compose(poses[link], pose).slice(9),
    }));
  }
}

async function start() {
  try {
    const data = JSON.parse($("data").textContent);
    if (window.innerWidth < 500 && window.innerHeight < 700) document.body.classList.add("folded");
    window.zwang = new Page(data, await unpack(data.pack));
    if (window.zwang.simulation) await window.zwang.simulation.load();
  } catch (error) {
    $("error").hidden = false;
    $("error").textContent = `${error.message}`;
    throw error;
  }
}

start();
