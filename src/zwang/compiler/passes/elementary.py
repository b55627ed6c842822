"""Elementary functions as sequences of basic operations, so that every back end gives the same bits.

Each is right to 2 units in the last place, for any argument; the tests measure it. A function here takes and gives
terms of a page. Coefficients: `coefficients.py`; the ways of reducing arguments are the usual ones:

    sin cos tan     x = k pi/2 + r, pi/2 in three parts (Cody and Waite); huge x: 2/pi in many (Payne and Hanek)
    exp             x = k ln 2 + r
    log             x = 2^e m, sqrt(1/2) <= m < sqrt(2); log m by its series in s = (m-1)/(m+1)
    pow             exp(y log x) with log x as a sum of two numbers
    atan2           the ratio n/d at most 1; above 1/2, (n-d)/(n+d) and pi/4
    asin acos       above 1/2, by the half-angle
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from zwang.compiler.passes.coefficients import TABLES
from zwang.compiler.passes.program_builder import (
    Operand,
    ProgramBuilder,
    copysign,
    floor,
    fma,
    fms,
    fnma,
    polynomial,
    select,
    sqrt,
    table,
)

TWO_OVER_PI = 2 / math.pi


@dataclass(frozen=True)
class Format:
    """What the functions must know of a floating-point type."""

    fraction: int  # bits stored of the significand
    bias: int
    code: str  # of the struct module: the number, and its bits
    plain_turns: float  # |x| up to which sin x is reduced by pi/2 in three parts
    split: tuple[float, float]  # above the first, Payne and Hanek scale by the second
    exp_range: tuple[float, float]  # outside, exp is 0 or infinite

    @property
    def rounder(self) -> float:
        """Adding it rounds to an integer, whose last bits are then those of the sum."""
        return 1.5 * 2.0**self.fraction

    def bits(self, value: float) -> int:
        return struct.unpack("<" + self.code[1], struct.pack("<" + self.code[0], value))[0]


FORMATS = {
    "float64": Format(52, 1023, "dQ", 2.0**30, (2.0**512, 2.0**-512), (-746.0, 710.0)),
    "float32": Format(23, 127, "fI", 2.0**13, (2.0**32, 2.0**-64), (-104.0, 89.0)),
}


class Reduced(NamedTuple):
    """x = (an integer, rounder + it being `turns`) * pi/2 + angle, |angle| <= pi/4; `rest` is angle's rounding error."""

    turns: Operand
    angle: Operand
    rest: Operand | None = None


# -------------------------------------------------------------------------------- sin, cos, tan


def reduce_plain(x: Operand, *, with_rest: bool) -> Reduced:
    """For |x| up to the format's `plain_turns`; NaN for NaN and infinity."""
    rounder = FORMATS[x.page.dtype].rounder
    first, second, third = TABLES[x.page.dtype]["HALF_PI"]
    turns = fma(x, TWO_OVER_PI, rounder)
    k = turns - rounder
    once = fnma(k, first, x)
    if not with_rest:
        return Reduced(turns, fnma(k, third, fnma(k, second, once)))
    product = k * second
    twice, lost = _two_sum(once, -product)
    lost = fnma(k, third, lost - fms(k, second, product))
    angle, rest = _add_smaller(twice, lost)
    return Reduced(turns, select(x.equals(0.0), x, angle), rest)


def is_huge(x: Operand) -> Operand:
    return abs(x) > FORMATS[x.page.dtype].plain_turns


def reduce_huge(x: Operand, *, with_rest: bool) -> Reduced:
    """For any x: multiplies by 2/pi piece by piece, and drops multiples of 4 turns as they come.

    The sum is kept in three numbers, because what is left of it may be as small as 2**-61.
    """
    page, form, tables = x.page, FORMATS[x.page.dtype], TABLES[x.page.dtype]
    plain, scaled = tables["TWO_OVER_PI"], tables["TWO_OVER_PI_SCALED"]
    zero = page.number(0.0)

    def add_piece(j: Operand, carry: list[Operand], captured: list[Operand]) -> list[Operand]:
        y, is_scaled = captured
        piece = select(is_scaled, table(scaled, j), table(plain, j))
        high = y * piece
        low = fms(y, piece, high)
        return _accumulate(_accumulate(carry, _modulo_4(high)), _modulo_4(low))

    is_scaled = abs(x) > form.split[0]
    y = select(is_scaled, x * form.split[1], x)
    s0, s1, s2 = page.loop(len(plain), [zero, zero, zero], [y, is_scaled], add_piece)
    turns = s0 + form.rounder
    high, low = _two_sum(s0 - (turns - form.rounder), s1)
    low = low + s2
    first, second, _ = tables["HALF_PI"]
    correction = fma(high, second, low * first)
    if not with_rest:
        return Reduced(turns, fma(high, first, correction))
    product = high * first
    return Reduced(turns, *_add_smaller(product, fms(high, first, product) + correction))


def _modulo_4(a: Operand) -> Operand:
    """Of a's sign, so that nothing is ever rounded."""
    size = abs(a)
    return copysign(fnma(floor(size * 0.25), 4.0, size), a)


def _two_sum(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """a + b and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _accumulate(sums: list[Operand], a: Operand) -> list[Operand]:
    s0, error = _two_sum(sums[0], a)
    s1, error = _two_sum(sums[1], error)
    return [s0, s1, sums[2] + error]


class Circular:
    """sin, cos and tan of one angle; what they share is written once."""

    def __init__(self, reduced: Reduced):
        self.turns, self.angle, self.rest = reduced
        self.tables = TABLES[self.angle.page.dtype]

    def sin(self) -> Operand:
        value = select(self.odd, self._near_cos, self._near_sin)
        return select(self.half, -value, value)

    def cos(self) -> Operand:
        value = select(self.odd, self._near_sin, self._near_cos)
        return select(self.odd ^ self.half, -value, value)

    def tan(self) -> Operand:
        """sin/cos, both with their rounding errors. Needs the angle's rest."""
        assert self.rest is not None
        one, r = self.angle.page.number(1.0), self.angle
        sin, sin_low = _add_smaller(r, r * (self.square * self._sin_series))
        cos, cos_low = _add_smaller(one, self.square * self._cos_series)
        sin_low, cos_low = fma(self.rest, cos, sin_low), fnma(self.rest, sin, cos_low)
        top, top_low = select(self.odd, -cos, sin), select(self.odd, -cos_low, sin_low)
        base, base_low = select(self.odd, sin, cos), select(self.odd, sin_low, cos_low)
        inverse = one / base
        ratio = top * inverse
        left = fnma(ratio, base, top) + fnma(ratio, base_low, top_low)
        return select(r.equals(0.0), r, fma(left, inverse, ratio))

    @cached_property
    def odd(self) -> Operand:
        return self.turns.bit(0)

    @cached_property
    def half(self) -> Operand:
        return self.turns.bit(1)

    @cached_property
    def square(self) -> Operand:
        return self.angle * self.angle

    @cached_property
    def _sin_series(self) -> Operand:
        """(sin(r)/r - 1) / r^2."""
        return polynomial(self.square, self.tables["SIN"])

    @cached_property
    def _cos_series(self) -> Operand:
        """(cos(r) - 1) / r^2."""
        return polynomial(self.square, self.tables["COS"])

    @cached_property
    def _near_sin(self) -> Operand:
        value = fma(self.angle, self.square * self._sin_series, self.angle)
        return copysign(value, self.angle)  # matters for -0 only

    @cached_property
    def _near_cos(self) -> Operand:
        return fma(self.square, self._cos_series, 1.0)


def _add_smaller(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """a + b and its rounding error, for |a| >= |b|."""
    total = a + b
    return total, (a - total) + b


# ------------------------------------------------------------------------------ exp, log, pow


def exp(x: Operand) -> Operand:
    low, high = FORMATS[x.page.dtype].exp_range
    x = select(x > high, high, x)
    x = select(x < low, low, x)
    return _exp_of_sum(x, None)


def _exp_of_sum(x: Operand, rest: Operand | None) -> Operand:
    """exp(x + rest), for x within the range and a small rest."""
    dtype = x.page.dtype
    rounder = FORMATS[dtype].rounder
    first, second, _ = TABLES[dtype]["LN2"]
    k = fma(x, 1 / math.log(2), rounder) - rounder
    r = fnma(k, second, fnma(k, first, x))
    if rest is not None:
        r = r + rest
    near = fma(r * r, polynomial(r, TABLES[dtype]["EXP"]), r) + 1.0
    half = floor(k * 0.5)  # in two steps: 2**k alone may be out of range
    return near * _power_of_two(half) * _power_of_two(k - half)


def _power_of_two(k: Operand) -> Operand:
    """2**k, for an integer k for which that is a normal number."""
    form = FORMATS[k.page.dtype]
    return (k + (form.rounder + form.bias)).on_bits("shift_left", form.fraction)


class Split(NamedTuple):
    """x = 2**exponent * (1 + excess), sqrt(1/2) <= 1 + excess < sqrt(2)."""

    exponent: Operand
    excess: Operand


def _split(x: Operand) -> Split:
    """For a positive, finite x."""
    form = FORMATS[x.page.dtype]
    tiny = x < 2.0 ** (1 - form.bias)
    lift = form.fraction + 2
    y = select(tiny, x * 2.0**lift, x)
    root = form.bits(math.sqrt(0.5))
    above = y.on_bits("bit_add", form.bits(1.0) - root)
    ones = 2.0**form.fraction
    stored = above.on_bits("shift_right", form.fraction).on_bits("bit_or", form.bits(ones))
    exponent = stored - select(tiny, ones + form.bias + lift, ones + form.bias)
    fraction = above.on_bits("bit_and", (1 << form.fraction) - 1).on_bits("bit_add", root)
    return Split(exponent, fraction - 1.0)


def log(x: Operand) -> Operand:
    tables = TABLES[x.page.dtype]
    first, second, _ = tables["LN2"]
    e, f = _split(x)
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    tail = s * fma(z, polynomial(z, tables["LOG"]), half_square)  # log(1+f) = f - (half_square - tail)
    value = fma(e, first, f - (half_square - fma(e, second, tail)))
    ordinary = (x > 0.0) & (x < math.inf)
    extreme = select(x.equals(0.0), -math.inf, select(x.equals(math.inf), math.inf, math.nan))
    return select(ordinary, value, extreme)


def _log_in_two(x: Operand) -> tuple[Operand, Operand]:
    """log x for a positive, finite x as a sum of two numbers, right to about 2**-64 (float32: 2**-33) of itself."""
    tables = TABLES[x.page.dtype]
    first, second, _ = tables["LN2"]
    two_thirds, two_thirds_low = tables["TWO_THIRDS"]
    e, f = _split(x)
    base = f + 2.0
    base_low = f - (base - 2.0)
    s = f / base
    s_low = fnma(s, base_low, fnma(s, base, f)) / base
    z = s * s
    z_low = fma(s * s_low, 2.0, fms(s, s, z))
    q, q_low = _add_smaller(x.page.number(two_thirds), z * polynomial(z, tables["LOG_TAIL"]))
    w, w_low = _times((z, z_low), (q, q_low + two_thirds_low))
    v, v_low = _add_smaller(x.page.number(2.0), w)
    m, m_low = _times((s, s_low), (v, v_low + w_low))
    high, low = _add_smaller(e * first, m)
    return high, low + fma(e, second, m_low)


def _times(a: tuple[Operand, Operand], b: tuple[Operand, Operand]) -> tuple[Operand, Operand]:
    """The product of two numbers, each a sum of two."""
    high = a[0] * b[0]
    return high, fms(a[0], b[0], high) + fma(a[0], b[1], a[1] * b[0])


def pow(x: Operand, y: Operand) -> Operand:
    """As C's pow: pow(x, 0) and pow(1, y) are 1 even for NaN."""
    form = FORMATS[x.page.dtype]
    size = abs(x)
    high, low = _log_in_two(size)
    product, product_low = _times((y, x.page.number(0.0)), (high, low))
    least, most = form.exp_range
    inside = (product > least) & (product < most)
    product_low = select(inside, product_low, 0.0)
    product = select(product > most, most, product)
    product = select(product < least, least, product)
    value = _exp_of_sum(product, product_low)
    value = select(size.equals(1.0), 1.0, value)
    limit = size.equals(0.0) | size.equals(math.inf)
    grows = ~(size.equals(math.inf) ^ (y > 0.0))
    value = select(limit, select(grows, math.inf, 0.0), value)
    whole = floor(y).equals(y)
    odd = whole & floor(y * 0.5).differs(y * 0.5)
    value = select(odd, copysign(value, x), value)
    outside = (x < 0.0) & ~whole & (size < math.inf)
    value = select(outside | x.differs(x) | y.differs(y), math.nan, value)
    return select(y.equals(0.0) | x.equals(1.0), 1.0, value)


# ------------------------------------------------------------------------- atan2, asin, acos


def atan2(y: Operand, x: Operand) -> Operand:
    """The signs of zeros count, as in C."""
    page, form, tables = x.page, FORMATS[x.page.dtype], TABLES[x.page.dtype]
    steep = abs(x) < abs(y)
    n, d = select(steep, abs(x), abs(y)), select(steep, abs(y), abs(x))
    n, d = _ratio_in_range(n, d, form)
    far = n > d * 0.5  # then n - d is exact
    t = select(far, n - d, n) / select(far, n + d, d)
    z = t * t
    angle = fma(t * z, polynomial(z, tables["ATAN"]), t)
    backwards = x.bit(form.fraction + (11 if page.dtype == "float64" else 8))
    falling = steep ^ backwards
    eighths = select(steep, 2.0, select(backwards, 4.0, 0.0))
    eighths = select(far, eighths + select(falling, -1.0, 1.0), eighths)
    high, low = tables["QUARTER_PI"]
    angle = fma(eighths, high, fma(eighths, low, select(falling, -angle, angle)))
    return copysign(angle, y)


def _ratio_in_range(n: Operand, d: Operand, form: Format) -> tuple[Operand, Operand]:
    """n/d for 0 <= n <= d, without 0/0, without infinity over infinity, and so that n + d is finite."""
    both = n.equals(math.inf) & d.equals(math.inf)
    great = d > 2.0 ** (form.bias - 1)
    n, d = select(great, n * 0.25, n), select(great, d * 0.25, d)
    n, d = select(both, 1.0, n), select(both, 1.0, d)
    return n, select(d.equals(0.0), 1.0, d)


def _asin_parts(x: Operand) -> tuple[Operand, Operand, Operand]:
    """(big, s, p): asin(s) = s + s p, where s is |x|, or if |x| is big, the sine of half the complement."""
    a = abs(x)
    big = a > 0.5
    z = select(big, fma(a, -0.5, 0.5), a * a)
    s = select(big, sqrt(z), a)
    return big, s, z * polynomial(z, TABLES[x.page.dtype]["ASIN"])


def asin(x: Operand) -> Operand:
    big, s, p = _asin_parts(x)
    half_pi, half_pi_low, _ = TABLES[x.page.dtype]["HALF_PI"]
    twice = s + s
    turned = half_pi - (twice + fms(twice, p, half_pi_low))
    return copysign(select(big, turned, fma(s, p, s)), x)


def acos(x: Operand) -> Operand:
    big, s, p = _asin_parts(x)
    half_pi, half_pi_low, _ = TABLES[x.page.dtype]["HALF_PI"]
    negative = x < 0.0
    base = select(big, s + s, x)
    low = select(big, select(negative, 2 * half_pi_low, 0.0), half_pi_low)
    angle = base + fms(base, p, low)
    turned = select(big, 2 * half_pi, half_pi) - angle
    return select(big & ~negative, angle, turned)


UNARY = {"exp": exp, "log": log, "asin": asin, "acos": acos}
BINARY = {"pow": pow, "atan2": atan2}
CIRCULAR = ("sin", "cos", "tan")


def write(page: ProgramBuilder, op: str, arguments: list[Operand]) -> Operand:
    """The function of that name."""
    return UNARY[op](*arguments) if op in UNARY else BINARY[op](*arguments)
