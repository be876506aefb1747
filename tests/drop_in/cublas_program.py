"""A program that calls cuBLAS by ctypes, over the fakes: matrices of ones in memory that the fakes take for the device's.

It prints a JSON document: statuses, the first element of each C, and the events of the fake driver.
"""

import argparse
import array
import ctypes
import json
import os
import sys


def ones(real, count):
    code = "f" if real is ctypes.c_float else "d"
    return (real * max(count, 1)).from_buffer(array.array(code, [1]) * max(count, 1))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog="example: cublas_program.py --product sgemm 64 64 64")
    parser.add_argument("--handle", action="store_true", help="take functions by dlsym from libcublas's own handle")
    parser.add_argument("--deepbind", action="store_true", help="load libcublas with RTLD_DEEPBIND")
    parser.add_argument("--product", nargs=4, action="append", default=[], metavar=("NAME", "M", "N", "K"))
    parser.add_argument("--matmul", action="append", default=[], metavar="MEMBERS",
                        help="a cublasLtMatmul of 64 x 48 x 32: type=0,compute=68,scale=0,epilogue=1,order=0,count=1,count_of_b=1,beta=0")
    parser.add_argument("--xt-devices", type=int, help="multiply by cublasXt, which takes so many devices")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--beta", type=float, default=0)
    parser.add_argument("--captured-beta", type=float, help="of captured products [that of the others]")
    parser.add_argument("--math-mode", type=int, default=0)
    parser.add_argument("--capture", action="store_true", help="capture the stream during the products")
    parser.add_argument("--capture-later", action="store_true", help="the same, but for the first repetition")
    parser.add_argument("--graphs", type=int, default=0, help="then capture them so often, each time for a child graph that is there twice")
    parser.add_argument("--keep-graphs", action="store_true", help="do not destroy these graphs")
    parser.add_argument("--ask-for-reports", action="store_true", help="ask for a report before the products and after them")
    parser.add_argument("--no-context", action="store_true", help="leave no context current")
    return parser.parse_args()


def matmul(blas, handle, members):
    """Calls cublasLtMatmul with what `members` change of a product of FP32 matrices of ones; returns the status."""
    number = {"type": 0, "compute": 68, "scale": 0, "epilogue": 1, "order": 0, "count": 1, "count_of_b": 1, "beta": 0}
    number |= {name: int(value) for name, value in (pair.split("=") for pair in members.split(",") if pair)}

    def set_attribute(function, descriptor, attribute, value):
        function(descriptor, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def layout(rows, columns, count):
        made = ctypes.c_void_p()
        blas.cublasLtMatrixLayoutCreate(ctypes.byref(made), number["type"], ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows))
        for attribute, value in ((1, ctypes.c_int32(number["order"])), (5, ctypes.c_int32(count)), (6, ctypes.c_int64(rows * columns))):
            set_attribute(blas.cublasLtMatrixLayoutSetAttribute, made, attribute, value)
        return made

    description = ctypes.c_void_p()
    blas.cublasLtMatmulDescCreate(ctypes.byref(description), number["compute"], number["scale"])
    set_attribute(blas.cublasLtMatmulDescSetAttribute, description, 7, ctypes.c_uint32(number["epilogue"]))
    m, n, k = 64, 48, 32
    a, b, c = (ones(ctypes.c_float, rows * columns * number["count"]) for rows, columns in ((m, k), (k, n), (m, n)))
    layouts = layout(m, k, number["count"]), layout(k, n, number["count_of_b"]), layout(m, n, number["count"])
    scalars = [ctypes.byref(ctypes.c_float(value)) for value in (1, number["beta"])]
    return blas.cublasLtMatmul(handle, description, scalars[0], a, layouts[0], b, layouts[1], scalars[1], c, layouts[2], c, layouts[2],
                               None, None, ctypes.c_size_t(0), None)


def report(library):
    """The document of kintsugi_cublas_report."""
    needed = ctypes.c_size_t()
    library.kintsugi_cublas_report(None, ctypes.c_size_t(0), ctypes.byref(needed))
    text = ctypes.create_string_buffer(needed.value)
    assert library.kintsugi_cublas_report(text, ctypes.c_size_t(needed.value), None) == 0
    return json.loads(text.value)


def multiply(blas, handle, xt, beta, name, *sizes):
    """The status of a product, by the handle `xt` of cublasXt if it is not None, and the first element of C."""
    m, n, k = map(int, sizes)
    real = ctypes.c_float if name[0] == "s" else ctypes.c_double
    a, b, c = (ones(real, rows * columns) for rows, columns in ((m, k), (k, n), (m, n)))
    if xt is not None:
        m, n, k = (ctypes.c_size_t(size) for size in (m, n, k))
        function = getattr(blas, f"cublasXt{name[0].upper()}{name[1:]}")
        return function(xt, 0, 0, m, n, k, ctypes.byref(real(1)), a, m, b, k, ctypes.byref(real(beta)), c, m), c[0]
    function = getattr(blas, f"cublas{name[0].upper()}{name[1:]}_v2")
    return function(handle, 0, 0, m, n, k, ctypes.byref(real(1)), a, max(m, 1), b, max(k, 1), ctypes.byref(real(beta)), c, max(m, 1)), c[0]


def captured(cuda, stream, enqueue, is_kept):
    """Captures work, and adds its graph twice to another one, which is kept or destroyed. Returns the statuses."""
    graph, parent, nodes = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_void_p * 2)()
    cuda.cuStreamBeginCapture_v2(stream, 0)
    enqueue()
    statuses = [cuda.cuStreamEndCapture(stream, ctypes.byref(graph)), cuda.cuGraphCreate(ctypes.byref(parent), 0)]
    for count in range(2):
        node = ctypes.byref(nodes, count * ctypes.sizeof(ctypes.c_void_p))
        statuses.append(cuda.cuGraphAddChildGraphNode(node, parent, nodes, ctypes.c_size_t(count), graph))
    cuda.cuGraphDestroy(graph)
    if not is_kept:
        cuda.cuGraphDestroy(parent)
    return statuses


def make_context_current(cuda):
    """Initializes the driver, and makes the primary context of its first device current."""
    context = ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)


def main():
    options = arguments()
    local = ctypes.CDLL("libcublas.so.13", mode=os.RTLD_LOCAL | os.RTLD_NOW | (os.RTLD_DEEPBIND if options.deepbind else 0))
    blas = local if options.handle or options.deepbind else ctypes.CDLL(None)
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.fake_cuda_events.restype = ctypes.c_char_p
    handle, stream, graph = (ctypes.c_void_p() for _ in range(3))
    xt = ctypes.c_void_p() if options.xt_devices is not None else None
    make_context_current(cuda)
    blas.cublasCreate_v2(ctypes.byref(handle))
    local.fake_cublas_allow_default_workspace(handle)
    cuda.cuStreamCreate(ctypes.byref(stream), 0)
    blas.cublasSetStream_v2(handle, stream)
    blas.cublasSetMathMode(handle, options.math_mode)
    if xt is not None:
        blas.cublasXtCreate(ctypes.byref(xt))
        blas.cublasXtDeviceSelect(xt, options.xt_devices, (ctypes.c_int * options.xt_devices)(*range(options.xt_devices)))
    if options.no_context:
        cuda.cuCtxSetCurrent(None)
    statuses, results = [], []
    reports = [report(ctypes.CDLL(None))] if options.ask_for_reports else []

    def call(product):
        status, first = multiply(blas, handle, xt, options.beta, *product)
        statuses.append(status)
        results.append(first)

    for number, product in enumerate(options.product * options.repeat):
        if options.capture and number == 0 or options.capture_later and number == len(options.product):
            cuda.cuStreamBeginCapture_v2(stream, 0)
            options.beta = options.beta if options.captured_beta is None else options.captured_beta
        call(product)
    statuses += [matmul(blas, handle, members) for members in options.matmul]
    if options.capture or options.capture_later:
        statuses.append(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
    for _ in range(options.graphs):
        statuses += captured(cuda, stream, lambda: [call(product) for product in options.product], options.keep_graphs)
    if options.ask_for_reports:
        reports.append(report(ctypes.CDLL(None)))
    events = cuda.fake_cuda_events().decode().splitlines()
    json.dump({"statuses": statuses, "results": results, "events": events, "stream": stream.value, "reports": reports}, sys.stdout)


if __name__ == "__main__":
    main()
