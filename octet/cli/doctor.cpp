#include "octet/base/output.hpp"
#include "octet/cli/command.hpp"
#include "octet/comm/mpi/mpi.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/tensor/cpu/isa.hpp"
#include "octet/tensor/cpu/memory.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/tensor/cuda/device.hpp"
#include "octet/machine/machine.hpp"

namespace octet::cli {
namespace {

void row(const char* what, const std::string& says) {
  const std::string name = what;
  output::print("{}{} {}\n", name, std::string(name.size() < 12 ? 12 - name.size() : 0, ' '), says);
}

const char* has(bool yes) { return yes ? "yes" : "no"; }

void show_gpu() {
  if (!cuda::available()) return row("GPU", "none: " + cuda::why_unavailable());
  const cuda::Facts& f = cuda::facts();
  const auto version = [](int v) { return format("{}.{}", v / 1000, v % 1000 / 10); };
  row("GPU", format("{}, compute capability {}.{}, {} multiprocessors, {} free of {}", f.name, f.major, f.minor, f.multiprocessors,
                    bytes_text(double(cuda::free_bytes())), bytes_text(double(f.memory_bytes))));
  row("CUDA", format("driver for {}, compiled with {}", version(f.driver), version(f.runtime)));
  for (const char* file : {"libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2"}) {
    const std::string path = cuda::library_path(file);
    row("", path.empty() ? format("{} is not found", file) : path);
  }
}

ExitCode examine() {
  row("octet", OCTET_VERSION);
  row("processor", machine::device_name(Device::cpu));
  row("features", format("avx2 {}, avx512 {}, avx512-bf16 {}, amx-bf16 {}", has(__builtin_cpu_supports("avx2")),
                         has(__builtin_cpu_supports("avx512f")), has(__builtin_cpu_supports("avx512bf16")), has(cpu::has_amx_bf16())));
  row("kernels", format("{}", cpu::name(cpu::isa())));
  row("threads", format("{}", cpu::threads()));
  row("memory", format("{} free", bytes_text(double(cpu::available_bytes()))));
  const ops::GemmLimit& limit = ops::measured_gemm_limit();
  row("oneDNN", ops::gemm_library());
  row("GEMM", format("f32 {} GFLOP/s, bf16 {} GFLOP/s at 1024^3: 8-bit codes are decoded to {}", fixed(limit.f32_flops_per_second / 1e9, 0),
                     fixed(limit.bf16_flops_per_second / 1e9, 0), name(limit.compute)));
  const std::string mpi = comm::mpi_module_path();
  row("ranks", mpi.empty() ? "threads; over MPI not, since liboctet_mpi.so is not found" : "threads, or processes by " + mpi);
  show_gpu();
  output::write("recipes\n");
  for (const auto& entry : scaling::recipes())
    output::print("  {}{} runs: {}\n", entry.name, std::string(entry.name.size() < 10 ? 10 - entry.name.size() : 0, ' '), entry.summary);
  return ExitCode::done;
}

}  // namespace

void add_doctor(Program& program) {
  program.command("doctor", "Report hardware, libraries and supported recipes", "  octet doctor").run(examine);
}

}  // namespace octet::cli
