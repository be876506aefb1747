// One case of the differential test through the C ABI: lays out its memory, makes the call, checks what it
// changed, and judges C.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/fuzz/capture_gate.hpp"
#include "gpu/fuzz/lane.hpp"
#include "tests/support/fuzz_case.hpp"

namespace kintsugi::test {

// A failure of a call.
struct Fault {
  std::string kind;  // status, bound, rounding, special, guard, operand, workspace, bits, ...
  std::string detail;
};

struct Outcome {
  std::vector<Fault> faults;
  std::string refusal;        // why there is no result, such as the name of the status; empty: there is one
  std::string program;        // first candidate of the plan; empty: there was no plan
  std::int64_t elements = 0;  // number of elements of C that were compared with the reference
  std::uint64_t bits = 0;     // hash of C's image
};

// Resources of a worker besides its lane.
struct CallContext {
  Lane& lane;
  kintsugi_handle handle;
  CaptureGate& gate;
  std::atomic<bool>& inside;  // set while the library works, not while the call waits for the gate
  bool judges = true;         // false: checks only what the call did to memory, not the values of C
  bool no_vendor = false;     // leaves out cases whose plan uses cuBLAS
  std::string
      sabotage;  // a mistake to be made on purpose: element, inner, padding, operand, workspace, replay
};

Outcome make_call(const CallContext& context, const FuzzCase& test);

}  // namespace kintsugi::test
