// The engine cpu. OpenBLAS multiplies floating slices, for studies at sizes that the reference engine cannot
// reach, and slices that hold integers (integer_sums.hpp). Kernels of the engine multiply int8 slices and
// 52-bit words (int8.hpp, int52.hpp). Native products come from OpenBLAS too.
//
// Floating slices are widened to fp32, in which products of formats of up to 12 significant bits are exact.
// All calls of a schedule have one shape, tile x tile x (block of k), on a grid fixed to the operand's
// origin, zeros included. So in any order in which OpenBLAS adds, an element's bits depend only on its own
// row and column and its position in the tile, never on threads, blocking or batch position.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/floating_environment.hpp"
#include "base/status.hpp"
#include "base/vectorised.hpp"
#include "base/workers.hpp"
#include "engines/cpu/int52.hpp"
#include "engines/cpu/int8.hpp"
#include "engines/cpu/integer_sums.hpp"
#include "engines/cpu/native_tiles.hpp"
#include "engines/cpu/openblas.hpp"
#include "engines/cpu/pairs.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t tile = Slices::vector_multiple;
constexpr std::int64_t tile_elements = tile * tile;

// Scratch bytes of one worker: accumulators inside and outside for every group.
std::size_t worker_bytes(int groups) {
  return array_bytes(groups * tile, tile, sizeof(float)) + array_bytes(groups * tile, tile, sizeof(double));
}

// Computes sums (tile x tile, column-major) = beta * sums + a * b^T over `length` inner indices.
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

// Adds partial sums outside the matrix unit, as adds_outside_in_fp64() says.
KINTSUGI_VECTORIZED void add_sums(const float* inside, double weight, double* outside, std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) outside[e] += weight * static_cast<double>(inside[e]);
}

// Runs the schedule for one tile of C, as in schedule/schedule.hpp.
class TileSchedule {
 public:
  TileSchedule(const Multiplication& task, std::int64_t row, std::int64_t column, std::byte* scratch)
      : task_(task), schedule_(*task.schedule), row_(row), column_(column),
        outside_(reinterpret_cast<double*>(scratch)),
        inside_(reinterpret_cast<float*>(outside_ + schedule_.groups * tile_elements)) {}

  void run() {
    const std::int64_t k = task_.a.vector_stride();  // padded with zeros
    const std::int64_t block = schedule_.block_length(k);
    for (std::int64_t begin = 0; begin < k; begin += block) {
      const std::int64_t length = std::min(block, k - begin);
      const std::int64_t step = schedule_.k_step == 0 ? length : schedule_.k_step;
      used_.fill(false);
      for (std::int64_t offset = 0; offset < length; offset += step) {
        add_terms(begin + offset, std::min(step, length - offset));
      }
      add_outside(begin == 0);
    }
  }

  const double* sums(int group) const { return outside_ + group * tile_elements; }

 private:
  void add_terms(std::int64_t begin, std::int64_t length) {
    for (const Term& term : schedule_.terms) {
      float* sums = inside_ + term.group * tile_elements;
      if (term.rescales && used_[term.group]) {
        const float factor = std::ldexp(1.0F, schedule_.rescale_exponent);
        for (std::int64_t e = 0; e < tile_elements; ++e) sums[e] *= factor;
      }
      add_product(task_.a, term.a, row_, task_.b, term.b, column_, begin, length,
                  used_[term.group] ? 1.0F : 0.0F, sums);
      used_[term.group] = true;
    }
  }

  void add_outside(bool first) {
    const std::int64_t count = schedule_.groups * tile_elements;
    if (schedule_.joint) return add_groups_jointly(first);
    if (first) std::fill_n(outside_, count, 0.0);
    add_sums(inside_, 1, outside_, count);
  }

  void add_groups_jointly(bool first) {
    if (first) std::fill_n(outside_, tile_elements, 0.0);
    for (int g = 0; g < schedule_.groups; ++g) {
      const double weight = std::ldexp(1.0, schedule_.group_exponents[g]);
      add_sums(inside_ + g * tile_elements, weight, outside_, tile_elements);
    }
  }

  const Multiplication& task_;
  const Schedule& schedule_;
  std::int64_t row_;
  std::int64_t column_;
  double* outside_;
  float* inside_;
  std::array<bool, max_groups> used_{};
};

// Rounds the part of the tile inside the sums to fp32.
void store_tile(const Accumulators& sums, int group, std::int64_t row, std::int64_t column,
                const double* source) {
  const std::int64_t rows = std::min(tile, sums.rows - row);
  const std::int64_t columns = std::min(tile, sums.columns - column);
  for (std::int64_t j = 0; j < columns; ++j) {
    float* target = sums.group<float>(group) + row + (column + j) * sums.rows;
    std::transform(source + j * tile, source + j * tile + rows, target,
                   [](double sum) { return static_cast<float>(sum); });
  }
}

void multiply_tile(const Multiplication& task, std::int64_t row, std::int64_t column, std::byte* scratch) {
  TileSchedule schedule(task, row, column, scratch);
  schedule.run();
  for (int g = 0; g < task.sums.groups; ++g) store_tile(task.sums, g, row, column, schedule.sums(g));
}

void multiply_floating(const Multiplication& task) {
  const std::int64_t tile_rows = divide_up(task.sums.rows, tile);
  const std::int64_t tiles = tile_rows * divide_up(task.sums.columns, tile);
  const std::size_t scratch_of_worker = worker_bytes(task.schedule->groups);
  const int workers = workers_for(tiles, task.threads);
  const OpenBlasThreads single(1);
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) {
    const FloatingEnvironment environment;
    std::byte* scratch = task.scratch + static_cast<std::size_t>(worker) * scratch_of_worker;
    for (std::int64_t index = worker; index < tiles; index += workers) {
      multiply_tile(task, index % tile_rows * tile, index / tile_rows * tile, scratch);
    }
  }
}

// A strided view as a BLAS argument: 'N' for unit stride down the columns, else 'T'; for a conjugate 'R' (an
// extension of OpenBLAS) and 'C'.
struct BlasMatrix {
  const char* trans;
  int ld;
};

// Sizes fit, since the plan has checked largest_size().
int blas_int(std::int64_t value) { return static_cast<int>(value); }

template <class T>
BlasMatrix blas_matrix(const MatrixView<T>& view, bool conjugate = false) {
  const bool has_unit_row_stride =
      view.row_stride == 1 && (view.column_stride >= view.rows || view.columns <= 1);
  if (has_unit_row_stride)
    return {conjugate ? "R" : "N", blas_int(std::max({view.column_stride, view.rows, std::int64_t{1}}))};
  return {conjugate ? "C" : "T", blas_int(std::max({view.row_stride, view.columns, std::int64_t{1}}))};
}

void call_gemm(const char* transa, const char* transb, int m, int n, int k, float alpha, const float* a,
               int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  openblas().sgemm(transa, transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

void call_gemm(const char* transa, const char* transb, int m, int n, int k, double alpha, const double* a,
               int lda, const double* b, int ldb, double beta, double* c, int ldc) {
  openblas().dgemm(transa, transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

void call_gemm(const char* transa, const char* transb, int m, int n, int k, std::complex<float> alpha,
               const std::complex<float>* a, int lda, const std::complex<float>* b, int ldb,
               std::complex<float> beta, std::complex<float>* c, int ldc) {
  openblas().cgemm(transa, transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

void call_gemm(const char* transa, const char* transb, int m, int n, int k, std::complex<double> alpha,
               const std::complex<double>* a, int lda, const std::complex<double>* b, int ldb,
               std::complex<double> beta, std::complex<double>* c, int ldc) {
  openblas().zgemm(transa, transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

template <class T>
void native_product(const NativeProduct<T>& task) {
  if (task.fixed_order) return multiply_in_tiles(task);
  const BlasMatrix c = blas_matrix(task.c);
  if (*c.trans == 'T') {  // row-major C: its transpose is column-major, and C^T = B^T A^T
    return native_product<T>({task.b.transposed(), task.a.transposed(), task.c.transposed(), task.alpha,
                              task.beta, task.threads, task.conjugate_b, task.conjugate_a});
  }
  const BlasMatrix a = blas_matrix(task.a, task.conjugate_a);
  const BlasMatrix b = blas_matrix(task.b, task.conjugate_b);
  const OpenBlasThreads threads(task.threads);
  call_gemm(a.trans, b.trans, blas_int(task.c.rows), blas_int(task.c.columns), blas_int(task.a.columns),
            task.alpha, task.a.data, a.ld, task.b.data, b.ld, task.beta, task.c.data, c.ld);
}

// Costs relative to one multiply-add of an OpenBLAS FP32 product, which took 0.024 ns on the machine of the
// measurement, an EPYC with AVX2 (build/tests/step_rate; sums include the page faults of a new workspace). On
// an EPYC with AVX-512 (Zen 4, 0.019 ns) they reproduce the ratios of whole calls in docs/results/log within
// 25 %. Claims of kernels are rounded down; tiles of 128 cost OpenBLAS a fifth.
constexpr double kernel_claim = 0.9;
constexpr StepCosts floating_costs{
    .product = 1.2, .element = 160, .slice = 1250, .result = 30, .sum = 300, .tile = tile};
constexpr StepCosts residue_costs{.element = 140, .slice = 90, .result = 3000, .sum = 15};
constexpr StepCosts digit_costs{.element = 900, .slice = 240, .result = 60, .sum = 400};
constexpr StepCosts rest_costs{.element = 160, .slice = 950, .result = 30, .sum = 400};
constexpr StepCosts word_costs{.element = 160, .slice = 190, .result = 30, .sum = 900};

bool is_integer(FormatId format) { return format == FormatId::int8 || format == FormatId::int52; }

class CpuEngine final : public Engine {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view summary() const override {
    return "products by OpenBLAS on slices widened to fp32, of int8 and 52-bit words by kernels of "
           "its own; native products";
  }
  // OpenBLAS takes 32-bit sizes, and k is rounded up to the slices' multiple.
  std::int64_t largest_size() const override { return std::numeric_limits<int>::max() - Slices::k_multiple; }
  std::string unavailable_reason() const override {
    for (const std::string& reason : {openblas().reason, int8_choice().reason}) {
      if (!reason.empty()) return reason;
    }
    return int52_choice().reason;
  }
  std::string refused_setting() const override {
    if (openblas().named && !openblas().reason.empty()) return openblas().reason;
    return int8_choice().reason.empty() ? int52_choice().reason : int8_choice().reason;
  }
  std::string details() const override {
    return fmt::format("{}; int8 kernels {}; int52 kernels {}", openblas().details,
                       int8_choice().kernels->name, int52_choice().kernels->name);
  }

  std::span<const Accumulator> accumulators(FormatId format) const override {
    static constexpr std::array floating{Accumulator::fp32};
    static constexpr std::array bytes{Accumulator::int32};
    static constexpr std::array words{Accumulator::int128};
    static constexpr std::array doubles{Accumulator::fp64};
    if (format == FormatId::int8) return bytes;
    if (format == FormatId::int52) return words;
    if (format == FormatId::fp64) return doubles;
    if (format == FormatId::fp32) return {};
    return floating;
  }

  SliceStorage slice_storage(FormatId format) const override {
    return is_integer(format) || format == FormatId::fp64 ? SliceStorage::packed : SliceStorage::fp32;
  }
  double relative_rate(FormatId format) const override {
    if (format == FormatId::int8) return int8_choice().kernels->relative_rate;
    return format == FormatId::int52 ? int52_choice().kernels->relative_rate : 1;
  }

  StepCosts step_costs(const SplitRule& rule) const override {
    const FormatId format = rule.format->id;
    if (!is_integer(format)) return floating_costs;
    StepCosts costs = rule.kind == SplitKind::residues      ? residue_costs
                      : rule.kind == SplitKind::grid_digits ? digit_costs
                                                            : rest_costs;
    if (format == FormatId::int52 && rule.slices == 1) costs = word_costs;
    costs.product = kernel_claim / relative_rate(format);
    return costs;
  }
  // Measured on 16 x 16 x 16 (call), and on 2048 x 8 x 2048 and 2048 x 2048 x 8 (element).
  NativeCosts native_costs() const override { return {.call = 180'000, .element = 12}; }
  double product_seconds() const override { return 0.024e-9; }
  double native_double_double_time() const override { return fastest_pair_kernels().relative_time; }

  std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t,
                            int threads) const override {
    const auto workers = static_cast<std::size_t>(std::max(threads, 1));
    if (schedule.integer_sums) return workers * integer_sums_worker_bytes();
    const std::size_t of_worker = format == FormatId::int8    ? int8_worker_bytes(*int8_choice().kernels)
                                  : format == FormatId::int52 ? int52_worker_bytes(*int52_choice().kernels)
                                                              : worker_bytes(schedule.groups);
    return workers * of_worker;
  }

  std::size_t fixed_order_bytes(std::size_t real_bytes, std::int64_t m, std::int64_t n, std::int64_t k,
                                int threads) const override {
    return native_tiles_bytes(real_bytes, m, n, k, threads);
  }

  bool reduces_sums_modulo() const override { return true; }

  void multiply(const Multiplication& task) const override {
    if (task.schedule->integer_sums) return multiply_integer_sums(task);
    switch (task.a.format->id) {
      case FormatId::int8: return multiply_int8(task, *int8_choice().kernels);
      case FormatId::int52: return multiply_int52(task, *int52_choice().kernels);
      default: multiply_floating(task);
    }
  }
  void native(const NativeProduct<float>& product) const override { native_product(product); }
  void native(const NativeProduct<double>& product) const override { native_product(product); }
  void native(const NativeProduct<std::complex<float>>& product) const override { native_product(product); }
  void native(const NativeProduct<std::complex<double>>& product) const override { native_product(product); }
  void native(const NativeProduct<DoubleDouble>& product) const override {
    multiply_pairs(product, fastest_pair_kernels());
  }
};

}  // namespace

const Engine& cpu_engine() {
  static const CpuEngine engine;
  return engine;
}

}  // namespace kintsugi::core
