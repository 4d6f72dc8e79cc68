#include "octet/plan/given_layout.hpp"

#include "octet/base/text.hpp"

namespace octet::plan {
namespace {

[[noreturn]] void refuse(const std::string& word, const std::string& wanted) {
  throw ConfigError(format("--layout {}: {}", printable(word), wanted));
}

std::int64_t count_in(const std::string& word, const std::string& value, std::int64_t least, std::int64_t most) {
  const auto n = parse_number(value);
  if (!n || *n != double(std::int64_t(*n)) || *n < double(least) || *n > double(most))
    refuse(word, format("wants a whole number from {} to {}", least, most));
  return std::int64_t(*n);
}

template <class T>
T named_in(const std::string& word, const std::string& value, std::initializer_list<std::pair<const char*, T>> names) {
  std::vector<std::string> all;
  for (const auto& [name, meaning] : names) {
    if (value == name) return meaning;
    all.push_back(name);
  }
  refuse(word, format("wants {}", joined(all)));
}

void set(Layout& l, const std::string& word, const std::string& key, const std::string& value) {
  std::string names;
  for (const train::LayoutNumber& n : train::layout_numbers) {
    if (key == n.name) return void(l.*n.in_layout = count_in(word, value, n.least, n.most));
    names += format("{}, ", n.name);
  }
  using enum parallel::Schedule;
  using enum optim::Level;
  if (key == "batch") l.micro_batch = count_in(word, value, 1, 1 << 20);
  else if (key == "level") l.level = named_in<optim::Level>(word, value, {{"O0", O0}, {"O1", O1}, {"O2", O2}, {"O3", O3}});
  else if (key == "schedule")
    l.schedule = named_in<parallel::Schedule>(
        word, value,
        {{"1f1b", one_f_one_b}, {"gpipe", gpipe}, {"interleaved", interleaved}, {"zero_bubble", zero_bubble}, {"dualpipe_v", dualpipe_v}});
  else if (key == "recompute")
    l.recomputed =
        named_in<Recomputed>(word, value, {{"none", Recomputed::none}, {"norms", Recomputed::norms}, {"block", Recomputed::block}});
  else refuse(word, format("its keys are {}schedule, batch, recompute and level", names));
}

}  // namespace

Layout layout_in_words(const std::string& words, const Question& q) {
  Layout l{.level = q.levels.front(), .eight_bit = q.eight_bit};
  bool data = false;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size()), equal = words.find('=', at);
    const std::string word = words.substr(at, end - at);
    if (equal >= end) refuse(word, "wants key=value, such as tensor=4");
    const std::string key = words.substr(at, equal - at);
    set(l, word, key, words.substr(equal + 1, end - equal - 1));
    data |= key == "data", at = end + 1;
  }
  if (!data && q.job.gpus % l.gpus() == 0) l.data = q.job.gpus / l.gpus();
  if (l.gpus() != q.job.gpus) refuse(words, format("has {} ranks, and --gpus {}", grouped(l.gpus()), grouped(q.job.gpus)));
  if (l.chunks > 1 && l.schedule == parallel::Schedule::one_f_one_b) l.schedule = parallel::Schedule::interleaved;
  l.chunks = chunks_of(l.schedule, l.chunks);
  return l;
}

Candidate assess(const Layout& l, const Question& q, MemorySource& source) {
  const train::Subject subject = subject_of(q);
  if (const auto* broken = first_broken(l, subject, {train::LayoutConstraint::Holds::always}))
    throw ConfigError(sentence(broken, l, subject));
  Candidate c{l, step_time(q.model, l, q.job, q.program(l)), {}};
  c.memory = stage_memory(source.layer_memory(l), q.model, l, q.job);
  c.memory.raise_to(source.needed(l));
  return c;
}

}  // namespace octet::plan
