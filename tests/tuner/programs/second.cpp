// A static function of the same name as one of first.cpp, and the template.
#include "shared.hpp"

static void guarded(const double* a, double* c) {
  const int n = 4;
  const double one = 1;
  dgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &one, c, &n);
}

void second(const double* a, double* c) {
  square<4>(a, c);
  guarded(a, c);
}
