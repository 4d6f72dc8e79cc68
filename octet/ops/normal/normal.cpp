#include "octet/ops/normal/normal.kernels.hpp"
#include "octet/ops/stored/stored.hpp"

namespace octet::ops {
namespace {

Tensor positions_of(Stream& stream, std::vector<CutPiece> pieces) {
  pieces.push_back(end_of_places);
  const Tensor out = stream.empty({std::int64_t(pieces.size()), 4}, DType::i64, Lifetime::scratch, Category::workspace);
  upload(stream, pieces.data(), out);
  return out;
}

}  // namespace

void fill_normal(Stream& stream, std::uint64_t key, double deviation, const Tensor& x, std::int64_t first) {
  check(x.dtype == DType::f32 || x.dtype == DType::bf16, "fill_normal: wants f32 or bf16, got {}", x.dtype);
  check(first >= 0 && first % 4 == 0, "fill_normal: a slice begins at a multiple of 4, got {}", first);
  stream.count({.ops = 1, .bytes = double(x.bytes())});
  OCTET_LAUNCH(stream, fill_normal, key, float(deviation), x, first);
}

void fill_normal(Stream& stream, std::uint64_t key, double deviation, const StoredSlice& x) {
  const Stored& out = x.stored;
  check_stored("fill_normal", out);
  check((x.first % storage_block == 0 || out.count() == 0) && x.first >= 0 && x.first + out.count() <= x.whole.count(),
        "fill_normal: a slice begins at a multiple of {} and is within {}, got {} from {}", storage_block, x.whole, out.shape(), x.first);
  const bool twice = scales_tensor(out.storage), cut = x.cut != nullptr && *x.cut;
  if (!twice && !cut && !scales_blocks(out.storage)) return fill_normal(stream, key, deviation, out.codes, x.first);
  stream.count({.ops = 1, .bytes = double(out.bytes())});
  if (out.count() == 0 && !twice) return;  // scalars of a tensor there are in any case
  const Scope scope(stream);
  const Tensor maximum = twice ? stream.zeros({1}, DType::f32, Lifetime::scratch, Category::workspace) : Tensor{};
  const Tensor places = positions_of(stream, cut ? x.cut->pieces : Cut::copied(x.whole, 1, true).pieces);
  OCTET_LAUNCH(stream, fill_stored_normal,
               {.key = key, .deviation = float(deviation), .out = x, .maximum = maximum, .places = {places.as<CutPiece>()}});
}

}  // namespace octet::ops
