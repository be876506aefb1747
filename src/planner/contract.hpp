// The caller's request, which is the settings, parsed, and the contract that follows: the allowed difference
// between C and the exact product. No other file parses or compares the texts of settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/rounding.hpp"
#include "base/settings.hpp"
#include "planner/problem.hpp"
#include "schedule/accumulator.hpp"

namespace kintsugi::core {

// Error that C may have.
struct Accuracy {
  enum class Kind : std::uint8_t {
    by_type,       // the error of a product in the type
    exact,         // one rounding
    tolerance,     // a number
    reproducible,  // the error of a product in the type, and bits that depend only on operands and scalars
  };

  Kind kind = Kind::by_type;
  OperandType type = OperandType::f32;  // only for Kind::by_type and Kind::reproducible
  double tolerance = 0;                 // only for Kind::tolerance; relative to |A||B|

  bool is_reproducible() const { return kind == Kind::reproducible; }
  bool is_of_type() const { return kind == Kind::by_type; }
  bool is_of(OperandType wanted) const { return is_of_type() && type == wanted; }
};

// Returns the accuracy of products in the type.
constexpr Accuracy accuracy_of_type(OperandType type) { return {Accuracy::Kind::by_type, type}; }

// `automatic` emulates where that is expected to be faster.
enum class Policy : std::uint8_t { automatic, emulate, native };

// `automatic` multiplies matrices of the host on devices where that is expected to be faster.
enum class Offload : std::uint8_t { off, automatic, force };

// Value of the setting `scheme` that selects the vendor library's product as it is.
inline constexpr std::string_view native_scheme = "native";

struct PlanRequest {
  std::optional<Accuracy> accuracy;  // nothing: accuracy of the operands' type
  std::string scheme;                // name of the scheme to run; empty: the policy selects
  std::string engine;                // name of the engine; empty: any
  Policy policy = Policy::automatic;
  Offload offload = Offload::off;
  bool keeps_a = false;  // on devices, for later calls with the same matrix
  bool keeps_b = false;
  std::optional<Accumulator> accumulator;
  std::optional<RoundingMode> rounding;  // nothing: the calling thread's mode
  std::size_t workspace_limit = 0;       // bytes; 0: no limit
  std::size_t offload_memory = 0;  // bytes of each device for an offloaded call; 0: most of the free memory
  int threads = 0;                 // 0: all available
  // True: the policy automatic assumes that every emulation is faster than native. Calibration measures the
  // fallback chains that result.
  bool assumes_gain = false;

  bool is_reproducible() const { return accuracy && accuracy->is_reproducible(); }
};

// Returns the settings without contradictions: of two settings that contradict each other, the one from the
// less specific source gets its default. Fails with bad_setting or contract_unreachable if both come from the
// same source.
Settings without_contradictions(Settings settings, const Problem& problem);

// Parses the settings. Fails with bad_setting if the accumulator does not exist.
PlanRequest read_request(const Settings& settings);

// The contract |C - AB| <= coefficient * (|A||B|)_ij, before alpha, beta and the term for underflow
// (docs/design/bounds.md).
struct Contract {
  Accuracy accuracy;  // the accuracy that the caller named, or the accuracy of the operands' type
  // Coefficient for the problem's inner length. 0 if a scheme was named without an accuracy: then only the
  // scheme's own bound holds.
  double coefficient = 0;
  // Coefficient that a check of an element must prove. For an accuracy of a type it is the contract at k = 1.
  // The contract for large k would allow coarse splits, whose errors a native product never has.
  double checked_coefficient = 0;
};

// Returns the coefficient of (|A||B|)_ij that the accuracy allows; 0 if it allows only the correctly rounded
// result.
double contract_coefficient(const Accuracy& accuracy, std::int64_t k);

Contract contract_of(const PlanRequest& request, const Problem& problem);

// Returns the mode in which a call rounds. Reproducible products round to nearest.
RoundingMode rounding_of(const PlanRequest& request, const Problem& problem);

// True if native arithmetic is proved to meet the contract.
bool native_meets(const Contract& contract, const Problem& problem);

}  // namespace kintsugi::core
