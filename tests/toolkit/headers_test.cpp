// The library's own tables of the driver and of cuBLAS against NVIDIA's headers: numbers of enums, and every
// function's arguments in number, width and depth of pointers. Compiled where a toolkit is.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // every version of a function under its own symbol
#endif
#include <cublas_api.h>
#include <cuda.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/cublas.hpp"
#include "toolkit/seen.hpp"

namespace kintsugi::core::cuda {
namespace {

using test::same;

static_assert(same<int (*)(Stream, std::uint64_t), CUresult (*)(CUstream, CUdeviceptr)>);
static_assert(!same<int (*)(unsigned), int (*)(std::size_t)>);
static_assert(!same<int (*)(void*), int (*)(void**)>);
static_assert(!same<int (*)(int), int (*)(int, int)>);

// ---------------------------------------------------------------- driver

#define KINTSUGI_FUNCTIONS(FUNCTION)                                 \
  FUNCTION(init, cuInit)                                             \
  FUNCTION(driver_version, cuDriverGetVersion)                       \
  FUNCTION(device_count, cuDeviceGetCount)                           \
  FUNCTION(device_get, cuDeviceGet)                                  \
  FUNCTION(device_name, cuDeviceGetName)                             \
  FUNCTION(device_attribute, cuDeviceGetAttribute)                   \
  FUNCTION(primary_context_retain, cuDevicePrimaryCtxRetain)         \
  FUNCTION(context_current, cuCtxGetCurrent)                         \
  FUNCTION(context_set_current, cuCtxSetCurrent)                     \
  FUNCTION(context_push, cuCtxPushCurrent_v2)                        \
  FUNCTION(context_pop, cuCtxPopCurrent_v2)                          \
  FUNCTION(context_id, cuCtxGetId)                                   \
  FUNCTION(context_device, cuCtxGetDevice)                           \
  FUNCTION(context_synchronize, cuCtxSynchronize)                    \
  FUNCTION(memory_allocate, cuMemAlloc_v2)                           \
  FUNCTION(memory_free, cuMemFree_v2)                                \
  FUNCTION(memory_allocate_async, cuMemAllocAsync)                   \
  FUNCTION(memory_free_async, cuMemFreeAsync)                        \
  FUNCTION(memory_info, cuMemGetInfo_v2)                             \
  FUNCTION(host_allocate, cuMemHostAlloc)                            \
  FUNCTION(host_free, cuMemFreeHost)                                 \
  FUNCTION(pointer_attribute, cuPointerGetAttribute)                 \
  FUNCTION(pool_create, cuMemPoolCreate)                             \
  FUNCTION(pool_set_attribute, cuMemPoolSetAttribute)                \
  FUNCTION(pool_trim, cuMemPoolTrimTo)                               \
  FUNCTION(pool_allocate_async, cuMemAllocFromPoolAsync)             \
  FUNCTION(copy_to_device_async, cuMemcpyHtoDAsync_v2)               \
  FUNCTION(copy_to_host_async, cuMemcpyDtoHAsync_v2)                 \
  FUNCTION(copy_on_device_async, cuMemcpyDtoDAsync_v2)               \
  FUNCTION(copy_lines_async, cuMemcpy2DAsync_v2)                     \
  FUNCTION(set_bytes_async, cuMemsetD8Async)                         \
  FUNCTION(stream_create, cuStreamCreate)                            \
  FUNCTION(stream_destroy, cuStreamDestroy_v2)                       \
  FUNCTION(stream_synchronize, cuStreamSynchronize)                  \
  FUNCTION(stream_wait_event, cuStreamWaitEvent)                     \
  FUNCTION(stream_context, cuStreamGetCtx)                           \
  FUNCTION(stream_contexts, cuStreamGetCtx_v2)                       \
  FUNCTION(exchange_capture_mode, cuThreadExchangeStreamCaptureMode) \
  FUNCTION(graph_create, cuGraphCreate)                              \
  FUNCTION(graph_add_kernel, cuGraphAddKernelNode_v2)                \
  FUNCTION(graph_set_attribute, cuGraphKernelNodeSetAttribute)       \
  FUNCTION(graph_add_edges, cuGraphAddDependencies_v2)               \
  FUNCTION(graph_exec_set_kernel, cuGraphExecKernelNodeSetParams_v2) \
  FUNCTION(stream_id, cuStreamGetId)                                 \
  FUNCTION(stream_is_capturing, cuStreamIsCapturing)                 \
  FUNCTION(stream_capture_info, cuStreamGetCaptureInfo_v2)           \
  FUNCTION(stream_begin_capture, cuStreamBeginCapture_v2)            \
  FUNCTION(stream_end_capture, cuStreamEndCapture)                   \
  FUNCTION(graph_instantiate, cuGraphInstantiateWithFlags)           \
  FUNCTION(graph_launch, cuGraphLaunch)                              \
  FUNCTION(graph_exec_destroy, cuGraphExecDestroy)                   \
  FUNCTION(graph_destroy, cuGraphDestroy)                            \
  FUNCTION(graph_retain_object, cuGraphRetainUserObject)             \
  FUNCTION(user_object_create, cuUserObjectCreate)                   \
  FUNCTION(user_object_release, cuUserObjectRelease)                 \
  FUNCTION(event_create, cuEventCreate)                              \
  FUNCTION(event_record, cuEventRecord)                              \
  FUNCTION(event_synchronize, cuEventSynchronize)                    \
  FUNCTION(event_elapsed, cuEventElapsedTime)                        \
  FUNCTION(event_destroy, cuEventDestroy_v2)                         \
  FUNCTION(library_load, cuLibraryLoadData)                          \
  FUNCTION(library_kernel, cuLibraryGetKernel)                       \
  FUNCTION(kernel_attribute, cuKernelGetAttribute)                   \
  FUNCTION(kernel_set_attribute, cuKernelSetAttribute)               \
  FUNCTION(launch_kernel, cuLaunchKernelEx)                          \
  FUNCTION(tensor_map_encode, cuTensorMapEncodeTiled)                \
  FUNCTION(error_name, cuGetErrorName)                               \
  FUNCTION(error_string, cuGetErrorString)

#define KINTSUGI_SAME(member, symbol) \
  static_assert(same<decltype(Driver::member), decltype(&symbol)>, #symbol);
KINTSUGI_FUNCTIONS(KINTSUGI_SAME)
#undef KINTSUGI_SAME

// cuLaunchKernelEx takes a CUkernel where its type says CUfunction: its documentation allows that.
static_assert(sm_count_attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(pci_bus == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
static_assert(pci_device == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
static_assert(pci_domain == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
static_assert(l2_cache_bytes == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(shared_bytes_of_block == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(compute_capability_major == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(compute_capability_minor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(function_ptx_version == CU_FUNC_ATTRIBUTE_PTX_VERSION);
static_assert(function_dynamic_shared_bytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(function_preferred_shared == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) &&
              sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(LaunchAttribute::overlapping().id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(LaunchAttribute::cluster(2).id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(LaunchAttribute::cluster_on_few_sms().id ==
                  CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE &&
              LaunchAttribute::cluster_on_few_sms().value[1] == CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
static_assert(offsetof(LaunchAttribute, value) + sizeof(std::int32_t) == offsetof(CUlaunchAttribute, value));
static_assert(offsetof(LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
static_assert(offsetof(KernelNode, grid) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX));
static_assert(offsetof(KernelNode, block) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX));
static_assert(offsetof(KernelNode, shared_bytes) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes));
static_assert(offsetof(KernelNode, arguments) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams));
static_assert(offsetof(KernelNode, kernel) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern));
static_assert(offsetof(KernelNode, context) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, ctx));
static_assert(sizeof(GraphEdge) == sizeof(CUgraphEdgeData));
static_assert(offsetof(GraphEdge, type) == offsetof(CUgraphEdgeData, type));
static_assert(GraphEdge::overlapping().from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC &&
              GraphEdge::overlapping().type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
static_assert(relaxed_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(active_capture == CU_STREAM_CAPTURE_STATUS_ACTIVE);
static_assert(object_without_synchronization == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC &&
              move_reference_to_graph == CU_GRAPH_USER_OBJECT_MOVE);
static_assert(sizeof(CopyLines) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(CopySide, device) == offsetof(CUDA_MEMCPY2D, srcDevice) &&
              offsetof(CopySide, pitch) == offsetof(CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(CopyLines, target) == offsetof(CUDA_MEMCPY2D, dstXInBytes) &&
              offsetof(CopyLines, line_bytes) == offsetof(CUDA_MEMCPY2D, WidthInBytes));
static_assert(memory_of_host == CU_MEMORYTYPE_HOST && memory_of_device == CU_MEMORYTYPE_DEVICE);
static_assert(portable_host_memory == CU_MEMHOSTALLOC_PORTABLE);
static_assert(pointer_context == CU_POINTER_ATTRIBUTE_CONTEXT);
static_assert(pointer_memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(pointer_is_managed == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(pointer_device == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(waiting_event_flags == (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING));
static_assert(sizeof(MemoryPoolProperties) == sizeof(CUmemPoolProps));
static_assert(offsetof(MemoryPoolProperties, handle_types) == offsetof(CUmemPoolProps, handleTypes));
static_assert(offsetof(MemoryPoolProperties, location_type) == offsetof(CUmemPoolProps, location));
static_assert(offsetof(MemoryPoolProperties, max_bytes) == offsetof(CUmemPoolProps, maxSize));
static_assert(MemoryPoolProperties{}.allocation_type == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(MemoryPoolProperties{}.handle_types == CU_MEM_HANDLE_TYPE_NONE);
static_assert(MemoryPoolProperties{}.location_type == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(pool_release_threshold == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
static_assert(error_out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(error_capture_implicit == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
static_assert(tensor_map_bytes == CU_TENSOR_MAP_DATA_TYPE_UINT8);
static_assert(tensor_map_fp16 == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(tensor_map_bf16 == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(tensor_map_swizzle_128 == CU_TENSOR_MAP_SWIZZLE_128B);
static_assert(tensor_map_promotion_256 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);

TEST(Toolkit, EveryFunctionOfTheDriverWasCompared) {
  std::set<std::string> compared;
  std::set<std::string> used;
#define KINTSUGI_COMPARED(member, symbol) compared.insert(#member " " #symbol);
  KINTSUGI_FUNCTIONS(KINTSUGI_COMPARED)
#undef KINTSUGI_COMPARED
#define KINTSUGI_USED(member, symbol, arguments) used.insert(#member " " symbol);
  KINTSUGI_CUDA_DRIVER(KINTSUGI_USED)
  KINTSUGI_CUDA_LATER_DRIVER(KINTSUGI_USED)
#undef KINTSUGI_USED
  EXPECT_EQ(compared, used);
}

// ---------------------------------------------------------------- cuBLAS

static_assert(same<decltype(Cublas::create), decltype(&cublasCreate_v2)>);
static_assert(same<decltype(Cublas::version), decltype(&cublasGetVersion_v2)>);
static_assert(same<decltype(Cublas::set_stream), decltype(&cublasSetStream_v2)>);
static_assert(same<decltype(Cublas::set_workspace), decltype(&cublasSetWorkspace_v2)>);
static_assert(same<decltype(Cublas::set_pointer_mode), decltype(&cublasSetPointerMode_v2)>);
static_assert(same<decltype(Cublas::math_mode), decltype(&cublasGetMathMode)>);
static_assert(same<decltype(Cublas::gemm), decltype(&cublasGemmEx_64)>);
static_assert(same<decltype(Cublas::gemm_strided), decltype(&cublasGemmStridedBatchedEx_64)>);
static_assert(same<decltype(Cublas::gemm_pointers), decltype(&cublasGemmBatchedEx_64)>);
static_assert(same<decltype(Cublas::status_name), decltype(&cublasGetStatusName)>);

static_assert(static_cast<int>(DataType::f32) == CUDA_R_32F);
static_assert(static_cast<int>(DataType::f64) == CUDA_R_64F);
static_assert(static_cast<int>(DataType::f16) == CUDA_R_16F);
static_assert(static_cast<int>(DataType::bf16) == CUDA_R_16BF);
static_assert(static_cast<int>(DataType::i8) == CUDA_R_8I);
static_assert(static_cast<int>(DataType::i32) == CUDA_R_32I);
static_assert(static_cast<int>(DataType::c32) == CUDA_C_32F);
static_assert(static_cast<int>(DataType::c64) == CUDA_C_64F);
static_assert(static_cast<int>(ComputeType::f32) == CUBLAS_COMPUTE_32F);
static_assert(static_cast<int>(ComputeType::f64) == CUBLAS_COMPUTE_64F);
static_assert(static_cast<int>(ComputeType::f32_pedantic) == CUBLAS_COMPUTE_32F_PEDANTIC);
static_assert(static_cast<int>(ComputeType::f64_pedantic) == CUBLAS_COMPUTE_64F_PEDANTIC);
static_assert(static_cast<int>(ComputeType::i32) == CUBLAS_COMPUTE_32I);
static_assert(static_cast<int>(ComputeType::f32_by_tf32) == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(default_algorithm == CUBLAS_GEMM_DEFAULT);
// DeviceBlasProduct::op_a, and the two pointer modes.
static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1 && CUBLAS_OP_C == 2);
static_assert(CUBLAS_POINTER_MODE_HOST == 0 && CUBLAS_POINTER_MODE_DEVICE == 1);
static_assert(CUBLAS_STATUS_SUCCESS == 0 && CUBLAS_STATUS_ALLOC_FAILED == 3);

}  // namespace
}  // namespace kintsugi::core::cuda
