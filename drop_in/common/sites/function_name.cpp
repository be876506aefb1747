#include "function_name.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <exception>
#include <fstream>
#include <vector>

namespace kintsugi::drop_in {

namespace {

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using SymbolRecord = ElfW(Sym);

// Reads `count` elements at an offset of the file; fewer if the file is shorter. Reads nothing if they would
// take more than 1 GiB.
template <class T>
std::vector<T> read(std::ifstream& file, std::uint64_t offset, std::uint64_t count) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
  if (count > most_bytes / sizeof(T)) return {};
  std::vector<T> elements(static_cast<std::size_t>(count));
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(elements.data()), static_cast<std::streamsize>(count * sizeof(T)));
  elements.resize(static_cast<std::size_t>(file.gcount()) / sizeof(T));
  return elements;
}

bool is_elf(const std::vector<Header>& header) {
  return header.size() == 1 && std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) == 0 &&
         header[0].e_shentsize == sizeof(Section);
}

// Returns the name of the function symbol of `table` that covers a virtual address of the file.
std::string function_covering(std::ifstream& file, const Section& table, const Section& names,
                              std::uint64_t address) {
  for (const SymbolRecord& symbol :
       read<SymbolRecord>(file, table.sh_offset, table.sh_size / sizeof(SymbolRecord))) {
    const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
    if (!is_function || address < symbol.st_value || address - symbol.st_value >= symbol.st_size) continue;
    if (symbol.st_name >= names.sh_size) continue;
    constexpr std::uint64_t longest_name = 4096;
    const auto text = read<char>(file, names.sh_offset + symbol.st_name,
                                 std::min<std::uint64_t>(names.sh_size - symbol.st_name, longest_name));
    return std::string(text.data(), ::strnlen(text.data(), text.size()));
  }
  return {};
}

// Returns the name of the function that covers an address, given as in the file's own tables.
std::string name_in(const char* path, std::uint64_t address) {
  std::ifstream file(path, std::ios::binary);
  const auto header = read<Header>(file, 0, 1);
  if (!is_elf(header)) return {};
  const auto sections = read<Section>(file, header[0].e_shoff, header[0].e_shnum);
  for (const Section& section : sections)
    if (section.sh_type == SHT_SYMTAB && section.sh_link < sections.size())
      return function_covering(file, section, sections[section.sh_link], address);
  return {};
}

}  // namespace

std::string function_in_file(const void* address) try {
  Dl_info info{};
  void* extra = nullptr;
  if (::dladdr1(address, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return {};
  const auto* const map = static_cast<const link_map*>(extra);
  // The name of the program itself is empty here. Its argv[0] is no alternative: it may be relative to
  // another folder.
  const char* const path = map->l_name != nullptr && map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
  return name_in(path, reinterpret_cast<std::uintptr_t>(address) - map->l_addr);
} catch (const std::exception&) {  // No memory.
  return {};
}

}  // namespace kintsugi::drop_in
