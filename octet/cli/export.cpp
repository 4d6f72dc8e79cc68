#include "octet/base/output.hpp"
#include "octet/cli/trained_model.hpp"
#include "octet/train/step/weights.hpp"

namespace octet::cli {

void add_export(Program& program) {
  struct Options : TrainedModel {
    std::string output, dtype = "f32";
  };
  auto o = std::make_shared<Options>();
  Command command = program.command("export", "Write a model as a Hugging Face folder, for transformers",
                                    "  octet export runs/current --output exported --dtype bf16", Result::file);
  command.positional("model", o->folder, "folder of a run, or a Hugging Face folder", true);
  command.option("-o,--output", o->output, "folder to create", {}, true);
  command.option("--dtype", o->dtype, "f32 or bf16", {.one_of = {"f32", "bf16"}});
  command.run([o] {
    o->precision.recipe = "fp32", o->device = "cpu";
    const auto engine = o->load(1);
    train::save_weights(*engine, o->output, o->dtype == "bf16" ? DType::bf16 : DType::f32);
    output::print("{}: {} parameters as {}\n", printable(o->output), grouped(engine->parameters.count()), o->dtype);
    return ExitCode::done;
  });
}

}  // namespace octet::cli
