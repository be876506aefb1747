#include "accuracy.hpp"

#include <cstdlib>

namespace kintsugi::drop_in {

namespace {

// Returns the coefficient of |A||B| of the type's own contract.
double own_coefficient(kintsugi_type type, std::int64_t k) {
  const double unit_roundoff = is_single(type) ? 0x1p-24 : 0x1p-53;
  const double products = static_cast<double>(k) * (is_complex(type) ? 2 : 1);
  return (products + 8) * unit_roundoff;
}

}  // namespace

const char* own_accuracy(kintsugi_type type) { return is_single(type) ? "fp32" : "fp64"; }

std::string stricter_accuracy(const std::string& asked, kintsugi_type type, std::int64_t k) {
  if (asked == "exact" || asked == "reproducible") return asked;
  char* end = nullptr;
  const double tolerance = std::strtod(asked.c_str(), &end);
  const bool is_number = !asked.empty() && end == asked.c_str() + asked.size();
  return is_number && tolerance < own_coefficient(type, k) ? asked : own_accuracy(type);
}

FittingPlan make_fitting_plan(const kintsugi_problem& problem, kintsugi_options options,
                              const std::string& asked) {
  const auto type = static_cast<kintsugi_type>(problem.type_c);
  const std::string own = own_accuracy(type);
  const std::string accuracy = stricter_accuracy(asked, type, problem.k);
  FittingPlan made;
  if (asked == "dd" || (asked == "fp64" && is_single(type)))
    made.not_kept =
        "accuracy " + asked + " is stricter than matrices of this type hold, so " + own + " is kept";
  options.accuracy = accuracy.c_str();
  made.status = kintsugi_plan_create(nullptr, &problem, &options, &made.plan);
  if (made.status != KINTSUGI_CONTRACT_UNREACHABLE || accuracy == own) return made;
  made.not_kept = std::string(kintsugi_last_error()) + "; " + own + " is kept";
  options.accuracy = own.c_str();
  made.status = kintsugi_plan_create(nullptr, &problem, &options, &made.plan);
  return made;
}

}  // namespace kintsugi::drop_in
