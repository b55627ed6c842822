"""Machine code: memory with little free space, forking processes, and a cache with exchanged files."""

from __future__ import annotations

import contextlib
import copy
import os
import platform
import sys
import threading
from functools import partial

import pytest

import zwang as zw
from tests.faults.processes import run
from zwang.errors import SimulationError
from zwang.mechanism.samples import FURUTA, furuta


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="fills the address space as Linux lays it out",
)
def test_code_whose_sections_are_far_apart_is_linked() -> None:
    """Only a small gap is free near the libraries and the next free memory is 6 GB below, so that constants
    and code would be far apart.
    """
    output = run("""
        import ctypes, gc
        from zwang.compiler.runtime.processor import MachineCode, host, object_code

        rows = "\\n".join(f"  %x{k} = fadd double %x{k - 1}, %x{max(0, k - 7)}" for k in range(1, 60000))
        table = ", ".join(f"double {k / 7!r}" for k in range(64))
        binary = object_code(f'''
        @t = internal constant [64 x double] [{table}]
        define double @f(double %x0, i64 %i) {{
        {rows}
          %p = getelementptr double, ptr @t, i64 %i
          %y = load double, ptr %p
          %r = fadd double %y, %x59999
          ret double %r
        }}''')
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        PRIVATE, NO_RESERVE, NO_REPLACE = 0x22, 0x4000, 0x100000
        gc.disable()
        rooms = [tuple(int(x, 16) for x in row.split()[0].split("-")) for row in open("/proc/self/maps")]
        rooms = [room for room in rooms if 0x7E0000000000 < room[0] < 0x7FFFFF000000]
        is_left = False
        gaps = [(low[1], high[0] - low[1]) for low, high in zip(rooms, rooms[1:])]
        for begin, size in [*gaps, (rooms[0][0] - (6 << 30), 6 << 30)]:
            if not is_left and size >= 1 << 16:
                size, is_left = size - (1 << 16), True
            if size:
                libc.mmap(begin, size, 0, PRIVATE | NO_RESERVE | NO_REPLACE, -1, 0)
        code = MachineCode([binary], ("f",))
        print(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(code["f"])(0.0, 14))
    """)
    assert output == "2.0\n"


def test_invalid_code_is_an_error_and_released() -> None:
    run("""
        import gc
        from zwang.compiler.runtime.processor import object_code
        from zwang.errors import CompileError

        text = "define i64 @f(i1 %c) {\\n  br i1 %c, label %a, label %b\\n"
        text += "a:\\n  %x = add i64 1, 2\\n  br label %b\\nb:\\n  ret i64 %x\\n}\\n"
        for _ in range(20):
            try:
                object_code(text)
            except CompileError as error:
                assert "dominate" in str(error)
            else:
                raise AssertionError
            gc.collect()
    """)


def test_a_thread_compiles_after_the_main_thread_has_ended() -> None:
    output = run("""
        import threading
        from zwang.compiler.runtime.processor import object_codes

        texts = [f"define i64 @f{k}() {{\\n  ret i64 {k}\\n}}\\n" for k in range(3)]


        def work():
            threading.main_thread().join()
            print(len(object_codes(texts)))


        threading.Thread(target=work).start()
    """)
    assert output == "3\n"


def test_worlds_are_changed_by_one_thread_at_a_time() -> None:
    """Calls during a call of another thread are refused, and no step is lost."""
    worlds = zw.Worlds(furuta(**FURUTA), 32, step=1e-3)
    serial, others = copy.copy(worlds), copy.copy(worlds)
    done: list[int] = []
    refused: set[str] = set()

    def step(substeps: int) -> None:
        worlds.step(substeps=substeps)
        done.append(substeps)

    def work() -> None:
        while len(refused) < 2:
            with contextlib.suppress(SimulationError):
                step(1000)

    thread = threading.Thread(target=work)
    thread.start()
    while len(refused) < 2:
        for name, call in {"step": partial(step, 1), "set": worlds.set}.items():
            try:
                call()
            except SimulationError as error:
                assert "another thread steps these worlds" in str(error)
                refused.add(name)
        others.step()
    thread.join()
    serial.step(substeps=sum(done))
    assert round(worlds.time[0] / 1e-3) == sum(done)
    assert worlds.q.tobytes() == serial.q.tobytes() and worlds.v.tobytes() == serial.v.tobytes()


@pytest.mark.skipif(not hasattr(sys, "setdlopenflags"), reason="forks of POSIX")
def test_a_child_forked_while_threads_compile_can_compile() -> None:
    run("""
        import os, signal, threading, time
        import numpy as np
        import zwang as zw
        from zwang.mechanism.samples import FURUTA, furuta

        os.environ["ZWANG_CACHE"] = "off"
        q = [0.1, 0.2]
        stop = False
        zw.simulate(furuta(), duration=0.01, params=FURUTA, progress=False)
        expected = zw.mass_matrix(furuta(**{**FURUTA, "m_p": 5.0}), q)


        def work(n):
            k = 0
            while not stop:
                k += 1
                zw.compile(furuta(**{**FURUTA, "m_p": 0.02 + 0.001 * k + n})).forward_dynamics(q, q, q)


        threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        states = []
        for k in range(8):
            time.sleep(0.11)
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(60)
                if k == 0:
                    zw.simulate(furuta(), duration=0.01, params={**FURUTA, "m_p": 0.5}, progress=False)
                found = zw.compile(furuta(**{**FURUTA, "m_p": 5.0})).mass_matrix(q)
                os._exit(0 if np.allclose(found, expected, rtol=1e-12) else 1)
            states.append(os.waitpid(child, 0)[1])
        stop = True
        for thread in threads:
            thread.join()
        assert not any(states), states
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of POSIX")
def test_a_child_forked_while_a_thread_makes_its_first_call_can_make_its_own() -> None:
    run("""
        import os, signal, sys, threading, time
        import zwang as zw
        from zwang.mechanism.samples import FURUTA, furuta

        begun = threading.Event()


        class SlowFinder:  # of SymPy, which the first call imports
            def find_spec(name, path, target=None):
                if name == "sympy":
                    begun.set()
                    time.sleep(0.5)


        sys.meta_path.insert(0, SlowFinder)
        thread = threading.Thread(target=furuta, kwargs=FURUTA)
        thread.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            furuta(**FURUTA)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        thread.join()
    """)
