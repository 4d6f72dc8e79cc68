#include "octet/bench/rank_cases.hpp"

#include <algorithm>
#include <map>
#include <thread>

#include "octet/base/text.hpp"
#include "octet/bench/progress.hpp"
#include "octet/comm/self/self.hpp"
#include "octet/machine/machine.hpp"
#include "octet/ops/attention/attention.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/train/run/record/step_tracer.hpp"

namespace octet::bench {
namespace {

using comm::Communicator;

constexpr double limit_seconds = 3600;  // ranks that are not part of a case wait for its end
constexpr int traced = 2;               // steps
constexpr int steps_in_turn = 3;        // of a case on a CPU

// One rank's part of all measurements.
class Cases {
 public:
  Cases(Communicator& all, const machine::RankPlacement& place, Device device, std::vector<RankCase>& cases)
      : all_(all), place_(place), device_(device), stream_(device), cases_(cases), samples_(cases.size()) {
    for (const RankCase& c : cases_) {
      const auto n = int(c.config.ranks.all());
      if (n != 1 && n != all_.size() && !parts_.contains(n)) parts_[n] = all_.split(all_.rank() < n ? 0 : 1, all_.rank());
    }
  }

  void measure(int repeats) {
    const int rounds = device_ == Device::cpu ? std::max(1, repeats / steps_in_turn) : 1;
    Progress progress(std::size_t(rounds) * cases_.size());
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < cases_.size(); ++i) {
        progress.begin(format("{} on {} of {} ranks", cases_[i].config.recipe.recipe, cases_[i].config.ranks.all(), all_.size()));
        if (takes_part(i)) time_steps(work(i), repeats / rounds + (round < repeats % rounds ? 1 : 0), samples_[i]);
        all_.barrier(stream_);
      }
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (takes_part(i)) time_parts(work(i), samples_[i]), cases_[i].steps = gathered(work(i), samples_[i]);
      all_.barrier(stream_);
    }
  }
  // Of the last case, which all ranks share.
  std::string trace() {
    check(!cases_.empty() && cases_.back().config.ranks.all() == all_.size(), "the last case is on all ranks");
    return train::trace_of_ranks(stream_, all_, traced_steps(work(cases_.size() - 1), traced));
  }

 private:
  bool takes_part(std::size_t i) const { return all_.rank() < cases_[i].config.ranks.all(); }
  RankWork work(std::size_t i) {
    const auto n = int(cases_[i].config.ranks.all());
    Communicator& ranks = n == all_.size() ? all_ : n == 1 ? self_ : *parts_.at(n);
    return {.config = cases_[i].config,
            .ranks = ranks,
            .device = device_,
            .ranks_here = std::min(n, place_.here),
            .workspace = comm::workspace_of(place_.backend),
            .loads = cases_[i].loads};
  }

  Communicator& all_;
  comm::SelfCommunicator self_;
  std::map<int, std::unique_ptr<Communicator>> parts_;
  const machine::RankPlacement& place_;
  Device device_;
  Stream stream_;
  std::vector<RankCase>& cases_;
  std::vector<RankSamples> samples_;
};

struct Measured {
  RankFacts facts;
  std::vector<RankCase> cases;
};

RankFacts facts_of(const Communicator& all, const machine::RankPlacement& place, Device device) {
  RankFacts f{.machine = machine::device_name(device), .backend = place.backend, .libraries = {}};
  f.libraries = device == Device::cpu ? "oneDNN " + ops::gemm_library() : ops::gemm_library(device) + ", " + ops::attention_library();
  f.ranks = all.size(), f.device = device, f.threads = cpu::threads();
  f.processors = int(std::thread::hardware_concurrency()), f.reports = all.rank() == 0;
  return f;
}

}  // namespace

RankFacts measure_cases(const RankBenchOptions& plan, const std::function<std::vector<RankCase>(int ranks)>& make,
                        std::vector<RankCase>& results) {
  const auto measured = [&](Communicator& all, const machine::RankPlacement& place) {
    const Device device = machine::device_named(plan.device);
    Measured m{.facts = {}, .cases = make(all.size())};
    Cases own(all, place, device, m.cases);
    own.measure(plan.repeats);
    m.facts = facts_of(all, place, device);
    if (plan.trace) m.facts.trace = own.trace();
    return m;
  };
  Measured out = machine::result_on_ranks(
      {.ranks = plan.ranks, .otherwise = 2, .device = plan.device, .limit_seconds = limit_seconds, .peer_memory = plan.peer_memory},
      measured);
  results = std::move(out.cases);
  return std::move(out.facts);
}

StepFacts facts_of(const StepBenchOptions& p, RankFacts place) {
  return {.place = std::move(place),
          .model = p.config.model.name(),
          .tokens = p.config.train.batch * p.config.data.sequence_length,
          .sequence = p.config.data.sequence_length,
          .zero = p.config.ranks.zero,
          .repeats = p.ranks.repeats};
}

std::vector<std::string> recipes_of(const StepBenchOptions& p) {
  const std::vector<std::string> names = p.recipes.empty() ? std::vector{p.config.recipe.recipe} : p.recipes;
  for (const std::string& name : names) scaling::make_recipe(name, p.config.recipe.options);  // an unknown one is refused here
  return names;
}

}  // namespace octet::bench
