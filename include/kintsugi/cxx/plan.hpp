// Part of kintsugi.hpp, which users include: operands and plans.
#ifndef KINTSUGI_CXX_PLAN_HPP
#define KINTSUGI_CXX_PLAN_HPP

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "kintsugi/cxx/handle.hpp"
#include "kintsugi/cxx/problem.hpp"

namespace kintsugi {

// ---------------------------------------------------------------- operands

// An operand that Plan::prepare has split once. It serves any number of executions, in any number of threads,
// of plans with the same scheme and operand shape. Move-only.
class Prepared {
 public:
  // Takes ownership of the C ABI's object.
  explicit Prepared(kintsugi_prepared prepared) noexcept : prepared_(prepared) {}
  kintsugi_prepared native() const noexcept { return prepared_.get(); }

 private:
  detail::Owner<kintsugi_prepared, kintsugi_prepared_destroy> prepared_;
};

// Input of an execution: a pointer to the elements of A or B, or a prepared operand.
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

// Throws Error unless the problem has this type, this batch kind and scalars on the host.
inline void require(const Problem& problem, Type type, BatchKind batch_kind) {
  for (const Type each : {problem.type_a, problem.type_b, problem.type_c, problem.type_scalar}) {
    if (each == type) continue;
    throw Error(Status::invalid_argument, std::string("the problem is of type ") + type_name(each) +
                                              ", the data are of type " + type_name(type));
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

// Program, engine and blocks of C for one problem under one contract. A plan is immutable, so any number of
// threads may execute it at the same time. Move-only.
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

  // Makes a plan for the problem and the settings in a describe() text. The settings in the text precede the
  // handle's. Only allocator and queue of `options` are used. Error invalid_argument: the text is no
  // description, or it has an unknown format version.
  static Plan read(const std::string& description, const Options& options = {},
                   const Handle* handle = nullptr) {
    const kintsugi_options o = options.to_c();
    kintsugi_plan plan = nullptr;
    check(kintsugi_plan_read(handle != nullptr ? handle->native() : nullptr, description.c_str(), &o, &plan));
    return Plan(plan);
  }

  // C = alpha * op(A) * op(B) + beta * C. a and b are pointers to T, nullptr or Prepared operands.
  // `workspace`: at least workspace_size() bytes at an address that is a multiple of 256; if it is empty, the
  // library allocates. `queue`: queue for work on device memory, by default the plan's queue. `handle`:
  // report(handle) will describe the execution. Error invalid_argument: the plan's problem has other types
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

  // Executes the plan with operands of the C ABI. Their types are not checked. This function also serves
  // scalars on a device.
  void execute(const kintsugi_operands& operands, Handle* handle = nullptr) const {
    check(kintsugi_plan_execute(handle != nullptr ? handle->native() : nullptr, native(), &operands));
  }

  // Splits A or B of the plan's problem. The data are copied, so the original may be freed.
  template <Scalar T>
  Prepared prepare(Side side, const T* data, Handle* handle = nullptr) const {
    return prepare_by(kintsugi_prepare, side, data, handle);
  }
  // Like prepare(), but does not copy device matrices: the original must stay in place, unchanged. Host
  // matrices are copied.
  template <Scalar T>
  Prepared prepare_borrowed(Side side, const T* data, Handle* handle = nullptr) const {
    return prepare_by(kintsugi_prepare_borrowed, side, data, handle);
  }

  // Returns the exact number of bytes of workspace that an execution needs, a multiple of 256.
  std::size_t workspace_size() const {
    std::size_t bytes = 0;
    check(kintsugi_plan_workspace_size(native(), &bytes));
    return bytes;
  }

  // Returns the complete plan as JSON, which read() accepts.
  std::string describe() const {
    return detail::read_text([this](char* buffer, std::size_t capacity, std::size_t* needed) {
      return kintsugi_plan_describe(native(), buffer, capacity, needed);
    });
  }

  // Returns the problem of the plan.
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

}  // namespace kintsugi

#endif
