#include "execute/device/device.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/status.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/steps.hpp"
#include "execute/device/pipeline.hpp"

namespace kintsugi::core {

namespace {

// Returns the devices of the kind for which the plan was made.
std::vector<int> devices_of_kind() {
  const auto kind = [&](int device) {
    const std::string text = cuda::text_of_device(device);
    return text.substr(text.find('('));
  };
  std::vector<int> devices;
  for (int device = 0; device < cuda::driver().devices; ++device) {
    if (kind(device) == kind(0)) devices.push_back(device);
  }
  return devices;
}

// Divides the host's threads between devices and directions. A core copies about 10 GB/s, so eight threads
// fill a PCIe 5 slot.
CopyThreads copy_threads(int threads, std::size_t devices, std::int64_t bytes) {
  constexpr int max_to_device = 8;
  constexpr int max_to_host = 4;
  const auto chunks = std::max<std::int64_t>(bytes / static_cast<std::int64_t>(cuda::PinnedChunk::bytes), 1);
  const auto useful = static_cast<int>(std::min<std::int64_t>(chunks, threads / static_cast<int>(devices)));
  return {.to_device = std::clamp(useful * 2 / 3, 1, max_to_device),
          .to_host = std::clamp(useful / 3, 1, max_to_host)};
}

// Runs the pipeline. Returns the message of an error, or "".
std::string message_of_run(OffloadPipeline& pipeline) {
  try {
    pipeline.run();
    return {};
  } catch (const Error& error) {
    return fmt::format("{}: {}", status_name(error.status()), error.what());
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Runs each pipeline in a thread of its own. Returns the message of the first error, or "".
std::string run_together(std::deque<OffloadPipeline>& pipelines) {
  std::vector<std::string> messages(pipelines.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < pipelines.size(); ++i) {
    try {
      threads.emplace_back([&, i] { messages[i] = message_of_run(pipelines[i]); });
    } catch (const std::exception& error) {
      messages[i] = error.what();
    }
  }
  messages[0] = message_of_run(pipelines[0]);
  for (std::thread& thread : threads) thread.join();
  const auto first = std::ranges::find_if(messages, [](const std::string& text) { return !text.empty(); });
  return first == messages.end() ? "" : *first;
}

void add_report(Report& report, const Report& part) {
  for (std::size_t r = 0; r < report.items.size(); ++r) report.items[r] += part.items[r];
  report.items_with_special_values += part.items_with_special_values;
  report.recomputed_elements += part.recomputed_elements;
  report.ranges_known = report.ranges_known || part.ranges_known;
  report.dynamic_range_a = std::max(report.dynamic_range_a, part.dynamic_range_a);
  report.dynamic_range_b = std::max(report.dynamic_range_b, part.dynamic_range_b);
  report.blocking = part.blocking;
  if (part.adapted) report.adapted = part.adapted;
  if (!part.offload) return;  // the pipeline has failed
  OffloadReport& all = *report.offload;
  all.devices += part.offload->devices;
  all.products += part.offload->products;
  all.inner_parts = std::max(all.inner_parts, part.offload->inner_parts);
  all.uploaded_bytes += part.offload->uploaded_bytes;
  all.downloaded_bytes += part.offload->downloaded_bytes;
  all.seconds.add(part.offload->seconds);
  all.device_bytes = std::max(all.device_bytes, part.offload->device_bytes);
}

// Computes a part of C by a plan of the host.
void multiply_on_host(const Plan& plan, const Operands& operands, const OffloadPart& part, Report& report) {
  Problem problem = plan.problem;
  problem.m = part.rows.count;
  problem.n = part.columns.count;
  problem.batch_count = 1;
  problem.batch_kind = BatchKind::strided;
  Settings settings = plan.host_plan->settings;
  settings.reset(SettingId::offload);
  const Plan host = make_plan(problem, settings, plan.allocator);
  Operands of_part = operands;
  of_part.workspace = nullptr;
  for (std::int64_t item = part.items.first; item < part.items.end(); ++item) {
    const HostMatrices matrices = host_matrices(plan.problem, operands, item);
    of_part.a = matrices.a.at(part.rows.first, 0);
    of_part.b = matrices.b.at(part.columns.first, 0);
    of_part.c = matrices.c.at(part.rows.first, part.columns.first);
    Report found;
    execute(host, of_part, found);
    report.recomputed_elements += found.recomputed_elements;
    report.items_with_special_values += found.items_with_special_values;
  }
  report.offload->host_elements += part.elements();
}

std::int64_t elements_of(const Problem& problem) { return problem.m * problem.n * problem.batch_count; }

void multiply_all_on_host(const Plan& plan, const Operands& operands, const std::string& reason,
                          Report& report) {
  Operands on_host = operands;
  on_host.workspace = nullptr;
  Report found;
  execute(*plan.host_plan, on_host, found);
  report = std::move(found);
  report.is_of_host_plan = true;
  report.offload.emplace().host_elements = elements_of(plan.problem);
  report.offload->host_reason = reason;
}

bool covers_all(const Problem& problem, const std::vector<OffloadPart>& parts) {
  std::int64_t elements = 0;
  for (const OffloadPart& part : parts) elements += part.elements();
  return elements == elements_of(problem);
}

// Returns the reason why devices cannot be used in this process or for these operands; "" if they can.
std::string obstacle(const Plan& plan, const Operands& operands) {
  if (operands.prepared_a != nullptr || operands.prepared_b != nullptr)
    return "an operand was prepared on the host";
  return plan.engine->unavailable_reason();
}

}  // namespace

void offload(const Plan& plan, const Operands& operands, Report& report) {
  const Problem& problem = plan.problem;
  if (const std::string reason = obstacle(plan, operands); !reason.empty())
    return multiply_all_on_host(plan, operands, reason, report);
  const std::vector<int> devices = devices_of_kind();
  const std::vector<OffloadPart> parts = offload_parts(problem, static_cast<int>(devices.size()));
  const auto element_bytes = static_cast<std::int64_t>(problem.element_bytes());
  const CopyThreads threads =
      copy_threads(plan.host_plan->threads, parts.size(),
                   element_bytes * (problem.m + problem.n) * problem.k * problem.batch_count);
  std::deque<OffloadPipeline> pipelines;
  for (std::size_t i = 0; i < parts.size(); ++i)
    pipelines.emplace_back(plan, operands, parts[i], devices[i], threads);
  const std::string failure = run_together(pipelines);
  std::vector<OffloadPart> unwritten;
  if (!failure.empty()) {
    for (const OffloadPipeline& pipeline : pipelines)
      std::ranges::copy(pipeline.unwritten(), std::back_inserter(unwritten));
  }
  if (covers_all(problem, unwritten)) return multiply_all_on_host(plan, operands, failure, report);
  report.offload.emplace().host_reason = failure;
  for (const OffloadPipeline& pipeline : pipelines) add_report(report, pipeline.report());
  for (const OffloadPart& part : unwritten) multiply_on_host(plan, operands, part, report);
}

}  // namespace kintsugi::core
