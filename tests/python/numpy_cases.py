"""kintsugi.numpy beside numpy: random subscripts, shapes, strides and types, for arrays of numpy and for an imitation
of CuPy. NUMPY_SEEDS=0:100000 runs more than the suite does. Run by test_package.py with the Python that the package is
installed in."""

import fractions
import itertools
import os
import string

import cupy_imitation
import kintsugi
import kintsugi.numpy as knp
import numpy as np
import pytest

FIRST, LAST = (int(part) for part in os.environ.get("NUMPY_SEEDS", "0:1500").split(":"))
TYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(params=["numpy", "cupy"])
def place(request, monkeypatch):
    """The function that makes an array of the library, and the one that reads it."""
    if request.param == "numpy":
        return np.asarray, np.asarray
    return cupy_imitation.install(monkeypatch)


def random_array(rng, shape, dtype):
    """Small integers, whose products are exact, in an array of any strides."""
    real = rng.integers(-4, 5, shape)
    values = np.array(real + 1j * rng.integers(-4, 5, shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)
    order = rng.permutation(len(shape))
    steps = tuple(int(step) for step in rng.choice([1, 1, 2, -1], len(shape)))
    memory = np.zeros([shape[axis] * abs(steps[axis]) for axis in order], dtype)
    view = memory.transpose(np.argsort(order))[(..., *(slice(None, None, step) for step in steps))]
    view[...] = values
    return view


def outcome(call):
    try:
        return call()
    except (ValueError, TypeError, IndexError, np.linalg.LinAlgError) as error:
        return error


def of_one_type(operands):
    """The operands in the type that numpy from 2.0 on promotes them to; earlier versions look at the values of those
    without dimensions."""
    return [operand.astype(np.result_type(*(operand.dtype for operand in operands))) for operand in operands]


def check_same(found, expected, read, context):
    """The same elements, type and shape; or an error where numpy has one."""
    if isinstance(expected, Exception):
        assert isinstance(found, Exception), (context, repr(expected), found)
        return
    assert not isinstance(found, Exception), (context, expected, repr(found))
    result = read(found)
    assert result.dtype == expected.dtype and result.shape == np.shape(expected), (context, result, expected)
    np.testing.assert_array_equal(result, expected, str(context))


def random_einsum(rng):
    """Subscripts, some of them wrong, and operands."""
    letters = list(string.ascii_letters[:int(rng.integers(1, 6))])
    sizes = {letter: int(rng.choice([0, 1, 2, 3, 4], p=[0.05, 0.15, 0.3, 0.3, 0.2])) for letter in letters}
    hidden = [int(size) for size in rng.choice([1, 2, 3], int(rng.integers(0, 3)))]
    terms, operands = [], []
    for _ in range(int(rng.choice([1, 2, 2, 2, 3, 4]))):
        chosen = [str(letter) for letter in rng.choice(letters, int(rng.integers(0, 4)))]
        # numpy reads beyond an operand whose repeated label has the sizes 0 and 1.
        may_be_one = [chosen.count(letter) == 1 or sizes[letter] > 0 for letter in chosen]
        shape = [1 if may and rng.random() < 0.05 else sizes[letter] for letter, may in zip(chosen, may_be_one)]
        if rng.random() < 0.02:
            shape = shape + [2]
        term = "".join(chosen)
        if rng.random() < 0.3:
            place = int(rng.integers(0, len(chosen) + 1))
            own = hidden[int(rng.integers(0, len(hidden) + 1)):]
            own = [1 if rng.random() < 0.1 else size for size in own]
            term, shape = term[:place] + "..." + term[place:], shape[:place] + own + shape[place:]
        terms.append(term)
        operands.append(random_array(rng, shape, TYPES[rng.integers(4)] if rng.random() < 0.2 else TYPES[1]))
    text = ",".join(terms)
    if rng.random() < 0.8:
        used = sorted({letter for term in terms for letter in term if letter != "."})
        output = [str(letter) for letter in rng.permutation(used)][:int(rng.integers(0, len(used) + 1))]
        if rng.random() < 0.03:
            output += [str(rng.choice(letters + ["Z"]))]
        dots = "..." if "..." in text or rng.random() < 0.1 else ""
        text += "->" + "".join(output[:1]) + dots + "".join(output[1:])
    return text, operands


@pytest.mark.parametrize("accuracy", [None, "exact"])
def test_random_einsums(place, accuracy):
    make, read = place
    results = 0
    for seed in range(FIRST, LAST):
        rng = np.random.default_rng(seed)
        text, operands = random_einsum(rng)
        expected = outcome(lambda: np.einsum(text, *of_one_type(operands)))
        optimize = [True, False, "optimal"][seed % 3]
        found = outcome(lambda: knp.einsum(text, *map(make, operands), optimize=optimize, accuracy=accuracy))
        check_same(found, expected, read, (seed, text, [operand.shape for operand in operands], operands))
        results += not isinstance(expected, Exception)
    assert results > (LAST - FIRST) / 2, "most of the cases are right ones"


def random_call(rng):
    """The name of a function, operands and keywords, for shapes that often fit."""
    name = str(rng.choice(["matmul", "dot", "vdot", "inner", "outer", "tensordot", "vecdot"]))
    dtype = TYPES[rng.integers(4)]
    sizes = [int(size) for size in rng.choice([0, 1, 2, 3], 6, p=[0.05, 0.25, 0.3, 0.4])]
    first = [sizes[i] for i in rng.integers(0, 6, int(rng.integers(0, 4)))]
    second = [sizes[i] for i in rng.integers(0, 6, int(rng.integers(0, 4)))]
    keywords = {}
    if rng.random() < 0.8 and first and second:
        if name in ("dot", "matmul"):
            second[max(len(second) - 2, 0)] = first[-1]
        elif name in ("inner", "vecdot"):
            second[-1] = first[-1]
        elif name == "vdot":
            second = [int(size) for size in rng.permutation(first)]
    if name == "tensordot":
        count = int(rng.integers(0, min(len(first), len(second)) + 1))
        if rng.random() < 0.5:
            keywords["axes"] = count
            second[:count] = first[len(first) - count:]
        else:
            axes = [[int(axis) for axis in rng.permutation(len(shape))[:count]] for shape in (first, second)]
            for i, j in zip(*axes):
                second[j] = first[i]
            keywords["axes"] = (axes[0][0], axes[1][0]) if count == 1 and rng.random() < 0.5 else axes
    other = dtype if rng.random() < 0.8 else TYPES[rng.integers(4)]
    return name, [random_array(rng, first, dtype), random_array(rng, second, other)], keywords


def numpys_vecdot(x1, x2):
    """numpy has one from 2.0 on."""
    if x1.ndim == 0 or x2.ndim == 0 or x1.shape[-1] != x2.shape[-1]:
        raise ValueError("shapes do not fit")
    return np.einsum("...i,...i->...", x1.conj(), x2)


@pytest.mark.parametrize("accuracy", [None, "exact"])
def test_random_products(place, accuracy):
    make, read = place
    for seed in range(FIRST, LAST):
        rng = np.random.default_rng(seed)
        name, operands, keywords = random_call(rng)
        theirs = numpys_vecdot if name == "vecdot" else getattr(np, name)
        expected = outcome(lambda: theirs(*of_one_type(operands), **keywords))
        found = outcome(lambda: getattr(knp, name)(*map(make, operands), accuracy=accuracy, **keywords))
        check_same(found, expected, read, (seed, name, keywords, [operand.shape for operand in operands]))


def test_random_chains_and_powers(place):
    make, read = place
    for seed in range(FIRST, LAST):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(0 if rng.random() < 0.1 else 1, 5, int(rng.integers(3, 7)))
        shapes = [[int(rows), int(columns)] for rows, columns in zip(sizes, sizes[1:])]
        shapes[0] = shapes[0][1:] if rng.random() < 0.2 else shapes[0]
        shapes[-1] = shapes[-1][:1] if rng.random() < 0.2 else shapes[-1]
        if len(shapes) > 2 and rng.random() < 0.05:
            shapes[0] = [*shapes[0], 3]
        operands = [random_array(rng, shape, TYPES[1 + 2 * (seed % 2)]) for shape in shapes]
        expected = outcome(lambda: np.linalg.multi_dot(operands))
        check_same(outcome(lambda: knp.linalg.multi_dot(list(map(make, operands)))), expected, read, (seed, shapes))
        size, n = int(rng.integers(1, 4)), int(rng.integers(0, 7))
        matrix = random_array(rng, [2] * (seed % 2) + [size, size], np.float64)
        expected = outcome(lambda: np.linalg.matrix_power(matrix, n))
        check_same(outcome(lambda: knp.linalg.matrix_power(make(matrix), n)), expected, read, (seed, n))


def test_powers_of_the_inverse(place):
    make, read = place
    pytest.importorskip("scipy")
    a = np.array([[[2.0, 1.0], [7.0, 4.0]], [[1.0, 0.0], [3.0, 1.0]]])
    expected = np.array([[[4.0, -1.0], [-7.0, 2.0]], [[1.0, 0.0], [-3.0, 1.0]]])
    np.testing.assert_array_equal(np.round(read(knp.linalg.matrix_power(make(a), -1)), 12), expected)
    assert np.round(read(knp.linalg.matrix_power(make(a[0]), -2)), 12).tolist() == (expected[0] @ expected[0]).tolist()
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        knp.linalg.matrix_power(make(np.ones((2, 2))), -1)
    with pytest.raises(TypeError):
        knp.linalg.matrix_power(make(a), 1.5)


def hard(rng, shape):
    """Numbers of 60 binades, whose sums cancel."""
    return np.ldexp(rng.standard_normal(shape), rng.integers(-30, 31, shape))


def exact_einsum(text, operands):
    """The real and the imaginary parts of the sums as fractions, without numpy."""
    inputs, output = text.split("->")
    terms = inputs.split(",")
    sizes = {}
    for term, operand in zip(terms, operands):
        for letter, size in zip(term, operand.shape):
            sizes[letter] = max(size, sizes.get(letter, 1))
    sums = {}
    for index in itertools.product(*map(range, sizes.values())):
        at = dict(zip(sizes, index))
        real, imaginary = fractions.Fraction(1), fractions.Fraction(0)
        for term, operand in zip(terms, operands):
            element = operand[tuple(min(at[letter], size - 1) for letter, size in zip(term, operand.shape))]
            x, y = fractions.Fraction(float(element.real)), fractions.Fraction(float(element.imag))
            real, imaginary = real * x - imaginary * y, real * y + imaginary * x
        place = tuple(at[letter] for letter in output)
        old = sums.get(place, (0, 0))
        sums[place] = old[0] + real, old[1] + imaginary
    return [sums[place] for place in itertools.product(*(range(sizes[letter]) for letter in output))]


@pytest.mark.parametrize("text, shapes", [
    ("ij,jk->ik", [(3, 40), (40, 2)]), ("ij,kj->", [(3, 20), (4, 20)]), ("ij,jk->k", [(6, 9), (9, 3)]),
    ("ij,kl->jl", [(9, 2), (7, 3)]), ("i,j->", [(30,), (20,)]), ("bij,bjk->bi", [(2, 3, 9), (2, 9, 5)]),
    ("ij->", [(20, 20)]), ("iji->j", [(9, 3, 9)]), ("i,i->i", [(9,), (9,)]), ("ii,ij->j", [(8, 8), (8, 3)]),
    ("i,i->", [(40,), (1,)]), ("bci,bci->bc", [(2, 3, 9), (2, 1, 9)]),
])
@pytest.mark.parametrize("kind", ["f", "c"])
def test_exact_contractions_are_rounded_once(place, text, shapes, kind):
    make, read = place
    rng = np.random.default_rng()
    operands = [hard(rng, shape) + (1j * hard(rng, shape) if kind == "c" else 0) for shape in shapes]
    operands[0].reshape(-1)[0] = -operands[0].reshape(-1)[-1]
    with kintsugi.accuracy("exact"):
        found = read(knp.einsum(text, *map(make, operands)))
    wanted = [complex(float(real), float(imaginary)) for real, imaginary in exact_einsum(text, operands)]
    assert found.dtype.kind == kind and found.ravel().tolist() == wanted, repr(operands)


def test_sums_that_overflow_alone():
    """The sum of the first operand is infinite in float64, the contraction is not."""
    a, b = np.full((4, 3), 1.7e308), np.array([1e-5, 2e-5, -3e-5])
    exact = float(sum(4 * fractions.Fraction(1.7e308) * fractions.Fraction(float(x)) for x in b))
    assert knp.einsum("ij,j->", a, b, accuracy="exact") == exact


def test_results_are_as_numpys():
    a = np.arange(6.0).reshape(2, 3)
    view = knp.einsum("ij->ji", a)
    assert np.shares_memory(view, a) and view.flags.writeable and knp.einsum("ii->i", np.eye(3)).base is not None
    assert knp.einsum("ij,jk->ki", a, a.T).flags.c_contiguous
    assert knp.einsum("ij,jk->ki", a, a.T, order="F").flags.f_contiguous
    assert type(knp.einsum("ij,ij", a, a)) is np.float64 and type(knp.vdot(a, a)) is np.float64
    assert type(knp.inner(a[0], a[0])) is np.float64 and type(knp.dot(2, 3.0)) is np.float64
    out = np.empty((2, 2))
    assert knp.dot(a, a.T, out) is out and knp.einsum("ij,kj", a, a, out=out) is out and (out == a @ a.T).all()
    for wrong in (np.empty((2, 3)), np.empty((2, 2), int)):
        with pytest.raises((ValueError, TypeError), match="out"):
            knp.einsum("ij,kj", a, a, out=wrong)
    assert knp.einsum(a, [0, 1], a, [2, 1], [2, 0]).tolist() == (a @ a.T).T.tolist()
    labels = a, [0, ...], a, [2, ...], [2, 0, ...]
    assert knp.einsum(*labels).tolist() == np.einsum(*labels).tolist()
    assert knp.matmul(a, a.T, dtype=np.float32).dtype == np.float32
    assert knp.einsum("ij->i", a.astype(np.float16), dtype="f4").dtype == np.float32
    assert knp.dot([[1, 2]], [[3], [4]]).tolist() == [[11.0]]


@pytest.mark.parametrize("call, error, message", [
    (lambda a: knp.nothing, AttributeError, "no attribute 'nothing'"),
    (lambda a: knp.dot(a.astype("f2"), a.T.astype("f2")), TypeError, "an operand is float16: convert to float32"),
    (lambda a: knp.inner(a.astype("f2"), a.astype("f2")), TypeError, "an operand is float16: convert to float32"),
    (lambda a: knp.matmul(a, a.T, dtype=np.float16), TypeError, "dtype is float16"),
    (lambda a: knp.matmul(1j * a, a.T, dtype=float), TypeError, "does not become dtype = float64"),
    (lambda a: knp.dot([2**53 + 1], [1]), ValueError, r"integers beyond 2\*\*53"),
    (lambda a: knp.einsum("i;j", a), ValueError, "';'"),
    (lambda a: knp.einsum("ij,jk", a), ValueError, "for 2 operands, and there are 1"),
    (lambda a: knp.einsum(a, [0, 60]), ValueError, "0 to 51"),
    (lambda a: knp.einsum("ij,jk", a, a), ValueError, "label j has the sizes 3 and 2"),
    (lambda a: knp.einsum("ij->ik", a), ValueError, "'k' in the output alone"),
    (lambda a: knp.dot(a, a), ValueError, "3 columns meet 2 rows"),
    (lambda a: knp.dot(a, a[None]), ValueError, "not aligned"),
    (lambda a: knp.dot(a, a.T, accuracy="exct"), kintsugi.KintsugiError, "did you mean exact"),
    (lambda a: knp.linalg.multi_dot([a]), ValueError, "at least two"),
    (lambda a: knp.linalg.matrix_power(a, 2), np.linalg.LinAlgError, "square"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones((2, 3)))


def test_other_names_are_numpys():
    assert knp.zeros is np.zeros and knp.linalg.svd is np.linalg.svd and knp.float64 is np.float64
    assert all(getattr(knp, name) is not getattr(np, name, None) for name in knp.__all__)
    assert all(getattr(knp.linalg, name) is not getattr(np.linalg, name) for name in knp.linalg.__all__)


def test_options_reach_the_product():
    a = np.random.default_rng(1).standard_normal((20, 30)).astype(np.float32)
    for call in (lambda: knp.matmul(a, a.T, scheme="fp16x3"), lambda: knp.einsum("ij,kj", a, a, scheme="fp16x3"),
                 lambda: knp.tensordot(a, a, ([1], [1]), scheme="fp16x3"),
                 lambda: knp.linalg.multi_dot([a, a.T], scheme="fp16x3"),
                 lambda: knp.vecdot(a, a, scheme="fp16x3"), lambda: knp.inner(a, a, scheme="fp16x3")):
        call()
        assert kintsugi.last_report()["candidates"][0]["scheme"] == "fp16x3"
