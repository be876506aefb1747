// Plans of products C = A B of row-major matrices, and what names them: shapes, types and schemes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/matrix.hpp"
#include "support.hpp"

namespace kintsugi::tools {

struct Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};
// Parses "MxNxK". Fails with --shapes in the message for any other text.
Shape parse_shape(const std::string& text);
std::string shape_text(const Shape& shape);

inline const char* type_text(Type type) { return type == Type::float32 ? "fp32" : "fp64"; }
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

struct PlanDeleter {
  void operator()(kintsugi_plan plan) const { kintsugi_plan_destroy(plan); }
};

// Returns the problem C = A B, row-major and without padding.
kintsugi_problem row_major_problem(const Shape& shape, Type type);

using Plan = std::unique_ptr<kintsugi_plan_s, PlanDeleter>;
// Returns a plan of C = A B, row-major. Throws LibraryError if the library makes no plan for it.
Plan make_plan(kintsugi_handle handle, const Shape& shape, const Method& method);
Json describe(const Plan& plan);

struct PreparedDeleter {
  void operator()(kintsugi_prepared prepared) const { kintsugi_prepared_destroy(prepared); }
};
using Prepared = std::unique_ptr<kintsugi_prepared_s, PreparedDeleter>;

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

}  // namespace kintsugi::tools
