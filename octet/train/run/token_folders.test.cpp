#include "octet/train/run/config/token_folders.hpp"

#include "octet/comm/self/self.hpp"
#include "octet/models/chat_template.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/tokenizer/bpe_training.hpp"
#include "octet/tokenizer/pre_tokenizer.hpp"
#include "octet/train/run/config/open_corpus.hpp"
#include "octet/train/run/small_runs.testing.hpp"

// Runs whose data is text: conversations, pairs of answers and plain text, against the same runs on token folders.

namespace octet::train {
namespace {

namespace fs = std::filesystem;
using octet::testing::error_of, octet::testing::has;
using testing::Runs;

std::string conversation(int i) {
  return format(
      "{\"messages\": [{\"role\": \"user\", \"content\": \"what is {} and {}?\"}, {\"role\": \"assistant\", \"content\": \"{}\"}]}\n", i,
      i % 7, i + i % 7);
}
std::string pair(int i) { return format("{\"prompt\": \"{} or {}?\", \"chosen\": \"{}\", \"rejected\": \"no\"}\n", i, i + 1, i + 1); }

std::string lines(int count, std::string (*line)(int)) {
  std::string out;
  for (int i = 0; i < count; ++i) out += line(i);
  return out;
}

// Of a small model with a tokenizer of bytes and two marks.
struct TextRuns : Runs {
  explicit TextRuns(const std::string& recipe = "bf16") : Runs(recipe) {
    scratch.write("tokenizer/tokenizer_config.json", "{\"eos_token\": \"<|im_end|>\"}");
    scratch.write(
        "tokenizer/tokenizer.json",
        tokenizer::tokenizer_json({tokenizer::byte_tokens(), {}}, std::string(tokenizer::default_pattern), {"<|im_start|>", "<|im_end|>"}));
    data::tokenize({scratch.write("base.txt", lines(200, conversation))}, scratch.at("base"), {.tokenizer = scratch.at("tokenizer")});
    config.data.path = scratch.at("base"), config.data.eval_fraction = 0, config.model.vocabulary = 258;
    config.train.steps = 2, config.name = "base";
    config.model.init = train().folder + "/weights";
    config.train.steps = 9, config.name = "", config.data.eval_fraction = 0.25;
    config.data.chat_template = "chatml", config.data.document_mask = true;
    config.data.path = scratch.write("chat.jsonl", lines(150, conversation));
  }

  // Through the text, on one rank or several.
  Outcome train_text(const std::string& resume = "", int ranks = 1) const {
    Outcome first;
    comm::run_on_threads({.ranks = ranks, .limit_seconds = 60}, [&](comm::Communicator& c) {
      const RunConfig own = resume.empty() ? config : stored_model(config, resume);
      const auto corpus = open_corpus(own, c);
      Outcome outcome = Trainer(own, *corpus, {.console = Console::Kind::quiet, .resume = resume, .ranks = &c, .ranks_here = ranks}).run();
      if (c.rank() == 0) first = std::move(outcome);
    });
    return first;
  }
  std::string tokenized(const std::string& file, bool pairs) const {
    const auto form = models::ChatTemplate::named("chatml", "");
    data::tokenize({scratch.at(file)}, scratch.at(file + "-tokens"),
                   {.tokenizer = config.model.init, .chat = [=](const auto& m) { return form.render(m); }, .pairs = pairs});
    return scratch.at(file + "-tokens");
  }
  std::size_t made() const {
    const fs::path folder = config.output + "/" + TokenFolders::folder_name;
    return fs::exists(folder) ? std::size_t(std::distance(fs::directory_iterator(folder), fs::directory_iterator())) : 0;
  }
  std::string refusal() const {
    comm::SelfCommunicator alone;
    return error_of<Error>([&] { open_corpus(config, alone); });
  }
};

TEST(TextRun, OfConversationsHasTheBitsOfTheSameRunOnATokenFolder) {
  for (const int ranks : {1, 2}) {
    TextRuns runs;
    runs.config.ranks.data = ranks;
    const std::string text = runs.train_text("", ranks).folder;
    EXPECT_EQ(runs.made(), 1u);
    runs.config.data.path = runs.tokenized("chat.jsonl", false);
    testing::expect_same_run(runs.train_on(ranks).folder, text, 9);
    const telemetry::DataFacts facts = telemetry::read_run_facts(text + "/run.json").data;
    EXPECT_TRUE(has(facts.folder, "/.tokens/chat-")) << facts.folder;
    EXPECT_EQ(facts.documents, 150);
    EXPECT_EQ(facts.tokens, std::int64_t(data::Dataset(runs.config.data.path).token_count()));
  }
}

TEST(TextRun, IsResumedOnItsTokensAndRefusesTextThatChanged) {
  TextRuns runs;
  const std::string whole = runs.train_text().folder, cut = runs.copy_of(whole, "cut");
  fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
  fs::remove_all(runs.config.model.init + "/tokenizer.json");
  runs.train_text(cut);
  testing::expect_same_run(whole, cut, 9);
  EXPECT_EQ(runs.made(), 1u) << "by the run's own tokenizer";
  fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
  data::replace_file(runs.config.data.path, lines(151, conversation));
  EXPECT_TRUE(has(error_of<DataError>([&] { runs.train_text(cut); }), "chat.jsonl\" holds another text than the one"));
  EXPECT_EQ(runs.made(), 2u) << "never the tokens of two texts in one folder";
}

TEST(TextRun, OfPairsHasTheBitsOfTheSameRunOnATokenFolder) {
  TextRuns runs;
  runs.config.dpo.beta = 0.1, runs.config.data.sequence_length = 128;
  runs.config.data.path = runs.scratch.write("pairs.jsonl", lines(60, pair));
  const std::string text = runs.train_text().folder;
  runs.config.data.path = runs.tokenized("pairs.jsonl", true);
  testing::expect_same_run(runs.train().folder, text, 9);
}

TEST(TextRun, TakesPlainTextMixedTextsAndTextToEvaluateOn) {
  TextRuns runs;
  runs.config.data.path = runs.scratch.write("a.txt", lines(100, conversation));
  runs.config.data.mix = {runs.scratch.write("b.jsonl", "{\"text\": \"" + std::string(3000, 'x') + "\"}\n") + ":0.25"};
  runs.config.data.eval_path = runs.scratch.write("c.ndjson", lines(60, conversation));
  comm::SelfCommunicator alone;
  const auto corpus = open_corpus(runs.config, alone);
  EXPECT_EQ(corpus->training().texts().size(), 2u);
  EXPECT_EQ(corpus->dataset().document_count(), 1u);
  EXPECT_FALSE(corpus->dataset().marks_context());
  EXPECT_EQ(runs.made(), 3u);
  EXPECT_TRUE(with_found_token_folders(runs.config));
  data::replace_file(runs.scratch.at("a.txt"), "other");
  EXPECT_FALSE(with_found_token_folders(runs.config));
}

TEST(TextRun, KeepsConversationsApartUnlessItsKeyIsSet) {
  TextRuns runs;
  runs.config.data.document_mask = false;
  RunConfig c = runs.config;
  keep_conversations_apart(c, {{"data.document_mask", "--set"}});
  EXPECT_FALSE(c.data.document_mask);
  keep_conversations_apart(c, {});
  EXPECT_TRUE(c.data.document_mask);
  c = runs.config;
  c.data.path = runs.scratch.at("base.txt");
  keep_conversations_apart(c, {});
  EXPECT_FALSE(c.data.document_mask) << "plain text";
  c.data.mix = {runs.scratch.at("chat.jsonl") + ":0.5"};
  keep_conversations_apart(c, {});
  EXPECT_TRUE(c.data.document_mask);
}

TEST(TextRun, NamesWhatIsMissingOrWrongOnEveryRank) {
  TextRuns runs;
  runs.config.data.chat_template = "";
  EXPECT_TRUE(has(runs.refusal(), "has no chat template"));
  EXPECT_TRUE(has(runs.refusal(), "data.chat_template"));
  runs.config.data.chat_template = "alpaca";
  EXPECT_TRUE(has(runs.refusal(), "\"alpaca\" does not exist"));
  runs.config.data.chat_template = "chatml";
  data::replace_file(runs.config.data.path, conversation(1) + "{\"question\": 1}\n");
  EXPECT_TRUE(has(runs.refusal(), "chat.jsonl:2: it has no \"messages\"")) << runs.refusal();
  std::array<std::string, 2> told;
  comm::run_on_threads({.ranks = 2, .limit_seconds = 60},
                       [&](comm::Communicator& c) { told[std::size_t(c.rank())] = error_of<Error>([&] { open_corpus(runs.config, c); }); });
  EXPECT_TRUE(has(told[0], "chat.jsonl:2: it has no \"messages\""));
  EXPECT_EQ(told[0], told[1]);
  EXPECT_EQ(runs.made(), 0u) << "nothing incomplete is left";
  runs.config.data.path = runs.scratch.at("none.jsonl");
  EXPECT_TRUE(has(runs.refusal(), "data.path: there is no file '" + runs.config.data.path + "'"));
  runs.config.data.path = runs.scratch.at("chat.jsonl");
  fs::remove(runs.config.model.init + "/tokenizer.json");
  EXPECT_TRUE(has(runs.refusal(), "has no tokenizer.json; copy it there"));
  runs.config.model.init = "";
  EXPECT_TRUE(has(runs.refusal(), "has conversations, which become tokens by a model's tokenizer; name the model's folder with --init"));
  runs.config.data.path = runs.scratch.at("base.txt");
  EXPECT_TRUE(has(runs.refusal(), "is a file, not a token folder; tokenize it first"));
}

}  // namespace
}  // namespace octet::train
