// The simulation itself, in WebAssembly: sliders of parameters and inputs simulate the motion again.

const SLOWEST = 80; // milliseconds of a simulation above which it waits until a slider is released

class Simulation {
  constructor(page, data, buffer) {
    Object.assign(this, { page, data, rows: [], wanted: false, milliseconds: 0, manual: null });
    this.parameters = data.parameters.slice();
    this.control = data.control.slice();
    this.code = arrayOf(buffer, data.module).slice();
  }

  async load() {
    this.world = await instantiate(this.code, this.data.layout);
    this.start = { q: this.world.q.slice(), v: this.world.v.slice() };
    this.drawn = new Drawn(this.page.scene, this.data);
    this.panel();
  }

  panel() {
    const box = $("simulation");
    box.hidden = false;
    box.append(element("h2", "simulate again"));
    for (const slider of this.data.sliders) this.slider(box, slider);
    const here = element("button", "start here"),
      back = element("button", "recorded values");
    here.title = "simulate from the configuration that is shown, at rest";
    here.onclick = () => this.startHere();
    back.title = "the initial state, the parameters and the inputs of the recording";
    back.onclick = () => this.reset();
    this.note = element("p", "", "note");
    box.append(here, " ", back, this.note);
  }

  slider(box, slider) {
    const row = element("div", "", "row"),
      value = element("output"),
      bar = element("input");
    Object.assign(bar, {
      type: "range",
      min: slider.low,
      max: slider.high,
      step: "any",
      value: slider.value,
    });
    bar.setAttribute("aria-label", slider.name);
    const kind = slider.kind === "control" ? "input" : "parameter";
    row.title = `${kind} ${slider.name}, recorded with ${slider.value}`;
    row.append(element("span", slider.name, "name"), value, bar);
    box.append(row);
    const show = () => {
      value.textContent = Number(bar.value).toPrecision(4).replace("-", "\u2212");
    };
    const values = slider.kind === "control" ? this.control : this.parameters;
    bar.oninput = () => {
      values[slider.index] = +bar.value;
      show();
      if (this.milliseconds < SLOWEST) this.request();
    };
    bar.onchange = () => this.request();
    show();
    this.rows.push({ bar, show, slider });
  }

  request() {
    // the simulation runs before the next picture is drawn
    this.wanted = true;
    this.page.stale = true;
  }

  reset() {
    Object.assign(this, {
      parameters: this.data.parameters.slice(),
      control: this.data.control.slice(),
      manual: null,
    });
    for (const { bar, show, slider } of this.rows) {
      bar.value = slider.value;
      show();
    }
    this.request();
  }

  startHere() {
    const { page } = this;
    this.manual = {
      q: Float64Array.from(page.scene.configuration(page.chosen, page.t)),
      v: new Float64Array(this.start.v.length),
    };
    page.seek(page.playback.start);
    this.request();
  }

  update() {
    // simulates again if a slider was moved
    if (!this.wanted) return;
    this.wanted = false;
    const before = performance.now(),
      found = this.run();
    this.milliseconds = performance.now() - before;
    this.drawn.update(this.world, this.parameters);
    this.page.playback.replace(found);
    this.page.motionChanged();
    const steps = this.data.steps[this.data.steps.length - 1];
    this.note.textContent =
      found.stopped[0] === null
        ? `${steps} steps in ${this.milliseconds.toFixed(1)} ms`
        : `stopped at ${found.stopped[0].toFixed(3)} s: ${this.world.statusText}`;
  }

  run() {
    // the motion at the recorded times; NaN after a failure
    const { world, data } = this,
      { q, v } = this.manual || this.start,
      count = data.steps.length;
    world.reset();
    world.parameters.set(this.parameters);
    world.control.set(this.control);
    world.q.set(q);
    world.v.set(v);
    const motion = new Float64Array(count * q.length).fill(NaN),
      kinetic = new Float64Array(count).fill(NaN),
      potential = kinetic.slice();
    let status = 0;
    for (let k = 0, done = 0; k < count; done = data.steps[k++]) {
      if (data.steps[k] > done) status = world.step(data.steps[k] - done);
      if (status !== 0) break;
      motion.set(world.q, k * q.length);
      const energy = world.call("energy", world.q, world.v, ...this.ofParameters());
      kinetic[k] = energy.kinetic[0];
      potential[k] = energy.potential[0];
    }
    const total = kinetic.map((x, k) => x + potential[k]);
    return {
      q: motion,
      energies: { kinetic, potential, total },
      stopped: [status === 0 ? null : world.time],
    };
  }

  ofParameters() {
    return this.parameters.length ? [this.parameters] : [];
  }
}

// What is drawn, with other parameters: poses and points from the module, in the order of
// its function "placements".
class Drawn {
  constructor(scene, data) {
    Object.assign(this, { scene, model: scene.models[0] });
    this.figure = new Map(data.figure.map((end, k) => [end.join("\0"), k]));
    const place = new Map([...this.model.bodies].map((body) => [body.name, body.pose]));
    for (const shape of this.model.shapes)
      shape.onBody = compose(inverse(place.get(shape.body) || IDENTITY), shape.pose);
  }

  update(world, parameters) {
    if (!parameters.length) return;
    const { model, scene } = this,
      { values } = world.call("placements", parameters);
    let at = 0;
    const take = (n) => Array.from(values.subarray(at, (at += n)));
    for (const part of [...model.links, ...model.bodies, ...model.frames]) part.pose = take(12);
    for (const body of model.rigid_bodies) {
      const [x, y, z, mass] = take(4);
      body.splice(1, 4, x, y, z, mass);
    }
    for (const { points } of model.lines) for (const point of points) point.splice(1, 3, ...take(3));
    const points = Array.from(this.figure, () => take(3)),
      place = new Map(model.bodies.map((body) => [body.name, body.pose]));
    for (const shape of model.shapes) {
      shape.pose = compose(place.get(shape.body) || IDENTITY, shape.onBody);
      if (shape.ends)
        this.follow(
          shape,
          shape.ends.map((end) => points[this.figure.get(end.join("\0"))]),
        );
      scene.prepare(shape);
    }
  }

  follow(shape, [a, b]) {
    // a sphere or pin lies at its point, a stick connects two
    const centre = b ? a.map((x, i) => (x + b[i]) / 2) : a;
    if (!b) {
      shape.pose = [...shape.pose.slice(0, 9), ...centre];
      return;
    }
    const d = minus(b, a),
      length = Math.hypot(...d),
      z = d.map((x) => x / (length || 1));
    const x = unit(cross(Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], z)),
      y = cross(z, x);
    shape.size = [shape.size[0], length];
    shape.pose = [x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2], ...centre];
  }
}

function inverse(pose) {
  // of a rigid displacement: R^T and -R^T p
  const R = [0, 1, 2].flatMap((i) => [pose[i], pose[3 + i], pose[6 + i]]);
  return [...R, ...transformPoint([...R, 0, 0, 0], pose[9], pose[10], pose[11]).map((x) => -x)];
}
