#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "octet/machine/machine.hpp"
#include "octet/python/bind.hpp"
#include "octet/python/keys.hpp"
#include "octet/python/wait.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/run/folder/run_folder.hpp"

namespace octet::python {
namespace {

namespace nb = nanobind;

/// Memory and work of a run's step on one rank, and the precision of its layers.
struct Plan {
  train::DryRun dry;
  std::int64_t tokens = 0;
  std::size_t free = 0;
};

Plan planned(const Keys& keys) {
  Plan out;
  wait_for([&] {
    const train::RunConfig c = run_config(keys);
    const Device device = machine::device_named(c.device);
    const Target target = machine::machine_target(device, c.deterministic);
    for (int stage = 0; stage < int(c.ranks.pipeline); ++stage) {
      train::DryRun dry = train::dry_run(train::engine_config(c), target, c.train.batch, c.train.accumulate, {.stage = stage});
      if (stage == 0 || dry.memory.total > out.dry.memory.total) out.dry = std::move(dry);
    }
    out.tokens = c.tokens_per_step(), out.free = machine::available_bytes(device);
  });
  return out;
}

std::map<std::string, std::size_t> by_category(const Plan& p) {
  std::map<std::string, std::size_t> out;
  for (std::size_t i = 0; i < categories; ++i)
    if (p.dry.memory.by_category[i] != 0) out.emplace(name(Category(i)), p.dry.memory.by_category[i]);
  return out;
}

using Row = std::tuple<std::string, std::string, std::string>;

std::vector<Row> layers(const Plan& p) {
  std::vector<Row> out;
  for (const scaling::PlanRow& row : p.dry.plan) out.emplace_back(row.path, row.precision, row.why);
  return out;
}

}  // namespace

void bind_plans(nb::module_& m) {
  nb::class_<Plan>(m, "Plan", "Memory, work and precision of a run, known before it starts. str() lists the layers.")
      .def_prop_ro(
          "parameters", [](const Plan& p) { return p.dry.parameters; }, "Number of trained values, without padding.")
      .def_prop_ro(
          "tokens_per_step", [](const Plan& p) { return p.tokens; }, "On all ranks.")
      .def_prop_ro(
          "memory_bytes", [](const Plan& p) { return p.dry.memory.total; }, "Peak of a rank: of several stages, the largest one.")
      .def_prop_ro("memory_by_category", &by_category, "The same, divided: weights, gradients, optimizer, ... [bytes].")
      .def_prop_ro(
          "free_bytes", [](const Plan& p) { return p.free; }, "Free memory of the device here.")
      .def_prop_ro(
          "flops_per_step", [](const Plan& p) { return p.dry.step.flops; }, "Of a rank: 2 per multiply-add.")
      .def_prop_ro(
          "fp8_share", [](const Plan& p) { return p.dry.step.fp8_flops / std::max(p.dry.step.gemm_flops, 1.0); },
          "Share of the work of matrix products that has 8-bit operands.")
      .def_prop_ro("layers", &layers, "Of each layer: path, precision, reason.")
      .def("__str__", [](const Plan& p) { return train::plan_text(p.dry.plan); });
  m.def("plan", &planned, nb::arg("keys"));
}

}  // namespace octet::python
