"""Lane vectors: the number of worlds per vector instruction, the floating-point type, and their LLVM
syntax.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np

WIDTHS = (1, 2, 4, 8, 16)
TYPES = ("float64", "float32")


@dataclass(frozen=True)
class Lanes:
    """A vector of `width` worlds in the type `dtype`, "float64" or "float32"."""

    dtype: str
    width: int

    def __post_init__(self) -> None:
        if self.dtype not in TYPES:
            raise ValueError(f"dtype is {self.dtype!r}; it must be one of {TYPES}")
        if self.width not in WIDTHS:
            raise ValueError(f"the number of lanes is {self.width!r}; it must be one of {WIDTHS}")

    @property
    def bits(self) -> int:
        """Number of bits of one number."""
        return 64 if self.dtype == "float64" else 32

    @property
    def bytes(self) -> int:
        """Number of bytes of a lane vector."""
        return self.width * self.bits // 8

    @property
    def scalar_bytes(self) -> int:
        """Number of bytes of one number."""
        return self.bits // 8

    @cached_property
    def scalar(self) -> str:
        return "double" if self.dtype == "float64" else "float"

    @cached_property
    def real(self) -> str:
        return self.vector(self.scalar)

    @cached_property
    def truth(self) -> str:
        return self.vector("i1")

    @cached_property
    def word(self) -> str:
        """The type of integers as wide as the reals, for operations on their bits."""
        return self.vector(f"i{self.bits}")

    @cached_property
    def suffix(self) -> str:
        """The suffix of an intrinsic's name: v8f64, or f64 for one lane."""
        return f"v{self.width}f{self.bits}" if self.width > 1 else f"f{self.bits}"

    def vector(self, scalar: str) -> str:
        return f"<{self.width} x {scalar}>" if self.width > 1 else scalar

    def kind(self, kind: str) -> str:
        """The LLVM type of a value of a program."""
        return {"real": self.real, "bool": self.truth, "index": "i64"}[kind]

    def splat(self, scalar: str, literal: str) -> str:
        """A constant that is equal in all lanes."""
        return f"splat ({scalar} {literal})" if self.width > 1 else literal

    def number(self, value: float) -> str:
        """A real constant, rounded to the type, in all lanes."""
        return self.splat(self.scalar, self.literal(value))

    def integer(self, value: int) -> str:
        """An integer constant as wide as the reals, modulo its range, in all lanes."""
        return self.splat(f"i{self.bits}", str(value % (1 << self.bits)))

    def literal(self, value: float) -> str:
        """A number in LLVM's lossless notation: the bits of the double of that value."""
        with np.errstate(over="ignore"):
            rounded = float(np.dtype(self.dtype).type(value))
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"

    @property
    def true(self) -> str:
        return self.splat("i1", "true")

    @property
    def false(self) -> str:
        return self.splat("i1", "false")

    @property
    def zero(self) -> str:
        return "zeroinitializer" if self.width > 1 else "0.0"
