// Marks of functions that are compiled for host and device.
#pragma once

#ifdef __CUDACC__
#define KINTSUGI_HOST_DEVICE __host__ __device__
#define KINTSUGI_ROLLED _Pragma("unroll 1")  // keeps the code of a rarely executed loop short
#define KINTSUGI_OUTLINED __noinline__       // for rarely called functions: callers keep their registers
#else
#define KINTSUGI_HOST_DEVICE
#define KINTSUGI_ROLLED
#define KINTSUGI_OUTLINED
#endif
