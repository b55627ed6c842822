// The renderer: WebGL 2, one light with soft shadows, a ground plane with a fading grid, and ribbons
// for paths.

const SOLID_VERTEX = `#version 300 es
in vec3 position, normal;
uniform mat4 model, camera, sun;
uniform vec3 size;
out vec3 at, up;
out vec3 lit;
void main() {
  vec4 w = model * vec4(position * size, 1.0);
  at = w.xyz;
  up = mat3(model) * (normal / size);
  lit = (sun * w).xyz * 0.5 + 0.5;
  gl_Position = camera * w;
}`;

const SHADE = `#version 300 es
precision highp float;
precision highp sampler2DShadow;
in vec3 at, up, lit;
uniform sampler2DShadow shadow;
uniform vec3 eye, to_sun;
uniform vec4 color;
out vec4 drawn;
float sunlight(float bias) {
  if (any(lessThan(lit, vec3(0.0))) || any(greaterThan(lit, vec3(1.0)))) return 1.0;
  float s = 0.0;
  vec2 texel = 1.0 / vec2(textureSize(shadow, 0));
  for (int i = -2; i <= 2; i++) for (int j = -2; j <= 2; j++)
    s += texture(shadow, vec3(lit.xy + vec2(i, j) * texel * 1.1, lit.z - bias));
  return s / 25.0;
}`;

const SOLID_FRAGMENT =
  SHADE +
  `
void main() {
  vec3 n = normalize(up), v = normalize(eye - at), base = pow(color.rgb, vec3(2.2));
  if (dot(n, v) < 0.0) n = -n;
  float facing = dot(n, to_sun);
  float sun = facing > 0.0 ? facing * sunlight(0.0006 + 0.0022 * (1.0 - facing)) : 0.0;
  vec3 around = mix(vec3(0.32, 0.30, 0.29), vec3(0.54, 0.58, 0.64), n.z * 0.5 + 0.5);
  float fill = 0.16 * max(dot(n, normalize(vec3(v.xy * 0.8, 0.35))), 0.0);
  float gleam = pow(max(dot(n, normalize(v + to_sun)), 0.0), 48.0) * 0.22 * step(0.001, sun);
  float rim = pow(1.0 - max(dot(n, v), 0.0), 4.0) * 0.16;
  vec3 c = base * (around + fill + sun * vec3(0.74, 0.71, 0.66)) + gleam + rim * vec3(0.8, 0.86, 0.95);
  drawn = vec4(pow(c, vec3(1.0 / 2.2)), color.a);
}`;

const GROUND_FRAGMENT =
  SHADE +
  `
uniform float cell, far;
uniform vec3 middle;
float grid(vec2 p, float width) {
  vec2 w = fwidth(p), d = abs(fract(p - 0.5) - 0.5) / max(w, vec2(1e-6));
  float line = 1.0 - min(min(d.x, d.y) / width, 1.0);
  return line * (1.0 - smoothstep(0.25, 0.7, max(w.x, w.y)));
}
void main() {
  vec2 p = at.xy / cell;
  float fade = 1.0 - smoothstep(0.25 * far, far, length(at.xy - middle.xy));
  float s = sunlight(0.0008);
  vec3 c = mix(vec3(0.905, 0.915, 0.925), vec3(0.945, 0.95, 0.955), fade);
  c = mix(c, vec3(0.74, 0.77, 0.81), 0.5 * grid(p, 1.1));
  c = mix(c, vec3(0.62, 0.66, 0.72), 0.5 * grid(p / 5.0, 1.3));
  c = mix(c, vec3(0.80, 0.40, 0.36), 0.5 * fade * clamp(1.6 - abs(at.y) / fwidth(at.y), 0.0, 1.0));
  c = mix(c, vec3(0.36, 0.62, 0.44), 0.5 * fade * clamp(1.6 - abs(at.x) / fwidth(at.x), 0.0, 1.0));
  c *= mix(0.68, 1.0, s);
  drawn = vec4(c, fade * (eye.z > at.z ? 0.96 : 0.35));
}`;

const SKY_VERTEX = `#version 300 es
in vec3 position;
out float height;
void main() {
  height = position.y * 2.0;
  gl_Position = vec4(position.xy * 2.0, 0.9999, 1.0);
}`;

const SKY_FRAGMENT = `#version 300 es
precision highp float;
in float height;
out vec4 drawn;
void main() {
  vec3 sky = mix(vec3(0.945, 0.95, 0.955), vec3(0.82, 0.87, 0.925), smoothstep(-0.1, 1.4, height));
  drawn = vec4(sky, 1.0);
}`;

const DEPTH_FRAGMENT = `#version 300 es
precision highp float;
void main() {}`;

const PATH_VERTEX = `#version 300 es
in vec3 position, normal; // the two ends of a segment
in vec2 side;
uniform mat4 camera;
uniform vec2 screen;
void main() {
  vec4 a = camera * vec4(position, 1.0), b = camera * vec4(normal, 1.0), c = side.x < 0.5 ? a : b;
  vec2 d = (b.xy / b.w - a.xy / a.w) * screen;
  d = length(d) > 1e-6 ? normalize(d) : vec2(1.0, 0.0);
  gl_Position = c + vec4(vec2(-d.y, d.x) * side.y * 2.4 / screen * c.w, 0.0, 0.0);
}`;

const PATH_FRAGMENT = `#version 300 es
precision highp float;
uniform vec4 color;
out vec4 drawn;
void main() { drawn = color; }`;

const SHADOW_SIZE = 4096;
const TO_SUN = [0.36, -0.42, 0.83];

function matrixOf(pose) {
  // a 4x4 matrix by columns, as WebGL stores it
  return [
    pose[0],
    pose[3],
    pose[6],
    0,
    pose[1],
    pose[4],
    pose[7],
    0,
    pose[2],
    pose[5],
    pose[8],
    0,
    pose[9],
    pose[10],
    pose[11],
    1,
  ];
}

function multiplyMatrices(a, b) {
  // of 4x4 matrices by columns
  const c = new Float32Array(16);
  for (let i = 0; i < 4; i++) {
    for (let j = 0; j < 4; j++) {
      for (let k = 0; k < 4; k++) c[4 * j + i] += a[4 * k + i] * b[4 * j + k];
    }
  }
  return c;
}

const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => a.map((x) => x / Math.hypot(...a));

function viewMatrix(eye, target) {
  const z = unit(minus(eye, target)),
    x = unit(cross([0, 0, 1], z)),
    y = cross(z, x);
  return [
    x[0],
    y[0],
    z[0],
    0,
    x[1],
    y[1],
    z[1],
    0,
    x[2],
    y[2],
    z[2],
    0,
    -dot(x, eye),
    -dot(y, eye),
    -dot(z, eye),
    1,
  ];
}

function perspectiveMatrix(angle, aspect, near, far) {
  const f = 1 / Math.tan(angle / 2);
  return [
    f / aspect,
    0,
    0,
    0,
    0,
    f,
    0,
    0,
    0,
    0,
    (far + near) / (near - far),
    -1,
    0,
    0,
    (2 * far * near) / (near - far),
    0,
  ];
}

function orthographicMatrix(r) {
  // the view volume is a cube of half edge r, whose centre is r in front of the eye
  return [1 / r, 0, 0, 0, 0, 1 / r, 0, 0, 0, 0, -1 / r, 0, 0, 0, -1, 1];
}

class Renderer {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true });
    if (!gl) throw new Error("This page needs WebGL 2, which this browser does not support.");
    Object.assign(this, { canvas, gl, geometries: new Map() });
    this.solid = this.program(SOLID_VERTEX, SOLID_FRAGMENT);
    this.ground = this.program(SOLID_VERTEX, GROUND_FRAGMENT);
    this.sky = this.program(SKY_VERTEX, SKY_FRAGMENT);
    this.depth = this.program(SOLID_VERTEX, DEPTH_FRAGMENT);
    this.path = this.program(PATH_VERTEX, PATH_FRAGMENT);
    this.makeShadow();
    this.plate = this.upload(square());
  }

  program(vertex, fragment) {
    const gl = this.gl,
      p = gl.createProgram();
    for (const [kind, text] of [
      [gl.VERTEX_SHADER, vertex],
      [gl.FRAGMENT_SHADER, fragment],
    ]) {
      const s = gl.createShader(kind);
      gl.shaderSource(s, text);
      gl.compileShader(s);
      if (!gl.getShaderParameter(s, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(s));
      gl.attachShader(p, s);
    }
    ["position", "normal", "side"].forEach((name, k) => gl.bindAttribLocation(p, k, name));
    gl.linkProgram(p);
    if (!gl.getProgramParameter(p, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(p));
    const at = {};
    for (let k = 0; k < gl.getProgramParameter(p, gl.ACTIVE_UNIFORMS); k++) {
      const name = gl.getActiveUniform(p, k).name;
      at[name] = gl.getUniformLocation(p, name);
    }
    return { p, at };
  }

  makeShadow() {
    const gl = this.gl;
    this.size = Math.min(SHADOW_SIZE, gl.getParameter(gl.MAX_TEXTURE_SIZE));
    this.shadow = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.shadow);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, this.size, this.size);
    for (const [name, value] of [
      [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE],
      [gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL],
      [gl.TEXTURE_MIN_FILTER, gl.LINEAR],
      [gl.TEXTURE_MAG_FILTER, gl.LINEAR],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE],
      [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
    ]) {
      gl.texParameteri(gl.TEXTURE_2D, name, value);
    }
    this.shadowBuffer = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowBuffer);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.shadow, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  upload({ positions, normals, sides }) {
    const gl = this.gl,
      vao = gl.createVertexArray(),
      buffers = [];
    gl.bindVertexArray(vao);
    [
      [positions, 3],
      [normals, 3],
      [sides, 2],
    ].forEach(([values, n], k) => {
      if (!values) return;
      buffers.push(gl.createBuffer());
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers[buffers.length - 1]);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(values), gl.STATIC_DRAW);
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, n, gl.FLOAT, false, 0, 0);
    });
    gl.bindVertexArray(null);
    return { vao, buffers, count: positions.length / 3, bounds: boundsOf(positions) };
  }

  release({ vao, buffers }) {
    this.gl.deleteVertexArray(vao);
    buffers.forEach((buffer) => this.gl.deleteBuffer(buffer));
  }

  geometry(key, make) {
    if (!this.geometries.has(key)) this.geometries.set(key, this.upload(make()));
    return this.geometries.get(key);
  }

  ribbon(points) {
    // points: [[x, y, z], ...]; the geometry of a path that is about two pixels wide
    const positions = [],
      normals = [],
      sides = [];
    for (let k = 0; k + 1 < points.length; k++) {
      for (const side of [
        [0, -1],
        [1, -1],
        [1, 1],
        [0, -1],
        [1, 1],
        [0, 1],
      ]) {
        positions.push(...points[k]);
        normals.push(...points[k + 1]);
        sides.push(...side);
      }
    }
    return this.upload({ positions, normals, sides });
  }

  draw(view) {
    // view: items, paths, eye, target, angle, floor, cell, middle, radius
    const gl = this.gl,
      { canvas } = this;
    const sun = multiplyMatrices(
      orthographicMatrix(view.radius),
      viewMatrix(
        unit(TO_SUN).map((x, i) => view.radius * x + view.middle[i]),
        view.middle,
      ),
    );
    const distance = Math.hypot(...minus(view.eye, view.target));
    const far = distance + 60 * view.radius;
    const camera = multiplyMatrices(
      perspectiveMatrix(view.angle, canvas.width / canvas.height, Math.max(distance / 200, far / 60000), far),
      viewMatrix(view.eye, view.target),
    );
    this.camera = camera;
    this.castShadows(view, sun);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    this.paintSky();
    gl.enable(gl.BLEND);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const common = { camera, sun, eye: view.eye };
    this.begin(this.solid, common);
    this.drawSolids(
      this.solid,
      view.items.filter((i) => i.color[3] >= 0.99),
    );
    this.paintGround(view, common);
    this.paintPaths(view, camera);
    gl.depthMask(false);
    this.begin(this.solid, common);
    gl.enable(gl.CULL_FACE);
    this.drawSolids(
      this.solid,
      view.items.filter((i) => i.color[3] < 0.99 && i.color[3] > 0),
    );
    gl.disable(gl.CULL_FACE);
    gl.depthMask(true);
  }

  castShadows(view, sun) {
    const gl = this.gl;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowBuffer);
    gl.viewport(0, 0, this.size, this.size);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.useProgram(this.depth.p);
    gl.uniformMatrix4fv(this.depth.at.camera, false, sun);
    this.drawSolids(
      this.depth,
      view.items.filter((i) => !i.shadowless && i.color[3] > 0.4),
    );
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  begin(program, { camera, sun, eye }) {
    const gl = this.gl;
    gl.useProgram(program.p);
    gl.uniformMatrix4fv(program.at.camera, false, camera);
    gl.uniformMatrix4fv(program.at.sun, false, sun);
    gl.uniform3fv(program.at.eye, eye);
    gl.uniform3fv(program.at.to_sun ?? null, unit(TO_SUN));
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.shadow);
    gl.uniform1i(program.at.shadow, 0);
  }

  drawSolids(program, items) {
    const gl = this.gl;
    for (const { geometry, pose, size, color } of items) {
      gl.uniformMatrix4fv(program.at.model, false, matrixOf(pose));
      gl.uniform3fv(program.at.size, size);
      if (program.at.color) gl.uniform4fv(program.at.color, color);
      gl.bindVertexArray(geometry.vao);
      gl.drawArrays(gl.TRIANGLES, 0, geometry.count);
    }
  }

  paintGround(view, common) {
    if (view.floor === null) return;
    const gl = this.gl,
      far = 9 * view.radius,
      at = this.ground.at;
    this.begin(this.ground, common);
    gl.uniform1f(at.cell, view.cell);
    gl.uniform1f(at.far, far);
    gl.uniform3fv(at.middle, view.middle);
    const pose = [1, 0, 0, 0, 1, 0, 0, 0, 1, view.middle[0], view.middle[1], view.floor];
    gl.depthMask(false);
    this.drawSolids(this.ground, [
      { geometry: this.plate, pose, size: [2 * far, 2 * far, 1], color: [1, 1, 1, 1] },
    ]);
    gl.depthMask(true);
  }

  paintSky() {
    const gl = this.gl;
    gl.depthMask(false);
    gl.useProgram(this.sky.p);
    gl.bindVertexArray(this.plate.vao);
    gl.drawArrays(gl.TRIANGLES, 0, this.plate.count);
    gl.depthMask(true);
  }

  paintPaths(view, camera) {
    const gl = this.gl;
    gl.useProgram(this.path.p);
    gl.uniformMatrix4fv(this.path.at.camera, false, camera);
    gl.uniform2f(this.path.at.screen, this.canvas.width, this.canvas.height);
    for (const { geometry, color } of view.paths) {
      gl.uniform4fv(this.path.at.color, color);
      gl.bindVertexArray(geometry.vao);
      gl.drawArrays(gl.TRIANGLES, 0, geometry.count);
    }
  }

  project(p) {
    // a point in pixels of the page, or null if it is behind the camera
    const c = this.camera,
      w = c[3] * p[0] + c[7] * p[1] + c[11] * p[2] + c[15];
    if (w <= 0) return null;
    const x = (c[0] * p[0] + c[4] * p[1] + c[8] * p[2] + c[12]) / w,
      y = (c[1] * p[0] + c[5] * p[1] + c[9] * p[2] + c[13]) / w;
    return [((x + 1) / 2) * this.canvas.clientWidth, ((1 - y) / 2) * this.canvas.clientHeight];
  }
}

function boundsOf(positions) {
  const low = [Infinity, Infinity, Infinity],
    high = [-Infinity, -Infinity, -Infinity];
  for (let i = 0; i < positions.length; i++) {
    low[i % 3] = Math.min(low[i % 3], positions[i]);
    high[i % 3] = Math.max(high[i % 3], positions[i]);
  }
  return { low, high };
}
