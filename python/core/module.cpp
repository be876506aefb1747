// The module kintsugi._core: products of numpy arrays and torch tensors without ctypes. For calls that it
// does not handle it returns NotImplemented, and the Python code handles them. The Python code defines what a
// product is.

#include <cstring>
#include <new>

#include "product.hpp"
#include "thread.hpp"

namespace kintsugi_python {
namespace {

State& state_of(PyObject* module) { return *static_cast<State*>(PyModule_GetState(module)); }

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

const char multiply_doc[] =
    "multiply(thread, a, b, alpha, beta, out, accuracy, scheme, engine, policy, threads, "
    "workspace_limit)\n--\n\n"
    "Returns the result of kintsugi.matmul() with these arguments, or NotImplemented if the Python code has\n"
    "to compute it.";

PyObject* multiply(PyObject* module, PyObject* tuple) {
  State& state = state_of(module);
  constexpr int first_option = 6;
  PyObject* arguments[first_option + option_count];
  if (!unpack(tuple, arguments)) return nullptr;
  Thread* const thread = thread_of(arguments[0]);
  if (thread == nullptr) return nullptr;
  Product product(state);
  Options options;
  PyObject* const* const given_options = arguments + first_option;
  if (!product.read({arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]}))
    return declined();
  if (!options.read(given_options)) return declined();
  if (product.device() != on_host) {
    if (!use_torchs_memory(state, product.device(), options.values)) return declined();
  } else if (!state.host_is_ready && given_options[engine_option] == Py_None) {
    return declined();
  }
  if (!product.announce_write()) return declined();
  kintsugi_problem problem = product.problem();
  // The library sees the same in a call with matrices on a device.
  problem.adds_to_c = product.device() != on_host && product.adds_to_c() ? 1 : 0;
  thread->remember(problem, given_options, product.device());
  return product
      .run([&](const kintsugi_operands* operands) {
        return state.library.gemm(thread->handle, &product.problem(), &options.values, operands);
      })
      .release();
}

const char execute_doc[] =
    "execute(thread, plan, problem, workspace_size, a, b, alpha, beta, out)\n--\n\n"
    "Returns the result of a plan, given by its address and the bytes of its problem; NotImplemented if the\n"
    "operands, as they lie in memory, are not those of that problem.";

PyObject* execute(PyObject* module, PyObject* tuple) {
  State& state = state_of(module);
  PyObject* arguments[9];
  if (!unpack(tuple, arguments)) return nullptr;
  Thread* const thread = thread_of(arguments[0]);
  const auto plan = static_cast<kintsugi_plan>(PyLong_AsVoidPtr(arguments[1]));
  const char* const problem = PyBytes_AsString(arguments[2]);
  const size_t workspace_size = PyLong_AsSize_t(arguments[3]);
  if (thread == nullptr || PyErr_Occurred() != nullptr) return nullptr;
  Product product(state);
  if (!product.read({arguments[4], arguments[5], arguments[6], arguments[7], arguments[8]}))
    return declined();
  const bool is_plans_problem = PyBytes_Size(arguments[2]) == sizeof(kintsugi_problem) &&
                                std::memcmp(problem, &product.problem(), sizeof(kintsugi_problem)) == 0;
  if (!is_plans_problem || !product.take_workspace(workspace_size) || !product.announce_write())
    return declined();
  thread->has_product = false;
  return product
      .run([&](const kintsugi_operands* operands) {
        return state.library.plan_execute(thread->handle, plan, operands);
      })
      .release();
}

const char thread_doc[] =
    "thread(handle)\n--\n\n"
    "Returns a new object with what a thread keeps between calls; `handle` is its kintsugi_handle's address.";

PyObject* thread(PyObject*, PyObject* handle) { return make_thread(handle).release(); }

const char last_doc[] =
    "last(thread)\n--\n\n"
    "Returns the problem as bytes, the options and the device's number (-1: the CPU) of the thread's last\n"
    "multiply(); None if there was none, or another product came after it.";

PyObject* last(PyObject*, PyObject* capsule) {
  const Thread* const thread = thread_of(capsule);
  return thread == nullptr ? nullptr : last_product(*thread).release();
}

const char forget_doc[] =
    "forget(thread)\n--\n\nNotes that the thread's last product was not one of multiply().";

PyObject* forget(PyObject*, PyObject* capsule) {
  Thread* const thread = thread_of(capsule);
  if (thread == nullptr) return nullptr;
  thread->has_product = false;
  return Ref::borrowed(Py_None).release();
}

const char release_memory_doc[] =
    "release_memory()\n--\n\nGives back to torch the workspaces that are kept for later calls.";

PyObject* release_memory(PyObject* module, PyObject*) {
  for (DeviceMemory& memory : state_of(module).memory) memory.spare = Ref();
  return Ref::borrowed(Py_None).release();
}

const char accept_host_doc[] =
    "accept_host(accepted)\n--\n\n"
    "Sets whether multiply() handles products on the CPU that name no engine. It does not until the process\n"
    "has warned of a missing engine, which the Python code does.";

PyObject* accept_host(PyObject* module, PyObject* accepted) {
  const int value = PyObject_IsTrue(accepted);
  if (value < 0) return nullptr;
  state_of(module).host_is_ready = value == 1;
  return Ref::borrowed(Py_None).release();
}

const char bind_doc[] =
    "bind(gemm, plan_execute, status_name, last_error, error, note_write)\n--\n\n"
    "Sets the library's functions, by their addresses, the class of its errors, and the function that is\n"
    "called with a tensor before it is written.";

PyObject* bind(PyObject* module, PyObject* tuple) {
  State& state = state_of(module);
  PyObject* arguments[6];
  if (!unpack(tuple, arguments)) return nullptr;
  void* addresses[4];
  for (int i = 0; i < 4; ++i) {
    addresses[i] = PyLong_AsVoidPtr(arguments[i]);
    if (addresses[i] == nullptr) {
      if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_ValueError, "a function's address is 0");
      return nullptr;
    }
  }
  state.library = {reinterpret_cast<decltype(&kintsugi_gemm)>(addresses[0]),
                   reinterpret_cast<decltype(&kintsugi_plan_execute)>(addresses[1]),
                   reinterpret_cast<decltype(&kintsugi_status_name)>(addresses[2]),
                   reinterpret_cast<decltype(&kintsugi_last_error)>(addresses[3])};
  state.error_class = Ref::borrowed(arguments[4]);
  state.note_write = Ref::borrowed(arguments[5]);
  return Ref::borrowed(Py_None).release();
}

PyMethodDef methods[] = {{"multiply", multiply, METH_VARARGS, multiply_doc},
                         {"execute", execute, METH_VARARGS, execute_doc},
                         {"thread", thread, METH_O, thread_doc},
                         {"last", last, METH_O, last_doc},
                         {"forget", forget, METH_O, forget_doc},
                         {"release_memory", release_memory, METH_NOARGS, release_memory_doc},
                         {"accept_host", accept_host, METH_O, accept_host_doc},
                         {"bind", bind, METH_VARARGS, bind_doc},
                         {nullptr, nullptr, 0, nullptr}};

int load(PyObject* module) {
  State* const state = new (PyModule_GetState(module)) State;
  return state->numpy.load() && state->torch.load_names() ? 0 : -1;
}

void unload(void* module) {
  void* const state = PyModule_GetState(static_cast<PyObject*>(module));
  if (state != nullptr) static_cast<State*>(state)->~State();
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(load)}, {0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "kintsugi._core",
                          "Products of numpy's arrays and torch's tensors without ctypes.",
                          sizeof(State),
                          methods,
                          slots,
                          nullptr,
                          nullptr,
                          unload};

}  // namespace
}  // namespace kintsugi_python

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&kintsugi_python::definition); }
