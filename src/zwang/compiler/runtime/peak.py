"""What a core can do at most: fused multiply-adds on registers, as many at a time as the processor takes."""

from __future__ import annotations

import ctypes
import time

from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.runtime.processor import MachineCode, assemble, host

CHAINS = 16  # independent sums, to hide the delay of one operation
TURNS = 200_000


def peak_gflops(dtype: str = "float64", *, repeats: int = 20) -> float:
    """Greatest measured 10^9 operations a second of one core, a multiply-add counting as two."""
    lanes = Lanes(dtype, host().width(dtype))
    code = MachineCode(assemble(peak_text(lanes)), ("peak",))
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(code["peak"])
    room = (ctypes.c_char * 256)()
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        run(TURNS, ctypes.addressof(room))
        best = min(best, time.perf_counter() - begin)
    return 2 * CHAINS * lanes.width * TURNS / best / 1e9


def peak_text(lanes: Lanes) -> str:
    """LLVM text of `peak(turns, where to store the sum)`."""
    real, fma = lanes.real, f"@llvm.fma.{lanes.suffix}"
    size = lanes.bits // 8
    starts = [
        f"  %x{n} = phi {real} [ {lanes.number(1.0 + n / 8)}, %entry ], [ %y{n}, %turn ]"
        for n in range(CHAINS)
    ]
    steps = [
        f"  %y{n} = call {real} {fma}({real} %x{n}, {real} {lanes.number(0.5)}, {real} {lanes.number(0.25)})"
        for n in range(CHAINS)
    ]
    sums = [f"  %s{n + 1} = fadd {real} {f'%s{n}' if n else '%y0'}, %y{n + 1}" for n in range(CHAINS - 1)]
    return "\n".join(
        [
            f"declare {real} {fma}({real}, {real}, {real})",
            'define void @peak(i64 %turns, ptr %out) "prefer-vector-width"="512" {',
            "entry:\n  br label %turn",
            "turn:",
            "  %n = phi i64 [ 0, %entry ], [ %n1, %turn ]",
            *starts,
            *steps,
            "  %n1 = add i64 %n, 1",
            "  %on = icmp ult i64 %n1, %turns",
            "  br i1 %on, label %turn, label %end",
            "end:",
            *sums,
            f"  store {real} %s{CHAINS - 1}, ptr %out, align {size}",
            "  ret void\n}\n",
        ]
    )
