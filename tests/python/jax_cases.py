"""kintsugi.jax with JAX itself: skipped where it is not installed, or the package was built without its
headers. Run by test_package.py with the Python that the package is installed in, and with any that has jax:

    python3 -m pytest tests/python/jax_cases.py

It runs on the CPU; with JAX_CASES_ON=cuda on a GPU.
"""

import os
import pathlib
import random

import kintsugi
import numpy as np
import pytest

jax = pytest.importorskip("jax")
if not pathlib.Path(kintsugi.__file__).with_name("libkintsugi_jax.so").is_file():
    pytest.skip("built without jaxlib's headers", allow_module_level=True)
jax.config.update("jax_platforms", os.environ.get("JAX_CASES_ON", "cpu"))
jax.config.update("jax_default_matmul_precision", "highest")
jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
from kintsugi.jax import matmul  # noqa: E402

TYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)),
          ((4,), (2, 4, 5)), ((5, 1, 3, 4), (2, 4, 3)), ((2, 3, 4), (4,)), ((3, 4), (6, 4, 2)), ((0, 4), (4, 2)),
          ((3, 0), (0, 2)), ((0, 3, 4), (4, 2)), ((2, 3, 4), (1, 4, 5)), ((1, 1), (1, 1))]


def values(*shape, dtype="float64", seed=1):
    generator = np.random.default_rng(seed)
    real = generator.standard_normal(shape)
    return jnp.asarray((real + 1j * generator.standard_normal(shape) if "complex" in dtype else real).astype(dtype))


def close(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.allclose(found, expected, rtol=0, atol=100 * np.finfo(found.dtype).eps)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", SHAPES)
def test_products_and_gradients_are_jaxs(shapes, dtype):
    a, b = values(*shapes[0], dtype=dtype), values(*shapes[1], dtype=dtype, seed=2)
    expected, pull = jax.vjp(jnp.matmul, a, b)
    for function in (matmul, jax.jit(matmul)):
        found, found_pull = jax.vjp(function, a, b)
        close(found, expected)
        seed = values(*expected.shape, dtype=dtype, seed=3)
        for ours, wanted in zip(found_pull(seed), pull(seed)):
            close(ours, wanted)


@pytest.mark.parametrize("seed", range(40))
def test_vmap_of_random_products(seed):
    """One or two times, over any dimension of one or both operands, with gradients."""
    generator = random.Random(seed)
    m, k, n, v, w = (generator.choice([1, 2, 5]) for _ in range(5))
    batch = generator.choice([(), (3,)])
    shape_a, shape_b = (*batch, m, k), generator.choice([(*batch, k, n), (k, n)])

    def mapped(function, depth=generator.choice([1, 2])):
        for dims in (inner, outer)[:depth]:
            function = jax.vmap(function, in_axes=dims)
        return function, depth

    def extended(shape, length, dim):
        return shape if dim is None else (*shape[:dim], length, *shape[dim:])

    inner, outer = (generator.choice([(0, None), (None, 0), (0, 0), (1, 0)]) for _ in range(2))
    ours, depth = mapped(matmul)
    for length, dims in ((v, inner), (w, outer))[:depth]:
        shape_a, shape_b = extended(shape_a, length, dims[0]), extended(shape_b, length, dims[1])
    a, b = values(*shape_a, seed=seed), values(*shape_b, seed=seed + 1)
    theirs, _ = mapped(jnp.matmul, depth)
    close(jax.jit(ours)(a, b), theirs(a, b))
    for argument in (0, 1):
        close(*(jax.grad(lambda a, b: jnp.sin(f(a, b)).sum(), argument)(a, b) for f in (ours, theirs)))


def test_gradients_of_gradients():
    a = values(3, 4)
    found, expected = (jax.jacrev(jax.jacrev(lambda x: (f(x, x.T) ** 2).sum()))(a) for f in (matmul, jnp.matmul))
    assert np.allclose(found, expected)
    found, expected = (jax.vmap(jax.grad(lambda x: f(x, a.T).sum()))(values(5, 2, 4)) for f in (matmul, jnp.matmul))
    assert np.allclose(found, expected)


def test_exact_means_exact():
    row, column = jnp.array([[1.0, 1e20, -1e20]]), jnp.ones((3, 1))
    assert matmul(row, column, accuracy="exact") == 1 and matmul(row, column) != 1
    gradient = jax.jit(jax.grad(lambda x: matmul(x, row, accuracy="exact").sum()))(jnp.ones((1, 1)))
    assert gradient == 1


def test_types_meet_as_jaxs():
    a = values(3, 4, dtype="float32")
    assert matmul(a, values(4, 2)).dtype == jnp.float64
    assert matmul(a, np.ones((4, 2), np.int32)).dtype == jnp.float32
    assert matmul(a, values(4, 2, dtype="complex64")).dtype == jnp.complex64


def test_what_is_refused():
    a = values(3, 4)
    with pytest.raises(TypeError, match="kintsugi multiplies float32, .*; the operands are float16 and float16"):
        matmul(a.astype(jnp.float16), a.T.astype(jnp.float16))
    with pytest.raises(ValueError, match="4 columns meet 3 rows"):
        matmul(a, a)
    with pytest.raises(ValueError, match="b has no dimensions"):
        matmul(a, 2.0)
    with pytest.raises(jax.errors.JaxRuntimeError, match="did you mean exact"):
        matmul(a, a.T, accuracy="exct")
    with pytest.raises(jax.errors.JaxRuntimeError, match="fp64"):
        jax.jit(lambda x: matmul(x, x.T, accuracy="fp64"))(a.astype(jnp.float32)).block_until_ready()


def test_the_handler_refuses_what_does_not_fit():
    """The function's own checks come before."""
    def call(a, b, shape, dtype=jnp.float64, **options):
        attributes = {"accuracy": "", "transpose_a": False, "transpose_b": False, **options}
        return jax.ffi.ffi_call("kintsugi_matmul", jax.ShapeDtypeStruct(shape, dtype))(a, b, **attributes)

    a = values(3, 4)
    close(call(a, a, (3, 3), transpose_b=True), a @ a.T)
    for arguments in ((a, a, (3, 4)), (a, a.T, (3, 4)), (a[None], a.T, (3, 3)),
                      (values(2, 3, 4), a.T[None], (3, 3, 3))):
        with pytest.raises(jax.errors.JaxRuntimeError, match="kintsugi: the shapes of operands and result do not fit"):
            call(*arguments).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="kintsugi: operands and result have one of the types"):
        call(a, a.T, (3, 3), jnp.float32).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="kintsugi: a matrix has two dimensions"):
        call(a[0], a.T, (3,)).block_until_ready()


def test_a_training_step_under_jit():
    """The losses of a network with one hidden layer are JAX's."""
    x, y = values(32, 8, dtype="float32"), values(32, 1, dtype="float32", seed=2)
    start = [values(8, 16, dtype="float32", seed=3), values(16, 1, dtype="float32", seed=4)]

    def train(multiply):
        def loss(weights):
            return ((multiply(jnp.tanh(multiply(x, weights[0])), weights[1]) - y) ** 2).mean()

        step = jax.jit(jax.value_and_grad(loss))
        weights, losses = start, []
        for _ in range(20):
            value, gradient = step(weights)
            weights = [w - 0.02 * g for w, g in zip(weights, gradient)]
            losses.append(float(value))
        return np.array(losses)

    ours, theirs = train(matmul), train(jnp.matmul)
    assert theirs[-1] < 0.5 * theirs[0] and np.allclose(ours, theirs, rtol=1e-4)
