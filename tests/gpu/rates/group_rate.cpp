// Not a test: measures FP32 products of different shapes by one launch, beside a loop of cuBLAS and a loop of
// single calls: experts with a random number of rows each. The results are those of the single calls.
//   build/tests/group_rate [--experts 32] [--rows 1024] [--n 2816] [--k 1024] [--seed 1] [--json FILE]
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "execute/device/device.hpp"
#include "planner/plan.hpp"
#include "tests/gpu/rates/rate.hpp"

namespace kintsugi::core {
namespace {

std::shared_ptr<const Plan> plan_of(const Problem& problem, const char* setting, const char* value) {
  SettingLayer call;
  call.set(find_setting(setting), value, "group_rate");
  return std::make_shared<const Plan>(
      make_plan(problem, Settings(call, {}, environment_settings(), file_settings()), {}));
}

int run(std::map<std::string, std::int64_t> given, const char* file) {
  const std::int64_t n = given["n"], k = given["k"], experts = given["experts"];
  std::mt19937_64 random(static_cast<std::uint64_t>(given["seed"]));
  const std::int64_t most = given["rows"];
  // Experts' rows X are row-major m x k, weights k x n: in BLAS's terms C^T = W^T X^T.
  const Memory rows(static_cast<std::size_t>(experts * most * k) * sizeof(float));
  const Memory weights(static_cast<std::size_t>(experts * k * n) * sizeof(float));
  const Memory results(static_cast<std::size_t>(experts * most * n) * sizeof(float));
  Pattern<float>(1).fill(rows, static_cast<std::size_t>(experts * most * k));
  Pattern<float>(2).fill(weights, static_cast<std::size_t>(experts * k * n));
  std::vector<GroupCall> direct, native;
  double operations = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    const auto m = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
    Problem problem{.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
    problem.layout = Layout::row_major;
    problem.type = OperandType::f32;
    problem.memory = MemorySpace::device;
    Operands operands;
    operands.a = rows.data() + e * most * k * std::int64_t{sizeof(float)};
    operands.b = weights.data() + e * k * n * std::int64_t{sizeof(float)};
    operands.c = results.data() + e * most * n * std::int64_t{sizeof(float)};
    direct.push_back({plan_of(problem, "scheme", "bf16x6-direct"), operands});
    native.push_back({plan_of(problem, "policy", "native"), operands});
    operations += 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  const auto one_by_one = [](const std::vector<GroupCall>& groups, const Queue& queue) {
    for (const GroupCall& group : groups) {
      Operands operands = group.operands;
      operands.queue = queue;
      Report report;
      execute(*group.plan, operands, report);
    }
  };
  const auto together = [&](const Queue& queue) {
    Report report;
    execute_groups(direct, queue, nullptr, report);
  };
  const auto result = [&] {
    std::vector<std::uint32_t> bits(static_cast<std::size_t>(experts * most * n));
    core::cuda::copy_to_host({}, bits.data(), results.data(), bits.size() * sizeof bits[0]);
    core::cuda::synchronize(Queue{});
    return bits;
  };
  const auto all_results = static_cast<std::size_t>(experts * most * n);
  Pattern<float>(3).fill(results, all_results);
  one_by_one(direct, {});
  const auto alone = result();
  Pattern<float>(3).fill(results, all_results);
  together({});
  if (result() != alone) throw std::runtime_error("group_rate: other bits than those of single calls");
  std::vector<double> times[3];
  for (int turn = 0; turn < 6; ++turn) {
    for (int i = 0; i < 3; ++i) {
      const int which = turn % 2 == 0 ? i : 2 - i;
      times[which].push_back(seconds_in_graph(2, 2e-3, [&](const Queue& queue, int) {
        which == 0 ? together(queue) : one_by_one(which == 1 ? native : direct, queue);
      }));
    }
  }
  for (auto& list : times) list.pop_back();
  const double group = median(times[0]), vendor = median(times[1]), single = median(times[2]);
  fmt::print(
      "{} experts, {} x {} x 1...{}: one launch {:.1f} us ({:.1f} TFLOP/s), cuBLAS one by one {:.1f} us "
      "({:.2f} times), bf16x6-direct one by one {:.1f} us\n",
      experts, k, n, most, 1e6 * group, 1e-12 * operations / group, 1e6 * vendor, vendor / group,
      1e6 * single);
  write_json(file, {{"experts", experts},
                    {"rows", most},
                    {"n", n},
                    {"k", k},
                    {"group_seconds", group},
                    {"vendor_seconds", vendor},
                    {"single_seconds", single},
                    {"speed", vendor / group}});
  return 0;
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** arguments) {
  std::map<std::string, std::int64_t> given{
      {"experts", 32}, {"rows", 1024}, {"n", 2816}, {"k", 1024}, {"seed", 1}};
  const char* file = nullptr;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i] + 2;
    if (name == "json") {
      file = arguments[i + 1];
    } else if (given.contains(name)) {
      given[name] = std::atoll(arguments[i + 1]);
    } else {
      fmt::print(stderr, "group_rate: {} is none of --experts, --rows, --n, --k, --seed, --json\n",
                 arguments[i]);
      return 2;
    }
  }
  return kintsugi::core::run_on_device("group_rate", [&] { return kintsugi::core::run(given, file); });
}
