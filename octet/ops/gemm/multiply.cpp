#include "octet/ops/gemm/multiply.hpp"

#include <dnnl.hpp>
#include <map>
#include <unordered_map>

#include "octet/tensor/cpu/threads.hpp"

namespace octet::ops {
namespace {

using dnnl::memory;

dnnl::engine& engine() {
  static dnnl::engine it(dnnl::engine::kind::cpu, 0);
  return it;
}

memory::data_type type_of(DType t) { return t == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32; }

std::int64_t step(std::int64_t given, std::int64_t dense) { return given != 0 ? given : dense; }

// oneDNN's compiled primitive of one form.
struct Prepared {
  memory::desc a, b, d, alpha, bias;
  dnnl::matmul primitive;

  explicit Prepared(const Multiplication& m)
      : a({m.M, m.K}, type_of(m.type), m.a_transposed ? memory::dims{1, step(m.a_step, m.M)} : memory::dims{step(m.a_step, m.K), 1}),
        b({m.K, m.N}, type_of(m.type), m.b_transposed ? memory::dims{step(m.b_step, m.N), 1} : memory::dims{1, step(m.b_step, m.K)}),
        d({m.M, m.N}, type_of(m.result), memory::dims{m.N, 1}),
        alpha({1, 1}, memory::data_type::f32, memory::dims{1, 1}),
        bias({1, m.N}, memory::data_type::f32, memory::dims{m.N, 1}) {
    dnnl::primitive_attr attributes;
    dnnl::post_ops after;
    // Not as output scales, for which matmul has no fast kernels in f32 and bf16.
    if (m.scaled) after.append_binary(dnnl::algorithm::binary_mul, alpha);
    if (m.accumulate) after.append_sum(1.0f);
    // Not as matmul's own bias, which it adds before it scales.
    if (m.biased) after.append_binary(dnnl::algorithm::binary_add, bias);
    attributes.set_post_ops(after);
    primitive = dnnl::matmul({dnnl::matmul::desc(a, b, d), attributes, engine()});
  }
};

// Prepared forms by shape and by the number of threads they were made for. A primitive uses the scratch memory of the thread that made it,
// so threads that compute at the same time have primitives of their own.
const Prepared& prepared(const Multiplication& m) {
  thread_local std::map<std::pair<Multiplication, int>, Prepared> known;
  const auto key = std::pair(m, cpu::threads());
  if (const auto it = known.find(key); it != known.end()) return it->second;
  return known.try_emplace(key, m).first->second;
}

}  // namespace

void multiply(const Multiplication& m, const void* a, const void* b, void* d, float alpha, const float* bias) try {
  const Prepared& p = prepared(m);
  const auto at = [](const memory::desc& desc, const void* data) { return memory(desc, engine(), const_cast<void*>(data)); };
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, at(p.a, a)}, {DNNL_ARG_WEIGHTS, at(p.b, b)}, {DNNL_ARG_DST, at(p.d, d)}};
  if (m.scaled) arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, at(p.alpha, &alpha));
  if (m.biased) arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(m.scaled || m.accumulate ? 1 : 0) | DNNL_ARG_SRC_1, at(p.bias, bias));
  dnnl::stream queue(engine());
  p.primitive.execute(queue, arguments);
  queue.wait();
} catch (const dnnl::error& e) {
  throw DeviceError(format("gemm: oneDNN cannot multiply {} [{}, {}] by [{}, {}] into {} on this machine: {}", m.type, m.M, m.K, m.K, m.N,
                           m.result, e.what()));
}

}  // namespace octet::ops
