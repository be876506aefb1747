#include "lab/accuracy/run.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "lab/accuracy/case.hpp"
#include "lab/numerics/histogram.hpp"
#include "tools/io/atomic_file.hpp"
#include "tools/io/input_file.hpp"
#include "tools/io/interruption.hpp"
#include "tools/measure/metrics.hpp"
#include "tools/measure/native_difference.hpp"
#include "tools/plan.hpp"
#include "tools/report/pictures.hpp"

namespace kintsugi::tools {

namespace {

// ------------------------------------------------------------------- rows

// Matrices of one shape, type, distribution and seed.
struct SweepCase {
  Shape shape;
  Type type = Type::float32;
  std::string distribution;
  std::uint64_t seed = 0;
};

// Returns the members that identify a row of the document.
Json row_key(const SweepCase& sweep_case, const Method& method) {
  const auto& [m, n, k] = sweep_case.shape;
  return {{"problem", {{"m", m}, {"n", n}, {"k", k}, {"type", type_text(sweep_case.type)}}},
          {"distribution", sweep_case.distribution},
          {"seed", sweep_case.seed},
          {"scheme", method.scheme},
          {"engine", method.engine},
          {"accumulator", method.accumulator.empty() ? Json() : Json(method.accumulator)}};
}

Json key_of(const Json& row) {
  Json key;
  for (const char* name : {"problem", "distribution", "seed", "scheme", "engine", "accumulator"})
    key[name] = row.at(name);
  return key;
}

// Returns the member "time" of a row: the time of the only execution, and the time to make its plan.
template <class T>
Json time_document(const TimedProduct<T>& product) {
  return {{"seconds", product.seconds}, {"runs", 1}, {"plan_seconds", product.plan_seconds}};
}

// Returns those errors of the native product that other rows repeat for comparison.
Json baseline_errors(const Json& errors) {
  Json repeated;
  for (const char* key : {"frobenius_relative", "max_relative", "mean_relative", "max_componentwise",
                          "max_ulp", "correctly_rounded_fraction"})
    repeated[key] = errors.at(key);
  return repeated;
}

// Returns the histogram of differences between compared elements of a product and of the native product.
Json histogram_document(const std::vector<measure::ElementError>& elements,
                        const std::vector<measure::ElementError>& native) {
  std::vector<double> differences;
  for (std::size_t e = 0; e < elements.size(); ++e)
    differences.push_back(measure::relative_difference(elements[e].computed, native[e].computed));
  const std::vector<double>& edges = lab::signed_logarithmic_edges();
  return {{"edges", edges}, {"counts", lab::histogram(differences, edges)}};
}

// The matrices of a case, with the native products of the engines.
template <class T>
class CaseMatrices {
 public:
  CaseMatrices(const SweepCase& sweep_case, const Sweep& sweep)
      : case_(sweep_case), adds_histogram_(sweep.histogram),
        compared_(sweep_case.shape, elements(measure::Side::a, sweep_case.shape.m, sweep_case.shape.k),
                  elements(measure::Side::b, sweep_case.shape.k, sweep_case.shape.n), sweep.max_elements) {}

  // Multiplies by the method and returns the row of the document (lab/schema/accuracy.schema.json). Throws
  // LibraryError with contract_unreachable if the scheme refuses these operands. Precondition: the method has
  // the case's type.
  Json measure(const Method& method) {
    const bool is_native = method.scheme == "native";
    const TimedProduct<T>* baseline = native_product(method.engine);
    if (is_native && baseline == nullptr)
      fail("--schemes", "{} has no native product of {}", method.engine, type_text(method.type));
    TimedProduct<T> measured;
    if (!is_native) {
      measured = compared_.multiply(method);
      compared_.compare(measured, baseline);
    }
    const TimedProduct<T>& product = is_native ? *baseline : measured;
    Json row = row_key(case_, method);
    row["errors"] = product.errors;
    row["bound"] = check_bound<T>(bounds_of(product.plan, product.report), compared_.view_a(),
                                  compared_.view_b(), product.elements);
    row["time"] = time_document(product);
    row["baseline"] = nullptr;
    row["histogram"] = nullptr;
    if (is_native || baseline == nullptr) return row;
    row["baseline"] = {{"scheme", "native"},
                       {"engine", method.engine},
                       {"errors", baseline_errors(baseline->errors)},
                       {"time", time_document(*baseline)}};
    if (adds_histogram_) row["histogram"] = histogram_document(product.elements, baseline->elements);
    return row;
  }

 private:
  std::vector<T> elements(measure::Side side, std::int64_t rows, std::int64_t columns) const {
    return random_elements<T>(case_.distribution, side, case_.seed, rows, columns);
  }

  // Returns the engine's native product, with which rows are compared; nullptr if the engine has none. The
  // product is computed once.
  const TimedProduct<T>* native_product(const std::string& engine) {
    const auto [found, is_new] = native_products_.try_emplace(engine);
    if (is_new) {
      try {
        TimedProduct<T> product = compared_.multiply({case_.type, "native", engine, ""});
        compared_.compare(product, &product);
        found->second = std::move(product);
      } catch (const LibraryError& error) {
        if (error.is_unexpected()) throw;
      }
    }
    return found->second ? &*found->second : nullptr;
  }

  SweepCase case_;
  bool adds_histogram_;
  ComparedCase<T> compared_;
  // Native products by engine; nullopt: the engine has none.
  std::map<std::string, std::optional<TimedProduct<T>>> native_products_;
};

// Returns CaseMatrices::measure() for the case's type.
std::function<Json(const Method&)> make_measure(const SweepCase& sweep_case, const Sweep& sweep) {
  const auto measure_by = [&]<class T>() {
    auto matrices = std::make_shared<CaseMatrices<T>>(sweep_case, sweep);
    return [matrices](const Method& method) { return matrices->measure(method); };
  };
  if (sweep_case.type == Type::float32) return measure_by.template operator()<float>();
  return measure_by.template operator()<double>();
}

// --------------------------------------------------------------- document

// The document of `kintsugi-lab accuracy`, in memory and in its file.
class AccuracyResults {
 public:
  // `file`: file of the document; "": results are kept in memory only. Rows of an existing file are kept.
  // Fails if the file was made by another version, commit or processor, or if it has rows that are not among
  // `keys`.
  AccuracyResults(std::string file, const Sweep& sweep, const std::vector<Json>& keys)
      : file_(std::move(file)), head_(tools::document("accuracy")) {
    head_["settings"] = settings_of(sweep);
    head_["seed"] = sample_seed;
    if (file_.empty()) return;
    check_writable(file_);
    if (std::filesystem::exists(file_)) resume(keys);
  }

  bool has(const Json& key) const { return done_.contains(key.dump()); }
  std::size_t size() const { return done_.size(); }

  // Adds a row. Writes the file if the last write was more than a few seconds ago.
  void add(const Json& row) {
    constexpr auto interval = std::chrono::seconds(5);
    done_.insert(key_of(row).dump());
    rows_.push_back(row);
    changed_ = true;
    if (std::chrono::steady_clock::now() - flushed_ >= interval) flush();
  }

  void flush() {
    if (file_.empty() || !changed_) return;
    write_text(file_, results_text(document()));
    changed_ = false;
    flushed_ = std::chrono::steady_clock::now();
  }

  Json document() const {
    Json document = head_;
    document["rows"] = rows_;
    return document;
  }

 private:
  // Fails unless a value in the file is equal to the value of this run.
  void require_same(const Json& of_file, const Json& of_run, const char* name) const {
    if (of_file == of_run) return;
    fail(file_, "its {} is {} and ours is {}; choose another -o, or remove the file to start again", name,
         of_file.dump(), of_run.dump());
  }

  void resume(const std::vector<Json>& keys) {
    InputFile input(file_);
    const Json old = parse_or_discard(input.read_rest());
    if (!old.is_object() || old.value("format", Json()) != head_.at("format"))
      fail(file_, "exists and was not written by kintsugi-lab accuracy; choose another -o");
    try {
      for (const char* name : {"format_version", "version", "commit", "seed"})
        require_same(old.at(name), head_.at(name), name);
      require_same(old.at("machine").at("processor"), head_.at("machine").at("processor"), "processor");
      for (const char* name : {"max_elements", "histogram"})
        require_same(old.at("settings").at(name), head_.at("settings").at(name), name);
      std::set<std::string> wanted;
      for (const Json& key : keys) wanted.insert(key.dump());
      for (const Json& row : old.at("rows")) {
        const std::string key = key_of(row).dump();
        if (!wanted.contains(key))
          fail(file_, "has a row that is not in this sweep ({}); choose another -o", key);
        if (done_.insert(key).second) rows_.push_back(row);
      }
    } catch (const Json::exception& error) {
      fail(file_, "cannot be continued by kintsugi-lab accuracy, choose another -o: {}", error.what());
    }
  }

  std::string file_;
  Json head_;
  Json rows_ = Json::array();
  std::set<std::string> done_;  // keys of rows_
  bool changed_ = true;         // true: rows have changed since the file was written
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

// ------------------------------------------------------------------ sweep

// Shows the progress of a sweep: a bar if stderr is a terminal, else a line every few seconds.
class SweepProgress {
 public:
  SweepProgress(const std::string& name, std::size_t total)
      : name_(name), bar_(name), total_(static_cast<std::int64_t>(total)),
        terminal_(::isatty(STDERR_FILENO) != 0), last_(std::chrono::steady_clock::now()) {}

  void show(std::size_t done, const SweepCase& sweep_case) {
    constexpr auto interval = std::chrono::seconds(5);
    bar_.show(static_cast<std::int64_t>(done), total_);
    const auto now = std::chrono::steady_clock::now();
    if (terminal_ || now - last_ < interval) return;
    last_ = now;
    print_note("kintsugi-lab {}: {} of {} rows, {} {}\n", name_, done, total_, sweep_case.distribution,
               shape_text(sweep_case.shape));
  }

 private:
  std::string name_;
  Progress bar_;
  std::int64_t total_;
  bool terminal_;
  std::chrono::steady_clock::time_point last_;
};

std::vector<SweepCase> cases_of(const Sweep& sweep) {
  std::vector<SweepCase> cases;
  for (const auto& distribution : sweep.distributions) {
    for (const Shape& shape : sweep.shapes) {
      for (const Type type : sweep.types) {
        for (const std::uint64_t seed : sweep.seeds) cases.push_back({shape, type, distribution, seed});
      }
    }
  }
  return cases;
}

std::vector<Json> keys_of(const std::vector<SweepCase>& cases, const std::vector<Method>& methods) {
  std::vector<Json> keys;
  for (const SweepCase& sweep_case : cases) {
    for (const Method& method : methods) {
      if (method.type == sweep_case.type) keys.push_back(row_key(sweep_case, method));
    }
  }
  return keys;
}

// Adds the rows of a case that `results` lacks.
void measure_case(const SweepCase& sweep_case, const Sweep& sweep, const std::vector<Method>& methods,
                  AccuracyResults& results, SweepProgress& progress, SweepOutcome& outcome,
                  const InterruptionWatch& watch) {
  std::function<Json(const Method&)> row_of;
  for (const Method& method : methods) {
    if (method.type != sweep_case.type || results.has(row_key(sweep_case, method))) continue;
    if (!row_of) row_of = make_measure(sweep_case, sweep);
    try {
      results.add(row_of(method));
    } catch (const LibraryError& error) {
      if (error.status() != KINTSUGI_CONTRACT_UNREACHABLE) throw;
      if (outcome.refused++ == 0) outcome.first_refusal = sweep_case.distribution + ", " + error.what();
    }
    progress.show(results.size(), sweep_case);
    if (watch.signal() != 0) return;
  }
}

// Throws Interrupted with a message about the file, which has all rows that were measured.
[[noreturn]] void throw_interrupted(const std::string& file, std::size_t done, std::size_t total,
                                    int signal) {
  if (file.empty()) throw Interrupted("interrupted; no -o names a file, so nothing is kept", signal);
  throw Interrupted(fmt::format("interrupted; {} has {} of {} rows, and running the same command again "
                                "continues it",
                                file, done, total),
                    signal);
}

std::string row_name(const Json& row) {
  const Json& problem = row.at("problem");
  return fmt::format("{}x{}x{} {} {} seed {}, {} on {} {}", cell(problem, "m"), cell(problem, "n"),
                     cell(problem, "k"), cell(problem, "type"), cell(row, "distribution"), cell(row, "seed"),
                     cell(row, "scheme"), cell(row, "engine"), cell(row, "accumulator"));
}

void count_violations(SweepOutcome& outcome) {
  for (const Json& row : outcome.document.at("rows")) {
    if (row.at("bound").is_null() || row.at("bound").at("held") != Json(false)) continue;
    if (outcome.bound_violations++ == 0) outcome.first_violation = row_name(row);
  }
}

// Fails if the comparison does not fit in memory: the exact values of the compared elements of C, and the
// errors of two products (a scheme's and the native one).
void require_memory_for_exact_elements(const Sweep& sweep, const Shape& shape) {
  constexpr double bytes_per_element =
      measure::ExactReference<double>::bytes_per_element + 2 * sizeof(measure::ElementError);
  const double elements = std::min(static_cast<double>(sweep.max_elements),
                                   static_cast<double>(shape.m) * static_cast<double>(shape.n));
  const double bytes = elements * bytes_per_element;
  if (bytes > physical_memory())
    fail(
        "--max-elements",
        "the exact values of {:.4g} elements of {} are {:.4g} bytes; this machine has {:.4g} bytes of memory",
        elements, shape_text(shape), bytes, physical_memory());
}

// Fails before any measurement if matrices of a shape do not fit in memory. The message names --max-elements
// if A and B fit but the exact elements do not.
void require_sizes(const Sweep& sweep) {
  for (const Shape& shape : sweep.shapes) {
    for (const Type type : sweep.types) {
      require_memory("--shapes", shape.m, shape.k, type);
      require_memory("--shapes", shape.k, shape.n, type);
    }
    require_memory_for_exact_elements(sweep, shape);
    for (const Type type : sweep.types) require_memory("--shapes", shape.m, shape.n, type);
  }
}

}  // namespace

SweepOutcome run_sweep(const Sweep& sweep, const std::string& file, const std::string& name) {
  require_sizes(sweep);
  const std::vector<Method> methods = methods_of(sweep);
  const std::vector<SweepCase> cases = cases_of(sweep);
  const std::vector<Json> keys = keys_of(cases, methods);
  AccuracyResults results(file, sweep, keys);
  // All plans are made once, so that a refused plan is reported before any measurement.
  for (const Method& method : methods) make_plan(make_handle().get(), sweep.shapes.front(), method);
  SweepOutcome outcome;
  outcome.rows_before = results.size();
  SweepProgress progress(name, keys.size());
  const InterruptionWatch watch;
  try {
    for (const SweepCase& sweep_case : cases) {
      measure_case(sweep_case, sweep, methods, results, progress, outcome, watch);
      if (watch.signal() != 0) throw_interrupted(file, results.size(), keys.size(), watch.signal());
    }
  } catch (...) {
    if (results.size() > 0) results.flush();
    throw;
  }
  results.flush();
  outcome.document = results.document();
  count_violations(outcome);
  return outcome;
}

Json recorded_document(const std::string& file, const std::string& format) {
  if (!std::filesystem::exists(file)) fail(file, "does not exist; without --recorded it is made");
  InputFile input(file);
  Json document = parse_or_discard(input.read_rest());
  if (!document.is_object() || document.value("format", "") != "kintsugi." + format ||
      document.value("format_version", 0) != 1)
    fail(file, "is not a document of the format kintsugi.{}, version 1", format);
  return document;
}

SweepOutcome recorded_sweep(const std::string& file) {
  SweepOutcome outcome;
  outcome.document = recorded_document(file, "accuracy");
  outcome.rows_before = outcome.document.at("rows").size();
  count_violations(outcome);
  return outcome;
}

}  // namespace kintsugi::tools
