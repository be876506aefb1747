// The module kintsugi._core: the C ABI for Python. matmul() and execute() compute products of plain operands:
// numpy's arrays and torch's tensors that the library can read as they are. For all others they return
// NotImplemented before anything has happened; the Python code (_products.py) makes such operands plain, or
// refuses them, and calls plan() and run().

#include <cstring>
#include <new>

#include "call.hpp"
#include "device.hpp"
#include "dlpack.hpp"
#include "operators.hpp"
#include "plan.hpp"
#include "problem.hpp"
#include "product.hpp"
#include "routes.hpp"
#include "tensor_product.hpp"
#include "thread.hpp"

namespace kintsugi_python {
namespace {

State& state_of(PyObject* module) { return *static_cast<State*>(PyModule_GetState(module)); }

PyObject* none() { return Ref::borrowed(Py_None).release(); }

// Returns NotImplemented. If there is an ordinary Python error, clears it, since the Python code will raise
// it again. Returns nullptr for errors such as interrupts.
PyObject* declined() {
  if (PyErr_Occurred() != nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
    PyErr_Clear();
  }
  return Ref::borrowed(Py_NotImplemented).release();
}

// Takes `count` arguments from the tuple of a call. Returns false, with a Python error, if the tuple has
// another length. The tuple keeps the arguments alive.
template <int count>
bool unpack(PyObject* tuple, PyObject* (&arguments)[count]) {
  if (PyTuple_Size(tuple) != count) {
    PyErr_Format(PyExc_TypeError, "%d arguments are needed, not %zd", count, PyTuple_Size(tuple));
    return false;
  }
  for (int i = 0; i < count; ++i) arguments[i] = PyTuple_GetItem(tuple, i);
  return true;
}

const char matmul_doc[] =
    "matmul(a, b, alpha, beta, out, accuracy, scheme, engine, policy, threads, workspace_limit)\n--\n\n"
    "Returns the result of kintsugi.matmul() with these arguments, or NotImplemented if an operand is not plain.";

PyObject* matmul(PyObject* module, PyObject* tuple) {
  State& state = state_of(module);
  constexpr int first_option = 5;
  PyObject* arguments[first_option + option_count];
  if (!unpack(tuple, arguments)) return nullptr;
  Thread* const thread = this_thread(state);
  if (thread == nullptr) return nullptr;
  Product product(state);
  Options options;
  PyObject* const* const given_options = arguments + first_option;
  if (!product.read({arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]}) ||
      !product.was_prepared_with(given_options))
    return declined();
  if (product.device() != on_host) {
    DeviceMemory* const memory = memory_of(state, product.device());
    if (memory == nullptr) return declined();
    use_memory(*memory, options.values);
  } else if (!state.host_is_ready && given_options[engine_option] == Py_None) {
    return declined();
  }
  if (!options.read(state, thread->handle, given_options)) return nullptr;
  if (!product.announce_write()) return nullptr;
  kintsugi_problem problem = product.problem();
  // The library sees the same in a call with matrices on a device.
  problem.adds_to_c = product.device() != on_host && product.adds_to_c() ? 1 : 0;
  thread->note_call(problem, given_options, product.device());
  return product
      .run([&](const kintsugi_operands* operands) {
        return state.library.gemm(thread->handle, &product.problem(), &options.values, operands);
      })
      .release();
}

const char execute_doc[] =
    "execute(plan, a, b, alpha, beta, out)\n--\n\n"
    "Returns the result of a plan; NotImplemented if an operand is not plain, or if the operands, as they lie in\n"
    "memory, are not those of the plan.";

PyObject* execute(PyObject* module, PyObject* tuple) {
  State& state = state_of(module);
  PyObject* arguments[6];
  if (!unpack(tuple, arguments)) return nullptr;
  Thread* const thread = this_thread(state);
  const Plan* const plan = plan_of(arguments[0]);
  if (thread == nullptr || plan == nullptr) return nullptr;
  Product product(state);
  if (!product.read({arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]}))
    return declined();
  const bool is_plans_problem =
      std::memcmp(&plan->problem, &product.problem(), sizeof(kintsugi_problem)) == 0;
  if (!is_plans_problem || !product.take_workspace(plan->workspace_bytes)) return declined();
  if (!product.announce_write()) return nullptr;
  thread->note_plan(arguments[0]);
  return product
      .run([&](const kintsugi_operands* operands) {
        return state.library.plan_execute(thread->handle, plan->plan, operands);
      })
      .release();
}

const char batch_kind_doc[] =
    "batch_kind(array)\n--\n\n"
    "Returns how BLAS can address the matrices of an array (..., rows, columns): \"strided\", \"pointers\" if its batch\n"
    "items are not equally spaced, or None.";

PyObject* batch_kind_of(PyObject* module, PyObject* x) {
  Array array;
  const bool is_read = state_of(module).numpy.read(x, array) && array.dimensions >= 2;
  if (!is_read && PyErr_Occurred() != nullptr) return nullptr;
  const BatchKind kind = is_read ? batch_kind(array) : BatchKind::none;
  if (kind == BatchKind::none) return none();
  return PyUnicode_FromString(kind == BatchKind::strided ? "strided" : "pointers");
}

const char problem_doc[] =
    "problem(a, b, c, k)\n--\n\n"
    "Returns the problem of a product as a dict with the members of kintsugi_problem. a, b and c have the same batch and\n"
    "type, and BLAS can address them; a or b that is no array is a prepared operand.";

PyObject* problem(PyObject* module, PyObject* tuple) {
  PyObject *a, *b, *c;
  long long k;
  if (PyArg_ParseTuple(tuple, "OOOL", &a, &b, &c, &k) == 0) return nullptr;
  return describe_problem(state_of(module), a, b, c, k).release();
}

const char plan_doc[] =
    "plan(problem, options, stream=None, allocate=None)\n--\n\n"
    "Returns a new plan.\n\n"
    "Args:\n"
    "    problem: as of problem().\n"
    "    options: the tuple (accuracy, scheme, engine, policy, threads, workspace_limit) of kintsugi.matmul().\n"
    "    stream: address of the CUDA stream in which prepare() works with the plan.\n"
    "    allocate: function (bytes, alignment) -> (address, owner) for device memory; None: the library's own.";

PyObject* plan(PyObject* module, PyObject* tuple) {
  PyObject *members, *options, *stream = Py_None, *allocate = Py_None, *given[option_count];
  if (PyArg_ParseTuple(tuple, "O!O!|OO", &PyDict_Type, &members, &PyTuple_Type, &options, &stream,
                       &allocate) == 0)
    return nullptr;
  if (!unpack(options, given)) return nullptr;
  return make_plan(state_of(module), members, given, stream, allocate).release();
}

const char read_plan_doc[] = "read_plan(description)\n--\n\nReturns the plan of a description.";

PyObject* read_plan_of(PyObject* module, PyObject* tuple) {
  const char* text;
  return PyArg_ParseTuple(tuple, "s", &text) == 0 ? nullptr : read_plan(state_of(module), text).release();
}

const char run_doc[] =
    "run(plan, a, b, c, alpha, beta, stream=None)\n--\n\n"
    "Runs a plan whose problem problem(a, b, c, k) has given; a and b may also be prepared operands.\n\n"
    "Args:\n"
    "    alpha, beta: int, float or complex.\n"
    "    stream: address of a CUDA stream; None: returns when c is complete.";

PyObject* run(PyObject* module, PyObject* tuple) {
  PyObject *plan, *a, *b, *c, *alpha, *beta, *stream = Py_None;
  if (PyArg_ParseTuple(tuple, "OOOOOO|O", &plan, &a, &b, &c, &alpha, &beta, &stream) == 0) return nullptr;
  return run_plan(state_of(module), plan, a, b, c, alpha, beta, stream).release();
}

const char run_groups_doc[] =
    "run_groups(groups, options, stream=None)\n--\n\n"
    "Computes products of different shapes, where possible by one launch.\n\n"
    "Args:\n"
    "    groups: list of (problem, a, b, c, alpha, beta), as of problem() and run().\n"
    "    options: as of plan().\n"
    "    stream: as of run().";

PyObject* run_groups_of(PyObject* module, PyObject* tuple) {
  PyObject *groups, *options, *stream = Py_None, *given[option_count];
  if (PyArg_ParseTuple(tuple, "O!O!|O", &PyList_Type, &groups, &PyTuple_Type, &options, &stream) == 0)
    return nullptr;
  return unpack(options, given) ? run_groups(state_of(module), groups, given, stream).release() : nullptr;
}

const char prepare_doc[] =
    "prepare(plan, side, array)\n--\n\n"
    "Returns a new prepared operand. side: \"a\" or \"b\", where the array stands in the plan's problem.";

PyObject* prepare(PyObject* module, PyObject* tuple) {
  PyObject *plan, *array;
  const char* side;
  if (PyArg_ParseTuple(tuple, "OsO", &plan, &side, &array) == 0) return nullptr;
  return prepare_operand(state_of(module), plan, *side == 'a' ? KINTSUGI_A : KINTSUGI_B, array).release();
}

const char plan_problem_doc[] = "plan_problem(plan)\n--\n\nReturns the problem of a plan, as problem() does.";

PyObject* plan_problem(PyObject*, PyObject* capsule) {
  const Plan* const plan = plan_of(capsule);
  return plan == nullptr ? nullptr : members_of(plan->problem).release();
}

const char plan_text_doc[] = "plan_text(plan)\n--\n\nReturns the description of a plan, as JSON.";

PyObject* plan_text(PyObject* module, PyObject* capsule) {
  const Plan* const plan = plan_of(capsule);
  if (plan == nullptr) return nullptr;
  return read_text(state_of(module),
                   [&](char* buffer, size_t capacity, size_t* needed) {
                     return kintsugi_plan_describe(plan->plan, buffer, capacity, needed);
                   })
      .release();
}

const char report_text_doc[] =
    "report_text()\n--\n\nReturns the report of this thread's last product, as JSON.";

PyObject* report_text(PyObject* module, PyObject*) {
  State& state = state_of(module);
  Thread* const thread = this_thread(state);
  if (thread == nullptr) return nullptr;
  return read_text(state,
                   [&](char* buffer, size_t capacity, size_t* needed) {
                     return kintsugi_report(thread->handle, buffer, capacity, needed);
                   })
      .release();
}

const char schemes_text_doc[] = "schemes_text()\n--\n\nReturns the description of all schemes, as JSON.";

PyObject* schemes_text(PyObject* module, PyObject*) {
  return read_text(state_of(module), kintsugi_describe_schemes).release();
}

const char engines_text_doc[] = "engines_text()\n--\n\nReturns the description of all engines, as JSON.";

PyObject* engines_text(PyObject* module, PyObject*) {
  return read_text(state_of(module), kintsugi_describe_engines).release();
}

const char version_doc[] = "version()\n--\n\nReturns the version of the library.";

PyObject* version(PyObject*, PyObject*) { return PyUnicode_FromString(kintsugi_version()); }

const char last_doc[] =
    "last()\n--\n\n"
    "Returns the plan of this thread's last product; if it was one of matmul(): (problem, options, number of its device or\n"
    "-1 for the CPU); None if there was none.";

PyObject* last(PyObject* module, PyObject*) {
  const Thread* const thread = this_thread(state_of(module));
  return thread == nullptr ? nullptr : last_product(*thread).release();
}

const char set_last_doc[] = "set_last(plan)\n--\n\nMakes the plan that of this thread's last product.";

PyObject* set_last(PyObject* module, PyObject* capsule) {
  Thread* const thread = this_thread(state_of(module));
  if (thread == nullptr || plan_of(capsule) == nullptr) return nullptr;
  thread->note_plan(capsule);
  return none();
}

const char release_caches_doc[] =
    "release_caches()\n--\n\n"
    "Releases what the library keeps for later calls, and gives back to torch the workspaces that are kept.";

PyObject* release_caches(PyObject* module, PyObject*) {
  State& state = state_of(module);
  if (!check(state, without_lock(kintsugi_release_caches))) return nullptr;
  for (DeviceMemory& memory : state.memory) memory.spare = Ref();
  release_spare_tensors();
  return none();
}

const char set_threads_doc[] = "set_threads(threads)\n--\n\nCalls kintsugi_set_threads().";

PyObject* set_threads(PyObject*, PyObject* number) {
  const int threads = static_cast<int>(PyLong_AsLong(number));
  if (PyErr_Occurred() != nullptr) return nullptr;
  return PyLong_FromLong(kintsugi_set_threads(threads));
}

const char accept_host_doc[] =
    "accept_host(accepted)\n--\n\n"
    "Sets whether matmul() computes products on the CPU that name no engine. It does not until the process has warned of\n"
    "a missing engine, which the Python code does.";

PyObject* accept_host(PyObject* module, PyObject* accepted) {
  const int value = PyObject_IsTrue(accepted);
  if (value < 0) return nullptr;
  state_of(module).host_is_ready = value == 1;
  return none();
}

const char replace_doc[] =
    "replace(gemm, plan_create, plan_execute)\n--\n\n"
    "Replaces functions of the library, for tests and measurements, by those at the addresses; 0: the library's own.";

template <typename Function>
void replace_one(Function& function, Function own, unsigned long long address) {
  function = address == 0 ? own : reinterpret_cast<Function>(static_cast<uintptr_t>(address));
}

PyObject* replace(PyObject* module, PyObject* tuple) {
  unsigned long long gemm, plan_create, plan_execute;
  if (PyArg_ParseTuple(tuple, "KKK", &gemm, &plan_create, &plan_execute) == 0) return nullptr;
  Library& library = state_of(module).library;
  replace_one(library.gemm, kintsugi_gemm, gemm);
  replace_one(library.plan_create, kintsugi_plan_create, plan_create);
  replace_one(library.plan_execute, kintsugi_plan_execute, plan_execute);
  return none();
}

const char import_dlpack_doc[] =
    "import_dlpack(capsule, x)\n--\n\n"
    "Takes the tensor out of a capsule of x's __dlpack__(). Returns (address, shape, strides in bytes or None for C order,\n"
    "type, number of the device, True if it is read-only, owner).";

PyObject* import_dlpack_of(PyObject*, PyObject* tuple) {
  PyObject *capsule, *x;
  return PyArg_ParseTuple(tuple, "OO", &capsule, &x) == 0 ? nullptr : import_dlpack(capsule, x).release();
}

const char export_dlpack_doc[] =
    "export_dlpack(owner, address, shape, strides, type, device)\n--\n\n"
    "Returns a capsule for __dlpack__(), which keeps the owner alive as long as it is used.";

PyObject* export_dlpack_of(PyObject*, PyObject* tuple) {
  PyObject *owner, *address, *shape, *strides;
  const char* typestr;
  int device;
  if (PyArg_ParseTuple(tuple, "OOO!Osi", &owner, &address, &PyTuple_Type, &shape, &strides, &typestr,
                       &device) == 0)
    return nullptr;
  return export_dlpack(owner, address, shape, strides, typestr, device).release();
}

const char enter_device_doc[] =
    "enter_device(number)\n--\n\n"
    "Makes the device's primary context current. Returns what leave_device() takes.";

PyObject* enter_device_of(PyObject*, PyObject* tuple) {
  int device;
  return PyArg_ParseTuple(tuple, "i", &device) == 0 ? nullptr : enter_device(device).release();
}

const char leave_device_doc[] = "leave_device(outer)\n--\n\nMakes the context current that was before.";

PyObject* leave_device_of(PyObject*, PyObject* outer) { return leave_device(outer).release(); }

const char allocate_on_device_doc[] =
    "allocate_on_device(number, bytes)\n--\n\n"
    "Returns (address, owner) of memory of the current device, which is freed when the owner is deleted.";

PyObject* allocate_on_device_of(PyObject*, PyObject* tuple) {
  int device;
  Py_ssize_t bytes;
  if (PyArg_ParseTuple(tuple, "in", &device, &bytes) == 0) return nullptr;
  return allocate_on_device(device, static_cast<size_t>(bytes)).release();
}

const char register_operators_doc[] =
    "register_operators(torch, thread_accuracy)\n--\n\n"
    "Registers the compiled kernels of torch.ops.kintsugi. Returns False if this torch is too old for them.\n"
    "thread_accuracy: function that returns the accuracy that use() has set in the calling thread, else its argument.";

PyObject* register_operators_of(PyObject* module, PyObject* tuple) {
  PyObject *torch, *thread_accuracy;
  State& state = state_of(module);
  if (PyArg_ParseTuple(tuple, "OO", &torch, &thread_accuracy) == 0 || !state.torch.load(torch))
    return nullptr;
  return PyBool_FromLong(register_operators(state, thread_accuracy) ? 1 : 0);
}

const char note_use_doc[] =
    "note_use()\n--\n\nMakes kernels of torch.ops.kintsugi ask for the thread's accuracy.";

PyObject* note_use_of(PyObject*, PyObject*) {
  note_use();
  return none();
}

const char take_call_doc[] =
    "take_call()\n--\n\nReturns True if a compiled kernel calls the kernel in Python that begins with this call.";

PyObject* take_call_of(PyObject*, PyObject*) { return PyBool_FromLong(take_call() ? 1 : 0); }

const char keep_error_doc[] =
    "keep_error(error)\n--\n\nKeeps an exception for the compiled kernel that has called a kernel in Python.";

PyObject* keep_error_of(PyObject*, PyObject* error) {
  keep_error(error);
  return none();
}

const char address_doc[] =
    "prepared_address(prepared)\n--\n\nReturns the number by which kintsugi::prepared_linear knows a prepared operand.";

PyObject* prepared_address(PyObject*, PyObject* capsule) { return address_of_prepared(capsule).release(); }

const char route_doc[] =
    "route(name, otherwise)\n--\n\n"
    "Returns a function that multiplies plain tensors as torch's operator with that name (routes.hpp), and calls otherwise\n"
    "with its arguments for all else; otherwise itself if there is none.";

PyObject* route(PyObject* module, PyObject* tuple) {
  const char* name;
  PyObject* otherwise;
  if (PyArg_ParseTuple(tuple, "sO", &name, &otherwise) == 0) return nullptr;
  return make_route(state_of(module), name, otherwise).release();
}

const char set_route_accuracy_doc[] =
    "set_route_accuracy(accuracy)\n--\n\nSets the accuracy, a text or None, of routes in threads that have no use().";

PyObject* set_route_accuracy_of(PyObject*, PyObject* accuracy) {
  set_route_accuracy(accuracy);
  return none();
}

const char route_counts_doc[] =
    "route_counts(reset)\n--\n\nReturns how many calls routes have multiplied, by the name of their operator in statistics.";

PyObject* route_counts_of(PyObject*, PyObject* reset) {
  const int value = PyObject_IsTrue(reset);
  return value < 0 ? nullptr : route_counts(value == 1).release();
}

PyMethodDef methods[] = {{"matmul", matmul, METH_VARARGS, matmul_doc},
                         {"execute", execute, METH_VARARGS, execute_doc},
                         {"batch_kind", batch_kind_of, METH_O, batch_kind_doc},
                         {"problem", problem, METH_VARARGS, problem_doc},
                         {"plan", plan, METH_VARARGS, plan_doc},
                         {"read_plan", read_plan_of, METH_VARARGS, read_plan_doc},
                         {"run", run, METH_VARARGS, run_doc},
                         {"run_groups", run_groups_of, METH_VARARGS, run_groups_doc},
                         {"prepare", prepare, METH_VARARGS, prepare_doc},
                         {"plan_problem", plan_problem, METH_O, plan_problem_doc},
                         {"plan_text", plan_text, METH_O, plan_text_doc},
                         {"report_text", report_text, METH_NOARGS, report_text_doc},
                         {"schemes_text", schemes_text, METH_NOARGS, schemes_text_doc},
                         {"engines_text", engines_text, METH_NOARGS, engines_text_doc},
                         {"version", version, METH_NOARGS, version_doc},
                         {"last", last, METH_NOARGS, last_doc},
                         {"set_last", set_last, METH_O, set_last_doc},
                         {"release_caches", release_caches, METH_NOARGS, release_caches_doc},
                         {"set_threads", set_threads, METH_O, set_threads_doc},
                         {"accept_host", accept_host, METH_O, accept_host_doc},
                         {"replace", replace, METH_VARARGS, replace_doc},
                         {"import_dlpack", import_dlpack_of, METH_VARARGS, import_dlpack_doc},
                         {"export_dlpack", export_dlpack_of, METH_VARARGS, export_dlpack_doc},
                         {"enter_device", enter_device_of, METH_VARARGS, enter_device_doc},
                         {"leave_device", leave_device_of, METH_O, leave_device_doc},
                         {"allocate_on_device", allocate_on_device_of, METH_VARARGS, allocate_on_device_doc},
                         {"register_operators", register_operators_of, METH_VARARGS, register_operators_doc},
                         {"note_use", note_use_of, METH_NOARGS, note_use_doc},
                         {"take_call", take_call_of, METH_NOARGS, take_call_doc},
                         {"keep_error", keep_error_of, METH_O, keep_error_doc},
                         {"prepared_address", prepared_address, METH_O, address_doc},
                         {"route", route, METH_VARARGS, route_doc},
                         {"set_route_accuracy", set_route_accuracy_of, METH_O, set_route_accuracy_doc},
                         {"route_counts", route_counts_of, METH_O, route_counts_doc},
                         {nullptr, nullptr, 0, nullptr}};

// Numbers of kintsugi.h that the Python code uses.
struct Constant {
  const char* name;
  long value;
};
constexpr Constant constants[] = {
    {"HOST", KINTSUGI_HOST}, {"DEVICE", KINTSUGI_DEVICE}, {"DOUBLE_DOUBLE", KINTSUGI_DD}};

// Sets a reference to an attribute of a module of the package.
bool find(const char* module_name, const char* name, Ref& found) {
  const Ref module(PyImport_ImportModule(module_name));
  found = Ref(module ? PyObject_GetAttrString(module.get(), name) : nullptr);
  return bool(found);
}

int load(PyObject* module) {
  State* const state = new (PyModule_GetState(module)) State;
  for (const Constant& constant : constants) {
    if (PyModule_AddIntConstant(module, constant.name, constant.value) != 0) return -1;
  }
  state->thread_key = Ref(PyUnicode_FromFormat("kintsugi._core %p", state));  // a program may import it again
  const bool is_complete = state->thread_key && state->numpy.load() && state->torch.load_names() &&
                           find("kintsugi._errors", "KintsugiError", state->error_class) &&
                           find("kintsugi._torch", "note_write", state->note_write) &&
                           find("kintsugi._log", "write", state->write_log);
  return is_complete ? 0 : -1;
}

void unload(void* module) {
  void* const state = PyModule_GetState(static_cast<PyObject*>(module));
  if (state != nullptr) static_cast<State*>(state)->~State();
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(load)}, {0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "kintsugi._core",
                          "The C ABI of kintsugi for Python.",
                          sizeof(State),
                          methods,
                          slots,
                          nullptr,
                          nullptr,
                          unload};

}  // namespace
}  // namespace kintsugi_python

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&kintsugi_python::definition); }
