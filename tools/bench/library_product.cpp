// A candidate: a scheme, a contract, or the native product.
#include <chrono>
#include <limits>
#include <new>

#include "accuracy/methods.hpp"
#include "accuracy/promise.hpp"
#include "bench/contestant.hpp"

namespace kintsugi::tools {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What plans ask for.
constexpr std::size_t workspace_alignment = 256;

struct AlignedDeleter {
  void operator()(std::byte* memory) const {
    ::operator delete (memory, std::align_val_t{workspace_alignment});
  }
};
using Workspace = std::unique_ptr<std::byte, AlignedDeleter>;

Workspace make_workspace(std::size_t bytes) {
  return Workspace(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{workspace_alignment})));
}

// The name is what runs, whatever the environment prefers.
Plan plan_for(kintsugi_handle handle, const Bench& bench, const std::string& name, const Shape& shape) {
  const HiddenVariables environment(
      {"KINTSUGI_SCHEME", "KINTSUGI_POLICY", "KINTSUGI_ACCURACY", "KINTSUGI_ACCUMULATOR"});
  require("--engine", kintsugi_set(handle, "engine", bench.engine.c_str()));
  require("--workspace-limit", kintsugi_set(handle, "workspace_limit", bench.workspace_limit.c_str()));
  const kintsugi_problem problem = row_major_problem(shape, bench.type);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.threads = bench.threads;
  if (name == "native") {
    options.policy = "native";
  } else if (is_contract(name)) {
    options.policy = "emulate";
    options.accuracy = name.c_str();
  } else {
    options.scheme = name.c_str();
  }
  kintsugi_plan plan = nullptr;
  require(name, kintsugi_plan_create(handle, &problem, &options, &plan));
  return Plan(plan);
}

template <class T>
class LibraryProduct : public Contestant {
 public:
  LibraryProduct(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices)
      : name_(name), matrices_(matrices), handle_(make_handle()) {
    const auto start = std::chrono::steady_clock::now();
    plan_ = plan_for(handle_.get(), bench, name, matrices.shape);
    plan_seconds_ = seconds_since(start);
    require(name, kintsugi_plan_workspace_size(plan_.get(), &workspace_bytes_));
    workspace_ = make_workspace(workspace_bytes_);
  }

  const std::string& name() const override { return name_; }
  Shape shape() const override { return matrices_.shape; }
  double run() override;
  Verdict judge(const lab::ErrorReport& errors, const std::vector<lab::EntryError>& entries) const override;
  Json facts() const override;

 private:
  std::string name_;
  BenchMatrices<T>& matrices_;
  Handle handle_;
  Plan plan_;
  Workspace workspace_;
  std::size_t workspace_bytes_ = 0;
  double plan_seconds_ = 0;
};

template <class T>
double LibraryProduct<T>::run() {
  const T one = 1;
  const T zero = 0;
  kintsugi_operands data = KINTSUGI_OPERANDS_INIT;
  data.alpha = &one;
  data.a = matrices_.a.data();
  data.b = matrices_.b.data();
  data.beta = &zero;
  data.c = matrices_.c.data();
  data.workspace = workspace_bytes_ > 0 ? workspace_.get() : nullptr;
  data.workspace_size = workspace_bytes_;
  const auto start = std::chrono::steady_clock::now();
  require(name_, kintsugi_plan_execute(handle_.get(), plan_.get(), &data));
  return seconds_since(start);
}

template <class T>
Verdict contract_verdict(double coefficient, const std::vector<lab::EntryError>& entries) {
  return verdict_of("contract", coefficient, entries, [coefficient](const lab::EntryError& entry) {
    return coefficient * entry.absolute + static_cast<double>(std::numeric_limits<T>::denorm_min());
  });
}

template <class T>
Verdict LibraryProduct<T>::judge(const lab::ErrorReport& errors,
                                 const std::vector<lab::EntryError>& entries) const {
  if (name_ == "exact") return {"exact", nullptr, nullptr, errors.correctly_rounded_fraction == 1};
  const Json plan = describe(plan_);
  if (name_ == "native") return contract_verdict<T>(errors.contract_bound, entries);
  if (is_contract(name_)) return contract_verdict<T>(plan.at("contract").at("coefficient"), entries);
  const Json bound = bound_of<T>(promise_of(plan, report_of(handle_.get())), matrices_.view_a(),
                                 matrices_.view_b(), entries);
  if (bound.at("held").is_null())
    fail(name_, "promises nothing for these operands: a slice of them may overflow, or they are not finite");
  return {"bound", bound.at("relative"), bound.at("largest_ratio"), bound.at("held").get<bool>()};
}

// What `kintsugi engines` says of it: its native product's kernels, among others.
Json details_of(const Json& engine) {
  const Json engines = describe_engines();
  for (const Json& candidate : engines.at("engines")) {
    if (candidate.at("name") == engine) return candidate.at("details");
  }
  return nullptr;
}

template <class T>
Json LibraryProduct<T>::facts() const {
  const Json plan = describe(plan_);
  const Json report = report_of(handle_.get());
  const Json& ran = report.at("rungs").at(0);
  Json products = nullptr;
  for (const Json& rung : plan.at("rungs")) {
    if (rung.at("scheme") == ran.at("scheme") && rung.contains("program"))
      products = rung.at("program").at("products");
  }
  return {{"kind", name_ == "native" ? "baseline" : "candidate"},
          {"scheme", ran.at("scheme")},
          {"engine", plan.at("engine")},
          {"engine_details", details_of(plan.at("engine"))},
          {"accumulator", ran.at("accumulator")},
          {"products", products},
          {"workspace_bytes", workspace_bytes_},
          {"plan_seconds", plan_seconds_}};
}

}  // namespace

template <class T>
std::unique_ptr<Contestant> library_product(const Bench& bench, const std::string& candidate,
                                            BenchMatrices<T>& matrices) {
  return std::make_unique<LibraryProduct<T>>(bench, candidate, matrices);
}

template std::unique_ptr<Contestant> library_product(const Bench&, const std::string&, BenchMatrices<float>&);
template std::unique_ptr<Contestant> library_product(const Bench&, const std::string&,
                                                     BenchMatrices<double>&);

}  // namespace kintsugi::tools
