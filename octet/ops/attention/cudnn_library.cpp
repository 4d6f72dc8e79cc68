#ifdef OCTET_HAS_CUDNN

#include "octet/ops/attention/cudnn_library.hpp"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // wanted by its headers when cuDNN is loaded and not linked
}

namespace octet::cuda {

void require(fe::error_t e, const char* what) {
  if (e.is_bad()) throw DeviceError(format("cuDNN: {}: {}", what, e.get_message()));
}

CudnnLibrary::CudnnLibrary() try {
  open_library("libcudart.so.13");  // cudnn-frontend searches it by this name and finds the loaded one
  fe::cudnn_dlhandle = open_library("libcudnn.so.9");
  const std::size_t v = fe::detail::get_backend_version();
  if (fe::detail::create_handle(&handle) != CUDNN_STATUS_SUCCESS) why_not = "cuDNN does not work with this GPU";
  else version = format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
} catch (const std::exception& e) {
  why_not = e.what();
}

CudnnLibrary& cudnn_library() {
  static CudnnLibrary& it = *new CudnnLibrary;  // never freed: cuDNN may be unloaded before static objects are destroyed
  return it;
}

BuiltGraph built(const std::shared_ptr<fe::graph::Graph>& graph, const char* what) {
  BuiltGraph b{graph};
  require(graph->build(cudnn_library().handle, {fe::HeurMode_t::A}), what);
  require(graph->get_workspace_size(b.bytes), what);
  return b;
}

void run_graph(Queue queue, fe::graph::Graph& graph, std::unordered_map<std::int64_t, void*>& at, void* workspace, const char* what) {
  if (fe::detail::set_stream(cudnn_library().handle, queue) != CUDNN_STATUS_SUCCESS)
    throw DeviceError("cuDNN: it does not take the stream");
  require(graph.execute(cudnn_library().handle, at, workspace), what);
}

}  // namespace octet::cuda

#endif
