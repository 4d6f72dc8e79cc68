#include "octet/python/operand_codec.hpp"

#include <algorithm>

#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/slice.hpp"

namespace octet::python {
namespace {

using scaling::Operand;

// All state that a recipe and its table have, by name.
class Collector final : public StateVisitor {
 public:
  explicit Collector(std::vector<std::pair<std::string, Tensor>>& found) : found_(found) {}
  bool restoring() const override { return false; }
  void state(std::string_view name, const Tensor& t) override { found_.emplace_back(name, t); }
  void state(std::string_view name, const StoredSlice&, Tiny) override { refuse(name); }
  void state(std::string_view name, std::int64_t&) override { refuse(name); }
  void state(std::string_view name, double&) override { refuse(name); }
  void state(std::string_view name, std::vector<double>&) override { refuse(name); }

 protected:
  void enter(std::string_view) override {}
  void leave() override {}

 private:
  [[noreturn]] static void refuse(std::string_view name) { throw ContractError(format("the recipe's state `{}` is no tensor", name)); }

  std::vector<std::pair<std::string, Tensor>>& found_;
};

// All state that a recipe and its table have, once they have memory.
std::vector<std::pair<std::string, Tensor>> state_of(scaling::Recipe& recipe, scaling::SlotTable& table) {
  std::vector<std::pair<std::string, Tensor>> found;
  Collector collector(found);
  recipe.visit_state(collector);
  if (!found.empty()) table.visit_state(collector);
  return found;
}

bool from_one_maximum(const ops::QuantizeSpec& spec) { return !spec.scale_known() && spec.encodes_slices() && spec.rows.whole_tensor(); }

std::array<Tensor*, 4> tensors_of(QTensor& q) { return {&q.cols.codes, &q.cols.descales, &q.rows.codes, &q.rows.descales}; }

}  // namespace

std::unique_ptr<scaling::Recipe> eight_bit_recipe(const CodecConfig& c) {
  std::unique_ptr<scaling::Recipe> recipe = scaling::make_recipe(c.recipe, c.options);
  if (!is_fp8(recipe->formats().forward))
    throw ConfigError(format("recipe \"{}\" has no 8-bit operands; take another one, or leave the layer to PyTorch", printable(c.recipe)));
  return recipe;
}

RecipeFacts facts_of(const CodecConfig& config) {
  Stream dry(Device::null);
  const std::unique_ptr<scaling::Recipe> recipe = eight_bit_recipe(config);
  scaling::SlotTable table;
  const scaling::SlotGroup slots = table.group();
  const auto x = recipe->quantizer({.path = "linear"}, Operand::activation, recipe->formats().forward, slots);
  table.allocate(dry, recipe->history_length()), recipe->allocate(dry, slots);
  return {.keeps_state = !state_of(*recipe, table).empty(),
          .needs_maximum = from_one_maximum(x->spec({.kind = scaling::Pass::Kind::recompute, .count = false}))};
}

void CodecConfig::fields(config::FieldVisitor& v) {
  std::vector<std::string> names;
  for (const auto& entry : scaling::recipes()) names.emplace_back(entry.name);
  v.choice("name", recipe, "scaling recipe of the layer", names);
  options.fields(v);
  v.field("fast_accumulation", fast_accumulation, "on a GPU, forward GEMMs may sum in the tensor core's short accumulator");
}

OperandCodec::OperandCodec(Executor& executor, std::uintptr_t queue, Operand operand, const CodecConfig& config)
    : operand_(operand),
      target_(executor.target()),
      recipe_(eight_bit_recipe(config)),
      fast_(recipe_->fast_forward() && config.fast_accumulation),
      settled_(recipe_->calibration_passes() == 0),
      slots_(table_.group()),
      quantizer_(recipe_->quantizer({.path = "linear"}, operand, recipe_->formats().of(operand), slots_)) {
  executor.run(queue, [&](Stream& stream) {
    table_.allocate(stream, recipe_->history_length());
    recipe_->allocate(stream, slots_);
    state_ = state_of(*recipe_, table_);
    for (const auto& [name, tensor] : state_) {
      const HostCopy copy(stream, tensor);
      first_.emplace_back(copy.as<std::byte>(), copy.as<std::byte>() + tensor.bytes());
    }
  });
}

void OperandCodec::reset(Stream& stream) {
  for (std::size_t i = 0; i < state_.size(); ++i) upload(stream, first_[i].data(), state_[i].second);
  settled_ = recipe_->calibration_passes() == 0;
}

ops::QuantizeSpec OperandCodec::spec(bool records) const {
  const bool to_table = records && !state_.empty();
  return quantizer_->spec({.kind = to_table ? scaling::Pass::Kind::train : scaling::Pass::Kind::recompute, .count = false});
}

// As nn::LinearSite::operand() and nn::Weight make theirs.
ops::Sink OperandCodec::sink(Stream& stream, const Request& r, const ops::QuantizeSpec& as, const Tensor& values) const {
  const bool weight = operand_ == Operand::weight, gradient = operand_ == Operand::gradient;
  const Region rows = weight ? Lifetime::run : Lifetime::scratch, cols = gradient ? Lifetime::scratch : Lifetime::micro_batch;
  return ops::make_sink(stream, as,
                        {.shape = r.shape,
                         .dtype = r.values,
                         .rows = r.rows,
                         .cols = r.cols,
                         .rows_region = rows,
                         .cols_region = weight ? rows : cols,
                         .plain = values,
                         .for_gemm = true,
                         .cols_left = gradient});
}

OperandCodec::Layout OperandCodec::layout(const Request& r) const {
  Stream dry(Device::null, target_);
  const ops::QuantizeSpec as = spec(false);
  Layout out{.request = r, .operands = sink(dry, r, as, dry.empty(r.shape, r.values)).codes};
  std::vector<const void*> seen;
  const auto tensors = tensors_of(out.operands);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = *tensors[i];
    if (!t || t.data == as.descale.data) continue;  // a known descale belongs to the quantizer
    const auto found = std::ranges::find(seen, t.data);
    out.at[i] = int(found - seen.begin());
    if (found == seen.end()) seen.push_back(t.data), out.parts.push_back({t.shape, t.dtype, i < 2});
  }
  return out;
}

QTensor OperandCodec::Layout::in(std::span<void* const> memory) const {
  check(memory.size() == parts.size(), "codec: the operand has {} parts, got {}", parts.size(), memory.size());
  QTensor q = operands;
  const auto tensors = tensors_of(q);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (at[i] >= 0) tensors[i]->data = memory[std::size_t(at[i])];
  return q;
}

QTensor OperandCodec::encode(Stream& stream, const Tensor& values, const Layout& layout, std::span<void* const> memory, bool records,
                             const Tensor& maximum) {
  calibrate(stream, values);
  ops::QuantizeSpec as = spec(records);
  const QTensor codes = layout.in(memory);
  const Scope scope(stream);
  find_scale(stream, as, values, codes, maximum);
  ops::Sink to{.shape = layout.request.shape, .dtype = layout.request.values, .plain = values, .spec = as, .codes = codes};
  if (stream.device() == Device::cuda && to.waits()) {
    const auto lines = [](const Quantized& q) { return q && q.block.whole_rows() ? q.rows() : 0; };
    to.maxima = stream.empty({1 + lines(to.codes.rows) + lines(to.codes.cols)}, DType::f32);
  }
  ops::quantize(stream, values, to);
  return codes;
}

QTensor OperandCodec::encode(Stream& stream, const Tensor& values, const Request& r, bool records, const Tensor& maximum) {
  calibrate(stream, values);
  ops::Sink to = sink(stream, r, spec(records), values);
  find_scale(stream, to.spec, values, to.codes, maximum);
  ops::quantize(stream, values, to);
  return to.codes;
}

bool OperandCodec::needs_maximum() const { return from_one_maximum(spec(false)); }

// The spec of values with that maximum. Its descale is that of the codes.
void OperandCodec::find_scale(Stream& stream, ops::QuantizeSpec& as, const Tensor& values, const QTensor& codes,
                              const Tensor& maximum) const {
  if (!maximum) return;
  check(needs_maximum(), "codec: the scale does not follow from the maximum of a tensor");
  const Tensor scale = stream.empty({1}, DType::f32);
  const Quantized& one = codes.rows ? codes.rows : codes.cols;
  const Tensor descale = one.descales ? one.descales : stream.empty({1}, DType::f32);
  ops::scales_of_maxima(stream, as, values.dtype, maximum, scale, descale);
  as.scale = scale, as.descale = descale;
}

void OperandCodec::calibrate(Stream& stream, const Tensor& values) {
  if (settled_) return;
  settled_ = true;
  const Scope scope(stream), kept(stream, Lifetime::micro_batch);
  ops::Sink measured = ops::make_sink(stream, spec(true), {.shape = values.shape, .dtype = values.dtype, .plain = values});
  ops::quantize(stream, values, measured);
  end_step(stream);
}

void OperandCodec::end_step(Stream& stream) {
  const Scope scope(stream);
  recipe_->end_step(stream, slots_, stream.zeros({1}, DType::f32));
}

}  // namespace octet::python
