#include "base/status.hpp"

namespace kintsugi::core {

namespace {
thread_local std::string last_error_message;
}

const char* status_name(Status status) {
  switch (status) {
    case Status::success: return "success";
    case Status::invalid_argument: return "invalid_argument";
    case Status::not_supported: return "not_supported";
    case Status::engine_unavailable: return "engine_unavailable";
    case Status::out_of_memory: return "out_of_memory";
    case Status::workspace_too_small: return "workspace_too_small";
    case Status::contract_unreachable: return "contract_unreachable";
    case Status::bad_setting: return "bad_setting";
    case Status::device_error: return "device_error";
    case Status::internal: return "internal";
  }
  return "unknown";
}

void set_last_error(const std::string& message) { last_error_message = message; }

const char* last_error() { return last_error_message.c_str(); }

}  // namespace kintsugi::core
