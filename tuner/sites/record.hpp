// Record of a call site, as the compiler pass writes it into the section `kintsugi_sites` of a program. It
// has no addresses, so that it is the same in the file and in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kintsugi::sites {

inline constexpr const char* section_name = "kintsugi_sites";
inline constexpr std::size_t record_alignment = 8;

// Operand whose memory may hold the result of another call site of the same source file.
struct SiteInput {
  char operand = 'A';  // A, B or C
  std::string callee;
  std::uint32_t ordinal = 0;  // number of the call that computes C
  std::string function = {};  // symbol of the function with that call; "": the record's own
  bool is_inline = false;     // that function is inline

  bool operator==(const SiteInput&) const = default;
};

struct SiteRecord {
  std::string file;  // source file without folders; "" for an inline function, which several files may define
  std::uint32_t path_hash = 0;  // hash of the source file's path as the compiler got it
  std::string function;         // symbol
  std::string callee;           // symbol
  std::uint32_t ordinal = 0;    // among the function's calls of this callee, from 1
  std::uint32_t line = 0;       // 0: compiled without debug lines
  std::vector<SiteInput> inputs;
};

std::uint32_t hash_of(const std::string& path);

// file:function:callee#ordinal, with the path's hash behind the file where `with_hash`. "inline" stands for
// the file of an inline function, whose symbol is the same in all files.
std::string site_name(const SiteRecord& record, bool with_hash = false);
std::string site_name(const SiteRecord& record, const SiteInput& input, bool with_hash = false);

// Returns the bytes of a record, a multiple of `record_alignment`.
std::string encode(const SiteRecord& record);

struct DecodedRecord {
  SiteRecord record;
  std::size_t bytes = 0;
};
// Decodes the record at `data`; nullopt if the `bytes` bytes there do not begin with a whole record of this
// version.
std::optional<DecodedRecord> decode(const char* data, std::size_t bytes);
// A record that lies in memory.
std::optional<DecodedRecord> decode(const char* data);

}  // namespace kintsugi::sites
