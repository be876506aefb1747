#include "tests/drop_in/cublas/host_engine.hpp"

#include <dlfcn.h>
#include <kintsugi/kintsugi.h>

#include <vector>

namespace kintsugi::test {

namespace {

thread_local void* stream_of_execution = nullptr;

template <class Function>
Function* library_function(const char* name, Function*) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

Executions& executions() {
  static Executions all;
  return all;
}

void* last_stream() { return stream_of_execution; }

}  // namespace kintsugi::test

using kintsugi::test::executions;

kintsugi_status kintsugi_plan_create(kintsugi_handle handle, const kintsugi_problem* problem,
                                     const kintsugi_options* options, kintsugi_plan* plan) {
  static auto* const create = kintsugi::test::library_function(__func__, &kintsugi_plan_create);
  kintsugi_problem on_host = *problem;
  kintsugi_options for_host = *options;
  on_host.memory = KINTSUGI_HOST;
  on_host.pointer_mode = KINTSUGI_SCALARS_ON_HOST;
  for_host.queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};
  return create(handle, &on_host, &for_host, plan);
}

kintsugi_status kintsugi_plan_execute(kintsugi_handle handle, kintsugi_plan plan,
                                      const kintsugi_operands* operands) {
  static auto* const execute = kintsugi::test::library_function(__func__, &kintsugi_plan_execute);
  ++executions().count;
  if (operands->queue.kind != KINTSUGI_QUEUE_CUDA || operands->queue.stream == nullptr)
    ++executions().wrong_queues;
  kintsugi::test::stream_of_execution = operands->queue.stream;
  if (executions().within != nullptr) executions().within();
  if (executions().failure != 0) return static_cast<kintsugi_status>(executions().failure.load());
  kintsugi_operands on_host = *operands;
  on_host.queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};
  return execute(handle, plan, &on_host);
}

// The groups of a call that fails are executed one by one.
kintsugi_status kintsugi_gemm_grouped(kintsugi_handle handle, int64_t count, const kintsugi_problem* problems,
                                      const kintsugi_options* options, const kintsugi_operands* operands) {
  static auto* const multiply = kintsugi::test::library_function(__func__, &kintsugi_gemm_grouped);
  if (executions().failure != 0) return static_cast<kintsugi_status>(executions().failure.load());
  executions().count += count;
  std::vector<kintsugi_problem> on_host(problems, problems + count);
  std::vector<kintsugi_operands> host_operands(operands, operands + count);
  for (kintsugi_problem& problem : on_host) problem.memory = KINTSUGI_HOST;
  for (kintsugi_operands& given : host_operands) {
    if (given.queue.kind != KINTSUGI_QUEUE_CUDA || given.queue.stream == nullptr) ++executions().wrong_queues;
    kintsugi::test::stream_of_execution = given.queue.stream;
    given.queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};
  }
  if (executions().within != nullptr) executions().within();
  return multiply(handle, count, on_host.data(), options, host_operands.data());
}
