// SIMD arithmetic of double-double products, for each register width of x86-64.
#pragma once

#include <immintrin.h>

#include <cstdint>

// Defines a type `name` for pair_loops.hpp. `prefix` is the prefix of the intrinsics. It is a macro because
// each width is compiled with its own flags: files with different flags might share the code of a template.
#define KINTSUGI_PAIR_VECTORS(name, Register, count, prefix)                                        \
  struct name {                                                                                     \
    using Value = Register;                                                                         \
    static constexpr std::int64_t lanes = count;                                                    \
    static Value load(const double* x) { return prefix##_load_pd(x); }                              \
    static void store(double* target, Value x) { prefix##_store_pd(target, x); }                    \
    static Value broadcast(double x) { return prefix##_set1_pd(x); }                                \
    static Value plus(Value a, Value b) { return prefix##_add_pd(a, b); }                           \
    static Value minus(Value a, Value b) { return prefix##_sub_pd(a, b); }                          \
    static Value times(Value a, Value b) { return prefix##_mul_pd(a, b); }                          \
    static Value fused(Value a, Value b, Value c) { return prefix##_fmadd_pd(a, b, c); }            \
    static Value fused_difference(Value a, Value b, Value c) { return prefix##_fmsub_pd(a, b, c); } \
  };
