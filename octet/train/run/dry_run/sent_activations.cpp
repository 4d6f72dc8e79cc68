#include "octet/train/run/dry_run/sent_activations.hpp"

#include <algorithm>

#include "octet/nn/gathered.hpp"

namespace octet::train {
namespace {

struct Group {
  std::string precision, why;
  std::vector<std::string> tensors;  // "x of layers.*.mlp.gate_up"
};

class Collect final : public nn::Visitor {
 public:
  Collect(std::int64_t tokens, DType activations) : tokens_(tokens), values_(to_text(activations)) {}
  void block(int number) override { block_ = number; }
  // Forward may read values of rows of which backward reads codes.
  void gathers(const nn::LinearSite& l, bool columns_again) override {
    const nn::OperandRequest forward{}, backward{.rows = false};
    if (!columns_again || as_codes(l, forward) == as_codes(l, backward)) return add(l, forward);
    add(l, forward, " in forward"), add(l, backward, " in backward");
  }
  // One with its own columns of the weight reads gathered gradients.
  void linear(nn::LinearSite& l) override {
    const Cut& cut = l.weight().parameter().cut;
    if (block_ >= 0 && cut.alone > 0 && cut.pieces[0].run < cut.pieces[0].count) add(l, {.tensor = nn::Operand::gradient});
  }
  std::vector<Group> all;

 private:
  bool as_codes(const nn::LinearSite& l, const nn::OperandRequest& r) const {
    const Shape all{tokens_, r.tensor == nn::Operand::gradient ? l.out() : l.in()};
    return nn::gathers_codes(l, r, l.spec(r.tensor, scaling::recomputing), all);
  }
  void add(const nn::LinearSite& l, const nn::OperandRequest& of, std::string_view where = "") {
    const bool gradient = of.tensor == nn::Operand::gradient;
    const ops::QuantizeSpec spec = l.spec(of.tensor, scaling::recomputing);
    const std::string tensor = format("{} of {}{}", gradient ? "dy" : "x", scaling::pattern_of(l.path()), where);
    if (as_codes(l, of)) add(to_text(spec.format), "one scale for all rows, by the maximum over the ranks", tensor);
    else if (spec.quantizes() && l.reads_values(of))
      add(values_, gradient ? "adapters read values of it" : "forward reads values of it", tensor);
    else add(values_, why_values(spec), tensor);
  }
  static std::string why_values(const ops::QuantizeSpec& spec) {
    if (!spec.quantizes()) return "GEMMs read values";
    if (spec.rows.whole_tensor()) return "codes of a tensor of this shape are not made by parts";
    return "the codes of the two orientations differ, and both together have the bytes of BF16";
  }
  void add(const std::string& precision, const std::string& why, const std::string& tensor) {
    auto at = std::ranges::find_if(all, [&](const Group& g) { return g.precision == precision && g.why == why; });
    if (at == all.end()) at = all.insert(all.end(), {precision, why, {}});
    if (std::ranges::find(at->tensors, tensor) == at->tensors.end()) at->tensors.push_back(tensor);
  }
  std::int64_t tokens_;
  std::string values_;
  int block_ = -1;
};

}  // namespace

namespace {

void add_sent_keys(Engine& engine, const EngineConfig& c, std::vector<scaling::PlanRow>& rows) {
  const std::string values = to_text(engine.precision.activations());
  rows.push_back({format("sequences divided among {} ranks", c.ranks.context), 0, 0, "context",
                  format("each rank has two segments of {} tokens of each sequence", c.sequence / (2 * c.ranks.context))});
  rows.push_back({"keys and values gathered by ranks", 0, 0, values, "of whole sequences, in forward and again in backward"});
  rows.push_back({"sums over ranks", 0, 0, values, "gradients of keys and values, added in FP32 and rounded once"});
}

// The formats in which rows travel to stacks of experts: x to the first one of a layer, dy to the second.
class Stacks final : public nn::Visitor {
 public:
  explicit Stacks(parallel::ExpertWire wire) : wire_(wire) {}
  void block(int) override { stacks_ = 0; }
  void experts(const Parameter& p) override { stack_ = &p; }
  void linear(nn::LinearSite& l) override {
    if (&l.weight().parameter() != stack_) return;
    const bool second = stacks_++ % 2 == 1;
    const nn::Operand of = second ? nn::Operand::gradient : nn::Operand::activation;
    const ops::QuantizeSpec spec = l.spec(of, scaling::recomputing);
    const std::int64_t columns = second ? l.out() : l.in();
    const bool values = spec.quantizes() && l.reads_values({.tensor = of});  // by adapters, or by forward
    const bool coded = parallel::travels_as_codes(wire_, spec, columns),
               of_values = values ? parallel::travels_as_codes(wire_, {.format = DType::bf16}, columns) : coded;
    const std::string path = scaling::pattern_of(l.path());
    if (second) return add(of_values, "dy of " + path);
    if (coded == of_values) return add(coded, "x of " + path);
    add(of_values, format("x of {} in forward", path)), add(coded, format("x of {} in backward", path));
  }
  std::vector<std::string> codes, values;

 private:
  void add(bool coded, const std::string& tensor) {
    std::vector<std::string>& tensors = coded ? codes : values;
    if (std::ranges::find(tensors, tensor) == tensors.end()) tensors.push_back(tensor);
  }
  parallel::ExpertWire wire_;
  const Parameter* stack_ = nullptr;
  int stacks_ = 0;
};

void add_sent_rows(Engine& engine, const EngineConfig& c, std::vector<scaling::PlanRow>& rows) {
  const std::string values = to_text(engine.precision.activations());
  Stacks stacks(c.comm.experts);
  engine.model->visit(stacks);
  rows.push_back({format("experts divided among {} ranks", c.ranks.expert), 0, 0, "expert",
                  format("each rank has {} of {} experts per layer; a token's row goes once to each rank with one of its experts",
                         c.shape.experts.number / c.ranks.expert, c.shape.experts.number)});
  const parallel::ExpertRoom room{c.ranks.expert_room, c.ranks.expert, c.shape.experts.number, c.shape.experts.chosen};
  rows.push_back({"memory for rows of experts", 0, 0, "expert",
                  room.bounded() ? format("ranks.expert_room: {} times the rows at equal loads; more are computed in rounds", room.factor)
                                 : std::string("rows of the worst choice of a router")});
  if (!stacks.codes.empty())
    rows.push_back({"rows sent to experts", 0, 0, "e4m3", joined(stacks.codes) + ": with a power-of-two scale per 128 values"});
  if (!stacks.values.empty()) rows.push_back({"rows sent to experts", 0, 0, values, joined(stacks.values) + ": values"});
  rows.push_back({"sums sent back", 0, 0, values, "of a rank's experts, rounded once, and added in FP32"});
}

// As nn::Mlp and nn::Attention begin and join them.
void add_overlap(const Engine& engine, std::vector<scaling::PlanRow>& rows) {
  if (!engine.sharding.overlaps_activations()) return;
  rows.push_back(
      {"exchanges beside products", 0, 0, "overlap",
       "in backward: sums of dx beside the weight's gradient; dy beside recomputed activations; x of recomputed norms beside the "
       "products of the branch's second matrix"});
}

// As Pipeline pairs passes, which it does not record.
void add_turns(Engine& engine, const EngineConfig& c, std::vector<scaling::PlanRow>& rows) {
  if (!c.comm.turns || (!engine.axes.divides_layers() && !engine.axes.divides_experts())) return;
  const bool gpu = engine.stream.apart_from_host(), ends_first = gpu ? !c.comm.overlap : engine.axes.divides_layers();
  rows.push_back({"passes in turn", 0, 0, "turns",
                  format("comm.turns: the backward of a micro-batch computes while the forward of the next one exchanges, and the "
                         "other way round{}{}",
                         ends_first ? "; here an exchange ends before other work begins" : "",
                         gpu ? "; micro-batches run without recorded graphs" : "")});
}

// Of ranks that divide each layer.
void add_layers(Engine& engine, const EngineConfig& c, std::vector<scaling::PlanRow>& rows) {
  const std::string values = to_text(engine.precision.activations());
  rows.push_back({format("layers divided among {} ranks", c.ranks.tensor), 0, 0, "tensor",
                  "each rank has its heads, columns of the MLP and tokens of the vocabulary, and rows of activations between them"});
  if (c.shape.experts)
    rows.push_back(
        {"experts of tensor ranks", 0, 0, "copies",
         format("each rank computes routers and experts for its own rows, 1/{} of the tokens, and exchanges none for them; gradients "
                "of copies are summed",
                c.ranks.tensor)});
  Collect layers(c.sequence / c.ranks.context, engine.precision.activations());
  engine.model->visit(layers);
  for (const Group& g : layers.all) rows.push_back({"rows gathered by ranks", 0, 0, g.precision, joined(g.tensors) + ": " + g.why});
  rows.push_back({"rows gathered by ranks", 0, 0, values, "input of the head, gradient of the embedding: GEMMs and sums read values"});
  const bool coded = c.comm.tensor == parallel::TensorWire::e4m3;
  rows.push_back({"sums over ranks", 0, 0, coded ? "e4m3" : values,
                  coded ? "comm.tensor: parts of branches and of the head's gradient, with a scale per 128 values, added in FP32"
                        : "parts of branches and of the head's gradient, added in FP32 and rounded once"});
  add_overlap(engine, rows);
}

}  // namespace

std::vector<scaling::PlanRow> plan_of_sent_activations(Engine& engine, const EngineConfig& c) {
  std::vector<scaling::PlanRow> rows;
  if (engine.axes.divides_sequences()) add_sent_keys(engine, c, rows);
  if (engine.axes.divides_experts()) add_sent_rows(engine, c, rows);
  if (engine.axes.divides_layers()) add_layers(engine, c, rows);
  add_turns(engine, c, rows);
  return rows;
}

}  // namespace octet::train
