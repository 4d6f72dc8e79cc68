#include "octet/train/step/decoder.hpp"

#include <algorithm>
#include <numeric>

#include "octet/base/text.hpp"
#include "octet/machine/machine.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/most_likely/most_likely.hpp"

namespace octet::train {
namespace {

using Text = std::span<const std::int32_t>;
using Row = std::vector<float>;

constexpr Region memory{Lifetime::step, 1};  // apart from batches of evaluations

// Rows that are computed together: of equal numbers on ranks that divide each layer, in whole blocks of values if these travel in 8 bits.
std::int64_t rows_of_ranks(Engine& e) {
  const std::int64_t members = e.partition().members();
  return members == 1 ? 1 : members * storage_block / std::gcd(storage_block, e.model->shape().width);
}

// A GPU multiplies 8-bit codes as they are in 16 rows, and builds its kernels of attention in 8 bits for every length.
std::int64_t rows_together(Engine& e) {
  const std::int64_t on_gpu = e.precision.codes_attention() ? 128 : 16;
  return e.stream.apart_from_host() ? std::lcm(rows_of_ranks(e), on_gpu) : rows_of_ranks(e);
}

// So many rows for a token of each of so many texts. A GPU multiplies few of them as they are.
std::int64_t rows_of_step(Engine& e, std::int64_t texts) {
  const std::int64_t few = round_up(texts, rows_of_ranks(e));
  return few <= ops::few_rows ? few : round_up(texts, rows_together(e));
}

// So many rows for `own` tokens of one sequence. The model has tables for its longest one.
std::int64_t rows_for(Engine& e, std::int64_t own) {
  const std::int64_t together = round_up(own, rows_together(e));
  return e.partition().divides() || together <= e.longest_sequence ? together : own;
}

Tensor logits_tensor(Engine& e, std::int64_t rows, Region region) {
  return e.stream.empty({rows, e.model->shape().padded_vocabulary()}, e.precision.activations(), region, Category::activations);
}

// Results of a text's logits: these, or the most likely token.
struct OfLogits {
  using Result = Row;
  static constexpr std::int64_t form = 0;  // of recordings
  static Row none() { return {}; }

  static void find(Engine&, const Tensor& /*logits*/, const Tensor& /*ids*/) {}
  // Of the first n rows, without the padding of the vocabulary.
  static std::vector<Row> read(Engine& e, const Tensor& logits, const Tensor&, std::int64_t n) {
    std::vector<Row> out;
    for (std::int64_t row = 0; row < n; ++row) {
      out.emplace_back(std::size_t(logits.shape[1]));
      get_values(e.stream, logits.rows(row, 1), out.back().data());
      out.back().resize(std::size_t(e.model->shape().vocabulary));
    }
    return out;
  }
};
struct OfMostLikely {
  using Result = std::int32_t;
  static constexpr std::int64_t form = 1;
  static std::int32_t none() { return -1; }

  static void find(Engine& e, const Tensor& logits, const Tensor& ids) {
    ops::most_likely(e.stream, {.logits = logits, .vocabulary = e.model->shape().vocabulary, .ids = ids});
  }
  static std::vector<std::int32_t> read(Engine& e, const Tensor&, const Tensor& ids, std::int64_t n) {
    std::vector<std::int32_t> out(std::size_t(n), 0);
    download(e.stream, ids.rows(0, n), out.data());
    return out;
  }
};

// Where the window of a text begins that began at `begin`.
std::size_t next_begin(Text text, std::size_t begin, std::int64_t longest) {
  if (begin < text.size() && std::int64_t(text.size() - begin) <= longest) return begin;
  if (std::int64_t(text.size()) <= longest) return 0;
  return text.size() - std::size_t(std::max<std::int64_t>(longest / 2, 1));
}

class StoringDecoder final : public Decoder {
 public:
  StoringDecoder(Engine& e, const Config& c)
      : e_(e),
        config_(c),
        scope_(e.stream, memory),
        keys_({.sequences = c.texts, .capacity = c.longest, .codes = c.codes, .region = memory}),
        texts_(std::size_t(c.texts)),
        step_(make_step(rows_of_step(e, c.texts), memory)) {
    recordings_.allow(!e.axes.divides_experts());  // the host reads how many rows come
  }

  std::vector<Row> logits(std::span<const Text> texts) override { return after<OfLogits>(texts); }
  std::vector<std::int32_t> most_likely(std::span<const Text> texts) override { return after<OfMostLikely>(texts); }

  // The memory of calls, on a device that has none: of a token of each text, which has read all others of the longest texts.
  void reserve() { run(step_, 1, 1, false, config_.longest); }

 private:
  struct Stored {
    std::size_t begin = 0;               // where the window begins in its text
    std::vector<std::int32_t> ids = {};  // of the window, whose keys are stored
  };
  struct Token {
    std::int32_t id, sequence, place;
  };
  // Tokens of a forward, which are uploaded at once, and the logits that it makes.
  struct Step {
    Tensor inputs;  // i32 [3, n]: ids, sequences and places
    Tensor logits;
    Tensor likely;  // i32 [n]: the most likely ids

    Tensor tokens() const { return row(0); }
    ops::TokenPlaces at() const { return {row(1), row(2)}; }
    /// The first n tokens.
    Step first(std::int64_t n) const {
      return {.inputs = inputs.reshaped({inputs.count()}).rows(0, 3 * n).reshaped({3, n}),
              .logits = logits.rows(0, n),
              .likely = likely.rows(0, n)};
    }

   private:
    Tensor row(std::int64_t i) const { return inputs.rows(i, 1).reshaped({inputs.shape[1]}); }
  };

  Step make_step(std::int64_t rows, Region region, std::int64_t last = 0) {
    const std::int64_t wanted = last > 0 ? last : rows;
    return {.inputs = e_.stream.empty({3, rows}, DType::i32, region, Category::activations),
            .logits = logits_tensor(e_, wanted, region),
            .likely = e_.stream.empty({wanted}, DType::i32, region, Category::activations)};
  }

  template <class Of>
  std::vector<typename Of::Result> after(std::span<const Text> texts) {
    check(std::int64_t(texts.size()) <= config_.texts, "decoder: {} texts, and it was made for {}", texts.size(), config_.texts);
    std::vector<typename Of::Result> out(texts.size(), Of::none());
    std::vector<Token> last;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (texts[i].empty()) continue;
      const Text added = begin(i, texts[i]);
      if (texts_[i].ids.empty() || added.size() > 1) out[i] = read<Of>(i, added);
      else last.push_back({added[0], std::int32_t(i), std::int32_t(texts_[i].ids.size())});
    }
    if (!last.empty()) step<Of>(last, out);
    return out;
  }

  // The tokens of a text's window whose keys are not stored: one at least, since the logits after it are wanted.
  Text begin(std::size_t i, Text text) {
    Stored& s = texts_[i];
    const std::size_t from = next_begin(text, s.begin, config_.longest);
    if (from != s.begin) s.begin = from, s.ids.clear();
    const Text window = text.subspan(from);
    const auto differ = std::ranges::mismatch(window.first(window.size() - 1), s.ids);
    s.ids.resize(std::size_t(differ.in2 - s.ids.begin()));
    return window.subspan(s.ids.size());
  }

  // Other rows belong to no text.
  void upload_tokens(const Step& to, std::span<const Token> tokens) {
    const std::size_t n = std::size_t(to.inputs.shape[1]);
    std::vector<std::int32_t> inputs(3 * n, 0);
    std::fill_n(inputs.begin() + std::ptrdiff_t(n), n, -1);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      inputs[i] = tokens[i].id, inputs[n + i] = tokens[i].sequence, inputs[2 * n + i] = tokens[i].place;
    upload(e_.stream, inputs.data(), to.inputs);
  }

  // Tokens whose expanded keys a forward needs, of texts with at most so many: one recording serves a range of lengths.
  std::int64_t reach_of(std::int64_t tokens) const {
    constexpr std::int64_t together = 128;
    return e_.model->shape().latent ? std::min(config_.longest, round_up(tokens, together)) : config_.longest;
  }

  void run(const Step& s, std::int64_t sequence, std::int64_t last, bool whole, std::int64_t reach) {
    keys_.begin({.at = s.at(), .whole = whole, .apart = sequence == 1, .reach = reach});
    e_.pipeline.logits({.tokens = s.tokens(), .sequence = sequence, .cache = &keys_}, {}, last, s.logits);
  }

  // Several tokens of one text: the logits after the last one are the first that are made.
  template <class Of>
  typename Of::Result read(std::size_t i, Text added) {
    Stored& stored = texts_[i];
    std::vector<Token> tokens;
    for (const std::int32_t id : added) tokens.push_back({id, std::int32_t(i), std::int32_t(stored.ids.size() + tokens.size())});
    const std::int64_t own = std::int64_t(added.size()), n = rows_for(e_, own), last = n - own + 1;
    const Scope scope(e_.stream);
    const Step s = make_step(n, Lifetime::scratch, last);
    upload_tokens(s, tokens);
    run(s, n, last, stored.ids.empty(), reach_of(std::int64_t(stored.ids.size()) + own));
    stored.ids.insert(stored.ids.end(), added.begin(), added.end());
    Of::find(e_, s.logits.rows(0, 1), s.likely.rows(0, 1));
    return std::move(Of::read(e_, s.logits, s.likely, 1).front());
  }

  // One token of each of these texts: on a GPU in the rows of all texts, so that one recording fits. An engine that trains records none,
  // since it may need the memory.
  template <class Of>
  void step(const std::vector<Token>& tokens, std::vector<typename Of::Result>& out) {
    const std::int64_t n = e_.stream.apart_from_host() ? step_.inputs.shape[1] : rows_of_step(e_, std::int64_t(tokens.size()));
    const Step s = step_.first(n);
    upload_tokens(s, tokens);
    std::int32_t last_place = 0;
    for (const Token& t : tokens) last_place = std::max(last_place, t.place);
    const std::int64_t reach = reach_of(last_place + 1);
    const auto work = [&] { run(s, 1, 1, false, reach), Of::find(e_, s.logits, s.likely); };
    if (e_.optimizer) work();
    else recordings_.run(e_.stream, {n, reach, Of::form}, work);
    std::vector<typename Of::Result> results = Of::read(e_, s.logits, s.likely, std::int64_t(tokens.size()));
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      const std::size_t i = std::size_t(tokens[k].sequence);
      texts_[i].ids.push_back(tokens[k].id);
      out[i] = std::move(results[k]);
    }
  }

  Engine& e_;
  Config config_;
  Scope scope_;
  nn::StoredKeys keys_;
  std::vector<Stored> texts_;
  Step step_;
  Replay recordings_;
};

// Stores nothing.
class RepeatingDecoder final : public Decoder {
 public:
  RepeatingDecoder(Engine& e, const Config& c) : e_(e), config_(c) {}

  std::vector<Row> logits(std::span<const Text> texts) override { return after<OfLogits>(texts); }
  std::vector<std::int32_t> most_likely(std::span<const Text> texts) override { return after<OfMostLikely>(texts); }

 private:
  template <class Of>
  std::vector<typename Of::Result> after(std::span<const Text> texts) {
    std::vector<typename Of::Result> out(texts.size(), Of::none());
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (!texts[i].empty()) out[i] = read<Of>(texts[i].last(std::min(texts[i].size(), std::size_t(config_.longest))));
    return out;
  }

  // Later tokens, which no token sees, fill up the rows.
  template <class Of>
  typename Of::Result read(Text text) {
    const Scope scope(e_.stream);
    std::vector<std::int32_t> ids(text.begin(), text.end());
    const std::int64_t own = std::int64_t(ids.size()), n = rows_for(e_, own), last = n - own + 1;
    ids.resize(std::size_t(n), 0);
    const Tensor tokens = e_.stream.empty({n}, DType::i32), logits = logits_tensor(e_, last, Lifetime::scratch),
                 likely = e_.stream.empty({1}, DType::i32);
    upload(e_.stream, ids.data(), tokens);
    e_.pipeline.logits({.tokens = tokens, .sequence = n}, {}, last, logits);
    Of::find(e_, logits.rows(0, 1), likely);
    return std::move(Of::read(e_, logits, likely, 1).front());
  }

  Engine& e_;
  Config config_;
};

// The dry run of an engine that trains includes the memory of its samples.
void require_memory(Engine& e, const Decoder::Config& c) {
  if (e.optimizer) return;
  const std::int64_t needed = Decoder::key_bytes(e, c), free = std::int64_t(machine::available_bytes(e.stream.device()));
  if (needed <= free) return;
  throw ConfigError(
      format("the key-value cache of {} texts of up to {} tokens needs {} bytes ({} per token), and {} bytes are free; generate fewer "
             "tokens, or fewer texts at once{}",
             c.texts, c.longest, needed, needed / (c.texts * c.longest), free, c.codes ? "" : ", or store it in 8 bits (e4m3)"));
}

// Attention in 8 bits has scales of whole sequences.
bool stores_keys(Engine& e) { return !e.precision.codes_attention(); }

// Of the keys and values that a block stores, or of its latents, which all ranks of a partition have.
ops::QkvShape stored_heads(Engine& e) {
  const models::ModelShape& s = e.model->shape();
  if (s.latent) return nn::shape_of_latents(s.latent.rank, s.latent.turned);
  return {.kv_heads = nn::own_key_heads(e.partition(), s.kv_heads).heads.count, .head_dim = s.head_dim, .value_width = s.value_columns()};
}

}  // namespace

std::int64_t Decoder::key_bytes(Engine& e, const Config& c) {
  const std::int64_t blocks = ceil_div(e.model->shape().layers, std::int64_t(e.axes.pipeline().size()));
  return c.texts * c.longest * blocks * ops::key_row_bytes(c.codes.value_or(e.precision.activations()), stored_heads(e));
}

void Decoder::reserve(Engine& e, const Config& c) {
  if (stores_keys(e)) StoringDecoder(e, c).reserve();
}

std::unique_ptr<Decoder> Decoder::make(Engine& e, const Config& c) {
  check(c.texts >= 1 && c.longest >= 1 && c.longest <= e.longest_sequence, "decoder: {} texts of {} tokens; the engine takes up to {}",
        c.texts, c.longest, e.longest_sequence);
  if (!stores_keys(e)) return std::make_unique<RepeatingDecoder>(e, c);
  require_memory(e, c);
  return std::make_unique<StoringDecoder>(e, c);
}

}  // namespace octet::train
