// A camera that orbits a target: dragging rotates it, dragging with the right button or Shift pans it,
// the wheel or a pinch zooms.

class OrbitCamera {
  constructor(canvas, changed) {
    Object.assign(this, { azimuth: -1.05, height: 0.3, distance: 3, target: [0, 0, 0], angle: 0.7, changed });
    this.pointers = new Map();
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      this.pointers.set(e.pointerId, e);
    });
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, (e) => this.pointers.delete(e.pointerId));
    canvas.addEventListener("pointermove", (e) => this.dragged(e, canvas));
    canvas.addEventListener("contextmenu", (e) => e.preventDefault());
    canvas.addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        this.distance *= Math.exp(0.0012 * e.deltaY * (e.deltaMode ? 16 : 1));
        changed();
      },
      { passive: false },
    );
  }

  get eye() {
    const c = Math.cos(this.height),
      d = this.distance,
      [x, y, z] = this.target;
    return [
      x + d * c * Math.cos(this.azimuth),
      y + d * c * Math.sin(this.azimuth),
      z + d * Math.sin(this.height),
    ];
  }

  dragged(event, canvas) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.clientX,
      dy = event.clientY - before.clientY;
    if (this.pointers.size === 2) this.pinched(event, before);
    if (this.pointers.size === 2 || event.buttons & 2 || event.shiftKey)
      this.shift(dx, dy, canvas.clientHeight);
    else {
      this.azimuth -= 0.008 * dx;
      this.height = Math.min(1.5, Math.max(-1.2, this.height + 0.008 * dy));
    }
    this.pointers.set(event.pointerId, event);
    this.changed();
  }

  pinched(event, before) {
    const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, e]) => e);
    const apart = (e) => Math.hypot(e.clientX - other.clientX, e.clientY - other.clientY);
    this.distance *= apart(before) / Math.max(apart(event), 1);
  }

  shift(dx, dy, height) {
    const back = unit(minus(this.eye, this.target)),
      right = unit(cross([0, 0, 1], back)),
      up = cross(back, right);
    const s = (2 * this.distance * Math.tan(this.angle / 2)) / height;
    this.target = this.target.map((t, i) => t - s * dx * right[i] + s * dy * up[i]);
  }

  fit({ low, high }, aspect) {
    this.target = low.map((x, i) => (x + high[i]) / 2);
    const r = 0.5 * Math.hypot(...minus(high, low));
    this.distance = (0.94 * r) / Math.sin(this.angle / 2) / Math.min(1, aspect * 0.95);
  }
}
