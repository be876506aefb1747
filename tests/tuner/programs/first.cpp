// Call sites of C++: in a constructor, a lambda, a try block, a template that second.cpp has too.
#include <cstdio>
#include <vector>

#include "shared.hpp"

void second(const double* a, double* c);

namespace {

constexpr int n = 4;
constexpr double one = 1, zero = 0;

struct Product {
  explicit Product(const std::vector<double>& a) : c(n * n) {
    dgemm_("N", "T", &n, &n, &n, &one, a.data(), &n, a.data(), &n, &zero, c.data(), &n);
  }
  std::vector<double> c;
};

double guarded(const double* a, double* c) {
  try {
    dgemm_("T", "N", &n, &n, &n, &one, a, &n, a, &n, &one, c, &n);
  } catch (int) {
    return 1;
  }
  return 0;
}

}  // namespace

int main() {
  std::vector<double> a(n * n), c(n * n), d(n * n);
  for (int i = 0; i < n * n; ++i) a[i] = 1.0 / (i + 1);
  Product product(a);
  const auto add = [&](double* to) {
    dgemm_("N", "N", &n, &n, &n, &one, product.c.data(), &n, a.data(), &n, &one, to, &n);
  };
  add(c.data());
  square<n>(c.data(), d.data());
  second(d.data(), c.data());
  std::printf("%a\n", guarded(c.data(), d.data()));
  for (int i = 0; i < n * n; ++i) std::printf("%a %a\n", c[i], d[i]);
}
