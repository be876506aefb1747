// Memory, queues and threads of one device in an offloaded product.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "engines/device_engine.hpp"
#include "execute/device/memory.hpp"
#include "execute/device/offload/owned.hpp"
#include "execute/device/offload/pipeline.hpp"

namespace kintsugi::core {

// The three matrices of a call as they are stored on the host.
struct HostMatrices {
  StoredMatrix a;  // op(A): its rows are the vectors
  StoredMatrix b;  // op(B)^T
  StoredMatrix c;
};
HostMatrices host_matrices(const Problem& problem, const Operands& operands);

// Works in the context that is current when the object is constructed.
class OffloadPipeline::OnDevice {
 public:
  // Makes the plans of all steps and allocates what they need. Fails with out_of_memory or
  // workspace_too_small.
  OnDevice(const Plan& plan, const Operands& operands, const OffloadLayout& layout,
           const std::vector<OffloadStep>& steps, std::size_t max_bytes, const CopyThreads& threads);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice();  // waits for all copies and products

  // Starts the copies of a step's operands. multiply() has been called for all steps before, except possibly
  // the last one, which must not use the strips that are overwritten.
  void begin_loads(const OffloadStep& step);
  // Starts the copy of the elements of C to which the step's product is added.
  void begin_result_load(const OffloadStep& step);
  // Makes the queue of products wait for all copies that were started.
  void finish_loads();
  void multiply(const OffloadStep& step);
  // Starts the copy of a completed part of C to the host.
  void store(const OffloadStep& step, CopyGroup& result);
  void wait_for(CopyGroup& result) { downloads_->wait_for(result); }

  // True if a load of `next` writes into a strip that `step` multiplies.
  static bool overwrites(const OffloadStep& next, const OffloadStep& step);
  // Adds the reports of all products and the sizes of memory and copies. All products must have finished.
  void add_to_report(Report& report) const;

 private:
  using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // m, n, k

  void make_plans(const std::vector<OffloadStep>& steps, const OffloadLayout& layout, std::size_t max_bytes);
  void lay_out(const OffloadLayout& layout, std::size_t steps);
  Problem problem_of(const OffloadStep& step) const;
  void add_load(CopyGroup group, const void* host);

  const Plan& plan_;
  const Operands& operands_;
  const DeviceEngine& device_;
  const DeviceTransfers& transfers_;
  HostMatrices host_;
  OwnedQueue to_device_;
  OwnedQueue products_;
  OwnedQueue to_host_;
  std::map<std::int64_t, Plan> plans_by_inner_;
  std::map<Shape, Plan> plans_;
  DeviceBuffer memory_;
  std::vector<StoredMatrix> strips_a_, strips_b_, strips_c_;
  std::byte* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  std::byte* reports_ = nullptr;  // one aligned DeviceReport for each product
  struct Product {
    const Plan* plan;
    const DeviceReport* found;
    Report report;
  };
  std::vector<Product> made_;
  std::deque<OwnedEvent> events_;
  // For each strip of A and B: the event after the last product that read the strip; nullptr: there is none.
  std::vector<const OwnedEvent*> readers_a_, readers_b_;
  std::vector<CopyGroup*> results_;  // for each strip of C: its last copy to the host; nullptr: there is none
  std::deque<CopyGroup> loads_;      // copies to the device that were started
  std::deque<CopyGroup> finished_loads_;
  std::int64_t uploaded_bytes_ = 0;
  std::int64_t downloaded_bytes_ = 0;
  std::optional<CopyWorkers> uploads_;
  std::optional<CopyWorkers> downloads_;
};

}  // namespace kintsugi::core
