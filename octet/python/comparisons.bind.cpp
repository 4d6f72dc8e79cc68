#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "octet/machine/machine.hpp"
#include "octet/python/bind.hpp"
#include "octet/python/keys.hpp"
#include "octet/python/wait.hpp"
#include "octet/train/run/ranks/rank_wish.hpp"
#include "octet/train/study/compare.hpp"

namespace octet::python {
namespace {

namespace nb = nanobind;

/// Arms and tolerance as Python gives them.
struct Arms {
  std::optional<std::vector<std::string>> recipes;
  std::vector<std::string> arms;
  std::string baseline;
  std::int64_t seeds = 1, twins = 1;
  double tolerance = 0;
};

train::StudyConfig study_of(const Keys& keys, const Arms& a) {
  train::StudyConfig study;
  study.compare = {.baseline = a.baseline,
                   .recipes = a.recipes        ? *a.recipes
                              : a.arms.empty() ? scaling::compared_recipes()
                                               : std::vector<std::string>{},
                   .arms = a.arms,
                   .seeds = a.seeds,
                   .twins = a.twins,
                   .tolerance = a.tolerance};
  study.arms();  // bad ones are refused before the configuration is read
  study.run = run_config(keys, train::comparable_defaults());
  return study;
}

train::CompareOutcome compared(const Keys& keys, const Arms& arms, const std::string& resume) {
  train::CompareOutcome outcome;
  wait_for([&] {
    machine::choose_own_gpu();
    const train::StudyConfig study = resume.empty() ? study_of(keys, arms) : train::Study::attend(resume).config();
    outcome =
        machine::result_on_ranks(train::rank_wish(study.run), [&](comm::Communicator& ranks, const machine::RankPlacement& placement) {
          const train::CompareRanks all{&ranks, placement};
          constexpr auto console = train::Console::Kind::lines;
          return resume.empty() ? train::compare(study, console, all) : train::resume_compare(resume, console, all);
        });
  });
  return outcome;
}

void bind_row(nb::module_& m) {
  using telemetry::ComparisonRow;
  nb::class_<ComparisonRow>(m, "Arm", "One arm of a comparison, or one twin of its baseline, over its seeds.")
      .def_prop_ro(
          "name", [](const ComparisonRow& r) { return telemetry::row_name(r); }, "Such as \"current\" or \"bf16 twin 1\".")
      .def_ro("recipe", &ComparisonRow::recipe, "Recipe of its linear layers.")
      .def_ro("seeds", &ComparisonRow::seeds, "Number of runs.")
      .def_ro("train_loss", &ComparisonRow::train_loss, "Mean over seeds of the final loss [nats].")
      .def_ro("eval_loss", &ComparisonRow::eval_loss, "The same on held-out text [nats].")
      .def_ro("gap", &ComparisonRow::gap, "Mean relative difference from the baseline's loss; 0.01 is 1%.")
      .def_ro("gap_half_width", &ComparisonRow::gap_half_width, "The gap's interval is gap +- this.")
      .def_ro("gradient_cosine", &ComparisonRow::gradient_cosine, "Of the first step's gradient with the baseline's.")
      .def_ro("tokens_per_second", &ComparisonRow::tokens_per_second, "Median over steps, mean over seeds.")
      .def_ro("skipped", &ComparisonRow::skipped, "Steps that changed no weights, all seeds together.")
      .def_prop_ro(
          "verdict", [](const ComparisonRow& r) { return to_text(r.verdict); }, "As the table has it.")
      .def("__repr__", [](const ComparisonRow& r) {
        return format("Arm(name={}, eval_loss={}, gap={}, verdict={})", telemetry::row_name(r), r.eval_loss, r.gap, to_text(r.verdict));
      });
}

}  // namespace

void bind_comparisons(nb::module_& m) {
  using train::CompareOutcome;
  bind_row(m);
  nb::class_<CompareOutcome>(m, "Comparison", "Arms trained from the same weights on the same data. str() is the table.")
      .def_ro("folder", &CompareOutcome::folder, "Folder of the comparison, with report.html.")
      .def_prop_ro(
          "arms", [](const CompareOutcome& o) { return o.comparison.rows; }, "The baseline, its twins, the other arms.")
      .def_prop_ro(
          "passes", [](const CompareOutcome& o) { return o.comparison.passes(); }, "No arm diverged, and none is over the tolerance.")
      .def("__str__", [](const CompareOutcome& o) { return telemetry::table_text(o.comparison); });
  m.def(
      "compare",
      [](const Keys& keys, std::optional<std::vector<std::string>> recipes, std::vector<std::string> arms, std::string baseline,
         std::int64_t seeds, std::int64_t twins, double tolerance, const std::string& resume) {
        return compared(keys, {std::move(recipes), std::move(arms), std::move(baseline), seeds, twins, tolerance}, resume);
      },
      nb::arg("keys"), nb::arg("recipes").none(), nb::arg("arms"), nb::arg("baseline"), nb::arg("seeds"), nb::arg("twins"),
      nb::arg("tolerance"), nb::arg("resume"));
}

}  // namespace octet::python
