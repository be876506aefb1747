// Functions in the symbol tables of a 64-bit ELF file.
#pragma once

#include <functional>
#include <set>
#include <string>

namespace kintsugi::tools {

struct ElfSymbols {
  std::set<std::string> exported;  // defined, and found by other objects
  std::set<std::string> needed;    // undefined
  std::set<std::string> hidden;    // defined for the object's own calls alone; empty in a stripped file
  bool is_program = false;         // has a dynamic linker, or needs none
};

// Returns those functions of the file that are wanted; none for files that cannot be read or are no 64-bit
// ELF files.
ElfSymbols read_elf_symbols(const std::string& file, const std::function<bool(const std::string&)>& wanted);

}  // namespace kintsugi::tools
