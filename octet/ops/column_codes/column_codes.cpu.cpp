#include "octet/ops/column_codes/column_codes.kernels.hpp"
#include "octet/ops/quantize/cpu/report.hpp"
#include "octet/ops/quantize/quantize.math.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

using Partial = TileQuantizer::Partial;

// One per thread.
struct Partials {
  int count = threads();
  Partial* all = static_cast<Partial*>(std::aligned_alloc(alignof(Partial), sizeof(Partial) * std::size_t(count)));
  Partials() {
    for (int i = 0; i < count; ++i) all[i] = Partial{};
  }
  ~Partials() { std::free(all); }
  Partials(const Partials&) = delete;
  Partials& operator=(const Partials&) = delete;
};

float widened(float x) { return x; }
float widened(Bf16 x) { return to_float(x); }

// f(group, its number, its first column) for groups with columns.
template <class F>
void each_group(const ops::ColumnGroups& groups, const F& f) {
  std::int64_t first = 0;
  for (std::size_t g = 0; g < groups.size(); first += groups[g++].columns)
    if (groups[g].columns > 0) f(groups[g], g, first);
}

template <class F>
void with_format(DType format, const F& f) {
  if (format == DType::e5m2) f.template operator()<E5M2>();
  else f.template operator()<E4M3>();
}

// f(row, thread's partial) for all rows; all partials joined.
template <class F>
Partial over_rows(const Tensor& x, std::int64_t columns, const F& f) {
  const Partials partials;
  for_each(x.shape[0], columns * std::int64_t(size_of(x.dtype)), [&](std::int64_t t) { f(t, partials.all[this_thread()]); });
  Partial sum;
  for (int i = 0; i < partials.count; ++i) merge(sum, partials.all[i]);
  return sum;
}

template <class Format>
void see(float x, float scale, float descale, std::uint8_t code, const ops::QuantizeSpec& spec, Partial& p) {
  ops::HealthCounts<float> n;
  ops::count_health<Format>(x, scale, std::int32_t(code), n);
  p.saturated += n.saturated, p.flushed += n.flushed, p.nonfinite += n.nonfinite;
  if (!spec.measure_noise || n.nonfinite > 0) return;
  const double error = double(x) - double(decode<Format>(code)) * double(descale);
  p.signal += double(x) * double(x), p.noise += error * error;
}

}  // namespace

void column_maxima(const Tensor& x, const ops::ColumnGroups& groups, const Tensor& maxima) {
  each_group(groups, [&](const ops::ColumnGroup& group, std::size_t g, std::int64_t first) {
    dispatch<float, Bf16>(x.dtype, "column codes", [&]<class T>() {
      maxima.f32()[g] = over_rows(x, group.columns, [&](std::int64_t t, Partial& p) {
                          const T* const row = x.as<T>() + t * x.shape[1] + first;
                          for (std::int64_t c = 0; c < group.columns; ++c) p.amax = larger(magnitude(widened(row[c])), p.amax);
                        }).amax;
    });
  });
}

void encode_columns(const Tensor& x, const ops::ColumnGroups& groups, const Tensor& codes) {
  each_group(groups, [&](const ops::ColumnGroup& group, std::size_t, std::int64_t first) {
    const float scale = *group.spec.scale.f32(), descale = *group.spec.descale.f32();
    const bool sees = group.spec.health != nullptr;
    const auto run = [&]<class T, class Format>() {
      return over_rows(x, group.columns, [&](std::int64_t t, Partial& p) {
        const T* const from = x.as<T>() + t * x.shape[1] + first;
        std::uint8_t* const to = codes.u8() + t * x.shape[1] + first;
        for (std::int64_t c = 0; c < group.columns; ++c) {
          const float value = widened(from[c]);
          to[c] = encode<Format>(value * scale);
          p.amax = larger(magnitude(value), p.amax);
          if (sees) see<Format>(value, scale, descale, to[c], group.spec, p);
        }
      });
    };
    Partial all;
    dispatch<float, Bf16>(x.dtype, "column codes", [&]<class T>() {
      with_format(codes.dtype, [&]<class Format>() { all = run.template operator()<T, Format>(); });
    });
    all.scale_min = all.scale_max = scale;
    report(group.spec, all, x.shape[0] * group.columns);
  });
}

void decode_columns(const Tensor& codes, const ops::ColumnGroups& groups, const Tensor& x) {
  each_group(groups, [&](const ops::ColumnGroup& group, std::size_t, std::int64_t first) {
    const float descale = *group.spec.descale.f32();
    dispatch<float, Bf16>(x.dtype, "column codes", [&]<class T>() {
      with_format(codes.dtype, [&]<class Format>() {
        for_each(x.shape[0], group.columns * std::int64_t(size_of(x.dtype)), [&](std::int64_t t) {
          const std::uint8_t* const from = codes.u8() + t * x.shape[1] + first;
          T* const to = x.as<T>() + t * x.shape[1] + first;
          for (std::int64_t c = 0; c < group.columns; ++c) to[c] = from_float<T>(decode<Format>(from[c]) * descale);
        });
      });
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
