// Computes a part of C on one device. Copies to the device, products and copies back run at the same time.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "execute/device/offload/copy_workers.hpp"
#include "execute/device/offload/pieces.hpp"
#include "execute/execute.hpp"
#include "planner/offload.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Threads that copy for one device.
struct CopyThreads {
  int to_device = 1;
  int to_host = 1;
};

class OffloadPipeline {
 public:
  // `plan` and `operands` belong to the whole call. They must live as long as the pipeline.
  OffloadPipeline(const Plan& plan, const Operands& operands, const OffloadPart& part, int device,
                  const CopyThreads& threads);
  OffloadPipeline(const OffloadPipeline&) = delete;
  OffloadPipeline& operator=(const OffloadPipeline&) = delete;
  ~OffloadPipeline();

  // Computes the part of C. After a failure, unwritten() returns the elements of C that were not written.
  void run();

  std::vector<OffloadPart> unwritten() const;
  const Report& report() const { return report_; }  // valid after run()

 private:
  class OnDevice;  // memory, queues and threads of a run

  void run_steps(OnDevice& on_device, OffloadSeconds& seconds);
  std::size_t begin_loads(OnDevice& on_device, std::size_t begun, std::size_t present);

  const Plan& plan_;
  const Operands& operands_;
  OffloadPart part_;
  int device_;
  CopyThreads threads_;
  std::vector<OffloadStep> steps_;
  std::deque<CopyGroup> results_;  // copies of C to the host, for each step that completes elements of C
  Report report_;
};

}  // namespace kintsugi::core
