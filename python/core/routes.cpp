#include "routes.hpp"

#include <cstring>
#include <iterator>
#include <memory>

#include "operators.hpp"
#include "tensor_product.hpp"

namespace kintsugi_python {
namespace {

// An operator's tensors: c is there if it adds.
enum class Into { new_tensor, out, first };
struct Operator {
  const char* name;
  const char* name_in_statistics;  // null: it is not counted
  Form form;
  bool adds;
  Into into;
};
constexpr Operator operators[] = {{"mm", "mm", form_mm, false, Into::new_tensor},
                                  {"mm.out", "mm", form_mm, false, Into::out},
                                  {"bmm", "bmm", form_bmm, false, Into::new_tensor},
                                  {"bmm.out", "bmm", form_bmm, false, Into::out},
                                  {"addmm", "addmm", form_mm, true, Into::new_tensor},
                                  {"addmm.out", "addmm", form_mm, true, Into::out},
                                  {"addmm_", "addmm", form_mm, true, Into::first},
                                  {"baddbmm", "baddbmm", form_bmm, true, Into::new_tensor},
                                  {"baddbmm.out", "baddbmm", form_bmm, true, Into::out},
                                  {"baddbmm_", "baddbmm", form_bmm, true, Into::first},
                                  {"gemm", nullptr, form_gemm, false, Into::new_tensor},
                                  {"gemm.out", nullptr, form_gemm, false, Into::out}};
constexpr const char* capsule_name = "kintsugi route";

// Used only with the interpreter's lock.
long long counts[std::size(operators)] = {};
Ref* route_accuracy = nullptr;  // never destroyed; null: none
struct Names {
  Ref out{PyUnicode_InternFromString("out")}, alpha{PyUnicode_InternFromString("alpha")},
      beta{PyUnicode_InternFromString("beta")}, implementation{PyUnicode_InternFromString("_cdata")},
      is_conj{PyUnicode_InternFromString("is_conj")}, is_neg{PyUnicode_InternFromString("is_neg")};
};
const Names& names() {
  static const auto* const made = new Names;
  return *made;
}

struct Route {
  State& state;
  const Operator& called;
  Ref otherwise;
};

void destroy(PyObject* capsule) { delete static_cast<Route*>(PyCapsule_GetPointer(capsule, capsule_name)); }

// A tensor of Python as LibTorch's C functions take it, while the object lives. A handle is the address of a
// C++ tensor, which is the address of its implementation alone.
class BorrowedTensor {
 public:
  // Returns false, perhaps with a Python error, unless x is a tensor whose elements are those in its memory.
  bool read(PyObject* x) {
    const Ref address(PyObject_GetAttr(x, names().implementation.get()));
    if (!address) return false;
    implementation_ = PyLong_AsVoidPtr(address.get());
    return implementation_ != nullptr;
  }
  // Null: nothing was read.
  TensorHandle handle() {
    return implementation_ == nullptr ? nullptr : reinterpret_cast<TensorHandle>(&implementation_);
  }

 private:
  void* implementation_ = nullptr;
};

// Arguments of a call, as borrowed references; null: not given.
struct Arguments {
  PyObject* a = nullptr;
  PyObject* b = nullptr;
  PyObject* c = nullptr;
  PyObject* alpha = nullptr;
  PyObject* beta = nullptr;
  PyObject* out = nullptr;
  PyObject* accuracy = nullptr;

  // Returns false for arguments that `otherwise` must take.
  bool read(const Operator& called, PyObject* tuple, PyObject* named);
};

bool Arguments::read(const Operator& called, PyObject* tuple, PyObject* named) {
  const auto take = [&](Py_ssize_t i) -> PyObject* { return PyTuple_GetItem(tuple, i); };
  const Py_ssize_t given = PyTuple_Size(tuple);
  if (called.form == form_gemm) {  // its fifth argument is for gradients, its sixth are the settings
    const auto take_optional = [&](Py_ssize_t i) {
      return given <= i || take(i) == Py_None ? nullptr : take(i);
    };
    if (given < 2 || take_optional(5) != nullptr) return false;
    a = take(0);
    b = take(1);
    c = take_optional(2);
    accuracy = take_optional(3);
  } else {
    if (given != (called.adds ? 3 : 2)) return false;
    if (called.adds) c = take(0);
    a = take(called.adds ? 1 : 0);
    b = take(called.adds ? 2 : 1);
  }
  Py_ssize_t found = 0;
  const auto take_named = [&](const Ref& name, PyObject*& value) {
    value = named == nullptr ? nullptr : PyDict_GetItem(named, name.get());
    found += value == nullptr ? 0 : 1;
  };
  take_named(names().out, out);
  if (called.adds) {
    take_named(names().alpha, alpha);
    take_named(names().beta, beta);
  }
  if (named != nullptr && found != PyDict_Size(named)) return false;
  if (called.into == Into::first) out = c;
  return (out != nullptr) == (called.into != Into::new_tensor);
}

bool says_no(PyObject* x, const Ref& method) {
  return Ref(PyObject_CallMethodObjArgs(x, method.get(), nullptr)).get() == Py_False;
}

// Lazy conjugates come as they are to torch's own operators, and lazy negatives too to a graph's.
bool is_any_lazy(const Operator& called, const Arguments& given, bool is_complex) {
  const bool is_of_graph = called.form == form_gemm;
  if (!is_complex && !is_of_graph) return false;
  for (PyObject* x : {given.a, given.b, given.c, given.out}) {
    if (x == nullptr) continue;
    if ((is_complex && !says_no(x, names().is_conj)) || (is_of_graph && !says_no(x, names().is_neg)))
      return true;
  }
  return false;
}

// Returns the accuracy of a call; null with a Python error. "": that of no thread.
Ref accuracy_of(const Operator& called, PyObject* given) {
  if (given != nullptr)
    return PyUnicode_GetLength(given) == 0 ? Ref::borrowed(Py_None) : Ref::borrowed(given);
  const bool is_route = called.name_in_statistics != nullptr && route_accuracy != nullptr;
  return accuracy_of_thread(is_route ? route_accuracy->get() : Py_None);
}

// Returns the result; null without a Python error if `otherwise` must compute it or refuse it.
Ref multiply(Route& route, PyObject* tuple, PyObject* named) {
  Arguments given;
  BorrowedTensor a, b, c, out;
  TensorProduct product(route.state);
  if (!given.read(route.called, tuple, named) || !a.read(given.a) || !b.read(given.b) ||
      (given.c != nullptr && !c.read(given.c)) || (given.out != nullptr && !out.read(given.out)) ||
      !product.read({.form = route.called.form,
                     .a = a.handle(),
                     .b = b.handle(),
                     .c = c.handle(),
                     .out = out.handle(),
                     .alpha = given.alpha,
                     .beta = given.beta}) ||
      is_any_lazy(route.called, given, product.is_complex())) {
    PyErr_Clear();  // `otherwise` meets the same error
    return Ref();
  }
  const Ref accuracy = accuracy_of(route.called, given.accuracy);
  if (!accuracy || product.run(accuracy.get()) != TensorProduct::Outcome::done) return Ref();
  ++counts[&route.called - operators];
  return given.out != nullptr ? Ref::borrowed(given.out) : product.result_object();
}

PyObject* call(PyObject* capsule, PyObject* tuple, PyObject* named) {
  Route& route = *static_cast<Route*>(PyCapsule_GetPointer(capsule, capsule_name));
  Ref result = multiply(route, tuple, named);
  if (result || PyErr_Occurred() != nullptr) return result.release();
  return PyObject_Call(route.otherwise.get(), tuple, named);
}

PyMethodDef method = {"route", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call)),
                      METH_VARARGS | METH_KEYWORDS, nullptr};

}  // namespace

Ref make_route(State& state, const char* name, PyObject* otherwise) {
  if (!libtorch().can_wrap()) return Ref::borrowed(otherwise);
  for (const Operator& one : operators) {
    if (std::strcmp(one.name, name) != 0) continue;
    auto route = std::make_unique<Route>(Route{state, one, Ref::borrowed(otherwise)});
    const Ref capsule(PyCapsule_New(route.get(), capsule_name, destroy));
    if (!capsule) return Ref();
    route.release();
    return Ref(PyCFunction_New(&method, capsule.get()));
  }
  return Ref::borrowed(otherwise);
}

void set_route_accuracy(PyObject* accuracy) {
  if (route_accuracy == nullptr) route_accuracy = new Ref;
  *route_accuracy = Ref::borrowed(accuracy);
}

Ref route_counts(bool reset) {
  Ref dict(PyDict_New());
  for (size_t i = 0; dict && i < std::size(operators); ++i) {
    if (operators[i].name_in_statistics == nullptr || counts[i] == 0) continue;
    const Ref name(PyUnicode_FromString(operators[i].name_in_statistics));
    PyObject* const before = name ? PyDict_GetItem(dict.get(), name.get()) : nullptr;
    const Ref sum(PyLong_FromLongLong(counts[i] + (before == nullptr ? 0 : PyLong_AsLongLong(before))));
    if (!name || !sum || PyDict_SetItem(dict.get(), name.get(), sum.get()) != 0) return Ref();
    if (reset) counts[i] = 0;
  }
  return dict;
}

}  // namespace kintsugi_python
