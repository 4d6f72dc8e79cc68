#include <unistd.h>

#include <iostream>

#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/generation_options.hpp"
#include "octet/models/chat_template.hpp"

namespace octet::cli {
namespace {

using tokenizer::Message;

struct Options : GenerationOptions {
  std::string system, chat_template;
  std::int64_t context = 4096;

  models::ChatTemplate chat() const {
    const std::string& folder = source().companions_folder;
    if (!chat_template.empty()) return models::ChatTemplate::named(chat_template, folder.empty() ? "" : models::begin_of_text(folder));
    if (folder.empty())
      throw ConfigError(format("{} has no chat template; name one of {} with --chat-template", printable(source().folder),
                               joined(models::ChatTemplate::names())));
    return models::ChatTemplate::of_folder(folder);
  }
};

// The text up to where the assistant's next answer begins.
std::string text_before_answer(const models::ChatTemplate& chat, const std::vector<Message>& messages) {
  std::string out;
  for (const tokenizer::ChatSpan& p : chat.question(messages)) out += p.text;
  return out;
}

/// A conversation on the terminal.
class Conversation {
 public:
  Conversation(const Options& o, const tokenizer::Tokenizer& tokenizer, const models::ChatTemplate& chat, train::Engine& engine)
      : options_(o),
        tokenizer_(tokenizer),
        chat_(chat),
        engine_(engine),
        decoder_(train::Decoder::make(engine, o.decoding(1, engine.longest_sequence))),
        ends_(o.end_ids(tokenizer)) {
    std::vector<std::int32_t> mark;
    tokenizer.encode(chat.end_of_answer(), mark);
    if (mark.size() == 1) ends_.push_back(mark[0]);
    else stops_.push_back(std::string(chat.end_of_answer()));
    stops_.insert(stops_.end(), o.stops.begin(), o.stops.end());
    begin();
  }

  void begin() {
    messages_.clear();
    if (!options_.system.empty()) messages_.push_back({"system", options_.system});
  }

  /// Writes the answer as it is generated.
  void ask(const std::string& question) {
    messages_.push_back({"user", question});
    std::vector<std::int32_t> ids;
    tokenizer_.encode(text_before_answer(chat_, messages_), ids);
    if (std::int64_t(ids.size()) >= engine_.longest_sequence)
      throw ConfigError(
          format("the conversation has {} tokens, and {} fit; begin another one with /new, or raise --context, at most to the "
                 "model's {}",
                 ids.size(), engine_.longest_sequence, options_.max_sequence()));
    train::Generation g = options_.generation(ends_);
    g.tokens = std::min(g.tokens, engine_.longest_sequence - std::int64_t(ids.size()));
    g.first_draw = draws_, draws_ += std::uint64_t(g.tokens);
    GeneratedText text(tokenizer_, ids, stops_);
    std::string answer;
    const auto show = [&](const std::string& more) { output::write(more), output::finish(), answer += more; };
    const auto end = train::generate(engine_, *decoder_, std::span(&ids, 1), g, [&](std::size_t, std::int32_t id) {
      show(text.next(id));
      return !text.stopped();
    });
    show(text.finish());
    output::write("\n"), output::finish();
    if (end.front() == train::GenerationEnd::not_finite) options_.refuse_logits();
    messages_.push_back({"assistant", answer});
  }

 private:
  const Options& options_;
  const tokenizer::Tokenizer& tokenizer_;
  const models::ChatTemplate& chat_;
  train::Engine& engine_;
  std::unique_ptr<train::Decoder> decoder_;
  std::vector<std::int64_t> ends_;
  std::vector<std::string> stops_;
  std::vector<Message> messages_;
  std::uint64_t draws_ = 0;
};

ExitCode chat(const Options& o) {
  o.check_values();
  const auto tokenizer = o.open_tokenizer(o.tokenizer);
  o.require_vocabulary(*tokenizer);
  const models::ChatTemplate form = o.chat();
  const auto engine = o.load(std::min(o.context, o.max_sequence()));
  Conversation conversation(o, *tokenizer, form, *engine);
  const bool shows_prompt = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  if (shows_prompt) log::info("{}; /new begins another conversation, Ctrl-D ends", form.name());
  const auto next = [&](std::string& line) {
    if (shows_prompt) output::write("> "), output::finish();
    return bool(std::getline(std::cin, line));
  };
  for (std::string line; next(line);) {
    if (line == "/new") conversation.begin();
    else if (!line.empty()) conversation.ask(line);
  }
  return ExitCode::done;
}

}  // namespace

void add_chat(Program& program) {
  auto o = std::make_shared<Options>();
  o->tokens = 1000;
  Command command = program.command("chat", "Talk with a model on the terminal",
                                    "  octet chat Qwen3-0.6B\n"
                                    "  octet chat runs/tuned --system 'Answer briefly.' --temperature 0.6 --cache e4m3");
  o->add_to(command);
  command.option("--system", o->system, "the first message, of the system");
  command.option("--chat-template", o->chat_template, joined(models::ChatTemplate::names()) + "; without it, that of the model's folder");
  command.option("--context", o->context, "tokens of a conversation, at most those that the model reads", {.at_least = 2});
  command.run([o] { return chat(*o); });
}

}  // namespace octet::cli
