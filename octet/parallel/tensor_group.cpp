#include "octet/parallel/tensor_group.hpp"

#include <algorithm>

namespace octet::parallel {
namespace {

Tensor flat(const Tensor& x) { return x.reshaped({x.count()}); }

}  // namespace

void TensorGroup::gather(Stream& stream, const Tensor& own, const Tensor& all) { ranks_.all_gather(stream, flat(own), flat(all)); }

void TensorGroup::reduce(Stream& stream, const Tensor& partial, const Tensor& own) {
  if (wire_ == TensorWire::activations) return reduce_exactly(stream, partial, own);
  EightBitSum(ranks_).reduce_scatter(stream, flat(partial), Stored::plain(flat(own)));
}

void TensorGroup::reduce_exactly(Stream& stream, const Tensor& partial, const Tensor& own) {
  ranks_.reduce_scatter(stream, flat(partial), flat(own), comm::Reduction::sum);
}

void TensorGroup::max(Stream& stream, const Tensor& x) { ranks_.all_reduce(stream, x, comm::Reduction::max); }
void TensorGroup::sum(Stream& stream, const Tensor& x) { ranks_.all_reduce(stream, x, comm::Reduction::sum); }

std::unique_ptr<nn::Partition> partition_of(comm::Communicator& ranks, TensorWire wire) {
  if (ranks.size() == 1) return std::make_unique<nn::WholePartition>();
  return std::make_unique<TensorGroup>(ranks, wire);
}

namespace {

// Of each rank in turn: the numbers of its pieces.
std::vector<std::vector<CutPiece>> pieces_of_all(Stream& stream, comm::Communicator& group, const Cut& cut) {
  constexpr std::size_t most = 4, numbers = 4;
  check(cut.pieces.size() <= most, "a part of a parameter has at most {} pieces, got {}", most, cut.pieces.size());
  std::vector<double> own(most * numbers, 0);
  for (std::size_t i = 0; i < cut.pieces.size(); ++i) {
    const CutPiece& p = cut.pieces[i];
    const double values[numbers] = {double(p.count), double(p.first), double(p.run), double(p.stride)};
    std::copy_n(values, numbers, own.begin() + std::ptrdiff_t(i * numbers));
  }
  const std::vector<double> all = gathered(stream, group, own);
  std::vector<std::vector<CutPiece>> out(std::size_t(group.size()));
  for (std::size_t r = 0; r < out.size(); ++r)
    for (std::size_t i = 0; i < most; ++i) {
      const double* const n = all.data() + (r * most + i) * numbers;
      if (n[0] > 0) out[r].push_back({std::int64_t(n[0]), std::int64_t(n[1]), std::int64_t(n[2]), std::int64_t(n[3])});
    }
  return out;
}

}  // namespace

std::vector<float> TensorGroup::whole_values(Stream& stream, const Cut& cut, std::span<const float> own) {
  if (!cut) return {own.begin(), own.end()};
  const auto pieces = pieces_of_all(stream, ranks_, cut);
  std::vector<float> all(own.size() * pieces.size()), out(std::size_t(cut.whole.count()));
  gather_parts(stream, ranks_, own, all.data());
  for (std::size_t r = pieces.size(); r-- > 0;)
    each_run(pieces[r], [&](std::int64_t begin, std::int64_t place, std::int64_t n) {
      std::copy_n(all.data() + r * own.size() + std::size_t(begin), n, out.data() + place);
    });
  return out;
}

}  // namespace octet::parallel
