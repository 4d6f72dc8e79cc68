#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "tests/house/source_tree.hpp"

// The vocabulary of a level never appears on a level that should not know it: one table, word -> the folders that may use it.
//   - Words are found inside identifiers too (is_mxfp8, DelayedScaling), whatever their case; numbers only as whole tokens.
//   - Comments count: they are where vocabulary leaks first. Free is what follows "Source:" or "Sources:", to the end of that comment.
//   - Tests, documents, examples and configurations may say everything, and so may the examples in the program's --help.

namespace octet::house {
namespace {

struct Rule {
  std::string_view word;
  enum class Kind { anywhere, whole_word, number } kind;
  std::vector<std::string_view> where;  // folders or files below octet/ that the rule is about; "" for all
  std::vector<std::string_view> allowed;
  std::string_view why;
};

using Kind = Rule::Kind;
using Places = std::vector<std::string_view>;

std::vector<Rule> rules() {
  std::vector<Rule> all;
  const auto add = [&](Places words, Kind kind, Places where, Places allowed, std::string_view why) {
    for (const std::string_view word : words) all.push_back({word, kind, where, allowed, why});
  };
  add({"delayed", "rowwise", "block128", "mxfp8"}, Kind::anywhere, {""}, {"octet/scaling/", "octet/models/weight_form"},
      "recipes are named in octet/scaling only; elsewhere say what the layout or the rule is");
  add({"448", "57344"}, Kind::number, {""}, {"octet/numerics/formats.hpp"}, "write E4M3::max or E5M2::max");
  add({"llama", "qwen", "gpt2", "gpt-2", "olmoe", "mixtral", "deepseek_moe", "deepseek_v2", "deepseek_v3", "mistral", "smollm3", "granite",
       "olmo2", "phi3", "gemma3"},
      Kind::anywhere, {""}, {"octet/models/", "octet/cli/", "octet/train/", "octet/plan/"}, "models are named in octet/models");
  add({"cuda"}, Kind::anywhere,
      {"octet/config/", "octet/data/", "octet/io/", "octet/scaling/", "octet/nn/", "octet/optim/", "octet/models/", "octet/parallel/",
       "octet/train/", "octet/plan/", "octet/serve/"},
      {}, "only backend files know the device");
  add({"Tensor", "Stream"}, Kind::whole_word, {"octet/numerics/"}, {}, "numerics knows bits only");
  add({"Recipe", "recipes"}, Kind::whole_word, {"octet/tensor/", "octet/ops/", "octet/comm/"}, {}, "ops read a layout, never a recipe");
  add({"safetensors", "json"}, Kind::anywhere, {"octet/ops/", "octet/scaling/", "octet/nn/", "octet/optim/"}, {},
      "file formats belong to octet/io");
  add({"world_size", "Communicator"}, Kind::whole_word, {"octet/ops/", "octet/models/"}, {}, "only comm and parallel know of ranks");
  return all;
}

char lower(char c) { return char(std::tolower(static_cast<unsigned char>(c))); }
bool word_letter(std::string_view text, std::size_t i) {
  return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
}

bool says(std::string_view text, const Rule& rule) {
  const auto equal = [&](char a, char b) { return rule.kind == Kind::anywhere ? lower(a) == lower(b) : a == b; };
  for (auto at = text.begin(); (at = std::search(at, text.end(), rule.word.begin(), rule.word.end(), equal)) != text.end(); ++at) {
    if (rule.kind == Kind::anywhere) return true;
    const std::size_t begin = std::size_t(at - text.begin()), end = begin + rule.word.size();
    const bool starts = begin == 0 || !(word_letter(text, begin - 1) || (rule.kind == Kind::number && text[begin - 1] == '.'));
    const bool ends =
        !word_letter(text, end) || (rule.kind == Kind::number && std::string_view("fFuUlL").find(text[end]) != std::string_view::npos);
    if (starts && ends) return true;
  }
  return false;
}

bool concerns(const Rule& rule, const SourceFile& file) {
  const auto holds = [&](std::string_view place) { return file.is_below(place); };
  return file.is_below("octet/") && !file.is_test() && file.is_code() && std::any_of(rule.where.begin(), rule.where.end(), holds) &&
         std::none_of(rule.allowed.begin(), rule.allowed.end(), holds);
}

// A command line in the help text of octet/cli, a string that begins with "  octet ".
bool is_example(const SourceFile& file, std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  return file.is_below("octet/cli/") && begin != std::string_view::npos && line.substr(begin).starts_with("\"  octet ");
}

// What of each line the rules look at: code and comment, without the rest of a comment block after "Source:".
std::vector<std::string> spoken(const SourceFile& file) {
  std::vector<std::string> out;
  bool citing = false;
  for (const std::string& line : file.lines) {
    SplitLine split = split_comment(line);
    const bool only_comment = split.code.find_first_not_of(" \t") == std::string::npos && !split.comment.empty();
    citing = citing && only_comment;
    const std::size_t source = citing ? 0 : std::min(split.comment.find("Source:"), split.comment.find("Sources:"));
    if (source != std::string::npos) {
      split.comment.resize(source);
      citing = true;
    }
    out.push_back(is_example(file, line) ? "" : split.code + " " + split.comment);
  }
  return out;
}

void collect(const SourceFile& file, const std::vector<Rule>& all, std::vector<std::string>& violations) {
  std::vector<const Rule*> ours;
  for (const Rule& rule : all)
    if (concerns(rule, file)) ours.push_back(&rule);
  const std::vector<std::string> lines = spoken(file);
  for (const Rule* rule : ours) {
    if (says(file.path, *rule))
      violations.push_back(file.path + ": the path says '" + std::string(rule->word) + "': " + std::string(rule->why));
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (says(lines[i], *rule)) violations.push_back(at_line(file, i, "'" + std::string(rule->word) + "': " + std::string(rule->why)));
  }
}

TEST(Vocabulary, EveryWordStandsOnlyOnItsLevels) {
  std::vector<std::string> violations;
  const std::vector<Rule> all = rules();
  for (const SourceFile& file : source_tree()) collect(file, all, violations);
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

// Kernels are compiled for devices by one macro, so numerics needs the word in the host-device guards alone.
TEST(Vocabulary, NumericsSaysCudaOnlyInPreprocessorGuardsAndComments) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree()) {
    if (!file.is_below("octet/numerics/") || file.is_test()) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = split_comment(file.lines[i]).code;
      if (says(code, {"cuda", Kind::anywhere, {}, {}, ""}) && !code.starts_with("#if")) violations.push_back(at_line(file, i, code));
    }
  }
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

std::vector<std::string> found_in(std::string path, std::vector<std::string> lines) {
  std::vector<std::string> violations;
  collect({std::move(path), std::move(lines)}, rules(), violations);
  return violations;
}

TEST(Vocabulary, TheCheckSeesWhatItShallSee) {
  EXPECT_EQ(found_in("octet/ops/a.cpp", {"if (recipe.is_mxfp8())"}).size(), 1u);
  EXPECT_EQ(found_in("octet/nn/a.hpp", {"class DelayedLinear;", "float x = 448.0f;"}).size(), 2u);
  EXPECT_EQ(found_in("octet/nn/a.hpp", {"int n = 1448 + 4480, hex = 0x448;"}).size(), 0u);
  EXPECT_EQ(found_in("octet/scaling/mxfp8/a.cpp", {"MXFP8"}).size(), 0u);
  EXPECT_EQ(found_in("octet/ops/a.test.cpp", {"rowwise 448"}).size(), 0u);
  EXPECT_EQ(found_in("octet/numerics/a.hpp", {"/// Rounded up. Source: the mxfp8", "/// kernel, mxfp8.cuh", "int mxfp8;"}).size(), 1u);
  EXPECT_EQ(found_in("octet/train/a.cpp", {"stream = cuda_stream();"}).size(), 1u);
  EXPECT_EQ(found_in("octet/ops/rope/a.cpp", {"// as in Llama"}).size(), 1u);
  EXPECT_EQ(found_in("octet/ops/rope/a.cpp", {"// Source: Llama 3, section 2"}).size(), 0u);
  EXPECT_EQ(found_in("octet/cli/a.cpp", {"    \"  octet train --fp8 mxfp8\\n\"", "names = {\"mxfp8\"};"}).size(), 1u);
  EXPECT_EQ(found_in("octet/scaling/rowwise.cpp", {""}).size(), 0u);
  EXPECT_EQ(found_in("octet/ops/rowwise.cpp", {""}).size(), 1u);
}

}  // namespace
}  // namespace octet::house
