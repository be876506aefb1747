#include "place.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "tuner/sites/table.hpp"

namespace kintsugi::drop_in {

namespace {

std::string without_folders(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string hexadecimal(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, number);
  return text;
}

// The name of the program itself is empty here. Its argv[0] is no alternative: it may be relative to another
// folder.
const char* path_of(const link_map& file) {
  return file.l_name != nullptr && file.l_name[0] != '\0' ? file.l_name : "/proc/self/exe";
}

// ------------------------------------------------------------------ functions that a file does not export

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

// Returns the name of the function that covers an address in memory, from the table .symtab of the file; ""
// if the file was stripped or cannot be read.
std::string function_in_file(const void* address) try {
  Dl_info info{};
  void* extra = nullptr;
  if (::dladdr1(address, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return {};
  const auto& file = *static_cast<const link_map*>(extra);
  return name_in(path_of(file), reinterpret_cast<std::uintptr_t>(address) - file.l_addr);
} catch (const std::exception&) {  // No memory.
  return {};
}

// ------------------------------------------------------------------ records of the compiler pass

// Returns the table of call sites of a loaded file; an empty table if the file cannot be read. Tables are
// kept by the file's base address.
const std::vector<sites::TableSite>& table_of(const link_map& file) {
  static auto* const tables = new std::map<std::uint64_t, std::vector<sites::TableSite>>;
  const auto [place, is_new] = tables->try_emplace(file.l_addr);
  if (!is_new) return place->second;
  try {
    place->second = sites::read_table(path_of(file));
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

Place place_of(const void* return_address) {
  Place place;
  // The call instruction ends one byte before the return address. The return address itself may belong to the
  // next function.
  const char* const inside = static_cast<const char*>(return_address) - 1;
  Dl_info info{};
  if (::dladdr(inside, &info) != 0) {
    place.module = without_folders(info.dli_fname != nullptr ? info.dli_fname : "");
    place.offset = static_cast<std::uint64_t>(static_cast<const char*>(return_address) -
                                              static_cast<char*>(info.dli_fbase));
    place.function = info.dli_sname != nullptr ? info.dli_sname : function_in_file(inside);
  } else {  // Code that was generated at run time has no module.
    place.offset = reinterpret_cast<std::uintptr_t>(return_address);
  }
  place.name = (place.module.empty() ? "?" : place.module) + ":" +
               (place.function.empty() ? "?" : place.function) + "@" + hexadecimal(place.offset);
  return place;
}

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
  for (const sites::SiteInput& input : decoded->record.inputs)
    found.source.inputs.push_back({input.operand, sites::site_name(decoded->record, input, with_hash)});
  return found;
}

// ------------------------------------------------------------------ call stacks

namespace {

constexpr char separator[] = " < ";

struct Unwinding {
  const void* first;
  std::size_t most;
  CallStack stack;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* data) {
  Unwinding& unwinding = *static_cast<Unwinding*>(data);
  const auto* const address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  // The frames of this library come before the first one that is wanted.
  if (unwinding.stack.count == 0 && address != unwinding.first) return _URC_NO_REASON;
  if (address == nullptr) return _URC_END_OF_STACK;
  unwinding.stack.frames[unwinding.stack.count++] = address;
  return unwinding.stack.count < unwinding.most ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

bool CallStack::operator==(const CallStack& other) const {
  return count == other.count && std::equal(frames.begin(), frames.begin() + count, other.frames.begin());
}

std::size_t CallStackHash::operator()(const CallStack& stack) const {
  std::uint64_t hash = stack.count;
  for (std::size_t frame = 0; frame < stack.count; ++frame) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(stack.frames[frame])) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return static_cast<std::size_t>(hash);
}

CallStack read_stack(const void* return_address, std::size_t most) {
  Unwinding unwinding{
      .first = return_address, .most = std::clamp<std::size_t>(most, 1, CallStack::most_frames), .stack = {}};
  if (unwinding.most > 1) _Unwind_Backtrace(visit, &unwinding);
  if (unwinding.stack.count == 0) {
    unwinding.stack.frames[0] = return_address;
    unwinding.stack.count = 1;
  }
  return unwinding.stack;
}

std::vector<Place> callers_of(const CallStack& stack) {
  std::vector<Place> callers;
  for (std::size_t frame = 1; frame < stack.count; ++frame) {
    callers.push_back(place_of(stack.frames[frame]));
    if (callers.back().function == "main") break;
  }
  return callers;
}

std::string name_with_callers(const std::string& name, const std::vector<Place>& callers) {
  std::string whole = name;
  for (const Place& caller : callers) whole += separator + caller.name;
  return whole;
}

nlohmann::ordered_json callers_json(const std::vector<Place>& callers) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Place& caller : callers)
    json.push_back({{"ordinal", json.size() + 2},
                    {"module", caller.module},
                    {"function", caller.function},
                    {"offset", caller.offset}});
  return json;
}

nlohmann::ordered_json may_read_json(const std::optional<CompiledSource>& source) {
  if (!source) return nullptr;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const StaticInput& input : source->inputs)
    json.push_back({{"operand", std::string(1, input.operand)}, {"site", input.site}});
  return json;
}

std::size_t frames_in(const std::string& name) {
  std::size_t count = 1;
  for (auto at = name.find(separator); at != std::string::npos; at = name.find(separator, at + 1)) ++count;
  return count;
}

bool drop_outermost_frame(std::string& name) {
  const auto at = name.rfind(separator);
  if (at == std::string::npos) return false;
  name.erase(at);
  return true;
}

}  // namespace kintsugi::drop_in
