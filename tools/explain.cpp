// kintsugi explain: shows the errors of each scheme on a problem, the candidate that a call would run, and
// why.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/product.hpp"
#include "plan.hpp"
#include "program.hpp"
#include "support.hpp"
#include "tools/measure/bound_check.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/metrics.hpp"
#include "tools/measure/nearest_name.hpp"
#include "tools/measure/retained_bits.hpp"

namespace kintsugi::tools {

namespace {

// Facts about the vectors along k: rows of op(A), columns of op(B). Exponents are those of finite non-zero
// elements; a vector without such elements has the dynamic range 0.
struct OperandFacts {
  std::int64_t vectors = 0;
  std::int64_t length = 0;
  std::optional<int> largest_exponent;  // of all vectors; nothing if all elements are zero or not finite
  std::optional<int> smallest_exponent;
  int widest_dynamic_range = 0;     // in binades
  int median_dynamic_range = 0;     // lower median over the vectors
  std::int64_t widest_vector = 0;   // index of the vector with the widest dynamic range
  std::int64_t largest_vector = 0;  // index of the vector with the largest exponent
  std::int64_t zeros = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;

  bool is_finite() const { return nans == 0 && infinities == 0; }
};

struct VectorFacts {
  int largest_exponent = std::numeric_limits<int>::min();
  int smallest_exponent = std::numeric_limits<int>::max();
  std::int64_t zeros = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;

  bool has_finite_nonzero() const { return largest_exponent >= smallest_exponent; }
  int dynamic_range() const { return has_finite_nonzero() ? largest_exponent - smallest_exponent : 0; }
};

template <class T>
VectorFacts facts_of_vector(core::MatrixView<const T> vectors, std::int64_t v) {
  VectorFacts facts;
  for (std::int64_t l = 0; l < vectors.columns; ++l) {
    const T x = vectors(v, l);
    if (std::isnan(x)) {
      ++facts.nans;
    } else if (std::isinf(x)) {
      ++facts.infinities;
    } else if (x == T(0)) {
      ++facts.zeros;
    } else {
      const int exponent = std::ilogb(x);
      facts.largest_exponent = std::max(facts.largest_exponent, exponent);
      facts.smallest_exponent = std::min(facts.smallest_exponent, exponent);
    }
  }
  return facts;
}

// Returns the lower median.
int median_of(std::vector<int> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class T>
OperandFacts operand_facts(core::MatrixView<const T> vectors) {
  std::vector<VectorFacts> all(static_cast<std::size_t>(vectors.rows));
#pragma omp parallel for schedule(static)
  for (std::int64_t v = 0; v < vectors.rows; ++v)
    all[static_cast<std::size_t>(v)] = facts_of_vector(vectors, v);
  OperandFacts facts;
  facts.vectors = vectors.rows;
  facts.length = vectors.columns;
  std::vector<int> dynamic_ranges;
  for (const VectorFacts& vector : all) {
    const auto v = std::ssize(dynamic_ranges);
    dynamic_ranges.push_back(vector.dynamic_range());
    facts.zeros += vector.zeros;
    facts.nans += vector.nans;
    facts.infinities += vector.infinities;
    if (vector.dynamic_range() > facts.widest_dynamic_range) facts.widest_vector = v;
    facts.widest_dynamic_range = std::max(facts.widest_dynamic_range, vector.dynamic_range());
    if (!vector.has_finite_nonzero()) continue;
    const int largest = vector.largest_exponent;
    const int smallest = vector.smallest_exponent;
    if (!facts.largest_exponent || largest > *facts.largest_exponent) facts.largest_vector = v;
    facts.largest_exponent = std::max(facts.largest_exponent.value_or(largest), largest);
    facts.smallest_exponent = std::min(facts.smallest_exponent.value_or(smallest), smallest);
  }
  facts.median_dynamic_range = median_of(std::move(dynamic_ranges));
  return facts;
}

Json facts_document(const OperandFacts& facts) {
  return {{"vectors", facts.vectors},
          {"length", facts.length},
          {"largest_exponent", facts.largest_exponent ? Json(*facts.largest_exponent) : Json()},
          {"smallest_exponent", facts.smallest_exponent ? Json(*facts.smallest_exponent) : Json()},
          {"widest_span", facts.widest_dynamic_range},
          {"median_span", facts.median_dynamic_range},
          {"zeros", facts.zeros},
          {"nans", facts.nans},
          {"infinities", facts.infinities}};
}

// A program of a fallback chain, and the operands that it accepts.
struct ChainCandidate {
  std::string scheme;
  std::optional<int> largest_dynamic_range;  // nothing: any dynamic range is accepted
  int products = 0;                          // products of slices; 0: native
  bool by_norms = false;    // true: accepted only if the norms of all vectors prove the accuracy
  bool checked = false;     // true: every element is checked
  bool fixed_order = true;  // false: the vendor library decides the order of additions

  bool accepts(int dynamic_range) const {
    return !largest_dynamic_range || *largest_dynamic_range >= dynamic_range;
  }
};

// The candidate that a policy selects for operands of a dynamic range.
struct Choice {
  std::string policy;
  std::string engine;  // "" if there is no plan
  std::vector<ChainCandidate> candidates;
  std::optional<std::size_t> selected;  // index of a candidate; nothing if none accepts the operands
  std::string reason;
  std::string named_scheme;  // scheme that the settings name; there is no fallback chain then; "": none

  const ChainCandidate* selected_candidate() const { return selected ? &candidates[*selected] : nullptr; }
  // True if some candidate is a checked one.
  bool has_checked() const {
    return std::any_of(candidates.begin(), candidates.end(),
                       [](const ChainCandidate& candidate) { return candidate.checked; });
  }
};

// The accuracy of the call and the coefficient of |A||B| that it allows.
struct Contract {
  std::string accuracy;
  double coefficient = 0;
};

ChainCandidate candidate_of(const Json& candidate) {
  ChainCandidate result{.scheme = cell(candidate, "scheme"),
                        .largest_dynamic_range = {},
                        .by_norms = candidate.at("accepted_by_norms").get<bool>(),
                        .checked = candidate.at("checked").get<bool>(),
                        .fixed_order = candidate.at("fixed_order").get<bool>()};
  if (!candidate.at("largest_dynamic_range").is_null())
    result.largest_dynamic_range = candidate.at("largest_dynamic_range").get<int>();
  if (candidate.contains("program")) result.products = candidate.at("program").at("products").get<int>();
  return result;
}

// "1 binade", "2 binades"
std::string binades_text(int binades) { return fmt::format("{} binade{}", binades, binades == 1 ? "" : "s"); }

std::string reason_of(const Choice& choice, const Json& plan, int dynamic_range) {
  if (!choice.named_scheme.empty())
    return fmt::format("{} is named by the settings ({}), so it runs whatever it costs", choice.named_scheme,
                       cell(plan.at("settings").at("scheme"), "source"));
  if (!choice.selected)
    return fmt::format("vectors span up to {} and no program is proved for more than {}",
                       binades_text(dynamic_range), *choice.candidates.back().largest_dynamic_range);
  if (choice.candidates.front().by_norms)
    return "it runs unless the norms of all vectors, which the device finds, prove a candidate before it";
  if (choice.has_checked())
    return "residues; every element is checked against the accuracy, and elements that fail go to the next "
           "candidate";
  if (*choice.selected > 0 || choice.selected_candidate()->largest_dynamic_range)
    return "the first of the fallback chain that takes vectors of up to " + binades_text(dynamic_range);
  return choice.policy == "auto"
             ? fmt::format("engine {} expects no emulation to be faster than its native product",
                           choice.engine)
             : "no emulation is proved for this accuracy and length";
}

Choice choose(const kintsugi_problem& problem, const std::string& policy, const std::string& accuracy,
              const std::string& engine, int dynamic_range) {
  const Handle handle = make_handle();
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.policy = policy.c_str();
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) require(std::string("--") + name, kintsugi_set(handle.get(), name, value.c_str()));
  };
  set("accuracy", accuracy);
  set("engine", engine);
  kintsugi_plan created = nullptr;
  const kintsugi_status status = kintsugi_plan_create(handle.get(), &problem, &options, &created);
  const Plan plan(created);
  if (status == KINTSUGI_CONTRACT_UNREACHABLE)
    return {.policy = policy,
            .engine = "",
            .candidates = {},
            .selected = {},
            .reason = kintsugi_last_error(),
            .named_scheme = ""};
  require("--engine", status);
  const Json description = describe(plan);
  Choice choice{.policy = policy,
                .engine = cell(description, "engine"),
                .candidates = {},
                .selected = {},
                .reason = "",
                .named_scheme = cell(description.at("settings").at("scheme"), "value")};
  for (const auto& candidate : description.at("candidates")) {
    choice.candidates.push_back(candidate_of(candidate));
    const ChainCandidate& added = choice.candidates.back();
    // The norms are not known here, so candidates that are accepted by norms are not selected.
    if (!choice.selected && !added.by_norms && added.accepts(dynamic_range))
      choice.selected = choice.candidates.size() - 1;
  }
  choice.reason = reason_of(choice, description, dynamic_range);
  return choice;
}

// Returns the contract of the accuracy. If `accuracy` is "", the settings decide, or else the type.
Contract contract_of(const std::string& accuracy, Type type, std::int64_t k) {
  std::string name = accuracy;
  if (name.empty()) {
    const Json settings = describe_settings(nullptr);
    for (const auto& setting : settings.at("settings")) {
      if (cell(setting, "name") == "accuracy") name = cell(setting, "value");
    }
  }
  if (name.empty()) name = type_text(type);
  const auto unit_roundoffs = static_cast<double>(k) + 8;
  const double fp32_coefficient = unit_roundoffs * 0x1p-24;
  const double fp64_coefficient = unit_roundoffs * 0x1p-53;
  // The accuracy `reproducible` allows the error of the operands' type.
  if (name == "reproducible") return {name, type == Type::float32 ? fp32_coefficient : fp64_coefficient};
  if (name == "fp32") return {name, fp32_coefficient};
  if (name == "fp64") return {name, fp64_coefficient};
  if (name == "exact") return {name, 0};
  return {name, parse_number("--accuracy", name)};
}

Json choice_document(const Choice& choice) {
  Json candidates = Json::array();
  for (const ChainCandidate& candidate : choice.candidates) {
    candidates.push_back({{"scheme", candidate.scheme},
                          {"largest_dynamic_range",
                           candidate.largest_dynamic_range ? Json(*candidate.largest_dynamic_range) : Json()},
                          {"products", candidate.products},
                          {"accepted_by_norms", candidate.by_norms},
                          {"checked", candidate.checked},
                          {"fixed_order", candidate.fixed_order}});
  }
  return {{"policy", choice.policy},
          {"candidates", candidates},
          {"chosen", choice.selected ? Json(choice.selected_candidate()->scheme) : Json()},
          {"reason", choice.reason}};
}

// Result of a scheme for the sample.
struct SchemeRun {
  std::string refusal;  // the library's message; "" if the scheme ran
  Json plan;            // kintsugi_plan_describe
  Json report;          // kintsugi_report
  measure::ErrorReport errors;
  std::vector<measure::ElementError> elements;
};

// Returns contiguous copies of the sampled vectors.
template <class T>
std::vector<T> gathered(core::MatrixView<const T> vectors, const std::vector<std::int64_t>& sampled) {
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(std::ssize(sampled) * vectors.columns));
  for (const std::int64_t v : sampled) {
    for (std::int64_t l = 0; l < vectors.columns; ++l) values.push_back(vectors(v, l));
  }
  return values;
}

// True for a status by which a scheme refuses these operands, or an engine that cannot run it.
bool is_refusal(kintsugi_status status) {
  return status == KINTSUGI_CONTRACT_UNREACHABLE || status == KINTSUGI_NOT_SUPPORTED;
}

template <class T>
class Sample {
 public:
  // Copies the sampled rows of `a`, op(A), and of `b`, op(B) transposed, and computes the exact elements.
  Sample(core::MatrixView<const T> a, core::MatrixView<const T> b, std::vector<std::int64_t> rows,
         std::vector<std::int64_t> columns)
      : k_(a.columns), rows_(std::move(rows)), columns_(std::move(columns)), a_(gathered(a, rows_)),
        b_(gathered(b, columns_)) {
    measure::Product<T> product;
    product.a = this->a();
    product.b = this->b().transposed();
    exact_.emplace(product, std::ssize(rows_), std::ssize(columns_));
  }

  core::MatrixView<const T> a() const { return view(a_, rows_); }
  core::MatrixView<const T> b() const { return view(b_, columns_); }

  // Computes the elements by a scheme, or "native". Throws LibraryError for an unknown scheme.
  SchemeRun run(const std::string& scheme, const std::string& engine) const {
    const Handle handle = make_handle();
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    if (!engine.empty()) options.engine = engine.c_str();
    if (scheme == "native") {
      options.policy = "native";
      options.accuracy = type_text(type_of<T>);
    } else {
      options.scheme = scheme.c_str();
    }
    SchemeRun run;
    kintsugi_plan created = nullptr;
    const kintsugi_problem problem = this->problem();
    kintsugi_status status = kintsugi_plan_create(handle.get(), &problem, &options, &created);
    const Plan plan(created);
    if (is_refusal(status)) {
      run.refusal = kintsugi_last_error();
      return run;
    }
    require("--schemes", status);
    run.plan = describe(plan);
    std::vector<T> c(rows_.size() * columns_.size());
    status = execute_product(handle.get(), plan, a_.data(), b_.data(), c.data());
    if (is_refusal(status)) {
      run.refusal = kintsugi_last_error();
      return run;
    }
    require(scheme, status);
    run.report = report_of(handle.get());
    const auto columns = std::ssize(columns_);
    run.errors = exact_->measure({c.data(), std::ssize(rows_), columns, columns, 1}, {}, &run.elements);
    return run;
  }

 private:
  core::MatrixView<const T> view(const std::vector<T>& values,
                                 const std::vector<std::int64_t>& vectors) const {
    return {values.data(), std::ssize(vectors), k_, k_, 1};
  }
  kintsugi_problem problem() const {
    kintsugi_problem problem = row_major_problem({std::ssize(rows_), std::ssize(columns_), k_}, type_of<T>);
    problem.op_b = KINTSUGI_OP_T;
    problem.ldb = k_;
    return problem;
  }

  std::int64_t k_;
  std::vector<std::int64_t> rows_;
  std::vector<std::int64_t> columns_;
  std::vector<T> a_;
  std::vector<T> b_;
  std::optional<measure::ExactReference<T>> exact_;
};

// Returns at most 16 evenly spread vectors, including the vectors with the largest exponent and the largest
// dynamic range. A scheme that fits itself to the largest magnitude then does the same as for all vectors.
std::vector<std::int64_t> sampled_vectors(const OperandFacts& facts) {
  constexpr std::int64_t max_vectors = 16;
  std::vector<std::int64_t> sampled;
  if (facts.vectors <= max_vectors) {
    for (std::int64_t v = 0; v < facts.vectors; ++v) sampled.push_back(v);
    return sampled;
  }
  sampled = {facts.largest_vector, facts.widest_vector};
  constexpr std::int64_t spread_vectors = max_vectors - 2;
  for (std::int64_t i = 0; i < spread_vectors; ++i)
    sampled.push_back(i * (facts.vectors - 1) / (spread_vectors - 1));
  std::sort(sampled.begin(), sampled.end());
  sampled.erase(std::unique(sampled.begin(), sampled.end()), sampled.end());
  return sampled;
}

// Bounds of |C - AB| relative to |A||B| for three sets of operands. The last two are missing if the problem's
// operands are outside the window.
struct Bound {
  measure::BoundCoefficients coefficients;    // for all operands inside the window
  std::optional<double> dynamic_range_bound;  // for all operands with the problem's dynamic ranges
  std::optional<double> sample_bound;         // largest of the sampled elements' own bounds
};

struct SchemeRow {
  std::string scheme;
  std::string refusal;  // "" if the scheme ran
  Json program;         // program of the plan; null for native and without a plan
  std::string accumulator;
  std::optional<measure::RetainedCounts> retained_a;  // nothing for native and without a plan
  std::optional<measure::RetainedCounts> retained_b;
  measure::SplitWindow window;  // window of the split of A
  std::optional<bool> in_window;
  std::optional<Bound> bound;
  std::optional<measure::ErrorReport> errors;
  bool meets_contract = false;  // true: every element of the sample does
  bool proved = false;          // true: the contract is proved for all elements
  // Largest dynamic range, in binades, for which the contract is proved; nothing if there is none, and for a
  // split that does not scale vectors.
  std::optional<int> proved_dynamic_range;

  int products() const { return program.is_null() ? 0 : program.at("products").get<int>(); }
  // Returns the number of inner indices in a block of k (0: all of k); null without a program.
  Json k_block() const {
    if (program.is_null()) return nullptr;
    return program.at("schedule").at("k_block");
  }
};

// True if the operand is inside the split's window. Every finite operand is inside the window of an integer
// format, since the floors of the bound cover small elements.
bool is_in_window(const Json& split, const OperandFacts& facts) {
  if (!facts.is_finite()) return false;
  const measure::SplitWindow window = measure::split_window(description_of(split));
  if (window.integer || !facts.largest_exponent) return true;
  if (window.scaled) return facts.widest_dynamic_range <= window.dynamic_range;
  return *facts.smallest_exponent >= window.smallest && *facts.largest_exponent <= window.largest;
}

// True if the recombination rounds the result. False if the engine returns a single sum, which already has
// the result's type.
bool recombination_rounds(const Json& schedule) {
  return !schedule.at("joint").get<bool>() && schedule.at("groups").get<int>() != 1;
}

// Returns the smallest magnitude of an element that lies `binades` below the largest element of its vector,
// in units of the split. An integer format may scale the largest element one binade lower, to leave room for
// rounding.
double smallest_below_largest(const Json& split, int binades) {
  const measure::SplitDescription description = description_of(split);
  const bool reserves_rounding_bit = measure::split_window(description).reserves_rounding_bit;
  return std::ldexp(1.0, description.top_exponent - (reserves_rounding_bit ? 1 : 0) - binades);
}

// Returns a lower bound of the magnitudes of all non-zero elements, in units of the split; 1 if all elements
// are zero.
double smallest_element(const Json& split, const OperandFacts& facts) {
  if (!facts.largest_exponent) return 1;
  if (!description_of(split).scale_vectors) return std::ldexp(1.0, *facts.smallest_exponent);
  return smallest_below_largest(split, facts.widest_dynamic_range);
}

template <class T>
double largest_of_sample(const measure::BoundCoefficients& bound, const measure::VectorNorms& a,
                         const measure::VectorNorms& b, const std::vector<measure::ElementError>& elements) {
  double largest = 0;
  for (const auto& element : elements) {
    if (element.absolute > 0)
      largest = std::max(largest, measure::allowed_error<T>(bound, element, a, b) / element.absolute);
  }
  return largest;
}

template <class T>
class SchemeRows {
 public:
  // Views have vectors along k as rows: op(A), op(B) transposed.
  SchemeRows(core::MatrixView<const T> a, core::MatrixView<const T> b, const OperandFacts& facts_a,
             const OperandFacts& facts_b, const Sample<T>& sample, const Contract& contract,
             std::string engine)
      : a_(a), b_(b), facts_a_(facts_a), facts_b_(facts_b), sample_(sample), contract_(contract),
        engine_(std::move(engine)) {}

  // Multiplies the sample by the scheme and returns the results.
  SchemeRow row(const std::string& scheme) {
    const SchemeRun run = sample_.run(scheme, engine_);
    SchemeRow row;
    row.scheme = scheme;
    row.refusal = run.refusal;
    if (run.refusal.empty()) {
      row.errors = run.errors;
      row.meets_contract = meets(run.errors, contract_.accuracy, contract_.coefficient);
    }
    if (scheme == "native" || run.plan.is_null()) return row;
    const Json& candidate = run.plan.at("candidates").at(0);
    row.program = candidate.at("program");
    row.accumulator = cell(candidate, "accumulator");
    Json coefficients = candidate.at("bound_in_window");
    // A scheme that adapts itself to the operands reports the splits that ran and their bound.
    const Json adapted = run.report.is_null() ? Json() : run.report.at("adapted");
    if (!adapted.is_null()) {
      row.program["split_a"] = adapted.at("split_a");
      row.program["split_b"] = adapted.at("split_b");
      coefficients = adapted.at("bound_in_window");
    }
    row.retained_a = retained(measure::Side::a, row.program.at("split_a"));
    row.retained_b = retained(measure::Side::b, row.program.at("split_b"));
    row.window = measure::split_window(description_of(row.program.at("split_a")));
    row.in_window = is_in_window(row.program.at("split_a"), facts_a_) &&
                    is_in_window(row.program.at("split_b"), facts_b_);
    row.bound = bound_of(row.program, coefficients, *row.in_window, run.elements);
    row.proved_dynamic_range = proved_dynamic_range(row.program, row.bound->coefficients);
    row.proved = row.bound->dynamic_range_bound && *row.bound->dynamic_range_bound <= contract_.coefficient;
    return row;
  }

 private:
  // Returns the retained bits. Counting reads whole operands, and many schemes have the same split, so
  // results are kept.
  measure::RetainedCounts retained(measure::Side side, const Json& split) {
    const auto [found, is_new] = retained_.try_emplace(std::pair(side, split.dump()));
    if (is_new)
      found->second = measure::count_retained_bits(description_of(split), side == measure::Side::a ? a_ : b_);
    return found->second;
  }
  // Returns the bound for operands whose non-zero elements are at least min_a and min_b, in units of the
  // split. The floors of the bound are divided by min_a and min_b, to make them relative to |A||B|: no
  // non-zero element is smaller, and zeros have no error. For an integer format floor_both counts all k
  // products of an element of C, and |A||B| is a sum of k products, too.
  double bound_for_smallest(const Json& program, const measure::BoundCoefficients& bound, double min_a,
                            double min_b) const {
    constexpr double unit_roundoff = std::numeric_limits<T>::epsilon() / 2;
    const bool is_integer = measure::split_window(description_of(program.at("split_a"))).integer;
    const double products = is_integer ? static_cast<double>(sample_.a().columns) : 1;
    const double unrounded = bound.relative + bound.floor_a / min_a + bound.floor_b / min_b +
                             bound.floor_both / products / (min_a * min_b);
    return recombination_rounds(program.at("schedule")) ? unrounded + unit_roundoff * (1 + unrounded)
                                                        : unrounded;
  }
  std::optional<int> proved_dynamic_range(const Json& program,
                                          const measure::BoundCoefficients& bound) const {
    using Limits = std::numeric_limits<T>;
    const Json& split_a = program.at("split_a");
    const Json& split_b = program.at("split_b");
    // Returns the dynamic range of the window. For an integer format, whose window has no lower end, it is
    // that of all numbers of the type. For a split that does not scale vectors it is -1.
    const auto window_range = [](const Json& split) {
      const measure::SplitWindow window = measure::split_window(description_of(split));
      if (!window.scaled) return -1;
      return window.integer ? Limits::max_exponent - Limits::min_exponent + Limits::digits
                            : window.dynamic_range;
    };
    for (int range = std::min(window_range(split_a), window_range(split_b)); range >= 0; --range) {
      if (bound_for_smallest(program, bound, smallest_below_largest(split_a, range),
                             smallest_below_largest(split_b, range)) <= contract_.coefficient)
        return range;
    }
    return std::nullopt;
  }
  Bound bound_of(const Json& program, const Json& coefficients, bool in_window,
                 const std::vector<measure::ElementError>& elements) const {
    Bound bound{coefficients_of(coefficients), {}, {}};
    if (!in_window) return bound;
    const Json& split_a = program.at("split_a");
    const Json& split_b = program.at("split_b");
    bound.dynamic_range_bound =
        bound_for_smallest(program, bound.coefficients, smallest_element(split_a, facts_a_),
                           smallest_element(split_b, facts_b_));
    const auto norms_a = measure::vector_norms(sample_.a(), measure::split_window(description_of(split_a)));
    const auto norms_b = measure::vector_norms(sample_.b(), measure::split_window(description_of(split_b)));
    bound.sample_bound = largest_of_sample<T>(bound.coefficients, norms_a, norms_b, elements);
    return bound;
  }

  core::MatrixView<const T> a_;
  core::MatrixView<const T> b_;
  const OperandFacts& facts_a_;
  const OperandFacts& facts_b_;
  const Sample<T>& sample_;
  Contract contract_;
  std::string engine_;
  std::map<std::pair<measure::Side, std::string>, measure::RetainedCounts> retained_;
};

Json retained_document(const std::optional<measure::RetainedCounts>& counts) {
  if (!counts) return nullptr;
  return {{"elements", counts->elements},
          {"promised_bits", counts->promised_bits},
          {"elements_with_promised_bits", counts->promised},
          {"fewest_bits", counts->fewest}};
}

Json optional_number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

Json row_document(const SchemeRow& row) {
  Json document = {
      {"scheme", row.scheme},
      {"refusal", row.refusal},
      {"products", row.products()},
      {"k_block", row.k_block()},
      {"accumulator", row.accumulator.empty() ? Json() : Json(row.accumulator)},
      {"retained_bits", {{"a", retained_document(row.retained_a)}, {"b", retained_document(row.retained_b)}}},
      {"in_window", row.in_window ? Json(*row.in_window) : Json()},
      {"bound", nullptr},
      {"errors", nullptr},
      {"meets_contract", row.errors ? Json(row.meets_contract) : Json()},
      {"proved", row.proved}};
  if (row.bound) {
    const measure::BoundCoefficients& bound = row.bound->coefficients;
    document["bound"] = {{"relative", bound.relative},
                         {"floor_a", bound.floor_a},
                         {"floor_b", bound.floor_b},
                         {"floor_both", bound.floor_both},
                         {"of_spans", optional_number(row.bound->dynamic_range_bound)},
                         {"of_sample", optional_number(row.bound->sample_bound)}};
  }
  if (row.errors) {
    document["errors"] = {{"frobenius_relative", number(row.errors->frobenius_relative)},
                          {"max_componentwise", number(row.errors->max_componentwise)}};
  }
  return document;
}

// Programs that the two policies select for the problem.
struct Choices {
  Choice by_default;                // policy auto
  Choice emulating;                 // policy emulate
  int dynamic_range = 0;            // largest dynamic range of the operands' vectors, in binades
  std::int64_t special_values = 0;  // number of NaN and infinities in both operands
};

// Fewest bits of a split with which the accuracy fp32 can be proved. The error of a split to 21 bits exceeds
// 9 * 2^-24, the contract for k = 1, so not even a single product would meet the contract.
constexpr int fewest_bits_of_fp32 = 22;
constexpr std::string_view checked_scheme = "ozaki2";  // the scheme of all checked candidates
constexpr std::size_t max_candidates = 4;              // candidates of a plan's fallback chain

std::string cost_text(int products, int other_products) {
  return fmt::format("{} product{} against {}", products, products == 1 ? "" : "s", other_products);
}

// Returns the verdict on checked_scheme. The checked candidates are variants of this scheme, with numbers of
// moduli that the library selects.
std::string of_checked_scheme(const Choice& choice) {
  std::string candidates;
  for (const ChainCandidate& candidate : choice.candidates) {
    if (candidate.checked) candidates += (candidates.empty() ? "" : ", ") + candidate.scheme;
  }
  return "in the fallback chain, with as many moduli as the accuracy needs: " + candidates;
}

// Returns the verdict on a candidate of the fallback chain that is not selected.
std::string of_unselected_candidate(const ChainCandidate& candidate, const Choice& choice,
                                    int dynamic_range) {
  if (candidate.by_norms)
    return "in the fallback chain: runs if the norms of all vectors prove it before it runs";
  if (!candidate.accepts(dynamic_range))
    return fmt::format("window too narrow: vectors span up to {}, it takes {}", binades_text(dynamic_range),
                       *candidate.largest_dynamic_range);
  if (choice.has_checked())
    return "the fallback chain's last candidate: for elements that fail the checks of all others";
  const ChainCandidate& selected = *choice.selected_candidate();
  return fmt::format("not needed: {} takes vectors of up to {} and {}", selected.scheme,
                     binades_text(dynamic_range),
                     selected.products < candidate.products
                         ? "costs less, " + cost_text(selected.products, candidate.products)
                         : "comes before it");
}

// Returns the verdict on a scheme that is not proved although the operands are inside its window. The reason
// is a sampled element whose bound exceeds the contract, if there is one. Otherwise it is that other operands
// with these dynamic ranges may exceed the contract.
std::string of_unproved_scheme(const SchemeRow& row, const Contract& contract) {
  const double sample_bound = *row.bound->sample_bound;
  if (sample_bound > contract.coefficient)
    return fmt::format("not proved: {:.3g} |A||B| on these data is above the {:.3g} of accuracy {}",
                       sample_bound, contract.coefficient, contract.accuracy);
  return fmt::format(
      "not proved: operands with these dynamic ranges may have errors of {:.3g} |A||B|, though no sampled "
      "element can have more than {:.3g}",
      *row.bound->dynamic_range_bound, sample_bound);
}

std::string with_special_values(std::int64_t special_values) {
  return fmt::format("no bound is stated for operands with NaN or infinities, of which there {} {}",
                     special_values == 1 ? "is" : "are", special_values);
}

// Returns the verdict on a scheme that does not scale vectors. No fallback chain has such a scheme: when a
// plan is made, it is not known whether the operands are in the scheme's window.
std::string without_scales(const SchemeRow& row, const Choices& choices, const Contract& contract) {
  const std::string by_name = "it does not scale rows and columns, so it runs by name alone";
  if (choices.special_values > 0) return with_special_values(choices.special_values) + "; " + by_name;
  if (!*row.in_window)
    return fmt::format("outside its window, elements of 2^{} to 2^{}; {}", row.window.smallest,
                       row.window.largest, by_name);
  if (row.proved) return "proved on these data; but " + by_name;
  return of_unproved_scheme(row, contract);
}

// Returns the verdict on a scheme that is proved up to a dynamic range but is in no fallback chain.
std::string not_needed(const SchemeRow& row, const Choice& choice, int proved_dynamic_range) {
  const std::string proved_text = binades_text(proved_dynamic_range);
  for (const ChainCandidate& candidate : choice.candidates) {
    if (candidate.products == 0 || candidate.by_norms || !candidate.accepts(proved_dynamic_range)) continue;
    return fmt::format("not needed: {} takes vectors of up to {}, this one of {}, and {}", candidate.scheme,
                       candidate.largest_dynamic_range ? binades_text(*candidate.largest_dynamic_range)
                                                       : "any dynamic range",
                       proved_text,
                       candidate.products < row.products()
                           ? "costs less, " + cost_text(candidate.products, row.products())
                           : "comes before it");
  }
  if (choice.candidates.size() == max_candidates)
    return fmt::format(
        "the fallback chain is full: this scheme takes vectors of up to {}, more than the chain's "
        "emulations, but its {} candidates come before it",
        proved_text, max_candidates);
  return "not needed: the fallback chain holds what is proved and costs less";
}

// Returns the verdict on a scheme that scales vectors and is in no fallback chain.
std::string outside_the_chain(const SchemeRow& row, const Choices& choices, const Contract& contract) {
  const int promised = std::min(row.retained_a->promised_bits, row.retained_b->promised_bits);
  if (row.bound->coefficients.relative > contract.coefficient)
    return fmt::format("not proved: its bound, {:.3g} |A||B|, is above the {:.3g} of accuracy {}",
                       row.bound->coefficients.relative, contract.coefficient, contract.accuracy);
  if (contract.accuracy == "fp32" && promised < fewest_bits_of_fp32)
    return fmt::format(
        "too coarse: it keeps {} bits of an element, FP32's accuracy of a single product needs {}", promised,
        fewest_bits_of_fp32);
  if (choices.special_values > 0) return with_special_values(choices.special_values);
  if (*row.in_window && !row.proved) return of_unproved_scheme(row, contract);
  if (!row.proved_dynamic_range) return "not proved for vectors of any dynamic range";
  return not_needed(row, choices.emulating, *row.proved_dynamic_range);
}

// Returns the policies that select the scheme; "" if none does.
std::string policies_that_select(const std::string& scheme, const Choices& choices) {
  const auto selects = [&](const Choice& choice) {
    return choice.selected && choice.selected_candidate()->scheme == scheme;
  };
  if (selects(choices.by_default) && selects(choices.emulating)) return "policies auto and emulate";
  if (selects(choices.by_default)) return "policy auto";
  return selects(choices.emulating) ? "policy emulate" : "";
}

// Returns why the row's scheme is selected for the problem, or why it is not.
std::string verdict(const SchemeRow& row, const Choices& choices, const Contract& contract) {
  if (!row.refusal.empty()) return "does not run: " + row.refusal;
  if (const std::string policies = policies_that_select(row.scheme, choices); !policies.empty()) {
    const bool by_default = policies != "policy emulate";
    return fmt::format("chosen under {}: {}", policies,
                       by_default ? choices.by_default.reason : choices.emulating.reason);
  }
  const Choice& choice = choices.emulating;
  if (!choice.named_scheme.empty())
    return fmt::format("not considered: the settings name {}, so there is no fallback chain",
                       choice.named_scheme);
  for (const ChainCandidate& candidate : choice.candidates) {
    if (candidate.scheme == row.scheme)
      return of_unselected_candidate(candidate, choice, choices.dynamic_range);
  }
  if (choice.has_checked() && row.scheme == checked_scheme) return of_checked_scheme(choice);
  if (row.scheme == "native")
    return fmt::format("not proved to keep the {:.3g} |A||B| of accuracy {}", contract.coefficient,
                       contract.accuracy);
  if (!row.window.scaled) return without_scales(row, choices, contract);
  return outside_the_chain(row, choices, contract);
}

struct ExplainRequest {
  ProblemRequest files;  // a_file is "" if the operands are generated
  std::int64_t m = 0;    // 0: not given
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::string distribution;  // "": the operands are files
  std::string seed = "1";
  std::string type;      // "": the type of the files, or fp32 for generated operands
  std::string accuracy;  // "": the accuracy of the settings
  std::string engine;
  std::string prepare = "none";      // the operand that comes prepared: a, b or none
  std::vector<std::string> schemes;  // empty: all schemes for the operands' type, and native
  bool json = false;

  bool is_generated() const { return !distribution.empty(); }
};

// The problem; op(A) is m x k, op(B) k x n.
struct ExplainedProblem {
  Operands operands;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Json source;           // files, or distribution and seed
  std::string prepared;  // operand that comes prepared: a, b or none
};

void check_request(const ExplainRequest& request) {
  const bool has_sizes = request.m > 0 || request.n > 0 || request.k > 0;
  if (!request.files.a_file.empty()) {
    if (has_sizes || request.is_generated())
      fail("--distribution", "{} is given: the problem is either two files, or sizes and a distribution",
           request.files.a_file);
    if (request.files.b_file.empty()) fail("B", "is missing");
    if (request.seed != ExplainRequest().seed) fail("--seed", "has no effect on the matrices of files");
    return;
  }
  if (!has_sizes && !request.is_generated())
    fail("A", "is missing: give two files, or --m, --n, --k and --distribution");
  if (request.m == 0) fail("--m", "is missing");
  if (request.n == 0) fail("--n", "is missing");
  if (request.k == 0) fail("--k", "is missing");
  if (!request.is_generated()) fail("--distribution", "is missing");
}

// Returns a generated operand with contiguous vectors: rows of A, columns of B.
Matrix generated(const ExplainRequest& request, measure::Side side) {
  const bool is_a = side == measure::Side::a;
  const Type type = request.type == "fp64" ? Type::float64 : Type::float32;
  Matrix matrix = is_a ? make_matrix("--m", request.m, request.k, type, Order::row_major)
                       : make_matrix("--n", request.k, request.n, type, Order::column_major);
  const std::uint64_t seed = parse_seed("--seed", request.seed);
  fill(matrix, "--distribution", parse_distribution("--distribution", request.distribution), side, seed);
  return matrix;
}

ExplainedProblem generated_problem(const ExplainRequest& request) {
  ExplainedProblem problem;
  problem.operands.a = generated(request, measure::Side::a);
  problem.operands.b = generated(request, measure::Side::b);
  problem.operands.transa = problem.operands.transb = std::string(1, 'N');
  problem.source = {{"distribution", request.distribution}, {"seed", parse_seed("--seed", request.seed)}};
  return problem;
}

ExplainedProblem problem_of_files(const ExplainRequest& request) {
  ExplainedProblem problem;
  ProblemRequest files = request.files;
  files.type = request.type;
  problem.operands = read_operands(files);
  if (problem.operands.complex()) {
    fail(files.a_file, "holds {}; explain takes real matrices, gemm --explain complex ones too",
         problem.operands.a.element_type_name());
  }
  problem.source = {
      {"a", files.a_file}, {"b", files.b_file}, {"transa", files.transa}, {"transb", files.transb}};
  return problem;
}

// Reads or generates the operands. Fails with the flag or the file in the message if the request is
// contradictory, or if m, n or k is 0.
ExplainedProblem read_problem(const ExplainRequest& request) {
  check_request(request);
  ExplainedProblem problem = request.is_generated() ? generated_problem(request) : problem_of_files(request);
  problem.prepared = request.prepare;
  const Operands& operands = problem.operands;
  const bool is_plain_a = operands.transa == "N";
  const bool is_plain_b = operands.transb == "N";
  problem.m = is_plain_a ? operands.a.rows : operands.a.columns;
  problem.k = is_plain_a ? operands.a.columns : operands.a.rows;
  problem.n = is_plain_b ? operands.b.columns : operands.b.rows;
  if (problem.m == 0 || problem.n == 0 || problem.k == 0)
    fail(request.files.a_file, "the product is {} x {} with inner length {}: there is nothing to explain",
         problem.m, problem.n, problem.k);
  return problem;
}

struct Explanation {
  std::string type;  // "fp32"
  OperandFacts a;
  OperandFacts b;
  Contract contract;
  Choices choices;
  std::vector<std::int64_t> sampled_rows;
  std::vector<std::int64_t> sampled_columns;
  std::vector<SchemeRow> rows;
};

std::string power_text(const std::optional<int>& exponent) {
  return exponent ? fmt::format("2^{}", *exponent) : "-";
}

std::string source_text(const Json& source) {
  if (source.contains("distribution"))
    return fmt::format("{}, seed {}", cell(source, "distribution"), cell(source, "seed"));
  const auto operand = [&](const char* file, const char* trans) {
    return cell(source, trans) == "N" ? cell(source, file)
                                      : fmt::format("{}({})", cell(source, trans), cell(source, file));
  };
  return operand("a", "transa") + " times " + operand("b", "transb");
}

void print_facts(const Explanation& explanation) {
  Table table({"vectors", "count", "length", "largest", "smallest", "widest range", "median range", "zeros",
               "NaN", "Inf"});
  for (std::size_t column = 1; column < 10; ++column) table.align_right(column);
  const auto add = [&](const char* name, const OperandFacts& facts) {
    table.add({name, std::to_string(facts.vectors), std::to_string(facts.length),
               power_text(facts.largest_exponent), power_text(facts.smallest_exponent),
               std::to_string(facts.widest_dynamic_range), std::to_string(facts.median_dynamic_range),
               std::to_string(facts.zeros), std::to_string(facts.nans), std::to_string(facts.infinities)});
  };
  add("rows of op(A)", explanation.a);
  add("columns of op(B)", explanation.b);
  fmt::print("{}\n", table.text());
}

std::string k_block_text(const SchemeRow& row) {
  const Json block = row.k_block();
  if (block.is_null()) return "-";
  return block == 0 ? "all" : std::to_string(block.get<std::int64_t>());
}

// Returns the percentage of elements that keep the promised bits. It is rounded to 100 % only if all of them
// do.
std::string kept_share(const SchemeRow& row) {
  if (!row.retained_a) return "-";
  const auto elements = static_cast<double>(row.retained_a->elements + row.retained_b->elements);
  const auto promised = static_cast<double>(row.retained_a->promised + row.retained_b->promised);
  if (elements == 0) return "-";
  constexpr double almost_all = 99.99;
  return promised == elements ? "100 %"
                              : fmt::format("{:.4g} %", std::min(almost_all, 100 * promised / elements));
}

// Returns the fewest bits that an element keeps, and the promised bits. Both are those of the operand that is
// further below its promise, since the operands may have different slices.
std::string bits_text(const SchemeRow& row) {
  if (!row.retained_a) return "-";
  const auto rank = [](const measure::RetainedCounts& counts) {
    return std::pair(counts.fewest - counts.promised_bits, counts.fewest);
  };
  const measure::RetainedCounts& worse =
      rank(*row.retained_b) < rank(*row.retained_a) ? *row.retained_b : *row.retained_a;
  return fmt::format("{} of {}", worse.fewest, worse.promised_bits);
}

// Returns "yes" if the operands are inside the scheme's window, else "no". Returns "any" for integer formats:
// their windows have no lower end, since the floors of their bounds cover small elements.
std::string window_text(const SchemeRow& row) {
  if (!row.in_window) return "-";
  if (!*row.in_window) return "no";
  return row.window.integer ? "any" : "yes";
}

std::string bound_text(const std::optional<double>& bound) {
  return bound ? fmt::format("{:.2e}", *bound) : "-";
}

std::string contract_text(const SchemeRow& row) {
  if (!row.errors) return "-";
  if (!row.meets_contract) return "missed";
  return row.proved ? "met, proved" : "met";
}

void print_rows(const std::vector<SchemeRow>& rows) {
  Table table({"scheme", "products", "k block", "bits kept", "keep all", "in window", "bound", "bound here",
               "frobenius", "componentwise", "contract"});
  for (std::size_t column = 1; column < 10; ++column) table.align_right(column);
  for (const SchemeRow& row : rows) {
    const auto error = [&](double measure::ErrorReport::*member) {
      return row.errors ? fmt::format("{:.2e}", (*row.errors).*member) : std::string("-");
    };
    table.add({row.scheme, row.program.is_null() ? "-" : std::to_string(row.products()), k_block_text(row),
               bits_text(row), kept_share(row), window_text(row),
               row.bound ? bound_text(row.bound->coefficients.relative) : "-",
               row.bound ? bound_text(row.bound->sample_bound) : "-",
               error(&measure::ErrorReport::frobenius_relative),
               error(&measure::ErrorReport::max_componentwise), contract_text(row)});
  }
  fmt::print("{}\n", table.text());
}

std::string chain_text(const Choice& choice) {
  std::string text;
  for (const ChainCandidate& candidate : choice.candidates) {
    text += text.empty() ? "" : ", ";
    text += candidate.scheme;
    if (candidate.scheme == "native" && candidate.fixed_order) text += " in a fixed order";
    if (candidate.largest_dynamic_range)
      text += fmt::format(" (to {} binades)", *candidate.largest_dynamic_range);
  }
  return text;
}

void print_choice(const Choice& choice) {
  const std::string scheme = choice.selected ? choice.selected_candidate()->scheme : "nothing";
  std::string text = fmt::format("policy {}: {}; {}.", choice.policy, scheme, choice.reason);
  if (choice.candidates.size() > 1) text += fmt::format(" Fallback chain: {}.", chain_text(choice));
  fmt::print("{}\n", wrapped_for_output(text, 110, 2));
}

Json problem_document(const ExplainedProblem& problem, const std::string& type) {
  return {
      {"m", problem.m},           {"n", problem.n},
      {"k", problem.k},           {"type", type},
      {"source", problem.source}, {"prepared", problem.prepared == "none" ? Json() : Json(problem.prepared)}};
}

// Prints plain text on stdout.
void print_text(const ExplainedProblem& problem, const Explanation& explanation) {
  const Contract& contract = explanation.contract;
  fmt::print("{} x {} result, inner length {}, {}: {}\n", problem.m, problem.n, problem.k, explanation.type,
             source_text(problem.source));
  for (const auto& note : problem.operands.notes) fmt::print("{}\n", note);
  if (problem.prepared != "none") fmt::print("Operand {} is split before the call.\n", problem.prepared);
  fmt::print("Accuracy {} allows an error of {:.3g} |A||B|.\n\n", contract.accuracy, contract.coefficient);
  print_facts(explanation);
  print_rows(explanation.rows);
  const std::string legend = fmt::format(
      "bits kept: X of Y, where the split promises Y bits inside its window and some element keeps only X "
      "(of the operand that is further below its promise); keep all: elements that keep Y bits. Bounds "
      "and errors are in units of |A||B|, frobenius in units of |C|: bound is for any operands in the "
      "window, bound here for the sampled elements; errors are those of {} x {} elements of this product.",
      explanation.sampled_rows.size(), explanation.sampled_columns.size());
  fmt::print("{}\n\n", wrapped_for_output(legend, 110, 0));
  print_choice(explanation.choices.by_default);
  print_choice(explanation.choices.emulating);
  fmt::print("\n");
  Table table({"scheme", "why, why not"});
  for (const SchemeRow& row : explanation.rows)
    table.add({row.scheme, verdict(row, explanation.choices, contract)});
  fmt::print("{}", table.text());
}

// Prints one document, format "kintsugi.explain" (docs/schema/explain.schema.json), on stdout.
void print_json(const ExplainedProblem& problem, const Explanation& explanation) {
  Json result = document("explain", 2);
  result["problem"] = problem_document(problem, explanation.type);
  result["notes"] = problem.operands.notes;
  result["operands"] = {{"a", facts_document(explanation.a)}, {"b", facts_document(explanation.b)}};
  result["contract"] = {{"accuracy", explanation.contract.accuracy},
                        {"coefficient", explanation.contract.coefficient}};
  result["sample"] = {{"rows", explanation.sampled_rows}, {"columns", explanation.sampled_columns}};
  result["choices"] = {choice_document(explanation.choices.by_default),
                       choice_document(explanation.choices.emulating)};
  result["schemes"] = Json::array();
  for (const SchemeRow& row : explanation.rows) {
    Json scheme = row_document(row);
    scheme["verdict"] = verdict(row, explanation.choices, explanation.contract);
    result["schemes"].push_back(scheme);
  }
  print(result);
}

std::vector<std::string> schemes_to_explain(const ExplainRequest& request, Type type) {
  const std::vector<std::string> known = schemes_and_native({Type::float32, Type::float64});
  for (const auto& name : request.schemes) {
    if (!contains(known, without_parameters(name)))
      fail("--schemes", "\"{}\" is not known{}", name,
           measure::accepted_names(without_parameters(name), "accepted:", known));
  }
  if (!request.schemes.empty()) return request.schemes;
  std::vector<std::string> all = schemes_for(type);
  all.emplace_back("native");
  return all;
}

template <class T>
Explanation explain(const ExplainedProblem& problem, const ExplainRequest& request) {
  const measure::Product<T> product = problem.operands.product<T>();
  const core::MatrixView<const T> a = product.a;
  const core::MatrixView<const T> b = product.b.transposed();
  Explanation result;
  result.type = type_text(type_of<T>);
  result.a = operand_facts(a);
  result.b = operand_facts(b);
  const auto schemes = schemes_to_explain(request, type_of<T>);
  result.contract = contract_of(request.accuracy, type_of<T>, problem.k);
  const int dynamic_range = std::max(result.a.widest_dynamic_range, result.b.widest_dynamic_range);
  kintsugi_problem described = row_major_problem({problem.m, problem.n, problem.k}, type_of<T>);
  described.prepared_a = problem.prepared == "a" ? 1 : 0;
  described.prepared_b = problem.prepared == "b" ? 1 : 0;
  const auto choice_under = [&](const char* policy) {
    return choose(described, policy, request.accuracy, request.engine, dynamic_range);
  };
  result.choices = {
      .by_default = choice_under("auto"),
      .emulating = choice_under("emulate"),
      .dynamic_range = dynamic_range,
      .special_values = result.a.nans + result.a.infinities + result.b.nans + result.b.infinities};
  result.sampled_rows = sampled_vectors(result.a);
  result.sampled_columns = sampled_vectors(result.b);
  const Sample<T> sample(a, b, result.sampled_rows, result.sampled_columns);
  SchemeRows<T> rows(a, b, result.a, result.b, sample, result.contract, request.engine);
  Progress progress("explaining");
  for (const auto& scheme : schemes) {
    progress.show(std::ssize(result.rows), std::ssize(schemes));
    result.rows.push_back(rows.row(scheme));
  }
  return result;
}

// True if the scheme is a candidate of the fallback chain that accepts the operands, all of whose elements
// are finite.
bool accepted_by_chain(const Choices& choices, const std::string& scheme) {
  const std::vector<ChainCandidate>& candidates = choices.emulating.candidates;
  return choices.special_values == 0 &&
         std::any_of(candidates.begin(), candidates.end(), [&](const ChainCandidate& candidate) {
           return candidate.scheme == scheme && candidate.accepts(choices.dynamic_range);
         });
}

// Sets `proved` of rows that no bound of |A||B| can prove: of the native product, and of all schemes if the
// accuracy is exact. The acceptance test of the fallback chain proves these rows.
void set_proved_by_chain(Explanation& explanation) {
  const bool is_exact = explanation.contract.accuracy == "exact";
  for (SchemeRow& row : explanation.rows) {
    if (row.scheme == "native" || is_exact) row.proved = accepted_by_chain(explanation.choices, row.scheme);
  }
}

void run_explain(const ExplainRequest& request) {
  require_settings();
  const ExplainedProblem problem = read_problem(request);
  Explanation explanation = problem.operands.type() == Type::float32 ? explain<float>(problem, request)
                                                                     : explain<double>(problem, request);
  set_proved_by_chain(explanation);
  if (request.json) {
    print_json(problem, explanation);
  } else {
    print_text(problem, explanation);
  }
}

void add_problem_options(CLI::App& command, ExplainRequest& request) {
  const auto trans = one_of_any_case({"N", "T", "C"});
  ProblemRequest& files = request.files;
  auto* a = command.add_option("A", files.a_file, "Left operand, .npy or .mtx");
  command.add_option("B", files.b_file, "Right operand, .npy or .mtx");
  command.add_option("--transa", files.transa, "op(A): N, T (transpose) or C (conjugate transpose)")
      ->transform(trans)
      ->capture_default_str()
      ->needs(a);
  command.add_option("--transb", files.transb, "op(B), likewise")
      ->transform(trans)
      ->capture_default_str()
      ->needs(a);
  command.add_option("--m", request.m, "Instead of files: rows of C")->check(whole_number(1));
  command.add_option("--n", request.n, "Columns of C")->check(whole_number(1));
  command.add_option("--k", request.k, "Inner length")->check(whole_number(1));
  command.add_option("--distribution", request.distribution, "One of `kintsugi generate --help`");
  command.add_option("--seed", request.seed, "Seed of both operands")->capture_default_str();
  command.add_option("--type", request.type, "Type of the operands [the files', fp32]")
      ->check(one_of({"fp32", "fp64"}));
}

}  // namespace

void add_explain(CLI::App& program, Action& action) {
  auto request = std::make_shared<ExplainRequest>();
  CLI::App* command = program.add_subcommand(
      "explain", "Say how exact each scheme is on a problem, which one a call would run, and why");
  command->footer(
      "Example:\n"
      "  kintsugi explain --m 1024 --n 1024 --k 4096 --distribution phi:2\n"
      "  kintsugi explain A.npy B.npy --transb T --engine reference --schemes fp16x3,h2sgemm:sb=6,native\n"
      "\n"
      "Errors are measured on up to 16 rows and 16 columns of the problem, with all of k; bits and\n"
      "dynamic ranges are those of all rows and columns.");
  add_problem_options(*command, *request);
  command->add_option(
      "--accuracy", request->accuracy,
      "fp32, fp64, exact, reproducible or a tolerance [the settings', else the operands' type]");
  command->add_option("--engine", request->engine, "A name of `kintsugi engines` [the settings']");
  command
      ->add_option(
          "--prepare", request->prepare,
          "Operand that is split before the call, so that policy auto does not count its split: a, b or none")
      ->check(one_of({"none", "a", "b"}))
      ->capture_default_str();
  command
      ->add_option("--schemes", request->schemes,
                   "Names, comma-separated; native too [all that take the type]")
      ->delimiter(',');
  command->add_flag("--json", request->json, "Print one JSON document instead of text");
  command->callback([request, &action] { action = [request] { run_explain(*request); }; });
}

}  // namespace kintsugi::tools
