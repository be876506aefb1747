// Marks a function that kernels call too.
#pragma once

#ifdef __CUDACC__
#define KINTSUGI_HOST_DEVICE __host__ __device__
#else
#define KINTSUGI_HOST_DEVICE
#endif
