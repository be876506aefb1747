/* Functions of the drop-in for cuBLAS (libkintsugi_cublas) for programs that link it, and for those that find
 * it preloaded by dlsym. */
#ifndef KINTSUGI_CUBLAS_H
#define KINTSUGI_CUBLAS_H

#include <kintsugi/kintsugi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the report of all calls of cuBLAS so far, the document that KINTSUGI_REPORT writes at exit
 * (docs/schema/cublas-report.schema.json), by the rules of kintsugi_plan_describe. Calls are recorded from the
 * first call of this function on; under KINTSUGI_REPORT or KINTSUGI_EXPLAIN from the beginning. Waits for the
 * device, and must not be called while a stream is captured. KINTSUGI_OUT_OF_MEMORY: there is no host memory
 * for the text. */
KINTSUGI_API kintsugi_status kintsugi_cublas_report(char* buffer, size_t capacity, size_t* needed);

#ifdef __cplusplus
}
#endif

#endif
