#include <math.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) || defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__GNUC__) && !defined(__clang__)
/* GCC 12.2 loses stores to arrays after loops if it vectorises straight-line code */
#pragma GCC optimize("no-tree-slp-vectorize")
/* arrays of varying length are not initialised, which takes time; GCC does not see which elements are read */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

typedef $real real;
typedef $word word; /* $bits bits */

static inline word bits_of(real x)
{
    word bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline real of_bits(word bits)
{
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int clamped(real x, int most)
{
    return x > 0 ? x < (real)most ? (int)x : most : 0;
}
