// Report of an execution.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engines/cuda/transfers.hpp"
#include "planner/plan.hpp"
#include "schemes/program.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Counts and times of products by Ozaki scheme I, summed over all blocks of C. Each block has its own number
// of slices.
struct Ozaki1Counts {
  std::int64_t blocks = 0;
  std::int64_t slices_a = 0;
  std::int64_t slices_b = 0;
  std::int64_t products = 0;     // products of a slice of A and a slice of B
  std::int64_t fast_blocks = 0;  // blocks computed in fast mode, without the smallest products
  // Fewest slices of any block. (A vector whose residual became 0 may have fewer slices than its block.)
  int min_slices = Ozaki1Parameters::max_slices;
  int max_products = 0;        // most products of any block
  double split_a_seconds = 0;  // includes Algorithm 3
  double split_b_seconds = 0;
  double product_seconds = 0;
  double summation_seconds = 0;
};

// Seconds of the threads that steer a device, all of them together.
struct OffloadSeconds {
  double preparation = 0;   // plans, device memory, threads
  double load_waits = 0;    // until the copies of a step's operands were in the queue
  double launches = 0;      // of products
  double result_waits = 0;  // until C was complete, after the last product's launch
  double end = 0;           // reports, and what preparation made
  cuda::CopyTimes uploads{};
  cuda::CopyTimes downloads{};

  void add(const OffloadSeconds& other) {
    preparation += other.preparation;
    load_waits += other.load_waits;
    launches += other.launches;
    result_waits += other.result_waits;
    end += other.end;
    uploads.add(other.uploads);
    downloads.add(other.downloads);
  }
};

// Record of an offloaded call: the work of the devices, and that of the host.
struct OffloadReport {
  int devices = 0;
  std::int64_t products = 0;     // steps, summed over all devices
  std::int64_t inner_parts = 0;  // number of parts into which k was cut
  std::int64_t uploaded_bytes = 0;
  std::int64_t downloaded_bytes = 0;
  std::int64_t device_bytes = 0;   // largest memory used on any device
  std::int64_t host_elements = 0;  // elements of C that the host computed
  std::string host_reason;         // why it did; empty: it computed none
  OffloadSeconds seconds{};
};

// A large value, or none. An optional of a trivial type is cleared when it is made and copied as a whole,
// value or not, which took 30 ns of each small product on the host.
template <class T>
class OptionalBlock : public std::optional<T> {
 public:
  OptionalBlock() {}  // no constant expression, for which the compiler would clear the memory
  OptionalBlock(const OptionalBlock& other) : std::optional<T>() { assign(other); }
  OptionalBlock& operator=(const OptionalBlock& other) {
    assign(other);
    return *this;
  }
  OptionalBlock& operator=(const T& value) {
    this->emplace(value);
    return *this;
  }

 private:
  void assign(const std::optional<T>& other) {
    if (other) {
      this->emplace(*other);
    } else {
      this->reset();
    }
  }
};

// Counts of what an execution did. The counts have a fixed size and take no memory from the heap; the words
// of an offloaded call may.
struct Report {
  std::shared_ptr<const Plan> plan;  // plan that was executed, set by the caller; nullptr: no execution yet
  Blocking blocking;
  std::size_t workspace_bytes = 0;
  std::array<std::int64_t, Plan::max_candidates> items{};  // batch items that each candidate multiplied
  std::int64_t items_scaled = 0;  // items with alpha = 0 or k = 0, whose C is only scaled by beta
  std::int64_t items_with_special_values = 0;  // items with NaN or infinities in A or B
  // For emulations: elements of C that the first checked candidate did not prove, and that wider candidates
  // rounded correctly; or those that bf16x6-direct computed in FP32. Native products have none.
  std::int64_t recomputed_elements = 0;
  // Batch items whose operands the named scheme does not accept, which only the device could detect. Their C
  // is NaN.
  std::int64_t items_unreachable = 0;
  int exceptions = 0;         // of <cfenv>, for the caller: FE_OVERFLOW, FE_INVALID
  bool ranges_known = false;  // false for a native plan, which finds no ranges
  int dynamic_range_a = 0;    // largest dynamic range over all items whose ranges were found
  int dynamic_range_b = 0;

  // Program of the last batch item whose program was adapted to its operands.
  struct Adapted {
    const Scheme* scheme;
    Accumulator accumulator;
    std::int64_t k;
    Program program;
    SchemeParameters parameters;  // parameters that the plan has set
  };
  OptionalBlock<Adapted> adapted;
  // `program`: the candidate's program as adapted to the operands.
  void set_adapted(const Candidate& candidate, const Program& program, std::int64_t k) {
    adapted = Adapted{.scheme = candidate.scheme,
                      .accumulator = candidate.accumulator,
                      .k = k,
                      .program = program,
                      .parameters = candidate.parameters};
  }

  TileCounts tiles_a;  // tiles of A, for programs with exponents per tile
  TileCounts tiles_b;

  Ozaki1Counts ozaki1;  // counts of items under Recombination::ozaki1

  std::optional<OffloadReport> offload;  // set for plans that offload; `items` then counts steps
  bool is_of_host_plan = false;          // true: the host computed all of an offloaded call

  // Returns the executed plan, to whose candidates `items` refers; nullptr if no plan was executed.
  const Plan* executed_plan() const { return is_of_host_plan ? plan->host_plan.get() : plan.get(); }
};

}  // namespace kintsugi::core
