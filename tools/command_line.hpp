// Command-line code that all commands use: checks of values, messages about unknown words, help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands.hpp"

namespace kintsugi::tools {

// Returns a check of an option: the value must be one of `names`. The message suggests the nearest of them.
CLI::Validator one_of(std::vector<std::string> names);
// Like one_of(), but ignores case. The value is replaced by the listed name.
CLI::Validator one_of_any_case(std::vector<std::string> names);

// Returns a check of an option: the value must be a whole number of at least `min`, and at most `max` if
// there is a `max`.
CLI::Validator whole_number(std::int64_t min);
CLI::Validator whole_number(std::int64_t min, std::int64_t max);

// Returns CLI11's message in the program's form, `<flag>: <what>`.
std::string command_line_message(const CLI::App& program, const CLI::ParseError& error);

// Adds the command `help COMMAND`, which prints the same as `COMMAND --help`. Comes after all others.
void add_help(CLI::App& program, Action& action);

}  // namespace kintsugi::tools
