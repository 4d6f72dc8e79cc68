#include "octet/nn/key_cache.hpp"

#include <numeric>

#include "octet/ops/columns/columns.hpp"
#include "octet/ops/key_cache/next_token.hpp"
#include "octet/ops/quantize/quantize.hpp"

namespace octet::nn {

KeyCache& no_cache() {
  static KeyCache it;
  return it;
}

ops::QkvShape shape_of_latents(std::int64_t rank, std::int64_t turned) {
  return {.heads = 1, .kv_heads = 1, .head_dim = turned, .sequence = 1, .value_width = rank};
}

class StoredKeys::Block {
 public:
  virtual ~Block() = default;
  virtual void keep(Stream&, const Latents&, ExpandLatents) {}
  virtual void attend(Stream&, const ops::RopeForward& turn, const ops::AttentionForward&, std::int64_t window, ops::Sink& o) = 0;
};

// Keys and values of all heads.
class StoredKeys::Heads final : public Block {
 public:
  explicit Heads(StoredKeys& of) : of_(of) {}

  void attend(Stream& stream, const ops::RopeForward& turn, const ops::AttentionForward& a, std::int64_t window, ops::Sink& o) override {
    const Config& c = of_.config_;
    if (!rows_) rows_ = ops::key_rows(stream, c.codes.value_or(a.qkv.dtype), c.sequences, a.heads, c.capacity, c.region);
    const Batch& b = of_.batch_;
    if (b.apart && !b.whole)
      return ops::next_token_attention(
          stream, {.qkv = a.qkv, .o = o, .heads = a.heads, .rows = *rows_, .at = b.at, .window = window, .table = turn.table});
    if (turn.table.cos) ops::rope_forward(stream, turn);
    ops::store_keys(stream, {.qkv = a.qkv, .heads = a.heads, .to = *rows_, .at = b.at, .read_back = b.whole});
    if (b.whole) ops::attention_forward(stream, a);
    else ops::cached_attention(stream, {.qkv = a.qkv, .o = a.o, .heads = a.heads, .from = *rows_, .at = b.at, .window = window});
    ops::quantize(stream, a.o, o);
  }

 private:
  StoredKeys& of_;
  std::optional<ops::KeyRows> rows_;
};

namespace {

// Their values in `dtype`.
Tensor decoded(Stream& stream, const Tensor& rows, const Tensor& descales, DType dtype) {
  if (!descales) return rows;
  const Tensor x = stream.empty(rows.shape, dtype == DType::f16 ? DType::f32 : dtype);
  ops::dequantize(stream, {.codes = rows, .descales = descales, .block = {1, 0}, .power_of_two = true}, x);
  if (x.dtype == dtype) return x;
  ops::Sink half = ops::make_sink(stream, {.format = dtype}, {.shape = x.shape, .dtype = dtype});
  ops::quantize(stream, x, half);
  return half.plain;
}

}  // namespace

// Rows of one head: see shape_of_latents(). Those without a token are zeros, so that expanding them is harmless.
class StoredKeys::OfLatents final : public Block {
 public:
  explicit OfLatents(StoredKeys& of) : of_(of) {}

  void keep(Stream& stream, const Latents& l, ExpandLatents expand) override {
    const ops::QkvShape shape = shape_of_latents(l.rank, l.turned);
    const Tensor& matrix = l.latent.of;
    if (!rows_.keys) allocate(stream, shape, matrix.dtype);
    expand_ = std::move(expand);
    const Scope scope(stream);
    const Tensor x = stream.empty({matrix.shape[0], shape.columns()}, matrix.dtype);
    const auto copied = [&](const ops::ColumnsOf& c, std::int64_t column, std::int64_t columns, bool back) {
      if (back) ops::copy_columns(stream, {x, column, c.of, c.first, columns});
      else ops::copy_columns(stream, {c.of, c.first, x, column, columns});
    };
    const auto both = [&](bool back) {
      copied(l.shared, shape.key_column(0), l.turned, back), copied(l.latent, shape.value_column(0), l.rank, back);
    };
    both(false);
    ops::store_keys(stream, {.qkv = x, .heads = shape, .to = rows_, .at = of_.batch_.at, .read_back = true});
    if (rows_.coded()) both(true);
  }

  // Latents are turned by their expansion, and queries with them.
  void attend(Stream& stream, const ops::RopeForward&, const ops::AttentionForward& a, std::int64_t window, ops::Sink& o) override {
    if (of_.batch_.whole) ops::attention_forward(stream, a);
    else attend_expanded(stream, a, window);
    ops::quantize(stream, a.o, o);
  }

 private:
  void attend_expanded(Stream& stream, const ops::AttentionForward& a, std::int64_t window) {
    const Batch& b = of_.batch_;
    const std::int64_t n = b.reach, sequences = of_.config_.sequences;
    ops::QkvShape heads = a.heads;
    heads.sequence = n;
    const ops::KeyRows expanded = ops::key_rows(stream, a.qkv.dtype, sequences, heads, n, Lifetime::scratch);
    for (std::int64_t s = 0; s < sequences; ++s) {
      const Scope scope(stream);
      const std::int64_t first = s * of_.config_.capacity;
      const auto values = [&](const Tensor& rows, const Tensor& descales) {
        return decoded(stream, rows.rows(first, n), descales ? descales.rows(first, n) : Tensor{}, a.qkv.dtype);
      };
      const Tensor shared = values(rows_.keys, rows_.key_descales), latent = values(rows_.values, rows_.value_descales),
                   qkv = stream.empty({n, heads.columns()}, a.qkv.dtype);
      expand_(stream, {.latent = {latent}, .shared = {shared}, .rank = latent.shape[1], .turned = shared.shape[1]}, qkv);
      const ops::TokenPlaces at{of_.all_.sequence.rows(first, n), of_.all_.place.rows(first, n)};
      ops::store_keys(stream, {.qkv = qkv, .heads = heads, .to = expanded, .at = at});
    }
    ops::cached_attention(stream, {.qkv = a.qkv, .o = a.o, .heads = a.heads, .from = expanded, .at = b.at, .window = window});
  }

  void allocate(Stream& stream, const ops::QkvShape& shape, DType dtype) {
    const Config& c = of_.config_;
    rows_ = ops::key_rows(stream, c.codes.value_or(dtype), c.sequences, shape, c.capacity, c.region);
    for (const Tensor& t : {rows_.keys, rows_.values, rows_.key_descales, rows_.value_descales})
      if (t) clear(stream, t);
    if (of_.all_.place) return;
    std::vector<std::int32_t> sequence, place;
    for (std::int64_t s = 0; s < c.sequences; ++s)
      for (std::int64_t p = 0; p < c.capacity; ++p) sequence.push_back(std::int32_t(s)), place.push_back(std::int32_t(p));
    const auto ints = [&](const std::vector<std::int32_t>& x) {
      const Tensor out = stream.empty({std::int64_t(x.size())}, DType::i32, c.region, Category::activations);
      upload(stream, x.data(), out);
      return out;
    };
    of_.all_ = {ints(sequence), ints(place)};
  }

  StoredKeys& of_;
  ops::KeyRows rows_;
  ExpandLatents expand_;
};

StoredKeys::StoredKeys(const Config& config) : config_(config) {}
StoredKeys::~StoredKeys() = default;

template <class Form>
StoredKeys::Block& StoredKeys::block(int number) {
  if (blocks_.size() <= std::size_t(number)) blocks_.resize(std::size_t(number) + 1);
  std::unique_ptr<Block>& out = blocks_[std::size_t(number)];
  if (!out) out = std::make_unique<Form>(*this);
  return *out;
}

void StoredKeys::keep(Stream& stream, int number, const Latents& latents, ExpandLatents expand) {
  block<OfLatents>(number).keep(stream, latents, std::move(expand));
}

void StoredKeys::attend(Stream& stream, int number, const ops::RopeForward& turn, const ops::AttentionForward& a, std::int64_t window,
                        ops::Sink& o) {
  check(!a.keys && (window > 0 || !a.document_starts), "stored keys: a batch has whole sequences without documents");
  block<Heads>(number).attend(stream, turn, a, window, o);
}

}  // namespace octet::nn
