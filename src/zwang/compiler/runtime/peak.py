"""Measurement of the peak floating-point performance of one core, with fused multiply-adds in registers."""

from __future__ import annotations

import ctypes
import time

from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.template_files import fill_template
from zwang.compiler.runtime.processor import MachineCode, host, object_code

CHAINS = 16  # independent chains of operations, which hide the latency of one
ITERATIONS = 200_000


def peak_gflops(dtype: str = "float64", *, repeats: int = 20) -> float:
    """The peak performance of one core [10^9 flops/s]: the best of `repeats` measurements; a multiply-add
    counts two.
    """
    lanes = Lanes(dtype, host().width(dtype))
    code = MachineCode([object_code(peak_text(lanes))], ("peak",))
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(code["peak"])
    sum_buffer = (ctypes.c_char * 256)()
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        run(ITERATIONS, ctypes.addressof(sum_buffer))
        best = min(best, time.perf_counter() - begin)
    return 2 * CHAINS * lanes.width * ITERATIONS / best / 1e9


def peak_text(lanes: Lanes) -> str:
    """The LLVM text of the function `peak(iterations, address of the sum)`."""
    real, fma = lanes.real, f"@llvm.fma.{lanes.suffix}"
    chains = range(CHAINS)
    return fill_template(
        "peak",
        real=real,
        fma=fma,
        real_bytes=lanes.scalar_bytes,
        initial_values="\n".join(
            f"  %x{n} = phi {real} [ {lanes.number(1.0 + n / 8)}, %entry ], [ %y{n}, %iteration ]"
            for n in chains
        ),
        multiply_adds="\n".join(
            f"  %y{n} = call {real} {fma}({real} %x{n}, {real} {lanes.number(0.5)}, "
            f"{real} {lanes.number(0.25)})"
            for n in chains
        ),
        sums="\n".join(
            f"  %s{n + 1} = fadd {real} {f'%s{n}' if n else '%y0'}, %y{n + 1}" for n in range(CHAINS - 1)
        ),
        total=f"%s{CHAINS - 1}",
    )
