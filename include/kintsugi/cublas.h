/* Functions of the drop-in for cuBLAS (libkintsugi_cublas). A program either links the drop-in, or looks the
 * functions up with dlsym while the drop-in is preloaded. */
#ifndef KINTSUGI_CUBLAS_H
#define KINTSUGI_CUBLAS_H

#include <kintsugi/kintsugi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the report of all recorded calls of cuBLAS into the buffer. The arguments are those of
 * kintsugi_plan_describe. The report is the document that KINTSUGI_REPORT writes at exit
 * (docs/schema/cublas-report.schema.json). Under KINTSUGI_REPORT or KINTSUGI_EXPLAIN all calls are recorded;
 * otherwise calls are recorded after the first call of this function. The function waits for the device, and
 * must not be called while a stream is captured. KINTSUGI_OUT_OF_MEMORY: there is no host memory for the
 * text. */
KINTSUGI_API kintsugi_status kintsugi_cublas_report(char* buffer, size_t capacity, size_t* needed);

#ifdef __cplusplus
}
#endif

#endif
