// cublasLtMatmul of the fake cuBLAS, with its descriptors.
#include <algorithm>
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

// Numbers of cublasLtEpilogue_t.
constexpr std::uint32_t relu = 2, with_bias = 4, drelu = 8, gradient_of_bias = 16, gelu_bit = 32, dgelu = 64,
                        with_aux = 128, gradient_of_a = 256, gradient_of_b = 512;

// The derivative of gelu().
template <class T>
T gelu_slope(T x) {
  const T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x), t = std::tanh(inner);
  return T(0.5) * (T(1) + t) +
         T(0.5) * x * (T(1) - t * t) * T(0.7978845608028654) * (T(1) + T(3 * 0.044715) * x * x);
}

// Arrays of one item of a batch that an epilogue reads and writes. The lowest bit of `mask` is the first one.
template <class T>
struct EpilogueItem {
  T *d, *bias, *aux;
  unsigned char* mask;
  std::int64_t m, n, aux_ld;
  std::int64_t ld, row_step;  // the distance of columns, and of rows
};

template <class T>
void apply_to_element(std::uint32_t epilogue, const EpilogueItem<T>& item, std::int64_t i, std::int64_t j) {
  T& x = item.d[i * item.row_step + j * item.ld];
  const std::int64_t place = i + j * item.aux_ld;
  if ((epilogue & with_bias) != 0) x += item.bias[i];
  const auto bit = static_cast<unsigned char>(1U << (place % 8));
  if (epilogue == (relu | with_aux) || epilogue == (relu | with_aux | with_bias)) {
    item.mask[place / 8] &= static_cast<unsigned char>(~bit);
    if (x > T(0)) item.mask[place / 8] |= bit;
  } else if ((epilogue & (with_aux | gelu_bit)) == (with_aux | gelu_bit)) {
    item.aux[place] = x;
  }
  if ((epilogue & relu) != 0) x = std::max(x, T(0));
  if ((epilogue & gelu_bit) != 0) x = gelu(x);
  if ((epilogue & drelu) != 0) x = (item.mask[place / 8] & bit) != 0 ? x : T(0);
  if ((epilogue & dgelu) != 0) x *= gelu_slope(item.aux[place]);
}

template <class T>
void apply_epilogue(std::uint32_t epilogue, const EpilogueItem<T>& item) {
  for (std::int64_t i = 0; i < item.m; ++i) {
    T sum(0);
    for (std::int64_t j = 0; j < item.n; ++j) {
      apply_to_element(epilogue, item, i, j);
      sum += item.d[i * item.row_step + j * item.ld];
    }
    if ((epilogue & gradient_of_bias) != 0) item.bias[i] = sum;
  }
}

bool is_row_major(const Descriptor& layout) { return layout.get<int>(1) == 1; }

// Address of an item of a batch.
const char* item_of(const void* matrix, const Descriptor& layout, std::int64_t item) {
  const auto bytes = static_cast<std::int64_t>(element_bytes(static_cast<DataType>(layout.get<int>(0))));
  return static_cast<const char*>(matrix) + item * bytes * layout.get<std::int64_t>(6);
}

template <class T>
void apply_epilogue(const Descriptor& description, const Descriptor& layout, void* d, std::int64_t item) {
  const std::int64_t ld = layout.get<std::int64_t>(4);
  const auto aux_stride = item * description.get<std::int64_t>(13);
  apply_epilogue<T>(description.get<std::uint32_t>(7, 1),
                    {.d = static_cast<T*>(d),
                     .bias = description.get<T*>(8) + item * description.get<std::int64_t>(10),
                     .aux = description.get<T*>(11) + aux_stride,
                     .mask = description.get<unsigned char*>(11) + aux_stride / 8,
                     .m = layout.get<std::int64_t>(2),
                     .n = layout.get<std::int64_t>(3),
                     .aux_ld = description.get<std::int64_t>(12),
                     .ld = is_row_major(layout) ? 1 : ld,
                     .row_step = is_row_major(layout) ? ld : 1});
}

// The sums of an operand's rows or columns: of op(A) over its columns, of op(B) over its rows.
template <class T>
void sum_operand(const T* matrix, const Descriptor& layout, bool over_columns, T* sums) {
  const std::int64_t rows = layout.get<std::int64_t>(2), columns = layout.get<std::int64_t>(3),
                     ld = layout.get<std::int64_t>(4);
  std::fill_n(sums, over_columns ? rows : columns, T(0));
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      sums[over_columns ? i : j] += matrix[is_row_major(layout) ? j + i * ld : i + j * ld];
}

// A call of cublasLtMatmul.
struct Matmul {
  const Descriptor& description;
  const void* a;
  const Descriptor& layout_a;
  const void* b;
  const Descriptor& layout_b;
  const void* c;
  const Descriptor* layout_c;
  void* d;
  const Descriptor& layout_d;
};

template <class T>
void finish_item(const Matmul& call, std::int64_t item) {
  const auto epilogue = call.description.get<std::uint32_t>(7, 1);
  T* const bias = call.description.get<T*>(8) + item * call.description.get<std::int64_t>(10);
  const auto at = [&](const void* matrix, const Descriptor& layout) {
    return reinterpret_cast<const T*>(item_of(matrix, layout, item));
  };
  if ((epilogue & gradient_of_a) != 0)
    sum_operand(at(call.a, call.layout_a), call.layout_a, call.description.get<int>(3) == 0, bias);
  if ((epilogue & gradient_of_b) != 0)
    sum_operand(at(call.b, call.layout_b), call.layout_b, call.description.get<int>(4) != 0, bias);
  apply_epilogue<T>(call.description, call.layout_d, const_cast<T*>(at(call.d, call.layout_d)), item);
}

// Copies an item of C into D, which then are the same matrix.
template <class T>
void copy_item(const Matmul& call, std::int64_t item) {
  const T* c = reinterpret_cast<const T*>(item_of(call.c, *call.layout_c, item));
  T* d = reinterpret_cast<T*>(const_cast<char*>(item_of(call.d, call.layout_d, item)));
  const std::int64_t lines = call.layout_d.get<std::int64_t>(is_row_major(call.layout_d) ? 2 : 3),
                     length = call.layout_d.get<std::int64_t>(is_row_major(call.layout_d) ? 3 : 2);
  for (std::int64_t line = 0; line < lines; ++line)
    std::copy_n(c + line * call.layout_c->get<std::int64_t>(4), length,
                d + line * call.layout_d.get<std::int64_t>(4));
}

// The column-major product that a call is; a row-major D is computed as D^T = op(B)^T op(A)^T.
Product product_of(const Matmul& call, const void* alpha, const void* beta) {
  const auto op = [&](int name, const Descriptor& layout) {
    const int given = call.description.get<int>(name);
    if (is_row_major(layout) == is_row_major(call.layout_d)) return given;
    return given == 0 ? 1 : given > 2 ? given : 0;
  };
  const int op_a = op(3, call.layout_a), op_b = op(4, call.layout_b);
  const auto m = call.layout_d.get<std::int64_t>(2), n = call.layout_d.get<std::int64_t>(3);
  const auto k = call.layout_a.get<std::int64_t>(call.description.get<int>(3) == 0 ? 3 : 2);
  const auto lda = call.layout_a.get<std::int64_t>(4), ldb = call.layout_b.get<std::int64_t>(4);
  const bool is_swapped = is_row_major(call.layout_d);
  return {is_swapped ? op_b : op_a,
          is_swapped ? op_a : op_b,
          is_swapped ? n : m,
          is_swapped ? m : n,
          k,
          alpha,
          beta,
          static_cast<DataType>(call.layout_d.get<int>(0)),
          static_cast<ComputeType>(call.description.get<int>(0)),
          is_swapped ? ldb : lda,
          is_swapped ? lda : ldb,
          call.layout_d.get<std::int64_t>(4)};
}

void multiply_and_finish(const Matmul& call, const Product& product, bool copies_c, std::int64_t item) {
  const char* a = item_of(call.a, call.layout_a, item);
  const char* b = item_of(call.b, call.layout_b, item);
  const bool is_swapped = is_row_major(call.layout_d);
  const auto as = [&]<class T>(T) {
    if (copies_c) copy_item<T>(call, item);
    multiply_item(product, is_swapped ? b : a, is_swapped ? a : b,
                  const_cast<char*>(item_of(call.d, call.layout_d, item)));
    if constexpr (std::is_floating_point_v<T>) finish_item<T>(call, item);
  };
  switch (product.type) {
    case DataType::f32: return as(float{});
    case DataType::f64: return as(double{});
    case DataType::c32: return as(std::complex<float>{});
    default: return as(std::complex<double>{});
  }
}

bool is_zero(const void* scalar, DataType type) {
  const bool is_single = type == DataType::f32 || type == DataType::c32;
  return is_single ? *static_cast<const float*>(scalar) == 0 : *static_cast<const double*>(scalar) == 0;
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

KINTSUGI_FAKE_BLAS int cublasLtMatmul(void* handle, const Descriptor* description, const void* alpha,
                                      const void* a, const Descriptor* layout_a, const void* b,
                                      const Descriptor* layout_b, const void* beta, const void* c,
                                      const Descriptor* layout_c, void* d, const Descriptor* layout_d,
                                      const void*, void*, std::size_t, void* stream) {
  if (handle == nullptr) return not_initialized;
  if (description == nullptr || layout_a == nullptr || layout_b == nullptr || layout_d == nullptr)
    return invalid_value;
  const Matmul call{*description, a, *layout_a, b, *layout_b, c, layout_c, d, *layout_d};
  const Product product = product_of(call, alpha, beta);
  note("cublasLtMatmul {} stream={}",
       shape(product.op_a, product.op_b, product.m, product.n, product.k, product.type, product.type,
             product.compute),
       stream);
  if (!is_valid(product, 1)) return invalid_value;
  // As on an H200: complex types have no epilogue, and a row-major D only activations.
  const auto epilogue = description->get<std::uint32_t>(7, 1);
  const bool is_complex = product.type == DataType::c32 || product.type == DataType::c64;
  if (epilogue != 1 && (is_complex || (is_row_major(*layout_d) && epilogue != relu && epilogue != gelu_bit)))
    return not_supported;
  const bool has_bias = (epilogue & (with_bias | gradient_of_bias | gradient_of_a | gradient_of_b)) != 0;
  if ((has_bias && description->get<const void*>(8) == nullptr) ||
      ((epilogue & with_aux) != 0 && description->get<const void*>(11) == nullptr))
    return invalid_value;
  if (!is_set("FAKE_CUDA_MULTIPLY")) return 0;
  const bool copies_c = c != d && !is_zero(beta, product.type);
  for (std::int64_t i = 0; i < layout_d->get<int>(5); ++i) multiply_and_finish(call, product, copies_c, i);
  return 0;
}
