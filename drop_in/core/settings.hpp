// Settings of the drop-ins, from the environment and the settings file, and their differences.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "dump.hpp"
#include "sites/rules.hpp"

namespace kintsugi::drop_in {

// Policies of the drop-ins. `force` is `emulate`, except that native products are not accepted.
enum class Policy : std::uint8_t { automatic, emulate, native, force };

// Differences of the drop-ins. Each of them defines its own.
struct DropIn {
  const char* library;  // "BLAS" or "cuBLAS"
  bool is_cublas;
  const char* report_format;
  const char* member;          // member of the report that names the library's file
  const char* known_function;  // function of the library whose file that is
};
extern const DropIn this_drop_in;

struct Settings {
  Policy policy = Policy::automatic;
  std::string accuracy;                 // in the library's notation; "": the accuracy of the operands' type
  std::string scheme;                   // "": the policy chooses
  std::string engine;                   // "auto": the quickest one that is available
  bool forces_offload = false;          // every product that a GPU can multiply is to be offloaded
  std::int64_t workspace_limit = 0;     // bytes; 0: not set
  bool sets_threads = false;            // KINTSUGI_THREADS or the settings file has a number
  bool explain = false;                 // true: a line on stderr for each distinct problem
  bool verbose = false;                 // true: a line on stderr for each call
  std::string report;                   // file of the report at exit, "-" for a table on stderr; "": none
  bool keeps_vendor_emulation = false;  // true: calls that ask for cuBLAS's own emulation stay cuBLAS's
  bool verifies_speed =
      false;  // true: each problem's emulation and cuBLAS are timed, and the faster one stays
  std::optional<DumpSetting> dump;  // calls whose error passes its limit are written to files
  bool strict = false;    // true: a malformed setting, or a forced emulation that fails, ends the program
  std::string malformed;  // why a setting was not accepted, so that every call is forwarded; "": all were
  std::optional<SitesFile> sites;  // contents of the file that KINTSUGI_SITES names

  bool is_malformed() const { return !malformed.empty(); }
  // True if the user asks for more than the default: then a call without a plan does not keep the settings.
  bool asks_for_products() const {
    return policy == Policy::emulate || policy == Policy::force || !accuracy.empty() || !scheme.empty() ||
           engine != "auto";
  }
  // True if routines with vectors of the type are answered, like level 3: the user asks for more than the
  // accuracies of the types. A tolerance that no FP32 number can keep is meant for FP64 alone, and rules of
  // call sites are for level 3 alone.
  bool answers_vectors(kintsugi_type type) const;
};

// Writes "kintsugi: ", the parts and a line's end to stderr. std::fprintf() would take 8 KiB of the caller's
// stack, since stderr has no buffer.
void print_line(std::initializer_list<std::string_view> parts) noexcept;

// Returns the value of an environment variable; "" if it is not set.
std::string variable(const char* name);

// Returns the settings, which the first call reads. A malformed setting writes a line to stderr, and ends the
// program if KINTSUGI_STRICT=1. Also written is a line for each variable of the environment that names no
// setting and is near the name of one.
const Settings& settings();

// True if KINTSUGI_SITES names a file; false before the first call of settings().
inline constinit bool sites_in_force = false;
inline bool has_sites() { return sites_in_force; }

// True if calls are recorded: the settings say so, or the program has asked for a report.
bool records_calls();
// Records calls from now on, for a program that asks for a report.
void begin_to_record();
// True if a report is written or the program has asked for one.
bool wants_report();

// Tells the user that a call of `symbol` does not keep the settings: one line on stderr for the first such
// call of the program, which it ends with status 2 if KINTSUGI_STRICT=1. Call it before anything is
// computed, without locks.
void note_not_kept(const char* symbol, const std::string& why);

// Tells the user that an emulation does not run that the settings ask for: a line on stderr for each call
// under the policy `force`, which KINTSUGI_STRICT=1 makes the last one; else note_not_kept().
void note_failure(const char* symbol, const std::string& why);

const char* policy_name(Policy policy);

}  // namespace kintsugi::drop_in
