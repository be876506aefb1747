// Parts that the programs of this folder share. They call BLAS as any program does and know nothing of
// Kintsugi.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" void sgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);

namespace apps {

// Keeps a function apart in the file of the program, under its plain name: that is the name of its call site.
#define APPS_CALL_SITE extern "C" __attribute__((noinline))

// A column-major matrix.
struct Matrix {
  int rows = 0, columns = 0;
  std::vector<float> values;

  Matrix(int m, int n)
      : rows(m), columns(n), values(static_cast<std::size_t>(m) * static_cast<std::size_t>(n)) {}
  float& operator()(int i, int j) { return values[index(i, j)]; }
  float operator()(int i, int j) const { return values[index(i, j)]; }
  float* at(int i, int j) { return values.data() + index(i, j); }
  const float* at(int i, int j) const { return values.data() + index(i, j); }

 private:
  std::size_t index(int i, int j) const {
    return static_cast<std::size_t>(j) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(i);
  }
};

// Numbers from -1 to 1. The bits do not depend on the C++ library, as a distribution's would.
inline Matrix random_matrix(int rows, int columns, std::mt19937_64& random) {
  Matrix matrix(rows, columns);
  for (float& value : matrix.values)
    value = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
  return matrix;
}

// Weights of a layer, of about unit gain, so that layers neither saturate nor vanish.
inline Matrix weights(int inputs, int outputs, std::mt19937_64& random) {
  Matrix matrix = random_matrix(inputs, outputs, random);
  for (float& value : matrix.values) value *= std::sqrt(3.0F / static_cast<float>(inputs));
  return matrix;
}

// The seed of the inputs: KINTSUGI_TUNE_SEED, which kintsugi tune-program --validate sets; 1 without it.
inline std::uint64_t seed() {
  const char* text = std::getenv("KINTSUGI_TUNE_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

inline int size_of_text(const char* text, const char* name) {
  char* end = nullptr;
  const long size = std::strtol(text, &end, 10);
  constexpr long most = 1 << 16;
  if (*text == '\0' || *end != '\0' || size < 1 || size > most)
    throw std::invalid_argument(std::string(name) + " = \"" + text + "\" is not in 1 ... 65536");
  return static_cast<int>(size);
}

inline void write_npy(const std::string& path, const Matrix& matrix) {
  std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (" + std::to_string(matrix.rows) +
                       ", " + std::to_string(matrix.columns) + "), }";
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.put(static_cast<char>(header.size() % 256)).put(static_cast<char>(header.size() / 256));
  file << header;
  file.write(reinterpret_cast<const char*>(matrix.values.data()),
             static_cast<std::streamsize>(matrix.values.size() * sizeof(float)));
  file.close();
  if (!file) throw std::runtime_error(path + " cannot be written");
}

// |difference|_F / |reference|_F of sums in FP64.
class RelativeError {
 public:
  void add(double value, double reference) {
    difference_ += (value - reference) * (value - reference);
    reference_ += reference * reference;
  }
  double value() const { return std::sqrt(difference_ / reference_); }

 private:
  double difference_ = 0, reference_ = 0;
};

// Prints what the program found out about its result; status 1 if that is beyond `limit` or no number.
inline int judge(const char* what, double error, double limit) {
  const bool holds = error <= limit;
  std::printf("%s %.3e, %s %.0e\n", what, error, holds ? "within" : "NOT within", limit);
  return holds ? 0 : 1;
}

}  // namespace apps
