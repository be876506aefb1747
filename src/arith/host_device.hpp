// Marks a function that kernels call too.
#pragma once

#ifdef __CUDACC__
#define KINTSUGI_HOST_DEVICE __host__ __device__
#define KINTSUGI_ROLLED _Pragma("unroll 1")  // before a loop that is rarely run: short code
#define KINTSUGI_OUTLINED __noinline__       // rarely called: its registers are nobody else's
#else
#define KINTSUGI_HOST_DEVICE
#define KINTSUGI_ROLLED
#define KINTSUGI_OUTLINED
#endif
