// cublasLtMatmul of the fake cuBLAS, with its descriptors.
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "tests/fakes/libraries/fake_cublas.hpp"

namespace {

using namespace kintsugi::fake;

// Attributes by number, as they were set.
struct Descriptor {
  std::map<int, std::vector<char>> attributes = {};

  template <class T>
  void set(int name, T value) {
    attributes[name].assign(reinterpret_cast<char*>(&value), reinterpret_cast<char*>(&value) + sizeof value);
  }
  template <class T>
  T get(int name, T otherwise = {}) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return otherwise;
    T value{};
    std::memcpy(&value, found->second.data(), std::min(sizeof value, found->second.size()));
    return value;
  }
};

int set_attribute(Descriptor* descriptor, int name, const void* value, std::size_t bytes) {
  const char* data = static_cast<const char*>(value);
  descriptor->attributes[name].assign(data, data + bytes);
  return 0;
}

int get_attribute(const Descriptor* descriptor, int name, void* value, std::size_t bytes,
                  std::size_t* written) {
  const auto found = descriptor->attributes.find(name);
  if (found == descriptor->attributes.end() || found->second.size() != bytes) return invalid_value;
  std::memcpy(value, found->second.data(), bytes);
  *written = bytes;
  return 0;
}

// The approximation of GELU by tanh, as cublasLt has it.
template <class T>
T gelu(T x) {
  return T(0.5) * x * (T(1) + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
}

// Epilogues of cublasLtEpilogue_t: a bias (4), ReLU (2), GELU (32); the last two of real types.
template <class T>
void apply_epilogue(std::uint32_t epilogue, const T* bias, std::int64_t m, std::int64_t n, T* d,
                    std::int64_t ld) {
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i) {
      T& x = d[i + j * ld];
      if ((epilogue & 4) != 0) x += bias[i];
      if constexpr (std::is_floating_point_v<T>) {
        if ((epilogue & 2) != 0) x = std::max(x, T(0));
        if ((epilogue & 32) != 0) x = gelu(x);
      }
    }
  }
}

void apply_epilogue(const Descriptor& description, const Descriptor& layout, void* d) {
  const auto epilogue = description.get<std::uint32_t>(7, 1);
  const void* bias = description.get<const void*>(8);
  const auto as = [&]<class T>(T) {
    apply_epilogue(epilogue, static_cast<const T*>(bias), layout.get<std::int64_t>(2),
                   layout.get<std::int64_t>(3), static_cast<T*>(d), layout.get<std::int64_t>(4));
  };
  switch (static_cast<DataType>(layout.get<int>(0))) {
    case DataType::f32: return as(float{});
    case DataType::f64: return as(double{});
    case DataType::c32: return as(std::complex<float>{});
    default: return as(std::complex<double>{});
  }
}

}  // namespace

KINTSUGI_FAKE_BLAS int cublasLtMatmulDescCreate(Descriptor** created, int compute, int scale) {
  *created = new Descriptor;
  (*created)->set(0, compute);
  (*created)->set(1, scale);
  for (int name = 2; name <= 5; ++name) (*created)->set(name, 0);
  (*created)->set(7, std::uint32_t{1});
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasLtMatrixLayoutCreate(Descriptor** created, int type, std::uint64_t rows,
                                                  std::uint64_t columns, std::int64_t ld) {
  *created = new Descriptor;
  (*created)->set(0, type);
  (*created)->set(1, 0);
  (*created)->set(2, rows);
  (*created)->set(3, columns);
  (*created)->set(4, ld);
  (*created)->set(5, 1);
  (*created)->set(6, std::int64_t{0});
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasLtMatmulDescDestroy(Descriptor* descriptor) {
  delete descriptor;
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasLtMatrixLayoutDestroy(Descriptor* descriptor) {
  delete descriptor;
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasLtMatmulDescSetAttribute(Descriptor* descriptor, int name, const void* value,
                                                      std::size_t bytes) {
  return set_attribute(descriptor, name, value, bytes);
}
KINTSUGI_FAKE_BLAS int cublasLtMatrixLayoutSetAttribute(Descriptor* descriptor, int name, const void* value,
                                                        std::size_t bytes) {
  return set_attribute(descriptor, name, value, bytes);
}
KINTSUGI_FAKE_BLAS int cublasLtMatmulDescGetAttribute(const Descriptor* descriptor, int name, void* value,
                                                      std::size_t bytes, std::size_t* written) {
  return get_attribute(descriptor, name, value, bytes, written);
}
KINTSUGI_FAKE_BLAS int cublasLtMatrixLayoutGetAttribute(const Descriptor* descriptor, int name, void* value,
                                                        std::size_t bytes, std::size_t* written) {
  return get_attribute(descriptor, name, value, bytes, written);
}

// Multiplies where C is D or is not read.
KINTSUGI_FAKE_BLAS int cublasLtMatmul(void* handle, const Descriptor* description, const void* alpha,
                                      const void* a, const Descriptor* layout_a, const void* b,
                                      const Descriptor* layout_b, const void* beta, const void*,
                                      const Descriptor*, void* d, const Descriptor* layout_d, const void*,
                                      void*, std::size_t, void* stream) {
  if (handle == nullptr) return not_initialized;
  if (description == nullptr || layout_a == nullptr || layout_b == nullptr || layout_d == nullptr)
    return invalid_value;
  const auto compute = static_cast<ComputeType>(description->get<int>(0));
  const auto type = static_cast<DataType>(layout_d->get<int>(0));
  const int op_a = description->get<int>(3);
  const auto m = layout_d->get<std::int64_t>(2), n = layout_d->get<std::int64_t>(3);
  const auto k = layout_a->get<std::int64_t>(op_a == 0 ? 3 : 2);
  const Product product{op_a,
                        description->get<int>(4),
                        m,
                        n,
                        k,
                        alpha,
                        beta,
                        type,
                        compute,
                        layout_a->get<std::int64_t>(4),
                        layout_b->get<std::int64_t>(4),
                        layout_d->get<std::int64_t>(4)};
  note("cublasLtMatmul {} stream={}", shape(op_a, product.op_b, m, n, k, type, type, compute), stream);
  if (!is_valid(product, 1)) return invalid_value;
  if (!is_set("FAKE_CUDA_MULTIPLY")) return 0;
  const auto bytes = static_cast<std::int64_t>(element_bytes(type));
  for (std::int64_t i = 0; i < layout_d->get<int>(5); ++i)
    multiply_item(product, static_cast<const char*>(a) + i * bytes * layout_a->get<std::int64_t>(6),
                  static_cast<const char*>(b) + i * bytes * layout_b->get<std::int64_t>(6),
                  static_cast<char*>(d) + i * bytes * layout_d->get<std::int64_t>(6));
  apply_epilogue(*description, *layout_d, d);
  return 0;
}
