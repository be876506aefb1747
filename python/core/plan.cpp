#include "plan.hpp"

#include <vector>

#include "arguments.hpp"
#include "call.hpp"
#include "memory.hpp"
#include "problem.hpp"

namespace kintsugi_python {
namespace {

constexpr const char* plan_name = "kintsugi plan";
constexpr const char* prepared_name = "kintsugi prepared operand";

struct Prepared {
  kintsugi_prepared prepared = nullptr;
  std::shared_ptr<DeviceMemory> memory;  // as in Plan

  ~Prepared() {
    destroy_without_lock([&] { kintsugi_prepared_destroy(prepared); });
  }
};

template <typename T>
Ref capsule_of(std::unique_ptr<T> object, const char* name, PyCapsule_Destructor destroy) {
  Ref capsule(PyCapsule_New(object.get(), name, destroy));
  if (capsule) object.release();
  return capsule;
}

void destroy_plan(PyObject* capsule) { delete static_cast<Plan*>(PyCapsule_GetPointer(capsule, plan_name)); }

void destroy_prepared(PyObject* capsule) {
  delete static_cast<Prepared*>(PyCapsule_GetPointer(capsule, prepared_name));
}

Ref finish_plan(const State& state, std::unique_ptr<Plan> plan) {
  plan->problem.adds_to_c = plan->problem.native_elsewhere = 0;
  if (!check(state, kintsugi_plan_workspace_size(plan->plan, &plan->workspace_bytes))) return Ref();
  return capsule_of(std::move(plan), plan_name, destroy_plan);
}

bool read_stream(PyObject* stream, kintsugi_queue& queue) {
  if (stream == Py_None) return true;
  queue = {KINTSUGI_QUEUE_CUDA, 0, PyLong_AsVoidPtr(stream)};
  return PyErr_Occurred() == nullptr;
}

// Reads a described operand. Returns false with a Python error.
bool read_described(const State& state, PyObject* x, Array& array) {
  if (state.numpy.read(x, array) && array.dimensions >= 2) return true;
  if (PyErr_Occurred() == nullptr)
    PyErr_SetString(PyExc_ValueError, "the library cannot read an array as it is");
  return false;
}

// A or B of run_plan(), or C.
struct Operand {
  void* address = nullptr;
  kintsugi_prepared prepared = nullptr;
  std::vector<void*> items;  // of a batch by pointers

  bool read(const State& state, PyObject* x, const kintsugi_problem& problem) {
    if (PyCapsule_IsValid(x, prepared_name) != 0) {
      prepared = static_cast<Prepared*>(PyCapsule_GetPointer(x, prepared_name))->prepared;
      return true;
    }
    Array array;
    if (!read_described(state, x, array)) return false;
    const bool is_by_pointers = problem.batch_kind == KINTSUGI_BATCH_POINTERS;
    if (is_by_pointers) items = item_addresses(array);
    address = is_by_pointers ? static_cast<void*>(items.data()) : array.data;
    return true;
  }
};

}  // namespace

Plan::~Plan() {
  destroy_without_lock([&] { kintsugi_plan_destroy(plan); });
}

bool PreparedMatrix::read(PyObject* x, Array& array) {
  const Ref members(PyObject_GetAttrString(x, "_matrix"));
  long long rows = 0, columns = 0;
  int type = 0, right = 0, on_device = 0;
  PyObject *capsule = nullptr, *given = nullptr;
  const bool is_read = members && PyTuple_Check(members.get()) &&
                       PyArg_ParseTuple(members.get(), "ppLLiOO", &right, &on_device, &rows, &columns, &type,
                                        &capsule, &given) != 0 &&
                       PyCapsule_IsValid(capsule, prepared_name) != 0;
  if (!is_read) {
    PyErr_Clear();
    return false;
  }
  prepared = static_cast<Prepared*>(PyCapsule_GetPointer(capsule, prepared_name))->prepared;
  is_right = right != 0;
  is_on_device = on_device != 0;
  options = Ref::borrowed(given);
  array.data = nullptr;
  array.dimensions = 2;
  array.shape[0] = rows;
  array.shape[1] = columns;
  array.strides[0] = array.strides[1] = 0;
  array.type = type;
  array.is_writeable = false;
  return true;
}

kintsugi_prepared prepared_at(uint64_t address) {
  return reinterpret_cast<const Prepared*>(address)->prepared;
}

Ref address_of_prepared(PyObject* capsule) {
  void* const prepared = PyCapsule_GetPointer(capsule, prepared_name);
  return Ref(prepared == nullptr ? nullptr : PyLong_FromVoidPtr(prepared));
}

Plan* plan_of(PyObject* capsule) { return static_cast<Plan*>(PyCapsule_GetPointer(capsule, plan_name)); }

Ref make_plan(State& state, PyObject* members, PyObject* const given[option_count], PyObject* stream,
              PyObject* allocate) {
  Thread* const thread = this_thread(state);
  if (thread == nullptr) return Ref();
  auto plan = std::make_unique<Plan>();
  plan->problem = KINTSUGI_PROBLEM_INIT;
  Options options;
  if (!set_members(members, plan->problem) || !options.read(state, thread->handle, given)) return Ref();
  if (!read_stream(stream, options.values.queue)) return Ref();
  if (allocate != Py_None) {
    plan->memory = memory_from(state, allocate);
    if (!plan->memory) return Ref();
    use_memory(*plan->memory, options.values);
  }
  const kintsugi_status status = without_lock([&] {
    return state.library.plan_create(thread->handle, &plan->problem, &options.values, &plan->plan);
  });
  return check(state, status) ? finish_plan(state, std::move(plan)) : Ref();
}

Ref read_plan(State& state, const char* description) {
  Thread* const thread = this_thread(state);
  if (thread == nullptr) return Ref();
  auto plan = std::make_unique<Plan>();
  plan->problem = KINTSUGI_PROBLEM_INIT;
  const kintsugi_status status =
      without_lock([&] { return kintsugi_plan_read(thread->handle, description, nullptr, &plan->plan); });
  if (!check(state, status) || !check(state, kintsugi_plan_problem(plan->plan, &plan->problem))) return Ref();
  return finish_plan(state, std::move(plan));
}

Ref describe_problem(const State& state, PyObject* a, PyObject* b, PyObject* c, int64_t k) {
  Array array_a, array_b, array_c;
  const bool a_is_array = state.numpy.is_array(a), b_is_array = state.numpy.is_array(b);
  if (a_is_array && !read_described(state, a, array_a)) return Ref();
  if (b_is_array && !read_described(state, b, array_b)) return Ref();
  if (!read_described(state, c, array_c)) return Ref();
  kintsugi_problem problem;
  if (describe(a_is_array ? &array_a : nullptr, b_is_array ? &array_b : nullptr, array_c, k, problem))
    return members_of(problem);
  PyErr_SetString(PyExc_ValueError, "BLAS cannot address an array");
  return Ref();
}

Ref run_plan(State& state, PyObject* capsule, PyObject* a, PyObject* b, PyObject* c, PyObject* alpha,
             PyObject* beta, PyObject* stream) {
  Thread* const thread = this_thread(state);
  const Plan* const plan = plan_of(capsule);
  if (thread == nullptr || plan == nullptr) return Ref();
  const kintsugi_problem& problem = plan->problem;
  // A double-double number has the memory of a complex one.
  const int32_t type = problem.type_scalar == KINTSUGI_DD ? KINTSUGI_C64 : problem.type_scalar;
  alignas(16) char scalars[2][16];
  Operand of_a, of_b, of_c;
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  if (!read_scalar(alpha, type, scalars[0]) || !read_scalar(beta, type, scalars[1])) {
    PyErr_SetString(PyExc_TypeError, "alpha or beta is no number of the plan's type");
    return Ref();
  }
  if (!of_a.read(state, a, problem) || !of_b.read(state, b, problem) || !of_c.read(state, c, problem))
    return Ref();
  if (!read_stream(stream, operands.queue)) return Ref();
  operands.alpha = scalars[0];
  operands.beta = scalars[1];
  operands.a = of_a.address;
  operands.b = of_b.address;
  operands.c = of_c.address;
  operands.prepared_a = of_a.prepared;
  operands.prepared_b = of_b.prepared;
  thread->note_plan(capsule);
  AllocatingCall allocating(operands.queue.stream == nullptr);
  const kintsugi_status status =
      without_lock([&] { return state.library.plan_execute(thread->handle, plan->plan, &operands); });
  return check(state, status, allocating.take_last_error()) ? Ref::borrowed(Py_None) : Ref();
}

namespace {

// One product of run_groups(), as the C ABI takes it.
struct Group {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  Operand a, b, c;
  alignas(16) char scalars[2][16];

  // Returns false with a Python error. `given`: (problem, a, b, c, alpha, beta).
  bool read(const State& state, PyObject* given, const kintsugi_queue& queue) {
    PyObject *members, *of_a, *of_b, *of_c, *alpha, *beta;
    if (PyArg_ParseTuple(given, "O!OOOOO", &PyDict_Type, &members, &of_a, &of_b, &of_c, &alpha, &beta) == 0)
      return false;
    if (!set_members(members, problem) || !a.read(state, of_a, problem) || !b.read(state, of_b, problem) ||
        !c.read(state, of_c, problem))
      return false;
    if (!read_scalar(alpha, problem.type_scalar, scalars[0]) ||
        !read_scalar(beta, problem.type_scalar, scalars[1])) {
      PyErr_SetString(PyExc_TypeError, "alpha or beta is no number of the product's type");
      return false;
    }
    operands.alpha = scalars[0];
    operands.beta = scalars[1];
    operands.a = a.address;
    operands.b = b.address;
    operands.c = c.address;
    operands.prepared_a = a.prepared;
    operands.prepared_b = b.prepared;
    operands.queue = queue;
    return true;
  }
};

}  // namespace

Ref run_groups(State& state, PyObject* groups, PyObject* const given[option_count], PyObject* stream) {
  Thread* const thread = this_thread(state);
  if (thread == nullptr) return Ref();
  Options options;
  kintsugi_queue queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};
  if (!options.read(state, thread->handle, given) || !read_stream(stream, queue)) return Ref();
  const auto count = static_cast<size_t>(PyList_Size(groups));
  const auto read = std::make_unique<Group[]>(count);
  std::vector<kintsugi_problem> problems;
  std::vector<kintsugi_operands> operands;
  for (size_t i = 0; i < count; ++i) {
    if (!read[i].read(state, PyList_GetItem(groups, static_cast<Py_ssize_t>(i)), queue)) return Ref();
    problems.push_back(read[i].problem);
    operands.push_back(read[i].operands);
  }
  const kintsugi_status status = without_lock([&] {
    return kintsugi_gemm_grouped(thread->handle, static_cast<int64_t>(count), problems.data(),
                                 &options.values, operands.data());
  });
  return check(state, status) ? Ref::borrowed(Py_None) : Ref();
}

Ref prepare_operand(State& state, PyObject* capsule, kintsugi_side side, PyObject* x) {
  Thread* const thread = this_thread(state);
  const Plan* const plan = plan_of(capsule);
  Array array;
  if (thread == nullptr || plan == nullptr || !read_described(state, x, array)) return Ref();
  auto prepared = std::make_unique<Prepared>();
  prepared->memory = plan->memory;
  AllocatingCall allocating(false);
  const kintsugi_status status = without_lock(
      [&] { return kintsugi_prepare(thread->handle, plan->plan, side, array.data, &prepared->prepared); });
  if (!check(state, status, allocating.take_last_error())) return Ref();
  return capsule_of(std::move(prepared), prepared_name, destroy_prepared);
}

}  // namespace kintsugi_python
