#include "answer.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>

#include "core/lock.hpp"
#include "core/record.hpp"
#include "core/settings.hpp"
#include "core/sites/site.hpp"

namespace kintsugi::cublas {

// ------------------------------------------------------------------ decisions

namespace {

// Everything that a plan depends on.
struct Key {
  ProblemKey problem;
  BatchKind batch;
  std::int64_t stride_a, stride_b, stride_c, count;
  int pointer_mode, adds_to_c, device;

  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t hash = ProblemKeyHash()(key.problem);
    for (const std::int64_t number :
         {static_cast<std::int64_t>(key.batch), key.stride_a, key.stride_b, key.stride_c, key.count,
          std::int64_t{key.pointer_mode}, std::int64_t{key.adds_to_c}, std::int64_t{key.device}})
      hash = (hash ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
  }
};

Decision new_decision(const Call& call, const Key& key, void* stream) {
  if (call.site != nullptr && call.site->rule.is_native()) return decision_of_native_site(*call.site);
  if (is_captured(stream)) {
    Decision decision;
    decision.why = "the stream is being captured, and the problem was not planned before";
    decision.is_final = false;
    return decision;
  }
  kintsugi_problem problem = problem_of(call);
  problem.memory = KINTSUGI_DEVICE;
  problem.pointer_mode = key.pointer_mode;
  problem.adds_to_c = key.adds_to_c;
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.queue = {KINTSUGI_QUEUE_CUDA, 0, stream};
  options.workspace_limit = workspace_limit(key.device);
  return drop_in::new_decision(call, problem, options);
}

constinit Kept<Key, Decision, KeyHash> decisions(decisions_mutex);

}  // namespace

static Key key_of(const Call& call, const CallState& state) {
  // True if beta is known not to be 0.
  const bool adds_to_c = state.pointer_mode == KINTSUGI_SCALARS_ON_HOST && !is_zero(call.beta, call.type);
  return {problem_key(call), call.batch,         call.stride_a,     call.stride_b, call.stride_c,
          call.count,        state.pointer_mode, adds_to_c ? 1 : 0, state.device};
}

// A plan serves any beta. So while the stream is captured, a decision of a call that differs in whether it
// adds to C takes the place of one that cannot be made.
DecisionPointer decide(const Call& call, const CallState& state) {
  Key key = key_of(call, state);
  const auto make = [&] { return new_decision(call, key, state.stream); };
  DecisionPointer decision = decisions.get(key, make, [](const Decision& made) { return made.is_final; });
  if (decision->is_final || !is_captured(state.stream)) return decision;
  key.adds_to_c = 1 - key.adds_to_c;
  const Decision* const known = decisions.find(key);
  return known == nullptr ? std::move(decision) : DecisionPointer(known);
}

// ------------------------------------------------------------------ errors

namespace {

bool is_measurable(const Origin& origin, const ProductCall& call, const CallState& state) {
  const bool is_asked_for = settings().dump || (call.site != nullptr && settings().sites->error_samples > 0);
  return is_asked_for && records_calls() && !is_empty(call) && call.batch != BatchKind::pointers &&
         origin.computes_product(call.type) && !is_captured(state.stream);
}

// Columns of a matrix in device memory.
DeviceRows columns_of(const ProductCall& call, void* c, std::int64_t ld, std::int64_t first,
                      std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(element_bytes(call.type));
  const std::size_t pitch = static_cast<std::size_t>(ld) * bytes;
  return {.first = static_cast<char*>(c) + static_cast<std::size_t>(first) * pitch,
          .pitch = pitch,
          .bytes = static_cast<std::size_t>(call.m) * bytes,
          .count = static_cast<std::size_t>(count)};
}

// Returns a column-major matrix without gaps; nothing if the driver refuses.
std::vector<char> matrix_on_host(const ProductCall& call, const void* matrix, std::int64_t rows,
                                 std::int64_t columns, std::int64_t ld, void* stream) {
  const auto bytes = static_cast<std::size_t>(element_bytes(call.type));
  const DeviceRows lines{.first = const_cast<void*>(matrix),
                         .pitch = static_cast<std::size_t>(ld) * bytes,
                         .bytes = static_cast<std::size_t>(rows) * bytes,
                         .count = static_cast<std::size_t>(columns)};
  std::vector<char> elements(lines.bytes * lines.count);
  if (!copy_to_host(lines, elements.data(), stream) || !synchronize(stream)) elements.clear();
  return elements;
}

// Adds the elements of both matrices, which are copied to the host in pieces. Returns false if the driver
// refuses.
bool add_on_host(const ProductCall& call, void* exact, void* stream, CallNorms& norms) {
  constexpr std::size_t piece_bytes = std::size_t{1} << 25;
  const std::size_t line =
      static_cast<std::size_t>(call.m) * static_cast<std::size_t>(element_bytes(call.type));
  const auto columns = std::clamp<std::int64_t>(static_cast<std::int64_t>(piece_bytes / line), 1, call.n);
  std::vector<char> one(static_cast<std::size_t>(columns) * line), other(one.size());
  for (std::int64_t first = 0; first < call.n; first += columns) {
    const std::int64_t count = std::min(columns, call.n - first);
    if (!copy_to_host(columns_of(call, call.c, call.ldc, first, count), one.data(), stream) ||
        !copy_to_host(columns_of(call, exact, call.m, first, count), other.data(), stream) ||
        !synchronize(stream))
      return false;
    add_elements(norms, call.type, one.data(), other.data(), count * call.m);
  }
  return true;
}

}  // namespace

ExactComparison::ExactComparison(const Symbol& symbol, const Origin& origin, const ProductCall& call,
                                 const CallState& state)
    : symbol_(symbol), call_(call), state_(state) {
  if (!is_measurable(origin, call, state)) return;
  numbers_ = numbers_of_sample(symbol.name(), call);
  if (!numbers_.is_measured()) return;
  const DeviceRows c = columns_of(call, call.c, call.ldc, 0, call.n);
  c_.emplace(state.device, c.bytes * c.count, state.stream);
  const bool is_copied = c_->pointer() != nullptr && copy_on_device(c, c_->pointer(), c.bytes, state.stream);
  if (!is_copied) c_.reset();
  const bool may_read_c = state.pointer_mode != KINTSUGI_SCALARS_ON_HOST || !is_zero(call.beta, call.type);
  if (is_copied && settings().dump && may_read_c)
    c_read_ = matrix_on_host(call, call.c, call.m, call.n, call.ldc, state.stream);
}

bool ExactComparison::compute_exactly() const {
  ProductCall exact = call_;
  exact.site = exact_site();
  exact.batch = BatchKind::single;
  exact.count = 1;
  exact.stride_a = exact.stride_b = exact.stride_c = 0;
  exact.c = c_->pointer();
  exact.ldc = call_.m;
  const DecisionPointer decision = decide(exact, state_);
  return decision->emulates && emulate(*decision, exact, state_).empty();
}

void ExactComparison::dump(std::string_view programs, double error) {
  const auto on_host = [&](const void* matrix, std::int64_t rows, std::int64_t columns, std::int64_t ld) {
    return matrix_on_host(call_, matrix, rows, columns, ld, state_.stream);
  };
  const std::size_t scalar_bytes = static_cast<std::size_t>(element_bytes(call_.type));
  char scalars[2][16] = {};
  const void* const sources[] = {call_.alpha, call_.beta};
  for (int i = 0; i < 2; ++i) {
    if (state_.pointer_mode == KINTSUGI_SCALARS_ON_HOST) {
      std::memcpy(scalars[i], sources[i], scalar_bytes);
    } else if (const auto bytes = on_host(sources[i], 1, 1, 1); !bytes.empty()) {
      std::memcpy(scalars[i], bytes.data(), scalar_bytes);
    }
  }
  if (is_zero(scalars[1], call_.type)) c_read_.clear();
  const bool swaps_a = call_.op_a != Op::n, swaps_b = call_.op_b != Op::n;
  write_dump(*settings().dump, call_,
             {.symbol = symbol_.name(),
              .program = programs,
              .is_transposed = false,
              .error = error,
              .alpha = scalars[0],
              .beta = scalars[1],
              .a = on_host(call_.a, swaps_a ? call_.k : call_.m, swaps_a ? call_.m : call_.k, call_.lda),
              .b = on_host(call_.b, swaps_b ? call_.n : call_.k, swaps_b ? call_.k : call_.n, call_.ldb),
              .c = std::move(c_read_),
              .result = on_host(call_.c, call_.m, call_.n, call_.ldc),
              .exact = on_host(c_->pointer(), call_.m, call_.n, call_.m)});
}

void ExactComparison::finish(int status, std::string_view programs) noexcept try {
  if (!c_ || status != success || !compute_exactly()) return;
  CallNorms norms;
  if (!add_on_host(call_, c_->pointer(), state_.stream, norms)) return;
  record_error(symbol_.name(), call_, numbers_, norms);
  const double error = relative_error(norms);
  if (settings().dump && error > settings().dump->limit) dump(programs, error);
} catch (const std::exception&) {  // No memory: the site lacks this call's error.
}

// ------------------------------------------------------------------ answers

namespace {

// Getters of the real cuBLAS.
constinit Symbol get_stream("cublasGetStream_v2");
constinit Symbol get_pointer_mode("cublasGetPointerMode_v2");
constinit Symbol get_math_mode("cublasGetMathMode");
constinit Symbol get_mantissa_control("cublasGetFixedPointEmulationMantissaControl");
constinit Symbol get_max_mantissa_bits("cublasGetFixedPointEmulationMaxMantissaBitCount");
constinit Symbol get_mantissa_offset("cublasGetFixedPointEmulationMantissaBitOffset");
constinit Symbol get_mantissa_count_pointer("cublasGetFixedPointEmulationMantissaBitCountPointer");

const char* read_device(CallState& state) {
  const std::optional<int> device = current_device();
  if (!device) return "no context of the CUDA driver is current";
  state.device = *device;
  return nullptr;
}

// One intercepted call. Each member function answers it in one way and records the reason.
class Answer {
 public:
  Answer(const Symbol& symbol, const Origin& origin, const ProductCall& call, const Forward& forward)
      : symbol_(symbol), origin_(origin), call_(call), forward_(forward) {}

  int run() {
    if (!call_.is_supported) return forward(records_calls() ? reason_of(call_.unsupported) : "");
    if (const char* reason = reason_to_forward(call_)) return forward(reason);
    if (settings().is_malformed()) return forward(settings().malformed);
    if (settings().policy == Policy::native && call_.site == nullptr) return forward_by_policy();
    if (const char* reason = origin_.read_pointer_mode(state_)) return forward(reason);
    if (const char* reason = read_device(state_)) return forward(reason);
    if (is_known_to_be_forwarded()) return forward_();
    if (const char* reason = origin_.read(state_)) return forward(reason);
    reads_c_ = state_.pointer_mode != KINTSUGI_SCALARS_ON_HOST || !is_zero(call_.beta, call_.type);
    ExactComparison comparison(symbol_, origin_, call_, state_);
    const DecisionPointer decision = decide(call_, state_);
    note_decision(symbol_.name(), *decision);
    const int status = answer_as_decided(*decision);
    comparison.finish(status, programs_);
    return status;
  }

 private:
  // True if nothing of the call is recorded or printed either.
  bool is_known_to_be_forwarded() const {
    if (records_calls() || settings().policy == Policy::force) return false;
    const Decision* const known = decisions.find_recent(key_of(call_, state_));
    return known != nullptr && known->is_final && !known->emulates && known->not_kept.empty();
  }

  int answer_as_decided(const Decision& decision) {
    if (!decision.emulates) return forward_as_planned(decision);
    if (const char* reason = origin_.reason_in_arithmetic(call_.type)) return forward(reason);
    const SpeedTurn turn =
        settings().verifies_speed ? speed_turn(symbol_.name(), call_, state_.stream) : SpeedTurn();
    if (turn.timed == Timed::native) {
      const CallSample sample(symbol_.name(), call_, state_.stream, turn.timed);
      return forward(turn.why);
    }
    if (const char* reason = origin_.enqueue_before(state_)) return forward(reason);
    return emulate(decision, turn.timed);
  }

  int emulate(const Decision& decision, Timed timed) {
    CallSample sample(symbol_.name(), call_, state_.stream, timed);
    const std::string failure = cublas::emulate(decision, call_, state_, sample.handle());
    if (!failure.empty()) return forward_after_failure(failure);
    if (const char* reason = origin_.enqueue_after(state_)) {
      if (origin_.can_repeat_after_product()) return forward_after_failure(reason);
      note(symbol_, call_, decision.candidates, reason, true, reads_c_);
      return execution_failed;
    }
    sample.note_execution();
    programs_ = decision.candidates;
    const bool is_requested = records_calls() && origin_.requests_emulation(call_.type);
    note(symbol_, call_, decision.candidates,
         is_requested ? "cuBLAS's own emulation was asked for. " + decision.why : decision.why, false,
         reads_c_, decision.native_seconds);
    return success;
  }

  // Forwards the call; if calls are recorded, measures the time of a sampled one.
  int forward_by_policy() {
    constexpr std::string_view why = "policy native forwards every call";
    if (!records_calls() || read_state(origin_, state_) != nullptr) return forward(why);
    const CallSample sample(symbol_.name(), call_, state_.stream);
    return forward(why);
  }

  // Forwards the call because the decision says so, and measures its time if it is sampled. The policy
  // `force` treats it as a failure that no plan could be made.
  int forward_as_planned(const Decision& decision) const {
    if (decision.candidates.empty() && settings().policy == Policy::force) return forward(decision.why, true);
    const CallSample sample(symbol_.name(), call_, state_.stream);
    return forward(decision.why);
  }

  // Forwards the call after its emulation has failed.
  int forward_after_failure(const std::string& why) const {
    note_failure(symbol_.name(), why);
    return forward(why, true);
  }

  int forward(std::string_view why, bool failed = false) const {
    note(symbol_, call_, "", why, failed, reads_c_);
    return forward_();
  }

  const Symbol& symbol_;
  const Origin& origin_;
  const ProductCall& call_;
  const Forward& forward_;
  CallState state_;
  bool reads_c_ = true;   // beta is not known to be 0
  std::string programs_;  // that the device selects from; "": cuBLAS has multiplied
};

}  // namespace

const char* HandleOrigin::read(CallState& state) const {
  const bool is_known = call_real(get_pointer_mode, handle_, &state.pointer_mode) == success &&
                        call_real(get_stream, handle_, &state.stream) == success;
  return is_known ? nullptr : "cuBLAS does not know the handle";
}

const char* ProductOrigin::read_pointer_mode(CallState& state) const {
  const bool is_known = call_real(get_pointer_mode, handle(), &state.pointer_mode) == success;
  return is_known ? nullptr : "cuBLAS does not know the handle";
}

const char* HandleOrigin::reason_in_arithmetic(kintsugi_type type) const {
  int math_mode = 0;
  if (call_real(get_math_mode, handle_, &math_mode) != success) return "cuBLAS does not tell the math mode";
  if (const char* reason = reason_in_math_mode(math_mode, type)) return reason;
  const bool is_requested = requests_emulation_ || cublas::requests_emulation(math_mode, type);
  if (!is_requested || is_single(type)) return nullptr;
  MantissaSettings mantissa;
  call_real(get_mantissa_control, handle_, &mantissa.control);
  call_real(get_max_mantissa_bits, handle_, &mantissa.max_bits);
  call_real(get_mantissa_offset, handle_, &mantissa.offset);
  call_real(get_mantissa_count_pointer, handle_, &mantissa.count_pointer);
  return reason_in_mantissa(mantissa);
}

bool HandleOrigin::requests_emulation(kintsugi_type type) const {
  int math_mode = 0;
  return requests_emulation_ || (call_real(get_math_mode, handle_, &math_mode) == success &&
                                 cublas::requests_emulation(math_mode, type));
}

const char* read_state(const Origin& origin, CallState& state) {
  if (const char* reason = origin.read(state)) return reason;
  return read_device(state);
}

std::string emulate(const Decision& decision, const Call& call, const CallState& state,
                    kintsugi_handle handle) {
  // The library allocates the workspace: from its memory pool or, under a capture, for the graph, within the
  // plan's limit, which holds for all graphs together; beyond it the call fails and is forwarded.
  const bool captured = is_captured(state.stream);
  if (captured && *decision.forwards_captured)
    return "an earlier graph with this problem has it from cuBLAS, and captured calls keep their kernels";
  kintsugi_operands operands = operands_of(call);
  operands.queue = {KINTSUGI_QUEUE_CUDA, 0, state.stream};
  const kintsugi_status status = kintsugi_plan_execute(handle, decision.plan.get(), &operands);
  if (status == KINTSUGI_SUCCESS) return {};
  if (captured && status == KINTSUGI_OUT_OF_MEMORY) *decision.forwards_captured = true;
  return std::string(kintsugi_status_name(status)) + ": " + kintsugi_last_error();
}

void note(const Symbol& symbol, const Call& call, std::string_view programs, std::string_view why,
          bool failed, bool reads_c, double native_seconds) noexcept try {
  if (!records_calls()) return;
  CallOutcome outcome;
  outcome.program = programs;
  outcome.why = why;
  outcome.failed = failed;
  outcome.native_seconds = native_seconds;
  record_call(symbol.name(), call, outcome);
  if (call.site != nullptr) record_matrices(call, reads_c);
} catch (const std::exception&) {  // The record lacks the call.
}

int answer(const Invocation& invocation, const Origin& origin, const ProductCall& call,
           const Forward& forward) {
  const CallUnderWay under_way;
  const void* const compiled_site = take_announced_site();
  try {
    ProductCall located = call;
    located.site = site_of(invocation.return_address, compiled_site);
    if (located.site != nullptr && located.site->rule.is_native() && !records_calls()) return forward();
    return Answer(invocation.symbol, origin, located, forward).run();
  } catch (const std::exception&) {  // No memory; C is not written yet.
    return forward();
  }
}

// ------------------------------------------------------------------ grouped batches

namespace {

class GroupsAnswer {
 public:
  GroupsAnswer(const Symbol& symbol, Handle handle, std::vector<ProductCall>& groups,
               const ForwardGroups& forward)
      : symbol_(symbol), origin_(handle, groups[0].requests_emulation), groups_(groups), forward_(forward) {}

  int run() {
    if (!groups_[0].is_supported) return forward_unsupported();
    if (const char* reason = reason_for_all()) return forward_all(reason);
    std::size_t emulated = 0;
    try {
      for (const ProductCall& group : groups_) {
        choices_.push_back(choice_of(group));
        if (choices_.back().emulates()) ++emulated;
      }
    } catch (const std::exception&) {  // No memory; nothing is enqueued yet.
      return forward_(0, groups_.size());
    }
    if (emulated == 0) {
      for (std::size_t i = 0; i < groups_.size(); ++i) note(symbol_, groups_[i], "", choices_[i].why);
      return forward_(0, groups_.size());
    }
    return run_choices();
  }

 private:
  // Decision on a group.
  struct Choice {
    std::optional<DecisionPointer> decision = {};  // set if the group is emulated
    std::string why = {};                          // why cuBLAS multiplies, else

    bool emulates() const { return decision.has_value(); }
  };

  // Returns the reason for which cuBLAS must answer the whole call; nullptr: there is none.
  const char* reason_for_all() {
    if (settings().is_malformed()) return settings().malformed.c_str();
    for (const ProductCall& group : groups_)
      if (const char* reason = reason_to_forward(group); reason != nullptr && !is_empty(group)) return reason;
    if (settings().policy == Policy::native && groups_[0].site == nullptr)
      return "policy native forwards every call";
    if (const char* reason = read_state(origin_, state_)) return reason;
    if (state_.pointer_mode != KINTSUGI_SCALARS_ON_HOST) return "scalars of groups in device memory";
    return origin_.reason_in_arithmetic(groups_[0].type);
  }

  Choice choice_of(const ProductCall& group) const {
    if (const char* reason = reason_to_forward(group)) return {.why = reason};
    DecisionPointer decision = decide(group, state_);
    note_decision(symbol_.name(), *decision);
    if (!decision->emulates) return {.why = decision->why};
    return {.decision = std::move(decision)};
  }

  // Enqueues emulated groups by one call of Kintsugi. Returns false if it failed or would have other options
  // than each group; the groups can then be enqueued one by one, since none of them adds to C.
  bool run_emulated_together() const try {
    if (const std::string& asked = settings().accuracy;
        !asked.empty() && asked != own_accuracy(groups_[0].type))
      return false;
    std::vector<kintsugi_problem> problems;
    std::vector<kintsugi_operands> operands;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (!choices_[i].emulates()) continue;
      if (groups_[i].site != nullptr || !is_zero(groups_[i].beta, groups_[i].type)) return false;
      problems.push_back(problem_of(groups_[i]));
      problems.back().memory = KINTSUGI_DEVICE;
      operands.push_back(operands_of(groups_[i]));
      operands.back().queue = {KINTSUGI_QUEUE_CUDA, 0, state_.stream};
    }
    if (problems.size() < 2) return false;
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.workspace_limit = workspace_limit(state_.device);
    options.accuracy = own_accuracy(groups_[0].type);
    const auto count = static_cast<std::int64_t>(problems.size());
    if (kintsugi_gemm_grouped(nullptr, count, problems.data(), &options, operands.data()) != KINTSUGI_SUCCESS)
      return false;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const Choice& choice = choices_[i];
      if (choice.emulates())
        note(symbol_, groups_[i], (*choice.decision)->candidates, (*choice.decision)->why);
    }
    return true;
  } catch (const std::exception&) {  // No memory.
    return false;
  }

  // Enqueues emulated groups together, or one by one. The groups between two emulated groups go to cuBLAS in
  // one call.
  int run_choices() const {
    const bool are_enqueued = run_emulated_together();
    std::size_t first = 0;  // the first group that is not enqueued yet
    for (std::size_t i = 0; i <= groups_.size(); ++i) {
      if (i < groups_.size() && !choices_[i].emulates()) {
        note(symbol_, groups_[i], "", choices_[i].why);
        continue;
      }
      if (const int status = first < i ? forward_(first, i - first) : success; status != success)
        return status;
      if (i == groups_.size()) break;
      if (const int status = are_enqueued ? success : run_emulated(i); status != success) return status;
      first = i + 1;
    }
    return success;
  }

  int run_emulated(std::size_t i) const try {
    const Decision& decision = **choices_[i].decision;
    CallSample sample(symbol_.name(), groups_[i], state_.stream);
    const std::string failure = emulate(decision, groups_[i], state_, sample.handle());
    if (failure.empty()) {
      sample.note_execution();
      note(symbol_, groups_[i], decision.candidates, decision.why);
      return success;
    }
    note_failure(symbol_.name(), failure);
    note(symbol_, groups_[i], "", failure, true);
    return forward_(i, 1);
  } catch (const std::exception&) {  // No memory; C is not written yet.
    return forward_(i, 1);
  }

  int forward_unsupported() const noexcept try {
    return forward_all(records_calls() ? reason_of(groups_[0].unsupported) : "");
  } catch (const std::exception&) {  // No memory for the reason.
    return forward_(0, groups_.size());
  }

  int forward_all(std::string_view why) const {
    for (const ProductCall& group : groups_) note(symbol_, group, "", why);
    return forward_(0, groups_.size());
  }

  const Symbol& symbol_;
  const HandleOrigin origin_;
  std::vector<ProductCall>& groups_;
  const ForwardGroups& forward_;
  CallState state_;
  std::vector<Choice> choices_;
};

}  // namespace

int answer_groups(const Invocation& invocation, Handle handle, std::vector<ProductCall>& groups,
                  const ForwardGroups& forward) {
  const CallUnderWay under_way;
  const Site* const site = site_of(invocation.return_address, take_announced_site());
  for (ProductCall& group : groups) group.site = site;
  if (site != nullptr && site->rule.is_native() && !records_calls()) return forward(0, groups.size());
  return GroupsAnswer(invocation.symbol, handle, groups, forward).run();
}

}  // namespace kintsugi::cublas
