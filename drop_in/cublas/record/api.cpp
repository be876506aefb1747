// The exported function kintsugi_cublas_report().
#include <kintsugi/cublas.h>

#include <algorithm>
#include <exception>
#include <string>

#include "record.hpp"

extern "C" __attribute__((visibility("default"))) kintsugi_status kintsugi_cublas_report(char* buffer,
                                                                                         size_t capacity,
                                                                                         size_t* needed) {
  using namespace kintsugi::cublas;
  if (buffer == nullptr && capacity > 0) return KINTSUGI_INVALID_ARGUMENT;
  begin_to_record();
  try {
    const std::string text = current_report();
    if (needed != nullptr) *needed = text.size() + 1;
    if (capacity == 0) return KINTSUGI_SUCCESS;
    const std::size_t written = std::min(text.size(), capacity - 1);
    std::copy_n(text.data(), written, buffer);
    buffer[written] = '\0';
    return KINTSUGI_SUCCESS;
  } catch (const std::exception&) {
    return KINTSUGI_OUT_OF_MEMORY;
  }
}
