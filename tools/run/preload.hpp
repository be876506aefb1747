// The value of LD_PRELOAD for a drop-in library, and programs that it does not reach.
#pragma once

#include <string>

namespace kintsugi::tools {

// Returns the path of the drop-in, which is in the folder of libkintsugi. Fails, naming the flag, if it is
// not there.
std::string drop_in_library(const std::string& drop_in, const std::string& flag);

// Returns the path of the library for LD_AUDIT that belongs to the drop-in.
std::string audit_library(const std::string& drop_in, const std::string& flag);

// Returns the value of LD_PRELOAD: the drop-in of that name, such as kintsugi_blas, followed by the value in
// the environment. Fails with the flag in the message if there is no such library, or if its path has
// characters that LD_PRELOAD does not allow.
std::string preload_of(const std::string& drop_in, const std::string& flag);

// True if the program that execvp() would run, or the interpreter of that script, is an ELF file that has no
// dynamic linker: then no library takes the place of its own functions. False for files that cannot be read.
bool is_static_program(const std::string& program);

}  // namespace kintsugi::tools
