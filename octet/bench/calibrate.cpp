#include "octet/bench/calibrate.hpp"

#include <algorithm>

#include "octet/machine/machine.hpp"

namespace octet::bench {
namespace {

double share_of(const StepResult& s) { return s.floor.seconds() / s.row.seconds.median; }

// Rates between ranks that were measured; the others are kept.
void take_network(const NetworkRates& rates, Calibration& out) {
  machine::MachineConstants& c = out.constants;
  if (rates.link > 0) c.link_gbs = rates.link / 1e9, c.link_ramp_mb = 0;  // at the measured size
  else out.kept.push_back("link_gbs");
  if (rates.network > 0) c.network_gbs = rates.network / 1e9;
  else out.kept.push_back("network_gbs");
  if (rates.ranks > 1) c.devices_per_node = rates.per_node();
  else out.kept.push_back("devices_per_node");
}

}  // namespace

Calibration calibrate(const train::RunConfig& config, const std::string& recipe, const Effort& effort, const NetworkRates& network,
                      const machine::MachineConstants& otherwise) {
  const Result measured = run({.config = config, .groups = {"step"}, .recipes = {"bf16", recipe}, .effort = effort});
  const StepResult &plain = measured.steps.at(0), &eight_bit = measured.steps.at(1);
  const Device device = machine::device_named(config.device);
  const Work work =
      train::dry_run(train::engine_config(config), machine::machine_target(device), config.train.batch, config.train.accumulate).step;
  const models::ModelShape shape = config.model.shape();
  Calibration out{.constants = otherwise, .share = share_of(plain), .eight_bit_share = share_of(eight_bit)};
  machine::MachineConstants& c = out.constants;
  c.name = machine::device_name(device);
  c.generation = device == Device::cuda ? machine::machine_target(device).generation : 0;
  const double rate = work.gemm_flops / plain.floor.gemm_seconds * out.share,
               eight_bit_rate = work.gemm_flops / eight_bit.floor.gemm_seconds * out.eight_bit_share;
  c.gemm_tflops = c.head_tflops = rate / 1e12;
  c.eight_bit_gain = eight_bit_rate / rate;
  c.output_passes = 0;  // these rates have it in them
  c.wave_results = c.attention_ramp = 0;
  // The prediction counts 6 operations per query column and token of the sequence, forward and backward.
  const double attention = 6.0 * double(shape.layers) * double(config.data.sequence_length) * double(shape.heads * shape.head_dim) *
                           double(config.tokens_per_step());
  c.attention_tflops = 1;
  c.attention_tflops = attention / (plain.floor.attention_seconds / out.share) / c.attention_rate(1, double(shape.head_dim));
  c.memory_gbs = measured.copy_bytes_per_second * out.share / 1e9;
  c.eight_bit_traffic = 1;
  c.memory_gb = double(machine::available_bytes(device)) / 1e9;
  out.kept = {"exposed_tensor", "launch_microseconds", "hop_microseconds", "node_spread", "fabric"};
  take_network(network, out);
  return out;
}

}  // namespace octet::bench
