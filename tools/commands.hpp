// The commands. Each function adds one command to the program. The command sets `action` when the user
// chooses it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

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

}  // namespace kintsugi::tools
