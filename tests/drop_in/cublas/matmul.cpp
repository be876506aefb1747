#include "tests/drop_in/cublas/matmul.hpp"

namespace kintsugi::test {

namespace {

template <class... Values>
int call_named(const char* name, Values... values) {
  return reinterpret_cast<int (*)(Values...)>(function_of(name))(values...);
}

using Descriptor = void*;

class Layout {
 public:
  Layout(int type, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t count,
         std::int64_t stride) {
    call_named("cublasLtMatrixLayoutCreate", &layout_, type, static_cast<std::uint64_t>(rows),
               static_cast<std::uint64_t>(columns), ld);
    const auto items = static_cast<std::int32_t>(count);
    set(5, items);
    set(6, stride);
  }
  ~Layout() { call_named("cublasLtMatrixLayoutDestroy", layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  Descriptor get() const { return layout_; }

 private:
  template <class T>
  void set(int attribute, const T& value) {
    call_named("cublasLtMatrixLayoutSetAttribute", layout_, attribute, static_cast<const void*>(&value),
               sizeof value);
  }
  Descriptor layout_ = nullptr;
};

class Description {
 public:
  Description(int compute, int scale) {
    call_named("cublasLtMatmulDescCreate", &description_, compute, scale);
  }
  ~Description() { call_named("cublasLtMatmulDescDestroy", description_); }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  Descriptor get() const { return description_; }

  template <class T>
  void set(int attribute, const T& value) {
    call_named("cublasLtMatmulDescSetAttribute", description_, attribute, static_cast<const void*>(&value),
               sizeof value);
  }

 private:
  Descriptor description_ = nullptr;
};

}  // namespace

int call_matmul(const Arguments& g, const MatmulChange& change) {
  void* stream = nullptr;
  int pointer_mode = 0;
  if (g.handle != nullptr) {
    call_named("cublasGetStream_v2", g.handle, &stream);
    call_named("cublasGetPointerMode_v2", g.handle, &pointer_mode);
  }
  const int type = data_type_of(g.type);
  const Layout a(type, g.op_a == 0 ? g.m : g.k, g.op_a == 0 ? g.k : g.m, g.lda, g.count, g.stride_a);
  const Layout b(type, g.op_b == 0 ? g.k : g.n, g.op_b == 0 ? g.n : g.k, g.ldb, g.count, g.stride_b);
  const Layout d(type, g.m, g.n, g.ldc, g.count, g.stride_c);
  Description description(g.compute, type);
  description.set(2, pointer_mode);
  description.set(3, g.op_a);
  description.set(4, g.op_b);
  const std::uint32_t bias_bit = g.bias != nullptr ? 4 : 0;
  const auto epilogue = bias_bit | static_cast<std::uint32_t>(g.activation);
  if (epilogue != 0) description.set(7, epilogue);  // cublasLtEpilogue_t
  if (g.bias != nullptr) description.set(8, g.bias);
  if (change.attribute >= 0) description.set(change.attribute, change.value);
  const void* c = g.c;
  const void* no_algorithm = nullptr;
  void* no_workspace = nullptr;
  return call_named("cublasLtMatmul", g.handle, description.get(), g.alpha, g.a, a.get(), g.b, b.get(),
                    g.beta, c, d.get(), g.c, d.get(), no_algorithm, no_workspace, std::size_t{0}, stream);
}

}  // namespace kintsugi::test
