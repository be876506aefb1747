// Runs programs, with a drop-in library or without it.
#pragma once

#include <string>
#include <vector>

namespace kintsugi::tools {

// Returns the path of the drop-in of that name, such as kintsugi_blas, or of its library for LD_AUDIT. Fails
// with the flag in the message if there is none.
std::string drop_in_library(const std::string& drop_in, const std::string& flag);
std::string audit_library(const std::string& drop_in, const std::string& flag);

// Returns the value of LD_PRELOAD: the drop-in of that name, such as kintsugi_blas, followed by the value in
// the environment. Fails with the flag in the message if there is no such library, or if its path has
// characters that LD_PRELOAD does not allow.
std::string preload_of(const std::string& drop_in, const std::string& flag);

// Returns the file that execvp() runs; "" if there is none.
std::string file_of_program(const std::string& program);

// Returns the words as exec functions need them: with a null pointer at the end. The words must outlive it.
std::vector<char*> pointers_to(const std::vector<std::string>& words);

// Runs a command without a shell, with an empty input. stdout and stderr go to the file `output`. Returns the
// exit status, or 128 plus the number of the signal that ended it. Throws std::system_error if it cannot be
// run.
int run_command(const std::vector<std::string>& words, char* const* environment, const std::string& output);

}  // namespace kintsugi::tools
