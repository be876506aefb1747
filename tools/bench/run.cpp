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

struct Timed {
  std::unique_ptr<Contestant> contestant;
  Json check;
  std::vector<double> seconds;

  double quickest() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
  // Operations a second, two for each product of elements.
  double rate() const {
    const auto [m, n, k] = contestant->shape();
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / quickest();
  }
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

void require_held(const std::string& name, const Shape& shape, const Verdict& verdict,
                  const lab::ErrorReport& errors) {
  if (verdict.held) return;
  if (verdict.promise == "exact")
    throw Finding(fmt::format("{}: {}: {:.6g} of the {} checked entries are correctly rounded, not all", name,
                              shape_text(shape), errors.correctly_rounded_fraction, errors.entries_checked));
  throw Finding(
      fmt::format("{}: {}: the largest error of {} checked entries is {:.4g} times what its {} allows, "
                  "{:.3g} |A||B| at least; it was not timed",
                  name, shape_text(shape), errors.entries_checked, read_number(verdict.largest_ratio),
                  verdict.promise, read_number(verdict.relative)));
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
  require_held(contestant.name(), computed, verdict, errors);
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
  row["time"] = {{"minimum", timed.quickest()}, {"median", timed.median()}, {"runs", timed.seconds.size()}};
  row["rate"] = timed.rate();
  row["ratios"] = Json::object();
  for (const Timed& other : all_) {
    const bool baseline = std::find(bench_.baselines.begin(), bench_.baselines.end(),
                                    other.contestant->name()) != bench_.baselines.end();
    if (baseline) row["ratios"][other.contestant->name()] = timed.rate() / other.rate();
  }
  return row;
}

template <class T>
std::vector<Json> BenchShape<T>::rows() {
  for (Timed& timed : all_) check(timed);
  for (int round = 0; round < bench_.repeat; ++round) {
    for (Timed& timed : all_) {
      timed.seconds.push_back(timed.contestant->run());
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
