// What the command line shares between the commands: checks of values, messages about words that are not
// known, help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands.hpp"

namespace kintsugi::tools {

// A check of an option: the value is one of `names`. The message has the nearest of them.
CLI::Validator one_of(std::vector<std::string> names);
// The same where capital and small letters mean the same; the value becomes the name as it is listed.
CLI::Validator one_of_any_case(std::vector<std::string> names);

// A check of an option: the value is a whole number in least ... most; without `most` from `least` up.
CLI::Validator whole_number(std::int64_t least);
CLI::Validator whole_number(std::int64_t least, std::int64_t most);

// CLI11's message in the program's form, `<flag>: <what>`.
std::string command_line_message(const CLI::App& program, const CLI::ParseError& error);

// `kintsugi help COMMAND` prints what `kintsugi COMMAND --help` does.
void add_help(CLI::App& program, Action& action);

}  // namespace kintsugi::tools
