// KINTSUGI_VECTORIZED of base/vectorised.hpp for loops with std::fma. The target "avx2" does not include the
// FMA instructions; "arch=haswell" does.
#pragma once

#include "base/vectorised.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(KINTSUGI_ONE_INSTRUCTION_SET)
#define KINTSUGI_VECTORIZED_FMA __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define KINTSUGI_VECTORIZED_FMA
#endif
