"""Compute the coefficients of zwang's elementary functions: python benchmarks/coefficients.py > table.

Each table is the minimax polynomial of its function, found by the Remez exchange algorithm with 60 digits in
mpmath, and then rounded. The printed text is `src/zwang/compiler/passes/coefficients.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np

mp.mp.dps = 60


@dataclass(frozen=True)
class Fit:
    """The task to find a polynomial p on [low, high] that minimises the maximum of weight * (p
    - function).
    """

    name: str
    function: Callable[[mp.mpf], mp.mpf]
    weight: Callable[[mp.mpf], mp.mpf]
    low: mp.mpf
    high: mp.mpf
    terms: dict[str, int]  # by type


def remez(fit: Fit, terms: int, iterations: int = 12) -> tuple[list[mp.mpf], mp.mpf]:
    """The coefficients, lowest power first, and the largest remaining error."""
    middle, half = (fit.high + fit.low) / 2, (fit.high - fit.low) / 2
    points = [middle - half * mp.cos(mp.pi * (k + mp.mpf(4) / 9) / (terms + 1)) for k in range(terms + 1)]
    grid = [middle - half * mp.cos(mp.pi * k / (60 * terms)) for k in range(60 * terms + 1)]
    for _ in range(iterations):
        rows = [[fit.weight(x) * x**k for k in range(terms)] + [(-1) ** n] for n, x in enumerate(points)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([fit.weight(x) * fit.function(x) for x in points]))
        coefficients = list(solution)[:terms]

        def error(x: mp.mpf, c: list[mp.mpf] = coefficients) -> mp.mpf:
            return fit.weight(x) * (mp.polyval(c[::-1], x) - fit.function(x))

        points = _extremes(grid, [error(x) for x in grid], terms + 1)
    return coefficients, max(abs(error(x)) for x in grid)


def _extremes(grid: list[mp.mpf], errors: list[mp.mpf], count: int) -> list[mp.mpf]:
    """The points of largest error, with alternating signs."""
    peaks: list[int] = []
    for n, e in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[peaks[-1]]):
                peaks[-1] = n
        else:
            peaks.append(n)
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return [grid[n] for n in peaks]


def in_square(f: Callable[[mp.mpf], mp.mpf], limit: mp.mpf) -> Callable[[mp.mpf], mp.mpf]:
    """f(sqrt(z)), with its limit where z is too small to divide by."""
    return lambda z: f(mp.sqrt(z)) if z > mp.mpf(10) ** -20 else limit


def log_tail(s: mp.mpf, known: list[mp.mpf]) -> mp.mpf:
    """(log((1+s)/(1-s)) / s - the known terms of its series in s^2) / s^(2 * their number)."""
    z, n = s * s, len(known)
    return (mp.log((1 + s) / (1 - s)) / s - sum(c * z**k for k, c in enumerate(known))) / z**n


one, half, third = mp.mpf(1), mp.mpf(1) / 2, mp.mpf(1) / 3
quarter_turn = (mp.pi / 4 * (1 + mp.mpf(2) ** -20)) ** 2
log_width = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * (1 + mp.mpf(2) ** -20)
exp_width = mp.log(2) / 2 * (1 + mp.mpf(2) ** -20)
zero = mp.mpf(0)

FITS = [
    Fit(
        "SIN",
        in_square(lambda r: (mp.sin(r) / r - 1) / r**2, -one / 6),
        in_square(lambda r: r**3 / mp.sin(r), zero),
        zero,
        quarter_turn,
        {"float64": 6, "float32": 3},
    ),
    Fit(
        "COS",
        in_square(lambda r: (mp.cos(r) - 1) / r**2, -half),
        in_square(lambda r: r**2 / mp.cos(r), zero),
        zero,
        quarter_turn,
        {"float64": 7, "float32": 4},
    ),
    Fit(
        "EXP",
        lambda r: (mp.exp(r) - 1 - r) / r**2 if abs(r) > 1e-12 else half + r / 6,
        lambda r: r**2 / mp.exp(r),
        -exp_width,
        exp_width,
        {"float64": 10, "float32": 5},
    ),
    Fit(
        "LOG",
        in_square(lambda s: log_tail(s, [2 * one]), 2 * third),
        in_square(lambda s: s**2, zero),
        zero,
        log_width**2,
        {"float64": 7, "float32": 3},
    ),
    Fit(
        "LOG_TAIL",
        in_square(lambda s: log_tail(s, [2 * one, 2 * third]), one * 2 / 5),
        in_square(lambda s: s**4, zero),
        zero,
        log_width**2,
        {"float64": 9, "float32": 3},
    ),
    Fit(
        "ATAN",
        in_square(lambda t: (mp.atan(t) / t - 1) / t**2, -third),
        in_square(lambda t: t**3 / mp.atan(t), zero),
        zero,
        one / 4,
        {"float64": 13, "float32": 5},
    ),
    Fit(
        "ASIN",
        in_square(lambda x: (mp.asin(x) / x - 1) / x**2, one / 6),
        in_square(lambda x: x**3 / mp.asin(x), zero),
        zero,
        one / 4,
        {"float64": 12, "float32": 5},
    ),
]


def rounded(value: mp.mpf, dtype: str) -> mp.mpf:
    return mp.mpf(float(value) if dtype == "float64" else float(np.float32(float(value))))


def pieces(value: mp.mpf, dtype: str, count: int) -> list[mp.mpf]:
    """A positive number as a sum of `count` numbers of the type, each the largest that fits, so that none is
    negative.
    """
    parts: list[mp.mpf] = []
    for _ in range(count):
        parts.append(truncated(value - sum(parts), 53 if dtype == "float64" else 24))
    return parts


def truncated(value: mp.mpf, bits: int) -> mp.mpf:
    """The value rounded to this number of significant bits."""
    scale = mp.mpf(2) ** (bits - 1 - int(mp.floor(mp.log(value, 2))))
    return mp.floor(value * scale) / scale


def chunks_of_two_over_pi(dtype: str, scale: int) -> list[mp.mpf]:
    """2**scale * 2/pi cut into consecutive pieces of the type's precision, as far as the greatest argument
    needs.

    The nearest that a number of the type comes to a multiple of pi/2 is about 2**-61 (float32: 2**-33), so
    the bits of 2/pi count down to 2**-(1024 + 61 + 53) (2**-(128 + 33 + 24)).
    """
    bits, count = (53, 22) if dtype == "float64" else (24, 8)
    with mp.workprec(1500):
        left, parts = 2 / mp.pi, []
        for k in range(1, count + 1):
            unit = mp.mpf(2) ** (bits * k)
            parts.append(mp.floor(left * unit) / unit)
            left -= parts[-1]
        return [part * mp.mpf(2) ** scale for part in parts]


def constants(dtype: str) -> dict[str, list[mp.mpf]]:
    """Named constants in several pieces."""
    short = 53 - 12 if dtype == "float64" else 24 - 9
    ln2_high = truncated(mp.log(2), short)
    return {
        "HALF_PI": pieces(mp.pi / 2, dtype, 3),
        "QUARTER_PI": pieces(mp.pi / 4, dtype, 2),
        "LN2": [ln2_high, *pieces(mp.log(2) - ln2_high, dtype, 2)],
        "TWO_THIRDS": pieces(mp.mpf(2) / 3, dtype, 2),
        "TWO_OVER_PI": chunks_of_two_over_pi(dtype, 0),
        "TWO_OVER_PI_SCALED": chunks_of_two_over_pi(dtype, 512 if dtype == "float64" else 64),
    }


def formatted(values: list[mp.mpf]) -> str:
    return "".join(f"\n        {float(v)!r}," for v in values) + "\n    "


def main() -> None:
    print(
        '"""Coefficients of the elementary functions by floating-point type, generated by\n'
        '`benchmarks/coefficients.py`.\n"""\n'
    )
    print("# fmt: off\nTABLES: dict[str, dict[str, tuple[float, ...]]] = {")
    for dtype in ("float64", "float32"):
        print(f'  "{dtype}": {{')
        for fit in FITS:
            coefficients, error = remez(fit, fit.terms[dtype])
            print(f"    # greatest error 2**{mp.nstr(mp.log(error, 2), 4)}, lowest power first")
            print(f'    "{fit.name}": ({formatted([rounded(c, dtype) for c in coefficients])}),')
        for name, values in constants(dtype).items():
            print(f'    "{name}": ({formatted(values)}),')
        print("  },")
    print("}\n# fmt: on")


if __name__ == "__main__":
    main()
