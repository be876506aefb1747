#include "engines/cuda/common/launch_graph.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "engines/cuda/device.hpp"

namespace kintsugi::core::cuda {

namespace {

// Properties that a launch and its node of a graph must have in common. All others change when the graph is
// updated.
struct FixedProperties {
  Kernel kernel;
  unsigned threads;
  std::int32_t cluster;
  bool overlaps;

  friend bool operator==(const FixedProperties&, const FixedProperties&) = default;
};

FixedProperties fixed_properties(const Launch& launch) {
  return {.kernel = launch.kernel,
          .threads = launch.threads,
          .cluster = launch.cluster,
          .overlaps = launch.overlaps};
}

KernelNode node_of(const Launch& launch, void** arguments) {
  KernelNode node;
  std::ranges::copy(launch.grid, node.grid);
  node.block[0] = launch.threads;
  node.shared_bytes = launch.shared_bytes;
  node.arguments = arguments;
  node.kernel = launch.kernel;
  return node;
}

// Builds a graph of kernels that run one after the other. After a failure the driver is not called any more.
class GraphBuilder {
 public:
  GraphBuilder() { demand(driver().graph_create(&graph_, 0)); }

  GraphNode add(const Launch& launch, void** arguments) {
    const KernelNode node = node_of(launch, arguments);
    GraphNode added = nullptr;
    if (!failed_) demand(driver().graph_add_kernel(&added, graph_, nullptr, 0, &node));
    if (launch.cluster > 0) {
      set(added, LaunchAttribute::cluster(launch.cluster));
      set(added, LaunchAttribute::cluster_on_few_sms());
    }
    const GraphEdge edge = launch.overlaps ? GraphEdge::overlapping() : GraphEdge{};
    if (last_ != nullptr && !failed_) demand(driver().graph_add_edges(graph_, &last_, &added, &edge, 1));
    last_ = added;
    return added;
  }
  // Returns nullptr if the driver does not build the graph.
  GraphExec executable() {
    GraphExec exec = nullptr;
    if (!failed_) demand(driver().graph_instantiate(&exec, graph_, 0));
    return failed_ ? nullptr : exec;
  }
  // Returns the graph, which the caller must destroy; nullptr if there is none.
  Graph graph() const { return graph_; }

 private:
  // Records a failure.
  void demand(Result result) { failed_ = failed_ || result != 0; }
  void set(GraphNode node, const LaunchAttribute& attribute) {
    // LaunchAttribute says why its value begins at value + 1.
    if (!failed_) demand(driver().graph_set_attribute(node, attribute.id, attribute.value + 1));
  }

  Graph graph_ = nullptr;
  GraphNode last_ = nullptr;
  bool failed_ = false;
};

// A sequence of launches into one stream, for calls that repeat it. From the third such call on there is an
// executable graph, with the grids and arguments of the last call.
class LaunchGraph {
 public:
  LaunchGraph(const DeviceContext& context, void* stream, const RecordedLaunches& recorded)
      : context_(context), stream_(stream) {
    for (const Launch& launch : recorded.launches()) fixed_.push_back(fixed_properties(launch));
  }
  // A graph belongs to its context. If the context is destroyed, the driver has freed the graph.
  ~LaunchGraph() {
    if (graph_ == nullptr) return;
    const ContextScope scope(context_);
    if (!scope.entered()) return;
    const RelaxedCaptureMode mode;
    if (exec_ != nullptr) driver().graph_exec_destroy(exec_);
    driver().graph_destroy(graph_);
  }
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  // True if the graph can execute these launches with updated grids and arguments.
  bool serves(const DeviceContext& context, void* stream, const RecordedLaunches& recorded) const {
    return stream_ == stream && context_ == context &&
           std::ranges::equal(fixed_, recorded.launches(), {}, {}, fixed_properties);
  }

  // Counts the call and executes the launches as a graph. Returns false, and executes nothing, if there is no
  // graph or none yet.
  bool launch(const RecordedLaunches& recorded) {
    const std::lock_guard lock(mutex_);
    if (++calls_ < min_calls) return false;
    if (is_refused_ || (exec_ == nullptr && !build(recorded))) return false;
    for (std::size_t i = 0; i < nodes_.size() && !is_refused_; ++i) is_refused_ = !update(recorded, i);
    if (is_refused_) return false;
    const Result result = driver().graph_launch(exec_, stream_);
    if (result != 0) check(result, description().c_str());
    return true;
  }

 private:
  // Number of the call that builds the graph. Building takes 100 us and more, which does not pay for calls
  // that are made once or twice.
  static constexpr int min_calls = 3;

  struct Node {
    GraphNode graph_node;
    Launch launch;
    std::vector<std::byte> arguments;
  };

  bool build(const RecordedLaunches& recorded) {
    const RelaxedCaptureMode mode;
    GraphBuilder builder;
    for (std::size_t i = 0; i < recorded.launches().size(); ++i) {
      const auto bytes = recorded.bytes_of(i);
      auto pointers = recorded.pointers(i, bytes.data());
      nodes_.push_back({builder.add(recorded.launches()[i], pointers.data()),
                        recorded.launches()[i],
                        {bytes.begin(), bytes.end()}});
    }
    graph_ = builder.graph();
    exec_ = builder.executable();
    is_refused_ = exec_ == nullptr;
    return !is_refused_;
  }

  // Gives the i-th kernel the grid and the arguments of a call, if they have changed. Returns false if the
  // driver refuses.
  bool update(const RecordedLaunches& recorded, std::size_t i) {
    Node& node = nodes_[i];
    const Launch& launch = recorded.launches()[i];
    const auto bytes = recorded.bytes_of(i);
    const bool is_up_to_date = std::ranges::equal(node.launch.grid, launch.grid) &&
                               node.launch.shared_bytes == launch.shared_bytes &&
                               std::ranges::equal(node.arguments, bytes);
    if (is_up_to_date) return true;
    node.launch = launch;
    node.arguments.assign(bytes.begin(), bytes.end());
    auto pointers = recorded.pointers(i, node.arguments.data());
    const KernelNode updated = node_of(launch, pointers.data());
    return driver().graph_exec_set_kernel(exec_, node.graph_node, &updated) == 0;
  }

  std::string description() const {
    std::string kernels;
    for (const Node& node : nodes_)
      kernels += (kernels.empty() ? "" : ", ") + std::string(node.launch.kernel_name->name());
    return "launch of a graph of the kernels " + kernels;
  }

  DeviceContext context_;
  void* stream_;
  std::vector<FixedProperties> fixed_;
  std::mutex mutex_;
  int calls_ = 0;
  bool is_refused_ = false;  // true if the driver refused to build or to update the graph
  Graph graph_ = nullptr;    // kept, because an update of exec_ names the nodes of this graph
  GraphExec exec_ = nullptr;
  std::vector<Node> nodes_;
};

// The graphs of the process, the last used one first. Each has some 100 KB of device memory.
class LaunchGraphs {
 public:
  // Returns the graph that serves these launches, a new one if there is none.
  std::shared_ptr<LaunchGraph> find(const DeviceContext& context, void* stream,
                                    const RecordedLaunches& recorded) {
    std::shared_ptr<LaunchGraph> dropped;  // declared before the lock: freed after the lock is released
    const auto lock = lock_shared_state();
    const auto found = std::ranges::find_if(
        graphs_, [&](const auto& graph) { return graph->serves(context, stream, recorded); });
    if (found != graphs_.end()) {
      std::rotate(graphs_.begin(), found, found + 1);
      return graphs_.front();
    }
    if (graphs_.size() == max_graphs) {
      dropped = std::move(graphs_.back());
      graphs_.pop_back();
    }
    return *graphs_.insert(graphs_.begin(), std::make_shared<LaunchGraph>(context, stream, recorded));
  }

  void clear() noexcept {
    std::vector<std::shared_ptr<LaunchGraph>> dropped;
    const auto lock = lock_shared_state();
    std::swap(dropped, graphs_);
  }

 private:
  static constexpr std::size_t max_graphs = 64;

  std::vector<std::shared_ptr<LaunchGraph>> graphs_;
};

// The object is never destroyed, since the driver may be unloaded before.
LaunchGraphs& launch_graphs() {
  static auto* instance = new LaunchGraphs;
  return *instance;
}

}  // namespace

bool launch_as_graph(const RecordedLaunches& recorded, void* stream) {
  if (recorded.launches().size() < 2) return false;
  return launch_graphs().find(current_context(), stream, recorded)->launch(recorded);
}

void release_graphs() noexcept { launch_graphs().clear(); }

namespace {

thread_local LaunchRecording* current_recording = nullptr;
// Memory of recorded launches that is kept between calls, so that recording allocates no host memory.
thread_local RecordedLaunches spare_launches;

// True if launches into the stream may be executed as a graph.
bool can_record(void* stream) {
  if (!driver().has_later_functions() || may_be_captured(stream)) return false;
  Context regular = nullptr;
  GreenContext green = nullptr;
  return driver().stream_contexts(stream, &regular, &green) == 0 && green == nullptr;
}

void launch_one_by_one(const RecordedLaunches& recorded, void* stream) {
  for (std::size_t i = 0; i < recorded.launches().size(); ++i) {
    auto pointers = recorded.pointers(i, recorded.bytes_of(i).data());
    launch_now(recorded.launches()[i], stream, pointers.data());
  }
}

}  // namespace

void RecordedLaunches::add(const Launch& launch, std::span<const LaunchArgument> arguments) {
  constexpr std::size_t alignment = 64;  // that of a tensor map, the largest of all arguments
  launches_.push_back(launch);
  first_arguments_.push_back(arguments_.size());
  first_bytes_.push_back(bytes_.size());
  for (const LaunchArgument& argument : arguments) {
    arguments_.push_back({bytes_.size() - first_bytes_.back(), argument.bytes});
    const auto* data = static_cast<const std::byte*>(argument.data);
    bytes_.insert(bytes_.end(), data, data + argument.bytes);
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }
}

void RecordedLaunches::clear() {
  launches_.clear();
  first_arguments_.clear();
  first_bytes_.clear();
  arguments_.clear();
  bytes_.clear();
}

std::span<const std::byte> RecordedLaunches::bytes_of(std::size_t launch) const {
  const std::size_t end = launch + 1 < launches_.size() ? first_bytes_[launch + 1] : bytes_.size();
  return std::span(bytes_).subspan(first_bytes_[launch], end - first_bytes_[launch]);
}

std::array<void*, max_launch_arguments> RecordedLaunches::pointers(std::size_t launch,
                                                                   const std::byte* bytes) const {
  const std::size_t end = launch + 1 < launches_.size() ? first_arguments_[launch + 1] : arguments_.size();
  std::array<void*, max_launch_arguments> result{};
  for (std::size_t i = first_arguments_[launch]; i < end; ++i)
    result[i - first_arguments_[launch]] = const_cast<std::byte*>(bytes + arguments_[i].offset);
  return result;
}

// A recording may begin while another one exists, since a caller's allocator may call the library. The
// launches of the outer call come first; so they are issued now.
LaunchRecording::LaunchRecording(const Queue& queue)
    : stream_(queue.stream), records_(can_record(queue.stream)) {
  issue_recorded();
  outer_ = std::exchange(current_recording, this);
  if (outer_ == nullptr) std::swap(recorded_, spare_launches);
}

LaunchRecording::~LaunchRecording() {
  current_recording = outer_;
  recorded_.clear();
  if (outer_ == nullptr) std::swap(recorded_, spare_launches);
}

void LaunchRecording::issue() {
  if (recorded_.launches().empty()) return;
  if (!launch_as_graph(recorded_, stream_)) launch_one_by_one(recorded_, stream_);
  recorded_.clear();
}

bool LaunchRecording::record(const Launch& launch, const Queue& queue,
                             std::span<const LaunchArgument> arguments) {
  LaunchRecording* recording = current_recording;
  if (recording == nullptr || !recording->records_) return false;
  if (recording->stream_ != queue.stream) {
    recording->issue();
    return false;
  }
  recording->recorded_.add(launch, arguments);
  return true;
}

void LaunchRecording::issue_recorded() {
  if (current_recording != nullptr) current_recording->issue();
}

}  // namespace kintsugi::core::cuda
