// How much a test draws: under the sanitizers, which are ten times slower, a part of it.
#pragma once

namespace kintsugi::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool thorough = false;
#else
inline constexpr bool thorough = true;
#endif

}  // namespace kintsugi::test
