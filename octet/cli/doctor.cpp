#include <algorithm>

#include "octet/base/output.hpp"
#include "octet/cli/command.hpp"
#include "octet/comm/mpi/mpi.hpp"
#include "octet/comm/rendezvous/gpus.hpp"
#include "octet/json/value.hpp"
#include "octet/launch/launch.hpp"
#include "octet/launch/rank_folder.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/tensor/cpu/isa.hpp"
#include "octet/tensor/cpu/memory.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/tensor/cuda/bus.hpp"
#include "octet/tensor/cuda/device.hpp"
#include "octet/machine/machine.hpp"
#include "octet/machine/nvml.hpp"

namespace octet::cli {
namespace {

void row(const char* what, const std::string& says) {
  const std::string name = what;
  output::print("{}{} {}\n", name, std::string(name.size() < 12 ? 12 - name.size() : 0, ' '), says);
}

const char* has(bool yes) { return yes ? "yes" : "no"; }

void show_sensors(const std::string& bus) {
  try {
    const machine::GpuReading r = machine::Nvml::open(bus)->read();
    row("sensors", format("{} W, {} degrees Celsius, SM clock {} MHz, {}% busy, {} in use", fixed(r.power, 0), fixed(r.temperature, 0),
                          fixed(r.sm_clock, 0), fixed(100 * r.utilization, 0), bytes_text(r.memory_used)));
  } catch (const DeviceError& e) {
    row("sensors", format("none: {}", e.what()));
  }
}

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
  show_sensors(cuda::bus_address());
}

struct Options {
  std::int64_t gpus = -1, ranks = 2;
  double allreduce = 0;
  bool cpu = false;
};

// The GPUs that this process may use.
void expect_gpus(std::int64_t wanted) {
  const std::size_t found = comm::visible_gpus(comm::environment_variable).size();
  if (std::int64_t(found) != wanted)
    throw DeviceError(format("--expect-gpus {}: this machine shows {} (CUDA_VISIBLE_DEVICES, or else /dev/nvidia*)", wanted, found));
  if (wanted > 0 && !cuda::available()) throw DeviceError(format("--expect-gpus {}: {}", wanted, cuda::why_unavailable()));
  row("expected", format("{} GPUs, as there are", wanted));
}

// Bus bandwidth of a sum of BF16 values over the ranks of this machine, from the file that `octet bench allreduce` wrote, in GB/s.
double measured_rate(const std::string& file) {
  const json::Value result = json::load(file);
  for (const json::Value& r : *result.find("rows")->array())
    if (*r.find("sum")->text() == "bf16") return *r.find("bus_bytes_per_second")->real() / 1e9;
  throw DataError(format("{} has no sum of bf16", file));
}

// One rank per GPU, or CPU ranks where they are asked for, each a process that measures.
void expect_allreduce(const Options& o) {
  const launch::TemporaryFolder folder;
  const std::string file = folder.path() + "/allreduce.json";
  launch::LaunchOptions plan{
      .words = {"bench", "allreduce", "--bytes", o.cpu ? "4M" : "256M", "--quality-ranks", "2", "--repeat", "5", "--json", file},
      .choice = {},
      .machine = launch::this_machine()};
  if (!o.cpu && !plan.machine.no_gpu.empty())
    throw DeviceError(format("--min-allreduce-gbs: no GPU works here: {}; --cpu measures ranks on CPUs", plan.machine.no_gpu));
  if (!o.cpu && plan.machine.gpus.size() < 2) throw DeviceError("--min-allreduce-gbs: one GPU has no other to exchange with");
  plan.choice = launch::choose(o.cpu ? int(o.ranks) : 0, o.cpu ? launch::Devices::cpu : launch::Devices::gpu, plan.machine);
  if (const int code = launch::launch(plan); code != 0)
    throw DeviceError(format("--min-allreduce-gbs: the sum over {} ranks has failed with exit code {}", plan.choice.ranks, code));
  const double rate = measured_rate(file);
  const std::string found = format("{} GB/s bus bandwidth of a sum in bf16 over {} ranks", shortest(float(rate)), plan.choice.ranks);
  if (rate < o.allreduce) throw DeviceError(format("--min-allreduce-gbs {}: {}", o.allreduce, found));
  row("all-reduce", found);
}

// A check before a job: one line of a reason is clearer than the whole report.
ExitCode check_machine(const Options& o) {
  if (const comm::LaunchedRank p = comm::launched_rank_from_environment(); p.local_size > 1)
    throw ConfigError(format(
        "octet doctor checks a whole machine, but {} has started {} of it here: start one per host, as with srun --ntasks-per-node=1",
        comm::name(p.launcher), p.local_size));
  if (o.gpus >= 0) expect_gpus(o.gpus);
  if (o.allreduce > 0) expect_allreduce(o);
  return ExitCode::done;
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
  const double f32 = limit.f32_flops_per_second / 1e9, bf16 = limit.bf16_flops_per_second / 1e9;  // 0: no kernel for this processor
  row("GEMM", format("f32 {} GFLOP/s, {}: 8-bit codes are decoded to {}", fixed(f32, 0),
                     bf16 > 0 ? format("bf16 {} GFLOP/s at 1024^3", fixed(bf16, 0)) : "no bf16, at 1024^3", name(limit.compute)));
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
  auto o = std::make_shared<Options>();
  Command command = program.command("doctor", "Report hardware, libraries and supported recipes, or check a machine before a job",
                                    "  octet doctor\n"
                                    "  octet doctor --expect-gpus 8 --min-allreduce-gbs 300   exit code 69 and the reason if it has less");
  command.option("--expect-gpus", o->gpus, "check the number of GPUs instead of a report", {.at_least = 0, .at_most = 1024});
  command.option("--min-allreduce-gbs", o->allreduce, "check the bus bandwidth of a sum over all GPUs, in GB/s", {.at_least = 0});
  command.flag("--cpu", o->cpu, "sum over ranks on CPUs instead of GPUs");
  command.option("--ranks", o->ranks, "ranks on CPUs", {.at_least = 2, .at_most = 1024});
  command.run([o, command] {
    const std::vector<std::string> given = command.given();
    const auto is_given = [&](const char* name) { return std::find(given.begin(), given.end(), name) != given.end(); };
    if ((o->cpu && o->allreduce == 0) || (is_given("--ranks") && !o->cpu))
      throw ConfigError("octet doctor: --cpu belongs to --min-allreduce-gbs, and --ranks to --cpu; leave it out");
    return o->gpus >= 0 || o->allreduce > 0 ? check_machine(*o) : examine();
  });
}

}  // namespace octet::cli
