#include "table.hpp"

#include <elf.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

namespace kintsugi::sites {

namespace {

std::string bytes_at(std::ifstream& file, std::uint64_t offset, std::uint64_t bytes) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
  if (bytes > most_bytes) throw TableError("a section of " + std::to_string(bytes) + " bytes is no table");
  std::string read(static_cast<std::size_t>(bytes), '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(read.data(), static_cast<std::streamsize>(bytes));
  read.resize(static_cast<std::size_t>(file.gcount()));
  return read;
}

Elf64_Ehdr header_of(std::ifstream& file) {
  Elf64_Ehdr header{};
  const std::string bytes = bytes_at(file, 0, sizeof(header));
  if (bytes.size() < sizeof(header) || bytes.compare(0, SELFMAG, ELFMAG) != 0 ||
      bytes[EI_CLASS] != ELFCLASS64)
    throw TableError("is no 64-bit ELF program or library");
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

std::vector<Elf64_Shdr> sections_of(std::ifstream& file, const Elf64_Ehdr& header) {
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return {};
  const std::string bytes = bytes_at(file, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
  std::vector<Elf64_Shdr> sections(bytes.size() / sizeof(Elf64_Shdr));
  if (!sections.empty()) std::memcpy(sections.data(), bytes.data(), sections.size() * sizeof(Elf64_Shdr));
  return sections;
}

void add_records(std::vector<TableSite>& sites, const std::string& bytes, std::uint64_t address) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto decoded = decode(bytes.data() + at, bytes.size() - at);
    if (!decoded)
      throw TableError("the section " + std::string(section_name) +
                       " has no record of this version at byte " + std::to_string(at));
    sites.push_back({.name = site_name(decoded->record), .address = address + at, .record = decoded->record});
    at += decoded->bytes;
  }
}

void tell_files_apart(std::vector<TableSite>& sites) {
  std::map<std::string, std::set<std::uint32_t>> paths;
  for (const TableSite& site : sites) paths[site.record.file].insert(site.record.path_hash);
  for (TableSite& site : sites) {
    site.has_hash = !site.record.file.empty() && paths[site.record.file].size() > 1;
    site.name = site_name(site.record, site.has_hash);
  }
}

}  // namespace

std::vector<TableSite> read_table(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.good()) throw TableError(std::string("cannot be read: ") + std::strerror(errno));
  const Elf64_Ehdr header = header_of(file);
  const std::vector<Elf64_Shdr> sections = sections_of(file, header);
  std::vector<TableSite> sites;
  if (header.e_shstrndx >= sections.size()) return sites;
  const Elf64_Shdr& name_section = sections[header.e_shstrndx];
  const std::string names = bytes_at(file, name_section.sh_offset, name_section.sh_size);
  for (const Elf64_Shdr& section : sections)
    if (section.sh_name < names.size() && std::strcmp(names.c_str() + section.sh_name, section_name) == 0)
      add_records(sites, bytes_at(file, section.sh_offset, section.sh_size), section.sh_addr);
  tell_files_apart(sites);
  return sites;
}

}  // namespace kintsugi::sites
