#include "elf_symbols.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

namespace kintsugi::tools {

namespace {

// Returns `count` items of the file from an offset on; fewer if the file ends.
template <class Item>
std::vector<Item> read_items(std::ifstream& file, std::uint64_t offset, std::uint64_t count) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30;  // of a table; larger ones are damaged
  if (count > max_bytes / sizeof(Item)) return {};
  std::vector<Item> items(count);
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(items.data()), static_cast<std::streamsize>(count * sizeof(Item)));
  items.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)) / sizeof(Item));
  return items;
}

bool is_exported(const Elf64_Sym& symbol) {
  const auto binding = ELF64_ST_BIND(symbol.st_info);
  const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return binding != STB_LOCAL && (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

}  // namespace

ElfSymbols read_elf_symbols(const std::string& path, const std::function<bool(const std::string&)>& wanted) {
  ElfSymbols result;
  std::ifstream file(path, std::ios::binary);
  const auto heads = read_items<Elf64_Ehdr>(file, 0, 1);
  if (heads.empty() || std::memcmp(heads[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      heads[0].e_ident[EI_CLASS] != ELFCLASS64)
    return result;
  const auto parts = read_items<Elf64_Phdr>(file, heads[0].e_phoff, heads[0].e_phnum);
  result.is_program =
      heads[0].e_type == ET_EXEC ||
      std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.p_type == PT_INTERP; });
  const auto sections = read_items<Elf64_Shdr>(file, heads[0].e_shoff, heads[0].e_shnum);
  for (const Elf64_Shdr& section : sections) {
    const bool is_dynamic = section.sh_type == SHT_DYNSYM;
    if ((!is_dynamic && section.sh_type != SHT_SYMTAB) || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    auto texts = read_items<char>(file, strings.sh_offset, strings.sh_size);
    texts.push_back('\0');
    for (const auto& symbol :
         read_items<Elf64_Sym>(file, section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
      if (symbol.st_name >= texts.size()) continue;
      const std::string name = texts.data() + symbol.st_name;
      if (!wanted(name)) continue;
      if (symbol.st_shndx == SHN_UNDEF) {
        if (is_dynamic) result.needed.insert(name);
      } else if (const auto type = ELF64_ST_TYPE(symbol.st_info); type == STT_FUNC || type == STT_GNU_IFUNC) {
        (is_dynamic && is_exported(symbol) ? result.exported : result.hidden).insert(name);
      }
    }
  }
  for (const std::string& name : result.exported) result.hidden.erase(name);  // the other table has them, too
  return result;
}

}  // namespace kintsugi::tools
