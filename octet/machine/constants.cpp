#include "octet/machine/constants.hpp"

#include "octet/base/check.hpp"
#include "octet/base/path.hpp"
#include "octet/config/read.hpp"

namespace octet::machine {

void MachineConstants::fields(config::FieldVisitor& v) {
  v.field("name", name, "name of the machine");
  v.field("generation", generation,
          "of its GPUs, which says what codes they multiply: 8 is A100, 9 Hopper, 10 Blackwell; 0: processors, which decode codes",
          {.at_least = 0, .at_most = 99});
  v.field("gemm_tflops", gemm_tflops, "matrix products in BF16 besides writing their results, 10^12 operations per second", {.above = 0});
  v.field("output_passes", output_passes, "passes over memory for each byte that products write, beside their operations", {.at_least = 0});
  v.field("eight_bit_gain", eight_bit_gain, "factor of that rate with 8-bit operands", {.above = 0});
  v.field("wave_results", wave_results, "results of a product that a device makes at one time, half of which are idle at its end",
          {.at_least = 0});
  v.field("attention_tflops", attention_tflops, "useful operations of causal attention of long sequences, 10^12 per second", {.above = 0});
  v.field("attention_ramp", attention_ramp, "tokens of a sequence at which attention has half of this rate", {.at_least = 0});
  v.field("head_tflops", head_tflops, "products of the language head in BF16, 10^12 operations per second", {.above = 0});
  v.field("memory_gbs", memory_gbs, "bytes read and written by element-wise operations, 10^9 per second", {.above = 0});
  v.field("eight_bit_traffic", eight_bit_traffic, "factor of these bytes with 8-bit operands", {.above = 0});
  v.field("link_gbs", link_gbs, "bytes that a device sends to others of its node, 10^9 per second", {.above = 0});
  v.field("link_ramp_mb", link_ramp_mb, "size of a tensor whose exchange has half of this rate, 10^6 bytes", {.at_least = 0});
  v.field("network_gbs", network_gbs, "bytes that a device sends to other nodes by its share of cards, 10^9 per second", {.above = 0});
  v.field("hop_microseconds", hop_microseconds, "latency of an exchange in a ring, per device", {.at_least = 0});
  v.field("node_spread", node_spread, "standard deviation of nodes' step times over their mean", {.at_least = 0, .at_most = 1});
  v.field("exposed_tensor", exposed_tensor, "share of tensor-parallel transfers that no computation hides", {.at_least = 0, .at_most = 1});
  v.field("launch_microseconds", launch_microseconds, "starts of kernels per block and micro-batch that no computation hides",
          {.at_least = 0});
  v.field("memory_gb", memory_gb, "memory of a device, 10^9 bytes", {.above = 0});
  v.field("devices_per_node", devices_per_node, "linked devices of a node", {.at_least = 1});
  v.section("fabric", fabric, "network cards and switches between nodes");
}

// h200: the H100's rates, because both multiply equally fast; its copy rate is measured. a100: rates scaled by published peaks.
const std::vector<MachineConstants>& named_machines() {
  static const std::vector<MachineConstants> all = [] {
    MachineConstants h100, h200, a100, cpu;
    a100.generation = 8, cpu.generation = 0;
    h200.name = "h200", h200.memory_gbs = 4200, h200.memory_gb = 150.7;
    a100.name = "a100", a100.gemm_tflops = 245, a100.eight_bit_gain = 1, a100.attention_tflops = 190, a100.wave_results = 3.5e6,
    a100.head_tflops = 220;
    a100.memory_gbs = 1700, a100.memory_gb = 85.9, a100.eight_bit_traffic = 1, a100.link_gbs = 220, a100.network_gbs = 22;
    cpu.name = "cpu2", cpu.gemm_tflops = 0.8, cpu.output_passes = 0, cpu.eight_bit_gain = 1, cpu.attention_tflops = 0.2,
    cpu.head_tflops = 0.8, cpu.memory_gbs = 30, cpu.wave_results = 0, cpu.attention_ramp = 0;
    cpu.link_ramp_mb = 0, cpu.node_spread = 0, cpu.link_gbs = 5, cpu.network_gbs = 1, cpu.exposed_tensor = 1, cpu.memory_gb = 16,
    cpu.devices_per_node = 2;
    return std::vector{h100, h200, a100, cpu};
  }();
  return all;
}

double MachineConstants::attention_rate(double sequence, double head_width) const {
  constexpr double exponentials = 60;  // as many columns of a head take equally long
  const double width = head_width / (head_width + exponentials) * (128 + exponentials) / 128;
  return attention_tflops * 1e12 * sequence / (sequence + attention_ramp) * width;
}

Target target_of(const MachineConstants& m) {
  constexpr int multiprocessors = 132;  // of a Hopper GPU: sizes of workspaces
  if (m.generation == 0) return {.gemm_compute = DType::bf16};
  return {.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = multiprocessors, .generation = int(m.generation)};
}

MachineConstants machine_constants(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (const MachineConstants& m : named_machines()) {
    if (m.name == name_or_file) return m;
    names.push_back(m.name);
  }
  if (!exists(name_or_file))
    throw ConfigError(format("--machine {}: neither a named machine ({}) nor a file; octet bench --calibrate FILE writes one",
                             printable(name_or_file), joined(names)));
  MachineConstants out;
  config::read_toml_file(name_or_file, out);
  require_equal_shares(out.fabric, out.devices_per_node, printable(name_or_file));
  return out;
}

}  // namespace octet::machine
