#include "planner/select_engine.hpp"

#include <algorithm>

#include "base/status.hpp"
#include "base/text/nearest_name.hpp"
#include "engines/registry.hpp"

namespace kintsugi::core {

namespace {

// Returns the largest size or leading dimension of the problem. The leading dimension of a matrix with a
// single line is not used, so it does not count.
std::int64_t largest_size(const Problem& problem) {
  const auto ld_if_used = [&](std::int64_t ld, std::int64_t rows, std::int64_t columns, Op op) {
    const bool has_contiguous_columns = (problem.layout == Layout::column_major) == (op == Op::none);
    return (has_contiguous_columns ? columns : rows) > 1 ? ld : 0;
  };
  return std::max({problem.m, problem.vectors_b(), problem.products(),
                   ld_if_used(problem.lda, problem.m, problem.k, problem.op_a),
                   ld_if_used(problem.ldb, problem.k, problem.n, problem.op_b),
                   ld_if_used(problem.ldc, problem.m, problem.n, Op::none)});
}

// False for double-double operands on a device, since devices have no kernels for them.
bool multiplies(const Engine& engine, OperandType type) {
  return type != OperandType::dd || engine.device() == nullptr;
}

void check_settings_of(const Engine& engine) {
  if (const std::string refused = engine.refused_setting(); !refused.empty())
    fail(Status::bad_setting, "engine {}: {}", engine.name(), refused);
}

// Returns the first engine that can run here and multiplies in the memory of the matrices. (Host matrices are
// copied to a device only if the caller names the engine.) Adds a warning for each earlier engine that cannot
// run here.
const Engine& first_available_engine(const Problem& problem, std::int64_t size,
                                     std::vector<std::string>& warnings) {
  std::string reasons;
  for (const Engine* engine : all_engines()) {
    if ((engine->device() != nullptr) != (problem.memory == MemorySpace::device)) continue;
    if (!multiplies(*engine, problem.type)) {
      reasons +=
          fmt::format("; {}: it does not multiply {} operands", engine->name(), type_name(problem.type));
      continue;
    }
    check_settings_of(*engine);
    const std::string reason = engine->unavailable_reason();
    if (reason.empty() && size <= engine->largest_size()) return *engine;
    if (!reason.empty())
      warnings.push_back(fmt::format("engine {} cannot run here: {}", engine->name(), reason));
    reasons += fmt::format("; {}: {}", engine->name(), reason.empty() ? "a size is too large" : reason);
  }
  fail(Status::engine_unavailable, "no engine can multiply matrices in the {} memory{}",
       problem.memory == MemorySpace::device ? "device's" : "host's", reasons);
}

}  // namespace

void check_runs(const Engine& engine) {
  if (const std::string reason = engine.unavailable_reason(); !reason.empty())
    fail(Status::engine_unavailable, "engine {} cannot run here: {}", engine.name(), reason);
}

const Engine& select_engine(const Problem& problem, const std::string& name,
                            std::vector<std::string>& warnings) {
  const std::int64_t size = largest_size(problem);
  if (name.empty()) return first_available_engine(problem, size, warnings);
  const Engine* engine = find_engine(name);
  if (engine == nullptr) {
    fail(Status::bad_setting, "there is no engine \"{}\"{}", name,
         accepted_names(name, "the engines are", "auto, " + engine_names()));
  }
  check_settings_of(*engine);
  check_runs(*engine);
  if (!multiplies(*engine, problem.type)) {
    fail(Status::not_supported, "engine {} does not multiply {} operands; reference and cpu do", name,
         type_name(problem.type));
  }
  if (problem.memory == MemorySpace::device && engine->device() == nullptr) {
    fail(Status::not_supported, "engine {} works on the host's memory, and A, B and C are in a device's",
         name);
  }
  if (size > engine->largest_size()) {
    fail(Status::not_supported, "engine {} takes sizes up to {} and one of these is {}", name,
         engine->largest_size(), size);
  }
  return *engine;
}

}  // namespace kintsugi::core
