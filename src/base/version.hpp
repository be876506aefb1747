// The version of this library; CMake takes it from the public header.
#pragma once

namespace kintsugi::core {

inline constexpr const char* library_version = KINTSUGI_LIBRARY_VERSION;

}  // namespace kintsugi::core
