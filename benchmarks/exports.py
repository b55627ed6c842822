"""Exported steps: time, code size and stack of C99 code, of WebAssembly, and of zwang's own machine code.

    python benchmarks/exports.py
    python benchmarks/exports.py --fmu humanoid.xml
    python benchmarks/exports.py --page

Needs a C compiler with -fstack-usage (gcc), `size` of the binutils, node, and `pip install '.[test,export]'`.
One world falls or swings from its initial state without control; times are medians of 11 runs. With --fmu the
mechanism of a file falls as an FMU in FMPy, in co-simulation and in model exchange, beside zwang's own run.
With --page a page simulates the Furuta pendulum again in Chromium, after a change of a parameter.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

import zwang as zw
from zwang.mechanism.samples import FURUTA, furuta

STEPS, RUNS = 2000, 11
MODELS = Path(__file__).parents[1] / "examples" / "models"
CASES = {
    "Furuta pendulum": (lambda: furuta(**FURUTA), {"alpha": 0.3}),
    "quadruped, contacts": (lambda: zw.load(MODELS / "quadruped.xml"), {"root.z": 0.45}),
}
TIMER = """
#include "model.h"
#include <stdio.h>
#include <time.h>
static model_state state;
int main(void)
{{
    static const double control[MODEL_NU + 1];
    for (int run = 0; run < {runs}; ++run) {{
        struct timespec a, b;
        model_initial_state(&state);
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int k = 0; k < {steps}; ++k) model_step(&state, control);
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("%.17g\\n", (b.tv_sec - a.tv_sec) * 1e6 + (b.tv_nsec - a.tv_nsec) * 1e-3);
    }}
    printf("%a %d %zu\\n", state.q[0], state.status, sizeof state);
}}
"""
SCRIPT = """
import fs from "node:fs";
import {{ load, layout }} from "./model.mjs";
const world = await load(fs.readFileSync("model.wasm"));
for (let run = 0; run < {runs}; ++run) {{
  world.reset();
  const start = performance.now();
  world.step({steps});
  console.log((performance.now() - start) * 1e3);
}}
"""


def run(command: str, folder: Path) -> str:
    return subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True, text=True).stdout


def compare_fmu(path: Path, duration: float, exchanged: float) -> None:
    """Export the mechanism of a file as an FMU, and compare its motions in FMPy with those of zwang.

    duration, exchanged: of the co-simulation and of the model exchange [s].
    """
    import fmpy  # noqa: PLC0415
    from fmpy.fmi3 import FMU3Model  # noqa: PLC0415
    from fmpy.validation import validate_fmu  # noqa: PLC0415

    from tests.interop.test_fmi import Unit  # noqa: PLC0415

    m = zw.load(path)
    h = m.options.timestep
    names = [f"q.{name}" for name in m.coordinate_names] + [f"v.{name}" for name in m.speed_names]
    with tempfile.TemporaryDirectory() as name:
        fmu, began = Path(name) / "model.fmu", time.perf_counter()
        zw.export(m, fmu)
        print(f"FMU of {fmu.stat().st_size / 1000:.0f} kB, written in {time.perf_counter() - began:.0f} s")
        print(f"the validator reports: {validate_fmu(str(fmu)) or 'nothing'}")
        began = time.perf_counter()
        found = fmpy.simulate_fmu(
            str(fmu),
            fmi_type="CoSimulation",
            stop_time=duration,
            output=names,
            output_interval=h,
            step_size=h,
        )
        seconds = time.perf_counter() - began
        own = zw.simulate(m, duration=duration)
        expected = np.concatenate([own.q.values[0], own.v.values[0]], axis=-1)
        states = np.stack([found[name] for name in names], axis=-1)
        print(
            f"co-simulation: {len(states)} states in {seconds:.2f} s, equal bits: "
            f"{np.array_equal(states, expected)}, the greatest difference {abs(states - expected).max():.1e}"
        )
        unit = Unit(fmu, FMU3Model).start()
        initial = np.concatenate([unit.named(kind) for kind in ("q.", "v.", "activation.")])
        tight = {"rtol": 1e-12, "atol": 1e-13}
        motion = solve_ivp(unit.derivatives, (0, exchanged), initial, "DOP853", **tight)
        last = motion.y[: m.nq + m.nv, -1]
        for joint in m.joints:
            if joint.kind in ("ball", "free"):  # zwang's states have unit quaternions
                part = slice(joint.q.stop - 4, joint.q.stop)
                last[part] /= np.linalg.norm(last[part])
        own = zw.simulate(m, duration=exchanged, step=h, integrator=zw.Adaptive("dop853", **tight))
        expected = np.concatenate([own.q.values[0, -1], own.v.values[0, -1]])
        print(
            f"model exchange: {motion.nfev} derivatives in {exchanged} s, the greatest difference "
            f"{abs(last - expected).max():.1e}"
        )


def time_page(steps: int = 10_000) -> None:
    """Print the shortest time of a new simulation in a page, and its largest difference to zwang's own."""
    from tests.viewer.chromium import Browser  # noqa: PLC0415

    set_mass = """(() => {{
      const {{ bar }} = zwang.simulation.rows.find((row) => row.slider.name === 'm_p');
      bar.value = {mass};
      bar.dispatchEvent(new Event('input'));
      bar.dispatchEvent(new Event('change'));
    }})(); zwang.simulation.update()"""
    for integrator in ("euler", "implicitfast", "rk4"):
        settings = {"duration": steps * 1e-3, "step": 1e-3, "integrator": integrator, "control": 0.002}
        run = zw.simulate(furuta(), {"alpha": 0.3}, params=FURUTA, **settings)
        with tempfile.TemporaryDirectory() as name:
            page = Path(name) / "page.html"
            zw.save_html(run, page, resimulate=True)
            browser = Browser(Path(name) / "profile")
            browser.open(page.as_uri() + "#t=0")
            browser.until("zwang.simulation.drawn !== undefined")
            times = []
            for k in range(RUNS):
                browser.run(set_mass.format(mass=0.03 + 1e-3 * k))
                note = str(browser.run("zwang.simulation.note.textContent"))
                times.append(float(re.search(r"steps in ([\d.]+) ms", note)[1]))
            found = browser.run("({ q: Array.from(zwang.playback.q), steps: zwang.simulation.data.steps })")
            browser.close()
        last = FURUTA | {"m_p": 0.03 + 1e-3 * (RUNS - 1)}
        again = zw.simulate(furuta(), {"alpha": 0.3}, params=last, **settings)
        expected = again.q.values[0, found["steps"]]
        error = np.abs(np.reshape(found["q"], expected.shape) - expected).max()
        print(f"{steps} steps of {integrator} in the page: {min(times):.1f} ms, difference {error:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fmu", type=Path, help="a file whose mechanism falls as an FMU")
    parser.add_argument("--page", action="store_true", help="a page that simulates again, in Chromium")
    options = parser.parse_args()
    if options.page:
        return time_page()
    if options.fmu is not None:
        return compare_fmu(options.fmu, 1.5, 0.15)
    for title, (make, q0) in CASES.items():
        m = make()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            zw.export(m, folder, name="model", functions=["step"], q0=q0)
            (folder / "timer.c").write_text(TIMER.format(steps=STEPS, runs=RUNS))
            flags = "-O2 -std=gnu99 -march=native -ffp-contract=off -fstack-usage"
            start = time.perf_counter()
            run(f"gcc {flags} -c model.c && gcc {flags} timer.c model.o -o timer -lm", folder)
            compiling = time.perf_counter() - start
            *c, last = run("./timer", folder).split("\n")[: RUNS + 1]
            zw.export(m, folder / "model.wasm", name="model", functions=["step"], q0=q0)
            (folder / "timer.mjs").write_text(SCRIPT.format(steps=STEPS, runs=RUNS))
            node = run("node timer.mjs", folder).split()
            stack = sum(int(row.split("\t")[1]) for row in (folder / "model.su").read_text().splitlines()
                        if re.search(r"model_step(_program[.\w]*)?\t", row))  # fmt: skip
            stated = int(re.search(r"MODEL_STEP_STACK (\d+)", (folder / "model.h").read_text())[1])
            text = int(run("size model.o", folder).split("\n")[1].split()[0])
            fast = zw.compile(m)
            initial = np.array(m.home or m.neutral, float)
            for coordinate, value in (q0 or {}).items():
                initial[m.coordinate_names.index(coordinate)] = value
            own = []
            for _ in range(RUNS):
                start = time.perf_counter()
                control = np.zeros(len(m.inputs) or m.nv)
                fast.rollout(initial, np.zeros(m.nv), control, steps=STEPS, every=STEPS)
                own.append((time.perf_counter() - start) * 1e6)
            first, status, size = last.split()
            simulated = zw.simulate(m, q0, duration=STEPS * m.options.timestep).q.values[0, -1]
            assert float.fromhex(first) == simulated[0] and status == "0", (first, simulated[0])
            c_time, wasm_time, own_time = (
                statistics.median(map(float, x)) / STEPS for x in (c, node, own)
            )  # fmt: skip
            wasm = (folder / "model.wasm").stat().st_size
        print(
            f"| {title} | {own_time:.2f} | {c_time:.2f} | {wasm_time:.2f} | {text / 1000:.0f} "
            f"| {wasm / 1000:.0f} | {int(size) / 1000:.2f} | {stack} | {stated} | {compiling:.1f} |"
        )


if __name__ == "__main__":
    main()
