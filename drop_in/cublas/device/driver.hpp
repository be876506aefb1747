// Functions of the CUDA driver that the program has loaded; this library never loads one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kintsugi::cublas {

// Returns the number (CUdevice) of the device whose context is current in this thread; nothing if there is no
// driver or no current context. Makes no context.
std::optional<int> current_device();

// Returns the bytes of a device's memory; 0 if the driver does not tell.
std::int64_t memory_bytes(int device);

// True if the stream is being captured, or if the driver refuses to tell because another stream is.
bool is_captured(void* stream);

// Makes a pool of the device's memory that keeps up to `kept_bytes` of freed memory when the device
// synchronizes; nullptr if the driver makes none.
void* make_pool(int device, std::int64_t kept_bytes);
// Returns memory from the pool, 256-byte aligned, for work in the stream; nullptr if there is not enough.
void* allocate_from(void* pool, std::size_t bytes, void* stream);
// Frees memory of a pool after the work that the stream has now.
void free_in_stream(void* memory, void* stream);
// Gives the pool's free memory back to the device.
void trim(void* pool);

// Makes an event of the current context that records its time; nullptr if the driver makes none.
void* make_event();
// Enqueues the event; false if the driver refuses.
bool record_event(void* event, void* stream);
// Returns the seconds between two events; nothing as long as the device has not reached the second. Never
// waits.
std::optional<double> seconds_between(void* first, void* second);

// Enqueues that the memory is set to zero bytes; false if the driver refuses.
bool set_to_zero(void* memory, std::size_t bytes, void* stream);

// Rows of equal length in device memory.
struct DeviceRows {
  void* first;
  std::size_t pitch;  // bytes from row to row
  std::size_t bytes;  // of a row
  std::size_t count;
};

// Enqueues copies of `row` into all rows; false if the driver refuses, after which any of the rows may be
// overwritten. Each copy fills as many rows as are filled already, so that few copies are needed.
bool fill_rows(const void* row, const DeviceRows& rows, void* stream);

}  // namespace kintsugi::cublas
