// Names the places that call a drop-in, by return address or by the record of the compiler pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kintsugi::drop_in {

struct Place {
  std::string name;      // "module:function@0xoffset"
  std::string module;    // file name, without folders, of the program or library that calls
  std::string function;  // symbol that covers the call; "" if the file has none
  std::uint64_t offset =
      0;  // offset of the return address in the module; without a module the address itself
};

// Returns the place of a call that returns to `return_address`.
Place place_of(const void* return_address);

// A site whose result may be an operand of another one, by the compiler's data flow.
struct StaticInput {
  char operand = 'A';
  std::string site;  // name
};

// The position of a call in the source, as the compiler pass recorded it.
struct CompiledSource {
  std::string file;  // without folders; "" for an inline function
  std::uint32_t line = 0;
  std::string callee;  // "loop" for a loop nest that the pass proved to be a product
  std::vector<StaticInput> inputs = {};

  bool is_loop() const { return callee == "loop"; }
};

// A place with the name "file:function:callee#ordinal" and the offset of the record in the module.
struct CompiledPlace {
  Place place;
  CompiledSource source;
};

// Returns the place of a record of the compiler pass; nullopt if `record` is not such a record. Not
// thread-safe.
std::optional<CompiledPlace> compiled_place_of(const void* record);

// ------------------------------------------------------------------ call stacks

// Return addresses of a call and of its callers, the innermost first. They tell calls apart that come from
// one place of a library.
struct CallStack {
  static constexpr std::size_t most_frames = 64;

  std::array<const void*, most_frames> frames = {};
  std::size_t count = 0;

  bool operator==(const CallStack& other) const;
};

struct CallStackHash {
  std::size_t operator()(const CallStack& stack) const;
};

// Reads up to `most` frames of this thread's stack, beginning with the one that returns to `return_address`,
// by the unwind tables of the loaded files. Ends before code that has no tables. Returns `return_address`
// alone if the stack lacks it.
CallStack read_stack(const void* return_address, std::size_t most);

// Returns the places of a call's callers: frames 1 and beyond, up to the function main.
std::vector<Place> callers_of(const CallStack& stack);

// Returns the member `may_read` of a site in the reports; null without a record of the compiler pass.
nlohmann::ordered_json may_read_json(const std::optional<CompiledSource>& source);

// Returns the name of a site with its callers: the names of all frames with " < " between.
std::string name_with_callers(const std::string& name, const std::vector<Place>& callers);

// Returns the member `callers` of a site in the reports.
nlohmann::ordered_json callers_json(const std::vector<Place>& callers);

// Number of frames in the name of a site, at least 1.
std::size_t frames_in(const std::string& name);

// Drops the outermost frame of a site's name. Returns false if only one frame is left.
bool drop_outermost_frame(std::string& name);

}  // namespace kintsugi::drop_in
