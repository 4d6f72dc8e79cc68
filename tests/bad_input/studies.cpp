#include <filesystem>

#include "octet/data/dataset.hpp"
#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {
namespace fs = std::filesystem;

const std::string file = "study/study.toml", line = "compare --resume study --quiet";
const std::string anew = ", which --resume then trains again",
                  restore = "restore it from a copy, or begin a new comparison without --resume";

/// Puts the study of tiny.toml there that would hold the recipe of "run", the baseline, against bf16.
void make_study(const Place& p) {
  const std::string text = to_text(data::Dataset(p.at("data")).fingerprint());
  p.write(file,
          p.bytes("tiny.toml") +
              "[compare]\nbaseline = \"current\"\nrecipes = [\"bf16\"]\narms = []\nseeds = 1\ntwins = 0\ntolerance = 0.005\ntext = \"" +
              text + "\"\n");
}

/// Its baseline's run, finished.
void train_baseline(const Place& p) {
  p.take("run");
  fs::rename(p.at("run"), p.at("study/current"));
}

Case edited(std::string name, std::string from, std::string to, std::vector<std::string> says) {
  says.push_back(file);
  says.push_back(restore);
  return {"study_" + std::move(name), line, ExitCode::usage, std::move(says),
          [=](const Place& p) { make_study(p), p.edit(file, from, to); }};
}

std::vector<Case> of_files() {
  constexpr ExitCode usage = ExitCode::usage;
  return {
      {"study_that_needs_memory_that_no_machine_has",
       "compare tiny.toml --set model.width=65536 --set model.hidden=65536",
       ExitCode::device,
       {"the run needs", "are free", "at any batch size", "smaller model"}},
      {"study_nowhere", "compare --resume nowhere", usage, {"--resume", "no folder nowhere", "check the path"}},
      {"study_without_a_name", "compare --resume \"\"", usage, {"--resume", "must not be empty", "octet compare --help"}},
      {"study_that_is_a_run",
       "compare --resume run",
       usage,
       {"run/study.toml", "name that of one", "octet train --resume"},
       [](const Place& p) { p.take("run"); }},
      {"study_gone_on_with_as_a_run", "train --resume study", usage, {"study is a comparison", "octet compare --resume study"}, make_study},
      {"study_told_something_else",
       "compare tiny.toml --resume study --seeds 1 --set seed=3",
       usage,
       {"--resume", "study.toml", "remove tiny.toml, ", "--seeds", "--set"},
       make_study},
      {"study_that_is_no_toml", line, usage, {file + ":1:", "not TOML", restore}, with_file(file, "[[")},
      {"study_empty", line, usage, {file, "`compare.baseline` is missing", "cut off", restore}, with_file(file, "")},
      {"study_of_a_gigabyte",
       line,
       usage,
       {file, "1,048,576 bytes", restore},
       [](const Place& p) { p.write(file, ""), fs::resize_file(p.at(file), 1 << 30); }},
      {"study_that_is_a_folder", line, ExitCode::io, {"'" + file + "'", "Is a directory"}, with_file(file + "/text", "")},
      edited("of_the_future", "seeds = 1", "seeds = 1\ncolour = 1", {"unknown key `compare.colour`"}),
      edited("without_a_key", "tolerance = 0.005", "", {"`compare.tolerance` is missing"}),
      edited("of_no_seeds", "seeds = 1", "seeds = 0", {"`compare.seeds` must be an integer in [1, 100]"}),
      edited("of_too_many_twins", "twins = 0", "twins = 101", {"`compare.twins` must be an integer in [0, 100]"}),
      edited("of_an_arm_without_keys", "arms = []", "arms = [\"a:\"]", {"--arm a: a key is missing"}),
      edited("of_an_arm_that_leads_outside", "arms = []", "arms = [\"../a: seed=1\"]", {"--arm \"../a: seed=1\"", "a name has 1 to 64"}),
      edited("of_an_unknown_recipe", "\"bf16\"", "\"bf17\"", {"did you mean \"bf16\"?"}),
      edited("of_a_recipe_twice", "\"bf16\"", "\"bf16\", \"bf16\"", {"bf16 twice"}),
  };
}

std::vector<Case> of_runs() {
  constexpr ExitCode damaged = ExitCode::data;
  return {
      {"study_of_another_text",
       line,
       damaged,
       {"data.path = \"data\"", "another text", "put that one there"},
       [](const Place& p) { make_study(p), p.edit(file, "text = \"", "text = \"0"); }},
      {"study_of_damaged_facts",
       line,
       damaged,
       {"study/current/run.json", "not valid JSON", "or remove study/current" + anew},
       [](const Place& p) { make_study(p), p.write("study/current/run.json", "{"); }},
      {"study_of_damaged_metrics",
       line,
       damaged,
       {"study/current/metrics.jsonl:1", "a JSON object must begin here", "or remove study/current" + anew},
       [](const Place& p) { make_study(p), train_baseline(p), p.write("study/current/metrics.jsonl", "loss 2\n"); }},
      {"study_of_a_damaged_checkpoint",
       line,
       damaged,
       {"study/current/checkpoints/step-000000002/state.safetensors", "damaged", "or remove study/current" + anew},
       [](const Place& p) {
         make_study(p), train_baseline(p), p.edit("study/current/run.json", "\"finished\"", "\"stopped\"");
         p.flip("study/current/checkpoints/step-000000002/state.safetensors", 5000);
         fs::remove_all(p.at("study/current/checkpoints/step-000000001"));
       }},
      {"study_without_its_baselines_gradient",
       line,
       damaged,
       {"study/current/first-gradient.safetensors", "no such file", "remove study/current: the baseline is then trained again"},
       [](const Place& p) { make_study(p), train_baseline(p); }},
      {"study_of_another_gradient",
       line,
       damaged,
       {"study/current/first-gradient.safetensors", "remove study/current: the baseline is then trained again"},
       [](const Place& p) {
         make_study(p), train_baseline(p),
             p.write("study/current/first-gradient.safetensors", p.bytes("study/current/weights/model.safetensors"));
       }},
  };
}

}  // namespace

std::vector<Case> studies() { return all_of({of_files(), of_runs()}); }

}  // namespace octet::bad_input
