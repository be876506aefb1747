// Places that the compiler pass has recorded in a program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "place.hpp"

namespace kintsugi::drop_in {

// The position of a call in the source, as the compiler pass recorded it.
struct CompiledSource {
  std::string file;  // without folders; "" for an inline function
  std::uint32_t line = 0;
  std::string callee;  // "loop" for a loop nest that the pass proved to be a product

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

}  // namespace kintsugi::drop_in
