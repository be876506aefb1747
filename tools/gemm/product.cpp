#include "gemm/product.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace kintsugi::tools {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the flag whose value the library's message quotes. The error line begins with this flag.
std::string subject_of_error(const std::vector<FlagValue>& flags, const std::string& scheme) {
  const std::string message = kintsugi_last_error();
  const auto quoted = [&](const std::string& value) {
    return message.find('"' + value + '"') != std::string::npos;
  };
  if (!scheme.empty() && quoted(scheme)) return "--compare";
  for (const auto& flag : flags) {
    if (quoted(flag.value)) return flag.flag;
  }
  return "gemm";
}

// Prints log lines, as many as the setting `log` allows, on stderr, since stdout has the results.
void print_log(void*, kintsugi_log_level, const char* message) { print_note("kintsugi log: {}\n", message); }

// True for settings that decide which scheme runs.
bool decides_scheme(const FlagValue& flag) {
  return flag.name == "scheme" || flag.name == "policy" || flag.name == "accuracy";
}

}  // namespace

RequestedProduct::RequestedProduct(const Operands& operands, const std::vector<FlagValue>& flags)
    : operands_(operands), handle_(make_handle()) {
  set_flags(flags);
  plan(KINTSUGI_OPTIONS_INIT, flags);
}

RequestedProduct::RequestedProduct(const Operands& operands, const std::vector<FlagValue>& flags,
                                   const std::string& scheme)
    : operands_(operands), handle_(make_handle()) {
  const HiddenVariables hidden({"KINTSUGI_SCHEME", "KINTSUGI_POLICY", "KINTSUGI_ACCURACY"});
  row_.requested_scheme = scheme;
  std::vector<FlagValue> kept = flags;
  std::erase_if(kept, decides_scheme);
  set_flags(kept);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  if (scheme == "native") {
    options.policy = "native";
  } else {
    options.scheme = scheme.c_str();
  }
  plan(options, kept);
}

void RequestedProduct::set_flags(const std::vector<FlagValue>& flags) {
  require("--log", kintsugi_set_log(handle_.get(), print_log, nullptr));
  for (const auto& flag : flags) {
    if (!flag.environment_only) {
      require(flag.flag, kintsugi_set(handle_.get(), flag.name.c_str(), flag.value.c_str()));
    }
    ::setenv(flag.environment.c_str(), flag.value.c_str(), 1);
  }
}

void RequestedProduct::plan(const kintsugi_options& options, const std::vector<FlagValue>& flags) {
  const auto start = Clock::now();
  kintsugi_plan created = nullptr;
  const kintsugi_status status = kintsugi_plan_create(handle_.get(), &operands_.problem, &options, &created);
  if (status != KINTSUGI_SUCCESS) throw LibraryError(subject_of_error(flags, row_.requested_scheme), status);
  row_.plan_seconds = seconds_since(start);
  plan_.reset(created);
  row_.plan = read_description("plan", [&](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_plan_describe(created, buffer, capacity, needed);
  });
  row_.settings = describe_settings(handle_.get());
}

namespace {

template <class T>
T scalar_as(const std::complex<double>& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value.real());
  } else if constexpr (std::is_same_v<T, DoubleDouble>) {
    return {value.real(), value.imag()};
  } else {
    return T(value);
  }
}

}  // namespace

template <class T>
void RequestedProduct::execute_once(Matrix& c) {
  const T alpha = scalar_as<T>(operands_.alpha);
  const T beta = scalar_as<T>(operands_.beta);
  kintsugi_operands data = KINTSUGI_OPERANDS_INIT;
  data.alpha = &alpha;
  data.a = operands_.a.data();
  data.b = operands_.b.data();
  data.beta = &beta;
  data.c = c.data();
  require("gemm", kintsugi_plan_execute(handle_.get(), plan_.get(), &data));
}

void RequestedProduct::execute_once(Matrix& c) {
  with_element_type(c, [&]<class T>() { execute_once<T>(c); });
}

// Runs the product once, then up to four more times within half a second. The fastest run counts, since the
// first run also opens libraries and starts threads.
Row RequestedProduct::run() {
  constexpr double enough_seconds = 0.5;
  constexpr int max_runs = 5;
  const kintsugi_problem& problem = operands_.problem;
  const auto first_start = Clock::now();
  while (row_.runs < max_runs && (row_.runs == 0 || seconds_since(first_start) < enough_seconds)) {
    Matrix c = operands_.c0 ? *operands_.c0
                            : make_matrix("memory", problem.m, problem.n, operands_.type(), operands_.order,
                                          operands_.complex());
    const auto start = Clock::now();
    execute_once(c);
    const double seconds = seconds_since(start);
    row_.seconds = row_.runs == 0 ? seconds : std::min(row_.seconds, seconds);
    row_.c = std::move(c);
    ++row_.runs;
  }
  row_.report = read_description("report", [&](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_report(handle_.get(), buffer, capacity, needed);
  });
  return std::move(row_);
}

}  // namespace kintsugi::tools
