// Native products in a fixed order. C is cut into tiles on a grid from its origin, and k into blocks of a
// fixed length. For each tile and block, the parts of both operands are copied into one form: vectors that
// are contiguous along k. Complex vectors become real vectors of twice the length (base/embedding.hpp). Then
// one single-threaded call of OpenBLAS multiplies them. Its arguments, and with them its order of additions,
// depend only on the product's shape and the tile's position. Sums of blocks are added outside in the order
// of k; alpha and beta follow.
//
// Error. A block has at most 256 products. Within a block, arithmetic of type T loses L u |a||b| with L <=
// 256, in any order (schemes/bound.hpp, native_coefficient()). Outside, sums are added in double. For T =
// FP64 the errors of these additions are added as well (two_sum; Ogita, Rump and Oishi, Accurate sum and dot
// product, 2005). The total is rounded once to T. native_coefficient() bounds the error in both cases:
//   One or two blocks have one addition in T outside. So the whole is a sum in some order, which loses
//     k u |a||b|.
//   Three blocks or more (k > 512) have an error of at most 256 u + (1 + 256 u)(u + 2^-60) <= 258 u, which is
//     less than k u.
#include "engines/cpu/products.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "base/embedding.hpp"
#include "base/floating_environment.hpp"
#include "base/memory.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "engines/cpu/openblas.hpp"
#include "engines/tile_loop.hpp"
#include "formats/double_double.hpp"

namespace kintsugi::core {

namespace {

// Values of the parameter `right` of the packing functions.
constexpr bool left_operand = false;
constexpr bool right_operand = true;

constexpr std::int64_t tile = 128;     // rows of C, and columns of its embedding
constexpr std::int64_t k_block = 256;  // inner indices of the embedding
constexpr std::int64_t tile_elements = tile * tile;

// Distance between packed vectors in elements. It is no power of two: else all vectors would share few cache
// sets.
constexpr std::int64_t stride_of(std::int64_t length) { return length + 16; }

// Scratch memory of one worker.
template <class Real>
struct TileMemory {
  static constexpr bool has_errors = std::is_same_v<Real, double>;

  static std::size_t operand_bytes(std::int64_t k) {
    return array_bytes(tile, stride_of(std::min(k, k_block)), sizeof(Real));
  }
  static std::size_t bytes(std::int64_t k) {
    return 2 * operand_bytes(k) + array_bytes(tile, tile, sizeof(Real)) +
           (has_errors ? 2 : 1) * array_bytes(tile, tile, sizeof(double));
  }

  TileMemory(std::byte* memory, std::int64_t k)
      : sums(reinterpret_cast<double*>(memory)), errors(has_errors ? sums + tile_elements : nullptr),
        products(reinterpret_cast<Real*>(sums + (has_errors ? 2 : 1) * tile_elements)),
        a(products + tile_elements), b(a + operand_bytes(k) / sizeof(Real)) {}

  double* sums;    // sums of the blocks' products
  double* errors;  // for FP64: sums of the rounding errors of `sums`; nullptr for FP32
  Real* products;  // sums of one block
  Real* a;         // vectors, contiguous along k
  Real* b;
};

// Writes one element into the vectors of its embedding, which are `stride` apart. A real element has one
// vector.
template <class Real>
void store_parts(Real x, bool, bool, std::int64_t, Real* target) {
  *target = x;
}
template <class Real>
void store_parts(const std::complex<Real>& x, bool right, bool conjugated, std::int64_t stride,
                 Real* target) {
  const Real im = conjugated ? -x.imag() : x.imag();
  target[0] = x.real();
  target[1] = right ? -im : im;
  if (!right) return;
  target[stride] = im;
  target[stride + 1] = x.real();
}

// Number of vectors that are copied at once, if elements of adjacent vectors are contiguous.
constexpr std::int64_t group = 16;

template <std::int64_t Count, class T>
void pack_across(const T* source, std::int64_t step, std::int64_t length, bool right, bool conjugated,
                 std::int64_t stride, RealOf<T>* target) {
  const std::int64_t vector_stride = right ? parts_of<T> * stride : stride;
  for (std::int64_t p = 0; p < length; ++p) {
    for (std::int64_t v = 0; v < Count; ++v)
      store_parts(source[p * step + v], right, conjugated, stride,
                  target + v * vector_stride + p * parts_of<T>);
  }
}

// Copies vectors.rows x vectors.columns elements. A complex vector of op(B) becomes two real ones.
template <class T>
void pack(const MatrixView<const T>& vectors, bool right, bool conjugated, RealOf<T>* target) {
  const std::int64_t length = vectors.columns;
  const std::int64_t stride = stride_of(parts_of<T> * length);
  const std::int64_t vector_stride = right ? parts_of<T> * stride : stride;
  const bool is_contiguous_across_vectors = vectors.row_stride == 1 && vectors.column_stride != 1;
  if (!is_contiguous_across_vectors) {  // then each vector is contiguous
    for (std::int64_t v = 0; v < vectors.rows; ++v) {
      const T* source = &vectors(v, 0);
      for (std::int64_t p = 0; p < length; ++p)
        store_parts(source[p], right, conjugated, stride, target + v * vector_stride + p * parts_of<T>);
    }
    return;
  }
  std::int64_t v = 0;
  for (; v + group <= vectors.rows; v += group)
    pack_across<group>(&vectors(v, 0), vectors.column_stride, length, right, conjugated, stride,
                       target + v * vector_stride);
  for (; v < vectors.rows; ++v)
    pack_across<1>(&vectors(v, 0), vectors.column_stride, length, right, conjugated, stride,
                   target + v * vector_stride);
}

// Computes memory.products (rows x columns, column-major) over `length` inner indices. Vectors of both
// operands are contiguous along k; so for BLAS `a` is transposed and `b` is not.
template <class Real>
void multiply_block(std::int64_t rows, std::int64_t columns, std::int64_t length,
                    const TileMemory<Real>& memory) {
  const int m = static_cast<int>(rows);
  const int n = static_cast<int>(columns);
  const int k = static_cast<int>(length);
  const int ld = static_cast<int>(stride_of(length));
  const Real one = 1;
  const Real zero = 0;
  if constexpr (std::is_same_v<Real, float>) {
    openblas().sgemm("T", "N", &m, &n, &k, &one, memory.a, &ld, memory.b, &ld, &zero, memory.products, &m);
  } else {
    openblas().dgemm("T", "N", &m, &n, &k, &one, memory.a, &ld, memory.b, &ld, &zero, memory.products, &m);
  }
}

KINTSUGI_VECTORIZED void add_block(const float* products, double* sums, double*, std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) sums[e] += static_cast<double>(products[e]);
}

KINTSUGI_VECTORIZED void add_block(const double* products, double* sums, double* errors, std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) {
    const auto sum = two_sum(sums[e], products[e]);
    sums[e] = sum.value;
    errors[e] += sum.error;
  }
}

template <class T>
class NativeTile {
 public:
  using Real = RealOf<T>;
  static constexpr std::int64_t parts = parts_of<T>;

  NativeTile(const NativeProduct<T>& task, std::int64_t row, std::int64_t column, std::byte* scratch)
      : task_(task), row_(row), column_(column), rows_(std::min(tile, task.c.rows - row)),
        columns_(std::min(tile / parts, task.c.columns - column)), memory_(scratch, parts * task.a.columns) {}

  void run() {
    const std::int64_t count = rows_ * columns_ * parts;
    std::fill_n(memory_.sums, count, 0.0);
    if (memory_.errors != nullptr) std::fill_n(memory_.errors, count, 0.0);
    const std::int64_t k = task_.a.columns;
    for (std::int64_t p = 0; p < k; p += k_block / parts) {
      const std::int64_t length = std::min(k_block / parts, k - p);
      pack(task_.a.block(row_, p, rows_, length), left_operand, task_.conjugate_a, memory_.a);
      pack(task_.b.transposed().block(column_, p, columns_, length), right_operand, task_.conjugate_b,
           memory_.b);
      multiply_block(rows_, columns_ * parts, length * parts, memory_);
      add_block(memory_.products, memory_.sums, memory_.errors, count);
    }
    store();
  }

 private:
  // Writes C in the order of its memory.
  void store() {
    if (task_.c.row_stride == 1) {
      for (std::int64_t j = 0; j < columns_; ++j) {
        for (std::int64_t i = 0; i < rows_; ++i) store_element(i, j);
      }
    } else {
      for (std::int64_t i = 0; i < rows_; ++i) {
        for (std::int64_t j = 0; j < columns_; ++j) store_element(i, j);
      }
    }
  }

  void store_element(std::int64_t i, std::int64_t j) {
    T& element = task_.c(row_ + i, column_ + j);
    const T* old = task_.beta == T(0) ? nullptr : &element;
    if constexpr (is_complex<T>) {
      element = epilogue(Complex<double>(sum(i, 2 * j), sum(i, 2 * j + 1)), task_.alpha, task_.beta, old);
    } else {
      element = epilogue(sum(i, j), task_.alpha, task_.beta, old);
    }
  }

  // Returns a sum with its rounding error. The error is ignored if it is infinite or NaN.
  double sum(std::int64_t i, std::int64_t v) const {
    const double value = memory_.sums[i + v * rows_];
    if constexpr (!TileMemory<Real>::has_errors) return value;
    const double error = memory_.errors[i + v * rows_];
    return std::isfinite(error) ? value + error : value;
  }

  const NativeProduct<T>& task_;
  std::int64_t row_;
  std::int64_t column_;
  std::int64_t rows_;
  std::int64_t columns_;
  TileMemory<Real> memory_;
};

template <class T>
void multiply(const NativeProduct<T>& task) {
  const std::size_t worker_bytes = TileMemory<RealOf<T>>::bytes(parts_of<T> * task.a.columns);
  const auto max_workers = static_cast<std::int64_t>(task.scratch.size() / worker_bytes);
  const int threads = static_cast<int>(std::min<std::int64_t>(task.threads, max_workers));
  const OpenBlasThreads single(1, threads);
  for_each_tile({task.c.rows, task.c.columns, tile, tile / parts_of<T>}, single.callers(),
                task.scratch.data(), worker_bytes,
                [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  NativeTile<T>(task, row, column, scratch).run();
                });
}

}  // namespace

std::size_t native_tiles_bytes(std::size_t real_bytes, std::int64_t m, std::int64_t n, std::int64_t k,
                               int threads) {
  const auto workers =
      static_cast<std::size_t>(workers_for(divide_up(m, tile) * divide_up(n, tile), threads));
  return workers * (real_bytes == sizeof(float) ? TileMemory<float>::bytes(k) : TileMemory<double>::bytes(k));
}

void multiply_in_tiles(const NativeProduct<float>& task) { multiply(task); }
void multiply_in_tiles(const NativeProduct<double>& task) { multiply(task); }
void multiply_in_tiles(const NativeProduct<std::complex<float>>& task) { multiply(task); }
void multiply_in_tiles(const NativeProduct<std::complex<double>>& task) { multiply(task); }

}  // namespace kintsugi::core
