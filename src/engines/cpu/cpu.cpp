// The cpu engine: products of slices by OpenBLAS, for studies at sizes the reference cannot reach,
// and the native product.
//
// Slices are widened to fp32, where products of formats of up to 12 significant bits are exact. All
// calls of a schedule have one shape, tile x tile x (block of k), on a grid fixed to the operand's
// origin, zeros included: whatever order OpenBLAS adds in, an entry's bits depend on nothing but its
// own row and column and its place in the tile, never on threads, blocking or batch position.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/floating_environment.hpp"
#include "base/workers.hpp"
#include "engines/cpu/openblas.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t tile = Slices::vector_multiple;
constexpr std::int64_t tile_entries = tile * tile;

// int8 products summed in fp32 are exact up to 2^24 / (128 * 128) of them.
constexpr std::int64_t exact_int8_products = 1024;

// Scratch of one worker, in tiles of 4-byte numbers. Floating formats: accumulators inside and outside for every
// group. Integer ones, group by group: a product, the accumulator, and 64-bit sums outside.
std::size_t worker_bytes(int groups, bool floating) {
  return array_bytes((floating ? 2 * groups : 4) * tile, tile, sizeof(float));
}

// sums (tile x tile, column-major) = beta * sums + a * b^T over `length` inner indices.
void add_product(const Slices& a, int slice_a, std::int64_t row, const Slices& b, int slice_b,
                 std::int64_t column, std::int64_t begin, std::int64_t length, float beta, float* sums) {
  const int edge = static_cast<int>(tile);
  const int k = static_cast<int>(length);
  const int lda = static_cast<int>(a.vector_stride());
  const int ldb = static_cast<int>(b.vector_stride());
  const float one = 1;
  openblas().sgemm("T", "N", &edge, &edge, &k, &one, a.vector<float>(slice_a, row) + begin, &lda,
                   b.vector<float>(slice_b, column) + begin, &ldb, &beta, sums, &edge);
}

// The schedule for one tile of C, as in schedule/schedule.hpp.
class TileSchedule {
 public:
  TileSchedule(const Multiplication& task, std::int64_t row, std::int64_t column, std::byte* scratch)
      : task_(task), schedule_(*task.schedule), row_(row), column_(column),
        inside_(reinterpret_cast<float*>(scratch)), outside_(inside_ + schedule_.groups * tile_entries) {}

  void run() {
    const std::int64_t k = task_.a.vector_stride();  // zeros up to there
    const std::int64_t block = schedule_.block_length(k);
    for (std::int64_t begin = 0; begin < k; begin += block) {
      const std::int64_t length = std::min(block, k - begin);
      const std::int64_t step = schedule_.k_step == 0 ? length : schedule_.k_step;
      used_.fill(false);
      for (std::int64_t offset = 0; offset < length; offset += step) {
        add_terms(begin + offset, std::min(step, length - offset));
      }
      leave_engine(begin == 0);
    }
  }

  float* sums(int group) const { return outside_ + group * tile_entries; }

 private:
  void add_terms(std::int64_t begin, std::int64_t length) {
    for (const Term& term : schedule_.terms) {
      float* sums = inside_ + term.group * tile_entries;
      if (term.rescales && used_[term.group]) {
        const float factor = std::ldexp(1.0F, schedule_.rescale_exponent);
        for (std::int64_t e = 0; e < tile_entries; ++e) sums[e] *= factor;
      }
      add_product(task_.a, term.a, row_, task_.b, term.b, column_, begin, length,
                  used_[term.group] ? 1.0F : 0.0F, sums);
      used_[term.group] = true;
    }
  }

  void leave_engine(bool first) {
    const std::int64_t count = schedule_.groups * tile_entries;
    if (schedule_.joint) return leave_jointly(first);
    if (first) {
      std::memcpy(outside_, inside_, static_cast<std::size_t>(count) * sizeof(float));
    } else {
      for (std::int64_t e = 0; e < count; ++e) outside_[e] += inside_[e];
    }
  }

  void leave_jointly(bool first) {
    if (first) std::fill_n(outside_, tile_entries, 0.0F);
    for (int g = 0; g < schedule_.groups; ++g) {
      const float weight = std::ldexp(1.0F, schedule_.group_exponents[g]);
      const float* sums = inside_ + g * tile_entries;
      for (std::int64_t e = 0; e < tile_entries; ++e) outside_[e] += weight * sums[e];
    }
  }

  const Multiplication& task_;
  const Schedule& schedule_;
  std::int64_t row_;
  std::int64_t column_;
  float* inside_;
  float* outside_;
  std::array<bool, max_groups> used_{};
};

// Copies what of a tile lies inside the sums.
template <class T>
void store_tile(const Accumulators& sums, int group, std::int64_t row, std::int64_t column, const T* source) {
  const std::int64_t rows = std::min(tile, sums.rows - row);
  const std::int64_t columns = std::min(tile, sums.columns - column);
  for (std::int64_t j = 0; j < columns; ++j) {
    std::memcpy(sums.group<T>(group) + row + (column + j) * sums.rows, source + j * tile,
                static_cast<std::size_t>(rows) * sizeof(T));
  }
}

void float_tile(const Multiplication& task, std::int64_t row, std::int64_t column, std::byte* scratch) {
  TileSchedule schedule(task, row, column, scratch);
  schedule.run();
  for (int g = 0; g < task.sums.groups; ++g) store_tile(task.sums, g, row, column, schedule.sums(g));
}

// One tile of a group's int32 accumulators over a block of k; a block's order of terms and steps makes no
// difference to sums modulo 2^32.
void add_integer_block(const Multiplication& task, int group, std::int64_t row, std::int64_t column,
                       std::int64_t first, std::int64_t last, float* part, std::uint32_t* inside) {
  for (const Term& term : task.schedule->terms) {
    if (term.group != group) continue;
    for (std::int64_t begin = first; begin < last; begin += exact_int8_products) {
      const std::int64_t length = std::min(exact_int8_products, last - begin);
      add_product(task.a, term.a, row, task.b, term.b, column, begin, length, 0.0F, part);
      for (std::int64_t e = 0; e < tile_entries; ++e) {
        inside[e] += static_cast<std::uint32_t>(static_cast<std::int32_t>(part[e]));
      }
    }
  }
}

void integer_tile(const Multiplication& task, std::int64_t row, std::int64_t column, std::byte* scratch) {
  auto* part = reinterpret_cast<float*>(scratch);
  auto* inside = reinterpret_cast<std::uint32_t*>(part + tile_entries);
  auto* outside = reinterpret_cast<std::int64_t*>(part + 2 * tile_entries);
  const std::int64_t k = task.a.vector_stride();
  const std::int64_t block = task.schedule->block_length(k);
  for (int g = 0; g < task.schedule->groups; ++g) {
    std::fill_n(outside, tile_entries, 0);
    for (std::int64_t begin = 0; begin < k; begin += block) {
      std::fill_n(inside, tile_entries, 0U);
      add_integer_block(task, g, row, column, begin, std::min(k, begin + block), part, inside);
      for (std::int64_t e = 0; e < tile_entries; ++e) outside[e] += static_cast<std::int32_t>(inside[e]);
    }
    store_tile(task.sums, g, row, column, outside);
  }
}

void multiply_tiles(const Multiplication& task) {
  const std::int64_t tile_rows = divide_up(task.sums.rows, tile);
  const std::int64_t tiles = tile_rows * divide_up(task.sums.columns, tile);
  const std::size_t scratch_of_worker = worker_bytes(task.schedule->groups, task.a.format->floating);
  const int workers = workers_for(tiles, task.threads);
  const OpenBlasThreads single(1);
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) {
    const FloatingEnvironment environment;
    std::byte* scratch = task.scratch + static_cast<std::size_t>(worker) * scratch_of_worker;
    for (std::int64_t index = worker; index < tiles; index += workers) {
      const std::int64_t row = index % tile_rows * tile;
      const std::int64_t column = index / tile_rows * tile;
      if (task.a.format->floating) {
        float_tile(task, row, column, scratch);
      } else {
        integer_tile(task, row, column, scratch);
      }
    }
  }
}

// A strided view as a BLAS argument: 'N' for unit stride down the columns, else 'T'.
struct BlasMatrix {
  const char* trans;
  int ld;
};

// The plan has checked largest_size().
int blas_int(std::int64_t value) { return static_cast<int>(value); }

template <class T>
BlasMatrix blas_matrix(const MatrixView<T>& view) {
  const bool columns_stand = view.row_stride == 1 && (view.column_stride >= view.rows || view.columns <= 1);
  if (columns_stand) return {"N", blas_int(std::max({view.column_stride, view.rows, std::int64_t{1}}))};
  return {"T", blas_int(std::max({view.row_stride, view.columns, std::int64_t{1}}))};
}

void call_gemm(const char* transa, const char* transb, int m, int n, int k, float alpha, const float* a,
               int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  openblas().sgemm(transa, transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

void call_gemm(const char* transa, const char* transb, int m, int n, int k, double alpha, const double* a,
               int lda, const double* b, int ldb, double beta, double* c, int ldc) {
  openblas().dgemm(transa, transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

template <class T>
void native_product(const NativeProduct<T>& task) {
  const BlasMatrix c = blas_matrix(task.c);
  if (*c.trans == 'T') {  // row-major C: its transpose is column-major, and C^T = B^T A^T
    return native_product<T>(
        {task.b.transposed(), task.a.transposed(), task.c.transposed(), task.alpha, task.beta, task.threads});
  }
  const BlasMatrix a = blas_matrix(task.a);
  const BlasMatrix b = blas_matrix(task.b);
  const OpenBlasThreads threads(task.threads);
  call_gemm(a.trans, b.trans, blas_int(task.c.rows), blas_int(task.c.columns), blas_int(task.a.columns),
            task.alpha, task.a.data, a.ld, task.b.data, b.ld, task.beta, task.c.data, c.ld);
}

class CpuEngine final : public Engine {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view summary() const override {
    return "products by OpenBLAS on slices widened to fp32; native products";
  }
  // OpenBLAS takes 32-bit sizes, and k is rounded up to the slices' multiple.
  std::int64_t largest_size() const override { return std::numeric_limits<int>::max() - Slices::k_multiple; }
  std::string unavailable_reason() const override { return openblas().reason; }
  std::string details() const override { return openblas().details; }

  std::span<const Accumulator> accumulators(FormatId format) const override {
    static constexpr std::array floating{Accumulator::fp32};
    static constexpr std::array integer{Accumulator::int32};
    if (format == FormatId::int8) return integer;
    if (format == FormatId::fp32 || format == FormatId::fp64) return {};
    return floating;
  }

  SliceStorage slice_storage(FormatId) const override { return SliceStorage::fp32; }
  double relative_rate(FormatId) const override { return 1; }

  std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t,
                            int threads) const override {
    return static_cast<std::size_t>(std::max(threads, 1)) *
           worker_bytes(schedule.groups, format != FormatId::int8);
  }

  void multiply(const Multiplication& task) const override { multiply_tiles(task); }
  void native(const NativeProduct<float>& product) const override { native_product(product); }
  void native(const NativeProduct<double>& product) const override { native_product(product); }
};

}  // namespace

const Engine& cpu_engine() {
  static const CpuEngine engine;
  return engine;
}

}  // namespace kintsugi::core
