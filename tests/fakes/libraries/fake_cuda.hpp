// A CUDA driver and a cuBLAS for machines without a GPU. Device memory is host memory, and copies are made.
// Kernels and products are recorded and compute nothing, except native products under FAKE_CUDA_MULTIPLY.
// Environment variables, read at each call, set (with the default in parentheses):
//
//   FAKE_CUDA_VERSION=12090         version of the driver (13000)
//   FAKE_CUDA_INIT=100              result of cuInit (0)
//   FAKE_CUDA_DEVICES=0             number of devices (1)
//   FAKE_CUDA_CAPABILITY=9.0,8.6    capability of each device; further devices have the last (9.0)
//   FAKE_CUDA_NAME=A,B              name of each device likewise (NVIDIA Fake)
//   FAKE_CUDA_MEMORY=1000000        bytes of each device's memory (150 GB)
//   FAKE_CUDA_PTX_VERSION=80        PTX version of kernels not compiled for sm_90a only (the device's own)
//   FAKE_CUDA_FAIL_ALLOCATION=2,3   the second and third allocation of any kind from now on fail
//   FAKE_CUDA_MOST_BYTES=4096       larger allocations fail
//   FAKE_CUDA_FAIL_LAUNCH=2         the second launch from now on fails
//   FAKE_CUDA_FAIL_PRODUCT=2        the second product of cuBLAS from now on fails
//   FAKE_CUDA_MULTIPLY=1            cuBLAS, and kernels that multiply natively, compute products of FP32,
//                                   FP64 and complex matrices
//   FAKE_CUDA_LEAST_WORKSPACE=256   products of cuBLAS with a smaller workspace fail
//   FAKE_CUDA_MATH_MODE=8           math mode of cuBLAS's handles (that of cublasSetMathMode, 0)
//   FAKE_CUDA_NO_POOLS=1            devices have no memory pools
//   FAKE_CUDA_NO_GRAPHS=1           no graph can be created
//   FAKE_CUDA_NO_OBJECTS=1          graphs retain no user objects
//   CUBLAS_EMULATE_DOUBLE_PRECISION=1, CUBLAS_EMULATE_SINGLE_PRECISION=1
//                                   under FAKE_CUDA_MULTIPLY, operands of the default compute types are
//                                   rounded to 8 bits
//
// A device whose capability changes gets another device number.
//
// "From now on" means since the last fake_cuda_forget().
//
// Each thread has its stack of contexts, as with the driver. Streams and memory belong to a context, and are
// refused while another is current. Calls that wait for a device while a stream is captured are refused and
// spoil the capture, and so are stream-ordered allocations in a captured stream. A stream joins a capture by
// waiting for an event of it.
#pragma once

extern "C" {

// All calls since the last fake_cuda_forget(), a line each: the function's name, then its arguments.
const char* fake_cuda_events();
// Clears events and counts; allocated memory stays.
void fake_cuda_forget();
// Number of allocations that were not freed.
int fake_cuda_allocations();
// Number of device attributes that were read.
int fake_cuda_questions();
// Makes a context of the device with that ordinal: a green one, a part of the context `whole`, unless that is
// null. It gets the address of a destroyed context if there is one.
void* fake_cuda_make_context(int device, void* whole);
void fake_cuda_destroy_context(void* context);
// The driver's function, which the library does not call.
int cuMemAllocManaged(unsigned long* address, unsigned long bytes, unsigned flags);
// Functions for the fake cuBLAS: the id of the current context or 0; 1 if a stream is captured; adding an
// event to the list.
unsigned long long fake_cuda_context();
int fake_cuda_capturing();
void fake_cuda_note(const char* event);
}
