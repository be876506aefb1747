// Loops that the compiler vectorizes: one function compiled for several instruction sets, of which one is
// selected when the library is loaded. Functions called in such loops must be inlined, so that no other file
// gets code of a wider set. Under the sanitizers there is one set: the selecting functions would be
// instrumented, and would run before the sanitizer's runtime is initialized.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(KINTSUGI_ONE_INSTRUCTION_SET)
#define KINTSUGI_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KINTSUGI_VECTORIZED
#endif
