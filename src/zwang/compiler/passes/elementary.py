"""Elementary functions as sequences of basic operations, so that all backends compute the same bits.

Each function is accurate to 2 units in the last place for any argument (sinh, tanh, sech and acosh to 3),
which the tests measure. Arguments and results are operands of a `ProgramBuilder`; the coefficients are in
`coefficients.py`. The argument reductions are standard:

    sin cos tan     x = k pi/2 + r with pi/2 in three parts (Cody and Waite);
huge x: 2/pi in many parts (Payne and Hanek)
    exp             x = k ln 2 + r
    log             x = 2^e m, sqrt(1/2) <= m < sqrt(2); log m by its series in s = (m-1)/(m+1)
    pow             exp(y log x) with log x as a sum of two numbers
    atan2           the ratio n/d <= 1; above 1/2, atan(n/d) = pi/4 + atan((n-d)/(n+d))
    asin acos       above 1/2, by the half-angle formula
    sinh cosh tanh sech     by exp x and exp x - 1, which does not cancel near 0
    asinh acosh atanh       by log(1 + u), which includes the rounding error of 1 + u
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
    table_value,
)

TWO_OVER_PI = 2 / math.pi


@dataclass(frozen=True)
class Format:
    """The properties of a floating-point type that the functions need."""

    fraction: int  # number of stored bits of the significand
    bias: int
    code: str  # format characters of the struct module for the number and for its bits
    plain_limit: float  # |x| up to which an angle is reduced by pi/2 in three parts
    split: tuple[float, float]  # above the first value, Payne and Hanek's method scales x by the second
    exp_range: tuple[float, float]  # outside this interval exp is 0 or infinite

    @property
    def rounder(self) -> float:
        """The constant whose addition rounds to an integer; the last bits of the sum are those of the
        integer.
        """
        return 1.5 * 2.0**self.fraction

    def bits(self, value: float) -> int:
        return struct.unpack("<" + self.code[1], struct.pack("<" + self.code[0], value))[0]


FORMATS = {
    "float64": Format(52, 1023, "dQ", 2.0**30, (2.0**512, 2.0**-512), (-746.0, 710.0)),
    "float32": Format(23, 127, "fI", 2.0**13, (2.0**32, 2.0**-64), (-104.0, 89.0)),
}


class Reduced(NamedTuple):
    """The decomposition x = k pi/2 + angle with |angle| <= pi/4.

    shifted_k: the integer k plus the format's `rounder`; error: the rounding error of `angle`, if it was
    requested.
    """

    shifted_k: Operand
    angle: Operand
    error: Operand | None = None


# -------------------------------------------------------------------------------- sin, cos, tan


def reduce_plain(x: Operand, *, with_error: bool) -> Reduced:
    """The reduced angle by Cody and Waite's method, for |x| up to `plain_limit`; NaN for NaN and infinity."""
    rounder = FORMATS[x.builder.dtype].rounder
    first, second, third = TABLES[x.builder.dtype]["HALF_PI"]
    shifted_k = fma(x, TWO_OVER_PI, rounder)
    k = shifted_k - rounder
    once = fnma(k, first, x)
    if not with_error:
        return Reduced(shifted_k, fnma(k, third, fnma(k, second, once)))
    product = k * second
    twice, error = _two_sum(once, -product)
    error = fnma(k, third, error - fms(k, second, product))
    angle, error = _fast_two_sum(twice, error)
    return Reduced(shifted_k, select(x.equals(0.0), x, angle), error)


def is_huge(x: Operand) -> Operand:
    """Whether x needs the reduction by Payne and Hanek's method."""
    return abs(x) > FORMATS[x.builder.dtype].plain_limit


def reduce_huge(x: Operand, *, with_error: bool) -> Reduced:
    """The reduced angle by Payne and Hanek's method, for any x.

    x is multiplied by 2/pi piece by piece, and multiples of 4 are removed from each product. The sum is
    represented by three numbers, because the remainder may be as small as 2**-61.
    """
    builder, form, tables = x.builder, FORMATS[x.builder.dtype], TABLES[x.builder.dtype]
    plain, scaled = tables["TWO_OVER_PI"], tables["TWO_OVER_PI_SCALED"]
    zero = builder.number(0.0)

    def add_piece(j: Operand, carry: list[Operand], captured: list[Operand]) -> list[Operand]:
        y, is_scaled = captured
        piece = select(is_scaled, table_value(scaled, j), table_value(plain, j))
        high = y * piece
        low = fms(y, piece, high)
        return _accumulate(_accumulate(carry, _modulo_4(high)), _modulo_4(low))

    is_scaled = abs(x) > form.split[0]
    y = select(is_scaled, x * form.split[1], x)
    s0, s1, s2 = builder.loop(len(plain), [zero, zero, zero], [y, is_scaled], add_piece)
    shifted_k = s0 + form.rounder
    high, low = _two_sum(s0 - (shifted_k - form.rounder), s1)
    low = low + s2
    first, second, _ = tables["HALF_PI"]
    correction = fma(high, second, low * first)
    if not with_error:
        return Reduced(shifted_k, fma(high, first, correction))
    product = high * first
    return Reduced(shifted_k, *_fast_two_sum(product, fms(high, first, product) + correction))


def _modulo_4(a: Operand) -> Operand:
    """a modulo 4 with the sign of a, so that the result is exact."""
    size = abs(a)
    return copysign(fnma(floor(size * 0.25), 4.0, size), a)


def _two_sum(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """a + b and its rounding error, by Knuth's two-sum."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _accumulate(sums: list[Operand], a: Operand) -> list[Operand]:
    """The sum of three numbers `sums` and a, again as three numbers."""
    s0, error = _two_sum(sums[0], a)
    s1, error = _two_sum(sums[1], error)
    return [s0, s1, sums[2] + error]


class Circular:
    """sin, cos and tan of one reduced angle, with common subexpressions emitted once."""

    def __init__(self, reduced: Reduced):
        self.shifted_k, self.angle, self.error = reduced
        self.tables = TABLES[self.angle.builder.dtype]

    def sin(self) -> Operand:
        value = select(self.odd, self._near_cos, self._near_sin)
        return select(self.half, -value, value)

    def cos(self) -> Operand:
        value = select(self.odd, self._near_sin, self._near_cos)
        return select(self.odd ^ self.half, -value, value)

    def tan(self) -> Operand:
        """sin/cos, both with their rounding errors; requires the rounding error of the angle."""
        assert self.error is not None
        one, r = self.angle.builder.number(1.0), self.angle
        sin, sin_low = _fast_two_sum(r, r * (self.square * self._sin_series))
        cos, cos_low = _fast_two_sum(one, self.square * self._cos_series)
        sin_low, cos_low = fma(self.error, cos, sin_low), fnma(self.error, sin, cos_low)
        top, top_low = select(self.odd, -cos, sin), select(self.odd, -cos_low, sin_low)
        base, base_low = select(self.odd, sin, cos), select(self.odd, sin_low, cos_low)
        inverse = one / base
        ratio = top * inverse
        left = fnma(ratio, base, top) + fnma(ratio, base_low, top_low)
        return select(r.equals(0.0), r, fma(left, inverse, ratio))

    @cached_property
    def odd(self) -> Operand:
        return self.shifted_k.bit(0)

    @cached_property
    def half(self) -> Operand:
        return self.shifted_k.bit(1)

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


def _fast_two_sum(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """a + b and its rounding error, for |a| >= |b|, by Dekker's fast two-sum."""
    total = a + b
    return total, (a - total) + b


# ------------------------------------------------------------------------------ exp, log, pow


def exp(x: Operand) -> Operand:
    """e**x."""
    low, high = FORMATS[x.builder.dtype].exp_range
    x = select(x > high, high, x)
    x = select(x < low, low, x)
    return _exp_of_sum(x, None)


def _exp_of_sum(x: Operand, correction: Operand | None) -> Operand:
    """exp(x + correction), for x in the range of exp and a small correction."""
    k, rise = _reduced_exp(x, correction)
    return _scaled(rise + 1.0, k)


def _reduced_exp(x: Operand, correction: Operand | None = None) -> tuple[Operand, Operand]:
    """(k, rise) with exp(x + correction) = 2**k (1 + rise), sqrt(1/2) <= 1 + rise <= sqrt(2)."""
    dtype = x.builder.dtype
    rounder = FORMATS[dtype].rounder
    first, second, _ = TABLES[dtype]["LN2"]
    k = fma(x, 1 / math.log(2), rounder) - rounder
    r = fnma(k, second, fnma(k, first, x))
    if correction is not None:
        r = r + correction
    return k, fma(r * r, polynomial(r, TABLES[dtype]["EXP"]), r)


def _scaled(x: Operand, k: Operand) -> Operand:
    """2**k x, for an integer k, in two factors, since 2**k may be out of range."""
    half = floor(k * 0.5)
    return x * _power_of_two(half) * _power_of_two(k - half)


def _power_of_two(k: Operand) -> Operand:
    """2**k, for an integer k such that 2**k is a normal number."""
    form = FORMATS[k.builder.dtype]
    return (k + (form.rounder + form.bias)).on_bits("shift_left", form.fraction)


class Split(NamedTuple):
    """x = 2**exponent * (1 + excess), sqrt(1/2) <= 1 + excess < sqrt(2)."""

    exponent: Operand
    excess: Operand


def _split(x: Operand) -> Split:
    """The decomposition of a positive, finite x by operations on its bits."""
    form = FORMATS[x.builder.dtype]
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
    """The natural logarithm; NaN for negative x."""
    return _log_and(x, None)


def _log_and(x: Operand, addend: Operand | None) -> Operand:
    """log x + addend; NaN for negative x, and log x where that is infinite."""
    tables = TABLES[x.builder.dtype]
    first, second, _ = tables["LN2"]
    e, f = _split(x)
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    tail = s * fma(z, polynomial(z, tables["LOG"]), half_square)  # log(1+f) = f - (half_square - tail)
    low = fma(e, second, tail)
    if addend is not None:
        low = low + addend
    value = fma(e, first, f - (half_square - low))
    ordinary = (x > 0.0) & (x < math.inf)
    extreme = select(x.equals(0.0), -math.inf, select(x.equals(math.inf), math.inf, math.nan))
    return select(ordinary, value, extreme)


def _log_in_two(x: Operand) -> tuple[Operand, Operand]:
    """log x as a sum of two numbers, for a positive, finite x; relative error about 2**-64 (float32:
    2**-33).
    """
    tables = TABLES[x.builder.dtype]
    first, second, _ = tables["LN2"]
    two_thirds, two_thirds_low = tables["TWO_THIRDS"]
    e, f = _split(x)
    base = f + 2.0
    base_low = f - (base - 2.0)
    s = f / base
    s_low = fnma(s, base_low, fnma(s, base, f)) / base
    z = s * s
    z_low = fma(s * s_low, 2.0, fms(s, s, z))
    q, q_low = _fast_two_sum(x.builder.number(two_thirds), z * polynomial(z, tables["LOG_TAIL"]))
    w, w_low = _times((z, z_low), (q, q_low + two_thirds_low))
    v, v_low = _fast_two_sum(x.builder.number(2.0), w)
    m, m_low = _times((s, s_low), (v, v_low + w_low))
    high, low = _fast_two_sum(e * first, m)
    return high, low + fma(e, second, m_low)


def _times(a: tuple[Operand, Operand], b: tuple[Operand, Operand]) -> tuple[Operand, Operand]:
    """The product of two numbers, each represented as a sum of two."""
    high = a[0] * b[0]
    return high, fms(a[0], b[0], high) + fma(a[0], b[1], a[1] * b[0])


def pow(x: Operand, y: Operand) -> Operand:
    """x**y with the special values of C99: pow(x, 0) and pow(1, y) are 1 even for NaN."""
    form = FORMATS[x.builder.dtype]
    size = abs(x)
    high, low = _log_in_two(size)
    product, product_low = _times((y, x.builder.number(0.0)), (high, low))
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
    """The angle of (x, y); the signs of zeros are respected, as in C99."""
    builder, form, tables = x.builder, FORMATS[x.builder.dtype], TABLES[x.builder.dtype]
    steep = abs(x) < abs(y)
    n, d = select(steep, abs(x), abs(y)), select(steep, abs(y), abs(x))
    n, d = _ratio_in_range(n, d, form)
    far = n > d * 0.5  # then n - d is exact
    t = select(far, n - d, n) / select(far, n + d, d)
    z = t * t
    angle = fma(t * z, polynomial(z, tables["ATAN"]), t)
    backwards = x.bit(form.fraction + (11 if builder.dtype == "float64" else 8))
    falling = steep ^ backwards
    eighths = select(steep, 2.0, select(backwards, 4.0, 0.0))
    eighths = select(far, eighths + select(falling, -1.0, 1.0), eighths)
    high, low = tables["QUARTER_PI"]
    angle = fma(eighths, high, fma(eighths, low, select(falling, -angle, angle)))
    return copysign(angle, y)


def _ratio_in_range(n: Operand, d: Operand, form: Format) -> tuple[Operand, Operand]:
    """n and d, 0 <= n <= d, scaled such that n/d is neither 0/0 nor inf/inf and n + d is finite."""
    both = n.equals(math.inf) & d.equals(math.inf)
    great = d > 2.0 ** (form.bias - 1)
    n, d = select(great, n * 0.25, n), select(great, d * 0.25, d)
    n, d = select(both, 1.0, n), select(both, 1.0, d)
    return n, select(d.equals(0.0), 1.0, d)


def _asin_parts(x: Operand) -> tuple[Operand, Operand, Operand]:
    """(big, s, p) with asin(s) = s + s p; s is |x| or, if |x| > 1/2 (`big`), the sine of half the
    complement.
    """
    a = abs(x)
    big = a > 0.5
    z = select(big, fma(a, -0.5, 0.5), a * a)
    s = select(big, sqrt(z), a)
    return big, s, z * polynomial(z, TABLES[x.builder.dtype]["ASIN"])


def asin(x: Operand) -> Operand:
    """The arcsine; NaN outside [-1, 1]."""
    big, s, p = _asin_parts(x)
    half_pi, half_pi_low, _ = TABLES[x.builder.dtype]["HALF_PI"]
    twice = s + s
    turned = half_pi - (twice + fms(twice, p, half_pi_low))
    return copysign(select(big, turned, fma(s, p, s)), x)


def acos(x: Operand) -> Operand:
    """The arccosine; NaN outside [-1, 1]."""
    big, s, p = _asin_parts(x)
    half_pi, half_pi_low, _ = TABLES[x.builder.dtype]["HALF_PI"]
    negative = x < 0.0
    base = select(big, s + s, x)
    low = select(big, select(negative, 2 * half_pi_low, 0.0), half_pi_low)
    angle = base + fms(base, p, low)
    turned = select(big, 2 * half_pi, half_pi) - angle
    return select(big & ~negative, angle, turned)


# ------------------------------------------------------------------ hyperbolic functions, inverses


def _half_exp(a: Operand) -> Operand:
    """exp(a) / 2 for a >= 0; infinite where that is out of range."""
    highest = FORMATS[a.builder.dtype].exp_range[1] + 1.0
    k, rise = _reduced_exp(select(a > highest, highest, a))
    return _scaled(rise + 1.0, k - 1.0)


def cosh(x: Operand) -> Operand:
    """The hyperbolic cosine, h + 1/(4 h) with h = exp|x| / 2."""
    h = _half_exp(abs(x))
    return h + 0.25 / h


def sinh(x: Operand) -> Operand:
    """The hyperbolic sine: below 1, u + u/(2 u + 1) with u = (exp|x| - 1)/2; else h - 1/(4 h)."""
    a = abs(x)
    h = _half_exp(a)
    near = a < 1.0
    k, rise = _reduced_exp(select(near, a, 0.0))
    half_power = _power_of_two(k - 1.0)
    u = fma(half_power, rise, half_power - 0.5)
    return copysign(select(near, u + u / (u + u + 1.0), h - 0.25 / h), x)


def tanh(x: Operand) -> Operand:
    """The hyperbolic tangent, -t/(t + 2) with t = exp(-2|x|) - 1."""
    a, limit = abs(x), float(FORMATS[x.builder.dtype].fraction)  # beyond the limit it is 1
    k, rise = _reduced_exp(select(a > limit, limit, a) * -2.0)
    power = _power_of_two(k)
    t = fma(power, rise, power - 1.0)
    return copysign(t / (t + 2.0), x)


def sech(x: Operand) -> Operand:
    """The hyperbolic secant, 2 g/(1 + g^2) with g = exp(-|x|)."""
    g = exp(-abs(x))
    return (g + g) / fma(g, g, 1.0)


def _log_of_one_plus(u: Operand) -> Operand:
    """log(1 + u)."""
    total, error = _two_sum(u.lift(1.0), u)
    return _log_and(total, error / total)


def asinh(x: Operand) -> Operand:
    """The inverse hyperbolic sine, log(1 + a + a^2/(1 + sqrt(1 + a^2))) with a = |x|; log 2a for great a."""
    a = abs(x)
    great = _is_great(a)
    b = select(great, 1.0, a)
    square = b * b
    total, error = _two_sum(a.lift(1.0), b + square / (sqrt(square + 1.0) + 1.0))
    value = _log_and(select(great, a, total), select(great, math.log(2), error / total))
    return copysign(value, x)


def acosh(x: Operand) -> Operand:
    """The inverse hyperbolic cosine, log(1 + t + sqrt(t^2 + 2 t)) with t = x - 1; log 2x if x is great."""
    great = _is_great(x)
    t = select(great, 1.0, x) - 1.0
    total, error = _two_sum(x.lift(1.0), t + sqrt(fma(t, t, t + t)))
    value = _log_and(select(great, x, total), select(great, math.log(2), error / total))
    return select(x < 1.0, math.nan, value)


def _is_great(x: Operand) -> Operand:
    """Whether x is so great that x^2 + 1 and x^2 - 1 are x^2 to rounding."""
    return x > 2.0 ** (FORMATS[x.builder.dtype].fraction // 2 + 2)


def atanh(x: Operand) -> Operand:
    """The inverse hyperbolic tangent, log(1 + 2 a/(1 - a)) / 2 with a = |x|; NaN outside [-1, 1]."""
    a = abs(x)
    return copysign(_log_of_one_plus((a + a) / (1.0 - a)) * 0.5, x)


UNARY = {
    **{"exp": exp, "log": log, "asin": asin, "acos": acos},
    **{"sinh": sinh, "cosh": cosh, "tanh": tanh, "sech": sech},
    **{"asinh": asinh, "acosh": acosh, "atanh": atanh},
}
BINARY = {"pow": pow, "atan2": atan2}
CIRCULAR = ("sin", "cos", "tan")


def write(builder: ProgramBuilder, op: str, arguments: list[Operand]) -> Operand:
    """The elementary function `op` of the arguments."""
    return UNARY[op](*arguments) if op in UNARY else BINARY[op](*arguments)
