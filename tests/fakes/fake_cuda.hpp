// A driver and a cuBLAS for machines without a GPU. Memory is the host's, copies are made, kernels and
// products are noted and compute nothing, but for native products that are asked to. Variables of the
// environment steer both, read at each call:
//
//   FAKE_CUDA_VERSION=12090        what the driver says of itself (13000)
//   FAKE_CUDA_INIT=100             what cuInit returns (0)
//   FAKE_CUDA_DEVICES=0            devices (1)
//   FAKE_CUDA_CAPABILITY=8.6       of all of them (9.0); then they are others, by other numbers
//   FAKE_CUDA_FAIL_ALLOCATION=2    the second allocation from now on fails, of whatever kind
//   FAKE_CUDA_MOST_BYTES=4096      larger allocations fail
//   FAKE_CUDA_FAIL_LAUNCH=2        the second launch from now on fails
//   FAKE_CUDA_FAIL_PRODUCT=2       the second product of cuBLAS from now on fails
//   FAKE_CUDA_MULTIPLY=1           cuBLAS computes products of FP32, FP64 and complex matrices
//   FAKE_CUDA_LEAST_WORKSPACE=256  products of cuBLAS with a smaller workspace fail
//   FAKE_CUDA_MATH_MODE=8          what cuBLAS says of its handle's (0)
//   CUBLAS_EMULATE_DOUBLE_PRECISION=1, CUBLAS_EMULATE_SINGLE_PRECISION=1
//                                  computed products of the default compute types have operands of 8 bits
//
// "From now on": since fake_cuda_forget().
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
// The fake cuBLAS's way into the same list.
void fake_cuda_note(const char* event);
}
