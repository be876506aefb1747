// A BLAS that counts its calls and multiplies nothing.
int calls_of_blas = 0;

#define STUBS(letter)                                  \
  void letter##gemm_(void) { ++calls_of_blas; }        \
  void letter##gemm_64_(void) { ++calls_of_blas; }     \
  void cblas_##letter##gemm(void) { ++calls_of_blas; } \
  void cblas_##letter##gemm_64(void) { ++calls_of_blas; }
STUBS(s)
STUBS(d)
STUBS(c)
STUBS(z)
