#include "octet/train/step/upload.hpp"

#include "octet/data/ahead.hpp"

namespace octet::train {
namespace {

// The own rows of `values`, which has batch.length per sequence.
Tensor own_rows(Stream& stream, const data::Batch& batch, const std::vector<std::int32_t>& values, const SequencePart& part,
                std::int64_t own, Region region) {
  const Tensor out = stream.empty({batch.rows * own}, DType::i32, region, Category::activations);
  if (stream.device() == Device::null) return out;
  if (!part) return octet::upload(stream, values.data(), out), out;
  const std::int64_t segment = own / 2;
  for (std::int64_t row = 0; row < batch.rows; ++row)
    for (const std::int64_t first : {std::int64_t(0), segment})
      octet::upload(stream, values.data() + row * batch.length + part.place(first, own), out.rows(row * own + first, segment));
  return out;
}

// Entries of pairs, which are the same on all members.
template <class T>
Tensor entries(Stream& stream, const std::vector<T>& values, std::int64_t count, std::int64_t each, DType dtype, Region region) {
  if (count == 0) return {};
  const Tensor out = stream.empty({count, each}, dtype, region, Category::activations);
  if (stream.device() != Device::null) octet::upload(stream, values.data(), out);
  return out;
}

}  // namespace

models::TokenBatch upload(Stream& stream, const data::Batch& batch, Region region, const SequenceMember& m, std::int64_t ahead) {
  const auto [member, members] = m;
  const SequencePart part = SequencePart::of_member(batch.length, member, members);
  const std::int64_t own = batch.length / members;
  check(members == 1 || batch.length % (2 * members) == 0, "upload: {} members share sequences of {} tokens", members, batch.length);
  const auto rows = [&](const std::vector<std::int32_t>& values) { return own_rows(stream, batch, values, part, own, region); };
  const Tensor tokens = rows(batch.inputs), targets = rows(batch.targets);
  models::TokenBatch out{tokens, targets, own, batch.document_mask ? rows(batch.document_starts) : Tensor{}, part};
  const std::int64_t count = batch.rows * batch.pairs.per_row;
  out.pairs = entries(stream, batch.pairs.places, count, 4, DType::i32, region);
  out.references = entries(stream, batch.pairs.references, count, 2, DType::f64, region);
  for (std::int64_t depth = 1; depth <= ahead; ++depth) {
    const data::Ahead further = stream.device() == Device::null ? data::Ahead{} : data::ahead_of(batch, depth);
    out.ahead.push_back({rows(further.inputs), rows(further.targets)});
  }
  return out;
}

}  // namespace octet::train
