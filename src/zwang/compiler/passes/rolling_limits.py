"""The limits from which on repeated code becomes a loop."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RollingLimits:
    """From which size on the pass `loop_rolling` changes a program. Below these limits straight-line code,
    whose values stay in registers, is as fast, and compiles quickly.

    smallest_program, smallest_block: the least number of instructions of a program and of a block in which
    repetition is sought: that of a humanoid is left as it is in every block. largest_bound: the largest lower
    bound of the size of the result, relative to the program, with which loops are written at all.
    largest_ratio: the largest size of the result with which it replaces the program. fewest_components: of
    one loop. least_saving: the least number of instructions that a loop saves. shortest_reduction: the least
    number of links of a chain that is a loop of its own; the dot products of the equations of one body are
    shorter.
    many_uses: a number with more uses is used by many components, and does not connect them. many_numbers:
    the least number of numbers that pass between blocks in an array; a block of a matrix with 36 entries
    stays in registers. few_numbers: the least number of numbers that a block reads from arrays in which they
    are already.
    """

    smallest_program: int = 4000
    smallest_block: int = 200
    largest_bound: float = 0.7
    largest_ratio: float = 0.85
    fewest_components: int = 8
    least_saving: int = 40
    shortest_reduction: int = 24
    many_uses: int = 40
    many_numbers: int = 64
    few_numbers: int = 8


LIMITS = RollingLimits()
