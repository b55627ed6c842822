"""Exported steps: time, code size and stack of C99 code, of WebAssembly, and of zwang's own machine code.

    python benchmarks/exports.py

Needs a C compiler with -fstack-usage (gcc), `size` of the binutils, node, and `pip install '.[test,export]'`.
One world falls or swings from its initial state without control; times are medians of 11 runs.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

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


def main() -> None:
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
