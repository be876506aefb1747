#include "gemm/check.hpp"

namespace kintsugi::tools {

namespace {

template <class T>
core::MatrixView<const T> view(const Matrix& matrix) {
  return {matrix.data<T>(), matrix.rows, matrix.columns, matrix.row_stride(), matrix.column_stride()};
}

template <class T>
lab::ErrorReport measure_as(const Operands& operands, const Matrix* native, const Matrix& c,
                            const lab::CheckOptions& options) {
  return lab::measure_errors<T>(operands.product<T>(), view<T>(c),
                                native != nullptr ? view<T>(*native) : core::MatrixView<const T>{}, options);
}

}  // namespace

void measure(const Operands& operands, const Matrix* native, Row& row) {
  Progress progress(row.asked.empty() ? "checking" : "checking " + row.asked);
  lab::CheckOptions options;
  options.seed = sample_seed;
  options.progress = [&progress](std::int64_t done, std::int64_t total) { progress.show(done, total); };
  row.errors = operands.type() == Type::float32 ? measure_as<float>(operands, native, row.c, options)
                                                : measure_as<double>(operands, native, row.c, options);
}

Json errors_document(const lab::ErrorReport& errors) {
  return {{"frobenius_relative", number(errors.frobenius_relative)},
          {"max_relative", number(errors.max_relative)},
          {"mean_relative", number(errors.mean_relative)},
          {"max_componentwise", number(errors.max_componentwise)},
          {"max_ulp", number(errors.max_ulp)},
          {"correctly_rounded_fraction", errors.correctly_rounded_fraction},
          {"le_gemm_max_error", number(errors.le_gemm_max_error)},
          {"le_gemm_mred", number(errors.le_gemm_mred)},
          {"entries_checked", errors.entries_checked},
          {"entries_total", errors.entries_total},
          {"zero_references", errors.zero_references},
          {"nonzero_at_zero_reference", errors.nonzero_at_zero_reference},
          {"overflowed_references", errors.overflowed_references},
          {"special_references", errors.special_references},
          {"special_mismatches", errors.special_mismatches},
          {"largest_error", number(errors.largest_error)},
          {"largest_absolute", number(errors.largest_absolute)},
          {"contract_bound", number(errors.contract_bound)},
          {"within_contract_bound", errors.within_contract_bound}};
}

}  // namespace kintsugi::tools
