#include "exact_comparison.hpp"

#include <cstring>
#include <exception>

#include "blas/level3/compose.hpp"
#include "blas/level3/products.hpp"
#include "blas/multiply.hpp"
#include "blas/report/record.hpp"
#include "blas/settings.hpp"
#include "common/sites/call_errors.hpp"
#include "common/sites/rules.hpp"
#include "region.hpp"
#include "site.hpp"

namespace kintsugi::blas {

namespace {

// Elements of a line of C that the call writes: all, or those of a triangle.
struct Part {
  std::int64_t begin, end;
};
Part written_part(const Call& column_major, std::int64_t line) {
  if (!has_uplo(column_major.routine) || has_side(column_major.routine)) return {0, column_major.m};
  return column_major.uplo == Uplo::upper ? Part{0, line + 1} : Part{line, column_major.m};
}

}  // namespace

std::optional<ExactComparison> ExactComparison::begin(const Symbol& symbol, const Call& call) noexcept try {
  if (call.site == nullptr || settings().sites->error_samples == 0 || !settings().records_calls())
    return std::nullopt;
  if (call.routine == Routine::trsm || output_of(call).is_empty()) return std::nullopt;
  const std::int64_t number = number_of_sample(*call.site);
  if (number < 0) return std::nullopt;
  return ExactComparison(symbol, call, number);
} catch (const std::exception&) {  // No memory.
  return std::nullopt;
}

ExactComparison::ExactComparison(const Symbol& symbol, const Call& call, std::int64_t number)
    : symbol_(&symbol), call_(&call), number_(number) {
  const Region c = output_of(call);
  c_.resize(static_cast<std::size_t>(c.lines * c.line_bytes));
  for (std::int64_t line = 0; line < c.lines; ++line)
    std::memcpy(c_.data() + line * c.line_bytes, c.first + line * c.stride,
                static_cast<std::size_t>(c.line_bytes));
}

bool ExactComparison::compute_exactly() {
  Call exact = *call_;
  exact.site = drop_in::exact_site<Site>();
  exact.c = c_.data();
  exact.ldc = call_->layout == Layout::row_major ? call_->n : call_->m;
  bool has_failed = false;
  const auto forward = [&has_failed] { return has_failed = true; };
  CallOutcome outcome;
  if (exact.routine == Routine::gemm) {
    multiply(*symbol_, exact, Forward(forward), outcome);
  } else {
    Products products(*symbol_, exact.site, outcome);
    compose(exact, products);
  }
  return !has_failed && !outcome.failed && !outcome.is_native();
}

void ExactComparison::finish() noexcept try {
  if (!compute_exactly()) return;
  const Call column_major = as_column_major(*call_);
  const Region c = output_of(*call_);
  const std::int64_t bytes = element_bytes(call_->type);
  drop_in::CallNorms norms;
  for (std::int64_t line = 0; line < c.lines; ++line) {
    const Part part = written_part(column_major, line);
    drop_in::add_elements(norms, call_->type, c.first + line * c.stride + part.begin * bytes,
                          c_.data() + line * c.line_bytes + part.begin * bytes, part.end - part.begin);
  }
  record_error(*call_->site, number_, norms);
} catch (const std::exception&) {  // No memory: the site lacks this call's error.
}

}  // namespace kintsugi::blas
