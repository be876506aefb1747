// Part of kintsugi.hpp, which users include: problems, queues and options.
#ifndef KINTSUGI_CXX_PROBLEM_HPP
#define KINTSUGI_CXX_PROBLEM_HPP

#include <cstdint>
#include <optional>
#include <string>

#include "kintsugi/cxx/types.hpp"

namespace kintsugi {

// ----------------------------------------------------------------- problem

// One problem: shapes and types, no data. The defaults are one column-major FP32 product of host matrices.
struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  Op op_a = Op::N, op_b = Op::N;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  // leading dimensions of A, B, C as stored (before op); at least 1
  Layout layout = Layout::column_major;    // layout of A, B and C
  Type type_a = Type::f32, type_b = Type::f32, type_c = Type::f32, type_scalar = Type::f32;
  std::int64_t batch_count = 1;                           // 0: nothing is done
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;  // of strided batches; 0: all items share the input
  BatchKind batch_kind = BatchKind::strided;
  PointerMode pointer_mode = PointerMode::host;  // memory of alpha and beta
  Memory memory = Memory::host;                  // memory of A, B and C
  // True if executions of a plan will get the operand prepared (kintsugi.h). gemm() ignores these members.
  bool prepared_a = false, prepared_b = false;
  bool adds_to_c = false;         // beta will not be 0: a hint for the policy auto (kintsugi.h)
  bool native_elsewhere = false;  // ignored (kintsugi.h)

  // Returns the problem as a struct of the C ABI.
  kintsugi_problem to_c() const {
    kintsugi_problem p = KINTSUGI_PROBLEM_INIT;
    p.m = m, p.n = n, p.k = k;
    p.lda = lda, p.ldb = ldb, p.ldc = ldc;
    p.batch_count = batch_count;
    p.stride_a = stride_a, p.stride_b = stride_b, p.stride_c = stride_c;
    p.op_a = static_cast<std::int32_t>(op_a), p.op_b = static_cast<std::int32_t>(op_b);
    p.type_a = static_cast<std::int32_t>(type_a), p.type_b = static_cast<std::int32_t>(type_b);
    p.type_c = static_cast<std::int32_t>(type_c), p.type_scalar = static_cast<std::int32_t>(type_scalar);
    p.layout = static_cast<std::int32_t>(layout);
    p.pointer_mode = static_cast<std::int32_t>(pointer_mode);
    p.memory = static_cast<std::int32_t>(memory);
    p.batch_kind = static_cast<std::int32_t>(batch_kind);
    p.prepared_a = prepared_a ? 1 : 0, p.prepared_b = prepared_b ? 1 : 0;
    p.adds_to_c = adds_to_c ? 1 : 0, p.native_elsewhere = native_elsewhere ? 1 : 0;
    return p;
  }

  // Returns the problem in a struct of the C ABI.
  static Problem from_c(const kintsugi_problem& p) {
    Problem problem;
    problem.m = p.m, problem.n = p.n, problem.k = p.k;
    problem.lda = p.lda, problem.ldb = p.ldb, problem.ldc = p.ldc;
    problem.batch_count = p.batch_count;
    problem.stride_a = p.stride_a, problem.stride_b = p.stride_b, problem.stride_c = p.stride_c;
    problem.op_a = static_cast<Op>(p.op_a), problem.op_b = static_cast<Op>(p.op_b);
    problem.type_a = static_cast<Type>(p.type_a), problem.type_b = static_cast<Type>(p.type_b);
    problem.type_c = static_cast<Type>(p.type_c), problem.type_scalar = static_cast<Type>(p.type_scalar);
    problem.layout = static_cast<Layout>(p.layout);
    problem.pointer_mode = static_cast<PointerMode>(p.pointer_mode);
    problem.memory = static_cast<Memory>(p.memory);
    problem.batch_kind = static_cast<BatchKind>(p.batch_kind);
    problem.prepared_a = p.prepared_a != 0, problem.prepared_b = p.prepared_b != 0;
    problem.adds_to_c = p.adds_to_c != 0, problem.native_elsewhere = p.native_elsewhere != 0;
    return problem;
  }

  // Returns the problem of one product of T matrices, with the smallest leading dimensions that the shapes
  // allow.
  template <Scalar T>
  static Problem dense(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       Layout layout = Layout::column_major) {
    const auto smallest_ld = [layout](std::int64_t rows, std::int64_t columns) {
      const std::int64_t line_length = layout == Layout::column_major ? rows : columns;
      return line_length > 1 ? line_length : std::int64_t{1};
    };
    Problem p = of<T>(m, n, k);
    p.op_a = op_a, p.op_b = op_b, p.layout = layout;
    p.lda = op_a == Op::N ? smallest_ld(m, k) : smallest_ld(k, m);
    p.ldb = op_b == Op::N ? smallest_ld(k, n) : smallest_ld(n, k);
    p.ldc = smallest_ld(m, n);
    return p;
  }

  // Returns the problem of one product of T matrices. The caller must set the leading dimensions.
  template <Scalar T>
  static Problem of(std::int64_t m, std::int64_t n, std::int64_t k) {
    Problem p;
    p.m = m, p.n = n, p.k = k;
    p.type_a = p.type_b = p.type_c = p.type_scalar = type_of<T>();
    return p;
  }
};

// ------------------------------------------------------------------- queue

// Queue of work on device memory (kintsugi.h). The default is the default stream, with calls that return when
// C is complete.
using Queue = kintsugi_queue;

// Returns the queue of a cudaStream_t or CUstream. Calls with this queue return when their work is enqueued.
inline Queue cuda_queue(void* stream) { return {KINTSUGI_QUEUE_CUDA, 0, stream}; }

// ----------------------------------------------------------------- options

// Options of a plan. The value of an option that is not set comes from the first of these sources that has
// one: the handle, an environment variable KINTSUGI_..., the settings file, the default.
struct Options {
  std::optional<std::string> accuracy = {};     // an accuracy that kintsugi_options (kintsugi.h) lists
  std::optional<std::string> scheme = {};       // name of schemes(); Error is thrown if it cannot run
  std::optional<std::string> engine = {};       // name of engines(); Error is thrown if it cannot run
  std::optional<std::string> policy = {};       // "auto", "emulate", "native"
  std::optional<std::string> accumulator = {};  // reference engine: matrix unit whose additions are modeled
  std::int64_t workspace_limit = 0;      // bytes; 0: not set; blocks of C fit the limit, with the same bits
  std::int32_t threads = 0;              // 0: not set
  kintsugi_allocate allocate = nullptr;  // allocate and deallocate: both or neither; they must not throw
  kintsugi_deallocate deallocate = nullptr;
  void* allocator_user = nullptr;                   // argument `user` of allocate and deallocate
  Queue queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};  // for executions without a queue of their own

  // Returns the options as a struct of the C ABI. It points to the strings of *this, which must outlive it.
  kintsugi_options to_c() const {
    const auto text = [](const std::optional<std::string>& value) {
      return value ? value->c_str() : nullptr;
    };
    kintsugi_options o = KINTSUGI_OPTIONS_INIT;
    o.accuracy = text(accuracy);
    o.scheme = text(scheme);
    o.engine = text(engine);
    o.policy = text(policy);
    o.accumulator = text(accumulator);
    o.workspace_limit = workspace_limit;
    o.threads = threads;
    o.allocate = allocate;
    o.deallocate = deallocate;
    o.allocator_user = allocator_user;
    o.queue = queue;
    return o;
  }
};

}  // namespace kintsugi

#endif
