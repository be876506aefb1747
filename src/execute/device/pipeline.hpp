// Computes a part of C on one device. Copies to the device, products and copies back run at the same time.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "engines/cuda/steps.hpp"
#include "engines/cuda/transfers.hpp"
#include "execute/device/memory.hpp"
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
  std::deque<cuda::CopyGroup>
      results_;  // copies of C to the host, for each step that completes elements of C
  Report report_;
};

// The three matrices of a batch item as they are stored on the host.
struct HostMatrices {
  cuda::StoredMatrix a;  // op(A): its rows are the vectors
  cuda::StoredMatrix b;  // op(B)^T
  cuda::StoredMatrix c;
};
HostMatrices host_matrices(const Problem& problem, const Operands& operands, std::int64_t item);

// Memory, queues and threads of one device. Works in the context that is current when the object is
// constructed.
class OffloadPipeline::OnDevice {
 public:
  // Makes the plans of all steps and allocates what they need. Fails with out_of_memory or
  // workspace_too_small.
  OnDevice(const Plan& plan, const Operands& operands, const OffloadPart& part, const OffloadLayout& layout,
           const std::vector<OffloadStep>& steps, std::size_t max_bytes, const CopyThreads& threads);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice();  // waits for all copies and products

  // Starts the copies of the operands of step `number`. Steps that were not multiplied yet must not use the
  // strips that these copies overwrite.
  void begin_loads(const OffloadStep& step, std::size_t number);
  // Starts the copy of the elements of C that a step's product is added to.
  void begin_result_load(const OffloadStep& step, std::size_t number);
  // Makes the queue of products wait for the copies that were started for steps up to `number`.
  void finish_loads(std::size_t number);
  void multiply(const OffloadStep& step);
  // Starts the copy of a completed part of C to the host.
  void store(const OffloadStep& step, cuda::CopyGroup& result);
  void wait_for(cuda::CopyGroup& result) { downloads_->wait_for(result); }

  // Keeps the operands that the caller wants to be kept for later calls. Precondition: all products are done.
  void keep_operands();

  // True if a load of `next` writes into a strip that `step` multiplies.
  static bool overwrites(const OffloadStep& next, const OffloadStep& step);
  // Adds the reports of the products, and the sizes of memory and copies. Precondition: all products are
  // done.
  void add_to_report(Report& report, OffloadSeconds& seconds);

 private:
  using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;  // m, n, k, items

  void make_plans(const std::vector<OffloadStep>& steps, const OffloadLayout& layout, std::size_t max_bytes);
  void lay_out(const OffloadLayout& layout, std::size_t steps);
  void find_kept_operands(const OffloadPart& part, const OffloadLayout& layout,
                          const std::vector<OffloadStep>& steps);
  void find_kept_operand(Side side, const Interval& vectors, std::int64_t loads, cuda::StoredMatrix& strip);
  Problem problem_of(const OffloadStep& step) const;
  static Shape shape_of(const Problem& problem);
  // Returns the part of a strip of A or B whose first vector is at `position` in the strip.
  cuda::StoredMatrix part_of_operand(const cuda::StoredMatrix& strip, std::int64_t position,
                                     const Interval& vectors, const Interval& inner) const;
  // The matrices of a step's product in device memory.
  cuda::StoredMatrix matrix_a(const OffloadStep& step) const;
  cuda::StoredMatrix matrix_b(const OffloadStep& step) const;
  cuda::StoredMatrix matrix_c(const OffloadStep& step) const;
  // Returns the copies of rows and columns of a matrix, for each of the items, from or to device memory.
  cuda::CopyGroup copies(cuda::StoredMatrix HostMatrices::*matrix, const Interval& items,
                         const Interval& rows, const Interval& columns,
                         const cuda::StoredMatrix& on_device) const;
  void add_load(cuda::CopyGroup group, std::size_t step);

  const Plan& plan_;
  const Operands& operands_;
  OffloadLayout layout_;
  std::vector<HostMatrices> host_;                           // of all items
  std::int64_t stride_a_ = 0, stride_b_ = 0, stride_c_ = 0;  // elements between items in strips
  cuda::OwnedQueue to_device_;
  cuda::OwnedQueue products_;
  cuda::OwnedQueue to_host_;
  std::map<std::int64_t, Plan> plans_by_inner_;
  std::map<Shape, Plan> plans_;
  DeviceBuffer memory_;
  std::vector<cuda::StoredMatrix> strips_a_, strips_b_, strips_c_;
  // Operands in memory of their own, which replace their strips.
  std::optional<KeptOperand> kept_a_, kept_b_;
  bool has_a_ = false, has_b_ = false;  // true: the kept operand was copied by an earlier call
  std::byte* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  std::byte* reports_ = nullptr;  // one aligned DeviceReport for each product
  struct Product {
    const Plan* plan;
    const DeviceReport* found;
    Report report;
  };
  std::vector<Product> made_;
  std::deque<cuda::OwnedEvent> events_;
  // For each strip of A and B: the event after the last product that read the strip; nullptr: there is none.
  std::vector<const cuda::OwnedEvent*> readers_a_, readers_b_;
  std::vector<cuda::CopyGroup*> results_;
  struct Load {
    std::size_t step;
    cuda::CopyGroup group;
  };
  std::list<Load> loads_;  // loads that were started
  std::int64_t uploaded_bytes_ = 0;
  std::int64_t downloaded_bytes_ = 0;
  std::optional<cuda::CopyWorkers> uploads_;
  std::optional<cuda::CopyWorkers> downloads_;
};

}  // namespace kintsugi::core
