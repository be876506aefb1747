// One case of the differential test through the C ABI: memory laid out, the call made, what it changed looked
// at, and C judged.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/fuzz/capture_gate.hpp"
#include "gpu/fuzz/lane.hpp"
#include "tests/support/fuzz_case.hpp"

namespace kintsugi::test {

// Kind of failure of a call: status, bound, rounding, special, guard, operand, workspace, bits, ...
struct Fault {
  std::string kind;
  std::string detail;
  bool is_violation = true;  // else it is the vendor's, and reported all the same
};

struct Outcome {
  std::vector<Fault> faults;
  std::string refusal;        // name of the status where the library may refuse the call, and did
  std::string program;        // first candidate of the plan; empty: there was no plan
  std::int64_t elements = 0;  // of C that were held against the reference
  std::uint64_t bits = 0;     // hash of C's image
};

// Resources of a worker besides its lane.
struct CallContext {
  Lane& lane;
  kintsugi_handle handle;
  CaptureGate& gate;
  std::atomic<bool>& inside;  // the library is at work, nobody else is waited for
  bool judges = true;         // else only what the call did to memory is looked at
  bool no_vendor = false;     // leaves out what the plan gives to a vendor's products
  std::string
      sabotage;  // a mistake to be made on purpose: element, inner, padding, operand, workspace, replay
};

Outcome make_call(const CallContext& context, const FuzzCase& test);

}  // namespace kintsugi::test
