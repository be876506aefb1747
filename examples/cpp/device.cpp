// Matrices in a GPU's memory: a plan with its workspace, work in a stream, and the report of what the device
// found out. No header of CUDA is needed: the few functions that make device memory are taken from the driver
// by name. A program that uses the CUDA runtime gives its cudaMalloc pointers and cudaStream_t instead. Exit
// status 0: right; 1: wrong; 77: there is no GPU that the library can use, and the message says why.
#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "kintsugi/kintsugi.hpp"

namespace {

constexpr int skipped = 77;
constexpr std::int64_t n = 500;

// The driver's functions, in the context that the library made current when it planned for the device.
class Driver {
 public:
  template <class... Arguments>
  int result_of(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    return function != nullptr ? function(arguments...) : -1;
  }
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    const int result = result_of(name, arguments...);
    if (result != 0) throw std::runtime_error(std::string(name) + " gives " + std::to_string(result));
  }

 private:
  void* library_ = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
};

class DeviceMatrix {
 public:
  DeviceMatrix(const Driver& driver, const std::vector<float>& values)
      : driver_(driver), bytes_(values.size() * sizeof(float)) {
    driver_.call("cuMemAlloc_v2", &address_, bytes_);
    driver_.call("cuMemcpyHtoD_v2", address_, static_cast<const void*>(values.data()), bytes_);
  }
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;
  ~DeviceMatrix() { driver_.result_of("cuMemFree_v2", address_); }

  float* data() const { return reinterpret_cast<float*>(address_); }
  std::vector<float> values() const {
    std::vector<float> result(bytes_ / sizeof(float));
    driver_.call("cuMemcpyDtoH_v2", static_cast<void*>(result.data()), address_, bytes_);
    return result;
  }

 private:
  const Driver& driver_;
  std::size_t bytes_;
  std::uint64_t address_ = 0;
};

// With a_ij = 1 + i and b_ij = 1 / (1 + j) every element of C = A B is n (1 + i) / (1 + j).
double largest_error(const std::vector<float>& c) {
  double largest = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double exact = static_cast<double>(n) * static_cast<double>(1 + i) / static_cast<double>(1 + j);
      largest = std::fmax(largest, std::abs(c[static_cast<std::size_t>(i + j * n)] - exact) / exact);
    }
  }
  return largest;
}

int multiply(const kintsugi::Plan& plan, kintsugi::Handle& handle) {
  const Driver driver;
  std::vector<float> a(static_cast<std::size_t>(n * n)), b(a.size());
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      a[static_cast<std::size_t>(i + j * n)] = static_cast<float>(1 + i);
      b[static_cast<std::size_t>(i + j * n)] = 1.0F / static_cast<float>(1 + j);
    }
  }
  const DeviceMatrix device_a(driver, a), device_b(driver, b), device_c(driver, std::vector<float>(a.size()));
  // Without a queue the call goes to the default stream and returns when C is there; with
  // kintsugi::cuda_queue(stream) it returns when the work is in that stream.
  plan.execute(1, device_a.data(), device_b.data(), 0, device_c.data(), {}, &handle);
  std::printf("what was done: %s\n", kintsugi::report(handle).c_str());
  const double error = largest_error(device_c.values());
  // The bound of the accuracy fp32, and b's own rounding.
  const bool right = error <= (static_cast<double>(n) + 9) * 0x1p-24;
  std::printf("largest relative error %.2g: %s\n", error, right ? "right" : "WRONG");
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main() {
  try {
    auto problem = kintsugi::Problem::dense<float>(kintsugi::Op::N, kintsugi::Op::N, n, n, n);
    problem.memory = kintsugi::Memory::device;
    kintsugi::Handle handle;
    const kintsugi::Plan plan(problem, {.policy = "emulate"}, &handle);
    return multiply(plan, handle);
  } catch (const kintsugi::Error& error) {
    std::fprintf(stderr, "device: %s: %s\n", kintsugi::status_name(error.status()), error.what());
    return error.status() == kintsugi::Status::engine_unavailable ? skipped : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
