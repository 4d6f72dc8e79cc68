#pragma once

#include <string>
#include <vector>

#include "octet/machine/fabric.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::machine {

/// Constants of a machine for the prediction of step times, as a TOML file. They are effective rates of whole steps, not peaks of kernels.
/// Defaults: an H100 SXM with 80 GB, fitted to published step times (tests of octet/plan).
struct MachineConstants {
  std::string name = "h100";
  std::int64_t generation = 9;        // of its GPUs: the major number of the compute capability, as Target's; 0: processors
  double gemm_tflops = 740;           // matrix products in BF16, besides writing their results
  double output_passes = 1.1;         // over memory, for each byte that products write; narrow matrices write more per operation
  double eight_bit_gain = 1.7;        // factor for 8-bit operands
  double wave_results = 4.3e6;        // results of a product that all multiprocessors make at one time: 132 tiles of 128 x 256
  double attention_tflops = 510;      // useful operations of causal attention, of long sequences; twice forward's are backward's
  double attention_ramp = 1100;       // tokens of a sequence at which it has half of this rate
  double head_tflops = 520;           // products of the language head, in BF16
  double memory_gbs = 2800;           // read and written by element-wise ops
  double eight_bit_traffic = 1.2;     // factor of their bytes, with 8-bit operands
  double link_gbs = 340;              // sent by one device to the others of its node
  double link_ramp_mb = 34;           // size of a tensor whose exchange has half of this rate, 10^6 bytes
  double network_gbs = 50;            // sent by one device to other nodes: its share of the node's cards
  double hop_microseconds = 1;        // latency of an exchange in a ring, per device
  double node_spread = 0.006;         // of step times of nodes: standard deviation over mean
  double exposed_tensor = 0.3;        // share of tensor-parallel transfers that no computation hides
  double launch_microseconds = 0;     // per block and micro-batch: starts of kernels that no computation hides
  double memory_gb = 85.5;            // of one device, 10^9 bytes: 81,559 MiB
  std::int64_t devices_per_node = 8;  // that are linked
  Fabric fabric;                      // between nodes

  void fields(config::FieldVisitor&);

  /// Operations of attention per second: fewer for short sequences, and for heads of fewer than 128 columns, since exponentials take as
  /// long for these. Fitted to cuDNN on an H200.
  double attention_rate(double sequence, double head_width) const;
};

/// The devices, as dry runs take them.
Target target_of(const MachineConstants&);

/// h100, h200, a100, cpu2.
const std::vector<MachineConstants>& named_machines();

/// A named machine, or those of a file that octet bench --calibrate wrote. Throws ConfigError with the names where neither exists, and as
/// config::read_toml_file().
MachineConstants machine_constants(const std::string& name_or_file);

}  // namespace octet::machine
