// kintsugi tune-program: finds the cheapest precision of every call of BLAS or cuBLAS that keeps the error of
// the whole program within a limit.
#include <memory>

#include "command_line.hpp"
#include "commands.hpp"
#include "io/atomic_file.hpp"
#include "report/pictures.hpp"
#include "tune/document.hpp"
#include "tune/page.hpp"

namespace kintsugi::tools {

namespace {

void check(const TuneRequest& request) {
  if (!(request.limit > 0)) fail("--limit", "{:g} is not above 0", request.limit);
  if ((request.metric == "command") == request.command.empty())
    fail("--command", "{}",
         request.command.empty() ? "is missing: the metric command needs one" : "needs --metric command");
  if (request.metric == "command" && !request.output.empty())
    fail("--output", "has no use with --metric command, which compares no file");
  if (!request.has_site_outputs() && request.metric != "command" && request.output.empty())
    fail("--output", "is needed with --library cublas, whose results stay in device memory");
  check_writable(request.sites_file);
}

void print_text(const TuneRequest& request, const Tuning& tuning) {
  Table steps(step_heads(request));
  for (std::size_t i = 0; i < tuning.result.steps.size(); ++i) steps.add(step_cells(request, tuning, i));
  Table sites(site_heads(request));
  for (std::size_t i = 0; i < tuning.sites.size(); ++i) sites.add(site_cells(request, tuning, i));
  fmt::print("{}\n{}\n", steps.text(), sites.text());
  for (const std::string& sentence : tuning_sentences(request, tuning)) fmt::print("{}\n", sentence);
  fmt::print("\nConfiguration: {}\nReport: {}, {}\n", request.sites_file, request.beside(".report.json"),
             request.beside(".report.html"));
}

void run(const TuneRequest& request) {
  require_settings();
  check(request);
  const Tuning tuning = tune(request);
  const Json found = tuning_document(request, tuning);
  write_text(request.sites_file, configuration(request, tuning).dump(2) + "\n");
  write_text(request.beside(".report.json"), found.dump(2) + "\n");
  write_text(request.beside(".report.html"), tuning_page(request, tuning));
  if (request.json)
    print(found);
  else
    print_text(request, tuning);
  if (!tuning.held())
    throw Finding(
        fmt::format("--validate {}: the limit of {:g} did not hold with every seed; {} has the errors",
                    request.validate, request.limit, request.beside(".report.json")));
}

constexpr const char* footer =
    "Example:\n"
    "  kintsugi tune-program --limit 1e-5 --output Y.npy --validate 5 -- ./perceptron 128 96 160 Y.npy\n"
    "  KINTSUGI_SITES=sites.json kintsugi run --blas -- ./perceptron 128 96 160 Y.npy\n"
    "\n"
    "The program first runs under the drop-in to find its call sites. It then runs with the most accurate "
    "levels. After\n"
    "that, the site that costs most is lowered by a level, again and again, as long as the program's error "
    "keeps the limit.\n"
    "If a lower level breaks the limit, the site is lowered while a cheaper predecessor is raised, or the "
    "site keeps its level.\n"
    "\n"
    "The error: of the file --output; else the largest of all sites, each by the C of its last call. R is "
    "the same in a\n"
    "reference run. frobenius: |C - R| / |R| in the Frobenius norm; max: max |C - R| / max |R|; command: the "
    "number that\n"
    "--command prints after a run. A program that fails has an infinite error. Levels are native, exact or "
    "schemes\n"
    "(kintsugi schemes). By default native, fp16x3, tf32, fp16 for FP32 and native, ozaki2 with 12, 9 and 6 "
    "moduli for FP64.\n"
    "\n"
    "Beside sites.json it writes sites.report.json, sites.report.html and sites.state.json, by which the "
    "same command\n"
    "goes on after an interruption. The whole description: docs/TUNING.md.";

// Adds the options that define the error and select the library.
void add_error_options(CLI::App& command, TuneRequest& request) {
  command.add_option("--limit", request.limit, "Largest error of the program")->required();
  command.add_option("--library", request.library, "Whose calls are tuned: blas or cublas")
      ->check(one_of({"blas", "cublas"}))
      ->capture_default_str();
  command.add_option("--metric", request.metric, "frobenius, max or command")
      ->check(one_of({"frobenius", "max", "command"}))
      ->capture_default_str();
  command.add_option("--command", request.command,
                     "Shell command that prints the error, for --metric command");
  command
      .add_option("--reference", request.reference, "What errors are relative to: all sites native, or exact")
      ->check(one_of({"native", "exact"}))
      ->capture_default_str();
  command.add_option("--output", request.output,
                     "File that the program writes, .npy, removed before each run [the sites' last outputs]");
}

// Adds the options of the search and of the files that are written.
void add_search_options(CLI::App& command, TuneRequest& request) {
  command
      .add_option("--levels", request.levels, "Levels NAME or NAME@WEIGHT, the most accurate first [by type]")
      ->delimiter(',');
  command.add_option("--search", request.search, "greedy, estimated or exhaustive")
      ->check(one_of({"greedy", "estimated", "exhaustive"}))
      ->capture_default_str();
  command
      .add_option("--cost", request.cost,
                  "time in the library, or weights: multiplications by the levels' weights")
      ->check(one_of({"time", "weights"}))
      ->capture_default_str();
  command.add_option("--repeat", request.repeat, "Runs of each combination, of which the quickest counts")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  command
      .add_option("--min-share", request.min_share,
                  "Share of the multiplications below which a site keeps its first level")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--validate", request.validate, "Runs of the result with KINTSUGI_TUNE_SEED = 1 ... N [0]")
      ->check(whole_number(0, 100000));
  command
      .add_option("--frames", request.frames,
                  "Frames of the call stack that tell sites apart, for wrappers of BLAS")
      ->check(whole_number(1, 64))
      ->capture_default_str();
  command
      .add_option("--error-samples", request.error_samples,
                  "Calls of each site that are compared with exact ones on the same operands, 0: none")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
  command.add_option("-o,--sites", request.sites_file, "The configuration, a file for KINTSUGI_SITES")
      ->capture_default_str();
  command.add_flag("--json", request.json, "Print one JSON document instead of text");
  command.add_option("PROGRAM", request.program, "Program and its arguments, after --")->required();
  command.positionals_at_end();
}

}  // namespace

void add_tune_program(CLI::App& program, Action& action) {
  auto request = std::make_shared<TuneRequest>();
  CLI::App* command = program.add_subcommand(
      "tune-program",
      "Find the cheapest precision of every BLAS or cuBLAS call of a program under an error limit");
  command->footer(footer);
  add_error_options(*command, *request);
  add_search_options(*command, *request);
  command->callback([request, &action] { action = [request] { run(*request); }; });
}

}  // namespace kintsugi::tools
