#include "octet/train/run/dry_run/sent_weights.hpp"

#include <algorithm>

#include "octet/nn/linear.hpp"

namespace octet::train {
namespace {

// Layers of blocks by a reason.
struct Layers {
  std::string precision, why;
  std::vector<std::string> patterns;
};

std::string why_values(const nn::Weight& w, const ops::QuantizeSpec& spec, const EngineConfig& c) {
  if (!spec.quantizes()) return "GEMMs read values";
  if (w.forward_reads_values()) return "forward reads values";
  if (spec.encodes_slices())
    return c.average ? "train.average keeps means of values" : "no part of a matrix of this shape is encoded by itself";
  return "the codes of the two orientations differ, so ranks make both from values";
}

class Collect final : public nn::Visitor {
 public:
  explicit Collect(const EngineConfig& c, DType activations) : config_(c), values_(activations == DType::bf16 ? "bf16" : "f32") {}
  void block(int number) override { block_ = number; }
  void linear(nn::LinearSite& l) override {
    if (block_ < 0) return;
    const ops::QuantizeSpec spec = l.weight().spec(scaling::recomputing);
    if (l.weight().parameter().codes)
      add(to_text(spec.format), "the codes that GEMMs read, encoded from the masters as on one rank", l.path());
    else add(values_, why_values(l.weight(), spec, config_), l.path());
  }
  std::vector<Layers> all;
  /// The type of copies that are values.
  const std::string& values() const { return values_; }

 private:
  void add(const std::string& precision, const std::string& why, const std::string& path) {
    auto at = std::ranges::find_if(all, [&](const Layers& l) { return l.precision == precision && l.why == why; });
    if (at == all.end()) at = all.insert(all.end(), {precision, why, {}});
    const std::string pattern = scaling::pattern_of(path);
    if (std::ranges::find(at->patterns, pattern) == at->patterns.end()) at->patterns.push_back(pattern);
  }
  const EngineConfig& config_;
  std::string values_;
  int block_ = -1;
};

}  // namespace

namespace {

constexpr const char* sent = "weights sent between ranks";

// Beside adapters the model's own weights have no masters. At stage 3 what GEMMs read of them is divided.
std::vector<scaling::PlanRow> plan_of_adapters(const Engine& engine) {
  const std::string values = engine.precision.activations() == DType::bf16 ? "bf16" : "f32";
  std::vector<scaling::PlanRow> rows{{sent, 0, 0, values, "matrices of adapters: the masters, rounded to nearest"}};
  std::int64_t bytes = 0, parts = 0;
  for (const nn::FrozenBucket& b : engine.frozen.buckets()) bytes += b.all().count(), parts += b.part().count();
  if (bytes > 0)
    rows.push_back({sent, 0, 0, "operands",
                    format("frozen matrices of blocks: {} as GEMMs read them, of which each rank keeps {}", bytes_text(double(bytes)),
                           bytes_text(double(parts)))});
  return rows;
}

}  // namespace

std::vector<scaling::PlanRow> plan_of_sent_weights(Engine& engine, const EngineConfig& config) {
  if (!engine.parameters.shard().shards(nn::Sharded::masters)) return {};
  if (config.adapters) return plan_of_adapters(engine);
  Collect layers(config, engine.precision.activations());
  engine.model->visit(layers);
  std::vector<scaling::PlanRow> rows;
  for (const Layers& l : layers.all) {
    const std::string which = layers.all.size() == 1 ? "matrices of blocks" : joined(l.patterns);
    rows.push_back({sent, 0, 0, l.precision, which + ": " + l.why});
  }
  rows.push_back({sent, 0, 0, layers.values(), "embedding, head and positions: the masters, rounded to nearest; vectors are f32"});
  return rows;
}

}  // namespace octet::train
