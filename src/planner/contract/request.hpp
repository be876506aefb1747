// What a caller asks of a plan: the settings in force, parsed once. Nothing below compares or parses their
// text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/settings.hpp"
#include "planner/problem.hpp"
#include "schedule/accumulator.hpp"

namespace kintsugi::core {

// The error of C that is allowed: that of products in a type, none but one rounding, or a tolerance.
struct Accuracy {
  enum class Kind : std::uint8_t { of_type, exact, tolerance };

  Kind kind = Kind::of_type;
  OperandType type = OperandType::f32;  // of Kind::of_type alone
  double tolerance = 0;                 // relative to |A||B|, of Kind::tolerance alone

  bool is_of_type() const { return kind == Kind::of_type; }
  bool is_of(OperandType of) const { return is_of_type() && type == of; }
};

// As accurate as products in that type.
constexpr Accuracy accuracy_of_type(OperandType type) { return {Accuracy::Kind::of_type, type}; }

// `automatic` emulates where that is expected to be quicker.
enum class Policy : std::uint8_t { automatic, emulate, native };

// The native product where it is named the way a scheme is: nobody looks at what underflows or overflows in
// it, unless an accuracy is asked for too.
inline constexpr std::string_view native_scheme = "native";

struct PlanRequest {
  std::optional<Accuracy> accuracy;  // nothing: that of the operands' type
  std::string scheme;                // the name of the program to run; empty: the policy selects
  std::string engine;                // its name; empty: any
  Policy policy = Policy::automatic;
  std::optional<Accumulator> accumulator;
  std::size_t workspace_limit = 0;  // 0: none
  int threads = 0;                  // 0: all that there are
};

// Of two settings that exclude each other the one from the nearer source counts, and the other is reset.
// Fails with bad_setting or contract_unreachable where both come from one source.
Settings without_contradictions(Settings settings, const Problem& problem);

// Fails with bad_setting for an accumulator that does not exist.
PlanRequest read_request(const Settings& settings);

}  // namespace kintsugi::core
