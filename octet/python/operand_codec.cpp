#include "octet/python/operand_codec.hpp"

#include <algorithm>

#include "octet/ops/quantize/quantize.hpp"

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

// Tensors of the memory of both orientations, columns first. A known descale belongs to the quantizer.
template <class F>
void each_tensor(QTensor& q, const ops::QuantizeSpec& spec, const F& f) {
  for (Quantized* one : {&q.cols, &q.rows})
    for (Tensor* t : {&one->codes, &one->descales})
      if (*t && t->data != spec.descale.data) f(*t, one == &q.cols);
}

}  // namespace

std::unique_ptr<scaling::Recipe> eight_bit_recipe(const CodecConfig& c) {
  std::unique_ptr<scaling::Recipe> recipe = scaling::make_recipe(c.recipe, c.options);
  if (!is_fp8(recipe->formats().forward))
    throw ConfigError(format("recipe \"{}\" has no 8-bit operands; take another one, or leave the layer to PyTorch", printable(c.recipe)));
  return recipe;
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
    Collector collector(state_);
    recipe_->visit_state(collector);
    if (!state_.empty()) table_.visit_state(collector);
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

std::vector<OperandCodec::Part> OperandCodec::parts(const Request& r) const {
  Stream dry(Device::null, target_);
  const ops::QuantizeSpec as = spec(false);
  const Tensor values = dry.empty(r.shape, r.values);
  ops::Sink shape = sink(dry, r, as, values);
  std::vector<Part> out;
  std::vector<const void*> seen;
  each_tensor(shape.codes, as, [&](const Tensor& t, bool of_columns) {
    if (std::ranges::find(seen, t.data) != seen.end()) return;
    seen.push_back(t.data), out.push_back({t.shape, t.dtype, of_columns});
  });
  return out;
}

QTensor OperandCodec::operands(const Request& r, std::span<const Tensor> memory) const {
  Stream dry(Device::null, target_);
  const ops::QuantizeSpec as = spec(false);
  const Tensor values = dry.empty(r.shape, r.values);
  QTensor q = sink(dry, r, as, values).codes;
  std::vector<const void*> seen;
  each_tensor(q, as, [&](Tensor& t, bool) {
    const auto at = std::size_t(std::ranges::find(seen, t.data) - seen.begin());
    if (at == seen.size()) seen.push_back(t.data);
    check(at < memory.size() && memory[at].bytes() == t.bytes(), "codec: part {} of the operand must have {} bytes, got {}", at, t.bytes(),
          at < memory.size() ? memory[at].bytes() : 0);
    t.data = memory[at].data;
  });
  return q;
}

void OperandCodec::encode(Stream& stream, const Tensor& values, const Request& r, std::span<const Tensor> memory, bool records) {
  calibrate(stream, values);
  const ops::QuantizeSpec as = spec(records);
  const Scope scope(stream);
  ops::Sink to{.shape = r.shape, .dtype = r.values, .plain = values, .spec = as, .codes = operands(r, memory)};
  if (stream.device() == Device::cuda && to.waits()) {
    const auto lines = [](const Quantized& q) { return q && q.block.whole_rows() ? q.rows() : 0; };
    to.maxima = stream.empty({1 + lines(to.codes.rows) + lines(to.codes.cols)}, DType::f32);
  }
  ops::quantize(stream, values, to);
}

QTensor OperandCodec::encode(Stream& stream, const Tensor& values, const Request& r, bool records) {
  calibrate(stream, values);
  ops::Sink to = sink(stream, r, spec(records), values);
  ops::quantize(stream, values, to);
  return to.codes;
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
