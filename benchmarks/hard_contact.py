"""Laws of contact on random Delassus matrices: `python -m benchmarks.hard_contact [10000]`.

Solves problems of three kinds with `zw.solve_contact`: random rows, often redundant; rigid bodies in contact
at random points; stacks of cubes with mass ratios up to 1e6. Prints the largest violation of the laws of
Signorini, Coulomb and maximum dissipation, by formulas that the solver does not use, and the number of
iterations; exits with 1 where a violation is above 1e-10.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import zwang as zw
from tests.solver.contact_problems import bodies, random_problem, random_stack, violations

LARGEST = 1e-10


def main(count: int) -> int:
    worst = 0.0
    print(
        "problems                 violations: Signorini, Coulomb, dissipation   iterations   several   s each"
    )
    for kind in (random_problem, bodies, random_stack):
        found, iterations, several, start = np.zeros(3), [], 0, time.perf_counter()
        for seed in range(-(-count // 3)):
            G, g, mu = kind(np.random.default_rng(seed))
            solution = zw.solve_contact(G, g, mu)
            found = np.maximum(found, violations(G, g, mu, solution.force))
            iterations.append(solution.iterations)
            several += solution.status == "several"
        seconds = (time.perf_counter() - start) / len(iterations)
        residuals = " ".join(f"{x:10.1e}" for x in found)
        steps = f"{np.median(iterations):5.0f} ... {max(iterations)}"
        print(f"{len(iterations):6d} {kind.__name__:16s} {residuals} {steps} {several:6d} {seconds:10.4f}")
        worst = max(worst, float(found.max()))
    return int(not worst <= LARGEST)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
