#include "gpu/fuzz/call.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "base/floating_environment.hpp"
#include "gpu/fuzz/memory.hpp"
#include "tests/support/fuzz_judge.hpp"
#include "tests/support/fuzz_same.hpp"

namespace kintsugi::test {
namespace {

using Json = nlohmann::json;

// Real products of one batch item that are summed exactly; larger results are judged by a sample.
constexpr std::int64_t max_judged_products = 200'000;

// Thrown where the case is left out, since a vendor's product would compute it (--no-vendor).
struct LeftOut {};

// A call that the library refused, with the status.
struct Refusal {
  kintsugi_status status;
  std::string message;
};

void require(kintsugi_status status) {
  if (status != KINTSUGI_SUCCESS) throw Refusal{status, kintsugi_last_error()};
}

// Destroys a plan or a prepared operand when the call is done.
template <class Object, void (*destroy)(Object)>
class Owned {
 public:
  Owned() = default;
  ~Owned() { destroy(object_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Object get() const { return object_; }
  Object* out() { return &object_; }
  void reset() { destroy(std::exchange(object_, nullptr)); }

 private:
  Object object_ = nullptr;
};
using PlanObject = Owned<kintsugi_plan, kintsugi_plan_destroy>;
using PreparedObject = Owned<kintsugi_prepared, kintsugi_prepared_destroy>;

Json read_json(const std::function<kintsugi_status(char*, std::size_t, std::size_t*)>& describe) {
  std::string text(32768, '\0');
  std::size_t needed = 0;
  require(describe(text.data(), text.size(), &needed));
  if (needed > text.size()) {
    text.resize(needed);
    require(describe(text.data(), text.size(), &needed));
  }
  return Json::parse(text.c_str());
}

// True if the library may refuse the case with this status.
bool may_refuse(const FuzzCase& test, kintsugi_status status) {
  const bool names_scheme = !test.scheme.empty();
  switch (status) {
    case KINTSUGI_NOT_SUPPORTED: return names_scheme;
    case KINTSUGI_CONTRACT_UNREACHABLE:
      return names_scheme || (!test.accuracy.empty() && test.accuracy != "exact");
    // cuBLAS multiplies with any workspace, none included: a limit never fails a native call.
    case KINTSUGI_WORKSPACE_TOO_SMALL: return test.limit > 0 && test.policy != "native";
    case KINTSUGI_OUT_OF_MEMORY: return test.workspace == "callback";
    default: return false;
  }
}

// Kind of fault that the text of a judge's verdict stands for.
std::string fault_kind(const std::string& verdict) {
  const auto has = [&](const char* word) { return verdict.find(word) != std::string::npos; };
  if (has("outside C's")) return "guard";
  if (has("exactly")) return "rounding";
  if (has("unchanged")) return "untouched";
  return has("within") ? "bound" : "special";
}

// True for schemes that are fitted to the operands: only the execution's report has their bound.
bool is_fitted(const std::string& scheme) {
  return scheme.starts_with("h2sgemm") || scheme.starts_with("split-n") || scheme.starts_with("ozaki-f");
}

template <class T>
class Call {
 public:
  Call(const CallContext& context, const FuzzCase& test)
      : context_(context), test_(test), data_(test), memory_(context.lane, data_) {}

  const FuzzData<T>& data() const { return data_; }
  const std::byte* c_image() const { return memory_.c_image(); }

  Outcome run() {
    {
      const core::RoundingScope rounding(rounding_of(test_));
      call_library();
    }
    outcome_.bits = memory_.hash_of_c();
    if (refusal_) {
      check_refusal();
    } else {
      check_memory();
      judge();
    }
    return std::move(outcome_);
  }

 private:
  void add_fault(const std::string& kind, const std::string& detail) {
    outcome_.faults.push_back({kind, detail});
  }
  bool on_device() const { return test_.memory == "device"; }
  bool has_stream() const { return on_device() && test_.queue == "stream"; }
  // True if the operands of the execution name the queue, not the options of the plan. Preparations go to the
  // plan's queue, so a case that has some names it there.
  bool execution_names_queue() const {
    return test_.prepared_a == "no" && test_.prepared_b == "no" && test_.seed % 3 == 0;
  }
  // One call in five has no handle, except calls whose report is read.
  kintsugi_handle handle() const {
    return test_.seed % 5 == 0 && !is_fitted(test_.scheme) ? nullptr : context_.handle;
  }
  bool is_sabotaged(const char* how) const { return context_.sabotage == how; }

  // No other call runs while this one captures its stream. Destroys the prepared operands before it lets the
  // next capture begin, since their end waits for the device.
  void call_library() {
    const bool captures = test_.graph != 0;
    const auto alone = captures ? context_.gate.hold_alone() : std::unique_lock<std::shared_mutex>();
    const auto shared = captures ? std::shared_lock<std::shared_mutex>() : context_.gate.share();
    context_.inside = true;
    try {
      prepare();
      execute();
      memory_.fetch();
      read_report();
    } catch (const LeftOut&) {
      memory_.fetch();
      outcome_.refusal = "left out, since cuBLAS would multiply";
    } catch (Refusal& refusal) {
      memory_.fetch();
      refusal_ = std::move(refusal);
    }
    prepared_a_.reset();
    prepared_b_.reset();
    context_.inside = false;
  }

  kintsugi_problem problem() const {
    kintsugi_problem problem = data_.problem();
    if (on_device()) problem.memory = KINTSUGI_DEVICE;
    if (test_.scalars == "device") problem.pointer_mode = KINTSUGI_SCALARS_ON_DEVICE;
    problem.prepared_a = test_.prepared_a != "no" ? 1 : 0;
    problem.prepared_b = test_.prepared_b != "no" ? 1 : 0;
    return problem;
  }

  kintsugi_options options() {
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    options.accuracy = text(test_.accuracy), options.scheme = text(test_.scheme);
    options.engine = text(test_.engine), options.policy = text(test_.policy);
    options.workspace_limit = test_.limit;
    options.threads = static_cast<std::int32_t>(test_.threads);
    if (has_stream() && !execution_names_queue()) options.queue = context_.lane.queue();
    if (test_.workspace == "callback") {
      options.allocate = [](void* user, std::size_t bytes, std::size_t alignment) {
        return static_cast<CaseMemory*>(user)->allocate(bytes, alignment);
      };
      options.deallocate = [](void*, void*, std::size_t) {};
      options.allocator_user = &memory_;
    }
    return options;
  }

  // Creates the plan, checks the size of its workspace, and prepares the operands.
  void prepare() {
    const kintsugi_problem the_problem = problem();
    const kintsugi_options the_options = options();
    require(kintsugi_plan_create(handle(), &the_problem, &the_options, plan_.out()));
    description_ = read_json([&](char* buffer, std::size_t capacity, std::size_t* needed) {
      return kintsugi_plan_describe(plan_.get(), buffer, capacity, needed);
    });
    outcome_.program = description_.at("candidates").at(0).at("scheme");
    if (context_.no_vendor && uses_vendor()) throw LeftOut();
    check_workspace_size();
    prepare_side(KINTSUGI_A, test_.prepared_a, memory_.a(), prepared_a_);
    prepare_side(KINTSUGI_B, test_.prepared_b, memory_.b(), prepared_b_);
  }

  // True if cuBLAS computes a product of the plan: a native one, or one of integers where the plan describes
  // its accumulator as cuBLAS (Kintsugi has kernels of its own on Hopper).
  bool uses_vendor() const {
    const auto& candidates = description_.at("candidates");
    return outcome_.program == "native" || std::ranges::any_of(candidates, [](const Json& candidate) {
             return candidate.at("accumulator") == "cublas";
           });
  }

  void check_workspace_size() {
    std::size_t bytes = 0;
    require(kintsugi_plan_workspace_size(plan_.get(), &bytes));
    if (bytes % 256 != 0 || (test_.limit > 0 && bytes > static_cast<std::size_t>(test_.limit)))
      add_fault("workspace",
                "size " + std::to_string(bytes) + " with a limit of " + std::to_string(test_.limit));
    // The library allocates the workspace where the lane's memory is too small.
    if (test_.workspace == "exact") memory_.guard_workspace(bytes);
  }

  // Prepares the operand, by a plan for a single item of the batch where `how` is "one".
  void prepare_side(kintsugi_side side, const std::string& how, const void* data, PreparedObject& prepared) {
    if (how == "no") return;
    kintsugi_problem the_problem = problem();
    const kintsugi_options the_options = options();
    const bool for_one_item = how == "one";
    if (for_one_item) {
      the_problem.batch_count = std::min<std::int64_t>(the_problem.batch_count, 1);
      the_problem.batch_kind = KINTSUGI_BATCH_STRIDED;
      data = side == KINTSUGI_A ? memory_.first_a() : memory_.first_b();
    }
    PlanObject plan;
    require(kintsugi_plan_create(handle(), &the_problem, &the_options, plan.out()));
    // The first item may be borrowed as well as copied.
    const bool borrow = how == "borrowed" || (for_one_item && test_.seed % 2 == 0);
    require((borrow ? kintsugi_prepare_borrowed : kintsugi_prepare)(handle(), plan.get(), side, data,
                                                                    prepared.out()));
  }

  kintsugi_operands operands() {
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = test_.scalars == "device" ? memory_.alpha() : &alpha_;
    operands.beta = test_.scalars == "device" ? memory_.beta() : &beta_;
    operands.a = prepared_a_.get() == nullptr ? memory_.a() : nullptr;
    operands.b = prepared_b_.get() == nullptr ? memory_.b() : nullptr;
    operands.c = memory_.c();
    operands.prepared_a = prepared_a_.get();
    operands.prepared_b = prepared_b_.get();
    operands.workspace = memory_.workspace();
    operands.workspace_size = memory_.workspace_size();
    if (has_stream() && execution_names_queue()) operands.queue = context_.lane.queue();
    return operands;
  }

  // Every item of the batch is a group.
  void execute_groups() {
    const kintsugi_operands all = operands();
    kintsugi_problem one = problem();
    const std::int64_t items = one.batch_count;
    const bool by_pointers = one.batch_kind == KINTSUGI_BATCH_POINTERS;
    const auto of_item = [&](const void* matrix, std::int64_t stride, std::int64_t item) {
      const std::int64_t bytes = by_pointers ? item * static_cast<std::int64_t>(sizeof(void*))
                                             : item * stride * static_cast<std::int64_t>(sizeof(T));
      return matrix == nullptr ? nullptr : const_cast<char*>(static_cast<const char*>(matrix)) + bytes;
    };
    one.batch_count = 1;
    std::vector<kintsugi_operands> groups(static_cast<std::size_t>(items), all);
    for (std::int64_t item = 0; item < items; ++item) {
      kintsugi_operands& group = groups[static_cast<std::size_t>(item)];
      group.a = of_item(all.a, one.stride_a, item);
      group.b = of_item(all.b, one.stride_b, item);
      group.c = of_item(all.c, one.stride_c, item);
    }
    const std::vector<kintsugi_problem> problems(groups.size(), one);
    const kintsugi_options the_options = options();
    require(kintsugi_gemm_grouped(handle(), items, problems.data(), &the_options, groups.data()));
  }

  void execute() {
    if (test_.graph != 0) return execute_in_graph();
    if (test_.via == "grouped") return execute_groups();
    const kintsugi_operands the_operands = operands();
    const kintsugi_problem the_problem = problem();
    const kintsugi_options the_options = options();
    const bool gemm = test_.via == "gemm";
    require(gemm ? kintsugi_gemm(handle(), &the_problem, &the_options, &the_operands)
                 : kintsugi_plan_execute(handle(), plan_.get(), &the_operands));
  }

  // Launches the graph twice. The matrices have their first contents again before the second launch, so it
  // must give the same bits.
  void execute_in_graph() {
    std::uint64_t first_hash = 0;
    const kintsugi_operands the_operands = operands();
    const auto enqueue = [&] { require(kintsugi_plan_execute(handle(), plan_.get(), &the_operands)); };
    context_.lane.replay(enqueue, 2, [&](int launch) {
      if (launch == 0) return;
      memory_.fetch();
      first_hash = memory_.hash_of_c() + (is_sabotaged("replay") ? 1 : 0);
      memory_.put();
    });
    memory_.fetch();
    if (memory_.hash_of_c() != first_hash)
      add_fault("bits", "a graph's second launch gave other bits than the first");
  }

  void check_memory() {
    memory_.sabotage(context_.sabotage);
    if (const std::string damage = memory_.damage(); !damage.empty()) add_fault("operand", damage);
    if (memory_.workspace_damaged())
      add_fault("workspace", "memory in front of or behind the workspace was written");
  }

  // Takes the bound of the scheme from the plan, or from the report where the operands decided on it, and
  // notes batch items that no candidate accepted.
  void read_report() {
    Json report = Json::object();
    if (reads_report()) {
      report = read_json([&](char* buffer, std::size_t capacity, std::size_t* needed) {
        return kintsugi_report(context_.handle, buffer, capacity, needed);
      });
      check_counted_items(report);
      if (report.at("items_unreachable").get<std::int64_t>() > 0) outcome_.refusal = "unreachable items";
    }
    if (!test_.scheme.empty()) promise_.bound = bound_of(description_, report, test_.batch);
  }

  // Most calls leave their report unread, and do not wait for the device: an empty call always.
  bool reads_report() const {
    const bool is_empty = test_.m == 0 || test_.n == 0 || test_.batch == 0;
    return is_fitted(test_.scheme) || (handle() != nullptr && !is_empty && test_.seed % 4 == 1);
  }
  // A report counts every batch item of a product that is not empty.
  void check_counted_items(const Json& report) {
    std::int64_t counted =
        report.at("items_scaled").get<std::int64_t>() + report.at("items_unreachable").get<std::int64_t>();
    for (const Json& candidate : report.at("candidates"))
      counted += candidate.at("items").get<std::int64_t>();
    const std::int64_t expected = test_.m == 0 || test_.n == 0 ? 0 : test_.batch;
    const bool is_of_last_group = test_.via == "grouped" && counted == 1;
    if (counted != expected && !is_of_last_group)
      add_fault("report", "it counts " + std::to_string(counted) + " items of " + std::to_string(expected) +
                              ": " + report.dump().substr(0, 300));
  }

  void judge() {
    if (!context_.judges || !outcome_.refusal.empty()) return;
    FuzzJudge<T> judge(data_, promise_, memory_.c_image(), max_judged_products);
    const std::string verdict = judge.verdict();
    outcome_.elements = judge.bounded_elements();
    if (!verdict.empty()) outcome_.faults.push_back({fault_kind(verdict), verdict});
  }

  // A refused call must have an allowed status and leave C and all other memory as it was.
  void check_refusal() {
    outcome_.refusal = kintsugi_status_name(refusal_->status);
    if (!may_refuse(test_, refusal_->status))
      add_fault("status", outcome_.refusal + ": " + refusal_->message.substr(0, 200));
    if (memory_.changed()) add_fault("refusal", "a refused call wrote to memory: " + refusal_->message);
  }

  const CallContext& context_;
  const FuzzCase& test_;
  FuzzData<T> data_;
  CaseMemoryOf<T> memory_;
  T alpha_ = data_.alpha(), beta_ = data_.beta();
  Promise promise_ = promise_of(test_);
  PlanObject plan_;
  PreparedObject prepared_a_, prepared_b_;
  Json description_;
  std::optional<Refusal> refusal_;
  Outcome outcome_;
};

// The same product by the plainest call. The bits of an emulation do not depend on limits and workspaces,
// streams, graphs, or where scalars lie. Prepared operands stay, since they have a say in the plan's choice
// of programs.
FuzzCase plain_call(FuzzCase test) {
  test.limit = 0, test.workspace = "own", test.graph = 0;
  test.queue = "default", test.scalars = "host", test.via = "plan";
  return test;
}

bool has_fixed_bits(const FuzzCase& test) {
  return !test.scheme.empty() || test.accuracy == "exact" || test.policy == "emulate";
}

template <class T>
Outcome make_call_of(const CallContext& context, const FuzzCase& test) {
  Call<T> call(context, test);
  Outcome outcome = call.run();
  constexpr std::uint64_t calls_per_repetition = 8;  // one call in eight is compared with its plain call
  const FuzzCase plain = plain_call(test);
  if (!context.judges || !outcome.refusal.empty() || !has_fixed_bits(test) ||
      test.seed % calls_per_repetition != 0 || plain == test)
    return outcome;
  CallContext context_of_plain{context};
  context_of_plain.judges = false;
  context_of_plain.sabotage.clear();
  Call<T> plain_run(context_of_plain, plain);
  const Outcome plain_outcome = plain_run.run();
  const std::string difference = plain_outcome.refusal.empty()
                                     ? first_difference(call.data(), call.c_image(), plain_run.c_image())
                                     : plain_outcome.refusal;
  if (!plain_outcome.faults.empty() || !difference.empty())
    outcome.faults.push_back({"bits", difference + ", other bits than " + to_text(plain)});
  return outcome;
}

}  // namespace

Outcome make_call(const CallContext& context, const FuzzCase& test) {
  return with_type(test.type, [&]<class T>() { return make_call_of<T>(context, test); });
}

}  // namespace kintsugi::test
