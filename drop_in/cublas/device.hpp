// Functions of the CUDA driver that the program has loaded, and device memory of emulated products. This
// library never loads a driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kintsugi::cublas {

// Returns the number (CUdevice) of the device whose context is current in this thread; nothing if there is no
// driver or no current context. Makes no context.
std::optional<int> current_device();

// Number of devices; 0 if the driver does not tell.
int device_count();

// True for device and managed memory.
bool is_in_device_memory(const void* pointer);

// True if the stream is being captured. Also true if the driver does not answer: the driver refuses an answer
// while another stream is being captured.
bool is_captured(void* stream);

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

// Enqueue copies of rows: to device memory, where the rows have the distance `pitch`, or to host memory,
// where they have no gaps. Return false if the driver refuses; some rows may then be copied.
bool copy_on_device(const DeviceRows& rows, void* target, std::size_t pitch, void* stream);
bool copy_to_host(const DeviceRows& rows, void* target, void* stream);

// Waits for the work in the stream. Returns false if the driver reports an error.
bool synchronize(void* stream);

// Enqueues copies of `row` into all rows. Each copy doubles the number of filled rows. Returns false if the
// driver refuses; some rows may then be overwritten.
bool fill_rows(const void* row, const DeviceRows& rows, void* stream);

// ------------------------------------------------------------------ workspaces

// Returns the limit of the workspace of one call on the device, and of those of all captured graphs together:
// the setting, or a default.
std::int64_t workspace_limit(int device);

// Memory, from a memory pool of the drop-in, for the work beside products that is enqueued in the stream
// while the object exists.
class Workspace {
 public:
  // Allocates the memory; pointer() is nullptr if `bytes` is 0 or there is not enough memory.
  Workspace(int device, std::size_t bytes, void* stream);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void* pointer() const { return pointer_; }

 private:
  void* pointer_ = nullptr;
  void* stream_;
};

// Numbers in device memory that calls only read, kept as long as the program lives.
struct Constants {
  const void *one_f32, *one_f64;
  const void* zeros;
};

// Returns constants with at least `bytes` of zeros; nullptr if there is no memory. While the stream is
// captured, no memory is taken: then the zeros of an earlier call must suffice. A call that takes memory
// waits until it is filled, in a stream of its own.
const Constants* constants(int device, std::size_t bytes, void* stream);

}  // namespace kintsugi::cublas
