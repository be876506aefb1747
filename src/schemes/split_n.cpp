#include "schemes/split_n.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "base/status.hpp"
#include "base/threads.hpp"
#include "schemes/bound.hpp"

// Included after the accumulators, because GCC warns that their enumerators shadow the formats' names.
#include "formats/formats.hpp"

namespace kintsugi::core::schemes {

namespace {

constexpr int max_slices = 8;

struct ParameterValues {
  const Format* format = &core::fp16;
  int a = 2;      // slices of A
  int b = 2;      // slices of B
  int scale = 0;  // exponent of the residuals' scale
  int block = 0;  // k_block
  const Parameter* terms = nullptr;
};

const Format* floating_format(std::string_view name) {
  const Format* format = find_format(name);
  return format != nullptr && format->floating && format->id != FormatId::fp64 ? format : nullptr;
}

// Sets one of the values. Returns false if the scheme has no such parameter, or if it refuses the value.
bool set_parameter(const Parameter& parameter, ParameterValues& values) {
  const auto set_number = [&](int min, int max, int& target) {
    const auto value = parse_parameter(parameter.value, min, max);
    if (value) target = *value;
    return value.has_value();
  };
  if (parameter.key == "a") return set_number(1, max_slices, values.a);
  if (parameter.key == "b") return set_number(1, max_slices, values.b);
  if (parameter.key == "scale") return set_number(0, 40, values.scale);
  if (parameter.key == "block") return set_number(0, 65536, values.block);
  if (parameter.key == "format") {
    values.format = floating_format(parameter.value);
    return values.format != nullptr;
  }
  if (parameter.key == "terms") {
    values.terms = &parameter;  // parsed later, when the numbers of slices are known
    return true;
  }
  return false;
}

// Returns all products a_s b_t, the largest first: ordered by s + t, then by s.
std::vector<Term> all_terms(int slices_a, int slices_b) {
  std::vector<Term> terms;
  for (int sum = 0; sum <= slices_a + slices_b - 2; ++sum) {
    for (int s = std::max(0, sum - slices_b + 1); s <= std::min(sum, slices_a - 1); ++s) {
      terms.push_back({static_cast<std::int16_t>(s), static_cast<std::int16_t>(sum - s)});
    }
  }
  return terms;
}

// Returns the terms in a list such as "a0b0+a0b1+a1b0". Returns no terms if a product is malformed or
// repeated, or if it names a slice that does not exist.
std::vector<Term> listed_terms(std::string_view list, const std::vector<Term>& all) {
  std::vector<Term> terms;
  if (list.ends_with('+')) return {};
  for (std::string_view remaining = list; !remaining.empty();) {
    const auto item = remaining.substr(0, remaining.find('+'));
    remaining.remove_prefix(std::min(item.size() + 1, remaining.size()));
    if (item.size() != 4 || item[0] != 'a' || item[2] != 'b') return {};
    const Term term{static_cast<std::int16_t>(item[1] - '0'), static_cast<std::int16_t>(item[3] - '0')};
    if (std::find(all.begin(), all.end(), term) == all.end()) return {};
    if (std::find(terms.begin(), terms.end(), term) != terms.end()) return {};
    terms.push_back(term);
  }
  return terms;
}

std::vector<Term> terms_of(const ParameterValues& values) {
  std::vector<Term> terms = all_terms(values.a, values.b);
  if (values.terms == nullptr) return terms;
  if (values.terms->value.starts_with('a')) return listed_terms(values.terms->value, terms);
  const auto count = parse_parameter(values.terms->value, 1, static_cast<int>(terms.size()));
  terms.resize(count ? static_cast<std::size_t>(*count) : 0);
  return terms;
}

// Returns a copy of the terms. It lives until the process ends, since schedules point to it.
std::span<const Term> kept_terms(const std::vector<Term>& terms) {
  const auto less = [](const std::vector<Term>& x, const std::vector<Term>& y) {
    return std::lexicographical_compare(
        x.begin(), x.end(), y.begin(), y.end(),
        [](const Term& t, const Term& u) { return std::pair(t.a, t.b) < std::pair(u.a, u.b); });
  };
  const auto lock = lock_shared_state();
  static std::set<std::vector<Term>, decltype(less)> kept(less);
  return *kept.insert(terms).first;
}

}  // namespace

const Parameter* configure_split_n(Program& program, std::span<const Parameter> parameters) {
  ParameterValues values;
  for (const Parameter& parameter : parameters) {
    const auto is_same = [&](const Parameter& other) { return other.key == parameter.key; };
    const bool repeated = std::count_if(parameters.begin(), parameters.end(), is_same) > 1;
    if (repeated || !set_parameter(parameter, values)) return &parameter;
  }
  std::vector<Term> terms = terms_of(values);
  if (terms.empty()) return values.terms;
  Schedule& schedule = program.schedule;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    terms[t].group = static_cast<std::int16_t>(t);
    schedule.group_exponents[t] = -values.scale * (terms[t].a + terms[t].b);
  }
  schedule.terms = kept_terms(terms);
  schedule.slices_a = values.a;
  schedule.slices_b = values.b;
  schedule.groups = static_cast<int>(terms.size());
  schedule.k_block = values.block;
  program.split_a = nearest_split(*values.format, values.a, values.scale);
  program.split_b = nearest_split(*values.format, values.b, values.scale);
  return nullptr;
}

void adapt_split_n(Program& program, const RangeSummary& a, const RangeSummary& b, std::int64_t k) {
  const auto check = [&](const SplitRule& rule, const RangeSummary& ranges, char name) {
    if (!can_overflow(rule, ranges)) return;
    fail(Status::contract_unreachable,
         "magnitudes of {} reach 2^{} and a slice of {} of {}, residuals times 2^{}, may overflow", name,
         ranges.largest, rule.format->name, rule.slices, rule.residual_exponent);
  };
  check(program.split_a, a, 'A');
  check(program.split_b, b, 'B');
  if (sums_can_overflow(program, a, b, k)) {
    fail(Status::contract_unreachable,
         "magnitudes of A reach 2^{} and of B 2^{}; sums of {} products of {} slices, residuals times "
         "2^{}, may overflow fp32",
         a.largest, b.largest, k, program.format().name, program.split_a.residual_exponent);
  }
}

}  // namespace kintsugi::core::schemes
