// The page: player, switches, sliders, charts, and the loop that draws.

const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5], MOST_LINES = 4;
const $ = (id) => document.getElementById(id);

function element(tag, text = "", className = "") {
  const e = document.createElement(tag);
  e.textContent = text;
  e.className = className;
  return e;
}

class Page {
  constructor(scene, buffer) {
    this.scene = scene;
    this.painter = new Painter($("picture"));
    this.stage = new Stage(scene, buffer, this.painter);
    this.motion = this.stage.motion;
    this.camera = new Orbit($("picture"), () => { this.stale = true; });
    Object.assign(this, { t: this.motion ? this.motion.start : 0, playing: false, speed: 1, chosen: 0, stale: true, aspect: 1 });
    this.shown = { names: false, frames: false, mass: false, shapes: false, follow: false, ellipsoids: false, paths: true,
      contact: true, constraint: true };
    this.paths = this.stage.paths(scene.traces);
    $("title").textContent = scene.title;
    this.switches();
    this.worlds();
    this.rows = [];
    this.sliders();
    if (this.motion) this.player();
    $("fold").onclick = () => { document.body.classList.toggle("folded"); this.stale = true; };
    document.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => { this.stale = true; }).observe($("stage"));
    this.resize();
    this.look();
    this.begin();
  }

  begin() { // #t=1.5 begins there and waits
    const at = new URLSearchParams(location.hash.slice(1)).get("t");
    if (this.motion && at !== null && Number.isFinite(+at)) this.seek(+at);
    else if (this.motion) this.play(true);
    requestAnimationFrame((now) => this.frame(now));
  }

  look() { // at all worlds, over the whole motion
    const worlds = this.scene.worlds.map((_, k) => k);
    const whole = this.stage.range(worlds, worlds.length > 4 ? 4 : 24);
    const most = 2.5 * this.stage.reach + (this.stage.over ? 0 : this.stage.spacing * Math.sqrt(worlds.length));
    const tooFar = Math.hypot(...minus(whole.high, whole.low)) > 3 * most; // what flies away does not make all else small
    this.whole = tooFar ? this.stage.range(worlds, 1) : whole;
    this.camera.fit(this.whole, this.aspect);
    this.stale = true;
  }

  // ------------------------------------------------------------------------------------------ controls

  switches() {
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
      $("switches").append(b);
    };
    const set = (name) => (on) => { this.shown[name] = on; };
    const shapes = this.scene.models.flatMap((m) => m.shapes);
    toggle("names", "names of bodies and frames (n)", set("names"));
    toggle("frames", "axes of bodies and frames: x red, y green, z blue (f)", set("frames"));
    toggle("mass", "centres of mass, the whole one in gold (m)", set("mass"));
    toggle("contacts", "points and forces of contacts; the whole weight would be an arrow of a third of the mechanism", set("contact"),
      this.stage.acts("contact"), true);
    toggle("constraint forces", "forces of constraints between points", set("constraint"), this.stage.acts("constraint"), true);
    toggle("paths", "where the chosen frames go", set("paths"), this.scene.traces.length > 0 && Boolean(this.motion), true);
    toggle("manipulability", "ellipsoid of velocities at unit joint speeds, a fifth of its size, at the chosen frames", set("ellipsoids"),
      this.scene.traces.length > 0);
    toggle("contact shapes", "shapes for contact, where others are for the eye (c)", set("shapes"), shapes.some((s) => s.hidden));
    toggle("follow", "the camera follows the centre of mass", set("follow"), Boolean(this.motion));
    toggle("overlay", "all worlds in one place", (on) => {
      this.stage.arrange(on);
      this.paths.forEach((path) => this.painter.forget(path.geometry));
      this.paths = this.stage.paths(this.scene.traces);
      this.look();
    }, this.scene.worlds.length > 1);
    const reset = element("button", "reset view");
    reset.title = "the whole scene (r)";
    reset.onclick = () => this.look();
    $("switches").append(reset);
  }

  key(event) {
    if (event.target.tagName === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
    const press = (word) => [...$("switches").children].find((b) => b.textContent === word)?.click();
    const word = { n: "names", f: "frames", m: "mass", c: "contact shapes", o: "overlay", r: "reset view" }[event.key];
    if (word) press(word);
    else if (event.key === " " && this.motion && event.target.tagName !== "BUTTON") { this.play(!this.playing); event.preventDefault(); }
  }

  worlds() {
    if (this.scene.worlds.length < 2) return;
    $("which").hidden = false;
    this.scene.worlds.forEach((w, k) => {
      const o = element("option", w.name.replace(/^world /, ""));
      o.value = k;
      $("world").append(o);
    });
    $("world").onchange = () => { this.chosen = +$("world").value; this.charts(); this.stale = true; };
  }

  player() {
    $("player").hidden = false;
    const bar = $("time");
    bar.min = this.motion.start;
    bar.max = this.motion.end;
    bar.oninput = () => this.seek(+bar.value);
    for (const s of SPEEDS) {
      const o = element("option", `${s}\u00d7`);
      o.value = s;
      o.selected = s === 1;
      $("speed").append(o);
    }
    $("speed").onchange = () => { this.speed = +$("speed").value; };
    $("play").onclick = () => this.play(!this.playing);
    this.play(false);
    $("charts").hidden = false;
    const seek = (part) => this.seek(this.motion.start + part * (this.motion.end - this.motion.start));
    this.plots = { energy: new Chart($("charts"), "energy [J]", seek), chosen: new Chart($("charts"), "coordinates", seek) };
    const parts = this.rows.filter((r) => r.part.q !== undefined);
    const unitOf = parts[0]?.part.unit;
    parts.filter((r) => r.part.unit === unitOf).slice(0, MOST_LINES).forEach((r) => r.dot.setAttribute("aria-pressed", "true"));
    this.charts();
  }

  charts() {
    const { motion, chosen } = this, n = motion.count;
    this.plots.energy.show(motion.times, motion.energies.map(({ name, values }) =>
      ({ name, color: ENERGY_COLORS[name], values: values.subarray(chosen * n, (chosen + 1) * n) })));
    const rows = this.rows.filter((r) => r.dot && r.dot.getAttribute("aria-pressed") === "true");
    this.plots.chosen.show(motion.times, rows.map((r) =>
      ({ name: `${r.part.name} [${r.part.unit}]`, color: r.color, values: motion.series(chosen, r.part.q) })));
    this.stale = true;
  }

  // ------------------------------------------------------------------------------------------- sliders

  sliders() {
    const model = this.stage.models[0], box = $("joints");
    if (model.joints.length) box.append(element("h2", "joints"));
    for (const joint of model.joints) {
      for (const part of joint.parts) this.slider(box, part.limited ? part : this.widened(part), joint);
      if (joint.ball !== null) {
        ["x", "y", "z"].forEach((axis, i) => this.slider(box, { name: `${joint.name} turn ${axis}`, unit: "rad", low: -Math.PI,
          high: Math.PI, ball: joint.ball, axis: i }, joint));
      }
    }
    if (model.restricted) box.append(element("p", "Sliders turn every joint by itself: loops and other constraints open.", "note"));
    const back = element("button", this.motion ? "back to the recording" : "home");
    back.onclick = () => { this.stage.hands[this.chosen] = null; this.stale = true; };
    if (model.joints.length) box.append(back);
  }

  widened(part) { // a range without limits holds at least what was recorded
    const found = { ...part };
    const all = this.motion ? this.scene.worlds.map((_, w) => this.motion.series(w, part.q)) : [];
    for (const x of all.flatMap((s) => [...s])) { if (x < found.low) found.low = x; if (x > found.high) found.high = x; }
    return found;
  }

  slider(box, part, joint) {
    const row = element("div", "", "row"), label = element("span", "", "name"), bar = element("input");
    const value = element("output"), color = COLORS[this.rows.length % COLORS.length];
    Object.assign(bar, { type: "range", min: part.low, max: part.high, step: "any" });
    bar.setAttribute("aria-label", part.name);
    label.title = `${part.name}: ${joint.kind} joint of ${joint.body}, ${figure(part.low, 0.01)} to ${figure(part.high, 0.01)} ${part.unit}`;
    let dot = null;
    if (this.motion && part.q !== undefined) {
      dot = element("button", "", "dot");
      dot.style.backgroundColor = color;
      dot.setAttribute("aria-pressed", "false");
      dot.setAttribute("aria-label", `plot ${part.name}`);
      dot.onclick = () => { dot.setAttribute("aria-pressed", String(dot.getAttribute("aria-pressed") !== "true")); this.charts(); };
      label.append(dot);
    }
    label.append(part.name);
    row.append(label, value, bar);
    box.append(row);
    this.rows.push({ part, bar, value, dot, color, turn: 0 });
    const last = this.rows[this.rows.length - 1];
    bar.oninput = () => this.turned(last, +bar.value);
  }

  turned(row, x) { // a joint moved by hand
    this.play(false);
    const q = Array.from(this.stage.configuration(this.chosen, this.t)), { part } = row;
    if (part.q !== undefined) q[part.q] = x;
    else { // turn on by the difference, about the body's own axis
      const r = [0, 0, 0];
      r[part.axis] = x - row.turn;
      row.turn = x;
      multiply(q.slice(part.ball, part.ball + 4), exponential(r)).forEach((c, i) => { q[part.ball + i] = c; });
    }
    this.stage.hands[this.chosen] = q;
    this.stale = true;
  }

  showValues() {
    const q = this.stage.configuration(this.chosen, this.t);
    for (const row of this.rows) {
      const { part, bar, value } = row;
      if (!this.stage.hands[this.chosen]) row.turn = 0;
      const x = part.q !== undefined ? q[part.q] : row.turn;
      if (document.activeElement !== bar || this.playing) bar.value = x;
      value.textContent = `${figure(x, 0.001)} ${part.unit}`;
    }
  }

  // ------------------------------------------------------------------------------------------ the loop

  play(on) {
    if (!this.motion) return;
    this.playing = on;
    $("play").textContent = on ? "\u275a\u275a" : "\u25b6";
    if (on) this.stage.hands.fill(null);
    if (on && this.t >= this.motion.end) this.t = this.motion.start;
    this.before = null;
    this.stale = true;
  }

  seek(t) {
    this.play(false);
    this.stage.hands.fill(null);
    this.t = Math.min(this.motion.end, Math.max(this.motion.start, t));
    this.stale = true;
  }

  resize() {
    const canvas = $("picture"), ratio = Math.min(window.devicePixelRatio || 1, 2);
    const w = Math.max(1, Math.round(canvas.clientWidth * ratio)), h = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    this.aspect = w / h;
  }

  frame(now) {
    if (this.playing) {
      const passed = this.before === null ? 0 : (Math.min(now - this.before, 100) / 1000) * this.speed;
      this.before = now;
      this.t += passed;
      if (this.t > this.motion.end) this.t = this.motion.start;
      this.stale = true;
    }
    if (this.stale) { this.stale = false; this.draw(); }
    requestAnimationFrame((next) => this.frame(next));
  }

  draw() {
    const { stage, camera, shown } = this;
    this.resize();
    if (shown.follow) this.follow();
    const { low, high } = this.whole, middle = shown.follow ? camera.target.slice() : low.map((x, i) => (x + high[i]) / 2);
    const radius = Math.max(0.5 * Math.hypot(...minus(high, low)), 0.5 * stage.reach) * 1.25;
    this.painter.draw({ items: stage.items(this.t, this.chosen, shown), paths: shown.paths ? this.paths : [], eye: camera.eye, target: camera.target,
      angle: camera.angle, floor: stage.floor, cell: stage.cell, middle, radius });
    this.label();
    this.showValues();
    if (this.motion) {
      $("time").value = this.t;
      const stop = this.motion.stopped[this.chosen];
      $("clock").textContent = stop !== null && this.t > stop ? `stopped at ${stop.toFixed(2)} s`
        : `${this.t.toFixed(2)} / ${this.motion.end.toFixed(2)} s`;
      for (const chart of Object.values(this.plots)) chart.draw(this.t);
    }
  }

  follow() {
    const centre = massCentre(this.stage.models[this.chosen], this.stage.poses(this.chosen, this.t));
    if (centre) this.camera.target = centre;
  }

  label() {
    const places = this.shown.names ? this.named() : [];
    const labels = $("labels");
    while (labels.children.length < places.length) labels.append(element("span"));
    [...labels.children].forEach((span, k) => {
      const at = k < places.length ? this.painter.project(places[k].at) : null;
      span.hidden = !at;
      if (!at) return;
      if (span.textContent !== places[k].name) span.textContent = places[k].name;
      span.style.left = `${at[0].toFixed(1)}px`;
      span.style.top = `${at[1].toFixed(1)}px`;
    });
  }

  named() {
    const model = this.stage.models[this.chosen], poses = this.stage.poses(this.chosen, this.t);
    return [...model.bodies, ...model.frames].map(({ name, link, pose }) => ({ name, at: compose(poses[link], pose).slice(9) }));
  }
}

async function start() {
  try {
    const scene = JSON.parse($("scene").textContent);
    if (window.innerWidth < 500 && window.innerHeight < 700) document.body.classList.add("folded");
    window.zwang = new Page(scene, await unpack(scene.pack));
  } catch (error) {
    $("trouble").hidden = false;
    $("trouble").textContent = `${error.message}`;
    throw error;
  }
}

start();
