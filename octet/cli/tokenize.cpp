#include <unistd.h>

#include "octet/cli/command.hpp"
#include "octet/data/tokenize.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::vector<std::string> inputs;
  std::string output;
  double max_mb = 0;
  std::int64_t shard_bytes = std::int64_t(data::TokenizeOptions{}.shard_bytes);
  data::TokenizeOptions tokenize;
};

class Bar final : public data::TokenizeProgress {
 public:
  void advance(std::uint64_t done, std::uint64_t total) override {
    if (isatty(STDERR_FILENO) == 0 || total == 0) return;
    constexpr int width = 40;
    const int filled = int(double(width) * double(done) / double(total));
    std::fprintf(stderr, "\r[%s%s] %3d%%  %s of %s\x1b[K", std::string(std::size_t(filled), '#').c_str(), std::string(std::size_t(width - filled), '.').c_str(),
                 int(100.0 * double(done) / double(total)), bytes_text(double(done)).c_str(), bytes_text(double(total)).c_str());
    if (done == total) std::fputc('\n', stderr);
  }
};

}  // namespace

void add_tokenize(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("tokenize", "Turn text files into a token folder to train on",
                                  "  octet tokenize --input 'docs/**/*.txt' --output data/docs\n"
                                  "  octet tokenize --input '/usr/include/**/*.h' --max-mb 20 --output data/headers --force");
  command.option("-i,--input", o->inputs, "files or patterns, quoted: *, ?, ** for any folders; may be repeated", 0, true);
  command.option("-o,--output", o->output, "folder to make", {}, true);
  command.option("--tokenizer", o->tokenize.tokenizer, "byte: every byte is a token");
  command.option("--max-mb", o->max_mb, "stop before the file that would pass this many megabytes of text; 0: all", {.at_least = 0});
  command.option("--shard-bytes", o->shard_bytes, "no shard's file is larger", {.at_least = 1024});
  command.flag("--force", o->tokenize.force, "replace the token folder that is there");
  command.run([o] {
    o->tokenize.max_bytes = std::uint64_t(o->max_mb * 1e6), o->tokenize.shard_bytes = std::uint64_t(o->shard_bytes);
    Bar bar;
    const data::TokenizeResult r = data::tokenize(o->inputs, o->output, o->tokenize, &bar);
    std::printf("%s: %s tokens in %s documents, %s of text, %llu shard%s\n", o->output.c_str(), grouped((long long)r.tokens).c_str(), grouped((long long)r.documents).c_str(),
                bytes_text(double(r.bytes)).c_str(), (unsigned long long)r.shards, r.shards == 1 ? "" : "s");
    return ExitCode::done;
  });
}

}  // namespace octet::cli
