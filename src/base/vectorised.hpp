// Loops that the compiler turns into vectors: one function, several instruction sets, chosen when the library
// is loaded. What they call must be inlined, so that no other file ever gets code of a wider set. Under the
// sanitizers there is one set: the functions that choose would be instrumented, and run before the
// sanitizer's own runtime is there.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(KINTSUGI_ONE_INSTRUCTION_SET)
#define KINTSUGI_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KINTSUGI_VECTORISED
#endif
