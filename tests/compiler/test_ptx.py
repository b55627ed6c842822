"""PTX of programs: the rounding of all operations, and text that the assembler of NVIDIA accepts."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.compiler.elementary_cases import HYPERBOLIC, INVERSE, program_of
from tests.compiler.random_functions import SIZE, random_function
from zwang.compiler.backends.ptx import ptx
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.program import Block, Instruction, Port, Program
from zwang.compiler.passes.expand import expand
from zwang.compiler.pipeline import optimise
from zwang.errors import CompileError

TYPES = ("float64", "float32")
PROGRAMS = {
    "circular": program_of("sin", "cos", "tan"),
    "others": program_of("exp", "log", "asin", "acos"),
    "hyperbolic": program_of(*HYPERBOLIC, *INVERSE),
    "pairs": program_of("pow", "atan2"),
    **{f"random {seed}": optimise(trace(random_function(seed, 8), {"x": (SIZE,)})) for seed in range(3)},
}


@pytest.mark.needs("ptxas")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_assembler_accepts_the_text(name: str, dtype: str, tmp_path: Path) -> None:
    source = tmp_path / "program.ptx"
    source.write_text(ptx(PROGRAMS[name], dtype))
    command = ["ptxas", "-arch=sm_80", str(source), "-o", str(tmp_path / "program.cubin")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "program.cubin").stat().st_size > 0


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_operation_is_rounded_to_nearest_and_none_is_fused_or_flushed(name: str, dtype: str) -> None:
    text = ptx(PROGRAMS[name], dtype)
    kind = "f64" if dtype == "float64" else "f32"
    arithmetic = re.findall(rf"\b((?:add|sub|mul|fma|div|rcp|sqrt|mad)\S*\.{kind})", text)
    assert arithmetic and all(re.fullmatch(rf"\w+\.rn\.{kind}", op) for op in arithmetic)
    assert ".ftz" not in text and ".approx" not in text
    ops = Counter(_ops(expand(PROGRAMS[name], dtype).body))
    assert arithmetic.count(f"fma.rn.{kind}") <= ops["fma"] + ops["fms"] + ops["fnma"]


def _ops(block: Block) -> list[str]:
    names = [instruction.op for instruction in block.instructions]
    for instruction in block.instructions:
        for field in ("condition", "body", "then", "otherwise"):
            inner = getattr(instruction.data, field, None)
            names += _ops(inner) if isinstance(inner, Block) else []
    return names


def test_the_kernel_has_a_pointer_and_two_strides_per_port_and_the_number_of_worlds() -> None:
    ports = (Port("a", 2), Port("nothing", 0), Port("b", 1)), (Port("c", 2),)
    instructions = (
        Instruction("input", (), (0,), (0, 1)),
        Instruction("input", (), (1,), (2, 0)),
        Instruction("add", (0, 1), (2,)),
    )
    program = Program(*ports, Block((), instructions, (2, 0)), dict.fromkeys(range(3), "real"), {})
    text = ptx(program)
    head = text[text.index(".entry zwang(") : text.index("{")]
    assert head.count(".param") == 3 * 3 + 1
    assert text.count("ld.global") == 2 and text.count("st.global") == 2


def test_names_never_enter_the_text() -> None:
    evil = 'x"; .entry evil() {'
    program = optimise(trace(lambda x: {evil: [x[0] * 2]}, {evil: (1,)}))
    assert "evil" not in ptx(program)


def test_an_unknown_architecture_is_rejected() -> None:
    with pytest.raises(CompileError, match="sm_80"):
        ptx(PROGRAMS["pairs"], arch="sm_80; rm")
