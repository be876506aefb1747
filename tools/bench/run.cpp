#include "bench/run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <memory>
#include <thread>

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

struct Round {
  double seconds = 0;
  double processor_seconds = 0;  // of all threads of the program
};

struct Timed {
  std::unique_ptr<Contestant> contestant;
  Json check;
  std::vector<Round> rounds;

  std::vector<double> sorted(double Round::*time) const {
    std::vector<double> times;
    for (const Round& round : rounds) times.push_back(round.*time);
    std::sort(times.begin(), times.end());
    return times;
  }
  double quickest() const { return sorted(&Round::seconds).front(); }
  double median() const {
    const std::vector<double> times = sorted(&Round::seconds);
    return (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
  }
  double processor() const { return sorted(&Round::processor_seconds).front(); }
  // Two for each product of elements.
  double operations() const {
    const auto [m, n, k] = contestant->shape();
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  double rate() const { return operations() / quickest(); }
  double processor_rate() const { return operations() / processor(); }
};

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// OpenMP's threads spin for milliseconds when a loop is done and OpenBLAS's for 2^26 cycles, on cores that the next
// contestant needs: there is a pause. Then it runs until 10 ms are gone, its own threads awake; the quickest run counts.
Round time_round(Contestant& contestant) {
  constexpr auto pause = std::chrono::milliseconds(30);
  constexpr double enough_seconds = 0.01;
  std::this_thread::sleep_for(pause);
  Round quickest{HUGE_VAL, HUGE_VAL};
  double sum = 0;
  while (sum < enough_seconds) {
    const double before = processor_seconds();
    const double seconds = contestant.run();
    quickest.processor_seconds = std::min(quickest.processor_seconds, processor_seconds() - before);
    quickest.seconds = std::min(quickest.seconds, seconds);
    sum += seconds;
  }
  return quickest;
}

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
  BenchShape(const Bench& bench, const Shape& shape, BenchProgress& progress);
  // A row for each contestant, in the order of the command line.
  std::vector<Json> rows();

 private:
  void check(Timed& timed);
  const lab::ExactReference<T>& reference(const Shape& computed);
  Json row_of(const Timed& timed) const;

  const Bench& bench_;
  BenchProgress& progress_;
  BenchMatrices<T> matrices_;
  std::unique_ptr<lab::ExactReference<T>> whole_;
  std::unique_ptr<lab::ExactReference<T>> leading_;
  std::vector<Timed> all_;
};

// All plans are made before anything is computed.
template <class T>
BenchShape<T>::BenchShape(const Bench& bench, const Shape& shape, BenchProgress& progress)
    : bench_(bench), progress_(progress), matrices_(bench, shape) {
  for (const auto& name : bench.candidates)
    all_.push_back({library_product<T>(bench, name, matrices_), {}, {}});
  for (const auto& name : bench.baselines) {
    all_.push_back({name == "native" ? library_product<T>(bench, name, matrices_)
                                     : plain_loop<T>(bench, name, matrices_),
                    {},
                    {}});
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

template <class T>
Json BenchShape<T>::row_of(const Timed& timed) const {
  const Contestant& contestant = *timed.contestant;
  const auto [m, n, k] = matrices_.shape;
  const Shape computed = contestant.shape();
  Json row{{"problem", {{"m", m}, {"n", n}, {"k", k}, {"type", type_text(bench_.type)}}},
           {"distribution", bench_.distribution},
           {"name", contestant.name()}};
  row.update(contestant.facts());
  row["threads"] = bench_.threads;
  row["computed"] = {{"m", computed.m}, {"n", computed.n}};
  row["check"] = timed.check;
  row["time"] = {{"minimum", timed.quickest()},
                 {"median", timed.median()},
                 {"processor", timed.processor()},
                 {"rounds", timed.rounds.size()}};
  row["rate"] = timed.rate();
  row["ratios"] = Json::object();
  row["processor_ratios"] = Json::object();
  for (const Timed& other : all_) {
    const bool baseline = std::find(bench_.baselines.begin(), bench_.baselines.end(),
                                    other.contestant->name()) != bench_.baselines.end();
    if (!baseline) continue;
    row["ratios"][other.contestant->name()] = timed.rate() / other.rate();
    row["processor_ratios"][other.contestant->name()] = timed.processor_rate() / other.processor_rate();
  }
  return row;
}

template <class T>
std::vector<Json> BenchShape<T>::rows() {
  for (Timed& timed : all_) check(timed);
  for (int round = 0; round < bench_.repeat; ++round) {
    for (Timed& timed : all_) {
      timed.rounds.push_back(time_round(*timed.contestant));
      progress_.step();
    }
  }
  std::vector<Json> rows;
  for (const Timed& timed : all_) rows.push_back(row_of(timed));
  return rows;
}

std::vector<Json> shape_rows(const Bench& bench, const Shape& shape, BenchProgress& progress) {
  if (bench.type == Type::float32) return BenchShape<float>(bench, shape, progress).rows();
  return BenchShape<double>(bench, shape, progress).rows();
}

}  // namespace

template <class T>
BenchMatrices<T>::BenchMatrices(const Bench& bench, const Shape& size)
    : shape(size), a(generated<T>(bench, lab::Side::a, size.m, size.k)),
      b(generated<T>(bench, lab::Side::b, size.k, size.n)), c(make_entries<T>(size.m, size.n)) {}

Json run_bench(const Bench& bench, const std::string& file) {
  if (!file.empty()) check_writable(file);
  Json result = document("bench");
  result["settings"] = settings_of(bench);
  result["seed"] = sample_seed;
  result["rows"] = Json::array();
  BenchProgress progress;
  progress.total = std::ssize(bench.shapes) * (std::ssize(bench.candidates) + std::ssize(bench.baselines)) *
                   (bench.repeat + 1);
  for (const Shape& shape : bench.shapes) {
    for (Json& row : shape_rows(bench, shape, progress)) result["rows"].push_back(std::move(row));
    if (file.empty()) continue;
    const std::string text = results_text(result);
    AtomicFile output(file);
    output.write(text.data(), text.size());
    output.commit();
  }
  return result;
}

}  // namespace kintsugi::tools
