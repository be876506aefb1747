// Text forms of distributions.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/status.hpp"
#include "base/text/nearest_name.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::measure {
namespace {

struct Form {
  DistributionKind kind;
  const char* name;
  const char* parameter;  // its letter in messages; nullptr: no parameter
  double least;
  double most;
  bool is_integer;
  const char* meaning;
};

constexpr double huge_value = std::numeric_limits<double>::max();

constexpr Form forms[] = {
    {DistributionKind::uniform, "uniform", nullptr, 0, 0, false, "uniform on [-1, 1]"},
    {DistributionKind::uniform_01, "uniform01", nullptr, 0, 0, false, "uniform on [0, 1]"},
    {DistributionKind::normal, "normal", nullptr, 0, 0, false, "normal deviates of variance 1"},
    {DistributionKind::language_model, "language-model", nullptr, 0, 0, false,
     "uniform on [0.5, 2.5], as le-gemm's language models"},
    {DistributionKind::phi, "phi", "P", 0, huge_value, false, "(rand - 0.5) exp(P randn)"},
    {DistributionKind::exponent_type, "type", "1...4", 1, 4, true, "exponent ranges of fp16-emulation-study"},
    {DistributionKind::offset, "offset", "E", -1074, 1023, true, "uniform on [-2^E, 2^E]"},
    {DistributionKind::offset_nonnegative, "offset-nonnegative", "E", -1074, 1023, true,
     "uniform on [0, 2^E]"},
    {DistributionKind::graded, "graded", "S", -1023, 2000, false,
     "rows of A, columns of B graded over S binades"},
    {DistributionKind::graded_inner, "graded-inner", "S", 0, 2000, false, "graded over S binades along k"},
    {DistributionKind::diagonal, "diagonal", "S", 0, 2000, false, "A = X D, B = D^-1 Y, D over S binades"},
    {DistributionKind::gram_diagonal, "gram-diagonal", "S", 0, 2000, false,
     "A = X D, B = D^-1 X^T, D over S binades"},
    {DistributionKind::crossed, "crossed", "S", 0, 1000, true, "pairs 1, 2^-S in A and 2^-2S, 1 in B"},
    {DistributionKind::span, "span", "S", 0, 2045, true, "exponents of every row of A, column of B S apart"},
    {DistributionKind::cancellation, "cancellation", "T", 0, 1000, true, "sums cancel up to a relative 2^-T"},
    {DistributionKind::subnormal, "subnormal", nullptr, 0, 0, false, "subnormal numbers"},
    {DistributionKind::subnormal_mixed, "subnormal-mixed", nullptr, 0, 0, false,
     "one half subnormal numbers"},
    {DistributionKind::outlier, "outlier", "E", 0, 2000, true,
     "uniform, one element of every row of A, column of B times 2^E"},
    {DistributionKind::tile_outlier, "tile-outlier", "RATE", 0, 1, false,
     "uniform, one element times 2^20 in this share of tiles of 16 x 32 (A) and 32 x 8 (B)"},
    {DistributionKind::zeros, "zeros", "RATE", 0, 1, false, "zeros at this rate among uniform"},
    {DistributionKind::special, "special", "RATE", 0, 1, false, "NaN, +-Inf, +-0 at this rate among uniform"},
    {DistributionKind::integer, "integer", "N", 0, 0x1p53, true, "integers on [-N, N]"},
    {DistributionKind::power_of_two, "power-of-two", "E", -1074, 1023, true, "2^E everywhere"},
    {DistributionKind::powers_of_two, "powers-of-two", "R", 0, 1000, true, "+-2^e, e on [-R, R]"},
};

// Returns the form's text; type1 has no colon, as in the study.
std::string form_text(const Form& form) {
  if (form.parameter == nullptr) return form.name;
  return std::string(form.name) + (form.kind == DistributionKind::exponent_type ? "" : ":") + form.parameter;
}

std::vector<std::string> form_texts() {
  std::vector<std::string> texts;
  for (const Form& form : forms) texts.push_back(form_text(form));
  return texts;
}

[[noreturn]] void refuse(std::string_view text, const char* why) {
  core::fail(core::Status::bad_setting, "distribution '{}' {}{}", text, why,
             core::accepted_names("", "accepted:", form_texts()));
}

// Fails with a hint from the name alone: for "phy:2" it is phi:P.
[[noreturn]] void refuse_name(std::string_view text) {
  std::vector<std::string> names;
  for (const Form& form : forms) names.emplace_back(form.name);
  const auto nearest = core::nearest_name(text.substr(0, text.find(':')), names);
  const auto form = std::find_if(std::begin(forms), std::end(forms),
                                 [&](const Form& each) { return nearest && *nearest == each.name; });
  core::fail(
      core::Status::bad_setting, "distribution '{}' is unknown{}", text,
      core::accepted_names(form == std::end(forms) ? "" : form_text(*form), "accepted:", form_texts()));
}

double parse_parameter(const Form& form, std::string_view text, std::string_view digits) {
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value))
    refuse(text, "has no number where one belongs");
  if (form.is_integer && value != std::trunc(value)) refuse(text, "needs a whole number");
  if (value < form.least || value > form.most) {
    const std::string why = fmt::format("has a parameter outside {}...{}", form.least, form.most);
    refuse(text, why.c_str());
  }
  return value;
}

}  // namespace

Distribution parse_distribution(std::string_view text) {
  for (const Form& form : forms) {
    const std::string_view name = form.name;
    if (form.parameter == nullptr) {
      if (text == name) return {form.kind, 0};
      continue;
    }
    const std::string prefix =
        form.kind == DistributionKind::exponent_type ? "type" : std::string(name) + ":";
    if (text.starts_with(prefix)) return {form.kind, parse_parameter(form, text, text.substr(prefix.size()))};
  }
  refuse_name(text);
}

std::string to_text(const Distribution& distribution) {
  for (const Form& form : forms) {
    if (form.kind != distribution.kind) continue;
    if (form.parameter == nullptr) return form.name;
    const char* between = form.kind == DistributionKind::exponent_type ? "" : ":";
    return fmt::format("{}{}{}", form.name, between, distribution.parameter);
  }
  core::fail(core::Status::internal, "distribution kind {} has no name", static_cast<int>(distribution.kind));
}

const std::vector<std::string>& distribution_forms() {
  static const std::vector<std::string> lines = [] {
    std::vector<std::string> result;
    for (const Form& form : forms) result.push_back(fmt::format("{:<22}{}", form_text(form), form.meaning));
    return result;
  }();
  return lines;
}

}  // namespace kintsugi::measure
