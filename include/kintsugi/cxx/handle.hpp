// Part of kintsugi.hpp, which users include: handles and owners of objects of the C ABI.
#ifndef KINTSUGI_CXX_HANDLE_HPP
#define KINTSUGI_CXX_HANDLE_HPP

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kintsugi/cxx/types.hpp"

namespace kintsugi {

namespace detail {

// Returns the text that a describing function of the C ABI writes. Calls describe(buffer, capacity, &needed)
// until the text fits, since the text may grow between two calls.
template <class Describe>
std::string read_text(Describe describe) {
  std::size_t needed = 0;
  check(describe(nullptr, std::size_t{0}, &needed));
  std::string text;
  do {
    text.resize(needed + 1);
    check(describe(text.data(), text.size(), &needed));
  } while (needed > text.size());
  text.resize(std::strlen(text.c_str()));
  return text;
}

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const noexcept {
    destroy(object);
  }
};

template <class Pointer, auto destroy>
using Owner = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy<destroy>>;

}  // namespace detail

// ------------------------------------------------------------------ handle

// Settings, log sink and report of one caller. Only one thread may use a handle at a time. Move-only.
class Handle {
 public:
  using Log = std::function<void(LogLevel level, std::string_view message)>;

  Handle() {
    kintsugi_handle handle = nullptr;
    check(kintsugi_create(&handle));
    handle_.reset(handle);
  }

  // Sets a setting of settings() for all later calls with this handle. Error bad_setting: the name is
  // unknown, or the setting does not accept the value; the message lists the accepted values.
  void set(const std::string& name, const std::string& value) {
    check(kintsugi_set(native(), name.c_str(), value.c_str()));
  }
  // Unsets the setting. Its value then comes from the environment, the settings file or the default again.
  void unset(const std::string& name) { check(kintsugi_set(native(), name.c_str(), nullptr)); }

  // Passes the log lines that the setting "log" selects to `sink`. An empty function turns logging off.
  // Exceptions of the sink are ignored, since an exception must not cross the C ABI.
  void set_log(Log sink) {
    auto stored = sink ? std::make_unique<Log>(std::move(sink)) : nullptr;
    check(kintsugi_set_log(native(), stored ? &Handle::pass_on : nullptr, stored.get()));
    log_ = std::move(stored);
  }

  // Sets the stream, a cudaStream_t or CUstream, for products of device matrices whose options name no queue.
  // Calls then return when their work is enqueued; before, they return when C is complete.
  void set_stream(void* stream) { check(kintsugi_set_stream(native(), stream)); }

  // Returns the handle of the C ABI, which this object still owns.
  kintsugi_handle native() const noexcept { return handle_.get(); }

 private:
  static void pass_on(void* user, kintsugi_log_level level, const char* message) noexcept {
    try {
      (*static_cast<const Log*>(user))(static_cast<LogLevel>(level), message);
    } catch (...) {
    }
  }

  std::unique_ptr<Log> log_;  // declared before the handle, which points to it, so that it is destroyed later
  detail::Owner<kintsugi_handle, kintsugi_destroy> handle_;
};

}  // namespace kintsugi

#endif
