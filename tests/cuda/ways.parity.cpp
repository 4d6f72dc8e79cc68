#include "octet/machine/machine.hpp"
#include "octet/train/checkpoint/restore.hpp"
#include "octet/train/checkpoint/snapshot.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/cuda/parity.hpp"
#include "tests/testing/scratch.hpp"

// Ways of taking the same steps that must end in the same weights, bit by bit, on one device: twice, with less memory, with moments in
// the host's memory, with a checkpoint in between; and a checkpoint that moves from one device to the other without losing a bit. Both
// devices are tried.

namespace octet::parity {
namespace {

using train::testing::random_batch, train::testing::small_engine;

train::EngineConfig config_of(const std::string& recipe) {
  train::EngineConfig config = small_engine("qwen2", recipe);
  config.shape.hidden = 128, config.shape.vocabulary = 64;  // as the GPU multiplies codes as they are
  return config;
}

std::unique_ptr<train::Engine> make_engine(const train::EngineConfig& config, Device device) {
  auto e = std::make_unique<train::Engine>(config, device, machine::machine_target(device, true));
  e->parameters.initialize(e->stream, 7);
  return e;
}

// Enough micro-steps that a GPU replays some of them as a graph.
void take_steps(train::Engine& e, int from, int to) {
  train::StepRunner runner(e);
  for (int s = from; s < to; ++s)
    runner.run(std::vector{random_batch(2, 32, 61, std::uint64_t(2 * s)), random_batch(2, 32, 61, std::uint64_t(2 * s + 1))},
               {.learning_rate = 1e-3});
}

constexpr int steps = 3;

std::vector<float> weights_after(const train::EngineConfig& config, Device device) {
  const auto e = make_engine(config, device);
  take_steps(*e, 0, steps);
  return nn::flat_values(e->stream, e->parameters.values());
}

std::int64_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  std::int64_t n = std::int64_t(a.size() != b.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    n += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
  return n;
}

void expect_none(const Side& side, const std::string& what, std::int64_t differing) {
  check(differing == 0, "on the {}, {}: {} values differ", name(side.device()), what, differing);
}

train::Snapshot snapshot_of(train::Engine& e) {
  train::Capture capture(e.stream);
  e.visit_state(capture);
  return capture.take();
}

void restore(train::Engine& e, const train::Snapshot& snapshot) {
  const octet::testing::Scratch folder;
  folder.write(train::state_file_name(0), {reinterpret_cast<const char*>(snapshot.file.get()), snapshot.bytes});
  const train::StateFiles files(folder.at("."), {train::state_file_name(0)});
  train::Restore visitor(e.stream, files, train::Restore::Mode::write);
  e.visit_state(visitor);
  visitor.finish();
  wait(e.stream);
}

using Change = std::function<void(train::EngineConfig&)>;

Case same_weights(
    const std::string& recipe, const std::string& way, const Change& change, const Change& of_both = [](auto&) {}) {
  return {format("way {} {}", recipe, way), [=](Side& side) {
            const Device device = side.device();
            train::EngineConfig plain = config_of(recipe), changed = config_of(recipe);
            of_both(plain), change(changed);
            expect_none(side, way, differing(weights_after(plain, device), weights_after(changed, device)));
          }};
}

// Forward of the first weights, where it reads values under a recipe with codes, is that of BF16.
Case forward_of_bf16(const std::string& recipe) {
  return {format("way {} bf16 in forward, first loss", recipe), [=](Side& side) {
            train::EngineConfig values = config_of(recipe);
            values.precision.forward_values = true;
            std::vector<float> losses;
            for (const train::EngineConfig& config : {values, config_of("bf16")}) {
              const auto e = make_engine(config, side.device());
              train::StepRunner(*e).run(std::vector{random_batch(2, 32, 61, 0)}, {.learning_rate = 1e-3},
                                        [&] { losses.push_back(read<float>(e->stream, e->mean_loss())); });
            }
            expect_none(side, "loss", differing({losses[0]}, {losses[1]}));
          }};
}

Case resumed(const std::string& recipe) {
  return {format("way {} resumed", recipe), [=](Side& side) {
            const Device device = side.device();
            const auto before = make_engine(config_of(recipe), device), after = make_engine(config_of(recipe), device);
            take_steps(*before, 0, 1);
            restore(*after, snapshot_of(*before));
            take_steps(*after, 1, steps);
            expect_none(side, "resumed",
                        differing(weights_after(config_of(recipe), device), nn::flat_values(after->stream, after->parameters.values())));
          }};
}

Case moved(const std::string& recipe) {
  return {format("way {} moved to the other device", recipe), [=](Side& side) {
            const Device here = side.device(), there = here == Device::cpu ? Device::cuda : Device::cpu;
            const auto from = make_engine(config_of(recipe), here), to = make_engine(config_of(recipe), there);
            take_steps(*from, 0, 1);
            const train::Snapshot snapshot = snapshot_of(*from);
            restore(*to, snapshot);
            const train::Snapshot again = snapshot_of(*to);
            std::int64_t n = std::int64_t(snapshot.bytes != again.bytes);
            for (std::size_t i = 0; i < std::min(snapshot.bytes, again.bytes); ++i) n += snapshot.file[i] != again.file[i];
            expect_none(side, "moved", n);
            take_steps(*to, 1, 2);  // and training continues there
            wait(to->stream);
          }};
}

Case saved(const std::string& recipe) {
  return {format("way {} weights as a Hugging Face folder", recipe), [=](Side& side) {
            const auto from = make_engine(config_of(recipe), side.device()), to = make_engine(config_of(recipe), side.device());
            take_steps(*from, 0, 1);
            const octet::testing::Scratch folder;
            train::save_weights(*from, folder.at("weights"));
            train::load_weights(*to, folder.at("weights"));
            expect_none(
                side, "saved",
                differing(nn::flat_values(from->stream, from->parameters.values()), nn::flat_values(to->stream, to->parameters.values())));
          }};
}

// Of two micro-batches. Deferred products are computed after the other memory of the micro-batch got other contents.
std::vector<float> gradients_of(const train::EngineConfig& config, Device device, bool defers) {
  const auto e = make_engine(config, device);
  const train::StepRunner quantizes_weights(*e);
  for (int i = 0; i < 2; ++i) {
    DeferredWork later(Region(Lifetime::micro_batch, 1));
    const scaling::Pass pass{.kind = scaling::Pass::Kind::train, .later = defers ? &later : nullptr};
    const Region input(Lifetime::micro_batch, 2);
    const Scope kept(e->stream, pass.keep), operands(e->stream, later.region()), given(e->stream, input);
    const models::TokenBatch batch = e->upload(random_batch(2, 32, 61, std::uint64_t(i)), input);
    e->begin_micro_batch(i);
    e->model->forward(e->stream, batch, pass, e->loss_sums(), e->loss_factor(64));
    e->model->backward(e->stream, batch, pass);
    e->stream.arena().clear(pass.keep);
    for (const Region region : {pass.keep, Region(Lifetime::scratch)}) {
      const Scope scope(e->stream, region);
      clear(e->stream, e->stream.empty({1 << 20}, DType::f32, region));
    }
    later.run(e->stream);
  }
  return nn::flat_values(e->stream, e->parameters.gradients());
}

Case deferred(const std::string& recipe, const std::vector<std::string>& recomputed) {
  return {format("way {} with deferred products, recomputing {}", recipe, recomputed.empty() ? "nothing" : recomputed.back()),
          [=](Side& side) {
            train::EngineConfig config = config_of(recipe);
            config.model.recompute = nn::Recompute::named(recomputed);
            expect_none(side, "deferred", differing(gradients_of(config, side.device(), false), gradients_of(config, side.device(), true)));
          }};
}

std::vector<Case> make() {
  const auto recompute = [](std::vector<std::string> parts) -> Change {
    return [parts](auto& c) { c.model.recompute = nn::Recompute::named(parts); };
  };
  const std::pair<const char*, Change> ways[] = {
      {"twice", [](auto&) {}},
      {"recomputing norm and activation", recompute({"norm", "activation"})},
      {"recomputing mlp", recompute({"mlp"})},
      {"recomputing attention", recompute({"attention"})},
      {"recomputing block", recompute({"block"})},
      {"recomputing mlp of one block", [](auto& c) { c.model.recompute = {.mlp = true}, c.model.recompute_layers = 1; }},
      {"weights made", [](auto& c) { c.precision.weights = scaling::WeightCodes::on_demand; }},
      {"offload", [](auto& c) { c.optimizer->offload = true; }},
  };
  std::vector<Case> cases;
  // Of runs that save activations in 8 bits: recomputing makes the same codes again.
  const auto coded = [](Change change) -> Change {
    return [change](auto& c) { c.precision.activations = scaling::SavedActivations::fp8, change(c); };
  };
  const auto values_in_forward = [](Change change) -> Change {
    return [change](auto& c) { c.precision.forward_values = true, change(c); };
  };
  const auto has_codes = [](const std::string& recipe) { return recipe != "bf16" && recipe != "fp16"; };
  for (const char* recipe : {"bf16", "fp16", "delayed", "current", "rowwise", "block128", "mxfp8"}) {
    for (const auto& [name, change] : ways) cases.push_back(same_weights(recipe, name, change));
    for (const std::vector<std::string>& parts : {std::vector<std::string>{}, {"norm", "activation"}, {"mlp"}, {"attention"}, {"block"}})
      if (std::string(recipe) != "fp16")
        cases.push_back(same_weights(recipe, format("saving 8 bits, recomputing {}", parts.empty() ? "nothing" : parts.back()),
                                     coded(recompute(parts)), coded(recompute({}))));
    if (has_codes(recipe)) cases.push_back(forward_of_bf16(recipe));
    for (const std::vector<std::string>& parts : {std::vector<std::string>{"norm", "activation"}, {"block"}})
      if (has_codes(recipe))
        cases.push_back(same_weights(recipe, "bf16 in forward, recomputing " + parts.back(), values_in_forward(recompute(parts)),
                                     values_in_forward(recompute({}))));
    cases.push_back(resumed(recipe)), cases.push_back(moved(recipe)), cases.push_back(saved(recipe));
    cases.push_back(deferred(recipe, {})), cases.push_back(deferred(recipe, {"block"}));
  }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
