#include <cstddef>

#include "front/check.hpp"
#include "front/handles.hpp"
#include "front/read_struct.hpp"

namespace kintsugi::core {

namespace {

static_assert(sizeof(DoubleDouble) == sizeof(kintsugi_dd) && offsetof(kintsugi_dd, lo) == sizeof(double));

CallScalar read_scalar(const Problem& problem, const void* pointer) {
  return with_element_type(problem, [&]<class T>() { return CallScalar(*static_cast<const T*>(pointer)); });
}

kintsugi_operands read_operands(const kintsugi_operands* given) {
  return read_struct(given, kintsugi_operands KINTSUGI_OPERANDS_INIT, "operands");
}

const Prepared* prepared_of(kintsugi_prepared prepared) {
  return prepared == nullptr ? nullptr : &prepared->prepared;
}

}  // namespace

void check_data(const Problem& problem, const void* data, const char* name) {
  check_not_null(data, name);
  if (problem.batch_kind != BatchKind::pointers || problem.memory == MemorySpace::device) return;
  const auto* pointers = static_cast<const void* const*>(data);
  for (std::int64_t item = 0; item < problem.batch_count; ++item) {
    if (pointers[item] == nullptr) fail(Status::invalid_argument, "{}[{}] is null", name, item);
  }
}

GivenPrepared given_prepared(const kintsugi_operands* operands) {
  const kintsugi_operands caller = read_operands(operands);
  return {prepared_of(caller.prepared_a), prepared_of(caller.prepared_b)};
}

void set_adds_to_c(const kintsugi_operands* operands, Problem& problem) {
  if (problem.memory != MemorySpace::device || problem.device_scalars) return;
  const kintsugi_operands caller = read_operands(operands);
  if (caller.beta == nullptr || caller.workspace != nullptr) return;
  problem.adds_to_c = !read_scalar(problem, caller.beta).is_zero();
}

Operands check_operands(const Problem& problem, const kintsugi_operands* given) {
  const kintsugi_operands caller = read_operands(given);
  check_not_null(caller.alpha, "alpha");
  check_not_null(caller.beta, "beta");
  Operands operands;
  if (problem.device_scalars) {
    operands.device_alpha = caller.alpha;
    operands.device_beta = caller.beta;
  } else {
    operands.alpha = read_scalar(problem, caller.alpha);
    operands.beta = read_scalar(problem, caller.beta);
  }
  operands.queue = check_queue(caller.queue, "operands.queue");
  check_queue_of(problem, operands.queue);
  operands.a = caller.a;
  operands.b = caller.b;
  operands.c = caller.c;
  operands.prepared_a = prepared_of(caller.prepared_a);
  operands.prepared_b = prepared_of(caller.prepared_b);
  operands.workspace = caller.workspace;
  operands.workspace_size = caller.workspace_size;
  if (caller.workspace == nullptr && caller.workspace_size != 0) {
    fail(Status::invalid_argument, "workspace is null and workspace_size = {}", caller.workspace_size);
  }
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0) return operands;
  check_data(problem, caller.c, "c");
  if (problem.k == 0 || problem.device_scalars || operands.alpha.is_zero()) return operands;
  if (operands.prepared_a == nullptr) check_data(problem, caller.a, "a");
  if (operands.prepared_b == nullptr) check_data(problem, caller.b, "b");
  return operands;
}

}  // namespace kintsugi::core
