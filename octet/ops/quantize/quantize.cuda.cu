#include <span>

#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/ops/quantize/cuda/few_rows.cuh"
#include "octet/ops/quantize/cuda/tile_batch.cuh"

namespace octet::cuda {
namespace {

bool aligned_to(const void* p, std::uintptr_t bytes) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; }

float overflow_of(const ops::Sink& sink, const Quantized& q) {
  return q.block.whole_tensor() || sink.dtype == DType::f32 ? 0x1.fffffep127f : 0x1.fep127f;
}

/// Positions of the blocks' descales, with the layout's padding.
void set_layout(Side& s, const Quantized& q) {
  const auto stride = descale_stride(q.block, q.descales.dtype, q.rows(), q.cols());
  s.line_stride = stride.row_block, s.block_stride = stride.col_block;
  s.lines = ceil_div(q.rows(), q.block.rows), s.blocks = ceil_div(q.cols(), q.block.cols);
  const bool by_block = stride.row_block == 1 && q.descales.dtype == DType::f32 && q.block.rows == 1;  // blocks of K first
  s.stored_lines = q.descales.shape[by_block ? 1 : 0], s.stored_blocks = q.descales.shape[by_block ? 0 : 1];
}

Side first_side(const ops::Sink& sink, const Quantized& q, float* line_tops, bool counts) {
  Side s;
  if (!q) return s;
  s.counts = counts, s.e8m0 = q.descales.dtype == DType::e8m0, s.overflow = overflow_of(sink, q);
  s.codes = q.codes.u8(), s.descales = q.descales.data, s.lines = q.rows();
  if (sink.spec.scale_known()) {
    s.part = Part::constant, s.scale = sink.spec.scale.f32();
  } else if (q.block.whole_tensor()) {
    s.part = Part::top_of_tensor, s.tops = sink.maxima.f32();
  } else if (q.block.whole_rows()) {
    s.part = Part::top_of_lines, s.tops = line_tops;
  } else {
    s.part = q.block.rows > 1 ? Part::square : Part::blocks, s.shift = q.block.cols == 32 ? 5 : q.block.cols == 64 ? 6 : 7;
    set_layout(s, q);
  }
  return s;
}

/// The work of the second pass.
Side second_side(Side s) {
  if (s.part != Part::top_of_tensor && s.part != Part::top_of_lines) return {};
  const bool tensor = s.part == Part::top_of_tensor;
  s.part = tensor ? Part::constant : Part::lines, (tensor ? s.top : s.scale) = s.tops, s.tops = nullptr;
  return s;
}

TileJob job_of(const ops::Sink& sink) {
  const ops::QuantizeSpec& spec = sink.spec;
  TileJob job{.rows = sink.shape[0], .cols = sink.shape[1]};
  if (!spec.quantizes()) return job;
  job.e5m2 = spec.format == DType::e5m2, job.rule = spec.rule, job.format_max = format_max(spec.format);
  job.health = spec.health, job.descale = spec.descale.f32(), job.amax = spec.amax.f32();
  job.count = spec.health != nullptr && spec.count, job.noise = spec.health != nullptr && spec.measure_noise;
  const Quantized &rows = sink.codes.rows, &cols = sink.codes.cols;
  check(!sink.waits() || bool(sink.maxima), "quantize: the sink has no place for maxima; make_sink allocates it");
  float* const row_tops = sink.maxima.f32() + 1;
  job.row = first_side(sink, rows, row_tops, true);
  job.col = first_side(sink, cols, row_tops + (rows && rows.block.whole_rows() ? job.rows : 0), !rows);
  return job;
}

/// Properties derived from the sides of a pass.
TileJob completed(TileJob job) {
  job.same = job.row.part == job.col.part && (job.row.part == Part::constant || job.row.part == Part::square);
  job.wide_columns = job.rows % 16 == 0 && aligned_to(job.col.codes, 16);
  return job;
}

/// tops[i], the maximum of a line, becomes the scale that Side::scale describes.
__global__ void scales_kernel(std::int64_t n, BlockRule rule, float* tops, bool e8m0, void* descales) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float amax = tops[i];
  const auto s = block_scale(amax, rule);
  if (e8m0) static_cast<std::uint8_t*>(descales)[i] = std::uint8_t(s.code);
  else static_cast<float*>(descales)[i] = s.descale;
  tops[i] = amax * s.scale <= rule.format_max ? s.scale : -s.scale;
}

void find_scales_of_lines(Queue queue, const TileJob& job, const Side& side, std::int64_t n) {
  if (side.part != Part::top_of_lines || n == 0) return;
  scales_kernel<<<unsigned(ceil_div(n, 256)), 256, 0, queue>>>(
      n, {.rule = job.rule, .format_max = job.format_max, .overflow = side.overflow}, side.tops, side.e8m0, side.descales);
  launched("scales_kernel");
}

TileJob second_job(TileJob job) {
  job.row = second_side(job.row), job.col = second_side(job.col), job.amax = nullptr, job.last_first = true;
  return completed(job);
}

/// Maxima of several tensors.
struct MaximaBatch {
  int number = 0;
  float* of[TileBatch::most];
};
__global__ void clear_batch_kernel(const __grid_constant__ MaximaBatch all) {
  if (int(threadIdx.x) < all.number) *all.of[threadIdx.x] = 0;
}

/// A producer of FP16 in memory, times *factor, a power of two.
struct ScaledHalves {
  static constexpr int outputs = 1;
  const Fp16* values;
  const float* factor;
  int cols;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    out[0] = load<N>(row_of(values, row, cols), col) * __ldg(factor);
  }
};

/// f<T>(a producer of values in memory, rounded to T, which is the type of a sink).
template <class F>
void with_stored(const Tensor& values, DType to, const F& f) {
  const auto run = [&]<class From, class T>() { f.template operator()<T>(Stored<From, T>{values.as<From>(), int(values.shape[1])}); };
  if (values.dtype == DType::bf16) run.template operator()<Bf16, Bf16>();
  else if (to == DType::bf16) run.template operator()<float, Bf16>();
  else run.template operator()<float, float>();
}

/// Encodes values in memory. `descale`: the factor of FP16 values.
void run_stored(Queue queue, const TileJob& job, const Tensor& values, DType to, const Tensor& descale) {
  const bool aligned = packs_of_eight(values) && aligned_to(job.row.codes, 8);
  if (values.dtype == DType::f16)
    return run_tiles<float>(queue, job, ScaledHalves{values.as<Fp16>(), descale.f32(), int(job.cols)}, aligned);
  with_stored(values, to, [&]<class T>(const auto& make) { run_tiles<T>(queue, job, make, aligned); });
}

}  // namespace

TileJob few_rows_job(const ops::Sink& sink) { return completed(job_of(sink)); }

TileJob first_job(Queue queue, const ops::Sink& sink) {
  if (sink.waits()) clear(queue, sink.maxima.data, sink.maxima.bytes());
  return completed(job_of(sink));
}

void encode_waiting(Queue queue, const ops::Sink& sink, const Tensor& values, const Tensor& descale) {
  if (!sink.waits()) return;
  const TileJob job = job_of(sink);
  find_scales_of_lines(queue, job, job.row, job.rows), find_scales_of_lines(queue, job, job.col, job.cols);
  run_stored(queue, second_job(job), values, sink.dtype, descale);
}

void quantize(Queue queue, const Tensor& x, const ops::Sink& sink, const Tensor& descale) {
  if (x.dtype != DType::f16 && sink.spec.quantizes() && packs_of_eight(x) && takes_few_rows(sink) &&
      aligned_to(sink.codes.rows.codes.data, 8))
    return with_stored(x, sink.dtype, [&]<class T>(const auto& make) { fill_few_rows<T>(queue, few_rows_job(sink), make); });
  run_stored(queue, first_job(queue, sink), x, sink.dtype, descale);
  encode_waiting(queue, sink, x, descale);
}

namespace {

/// Whether a matrix has so few tiles that its kernel would hardly be under way when it ends.
bool joins(const Tensor& x, const ops::Sink& sink) {
  const std::int64_t tiles = ceil_div(x.shape[0], tile_side) * ceil_div(x.shape[1], tile_side);
  const TileJob job = job_of(sink);
  return tiles > 0 && tiles <= 512 && packs_of_eight(x) && aligned_to(job.row.codes, 8) && !takes_few_rows(sink) &&
         job.row.part != Part::top_of_lines && job.col.part != Part::top_of_lines;
}

void quantize_together(Queue queue, std::span<const ops::QuantizeBatch::Item* const> items) {
  TileBatch first, second;
  MaximaBatch maxima;
  for (const ops::QuantizeBatch::Item* const item : items) {
    const TileJob job = job_of(item->sink);
    first.add(completed(job), item->x.f32());
    if (!item->sink.waits()) continue;
    maxima.of[maxima.number++] = item->sink.maxima.f32();
    second.add(second_job(job), item->x.f32());
  }
  if (maxima.number > 0) clear_batch_kernel<<<1, TileBatch::most, 0, queue>>>(maxima), launched("clear_batch_kernel");
  run_batch(queue, first), run_batch(queue, second);
}

}  // namespace

void quantize_batch(Queue queue, const std::vector<ops::QuantizeBatch::Item>& items) {
  std::vector<const ops::QuantizeBatch::Item*> together;
  for (const ops::QuantizeBatch::Item& item : items) {
    if (joins(item.x, item.sink)) together.push_back(&item);
    else quantize(queue, item.x, item.sink, {});
  }
  for (std::span<const ops::QuantizeBatch::Item* const> rest = together; !rest.empty();) {
    const std::size_t n = std::min(rest.size(), std::size_t(TileBatch::most));
    quantize_together(queue, rest.first(n));
    rest = rest.subspan(n);
  }
}

}  // namespace octet::cuda
