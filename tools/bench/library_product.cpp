#include "bench/library_product.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "bound.hpp"

namespace kintsugi::tools {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

kintsugi_problem problem_for(const Bench& bench, const Shape& shape, std::optional<kintsugi_side> prepared) {
  kintsugi_problem problem = row_major_problem(shape, bench.type);
  if (bench.complex) {
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar =
        bench.type == Type::float32 ? KINTSUGI_C32 : KINTSUGI_C64;
  }
  problem.memory = bench.on_device ? KINTSUGI_DEVICE : KINTSUGI_HOST;
  problem.batch_count = bench.batch;
  problem.prepared_a = prepared == KINTSUGI_A ? 1 : 0;
  problem.prepared_b = prepared == KINTSUGI_B ? 1 : 0;
  if (bench.batch > 1) {
    problem.stride_a = shape.m * shape.k;
    problem.stride_b = shape.k * shape.n;
    problem.stride_c = shape.m * shape.n;
  }
  return problem;
}

// Returns options with pointers into `name`, which must outlive them.
kintsugi_options options_for(const Bench& bench, const std::string& name, const kintsugi_queue& queue) {
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.queue = queue;
  options.threads = bench.threads;
  if (name == auto_candidate) {
    options.policy = "auto";
  } else if (name == native_policy) {
    options.policy = "native";
  } else if (is_contract(name)) {
    options.policy = "emulate";
    options.accuracy = name.c_str();
  } else {
    options.scheme = name.c_str();
  }
  return options;
}

Plan make_plan(kintsugi_handle handle, const Bench& bench, const std::string& name,
               const kintsugi_problem& problem, const kintsugi_options& options) {
  require("--engine", kintsugi_set(handle, "engine", bench.engine.c_str()));
  require("--workspace-limit", kintsugi_set(handle, "workspace_limit", bench.workspace_limit.c_str()));
  kintsugi_plan plan = nullptr;
  require(name, kintsugi_plan_create(handle, &problem, &options, &plan));
  return Plan(plan);
}

// Returns the operand that is prepared, if any; native products split nothing.
std::optional<kintsugi_side> prepared_side(const Bench& bench, const std::string& name) {
  if (bench.prepare == "none" || name == "native" || name == native_policy) return std::nullopt;
  return bench.prepare == "a" ? KINTSUGI_A : KINTSUGI_B;
}

Verdict judge_by_contract(double coefficient, double underflow,
                          const std::vector<measure::ElementError>& elements) {
  return verdict_of("contract", coefficient, elements, [=](const measure::ElementError& element) {
    return coefficient * element.absolute + underflow;
  });
}

// Returns the details that `kintsugi engines` shows of an engine, among them the kernels of its native
// product.
Json details_of(const Json& engine_name) {
  const Json engines = describe_engines();
  for (const Json& engine : engines.at("engines")) {
    if (engine.at("name") == engine_name) return engine.at("details");
  }
  return nullptr;
}

// Returns the first candidate that ran for some batch item; the first candidate of all if none ran.
Json candidate_that_ran(const Json& report) {
  for (const Json& candidate : report.at("candidates")) {
    if (candidate.at("items") != 0) return candidate;
  }
  return report.at("candidates").at(0);
}

}  // namespace

template <class T>
LibraryProduct<T>::LibraryProduct(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices,
                                  const kintsugi_queue& queue)
    : name_(name), matrices_(matrices), handle_(make_handle()), prepared_side_(prepared_side(bench, name)),
      by_gemm_(bench.by_gemm), problems_(bench.problems),
      problem_(problem_for(bench, matrices.shape, prepared_side_)),
      options_(options_for(bench, name_, queue)) {
  const auto start = std::chrono::steady_clock::now();
  plan_ = make_plan(handle_.get(), bench, name, problem_, options_);
  plan_seconds_ = seconds_since(start);
  require(name, kintsugi_plan_workspace_size(plan_.get(), &workspace_bytes_));
}

template <class T>
Prepared LibraryProduct<T>::prepare(const T* a, const T* b) const {
  if (!prepared_side_) return nullptr;
  kintsugi_prepared prepared = nullptr;
  require(name_, kintsugi_prepare_borrowed(handle_.get(), plan_.get(), *prepared_side_,
                                           *prepared_side_ == KINTSUGI_A ? a : b, &prepared));
  return Prepared(prepared);
}

template <class T>
void LibraryProduct<T>::execute(const T* a, const T* b, T* c, std::byte* workspace, const Prepared& prepared,
                                std::int64_t call_index) const {
  constexpr T one[2] = {1, 0};  // real and imaginary part: alpha and beta are complex for complex matrices
  constexpr T zero[2] = {0, 0};
  kintsugi_operands data = KINTSUGI_OPERANDS_INIT;
  data.alpha = one;
  data.a = a;
  data.b = b;
  data.beta = zero;
  data.c = c;
  if (prepared_side_ == KINTSUGI_A) data.prepared_a = prepared.get();
  if (prepared_side_ == KINTSUGI_B) data.prepared_b = prepared.get();
  if (by_gemm_) {
    kintsugi_problem problem = problem_;
    problem.k -= call_index % std::clamp<std::int64_t>(problem.k, 1, problems_);
    return require(name_, kintsugi_gemm(handle_.get(), &problem, &options_, &data));
  }
  data.workspace = workspace_bytes_ > 0 ? workspace : nullptr;
  data.workspace_size = workspace_bytes_;
  require(name_, kintsugi_plan_execute(handle_.get(), plan_.get(), &data));
}

template <class T>
Verdict LibraryProduct<T>::judge(std::int64_t product, const measure::ErrorReport& errors,
                                 const std::vector<measure::ElementError>& elements) const {
  if (name_ == "exact")
    return {.promise = "exact",
            .relative = nullptr,
            .largest_ratio = nullptr,
            .held = errors.correctly_rounded_fraction == 1};
  const Json plan = describe(plan_);
  if (name_ == "native") return judge_by_contract(errors.contract_bound, errors.contract_underflow, elements);
  if (is_contract(name_) || name_ == auto_candidate || name_ == native_policy)
    return judge_by_contract(plan.at("contract").at("coefficient"), errors.contract_underflow, elements);
  const Json report = report_of(handle_.get());
  if (matrices_.batch > 1 && !report.value("adapted", Json()).is_null()) {
    fail("--batch", "{} is fitted to each of the {} products but reports only one fit, so no bound is known",
         name_, matrices_.batch);
  }
  const Json bound =
      check_bound<T>(bounds_of(plan, report), matrices_.view_a(product), matrices_.view_b(product), elements);
  if (bound.at("held").is_null())
    fail(name_, "promises nothing for these operands: a slice of them may overflow, or they are not finite");
  return {.promise = "bound",
          .relative = bound.at("relative"),
          .largest_ratio = bound.at("largest_ratio"),
          .held = bound.at("held").get<bool>()};
}

template <class T>
Json LibraryProduct<T>::program_that_ran() const {
  const Json ran = candidate_that_ran(report_of(handle_.get()));
  const Json plan = describe(plan_);
  for (const Json& candidate : plan.at("candidates")) {
    if (candidate.at("scheme") == ran.at("scheme") && candidate.contains("program"))
      return candidate.at("program");
  }
  return nullptr;
}

template <class T>
double LibraryProduct<T>::products_each() const {
  const Json program = program_that_ran();
  if (program.is_null()) return 0;
  // If complex elements are split themselves, the program's products are those of a complex product, not of
  // one of the four real products.
  const bool splits_elements = !program.at("split_a").value("complex_basis", Json()).is_null();
  return program.at("products").get<double>() / (splits_elements ? 4 : 1);
}

template <class T>
Json LibraryProduct<T>::facts() const {
  const Json plan = describe(plan_);
  const Json ran = candidate_that_ran(report_of(handle_.get()));
  const Json program = program_that_ran();
  const Json products = program.is_null() ? Json() : program.at("products");
  const Json format = program.is_null() ? Json() : program.at("split_a").at("format");
  return {{"scheme", ran.at("scheme")},
          {"engine", plan.at("engine")},
          {"engine_details", details_of(plan.at("engine"))},
          {"accumulator", ran.at("accumulator")},
          {"products", products},
          {"format", format},
          {"workspace_bytes", workspace_bytes_},
          {"plan_seconds", plan_seconds_},
          {"prepared", prepared_side_ ? Json(*prepared_side_ == KINTSUGI_A ? "a" : "b") : Json()}};
}

template class LibraryProduct<float>;
template class LibraryProduct<double>;

}  // namespace kintsugi::tools
