"""Matrix Market files: scipy.io writes what the program reads, and reads what it writes."""

import numpy
import pytest
import scipy.io
import scipy.sparse


def read_back(program, name, dtype="f8"):
    rows, columns = scipy.io.mminfo(str(program.folder / name))[:2]
    program.save("identity.npy", numpy.eye(columns, dtype=dtype))
    flags = ["--type", "fp32"] if dtype == "f4" else []
    program.ok("gemm", name, "identity.npy", "-o", "copy.npy", "--policy", "native", *flags)
    copy = program.load("copy.npy")
    assert copy.shape == (rows, columns)
    return copy


def dense(program, name):
    matrix = scipy.io.mmread(str(program.folder / name))
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def symmetric(random, n, skew=False):
    a = random.standard_normal((n, n))
    return a - a.T if skew else a + a.T


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("form", ["coordinate", "array"])
def test_reads_what_scipy_writes(program, random, form, field, symmetry):
    if field == "pattern" and (form == "array" or symmetry == "skew-symmetric"):
        pytest.skip("there is no such file")
    skew = symmetry == "skew-symmetric"
    matrix = random.standard_normal((6, 9)) if symmetry == "general" else symmetric(random, 7, skew)
    if field == "integer":
        upper = numpy.triu(numpy.rint(50 * matrix), 1).astype(int)
        matrix = numpy.rint(50 * matrix).astype(int)
        if symmetry != "general":
            matrix = upper - upper.T if skew else upper + upper.T
    if form == "coordinate":
        keep = random.random(matrix.shape) < 0.5
        keep = numpy.triu(keep, 1) | numpy.triu(keep, 1).T if symmetry != "general" else keep
        matrix = scipy.sparse.coo_matrix(numpy.where(keep, matrix, 0))
    path = str(program.folder / "A.mtx")
    scipy.io.mmwrite(path, matrix, field=field, symmetry=symmetry, comment="a comment\nof two lines")
    assert scipy.io.mminfo(path)[3:] == (form, field, symmetry)
    assert numpy.array_equal(read_back(program, "A.mtx"), dense(program, "A.mtx"))


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize("distribution", ["uniform", "phi:4", "subnormal", "powers-of-two:100"])
def test_written_text_reads_back_the_same_bits(program, dtype, distribution):
    program.ok("generate", distribution, "23x11", "-o", "A.npy", "--type", dtype)
    program.ok("generate", distribution, "23x11", "-o", "A.mtx", "--type", dtype)
    array = program.load("A.npy")
    assert scipy.io.mminfo(str(program.folder / "A.mtx")) == (23, 11, 253, "array", "real", "general")
    read = scipy.io.mmread(str(program.folder / "A.mtx")).astype(array.dtype)
    assert numpy.array_equal(read.view("u1"), numpy.ascontiguousarray(array).view("u1"))


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_the_program_reads_its_own_text(program, dtype):
    program.ok("generate", "phi:3", "8x5", "-o", "A.npy", "--type", dtype)
    program.ok("generate", "phi:3", "8x5", "-o", "A.mtx", "--type", dtype)
    assert numpy.array_equal(read_back(program, "A.mtx", "f4" if dtype == "fp32" else "f8"), program.load("A.npy"))


def test_text_is_rounded_once(program):
    # 1 + 2^-24 + 2^-60: to float64 first it is the tie 1 + 2^-24, and then 1.
    exact = "1.000000059604644775390625867361737988403547205962240695953369140625"
    (program.folder / "A.mtx").write_text(f"%%MatrixMarket matrix array real general\n1 1\n{exact}\n")
    assert read_back(program, "A.mtx", "f4")[0, 0] == numpy.float32(1 + 2**-23)


def test_forms_of_numbers(program):
    text = "%%matrixmarket MATRIX Array Real GENERAL\n% c\n\n 3   2 \r\n+1.5\n-2e3\n\n% c\n.25\n1E-2\n7\n-0.0"
    text = text.replace("%%matrixmarket", "%%MatrixMarket")
    (program.folder / "A.mtx").write_text(text)
    expected = numpy.array([[1.5, 1e-2], [-2e3, 7], [0.25, 0]])
    assert numpy.array_equal(read_back(program, "A.mtx"), expected)


def test_repeated_coordinates_are_added(program):
    text = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1.5\n1 1 2\n2 1 -1\n"
    (program.folder / "A.mtx").write_text(text)
    assert numpy.array_equal(read_back(program, "A.mtx"), [[3.5, 0], [-1, 0]])
    assert numpy.array_equal(dense(program, "A.mtx"), [[3.5, 0], [-1, 0]])


def test_writes_c_as_matrix_market(program, random):
    a, b = random.standard_normal((4, 6)), random.standard_normal((6, 3))
    program.save("A.npy", a)
    program.save("B.npy", b)
    program.ok("gemm", "A.npy", "B.npy", "-o", "C.mtx")
    program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy")
    assert numpy.array_equal(scipy.io.mmread(str(program.folder / "C.mtx")), program.load("C.npy"))


HEAD = "%%MatrixMarket matrix "


@pytest.mark.parametrize(
    "text,message",
    [
        ("", "is not a Matrix Market file: it does not begin with %%MatrixMarket"),
        ("hello\n", "is not a Matrix Market file: it does not begin with %%MatrixMarket"),
        ("%%MatrixMarket vector array real general\n", 'holds a "vector"; a matrix is read'),
        (HEAD + "dense real general\n", 'has format "dense"; coordinate and array are read'),
        (HEAD + "array complex general\n1 1\n1 1\n", "has field complex; real, integer and pattern are read"),
        (HEAD + "coordinate complex hermitian\n", "has field complex; real, integer and pattern are read"),
        (HEAD + "array pattern general\n1 1\n", "has field pattern in an array; it needs coordinates"),
        (HEAD + "array real hermitian\n", 'has symmetry "hermitian"; general, symmetric and skew-symmetric are read'),
        (HEAD + "array real\n", 'has symmetry ""; general, symmetric and skew-symmetric are read'),
        (HEAD + "array real general\n% only a comment\n", "ends before the line of its sizes"),
        (HEAD + "array real general\n2\n", "line 2: number of columns is missing"),
        (HEAD + "array real general\n2 x\n", 'line 2: "x" is not a number of columns'),
        (HEAD + "array real general\n2 2 2\n", 'line 2: "2" is one value too many'),
        (HEAD + "array real general\n-2 2\n", "line 2: sizes -2 x 2 with 0 entries are out of range"),
        (HEAD + "array real symmetric\n2 3\n", "line 2: a symmetric matrix cannot be 2 x 3"),
        (HEAD + "array real general\n2 2\n1\n2\n3\n", "holds 3 entries, 4 are needed"),
        (HEAD + "array real general\n1 2\n1\n2\n3\n", "line 5: more than the 2 entries that the sizes announce"),
        (HEAD + "array real general\n1 1\none\n", 'line 3: "one" is not a number'),
        (HEAD + "array real general\n1 1\n1.5.2\n", 'line 3: "1.5.2" is not a number'),
        (HEAD + "array real general\n1 1\n1 2\n", 'line 3: "2" is one value too many'),
        (HEAD + "array integer general\n1 1\n1.5\n", 'line 3: "1.5" is not an integer'),
        (HEAD + "array real general\n1 1\n1e400\n", "line 3: 1e400 is beyond the largest float64"),
        (HEAD + "coordinate real general\n2 2 2\n1 1 1\n", "holds 1 entries, 2 are needed"),
        (HEAD + "coordinate real general\n2 2 1\n3 1 1\n", "line 3: entry (3, 1) lies outside the 2 x 2 matrix"),
        (HEAD + "coordinate real general\n2 2 1\n1 0 1\n", "line 3: entry (1, 0) lies outside the 2 x 2 matrix"),
        (HEAD + "coordinate real general\n2 2 1\n1 1\n", "line 3: a value is missing"),
        (
            HEAD + "coordinate real symmetric\n2 2 1\n1 2 1\n",
            "line 3: entry (1, 2) lies above the diagonal; a symmetric file stores the lower triangle",
        ),
        (
            HEAD + "coordinate real skew-symmetric\n2 2 1\n1 1 1\n",
            "line 3: entry (1, 1) does not lie below the diagonal, all that a skew-symmetric file stores",
        ),
    ],
)
def test_bad_files(program, text, message):
    (program.folder / "A.mtx").write_text(text)
    program.save("B.npy", numpy.ones((2, 2)))
    before = program.files()
    assert program.bad("gemm", "A.mtx", "B.npy", "-o", "C.npy") == f"A.mtx: {message}"
    assert program.files() == before


def test_too_large_for_memory(program):
    (program.folder / "A.mtx").write_text(HEAD + "coordinate real general\n1000000 1000000 1\n1 1 1\n")
    program.save("B.npy", numpy.ones((2, 2)))
    message = program.bad("gemm", "A.mtx", "B.npy", "-o", "C.npy")
    assert message.startswith("A.mtx: 1000000 x 1000000 elements of float64 are 8e+12 bytes; this machine has")
