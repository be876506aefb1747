// The laboratory's commands. Each function adds one, as those of tools/program.hpp do.
#pragma once

#include "tools/program.hpp"

namespace kintsugi::tools {

void add_accuracy(CLI::App& program, Action& action);
void add_analyse(CLI::App& program, Action& action);
void add_predict(CLI::App& program, Action& action);
void add_report(CLI::App& program, Action& action);
void add_reproduce(CLI::App& program, Action& action);

}  // namespace kintsugi::tools
