// Plans of device problems, made and executed on the host: the program's own kintsugi_plan_create,
// kintsugi_plan_execute and kintsugi_gemm_grouped stand before the library's. In the fakes device memory is
// host memory, so that the results of every call that reaches Kintsugi are real.
#pragma once

#include <atomic>

namespace kintsugi::test {

struct Executions {
  std::atomic<long> count = 0;
  std::atomic<long> wrong_queues = 0;  // executions whose queue was not a CUDA stream with a value
  // Called within each execution, as an engine's own product may call cuBLAS by name.
  void (*within)() = nullptr;
  // The status that executions return without computing; 0: they compute.
  std::atomic<int> failure = 0;
};
Executions& executions();

// The stream of the last execution of this thread.
void* last_stream();

}  // namespace kintsugi::test
