#include "bench/run.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "accuracy/results.hpp"
#include "bench/contestant.hpp"
#include "gemm/check.hpp"
#include "io/atomic_file.hpp"
#include "lab/generators.hpp"

namespace kintsugi::tools {

namespace {

constexpr std::int64_t entries_to_check = 4096;

// Zeros; fails where they do not fit the machine's memory.
template <class T>
std::vector<T> make_entries(std::int64_t rows, std::int64_t columns) {
  return std::get<std::vector<T>>(
      make_matrix("--shapes", rows, columns, type_of<T>, Order::row_major).values);
}

template <class T>
std::vector<T> generated(const Bench& bench, lab::Side side, std::int64_t rows, std::int64_t columns) {
  std::vector<T> values = make_entries<T>(rows, columns);
  try {
    lab::fill(lab::parse_distribution(bench.distribution), side, bench.seed,
              core::MatrixView<T>{values.data(), rows, columns, columns, 1});
  } catch (const std::runtime_error& error) {  // the type cannot hold what was asked for
    fail("--distribution", "{}", error.what());
  }
  return values;
}

// Bars count runs, the checked ones too.
struct BenchProgress {
  Progress bar{"bench"};
  std::int64_t done = 0;
  std::int64_t total = 0;

  void step() { bar.show(++done, total); }
};

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

struct Timed {
  std::unique_ptr<Contestant> contestant;
  bool baseline = false;
  bool on_device = false;  // events count, not the host's clock
  Json check = nullptr;
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
  // What rates are taken over: other programs only slow a host down, a device's clocks go up and down.
  double seconds() const { return on_device ? median() : times().front(); }
  // The least of the host's; nothing where a device worked.
  std::optional<double> processor() const {
    if (on_device) return std::nullopt;
    std::vector<double> all;
    for (const Round& round : rounds) all.push_back(round.processor_seconds.value());
    const double least = sorted(all).front();
    return least > 0 ? std::optional(least)
                     : std::nullopt;  // a clock of coarse ticks says nothing of short runs
  }
  // Two for each product of elements.
  double operations() const {
    const auto [m, n, k] = contestant->shape();
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  double rate() const { return operations() / seconds(); }
};

Json check_document(const Verdict& verdict, const lab::ErrorReport& errors) {
  return {{"promise", verdict.promise},
          {"relative", verdict.relative},
          {"largest_ratio", verdict.largest_ratio},
          {"entries_checked", errors.entries_checked},
          {"entries_total", errors.entries_total},
          {"max_componentwise", number(errors.max_componentwise)},
          {"frobenius_relative", number(errors.frobenius_relative)},
          {"correctly_rounded_fraction", errors.correctly_rounded_fraction}};
}

// A Finding has the entry that is worst in units in the last place.
void require_held(const Contestant& contestant, const Verdict& verdict, const lab::ErrorReport& errors,
                  const std::vector<lab::EntryError>& entries) {
  if (verdict.held) return;
  const auto worst = std::max_element(entries.begin(), entries.end(),
                                      [](const auto& one, const auto& other) { return one.ulp < other.ulp; });
  const std::string what =
      verdict.promise == "exact"
          ? fmt::format("{:.6g} of {} checked entries are correctly rounded, not all",
                        errors.correctly_rounded_fraction, errors.entries_checked)
          : fmt::format("the largest error of {} checked entries is {:.4g} times what its {} allows",
                        errors.entries_checked, read_number(verdict.largest_ratio), verdict.promise);
  throw Finding(fmt::format("{}: {}: {}; entry ({}, {}) is {:.17g} and should be {:.17g}; nothing was timed",
                            contestant.name(), shape_text(contestant.shape()), what, worst->i, worst->j,
                            worst->computed, worst->exact));
}

template <class T>
class BenchShape {
 public:
  // `device` is nullptr where operands are in host memory.
  BenchShape(const Bench& bench, const Shape& shape, const BenchDevice* device, BenchProgress& progress);
  // A row for each contestant, in the order of the command line.
  std::vector<Json> rows();

 private:
  void add(const std::string& name, bool baseline);
  void check(Timed& timed);
  const lab::ExactReference<T>& reference(const Shape& computed);
  Json row_of(const Timed& timed) const;
  void add_use(Json& row, const Timed& timed) const;
  void add_ratios(Json& row, const Timed& timed) const;

  const Bench& bench_;
  BenchProgress& progress_;
  const BenchDevice* device_;
  BenchMatrices<T> matrices_;
  std::unique_ptr<DeviceOperands<T>> operands_;
  std::unique_ptr<lab::ExactReference<T>> whole_;
  std::unique_ptr<lab::ExactReference<T>> leading_;
  std::vector<Timed> all_;
};

// All plans are made before anything is computed.
template <class T>
BenchShape<T>::BenchShape(const Bench& bench, const Shape& shape, const BenchDevice* device,
                          BenchProgress& progress)
    : bench_(bench), progress_(progress), device_(device), matrices_(bench, shape) {
  if (device != nullptr) operands_ = std::make_unique<DeviceOperands<T>>(*device, matrices_);
  for (const auto& name : bench.candidates) add(name, false);
  for (const auto& name : bench.baselines) add(name, true);
}

template <class T>
void BenchShape<T>::add(const std::string& name, bool baseline) {
  if (is_plain_loop(name)) {
    all_.push_back({plain_loop<T>(bench_, name, matrices_), baseline});
  } else if (operands_ == nullptr) {
    all_.push_back({host_product<T>(bench_, name, matrices_), baseline});
  } else {
    all_.push_back({device_product<T>(bench_, name, matrices_, *operands_), baseline, true});
  }
}

template <class T>
const lab::ExactReference<T>& BenchShape<T>::reference(const Shape& computed) {
  auto& reference = shape_text(computed) == shape_text(matrices_.shape) ? whole_ : leading_;
  if (reference == nullptr) {
    lab::CheckOptions options;
    options.work_limit = 0;
    options.max_entries = entries_to_check;
    options.seed = sample_seed;
    lab::Product<T> product;
    product.a = matrices_.view_a().block(0, 0, computed.m, computed.k);
    product.b = matrices_.view_b().block(0, 0, computed.k, computed.n);
    reference = std::make_unique<lab::ExactReference<T>>(product, computed.m, computed.n, options);
  }
  return *reference;
}

// NaN beforehand: an entry that is left out shows.
template <class T>
void BenchShape<T>::check(Timed& timed) {
  const Contestant& contestant = *timed.contestant;
  std::fill(matrices_.c.begin(), matrices_.c.end(), std::numeric_limits<T>::quiet_NaN());
  timed.contestant->run();
  const Shape computed = contestant.shape();
  const auto c = matrices_.view_c().block(0, 0, computed.m, computed.n);
  std::vector<lab::EntryError> entries;
  const lab::ErrorReport errors =
      reference(computed).measure({c.data, c.rows, c.columns, c.row_stride, c.column_stride}, {}, &entries);
  const Verdict verdict = contestant.judge(errors, entries);
  require_held(contestant, verdict, errors, entries);
  timed.check = check_document(verdict, errors);
  progress_.step();
}

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json time_document(const Timed& timed) {
  const std::vector<double> times = timed.times();
  return {{"minimum", times.front()},      {"median", timed.median()},
          {"maximum", times.back()},       {"processor", number_or_null(timed.processor())},
          {"rounds", timed.rounds.size()}, {"by", timed.contestant->timed_by()}};
}

template <class T>
Json BenchShape<T>::row_of(const Timed& timed) const {
  const Contestant& contestant = *timed.contestant;
  const auto [m, n, k] = matrices_.shape;
  const Shape computed = contestant.shape();
  Json row{{"problem", {{"m", m}, {"n", n}, {"k", k}, {"type", type_text(bench_.type)}}},
           {"distribution", bench_.distribution},
           {"name", contestant.name()},
           {"kind", timed.baseline ? "baseline" : "candidate"}};
  row.update(contestant.facts());
  row["threads"] = bench_.threads;
  row["computed"] = {{"m", computed.m}, {"n", computed.n}};
  row["check"] = timed.check;
  row["time"] = time_document(timed);
  row["rate"] = timed.rate();
  add_use(row, timed);
  add_ratios(row, timed);
  return row;
}

// How much of what the device can do at most.
template <class T>
void BenchShape<T>::add_use(Json& row, const Timed& timed) const {
  const Shape shape = timed.contestant->shape();
  const auto entries = static_cast<double>(shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  row["bandwidth"] = entries * sizeof(T) / timed.seconds();
  const double ceiling =
      timed.on_device && row.at("format").is_string() ? device_->ceiling(row.at("format")) : 0;
  row["of_ceiling"] = ceiling > 0 ? Json(row.at("products").get<double>() * timed.rate() / ceiling) : Json();
  row.update(state_document(timed.rounds.back().state));
}

template <class T>
void BenchShape<T>::add_ratios(Json& row, const Timed& timed) const {
  row["ratios"] = Json::object();
  row["processor_ratios"] = Json::object();
  for (const Timed& other : all_) {
    if (!other.baseline) continue;
    const std::string& name = other.contestant->name();
    row["ratios"][name] = timed.rate() / other.rate();
    if (!timed.processor() || !other.processor()) continue;
    row["processor_ratios"][name] =
        timed.operations() / *timed.processor() / (other.operations() / *other.processor());
  }
}

template <class T>
std::vector<Json> BenchShape<T>::rows() {
  for (Timed& timed : all_) check(timed);
  for (int round = 0; round < bench_.repeat; ++round) {
    for (Timed& timed : all_) {
      timed.rounds.push_back(timed.contestant->time_round());
      progress_.step();
    }
  }
  std::vector<Json> rows;
  for (const Timed& timed : all_) rows.push_back(row_of(timed));
  return rows;
}

std::vector<Json> shape_rows(const Bench& bench, const Shape& shape, const BenchDevice* device,
                             BenchProgress& progress) {
  if (bench.type == Type::float32) return BenchShape<float>(bench, shape, device, progress).rows();
  return BenchShape<double>(bench, shape, device, progress).rows();
}

}  // namespace

template <class T>
BenchMatrices<T>::BenchMatrices(const Bench& bench, const Shape& size)
    : shape(size), a(generated<T>(bench, lab::Side::a, size.m, size.k)),
      b(generated<T>(bench, lab::Side::b, size.k, size.n)), c(make_entries<T>(size.m, size.n)) {}

Json run_bench(const Bench& bench, const std::string& file) {
  if (!file.empty()) check_writable(file);
  if (bench.on_device) require_device();
  const auto device = bench.on_device ? std::make_unique<BenchDevice>() : nullptr;
  Json result = document("bench");
  result["device"] = device ? device->description() : Json();
  result["ceilings"] = device ? device->ceilings() : Json();
  result["settings"] = settings_of(bench);
  result["seed"] = sample_seed;
  result["rows"] = Json::array();
  BenchProgress progress;
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
  }
  return result;
}

}  // namespace kintsugi::tools
