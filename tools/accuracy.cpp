// kintsugi accuracy: errors of schemes, engines and accumulators over distributions, shapes and seeds.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "accuracy/measure.hpp"
#include "accuracy/results.hpp"
#include "commands.hpp"

namespace kintsugi::tools {

namespace {

struct AccuracyRequest {
  SweepTexts flags;
  std::string plan;
  std::string output;
  bool json = false;
};

// A bar where stderr is a terminal, else a line every few seconds.
class SweepProgress {
 public:
  explicit SweepProgress(std::size_t total)
      : bar_("accuracy"), total_(static_cast<std::int64_t>(total)), terminal_(::isatty(STDERR_FILENO) != 0),
        last_(std::chrono::steady_clock::now()) {}

  void show(std::size_t done, const CellKey& cell) {
    constexpr auto interval = std::chrono::seconds(5);
    bar_.show(static_cast<std::int64_t>(done), total_);
    const auto now = std::chrono::steady_clock::now();
    if (terminal_ || now - last_ < interval) return;
    last_ = now;
    fmt::print(stderr, "kintsugi accuracy: {} of {} rows, {} {}\n", done, total_, cell.distribution,
               shape_text(cell.shape));
  }

 private:
  Progress bar_;
  std::int64_t total_;
  bool terminal_;
  std::chrono::steady_clock::time_point last_;
};

std::vector<CellKey> cells_of(const Sweep& sweep) {
  std::vector<CellKey> cells;
  for (const auto& distribution : sweep.distributions) {
    for (const Shape& shape : sweep.shapes) {
      for (const std::uint64_t seed : sweep.seeds) cells.push_back({shape, distribution, seed});
    }
  }
  return cells;
}

// Rows that a scheme refused: its operands hold what it does not cover.
struct Refusals {
  int count = 0;
  std::string first;
};

void measure_cell(const CellKey& key, const Sweep& sweep, const std::vector<Method>& methods,
                  AccuracyResults& results, SweepProgress& progress, Refusals& refusals) {
  std::unique_ptr<AccuracyCell> cell;
  for (const Method& method : methods) {
    if (results.has(row_key(key, method))) continue;
    if (!cell) cell = std::make_unique<AccuracyCell>(key, sweep.max_entries);
    try {
      results.add(cell->row(method));
    } catch (const LibraryError& error) {
      if (error.status() != KINTSUGI_CONTRACT_UNREACHABLE) throw;
      if (refusals.count++ == 0) refusals.first = key.distribution + ", " + error.what();
    }
    progress.show(results.size(), key);
  }
}

std::string row_name(const Json& row) {
  return fmt::format("{}x{}x{} {} seed {}, {} on {} {}", cell(row.at("problem"), "m"),
                     cell(row.at("problem"), "n"), cell(row.at("problem"), "k"), cell(row, "distribution"),
                     cell(row, "seed"), cell(row, "scheme"), cell(row, "engine"), cell(row, "accumulator"));
}

bool is_violation(const Json& row) {
  return !row.at("bound").is_null() && row.at("bound").at("held") == Json(false);
}

// A bound that did not hold is a fault of ours, in the bound or in the product.
void require_bounds(const Json& rows) {
  int violations = 0;
  std::string first;
  for (const Json& row : rows) {
    if (!is_violation(row)) continue;
    if (violations++ == 0) first = row_name(row);
  }
  if (violations > 0)
    throw Finding(
        fmt::format("accuracy: {} of {} rows are beyond their scheme's a-priori bound, the first: {}",
                    violations, rows.size(), first));
}

// Of all rows of a method the worst.
struct Worst {
  Method method;
  int rows = 0;
  int in_window = 0;
  int in_contract = 0;
  double frobenius = 0;
  double componentwise = 0;
  double of_bound = 0;
};

void add_row(const Json& row, Worst& worst) {
  const Json& errors = row.at("errors");
  worst.rows += 1;
  worst.in_contract += errors.at("within_contract_bound").get<bool>() ? 1 : 0;
  worst.frobenius = std::max(worst.frobenius, read_number(errors.at("frobenius_relative")));
  worst.componentwise = std::max(worst.componentwise, read_number(errors.at("max_componentwise")));
  if (row.at("bound").is_null() || row.at("bound").at("held").is_null()) return;
  worst.in_window += 1;
  worst.of_bound = std::max(worst.of_bound, read_number(row.at("bound").at("largest_ratio")));
}

void print_summary(const std::vector<Method>& methods, const Json& rows) {
  std::vector<Worst> all;
  for (const Method& method : methods) all.push_back({method});
  for (const Json& row : rows) {
    for (Worst& worst : all) {
      if (cell(row, "scheme") == worst.method.scheme && cell(row, "engine") == worst.method.engine &&
          cell(row, "accumulator") == worst.method.accumulator)
        add_row(row, worst);
    }
  }
  Table table({"scheme", "engine", "accumulator", "rows", "worst frobenius", "worst componentwise",
               "in fp32 contract", "in window", "worst error / bound"});
  for (std::size_t column = 3; column < 9; ++column) table.align_right(column);
  for (const Worst& worst : all) {
    const auto& [scheme, engine, accumulator] = worst.method;
    table.add({scheme, engine, accumulator.empty() ? "-" : accumulator, std::to_string(worst.rows),
               fmt::format("{:.2e}", worst.frobenius), fmt::format("{:.2e}", worst.componentwise),
               std::to_string(worst.in_contract), scheme == "native" ? "-" : std::to_string(worst.in_window),
               worst.in_window == 0 ? "-" : fmt::format("{:.3f}", worst.of_bound)});
  }
  fmt::print("{}", table.text());
}

SweepTexts sweep_texts(const AccuracyRequest& request) {
  SweepTexts texts = request.plan.empty() ? SweepTexts{} : read_sweep_plan(request.plan);
  for (const auto& [name, words] : request.flags) {
    if (!words.empty()) texts[name] = words;
  }
  return texts;
}

// Fills in what the file does not have.
Refusals measure_all(const Sweep& sweep, const std::vector<CellKey>& cells,
                     const std::vector<Method>& methods, AccuracyResults& results) {
  for (const Method& method : methods) require_plan(method, sweep.shapes.front());
  Refusals refusals;
  SweepProgress progress(cells.size() * methods.size());
  try {
    for (const CellKey& cell : cells) measure_cell(cell, sweep, methods, results, progress, refusals);
  } catch (...) {
    if (results.size() > 0) results.flush();
    throw;
  }
  results.flush();
  return refusals;
}

void run_accuracy(const AccuracyRequest& request) {
  require_settings();
  if (request.output.empty() && !request.json)
    fail("-o", "a file for the results is needed, unless --json is given");
  const Sweep sweep = make_sweep(sweep_texts(request));
  const std::vector<Method> methods = methods_of(sweep);
  const std::vector<CellKey> cells = cells_of(sweep);
  std::vector<Json> keys;
  for (const CellKey& cell : cells) {
    for (const Method& method : methods) keys.push_back(row_key(cell, method));
  }
  AccuracyResults results(request.output, sweep, keys);
  const std::size_t there = results.size();
  const Refusals refusals = measure_all(sweep, cells, methods, results);
  if (request.json) {
    fmt::print("{}", results.text());
  } else {
    print_summary(methods, results.rows());
    fmt::print("\n{}: {} rows, {} of them were there already\n", request.output, results.size(), there);
  }
  if (refusals.count > 0) {
    fmt::print(stderr, "kintsugi accuracy: {} rows are left out, the first: {}\n", refusals.count,
               refusals.first);
  }
  require_bounds(results.rows());
}

std::string footer() {
  return "Example:\n"
         "  kintsugi accuracy --schemes fp16,fp16x3,native --distributions uniform,phi:2 --m 32 --n 32 "
         "--k 16,256 -o accuracy.json\n"
         "  kintsugi accuracy --plan docs/results/sweeps/accumulation.json -o accumulation.json\n"
         "\n"
         "--plan reads a JSON object with the names of these flags: {\"schemes\": [\"fp16\"], \"k\": [16, "
         "256], ...};\n"
         "a flag replaces the plan's list. A second run with the same file skips the rows that it has. Where "
         "all\n"
         "vectors are inside a scheme's window, every entry is held against the scheme's a-priori bound; the "
         "exit\n"
         "status is 1 if one is beyond. kintsugi report draws the results.";
}

}  // namespace

void add_accuracy(CLI::App& program, Action& action) {
  auto request = std::make_shared<AccuracyRequest>();
  CLI::App* command = program.add_subcommand(
      "accuracy", "Measure errors of schemes over engines, accumulators, distributions and sizes");
  command->footer(footer());
  for (const auto& list : sweep_lists) {
    command->add_option(std::string("--") + list.name, request->flags[list.name], list.help)->delimiter(',');
  }
  command->add_option("--plan", request->plan, "File with a sweep's description");
  command->add_option("-o,--output", request->output, "File for the results; continued if it is there");
  command->add_flag("--json", request->json, "Print the document too, or instead of -o");
  command->callback([request, &action] { action = [request] { run_accuracy(*request); }; });
}

}  // namespace kintsugi::tools
