#include "octet/machine/machine.hpp"

#include <fstream>
#include <span>
#include <vector>

#include "octet/base/checksum.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/gemm/gemm_algorithms.hpp"
#include "octet/tensor/cpu/isa.hpp"
#include "octet/tensor/cpu/memory.hpp"
#include "octet/tensor/cuda/device.hpp"

namespace octet::machine {
namespace {

// The processor's name and vector instructions.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(info, line))
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  return format("{}, {}", printable(model), cpu::name(cpu::detected_isa()));
}

}  // namespace

Device device_named(const std::string& word) {
  if (word == "cpu") return Device::cpu;
  if (word == "auto") return cuda::available() ? Device::cuda : Device::cpu;
  if (word != "gpu") throw ConfigError(format("device = \"{}\": there are auto, cpu and gpu", printable(word)));
  cuda::facts();
  return Device::cuda;
}

Target machine_target(Device device, bool deterministic) {
  if (device == Device::cuda)
    return {.device = device,
            .multiprocessors = cuda::facts().multiprocessors,
            .generation = cuda::facts().major,
            .deterministic = deterministic};
  return {.gemm_compute = ops::gemm_compute()};
}

std::string device_name(Device device) { return device == Device::cuda ? cuda::facts().name : processor_name(); }

std::string program_checksum() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  if (!file) return "";
  data::Checksummer sum;
  std::vector<char> block(std::size_t(1) << 20);
  while (file.read(block.data(), std::streamsize(block.size())), file.gcount() > 0)
    sum.add(std::as_bytes(std::span(block.data(), std::size_t(file.gcount()))));
  return to_text(sum.sum());
}

std::size_t available_bytes(Device device, int ranks_here) {
  return device == Device::cuda ? cuda::free_bytes() : cpu::available_bytes() / std::size_t(ranks_here);
}

std::string gemm_algorithms_text(Device device) {
  return device == Device::cuda ? ops::GemmAlgorithms::of_process().text(ops::gemm_library(device)) : "";
}

bool replay_gemm_algorithms(Device device, const std::string& text) {
  return device != Device::cuda || ops::GemmAlgorithms::of_process().load(text, ops::gemm_library(device));
}

MatmulLimit matmul_limit(Device device) {
  if (device == Device::cuda) return {DType::e4m3, ops::measured_gpu_gemm_limit().fp8_flops_per_second};
  const ops::GemmLimit& limit = ops::measured_gemm_limit();
  return {limit.compute, limit.flops_per_second};
}

}  // namespace octet::machine
