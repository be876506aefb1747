// Functions of the CUDA driver, found by name at their first use. So the library loads without a driver, and
// builds without a toolkit or NVIDIA's headers. Types and numbers are those of the driver API's reference;
// where a toolkit is installed, a test compares them with its headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kintsugi::core::cuda {

using Result = int;             // CUresult; 0 is success
using Device = int;             // CUdevice
using Address = std::uint64_t;  // CUdeviceptr
using Context = struct ContextTag*;
using GreenContext = struct GreenContextTag*;
using Stream = void*;  // CUstream, and also cudaStream_t
using Event = struct EventTag*;
using Library = struct LibraryTag*;
using Kernel = struct KernelTag*;  // CUkernel; cuLaunchKernelEx takes it in place of a CUfunction
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
using GraphNode = struct GraphNodeTag*;
using MemoryPool = struct MemoryPoolTag*;
using UserObject = struct UserObjectTag*;

// Numbers of CUdevice_attribute, CUfunction_attribute and CUresult.
inline constexpr int sm_count_attribute = 16;
inline constexpr int pci_bus = 33;
inline constexpr int pci_device = 34;
inline constexpr int l2_cache_bytes = 38;
inline constexpr int pci_domain = 50;
inline constexpr int shared_bytes_of_block = 97;  // most that a thread block can request
inline constexpr int compute_capability_major = 75;
inline constexpr int compute_capability_minor = 76;
inline constexpr int function_ptx_version = 5;  // __CUDA_ARCH__ / 10 when the kernel was compiled
inline constexpr int function_dynamic_shared_bytes = 8;
inline constexpr int function_preferred_shared = 9;  // CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
inline constexpr Result error_out_of_memory = 2;
inline constexpr Result error_capture_implicit = 906;

// CUlaunchConfig and CUlaunchAttribute.
struct LaunchAttribute {
  int id = 0;
  std::int32_t value[17] = {};  // the driver reads its union from value[1] on: value[0] is padding

  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  static constexpr LaunchAttribute overlapping() { return {6, {0, 1}}; }
  // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: thread blocks of a cluster, adjacent in the grid's first
  // dimension.
  static constexpr LaunchAttribute cluster(std::int32_t blocks) { return {4, {0, blocks, 1, 1}}; }
  // CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: thread blocks of a cluster may share an SM.
  static constexpr LaunchAttribute cluster_on_few_sms() { return {5, {0, 2}}; }
};
struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  const LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

// CUDA_KERNEL_NODE_PARAMS_v2: a kernel of a graph, which runs in the context that is current when it is
// added.
struct KernelNode {
  void* function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
  Kernel kernel = nullptr;
  Context context = nullptr;
};

// CUgraphEdgeData. With these default values the second node waits until the first one has ended.
struct GraphEdge {
  unsigned char from_port = 0;
  unsigned char to_port = 0;
  unsigned char type = 0;
  unsigned char reserved[5] = {};

  // With these values the second node may begin earlier, like kernels with LaunchAttribute::overlapping():
  // CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.
  static constexpr GraphEdge overlapping() { return {1, 0, 1}; }
};

inline constexpr int relaxed_capture_mode = 2;                 // CU_STREAM_CAPTURE_MODE_RELAXED
inline constexpr int active_capture = 1;                       // CU_STREAM_CAPTURE_STATUS_ACTIVE
inline constexpr unsigned object_without_synchronization = 1;  // CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
inline constexpr unsigned move_reference_to_graph = 1;         // CU_GRAPH_USER_OBJECT_MOVE

// CUmemPoolProps. These values mean pinned memory of one device, which is not shared with other processes.
struct MemoryPoolProperties {
  std::int32_t allocation_type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  std::int32_t handle_types = 0;     // CU_MEM_HANDLE_TYPE_NONE
  std::int32_t location_type = 1;    // CU_MEM_LOCATION_TYPE_DEVICE
  std::int32_t location = 0;         // the device
  void* security = nullptr;
  std::size_t max_bytes = 0;  // no limit
  unsigned char reserved[56] = {};
};
inline constexpr int pool_release_threshold = 4;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD

// Values of CUmemorytype; then CUDA_MEMCPY2D, with a structure for each of its two sides.
inline constexpr std::uint32_t memory_of_host = 1;
inline constexpr std::uint32_t memory_of_device = 2;
struct CopySide {
  std::size_t x_bytes = 0;
  std::size_t y = 0;
  std::uint32_t memory_type = memory_of_host;
  const void* host = nullptr;
  Address device = 0;
  void* array = nullptr;
  std::size_t pitch = 0;
};
struct CopyLines {
  CopySide source;
  CopySide target;
  std::size_t line_bytes = 0;
  std::size_t lines = 0;
};
inline constexpr unsigned portable_host_memory = 1;  // CU_MEMHOSTALLOC_PORTABLE
// Numbers of CUpointer_attribute.
inline constexpr int pointer_context = 1;
inline constexpr int pointer_memory_type = 2;
inline constexpr int pointer_is_managed = 8;
inline constexpr int pointer_device = 9;  // the index of the device
// CU_EVENT_BLOCKING_SYNC and CU_EVENT_DISABLE_TIMING
inline constexpr unsigned waiting_event_flags = 3;

// Values of CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapL2promotion.
inline constexpr int tensor_map_bytes = 0;
inline constexpr int tensor_map_words = 2;  // 32-bit words
inline constexpr int tensor_map_fp16 = 6;
inline constexpr int tensor_map_fp32 = 7;
inline constexpr int tensor_map_bf16 = 9;
inline constexpr int tensor_map_no_swizzle = 0;
inline constexpr int tensor_map_swizzle_128 = 3;
inline constexpr int tensor_map_promotion_256 = 3;

// Reasons for 12.1: libraries of kernels that belong to no context came with 12.0, more than 4096 bytes of
// kernel arguments with 12.1. Kernels of checked complex residues need the latter.
inline constexpr int min_driver_version = 12010;

// Functions: name of the member, symbol, arguments.
#define KINTSUGI_CUDA_DRIVER(FUNCTION)                                                                  \
  FUNCTION(init, "cuInit", (unsigned))                                                                  \
  FUNCTION(driver_version, "cuDriverGetVersion", (int*))                                                \
  FUNCTION(device_count, "cuDeviceGetCount", (int*))                                                    \
  FUNCTION(device_get, "cuDeviceGet", (Device*, int))                                                   \
  FUNCTION(device_name, "cuDeviceGetName", (char*, int, Device))                                        \
  FUNCTION(device_attribute, "cuDeviceGetAttribute", (int*, int, Device))                               \
  FUNCTION(primary_context_retain, "cuDevicePrimaryCtxRetain", (Context*, Device))                      \
  FUNCTION(context_current, "cuCtxGetCurrent", (Context*))                                              \
  FUNCTION(context_set_current, "cuCtxSetCurrent", (Context))                                           \
  FUNCTION(context_push, "cuCtxPushCurrent_v2", (Context))                                              \
  FUNCTION(context_pop, "cuCtxPopCurrent_v2", (Context*))                                               \
  FUNCTION(context_id, "cuCtxGetId", (Context, unsigned long long*))                                    \
  FUNCTION(context_device, "cuCtxGetDevice", (Device*))                                                 \
  FUNCTION(context_synchronize, "cuCtxSynchronize", ())                                                 \
  FUNCTION(memory_allocate, "cuMemAlloc_v2", (Address*, std::size_t))                                   \
  FUNCTION(memory_free, "cuMemFree_v2", (Address))                                                      \
  FUNCTION(memory_allocate_async, "cuMemAllocAsync", (Address*, std::size_t, Stream))                   \
  FUNCTION(memory_free_async, "cuMemFreeAsync", (Address, Stream))                                      \
  FUNCTION(memory_info, "cuMemGetInfo_v2", (std::size_t*, std::size_t*))                                \
  FUNCTION(host_allocate, "cuMemHostAlloc", (void**, std::size_t, unsigned))                            \
  FUNCTION(host_free, "cuMemFreeHost", (void*))                                                         \
  FUNCTION(pointer_attribute, "cuPointerGetAttribute", (void*, int, Address))                           \
  FUNCTION(pool_create, "cuMemPoolCreate", (MemoryPool*, const MemoryPoolProperties*))                  \
  FUNCTION(pool_set_attribute, "cuMemPoolSetAttribute", (MemoryPool, int, void*))                       \
  FUNCTION(pool_trim, "cuMemPoolTrimTo", (MemoryPool, std::size_t))                                     \
  FUNCTION(pool_allocate_async, "cuMemAllocFromPoolAsync", (Address*, std::size_t, MemoryPool, Stream)) \
  FUNCTION(copy_to_device_async, "cuMemcpyHtoDAsync_v2", (Address, const void*, std::size_t, Stream))   \
  FUNCTION(copy_to_host_async, "cuMemcpyDtoHAsync_v2", (void*, Address, std::size_t, Stream))           \
  FUNCTION(copy_on_device_async, "cuMemcpyDtoDAsync_v2", (Address, Address, std::size_t, Stream))       \
  FUNCTION(copy_lines_async, "cuMemcpy2DAsync_v2", (const CopyLines*, Stream))                          \
  FUNCTION(set_bytes_async, "cuMemsetD8Async", (Address, unsigned char, std::size_t, Stream))           \
  FUNCTION(stream_create, "cuStreamCreate", (Stream*, unsigned))                                        \
  FUNCTION(stream_destroy, "cuStreamDestroy_v2", (Stream))                                              \
  FUNCTION(stream_synchronize, "cuStreamSynchronize", (Stream))                                         \
  FUNCTION(stream_wait_event, "cuStreamWaitEvent", (Stream, Event, unsigned))                           \
  FUNCTION(stream_context, "cuStreamGetCtx", (Stream, Context*))                                        \
  FUNCTION(stream_id, "cuStreamGetId", (Stream, unsigned long long*))                                   \
  FUNCTION(stream_is_capturing, "cuStreamIsCapturing", (Stream, int*))                                  \
  FUNCTION(stream_capture_info, "cuStreamGetCaptureInfo_v2",                                            \
           (Stream, int*, unsigned long long*, Graph*, const GraphNode**, std::size_t*))                \
  FUNCTION(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int*))                          \
  FUNCTION(stream_begin_capture, "cuStreamBeginCapture_v2", (Stream, int))                              \
  FUNCTION(stream_end_capture, "cuStreamEndCapture", (Stream, Graph*))                                  \
  FUNCTION(graph_instantiate, "cuGraphInstantiateWithFlags", (GraphExec*, Graph, unsigned long long))   \
  FUNCTION(graph_launch, "cuGraphLaunch", (GraphExec, Stream))                                          \
  FUNCTION(graph_exec_destroy, "cuGraphExecDestroy", (GraphExec))                                       \
  FUNCTION(graph_destroy, "cuGraphDestroy", (Graph))                                                    \
  FUNCTION(graph_retain_object, "cuGraphRetainUserObject", (Graph, UserObject, unsigned, unsigned))     \
  FUNCTION(user_object_create, "cuUserObjectCreate",                                                    \
           (UserObject*, void*, void (*)(void*), unsigned, unsigned))                                   \
  FUNCTION(user_object_release, "cuUserObjectRelease", (UserObject, unsigned))                          \
  FUNCTION(event_create, "cuEventCreate", (Event*, unsigned))                                           \
  FUNCTION(event_record, "cuEventRecord", (Event, Stream))                                              \
  FUNCTION(event_synchronize, "cuEventSynchronize", (Event))                                            \
  FUNCTION(event_elapsed, "cuEventElapsedTime", (float*, Event, Event))                                 \
  FUNCTION(event_destroy, "cuEventDestroy_v2", (Event))                                                 \
  FUNCTION(library_load, "cuLibraryLoadData",                                                           \
           (Library*, const void*, int*, void**, unsigned, int*, void**, unsigned))                     \
  FUNCTION(library_kernel, "cuLibraryGetKernel", (Kernel*, Library, const char*))                       \
  FUNCTION(kernel_attribute, "cuKernelGetAttribute", (int*, int, Kernel, Device))                       \
  FUNCTION(kernel_set_attribute, "cuKernelSetAttribute", (int, int, Kernel, Device))                    \
  FUNCTION(launch_kernel, "cuLaunchKernelEx", (const LaunchConfig*, Kernel, void**, void**))            \
  FUNCTION(tensor_map_encode, "cuTensorMapEncodeTiled",                                                 \
           (void*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,               \
            const std::uint32_t*, const std::uint32_t*, int, int, int, int))                            \
  FUNCTION(error_name, "cuGetErrorName", (Result, const char**))                                        \
  FUNCTION(error_string, "cuGetErrorString", (Result, const char**))

// Functions that drivers for CUDA versions before 12.5 may lack. Pointers to missing functions are null.
#define KINTSUGI_CUDA_LATER_DRIVER(FUNCTION)                                                    \
  FUNCTION(stream_contexts, "cuStreamGetCtx_v2", (Stream, Context*, GreenContext*))             \
  FUNCTION(graph_create, "cuGraphCreate", (Graph*, unsigned))                                   \
  FUNCTION(graph_add_kernel, "cuGraphAddKernelNode_v2",                                         \
           (GraphNode*, Graph, const GraphNode*, std::size_t, const KernelNode*))               \
  FUNCTION(graph_set_attribute, "cuGraphKernelNodeSetAttribute", (GraphNode, int, const void*)) \
  FUNCTION(graph_add_edges, "cuGraphAddDependencies_v2",                                        \
           (Graph, const GraphNode*, const GraphNode*, const GraphEdge*, std::size_t))          \
  FUNCTION(graph_exec_set_kernel, "cuGraphExecKernelNodeSetParams_v2",                          \
           (GraphExec, GraphNode, const KernelNode*))

struct Driver {
#define KINTSUGI_CUDA_MEMBER(name, symbol, arguments) Result(*name) arguments = nullptr;
  KINTSUGI_CUDA_DRIVER(KINTSUGI_CUDA_MEMBER)
  KINTSUGI_CUDA_LATER_DRIVER(KINTSUGI_CUDA_MEMBER)
#undef KINTSUGI_CUDA_MEMBER

  std::string reason;     // why no device can be used; empty if one can
  bool complete = false;  // the driver has all functions of KINTSUGI_CUDA_DRIVER; a device may be missing
  int version = 0;        // 13000 is 13.0; 0: unknown
  int devices = 0;
  int fork_depth = 0;  // fork_depth() of the process that opened the driver (base/threads.hpp)

  // True if the driver has all later functions: it can change kernels of an instantiated graph, and tell
  // green contexts from regular ones.
  bool has_later_functions() const;
  std::string version_text() const;  // "13.0"
  // Text such as "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
  std::string text_of(Result result) const;
};

// Returns the driver, which is opened once and stays open, since a driver must not be unloaded. In a child of
// the process that opened it, returns another table: its `reason` says why, and its functions only return an
// error.
const Driver& driver();

// Throws unless the result is success: out_of_memory, or device_error for other results. The message begins
// with `what`, the name of the driver's function.
void check(Result result, const char* what);

// Makes the first device's primary context current if the thread has no context. Returns the current context.
Context ensure_context();

// The device of the current context, and the id of this context. No two contexts have the same id.
Device current_device();
// While it lives, current_device() and device_in_use() return this thread's device as it was at the
// beginning. They then do not ask the driver, which a call would do some fifty times.
class KnownDevice {
 public:
  KnownDevice();
  KnownDevice(const KnownDevice&) = delete;
  KnownDevice& operator=(const KnownDevice&) = delete;
  ~KnownDevice();

 private:
  Device before_;
};
std::uint64_t current_context_id();

// The device with the index `index`, counted from 0, and the index of a device.
Device device_at(int index);
int number_of(Device device);

// Returns the device that calls of this thread use: the current context's device, or the first device if
// there is no current context. The driver must have a device.
Device device_in_use();

// True if work for the stream is captured into a graph, or if a capture forbids such work.
bool may_be_captured(Stream stream);

// Lets the thread allocate memory or change pools while another thread captures a stream. In the default mode
// the driver would refuse that, and end the capture with an error.
class RelaxedCaptureMode {
 public:
  RelaxedCaptureMode() { driver().exchange_capture_mode(&mode_); }
  ~RelaxedCaptureMode() { driver().exchange_capture_mode(&mode_); }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  int mode_ = relaxed_capture_mode;
};

// Bound of the devices' numbers.
inline constexpr int max_devices = 128;

// Returns the value of a device's attribute. The driver is asked once per device and attribute.
int device_attribute(int attribute, Device device);

// Device code embedded in a program: a fat binary, one per .cu file (cmake/DeviceCode.cmake).
struct KernelImage {
  const char* name;  // stem of the .cu file's name
  const void* data;
};

using KernelImages = std::span<const KernelImage>;

// Architectures for which device code was built.
struct DeviceBuild {
  // Reason why there is no code, and the option that changes this; empty if there is code.
  std::string_view why_missing;
  // Compute capabilities with machine code (90 means 9.0). The first also has PTX.
  std::span<const int> architectures;

  // True if the code runs on this compute capability. Machine code runs on its own capability and later ones
  // of the same major number; PTX runs on all later capabilities.
  bool runs_on(int major, int minor) const;
};

bool has_image(KernelImages images, std::string_view name);

// Returns the image of that name, loaded into the driver at its first use. It belongs to no context.
Library loaded_image(KernelImages images, std::string_view name);

// Memory that a pointer points to. Memory that the driver does not know is the host's, and so is pinned host
// memory. Managed memory belongs to a device.
struct PointerLocation {
  bool on_device = false;
  bool managed = false;
  int device = 0;             // index of the device, if on_device
  Context context = nullptr;  // context of the memory; nullptr: of no context, as memory of a pool is
};

// True if the program has loaded the driver. Loads nothing itself, and takes 15 ns if no driver is loaded:
// programs without a GPU pay no more for calls that may get device pointers. False in a child of the process
// that loaded the driver, since no function of the driver may be called there.
bool is_driver_loaded();

// Asks the driver. Precondition: is_driver_loaded().
PointerLocation location_of(const void* pointer);

}  // namespace kintsugi::core::cuda
