"""A product of ScaLAPACK's pdgemm, of two matrices of 512 by 512 on all ranks; checks some elements. Run by mpirun."""

import ctypes
import random

N, BLOCK = 512, 64
integer = lambda value: ctypes.byref(ctypes.c_int(value))
real = lambda value: ctypes.byref(ctypes.c_double(value))

ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
library = ctypes.CDLL("libscalapack-openmpi.so.2.2", ctypes.RTLD_GLOBAL)
rank, ranks, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
library.blacs_pinfo_(ctypes.byref(rank), ctypes.byref(ranks))
library.blacs_get_(integer(-1), integer(0), ctypes.byref(context))
library.blacs_gridinit_(ctypes.byref(context), ctypes.c_char_p(b"Row"), integer(1), ctypes.byref(ranks))
assert N % (BLOCK * ranks.value) == 0, f"{ranks.value} ranks do not divide the blocks"


def own_columns():
    """Global numbers of the columns that lie on this rank, block-cyclically."""
    return [j for j in range(N) if j // BLOCK % ranks.value == rank.value]


def columns_of(seed):
    """All of a matrix, column by column."""
    numbers = random.Random(seed)
    return [[numbers.uniform(-1, 1) for _ in range(N)] for _ in range(N)]


def local(columns):
    return (ctypes.c_double * (N * len(own_columns())))(*(x for j in own_columns() for x in columns[j]))


description, status = (ctypes.c_int * 9)(), ctypes.c_int()
library.descinit_(description, integer(N), integer(N), integer(BLOCK), integer(BLOCK), integer(0), integer(0),
                  ctypes.byref(context), integer(N), ctypes.byref(status))
assert status.value == 0
a, b = columns_of(1), columns_of(2)
c = (ctypes.c_double * (N * len(own_columns())))()
none = ctypes.c_char_p(b"N")
library.pdgemm_(none, none, integer(N), integer(N), integer(N), real(1), local(a), integer(1), integer(1), description, local(b),
                integer(1), integer(1), description, real(0), c, integer(1), integer(1), description)
for place, j in enumerate(own_columns()[::31]):
    for i in (0, 77, N - 1):
        expected = sum(a[k][i] * b[j][k] for k in range(N))
        assert abs(c[i + N * 31 * place] - expected) < 1e-12 * N, (i, j)
library.blacs_gridexit_(ctypes.byref(context))
library.blacs_exit_(integer(0))
