#include "octet/ops/quantize/quantize.hpp"

#include <cstring>
#include <memory>

#include "octet/ops/quantize/batch.hpp"
#include "octet/ops/quantize/health.hpp"
#include "tests/cuda/sinks.hpp"

namespace octet::parity {
namespace {

struct Types {
  DType x, sink;
};

void add_cases(std::vector<Case>& cases, const Kind& kind, Types types, Shape shape, bool odd) {
  cases.push_back({format("quantize {} {} to {} {}{}", kind.name, types.x, types.sink, shape, odd ? " odd" : ""), [=](Side& side) {
                     const Tensor x = odd ? side.from(odd_values(shape.count()), shape, types.x) : side.gaussian(shape, 1, types.x, 3);
                     int i = 0;
                     for (Wanted want : every_orientation()) {
                       want.keep_plain = false, want.noise = want.noise && !odd;
                       SinkOnSide s(side, kind, shape, types.sink, want);
                       for (int again = 0; again < 2; ++again) ops::quantize(side.stream(), x, s.sink);  // counts add up
                       s.declare(side, format("{}", i++), false);
                     }
                   }});
}

// More matrices than one launch takes, of shapes that join and others, in every orientation.
void add_batch(std::vector<Case>& cases, const Kind& kind) {
  cases.push_back({format("quantize a batch {}", kind.name), [=](Side& side) {
                     std::vector<Tensor> values;
                     std::vector<std::unique_ptr<SinkOnSide>> sinks;
                     for (const Shape shape : {Shape{128, 128}, Shape{3, 7}, Shape{130, 264}, Shape{257, 129}, Shape{4096, 2304},
                                               Shape{384, 896}, Shape{8, 2312}, Shape{160, 136}})
                       for (Wanted want : every_orientation()) {
                         want.keep_plain = false, want.noise = want.noise && shape.count() < 10000;
                         values.push_back(side.gaussian(shape, values.size() + 1, DType::f32, 3));
                         sinks.push_back(std::make_unique<SinkOnSide>(side, kind, shape, DType::f32, want));
                       }
                     ops::QuantizeBatch batch(side.stream());
                     for (int again = 0; again < 2; ++again) {  // counts add up
                       for (std::size_t i = 0; i < sinks.size(); ++i) batch.add(Stored::plain(values[i]), sinks[i]->sink);
                       batch.run();
                     }
                     for (std::size_t i = 0; i < sinks.size(); ++i) sinks[i]->declare(side, format("{}", i), false);
                   }});
}

// FP16 codes of magnitudes below 2, and some of any kind, infinity and NaN among them.
void add_scaled(std::vector<Case>& cases, const Kind& kind, Shape shape) {
  cases.push_back({format("quantize {} f16 with a scale {}", kind.name, shape), [=](Side& side) {
                     std::vector<Fp16> codes;
                     for (std::int64_t i = 0; i < shape.count(); ++i) {
                       const std::uint32_t word = philox(17, std::uint64_t(i)).w[0];
                       codes.push_back({std::uint16_t(word % 61 == 0 ? word : word & 0xBFFF)});
                     }
                     const Stored x{.codes = side.raw(codes, shape), .scales = side.from({0x1p-19f, 0}, {2}), .storage = Storage::f16};
                     int i = 0;
                     for (Wanted want : every_orientation()) {
                       want.keep_plain = false, want.noise = false;
                       SinkOnSide s(side, kind, shape, DType::f32, want);
                       ops::quantize(side.stream(), x, s.sink);
                       s.declare(side, format("{}", i++), false);
                     }
                     for (const DType dtype : {DType::f32, DType::bf16}) {
                       ops::Sink plain =
                           ops::make_sink(side.stream(), {.format = dtype},
                                          {.shape = shape, .dtype = dtype, .rows_region = Lifetime::run, .cols_region = Lifetime::run});
                       ops::quantize(side.stream(), x, plain);
                       side.result(format("plain {}", dtype), plain.plain, same_bits());
                     }
                   }});
}

void add_decode(std::vector<Case>& cases, const Kind& kind, DType dtype, Shape shape) {
  cases.push_back({format("dequantize {} {} {}", kind.name, dtype, shape), [=](Side& side) {
                     SinkOnSide s(side, kind, shape, DType::bf16, {});
                     ops::quantize(side.stream(), side.gaussian(shape, 1, DType::bf16, 3), s.sink);
                     const Tensor rows = side.poisoned(shape, dtype), cols = side.poisoned({shape[1], shape[0]}, dtype);
                     ops::dequantize(side.stream(), s.sink.codes.rows, rows), ops::dequantize(side.stream(), s.sink.codes.cols, cols);
                     side.result("rows", rows, same_bits()), side.result("columns", cols, same_bits());
                   }});
}

// Every FP16 number but NaN, whose payload is the machine's choice; the middle between any two and its neighbours; rows with and without
// whole packs.
Case fp16(std::int64_t cols) {
  return {format("decode f16 in rows of {}", cols), [=](Side& side) {
            std::vector<Fp16> codes;
            std::vector<float> floats;
            for (std::uint32_t code = 0; code <= 0xFC00u; ++code) {
              if ((code & 0x7FFFu) > 0x7C00u) continue;
              codes.push_back({std::uint16_t(code)});
              const float low = to_float(codes.back()),
                          high = (code & 0x7FFFu) < 0x7BFFu ? to_float(Fp16{std::uint16_t(code + 1)}) : 65536.0f;
              if ((code & 0x7FFFu) < 0x7C00u)
                for (const std::uint32_t d : {0u, 1u, 2u})
                  floats.push_back(float_of(bits_of(0.5f * (low + std::copysign(high, low))) + d - 1));
            }
            for (const float x : {0.0f, -0.0f, 1e-30f, 1e-45f, 65519.0f, 65520.0f, -65521.0f, 3e38f, INFINITY, -INFINITY})
              floats.push_back(x);
            const auto whole = [&](auto& v) { v.resize(v.size() / std::size_t(cols) * std::size_t(cols)); };
            whole(codes), whole(floats);
            const Tensor x = side.raw(codes, {std::int64_t(codes.size()) / cols, cols}),
                         y = side.raw(floats, {std::int64_t(floats.size()) / cols, cols});
            ops::Sink wide = ops::make_sink(side.stream(), {.format = DType::f32}, {.shape = x.shape, .dtype = DType::f32}),
                      narrow = ops::make_sink(side.stream(), {.format = DType::f16}, {.shape = y.shape, .dtype = DType::f16});
            ops::quantize(side.stream(), x, wide), ops::quantize(side.stream(), y, narrow);
            side.result("f32", wide.plain, same_bits()), side.result("f16", narrow.plain, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const Shape shape : {Shape{0, 8}, Shape{8, 0}, Shape{1, 1}, Shape{3, 7}, Shape{1, 4096}, Shape{8, 2312}, Shape{128, 128},
                            Shape{130, 264}, Shape{257, 129}, Shape{160, 136}, Shape{384, 896}})
    for (const Types types :
         {Types{DType::bf16, DType::bf16}, Types{DType::f32, DType::bf16}, Types{DType::f32, DType::f32}, Types{DType::bf16, DType::f32}})
      for (const Kind& kind : kinds(types.sink)) {
        if (!kind.spec.quantizes() && types.x == types.sink && shape.count() > 1000) continue;
        for (const bool odd : {false, true})
          if (!odd || kind.spec.quantizes()) add_cases(cases, kind, types, shape, odd);
        if (kind.spec.quantizes() && types.x == types.sink && shape.count() > 0) add_decode(cases, kind, types.x, shape);
      }
  for (const Shape shape : {Shape{0, 8}, Shape{3, 7}, Shape{130, 264}, Shape{257, 129}, Shape{384, 896}})
    for (const Kind& kind : kinds(DType::f32))
      if (kind.spec.quantizes()) add_scaled(cases, kind, shape);
  for (const Kind& kind : kinds(DType::f32))
    if (kind.spec.quantizes()) add_batch(cases, kind);
  for (const std::int64_t cols : {1, 8, 1024, 77}) cases.push_back(fp16(cols));
  for (const int n : {0, 1, 33, 1000})
    cases.push_back({format("count_nonfinite {}", n), [=](Side& side) {
                       std::vector<std::uint8_t> bytes(sizeof(ops::QuantizeHealth) * std::size_t(n));
                       for (int i = 0; i < n; ++i) {
                         ops::QuantizeHealth h;
                         h.nonfinite = i % 5 * 1000000007LL;
                         std::memcpy(bytes.data() + sizeof h * std::size_t(i), &h, sizeof h);
                       }
                       const Tensor table = side.raw(bytes, {std::int64_t(bytes.size())}), total = side.poisoned({1}, DType::i64);
                       ops::count_nonfinite(side.stream(), table.as<ops::QuantizeHealth>(), n, total);
                       side.result("total", total, same_bits());
                     }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
