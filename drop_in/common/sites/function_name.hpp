// Finds names of functions that a program does not export, in the symbol table of its file.
#pragma once

#include <string>

namespace kintsugi::drop_in {

// Returns the name of the function that covers an address in memory, from the table .symtab of the file; ""
// if the file was stripped or cannot be read.
std::string function_in_file(const void* address);

}  // namespace kintsugi::drop_in
