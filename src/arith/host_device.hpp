// Marks a function that kernels call too.
#pragma once

#ifdef __CUDACC__
#define KINTSUGI_HOST_DEVICE __host__ __device__
#define KINTSUGI_ROLLED _Pragma("unroll 1")  // before a loop that is rarely run: short code
#else
#define KINTSUGI_HOST_DEVICE
#define KINTSUGI_ROLLED
#endif
