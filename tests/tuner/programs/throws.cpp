// Calls that exceptions leave: this program's own cblas_dgemm throws. plain.cpp, compiled without the pass,
// multiplies after each.
#include <cstdio>
#include <stdexcept>

extern "C" void cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int,
                            double, double*, int) {
  throw std::runtime_error("thrown");
}
void multiply_plain(int number);

static void call() {
  double c = 0;
  cblas_dgemm(101, 111, 111, 1, 1, 1, 1.0, &c, 1, &c, 1, 0.0, &c, 1);
}

static void caught() {
  double c = 0;
  try {
    cblas_dgemm(101, 111, 111, 1, 1, 1, 1.0, &c, 1, &c, 1, 0.0, &c, 1);
  } catch (const std::runtime_error&) {
    std::puts("caught");
  }
}

int main() {
  caught();
  multiply_plain(1);
  try {
    call();
  } catch (const std::runtime_error&) {
    std::puts("caught");
  }
  multiply_plain(2);
}
