// The scene at one time: the drawn items of all worlds, side by side or overlaid, with frames, paths
// and other annotations.

const GHOST = 0.3,
  AXES = [
    [0.84, 0.24, 0.2, 1],
    [0.22, 0.62, 0.3, 1],
    [0.2, 0.4, 0.85, 1],
  ];
const FORCES = { contact: [0.84, 0.33, 0.16, 1], constraint: [0.54, 0.33, 0.7, 1] },
  LONGEST = 1.5;
// a plane is horizontal if the cosine of its inclination exceeds this, and at the height of the ground within
// this part of the mechanism's size
const LEVEL_COSINE = 0.999,
  SAME_HEIGHT = 1e-4;
const MARK = [0.93, 0.72, 0.13, 1],
  LINE = { spring: [0.45, 0.5, 0.56, 1], rod: [0.3, 0.33, 0.37, 1], tendon: [0.72, 0.3, 0.27, 1] };

class Scene {
  constructor(data, buffer, renderer) {
    Object.assign(this, { data, buffer, renderer, overlay: false });
    this.root = [...data.root, 0, 0, 0];
    this.extent = Math.max(...data.models.map((m) => m.extent));
    this.playback = data.run ? new Playback(data.run, data.models, data.worlds, buffer) : null;
    // configurations set by the sliders, which replace the recorded ones
    this.manual = data.worlds.map(() => null);
    this.models = data.worlds.map((w) => data.models[w.model]);
    for (const model of data.models) model.shapes.forEach((shape) => this.prepare(shape));
    this.offsets = data.worlds.map(() => [0, 0, 0]);
    const range = this.range([0]);
    this.spacing =
      1.12 *
      Math.max(
        ...[0, 1].map((i) => Math.min(range.high[i] - range.low[i], 4 * this.extent)),
        0.6 * this.extent,
      );
    this.arrange(false);
    this.placeGround(range);
  }

  prepare(shape) {
    const [key, make, scale] = trianglesOf(shape, this.data, this.buffer, this.extent);
    shape.geometry = this.renderer.geometry(key, make);
    shape.scale = scale;
  }

  placeGround(range) {
    // the ground is a horizontal plane of the world, or lies below the whole motion if there is none; it
    // replaces the horizontal planes of all models at its height
    const level = (model) =>
      model.shapes.filter(
        (s) => s.kind === "plane" && s.link < 0 && compose(this.root, s.pose)[8] > LEVEL_COSINE,
      );
    const height = (s) => compose(this.root, s.pose)[11],
      [first] = level(this.models[0]);
    this.floor = first ? height(first) : Math.min(range.low[2], 0) - 0.02 * this.extent;
    this.ground = new Set(
      this.data.models
        .flatMap(level)
        .filter((s) => Math.abs(height(s) - this.floor) <= SAME_HEIGHT * this.extent),
    );
    this.cell = niceStep(this.extent, 4);
  }

  arrange(overlay) {
    const n = this.models.length,
      columns = Math.ceil(Math.sqrt(n)),
      rows = Math.ceil(n / columns);
    this.overlay = overlay;
    this.offsets = this.models.map((_, k) =>
      overlay
        ? [0, 0, 0]
        : [
            ((k % columns) - (columns - 1) / 2) * this.spacing,
            ((rows - 1) / 2 - Math.floor(k / columns)) * this.spacing,
            0,
          ],
    );
  }

  configuration(world, t) {
    return (
      this.manual[world] || (this.playback ? this.playback.configuration(world, t) : this.models[world].home)
    );
  }

  poses(world, t) {
    return linkPoses(this.models[world], this.configuration(world, t), [
      ...this.root.slice(0, 9),
      ...this.offsets[world],
    ]);
  }

  range(worlds, samples = 24) {
    // the bounding box of the shapes over the whole motion
    const low = [Infinity, Infinity, Infinity],
      high = [-Infinity, -Infinity, -Infinity];
    const times = this.playback
      ? Array.from(
          { length: samples },
          (_, k) =>
            this.playback.start + (k / Math.max(1, samples - 1)) * (this.playback.end - this.playback.start),
        )
      : [0];
    for (const w of worlds) {
      for (const t of times) {
        const poses = this.poses(w, t);
        for (const s of this.models[w].shapes)
          if (s.kind !== "plane" && !s.hidden) this.extend(low, high, poses[s.link], s);
      }
    }
    const r = 0.5 * this.extent;
    return low[0] <= high[0] ? { low, high } : { low: [-r, -r, -r], high: [r, r, r] };
  }

  extend(low, high, base, s) {
    const pose = compose(base, s.pose),
      { bounds } = s.geometry;
    for (let corner = 0; corner < 8; corner++) {
      const p = [0, 1, 2].map((i) => ((corner >> i) & 1 ? bounds.high[i] : bounds.low[i]) * s.scale[i]);
      transformPoint(pose, ...p).forEach((x, i) => {
        low[i] = Math.min(low[i], x);
        high[i] = Math.max(high[i], x);
      });
    }
  }

  items(t, chosen, shown) {
    const found = [];
    this.models.forEach((model, w) => {
      const poses = this.poses(w, t),
        ghost = this.overlay && w !== chosen ? GHOST : 1;
      for (const s of model.shapes) {
        if (this.ground.has(s) || (s.hidden && !shown.shapes)) continue;
        const alpha =
          s.color[3] *
          ghost *
          (s.hidden ? 0.55 : shown.frames || shown.mass || this.forcesShown(shown) ? 0.45 : 1);
        found.push({
          geometry: s.geometry,
          size: s.scale,
          pose: compose(poses[s.link], s.pose),
          shadowless: s.kind === "plane",
          color: [s.color[0], s.color[1], s.color[2], alpha],
        });
      }
      for (const line of model.lines) this.line(found, line, poses, ghost);
      for (const kind of Object.keys(FORCES)) if (shown[kind]) this.forces(found, kind, w, t);
      if (shown.ellipsoids) this.ellipsoids(found, w, poses, ghost);
      if (shown.mass) this.addCentresOfMass(found, model, poses);
      if (shown.frames && w === chosen) this.addFrames(found, model, poses);
    });
    return found;
  }

  line(found, { kind, points }, poses, ghost) {
    const at = points.map(([link, x, y, z]) => transformPoint(poses[link], x, y, z)),
      color = [...LINE[kind].slice(0, 3), ghost];
    const thick = { spring: 0.005, rod: 0.008, tendon: 0.004 }[kind] * this.extent;
    for (let k = 0; k + 1 < at.length; k++) this.bar(found, at[k], at[k + 1], thick, color);
  }

  bar(found, a, b, radius, color, key = "cylinder", make = cylinder) {
    const d = minus(b, a),
      length = Math.hypot(...d);
    if (length < 1e-9) return;
    const z = d.map((x) => x / length),
      x = unit(cross(Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], z)),
      y = cross(z, x);
    const pose = [x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2], ...a.map((c, i) => (c + b[i]) / 2)];
    found.push({ geometry: this.renderer.geometry(key, make), size: [radius, radius, length], pose, color });
  }

  hasForces(kind) {
    // whether the recording contains forces of this kind
    return Boolean(
      this.playback && this.playback.recordedForces && this.playback.recordedForces.kinds.includes(kind),
    );
  }

  forcesShown(shown) {
    // whether forces are displayed; the shapes are then transparent, as they would hide the arrows
    return Object.keys(FORCES).some((kind) => shown[kind] && this.hasForces(kind));
  }

  forces(found, kind, world, t) {
    // arrows from the points of application, and a dot at each point
    if (!this.playback || this.manual[world]) return;
    const r = 0.008 * this.extent,
      root = [...this.root.slice(0, 9), ...this.offsets[world]],
      color = FORCES[kind];
    for (const [point, force] of this.playback.forces(world, t, kind)) {
      const a = transformPoint(root, ...point),
        d = transformPoint([...this.root.slice(0, 9), 0, 0, 0], ...force).map(
          (x) => x * this.playback.recordedForces.scale,
        );
      found.push({
        geometry: this.renderer.geometry("ball", ball),
        size: [1.4 * r, 1.4 * r, 1.4 * r],
        pose: [1, 0, 0, 0, 1, 0, 0, 0, 1, ...a],
        color,
        shadowless: true,
      });
      this.arrow(found, a, d, r, color);
    }
  }

  arrow(found, a, d, r, color) {
    const length = Math.hypot(...d),
      drawn = Math.min(length, LONGEST * this.extent),
      head = Math.min(6 * r, 0.6 * drawn);
    if (drawn < 1e-3 * this.extent) return;
    const along = (x) => a.map((c, i) => c + (d[i] / length) * x);
    this.bar(found, a, along(drawn - head), r, color);
    this.bar(found, along(drawn - head), along(drawn), 2.5 * r, color, "cone", cone);
  }

  addCentresOfMass(found, model, poses) {
    const geometry = this.renderer.geometry("ball", ball),
      heaviest = Math.max(...model.rigid_bodies.map((s) => s[4]));
    const put = (p, r, color) =>
      found.push({
        geometry,
        size: [r, r, r],
        pose: [1, 0, 0, 0, 1, 0, 0, 0, 1, ...p],
        color,
        shadowless: true,
      });
    for (const [link, x, y, z, m] of model.rigid_bodies) {
      put(
        transformPoint(poses[link], x, y, z),
        0.017 * this.extent * Math.cbrt(m / heaviest),
        [0.25, 0.28, 0.32, 1],
      );
    }
    const centre = centreOfMass(model, poses);
    if (centre) put(centre, 0.022 * this.extent, MARK);
  }

  ellipsoids(found, world, poses, ghost) {
    // velocity ellipsoids of the traced frames; 0.2 m is drawn for 1 m/s
    const geometry = this.renderer.geometry("ball", ball);
    for (const name of this.data.traces) {
      const { axes, pose } = velocityEllipsoid(this.models[world], poses, this.placement(world, name));
      const size = axes.map((a) => Math.max(0.2 * a, 0.002 * this.extent));
      found.push({ geometry, size, pose, color: [0.2, 0.55, 0.75, 0.4 * ghost], shadowless: true });
    }
  }

  addFrames(found, model, poses) {
    const length = 0.065 * this.extent;
    for (const { link, pose } of [...model.bodies, ...model.frames]) {
      const p = compose(poses[link], pose);
      AXES.forEach((color, i) => {
        const unitAxis = [0, 1, 2].map((k) => (k === i ? length : 0));
        this.bar(found, [p[9], p[10], p[11]], transformPoint(p, ...unitAxis), 0.04 * length, color);
        found[found.length - 1].shadowless = true;
      });
    }
  }

  placement(world, name) {
    const model = this.models[world];
    return [...model.bodies, ...model.frames].find((f) => f.name === name);
  }

  paths(names) {
    // the paths of frames over the whole motion, in all worlds
    if (!this.playback) return [];
    const found = [];
    names.forEach((name, n) =>
      this.models.forEach((_, w) => {
        const placement = this.placement(w, name),
          every = Math.max(1, Math.floor(this.playback.count / 1500)),
          points = [];
        if (!placement) return;
        for (let k = 0; k < this.playback.count; k += every) {
          if (this.playback.held[w][k] !== k) continue; // not finite
          const root = [...this.root.slice(0, 9), ...this.offsets[w]];
          const p = compose(
            linkPoses(this.models[w], this.playback.sample(w, k), root)[placement.link],
            placement.pose,
          );
          points.push([p[9], p[10], p[11]]);
        }
        const c = COLORS[n % COLORS.length];
        const color = [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16) / 255);
        if (points.length > 1)
          found.push({ geometry: this.renderer.ribbon(points), color: [...color, 0.85] });
      }),
    );
    return found;
  }
}
