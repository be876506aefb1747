"""Operators of torch: torch.ops.kintsugi.{gemm, mm, bmm, addmm, baddbmm, linear}. The first has a kernel, fake kernel,
gradient, vmap and autocast rule of its own; the others are written with it and inherit them.

Where torch has a stable ABI, what most calls need is compiled (core/operators.cpp): the kernels of gemm, and of mm, bmm
and linear the way there for tensors that need no gradient. It calls operators of this file for all else."""

from __future__ import annotations

import functools
import json
import sys
import threading
import weakref
from typing import Any, Callable

import numpy as np
import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function

from kintsugi import _core, _torch
from kintsugi._arrays import as_array, common_type
from kintsugi._matmul import matmul_stored
from kintsugi._operands import Prepared, make_scalar

if not _torch.has_operators():
    raise ImportError(f"kintsugi.torch needs torch.library.register_vmap, which torch {torch.__version__} lacks; it is "
                      f"tested with torch 2.11 and 2.15")

TYPES = frozenset((torch.float32, torch.float64, torch.complex64, torch.complex128))
_HALF_TYPES = frozenset((torch.float16, torch.bfloat16))

# torch copies its thread-local objects into the threads in which backward() runs, which threading.local does not. But
# a thread that ends with such an object may wait for the interpreter's lock for ever, and torch before 2.15 cannot
# remove it.
_KEY = "kintsugi accuracy"
_IS_COPIED = hasattr(torch._C, "_remove_obj_from_tls")
_local = threading.local()
# The accuracy of operators that name none and for which use() does not count.
NOT_OF_THREAD = ""
has_use = False  # use() was called; torch.compiler.disable, below, makes thread_accuracy() slow


def thread_accuracy(default: str | None = None) -> str | None:
    """Returns the accuracy that use() has set in this thread, else the default."""
    if not _IS_COPIED:
        return getattr(_local, "accuracy", default)
    return torch._C._get_obj_in_tls(_KEY) if torch._C._is_key_in_tls(_KEY) else default


def set_thread_accuracy(accuracy: str | None) -> None:
    if _IS_COPIED:
        torch._C._stash_obj_in_tls(_KEY, accuracy)
    else:
        _local.accuracy = accuracy


def has_thread_accuracy() -> bool:
    return torch._C._is_key_in_tls(_KEY) if _IS_COPIED else hasattr(_local, "accuracy")


def remove_thread_accuracy() -> None:
    if _IS_COPIED:
        getattr(torch._C, "_remove_obj_from_tls")(_KEY)  # mypy with an older torch knows none
    else:
        del _local.accuracy


if not _IS_COPIED:  # torch.compile runs functions of torch._C itself, but would trace these
    thread_accuracy, set_thread_accuracy, has_thread_accuracy, remove_thread_accuracy = map(
        torch.compiler.disable,
        (thread_accuracy, set_thread_accuracy, has_thread_accuracy, remove_thread_accuracy))


def stored(x: Tensor) -> Tensor:
    """Returns a tensor of torch's own class, without autograd, that shares x's memory and its version."""
    if type(x) is Tensor and not x.requires_grad:
        return x
    with torch._C.DisableTorchFunctionSubclass():
        plain = x.detach()
        return plain if type(plain) is Tensor else plain.as_subclass(Tensor)


def multiply(a: Tensor, b: Tensor, c: Tensor | None, shape: Any, alpha: Any, beta: Any, **options: Any) -> Tensor:
    """Returns a new tensor alpha a b + beta c of a shape to which c is broadcast. Without c beta is not read."""
    a, b = stored(a), stored(b)
    if c is None or beta == 0:
        product: Tensor = matmul_stored(a, b, alpha=alpha, **options)
        return product
    out = a.new_empty(shape)
    out.copy_(c.expand(shape))
    matmul_stored(a, b, alpha=alpha, beta=beta, out=out, **options)
    return out


_OPTIONS = "str? accuracy=None, str? gradient_accuracy=None"
_SCHEMAS = {
    # settings: None, or the JSON text of _settings(): few arguments make a call quick, and the stable ABI has no complex
    # numbers.
    "gemm": "(Tensor a, Tensor b, Tensor? c=None, str? accuracy=None, str? gradient_accuracy=None, str? settings=None) "
            "-> Tensor",
    "mm": f"(Tensor self, Tensor mat2, *, {_OPTIONS}) -> Tensor",
    "bmm": f"(Tensor self, Tensor mat2, *, {_OPTIONS}) -> Tensor",
    "addmm": f"(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, {_OPTIONS}) -> Tensor",
    "baddbmm": f"(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, {_OPTIONS}) -> Tensor",
    "linear": f"(Tensor input, Tensor weight, Tensor? bias=None, *, {_OPTIONS}) -> Tensor",
    "prepared_linear": "(Tensor input, Tensor weight, Tensor? bias, str? accuracy, int number) -> Tensor",
}
_library = torch.library.Library("kintsugi", "DEF")


def _define(name: str, schema: str) -> None:
    _library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))


for _name, _schema in _SCHEMAS.items():
    _define(_name, _schema)
gemm = torch.ops.kintsugi.gemm.default


def _settings(alpha: Any = 1, beta: Any = 1, **options: Any) -> str | None:
    """Returns the settings of gemm(): what is not the default of matmul()'s options, of alpha and of beta = 1."""
    found = {name: [x.real, x.imag] for name, x in (("alpha", alpha), ("beta", beta)) if x != 1}
    found.update((name, value) for name, value in options.items() if value is not None)
    return json.dumps(found) if found else None


@functools.lru_cache
def _read_settings(settings: str | None) -> tuple[Any, Any, dict[str, Any]]:
    """Returns alpha, beta and the other options."""
    options = {} if settings is None else json.loads(settings)
    alpha, beta = (complex(*parts) if parts[1] != 0 else parts[0]
                   for parts in (options.pop(name, (1, 0)) for name in ("alpha", "beta")))
    return alpha, beta, options


def _result_shape(a: Tensor, b: Tensor, c: Tensor | None) -> tuple[int, ...]:
    """Returns the shape of a b. Raises TypeError or ValueError for operands that do not go together."""
    for name, x in (("a", a), ("b", b), ("c", c)):
        if x is None:
            continue
        if x.dtype not in TYPES:
            raise TypeError(f"{name} is {x.dtype}; kintsugi multiplies float32, float64, complex64 and complex128")
        if x.dtype != a.dtype or x.device != a.device:
            raise TypeError(f"{name} is {x.dtype} on {x.device} and a {a.dtype} on {a.device}; an operator has "
                            "operands of one type on one device")
    if a.dim() < 2 or b.dim() < 2:
        raise ValueError(f"a has the shape {tuple(a.shape)} and b {tuple(b.shape)}; a matrix has two dimensions")
    (*batch_a, m, k), (*batch_b, inner, n) = a.shape, b.shape
    if k != inner:
        raise ValueError(f"a has the shape {tuple(a.shape)} and b {tuple(b.shape)}: {k} columns meet {inner} rows")
    return (*torch.broadcast_shapes(batch_a, batch_b), m, n) if batch_a or batch_b else (m, n)


def _gemm(a: Tensor, b: Tensor, c: Tensor | None = None, accuracy: str | None = None,
          gradient_accuracy: str | None = None, settings: str | None = None) -> Tensor:
    shape = _result_shape(a, b, c)
    alpha, beta, options = _read_settings(settings)
    if accuracy is None and "scheme" not in options:
        accuracy = thread_accuracy()
    elif accuracy == NOT_OF_THREAD:
        accuracy = None
    return multiply(a, b, c, shape, alpha, beta, accuracy=accuracy, **options)


def _gemm_fake(a: Tensor, b: Tensor, c: Tensor | None = None, accuracy: str | None = None,
               gradient_accuracy: str | None = None, settings: str | None = None) -> Tensor:
    shape = _result_shape(a, b, c)
    if c is not None:
        c.expand(shape)  # raises an error of its own
    if "torch._inductor" in sys.modules:
        _lower()
    return a.new_empty(shape)


def _gemm_into(a: Tensor, b: Tensor, c: Tensor | None, accuracy: str | None, *, out: Tensor) -> Tensor:
    """Is gemm in a graph, with the result in out."""
    return out.copy_(_gemm(a, b, c, accuracy))


@functools.lru_cache
def _lower() -> None:
    """Makes Inductor call a compiled function in place of an operator: its graphs then allocate the result beforehand,
    and pass by torch's dispatcher. Graphs of other products, or of C++ alone, call the operator."""
    from torch._inductor import ir, lowering, select_algorithm
    from torch._inductor.virtualized import V

    compiled = _core.route("gemm.out", _gemm_into)
    if compiled is _gemm_into:
        return
    as_operator = lowering.fallback_handler(gemm, add_to_fallback_set=False)
    name = "kintsugi_gemm"
    setattr(select_algorithm.extern_kernels, name, compiled)

    def lower(a: Any, b: Any, c: Any = None, accuracy: str | None = None, gradient_accuracy: str | None = None,
              settings: str | None = None) -> Any:
        if settings is not None or V.graph.cpp_wrapper or a.get_dtype().is_complex:
            return as_operator(a, b, c, accuracy, gradient_accuracy, settings)
        batches = [list(x.get_size()[:-2]) for x in (a, b)]
        longest = max(batches, key=len)
        if any(batch and batch != longest for batch in batches):  # it broadcasts
            return as_operator(a, b, c, accuracy, gradient_accuracy, settings)
        size = [*longest, a.get_size()[-2], b.get_size()[-1]]
        layout = ir.FixedLayout(a.get_device(), a.get_dtype(), size, ir.FlexibleLayout.contiguous_strides(size))
        inputs = [ir.ExternKernel.realize_input(x) for x in (a, b, c) if x is not None]
        constants = (accuracy,) if c is not None else (None, accuracy)
        return ir.TensorBox.create(ir.ExternKernelOut(layout, inputs, constants,
                                                      python_kernel_name=f"extern_kernels.{name}"))

    lowering.register_lowering(gemm, type_promotion_kind=None)(lower)


class _GemmWithGradient(torch.autograd.function._SingleLevelFunction):
    """The operator gemm with its gradient. A torch.autograd.Function would pass a call that a transform of torch.func
    has passed to this kernel on to the transform."""

    @staticmethod
    def forward(ctx: Any, keys: Any, options: tuple[Any, ...], a: Tensor, b: Tensor, c: Tensor | None) -> Any:
        ctx.save_for_backward(a if b.requires_grad else None, b if a.requires_grad else None)
        if has_forward_mode():
            ctx.save_for_forward(a, b)
        ctx.shapes = a.shape, b.shape, None if c is None else c.shape
        ctx.alpha, ctx.beta, others = _read_settings(options[2])
        ctx.accuracy, ctx.others = _options_of_gradient(options[0], options[1], others)
        ctx.set_materialize_grads(False)
        # torch.func's outer transforms differentiate the call below.
        with torch.enable_grad(), torch.autograd.forward_ad._set_fwd_grad_enabled(True):
            return _below_autograd(keys, a, b, c, *options)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors
        shape_a, shape_b, shape_c = ctx.shapes
        options = ctx.accuracy, None, _settings(alpha=ctx.alpha.conjugate(), **ctx.others)
        of_a = of_b = of_c = None
        if gradient is None:
            return None, None, None, None, None
        if b is not None:
            of_a = gemm(gradient, b.mH, None, *options).sum_to_size(shape_a)
        if a is not None:
            of_b = gemm(a.mH, gradient, None, *options).sum_to_size(shape_b)
        if ctx.needs_input_grad[-1]:
            of_c = (gradient * ctx.beta.conjugate()).sum_to_size(shape_c)
        return None, None, of_a, of_b, of_c

    @staticmethod
    def jvp(ctx: Any, _keys: None, _options: None, of_a: Tensor | None, of_b: Tensor | None,
            of_c: Tensor | None) -> Tensor:
        a, b = ctx.saved_tensors
        options = ctx.accuracy, None, _settings(alpha=ctx.alpha, **ctx.others)
        tangent: Tensor = a.new_zeros(_result_shape(a, b, None)) if of_c is None else of_c * ctx.beta
        if of_a is not None:
            tangent = gemm(of_a, b, tangent, *options)
        if of_b is not None:
            tangent = gemm(a, of_b, tangent, *options)
        return tangent.expand(_result_shape(a, b, None))


def is_traced() -> bool:
    """Returns True if a graph is made of what runs."""
    if torch.compiler.is_compiling():
        return True
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None


def _options_of_gradient(accuracy: str | None, gradient_accuracy: str | None,
                         others: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Returns the accuracy of the gradient's products, and the other options."""
    if gradient_accuracy is not None:  # the scheme may be unable to give it
        return gradient_accuracy, {name: value for name, value in others.items() if name != "scheme"}
    if accuracy is None and "scheme" not in others and not is_traced():  # a graph reads it whenever it runs
        accuracy = thread_accuracy()
    return accuracy, others


# The dispatch keys of a call in which nothing takes part but a device and autograd: no mode, no transform, no subclass.
_PLAIN_CALLS = frozenset(keys.raw_repr() for device in ("CPU", "CUDA") for keys in (
    torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, device)),
    torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, device)) |
    torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autograd{device}"))))


def _below_autograd(keys: Any, a: Tensor, b: Tensor, c: Tensor | None, *options: Any) -> Any:
    """Calls what comes after autograd, which is the kernel if nothing else takes part."""
    with torch._C._AutoDispatchBelowAutograd():
        if keys.raw_repr() in _PLAIN_CALLS:
            return _kernel(a, b, c, *options)
        return gemm.redispatch(keys & torch._C._after_autograd_keyset, a, b, c, *options)


def has_forward_mode() -> bool:
    """Returns True if tensors may have tangents, those of torch.autograd.forward_ad or torch.func.jvp."""
    return bool(torch.autograd.forward_ad._current_level >= 0)


def _needs_gradient(a: Tensor, b: Tensor, c: Tensor | None) -> bool:
    needs = a.requires_grad or b.requires_grad or (c is not None and c.requires_grad)
    return (needs and torch.is_grad_enabled()) or has_forward_mode()


def _gemm_autograd(keys: Any, a: Tensor, b: Tensor, c: Tensor | None = None, accuracy: str | None = None,
                   gradient_accuracy: str | None = None, settings: str | None = None) -> Any:
    options = accuracy, gradient_accuracy, settings
    if not _needs_gradient(a, b, c):
        return _below_autograd(keys, a, b, c, *options)
    function: Any = _GemmWithGradient
    if not torch._C._are_functorch_transforms_active():
        return function.apply(keys, options, a, b, c)
    with enable_single_level_autograd_function():
        return function.apply(keys, options, a, b, c)


def _gemm_vmap(info: Any, in_dims: Any, a: Tensor, b: Tensor, c: Tensor | None = None,
               *options: Any, **named: Any) -> tuple[Tensor, int]:
    """Puts vmap's dimension before all others: it is one more of the batch."""
    dims = (*in_dims, None)[:3]
    rank = max(x.dim() - (dim is not None) for x, dim in zip((a, b, c), dims) if x is not None)

    def aligned(x: Tensor | None, dim: int | None) -> Tensor | None:
        if x is None or dim is None:
            return x
        x = x.movedim(dim, 0)
        return x.reshape(x.shape[0], *(1,) * (rank + 1 - x.dim()), *x.shape[1:])

    if dims[0] is None and dims[1] is None:  # c alone has the dimension, and it is not broadcast over c
        a, dims = a.expand(info.batch_size, *a.shape), (0, *dims[1:])
    return gemm(*(aligned(x, dim) for x, dim in zip((a, b, c), dims)), *options, **named), 0


def _gemm_autocast(device: str) -> Any:
    """Returns the rule under autocast: float16 and bfloat16 are converted to float32, as by torch's own operators that
    need the range or accuracy of float32. Other types are kept."""
    excluded = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device}"))

    def widened(x: Tensor | None) -> Tensor | None:
        return x.float() if x is not None and x.dtype in _HALF_TYPES else x

    def rule(a: Tensor, b: Tensor, c: Tensor | None = None, **options: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            return gemm(widened(a), widened(b), widened(c), **options)

    return rule


def _call_gemm(keys: Any, a: Tensor, b: Tensor, c: Tensor | None = None, **options: Any) -> Any:
    """Calls the operator gemm, or at once what it would call if nothing takes part but a device and autograd. That
    saves half of the time of small products."""
    if keys.raw_repr() in _PLAIN_CALLS and not torch.is_autocast_enabled("cuda" if a.is_cuda else "cpu"):
        return _gemm_autograd(keys, a, b, c, **options)
    return gemm(a, b, c, **options)


def _check_ranks(name: str, rank: int, a: Tensor, b: Tensor) -> None:
    if a.dim() != rank or b.dim() != rank or (rank == 3 and a.shape[0] != b.shape[0]):
        batch = " with one batch size" if rank == 3 else ""
        raise ValueError(f"{name} multiplies two tensors of {rank} dimensions{batch}; the shapes are {tuple(a.shape)} "
                         f"and {tuple(b.shape)}")


# The operators written with gemm, as functions of what multiplies.
Multiply = Callable[..., Any]


def _mm(multiply: Multiply, self: Tensor, mat2: Tensor, **options: Any) -> Any:
    _check_ranks("mm", 2, self, mat2)
    return multiply(self, mat2, **options)


def _bmm(multiply: Multiply, self: Tensor, mat2: Tensor, **options: Any) -> Any:
    _check_ranks("bmm", 3, self, mat2)
    return multiply(self, mat2, **options)


def _addmm(multiply: Multiply, self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1,
           **options: Any) -> Any:
    _check_ranks("addmm", 2, mat1, mat2)
    return multiply(mat1, mat2, self, **options, settings=_settings(alpha, beta))


def _baddbmm(multiply: Multiply, self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1,
             **options: Any) -> Any:
    _check_ranks("baddbmm", 3, batch1, batch2)
    return multiply(batch1, batch2, self, **options, settings=_settings(alpha, beta))


def _linear(multiply: Multiply, input: Tensor, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Any:
    if weight.dim() != 2 or input.dim() == 0:
        raise ValueError(f"linear takes an input (..., k) and a weight (n, k); the shapes are {tuple(input.shape)} and "
                         f"{tuple(weight.shape)}")
    if input.dim() == 2:
        return multiply(input, weight.mT, bias, **options)
    return multiply(_as_rows(input), weight.mT, bias, **options).reshape(*input.shape[:-1], weight.shape[0])


def _as_rows(x: Tensor) -> Tensor:
    """Returns a tensor (..., k) as one matrix. So the other operand's gradient is one product too."""
    return x.flatten(0, -2) if x.dim() > 1 else x[None]


def _composite(function: Callable[..., Any]) -> Any:
    def kernel(keys: Any, *arguments: Any, **options: Any) -> Any:
        return function(functools.partial(_call_gemm, keys), *arguments, **options)

    return kernel


_COMPOSITES: dict[str, Callable[..., Any]] = {"mm": _mm, "bmm": _bmm, "addmm": _addmm, "baddbmm": _baddbmm, "linear": _linear}


def _kept(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a kernel that a compiled one may call, to which it passes an exception with any tensor as the result."""

    def keeping(*arguments: Any, **options: Any) -> Any:
        is_called_by_kernel = _core.take_call()
        try:
            return kernel(*arguments, **options)
        except BaseException as error:
            if not is_called_by_kernel:
                raise
            _core.keep_error(error)
            return next(x for x in arguments if isinstance(x, Tensor))

    return keeping


def _product(multiply: Multiply, a: Tensor, b: Tensor, c: Tensor | None, accuracy: str | None,
             gradient_accuracy: str | None, form: int, _prepared: int) -> Any:
    """Returns a product of a form that core/operators.cpp numbers."""
    options = {"accuracy": accuracy, "gradient_accuracy": gradient_accuracy}
    if form == 0:
        return multiply(a, b, c, **options)
    if form in (2, 3):
        return (_mm if form == 2 else _bmm)(multiply, a, b, **options)
    return _linear(multiply, a, b, c, **options)


def _below(_keys: Any, *arguments: Any) -> Any:
    """Passes a call that needs no gradient on to what is between autograd and the kernels: to gemm, which it has."""
    with torch._C._AutoDispatchBelowAutograd():
        return _product(gemm, *arguments)


def _unprepared_linear(_keys: Any, input: Tensor, weight: Tensor, bias: Tensor | None, accuracy: str | None,
                       _number: int) -> Any:
    return torch.ops.kintsugi.linear(input, weight, bias, accuracy=accuracy)


_numbered: Any = weakref.WeakValueDictionary()  # operands that prepared_linear multiplies by where nothing is compiled


def number_of(prepared: Prepared) -> int:
    """Returns the number by which prepared_linear knows a prepared weight, as long as the weight lives."""
    if HAS_COMPILED:
        return _core.prepared_address(prepared._prepared)
    _numbered[id(prepared)] = prepared
    return id(prepared)


def _prepared_linear(keys: Any, input: Tensor, weight: Tensor, bias: Tensor | None, accuracy: str | None,
                     number: int) -> Any:
    tensors = [x for x in (input, weight, bias) if x is not None]
    is_plain = (keys.raw_repr() in _PLAIN_CALLS and not torch.is_autocast_enabled(input.device.type)
                and not _needs_gradient(input, weight, bias) and input.numel() > 0
                and input.dim() > 0 and input.shape[-1] == weight.shape[1]
                and all(x.dtype is weight.dtype and x.device == weight.device for x in tensors))
    if not is_plain:
        return _unprepared_linear(keys, input, weight, bias, accuracy, number)
    rows = stored(input).reshape(-1, weight.shape[1])
    out = None
    if bias is not None:
        out = rows.new_empty((rows.shape[0], weight.shape[0]))
        out.copy_(bias)
    result = matmul_stored(rows, _numbered[number], beta=0 if out is None else 1, out=out, accuracy=accuracy)
    return result.reshape(*input.shape[:-1], weight.shape[0])


def _implement_below() -> None:
    """Defines the operators that compiled kernels call for a product without a gradient."""
    product = ("(Tensor a, Tensor b, Tensor? c, str? accuracy, str? gradient_accuracy, int form, int prepared) "
               "-> Tensor")
    _define("below", product)
    for key in ("Meta", "Python", "FuncTorchDynamicLayerBackMode"):
        _library.impl("below", _kept(_below), key, with_keyset=True)
    for key in ("AutocastCPU", "AutocastCUDA"):
        _library.impl("below", _kept(functools.partial(_product, gemm)), key)
    _library.impl("below", torch.library.fallthrough_kernel, "Autograd")
    _define("product_in_python", product)
    _library.impl("product_in_python", _kept(functools.partial(_product, _gemm)), "CompositeImplicitAutograd")


HAS_COMPILED = _core.register_operators(torch, thread_accuracy)
if HAS_COMPILED:
    _implement_below()
_kernel: Any = _core.route("gemm", _gemm)
for _device in ("CPU", "CUDA"):
    _library.impl("gemm", _kernel, _device)
    _library.impl("gemm", _gemm_autocast(_device), f"Autocast{_device}")
_kernels = {_name: _composite(_function) for _name, _function in _COMPOSITES.items()}
_kernels.update(gemm=_gemm_autograd, prepared_linear=_unprepared_linear if HAS_COMPILED else _prepared_linear)
for _name, _function in _kernels.items():
    if HAS_COMPILED and _name not in ("addmm", "baddbmm"):  # a compiled kernel calls this one
        _define(f"{_name}_in_python", _SCHEMAS[_name])
        _library.impl(f"{_name}_in_python", _kept(_function), "CompositeImplicitAutograd", with_keyset=True)
    else:
        _library.impl(_name, _function, "Autograd" if _name == "gemm" else "CompositeImplicitAutograd", with_keyset=True)
    if _name != "gemm":
        _library.impl(_name, _function, "FuncTorchBatchedDecomposition", with_keyset=True)
torch.library.register_fake("kintsugi::gemm", _gemm_fake, lib=_library)
torch.library.register_vmap("kintsugi::gemm", _gemm_vmap, lib=_library)


def _as_tensor(x: Any, name: str) -> Any:
    """Returns an operand of matmul() as a tensor with its autograd."""
    if isinstance(x, Prepared):
        raise TypeError(f"{name} is a prepared operand, which has no gradient and gives none: multiply by the matrix "
                        "itself, or under torch.no_grad()")
    if not _torch.is_tensor(x):
        return torch.from_numpy(np.ascontiguousarray(as_array(x, name)))
    _torch.check_class(x, name)
    return x


def matmul_by_operator(a: Any, b: Any, alpha: Any, beta: Any, out: Any, accuracy: Any, **options: Any) -> Any:
    """Returns matmul() of operands of which one needs an operator (_torch.needs_operator())."""
    if out is not None:
        raise TypeError("out is given and an operand requires a gradient, or may have a tangent: autograd does not see "
                        "what is written into out; leave it out, or give the operand's detach()")
    a, b = _as_tensor(a, "a"), _as_tensor(b, "b")
    if a.dim() == 0 or b.dim() == 0:
        raise ValueError(f"{'a' if a.dim() == 0 else 'b'} has no dimensions; a matrix has two")
    dtype = common_type([_torch.dtype_of(x) for x in (a, b)], "an operand")
    if make_scalar(beta, "beta", dtype) != 0:
        raise ValueError(f"beta = {beta} scales the old elements of out, and no out is given")
    texts = {name: value if value is None or name == "threads" else str(value) for name, value in options.items()}
    a, b = (x.to(getattr(torch, dtype.name)) for x in (a, b))
    rows = _as_rows(a) if b.dim() <= 2 else a[None] if a.dim() == 1 else a
    columns = b[:, None] if b.dim() == 1 else b
    result = gemm(rows, columns, accuracy=NOT_OF_THREAD if accuracy is None else str(accuracy),
                  settings=_settings(make_scalar(alpha, "alpha", dtype).item(), **texts))
    if b.dim() <= 2:
        return result.reshape((*a.shape[:-1], *b.shape[1:]))
    return result.squeeze(-2) if a.dim() == 1 else result
