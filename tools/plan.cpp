#include "plan.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kintsugi::tools {

namespace {

// True if a scheme of kintsugi_describe_schemes() takes operands of the type.
bool takes_type(const Json& scheme, Type type) {
  const Json& operands = scheme.at("operands");
  return std::find(operands.begin(), operands.end(), Json(type_text(type))) != operands.end();
}

}  // namespace

std::int64_t parse_size(const std::string& flag, std::string_view text, const std::string& quoted_text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    fail(flag, "\"{}\" is not a number from 1 up", quoted_text);
  return value;
}

Shape parse_shape(const std::string& text) {
  const auto first = text.find('x');
  const auto second = first == std::string::npos ? first : text.find('x', first + 1);
  if (second == std::string::npos)
    fail("--shapes", "\"{}\" is not of the form MxNxK, such as 128x128x64", text);
  const std::string_view view(text);
  return {parse_size("--shapes", view.substr(0, first), text),
          parse_size("--shapes", view.substr(first + 1, second - first - 1), text),
          parse_size("--shapes", view.substr(second + 1), text)};
}

std::string shape_text(const Shape& shape) { return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k); }

std::vector<std::string> type_texts(const std::vector<Type>& types) {
  std::vector<std::string> texts;
  for (const Type type : types) texts.emplace_back(type_text(type));
  return texts;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string without_parameters(const std::string& scheme) { return scheme.substr(0, scheme.find(':')); }

std::vector<std::string> schemes_for(Type type) {
  std::vector<std::string> names;
  const Json schemes = describe_schemes();
  for (const auto& scheme : schemes.at("schemes")) {
    if (takes_type(scheme, type)) names.push_back(cell(scheme, "name"));
  }
  return names;
}

std::vector<std::string> schemes_and_native(const std::vector<Type>& types) {
  std::vector<std::string> names;
  for (const Type type : types) {
    for (const auto& name : schemes_for(type)) add_once(names, name);
  }
  names.emplace_back("native");
  return names;
}

Plan make_plan(kintsugi_handle handle, const Shape& shape, const Method& method) {
  const kintsugi_problem problem = row_major_problem(shape, method.type);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.engine = method.engine.c_str();
  if (method.scheme == "native") {
    options.policy = "native";
    options.accuracy = type_text(method.type);
  } else {
    options.scheme = method.scheme.c_str();
    // Only the engine reference lets a call choose among accumulators.
    if (method.engine == "reference" && !method.accumulator.empty())
      options.accumulator = method.accumulator.c_str();
  }
  kintsugi_plan plan = nullptr;
  require(method.scheme, kintsugi_plan_create(handle, &problem, &options, &plan));
  return Plan(plan);
}

Json describe(const Plan& plan) {
  return read_description("plan", [&](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_plan_describe(plan.get(), buffer, capacity, needed);
  });
}

kintsugi_problem row_major_problem(const Shape& shape, Type type) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.lda = shape.k;
  problem.ldb = problem.ldc = shape.n;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar =
      type == Type::float32 ? KINTSUGI_F32 : KINTSUGI_F64;
  problem.layout = KINTSUGI_ROW_MAJOR;
  return problem;
}

Json report_of(kintsugi_handle handle) {
  return read_description("report", [handle](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_report(handle, buffer, capacity, needed);
  });
}

measure::SplitDescription description_of(const Json& split) {
  const auto word = [&](const char* name) -> std::string_view {
    return split.at(name).get_ref<const std::string&>();
  };
  measure::SplitDescription description{.format = word("format"),
                                        .slices = split.at("slices").get<int>(),
                                        .first_rounding = word("first_rounding"),
                                        .residual_rounding = word("residual_rounding"),
                                        .residual_exponent = split.at("residual_exponent").get<int>()};
  description.scale_vectors = split.at("scale_vectors").get<bool>();
  if (!split.at("top_exponent").is_null()) description.top_exponent = split.at("top_exponent").get<int>();
  description.kind = word("kind");
  if (!split.at("tile_vectors").is_null()) {
    description.tile_vectors = split.at("tile_vectors").get<int>();
    description.tile_depth = split.at("tile_depth").get<int>();
  }
  return description;
}

measure::BoundCoefficients coefficients_of(const Json& bound) {
  return {bound.at("relative"), bound.at("floor_a"), bound.at("floor_b"), bound.at("floor_both")};
}

Json bounds_of(const Json& plan, const Json& report) {
  Json adapted = report.value("adapted", Json());
  if (!adapted.is_null()) return adapted;
  const Json& candidate = plan.at("candidates").at(0);
  Json bound = candidate.value("bound_in_window", Json());
  if (bound.is_null()) return bound;
  const Json& program = candidate.at("program");
  return {{"split_a", program.at("split_a")},
          {"split_b", program.at("split_b")},
          {"bound_in_window", std::move(bound)},
          {"bound_outside_window", candidate.at("bound_outside_window")}};
}

template <class T>
Json check_bound(const Json& bounds, core::MatrixView<const T> view_a, core::MatrixView<const T> view_b,
                 const std::vector<measure::ElementError>& elements) {
  if (bounds.is_null()) return nullptr;
  const auto a = measure::vector_norms(view_a, measure::split_window(description_of(bounds.at("split_a"))));
  const auto b =
      measure::vector_norms(view_b.transposed(), measure::split_window(description_of(bounds.at("split_b"))));
  const bool in_window = a.in_window && b.in_window;
  Json bound = bounds.at(in_window ? "bound_in_window" : "bound_outside_window");
  const measure::BoundCoefficients coefficients = coefficients_of(bound);
  double largest_ratio = 0;
  for (const auto& element : elements) {
    const double ratio = std::fabs(element.error) / measure::allowed_error<T>(coefficients, element, a, b);
    largest_ratio = std::max(largest_ratio, std::isnan(ratio) ? HUGE_VAL : ratio);
  }
  bound["in_window"] = in_window;
  const bool is_promised = !a.overflows && !b.overflows;
  bound["largest_ratio"] = is_promised ? number(largest_ratio) : Json();
  bound["held"] = is_promised ? Json(largest_ratio <= 1) : Json();
  return bound;
}

template Json check_bound(const Json&, core::MatrixView<const float>, core::MatrixView<const float>,
                          const std::vector<measure::ElementError>&);
template Json check_bound(const Json&, core::MatrixView<const double>, core::MatrixView<const double>,
                          const std::vector<measure::ElementError>&);

}  // namespace kintsugi::tools
