// Functions of the CUDA driver that the program has loaded; this library never loads one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kintsugi::cublas {

// Number (CUdevice) of the device whose context is current in this thread; nothing if there is no driver or
// no current context. Makes no context.
std::optional<int> current_device();

// Bytes of a device's memory; 0 if the driver does not tell.
std::int64_t memory_bytes(int device);

// True if the stream is being captured, or if the driver refuses to tell because another stream is.
bool is_captured(void* stream);

// A pool of the device's memory that keeps up to `kept` free bytes across synchronizations; nullptr where the
// driver makes none.
void* make_pool(int device, std::int64_t kept);
// Memory from the pool, 256-byte aligned, for work in the stream; nullptr where none is to be had.
void* allocate_from(void* pool, std::size_t bytes, void* stream);
void free_in_stream(void* memory, void* stream);
// Gives the pool's free memory back to the device.
void trim(void* pool);

// An event of the current context that takes times; nullptr where the driver makes none.
void* make_event();
// False if the driver refuses.
bool record_event(void* event, void* stream);
// Seconds between two events; nothing as long as the second one is not reached. Never waits.
std::optional<double> seconds_between(void* first, void* second);

// Enqueues zero bytes; false if the driver refuses.
bool set_to_zero(void* memory, std::size_t bytes, void* stream);

// Rows of equal length in device memory.
struct DeviceRows {
  void* first;
  std::size_t pitch;  // bytes from row to row
  std::size_t bytes;  // of a row
  std::size_t count;
};

// Enqueues copies of `row` into all rows; false if the driver refuses, after which any of the rows may be
// overwritten. Every copy doubles the number of filled rows, so that there are few.
bool fill_rows(const void* row, const DeviceRows& rows, void* stream);

}  // namespace kintsugi::cublas
