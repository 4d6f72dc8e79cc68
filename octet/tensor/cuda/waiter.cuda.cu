#include "octet/tensor/cuda/waiter.hpp"

#include <exception>

#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

thread_local Waiter* waiter = nullptr;

bool succeeded(cudaError_t state) {
  if (state == cudaErrorNotReady) return false;
  require(state, "work on the GPU");
  return true;
}

}  // namespace

bool is_done(Queue queue) { return succeeded(cudaStreamQuery(queue)); }

void set_waiter(Waiter* w) { waiter = w; }

void wait(Event event) {
  if (waiter == nullptr) return require(cudaEventSynchronize(event), "work on the GPU");
  waiter->until([=] { return succeeded(cudaEventQuery(event)); });
}

void wait(Queue queue) {
  if (waiter == nullptr) return require(cudaStreamSynchronize(queue), "work on the GPU");
  waiter->until([=] { return is_done(queue); });
}

void end_queue(Queue queue) {
  try {
    if (std::uncaught_exceptions() > 0 && waiter != nullptr) wait(queue);
  } catch (const std::exception&) {  // the waiter has ended the work, and the error that is on its way tells why
  }
  cudaStreamSynchronize(queue);
  cudaStreamDestroy(queue);
}

}  // namespace octet::cuda
