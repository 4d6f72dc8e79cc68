#include "octet/cli/eval_task.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/file.hpp"
#include "octet/base/output.hpp"
#include "octet/json/value.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/step/choices.hpp"

namespace octet::cli {
namespace {

std::string share(std::int64_t right, std::int64_t n) {
  const double p = double(right) / double(n);
  return format("{} +- {}", fixed(p, 4), fixed(train::standard_error(p, n), 4));
}

using Encoded = std::vector<std::vector<train::EncodedChoice>>;

// Of all choices, question after question. Each rank computes a share of the questions.
std::vector<double> log_likelihoods(train::Engine& engine, const Encoded& questions) {
  comm::Communicator& ranks = engine.ranks();
  std::vector<double> own;
  std::vector<std::size_t> owner;
  for (std::size_t i = 0; i < questions.size(); ++i)
    for (const train::EncodedChoice& c : questions[i]) {
      owner.push_back(i % std::size_t(ranks.size()));
      own.push_back(owner.back() == std::size_t(ranks.rank()) ? train::log_likelihood(engine, c.ids, c.scored) : 0);
    }
  const std::vector<double> all = parallel::gathered(engine.stream, ranks, own);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = all[owner[i] * own.size() + i];
  return own;
}

std::string answer_line(const data::MultipleChoice& q, const train::Chosen& chosen, std::span<const double> sums) {
  json::Value line{json::Object()};
  line.set("log_likelihoods", json::Array(sums.begin(), sums.end()));
  line.set("likeliest", chosen.likeliest).set("likeliest_per_character", chosen.likeliest_per_character).set("answer", q.answer);
  return line.dump();
}

}  // namespace

void EvalTask::add_to(Command& command) {
  command.option("--task", file,
                 "JSON lines with questions of HellaSwag, ARC or MMLU, or with context, choices and answer: print how many are answered "
                 "rightly, and no loss");
  command.option("--limit", limit, "with --task: the first so many questions; 0: all", {.at_least = 0});
  command.option("--answers", answers,
                 "with --task: write a JSON line per question to this file: log-likelihoods of its choices, and the choice");
  command.option("--tokenizer", tokenizer, "with --task: a tokenizer.json, a folder that has one, or byte; without it, the model folder's");
}

ExitCode EvalTask::run(const trained::TrainedModel& model, comm::Communicator& ranks) const {
  const auto encoder = model.open_tokenizer(tokenizer);
  std::vector<data::MultipleChoice> questions = data::read_multiple_choice(file);
  if (limit > 0 && std::int64_t(questions.size()) > limit) questions.resize(std::size_t(limit));
  Encoded encoded;
  std::size_t longest = 1;
  for (const data::MultipleChoice& q : questions) {
    encoded.push_back(train::encode_choices(*encoder, q, model.max_sequence()));
    for (const train::EncodedChoice& c : encoded.back()) longest = std::max(longest, c.ids.size() - 1);
  }
  if (encoder->vocab_size() > model.source().shape.vocabulary)
    throw ConfigError(format("{} has {} tokens, the model {}; it was trained with another one", encoder->name(), encoder->vocab_size(),
                             model.source().shape.vocabulary));
  if (!answers.empty() && ranks.rank() == 0) require_writable(answers);
  const auto engine = model.load(std::int64_t(longest), &ranks);
  const std::vector<double> sums = log_likelihoods(*engine, encoded);
  if (!std::ranges::all_of(sums, [](double x) { return std::isfinite(x); }))
    throw DataError(
        format("{}: likelihoods are not finite, so there is no result: the weights are damaged or of another scale; fetch the "
               "model again",
               printable(model.source().folder)));
  train::ChoiceCounts counts;
  std::string lines;
  std::span<const double> rest = sums;
  for (const data::MultipleChoice& q : questions) {
    const auto own = rest.first(q.choices.size());
    rest = rest.subspan(own.size());
    const train::Chosen chosen(q, own);
    counts.add(q, chosen);
    lines += answer_line(q, chosen, own) + "\n";
  }
  if (!answers.empty()) parallel::work_of_first(engine->stream, ranks, [&] { write_file(answers, lines); });
  output::print("{}: acc {}, acc_norm {}, {} questions under {}\n", printable(file), share(counts.right, counts.questions),
                share(counts.right_per_character, counts.questions), grouped(counts.questions), model.precision.recipe);
  return ExitCode::done;
}

}  // namespace octet::cli
