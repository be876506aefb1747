// A driver and a cuBLAS for machines without a GPU. Memory is the host's, copies are made, kernels and
// products are noted and compute nothing, but for native products that are asked to. Variables of the
// environment steer both, read at each call:
//
//   FAKE_CUDA_VERSION=12090         version of the driver (13000)
//   FAKE_CUDA_INIT=100              result of cuInit (0)
//   FAKE_CUDA_DEVICES=0             number of devices (1)
//   FAKE_CUDA_CAPABILITY=9.0,8.6    capability of each device, of further ones the last (9.0)
//   FAKE_CUDA_NAME=A,B              name of each device likewise (NVIDIA Fake)
//   FAKE_CUDA_PTX_VERSION=80        target of kernels that are not of sm_90a alone (the device's own)
//   FAKE_CUDA_FAIL_ALLOCATION=2     the second allocation from now on fails, of whatever kind
//   FAKE_CUDA_MOST_BYTES=4096       larger allocations fail
//   FAKE_CUDA_FAIL_LAUNCH=2         the second launch from now on fails
//   FAKE_CUDA_FAIL_PRODUCT=2        the second product of cuBLAS from now on fails
//   FAKE_CUDA_MULTIPLY=1            cuBLAS computes products of FP32, FP64 and complex matrices
//   FAKE_CUDA_LEAST_WORKSPACE=256   products of cuBLAS with a smaller workspace fail
//   FAKE_CUDA_MATH_MODE=8           math mode of cuBLAS's handle (0)
//   FAKE_CUDA_NO_POOLS=1            devices have no memory pools
//   CUBLAS_EMULATE_DOUBLE_PRECISION=1, CUBLAS_EMULATE_SINGLE_PRECISION=1
//                                   computed products of the default compute types have operands of 8 bits
//
// A device whose capability changes is another device: it has another device number.
//
// "From now on": since fake_cuda_forget().
//
// Contexts are the calling thread's, as the driver's are. Streams and memory belong to one, and are refused
// where another is current; what waits for a device while a stream is captured is refused and spoils the
// capture.
#pragma once

extern "C" {

// All calls since the last fake_cuda_forget(), a line each: the function's name, then what it was given.
const char* fake_cuda_events();
// Begins anew with events and counts; memory stays.
void fake_cuda_forget();
// Allocations that were not freed.
int fake_cuda_allocations();
// Attributes of devices that were asked for.
int fake_cuda_questions();
// A context of a device, by its ordinal, for cuCtxSetCurrent; green, and a part of `whole`, where that is
// given. The next one gets the address of one that was destroyed.
void* fake_cuda_make_context(int device, void* whole);
void fake_cuda_destroy_context(void* context);
// Functions for the fake cuBLAS: the id of the current context, 0 without one; whether a stream is captured;
// adding an event to the common list.
unsigned long long fake_cuda_context();
int fake_cuda_capturing();
void fake_cuda_note(const char* event);
}
