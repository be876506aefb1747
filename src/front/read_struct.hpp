// Copies of structs of the C ABI that callers of this or another version have filled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/status.hpp"
#include "front/check.hpp"

namespace kintsugi::core {

// Sizes of the structs in version 0.1, which never change. Later versions append members. A struct that is
// shorter than the current one comes from an older caller; members that it lacks have their defaults.
constexpr std::size_t first_size(const kintsugi_problem*) { return 128; }
constexpr std::size_t first_size(const kintsugi_options*) { return 104; }
constexpr std::size_t first_size(const kintsugi_operands*) { return 80; }
constexpr std::size_t first_size(const kintsugi_calibration*) { return 40; }

// Returns a copy of the caller's struct. Members that an older, shorter struct lacks get their defaults. A
// longer struct comes from a newer caller; its additional bytes must be zero.
template <class Struct>
Struct read_struct(const Struct* given, const Struct& defaults, const char* name) {
  check_not_null(given, name);
  const std::size_t size = given->struct_size;
  if (size == sizeof(Struct)) return *given;
  check_struct_size(size, first_size(given), name);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) {
      fail(Status::not_supported,
           "{}: struct_size = {} and byte {} is set, which this version (size {}) does not know", name, size,
           i, sizeof(Struct));
    }
  }
  Struct result = defaults;
  std::memcpy(&result, given, std::min(size, sizeof(Struct)));
  return result;
}

}  // namespace kintsugi::core
