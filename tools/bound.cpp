#include "bound.hpp"

#include <algorithm>
#include <cmath>

#include "tools/measure/bound_check.hpp"

namespace kintsugi::tools {

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
  if (description.scale_vectors) description.top_exponent = split.at("top_exponent").get<int>();
  description.kind = word("kind");
  if (!split.at("tile_vectors").is_null()) {
    description.tile_vectors = split.at("tile_vectors").get<int>();
    description.tile_depth = split.at("tile_depth").get<int>();
  }
  return description;
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
  const measure::BoundCoefficients coefficients{.relative = bound.at("relative"),
                                                .floor_a = bound.at("floor_a"),
                                                .floor_b = bound.at("floor_b"),
                                                .floor_both = bound.at("floor_both")};
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
