#include "run/preload.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

std::string drop_in_library(const std::string& drop_in, const std::string& flag) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&kintsugi_version), &info) == 0 || info.dli_fname == nullptr)
    fail(flag, "the folder of libkintsugi is not known");
  const auto folder = std::filesystem::canonical(info.dli_fname).parent_path();
  const auto library = folder / fmt::format("lib{}.so.{}", drop_in, KINTSUGI_VERSION_MAJOR);
  if (!std::filesystem::exists(library))
    fail(flag, "there is no {}; it is built with -DKINTSUGI_DROP_IN=ON", library.string());
  return library.string();
}

std::string audit_library(const std::string& drop_in, const std::string& flag) {
  const std::filesystem::path library = drop_in_library(drop_in, flag);
  return (library.parent_path() / fmt::format("lib{}_audit.so", drop_in)).string();
}

// Refuses paths with spaces and colons. These characters separate names in LD_PRELOAD and cannot be quoted
// there.
std::string preload_of(const std::string& drop_in, const std::string& flag) {
  const std::string library = drop_in_library(drop_in, flag);
  if (library.find_first_of(" :") != std::string::npos)
    fail(flag, "the dynamic linker takes no space and no colon in LD_PRELOAD: \"{}\" has one", library);
  const char* before = std::getenv("LD_PRELOAD");
  return before == nullptr || *before == '\0' ? library : library + ":" + before;
}

namespace {

// Returns the file that execvp() runs; "" if there is none.
std::string file_of_program(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file)) return file;
  }
  return {};
}

// Returns the program that the first line of a script names; for `#!/usr/bin/env NAME` NAME.
std::string interpreter_of(std::ifstream& script) {
  std::string line, program, argument;
  std::getline(script, line);
  std::istringstream words(line.substr(2));
  words >> program >> argument;
  return program.ends_with("/env") && !argument.empty() && argument[0] != '-' ? argument : program;
}

// True if no program header of a 64-bit ELF file names a dynamic linker.
bool lacks_dynamic_linker(std::ifstream& file) {
  Elf64_Ehdr head{};
  file.read(reinterpret_cast<char*>(&head), sizeof head);
  if (!file || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  std::vector<Elf64_Phdr> parts(head.e_phnum);
  file.seekg(static_cast<std::streamoff>(head.e_phoff));
  file.read(reinterpret_cast<char*>(parts.data()),
            static_cast<std::streamsize>(parts.size() * sizeof(Elf64_Phdr)));
  if (!file || head.e_phentsize != sizeof(Elf64_Phdr)) return false;
  for (const Elf64_Phdr& part : parts)
    if (part.p_type == PT_INTERP) return false;
  return true;
}

}  // namespace

bool is_static_program(const std::string& program) {
  std::ifstream file(file_of_program(program), std::ios::binary);
  if (file.get() != '#' || file.get() != '!') {
    file.clear();
    file.seekg(0);
    return lacks_dynamic_linker(file);
  }
  file.seekg(0);
  std::ifstream interpreter(file_of_program(interpreter_of(file)), std::ios::binary);
  return lacks_dynamic_linker(interpreter);
}

}  // namespace kintsugi::tools
