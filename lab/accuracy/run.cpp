#include "lab/accuracy/run.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "lab/accuracy/measure.hpp"
#include "lab/accuracy/results.hpp"
#include "tools/io/input_file.hpp"
#include "tools/io/interruption.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::tools {

namespace {

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
  std::unique_ptr<CaseMatrices> matrices;
  for (const Method& method : methods) {
    if (method.type != sweep_case.type || results.has(row_key(sweep_case, method))) continue;
    if (!matrices) matrices = make_matrices(sweep_case, sweep);
    try {
      results.add(matrices->measure(method));
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

bool is_violation(const Json& row) {
  return !row.at("bound").is_null() && row.at("bound").at("held") == Json(false);
}

void count_violations(SweepOutcome& outcome) {
  for (const Json& row : outcome.document.at("rows")) {
    if (!is_violation(row)) continue;
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
