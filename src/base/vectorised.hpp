// Loops that the compiler vectorizes. A function is compiled for several instruction sets, and the widest one
// that the CPU has is selected when the library is loaded. All functions that such a loop calls must be
// inlined: else the linker might take their code for a wide set in files that run on other CPUs. Under
// sanitizers only one set is compiled, because the selecting functions run before the sanitizer's runtime is
// initialized.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(KINTSUGI_ONE_INSTRUCTION_SET)
#define KINTSUGI_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
// For loops with std::fma: the target "avx2" does not include the FMA instructions; "arch=haswell" does.
#define KINTSUGI_VECTORIZED_FMA __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define KINTSUGI_VECTORIZED
#define KINTSUGI_VECTORIZED_FMA
#endif
