// Kintsugi for C++20: inline functions over the C ABI of kintsugi.h. The headers in cxx/ are parts of this
// one.
//
//   std::vector<float> a(m * k), b(k * n), c(m * n);
//   kintsugi::gemm(kintsugi::Op::N, kintsugi::Op::N, m, n, k, 1.0f, a.data(), m, b.data(), k, 0.0f,
//                  c.data(), m, {.scheme = "fp16x3"});
//
// Conventions of all functions here:
//  - C = alpha * op(A) * op(B) + beta * C with op(A) m x k, op(B) k x n and C m x n, all dense.
//    Sizes, leading dimensions and strides are 64-bit and count elements, not bytes.
//  - Matrices are column-major, element (i, j) at i + j * ld, unless a Layout is given.
//  - A, B and C of the calls with BLAS's arguments are all in host memory or all on one device: the CUDA
//    driver is asked where they lie, if the program has loaded it (KINTSUGI_ANY_MEMORY in kintsugi.h). alpha
//    and beta are on the host.
//  - If alpha = 0 or k = 0, A and B are not read and may be null. If beta = 0, the old C is not read.
//  - Every failure throws Error, with a status and a message that contains the wrong values. C is then
//    unchanged.
//  - Nothing is printed, and the program is never ended.
#ifndef KINTSUGI_KINTSUGI_HPP
#define KINTSUGI_KINTSUGI_HPP

#if __cplusplus < 201709L  // GCC 10's value of __cplusplus for C++20
#error \
    "kintsugi.hpp needs C++20: -std=c++20 (CMake: kintsugi::cxx, pkg-config: kintsugi-cxx); or include kintsugi.h"
#else  // nothing of the header follows the error

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kintsugi/cxx/handle.hpp"
#include "kintsugi/cxx/plan.hpp"
#include "kintsugi/cxx/problem.hpp"
#include "kintsugi/cxx/types.hpp"
#include "kintsugi/kintsugi.h"

namespace kintsugi {

// -------------------------------------------------------------------- gemm

// Plans and executes one problem. All types of the problem must be T's. problem.prepared_a and
// problem.prepared_b are ignored: the arguments a and b tell which operands are prepared.
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

// Computes one product. lda, ldb and ldc are the leading dimensions of A, B and C as stored. Each is at least
// 1 and at least
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
  problem.memory = Memory::any;
  gemm(problem, alpha, a, b, beta, c, options, handle);
}

// Computes one product of column-major matrices.
template <Scalar T>
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, std::type_identity_t<T> alpha,
          std::type_identity_t<const T*> a, std::int64_t lda, std::type_identity_t<const T*> b,
          std::int64_t ldb, std::type_identity_t<T> beta, T* c, std::int64_t ldc, const Options& options = {},
          Handle* handle = nullptr) {
  gemm(Layout::column_major, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, options, handle);
}

// Computes batch_count column-major products of equal shape. Item t of A begins at a + t * stride_a; B and C
// likewise. With a stride of 0, all items have the same A or B. Items of C must not overlap.
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
  problem.memory = Memory::any;
  gemm(problem, alpha, a, b, beta, c, options, handle);
}

// Computes batch_count column-major products of equal shape. a, b and c are arrays of batch_count pointers,
// which lie in the memory of the matrices.
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
  problem.memory = Memory::any;
  const kintsugi_problem p = problem.to_c();
  const kintsugi_options o = options.to_c();
  const kintsugi_operands operands = detail::operands_of<const T* const*>(&alpha, a, b, &beta, c);
  check(kintsugi_gemm(handle != nullptr ? handle->native() : nullptr, &p, &o, &operands));
}

// One product of gemm_grouped(), or a strided batch of them.
template <Scalar T>
struct Group {
  Problem problem;  // all types are T's
  T alpha = 1;
  const T* a = nullptr;
  const T* b = nullptr;
  T beta = 0;
  T* c = nullptr;
};

// Computes products of different shapes, by one launch where that is quicker (kintsugi_gemm_grouped). No C
// may overlap the matrices of another group.
template <Scalar T>
void gemm_grouped(std::span<const Group<T>> groups, const Options& options = {}, Handle* handle = nullptr) {
  std::vector<kintsugi_problem> problems;
  std::vector<kintsugi_operands> operands;
  for (const Group<T>& group : groups) {
    detail::require(group.problem, type_of<T>(), BatchKind::strided);
    problems.push_back(group.problem.to_c());
    operands.push_back(detail::operands_of<const T*>(&group.alpha, group.a, group.b, &group.beta, group.c));
  }
  const kintsugi_options o = options.to_c();
  check(kintsugi_gemm_grouped(handle != nullptr ? handle->native() : nullptr,
                              static_cast<std::int64_t>(groups.size()), problems.data(), &o,
                              operands.data()));
}

// Releases the plans and the device memory that the library keeps for later calls of gemm().
inline void release_caches() { check(kintsugi_release_caches()); }

// Limits the threads of all calls of the process; 0: no limit. Returns the threads that calls then have.
inline int set_threads(int threads) { return kintsugi_set_threads(threads); }

// ------------------------------------------------------------ descriptions

// Describes the handle's last execution as JSON: engine, scheme of each batch item, ranges found, blocks of
// C.
inline std::string report(const Handle& handle) {
  return detail::read_text([&handle](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_report(handle.native(), buffer, capacity, needed);
  });
}

// Describes all schemes as JSON: program, bound, source.
inline std::string schemes() { return detail::read_text(kintsugi_describe_schemes); }

// Describes all engines as JSON: what each engine can do on this machine, and the reason if it cannot run.
inline std::string engines() { return detail::read_text(kintsugi_describe_engines); }

// Describes all settings as JSON: type, accepted values, default, and the current value with its source.
inline std::string settings(const Handle* handle = nullptr) {
  return detail::read_text([handle](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_describe_settings(handle != nullptr ? handle->native() : nullptr, buffer, capacity,
                                      needed);
  });
}
inline std::string settings(const Handle& handle) { return settings(&handle); }

}  // namespace kintsugi

#endif
#endif
