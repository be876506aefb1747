// Vector arithmetic of double-double products, for each register width of x86-64.
#pragma once

#include <immintrin.h>

#include <cstdint>

// Defines a type `name` for pair_loops.hpp; `prefix` is that of the intrinsics. A macro, since each width is
// compiled with its own flags, and a template could be shared by files with different flags.
#define KINTSUGI_PAIR_VECTORS(name, Register, count, prefix)                                            \
  struct name {                                                                                         \
    using Vector = Register;                                                                            \
    static constexpr std::int64_t lanes = count;                                                        \
    static Vector load(const double* x) { return prefix##_load_pd(x); }                                 \
    static void store(double* target, Vector x) { prefix##_store_pd(target, x); }                       \
    static Vector broadcast(double x) { return prefix##_set1_pd(x); }                                   \
    static Vector plus(Vector a, Vector b) { return prefix##_add_pd(a, b); }                            \
    static Vector minus(Vector a, Vector b) { return prefix##_sub_pd(a, b); }                           \
    static Vector times(Vector a, Vector b) { return prefix##_mul_pd(a, b); }                           \
    static Vector fused(Vector a, Vector b, Vector c) { return prefix##_fmadd_pd(a, b, c); }            \
    static Vector fused_difference(Vector a, Vector b, Vector c) { return prefix##_fmsub_pd(a, b, c); } \
  };
