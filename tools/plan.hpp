// Plans of products C = A B of row-major matrices, what names them: shapes, types and schemes, and their
// a-priori bounds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/matrix.hpp"
#include "support.hpp"
#include "tools/measure/bound_check.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::tools {

struct Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

// Parses "MxNxK". Fails with --shapes in the message for any other text.
Shape parse_shape(const std::string& text);
std::string shape_text(const Shape& shape);

// Returns fp32, fp64, dd, c32 or c64. `type`: type of the elements, or of their parts if they are complex.
inline const char* type_text(Type type, bool complex = false) {
  if (complex) return type == Type::float32 ? "c32" : "c64";
  return type == Type::float32 ? "fp32" : type == Type::float64 ? "fp64" : "dd";
}
std::vector<std::string> type_texts(const std::vector<Type>& types);

// Returns the number in `text`, which must be at least 1. Otherwise fails with a message that quotes
// `quoted_text`.
std::int64_t parse_size(const std::string& flag, std::string_view text, const std::string& quoted_text);

// Returns the scheme's name without parameters: h2sgemm for h2sgemm:sb=6.
std::string without_parameters(const std::string& scheme);
// Returns the names of the schemes that take operands of the type.
std::vector<std::string> schemes_for(Type type);
// Returns the names of all schemes for operands of at least one of the types, and native.
std::vector<std::string> schemes_and_native(const std::vector<Type>& types);
// Returns "a, b, c".
std::string joined(const std::vector<std::string>& words);

// A way to compute products.
struct Method {
  Type type = Type::float32;
  std::string scheme;
  std::string engine;
  std::string accumulator;  // "" for native
};

// Returns the problem C = A B, row-major and without padding.
kintsugi_problem row_major_problem(const Shape& shape, Type type);

using Plan = std::unique_ptr<kintsugi_plan_s, Deleter<kintsugi_plan_destroy>>;
// Returns a plan of C = A B, row-major. Throws LibraryError if the library makes no plan for it.
Plan make_plan(kintsugi_handle handle, const Shape& shape, const Method& method);
Json describe(const Plan& plan);

using Prepared = std::unique_ptr<kintsugi_prepared_s, Deleter<kintsugi_prepared_destroy>>;

// Computes C = A B by that plan.
template <class T>
kintsugi_status execute_product(kintsugi_handle handle, const Plan& plan, const T* a, const T* b, T* c) {
  const T one = 1;
  const T zero = 0;
  kintsugi_operands data = KINTSUGI_OPERANDS_INIT;
  data.alpha = &one;
  data.a = a;
  data.b = b;
  data.beta = &zero;
  data.c = c;
  return kintsugi_plan_execute(handle, plan.get(), &data);
}

// Returns the report of the handle's last execution.
Json report_of(kintsugi_handle handle);

// Returns the split that a member of a plan's description describes. The result refers to strings of `split`,
// which must outlive it.
measure::SplitDescription description_of(const Json& split);

measure::BoundCoefficients coefficients_of(const Json& bound);

// Returns the splits that ran, with their bounds inside and outside the window; null for native. Splits and
// bounds come from the report if the scheme was adapted to the operands, else from the plan.
Json bounds_of(const Json& plan, const Json& report);

// Returns the scheme's a-priori bound, and whether every compared element keeps it
// (lab/schema/accuracy.schema.json). Returns null if the scheme has no bound for these operands.
template <class T>
Json check_bound(const Json& bounds, core::MatrixView<const T> a, core::MatrixView<const T> b,
                 const std::vector<measure::ElementError>& elements);

}  // namespace kintsugi::tools
