// Functions of the CUDA driver that the program has loaded. This library never loads a driver.
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

// True if the stream is being captured. Also true if the driver does not answer: the driver refuses an answer
// while another stream is being captured.
bool is_captured(void* stream);

// Makes a memory pool of the device. The pool keeps up to `kept_bytes` of freed memory when the device
// synchronizes. Returns nullptr if the driver makes no pool.
void* make_pool(int device, std::int64_t kept_bytes);
// Returns memory from the pool, 256-byte aligned, for work in the stream; nullptr if there is not enough.
void* allocate_from(void* pool, std::size_t bytes, void* stream);
// Frees memory of a pool as soon as the work that is in the stream now has finished.
void free_in_stream(void* memory, void* stream);
// Returns the pool's free memory to the device.
void trim(void* pool);

// Makes an event with timing in the current context; nullptr if the driver makes none.
void* make_event();
// Enqueues the event; false if the driver refuses.
bool record_event(void* event, void* stream);
// Returns the seconds between two events; nothing if the device has not reached the second event yet. Never
// waits.
std::optional<double> seconds_between(void* first, void* second);

// Enqueues a memset to zero; false if the driver refuses.
bool set_to_zero(void* memory, std::size_t bytes, void* stream);

// Rows of equal length in device memory.
struct DeviceRows {
  void* first;
  std::size_t pitch;  // distance of two rows in bytes
  std::size_t bytes;  // length of a row in bytes
  std::size_t count;
};

// Enqueues copies of rows to memory in which they have no gaps. Returns false if the driver refuses; some
// rows may then be copied.
bool copy_on_device(const DeviceRows& rows, void* target, void* stream);
bool copy_to_host(const DeviceRows& rows, void* target, void* stream);

// Waits for the work in the stream. Returns false if the driver reports an error.
bool synchronize(void* stream);

// Enqueues copies of `row` into all rows. Each copy doubles the number of filled rows. Returns false if the
// driver refuses; some rows may then be overwritten.
bool fill_rows(const void* row, const DeviceRows& rows, void* stream);

}  // namespace kintsugi::cublas
