#include "bench/run.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "bench/contestants.hpp"
#include "gemm/product.hpp"
#include "io/atomic_file.hpp"
#include "io/interruption.hpp"
#include "report/pictures.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/nearest_name.hpp"
#include "tools/measure/reference/reference_loop.hpp"

namespace kintsugi::tools {

namespace {

std::vector<std::string> scheme_names() {
  const Json schemes = describe_schemes();
  std::vector<std::string> names;
  for (const Json& scheme : schemes.at("schemes")) names.push_back(cell(scheme, "name"));
  return names;
}

bool is_scheme(const std::string& word) { return contains(scheme_names(), without_parameters(word)); }

void require_candidate(const std::string& word) {
  if (is_contract(word) || word == auto_candidate || is_scheme(word)) return;
  std::vector<std::string> names{"fp32", "fp64", "exact", auto_candidate};
  for (auto& name : scheme_names()) names.push_back(std::move(name));
  fail("CANDIDATE", "\"{}\" is neither a contract nor a scheme{}", word,
       measure::accepted_names(without_parameters(word), "accepted: a tolerance such as 1e-10,", names));
}

std::vector<std::string> parse_candidates(const std::vector<std::string>& words,
                                          const std::vector<std::string>& baselines) {
  std::vector<std::string> candidates;
  for (const auto& word : words) {
    if (word == "native") fail("CANDIDATE", "native is a baseline: --baselines native");
    if (contains(baselines, word)) fail("CANDIDATE", "{} is a baseline too; name it only once", word);
    require_candidate(word);
    add_once(candidates, word);
  }
  return candidates;
}

std::string parse_baseline(const std::string& word) {
  if (word == "native" || word == native_policy || word == mkl_call || word == vendor_call || is_scheme(word))
    return word;
  try {
    return measure::to_text(measure::parse_arithmetic(word));
  } catch (const std::runtime_error& error) {
    std::vector<std::string> names = scheme_names();
    for (const char* name : {"native", native_policy, mkl_call, vendor_call}) names.emplace_back(name);
    if (const std::string hint = measure::did_you_mean(word, names); !hint.empty())
      fail("--baselines", "\"{}\" is not known{}", word, hint);
    fail("--baselines", "\"{}\" is neither native nor a scheme, and {}", word, error.what());
  }
}

std::vector<std::string> parse_baselines(const std::vector<std::string>& words) {
  std::vector<std::string> baselines;
  for (const auto& word : words) add_once(baselines, parse_baseline(word));
  return baselines;
}

// Fails for options that need --call gemm and --memory device if these are not given. Also fails for options
// that exclude each other under --call gemm and --memory device.
void require_calls(const Bench& bench) {
  if (bench.on_device && contains<std::string>(bench.baselines, mkl_call))
    fail("--baselines", "{} multiplies in the host's memory, and --memory is device", mkl_call);
  if (bench.times_calls()) {
    if (bench.batch > 1 && contains<std::string>(bench.baselines, vendor_call))
      fail("--baselines", "{} cannot multiply a batch, and --batch is {}", vendor_call, bench.batch);
    if (bench.problems > 1 && bench.prepare != "none")
      fail("--problems",
           "{} problems have operands of different sizes, but --prepare {} prepares a single one",
           bench.problems, bench.prepare);
    return;
  }
  if (bench.problems > 1) fail("--problems", "needs --call gemm and --memory device");
  if (contains<std::string>(bench.baselines, vendor_call)) {
    fail("--baselines",
         "{}, a call of cuBLAS itself, needs --call gemm and --memory device; native is cuBLAS's product",
         vendor_call);
  }
}

// Parses a shape; N means NxNxN.
Shape parse_size(const std::string& text) {
  if (text.find('x') != std::string::npos) return parse_shape(text);
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    fail("--shapes", "\"{}\" is neither N nor MxNxK, such as 512 or 64x64x2048", text);
  return parse_shape(text + "x" + text + "x" + text);
}

std::vector<Shape> parse_shapes(const std::vector<std::string>& words) {
  std::vector<std::string> seen;
  std::vector<Shape> shapes;
  for (const auto& word : words) {
    const Shape shape = parse_size(word);
    if (std::find(seen.begin(), seen.end(), shape_text(shape)) != seen.end()) continue;
    seen.push_back(shape_text(shape));
    shapes.push_back(shape);
  }
  return shapes;
}

// Returns the number of threads that the flag names. Without the flag, the setting decides; without a
// setting, OpenMP decides (OMP_NUM_THREADS or all threads).
int threads_of(const BenchRequest& request) {
  if (request.threads > 0) return request.threads;
  const int threads = std::stoi(cell(setting_named("threads"), "value"));
  return threads > 0 ? threads : omp_get_max_threads();
}

Json settings_of(const Bench& bench) {
  Json shapes = Json::array();
  for (const Shape& shape : bench.shapes) shapes.push_back(shape_text(shape));
  return {{"candidates", bench.candidates},
          {"baselines", bench.baselines},
          {"shapes", shapes},
          {"batch", bench.batch},
          {"prepare", bench.prepare},
          {"call", bench.by_gemm ? "gemm" : "plan"},
          {"problems", bench.problems},
          {"type", type_text(bench.type, bench.complex)},
          {"distribution", bench.distribution},
          {"seed", bench.seed},
          {"memory", bench.on_device ? "device" : "host"},
          {"engine", bench.engine},
          {"workspace_limit", bench.workspace_limit},
          {"threads", bench.threads},
          {"repeat", bench.repeat},
          {"baseline_size", bench.baseline_size},
          {"no_ceilings", bench.no_ceilings}};
}

constexpr std::int64_t elements_to_check = 4096;
// Largest number of products of a batch that are checked. The elements to check are distributed over them.
constexpr std::int64_t products_to_check = 4;

// Progress bar over all rounds of all contestants. The check of a contestant counts as a round.
struct BenchProgress {
  Progress bar{"bench"};
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::string file;  // file of the document; "": none
  std::int64_t finished_shapes = 0;
  InterruptionWatch watch;

  void step() {
    bar.show(++done, total);
    if (watch.signal() != 0) throw_interrupted();
  }
  // Drops the times of an unfinished shape, since all times of a shape must come from one run of the program.
  [[noreturn]] void throw_interrupted() const {
    if (file.empty() || finished_shapes == 0)
      throw Interrupted("interrupted before the first shape was finished; nothing is kept", watch.signal());
    throw Interrupted(
        fmt::format(
            "interrupted; {} has the {} finished shape{}; the same command would start from the beginning",
            file, finished_shapes, finished_shapes == 1 ? "" : "s"),
        watch.signal());
  }
};

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

enum class Role : std::uint8_t { candidate, baseline };

// A contestant, the result of its check, and its times.
struct TimedContestant {
  std::unique_ptr<Contestant> contestant;
  std::int64_t batch = 1;
  std::int64_t parts = 1;  // numbers in an element: 2 if complex
  Role role = Role::candidate;
  bool on_device = false;  // true: timed by events of the device, not by the host's clock
  Json check = nullptr;
  std::string bits = {};  // hash of C from the check
  std::vector<Round> rounds = {};

  std::vector<double> times() const {
    std::vector<double> seconds;
    for (const Round& round : rounds) seconds.push_back(round.seconds);
    return sorted(seconds);
  }
  double median() const {
    const std::vector<double> all = times();
    return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
  }
  // Returns the time that rates are computed from. On a host this is the fastest time, since other programs
  // can only slow a run down. On a device it is the median, since clock frequencies vary in both directions.
  double seconds() const { return on_device ? median() : times().front(); }
  // Returns the least CPU time of a round; nothing for a device, and if the clock is too coarse for short
  // runs.
  std::optional<double> processor_seconds() const {
    if (on_device) return std::nullopt;
    std::vector<double> all;
    for (const Round& round : rounds) all.push_back(round.processor_seconds.value());
    const double fastest = sorted(all).front();
    return std::isfinite(fastest) ? std::optional(fastest) : std::nullopt;
  }
  // Returns the number of operations: two for each product of elements, eight if these are complex.
  double operations() const {
    const auto [m, n, k] = contestant->shape();
    return 2 * static_cast<double>(parts * parts * batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
  double rate() const { return operations() / seconds(); }
};

// Verdict on some products of a batch, and their errors.
struct Check {
  Verdict verdict;
  measure::ErrorReport errors;

  // Adds the check of other products. Keeps the worse verdict and the larger errors, and adds the numbers of
  // elements.
  void add(const Check& other) {
    if (read_number(other.verdict.largest_ratio) > read_number(verdict.largest_ratio))
      verdict = other.verdict;
    const double rounded = rounded_elements() + other.rounded_elements();
    errors.elements_checked += other.errors.elements_checked;
    errors.correctly_rounded_fraction = rounded / static_cast<double>(errors.elements_checked);
    errors.max_componentwise = std::max(errors.max_componentwise, other.errors.max_componentwise);
    errors.frobenius_relative = std::max(errors.frobenius_relative, other.errors.frobenius_relative);
  }
  double rounded_elements() const {
    return errors.correctly_rounded_fraction * static_cast<double>(errors.elements_checked);
  }
};

Json check_document(const Check& check, std::int64_t batch) {
  const auto& [verdict, errors] = check;
  return {{"promise", verdict.promise},
          {"relative", verdict.relative},
          {"largest_ratio", verdict.largest_ratio},
          {"elements_checked", errors.elements_checked},
          {"elements_total", batch * errors.elements_total},
          {"max_componentwise", number(errors.max_componentwise)},
          {"frobenius_relative", number(errors.frobenius_relative)},
          {"correctly_rounded_fraction", errors.correctly_rounded_fraction}};
}

// Throws a Finding unless the promise was kept. The message names the element with the largest error in units
// in the last place. `product_text`: the product to which the elements belong.
void require_held(const Contestant& contestant, const std::string& product_text, const Check& check,
                  const std::vector<measure::ElementError>& elements) {
  const auto& [verdict, errors] = check;
  if (verdict.held) return;
  const auto worst = std::max_element(elements.begin(), elements.end(),
                                      [](const auto& x, const auto& y) { return x.ulp < y.ulp; });
  const std::string what =
      verdict.promise == "exact"
          ? fmt::format("{:.6g} of {} checked elements are correctly rounded, not all",
                        errors.correctly_rounded_fraction, errors.elements_checked)
          : fmt::format("the largest error of {} checked elements is {:.4g} times what its {} allows",
                        errors.elements_checked, read_number(verdict.largest_ratio), verdict.promise);
  throw Finding(
      fmt::format("{}: {}: {}; element ({}, {}) is {:.17g} and should be {:.17g}; nothing was timed",
                  contestant.name(), product_text, what, worst->i, worst->j, worst->computed, worst->exact));
}

// Returns FNV-1a of the bytes of C, in hexadecimal digits.
template <class T>
std::string hash_of(const std::vector<T>& c) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(c.data());
  for (std::size_t i = 0; i < c.size() * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

Json time_document(const TimedContestant& timed) {
  const std::vector<double> times = timed.times();
  return {{"minimum", times.front()},      {"median", timed.median()},
          {"maximum", times.back()},       {"processor", number_or_null(timed.processor_seconds())},
          {"rounds", timed.rounds.size()}, {"by", timed.contestant->timed_by()}};
}

template <class T>
class BenchShape {
 public:
  // `device`: nullptr if operands are in host memory.
  // Makes all plans, so that errors are reported before anything is computed.
  BenchShape(const Bench& bench, const Shape& shape, const BenchDevice* device, BenchProgress& progress)
      : bench_(bench), progress_(progress), device_(device), matrices_(bench, shape) {
    if (device != nullptr) operands_ = std::make_unique<DeviceOperands<T>>(*device, matrices_);
    for (const auto& name : bench.candidates) add_contestant(name, Role::candidate);
    for (const auto& name : bench.baselines) add_contestant(name, Role::baseline);
  }
  // Returns a row for each contestant, in the order of the command line.
  std::vector<Json> rows() {
    for (TimedContestant& timed : contestants_) check(timed);
    // Every other round has the reverse order, since a contestant that heats the processor slows the next one
    // down.
    for (int round = 0; round < bench_.repeat; ++round) {
      for (std::size_t turn = 0; turn < contestants_.size(); ++turn) {
        TimedContestant& timed = contestants_[round % 2 == 0 ? turn : contestants_.size() - 1 - turn];
        timed.rounds.push_back(timed.contestant->time_round());
        progress_.step();
      }
    }
    std::vector<Json> rows;
    for (const TimedContestant& timed : contestants_) rows.push_back(row_of(timed));
    return rows;
  }

 private:
  void add_contestant(const std::string& name, Role role) {
    TimedContestant timed{.contestant = make_contestant<T>(bench_, name, matrices_, operands_.get()),
                          .batch = bench_.batch,
                          .parts = bench_.parts(),
                          .role = role};
    timed.on_device = std::string_view(timed.contestant->timed_by()) != "clock";
    contestants_.push_back(std::move(timed));
  }
  // Returns the first product, the last, and evenly spaced ones between.
  std::vector<std::int64_t> checked_products() const {
    const std::int64_t count = std::min(bench_.batch, products_to_check);
    std::vector<std::int64_t> products{0};
    for (std::int64_t i = 1; i < count; ++i) products.push_back(i * (bench_.batch - 1) / (count - 1));
    return products;
  }
  // Checks a contestant. C is filled with NaN first, so that missing elements are detected.
  void check(TimedContestant& timed) {
    std::fill(matrices_.c.begin(), matrices_.c.end(), std::numeric_limits<T>::quiet_NaN());
    timed.contestant->run();
    if (bench_.hashes_results) timed.bits = hash_of(matrices_.c);
    Check all = check_product(*timed.contestant, 0);
    for (const std::int64_t product : checked_products()) {
      if (product > 0) all.add(check_product(*timed.contestant, product));
    }
    timed.check = check_document(all, bench_.batch);
    progress_.step();
  }
  Check check_product(const Contestant& contestant, std::int64_t product) {
    const Shape computed = contestant.shape();
    const auto c = matrices_.view_c(product).block(0, 0, computed.m, bench_.parts() * computed.n);
    std::vector<measure::ElementError> elements;
    const measure::ErrorReport errors =
        reference(computed, product)
            .measure({c.data, c.rows, c.columns, c.row_stride, c.column_stride}, {}, &elements);
    const Check check{contestant.judge(product, errors, elements), errors};
    const std::string batch_text =
        bench_.batch > 1 ? fmt::format(", item {} of a batch of {}", product, bench_.batch) : "";
    require_held(contestant, shape_text(computed) + batch_text, check, elements);
    return check;
  }
  // Returns the exact elements of the part of C that a contestant computes, for one product of the batch.
  const measure::ExactReference<T>& reference(const Shape& computed, std::int64_t product) {
    auto& reference = references_[{shape_text(computed), product}];
    if (reference == nullptr) {
      measure::CheckOptions options;
      options.work_limit = 0;  // so that max_elements alone decides how many elements are compared
      options.max_elements = elements_to_check / std::min(bench_.batch, products_to_check);
      options.seed = sample_seed;
      measure::Product<T> operands;
      const std::int64_t parts = bench_.parts();
      operands.a = matrices_.view_a(product).block(0, 0, computed.m, parts * computed.k);
      operands.b = matrices_.view_b(product).block(0, 0, parts * computed.k, parts * computed.n);
      reference =
          std::make_unique<measure::ExactReference<T>>(operands, computed.m, parts * computed.n, options);
    }
    return *reference;
  }
  Json row_of(const TimedContestant& timed) const {
    const Contestant& contestant = *timed.contestant;
    const auto [m, n, k] = matrices_.shape;
    const Shape computed = contestant.shape();
    Json row{{"problem",
              {{"m", m},
               {"n", n},
               {"k", k},
               {"type", type_text(bench_.type, bench_.complex)},
               {"batch", bench_.batch}}},
             {"distribution", bench_.distribution},
             {"name", contestant.name()},
             {"kind", timed.role == Role::baseline ? "baseline" : "candidate"}};
    row.update(contestant.facts());
    row["threads"] = bench_.threads;
    row["computed"] = {{"m", computed.m}, {"n", computed.n}};
    row["check"] = timed.check;
    row["bits"] = timed.bits;
    row["time"] = time_document(timed);
    row["rate"] = bench_.times_calls() ? Json() : Json(timed.rate());
    add_utilization(row, timed);
    add_ratios(row, timed);
    return row;
  }
  // Adds bandwidth, power, clock and the fraction of the matrix units' ceiling. They are null if calls are
  // timed, since the time of a call says nothing about them.
  void add_utilization(Json& row, const TimedContestant& timed) const {
    if (bench_.times_calls()) {
      for (const char* name : {"bandwidth", "of_ceiling", "power_watts", "clock_mhz"}) row[name] = nullptr;
      return;
    }
    const Shape shape = timed.contestant->shape();
    const auto elements = static_cast<double>(bench_.parts() * bench_.batch *
                                              (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n));
    row["bandwidth"] = elements * sizeof(T) / timed.seconds();
    const double ceiling =
        timed.on_device && row.at("format").is_string() ? device_->ceiling(row.at("format")) : 0;
    row["of_ceiling"] =
        ceiling > 0 ? Json(timed.contestant->products_each() * timed.rate() / ceiling) : Json();
    row.update(state_document(timed.rounds.back().state));
  }
  void add_ratios(Json& row, const TimedContestant& timed) const {
    row["ratios"] = Json::object();
    row["processor_ratios"] = Json::object();
    for (const TimedContestant& other : contestants_) {
      if (other.role != Role::baseline) continue;
      const std::string& name = other.contestant->name();
      row["ratios"][name] = timed.rate() / other.rate();
      const std::optional<double> own_seconds = timed.processor_seconds();
      const std::optional<double> baseline_seconds = other.processor_seconds();
      if (!own_seconds || !baseline_seconds) continue;
      row["processor_ratios"][name] =
          timed.operations() / *own_seconds / (other.operations() / *baseline_seconds);
    }
  }

  const Bench& bench_;
  BenchProgress& progress_;
  const BenchDevice* device_;
  BenchMatrices<T> matrices_;
  std::unique_ptr<DeviceOperands<T>> operands_;
  // Exact elements of all of C and of the block that reference loops compute, by its shape and the product of
  // the batch.
  std::map<std::pair<std::string, std::int64_t>, std::unique_ptr<measure::ExactReference<T>>> references_;
  std::vector<TimedContestant> contestants_;
};

std::vector<Json> shape_rows(const Bench& bench, const Shape& shape, const BenchDevice* device,
                             BenchProgress& progress) {
  if (bench.type == Type::float32) return BenchShape<float>(bench, shape, device, progress).rows();
  return BenchShape<double>(bench, shape, device, progress).rows();
}

}  // namespace

bool is_reference_loop(const std::string& name) {
  try {
    measure::parse_arithmetic(name);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

bool is_contract(const std::string& candidate) {
  const bool is_tolerance = candidate.find_first_of("0123456789.") == 0;
  return candidate == "fp32" || candidate == "fp64" || candidate == "exact" || is_tolerance;
}

Bench make_bench(const BenchRequest& request) {
  Bench bench;
  bench.baselines = parse_baselines(request.baselines);
  bench.candidates = parse_candidates(request.candidates, bench.baselines);
  bench.shapes = parse_shapes(request.shapes);
  bench.batch = request.batch;
  bench.prepare = request.prepare;
  bench.type = request.type.ends_with("32") ? Type::float32 : Type::float64;
  bench.complex = request.type.starts_with("c");
  bench.distribution = measure::to_text(parse_distribution("--distribution", request.distribution));
  bench.seed = parse_seed("--seed", request.seed);
  bench.on_device = request.memory == "device";
  bench.by_gemm = request.call == "gemm";
  bench.problems = request.problems;
  require_calls(bench);
  bench.engine = !request.engine.empty() ? request.engine : bench.on_device ? "cuda" : "cpu";
  bench.workspace_limit = request.workspace_limit;
  bench.threads = threads_of(request);
  bench.repeat = request.repeat;
  bench.baseline_size = request.baseline_size;
  bench.no_ceilings = request.no_ceilings;
  for (const auto& name : bench.baselines) {
    if (bench.complex && is_reference_loop(name))
      fail("--baselines", "{} is a loop over real elements, and --type is {}", name, request.type);
  }
  if (bench.no_ceilings && (!bench.on_device || bench.times_calls()))
    fail("--no-ceilings", "has no effect: rates are measured with --memory device and --call plan alone");
  if (bench.baseline_size != BenchRequest().baseline_size &&
      std::none_of(bench.baselines.begin(), bench.baselines.end(), is_reference_loop))
    fail("--baseline-size", "has no effect: no baseline is a reference loop, such as float128 or mpfr:113");
  return bench;
}

Json run_bench(const Bench& bench, const std::string& file) {
  if (!file.empty()) check_writable(file);
  if (bench.on_device) require_device();
  const auto device = bench.on_device ? std::make_unique<BenchDevice>(bench.measures_ceilings()) : nullptr;
  Json result = document("bench");
  result["device"] = device ? device->description() : Json();
  result["ceilings"] = device ? device->ceilings() : Json();
  result["settings"] = settings_of(bench);
  result["seed"] = sample_seed;
  result["rows"] = Json::array();
  BenchProgress progress;
  progress.file = file;
  progress.total = std::ssize(bench.shapes) * (std::ssize(bench.candidates) + std::ssize(bench.baselines)) *
                   (bench.repeat + 1);
  for (const Shape& shape : bench.shapes) {
    for (Json& row : shape_rows(bench, shape, device.get(), progress))
      result["rows"].push_back(std::move(row));
    if (file.empty()) continue;
    write_text(file, results_text(result));
    ++progress.finished_shapes;
  }
  return result;
}

}  // namespace kintsugi::tools
