#include "octet/models/adapters.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "octet/base/text.hpp"
#include "octet/models/registry.hpp"
#include "octet/nn/linear.hpp"
#include "octet/nn/low_rank.hpp"
#include "octet/nn/low_rank_stack.hpp"

namespace octet::models {
namespace {

constexpr std::string_view all_linear = "all-linear", weight_end = ".weight", of_experts = "experts.";

// The linear layers of a model by the path of their weight.
struct Sites final : nn::Visitor {
  std::map<std::string, nn::LinearSite*> by_weight;
  std::map<const nn::LinearSite*, const nn::Partition*> members_of;
  std::set<const Parameter*> of_blocks;
  int now = -1;
  const nn::Partition* of_branch = &nn::whole_partition();
  void block(int number) override { now = number; }
  void members(const nn::Partition& p) override { of_branch = &p; }
  void linear(nn::LinearSite& l) override {
    by_weight[l.weight().parameter().path] = &l, members_of[&l] = of_branch;
    if (now >= 0) of_blocks.insert(&l.weight().parameter());
  }
};

enum class Kind : std::uint8_t { takes, stack, expert, router, head };

Kind kind_of(const Sites& sites, nn::LinearSite& l) {
  if (!sites.of_blocks.contains(&l.weight().parameter())) return Kind::head;
  if (l.matrices() > 1) return Kind::expert;
  return l.weight().parameter().role == ParameterRole::router ? Kind::router : Kind::takes;
}

bool matches(std::string_view module, std::string_view target) {
  return module == target ||
         (module.size() > target.size() && module.ends_with(target) && module[module.size() - target.size() - 1] == '.');
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

[[noreturn]] void refuse_target(const std::string& target, Kind kind) {
  constexpr std::string_view of[] = {"", "", "matrices of single experts", "the router of experts", "the projection to the vocabulary"};
  constexpr std::string_view remedy = "those of all experts are \"mlp.experts.gate_up_proj\" and \"mlp.experts.down_proj\"";
  throw ConfigError(format("lora.targets: \"{}\" names {}, for which this version has no adapters; {}", printable(target),
                           of[std::size_t(kind)], kind == Kind::expert ? remedy : format("name other modules, or \"{}\"", all_linear)));
}

[[noreturn]] void refuse_unknown(const std::string& target, const std::set<std::string>& names) {
  const std::vector<std::string> list(names.begin(), names.end());
  throw ConfigError(format("lora.targets: \"{}\" matches no linear module of the model; there are {} and {}", printable(target),
                           joined(list), all_linear));
}

// Decides which modules have adapters, and that each target has some.
class Targets {
 public:
  explicit Targets(const std::vector<std::string>& targets) : targets_(targets), used_(targets.size(), false) {
    if (targets.empty()) throw ConfigError(format("lora.targets is empty; name modules such as \"q_proj\", or \"{}\"", all_linear));
  }
  bool take(const std::string& module, Kind kind) {
    bool taken = false;
    if (kind == Kind::takes) names_.insert(std::string(last_part(module)));
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const bool all = targets_[i] == all_linear, names_stacks = targets_[i].find(of_experts) != std::string::npos;
      if (!(all ? kind == Kind::takes : matches(module, targets_[i]) && (kind != Kind::stack || names_stacks))) continue;
      if (kind != Kind::takes && kind != Kind::stack) {
        refused_.try_emplace(i, kind);
        continue;
      }
      used_[i] = taken = true;
    }
    return taken;
  }
  void require_used() const {
    for (const auto& [i, kind] : refused_) refuse_target(targets_[i], kind);
    for (std::size_t i = 0; i < targets_.size(); ++i)
      if (!used_[i]) refuse_unknown(targets_[i], names_);
  }

 private:
  const std::vector<std::string>& targets_;
  std::vector<bool> used_;
  std::map<std::size_t, Kind> refused_;
  std::set<std::string> names_;
};

void require_rank(const AdaptedWeight& w, std::int64_t rank) {
  for (const AdaptedModule& m : w.modules)
    if (rank > std::min(m.rows.rows, w.in))
      throw ConfigError(format("lora.rank = {}: {} is a matrix of {} x {}, whose rank is at most {}; lower it", rank, m.name, m.rows.rows,
                               w.in, std::min(m.rows.rows, w.in)));
}

// Each expert is a block of the rows.
AdaptedWeight stack_of(const nn::LinearSite& l, const std::string& parameter, const std::string& name) {
  AdaptedWeight out{.parameter = parameter, .stack = name, .modules = {}, .out = l.out(), .in = l.in()};
  for (std::int64_t e = 0; e < l.matrices(); ++e) out.modules.push_back({name, {e * l.out(), l.out()}});
  return out;
}

void refuse_dropout(const AdapterConfig& c, const std::vector<AdaptedWeight>& weights) {
  const auto stack = std::ranges::find_if(weights, [](const AdaptedWeight& w) { return !w.stack.empty(); });
  if (c.dropout > 0 && stack != weights.end())
    throw ConfigError(
        format("lora.dropout = {}: adapters of experts ({}) have none, as in PEFT; set it to 0, or name no experts in "
               "lora.targets",
               c.dropout, stack->stack));
}

std::vector<AdaptedWeight> adapted_weights(Model& model, const AdapterConfig& c) {
  const HuggingFaceFormat& files = model_family(model.shape().family).hugging_face;
  if (!files)
    throw ConfigError(format("lora.rank = {}: models of family {} have no Hugging Face format, which names the modules; set it to 0",
                             c.rank, model.shape().family));
  Sites sites;
  model.visit(sites);
  Targets targets(c.targets);
  std::vector<AdaptedWeight> out;
  std::set<std::string> stacks;  // parameters that were seen
  for (const WeightSlice& slice : files.weights(model.shape())) {
    const auto site = sites.by_weight.find(slice.parameter);
    if (site == sites.by_weight.end() || !slice.name.ends_with(weight_end)) continue;
    nn::LinearSite& l = *site->second;
    const std::string module = slice.name.substr(0, slice.name.size() - weight_end.size());
    if (kind_of(sites, l) == Kind::expert && stacks.insert(slice.parameter).second) {
      const std::string name = format("model.{}_proj", slice.parameter.substr(0, slice.parameter.rfind('.')));
      if (targets.take(name, Kind::stack)) out.push_back(stack_of(l, slice.parameter, name));
    }
    if (!targets.take(module, kind_of(sites, l))) continue;
    if (out.empty() || out.back().parameter != slice.parameter)
      out.push_back({.parameter = slice.parameter, .modules = {}, .out = l.out(), .in = l.in(), .transposed = slice.transposed});
    out.back().modules.push_back({module, {slice.first, slice.rows}});
  }
  targets.require_used();
  for (const AdaptedWeight& w : out) require_rank(w, c.rank);
  refuse_dropout(c, out);
  return out;
}

}  // namespace

void AdapterConfig::fields(config::FieldVisitor& v) {
  v.field("rank", rank, "rank of adapters that train over the model's frozen weights (LoRA); 0: all weights train",
          {.at_least = 0, .at_most = 65536});
  v.field("alpha", alpha, "an adapter's product is multiplied by alpha / rank", {.above = 0, .at_most = 1e6});
  v.field("targets", targets,
          "modules that have adapters, by their names in the model's folder, or by the ends of these; all-linear: every linear layer of "
          "blocks, without experts, which are mlp.experts.gate_up_proj and mlp.experts.down_proj");
  v.field("dropout", dropout, "probability with which an adapter drops a value of its input in training", {.at_least = 0, .below = 1});
  v.field("init", init,
          "PEFT folder that has the first values of adapters, and decides rank, alpha and targets; empty: A is random and B is 0");
  for (const char* key : {"alpha", "targets"}) v.idle(key, rank == 0, "lora.rank is 0");
  v.idle("dropout", rank == 0 && init.empty(), "lora.rank is 0");
}

std::int64_t AdaptedWeight::rows() const {
  std::int64_t n = 0;
  for (const AdaptedModule& m : modules) n += m.rows.rows;
  return n;
}

std::vector<AdaptedWeight> adapted_weights(const ModelShape& shape, const AdapterConfig& c) {
  scaling::Precision precision{scaling::PrecisionConfig{}};
  return adapted_weights(*make_model(shape.of_files(), {}, precision), c);
}

namespace {

std::unique_ptr<nn::AdapterInput> input_of(const std::string& layer, double dropout, const nn::DroppedInput::Part& part,
                                           const nn::DropoutDraws& draws) {
  if (dropout == 0) return std::make_unique<nn::AdapterInput>();
  return std::make_unique<nn::DroppedInput>(layer, dropout, part, draws);
}

std::unique_ptr<nn::Adapter> stack_adapter(nn::LinearSite& l, const AdapterConfig& c, scaling::Precision& precision) {
  const Cut& own = l.weight().parameter().cut;
  const nn::LowRankStack::Config form{.matrices = l.matrices(),
                                      .out = l.out(),
                                      .in = l.in(),
                                      .first = own ? own.pieces.front().first / (l.out() * l.in()) : 0,
                                      .all = l.weight().parameter().whole()[0] / l.out(),
                                      .copies = own.copies,
                                      .first_copy = own.first_copy,
                                      .rank = c.rank,
                                      .factor = c.factor()};
  return std::make_unique<nn::LowRankStack>(l.path(), form, precision);
}

}  // namespace

// Layers of other stages are in the plan alone.
void attach_adapters(Model& model, const AdapterConfig& c, scaling::Precision& precision, const nn::Partition& partition,
                     const nn::DropoutDraws& draws) {
  if (!c) return;
  Sites sites;
  model.visit(sites);
  for (const AdaptedWeight& w : adapted_weights(model.shape(), c)) {
    const auto site = sites.by_weight.find(w.parameter);
    if (site == sites.by_weight.end()) {
      precision.plan_adapter(w.layer(), c.rank);
      continue;
    }
    if (!w.stack.empty()) {
      site->second->adapt(stack_adapter(*site->second, c, precision));
      continue;
    }
    nn::LowRank form{.rank = c.rank, .blocks = {}};
    for (const AdaptedModule& m : w.modules) form.blocks.push_back(m.rows);
    nn::LinearSite& l = *site->second;
    const nn::Partition& members = *sites.members_of.at(&l);
    const nn::AdapterShard part(l.weight().parameter(), form, members);
    nn::DroppedInput::Part input{.first_column = part.first_column};
    if (!members.divides()) input.member = partition.member(), input.members = partition.members();  // has its own rows
    l.adapt(std::make_unique<nn::LowRankAdapter>(l.path(), part, c.factor(), input_of(l.path(), c.dropout, input, draws), precision));
  }
}

void merge_adapters(const TrainedAdapters& adapters, const std::vector<Parameter*>& parameters) {
  const std::int64_t rank = adapters.config.rank;
  for (const AdapterValues& v : adapters.values) {
    const auto found = std::ranges::find(parameters, v.weight.parameter, &Parameter::path);
    check(found != parameters.end(), "adapters: the model has no weight {}", v.weight.parameter);
    float* const weight = (*found)->value.values().f32();
    std::int64_t row = 0;  // of B
    for (std::size_t m = 0; m < v.weight.modules.size(); ++m) {
      const ops::RowBlock& rows = v.weight.modules[m].rows;
      const float* const a = v.a.data() + std::int64_t(m) * rank * v.weight.in;
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
      for (std::int64_t i = 0; i < rows.rows; ++i)
        for (std::int64_t c = 0; c < v.weight.in; ++c) {
          double sum = 0;
          for (std::int64_t k = 0; k < rank; ++k) sum += double(v.b[std::size_t((row + i) * rank + k)]) * double(a[k * v.weight.in + c]);
          float& w = weight[(rows.first + i) * v.weight.in + c];
          w = float(double(w) + adapters.config.factor() * sum);
        }
      row += rows.rows;
    }
    ++(*found)->version;
  }
}

}  // namespace octet::models
