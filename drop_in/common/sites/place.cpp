#include "place.hpp"

#include <dlfcn.h>

#include <cinttypes>
#include <cstdio>

#include "function_name.hpp"

namespace kintsugi::drop_in {

namespace {

std::string hexadecimal(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, number);
  return text;
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

std::string without_folders(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace kintsugi::drop_in
