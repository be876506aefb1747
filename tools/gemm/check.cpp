#include "gemm/check.hpp"

namespace kintsugi::tools {

namespace {

template <class T>
measure::ErrorReport measure_as(const Operands& operands, const Matrix* native, const Matrix& c,
                                const measure::CheckOptions& options) {
  return measure::measure_errors<T>(operands.product<T>(), c.view<T>(),
                                    native != nullptr ? native->view<T>() : core::MatrixView<const T>{},
                                    options);
}

// A real matrix, row-major, for the parts of complex elements.
template <class T>
struct RealMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<T> values = std::vector<T>(static_cast<std::size_t>(rows * columns));

  T& operator()(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  core::MatrixView<const T> view() const { return {values.data(), rows, columns, columns, 1}; }
};

// Returns element (i, j) of op(matrix).
template <class T>
std::complex<T> element(const Matrix& matrix, const std::string& trans, std::int64_t i, std::int64_t j) {
  if (trans != "N") std::swap(i, j);
  const auto value = matrix.data<std::complex<T>>()[i * matrix.row_stride() + j * matrix.column_stride()];
  return trans == "C" ? std::conj(value) : value;
}

// Returns an m x n matrix as m x 2 n: the parts of element (i, j) at (i, 2 j) and (i, 2 j + 1).
template <class T>
RealMatrix<T> parts_of(const Matrix& matrix, const std::string& trans = "N") {
  const bool is_plain = trans == "N";
  RealMatrix<T> parts{is_plain ? matrix.rows : matrix.columns, 2 * (is_plain ? matrix.columns : matrix.rows)};
  for (std::int64_t i = 0; i < parts.rows; ++i) {
    for (std::int64_t j = 0; j < parts.columns; j += 2) {
      const std::complex<T> value = element<T>(matrix, trans, i, j / 2);
      parts(i, j) = value.real();
      parts(i, j + 1) = value.imag();
    }
  }
  return parts;
}

// Returns the 2 k x 2 n embedding of a k x n op(B). The parts of A (m x 2 k) times this embedding are the
// parts of A B.
template <class T>
RealMatrix<T> embedding_of_b(const Matrix& matrix, const std::string& trans) {
  const bool is_plain = trans == "N";
  RealMatrix<T> parts{2 * (is_plain ? matrix.rows : matrix.columns),
                      2 * (is_plain ? matrix.columns : matrix.rows)};
  for (std::int64_t p = 0; p < parts.rows; p += 2) {
    for (std::int64_t j = 0; j < parts.columns; j += 2) {
      const std::complex<T> value = element<T>(matrix, trans, p / 2, j / 2);
      parts(p, j) = value.real();
      parts(p, j + 1) = value.imag();
      parts(p + 1, j) = -value.imag();
      parts(p + 1, j + 1) = value.real();
    }
  }
  return parts;
}

// Measures the errors of the parts of a complex C.
template <class T>
measure::ErrorReport measure_parts(const Operands& operands, const Matrix* native, const Matrix& c,
                                   const measure::CheckOptions& options) {
  const RealMatrix<T> a = parts_of<T>(operands.a, operands.transa);
  const RealMatrix<T> b = embedding_of_b<T>(operands.b, operands.transb);
  const RealMatrix<T> c0 = operands.c0 ? parts_of<T>(*operands.c0) : RealMatrix<T>{};
  const RealMatrix<T> computed = parts_of<T>(c);
  const RealMatrix<T> native_parts = native != nullptr ? parts_of<T>(*native) : RealMatrix<T>{};
  const measure::Product<T> product{a.view(),
                                    b.view(),
                                    operands.alpha.real(),
                                    operands.beta.real(),
                                    c0.view(),
                                    operands.alpha.imag(),
                                    operands.beta.imag()};
  return measure::measure_errors<T>(product, computed.view(),
                                    native != nullptr ? native_parts.view() : core::MatrixView<const T>{},
                                    options);
}

}  // namespace

void measure(const Operands& operands, const Matrix* native, Row& row) {
  Progress progress(row.requested_scheme.empty() ? "checking" : "checking " + row.requested_scheme);
  measure::CheckOptions options;
  options.seed = sample_seed;
  options.progress = [&progress](std::int64_t done, std::int64_t total) { progress.show(done, total); };
  row.errors = with_element_type(row.c, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, DoubleDouble>) {
      return measure_as<T>(operands, native, row.c, options);
    } else {
      return measure_parts<typename T::value_type>(operands, native, row.c, options);
    }
  });
}

ContractVerdict judge(const Row& row) {
  const measure::ErrorReport& errors = *row.errors;
  const Json& contract = row.plan.at("contract");
  const bool named = cell(row.plan.at("settings").at("accuracy"), "source") != "default";
  ContractVerdict verdict{cell(contract, "accuracy"), contract.at("coefficient"), named, false};
  if (verdict.accuracy == "exact") {
    verdict.met = errors.correctly_rounded_fraction == 1;
    return verdict;
  }
  if (verdict.coefficient == 0)
    verdict.coefficient = errors.contract_bound;  // a scheme was named, but no accuracy
  // If the accuracy is that of the operands' type, the report's verdict decides, which allows for
  // subnormal results too.
  verdict.met = verdict.coefficient == errors.contract_bound
                    ? errors.within_contract_bound
                    : errors.max_componentwise <= verdict.coefficient;
  return verdict;
}

Json errors_document(const measure::ErrorReport& errors) {
  return {{"frobenius_relative", number(errors.frobenius_relative)},
          {"max_relative", number(errors.max_relative)},
          {"mean_relative", number(errors.mean_relative)},
          {"max_componentwise", number(errors.max_componentwise)},
          {"max_ulp", number(errors.max_ulp)},
          {"correctly_rounded_fraction", errors.correctly_rounded_fraction},
          {"le_gemm_max_error", number(errors.le_gemm_max_error)},
          {"le_gemm_mred", number(errors.le_gemm_mred)},
          {"elements_checked", errors.elements_checked},
          {"elements_total", errors.elements_total},
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
