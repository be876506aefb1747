// A program with commands: reads the command line, runs the command, and reports every error as one line.
//
// Exit status: 0 success. 2: an error that the user can correct; a line on stderr describes it. 1: an error
// in the program, or a result that exceeds a bound or the requested accuracy.
#pragma once

#include <string>

#include "commands.hpp"

namespace kintsugi::tools {

struct ProgramText {
  std::string name;
  std::string description;
  std::string footer;  // examples, before what all programs say of help and exit status
};

using AddCommands = void (*)(CLI::App& program, Action& action);

// Runs the command that `words` name. Returns the exit status.
int run_program(const ProgramText& text, AddCommands add_commands, int count, char** words);

}  // namespace kintsugi::tools
