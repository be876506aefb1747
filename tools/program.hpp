// A program with commands: reads the command line, runs the command, and reports every error as one line.
//
// Exit status: 0 success. 2: an error that the user can correct; a line on stderr describes it. 1: an error
// in the program, or a result that exceeds a bound or the requested accuracy.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// Function that `main` calls after reading the command line.
using Action = std::function<void()>;

void add_gemm(CLI::App& program, Action& action);
void add_schemes(CLI::App& program, Action& action);
void add_engines(CLI::App& program, Action& action);
void add_settings(CLI::App& program, Action& action);
void add_doctor(CLI::App& program, Action& action);
void add_calibrate(CLI::App& program, Action& action);
void add_generate(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);
void add_demo(CLI::App& program, Action& action);
void add_explain(CLI::App& program, Action& action);
void add_run(CLI::App& program, Action& action);
void add_sites(CLI::App& program, Action& action);
void add_tune_program(CLI::App& program, Action& action);
// Adds the command `completion`, which all programs have. Comes after those that it completes.
void add_completion(CLI::App& program, Action& action);

// Returns the page for man(1), in roff. `version`: name and version of the program. The program's footer has
// examples, and after its last empty line the meaning of exit statuses.
std::string manual_page(const CLI::App& program, const std::string& version);

// Returns a check of an option: the value must be one of `names`. The message suggests the nearest of them.
CLI::Validator one_of(std::vector<std::string> names);
// Like one_of(), but ignores case. The value is replaced by the listed name.
CLI::Validator one_of_any_case(std::vector<std::string> names);

// Returns a check of an option: the value must be a whole number of at least `min`, and at most `max` if
// there is a `max`.
CLI::Validator whole_number(std::int64_t min);
CLI::Validator whole_number(std::int64_t min, std::int64_t max);

struct ProgramText {
  std::string name;
  std::string description;
  std::string footer;  // examples, before what all programs say of help and exit status
};

using AddCommands = void (*)(CLI::App& program, Action& action);

// Runs the command that `words` name. Returns the exit status.
int run_program(const ProgramText& text, AddCommands add_commands, int count, char** words);

}  // namespace kintsugi::tools
