#include "bench/contestants.hpp"

#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <new>
#include <stdexcept>
#include <thread>
#include <variant>

#include "plan.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/probes/probe_kernels.hpp"
#include "tools/measure/reference/reference_loop.hpp"

namespace kintsugi::tools {

namespace {

// Returns the verdict on the elements of a product. allowed(element) returns the largest error that an
// element may have. It may be NaN, as for special values; an error of 0 is always allowed.
template <class Allowed>
Verdict verdict_of(const std::string& promise, double relative,
                   const std::vector<measure::ElementError>& elements, const Allowed& allowed) {
  double largest = 0;
  for (const auto& element : elements) {
    if (element.error == 0) continue;
    const double ratio = std::fabs(element.error) / allowed(element);
    largest = std::max(largest, std::isnan(ratio) ? HUGE_VAL : ratio);
  }
  return {.promise = promise, .relative = relative, .largest_ratio = number(largest), .held = largest <= 1};
}

// C is filled with this byte in device memory, which makes every element a NaN.
constexpr int byte_of_nan = 0xff;

// Times calls that put work into a device's stream, from the call to its return. The calls do not wait for
// the work.
class CallTimer {
 public:
  // `problems`: number of different problems whose calls take turns.
  explicit CallTimer(std::int64_t problems) : problems_(problems) {}

  // Returns the mean time of several calls call(i), call(i + 1), ... The index i continues from the last
  // time(). Untimed calls come first. In the first time() they call every problem once, so that all plans
  // exist. The timed calls begin on an idle device.
  Round time(const measure::DeviceStream& stream, const std::function<void(std::int64_t call_index)>& call) {
    const std::int64_t untimed_calls = next_call_ == 0 ? std::max(problems_, timed_calls) : timed_calls;
    for (std::int64_t i = 0; i < untimed_calls; ++i) call(next_call_++);
    stream.synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < timed_calls; ++i) call(next_call_++);
    Round round;
    round.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                    static_cast<double>(timed_calls);
    stream.synchronize();
    return round;
  }

 private:
  // A stream queues up to 1024 kernels, and an emulated call launches up to ten. With 100 calls no launch
  // waits for the device.
  static constexpr std::int64_t timed_calls = 100;

  std::int64_t problems_;
  std::int64_t next_call_ = 0;
};

// Returns the facts of a contestant that has no plan.
Json facts_without_plan(const std::string& name) {
  Json facts{{"scheme", name}};
  for (const char* member : {"engine", "engine_details", "accumulator", "products", "format",
                             "workspace_bytes", "plan_seconds", "matrix_unit", "prepared"})
    facts[member] = nullptr;
  return facts;
}

Verdict judge_by_contract(double coefficient, double underflow,
                          const std::vector<measure::ElementError>& elements) {
  return verdict_of("contract", coefficient, elements, [=](const measure::ElementError& element) {
    return coefficient * element.absolute + underflow;
  });
}

// Returns the first candidate that ran for some batch item; the first candidate of all if none ran.
Json candidate_that_ran(const Json& report) {
  for (const Json& candidate : report.at("candidates")) {
    if (candidate.at("items") != 0) return candidate;
  }
  return report.at("candidates").at(0);
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

// Returns the operand that is prepared, if any; native products split nothing.
std::optional<kintsugi_side> prepared_side(const Bench& bench, const std::string& name) {
  if (bench.prepare == "none" || name == "native" || name == native_policy) return std::nullopt;
  return bench.prepare == "a" ? KINTSUGI_A : KINTSUGI_B;
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

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
class LibraryProduct : public Contestant {
 public:
  Verdict judge(std::int64_t product, const measure::ErrorReport& errors,
                const std::vector<measure::ElementError>& elements) const override {
    if (name() == "exact")
      return {.promise = "exact",
              .relative = nullptr,
              .largest_ratio = nullptr,
              .held = errors.correctly_rounded_fraction == 1};
    const Json plan = describe(plan_);
    if (name() == "native")
      return judge_by_contract(errors.contract_bound, errors.contract_underflow, elements);
    if (is_contract(name()) || name() == auto_candidate || name() == native_policy)
      return judge_by_contract(plan.at("contract").at("coefficient"), errors.contract_underflow, elements);
    const Json report = report_of(handle_.get());
    if (matrices_.batch > 1 && !report.value("adapted", Json()).is_null()) {
      fail("--batch",
           "{} is fitted to each of the {} products but reports only one fit, so no bound is known", name(),
           matrices_.batch);
    }
    const Json bound = check_bound<T>(bounds_of(plan, report), matrices_.view_a(product),
                                      matrices_.view_b(product), elements);
    if (bound.at("held").is_null())
      fail(name(),
           "promises nothing for these operands: a slice of them may overflow, or they are not finite");
    return {.promise = "bound",
            .relative = bound.at("relative"),
            .largest_ratio = bound.at("largest_ratio"),
            .held = bound.at("held").get<bool>()};
  }
  double products_each() const override {
    const Json program = program_that_ran();
    if (program.is_null()) return 0;
    // If complex elements are split themselves, the program's products are those of a complex product, not of
    // one of the four real products.
    const bool splits_elements = !program.at("split_a").value("complex_basis", Json()).is_null();
    return program.at("products").get<double>() / (splits_elements ? 4 : 1);
  }
  Json facts() const override {
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
            {"matrix_unit", plan.at("matrix_unit")},
            {"prepared", prepared_side_ ? Json(*prepared_side_ == KINTSUGI_A ? "a" : "b") : Json()}};
  }

 protected:
  // Fails, naming the candidate, if the library makes no plan for it.
  LibraryProduct(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices,
                 const kintsugi_queue& queue)
      : Contestant(name, matrices.shape), matrices_(matrices), handle_(make_handle()),
        prepared_side_(prepared_side(bench, name)), by_gemm_(bench.by_gemm), problems_(bench.problems),
        problem_(problem_for(bench, matrices.shape, prepared_side_)),
        options_(options_for(bench, this->name(), queue)) {
    const auto start = std::chrono::steady_clock::now();
    plan_ = make_plan(handle_.get(), bench, name, problem_, options_);
    plan_seconds_ = seconds_since(start);
    require(name, kintsugi_plan_workspace_size(plan_.get(), &workspace_bytes_));
  }

  BenchMatrices<T>& matrices() const { return matrices_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Prepares the operand that --prepare names, without copying it; nullptr if there is none.
  Prepared prepare(const T* a, const T* b) const {
    if (!prepared_side_) return nullptr;
    kintsugi_prepared prepared = nullptr;
    require(name(), kintsugi_prepare_borrowed(handle_.get(), plan_.get(), *prepared_side_,
                                              *prepared_side_ == KINTSUGI_A ? a : b, &prepared));
    return Prepared(prepared);
  }
  // Multiplies by the plan, or by kintsugi_gemm for --call gemm. `call_index`: selects one of several
  // problems that take turns and differ in k.
  void execute(const T* a, const T* b, T* c, std::byte* workspace, const Prepared& prepared,
               std::int64_t call_index = 0) const {
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
      return require(name(), kintsugi_gemm(handle_.get(), &problem, &options_, &data));
    }
    data.workspace = workspace_bytes_ > 0 ? workspace : nullptr;
    data.workspace_size = workspace_bytes_;
    require(name(), kintsugi_plan_execute(handle_.get(), plan_.get(), &data));
  }

 private:
  // Returns the program of the candidate that ran; null for the native product.
  Json program_that_ran() const {
    const Json ran = candidate_that_ran(report_of(handle_.get()));
    const Json plan = describe(plan_);
    for (const Json& candidate : plan.at("candidates")) {
      if (candidate.at("scheme") == ran.at("scheme") && candidate.contains("program"))
        return candidate.at("program");
    }
    return nullptr;
  }

  BenchMatrices<T>& matrices_;
  Handle handle_;
  Plan plan_;
  std::size_t workspace_bytes_ = 0;
  double plan_seconds_ = 0;
  std::optional<kintsugi_side> prepared_side_;
  bool by_gemm_;  // true: execute() calls kintsugi_gemm
  std::int64_t problems_;
  kintsugi_problem problem_;
  kintsugi_options options_;
};

// Returns the size rounded up, so that every set is aligned for all kernels.
std::size_t aligned_bytes(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  return (bytes + alignment - 1) / alignment * alignment;
}

// Returns the number of sets. All sets together have twice the size of the cache, so that the lines of a set
// are evicted before its next use. More than `max_sets` sets would not fit in one graph.
int sets_for(std::size_t set_bytes, std::int64_t cache_bytes) {
  constexpr std::size_t max_sets = 1024;
  const std::size_t wanted = (2 * static_cast<std::size_t>(cache_bytes) + set_bytes - 1) / set_bytes;
  return static_cast<int>(std::clamp<std::size_t>(wanted, 1, max_sets));
}

// Returns zeros for all products of the batch. Fails if they do not fit in the machine's memory.
template <class T>
std::vector<T> make_elements(const Bench& bench, std::int64_t rows, std::int64_t columns) {
  return std::get<std::vector<T>>(make_matrix(bench.batch > 1 ? "--batch" : "--shapes", bench.batch * rows,
                                              columns, type_of<T>, Order::row_major)
                                      .values);
}

// Returns one operand of all products of the batch, each generated from a seed of its own.
template <class T>
std::vector<T> generated(const Bench& bench, measure::Side side, std::int64_t rows, std::int64_t columns) {
  std::vector<T> values = make_elements<T>(bench, rows, columns);
  try {
    for (std::int64_t product = 0; product < bench.batch; ++product) {
      measure::fill(measure::parse_distribution(bench.distribution), side,
                    bench.seed + static_cast<std::uint64_t>(product),
                    core::MatrixView<T>{values.data() + product * rows * columns, rows, columns, columns, 1});
    }
  } catch (const std::runtime_error& error) {  // the type cannot hold the distribution's values
    fail("--distribution", "{}", error.what());
  }
  return values;
}

// Returns the CPU time that all threads of the process have used.
double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Pauses first, because idle threads of the previous contestant still occupy cores: OpenMP's spin for
// milliseconds, OpenBLAS's for 2^26 cycles. Then repeats `run` for at least 10 ms, and returns the fastest
// run. Runs that are too short for the clock are timed several at a time.
Round time_on_host(const std::function<void()>& run) {
  constexpr auto pause = std::chrono::milliseconds(30);
  constexpr double enough_seconds = 0.01;
  constexpr double min_seconds = 50e-6;  // reading both clocks takes half a microsecond
  std::this_thread::sleep_for(pause);
  Round quickest{.seconds = HUGE_VAL, .processor_seconds = HUGE_VAL, .state = {}};
  double sum = 0;
  for (int runs = 1; sum < enough_seconds;) {
    const double processor_start = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // The CPU-time clock of the process sometimes stands still or goes back. Such samples are dropped.
    const double used = processor_seconds() - processor_start;
    sum += seconds;
    if (seconds < min_seconds && sum < enough_seconds) {
      runs *= 2;
      continue;
    }
    if (used > 0) quickest.processor_seconds = std::min(*quickest.processor_seconds, used / runs);
    quickest.seconds = std::min(quickest.seconds, seconds / runs);
  }
  return quickest;
}

// Alignment that plans require of a workspace.
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

template <class T>
class HostProduct : public LibraryProduct<T> {
 public:
  HostProduct(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices)
      : LibraryProduct<T>(bench, name, matrices, {}), workspace_(make_workspace(this->workspace_bytes())),
        prepared_(this->prepare(matrices.a.data(), matrices.b.data())) {}

  void run() override {
    BenchMatrices<T>& matrices = this->matrices();
    this->execute(matrices.a.data(), matrices.b.data(), matrices.c.data(), workspace_.get(), prepared_);
  }
  Round time_round() override {
    return time_on_host([this] { run(); });
  }
  const char* timed_by() const override { return "clock"; }

 private:
  Workspace workspace_;
  Prepared prepared_;
};

kintsugi_queue queue_of(const BenchDevice& device) {
  return {KINTSUGI_QUEUE_CUDA, 0, device.stream().native()};
}

// Times a series of executions by events before and after it. Each execution uses the next set of operands.
// If an execution takes less than a millisecond, the series is a CUDA graph, so that the host's launch time
// does not count. Longer executions are launched one by one, as programs do, while the device still runs
// earlier ones.
template <class T>
class DeviceProduct : public LibraryProduct<T> {
 public:
  DeviceProduct(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices,
                const DeviceOperands<T>& operands)
      : LibraryProduct<T>(bench, name, matrices, queue_of(operands.device())), operands_(operands),
        workspace_(bench.by_gemm ? 0 : this->workspace_bytes()), times_calls_(bench.times_calls()),
        call_timer_(bench.problems) {
    for (int set = 0; set < operands.sets(); ++set)
      prepared_.push_back(this->prepare(operands.a(set), operands.b(set)));
  }

  // Fills C with NaN, so that missing elements are detected, multiplies, and copies C to the host.
  void run() override {
    std::vector<T>& c = this->matrices().c;
    const std::size_t bytes = c.size() * sizeof(T);
    auto* target = reinterpret_cast<std::byte*>(operands_.c(0));
    stream().fill(target, byte_of_nan, bytes);
    execute_set(0);
    stream().download(c.data(), target, bytes);
    stream().synchronize();
  }
  // Runs an untimed series first, so that the device has the clock frequencies of a busy device.
  Round time_round() override {
    if (times_calls_) {
      return call_timer_.time(stream(), [this](std::int64_t call_index) { execute_set(0, call_index); });
    }
    if (executions_ == 0) plan_series();
    launch_series();
    Round round;
    const double seconds = stream().seconds_of([this] { launch_series(); },
                                               [&] { round.state = operands_.device().monitor().now(); });
    round.seconds = seconds / executions_;
    return round;
  }
  const char* timed_by() const override {
    return times_calls_ ? "calls" : graph_ != nullptr ? "graph" : "stream";
  }

 private:
  const measure::DeviceStream& stream() const { return operands_.device().stream(); }
  void execute_set(int set, std::int64_t call_index = 0) const {
    this->execute(operands_.a(set), operands_.b(set), operands_.c(set), workspace_.data(),
                  prepared_[static_cast<std::size_t>(set)], call_index);
  }
  void execute_series() const {
    for (int i = 0; i < executions_; ++i) execute_set(i % operands_.sets());
  }
  void launch_series() const {
    if (graph_ != nullptr) return graph_->launch(stream());
    execute_series();
  }
  // Decides how many executions make a series, and whether the series is a graph. Both follow from the time
  // of one execution.
  void plan_series() {
    constexpr double series_seconds = 0.05;
    constexpr double graph_seconds = 1e-3;
    constexpr double max_executions = 1024;
    executions_ = 1;
    const double seconds = stream().seconds_of([this] { execute_series(); });
    executions_ = static_cast<int>(std::clamp(std::ceil(series_seconds / seconds), 1.0, max_executions));
    if (seconds < graph_seconds)
      graph_ = std::make_unique<measure::DeviceGraph>(stream(), [this] { execute_series(); });
  }

  const DeviceOperands<T>& operands_;
  measure::DeviceMemory workspace_;
  bool times_calls_;
  CallTimer call_timer_;
  std::vector<Prepared> prepared_;  // one for each set
  std::unique_ptr<measure::DeviceGraph>
      graph_;           // graph of a series; nullptr: executions are launched one by one
  int executions_ = 0;  // executions in a series; 0: not planned yet
};

constexpr int success = 0;       // CUBLAS_STATUS_SUCCESS
constexpr int no_transpose = 0;  // CUBLAS_OP_N

// cuBLAS with a handle of its own, opened in the same way as by a program.
class Cublas {
 public:
  explicit Cublas(void* stream) {
    const char* named_file = std::getenv("KINTSUGI_CUBLAS");
    for (const char* file : {named_file == nullptr ? "libcublas.so.13" : named_file, "libcublas.so.12"}) {
      if (library_ == nullptr) library_ = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
    const auto create = function<int (*)(void**)>("cublasCreate_v2");
    const auto set_stream = function<int (*)(void*, void*)>("cublasSetStream_v2");
    if (create(&handle_) != success || set_stream(handle_, stream) != success)
      fail("--baselines", "{}: cuBLAS cannot create a handle for the stream", vendor_call);
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas() { function<int (*)(void*)>("cublasDestroy_v2")(handle_); }

  void* handle() const { return handle_; }
  // Returns the function. Fails with its name in the message if cuBLAS cannot be opened or has no such
  // function.
  template <class Function>
  Function function(const char* name) const {
    void* found = library_ == nullptr ? nullptr : ::dlsym(library_, name);
    if (found == nullptr) fail("--baselines", "{}: cuBLAS has no function {}", vendor_call, name);
    return reinterpret_cast<Function>(found);
  }

 private:
  void* library_ = nullptr;
  void* handle_ = nullptr;
};

using Multiply = int (*)(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha,
                         const void* a, int lda, const void* b, int ldb, const void* beta, void* c, int ldc);

template <class T>
const char* multiply_name(bool complex) {
  if (type_of<T> == Type::float32) return complex ? "cublasCgemm_v2" : "cublasSgemm_v2";
  return complex ? "cublasZgemm_v2" : "cublasDgemm_v2";
}

template <class T>
class VendorProduct : public Contestant {
 public:
  VendorProduct(const Bench& bench, BenchMatrices<T>& matrices, const DeviceOperands<T>& operands)
      : Contestant(vendor_call, matrices.shape), matrices_(matrices), operands_(operands),
        cublas_(operands.device().stream().native()),
        multiply_(cublas_.function<Multiply>(multiply_name<T>(bench.complex))), problems_(bench.problems),
        call_timer_(bench.problems) {}

  void run() override {
    const measure::DeviceStream& stream = operands_.device().stream();
    auto* target = reinterpret_cast<std::byte*>(operands_.c(0));
    const std::size_t bytes = matrices_.c.size() * sizeof(T);
    stream.fill(target, byte_of_nan, bytes);
    multiply(0);
    stream.download(matrices_.c.data(), target, bytes);
    stream.synchronize();
  }
  Round time_round() override {
    return call_timer_.time(operands_.device().stream(),
                            [this](std::int64_t call_index) { multiply(call_index); });
  }
  const char* timed_by() const override { return "calls"; }
  Verdict judge(std::int64_t, const measure::ErrorReport& errors,
                const std::vector<measure::ElementError>& elements) const override {
    return judge_by_contract(errors.contract_bound, errors.contract_underflow, elements);
  }
  Json facts() const override { return facts_without_plan(name()); }

 private:
  // Computes C^T = B^T A^T, which is C in row-major order, for column-major cuBLAS. `call_index` selects the
  // problem by its k, as LibraryProduct::execute() does.
  void multiply(std::int64_t call_index) const {
    alignas(16) constexpr std::array<T, 2> one{1, 0};  // real and imaginary part, for complex scalars
    alignas(16) constexpr std::array<T, 2> zero{0, 0};
    const auto m = static_cast<int>(matrices_.shape.m);
    const auto n = static_cast<int>(matrices_.shape.n);
    const auto full_k = static_cast<int>(matrices_.shape.k);
    const auto k = full_k - static_cast<int>(call_index % std::clamp<std::int64_t>(full_k, 1, problems_));
    if (multiply_(cublas_.handle(), no_transpose, no_transpose, n, m, k, one.data(), operands_.b(0), n,
                  operands_.a(0), full_k, zero.data(), operands_.c(0), n) != success)
      fail("--baselines", "{} refuses {} x {} x {}", vendor_call, m, n, k);
  }

  BenchMatrices<T>& matrices_;
  const DeviceOperands<T>& operands_;
  Cublas cublas_;
  Multiply multiply_;
  std::int64_t problems_;
  CallTimer call_timer_;
};

// Intel's MKL, by the C interface of BLAS with 32-bit sizes. It takes its threads from the process's OpenMP,
// like all other contestants.
class Mkl {
 public:
  explicit Mkl(int threads) {
    for (const char* file : {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"}) {
      if (library_ == nullptr) library_ = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
    if (library_ == nullptr)
      fail("--baselines",
           "{}: libmkl_rt.so.3 cannot be opened ({}); `pip install mkl` has it in the environment's folder "
           "lib, which LD_LIBRARY_PATH must name",
           mkl_call, ::dlerror());
    constexpr int gnu_openmp = 3;  // MKL_THREADING_GNU
    function<int (*)(int)>("MKL_Set_Threading_Layer")(gnu_openmp);
    function<void (*)(int)>("MKL_Set_Num_Threads")(threads);
    std::array<char, 256> text{};
    function<void (*)(char*, int)>("MKL_Get_Version_String")(text.data(), static_cast<int>(text.size() - 1));
    version_ = text.data();
    version_.erase(version_.find_last_not_of(' ') + 1);
  }

  const std::string& version() const { return version_; }
  template <class Function>
  Function function(const char* name) const {
    void* found = ::dlsym(library_, name);
    if (found == nullptr) fail("--baselines", "{}: MKL has no function {}", mkl_call, name);
    return reinterpret_cast<Function>(found);
  }

 private:
  void* library_ = nullptr;
  std::string version_;
};

// A product by MKL: cblas_sgemm, cblas_dgemm, and for complex elements cblas_cgemm or cblas_zgemm, whose
// scalars are passed by address.
template <class T>
class MklProduct : public Contestant {
 public:
  MklProduct(const Bench& bench, BenchMatrices<T>& matrices)
      : Contestant(mkl_call, matrices.shape), matrices_(matrices), mkl_(bench.threads) {}

  void run() override {
    const auto [m, n, k] = matrices_.shape;
    const std::int64_t parts = matrices_.parts;
    for (std::int64_t product = 0; product < matrices_.batch; ++product)
      multiply(static_cast<int>(m), static_cast<int>(n), static_cast<int>(k),
               matrices_.a.data() + product * parts * m * k, matrices_.b.data() + product * parts * k * n,
               matrices_.c.data() + product * parts * m * n);
  }
  Round time_round() override {
    return time_on_host([this] { run(); });
  }
  const char* timed_by() const override { return "clock"; }
  Verdict judge(std::int64_t, const measure::ErrorReport& errors,
                const std::vector<measure::ElementError>& elements) const override {
    return judge_by_contract(errors.contract_bound, errors.contract_underflow, elements);
  }
  Json facts() const override {
    Json facts = facts_without_plan(name());
    facts["engine_details"] = mkl_.version();
    return facts;
  }

 private:
  void multiply(int m, int n, int k, const T* a, const T* b, T* c) const {
    constexpr int row_major = 101;       // CblasRowMajor
    constexpr int not_transposed = 111;  // CblasNoTrans
    constexpr bool is_single = type_of<T> == Type::float32;
    if (matrices_.parts == 1) {
      using Gemm = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);
      mkl_.function<Gemm>(is_single ? "cblas_sgemm" : "cblas_dgemm")(
          row_major, not_transposed, not_transposed, m, n, k, 1, a, k, b, n, 0, c, n);
      return;
    }
    using Gemm =
        void (*)(int, int, int, int, int, int, const T*, const T*, int, const T*, int, const T*, T*, int);
    constexpr std::array<T, 2> one{1, 0};
    constexpr std::array<T, 2> zero{0, 0};
    mkl_.function<Gemm>(is_single ? "cblas_cgemm" : "cblas_zgemm")(
        row_major, not_transposed, not_transposed, m, n, k, one.data(), a, k, b, n, zero.data(), c, n);
  }

  BenchMatrices<T>& matrices_;
  Mkl mkl_;
};

template <class T>
class ReferenceLoop : public Contestant {
 public:
  ReferenceLoop(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices)
      : Contestant(name, {std::min(matrices.shape.m, bench.baseline_size),
                          std::min(matrices.shape.n, bench.baseline_size), matrices.shape.k}),
        arithmetic_(measure::parse_arithmetic(name)), threads_(bench.threads), matrices_(matrices) {}

  void run() override {
    const auto [m, n, k] = this->shape();
    for (std::int64_t product = 0; product < matrices_.batch; ++product) {
      measure::reference_loop(arithmetic_, matrices_.view_a(product).block(0, 0, m, k),
                              matrices_.view_b(product).block(0, 0, k, n),
                              matrices_.view_c(product).block(0, 0, m, n), threads_);
    }
  }
  Round time_round() override {
    return time_on_host([this] { run(); });
  }
  const char* timed_by() const override { return "clock"; }
  // Judges by the bound of the arithmetic, which includes underflow of products, and one rounding to T.
  Verdict judge(std::int64_t, const measure::ErrorReport&,
                const std::vector<measure::ElementError>& elements) const override {
    const std::int64_t k = this->shape().k;
    const double relative = measure::reference_loop_bound(arithmetic_, k);
    const double unit_roundoff = std::ldexp(1.0, -std::numeric_limits<T>::digits);
    const double underflow = static_cast<double>(k) * std::numeric_limits<double>::denorm_min();
    return verdict_of("bound", relative, elements, [=](const measure::ElementError& element) {
      const double unrounded = relative * element.absolute + underflow;
      return unrounded + unit_roundoff * (std::fabs(element.exact) + unrounded) +
             static_cast<double>(std::numeric_limits<T>::denorm_min());
    });
  }
  Json facts() const override { return facts_without_plan(name()); }

 private:
  measure::Arithmetic arithmetic_;
  int threads_;
  BenchMatrices<T>& matrices_;
};

}  // namespace

void require_device() {
  if (const std::string why = why_device_is_unusable(); !why.empty())
    fail("--memory", "device: the engine cuda cannot be used: {}", why);
  const std::string reason = measure::probes_missing_reason();
  if (!reason.empty()) fail("--memory", "device: {}", reason);
}

BenchDevice::BenchDevice(bool measures_ceilings)
    : facts_(measure::device_facts()), monitor_(facts_.pci_address) {
  if (measures_ceilings) ceilings_ = measure::measure_ceilings(stream_, facts_, monitor_);
}

Json BenchDevice::description() const {
  const measure::DeviceLimits limits = monitor_.limits();
  return {{"name", facts_.name},
          {"compute_capability", fmt::format("{}.{}", facts_.major, facts_.minor)},
          {"driver", fmt::format("{}.{}", facts_.driver_version / 1000, facts_.driver_version % 1000 / 10)},
          {"multiprocessors", facts_.sms},
          {"l2_bytes", facts_.l2_bytes},
          {"power_limit_watts", number_or_null(limits.power_watts)},
          {"clock_limit_mhz", number_or_null(limits.clock_mhz)},
          {"memory_clock_limit_mhz", number_or_null(limits.memory_clock_mhz)}};
}

Json BenchDevice::ceilings() const {
  Json result;
  for (const measure::Ceiling& ceiling : ceilings_) {
    Json& json = result[ceiling.name] = {{"rate", ceiling.rate},
                                         {"lowest", ceiling.lowest},
                                         {"highest", ceiling.highest},
                                         {"way", ceiling.method}};
    json.update(state_document(ceiling.state));
  }
  return result;
}

double BenchDevice::ceiling(const std::string& name) const {
  const auto found = std::find_if(ceilings_.begin(), ceilings_.end(),
                                  [&](const measure::Ceiling& ceiling) { return ceiling.name == name; });
  return found == ceilings_.end() ? 0 : found->rate;
}

Json state_document(const measure::DeviceState& state) {
  return {{"power_watts", number_or_null(state.power_watts)}, {"clock_mhz", number_or_null(state.clock_mhz)}};
}

template <class T>
DeviceOperands<T>::DeviceOperands(const BenchDevice& device, const BenchMatrices<T>& matrices)
    : device_(device), bytes_a_(aligned_bytes(matrices.a.size() * sizeof(T))),
      bytes_b_(aligned_bytes(matrices.b.size() * sizeof(T))),
      bytes_c_(aligned_bytes(matrices.c.size() * sizeof(T))) {
  sets_ = sets_for(set_bytes(), device.facts().l2_bytes);
  memory_ = std::make_unique<measure::DeviceMemory>(static_cast<std::size_t>(sets_) * set_bytes());
  const measure::DeviceStream& stream = device.stream();
  stream.upload(memory_->data(), matrices.a.data(), matrices.a.size() * sizeof(T));
  stream.upload(memory_->data() + bytes_a_, matrices.b.data(), matrices.b.size() * sizeof(T));
  for (int set = 1; set < sets_; ++set)
    stream.copy(memory_->data() + static_cast<std::size_t>(set) * set_bytes(), memory_->data(),
                bytes_a_ + bytes_b_);
  stream.synchronize();
}

template class DeviceOperands<float>;
template class DeviceOperands<double>;

template <class T>
BenchMatrices<T>::BenchMatrices(const Bench& bench, const Shape& size)
    : shape(size), batch(bench.batch), parts(bench.parts()),
      a(generated<T>(bench, measure::Side::a, size.m, parts * size.k)),
      b(generated<T>(bench, measure::Side::b, size.k, parts * size.n)),
      c(make_elements<T>(bench, size.m, parts * size.n)) {}

template <class T>
core::MatrixView<const T> BenchMatrices<T>::view_b(std::int64_t product) const {
  const std::int64_t columns = parts * shape.n;
  const T* original = b.data() + product * shape.k * columns;
  if (parts == 1) return {original, shape.k, columns, columns, 1};
  if (embedded_product_ != product) {
    embedded_product_ = product;
    embedded_b_.resize(static_cast<std::size_t>(2 * shape.k * columns));
    for (std::int64_t p = 0; p < shape.k; ++p) {
      // The rows by which the real and the imaginary parts of A's column p are multiplied.
      T* times_real = embedded_b_.data() + 2 * p * columns;
      T* times_imaginary = times_real + columns;
      for (std::int64_t j = 0; j < columns; j += 2) {
        const T real = original[p * columns + j];
        const T imaginary = original[p * columns + j + 1];
        times_real[j] = real;
        times_real[j + 1] = imaginary;
        times_imaginary[j] = -imaginary;
        times_imaginary[j + 1] = real;
      }
    }
  }
  return {embedded_b_.data(), 2 * shape.k, columns, columns, 1};
}

template struct BenchMatrices<float>;
template struct BenchMatrices<double>;

template <class T>
std::unique_ptr<Contestant> make_contestant(const Bench& bench, const std::string& name,
                                            BenchMatrices<T>& matrices, const DeviceOperands<T>* operands) {
  if (is_reference_loop(name)) return std::make_unique<ReferenceLoop<T>>(bench, name, matrices);
  if (name == vendor_call) return std::make_unique<VendorProduct<T>>(bench, matrices, *operands);
  if (name == mkl_call) return std::make_unique<MklProduct<T>>(bench, matrices);
  if (operands == nullptr) return std::make_unique<HostProduct<T>>(bench, name, matrices);
  return std::make_unique<DeviceProduct<T>>(bench, name, matrices, *operands);
}

template std::unique_ptr<Contestant> make_contestant(const Bench&, const std::string&, BenchMatrices<float>&,
                                                     const DeviceOperands<float>*);
template std::unique_ptr<Contestant> make_contestant(const Bench&, const std::string&, BenchMatrices<double>&,
                                                     const DeviceOperands<double>*);

}  // namespace kintsugi::tools
