// Products and solutions of Eigen on a BLAS (EIGEN_USE_BLAS), each against the same numbers by Eigen's own
// loops; then a hash of the products' bits.
#define EIGEN_USE_BLAS
#include <Eigen/Dense>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

static std::uint64_t hash = 1469598103934665603u;

template <class T>
void add_bits(const Matrix<T>& matrix) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(matrix.data());
  for (std::size_t i = 0; i < sizeof(T) * static_cast<std::size_t>(matrix.size()); ++i)
    hash = (hash ^ bytes[i]) * 1099511628211u;
}

template <class T>
void check(const char* name, const Matrix<T>& result, const Matrix<T>& expected, double scale) {
  const double unit = std::numeric_limits<typename Eigen::NumTraits<T>::Real>::epsilon();
  const double difference = static_cast<double>((result - expected).norm());
  if (difference <= unit * static_cast<double>(result.rows()) * scale) return;
  std::fprintf(stderr, "%s differs by %g at a scale of %g\n", name, difference, scale);
  std::exit(1);
}

template <class T>
Matrix<T> operand(int rows, int columns, int seed) {
  Matrix<T> matrix(rows, columns);
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < rows; ++i)
      matrix(i, j) = T(static_cast<float>((i * 7919 + j * 10472 + i * j * seed) % 1009) / 1009.0F - 0.5F);
  return matrix;
}

template <class T>
void test_type() {
  const int n = 150;
  Matrix<T> a = operand<T>(n, n, 1), b = operand<T>(n, n, 3);
  if constexpr (Eigen::NumTraits<T>::IsComplex) a += operand<T>(n, n, 7) * T(0, 1);
  const double scale = static_cast<double>(a.norm()) * static_cast<double>(b.norm());
  const Matrix<T> lazy = a.lazyProduct(b);
  const Matrix<T> whole = a + a.adjoint();
  const Matrix<T> products[] = {a * b, a.adjoint() * b, a * b.transpose(),
                                a.template triangularView<Eigen::Lower>() * b,
                                whole.template selfadjointView<Eigen::Upper>() * b};
  check<T>("product", products[0], lazy, scale);
  check<T>("adjoint", products[1], a.adjoint().lazyProduct(b), scale);
  check<T>("transpose", products[2], a.lazyProduct(b.transpose()), scale);
  const Matrix<T> lower = a.template triangularView<Eigen::Lower>();
  check<T>("triangle", products[3], lower.lazyProduct(b), scale);
  check<T>("symmetric", products[4], whole.lazyProduct(b), 2 * scale);
  for (const Matrix<T>& product : products) add_bits(product);
  const Matrix<T> well = a * a.adjoint() + Matrix<T>::Identity(n, n) * T(float(n));
  check<T>("LU", well.lazyProduct(well.partialPivLu().solve(b)), b, static_cast<double>(well.norm()));
  check<T>("Cholesky", well.lazyProduct(well.llt().solve(b)), b, static_cast<double>(well.norm()));
}

int main() {
  test_type<float>();
  test_type<double>();
  test_type<std::complex<float>>();
  test_type<std::complex<double>>();
  std::printf("bits %016llx\n", static_cast<unsigned long long>(hash));
}
