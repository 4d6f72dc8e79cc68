#include "octet/inspect/inspect.hpp"

#include "octet/base/output.hpp"
#include "octet/base/path.hpp"
#include "octet/cli/command.hpp"
#include "octet/inspect/number.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::string what, format;
};

ExitCode show(const Options& o) {
  constexpr std::size_t longest = 4096;  // of any path
  if (o.what.size() > longest)
    throw ConfigError(octet::format("{}: neither a number nor a path has more than {} characters; check it", printable(o.what), longest));
  const bool there = exists(o.what);
  const auto number = there ? std::nullopt : parse_number(o.what);
  if (!there && !number) throw ConfigError(octet::format("{}: neither a number nor a file or folder; check the path", printable(o.what)));
  if (there && !o.format.empty()) throw ConfigError("--format is for numbers; leave it out, or name a number");
  const inspect::Finding found = number ? inspect::Finding{inspect::number_text(*number, o.format), ""} : inspect::path_text(o.what);
  output::write(found.text);
  if (!found.damage.empty()) throw DataError(octet::format("damaged: {}; restore it from a copy, or remove it", found.damage));
  return ExitCode::done;
}

}  // namespace

void add_inspect(Program& program) {
  auto o = std::make_shared<Options>();
  Command command =
      program.command("inspect", "Verify and show a file or folder, or show a number's encoding in each format",
                      "  octet inspect runs/current                               a run: progress, quantizers, checkpoints\n"
                      "  octet inspect runs/current/checkpoints/step-000000120    every tensor\n"
                      "  octet inspect data/docs                                  a dataset, or one of its shards\n"
                      "  octet inspect fineweb/train_000.bin                      tokens of llm.c, LLM.Q, nanoGPT or Megatron\n"
                      "  octet inspect model.safetensors                          tensors, or a Hugging Face folder\n"
                      "  octet inspect 0.3 --format e4m3                          sign, exponent, mantissa, neighbours, error\n"
                      "Exit code 64: a part of it is damaged.");
  command.positional("what", o->what,
                     "path of a run, checkpoint, dataset, token shard, token file of another program, Hugging Face folder or safetensors "
                     "file, or a number",
                     true);
  command.option("--format", o->format, "of a number: " + joined(inspect::format_names()) + "; without it, all");
  command.run([o] { return show(*o); });
}

}  // namespace octet::cli
