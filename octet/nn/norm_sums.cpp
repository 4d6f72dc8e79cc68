#include "octet/nn/norm_sums.hpp"

#include "octet/nn/saved_activation.hpp"
#include "octet/ops/norm_parts/norm_parts.hpp"

namespace octet::nn {
namespace {

class SumsOfMembers final : public NormSums {
 public:
  explicit SumsOfMembers(Partition& p) : partition_(p) {}

  OfRows statistics(Stream& stream, const std::array<Rows, 2>& of, Region region) const override {
    const OfRows sums = room(stream, of[0].x, region);
    for (std::size_t i = 0; i < of.size(); ++i)
      ops::norm_squares(stream, {.x = of[i].x, .columns = own_columns(of[i].norm), .sums = sums[i]});
    join(stream, sums);
    for (std::size_t i = 0; i < of.size(); ++i)
      ops::norm_factors(stream, {.sums = sums[i], .columns = all_columns(of[i].norm), .eps = of[i].norm.eps()});
    return sums;
  }

  OfRows means(Stream& stream, const std::array<Gradients, 2>& of) const override {
    const OfRows sums = room(stream, of[0].dy, Lifetime::scratch);
    for (std::size_t i = 0; i < of.size(); ++i) {
      const Scope scope(stream);
      const RmsNorm& norm = of[i].norm;
      ops::norm_products(stream, {.dy = of[i].dy,
                                  .x = {values_of(stream, of[i].saved.x)},
                                  .w = norm.weight.value.values(),
                                  .inv_rms = of[i].saved.inv_rms,
                                  .sums = sums[i],
                                  .offset = norm.offset()});
    }
    join(stream, sums);
    for (std::size_t i = 0; i < of.size(); ++i) ops::norm_means(stream, {.sums = sums[i], .columns = all_columns(of[i].norm)});
    return sums;
  }

 private:
  static std::int64_t own_columns(const RmsNorm& norm) { return norm.weight.shape[0]; }
  // As many of each member: copies are counted as often as they are added.
  std::int64_t all_columns(const RmsNorm& norm) const { return own_columns(norm) * partition_.members(); }

  // Neighbours, so that one sum over members has both.
  static OfRows room(Stream& stream, const ops::ColumnsOf& of, Region region) {
    const std::int64_t rows = of.of.shape[0];
    const Tensor both = stream.empty({2 * rows}, DType::f32, region, Category::activations);
    return {both.rows(0, rows), both.rows(rows, rows)};
  }
  void join(Stream& stream, const OfRows& sums) const {
    partition_.sum(stream, {sums[0].data, {sums[0].count() + sums[1].count()}, DType::f32});
  }

  Partition& partition_;
};

}  // namespace

std::unique_ptr<NormSums> norm_sums_of(Partition& p) {
  if (!p.divides()) return std::make_unique<NormSums>();
  return std::make_unique<SumsOfMembers>(p);
}

}  // namespace octet::nn
