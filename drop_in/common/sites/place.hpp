// Names the places that call a drop-in, by return address.
#pragma once

#include <cstdint>
#include <string>

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

std::string without_folders(const std::string& path);

}  // namespace kintsugi::drop_in
