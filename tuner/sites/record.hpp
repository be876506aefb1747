// Record of a call site. The compiler pass writes it into the section `kintsugi_sites` of a program. A record
// contains no addresses, so its bytes are the same in the file and in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "level.hpp"

namespace kintsugi::sites {

inline constexpr const char* section_name = "kintsugi_sites";
inline constexpr std::size_t record_alignment = 8;

// A call site of the same source file whose result may be an operand of this site. callee, ordinal and
// function identify that site.
struct SiteInput {
  char operand = 'A';  // operand of this site: A, B or C
  std::string callee;
  std::uint32_t ordinal = 0;
  std::string function = {};  // symbol of the function that contains that site; "": the function of this site
  bool is_inline = false;     // true: that function is inline

  bool operator==(const SiteInput&) const = default;
};

struct SiteRecord {
  std::string file;  // source file without folders; "" for an inline function, which several files may define
  std::uint32_t path_hash = 0;  // hash of the source file's path, as given to the compiler
  std::string function;         // symbol
  std::string callee;           // symbol
  std::uint32_t ordinal = 0;    // among the function's calls of this callee, from 1
  std::uint32_t line = 0;       // 0: compiled without debug lines
  std::vector<SiteInput> inputs;
  // Level that the compiler has built into the program. nullopt: a sites file decides at run time.
  std::optional<Level> level = std::nullopt;
};

std::uint32_t hash_of(const std::string& path);

// Returns the name "file:function:callee#ordinal". `with_hash`: "~" and the path's hash follow the file. For
// an inline function "inline" replaces the file, since all files have the same function.
std::string site_name(const SiteRecord& record, bool with_hash = false);
std::string site_name(const SiteRecord& record, const SiteInput& input, bool with_hash = false);

// Returns the encoded record. Its length is a multiple of `record_alignment`.
std::string encode(const SiteRecord& record);

struct DecodedRecord {
  SiteRecord record;
  std::size_t bytes = 0;
};
// Decodes the record at `data`. Returns nullopt if the `bytes` bytes at `data` do not begin with a complete
// record of this version.
std::optional<DecodedRecord> decode(const char* data, std::size_t bytes);
// Decodes a record of a loaded program. The record's header tells its length.
std::optional<DecodedRecord> decode(const char* data);

}  // namespace kintsugi::sites
