#include "bench/run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "bench/contestant.hpp"
#include "gemm/check.hpp"
#include "io/atomic_file.hpp"
#include "io/interruption.hpp"

namespace kintsugi::tools {

namespace {

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

template <class T>
class BenchShape {
 public:
  // `device`: nullptr if operands are in host memory.
  BenchShape(const Bench& bench, const Shape& shape, const BenchDevice* device, BenchProgress& progress);
  // Returns a row for each contestant, in the order of the command line.
  std::vector<Json> rows();

 private:
  void add_contestant(const std::string& name, Role role);
  std::vector<std::int64_t> checked_products() const;
  void check(TimedContestant& timed);
  Check check_product(const Contestant& contestant, std::int64_t product);
  // Returns the exact elements of the part of C that a contestant computes, for one product of the batch.
  const measure::ExactReference<T>& reference(const Shape& computed, std::int64_t product);
  Json row_of(const TimedContestant& timed) const;
  void add_utilization(Json& row, const TimedContestant& timed) const;
  void add_ratios(Json& row, const TimedContestant& timed) const;

  const Bench& bench_;
  BenchProgress& progress_;
  const BenchDevice* device_;
  BenchMatrices<T> matrices_;
  std::unique_ptr<DeviceOperands<T>> operands_;
  // Exact elements of all of C, and of the block that reference loops compute, by the product of the batch.
  std::map<std::int64_t, std::unique_ptr<measure::ExactReference<T>>> references_for_c_;
  std::map<std::int64_t, std::unique_ptr<measure::ExactReference<T>>> references_for_leading_block_;
  std::vector<TimedContestant> contestants_;
};

// Makes all plans, so that errors are reported before anything is computed.
template <class T>
BenchShape<T>::BenchShape(const Bench& bench, const Shape& shape, const BenchDevice* device,
                          BenchProgress& progress)
    : bench_(bench), progress_(progress), device_(device), matrices_(bench, shape) {
  if (device != nullptr) operands_ = std::make_unique<DeviceOperands<T>>(*device, matrices_);
  for (const auto& name : bench.candidates) add_contestant(name, Role::candidate);
  for (const auto& name : bench.baselines) add_contestant(name, Role::baseline);
}

template <class T>
void BenchShape<T>::add_contestant(const std::string& name, Role role) {
  if (is_reference_loop(name)) {
    contestants_.push_back({.contestant = reference_loop<T>(bench_, name, matrices_),
                            .batch = bench_.batch,
                            .parts = 1,
                            .role = role});
  } else if (name == vendor_call) {
    contestants_.push_back({.contestant = vendor_product<T>(bench_, matrices_, *operands_),
                            .batch = bench_.batch,
                            .parts = bench_.parts(),
                            .role = role,
                            .on_device = true});
  } else if (operands_ == nullptr) {
    contestants_.push_back({.contestant = host_product<T>(bench_, name, matrices_),
                            .batch = bench_.batch,
                            .parts = bench_.parts(),
                            .role = role});
  } else {
    contestants_.push_back({.contestant = device_product<T>(bench_, name, matrices_, *operands_),
                            .batch = bench_.batch,
                            .parts = bench_.parts(),
                            .role = role,
                            .on_device = true});
  }
}

// Returns the first product, the last, and evenly spaced ones between.
template <class T>
std::vector<std::int64_t> BenchShape<T>::checked_products() const {
  const std::int64_t count = std::min(bench_.batch, products_to_check);
  std::vector<std::int64_t> products{0};
  for (std::int64_t i = 1; i < count; ++i) products.push_back(i * (bench_.batch - 1) / (count - 1));
  return products;
}

template <class T>
const measure::ExactReference<T>& BenchShape<T>::reference(const Shape& computed, std::int64_t product) {
  const bool is_all_of_c = shape_text(computed) == shape_text(matrices_.shape);
  auto& references = is_all_of_c ? references_for_c_ : references_for_leading_block_;
  auto& reference = references[product];
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

template <class T>
Check BenchShape<T>::check_product(const Contestant& contestant, std::int64_t product) {
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

// Returns FNV-1a of the bytes of C, in hexadecimal digits.
template <class T>
std::string hash_of(const std::vector<T>& c) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(c.data());
  for (std::size_t i = 0; i < c.size() * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

// Checks a contestant. C is filled with NaN first, so that missing elements are detected.
template <class T>
void BenchShape<T>::check(TimedContestant& timed) {
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

Json time_document(const TimedContestant& timed) {
  const std::vector<double> times = timed.times();
  return {{"minimum", times.front()},      {"median", timed.median()},
          {"maximum", times.back()},       {"processor", number_or_null(timed.processor_seconds())},
          {"rounds", timed.rounds.size()}, {"by", timed.contestant->timed_by()}};
}

template <class T>
Json BenchShape<T>::row_of(const TimedContestant& timed) const {
  const Contestant& contestant = *timed.contestant;
  const auto [m, n, k] = matrices_.shape;
  const Shape computed = contestant.shape();
  Json row{
      {"problem", {{"m", m}, {"n", n}, {"k", k}, {"type", element_text(bench_)}, {"batch", bench_.batch}}},
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
template <class T>
void BenchShape<T>::add_utilization(Json& row, const TimedContestant& timed) const {
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
  row["of_ceiling"] = ceiling > 0 ? Json(timed.contestant->products_each() * timed.rate() / ceiling) : Json();
  row.update(state_document(timed.rounds.back().state));
}

template <class T>
void BenchShape<T>::add_ratios(Json& row, const TimedContestant& timed) const {
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

template <class T>
std::vector<Json> BenchShape<T>::rows() {
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

std::vector<Json> shape_rows(const Bench& bench, const Shape& shape, const BenchDevice* device,
                             BenchProgress& progress) {
  if (bench.type == Type::float32) return BenchShape<float>(bench, shape, device, progress).rows();
  return BenchShape<double>(bench, shape, device, progress).rows();
}

}  // namespace

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
    const std::string text = results_text(result);
    AtomicFile output(file);
    output.write(text.data(), text.size());
    output.commit();
    ++progress.finished_shapes;
  }
  return result;
}

}  // namespace kintsugi::tools
