// A contestant: a product of the library in device memory.
#include <algorithm>
#include <cmath>

#include "bench/host_timing.hpp"
#include "bench/library_product.hpp"

namespace kintsugi::tools {

namespace {

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

  void run() override;
  Round time_round() override;
  const char* timed_by() const override {
    return times_calls_ ? "calls" : graph_ != nullptr ? "graph" : "stream";
  }

 private:
  const measure::DeviceStream& stream() const { return operands_.device().stream(); }
  void execute_set(int set, std::int64_t call_index = 0) const;
  void execute_series() const;
  void launch_series() const;
  void plan_series();

  const DeviceOperands<T>& operands_;
  measure::DeviceMemory workspace_;
  bool times_calls_;
  CallTimer call_timer_;
  std::vector<Prepared> prepared_;  // one for each set
  std::unique_ptr<measure::DeviceGraph>
      graph_;           // graph of a series; nullptr: executions are launched one by one
  int executions_ = 0;  // executions in a series; 0: not planned yet
};

// Fills C with NaN, so that missing elements are detected, multiplies, and copies C to the host.
template <class T>
void DeviceProduct<T>::run() {
  std::vector<T>& c = this->matrices().c;
  const std::size_t bytes = c.size() * sizeof(T);
  auto* target = reinterpret_cast<std::byte*>(operands_.c(0));
  stream().fill(target, byte_of_nan, bytes);
  execute_set(0);
  stream().download(c.data(), target, bytes);
  stream().synchronize();
}

template <class T>
void DeviceProduct<T>::execute_set(int set, std::int64_t call_index) const {
  this->execute(operands_.a(set), operands_.b(set), operands_.c(set), workspace_.data(),
                prepared_[static_cast<std::size_t>(set)], call_index);
}

template <class T>
void DeviceProduct<T>::execute_series() const {
  for (int i = 0; i < executions_; ++i) execute_set(i % operands_.sets());
}

template <class T>
void DeviceProduct<T>::launch_series() const {
  if (graph_ != nullptr) return graph_->launch(stream());
  execute_series();
}

// Decides how many executions make a series, and whether the series is a graph. Both follow from the time of
// one execution.
template <class T>
void DeviceProduct<T>::plan_series() {
  constexpr double series_seconds = 0.05;
  constexpr double graph_seconds = 1e-3;
  constexpr double max_executions = 1024;
  executions_ = 1;
  const double seconds = stream().seconds_of([this] { execute_series(); });
  executions_ = static_cast<int>(std::clamp(std::ceil(series_seconds / seconds), 1.0, max_executions));
  if (seconds < graph_seconds)
    graph_ = std::make_unique<measure::DeviceGraph>(stream(), [this] { execute_series(); });
}

// Runs an untimed series first, so that the device has the clock frequencies of a busy device.
template <class T>
Round DeviceProduct<T>::time_round() {
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

}  // namespace

template <class T>
std::unique_ptr<Contestant> device_product(const Bench& bench, const std::string& candidate,
                                           BenchMatrices<T>& matrices, const DeviceOperands<T>& operands) {
  return std::make_unique<DeviceProduct<T>>(bench, candidate, matrices, operands);
}

template std::unique_ptr<Contestant> device_product(const Bench&, const std::string&, BenchMatrices<float>&,
                                                    const DeviceOperands<float>&);
template std::unique_ptr<Contestant> device_product(const Bench&, const std::string&, BenchMatrices<double>&,
                                                    const DeviceOperands<double>&);

}  // namespace kintsugi::tools
