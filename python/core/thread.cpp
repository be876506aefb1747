#include "thread.hpp"

namespace kintsugi_python {
namespace {

constexpr const char* capsule_name = "kintsugi thread";

void destroy(PyObject* capsule) { delete static_cast<Thread*>(PyCapsule_GetPointer(capsule, capsule_name)); }

}  // namespace

void Thread::remember(const kintsugi_problem& new_problem, PyObject* const given[option_count],
                      int new_device) {
  has_product = true;
  problem = new_problem;
  device = new_device;
  for (int i = 0; i < option_count; ++i) {
    if (options[i].get() != given[i]) options[i] = Ref::borrowed(given[i]);
  }
}

Ref make_thread(PyObject* handle) {
  void* const address = PyLong_AsVoidPtr(handle);
  if (address == nullptr) return Ref();
  auto* const thread = new Thread;
  thread->handle = static_cast<kintsugi_handle>(address);
  Ref capsule(PyCapsule_New(thread, capsule_name, destroy));
  if (!capsule) delete thread;
  return capsule;
}

Thread* thread_of(PyObject* capsule) {
  return static_cast<Thread*>(PyCapsule_GetPointer(capsule, capsule_name));
}

Ref last_product(const Thread& thread) {
  if (!thread.has_product) return Ref::borrowed(Py_None);
  return Ref(Py_BuildValue("(y#(OOOOOO)i)", reinterpret_cast<const char*>(&thread.problem),
                           static_cast<Py_ssize_t>(sizeof thread.problem), thread.options[0].get(),
                           thread.options[1].get(), thread.options[2].get(), thread.options[3].get(),
                           thread.options[4].get(), thread.options[5].get(), thread.device));
}

}  // namespace kintsugi_python
