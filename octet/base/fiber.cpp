#include "octet/base/fiber.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <utility>

#include "octet/base/check.hpp"
#include "octet/base/error.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace octet {
namespace {

constexpr std::size_t stack_bytes = std::size_t(64) << 20, guard_bytes = std::size_t(64) << 10;  // address space; touched pages have memory

struct Abandoned {};

// That enter() begins: makecontext() passes ints alone.
thread_local Fiber* entering = nullptr;

}  // namespace

// The stack, and the places where resume() and yield() were called. Sanitizers are told of each switch.
struct Fiber::Machine {
  Machine() : stack(mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)) {
    if (stack == MAP_FAILED || mprotect(stack, guard_bytes, PROT_NONE) != 0)
      throw DeviceError("the system has no address space for another stack of 64 MiB; raise the limit of virtual memory (ulimit -v)");
#ifdef __SANITIZE_THREAD__
    inner_fiber = __tsan_create_fiber(0), outer_fiber = __tsan_get_current_fiber();
#endif
  }
  ~Machine() {
#ifdef __SANITIZE_THREAD__
    __tsan_destroy_fiber(inner_fiber);
#endif
    munmap(stack, stack_bytes);
  }
  void go_in() {
#ifdef __SANITIZE_ADDRESS__
    void* saved = nullptr;
    __sanitizer_start_switch_fiber(&saved, stack, stack_bytes);
#endif
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(inner_fiber, 0);
#endif
    swapcontext(&outer, &inner);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(saved, nullptr, nullptr);
#endif
  }
  void go_out([[maybe_unused]] bool last) {
#ifdef __SANITIZE_ADDRESS__
    void* saved = nullptr;
    __sanitizer_start_switch_fiber(last ? nullptr : &saved, outer_stack, outer_bytes);
#endif
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(outer_fiber, 0);
#endif
    swapcontext(&inner, &outer);
#ifdef __SANITIZE_ADDRESS__
    arrived(saved);
#endif
  }
#ifdef __SANITIZE_ADDRESS__
  void arrived(void* saved) { __sanitizer_finish_switch_fiber(saved, &outer_stack, &outer_bytes); }
#endif

  void* stack;
  ucontext_t outer{}, inner{};
#ifdef __SANITIZE_ADDRESS__
  const void* outer_stack = nullptr;
  std::size_t outer_bytes = 0;
#endif
#ifdef __SANITIZE_THREAD__
  void *inner_fiber = nullptr, *outer_fiber = nullptr;
#endif
};

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), machine_(std::make_unique<Machine>()) {
  getcontext(&machine_->inner);
  machine_->inner.uc_stack = {
      .ss_sp = static_cast<char*>(machine_->stack) + guard_bytes, .ss_flags = 0, .ss_size = stack_bytes - guard_bytes};
  machine_->inner.uc_link = nullptr;
  makecontext(&machine_->inner, &Fiber::enter, 0);
}

Fiber::~Fiber() {
  abandoned_ = true;
  if (begun_ && !ended_) machine_->go_in();
}

void Fiber::enter() { entering->run(); }

void Fiber::run() {
#ifdef __SANITIZE_ADDRESS__
  machine_->arrived(nullptr);
#endif
  try {
    body_();
  } catch (const Abandoned&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  ended_ = true;
  machine_->go_out(true);
}

void Fiber::resume() {
  check(!ended_, "fiber: its body has ended");
  begun_ = true, entering = this;
  machine_->go_in();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fiber::yield() {
  machine_->go_out(false);
  if (abandoned_) throw Abandoned{};
}

}  // namespace octet
