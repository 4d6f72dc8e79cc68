#include "octet/scaling/precision.hpp"

#include <algorithm>
#include <utility>

#include "octet/base/wildcard.hpp"
#include "octet/ops/quantize/saved.hpp"
#include "octet/scaling/from_data.hpp"

namespace octet::scaling {
namespace {

constexpr Operand operands[] = {Operand::activation, Operand::weight, Operand::gradient};

// Codes of a saved activation. Only measured steps ask for its maximum and health: in others an op encodes its input in passing.
class SavedCodes final : public Quantizer {
 public:
  SavedCodes(const SlotGroup& slots, const std::string& path, bool recorded)
      : slots_(slots), slot_(recorded ? slots.add({path, Operand::saved, DType::e4m3, {1, ops::saved_block}}) : -1) {}
  ops::QuantizeSpec spec(const Pass& pass) const override {
    ops::QuantizeSpec out = ops::saved_spec();
    if (slot_ >= 0 && pass.records() && pass.count) slots_.record(slot_, {}, pass, out);
    return out;
  }

 private:
  SlotGroup slots_;
  int slot_;
};

}  // namespace

Precision::Precision(const PrecisionConfig& config) : config_(config), saved_(slots_.group()) {
  if (config.first < 0 || config.last < 0) throw ConfigError("recipe.first and recipe.last count blocks and must not be negative");
  members_.push_back({config.recipe, make_recipe(config.recipe, config.options), slots_.group()});
  if (config.activations == SavedActivations::fp8 && activations() == DType::f16)
    throw ConfigError(
        format("recipe.activations = \"fp8\": there are no 8-bit codes of FP16 activations, which recipe.name = \"{}\" has; set it "
               "to \"bf16\", or choose another recipe.name",
               config.recipe));
  // The one place where the short forms become rules, and the order of all.
  plan_for_attention();
  for (const PrecisionRule& rule : config.meanwhile) {
    rules_.push_back(translated(rule, "recovery.layers", "recovery.layers, for some steps"));
    rules_.back().attention = AttentionPrecision::bf16;  // under any safer recipe of linear layers
  }
  for (const std::string& pattern : config.keep_bf16)
    rules_.push_back({.layers = Rule::Layers::path,
                      .pattern = pattern,
                      .reason = format("matches recipe.keep_bf16 \"{}\"", pattern),
                      .key = "recipe.keep_bf16"});
  if (config.first > 0)
    rules_.push_back({.layers = Rule::Layers::first,
                      .blocks = config.first,
                      .reason = format("among the first {} blocks (recipe.first)", config.first)});
  if (config.last > 0)
    rules_.push_back(
        {.layers = Rule::Layers::last, .blocks = config.last, .reason = format("among the last {} blocks (recipe.last)", config.last)});
  for (std::size_t i = 0; i < config.rules.size(); ++i)
    rules_.push_back(translated(config.rules[i], format("recipe.rules[{}]", i + 1), format("rule {}: {}", i + 1, config.rules[i].path)));
  if (config.head == HeadPrecision::bf16) rules_.push_back({.layers = Rule::Layers::head, .reason = "head: recipe.head = \"bf16\""});
  rows_ = {{"embedding", 0, 0, to_text(activations()), "a lookup, no GEMM"},
           {"norm statistics, softmax, loss", 0, 0, "f32", "sums and exponentials"}};
  if (has_final_part(config)) {
    const PrecisionConfig last = final_part(config);
    rows_.push_back({format("linear layers in the last {}% of the steps", fixed(100 * config.final_share, 0)), 0, 0,
                     last.forward_values ? "bf16 in forward, as before in backward" : last.recipe,
                     format("recipe.final = \"{}\"", config.final_recipe)});
  }
  plan_saved_values("residual stream", "an error in it would reach the gradients of all norms");
  if (activations() == DType::f16) {
    rows_.push_back({"norms, attention, activation functions, residual sums", 0, 0, "f16", "inputs and results; computed in f32"});
    rows_.push_back({"logits, gradients of activations", 0, 0, "f16", "times the loss scale, if there is one; beyond 65504 infinite"});
  }
}

bool Precision::Rule::matches(const Site& site) const {
  switch (layers) {
    case Layers::path: return star_match(pattern, site.path);
    case Layers::first: return site.layer >= 0 && site.layer < blocks;
    case Layers::last: return site.layer >= 0 && site.layer >= site.layers - blocks;
    case Layers::head: return site.head;
  }
  return false;
}

// The place of a recipe in members_, made where it is the first rule that names it; -1 for BF16 in a model that quantizes.
int Precision::member_named(const std::string& recipe, const std::string& key) {
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i].name == recipe) return int(i);
  if (recipe == "bf16") return members_[0].recipe->formats().forward == DType::f32 ? 0 : -1;
  RecipeOptions options = config_.options;
  options.format = "default";  // recipe.format is about recipe.name
  std::unique_ptr<Recipe> made;
  try {
    made = make_recipe(recipe, options);
  } catch (const ConfigError& e) {
    throw ConfigError(format("{}.recipe: {}", key, e.what()));
  }
  if (made->activations() != activations())
    throw ConfigError(
        format("{}.recipe = \"{}\": activations between layers have one type, which is {} under recipe.name = \"{}\" and {} under "
               "this one; choose another recipe.name or leave the rule out",
               key, recipe, activations(), config_.recipe, made->activations()));
  members_.push_back({recipe, std::move(made), slots_.group()});
  return int(members_.size()) - 1;
}

Precision::Rule Precision::translated(const PrecisionRule& r, const std::string& key, const std::string& reason) {
  if (r.path.empty()) throw ConfigError(format("{}.path is empty: name layers, as in \"layers.*.mlp.down\"", key));
  if (r.recipe == "default" && r.format == "default" && r.attention == "default")
    throw ConfigError(format("{} says nothing: set its recipe, its format or its attention", key));
  Rule out{
      .layers = Rule::Layers::path, .pattern = r.path, .format = r.format, .reason = reason, .key = key + ".path", .must_decide = true};
  if (!r.operands.empty()) out.operands = {0, 0, 0};
  for (const std::string& operand : r.operands) {
    const auto at = std::find_if(std::begin(operands), std::end(operands), [&](Operand o) { return name(o) == operand; });
    if (at == std::end(operands))
      throw ConfigError(format("{}.operands: \"{}\" is none; operands are x, w and dy", key, printable(operand)));
    out.operands[std::size_t(at - std::begin(operands))] = true;
  }
  for (const AttentionPrecision p : {AttentionPrecision::bf16, AttentionPrecision::fp8_forward, AttentionPrecision::fp8})
    if (r.attention == to_text(p)) out.attention = p;
  if (r.attention != "default" && !out.attention)
    throw ConfigError(format("{}.attention = \"{}\": there are default, bf16, fp8_forward and fp8", key, printable(r.attention)));
  out.linear = r.recipe != "default" || r.format != "default";
  out.member = r.recipe == "default" ? 0 : member_named(r.recipe, key);
  if (r.format == "default") return out;
  if (r.format != "e4m3" && r.format != "e5m2" && r.format != "hybrid")
    throw ConfigError(format("{}.format = \"{}\": there are default, hybrid, e4m3 and e5m2", key, printable(r.format)));
  const bool eight_bit = out.member >= 0 && is_fp8(members_[std::size_t(out.member)].recipe->formats().forward);
  if (!eight_bit && r.recipe != "default")
    throw ConfigError(format("{}.format = \"{}\": {} has no 8-bit format; leave it out", key, r.format, r.recipe));
  for (const Operand o : operands) {
    const DType asked = r.format == "e5m2" || (r.format == "hybrid" && o == Operand::gradient) ? DType::e5m2 : DType::e4m3;
    if (eight_bit && out.operands[std::size_t(o)] && !members_[std::size_t(out.member)].recipe->takes(asked))
      throw ConfigError(
          format("{}.format = \"{}\": recipe {} has e4m3 only; leave it out", key, r.format, members_[std::size_t(out.member)].name));
  }
  return out;
}

std::array<Precision::Choice, 3> Precision::choices(const Site& site) {
  const Formats own = members_[0].recipe->formats();
  std::array<Choice, 3> out;
  std::array<bool, 3> done = {};
  for (const Operand o : operands) out[std::size_t(o)] = {0, own.of(o)};
  for (Rule& rule : rules_) {  // asked under every recipe, so that each pattern is checked
    if (!rule.matches(site)) continue;
    rule.matched = true;
    if (!rule.linear) continue;
    for (const Operand o : operands) {
      const auto i = std::size_t(o);
      if (!rule.operands[i] || std::exchange(done[i], true)) continue;
      rule.decided = true;
      const Recipe& recipe = *members_[std::size_t(std::max(rule.member, 0))].recipe;
      const bool nothing_to_change = !is_fp8(own.forward) && (rule.member < 0 || !is_fp8(recipe.formats().forward));
      if (nothing_to_change) continue;
      DType format = rule.member < 0 ? DType::bf16 : recipe.formats().of(o);
      if (rule.format == "e4m3") format = DType::e4m3;
      if (rule.format == "e5m2") format = DType::e5m2;
      if (rule.format == "hybrid") format = Formats{DType::e4m3, DType::e5m2}.of(o);
      out[i] = {rule.member, format, &rule};
    }
  }
  return out;
}

// Why a layer of this shape cannot run as chosen; "" where it can.
std::string Precision::unfit(const Site& site, const std::array<Choice, 3>& chosen) const {
  int multiple = 1;
  for (const Choice& c : chosen)
    if (quantizes(c)) multiple = std::max(multiple, members_[std::size_t(c.member)].recipe->multiple_of());
  const std::int64_t out = site.out / site.matrices;
  if (out % multiple != 0 || site.in % multiple != 0)
    return format("{} x {} is not a multiple of {}, as 8-bit GEMMs need", out, site.in, multiple);
  const Choice& w = chosen[std::size_t(Operand::weight)];
  const int rows = quantizes(w) && site.matrices > 1 ? members_[std::size_t(w.member)].recipe->rows_of_blocks() : 1;
  return out % rows == 0 ? "" : format("matrices of {} rows are not multiples of {}, the rows that share a scale", out, rows);
}

std::string Precision::precision_text(const Site& site, const std::array<Choice, 3>& chosen) const {
  const Choice& first = chosen[0];
  const bool one = std::all_of(chosen.begin(), chosen.end(), [&](const Choice& c) { return c.member == first.member; });
  if (one && !quantizes(first)) return to_text(first.format);
  std::string out;
  int eight_bit = 0;
  bool each = false;  // matrix of the stack has a scale
  for (const Operand o : operands) {
    const Choice& c = chosen[std::size_t(o)];
    out += format("{}{} {}", out.empty() ? "" : ", ", name(o), c.format);
    if (!quantizes(c)) continue;
    ++eight_bit;
    if (!one) out += format(" ({})", members_[std::size_t(c.member)].name);
    each |= o == Operand::weight && site.stack > 1 && members_[std::size_t(c.member)].recipe->scales_matrices();
  }
  if (one) out += "; " + members_[std::size_t(first.member)].recipe->scales();
  if (each) out += "; w has one for each expert";
  if (one) return out;
  return eight_bit == 3 ? out : out + "; 8-bit operands are decoded, since no GEMM multiplies them by BF16";
}

std::string Precision::reason_text(const std::array<Choice, 3>& chosen) const {
  std::vector<std::pair<std::string, std::string>> reasons;  // and the operands that have each
  for (const Operand o : operands) {
    const Rule* rule = chosen[std::size_t(o)].rule;
    const std::string reason = rule != nullptr ? rule->reason : "recipe " + config_.recipe;
    const auto same = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == reason; });
    if (same == reasons.end()) reasons.emplace_back(reason, name(o));
    else same->second += ", " + std::string(name(o));
  }
  if (reasons.size() == 1) return reasons[0].first;
  std::string out;
  for (const auto& [reason, names] : reasons) out += (out.empty() ? "" : "; ") + names + ": " + reason;
  return out;
}

// Routers are in FP32 under every recipe.
LinearPlan Precision::plan_router(const Site& site) {
  LinearPlan plan = scaling::plan_unquantized(DType::f32, "router: rounded logits would choose other experts");
  plan.x = std::make_unique<scaling::Unquantized>(activations());
  rows_.push_back({.path = site.path, .precision = plan.precision, .why = plan.why});
  return plan;
}

LinearPlan Precision::plan(const Site& site) {
  if (site.router) return plan_router(site);
  const std::array<Choice, 3> chosen = choices(site);
  const std::string reason = unfit(site, chosen);
  PlanRow row{.path = site.path, .out = site.out, .in = site.in, .unfit = !reason.empty()};
  row.by_recipe = !row.unfit && !config_.forward_values && std::ranges::all_of(chosen, [](const Choice& c) { return c.rule == nullptr; });
  row.eight_bits = !row.unfit && std::ranges::any_of(chosen, [&](const Choice& c) { return quantizes(c); });
  LinearPlan plan;
  if (row.unfit) {
    plan = scaling::plan_unquantized(DType::bf16, reason);
  } else {
    std::unique_ptr<Quantizer>* const quantizers[] = {&plan.x, &plan.w, &plan.dy};
    for (const Operand o : operands) {
      const Choice& c = chosen[std::size_t(o)];
      if (c.member < 0) {
        *quantizers[std::size_t(o)] = std::make_unique<scaling::Unquantized>(DType::bf16);
      } else {
        const Member& m = members_[std::size_t(c.member)];
        const bool frozen = config_.frozen_weights && o == Operand::weight && quantizes(c);
        *quantizers[std::size_t(o)] = frozen ? std::make_unique<scaling::Unmeasured>(m.recipe->spec_of_frozen(site, c.format))
                                             : m.recipe->quantizer(site, o, c.format, m.slots);
      }
    }
    const bool one = chosen[0].member == chosen[1].member && quantizes(chosen[0]);  // x and w
    plan.forward_values = config_.forward_values && (quantizes(chosen[0]) || quantizes(chosen[1]));
    plan.fast_forward = one && members_[std::size_t(chosen[0].member)].recipe->fast_forward() && config_.fast_accumulation;
    plan.fast_forward &= !plan.forward_values;
    plan.precision = precision_text(site, chosen), plan.why = reason_text(chosen);
    if (plan.forward_values)
      plan.precision = "bf16 in forward; in backward " + plan.precision,
      plan.why += format("; forward: recipe.final = \"{}\"", bf16_forward);
  }
  plan.caches_weight = config_.weights == WeightCodes::cached;
  if (plan.fast_forward) plan.precision += "; fast accumulation in forward on a GPU";
  row.precision = plan.precision, row.why = plan.why;
  rows_.push_back(std::move(row));
  return plan;
}

std::unique_ptr<Quantizer> Precision::plan_saved(const std::string& path, std::int64_t width, bool recorded) {
  if (config_.activations != SavedActivations::fp8) return nullptr;
  if (width % ops::saved_block != 0) {
    plan_saved_values(path, format("{} columns are not a multiple of {}", width, ops::saved_block));
    return nullptr;
  }
  rows_.push_back({path, 0, 0, format("e4m3; 1x{} blocks, E8M0 scales", ops::saved_block), "saved: recipe.activations = \"fp8\""});
  return std::make_unique<SavedCodes>(saved_, path, recorded);
}

std::unique_ptr<Quantizer> Precision::plan_adapter(const std::string& path, std::int64_t rank) {
  rows_.push_back(
      {path + ".lora", 0, 0, to_text(activations()), format("adapter of rank {}: operands; the layer's weight does not train", rank)});
  return plan_adapter_weight();
}

std::unique_ptr<Quantizer> Precision::plan_adapter_weight() const { return std::make_unique<scaling::Unquantized>(activations()); }

void Precision::plan_saved_values(const std::string& path, const std::string& why) {
  if (config_.activations == SavedActivations::fp8) rows_.push_back({path, 0, 0, to_text(activations()), "saved: " + why});
}

void Precision::allocate(Stream& stream) {
  int length = 1;
  for (const Member& m : members_) length = std::max(length, m.recipe->history_length());
  slots_.allocate(stream, length);
  for (const Member& m : members_) m.recipe->allocate(stream, m.slots);
}

void Precision::end_step(Stream& stream, const Tensor& skip) {
  for (const Member& m : members_) m.recipe->end_step(stream, m.slots, skip);
  clear(stream, saved_.amax());
  slots_.clear_health(stream);
}

int Precision::calibration_passes() const {
  int passes = 0;
  for (const Member& m : members_) passes = std::max(passes, m.recipe->calibration_passes());
  return passes;
}

void Precision::visit_state(StateVisitor& visitor) {
  slots_.visit_state(visitor), members_[0].visit_state(visitor);
  for (std::size_t i = 1; i < members_.size(); ++i) visitor.section(members_[i].name, members_[i]);
}

void Precision::require_patterns_used() const {
  if (!config_.meanwhile.empty()) return;  // they were asked without
  for (const Rule& rule : rules_) {
    if (rule.layers != Rule::Layers::path || (rule.matched && (rule.decided || !rule.must_decide))) continue;
    if (rule.matched)
      throw ConfigError(
          format("{}: \"{}\" has nothing to decide: keep_bf16, first, last and rules before it decide all that it matches; "
                 "leave it out or put it first",
                 rule.key, printable(rule.pattern)));
    std::vector<std::string> patterns;
    for (const PlanRow& row : rows_)
      if ((row.out != 0 || row.attention) && std::find(patterns.begin(), patterns.end(), pattern_of(row.path)) == patterns.end())
        patterns.push_back(pattern_of(row.path));
    const std::string near = nearest_of(pattern_of(rule.pattern), patterns);
    throw ConfigError(format("{}: \"{}\" matches no layer{}; layers are {}", rule.key, printable(rule.pattern),
                             near.empty() ? "" : "; did you mean \"" + near + "\"?", joined(patterns)));
  }
}

std::string pattern_of(const std::string& path) {
  std::string out;
  for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = path.find('.', at);
    const std::string part = path.substr(at, end - at);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += (at == 0 ? "" : ".") + (number ? std::string("*") : part);
  }
  return out;
}

}  // namespace octet::scaling
