// mixpert Figs. 9 and 10: errors of a perceptron, Cholesky and HPL-AI, and the tuner's search on the first
// two.
#include <algorithm>

#include "lab/reproduce/figures.hpp"
#include "lab/reproduce/programs/programs.hpp"
#include "tools/tune/search.hpp"

namespace kintsugi::tools {

namespace {

using programs::Matrix;
using programs::Products;

struct Level {
  const char* scheme;
  double products;  // int8 products of a multiplication
};
// MixPert's levels IV, III, II and I.
constexpr Level levels[] = {{"mixpert-4", 8}, {"mixpert-3", 6}, {"mixpert-2", 6}, {"mixpert-1", 4}};
constexpr double limits[] = {1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 1e-2};

struct Operands {
  std::string name;
  std::string distribution;
};
const std::vector<Operands> all_operands{{"[-1, 1]", "uniform"}, {"[0, 1]", "uniform01"}};
const std::vector<std::string> both_programs{"MLP", "Cholesky"};

struct NamedMethod {
  std::string name;
  SchemeOnEngine method;
};
SchemeOnEngine level_on_cpu(const char* scheme) { return {scheme, "cpu", ""}; }
const std::vector<NamedMethod> methods{{"MixPert", level_on_cpu("mixpert-4")},
                                       {"MixPert, level I", level_on_cpu("mixpert-1")},
                                       {"APE", {"bf16x6", "reference", "a100"}},
                                       {"CUTLASS", {"tf32x3", "reference", "a100"}}};

// ---------------------------------------------------------------- errors

Json error_row(const char* program, std::int64_t n, const Operands& operands, const NamedMethod& method,
               double error) {
  return {{"program", program},
          {"n", n},
          {"operands", operands.name},
          {"method", method.name},
          {"error", number(error)}};
}

template <class Program>
void add_errors(Json& rows, const char* name, const std::vector<std::int64_t>& sizes) {
  for (const Operands& operands : all_operands) {
    for (const std::int64_t n : sizes) {
      const Program program(n, operands.distribution);
      Products fp32;
      const Matrix reference = program.run(fp32);
      for (const NamedMethod& method : methods) {
        Products products(method.method);
        rows.push_back(error_row(name, n, operands, method,
                                 programs::frobenius_error(program.run(products), reference)));
      }
    }
  }
}

void add_residuals(Json& rows, const std::vector<std::int64_t>& sizes) {
  std::vector<NamedMethod> all = methods;
  all.push_back({"FP32", programs::native});
  for (const Operands& operands : all_operands) {
    for (const std::int64_t n : sizes) {
      for (const NamedMethod& method : all) {
        Products products(method.method);
        rows.push_back(error_row("HPL-AI", n, operands, method,
                                 programs::hpl_ai_residual(n, operands.distribution, products)));
      }
    }
  }
}

// ---------------------------------------------------------------- search

// A program whose levels are searched, with the outcomes of all combinations that were tried.
template <class Program>
class Tuned {
 public:
  Tuned(std::int64_t n, const std::string& distribution)
      : program_(n, distribution), reference_(program_.run(fp32_)) {
    for (const programs::Site& site : Program::sites()) {
      names_.push_back(site.name);
      problem_.level_counts.push_back(std::size(levels));
      problem_.predecessors.push_back(site.predecessors);
    }
  }

  // Returns the greedy search's result and the best of all combinations; null if level IV exceeds the limit.
  Json search(double limit) {
    problem_.limit = limit;
    const Levels most_accurate(names_.size(), 0);
    if (outcome_of(most_accurate).error > limit) return nullptr;
    const Evaluate evaluate = [this](const Levels& chosen) { return outcome_of(chosen); };
    const SearchResult best = search_exhaustively(problem_, evaluate);
    const SearchResult found = search_greedily(problem_, names_, evaluate);
    std::set<Levels> tried;
    Json steps = Json::array();
    for (const Step& step : found.steps) {
      tried.insert(step.levels);
      steps.push_back({{"step", step.what},
                       {"levels", step.levels},
                       {"error", number(step.error)},
                       {"cost", step.cost},
                       {"accepted", step.accepted}});
    }
    return {{"limit", limit},
            {"levels", found.levels},
            {"error", number(found.outcome.error)},
            {"cost", found.outcome.cost()},
            {"best_cost", best.outcome.cost()},
            {"first_cost", outcome_of(most_accurate).cost()},
            {"runs", tried.size()},
            {"combinations", combinations(problem_)},
            {"steps", steps}};
  }

 private:
  Outcome outcome_of(const Levels& chosen) {
    const auto known = outcomes_.find(chosen);
    if (known != outcomes_.end()) return known->second;
    Products products;
    Outcome outcome;
    const std::vector<double> multiplications = program_.multiplications();
    for (std::size_t site = 0; site < chosen.size(); ++site) {
      products.set(names_[site], level_on_cpu(levels[chosen[site]].scheme));
      outcome.site_cost.push_back(multiplications[site] * levels[chosen[site]].products);
    }
    outcome.error = programs::frobenius_error(program_.run(products), reference_);
    outcomes_[chosen] = outcome;
    return outcome;
  }

  Program program_;
  Products fp32_;
  Matrix reference_;
  std::vector<std::string> names_;
  SearchProblem problem_;
  std::map<Levels, Outcome> outcomes_;
};

template <class Program>
void add_searches(Json& rows, const char* name, std::int64_t n) {
  for (const Operands& operands : all_operands) {
    Tuned<Program> tuned(n, operands.distribution);
    for (const double limit : limits) {
      Json row = {{"program", name}, {"n", n}, {"operands", operands.name}};
      const Json search = tuned.search(limit);
      if (search.is_null()) continue;
      row.update(search);
      rows.push_back(row);
    }
  }
}

Json make_document(bool quick) {
  using Sizes = std::vector<std::int64_t>;
  Json result = document("program-errors");
  result["samples"] = quick ? 64 : 512;
  Json& rows = result["rows"] = Json::array();
  const Sizes sizes = quick ? Sizes{32, 64} : Sizes{128, 256, 512};
  add_errors<programs::Perceptron>(rows, "MLP", sizes);
  add_errors<programs::Cholesky>(rows, "Cholesky", sizes);
  add_residuals(rows, sizes);
  add_searches<programs::Cholesky>(rows, "Cholesky", quick ? 32 : 256);
  add_searches<programs::Perceptron>(rows, "MLP", quick ? 32 : 256);
  return result;
}

// ---------------------------------------------------------------- claims

bool is_search(const Json& row) { return row.contains("limit"); }

// Returns a filter for the rows of a program and operands, either of its searches or of its errors.
Filter rows_of(const std::string& program, const std::string& operands, bool searches) {
  return [=](const Json& row) {
    return is_search(row) == searches && row.at("program") == program && row.at("operands") == operands;
  };
}

std::vector<double> errors_of(const Evidence& evidence, const std::string& program,
                              const std::string& operands, const std::string& method) {
  std::vector<double> errors;
  for (const Json& row :
       evidence.rows_where(both(rows_of(program, operands, false), where("method", method))))
    errors.push_back(read_number(row.at("error")));
  if (errors.empty()) throw NoSuchRow("no row of " + program + " with " + method);
  return errors;
}

Measured residuals(const Evidence& evidence, bool relative_to_native) {
  const auto values_of = [&](const Operands& operands, const NamedMethod& method) {
    const std::vector<double> fp32 = errors_of(evidence, "HPL-AI", operands.name, "FP32");
    std::vector<double> values = errors_of(evidence, "HPL-AI", operands.name, method.name);
    for (std::size_t i = 0; relative_to_native && i < values.size(); ++i) values[i] /= fp32.at(i);
    return SeriesValues{fmt::format("{}, {}", operands.name, method.name), values};
  };
  return series_of(values_of, all_operands, methods);
}

// Returns a value of each search of a program, by program and operands.
Measured searches(const Evidence& evidence, const std::vector<std::string>& names,
                  const std::function<double(const Json&)>& value, const Filter& filter = everywhere()) {
  const auto values_of = [&](const Operands& operands, const std::string& program) {
    SeriesValues series{fmt::format("{}, {}", operands.name, program), {}};
    for (const Json& row : evidence.rows_where(both(rows_of(program, operands.name, true), filter)))
      series.values.push_back(value(row));
    return series;
  };
  return series_of(values_of, all_operands, names);
}

std::vector<Claim> claims() {
  return {{"mixpert-hpl", [](const Evidence& evidence) { return residuals(evidence, true); },
           "GMRES ends at the first cycle that no longer helps, so residuals below 1 differ by chance."},
          {"mixpert-hpl-valid", [](const Evidence& evidence) { return residuals(evidence, false); }},
          {"mixpert-tuner-exhaustive",
           [](const Evidence& evidence) {
             return searches(evidence, both_programs, [](const Json& row) {
               return row.at("cost").get<double>() / row.at("best_cost").get<double>();
             });
           }},
          {"mixpert-tuner-threshold", [](const Evidence& evidence) {
             return searches(evidence, both_programs, [](const Json& row) {
               return read_number(row.at("error")) / row.at("limit").get<double>();
             });
           }}};
}

// ---------------------------------------------------------------- pictures

// Both charts show operands on [-1, 1].
Picture error_picture(const Json& document, const std::string& program) {
  Chart chart{.title = program + " by size, operands on [-1, 1]",
              .x_label = "n",
              .y_label = program == "HPL-AI" ? "scaled residual" : "Frobenius error beside FP32"};
  for (const NamedMethod& method : methods) {
    const Filter drawn = both(rows_of(program, all_operands[0].name, false), where("method", method.name));
    const int colour = static_cast<int>(chart.series.size());
    chart.series.push_back(line_of({method.name, colour, 0, {}}, document, "n",
                                   [&](const Json& row) { return drawn(row) ? row.at("error") : Json(); }));
  }
  return {.chart = chart, .name = "errors-" + program};
}

Picture search_picture(const Json& document, const std::string& program) {
  const Filter drawn = rows_of(program, all_operands[0].name, true);
  const auto line = [&](const char* label, int colour, const char* member) {
    return line_of({label, colour, 0, {}}, document, "limit", [&](const Json& row) {
      return drawn(row) ? Json(row.at(member).get<double>() / row.at("first_cost").get<double>()) : Json();
    });
  };
  const Chart chart{.title = "Search on " + program + " by the limit, operands on [-1, 1]",
                    .x_label = "limit of the error",
                    .y_label = "cost over that of level IV",
                    .series = {line("search", 0, "cost"), line("best combination", 1, "best_cost")},
                    .log_y = false};
  return {.chart = chart, .name = "search-" + program};
}

std::vector<Figure> draw_document(const Json& document) {
  Figure errors{"Errors of programs", {}};
  for (const char* const program : {"MLP", "Cholesky", "HPL-AI"})
    errors.pictures.push_back(error_picture(document, program));
  Figure searches{"Searches of levels", {}};
  for (const auto& program : both_programs) searches.pictures.push_back(search_picture(document, program));
  return {errors, searches};
}

}  // namespace

PaperFigure mixpert_programs_figure() {
  return {.name = "mixpert-programs",
          .paper = "mixpert",
          .place = "Figs. 9 and 10, sections 3.4, 4.3 and 4.4",
          .subject = "errors of a perceptron, Cholesky and HPL-AI, and the tuner's search",
          .conditions =
              "n = 128 to 512, searches n = 256; the paper has n = 16384 and 32768 and does not say what "
              "its matrices hold: elements on [-1, 1] and [0, 1], Cholesky of M M^T / n + I, HPL-AI's "
              "matrix diagonally dominant; errors beside native fp32, which adds one after the other; "
              "mixpert's levels by the engine cpu, APE as bf16x6 and CUTLASS as tf32x3 on the A100's model; "
              "costs are int8 products, limits that level IV exceeds are left out",
          .claims = claims(),
          .analysis = {.format = "program-errors", .make_document = make_document, .draw = draw_document}};
}

}  // namespace kintsugi::tools
