#include "call_stack.hpp"

#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace kintsugi::drop_in {

namespace {

constexpr char separator[] = " < ";

struct Unwinding {
  const void* first;
  std::size_t most;
  CallStack stack;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* data) {
  Unwinding& unwinding = *static_cast<Unwinding*>(data);
  const auto* const address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  // The frames of this library come before the first one that is wanted.
  if (unwinding.stack.count == 0 && address != unwinding.first) return _URC_NO_REASON;
  if (address == nullptr) return _URC_END_OF_STACK;
  unwinding.stack.frames[unwinding.stack.count++] = address;
  return unwinding.stack.count < unwinding.most ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

bool CallStack::operator==(const CallStack& other) const {
  return count == other.count && std::equal(frames.begin(), frames.begin() + count, other.frames.begin());
}

std::size_t CallStackHash::operator()(const CallStack& stack) const {
  std::uint64_t hash = stack.count;
  for (std::size_t frame = 0; frame < stack.count; ++frame) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(stack.frames[frame])) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return static_cast<std::size_t>(hash);
}

CallStack read_stack(const void* return_address, std::size_t most) {
  Unwinding unwinding{
      .first = return_address, .most = std::clamp<std::size_t>(most, 1, CallStack::most_frames), .stack = {}};
  if (unwinding.most > 1) _Unwind_Backtrace(visit, &unwinding);
  if (unwinding.stack.count == 0) {
    unwinding.stack.frames[0] = return_address;
    unwinding.stack.count = 1;
  }
  return unwinding.stack;
}

std::vector<Place> callers_of(const CallStack& stack) {
  std::vector<Place> callers;
  for (std::size_t frame = 1; frame < stack.count; ++frame) {
    callers.push_back(place_of(stack.frames[frame]));
    if (callers.back().function == "main") break;
  }
  return callers;
}

std::string name_with_callers(const std::string& name, const std::vector<Place>& callers) {
  std::string whole = name;
  for (const Place& caller : callers) whole += separator + caller.name;
  return whole;
}

nlohmann::ordered_json callers_json(const std::vector<Place>& callers) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Place& caller : callers)
    json.push_back({{"ordinal", json.size() + 2},
                    {"module", caller.module},
                    {"function", caller.function},
                    {"offset", caller.offset}});
  return json;
}

std::size_t frames_in(const std::string& name) {
  std::size_t count = 1;
  for (auto at = name.find(separator); at != std::string::npos; at = name.find(separator, at + 1)) ++count;
  return count;
}

bool drop_outermost_frame(std::string& name) {
  const auto at = name.rfind(separator);
  if (at == std::string::npos) return false;
  name.erase(at);
  return true;
}

}  // namespace kintsugi::drop_in
