#include <cmath>

#include "octet/machine/machine.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/cuda/parity.hpp"

// Whole steps on both devices from the same weights on the same tokens. Weights are the same bits, so their maxima, scales and counts
// must be; activations come from sums in another order, so loss and gradients may differ: by roundings of BF16 in a few layers, and in FP8
// by a code where such a difference crosses the middle between two. Both are bounded by the formats' units, not by measured results.

namespace octet::parity {
namespace {

using train::testing::random_batch, train::testing::small_engine;

// A table that was read to the host, as a result of either side.
template <class T>
void numbers(Side& side, const char* name, const std::vector<T>& values, Nearness how) {
  side.result(name, side.raw(values, {std::int64_t(values.size())}), std::move(how));
}

double norm(const std::vector<float>& x) {
  double squares = 0;
  for (const float v : x) squares += double(v) * double(v);
  return std::sqrt(squares);
}

// Maxima and health of the weights before the first step.
void quantizers_of_weights(Side& side, train::Engine& e) {
  const scaling::SlotTable& slots = e.precision.slots();
  if (slots.size() == 0) return;
  const HostCopy amax(e.stream, slots.amax()), health(e.stream, slots.health_table());
  numbers(side, "maxima of weights", std::vector<float>(amax.as<float>(), amax.as<float>() + amax.tensor().count()), same_bits());
  std::vector<std::int64_t> counts;
  std::vector<float> scales;
  for (int i = 0; i < slots.size(); ++i) {
    const ops::QuantizeHealth& h = health.as<ops::QuantizeHealth>()[i];
    counts.insert(counts.end(), {h.values, h.saturated, h.flushed, h.nonfinite}), scales.insert(scales.end(), {h.scale_min, h.scale_max});
  }
  numbers(side, "counts of weights", counts, same_bits()), numbers(side, "scales of weights", scales, same_bits());
}

Case steps(const std::string& family, const std::string& recipe, Storage gradients = Storage::f32,
           scaling::SavedActivations saved = scaling::SavedActivations::bf16, bool ends = false) {
  const bool coded = saved == scaling::SavedActivations::fp8;
  return {format("engine {} {} gradients {}{}{}", family, recipe, name(gradients), coded ? ", activations saved in 8 bits" : "",
                 ends ? ", of embedding and head too" : ""),
          [=](Side& side) {
            const Device device = side.stream().device();
            train::EngineConfig config = small_engine(family, recipe);
            config.shape.hidden = 128;  // every dimension a multiple of 16, so that the GPU multiplies codes as they are
            config.shape.vocabulary = 64;
            config.optimizer->gradients = gradients, config.optimizer->coded_ends = ends, config.precision.activations = saved;
            train::Engine e(config, device, machine::machine_target(device));
            e.parameters.initialize(e.stream, 7);
            train::StepRunner runner(e);
            wait(e.stream);
            quantizers_of_weights(side, e);
            // Layers times roundings of an activation, relative to the whole.
            const double unit = coded              ? 0x1p-4
                                : recipe == "fp32" ? 0x1p-24 * 256
                                : recipe == "bf16" ? 0x1p-8
                                : recipe == "fp16" ? 0x1p-10
                                                   : 0x1p-4;
            const double layers = 12;
            std::vector<float> losses;
            for (int s = 0; s < 3; ++s) {
              runner.run(std::vector{random_batch(2, 32, 61, std::uint64_t(2 * s)), random_batch(2, 32, 61, std::uint64_t(2 * s + 1))},
                         {.learning_rate = 1e-3}, [&] {
                           losses.push_back(read<float>(e.stream, e.mean_loss()));
                           const float scale = e.loss_scale ? read<float>(e.stream, e.loss_scale->scale()) : 1.0f;
                           if (s == 0)
                             numbers(side, "gradient norm",
                                     std::vector<float>{float(norm(nn::flat_values(e.stream, e.parameters.gradients()))) / scale},
                                     within(unit * layers));
                         });
            }
            // The loss averages over 128 tokens what activations do to it.
            numbers(side, "losses", losses, within(4.2 * unit * std::sqrt(layers / 128)));
          }};
}

// Each expert's matrix has a scale. A choice of experts may differ where two scores are almost equal.
Case experts(const std::string& recipe, scaling::WeightCodes codes) {
  return {format("engine qwen3_moe {} {}", recipe, codes == scaling::WeightCodes::cached ? "cached" : "on demand"), [=](Side& side) {
            train::EngineConfig config = small_engine("qwen3_moe", recipe);
            config.shape.width = 128, config.shape.head_dim = 32, config.shape.vocabulary = 64, config.precision.weights = codes;
            config.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true, .balance = {.loss = 0.01}};
            train::Engine e(config, side.device(), machine::machine_target(side.device()));
            e.parameters.initialize(e.stream, 7);
            train::StepRunner runner(e);
            wait(e.stream);
            quantizers_of_weights(side, e);
            std::vector<float> losses;
            for (std::uint64_t s = 0; s < 3; ++s)
              runner.run(std::vector{random_batch(2, 32, 61, s)}, {.learning_rate = 1e-3},
                         [&] { losses.push_back(read<float>(e.stream, e.mean_loss())); });
            numbers(side, "losses", losses, within(4.2 * 0x1p-4 * std::sqrt(12.0 / 64)));
          }};
}

// More tokens than a chunk of a BF16 head on the CPU: the quantized head's chunks are equal, so its scales are.
Case quantized_head() {
  return {"engine quantized head", [=](Side& side) {
            train::EngineConfig config = small_engine("llama", "current");
            config.shape.hidden = 128, config.shape.vocabulary = 64, config.precision.head = scaling::HeadPrecision::recipe;
            train::Engine e(config, side.device(), machine::machine_target(side.device()));
            e.parameters.initialize(e.stream, 7);
            train::StepRunner(e).run(std::vector{random_batch(24, 32, 61, 1)}, {.measure = true}, [&] {
              const HostCopy health(e.stream, e.precision.slots().health_table());
              std::vector<float> scales;
              for (int i = 0; i < e.precision.slots().size(); ++i)
                if (e.precision.slots().slots()[std::size_t(i)].path == "lm_head")
                  for (const float scale : {health.as<ops::QuantizeHealth>()[i].scale_min, health.as<ops::QuantizeHealth>()[i].scale_max})
                    scales.push_back(std::log2(scale));
              numbers(side, "log2 of the head's scales", scales, within(0.1));
            });
          }};
}

// Tensors that modules show, by path and name, copied when they are made.
class Seen final : public Observer {
 public:
  Seen(Stream& stream, Side& side) : stream_(stream), side_(side) {}
  void observe(std::string_view path, std::string_view what, const Tensor& t) override {
    if (what != "y" || t.dtype != DType::bf16 || t.shape.rank != 2) return;
    const HostCopy host(stream_, t);
    shown.emplace_back(path, side_.raw(std::vector<Bf16>(host.as<Bf16>(), host.as<Bf16>() + t.count()), t.shape));
  }
  std::vector<std::pair<std::string, Tensor>> shown;

 private:
  Stream& stream_;
  Side& side_;
};

// E4M3 codes of every activation of the first forward, each tensor by its own maximum. Activations of the two devices come from sums in
// another order, rounded to BF16: after n roundings they are apart by about sqrt(n) 2^-8 of their size, and a code changes when the middle
// between two codes, which are 2^-4 to 2^-3 apart, lies in between: for at most sqrt(n) 2^-8 / 2^-4 of the values.
Case activation_codes(const std::string& family) {
  return {format("engine {} codes of activations", family), [=](Side& side) {
            train::EngineConfig config = small_engine(family, "bf16");
            config.shape.hidden = 128, config.shape.vocabulary = 64;
            train::Engine e(config, side.device(), machine::machine_target(side.device()));
            e.parameters.initialize(e.stream, 7);
            train::StepRunner runner(e);
            Seen seen(e.stream, side);
            e.stream.set_observer(&seen);
            runner.run(std::vector{random_batch(4, 32, 61, 1)}, {.learning_rate = 1e-3});
            e.stream.set_observer(nullptr);
            double roundings = 1;
            for (const auto& [path, y] : seen.shown) {
              ops::Sink sink = ops::make_sink(side.stream(), {.format = DType::e4m3},
                                              {.shape = y.shape, .dtype = y.dtype, .rows_region = Lifetime::run, .plain = y});
              ops::quantize(side.stream(), y, sink);
              side.result("codes of " + path, sink.codes.rows.codes, same_bits_but(std::sqrt(roundings) / 16));
              roundings += 2;
            }
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const char* family : {"llama", "qwen2", "qwen3", "gpt2"}) cases.push_back(activation_codes(family));
  cases.push_back(quantized_head());
  for (const char* recipe : {"current", "delayed"})
    for (const auto codes : {scaling::WeightCodes::cached, scaling::WeightCodes::on_demand}) cases.push_back(experts(recipe, codes));
  for (const auto& recipe : scaling::recipes())
    for (const char* family : {"llama", "qwen2", "qwen3", "gpt2"}) cases.push_back(steps(family, std::string(recipe.name)));
  for (const Storage gradients : {Storage::bf16, Storage::e4m3, Storage::e4m3_tensor})
    for (const char* recipe : {"bf16", "current"}) cases.push_back(steps("llama", recipe, gradients));
  for (const char* recipe : {"bf16", "current"})
    cases.push_back(steps("llama", recipe, Storage::e4m3, scaling::SavedActivations::bf16, true));
  for (const char* recipe : {"fp32", "bf16", "delayed", "current", "block128", "mxfp8"})
    for (const char* family : {"llama", "qwen2", "qwen3", "gpt2"})
      cases.push_back(steps(family, recipe, Storage::f32, scaling::SavedActivations::fp8));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
