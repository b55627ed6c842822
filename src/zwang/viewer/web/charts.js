// Small plots over time, with a vertical line at the present time; a click seeks to the time under
// the pointer.

const COLORS = ["#2f6db3", "#d0632a", "#3f8f5f", "#8a5fb0", "#b58a1d", "#c04a5e", "#4aa0aa", "#6b6f76"];
const ENERGY_COLORS = { kinetic: "#d0632a", potential: "#3f8f5f", total: "#23262b" };

function niceStep(span, pieces) {
  const raw = span / pieces,
    power = 10 ** Math.floor(Math.log10(raw)),
    x = raw / power;
  return (x < 1.5 ? 1 : x < 3.5 ? 2 : x < 7.5 ? 5 : 10) * power;
}

function formatNumber(x, step) {
  const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step))));
  return Math.abs(x) >= 1e5 || (step < 1e-5 && x !== 0)
    ? x.toExponential(1)
    : x.toFixed(digits).replace("-0.0", "\u22120.0").replace("-", "\u2212");
}

class Chart {
  constructor(parent, title, seek) {
    const box = document.createElement("div"),
      head = document.createElement("h2");
    box.className = "chart";
    head.textContent = title;
    this.canvas = document.createElement("canvas");
    this.key = document.createElement("div");
    this.key.className = "key";
    box.append(head, this.canvas, this.key);
    parent.append(box);
    this.lines = [];
    const go = (event) => {
      const r = this.canvas.getBoundingClientRect();
      seek(Math.min(1, Math.max(0, (event.clientX - r.left - this.left) / (r.width - this.left - 4))));
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) go(event);
    });
    this.left = 44;
  }

  show(times, lines) {
    // lines: [{ name, color, values }]
    Object.assign(this, { times, lines, background: null });
    let low = Infinity,
      high = -Infinity;
    for (const { values } of lines)
      for (const x of values) {
        if (x < low) low = x;
        if (x > high) high = x;
      }
    if (!(low <= high)) [low, high] = [0, 1];
    const room = Math.max((high - low) * 0.06, Math.abs(high) * 1e-6, 1e-9);
    Object.assign(this, { low: low - room, high: high + room });
    this.key.replaceChildren(
      ...lines.map(({ name, color }) => {
        const item = document.createElement("span"),
          dot = document.createElement("i");
        dot.className = "dot";
        dot.style.background = color;
        item.append(dot, name);
        item.title = name;
        return item;
      }),
    );
  }

  draw(t) {
    const { canvas, times } = this,
      ratio = window.devicePixelRatio || 1;
    const w = canvas.clientWidth,
      h = canvas.clientHeight;
    if (!w || !times) return;
    if (canvas.width !== Math.round(w * ratio)) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
      this.background = null;
    }
    const c = canvas.getContext("2d");
    const x = (s) =>
      this.left + ((s - times[0]) / (times[times.length - 1] - times[0] || 1)) * (w - this.left - 4);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!this.background) this.background = this.paint(c, x, w, h, ratio);
    else {
      c.setTransform(1, 0, 0, 1, 0, 0);
      c.putImageData(this.background, 0, 0);
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    c.strokeStyle = "#c04a5e";
    c.lineWidth = 1.2;
    c.beginPath();
    c.moveTo(x(t), 3);
    c.lineTo(x(t), h - 16);
    c.stroke();
  }

  paint(c, x, w, h, ratio) {
    const { times, low, high } = this,
      bottom = h - 16;
    const y = (v) => 4 + ((high - v) / (high - low)) * (bottom - 6);
    c.clearRect(0, 0, w, h);
    c.font = "10px system-ui, sans-serif";
    c.lineWidth = 1;
    const step = niceStep(high - low, 3),
      dt = niceStep(times[times.length - 1] - times[0] || 1, 4);
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
      c.strokeStyle = Math.abs(v) < step * 1e-6 ? "#c3c9d1" : "#e8ebef";
      c.beginPath();
      c.moveTo(this.left, y(v));
      c.lineTo(w - 4, y(v));
      c.stroke();
      c.fillStyle = "#69707a";
      c.fillText(formatNumber(Math.abs(v) < step * 1e-6 ? 0 : v, step), this.left - 5, y(v));
    }
    c.textAlign = "center";
    c.textBaseline = "top";
    for (let s = Math.ceil(times[0] / dt) * dt; s <= times[times.length - 1] + 1e-9; s += dt) {
      c.fillText(formatNumber(s, dt), Math.min(x(s), w - 10), bottom + 3);
    }
    for (const { values, color } of this.lines) this.line(c, x, y, values, color);
    return c.getImageData(0, 0, Math.round(w * ratio), Math.round(h * ratio));
  }

  line(c, x, y, values, color) {
    c.strokeStyle = color;
    c.lineWidth = 1.4;
    c.lineJoin = "round";
    c.beginPath();
    let open = false;
    values.forEach((v, k) => {
      if (Number.isNaN(v)) {
        open = false;
        return;
      }
      if (open) c.lineTo(x(this.times[k]), y(v));
      else c.moveTo(x(this.times[k]), y(v));
      open = true;
    });
    c.stroke();
  }
}
