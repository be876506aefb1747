// Graphs of the fake driver: chains of kernels, which a launch of the graph launches one after the other, and
// the user objects that graphs retain.
#include <algorithm>
#include <cstring>

#include "engines/cuda/split/split_task.hpp"
#include "tests/fakes/libraries/cuda_state.hpp"
#include "tests/fakes/libraries/native_kernels.hpp"

namespace kintsugi::fake {

namespace {

// Bytes of the arguments that launch_kernel() reads. The driver knows those of every kernel.
std::vector<std::size_t> argument_bytes(const std::string& kernel) {
  if (kernel == "clear_bytes") return {sizeof(Address), sizeof(std::int32_t)};
  if (multiplies_natively(kernel)) return {sizeof(core::DeviceTile)};
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

struct FakeObject {
  void* data = nullptr;
  void (*destroy)(void*) = nullptr;
  unsigned references = 0;
};

std::map<UserObject, FakeObject>& objects() {
  static std::map<UserObject, FakeObject> instance;
  return instance;
}

// Objects that graphs, captured and executable ones too, retain; one that is retained twice is there twice.
std::multimap<void*, UserObject>& retained_objects() {
  static std::multimap<void*, UserObject> instance;
  return instance;
}

void retain_objects_of(void* graph, void* clone) {
  const std::lock_guard lock(state().mutex);
  std::vector<UserObject> found;
  const auto [first, last] = retained_objects().equal_range(graph);
  for (auto item = first; item != last; ++item) found.push_back(item->second);
  for (const UserObject object : found) {
    ++objects().at(object).references;
    retained_objects().emplace(clone, object);
  }
}

}  // namespace

Result user_object_create(UserObject* object, void* data, void (*destroy)(void*), unsigned references,
                          unsigned flags) {
  if (flags != object_without_synchronization || destroy == nullptr || references == 0) return invalid_value;
  *object = token<UserObject>();
  const std::lock_guard lock(state().mutex);
  objects()[*object] = {data, destroy, references};
  return 0;
}
// The object's function is called without the lock, since the driver calls it in a thread of its own.
Result user_object_release(UserObject object, unsigned count) {
  FakeObject destroyed;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = objects().find(object);
    if (found == objects().end() || found->second.references < count) return invalid_value;
    found->second.references -= count;
    if (found->second.references > 0) return 0;
    destroyed = found->second;
    objects().erase(found);
  }
  destroyed.destroy(destroyed.data);
  return 0;
}
Result graph_retain_object(Graph graph, UserObject object, unsigned count, unsigned flags) {
  const std::lock_guard lock(state().mutex);
  if (number("FAKE_CUDA_NO_OBJECTS", 0) != 0) return not_supported;
  const auto found = objects().find(object);
  if (found == objects().end() || count != 1) return invalid_value;
  if (flags != move_reference_to_graph) ++found->second.references;
  retained_objects().emplace(graph, object);
  return 0;
}
void release_objects_of(void* graph) {
  std::vector<UserObject> released;
  {
    const std::lock_guard lock(state().mutex);
    const auto [first, last] = retained_objects().equal_range(graph);
    for (auto item = first; item != last; ++item) released.push_back(item->second);
    retained_objects().erase(first, last);
  }
  for (const UserObject object : released) user_object_release(object, 1);
}
// The library does not call this function; programs do.
extern "C" __attribute__((visibility("default"))) Result cuGraphAddChildGraphNode(GraphNode* node,
                                                                                  Graph graph,
                                                                                  const GraphNode*,
                                                                                  std::size_t, Graph child) {
  note("cuGraphAddChildGraphNode");
  *node = token<GraphNode>();
  retain_objects_of(child, graph);
  return 0;
}
Result exchange_capture_mode(int* mode) {
  std::swap(capture_mode(), *mode);
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
  retain_objects_of(graph, *exec);
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
  release_objects_of(exec);
  const std::lock_guard lock(state().mutex);
  graphs().erase(exec);
  return 0;
}
Result graph_destroy(Graph graph) {
  release_objects_of(graph);
  const std::lock_guard lock(state().mutex);
  graphs().erase(graph);
  return 0;
}

}  // namespace kintsugi::fake
