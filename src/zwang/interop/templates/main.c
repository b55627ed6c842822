/* An example for $name: $steps steps from the initial state, at a constant control.
 *
 * It prints the last state, and compares it with the one that zwang computed when this file was written. The
 * exit status is 0 if all bits are equal. They are not if the compiler contracts or reorders floating-point
 * operations, or if the C library's fma is not exact.
 */
#include "$name.h"

#include <stdio.h>
#include <string.h>

static ${name}_state state; /* static: it may be larger than a small stack */

static const $real expected_q[$nq] = {
    $q,
};
static const $real expected_v[$nv] = {
    $v,
};
static const int expected_status = $status;
static const unsigned long expected_steps = $done;

int main(void)
{
    static const $real control[$nu] = {
        $control,
    };
    int equal;

    ${name}_initial_state(&state);
    for (int k = 0; k < $steps; ++k) {
        if (${name}_step(&state, control$parameters) != 0) break;
    }
    printf("time %g s, %s\n", (double)${name}_time(&state), ${name}_status_text(state.status));
    for (int k = 0; k < $nq; ++k) printf("q[%d] = %.17g\n", k, (double)state.q[k]);
    for (int k = 0; k < $nv; ++k) printf("v[%d] = %.17g\n", k, (double)state.v[k]);
    equal = memcmp(state.q, expected_q, sizeof expected_q) == 0
        && memcmp(state.v, expected_v, sizeof expected_v) == 0
        && state.status == expected_status && state.steps == expected_steps;
    printf(equal ? "the same bits as zwang\n" : "DIFFERENT from zwang: check the compiler's options\n");
    return equal ? 0 : 1;
}
