// Triangle meshes of shapes: three positions and three normals for each triangle, and the
// scale factors of the shape.

// the normals of faces that meet at a larger angle are not averaged
const CREASE = Math.cos((38 * Math.PI) / 180);

function surfaceOfRevolution(profile, sides) {
  // profile: [[radius, z, radial normal, axial normal], ...] with increasing z
  const out = { positions: [], normals: [] };
  const point = (k, j) => {
    const a = (2 * Math.PI * j) / sides,
      [r, z, nr, nz] = profile[k];
    return [
      [r * Math.cos(a), r * Math.sin(a), z],
      [nr * Math.cos(a), nr * Math.sin(a), nz],
    ];
  };
  for (let k = 0; k + 1 < profile.length; k++) {
    for (let j = 0; j < sides; j++) {
      const [a, b, c, d] = [point(k, j), point(k, j + 1), point(k + 1, j + 1), point(k + 1, j)];
      for (const [p, n] of [a, b, c, a, c, d]) {
        out.positions.push(...p);
        out.normals.push(...n);
      }
    }
  }
  return out;
}

function arc(from, to, steps, r, shift) {
  return Array.from({ length: steps + 1 }, (_, k) => {
    const a = from + ((to - from) * k) / steps;
    return [r * Math.cos(a), r * Math.sin(a) + shift, Math.cos(a), Math.sin(a)];
  });
}

function ball() {
  return surfaceOfRevolution(arc(-Math.PI / 2, Math.PI / 2, 24, 1, 0), 40);
}

function capsule(r, length) {
  return surfaceOfRevolution(
    [...arc(-Math.PI / 2, 0, 12, r, -length / 2), ...arc(0, Math.PI / 2, 12, r, length / 2)],
    32,
  );
}

function cylinder() {
  // of radius 1 and length 1
  return surfaceOfRevolution(
    [
      [0, -0.5, 0, -1],
      [1, -0.5, 0, -1],
      [1, -0.5, 1, 0],
      [1, 0.5, 1, 0],
      [1, 0.5, 0, 1],
      [0, 0.5, 0, 1],
    ],
    48,
  );
}

function cone() {
  // of radius 1 and length 1, with its tip up
  return surfaceOfRevolution(
    [
      [0, -0.5, 0, -1],
      [1, -0.5, 0, -1],
      [1, -0.5, 0.7, 0.7],
      [0, 0.5, 0.7, 0.7],
    ],
    32,
  );
}

function box() {
  // of edge 1
  const out = { positions: [], normals: [] };
  for (let axis = 0; axis < 3; axis++) {
    for (const sign of [-0.5, 0.5]) {
      const corner = (u, v) => {
        const p = [0, 0, 0];
        p[axis] = sign;
        p[(axis + 1) % 3] = u * Math.sign(sign);
        p[(axis + 2) % 3] = v;
        return p;
      };
      const n = [0, 0, 0];
      n[axis] = 2 * sign;
      const [a, b, c, d] = [corner(-0.5, -0.5), corner(0.5, -0.5), corner(0.5, 0.5), corner(-0.5, 0.5)];
      for (const p of [a, b, c, a, c, d]) {
        out.positions.push(...p);
        out.normals.push(...n);
      }
    }
  }
  return out;
}

function square() {
  // of edge 1, with its normal along z; it is visible from both sides
  const p = [-0.5, -0.5, 0, 0.5, -0.5, 0, 0.5, 0.5, 0, -0.5, -0.5, 0, 0.5, 0.5, 0, -0.5, 0.5, 0];
  return { positions: p, normals: p.map((_, i) => (i % 3 === 2 ? 1 : 0)) };
}

function meshTriangles(mesh, buffer) {
  const steps = arrayOf(buffer, mesh.vertices),
    faces = arrayOf(buffer, mesh.faces);
  const vertices = new Float32Array(steps.length);
  for (let i = 0; i < steps.length; i++)
    vertices[i] = mesh.low[i % 3] + (steps[i] / 65535) * mesh.span[i % 3];
  const same = mergedVertices(steps),
    normals = faceNormals(vertices, faces);
  const around = new Map();
  faces.forEach((v, i) => {
    const key = same[v];
    if (!around.has(key)) around.set(key, []);
    around.get(key).push((i / 3) | 0);
  });
  const out = { positions: new Float32Array(3 * faces.length), normals: new Float32Array(3 * faces.length) };
  faces.forEach((v, i) => {
    out.positions.set(vertices.subarray(3 * v, 3 * v + 3), 3 * i);
    out.normals.set(cornerNormal(normals, (i / 3) | 0, around.get(same[v])), 3 * i);
  });
  return out;
}

function mergedVertices(steps) {
  // vertices at equal positions get equal indices, so that shading does not depend on how a file splits them
  const seen = new Map(),
    same = new Uint32Array(steps.length / 3);
  for (let v = 0; v < same.length; v++) {
    const key = (steps[3 * v] * 65536 + steps[3 * v + 1]) * 65536 + steps[3 * v + 2];
    if (!seen.has(key)) seen.set(key, v);
    same[v] = seen.get(key);
  }
  return same;
}

function faceNormals(vertices, faces) {
  // the length of a normal is twice the area of its face
  const normals = new Float32Array(faces.length);
  for (let f = 0; f < faces.length; f += 3) {
    const [a, b, c] = [3 * faces[f], 3 * faces[f + 1], 3 * faces[f + 2]];
    const u = [0, 1, 2].map((i) => vertices[b + i] - vertices[a + i]);
    const w = [0, 1, 2].map((i) => vertices[c + i] - vertices[a + i]);
    normals[f] = u[1] * w[2] - u[2] * w[1];
    normals[f + 1] = u[2] * w[0] - u[0] * w[2];
    normals[f + 2] = u[0] * w[1] - u[1] * w[0];
  }
  return normals;
}

function cornerNormal(normals, face, others) {
  // the mean normal of the faces around a corner that meet this face without a crease
  const x = normals[3 * face],
    y = normals[3 * face + 1],
    z = normals[3 * face + 2],
    length = Math.hypot(x, y, z);
  let [sx, sy, sz] = [0, 0, 0];
  for (const o of others) {
    const ox = normals[3 * o],
      oy = normals[3 * o + 1],
      oz = normals[3 * o + 2];
    if (x * ox + y * oy + z * oz >= CREASE * length * Math.hypot(ox, oy, oz)) {
      sx += ox;
      sy += oy;
      sz += oz;
    }
  }
  const s = Math.hypot(sx, sy, sz);
  return s > 0 ? [sx / s, sy / s, sz / s] : [0, 0, 1];
}

// For a shape: the key of its triangle mesh, a function that creates the mesh, and the scale factors.
function trianglesOf(shape, data, buffer, extent) {
  const [a, b, c] = shape.size;
  switch (shape.kind) {
    case "sphere":
      return ["ball", ball, [a, a, a]];
    case "ellipsoid":
      return ["ball", ball, [a, b, c]];
    case "cylinder":
      return ["cylinder", cylinder, [a, a, b]];
    case "box":
      return ["box", box, [a, b, c]];
    case "capsule":
      return [`capsule ${a} ${b}`, () => capsule(a, b), [1, 1, 1]];
    case "plane":
      return ["square", square, [8 * extent, 8 * extent, 1]];
    default:
      return [`mesh ${shape.mesh}`, () => meshTriangles(data.meshes[shape.mesh], buffer), [1, 1, 1]];
  }
}
