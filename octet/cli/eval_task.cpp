#include "octet/cli/eval_task.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/output.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/train/step/choices.hpp"

namespace octet::cli {
namespace {

std::string share(std::int64_t right, std::int64_t n) {
  const double p = double(right) / double(n);
  return format("{} +- {}", fixed(p, 4), fixed(train::standard_error(p, n), 4));
}

}  // namespace

void EvalTask::add_to(Command& command) {
  command.option("--task", file,
                 "JSON lines with questions of HellaSwag, ARC or MMLU, or with context, choices and answer: print how many are answered "
                 "rightly, and no loss");
  command.option("--limit", limit, "with --task: the first so many questions; 0: all", {.at_least = 0});
  command.option("--tokenizer", tokenizer, "with --task: a tokenizer.json, a folder that has one, or byte; without it, the model folder's");
}

ExitCode EvalTask::run(const trained::TrainedModel& model, comm::Communicator& ranks) const {
  const auto encoder = model.open_tokenizer(tokenizer);
  std::vector<data::MultipleChoice> questions = data::read_multiple_choice(file);
  if (limit > 0 && std::int64_t(questions.size()) > limit) questions.resize(std::size_t(limit));
  std::vector<std::vector<train::EncodedChoice>> encoded;
  std::size_t longest = 1;
  for (const data::MultipleChoice& q : questions) {
    encoded.push_back(train::encode_choices(*encoder, q, model.max_sequence()));
    for (const train::EncodedChoice& c : encoded.back()) longest = std::max(longest, c.ids.size() - 1);
  }
  if (encoder->vocab_size() > model.source().shape.vocabulary)
    throw ConfigError(format("{} has {} tokens, the model {}; it was trained with another one", encoder->name(), encoder->vocab_size(),
                             model.source().shape.vocabulary));
  const auto engine = model.load(std::int64_t(longest), &ranks);
  train::ChoiceCounts counts;
  bool finite = true;
  for (std::size_t i = std::size_t(ranks.rank()); i < questions.size(); i += std::size_t(ranks.size())) {
    std::vector<double> sums;
    for (const train::EncodedChoice& c : encoded[i]) sums.push_back(train::log_likelihood(*engine, c.ids, c.scored));
    finite = finite && std::ranges::all_of(sums, [](double x) { return std::isfinite(x); });
    counts.add(questions[i], sums);
  }
  for (std::int64_t* n : {&counts.questions, &counts.right, &counts.right_per_character})
    *n = parallel::total(engine->stream, engine->ranks(), *n);
  if (parallel::total(engine->stream, engine->ranks(), finite ? 0 : 1) > 0)
    throw DataError(
        format("{}: likelihoods are not finite, so there is no result: the weights are damaged or of another scale; fetch the "
               "model again",
               printable(model.source().folder)));
  if (ranks.rank() == 0)
    output::print("{}: acc {}, acc_norm {}, {} questions under {}\n", printable(file), share(counts.right, counts.questions),
                  share(counts.right_per_character, counts.questions), grouped(counts.questions), model.precision.recipe);
  return ExitCode::done;
}

}  // namespace octet::cli
