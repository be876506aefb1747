// Log lines, which the library passes to the caller's sink and never prints.
#pragma once

#include <cstdint>
#include <string>

namespace kintsugi::core {

enum class LogLevel : std::int32_t { off = 0, error = 1, info = 2, debug = 3 };

struct LogSink {
  void (*function)(void* user, LogLevel level, const char* message) = nullptr;
  void* user = nullptr;
  LogLevel level = LogLevel::off;

  void write(LogLevel line_level, const std::string& message) const {
    if (function != nullptr && line_level <= level) function(user, line_level, message.c_str());
  }
};

}  // namespace kintsugi::core
