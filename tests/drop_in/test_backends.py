"""The drop-in as a backend of libraries that call a BLAS of the user's choice, as FlexiBLAS and libblastrampoline (LBT) do.

A small library stands for them: it loads backends as LBT does, and exports the names of BLAS and LAPACK, which call the last
backend that has the function. tests/suites/blas/backends runs the real ones.
"""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import LIBRARY

CC = os.environ.get("TESTED_CC", "cc")

# The next BLAS: as much of one as the tests call. Its results show that it was called.
NEXT = r"""
#include <complex.h>
#include <stdint.h>
#define FUNCTIONS(Int, SUFFIX)                                                                                             \
  void dgemm_##SUFFIX(const char* a, const char* b, const Int* m, const Int* n, const Int* k, const double* alpha,          \
                      const double* A, const Int* lda, const double* B, const Int* ldb, const double* beta, double* C) {    \
    C[0] = -1;                                                                                                             \
  }                                                                                                                        \
  Int isamax_##SUFFIX(const Int* n, const float* x, const Int* incx) { return *n < 0 ? 0 : 2; }                             \
  float sdot_##SUFFIX(const Int* n, const float* x, const Int* incx, const float* y, const Int* incy) { return x[0] * y[0]; } \
  double complex zdotc_##SUFFIX(const Int* n) { return 0; }                                                                \
  float complex cdotc_##SUFFIX(const Int* n) { return 0; }                                                                 \
  double dnrm2_##SUFFIX(const Int* n, const double* x, const Int* incx) { return -2; }                                      \
  void dgetrf_##SUFFIX(const Int* m, const Int* n, double* A, const Int* lda, Int* pivots, Int* info) { *info = -3; }
FUNCTIONS(int, )
FUNCTIONS(int64_t, 64_)
"""

SWITCH = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
__attribute__((visibility("hidden"))) void* found[6];
static const char* const names[] = {"dgemm_", "dnrm2_", "dgetrf_", "isamax_", "sdot_", "zdotc_"};
__attribute__((visibility("default"))) int lbt_forward(const char* library, int deep, const char* suffix) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
  if (handle == NULL) return puts(dlerror()), -1;
  int count = 0;
  for (int i = 0; i < 6; ++i) {
    char name[40];
    snprintf(name, sizeof(name), "%s%s", names[i], suffix);
    void* const function = dlsym(handle, name);
    if (function != NULL) found[i] = function, ++count;
  }
  return count;
}
#define JUMP(name, number) \
  asm(".text\n.globl " name "\n.type " name ", @function\n" name ": jmp *found+8*" #number "(%rip)\n");
#define BOTH(name, number) JUMP(name, number) JUMP(name "64_", number)
BOTH("dgemm_", 0) BOTH("dnrm2_", 1) BOTH("dgetrf_", 2) BOTH("isamax_", 3) BOTH("sdot_", 4) BOTH("zdotc_", 5)
"""

# Loads backends, asks for the width of the integers as LBT does, and prints what the functions return.
PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define NAME_OF(name, suffix) name##suffix
#define NAME(name, suffix) NAME_OF(name, suffix)
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
int lbt_forward(const char* library, int deep, const char* suffix);
Int NAME(isamax_, SUFFIX)(const void* n, const float* x, const Int* incx);
void NAME(dgemm_, SUFFIX)(const char*, const char*, const Int*, const Int*, const Int*, const double*, const double*,
                          const Int*, const double*, const Int*, const double*, double*, const Int*);
double NAME(dnrm2_, SUFFIX)(const Int*, const double*, const Int*);
void NAME(dgetrf_, SUFFIX)(const Int*, const Int*, double*, const Int*, Int*, Int*);
int main(int count, char** words) {
  for (int i = 2; i < count; ++i)
    if (lbt_forward(words[i], atoi(words[1]), TEXT(SUFFIX)) <= 0) return 3;
  const uint64_t length = 0xffffffff00000003;
  const float ones[3] = {1, 2, 1};
  const Int n = 2, one = 1;
  const int width = (int)NAME(isamax_, SUFFIX)(&length, ones, &one) == 2 ? 32 : 64;
  const double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, alpha = 1, beta = 0;
  double c[4] = {0};
  NAME(dgemm_, SUFFIX)("N", "N", &n, &n, &n, &alpha, a, &n, b, &n, &beta, c, &n);
  printf("%d %g ", width, c[0]);
  if (getenv("PRODUCT_ALONE") != NULL) return 0;
  Int info = 0, pivots[2];
  NAME(dgetrf_, SUFFIX)(&n, &n, c, &n, pivots, &info);
  printf("%g %d", NAME(dnrm2_, SUFFIX)(&n, a, &one), (int)info);
  return 0;
}
"""

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the stand-in jumps by instructions of x86-64")


class Backends:
    def __init__(self, folder, preloaded):
        self.folder = folder
        self.preloaded = preloaded
        self.next = self.library("libnext.so", NEXT)
        self.switch = self.library("libswitch.so", SWITCH)
        self.programs = {}
        for suffix, integer in (("", "int"), ("64_", "int64_t")):
            (folder / "program.c").write_text(PROGRAM)
            self.programs[suffix] = folder / f"program{suffix}"
            self.compile("program.c", f"-DInt={integer}", f"-DSUFFIX={suffix}", self.switch, f"-Wl,-rpath,{folder}",
                         "-o", self.programs[suffix])

    def compile(self, *words):
        subprocess.run([CC, *map(str, words)], cwd=self.folder, check=True)

    def library(self, name, source):
        (self.folder / f"{name}.c").write_text(source)
        self.compile("-shared", "-fPIC", "-O1", f"{name}.c", f"-Wl,-soname,{name}", "-o", name)
        return self.folder / name

    def complete(self):
        """The drop-in and its next BLAS as one library, by the command of docs/BLAS-DROP-IN.md."""
        self.compile("-shared", "-o", "libcomplete.so", "-Wl,--no-as-needed", LIBRARY, self.next,
                     f"-Wl,-rpath,{pathlib.Path(LIBRARY).parent}:{self.folder}")
        return self.folder / "libcomplete.so"

    def __call__(self, *libraries, suffix="", deep=True, **settings):
        return self.preloaded(self.programs[suffix], int(deep), *libraries, preload=False, **settings)


@pytest.fixture
def backends(tmp_path, preloaded):
    return Backends(tmp_path, preloaded)


@pytest.mark.parametrize("deep", [True, False])
@pytest.mark.parametrize("suffix, width", [("", 32), ("64_", 64)])
@pytest.mark.parametrize("policy, product", [("native", -1), ("auto", -1), ("emulate", 23)])
class TestCalls:
    def test_of_the_backend_after_a_blas(self, backends, suffix, width, deep, policy, product):
        result = backends(backends.next, LIBRARY, suffix=suffix, deep=deep, policy=policy)
        assert (result.stdout, result.stderr) == (f"{width} {product} -2 -3", "")

    def test_of_both_as_one_library(self, backends, suffix, width, deep, policy, product):
        result = backends(backends.complete(), suffix=suffix, deep=deep, policy=policy)
        assert (result.stdout, result.stderr) == (f"{width} {product} -2 -3", "")


def test_a_preloaded_drop_in_forwards_to_the_switch(backends):
    backends.preloaded.environment["LD_PRELOAD"] = LIBRARY
    assert backends(backends.next, policy="native").stdout == "32 -1 -2 -3"
    assert backends(backends.next, policy="emulate").stdout == "32 23 -2 -3"


def test_a_libblas_that_is_the_switch_is_not_called_back(backends):
    """Distributions make FlexiBLAS libblas.so.3. Without another BLAS the product is Kintsugi's own native one."""
    folder = backends.folder / "libraries"
    folder.mkdir()
    shutil.copy(backends.switch, folder / "libblas.so.3")
    backends.preloaded.environment |= {"LD_LIBRARY_PATH": str(folder), "PRODUCT_ALONE": "1"}
    result = backends(LIBRARY, policy="native")
    assert (result.returncode, result.stdout, result.stderr) == (0, "32 23 ", "")
