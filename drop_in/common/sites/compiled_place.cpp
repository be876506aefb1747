#include "compiled_place.hpp"

#include <dlfcn.h>
#include <link.h>

#include <map>
#include <vector>

#include "tuner/sites/table.hpp"

namespace kintsugi::drop_in {

namespace {

// Returns the table of call sites of a loaded file; an empty table if the file cannot be read. Tables are
// kept by the file's base address.
const std::vector<sites::TableSite>& table_of(const link_map& file) {
  static auto* const tables = new std::map<std::uint64_t, std::vector<sites::TableSite>>;
  const auto [place, is_new] = tables->try_emplace(file.l_addr);
  if (!is_new) return place->second;
  // The name of the program itself is empty here.
  const bool has_name = file.l_name != nullptr && file.l_name[0] != '\0';
  try {
    place->second = sites::read_table(has_name ? file.l_name : "/proc/self/exe");
  } catch (const sites::TableError&) {  // Names of sites then lack the hashes of paths.
  }
  return place->second;
}

bool has_hash(const link_map& file, std::uint64_t address) {
  for (const sites::TableSite& site : table_of(file))
    if (site.address == address) return site.has_hash;
  return false;
}

}  // namespace

std::optional<CompiledPlace> compiled_place_of(const void* record) {
  const auto decoded = sites::decode(static_cast<const char*>(record));
  if (!decoded) return std::nullopt;
  CompiledPlace found;
  Dl_info info{};
  void* extra = nullptr;
  bool with_hash = false;
  if (::dladdr1(record, &info, &extra, RTLD_DL_LINKMAP) != 0 && extra != nullptr) {
    found.place.module = without_folders(info.dli_fname != nullptr ? info.dli_fname : "");
    found.place.offset =
        static_cast<std::uint64_t>(static_cast<const char*>(record) - static_cast<char*>(info.dli_fbase));
    const auto& file = *static_cast<const link_map*>(extra);
    with_hash = has_hash(file, reinterpret_cast<std::uintptr_t>(record) - file.l_addr);
  }
  found.place.name = sites::site_name(decoded->record, with_hash);
  found.place.function = decoded->record.function;
  found.source = {decoded->record.file, decoded->record.line, decoded->record.callee};
  return found;
}

}  // namespace kintsugi::drop_in
