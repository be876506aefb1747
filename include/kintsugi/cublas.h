/* Functions of the drop-in for cuBLAS (libkintsugi_cublas): for programs that link it, and for programs under
 * which it is preloaded and which look the functions up with dlsym. */
#ifndef KINTSUGI_CUBLAS_H
#define KINTSUGI_CUBLAS_H

#include <kintsugi/kintsugi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the report of all calls of cuBLAS so far into the buffer, as kintsugi_plan_describe does. The report
 * is the document that KINTSUGI_REPORT writes at exit (docs/schema/cublas-report.schema.json). Calls are
 * recorded from the first call of this function on; under KINTSUGI_REPORT or KINTSUGI_EXPLAIN from the
 * beginning. The function waits for the device, and must not be called while a stream is captured.
 * KINTSUGI_OUT_OF_MEMORY: there is no host memory for the text. */
KINTSUGI_API kintsugi_status kintsugi_cublas_report(char* buffer, size_t capacity, size_t* needed);

#ifdef __cplusplus
}
#endif

#endif
