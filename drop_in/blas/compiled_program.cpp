// Functions for programs that were compiled with the compiler pass, which call them around calls of BLAS
// and for loop nests that the pass proved to be products. A nest is multiplied here if the sites file has an
// emulation for it. Otherwise the program's own loops run, which are recorded as a native call.
#include <chrono>
#include <exception>
#include <optional>

#include "answer.hpp"
#include "core/settings.hpp"
#include "core/sites/site.hpp"

namespace kintsugi::blas {

namespace {

struct StridedMatrix {
  const void* first;
  std::int64_t row_stride, column_stride;  // in bytes
};

struct LoopProduct {
  kintsugi_type type;
  bool adds_to_c;
  std::int64_t m, n, k;
  StridedMatrix a, b, c;
};

struct BlasMatrix {
  std::int64_t ld;
  Op op;  // n: stored in the layout of the call; t: stored transposed
};

std::optional<BlasMatrix> blas_matrix(const StridedMatrix& matrix, Layout layout, std::int64_t bytes) {
  const bool is_row_major = layout == Layout::row_major;
  const std::int64_t element_stride = is_row_major ? matrix.column_stride : matrix.row_stride;
  const std::int64_t line_stride = is_row_major ? matrix.row_stride : matrix.column_stride;
  if (element_stride == bytes && line_stride % bytes == 0) return BlasMatrix{line_stride / bytes, Op::n};
  if (line_stride == bytes && element_stride % bytes == 0) return BlasMatrix{element_stride / bytes, Op::t};
  return std::nullopt;
}

// Returns the BLAS call that computes the product. Returns nullopt if neither the rows nor the columns of a
// matrix are contiguous, or if C overlaps A or B: BLAS has no call for these products.
std::optional<Call> gemm_of(const LoopProduct& product) {
  static constexpr float single_values[2] = {0, 1};
  static constexpr double double_values[2] = {0, 1};
  const std::int64_t bytes = element_bytes(product.type);
  const Layout layout = product.c.column_stride == bytes ? Layout::row_major : Layout::column_major;
  const auto a = blas_matrix(product.a, layout, bytes), b = blas_matrix(product.b, layout, bytes),
             c = blas_matrix(product.c, layout, bytes);
  if (!a || !b || !c || c->op != Op::n) return std::nullopt;
  const auto scalar = [&](int value) {
    return is_single(product.type) ? static_cast<const void*>(single_values + value) : double_values + value;
  };
  Call call = drop_in::product(product.type, a->op, b->op, product.m, product.n, product.k, scalar(1),
                               product.a.first, a->ld, product.b.first, b->ld,
                               scalar(product.adds_to_c ? 1 : 0), const_cast<void*>(product.c.first), c->ld);
  call.layout = layout;
  if (first_bad_argument(call, nullptr).number != 0) return std::nullopt;
  const std::vector<Region> inputs = inputs_of(call, false);
  const Region output = output_of(call);
  if (overlap(output, inputs[0]) || overlap(output, inputs[1])) return std::nullopt;
  return call;
}

// True if the rule of the call's site asks for an emulation that can run.
bool is_emulated(const Call& call) {
  return call.site != nullptr && call.site->has_rule && !call.site->rule.is_native() &&
         decide(call)->emulates;
}

constinit Symbol sgemm("cblas_sgemm", "SGEMM "), dgemm("cblas_dgemm", "DGEMM ");
Symbol& gemm_symbol(kintsugi_type type) { return is_single(type) ? sgemm : dgemm; }

// A loop nest of the program that runs in this thread and will be recorded. Nests make no calls, so a thread
// runs at most one.
struct RunningLoop {
  Call call;
  std::optional<ExactComparison> comparison;
  std::chrono::steady_clock::time_point start;
};
thread_local std::optional<RunningLoop> running_loop;

void record_loop(RunningLoop& loop) {
  CallOutcome outcome;
  outcome.why = "the program's own loops";
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - loop.start).count();
  record_call(gemm_symbol(loop.call.type).name(), loop.call, outcome);
  record_matrices(loop.call, reads_c(loop.call));
  if (!loop.comparison) return;
  const CallUnderWay under_way;
  loop.comparison->finish("");
}

void begin_loop(const Call& call) {
  running_loop.emplace();
  running_loop->call = call;
  running_loop->comparison = ExactComparison::begin(gemm_symbol(call.type), running_loop->call);
  running_loop->start = std::chrono::steady_clock::now();
}

// Computes the product if its site is emulated. Returns false if the program's loops must run.
bool multiply(const LoopProduct& product, const void* record, const void* return_address) try {
  if (!intercepts(nullptr) || !has_sites() || product.m < 1 || product.n < 1 || product.k < 1) return false;
  std::optional<Call> call = gemm_of(product);
  if (!call) return false;
  call->site = site_of(return_address, record);
  if (!is_emulated(*call)) {
    if (call->site != nullptr && records_calls()) begin_loop(*call);
    return false;
  }
  const auto forward = [&call] { return call_next_gemm(*call); };
  announced_site = record;
  answer({{gemm_symbol(product.type), return_address}}, *call, Forward(forward));
  return true;
} catch (const std::exception&) {  // No memory; C is not written yet.
  return false;
}

}  // namespace

// Called by programs that were compiled with the pass, before and after a call of BLAS.
extern "C" __attribute__((visibility("default"))) void kintsugi_site_begin(const void* record) {
  announced_site = record;
}
extern "C" __attribute__((visibility("default"))) void kintsugi_site_end() { announced_site = nullptr; }

// Called by them in place of a loop nest. Strides are in bytes. Returns 0 if the program's loops
// must run.
extern "C" __attribute__((visibility("default"))) std::int32_t kintsugi_site_multiply(
    const void* record, std::int32_t is_double, std::int32_t adds_to_c, std::int64_t m, std::int64_t n,
    std::int64_t k, const void* a, std::int64_t a_row_stride, std::int64_t a_column_stride, const void* b,
    std::int64_t b_row_stride, std::int64_t b_column_stride, void* c, std::int64_t c_row_stride,
    std::int64_t c_column_stride) {
  const LoopProduct product{.type = is_double != 0 ? KINTSUGI_F64 : KINTSUGI_F32,
                            .adds_to_c = adds_to_c != 0,
                            .m = m,
                            .n = n,
                            .k = k,
                            .a = {a, a_row_stride, a_column_stride},
                            .b = {b, b_row_stride, b_column_stride},
                            .c = {c, c_row_stride, c_column_stride}};
  return multiply(product, record, __builtin_return_address(0)) ? 1 : 0;
}

// Called after a nest that ran because kintsugi_site_multiply() returned 0.
extern "C" __attribute__((visibility("default"))) void kintsugi_site_loop_end() {
  if (!running_loop) return;
  try {
    record_loop(*running_loop);
  } catch (const std::exception&) {  // The record lacks the nest.
  }
  running_loop.reset();
}

}  // namespace kintsugi::blas
