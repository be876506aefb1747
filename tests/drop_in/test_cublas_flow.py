"""Flow of results between random calls of cuBLAS. The fakes' device memory is host memory."""

import os
import random
import subprocess

import pytest
from conftest import BUILD, CUBLAS
from test_cublas_programs import read_report
from test_sites import expected_inputs, random_product, write_sites

# Makes the products of its input from four call sites, with alpha = 0, so that C may overlap A and B.
PROGRAM = r"""
#include <stdio.h>
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void**, int), cuCtxSetCurrent(void*), cublasCreate_v2(void**);
int cuStreamCreate(void**, unsigned), cublasSetStream_v2(void*, void*);
int cublasSgemm_v2(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*, float*, int);
static float pool[1 << 14];
static const float zero = 0;
static char op_a[2], op_b[2];
static int m, n, k, lda, ldb, ldc, a, b, c;
static float beta;
static void* handle;
#define SITE(name) __attribute__((noinline)) void name(void) { \
  cublasSgemm_v2(handle, op_a[0] == 'T', op_b[0] == 'T', m, n, k, &zero, pool + a, lda, pool + b, ldb, &beta, pool + c, ldc); __asm__ volatile("nop"); }
SITE(s0) SITE(s1) SITE(s2) SITE(s3)
int main(void) {
  void *context, *stream;
  void (*sites[])(void) = {s0, s1, s2, s3};
  cuInit(0), cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context), cublasCreate_v2(&handle);
  cuStreamCreate(&stream, 0), cublasSetStream_v2(handle, stream);
  for (int site; scanf("%d %1s %1s %d %d %d %d %d %d %d %d %d %f", &site, op_a, op_b, &m, &n, &k, &lda, &ldb, &ldc, &a, &b, &c,
                       &beta) == 13;)
    sites[site]();
  return 0;
}
"""


@pytest.mark.parametrize("seed", range(4))
def test_random_flow(preloaded, tmp_path, seed):
    if not CUBLAS:
        pytest.skip("configured without the drop-in for cuBLAS")
    fakes = BUILD / "tests/fakes"
    (tmp_path / "calls.c").write_text(PROGRAM)
    subprocess.run([os.environ["TESTED_CC"], "-O1", "-o", tmp_path / "calls", tmp_path / "calls.c", fakes / "libcublas.so.13",
                    fakes / "libcuda.so.1", f"-Wl,-rpath,{fakes}"], check=True)
    generator = random.Random(seed)
    calls = [random_product(generator) for _ in range(25)]
    (tmp_path / "calls.txt").write_text("\n".join(" ".join(str(word) for word in call) for call in calls) + "\n")
    preloaded.environment |= {"LD_PRELOAD": CUBLAS, "FAKE_CUDA_MULTIPLY": "1", "FAKE_CUDA_NAME": "NVIDIA H200"}
    preloaded.ok("sh", "-c", "./calls < calls.txt", preload=False, sites=write_sites(preloaded, {}), report=str(tmp_path / "report.json"))
    sites = read_report(tmp_path / "report.json")["sites"]
    number = {site["site"]: int(site["function"][1:]) for site in sites}
    found = {(number[site["site"]], number[edge["site"]]): edge["calls"] for site in sites for edge in site["inputs"]}
    assert found == expected_inputs(calls)
