"""Emulated calls have the limits of threads that the next BLAS has."""

import pytest
from test_programs import needs_shared_blas, python

# Prints the threads of the process before and after exact products, the last of them without a limit.
PROGRAM = r"""
import contextlib, os, sys, numpy
count = lambda: len(os.listdir("/proc/self/task"))
a = numpy.random.default_rng(1).standard_normal((400, 400))
a[:64, :64] @ a[:64, :64]  # one thread; loads what products need
counts = [count()]
if sys.argv[1] == "threadpoolctl":
    import threadpoolctl
    limit = threadpoolctl.threadpool_limits(1, user_api="blas")
elif sys.argv[1] == "function":
    import ctypes, numpy.__config__
    files = {line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line}
    names = [prefix + "openblas_set_num_threads" + suffix for prefix in ("", "scipy_") for suffix in ("", "64_")]
    for library in map(ctypes.CDLL, files):
        for name in names:
            if hasattr(library, name):
                getattr(library, name)(1)
for _ in range(3):
    a @ a
counts.append(count())
if sys.argv[1] == "threadpoolctl":
    limit.restore_original_limits()
    a @ a
    counts.append(count())
print(*counts)
"""


@needs_shared_blas
class TestThreads:
    def counts(self, preloaded, how, **environment):
        preloaded.environment |= environment
        return [int(count) for count in preloaded.ok(*python(PROGRAM), how, accuracy="exact").stdout.split()]

    def test_without_a_limit_there_are_threads(self, preloaded):
        before, after = self.counts(preloaded, "none", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
        assert after == before + 1

    @pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"])
    def test_variables(self, preloaded, name):
        assert self.counts(preloaded, "none", **{name: "1"}) == [1, 1]

    def test_functions_of_openblas(self, preloaded):
        before, after = self.counts(preloaded, "function", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
        assert after == before

    def test_threadpoolctl(self, preloaded):
        pytest.importorskip("threadpoolctl")
        before, limited, after = self.counts(preloaded, "threadpoolctl", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
        assert limited == before and after == before + 1

    def test_the_own_setting_goes_before(self, preloaded):
        preloaded.environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        result = preloaded.ok(*python(PROGRAM), "none", accuracy="exact", threads="2")
        assert result.stdout.split() == ["1", "2"]


# A product of 1200 x 1200 matrices with 8 MiB of address space left, where plain OpenBLAS has no room for its buffer.
SMALL_SPACE = r"""
import numpy, os, resource
a, c = numpy.random.default_rng(1).standard_normal((1200, 1200)), numpy.zeros((1200, 1200))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, 2 * (used + 8 * 2**20,))
numpy.dot(a, a, out=c)
assert all(abs(c[i, i] - sum(a[i] * a[:, i])) < 1e-9 for i in range(0, 1200, 100))
os._exit(0)
"""


@needs_shared_blas
@pytest.mark.parametrize("settings", [{"policy": "emulate"}, {"accuracy": "exact"}, {"accuracy": "reproducible"}])
def test_products_end_in_a_small_address_space(preloaded, settings):
    result = preloaded.ok(*python(SMALL_SPACE), **settings)
    if "accuracy" in settings and "avx512bw" not in open("/proc/cpuinfo").read():
        pytest.skip("exact sums, which take less time than residues on this CPU, need no memory")
    assert "out_of_memory: the allocator has no" in result.stderr
