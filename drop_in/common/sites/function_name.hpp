// Names of functions that a program does not export, from the symbol table of its file.
#pragma once

#include <string>

namespace kintsugi::drop_in {

// Returns the function that covers a loaded address, by the table .symtab of its file; "" if the file was
// stripped or cannot be read.
std::string function_in_file(const void* address);

}  // namespace kintsugi::drop_in
