#include "thread.hpp"

#include <cstring>
#include <memory>

#include "call.hpp"
#include "problem.hpp"

namespace kintsugi_python {
namespace {

constexpr const char* capsule_name = "kintsugi thread";

void destroy(PyObject* capsule) { delete static_cast<Thread*>(PyCapsule_GetPointer(capsule, capsule_name)); }

// Passes a log line to Python.
void write_log(void* user, kintsugi_log_level level, const char* message) {
  const PyGILState_STATE lock = PyGILState_Ensure();
  {
    const State& state = *static_cast<const State*>(user);
    const Ref text(PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace"));
    const Ref number(PyLong_FromLong(level));
    const Ref done(text && number ? PyObject_CallFunctionObjArgs(state.write_log.get(), number.get(),
                                                                 text.get(), nullptr)
                                  : nullptr);
    if (!done) PyErr_WriteUnraisable(state.write_log.get());
  }
  PyGILState_Release(lock);
}

Ref make_thread(State& state) {
  auto thread = std::make_unique<Thread>();
  if (!check(state, kintsugi_create(&thread->handle))) return Ref();
  if (!check(state, kintsugi_set_log(thread->handle, write_log, &state))) return Ref();
  Ref capsule(PyCapsule_New(thread.get(), capsule_name, destroy));
  if (capsule) thread.release();
  return capsule;
}

}  // namespace

Thread::~Thread() {
  destroy_without_lock([&] { kintsugi_destroy(handle); });
}

void Thread::note_call(const kintsugi_problem& new_problem, PyObject* const given[option_count],
                       int new_device) {
  has_call = true;
  problem = new_problem;
  device = new_device;
  for (int i = 0; i < option_count; ++i) {
    if (options[i].get() != given[i]) options[i] = Ref::borrowed(given[i]);
  }
}

void Thread::note_plan(PyObject* capsule) {
  has_call = false;
  if (plan.get() != capsule) plan = Ref::borrowed(capsule);
}

Thread* this_thread(State& state) {
  PyObject* const kept = PyThreadState_GetDict();  // Python deletes it when the thread ends
  if (kept == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "kintsugi: this thread is none of Python's");
    return nullptr;
  }
  PyObject* const known = PyDict_GetItem(kept, state.thread_key.get());
  if (known != nullptr) return static_cast<Thread*>(PyCapsule_GetPointer(known, capsule_name));
  const Ref made = make_thread(state);
  if (!made || PyDict_SetItem(kept, state.thread_key.get(), made.get()) != 0) return nullptr;
  return static_cast<Thread*>(PyCapsule_GetPointer(made.get(), capsule_name));
}

Ref last_product(const Thread& thread) {
  if (!thread.has_call) return Ref::borrowed(thread.plan ? thread.plan.get() : Py_None);
  const Ref problem = members_of(thread.problem);
  if (!problem) return Ref();
  return Ref(Py_BuildValue("(O(OOOOOO)i)", problem.get(), thread.options[0].get(), thread.options[1].get(),
                           thread.options[2].get(), thread.options[3].get(), thread.options[4].get(),
                           thread.options[5].get(), thread.device));
}

}  // namespace kintsugi_python
