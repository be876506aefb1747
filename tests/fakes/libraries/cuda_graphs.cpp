// Graphs of the fake driver: chains of kernels, which a launch of the graph launches one after the other.
#include <algorithm>
#include <cstring>

#include "engines/cuda/split/split_task.hpp"
#include "tests/fakes/libraries/cuda_state.hpp"

namespace kintsugi::fake {

namespace {

// Bytes of the arguments that launch_kernel() reads. The driver knows those of every kernel.
std::vector<std::size_t> argument_bytes(const std::string& kernel) {
  if (kernel == "clear_bytes") return {sizeof(Address), sizeof(std::int32_t)};
  if (kernel.starts_with("split_") && kernel != "split_successively") return {sizeof(SplitTasks)};
  return {};
}

struct FakeNode {
  GraphNode handle = nullptr;
  GraphNode previous = nullptr;
  bool overlaps = false;
  KernelNode node;
  std::vector<LaunchAttribute> attributes;
  std::vector<std::vector<std::byte>> arguments;

  Result set(const KernelNode& given) {
    if (node.kernel != nullptr && node.kernel != given.kernel) return invalid_value;
    node = given;
    arguments.clear();
    const auto& name = reinterpret_cast<FakeKernel*>(given.kernel)->name;
    for (const std::size_t bytes : argument_bytes(name)) {
      const auto* data = static_cast<const std::byte*>(given.arguments[arguments.size()]);
      arguments.emplace_back(data, data + bytes);
    }
    return 0;
  }

  Result launch(Stream stream) {
    std::vector<void*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.data());
    std::vector<LaunchAttribute> all;
    if (overlaps) all.push_back(LaunchAttribute::overlapping());
    all.insert(all.end(), attributes.begin(), attributes.end());
    const LaunchConfig config{{node.grid[0], node.grid[1], node.grid[2]},
                              {node.block[0], node.block[1], node.block[2]},
                              node.shared_bytes,
                              stream,
                              all.data(),
                              static_cast<unsigned>(all.size())};
    return launch_kernel(&config, node.kernel, pointers.data(), nullptr);
  }
};

using Nodes = std::vector<FakeNode>;

// Graphs by their handles, executable ones too. Captured graphs have no nodes here.
std::map<void*, Nodes>& graphs() {
  static std::map<void*, Nodes> instance;
  return instance;
}

FakeNode* find_node(GraphNode handle) {
  for (auto& [graph, nodes] : graphs()) {
    for (FakeNode& node : nodes) {
      if (node.handle == handle) return &node;
    }
  }
  return nullptr;
}

}  // namespace

Result exchange_capture_mode(int* mode) {
  static thread_local int current = 0;
  std::swap(current, *mode);
  return 0;
}
Result graph_create(Graph* graph, unsigned) {
  if (number("FAKE_CUDA_NO_GRAPHS", 0) != 0) return not_supported;
  *graph = token<Graph>();
  const std::lock_guard lock(state().mutex);
  graphs()[*graph];
  return 0;
}
Result graph_add_kernel(GraphNode* handle, Graph graph, const GraphNode*, std::size_t count,
                        const KernelNode* given) {
  if (count != 0 || given->kernel == nullptr) return invalid_value;
  FakeNode node;
  node.handle = *handle = token<GraphNode>();
  node.set(*given);
  const std::lock_guard lock(state().mutex);
  graphs().at(graph).push_back(std::move(node));
  return 0;
}
Result graph_set_attribute(GraphNode handle, int id, const void* value) {
  const std::lock_guard lock(state().mutex);
  LaunchAttribute attribute{id};
  std::memcpy(attribute.value + 1, value, sizeof attribute.value - sizeof attribute.value[0]);
  find_node(handle)->attributes.push_back(attribute);
  return 0;
}
Result graph_add_edges(Graph, const GraphNode* from, const GraphNode* to, const GraphEdge* edges,
                       std::size_t count) {
  const std::lock_guard lock(state().mutex);
  for (std::size_t i = 0; i < count; ++i) {
    FakeNode& node = *find_node(to[i]);
    if (node.previous != nullptr) return not_supported;
    node.previous = from[i];
    node.overlaps = edges[i].type == GraphEdge::overlapping().type;
  }
  return 0;
}
Result graph_instantiate(GraphExec* exec, Graph graph, unsigned long long) {
  note("cuGraphInstantiate");
  *exec = token<GraphExec>();
  const std::lock_guard lock(state().mutex);
  const Nodes nodes = graphs()[graph];
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].previous != nodes[i - 1].handle) return not_supported;
  }
  graphs()[*exec] = nodes;
  return 0;
}
Result graph_exec_set_kernel(GraphExec exec, GraphNode handle, const KernelNode* given) {
  const std::lock_guard lock(state().mutex);
  Nodes& nodes = graphs().at(exec);
  const auto node = std::ranges::find(nodes, handle, &FakeNode::handle);
  // A destroyed graph's nodes cannot be named.
  const auto has_node = [&](const auto& graph) {
    return graph.first != exec && std::ranges::count(graph.second, handle, &FakeNode::handle) > 0;
  };
  if (node == nodes.end() || std::ranges::none_of(graphs(), has_node)) return invalid_value;
  return node->set(*given);
}
Result graph_launch(GraphExec exec, Stream stream) {
  note("cuGraphLaunch stream={}", stream);
  Nodes nodes;
  {
    const std::lock_guard lock(state().mutex);
    nodes = graphs()[exec];
  }
  for (FakeNode& node : nodes) {
    if (const Result result = node.launch(stream); result != 0) return result;
  }
  return 0;
}
Result graph_exec_destroy(GraphExec exec) {
  note("cuGraphExecDestroy");
  const std::lock_guard lock(state().mutex);
  graphs().erase(exec);
  return 0;
}
Result graph_destroy(Graph graph) {
  const std::lock_guard lock(state().mutex);
  graphs().erase(graph);
  return 0;
}

}  // namespace kintsugi::fake
