// Kintsugi for C++20: header-only, inline over the C ABI of kintsugi.h.
//
//   std::vector<float> a(m * k), b(k * n), c(m * n);
//   kintsugi::gemm(kintsugi::Op::N, kintsugi::Op::N, m, n, k, 1.0f, a.data(), m, b.data(), k, 0.0f,
//                  c.data(), m, {.scheme = "fp16x3"});
//
// Conventions of all functions here:
//  - C = alpha * op(A) * op(B) + beta * C with op(A) m x k, op(B) k x n and C m x n, all dense.
//    Sizes, leading dimensions and strides are 64-bit and count elements, not bytes.
//  - Matrices are column-major, element (i, j) at i + j * ld, unless a Layout is given.
//  - A and B are not read, and may be null, when alpha = 0 or k = 0; the old C is not read when beta = 0.
//  - Every failure throws Error, with the status and a message that has the values in it; C is then
//    unchanged.
//  - Nothing is printed, and the program is never ended.
#ifndef KINTSUGI_KINTSUGI_HPP
#define KINTSUGI_KINTSUGI_HPP

#if __cplusplus < 201709L  // GCC 10's value of __cplusplus for C++20
#error "kintsugi.hpp needs C++20 (CMake: link kintsugi::cxx); kintsugi.h serves C and C++11"
#endif

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kintsugi/kintsugi.h"

namespace kintsugi {

// ------------------------------------------------------------------ status

enum class Status : std::int32_t {
  success = KINTSUGI_SUCCESS,
  invalid_argument = KINTSUGI_INVALID_ARGUMENT,
  not_supported = KINTSUGI_NOT_SUPPORTED,
  engine_unavailable = KINTSUGI_ENGINE_UNAVAILABLE,
  out_of_memory = KINTSUGI_OUT_OF_MEMORY,
  workspace_too_small = KINTSUGI_WORKSPACE_TOO_SMALL,
  contract_unreachable = KINTSUGI_CONTRACT_UNREACHABLE,
  bad_setting = KINTSUGI_BAD_SETTING,
  device_error = KINTSUGI_DEVICE_ERROR,
  internal = KINTSUGI_INTERNAL,
};

// "success", "invalid_argument", ...; "unknown" for a number that this version does not have.
inline const char* status_name(Status status) {
  return kintsugi_status_name(static_cast<kintsugi_status>(status));
}

// "MAJOR.MINOR.PATCH" of the loaded library.
inline std::string version() { return kintsugi_version(); }

// Exception of all functions of this header, thrown when a call of the library fails; what() is the message
// of kintsugi_last_error().
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

// Throws Error unless the status is success.
inline void check(kintsugi_status status) {
  if (status != KINTSUGI_SUCCESS) throw Error(static_cast<Status>(status), kintsugi_last_error());
}

// ------------------------------------------------------------------- enums

enum class Op : std::int32_t {
  N = KINTSUGI_OP_N,  // op(X) = X
  T = KINTSUGI_OP_T,  // transpose
  C = KINTSUGI_OP_C,  // conjugate transpose
};

enum class Layout : std::int32_t {
  column_major = KINTSUGI_COLUMN_MAJOR,  // element (i, j) at i + j * ld
  row_major = KINTSUGI_ROW_MAJOR,        // element (i, j) at i * ld + j
};

enum class Type : std::int32_t {
  f32 = KINTSUGI_F32,
  f64 = KINTSUGI_F64,
  c32 = KINTSUGI_C32,
  c64 = KINTSUGI_C64,
  dd = KINTSUGI_DD
};

enum class PointerMode : std::int32_t {
  host = KINTSUGI_SCALARS_ON_HOST,
  device = KINTSUGI_SCALARS_ON_DEVICE
};

enum class Memory : std::int32_t { host = KINTSUGI_HOST, device = KINTSUGI_DEVICE };

enum class BatchKind : std::int32_t {
  strided = KINTSUGI_BATCH_STRIDED,    // item t of A begins at a + t * stride_a; likewise B and C
  pointers = KINTSUGI_BATCH_POINTERS,  // a, b and c are arrays of batch_count pointers
};

enum class Side : std::int32_t { A = KINTSUGI_A, B = KINTSUGI_B };

enum class LogLevel : std::int32_t {
  off = KINTSUGI_LOG_OFF,
  error = KINTSUGI_LOG_ERROR,
  info = KINTSUGI_LOG_INFO,
  debug = KINTSUGI_LOG_DEBUG,
};

// The number hi + lo with about 106 significant bits; kintsugi.h defines which pairs are numbers.
using DoubleDouble = kintsugi_dd;

// Element types of gemm.
template <class T>
concept Scalar = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::complex<float>> ||
    std::same_as<T, std::complex<double>> || std::same_as<T, DoubleDouble>;

template <Scalar T>
constexpr Type type_of() {
  if constexpr (std::same_as<T, float>) return Type::f32;
  if constexpr (std::same_as<T, double>) return Type::f64;
  if constexpr (std::same_as<T, std::complex<float>>) return Type::c32;
  if constexpr (std::same_as<T, std::complex<double>>) return Type::c64;
  if constexpr (std::same_as<T, DoubleDouble>) return Type::dd;
}

// ----------------------------------------------------------------- problem

// One problem: shapes and types, no data. The defaults are one column-major FP32 product of host matrices.
struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  Op op_a = Op::N, op_b = Op::N;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  // of A, B, C as stored, before op; at least 1
  Layout layout = Layout::column_major;    // of A, B and C
  Type type_a = Type::f32, type_b = Type::f32, type_c = Type::f32, type_scalar = Type::f32;
  std::int64_t batch_count = 1;                           // 0: nothing is done
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;  // strided batches; 0 reuses an input
  BatchKind batch_kind = BatchKind::strided;
  PointerMode pointer_mode = PointerMode::host;  // of alpha and beta
  Memory memory = Memory::host;                  // of A, B and C
  // True if executions will pass the operand prepared (kintsugi.h); gemm() looks at its operands instead.
  bool prepared_a = false, prepared_b = false;

  // The problem as a struct of the C ABI.
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
    return p;
  }

  // The problem from a struct of the C ABI.
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
    return problem;
  }

  // One product of T matrices without gaps, with the smallest leading dimensions that the shapes allow.
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

  // One product of T matrices; the leading dimensions are still to be filled in.
  template <Scalar T>
  static Problem of(std::int64_t m, std::int64_t n, std::int64_t k) {
    Problem p;
    p.m = m, p.n = n, p.k = k;
    p.type_a = p.type_b = p.type_c = p.type_scalar = type_of<T>();
    return p;
  }
};

// ------------------------------------------------------------------- queue

// Queue of work on device memory (kintsugi.h). By default: the default stream, and calls return when C is
// complete.
using Queue = kintsugi_queue;

// A queue of a cudaStream_t or CUstream: calls return when their work is enqueued.
inline Queue cuda_queue(void* stream) { return {KINTSUGI_QUEUE_CUDA, 0, stream}; }

// ----------------------------------------------------------------- options

// Options of a plan. An option that is not set comes from the handle, then from KINTSUGI_... in the
// environment, the settings file, the default.
struct Options {
  std::optional<std::string> accuracy = {};     // one that kintsugi_options (kintsugi.h) lists
  std::optional<std::string> scheme = {};       // a name of schemes(): runs it or throws Error
  std::optional<std::string> engine = {};       // a name of engines(): runs on it or throws Error
  std::optional<std::string> policy = {};       // "auto", "emulate", "native"
  std::optional<std::string> accumulator = {};  // reference engine: matrix unit whose additions are modeled
  std::int64_t workspace_limit = 0;      // bytes, 0: not set; C is computed in blocks to fit, same bits
  std::int32_t threads = 0;              // 0: not set
  kintsugi_allocate allocate = nullptr;  // allocate and deallocate: both or neither; they must not throw
  kintsugi_deallocate deallocate = nullptr;
  void* allocator_user = nullptr;                   // passed to both as `user`
  Queue queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};  // of executions that name none

  // The options as a struct of the C ABI; it points to the strings of *this, which must outlive the result.
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

namespace detail {

// Returns the text that a describing function of the C ABI writes. `describe` is called with (buffer,
// capacity, &needed) until the text fits, since it may grow between two calls.
template <class Describe>
std::string read_text(Describe describe) {
  std::size_t needed = 0;
  check(describe(nullptr, std::size_t{0}, &needed));
  std::string text;
  do {
    text.resize(needed + 1);
    check(describe(text.data(), text.size(), &needed));
  } while (needed > text.size());
  text.resize(std::strlen(text.c_str()));
  return text;
}

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const noexcept {
    destroy(object);
  }
};

template <class Pointer, auto destroy>
using Owner = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy<destroy>>;

}  // namespace detail

// ------------------------------------------------------------------ handle

// Settings, log sink and report of one caller. Serves one thread at a time; move-only.
class Handle {
 public:
  using Log = std::function<void(LogLevel level, std::string_view message)>;

  Handle() {
    kintsugi_handle handle = nullptr;
    check(kintsugi_create(&handle));
    handle_.reset(handle);
  }

  // Sets a setting of settings() for all later calls with this handle. Error bad_setting: an unknown name, or
  // a value that the setting does not accept; the message has the accepted ones.
  void set(const std::string& name, const std::string& value) {
    check(kintsugi_set(native(), name.c_str(), value.c_str()));
  }
  // Unsets the setting: the environment, the settings file or the default counts again.
  void unset(const std::string& name) { check(kintsugi_set(native(), name.c_str(), nullptr)); }

  // Passes the library's log lines to `sink`, those that the setting "log" selects; an empty function turns
  // them off. Exceptions of the sink are ignored: an exception must not cross the C ABI.
  void set_log(Log sink) {
    auto stored = sink ? std::make_unique<Log>(std::move(sink)) : nullptr;
    check(kintsugi_set_log(native(), stored ? &Handle::pass_on : nullptr, stored.get()));
    log_ = std::move(stored);
  }

  // The C ABI's handle, still owned by this object.
  kintsugi_handle native() const noexcept { return handle_.get(); }

 private:
  static void pass_on(void* user, kintsugi_log_level level, const char* message) noexcept {
    try {
      (*static_cast<const Log*>(user))(static_cast<LogLevel>(level), message);
    } catch (...) {
    }
  }

  std::unique_ptr<Log> log_;  // declared first, hence destroyed after the handle that points to it
  detail::Owner<kintsugi_handle, kintsugi_destroy> handle_;
};

// ---------------------------------------------------------------- operands

// One operand, split once by Plan::prepare for any number of executions, in any number of threads, of plans
// with the same scheme and operand shape. Move-only.
class Prepared {
 public:
  // Takes ownership of the C ABI's object.
  explicit Prepared(kintsugi_prepared prepared) noexcept : prepared_(prepared) {}
  kintsugi_prepared native() const noexcept { return prepared_.get(); }

 private:
  detail::Owner<kintsugi_prepared, kintsugi_prepared_destroy> prepared_;
};

// Input of an execution: the elements of A or B, or a prepared operand in their place.
template <class Pointer>
class Input {
 public:
  Input(Pointer data) noexcept : data_(data) {}
  Input(std::nullptr_t) noexcept {}
  Input(const Prepared& prepared) noexcept : prepared_(prepared.native()) {}
  Input(Prepared&&) = delete;  // a temporary would be destroyed before the execution

  const void* data() const noexcept { return data_; }
  kintsugi_prepared prepared() const noexcept { return prepared_; }

 private:
  const void* data_ = nullptr;
  kintsugi_prepared prepared_ = nullptr;
};

namespace detail {

// Throws Error unless the problem is of that type and batch kind, with scalars on the host.
inline void require(const Problem& problem, Type type, BatchKind batch_kind) {
  for (const Type each : {problem.type_a, problem.type_b, problem.type_c, problem.type_scalar}) {
    if (each == type) continue;
    throw Error(Status::invalid_argument, "the problem is of type " + std::to_string(static_cast<int>(each)) +
                                              ", the data are of type " +
                                              std::to_string(static_cast<int>(type)));
  }
  if (problem.batch_kind != batch_kind) {
    throw Error(Status::invalid_argument,
                batch_kind == BatchKind::strided
                    ? "the problem is a batch of pointers, the data are strided"
                    : "the problem is of strided data, the data are a batch of pointers");
  }
  if (problem.pointer_mode != PointerMode::host) {
    throw Error(Status::invalid_argument,
                "the problem has scalars on a device, alpha and beta are on the host");
  }
}

template <class Pointer>
kintsugi_operands operands_of(const void* alpha, const Input<Pointer>& a, const Input<Pointer>& b,
                              const void* beta, const void* c) {
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = alpha;
  operands.a = a.data();
  operands.b = b.data();
  operands.beta = beta;
  operands.c = const_cast<void*>(c);  // T* or T* const*: the elements of C are writable
  operands.prepared_a = a.prepared();
  operands.prepared_b = b.prepared();
  return operands;
}

}  // namespace detail

// -------------------------------------------------------------------- plan

// Program, engine and blocks of C selected for one problem under one contract. Immutable: any number of
// threads may execute one plan at the same time. Move-only.
class Plan {
 public:
  // Selects the program. Error contract_unreachable: no program is proved to give the accuracy;
  // engine_unavailable: the named engine cannot run on this machine; bad_setting: a name or value is unknown;
  // invalid_argument: the problem is not valid.
  explicit Plan(const Problem& problem, const Options& options = {}, const Handle* handle = nullptr) {
    const kintsugi_problem p = problem.to_c();
    const kintsugi_options o = options.to_c();
    kintsugi_plan plan = nullptr;
    check(kintsugi_plan_create(handle != nullptr ? handle->native() : nullptr, &p, &o, &plan));
    plan_.reset(plan);
  }

  // Makes a plan from a describe() text: for the described problem, under the described settings, which here
  // precede the handle's. Of `options` only allocator and queue are used. Error invalid_argument: the text is
  // no description, or one of an unknown format version.
  static Plan read(const std::string& description, const Options& options = {},
                   const Handle* handle = nullptr) {
    const kintsugi_options o = options.to_c();
    kintsugi_plan plan = nullptr;
    check(kintsugi_plan_read(handle != nullptr ? handle->native() : nullptr, description.c_str(), &o, &plan));
    return Plan(plan);
  }

  // C = alpha * op(A) * op(B) + beta * C. a and b are pointers to T, nullptr or Prepared operands. A
  // workspace has at least workspace_size() bytes at an address that is a multiple of 256; without one the
  // library allocates. Work on device memory goes to `queue`, by default the plan's. With a handle,
  // report(handle) then describes the execution. Error invalid_argument: the plan's problem has other types
  // than T, or is a batch of pointers.
  template <Scalar T>
  void execute(std::type_identity_t<T> alpha, std::type_identity_t<Input<const T*>> a,
               std::type_identity_t<Input<const T*>> b, std::type_identity_t<T> beta, T* c,
               std::span<std::byte> workspace = {}, Handle* handle = nullptr, const Queue& queue = {}) const {
    detail::require(problem(), type_of<T>(), BatchKind::strided);
    run(&alpha, a, b, &beta, c, workspace, handle, queue);
  }

  // Like execute() above, for a problem with BatchKind::pointers: a, b and c are arrays of batch_count
  // pointers, in the same memory as the matrices.
  template <Scalar T>
  void execute(std::type_identity_t<T> alpha, std::type_identity_t<Input<const T* const*>> a,
               std::type_identity_t<Input<const T* const*>> b, std::type_identity_t<T> beta, T* const* c,
               std::span<std::byte> workspace = {}, Handle* handle = nullptr, const Queue& queue = {}) const {
    detail::require(problem(), type_of<T>(), BatchKind::pointers);
    run(&alpha, a, b, &beta, c, workspace, handle, queue);
  }

  // Executes operands of the C ABI, whose types are not checked: for any element type, scalars on a device.
  void execute(const kintsugi_operands& operands, Handle* handle = nullptr) const {
    check(kintsugi_plan_execute(handle != nullptr ? handle->native() : nullptr, native(), &operands));
  }

  // Splits A or B of the plan's problem once. The data are copied; the original may be freed.
  template <Scalar T>
  Prepared prepare(Side side, const T* data, Handle* handle = nullptr) const {
    return prepare_by(kintsugi_prepare, side, data, handle);
  }
  // Like prepare(), without a copy: the original must stay in place, unchanged. Host matrices are copied
  // nevertheless.
  template <Scalar T>
  Prepared prepare_borrowed(Side side, const T* data, Handle* handle = nullptr) const {
    return prepare_by(kintsugi_prepare_borrowed, side, data, handle);
  }

  // Exact number of bytes that an execution needs, a multiple of 256.
  std::size_t workspace_size() const {
    std::size_t bytes = 0;
    check(kintsugi_plan_workspace_size(native(), &bytes));
    return bytes;
  }

  // The plan as complete JSON, which read() accepts.
  std::string describe() const {
    return detail::read_text([this](char* buffer, std::size_t capacity, std::size_t* needed) {
      return kintsugi_plan_describe(native(), buffer, capacity, needed);
    });
  }

  // The problem of the plan.
  Problem problem() const {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    check(kintsugi_plan_problem(native(), &problem));
    return Problem::from_c(problem);
  }
  kintsugi_plan native() const noexcept { return plan_.get(); }

 private:
  explicit Plan(kintsugi_plan plan) noexcept : plan_(plan) {}

  template <Scalar T, class Prepare>
  Prepared prepare_by(Prepare call, Side side, const T* data, Handle* handle) const {
    detail::require(problem(), type_of<T>(), BatchKind::strided);
    kintsugi_prepared prepared = nullptr;
    check(call(handle != nullptr ? handle->native() : nullptr, native(), static_cast<kintsugi_side>(side),
               data, &prepared));
    return Prepared(prepared);
  }

  template <class Pointer>
  void run(const void* alpha, const Input<Pointer>& a, const Input<Pointer>& b, const void* beta,
           const void* c, std::span<std::byte> workspace, Handle* handle, const Queue& queue) const {
    kintsugi_operands operands = detail::operands_of(alpha, a, b, beta, c);
    operands.workspace = workspace.data();
    operands.workspace_size = workspace.size();
    operands.queue = queue;
    execute(operands, handle);
  }

  detail::Owner<kintsugi_plan, kintsugi_plan_destroy> plan_;
};

// -------------------------------------------------------------------- gemm

// Plans and executes one problem; its types must be T's. The plan counts the operands that are given prepared
// as prepared.
template <Scalar T>
void gemm(const Problem& problem, std::type_identity_t<T> alpha, std::type_identity_t<Input<const T*>> a,
          std::type_identity_t<Input<const T*>> b, std::type_identity_t<T> beta, T* c,
          const Options& options = {}, Handle* handle = nullptr) {
  detail::require(problem, type_of<T>(), BatchKind::strided);
  const kintsugi_problem p = problem.to_c();
  const kintsugi_options o = options.to_c();
  const kintsugi_operands operands = detail::operands_of(&alpha, a, b, &beta, c);
  check(kintsugi_gemm(handle != nullptr ? handle->native() : nullptr, &p, &o, &operands));
}

// One product. lda, ldb and ldc are the leading dimensions of A, B and C as stored. Each is at least 1 and at
// least
//                  lda, Op::N   lda, other   ldb, Op::N   ldb, other   ldc
//   column-major       m            k            k            n         m
//   row-major          k            m            n            k         n
template <Scalar T>
void gemm(Layout layout, Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
          std::type_identity_t<T> alpha, std::type_identity_t<const T*> a, std::int64_t lda,
          std::type_identity_t<const T*> b, std::int64_t ldb, std::type_identity_t<T> beta, T* c,
          std::int64_t ldc, const Options& options = {}, Handle* handle = nullptr) {
  Problem problem = Problem::of<T>(m, n, k);
  problem.layout = layout;
  problem.op_a = op_a, problem.op_b = op_b;
  problem.lda = lda, problem.ldb = ldb, problem.ldc = ldc;
  gemm(problem, alpha, a, b, beta, c, options, handle);
}

// One product of column-major matrices.
template <Scalar T>
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, std::type_identity_t<T> alpha,
          std::type_identity_t<const T*> a, std::int64_t lda, std::type_identity_t<const T*> b,
          std::int64_t ldb, std::type_identity_t<T> beta, T* c, std::int64_t ldc, const Options& options = {},
          Handle* handle = nullptr) {
  gemm(Layout::column_major, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, options, handle);
}

// batch_count column-major products of equal shape: item t of A begins at a + t * stride_a, likewise B and
// C. A stride of 0 uses one A or B in every item; items of C must not overlap.
template <Scalar T>
void gemm_strided_batch(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
                        std::type_identity_t<T> alpha, std::type_identity_t<const T*> a, std::int64_t lda,
                        std::int64_t stride_a, std::type_identity_t<const T*> b, std::int64_t ldb,
                        std::int64_t stride_b, std::type_identity_t<T> beta, T* c, std::int64_t ldc,
                        std::int64_t stride_c, std::int64_t batch_count, const Options& options = {},
                        Handle* handle = nullptr) {
  Problem problem = Problem::of<T>(m, n, k);
  problem.op_a = op_a, problem.op_b = op_b;
  problem.lda = lda, problem.ldb = ldb, problem.ldc = ldc;
  problem.stride_a = stride_a, problem.stride_b = stride_b, problem.stride_c = stride_c;
  problem.batch_count = batch_count;
  gemm(problem, alpha, a, b, beta, c, options, handle);
}

// batch_count column-major products of equal shape; a, b and c are arrays of batch_count pointers.
template <Scalar T>
void gemm_pointer_batch(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
                        std::type_identity_t<T> alpha, std::type_identity_t<const T* const*> a,
                        std::int64_t lda, std::type_identity_t<const T* const*> b, std::int64_t ldb,
                        std::type_identity_t<T> beta, T* const* c, std::int64_t ldc, std::int64_t batch_count,
                        const Options& options = {}, Handle* handle = nullptr) {
  Problem problem = Problem::of<T>(m, n, k);
  problem.op_a = op_a, problem.op_b = op_b;
  problem.lda = lda, problem.ldb = ldb, problem.ldc = ldc;
  problem.batch_count = batch_count;
  problem.batch_kind = BatchKind::pointers;
  Plan(problem, options, handle).execute(alpha, a, b, beta, c, {}, handle);
}

// Gives back the plans and the device memory that the library keeps for later calls of gemm().
inline void release_caches() { check(kintsugi_release_caches()); }

// ------------------------------------------------------------ descriptions

// Describes the handle's last execution, as JSON: engine, scheme of each batch item, ranges found, blocks of
// C.
inline std::string report(const Handle& handle) {
  return detail::read_text([&handle](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_report(handle.native(), buffer, capacity, needed);
  });
}

// Describes all schemes, as JSON: program, bound, source.
inline std::string schemes() { return detail::read_text(kintsugi_describe_schemes); }

// Describes all engines, as JSON: what each can do on this machine, and why not more.
inline std::string engines() { return detail::read_text(kintsugi_describe_engines); }

// Describes all settings, as JSON: type, accepted values, default, and the value in effect with its source.
inline std::string settings(const Handle* handle = nullptr) {
  return detail::read_text([handle](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_describe_settings(handle != nullptr ? handle->native() : nullptr, buffer, capacity,
                                      needed);
  });
}
inline std::string settings(const Handle& handle) { return settings(&handle); }

}  // namespace kintsugi

#endif
