// Arrays from bytes, the recorded motion q(t), and forward kinematics.
// A pose is 12 numbers: the rotation by rows, then the origin.

const TYPES = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };
const IDENTITY = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function arrayOf(buffer, spec) {
  return new TYPES[spec.type](buffer, spec.at, spec.count);
}

function compose(a, b) {
  const c = new Array(12);
  for (let i = 0; i < 3; i++) {
    for (let j = 0; j < 3; j++) {
      c[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
    }
    c[9 + i] = a[3 * i] * b[9] + a[3 * i + 1] * b[10] + a[3 * i + 2] * b[11] + a[9 + i];
  }
  return c;
}

function transformPoint(pose, x, y, z) {
  const row = (i) => pose[3 * i] * x + pose[3 * i + 1] * y + pose[3 * i + 2] * z + pose[9 + i];
  return [row(0), row(1), row(2)];
}

function fromQuaternion(w, x, y, z) {
  const n = 2 / (w * w + x * x + y * y + z * z);
  return [
    1 - n * (y * y + z * z),
    n * (x * y - w * z),
    n * (x * z + w * y),
    n * (x * y + w * z),
    1 - n * (x * x + z * z),
    n * (y * z - w * x),
    n * (x * z - w * y),
    n * (y * z + w * x),
    1 - n * (x * x + y * y),
    0,
    0,
    0,
  ];
}

function multiply(a, b) {
  // quaternions (w, x, y, z)
  return [
    a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
    a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
    a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
    a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
  ];
}

function exponential(r) {
  // the quaternion of a rotation vector
  const angle = Math.hypot(...r),
    s = angle > 1e-9 ? Math.sin(angle / 2) / angle : 0.5;
  return [Math.cos(angle / 2), s * r[0], s * r[1], s * r[2]];
}

function linkPose(link, q) {
  // the pose of a link in its parent's frame
  if (link.kind === "ball") {
    return compose(link.pose, fromQuaternion(q[link.q], q[link.q + 1], q[link.q + 2], q[link.q + 3]));
  }
  const x = q[link.q] - link.reference,
    [a, b, c] = link.axis;
  const along = link.kind === "prismatic" ? x : link.pitch * x;
  const joint =
    link.kind === "prismatic"
      ? IDENTITY.slice()
      : fromQuaternion(Math.cos(x / 2), a * Math.sin(x / 2), b * Math.sin(x / 2), c * Math.sin(x / 2));
  joint[9] = a * along;
  joint[10] = b * along;
  joint[11] = c * along;
  return compose(link.pose, joint);
}

function linkPoses(model, q, root = IDENTITY) {
  const poses = [];
  for (const link of model.links) {
    poses.push(compose(link.parent < 0 ? root : poses[link.parent], linkPose(link, q)));
  }
  poses[-1] = root;
  return poses;
}

function centreOfMass(model, poses) {
  let mass = 0;
  const sum = [0, 0, 0];
  for (const [link, x, y, z, m] of model.rigid_bodies) {
    transformPoint(poses[link], x, y, z).forEach((c, i) => {
      sum[i] += m * c;
    });
    mass += m;
  }
  return mass > 0 ? sum.map((c) => c / mass) : null;
}

// The columns of the linear Jacobian J of a frame's origin, one for each generalised velocity of the
// links that carry it.
function pointJacobian(model, poses, placement) {
  const p = compose(poses[placement.link], placement.pose).slice(9),
    columns = [];
  for (let at = placement.link; at >= 0; at = model.links[at].parent) {
    const { kind, axis, pitch } = model.links[at],
      o = poses[at].slice(9),
      arm = [p[0] - o[0], p[1] - o[1], p[2] - o[2]];
    for (const a of kind === "ball"
      ? [
          [1, 0, 0],
          [0, 1, 0],
          [0, 0, 1],
        ]
      : [axis]) {
      const w = transformPoint([...poses[at].slice(0, 9), 0, 0, 0], ...a),
        linear = kind === "prismatic" ? 1 : pitch,
        angular = kind === "prismatic" ? 0 : 1;
      columns.push(
        [0, 1, 2].map((i) => {
          const j = (i + 1) % 3,
            k = (i + 2) % 3;
          return linear * w[i] + angular * (w[j] * arm[k] - w[k] * arm[j]);
        }),
      );
    }
  }
  return columns;
}

// The velocity (manipulability) ellipsoid { J v : |v| = 1 } of a frame's origin p: its semi-axes, and
// their directions as a pose at p,
// from the eigenvalues and eigenvectors of J J^T.
function velocityEllipsoid(model, poses, placement) {
  const J = pointJacobian(model, poses, placement);
  const A = [0, 1, 2].map((i) => [0, 1, 2].map((k) => J.reduce((s, c) => s + c[i] * c[k], 0)));
  const R = eigenvectors(A),
    p = compose(poses[placement.link], placement.pose).slice(9);
  return { axes: [0, 1, 2].map((i) => Math.sqrt(Math.max(A[i][i], 0))), pose: [...R.flat(), ...p] };
}

function eigenvectors(A) {
  // by Jacobi rotations: makes A diagonal and returns R (by rows), whose columns are the eigenvectors
  const R = [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ];
  for (let sweep = 0; sweep < 12; sweep++) {
    for (const [i, k] of [
      [0, 1],
      [0, 2],
      [1, 2],
    ]) {
      if (A[i][k] === 0) continue;
      const angle = 0.5 * Math.atan2(2 * A[i][k], A[i][i] - A[k][k]),
        c = Math.cos(angle),
        s = Math.sin(angle);
      for (const M of [A, R]) {
        // columns i and k
        for (let r = 0; r < 3; r++)
          [M[r][i], M[r][k]] = [c * M[r][i] + s * M[r][k], c * M[r][k] - s * M[r][i]];
      }
      for (let r = 0; r < 3; r++) [A[i][r], A[k][r]] = [c * A[i][r] + s * A[k][r], c * A[k][r] - s * A[i][r]];
    }
  }
  return R;
}

// The recorded motion: q of a world at any time by linear interpolation between samples;
// quaternions along the shorter arc.
class Playback {
  constructor(run, models, worlds, buffer) {
    this.times = arrayOf(buffer, run.times);
    this.count = this.times.length;
    this.q = arrayOf(buffer, run.q);
    this.nq = models[0].home.length;
    this.energies = Object.entries(run.energies).map(([name, spec]) => ({
      name,
      values: arrayOf(buffer, spec),
    }));
    this.stopped = run.stopped;
    this.recordedForces = run.forces && {
      ...run.forces,
      position: arrayOf(buffer, run.forces.position),
      force: arrayOf(buffer, run.forces.force),
    };
    this.balls = models[0].joints.filter((j) => j.ball !== null).map((j) => j.ball);
    this.held = worlds.map((_, w) => this.heldSamples(w));
  }

  replace({ q, energies, stopped }) {
    // another motion of one world at the same times; its forces are not known
    Object.assign(this, { q, stopped, recordedForces: null });
    this.energies = Object.entries(energies).map(([name, values]) => ({ name, values }));
    this.held = [this.heldSamples(0)];
  }

  get start() {
    return this.times[0];
  }
  get end() {
    return this.times[this.count - 1];
  }

  heldSamples(world) {
    // for each sample the last one up to it that is finite, or the first finite one: a world that stopped
    // has NaN afterwards; of recordings that were joined in time also in between
    const found = new Int32Array(this.count);
    let held = -1;
    for (let k = 0; k < this.count; k++) {
      if (this.sample(world, k).every(Number.isFinite)) {
        if (held < 0) found.fill(k, 0, k);
        held = k;
      }
      found[k] = Math.max(held, 0);
    }
    return found;
  }

  index(t) {
    // the last sample before t
    let low = 0,
      high = this.count - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= t) low = middle;
      else high = middle;
    }
    return low;
  }

  sample(world, k) {
    const at = (world * this.count + k) * this.nq;
    return Array.from(this.q.subarray(at, at + this.nq));
  }

  configuration(world, t) {
    const held = this.held[world],
      k = this.index(t);
    if (this.count < 2) return this.sample(world, 0);
    const s = Math.min(1, Math.max(0, (t - this.times[k]) / (this.times[k + 1] - this.times[k])));
    if (held[k] !== k || held[k + 1] !== k + 1) return this.sample(world, held[s < 1 ? k : k + 1]);
    const a = this.sample(world, k),
      b = this.sample(world, k + 1);
    for (const i of this.balls) {
      if (a[i] * b[i] + a[i + 1] * b[i + 1] + a[i + 2] * b[i + 2] + a[i + 3] * b[i + 3] < 0) {
        for (let j = i; j < i + 4; j++) b[j] = -b[j];
      }
    }
    return a.map((x, i) => x + s * (b[i] - x));
  }

  forces(world, t, kind) {
    // [point, force] of one kind at the last sample before t; forces may jump, so they are not interpolated
    const recordedForces = this.recordedForces,
      found = [],
      k = t >= this.end ? this.count - 1 : this.index(t);
    if (!recordedForces) return found;
    recordedForces.kinds.forEach((this_kind, i) => {
      const at = 3 * ((world * this.count + k) * recordedForces.kinds.length + i);
      const point = Array.from(recordedForces.position.subarray(at, at + 3)),
        force = Array.from(recordedForces.force.subarray(at, at + 3));
      if (this_kind === kind && [...point, ...force].every(Number.isFinite)) found.push([point, force]);
    });
    return found;
  }

  series(world, i) {
    // the values of one coordinate at all samples
    const found = new Float32Array(this.count);
    for (let k = 0; k < this.count; k++) found[k] = this.q[(world * this.count + k) * this.nq + i];
    return found;
  }
}
