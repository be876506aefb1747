#include "tests/drop_in/cublas/program.hpp"

#include <cstdio>

#include "tests/fakes/libraries/fake_cuda.hpp"

namespace kintsugi::test {

namespace {

template <class... Values>
int call_function(const char* name, Values... values) {
  return reinterpret_cast<int (*)(Values...)>(function_of(name))(values...);
}

}  // namespace

void make_context_current() {
  void* context = nullptr;
  call_function("cuInit", 0U);
  call_function("cuDevicePrimaryCtxRetain", &context, 0);
  call_function("cuCtxSetCurrent", context);
}

ProgramHandle::ProgramHandle() {
  call_function("cublasCreate_v2", &handle_);
  call_function("fake_cublas_allow_default_workspace", handle_);
  call_function("cuStreamCreate", &stream_, 0U);
  call_function("cublasSetStream_v2", handle_, stream_);
}
ProgramHandle::~ProgramHandle() {
  call_function("cublasDestroy_v2", handle_);
  call_function("cuStreamDestroy_v2", stream_);
}
void ProgramHandle::set_pointer_mode(int mode) { call_function("cublasSetPointerMode_v2", handle_, mode); }
void ProgramHandle::set_math_mode(int mode) { call_function("cublasSetMathMode", handle_, mode); }

long new_real_products() {
  const std::string events = fake_cuda_events();
  fake_cuda_forget();
  long count = 0;
  for (std::size_t begin = 0; begin < events.size(); begin = events.find('\n', begin) + 1) {
    const std::string line = events.substr(begin, events.find('\n', begin) - begin);
    const bool is_product = line.starts_with("cublas") && line.find("op_a=") != std::string::npos;
    const bool is_epilogue = line.starts_with("cublasLtMatmul") && line.find(" k=4 ") != std::string::npos;
    count += is_product && !is_epilogue ? 1 : 0;
  }
  return count;
}

void Checks::check(bool holds, const std::string& text) {
  if (holds) return;
  ++failures_;
  std::printf("FAILED: %s\n", text.c_str());
}

}  // namespace kintsugi::test
