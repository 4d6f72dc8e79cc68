#include "octet/train/step/decoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "octet/numerics/formats.hpp"
#include "octet/train/step/generate.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/study/twin.hpp"

// Logits of texts that grow, by stored keys, against those of whole forwards.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using Ids = std::vector<std::int32_t>;

EngineConfig config_of(const std::string& family, const std::string& recipe = "fp32") {
  EngineConfig c = small_engine(family, recipe);
  c.optimizer.reset(), c.sequence = c.shape.max_sequence;
  if (family == "qwen3_moe") c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true};
  if (family == "granite") c.shape.multipliers = {.embedding = 3, .branch = 0.3, .logits_divisor = 4, .scores = 0.1};
  if (family == "gemma3_text") c.shape.window = {.tokens = 7, .global_step = 2, .rope_theta = 100};
  if (family == "deepseek_moe")
    c.shape.layers = 3, c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .shared = 1, .first_dense = 1};
  if (family == "deepseek_v2" || family == "deepseek_v3") {
    c.shape.latent = small_latent(c.shape), c.shape.tied = false;
    c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .shared = 1, .normalize = family == "deepseek_v3"};
    if (family == "deepseek_v3") c.shape.experts.score = ops::Routing::Score::sigmoid;
  }
  return c;
}

std::unique_ptr<Engine> engine_of(const EngineConfig& c, std::uint64_t seed = 7) {
  auto e = std::make_unique<Engine>(c, Device::cpu, machine::machine_target(Device::cpu));
  e->parameters.initialize(e->stream, seed);
  // Larger than the first weights of a run: attention is not uniform.
  for (std::size_t i = 0; i < e->parameters.list().size(); ++i) {
    const Parameter& p = *e->parameters.list()[i];
    if (p.shape.rank != 2) continue;
    std::vector<float> values(std::size_t(p.shape.count()));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = 6 * value_at(p.value.values(), std::int64_t(k));
    e->parameters.set_values(e->stream, i, values.data());
  }
  return e;
}

Ids random_ids(std::size_t n, std::uint64_t seed) {
  Ids out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(std::int32_t(philox(seed, i).w[0] % 61));
  return out;
}

// Keys and values of whole sequences, or latents, rounded as codes with a power-of-two scale per row are: to the nearest of a table of all
// codes.
class RoundedKeys final : public nn::KeyCache {
 public:
  void keep(Stream&, int, const nn::Latents& l, nn::ExpandLatents) override {
    has_latents_ = true;
    for (const auto& [c, columns] : {std::pair(l.latent, l.rank), {l.shared, l.turned}})
      for (std::int64_t t = 0; t < c.of.shape[0]; ++t) round(c.of.f32() + t * c.of.shape[1] + c.first, columns);
  }
  void attend(Stream& stream, int, const ops::RopeForward& turn, const ops::AttentionForward& a, std::int64_t, ops::Sink& o) override {
    if (turn.table.cos) ops::rope_forward(stream, turn);
    for (std::int64_t t = 0; t < a.qkv.shape[0] && !has_latents_; ++t)
      for (std::int64_t h = a.heads.heads; h < a.heads.heads + 2 * a.heads.kv_heads; ++h)
        round(a.qkv.f32() + t * a.qkv.shape[1] + h * a.heads.head_dim, a.heads.head_dim);
    ops::attention_forward(stream, a);
    ops::quantize(stream, a.o, o);
  }

 private:
  bool has_latents_ = false;
  static void round(float* x, std::int64_t d) {
    float most = 0;
    for (std::int64_t c = 0; c < d; ++c) most = std::max(most, std::fabs(x[c]));
    const double scale = std::exp2(std::floor(std::log2(448.0 / double(most))));
    for (std::int64_t c = 0; c < d; ++c) {
      double best = 0;
      for (int code = 0; code < 0x7F; ++code) {
        const double value = decode<E4M3>(std::uint8_t(code));
        if (std::fabs(std::fabs(x[c]) * scale - value) < std::fabs(std::fabs(x[c]) * scale - best)) best = value;
      }
      x[c] = float(std::copysign(best / scale, double(x[c])));
    }
  }
};

// All of a text at once.
std::vector<float> whole_logits(Engine& e, const Ids& text, nn::KeyCache& cache = nn::no_cache()) {
  const Scope scope(e.stream);
  const std::int64_t n = std::int64_t(text.size());
  const Tensor tokens = e.stream.empty({n}, DType::i32),
               logits = e.stream.empty({1, e.model->shape().padded_vocabulary()}, e.precision.activations());
  upload(e.stream, text.data(), tokens);
  e.pipeline.logits({.tokens = tokens, .sequence = n, .cache = &cache}, {}, 1, logits);
  std::vector<float> out;
  for (std::int64_t i = 0; i < e.model->shape().vocabulary; ++i) out.push_back(value_at(logits, i));
  return out;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(double(a[i]) - double(b[i])));
  return most;
}

// How far logits go when every weight changes by its last bits. An order of sums changes each result of an op by less than the longest sum
// times half of a last bit, and weights by `bits` times that are as large a change of all products: so logits change by less than this.
double noise_of(const EngineConfig& c, const Ids& text, double relative, nn::KeyCache& cache = nn::no_cache()) {
  const auto e = engine_of(c), other = engine_of(c);
  for (std::size_t i = 0; i < other->parameters.list().size(); ++i) {
    const Parameter& p = *other->parameters.list()[i];
    std::vector<float> values(std::size_t(p.shape.count()));
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = value_at(p.value.values(), std::int64_t(k)) * float(1 + (philox(i, k).w[0] % 2 == 0 ? relative : -relative));
    other->parameters.set_values(other->stream, i, values.data());
  }
  return distance(whole_logits(*e, text, cache), whole_logits(*other, text, cache));
}

// Texts of a batch begin with different prompts, grow, one ends, one changes in its middle and grows by several tokens.
void expect_whole_logits(const EngineConfig& c, const Decoder::Config& decoding, double noise, nn::KeyCache& cache = nn::no_cache()) {
  const auto e = engine_of(c);
  const auto decoder = Decoder::make(*e, decoding);
  std::vector<Ids> texts = {random_ids(1, 1), random_ids(19, 2), random_ids(7, 3)};
  for (int step = 0; step < 8; ++step) {
    if (step == 3) texts[1].clear();
    if (step == 5) texts[2][4] = (texts[2][4] + 1) % 61, texts[2].push_back(5), texts[2].push_back(6);
    const std::vector<std::span<const std::int32_t>> read(texts.begin(), texts.end());
    const std::vector<std::vector<float>> got = decoder->logits(read);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(got[i].size(), texts[i].empty() ? 0u : 61u);
      if (texts[i].empty()) continue;
      ASSERT_LE(distance(got[i], whole_logits(*e, texts[i], cache)), noise) << c.shape.family << " text " << i << " step " << step;
      texts[i].push_back(std::int32_t(philox(9, std::uint64_t(10 * step) + i).w[0] % 61));
    }
  }
}

const std::vector<std::string> families = {"llama",   "gpt2",        "qwen3",       "qwen3_moe",  "deepseek_moe",
                                           "granite", "gemma3_text", "deepseek_v2", "deepseek_v3"};
constexpr double longest_sum = 96 * octet::testing::unit_f32;

TEST(Decoder, LogitsOfStoredKeysAreThoseOfWholeTexts) {
  for (const std::string& family : families) {
    const EngineConfig c = config_of(family);
    expect_whole_logits(c, {.texts = 3, .longest = 64}, noise_of(c, random_ids(20, 2), longest_sum));
  }
}

TEST(Decoder, CodesOfKeysGiveTheLogitsOfWholeTextsWithRoundedKeys) {
  for (const std::string family : {"llama", "gpt2", "qwen3_moe", "deepseek_v2", "deepseek_v3"}) {
    const EngineConfig c = config_of(family);
    RoundedKeys rounded;
    const Ids text = random_ids(20, 2);
    const auto e = engine_of(c);
    EXPECT_GT(distance(whole_logits(*e, text), whole_logits(*e, text, rounded)), 1e-3) << "rounding is seen";
    // A value near the middle of two codes may get the other one: so its noise is that of a step of one code.
    expect_whole_logits(c, {.texts = 3, .longest = 64, .codes = DType::e4m3}, noise_of(c, text, longest_sum, rounded), rounded);
  }
}

TEST(Decoder, GreedyTextIsThatOfWholeForwardsInEveryPrecisionWithoutAScalePerTensor) {
  for (const std::string& family : families)
    for (const std::string recipe : {"fp32", "bf16", "rowwise"}) {
      const auto e = engine_of(config_of(family, recipe));
      Ids text = random_ids(6, 4), again = text;
      EXPECT_EQ(generate(*e, text, 64, {.sampling = {.temperature = 0}, .tokens = 24}, [](std::size_t, std::int32_t) { return true; }),
                GenerationEnd::length);
      for (int i = 0; i < 24; ++i) again.push_back(sample(whole_logits(*e, again), {.temperature = 0}, 0));
      EXPECT_EQ(text, again) << family << " " << recipe;
    }
}

// While all tensors are seen, residual sums are made at once.
class SeesAll final : public Observer {
  void observe(std::string_view, std::string_view, const Tensor&) override {}
};

TEST(Decoder, ResidualSumsThatWaitForANormGiveTheSameLogits) {
  for (const std::string family : {"llama", "gpt2", "gemma3_text", "olmo2", "qwen3_moe"})
    for (const std::string recipe : {"bf16", "rowwise"}) {
      const auto waits = engine_of(config_of(family, recipe)), at_once = engine_of(config_of(family, recipe));
      SeesAll all;
      at_once->stream.set_observer(&all);
      const auto first = Decoder::make(*waits, {.longest = 32}), second = Decoder::make(*at_once, {.longest = 32});
      Ids text = random_ids(12, 6);
      for (std::int32_t step = 0; step < 4; ++step, text.push_back(step)) {
        const std::span<const std::int32_t> read(text);
        ASSERT_EQ(first->logits(std::span(&read, 1)), second->logits(std::span(&read, 1))) << family << " " << recipe << " " << step;
      }
    }
}

TEST(Decoder, TheMostLikelyTokenIsTheFirstOfTheLargestLogits) {
  for (const std::string family : {"llama", "deepseek_v3"}) {
    const auto e = engine_of(config_of(family, "bf16"));
    const auto decoder = Decoder::make(*e, {.texts = 3, .longest = 8});
    std::vector<Ids> texts = {random_ids(1, 1), {}, random_ids(6, 3)};
    for (int step = 0; step < 4; ++step) {
      const std::vector<std::span<const std::int32_t>> read(texts.begin(), texts.end());
      const std::vector<std::int32_t> ids = decoder->most_likely(read);
      const std::vector<std::vector<float>> logits = decoder->logits(read);  // of the last tokens again
      for (std::size_t i = 0; i < texts.size(); ++i) {
        ASSERT_EQ(ids[i], texts[i].empty() ? -1 : sample(logits[i], {.temperature = 0}, 0)) << family << " " << step;
        if (!texts[i].empty()) texts[i].push_back(ids[i]);
      }
    }
  }
}

// Work of one token of one text on a GPU.
std::int64_t ops_of_token(const std::string& family, const std::string& recipe, std::int64_t layers, bool wide = false) {
  EngineConfig c = config_of(family, recipe);
  c.shape.layers = layers;
  if (wide) c.shape.head_dim = c.shape.hidden = 128;
  Engine e(c, Device::null, {.device = Device::cuda, .multiprocessors = 132});
  Decoder::reserve(e, {.longest = 32});  // encodes weights
  const std::int64_t before = e.stream.work().ops;
  Decoder::reserve(e, {.longest = 32});
  return e.stream.work().ops - before;
}

// Each is one launch: two norms with the sum before them, four products, attention from rotation to stored keys, the activation, and in 8
// bits the codes of attention's output. Where a head has whole blocks of scales, its codes are attention's, and an activation of such
// blocks is the product's.
TEST(Decoder, ABlockOfATokenIsFewLaunches) {
  for (const auto& [recipe, most] : {std::pair<std::string, int>{"bf16", 8}, {"rowwise", 9}, {"current", 9}, {"block128", 9}})
    for (const std::string family : {"llama", "gpt2"})
      EXPECT_EQ(ops_of_token(family, recipe, 6) - ops_of_token(family, recipe, 5), most) << family << " " << recipe;
  for (const auto& [recipe, most] :
       {std::pair<std::string, int>{"bf16", 7}, {"block128", 7}, {"mxfp8", 7}, {"delayed", 7}, {"rowwise", 9}, {"current", 9}})
    EXPECT_EQ(ops_of_token("llama", recipe, 6, true) - ops_of_token("llama", recipe, 5, true), most) << recipe;
}

TEST(Decoder, ACacheBeyondTheMachinesMemoryIsRefusedWithItsBytes) {
  const auto e = engine_of(config_of("llama", "bf16"));
  const Decoder::Config small{.texts = 3, .longest = 64}, large{.texts = std::int64_t(1) << 40, .longest = 64};
  EXPECT_EQ(Decoder::key_bytes(*e, small), 3 * 64 * 2 * (2 * 2 * 16 * 2)) << "2 blocks; keys and values of 2 heads of 16 BF16 values";
  EXPECT_EQ(Decoder::key_bytes(*e, {.texts = 1, .longest = 1, .codes = DType::e4m3}), 2 * 2 * 2 * (16 + 4));
  const auto latent = engine_of(config_of("deepseek_v3", "bf16"));
  const models::ModelShape& s = latent->model->shape();
  EXPECT_EQ(Decoder::key_bytes(*latent, {.texts = 1, .longest = 1}), s.layers * (s.latent.rank + s.latent.turned) * 2)
      << "DeepSeek-V2, table 1: (d_c + d_h^R) values per layer";
  try {
    Decoder::make(*e, large);
    FAIL();
  } catch (const ConfigError& error) {
    const std::string bytes = std::to_string(Decoder::key_bytes(*e, large));
    EXPECT_NE(std::string(error.what()).find(bytes + " bytes (256 per token)"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("e4m3"), std::string::npos) << error.what();
  }
}

TEST(Decoder, ATextBeyondTheContextIsReadFromItsLastHalf) {
  const auto e = engine_of(config_of("gpt2"));
  const double noise = noise_of(config_of("gpt2"), random_ids(8, 5), longest_sum);
  const auto decoder = Decoder::make(*e, {.longest = 8});
  Ids text = random_ids(8, 5);
  std::size_t begin = 0;
  for (int step = 0; step < 11; ++step) {
    if (text.size() - begin > 8) begin = text.size() - 4;
    const std::span<const std::int32_t> read(text);
    const std::vector<float> wanted = whole_logits(*e, Ids(text.begin() + std::ptrdiff_t(begin), text.end()));
    EXPECT_LE(distance(decoder->logits(std::span(&read, 1)).front(), wanted), noise) << step;
    text.push_back(std::int32_t(step));
  }
  EXPECT_EQ(begin, 10u) << "twice";
}

}  // namespace
}  // namespace octet::train
