// Version of this library, which CMake takes from the public header.
#pragma once

namespace kintsugi::core {

inline constexpr const char* library_version = KINTSUGI_LIBRARY_VERSION;

}  // namespace kintsugi::core
