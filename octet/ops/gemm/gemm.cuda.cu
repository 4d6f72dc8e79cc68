#include <array>
#include <mutex>
#include <set>

#include "octet/base/log.hpp"
#include "octet/ops/gemm/cublaslt.hpp"
#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/tensor/cuda/device.hpp"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

// factor[0] = the product of the descales of those operands that were decoded without them; factor[1] = the factor of d.
__global__ void factor_kernel(const float* a, const float* b, float before, float* factor) {
  factor[0] = (a != nullptr ? *a : 1.0f) * (b != nullptr ? *b : 1.0f);
  factor[1] = before;
}

template <class T>
__global__ void bias_kernel(std::int64_t n, const float* bias, T* out) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = from_float<T>(bias[i]);
}

__global__ void add_bias_kernel(std::int64_t n, std::int64_t columns, const float* bias, float* d) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) d[i] += bias[i % columns];
}

// Scales of 32 values of a row, from rows of 4-column groups into the tiles of 128 rows by 4 columns that Blackwell reads: within a tile,
// row r and column c are at (r % 32) * 16 + r / 32 * 4 + c. Source: cuBLASLt, VEC32_UE8M0, "1D block scaling factors layout".
__global__ void tile_scales_kernel(std::int64_t rows, std::int64_t columns, const std::uint8_t* in, std::uint8_t* out) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  const std::int64_t row = i / columns, column = i % columns, r = row % 128;
  out[(row / 128 * (columns / 4) + column / 4) * 512 + r % 32 * 16 + r / 32 * 4 + column % 4] = in[i];
}

unsigned blocks_for(std::int64_t n) { return unsigned(ceil_div(n, threads)); }

int alignment_of(std::initializer_list<const void*> addresses) {
  std::uintptr_t all = 256;
  for (const void* p : addresses) all |= reinterpret_cast<std::uintptr_t>(p);
  return int(all & -all);
}

void tile_scales(Queue queue, const Quantized& q, const Tensor& to) {
  const Shape s = q.descales.shape;
  tile_scales_kernel<<<blocks_for(s.count()), threads, 0, queue>>>(s[0], s[1], q.descales.u8(), to.u8());
  launched("tile_scales");
}

// Codes as they are, each with its scales; or values without.
void describe_codes(const Quantized& q, const Tensor& codes, const void* descales, DType& type, ops::GemmScale& scale, const void*& values,
                    const void*& scales) {
  type = codes.dtype, values = codes.data;
  if (!is_fp8(type)) return;
  scale = *ops::gemm_scale(q), scales = descales;
}

void decode(Queue queue, const Quantized& q, const ops::GemmReady& r) {
  if (r.decode) decode_operand(queue, q, r.descaled, r.values);
}

void make_factor(Queue queue, const ops::Gemm& g, const ops::GemmSpace& s) {
  if (!s.factor) return;
  const auto one = [](const Quantized& q, const ops::GemmReady& r) { return r.descaled ? nullptr : q.descales.f32(); };
  factor_kernel<<<1, 1, 0, queue>>>(one(g.a, s.a), one(g.b, s.b), g.accumulate && !s.sums ? 1.0f : 0.0f, s.factor.f32());
  launched("gemm factor");
}

// Octet's kernels for Hopper multiply blocks of 128, too.
OwnGemms own_kernels(Queue queue, const ops::Gemm& g, const ops::GemmForm& form) {
  using enum ops::GemmScale;
  const auto way = [&](bool (*kernel)(Queue, const ops::Gemm&)) {
    return [kernel, queue, &g, type = form.d, accumulate = form.accumulate, bias = form.biased ? g.bias : Tensor{}](void* d) {
      return kernel(queue, {.a = g.a, .b = g.b, .d = {d, g.d.shape, type}, .bias = bias, .accumulate = accumulate});
    };
  };
  if (form.a_scale != row_128) return {};
  if (form.b_scale == square_128) return {way(dense_1x128_128x128), way(dense_1x128_128x128_in_pairs)};
  if (form.b_scale == row_128) return {way(dense_1x128_1x128), way(dense_1x128_1x128_in_pairs)};
  return {};
}

// Parts of f32 operands. A product by bf16 is the sum of three, the smallest first, so that d is rounded to the sum of all.
bool multiply_parts(Queue queue, const ops::Gemm& g, const ops::GemmSpace& s, ops::GemmForm form, GemmOperands o, bool deterministic) {
  const bool a_split = g.a.codes.dtype == DType::f32, b_split = g.b.codes.dtype == DType::f32;
  form.a = form.b = DType::bf16;
  o.a = s.a.values.data, o.b = s.b.values.data;
  if (a_split && b_split) {
    split_f32_along_k(queue, g.a, true, s.a.values), split_f32_along_k(queue, g.b, false, s.b.values);
    form.K *= 6, form.alignment = alignment_of({o.a, o.b, o.d});
    return multiply(queue, form, o, {}, deterministic);
  }
  split_f32(queue, a_split ? g.a.codes : g.b.codes, a_split ? s.a.values : s.b.values);
  for (int part = 3; part-- > 0; form.accumulate = true) {
    const auto at = [part](const Tensor& parts) { return parts.rows(parts.shape[0] / 3 * part, parts.shape[0] / 3).data; };
    if (a_split) o.a = at(s.a.values);
    else o.b = at(s.b.values);
    form.alignment = alignment_of({o.a, o.b, o.d});
    if (multiply(queue, form, o, {}, deterministic)) continue;
    check(part == 2, "gemm: no kernel adds a part of {} x {} x {}", form.M, form.N, form.K);
    return false;
  }
  return true;
}

/// A form that the fast kernels refuse runs many times slower: one warning per form.
void say_general_kernel(std::int64_t M, std::int64_t N, std::int64_t K) {
  static std::mutex mutex;
  static std::set<std::array<std::int64_t, 3>> said;
  const std::lock_guard lock(mutex);
  if (said.insert({M, N, K}).second)
    log::warn("GEMM {} x {} x {}: no fast kernel takes it; the general one multiplies it, with the same result, slowly", M, N, K);
}

}  // namespace

void gemm(Queue queue, const ops::Gemm& g, const ops::GemmSpace& s, bool deterministic) {
  const std::int64_t M = g.d.shape[0], N = g.d.shape[1], K = g.a.cols();
  if (M == 0 || N == 0) return;
  if (K == 0) return plain_gemm(queue, g);
  if (s.way == ops::GemmWay::few_rows) return few_rows_gemm(queue, g);
  if (s.way == ops::GemmWay::promoted) {
    const bool square = ops::gemm_scale(g.b) == ops::GemmScale::square_128;
    if (square ? dense_1x128_128x128(queue, g) : dense_1x128_1x128(queue, g)) return;
    say_general_kernel(M, N, K);
    return plain_gemm(queue, g);
  }
  const Tensor& d = s.sums ? s.sums : g.d;
  ops::GemmForm form{.M = M,
                     .N = N,
                     .K = K,
                     .d = d.dtype,
                     .a_transposed = g.a.transposed,
                     .b_transposed = g.b.transposed,
                     .accumulate = g.accumulate && !s.sums,
                     .biased = bool(s.bias),
                     .factor = bool(s.factor),
                     .untimed = g.untimed};
  GemmOperands o{
      .d = d.data, .bias = s.bias.data, .factor = s.factor.f32(), .workspace = s.workspace.data, .workspace_bytes = s.workspace.bytes()};
  const bool tiled = s.way == ops::GemmWay::tiled, parts = s.way == ops::GemmWay::parts;
  if (tiled) tile_scales(queue, g.a, s.a_scales), tile_scales(queue, g.b, s.b_scales);
  decode(queue, g.a, s.a), decode(queue, g.b, s.b);
  make_factor(queue, g, s);
  describe_codes(g.a, s.a.values, tiled ? s.a_scales.data : g.a.descales.data, form.a, form.a_scale, o.a, o.a_scale);
  describe_codes(g.b, s.b.values, tiled ? s.b_scales.data : g.b.descales.data, form.b, form.b_scale, o.b, o.b_scale);
  form.fast = g.fast_accumulation && (form.a_scale == ops::GemmScale::tensor || form.a_scale == ops::GemmScale::row);
  form.alignment = alignment_of({o.a, o.b, o.d, o.a_scale, o.b_scale});
  if (s.bias) {
    dispatch<Bf16, Fp16>(s.bias.dtype, "gemm bias",
                         [&]<class T>() { bias_kernel<<<blocks_for(N), threads, 0, queue>>>(N, g.bias.f32(), s.bias.as<T>()); });
    launched("gemm bias");
  }
  if (parts ? !multiply_parts(queue, g, s, form, o, deterministic)
            : !multiply(queue, form, o, own_kernels(queue, g, form), deterministic)) {
    say_general_kernel(M, N, K);
    return plain_gemm(queue, g);
  }
  if (s.sums && g.accumulate) return add_sums(queue, s.sums, 1.0f, g.bias.f32(), g.d);
  if (s.sums) return round_sums(queue, s.sums, 1.0f, g.bias.f32(), g.d);
  if (g.bias && !s.bias) {
    add_bias_kernel<<<blocks_for(M * N), threads, 0, queue>>>(M * N, N, g.bias.f32(), g.d.f32());
    launched("gemm bias");
  }
}

std::string gemm_library() {
  const std::size_t v = cublaslt().version();
  return format("cuBLASLt {}.{}.{} on {}", v / 10000, v / 100 % 100, v % 100, facts().name);
}

}  // namespace octet::cuda
