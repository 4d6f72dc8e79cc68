#include "octet/tensor/cuda/graph.hpp"

#include <vector>

#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr unsigned fill_threads = 256, most_fill_blocks = 256;
// Filling more takes so long that the gaps do not matter.
constexpr std::size_t most_fill_bytes = std::size_t(1) << 20;

/// Bytes of `word`, lowest first, again and again.
__global__ void __launch_bounds__(fill_threads) fill_kernel(std::uint8_t* to, std::size_t bytes, unsigned word) {
  const std::size_t first = blockIdx.x * std::size_t(fill_threads) + threadIdx.x, step = gridDim.x * std::size_t(fill_threads);
  const std::size_t packs = reinterpret_cast<std::uintptr_t>(to) % sizeof(uint4) == 0 ? bytes / sizeof(uint4) : 0;
  for (std::size_t i = first; i < packs; i += step) reinterpret_cast<uint4*>(to)[i] = make_uint4(word, word, word, word);
  for (std::size_t i = packs * sizeof(uint4) + first; i < bytes; i += step) to[i] = std::uint8_t(word >> i % 4 * 8);
}

unsigned word_of(const cudaMemsetParams& p) {
  if (p.elementSize == 1) return (p.value & 0xFFu) * 0x01010101u;
  return p.elementSize == 2 ? (p.value & 0xFFFFu) * 0x00010001u : p.value;
}

struct Edges {
  std::vector<cudaGraphNode_t> nodes;
  std::vector<cudaGraphEdgeData> data;
};
template <class Get>
Edges edges_of(cudaGraphNode_t node, const Get& get) {
  std::size_t n = 0;
  require(get(node, nullptr, nullptr, &n), "edges of a CUDA graph");
  Edges out{std::vector<cudaGraphNode_t>(n), std::vector<cudaGraphEdgeData>(n)};
  if (n > 0) require(get(node, out.nodes.data(), out.data.data(), &n), "edges of a CUDA graph");
  return out;
}

/// Replaces a memset by a kernel with the same edges.
void replace_memset(cudaGraph_t graph, cudaGraphNode_t memset, const cudaMemsetParams& p) {
  auto* to = static_cast<std::uint8_t*>(p.dst);
  std::size_t bytes = p.width * p.elementSize;
  unsigned word = word_of(p);
  void* arguments[] = {&to, &bytes, &word};
  const std::size_t blocks = (bytes / sizeof(uint4) + fill_threads) / fill_threads;
  const cudaKernelNodeParams fill{.func = reinterpret_cast<void*>(fill_kernel),
                                  .gridDim = dim3(blocks < most_fill_blocks ? unsigned(blocks) : most_fill_blocks),
                                  .blockDim = dim3(fill_threads),
                                  .sharedMemBytes = 0,
                                  .kernelParams = arguments,
                                  .extra = nullptr};
  cudaGraphNode_t kernel = nullptr;
  require(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &fill), "a kernel of a CUDA graph");
  const Edges before = edges_of(memset, cudaGraphNodeGetDependencies), after = edges_of(memset, cudaGraphNodeGetDependentNodes);
  const std::vector<cudaGraphNode_t> from(before.nodes.size(), kernel), to_kernel(after.nodes.size(), kernel);
  require(cudaGraphAddDependencies(graph, before.nodes.data(), from.data(), before.data.data(), before.nodes.size()),
          "edges of a CUDA graph");
  require(cudaGraphAddDependencies(graph, to_kernel.data(), after.nodes.data(), after.data.data(), after.nodes.size()),
          "edges of a CUDA graph");
  require(cudaGraphDestroyNode(memset), "a memset of a CUDA graph");
}

/// Between kernels of a graph, a GPU waits 4 to 7 us behind a memset, of which libraries record several per layer, but not behind a kernel.
void replace_memsets(cudaGraph_t graph) {
  std::size_t n = 0;
  require(cudaGraphGetNodes(graph, nullptr, &n), "nodes of a CUDA graph");
  std::vector<cudaGraphNode_t> nodes(n);
  if (n > 0) require(cudaGraphGetNodes(graph, nodes.data(), &n), "nodes of a CUDA graph");
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    require(cudaGraphNodeGetType(node, &type), "a node of a CUDA graph");
    if (type != cudaGraphNodeTypeMemset) continue;
    cudaMemsetParams p;
    require(cudaGraphMemsetNodeGetParams(node, &p), "a memset of a CUDA graph");
    if (p.height <= 1 && p.width * p.elementSize <= most_fill_bytes) replace_memset(graph, node, p);
  }
}

struct Recorded {
  cudaGraph_t it = nullptr;
  ~Recorded() {
    if (it != nullptr) cudaGraphDestroy(it);
  }
};

}  // namespace

void Graph::begin(Queue queue) { require(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal), "begin of a CUDA graph"); }

Graph Graph::end(Queue queue) {
  Recorded recorded;
  require(cudaStreamEndCapture(queue, &recorded.it), "end of a CUDA graph");
  replace_memsets(recorded.it);
  Graph graph;
  require(cudaGraphInstantiate(&graph.it_, recorded.it, 0), "cudaGraphInstantiate");
  return graph;
}

void Graph::abandon(Queue queue) noexcept {
  cudaGraph_t recorded = nullptr;
  if (cudaStreamEndCapture(queue, &recorded) == cudaSuccess) cudaGraphDestroy(recorded);
  else cudaGetLastError();  // an error in between ends the recording, too
}

Graph::~Graph() {
  if (it_ != nullptr) cudaGraphExecDestroy(it_);
}

void Graph::launch(Queue queue) const { require(cudaGraphLaunch(it_, queue), "cudaGraphLaunch"); }

}  // namespace octet::cuda
