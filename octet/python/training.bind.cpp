#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "octet/base/log.hpp"
#include "octet/machine/machine.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/python/bind.hpp"
#include "octet/python/keys.hpp"
#include "octet/python/wait.hpp"
#include "octet/telemetry/report/report.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/config/open_corpus.hpp"
#include "octet/train/run/folder/run_folder.hpp"
#include "octet/train/run/ranks/rank_wish.hpp"
#include "octet/train/run/trainer.hpp"
#include "octet/train/study/twin.hpp"

namespace octet::python {
namespace {

namespace nb = nanobind;

/// The callback of a run, of its first rank. Its exception stops the run, which saves its state, and is thrown at the end.
class Calls final : public train::Twin {
 public:
  Calls(const train::RunConfig& config, const std::string& folder, Aside& aside, const nb::object& callback)
      : Twin(config.seed, train::twin_of(folder)), aside_(aside), callback_(callback) {}

  bool stops_after(const telemetry::StepEvent& event) override {
    bool stops = false;
    try {
      aside_.in_caller([&] {
        const nb::gil_scoped_acquire locked;
        stops = nb::cast<bool>(callback_(event));
      });
    } catch (...) {
      thrown_ = std::current_exception(), stops = true;
    }
    return stops;
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  Aside& aside_;
  const nb::object& callback_;
  std::exception_ptr thrown_;
};

train::Outcome train_on(const train::RunConfig& config, const std::string& folder, comm::Communicator& ranks,
                        const machine::RankPlacement& placement, train::StepHook& hook) {
  const auto corpus = train::open_corpus(config, ranks);
  train::Trainer trainer(config, *corpus,
                         {.console = train::Console::Kind::lines,
                          .resume = folder,
                          .ranks = &ranks,
                          .ranks_here = placement.here,
                          .backend = placement.backend,
                          .hook = &hook});
  log::info("{}", train::plan_text(trainer.plan().plan));
  const train::Outcome outcome = trainer.run();
  parallel::work_of_first(trainer.engine().stream, ranks, [&] {
    telemetry::write_report(trainer.folder() + "/report.html", std::vector{telemetry::read_run(trainer.folder())});
  });
  return outcome;
}

train::Outcome train_model(const Keys& keys, const std::string& resume, const nb::object& callback) {
  Aside aside;
  train::Outcome outcome;
  std::optional<Calls> calls;
  wait_for(aside, [&] {
    machine::choose_own_gpu();
    const train::RunConfig config = resume.empty() ? run_config(keys) : resumed_config(keys, resume);
    calls.emplace(config, resume, aside, callback);
    outcome = machine::result_on_ranks(train::rank_wish(config), [&](comm::Communicator& ranks, const machine::RankPlacement& placement) {
      train::Twin twin(config.seed, train::twin_of(resume));
      train::StepHook& hook = ranks.rank() == 0 ? static_cast<train::StepHook&>(*calls) : twin;
      return train_on(config, resume, ranks, placement, hook);
    });
  });
  if (calls) calls->rethrow();
  return outcome;
}

void bind_step(nb::module_& m) {
  using telemetry::StepEvent;
  nb::class_<StepEvent>(m, "Step", "One optimizer step of a run, as its record has it.")
      .def_ro("step", &StepEvent::step, "Number of the step, from 1 on.")
      .def_ro("loss", &StepEvent::loss, "Mean cross-entropy of the step's tokens [nats].")
      .def_ro("grad_norm", &StepEvent::grad_norm, "Norm of all gradients before clipping.")
      .def_ro("learning_rate", &StepEvent::learning_rate, "Of this step.")
      .def_ro("tokens", &StepEvent::tokens, "Tokens trained on so far, by all ranks.")
      .def_ro("seconds", &StepEvent::seconds, "Wall time of this step.")
      .def_ro("tokens_per_second", &StepEvent::tokens_per_second, "Of this step, all ranks together.")
      .def_ro("memory_bytes", &StepEvent::memory_bytes, "Allocated at the step's peak, per rank.")
      .def_ro("skipped", &StepEvent::skipped, "The weights did not change: loss or gradients were not finite, or above a limit.");
}

void bind_outcome(nb::module_& m) {
  using train::Outcome;
  nb::class_<Outcome>(m, "Outcome", "How a run ended.")
      .def_ro("folder", &Outcome::folder, "The run's folder; empty on ranks other than the first one.")
      .def_prop_ro(
          "state", [](const Outcome& o) { return to_text(o.state); }, "\"finished\", or \"stopped\": by a callback or a signal.")
      .def_prop_ro(
          "steps", [](const Outcome& o) { return o.end.step; }, "Number of the last step.")
      .def_prop_ro(
          "train_loss", [](const Outcome& o) { return o.end.train_loss; }, "Mean over the last steps [nats].")
      .def_prop_ro(
          "eval_loss", [](const Outcome& o) { return o.end.eval_loss; }, "On held-out text [nats]; NaN if nothing is held out.")
      .def_prop_ro(
          "tokens_per_second", [](const Outcome& o) { return o.end.tokens_per_second; }, "Median over the steps.")
      .def_prop_ro(
          "skipped", [](const Outcome& o) { return o.end.skipped; }, "Steps that changed no weights.")
      .def_prop_ro(
          "memory_bytes", [](const Outcome& o) { return std::int64_t(o.memory.total); }, "Peak of the run's memory, per rank.")
      .def("__repr__", [](const Outcome& o) {
        return format("Outcome(folder={}, state={}, steps={}, train_loss={}, eval_loss={})", o.folder, to_text(o.state), o.end.step,
                      o.end.train_loss, o.end.eval_loss);
      });
}

}  // namespace

void bind_training(nb::module_& m) {
  nb::class_<Keys>(m, "Keys").def(nb::init<std::string, std::vector<std::pair<std::string, std::string>>>());
  bind_step(m);
  bind_outcome(m);
  m.def("train", &train_model, nb::arg("keys"), nb::arg("resume"), nb::arg("callback"));
}

}  // namespace octet::python
