"""The .npy files: numpy writes what the program reads, and reads what it writes."""

import itertools
import struct

import numpy
import pytest
from numpy.lib import format as npy


def read_back(program, name, *flags):
    """Returns the matrix that the program reads: A times the identity."""
    array = program.load(name)
    columns = array.shape[1] if array.ndim == 2 else 1
    program.save("identity.npy", numpy.eye(columns, dtype=array.dtype.newbyteorder("=")))
    program.ok("gemm", name, "identity.npy", "-o", "copy.npy", "--policy", "native", *flags)
    return program.load("copy.npy")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("endian", ["<", ">"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_reads_what_numpy_writes(program, random, dtype, endian, order, version):
    array = numpy.asarray(random.standard_normal((7, 5)), dtype=endian + dtype, order=order)
    with open(program.folder / "A.npy", "wb") as file:
        npy.write_array(file, array, version=version)
    copy = read_back(program, "A.npy")
    assert copy.dtype == numpy.dtype("<" + dtype)
    assert numpy.array_equal(copy, array)


@pytest.mark.parametrize("shape", [(1, 1), (0, 3), (1, 9), (9, 1), (6,), (64, 33)])
def test_shapes(program, random, shape):
    array = random.standard_normal(shape).astype("f4")
    program.save("A.npy", array)
    copy = read_back(program, "A.npy")
    expected = array.reshape(-1, 1) if array.ndim == 1 else array
    assert copy.shape == expected.shape and numpy.array_equal(copy, expected)


def test_no_inner_dimension_gives_zeros(program):
    program.save("A.npy", numpy.zeros((3, 0), "f4"))
    program.save("B.npy", numpy.zeros((0, 2), "f4"))
    program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy")
    assert numpy.array_equal(program.load("C.npy"), numpy.zeros((3, 2), "f4"))


def write_header(path, text, data=b"", version=1, length=None):
    body = text.encode("latin1")
    size = len(body) if length is None else length
    packed = struct.pack("<H", size) if version == 1 else struct.pack("<I", size)
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + packed + body + data)


@pytest.mark.parametrize(
    "header",
    [
        "{'shape': (2, 2), 'fortran_order': False, 'descr': '<f4'}\n",  # any order of keys, no last comma
        '{"descr": "<f4", "fortran_order": False, "shape": (2, 2,), }',  # either quote, no line end
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 2L), }   \n",  # Python 2
        "{'descr': '=f4', 'fortran_order': False, 'shape': (2, 2), }\n",
    ],
)
def test_headers_of_other_writers(program, header):
    array = numpy.array([[1, 2], [3, 4]], "f4")
    write_header(program.folder / "A.npy", header, array.tobytes())
    program.save("I.npy", numpy.eye(2, dtype="f4"))
    program.ok("gemm", "A.npy", "I.npy", "-o", "C.npy", "--policy", "native")
    assert numpy.array_equal(program.load("C.npy"), array)


def test_reads_a_pipe(program, random):
    import os
    import threading

    array = random.standard_normal((40, 30)).astype("f4")
    program.save("I.npy", numpy.eye(30, dtype="f4"))
    os.mkfifo(program.folder / "A.npy")

    def write():
        with open(program.folder / "A.npy", "wb") as file:
            npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
            file.write(array.tobytes())

    writer = threading.Thread(target=write, daemon=True)  # a program that never opens the pipe must not hang us
    writer.start()
    program.ok("gemm", "A.npy", "I.npy", "-o", "C.npy", "--policy", "native")
    writer.join(60)
    assert numpy.array_equal(program.load("C.npy"), array)


@pytest.mark.parametrize("dtype,order", itertools.product(["fp32", "fp64"], ["c", "fortran"]))
def test_writes_what_numpy_reads(program, dtype, order):
    program.ok("generate", "phi:2", "13x6", "-o", "A.npy", "--type", dtype, "--order", order)
    with open(program.folder / "A.npy", "rb") as file:
        assert npy.read_magic(file) == (1, 0)
        shape, fortran, written = npy.read_array_header_1_0(file)
        assert file.tell() % 64 == 0
    assert shape == (13, 6) and fortran == (order == "fortran")
    assert written == numpy.dtype("<f4" if dtype == "fp32" else "<f8")
    assert program.load("A.npy").flags.f_contiguous == (order == "fortran")


def test_the_orders_hold_the_same_elements(program):
    program.ok("generate", "uniform", "17x9", "-o", "c.npy", "--order", "c")
    program.ok("generate", "uniform", "17x9", "-o", "f.npy", "--order", "fortran")
    assert numpy.array_equal(program.load("c.npy"), program.load("f.npy"))


# ------------------------------------------------------------------ bad files


READ = "only 1 and 2 are read, and (rows, columns, 2) of float64 in C order, which are double-double numbers"


def refuse(program, name="A.npy"):
    """The message, and that nothing was written or left behind."""
    program.save("B.npy", numpy.ones((32, 32), "f4"))
    program.save("C.npy", numpy.full((2, 2), 7, "f4"))
    before, old = program.files(), (program.folder / "C.npy").read_bytes()
    message = program.bad("gemm", name, "B.npy", "-o", "C.npy")
    assert program.files() == before
    assert (program.folder / "C.npy").read_bytes() == old
    return message


def test_truncated_data(program):
    program.save("A.npy", numpy.ones((32, 32), "f4"))
    path = program.folder / "A.npy"
    path.write_bytes(path.read_bytes()[: 128 + 1200])
    assert refuse(program) == "A.npy: holds 1200 bytes of data, 4096 are needed for float32 (32, 32)"


def test_surplus_data(program):
    program.save("A.npy", numpy.ones((32, 32), "f4"))
    with open(program.folder / "A.npy", "ab") as file:
        file.write(b"12345")
    assert refuse(program) == "A.npy: holds 4101 bytes of data, 4096 are needed for float32 (32, 32)"


@pytest.mark.parametrize(
    "dtype,name",
    [
        ("i8", "int64"),
        ("i4", "int32"),
        ("u1", "uint8"),
        ("f2", "float16"),
        ("?", "bool"),
        ("clongdouble", "complex256"),
        ("S5", "bytes"),
        ("U5", "str"),
        ("M8[s]", "datetime64"),
        (">i8", "int64"),
        ("longdouble", "float128"),
    ],
)
def test_other_types(program, dtype, name):
    program.save("A.npy", numpy.zeros((32, 32), dtype))
    assert refuse(program) == f"A.npy: has dtype {name}; float32, float64, complex64 and complex128 are read"


def test_objects(program):
    numpy.save(program.folder / "A.npy", numpy.array([[1, None], ["a", 2]], dtype=object), allow_pickle=True)
    assert refuse(program) == "A.npy: has dtype object; float32, float64, complex64 and complex128 are read"


def test_structured(program):
    program.save("A.npy", numpy.zeros(4, [("x", "f4"), ("y", "f4")]))
    assert refuse(program) == "A.npy: has a structured dtype; float32, float64, complex64 and complex128 are read"


def test_dimensions(program):
    program.save("A.npy", numpy.zeros((2, 3, 4), "f4"))
    assert refuse(program) == f"A.npy: has 3 dimensions, shape (2, 3, 4); {READ}"
    program.save("A.npy", numpy.float32(3))
    assert refuse(program) == f"A.npy: has 0 dimensions, shape (); {READ}"


def test_magic(program):
    (program.folder / "A.npy").write_bytes(b"PK\x03\x04 this is a zip file")
    assert refuse(program) == "A.npy: is not a .npy file: it does not begin with \\x93NUMPY"
    (program.folder / "A.npy").write_bytes(b"")
    assert refuse(program) == "A.npy: is not a .npy file: it does not begin with \\x93NUMPY"


def test_version(program):
    (program.folder / "A.npy").write_bytes(b"\x93NUMPY\x04\x02" + bytes(100))
    assert refuse(program) == "A.npy: has .npy version 4.2; 1, 2 and 3 are read"


@pytest.mark.parametrize("kept", [7, 9, 11, 60])
def test_ends_within_the_header(program, kept):
    program.save("A.npy", numpy.ones((32, 32), "f4"))
    path = program.folder / "A.npy"
    path.write_bytes(path.read_bytes()[:kept])
    assert refuse(program).startswith("A.npy: ends within its .npy header")


def test_header_of_absurd_length(program):
    write_header(program.folder / "A.npy", "{}", version=2, length=2**32 - 1)
    assert refuse(program) == "A.npy: has a .npy header of 4294967295 bytes; at most 1048576 are read"


@pytest.mark.parametrize(
    "header,message",
    [
        ("{'descr': '<f4', 'fortran_order': False}", "the key 'shape' is missing"),
        ("{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 2)}", "True or False is expected at character 34"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -2)}", "a size is expected at character 54"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} x", "the end is expected at character 58"),
        ("{'descr': '<f4', 'order': False, 'shape': (2, 2)}", "the key 'order' is unknown or repeated"),
        ("{'descr': '<f4', 'descr': '<f4'}", "the key 'descr' is unknown or repeated"),
        ("{'descr", "a closing quote is expected at character 2"),
        ("", "'{' is expected at character 0"),
    ],
)
def test_malformed_headers(program, header, message):
    write_header(program.folder / "A.npy", header, bytes(16))
    assert refuse(program) == f"A.npy: has a malformed .npy header: {message}"


def test_sizes_beyond_memory(program):
    huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 16), }"
    write_header(program.folder / "A.npy", huge, bytes(16))
    assert refuse(program) == "A.npy: has shape (4611686018427387904, 16), more than any memory holds"
    big = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 1000000), }"
    write_header(program.folder / "A.npy", big, bytes(16))
    assert refuse(program).startswith("A.npy: holds 16 bytes of data, 800000000000000 are needed")


def test_no_such_file(program):
    assert refuse(program, "absent.npy") == "absent.npy: cannot be opened: No such file or directory"


def test_a_folder(program):
    (program.folder / "A.npy").mkdir()
    assert refuse(program).startswith("A.npy: cannot be read: Is a directory")


def test_unknown_suffix(program):
    program.save("A.npy", numpy.ones((32, 32), "f4"))
    (program.folder / "A.npy").rename(program.folder / "A.dat")
    assert refuse(program, "A.dat") == "A.dat: ends with neither .npy nor .mtx"
