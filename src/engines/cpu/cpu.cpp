// The engine cpu. Its own kernels multiply floating slices, int8 slices and 52-bit words. OpenBLAS computes
// native products, and multiplies fp64 slices that hold integers.
//
// Floating slices are widened to FP32. Products of formats of up to 12 significant bits are exact in FP32.
// A matrix unit for bf16 multiplies bf16 slices unless a call names the accumulator fp32.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/status.hpp"
#include "engines/cpu/byte_panels.hpp"
#include "engines/cpu/openblas.hpp"
#include "engines/cpu/products.hpp"
#include "engines/cpu/profile.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

namespace {

// A strided view as arguments of a BLAS call. `trans` is "N" if the columns have unit stride, else "T". For a
// conjugated view it is "R", an extension of OpenBLAS, or "C" instead.
struct BlasMatrix {
  const char* trans;
  int ld;
};

// The value fits: the plan has checked largest_size().
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

// OpenBLAS takes NaN i for 0 on CPUs with AVX2 (0.3.21). Any NaN in beta makes all of beta C NaN.
template <class T>
std::complex<T> beta_for_blas(std::complex<T> beta) {
  return std::isnan(beta.imag()) ? std::complex<T>(beta.imag(), beta.imag()) : beta;
}

void call_gemm(const char* transa, const char* transb, int m, int n, int k, std::complex<float> alpha,
               const std::complex<float>* a, int lda, const std::complex<float>* b, int ldb,
               std::complex<float> beta, std::complex<float>* c, int ldc) {
  beta = beta_for_blas(beta);
  openblas().cgemm(transa, transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

void call_gemm(const char* transa, const char* transb, int m, int n, int k, std::complex<double> alpha,
               const std::complex<double>* a, int lda, const std::complex<double>* b, int ldb,
               std::complex<double> beta, std::complex<double>* c, int ldc) {
  beta = beta_for_blas(beta);
  openblas().zgemm(transa, transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

template <class T>
void native_product(const NativeProduct<T>& task) {
  if (task.fixed_order) return multiply_in_tiles(task);
  const BlasMatrix c = blas_matrix(task.c);
  if (*c.trans == 'T') {  // row-major C: its transpose is column-major, and C^T = B^T A^T
    return native_product<T>({.a = task.b.transposed(),
                              .b = task.a.transposed(),
                              .c = task.c.transposed(),
                              .alpha = task.alpha,
                              .beta = task.beta,
                              .threads = task.threads,
                              .conjugate_a = task.conjugate_b,
                              .conjugate_b = task.conjugate_a});
  }
  const BlasMatrix a = blas_matrix(task.a, task.conjugate_a);
  const BlasMatrix b = blas_matrix(task.b, task.conjugate_b);
  const OpenBlasThreads threads(task.threads);
  call_gemm(a.trans, b.trans, blas_int(task.c.rows), blas_int(task.c.columns), blas_int(task.a.columns),
            task.alpha, task.a.data, a.ld, task.b.data, b.ld, task.beta, task.c.data, c.ld);
}

// Costs relative to one multiply-add of an OpenBLAS FP32 product (build/tests/step_rate; sums include the
// page faults of a new workspace). Costs of floating slices and of elements were measured on an EPYC with
// AVX-512 (Zen 4, 0.020 ns), all others on an EPYC with AVX2 (0.024 ns).
//
// Rates of integer kernels (relative_rate) are rounded down. Times that are computed from them would be too
// long, and are therefore multiplied by this factor.
constexpr double correction_of_rounded_rates = 0.9;
constexpr StepCosts floating_costs{
    .element = 55, .slice = 45, .result = 30, .sum = 60, .tile = Slices::panel_vectors};
constexpr StepCosts residue_costs{.element = 35, .slice = 90, .result = 3000, .sum = 15};
// Fused products of bf16 slices by AMX, beside SGEMM of a Xeon's core (Sapphire Rapids).
constexpr StepCosts amx_bf16_costs{.product = 0.1, .element = 50, .slice = 14, .result = 40, .sum = 12};
constexpr StepCosts digit_costs{.element = 800, .slice = 240, .result = 60, .sum = 400};
constexpr StepCosts word_costs{.element = 60, .slice = 190, .result = 30, .sum = 900};  // one 52-bit word
constexpr StepCosts other_integer_costs{.element = 60, .slice = 950, .result = 30, .sum = 400};

bool is_integer(FormatId format) { return format == FormatId::int8 || format == FormatId::int52; }

// Costs of fused products of such slices. Nothing if there are none, as far as the rule tells.
std::optional<StepCosts> fused_costs(const SplitRule& rule, const CallConditions& conditions) {
  const bool has_panels = int8_choice().kernels->panels != nullptr;
  StepCosts costs;
  if (rule.format->id == FormatId::bf16 && bf16_kernels() != nullptr) {
    costs = amx_bf16_costs;
  } else if (has_panels && rule.format->id == FormatId::int8 &&
             (takes_residues(rule) || takes_digits(rule))) {
    const CpuThreadCosts& of_threads = cpu_costs_in_force().costs.with(conditions.threads);
    costs = takes_residues(rule) ? of_threads.residues : of_threads.digits;
  } else {
    return std::nullopt;
  }
  if (is_slow(conditions.unit)) costs.product *= slow_amx;
  return costs;
}

// Bf16 products per unit of time by AMX, relative to OpenBLAS's FP32 product, for the order of candidates:
// half of the rate of int8 products, as the unit has.
constexpr double amx_bf16_rate = 3.5;

const StepCosts& costs_of(const SplitRule& rule) {
  const FormatId format = rule.format->id;
  if (!is_integer(format)) return floating_costs;
  if (format == FormatId::int52 && rule.slices == 1) return word_costs;
  if (rule.kind == SplitKind::residues) return residue_costs;
  if (rule.kind == SplitKind::grid_digits) return digit_costs;
  return other_integer_costs;
}

class CpuEngine final : public HostEngine {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view summary() const override {
    return "products of slices widened to fp32, of int8 and 52-bit words by kernels of its own; native "
           "products by OpenBLAS";
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
  std::vector<Requirement> requirements() const override {
    const CpuCostsInForce& costs = cpu_costs_in_force();
    return {{"profile of the CPU", costs.text + (costs.advice.empty() ? "" : "; " + costs.advice), ""}};
  }
  std::string details() const override {
    return fmt::format("{}; int8 kernels {}{}; int52 kernels {}; fp32 kernels {}{}", openblas().details,
                       int8_choice().kernels->name, panel_details() + amx_refusal(),
                       int52_choice().kernels->name, fastest_float_kernels().name,
                       bf16_kernels() == nullptr ? "" : "; bf16 kernels amx");
  }

  std::span<const Accumulator> accumulators(FormatId format) const override {
    static constexpr std::array floating{Accumulator::fp32};
    static constexpr std::array by_unit{Accumulator::amx_bf16, Accumulator::fp32};
    static constexpr std::array bytes{Accumulator::int32};
    static constexpr std::array words{Accumulator::int128};
    static constexpr std::array doubles{Accumulator::fp64};
    if (format == FormatId::int8) return bytes;
    if (format == FormatId::int52) return words;
    if (format == FormatId::fp64) return doubles;
    if (format == FormatId::fp32) return {};
    if (format == FormatId::bf16 && bf16_kernels() != nullptr) return by_unit;
    return floating;
  }

  SliceStorage slice_storage(FormatId format) const override {
    return is_integer(format) || format == FormatId::fp64 ? SliceStorage::packed : SliceStorage::panels;
  }
  double relative_rate(FormatId format) const override {
    switch (format) {
      case FormatId::int8: return int8_choice().kernels->relative_rate;
      case FormatId::int52: return int52_choice().kernels->relative_rate;
      case FormatId::fp32:
      case FormatId::fp64: return 1;
      case FormatId::bf16:
        if (bf16_kernels() != nullptr) return amx_bf16_rate;
        [[fallthrough]];
      default: return float_rate(fastest_float_kernels(), format);
    }
  }

  MatrixUnitState matrix_unit_state(int threads) const override { return amx_state(threads); }
  StepCosts step_costs(const SplitRule& rule, const CallConditions& conditions) const override {
    if (const auto fused = fused_costs(rule, conditions)) return *fused;
    const FormatId format = rule.format->id;
    StepCosts costs = costs_of(rule);
    costs.product = (is_integer(format) ? correction_of_rounded_rates : 1) / relative_rate(format);
    return costs;
  }
  NativeCosts native_costs(int threads) const override {
    return cpu_costs_in_force().costs.with(threads).native;
  }
  double product_seconds(int threads) const override {
    return 1e-9 * cpu_costs_in_force().costs.with(threads).product_nanoseconds;
  }
  double native_double_double_time_ratio() const override { return fastest_pair_kernels().relative_time; }

  std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t,
                            int threads) const override {
    const auto workers = static_cast<std::size_t>(std::max(threads, 1));
    if (schedule.tiles.depth > 0) return workers * tiles_worker_bytes(*int8_choice().kernels);
    switch (format) {
      case FormatId::int8: return workers * int8_worker_bytes(*int8_choice().kernels);
      case FormatId::int52: return workers * int52_worker_bytes(*int52_choice().kernels);
      case FormatId::fp64: return workers * fp64_integers_worker_bytes();
      case FormatId::bf16:
        if (bf16_kernels() != nullptr)
          return workers * std::max(bf16_worker_bytes(schedule), floats_worker_bytes(schedule));
        [[fallthrough]];
      default: return workers * floats_worker_bytes(schedule);
    }
  }

  std::size_t fixed_order_bytes(std::size_t real_bytes, std::int64_t m, std::int64_t n, std::int64_t k,
                                int threads) const override {
    return native_tiles_bytes(real_bytes, m, n, k, threads);
  }

  const SumKernels* sum_kernels() const override { return fastest_sum_kernels(); }
  std::span<const FusedKernel> fused_kernels() const override {
    static const std::array kernels{byte_products, bf16_products, direct_products};
    return kernels;
  }
  bool reduces_sums_modulo() const override { return true; }
  bool multiplies_tiles() const override { return true; }
  bool multiplies_directly() const override { return true; }

  void multiply(const Multiplication& task) const override {
    if (task.schedule->tiles.depth > 0) return multiply_tiles(task, *int8_choice().kernels);
    if (task.accumulator == Accumulator::amx_bf16) return multiply_bf16(task, *bf16_kernels());
    switch (task.a.format->id) {
      case FormatId::int8: return multiply_int8(task, *int8_choice().kernels);
      case FormatId::int52: return multiply_int52(task, *int52_choice().kernels);
      case FormatId::fp64: return multiply_fp64_integers(task);
      default: multiply_floats(task, fastest_float_kernels());
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
