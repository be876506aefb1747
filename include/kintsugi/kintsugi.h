/* Kintsugi: matrix products at FP32, FP64 or exact accuracy on low-precision matrix engines.
 *
 * This is the C ABI; all other interfaces (C++, Python, command line, drop-ins) call it.
 *
 * Conventions of all functions here:
 *  - Matrices are dense. C = alpha * op(A) * op(B) + beta * C with op(A) m x k, op(B) k x n and
 *    C m x n. Sizes, leading dimensions and strides are 64-bit and count elements, not bytes.
 *  - A call returns a kintsugi_status. Unless it is KINTSUGI_SUCCESS, C is unchanged and
 *    kintsugi_last_error() of the calling thread says what was wrong, with the values.
 *  - A call never modifies A or B, never writes outside the m x n elements of C, never prints and
 *    never ends the program.
 *  - Structs begin with struct_size; initialize them with their _INIT macro.
 *  - The library uses OpenMP threads. In a forked child of the process that loaded the library, a call uses
 *    one thread, whatever `threads` is. The engine cuda is KINTSUGI_ENGINE_UNAVAILABLE in the child if the
 *    parent used it.
 *  - A plan and a prepared operand are immutable: any number of threads may use one at the same time. A
 *    handle serves one thread at a time.
 *
 * Matrices in device memory (kintsugi_problem.memory = KINTSUGI_DEVICE), on the engine cuda:
 *  - A plan is for the device that is current when the plan is made. An execution takes pointers, a stream
 *    and prepared operands of the context that is current at the execution. Objects of another context, or a
 *    plan for another device, are KINTSUGI_INVALID_ARGUMENT; nothing is enqueued in the stream then. For
 *    batches by pointers the arrays of pointers are in device memory, too.
 *  - A call on a queue of kind KINTSUGI_QUEUE_CUDA enqueues its work in the stream and returns. It never
 *    waits for the device, and may be captured in a graph. The plan must be made before the capture, in the
 *    same context and with the same handle; otherwise the call is KINTSUGI_INVALID_ARGUMENT, and the capture
 *    goes on. A captured call without a workspace makes no memory nodes: its memory stays the graph's. It may
 *    wait for the device if memory of destroyed graphs must be freed for it. kintsugi_report() reads what only
 *    the device knows, and waits for it. On a queue of kind KINTSUGI_QUEUE_HOST a call uses the default stream
 *    and returns when C is complete.
 *  - With alpha = 0 in device memory an emulated product does not read A and B. A native product, which the
 *    vendor's library computes, may read them, so that a NaN in A or B may reach C.
 *  - A device failure caused by an earlier call is reported by the first call that meets it.
 *
 * Matrices in any memory (KINTSUGI_ANY_MEMORY; kintsugi_sgemm and the other calls with BLAS's arguments):
 *  - If the process has loaded the CUDA driver, the call asks it where those of A, B and C lie that the product
 *    reads or writes. If all are in host memory, the product is one of host matrices. If all are on one device,
 *    it is computed there, in the handle's stream (kintsugi_set_stream), with the context of the memory. If not,
 *    the call is KINTSUGI_INVALID_ARGUMENT, and the message says where each of them lies.
 *  - Pinned host memory is host memory, managed memory is memory of the device. alpha and beta are read on the
 *    host.
 */
#ifndef KINTSUGI_KINTSUGI_H
#define KINTSUGI_KINTSUGI_H

#include <stddef.h>
#include <stdint.h>

#define KINTSUGI_VERSION_MAJOR 0
#define KINTSUGI_VERSION_MINOR 2
#define KINTSUGI_VERSION_PATCH 0

#if defined(_WIN32)
#define KINTSUGI_API
#else
#define KINTSUGI_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ status */

/* Append-only: a number never changes its meaning. */
typedef enum kintsugi_status {
  KINTSUGI_SUCCESS = 0,
  KINTSUGI_INVALID_ARGUMENT = 1,     /* a size, stride, pointer or enum value is out of its domain */
  KINTSUGI_NOT_SUPPORTED = 2,        /* valid, but not implemented in this version */
  KINTSUGI_ENGINE_UNAVAILABLE = 3,   /* the named engine cannot run on this machine */
  KINTSUGI_OUT_OF_MEMORY = 4,        /* the allocator returned NULL, even for the smallest block of C */
  KINTSUGI_WORKSPACE_TOO_SMALL = 5,  /* the workspace or its limit is too small for the smallest block of C */
  KINTSUGI_CONTRACT_UNREACHABLE = 6, /* no program is proved to give the requested accuracy */
  KINTSUGI_BAD_SETTING = 7,          /* an unknown setting or a value that it does not accept */
  KINTSUGI_DEVICE_ERROR = 8,         /* a device or a vendor library reported a failure */
  KINTSUGI_INTERNAL = 9              /* a broken invariant of the library: please report it */
} kintsugi_status;

/* "success", "invalid_argument", ...; "unknown" for other numbers. The string is valid until the program
 * ends. */
KINTSUGI_API const char* kintsugi_status_name(kintsugi_status status);

/* Message of the calling thread's last failed call; "" if no call failed yet. Valid until that thread's
 * next call. */
KINTSUGI_API const char* kintsugi_last_error(void);

/* "MAJOR.MINOR.PATCH" of the loaded library (the macros above have the header's version). */
KINTSUGI_API const char* kintsugi_version(void);

/* ----------------------------------------------------------------- problem */

typedef enum kintsugi_op {
  KINTSUGI_OP_N = 0, /* op(X) = X */
  KINTSUGI_OP_T = 1, /* op(X) = transpose of X */
  KINTSUGI_OP_C = 2  /* op(X) = conjugate transpose of X; the transpose for real types */
} kintsugi_op;

typedef enum kintsugi_type {
  KINTSUGI_F32 = 0,
  KINTSUGI_F64 = 1,
  KINTSUGI_C32 = 2, /* pairs of f32: real, imaginary */
  KINTSUGI_C64 = 3, /* pairs of f64 */
  KINTSUGI_DD = 4   /* double-double: kintsugi_dd; only in host memory */
} kintsugi_type;

/* A double-double number hi + lo with hi = RN(hi + lo), to nearest, ties to even: about 106 significant bits
 * in the range of f64. In an input any two finite doubles represent their sum; if hi is NaN or infinite, lo
 * is not read. A result is always normalized, with lo = 0 if hi is NaN or infinite. Leading dimensions and
 * strides count such pairs. */
typedef struct kintsugi_dd {
  double hi;
  double lo;
} kintsugi_dd;

typedef enum kintsugi_layout {
  KINTSUGI_COLUMN_MAJOR = 0, /* element (i, j) at i + j * ld */
  KINTSUGI_ROW_MAJOR = 1     /* element (i, j) at i * ld + j */
} kintsugi_layout;

typedef enum kintsugi_pointer_mode {
  KINTSUGI_SCALARS_ON_HOST = 0,
  KINTSUGI_SCALARS_ON_DEVICE = 1
} kintsugi_pointer_mode;

typedef enum kintsugi_memory {
  KINTSUGI_HOST = 0,
  KINTSUGI_DEVICE = 1,
  KINTSUGI_ANY_MEMORY = 2 /* only for kintsugi_gemm, which asks the CUDA driver where A, B and C lie */
} kintsugi_memory;

typedef enum kintsugi_batch_kind {
  KINTSUGI_BATCH_STRIDED = 0, /* item t of A begins at a + t * stride_a; likewise B and C */
  KINTSUGI_BATCH_POINTERS = 1 /* a, b, c point to arrays of batch_count pointers */
} kintsugi_batch_kind;

/* One problem: shapes and types, no data. Enum-valued members are int32_t, which fixes the layout. */
typedef struct kintsugi_problem {
  size_t struct_size;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  int64_t batch_count;                         /* 0: nothing is done */
  int64_t stride_a, stride_b, stride_c;        /* strided batches; 0 reuses an input in every item */
  int32_t op_a, op_b;                          /* kintsugi_op */
  int32_t type_a, type_b, type_c, type_scalar; /* kintsugi_type */
  int32_t layout;                              /* kintsugi_layout, of A, B and C */
  int32_t pointer_mode;                        /* kintsugi_pointer_mode, of alpha and beta */
  int32_t memory;                              /* kintsugi_memory, of A, B and C */
  int32_t batch_kind;                          /* kintsugi_batch_kind */
  /* 1: executions will get this operand prepared, with the same accuracy, scheme and engine. The policy auto
   * then does not count the time of its split. Nothing else depends on the member; the plan also accepts an
   * operand that is not prepared. kintsugi_gemm ignores the member and looks at its operands. A struct that
   * is too short to have the member means 0. */
  int32_t prepared_a, prepared_b;
  /* adds_to_c = 1: beta will not be 0, so C is read. A hint for the times that the policy auto expects; a plan
   * accepts any beta. kintsugi_gemm on device matrices looks at beta itself if scalars are on the host and no
   * workspace is given. native_elsewhere: 0 or 1, ignored, since native products are the vendor library's
   * anyway. A struct that is too short to have the members means 0. */
  int32_t adds_to_c, native_elsewhere;
} kintsugi_problem;

/* One column-major FP32 product of host matrices; fill in m, n, k, lda, ldb, ldc. */
#define KINTSUGI_PROBLEM_INIT \
  { sizeof(kintsugi_problem), 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* ----------------------------------------------------------------- options */

typedef enum kintsugi_queue_kind {
  KINTSUGI_QUEUE_HOST = 0, /* the call returns when C is complete; device matrices: on the default stream */
  KINTSUGI_QUEUE_CUDA = 1  /* stream is a cudaStream_t */
} kintsugi_queue_kind;

typedef struct kintsugi_queue {
  int32_t kind; /* kintsugi_queue_kind */
  int32_t reserved;
  void* stream;
} kintsugi_queue;

/* Returns at least `bytes` bytes aligned to `alignment` (a power of two), or NULL. */
typedef void* (*kintsugi_allocate)(void* user, size_t bytes, size_t alignment);
typedef void (*kintsugi_deallocate)(void* user, void* pointer, size_t bytes);

/* Options of a plan. NULL strings and zeros mean "not set": then the handle's settings count, then
 * KINTSUGI_... in the environment, the settings file, the default (docs/SETTINGS.md). */
typedef struct kintsugi_options {
  size_t struct_size;
  const char* accuracy;    /* "fp32", "fp64", "dd", "exact", "reproducible", or a tolerance: "1e-10" */
  const char* scheme;      /* a name of kintsugi_describe_schemes: runs that scheme or fails */
  const char* engine;      /* a name of kintsugi_describe_engines: runs on that engine or fails */
  const char* policy;      /* "auto", "emulate", "native" */
  const char* accumulator; /* reference engine: the matrix unit whose additions are modeled */
  int64_t workspace_limit; /* bytes; C is computed in blocks to fit, with the same bits; also limits the
                              workspaces of captured graphs of different calls on a device together */
  int32_t threads;
  int32_t reserved;
  kintsugi_allocate allocate; /* set both callbacks or none; for device matrices they return device memory */
  kintsugi_deallocate deallocate; /* device memory is taken and freed in the order of the queue's stream */
  void* allocator_user;           /* argument `user` of both callbacks */
  kintsugi_queue queue; /* for executions without a queue; a CUDA queue requires memory = KINTSUGI_DEVICE */
} kintsugi_options;

#define KINTSUGI_OPTIONS_INIT                                                                         \
  {                                                                                                   \
    sizeof(kintsugi_options), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, { 0, 0, NULL } \
  }

/* ------------------------------------------------------------------ handle */

typedef struct kintsugi_handle_s* kintsugi_handle;
typedef struct kintsugi_plan_s* kintsugi_plan;
typedef struct kintsugi_prepared_s* kintsugi_prepared;

KINTSUGI_API kintsugi_status kintsugi_create(kintsugi_handle* handle);
/* Every destroy function accepts NULL and then does nothing. */
KINTSUGI_API void kintsugi_destroy(kintsugi_handle handle);

/* Sets a setting of docs/SETTINGS.md for all later calls with this handle; value NULL unsets it. */
KINTSUGI_API kintsugi_status kintsugi_set(kintsugi_handle handle, const char* name, const char* value);

/* Sets the stream, a cudaStream_t, for products of device matrices by later calls with this handle. Those of
 * which neither operands nor options name a queue are then enqueued in the stream and return; NULL is the default
 * stream. Before, they use the default stream and return when C is complete. Host matrices need no stream. */
KINTSUGI_API kintsugi_status kintsugi_set_stream(kintsugi_handle handle, void* stream);

typedef enum kintsugi_log_level {
  KINTSUGI_LOG_OFF = 0,
  KINTSUGI_LOG_ERROR = 1,
  KINTSUGI_LOG_INFO = 2,
  KINTSUGI_LOG_DEBUG = 3
} kintsugi_log_level;
typedef void (*kintsugi_log)(void* user, kintsugi_log_level level, const char* message);

/* Passes log lines to `sink` (NULL: none), those that the setting `log` selects; the library never prints. */
KINTSUGI_API kintsugi_status kintsugi_set_log(kintsugi_handle handle, kintsugi_log sink, void* user);

/* ------------------------------------------------------------------- calls */

/* Data of one execution. alpha and beta each point to one value of type_scalar, in device memory under
 * KINTSUGI_SCALARS_ON_DEVICE. */
typedef struct kintsugi_operands {
  size_t struct_size;
  const void* alpha;
  const void* a; /* not read if alpha = 0, if k = 0, or if prepared_a is set; b likewise with prepared_b */
  const void* b;
  const void* beta;
  void* c;                      /* its old elements are not read if beta = 0 */
  kintsugi_prepared prepared_a; /* NULL, or A from kintsugi_prepare */
  kintsugi_prepared prepared_b;
  void* workspace; /* NULL with size 0: memory comes from the callback `allocate`, or from the library */
  size_t workspace_size; /* bytes; at least kintsugi_plan_workspace_size() if a workspace is given */
  kintsugi_queue
      queue; /* kind 0: the queue of the plan's options, or else the handle's stream. One plan may run on several
              streams at once if each execution has a workspace of its own. A struct without this member means
              kind 0. */
} kintsugi_operands;

#define KINTSUGI_OPERANDS_INIT                                                                   \
  {                                                                                              \
    sizeof(kintsugi_operands), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, { 0, 0, NULL } \
  }

/* Selects program, engine and blocks of C for a problem. handle and options may be NULL. Errors:
 * KINTSUGI_CONTRACT_UNREACHABLE, KINTSUGI_ENGINE_UNAVAILABLE, KINTSUGI_BAD_SETTING,
 * KINTSUGI_INVALID_ARGUMENT. */
KINTSUGI_API kintsugi_status kintsugi_plan_create(kintsugi_handle handle, const kintsugi_problem* problem,
                                                  const kintsugi_options* options, kintsugi_plan* plan);
KINTSUGI_API void kintsugi_plan_destroy(kintsugi_plan plan);

/* Sets *bytes to the exact size of the workspace of an execution, a multiple of 256. The workspace's address
 * must be a multiple of 256, too. */
KINTSUGI_API kintsugi_status kintsugi_plan_workspace_size(kintsugi_plan plan, size_t* bytes);

/* Sets *problem to the problem of the plan. *problem must be initialized with its _INIT macro before. */
KINTSUGI_API kintsugi_status kintsugi_plan_problem(kintsugi_plan plan, kintsugi_problem* problem);

/* Writes the complete plan as JSON (docs/schema/plan.schema.json), which kintsugi_plan_read accepts. Writes
 * at most `capacity` bytes including the terminating zero. *needed gets the size of the whole text; needed
 * may be NULL. buffer may be NULL if capacity is 0. A text that does not fit is truncated, with status
 * success. */
KINTSUGI_API kintsugi_status kintsugi_plan_describe(kintsugi_plan plan, char* buffer, size_t capacity,
                                                    size_t* needed);

/* Summary of a plan, for programs that ask in every call: it takes 1 us, a description 50 to 500. The
 * texts are valid until the plan is destroyed. */
typedef struct kintsugi_plan_summary {
  size_t struct_size;
  int32_t is_native;     /* 1: the native product is the only candidate */
  int32_t may_be_native; /* 1: the native product is the last candidate */
  int32_t is_offloaded;  /* 1: GPUs multiply matrices of the host */
  int32_t reserved;
  const char* candidates; /* names of the candidates, cheapest first: "fp16x3, bf16x6, native" */
  const char* reason;     /* sentence on why the plan has these candidates */
  const char* offload; /* sentence on whether GPUs multiply matrices of the host; "": there was no choice */
  /* Time of the vendor library's product on the device, a lower estimate by the GPU's profile; 0: not known. */
  double native_seconds;
} kintsugi_plan_summary;

#define KINTSUGI_PLAN_SUMMARY_INIT \
  { sizeof(kintsugi_plan_summary), 0, 0, 0, 0, NULL, NULL, NULL, 0 }

/* Sets *summary, which must be initialized with its _INIT macro before. */
KINTSUGI_API kintsugi_status kintsugi_plan_summarize(kintsugi_plan plan, kintsugi_plan_summary* summary);

/* Makes a plan for the problem and the settings in a description. The settings in the description precede the
 * handle's. Only allocator and queue of `options` are used. The library must know the description's format
 * version. */
KINTSUGI_API kintsugi_status kintsugi_plan_read(kintsugi_handle handle, const char* description,
                                                const kintsugi_options* options, kintsugi_plan* plan);

/* Runs the plan. handle may be NULL; with a handle, kintsugi_report then describes the execution. */
KINTSUGI_API kintsugi_status kintsugi_plan_execute(kintsugi_handle handle, kintsugi_plan plan,
                                                   const kintsugi_operands* operands);

typedef enum kintsugi_side { KINTSUGI_A = 0, KINTSUGI_B = 1 } kintsugi_side;

/* Splits one operand of the plan's problem, for any number of executions of plans with the same operand shape
 * and type. Set prepared_a or prepared_b in the problems of these plans. The data are copied, so the original
 * may be freed. C has the same bits as without preparation: an execution that needs another split splits the
 * copy again. */
KINTSUGI_API kintsugi_status kintsugi_prepare(kintsugi_handle handle, kintsugi_plan plan, kintsugi_side side,
                                              const void* data, kintsugi_prepared* prepared);
/* As kintsugi_prepare, without copying an original in device memory (host matrices are copied): the original
 * must stay in place, unchanged, while the prepared operand is used. Work on device memory goes to the plan's
 * queue; executions on other streams must wait for it (by an event or a synchronization) as for any data. */
KINTSUGI_API kintsugi_status kintsugi_prepare_borrowed(kintsugi_handle handle, kintsugi_plan plan,
                                                       kintsugi_side side, const void* data,
                                                       kintsugi_prepared* prepared);
/* Destroys a prepared operand. For an operand in device memory, waits for its device. Must not be called
 * while a stream of the operand's context is captured, since that would end the capture. */
KINTSUGI_API void kintsugi_prepared_destroy(kintsugi_prepared prepared);

/* Plans and executes one problem. The problem's prepared_a and prepared_b are ignored: the operands tell
 * which of them are prepared. */
KINTSUGI_API kintsugi_status kintsugi_gemm(kintsugi_handle handle, const kintsugi_problem* problem,
                                           const kintsugi_options* options,
                                           const kintsugi_operands* operands);

/* Computes `count` products, or batches of them, of different shapes: the experts of a layer. problems[i] and
 * operands[i] are those of kintsugi_gemm; all structs of an array have the struct_size of its first one. No C
 * may overlap the matrices of another group. FP32 groups in device memory without prepared operands and
 * workspace are computed by one launch where that is expected to be quicker (k <= 16384; scheme
 * bf16x6-direct). Each C has the bits of kintsugi_gemm with the scheme that computes it. All arguments are
 * checked and all plans made before the first product; messages begin with "group 3: ". A device, or an
 * allocation, may fail later. The handle's report is that of the one launch, with the products of all its
 * groups, or else of the last group. KINTSUGI_INVALID_ARGUMENT: count is negative, or an array is null. */
KINTSUGI_API kintsugi_status kintsugi_gemm_grouped(kintsugi_handle handle, int64_t count,
                                                   const kintsugi_problem* problems,
                                                   const kintsugi_options* options,
                                                   const kintsugi_operands* operands);

/* GEMM with the handle's settings, on host matrices or on matrices of one device (KINTSUGI_ANY_MEMORY); the
 * arguments are those of cblas_sgemm, _dgemm, _cgemm and _zgemm. alpha and beta are on the host. Complex scalars
 * and matrices are pairs of float (cgemm) or double (zgemm): real, imaginary. */
KINTSUGI_API kintsugi_status kintsugi_sgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                                            kintsugi_op op_b, int64_t m, int64_t n, int64_t k, float alpha,
                                            const float* a, int64_t lda, const float* b, int64_t ldb,
                                            float beta, float* c, int64_t ldc);
KINTSUGI_API kintsugi_status kintsugi_dgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                                            kintsugi_op op_b, int64_t m, int64_t n, int64_t k, double alpha,
                                            const double* a, int64_t lda, const double* b, int64_t ldb,
                                            double beta, double* c, int64_t ldc);
KINTSUGI_API kintsugi_status kintsugi_cgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                                            kintsugi_op op_b, int64_t m, int64_t n, int64_t k,
                                            const void* alpha, const void* a, int64_t lda, const void* b,
                                            int64_t ldb, const void* beta, void* c, int64_t ldc);
KINTSUGI_API kintsugi_status kintsugi_zgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                                            kintsugi_op op_b, int64_t m, int64_t n, int64_t k,
                                            const void* alpha, const void* a, int64_t lda, const void* b,
                                            int64_t ldb, const void* beta, void* c, int64_t ldc);
/* As kintsugi_sgemm, for double-double numbers; alpha and beta each point to one. Matrices on a device are
 * KINTSUGI_ENGINE_UNAVAILABLE, since no engine multiplies them there. */
KINTSUGI_API kintsugi_status kintsugi_ddgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                                             kintsugi_op op_b, int64_t m, int64_t n, int64_t k,
                                             const kintsugi_dd* alpha, const kintsugi_dd* a, int64_t lda,
                                             const kintsugi_dd* b, int64_t ldb, const kintsugi_dd* beta,
                                             kintsugi_dd* c, int64_t ldc);

/* What kintsugi_replace_gemm has done. Unless it is KINTSUGI_REPLACED, C is unchanged. */
typedef enum kintsugi_replacement {
  KINTSUGI_REPLACED = 0,     /* C is computed */
  KINTSUGI_LEFT_TO_BLAS = 1, /* the policy auto selects native, or an argument is wrong, which BLAS reports */
  KINTSUGI_REPLACEMENT_FAILED = 2 /* kintsugi_last_error() says why, as for a scheme of another type */
} kintsugi_replacement;

/* Multiplies in place of a call of BLAS. kintsugi-clang compiles such calls (docs/COMPILER-PASS.md); where the
 * result is not KINTSUGI_REPLACED, the program then calls its own BLAS with the same arguments. Matrices and
 * scalars are in host memory. Numbers and letters are BLAS's own: layout is 101 (row major) or 102 (column major);
 * op_a and op_b are 111, 112, 113 or 'N', 'T', 'C' in upper or lower case. With the policy emulate and a named
 * scheme the library computes native candidates too. */
KINTSUGI_API kintsugi_replacement kintsugi_replace_gemm(const kintsugi_options* options, kintsugi_type type,
                                                        int32_t layout, int32_t op_a, int32_t op_b, int64_t m,
                                                        int64_t n, int64_t k, const void* alpha,
                                                        const void* a, int64_t lda, const void* b,
                                                        int64_t ldb, const void* beta, void* c, int64_t ldc);

/* Releases what kintsugi_gemm and the calls with BLAS's arguments keep for the whole process: the plans of up
 * to 1024 problems, the last host workspace of 64 KiB to 1 GiB, and each device's memory for calls without a
 * workspace: at most 256 MiB, but all that was freed until a second after the last allocation of more than 32
 * MiB. Device memory is released only if its stream has been synchronized. For memory of destroyed graphs,
 * which is released too, the function waits for the device. It does not disturb calls that run meanwhile;
 * later calls plan and allocate again. Always
 * returns KINTSUGI_SUCCESS. */
KINTSUGI_API kintsugi_status kintsugi_release_caches(void);

/* Limits the threads of all calls of the process on the CPU, whatever option, setting and OpenMP say. 0: no
 * limit; a negative number changes nothing. Returns the threads that a call without the option then has. */
KINTSUGI_API int kintsugi_set_threads(int threads);

/* ------------------------------------------------------------- calibration */

/* Callback before each step of a calibration. `done`: fraction of the work that is finished, from 0 to 1.
 * `step`: name of the step. The last call has done = 1 and the name of the profile's file. */
typedef void (*kintsugi_progress)(void* user, double done, const char* step);

typedef struct kintsugi_calibration {
  size_t struct_size;
  const char*
      file; /* the profile's; NULL: $XDG_CONFIG_HOME/kintsugi/profiles/DEVICE.json, where calls look for it */
  int32_t quick; /* 1: fewer repetitions */
  int32_t blind; /* 1: ignores the costs that the library has for this device, to test the calibration */
  kintsugi_progress progress; /* NULL: none */
  void* progress_user;
  const char* engine; /* cuda: the calling thread's GPU; cpu; NULL: cuda where it can run, else cpu */
} kintsugi_calibration;

#define KINTSUGI_CALIBRATION_INIT \
  { sizeof(kintsugi_calibration), 0, 0, 0, 0, 0, 0 }

/* Measures the kernels and calls of the calling thread's device, or of the CPU, which should be idle, for up to
 * two minutes, and writes a profile by which the policy auto decides from then on, in this process and in later
 * ones (docs/DEVICES.md). Takes 1.8 GiB of a GPU's memory, and for large products their workspaces.
 * KINTSUGI_ENGINE_UNAVAILABLE: there is no device with kernels that can be calibrated; KINTSUGI_BAD_SETTING:
 * the file cannot be written, or the engine has no costs. */
KINTSUGI_API kintsugi_status kintsugi_calibrate(const kintsugi_calibration* calibration);

/* ------------------------------------------------------------ descriptions */
/* All functions of this section write JSON into a buffer as kintsugi_plan_describe does. */

/* Describes the handle's last execution: engine, number of batch items that each scheme multiplied, largest
 * dynamic ranges found, blocks of C. After work on device memory the function waits for the device; a
 * replayed graph counts as an execution. Must not be called while a stream of the execution's context is
 * captured. */
KINTSUGI_API kintsugi_status kintsugi_report(kintsugi_handle handle, char* buffer, size_t capacity,
                                             size_t* needed);

/* Summary of a handle's last execution, as kintsugi_plan_summary is one of a plan. The texts are valid until the
 * handle's next call. */
typedef struct kintsugi_report_summary {
  size_t struct_size;
  const char* scheme;           /* first candidate that multiplied a batch item; "": nothing was multiplied */
  const char* offload_obstacle; /* why the host computed what was planned for GPUs; "": it did not */
  int64_t recomputed_elements;
  int64_t items_with_special_values; /* batch items with NaN or infinities in A or B */
  int32_t offload_devices;           /* GPUs that computed a part of C of the host */
  int32_t reserved;
} kintsugi_report_summary;

#define KINTSUGI_REPORT_SUMMARY_INIT \
  { sizeof(kintsugi_report_summary), NULL, NULL, 0, 0, 0, 0 }

/* Sets *summary, which must be initialized with its _INIT macro before. After work on device memory the function
 * waits for the device, as kintsugi_report does. */
KINTSUGI_API kintsugi_status kintsugi_report_summarize(kintsugi_handle handle,
                                                       kintsugi_report_summary* summary);

/* Describes all schemes: program, bound, source. */
KINTSUGI_API kintsugi_status kintsugi_describe_schemes(char* buffer, size_t capacity, size_t* needed);

/* Describes all engines: what each engine can do on this machine, and the reason if it cannot run. */
KINTSUGI_API kintsugi_status kintsugi_describe_engines(char* buffer, size_t capacity, size_t* needed);

/* Describes all settings: type, accepted values, default, and the current value with its source for calls
 * with the handle. The handle may be NULL. */
KINTSUGI_API kintsugi_status kintsugi_describe_settings(kintsugi_handle handle, char* buffer, size_t capacity,
                                                        size_t* needed);

#ifdef __cplusplus
}
#endif

#endif
