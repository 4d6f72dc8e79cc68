#include "octet/plan/search.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace octet::plan {
namespace {

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

std::vector<std::int64_t> powers_of_two(std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t x = 1; x <= most; x *= 2) out.push_back(x);
  return out;
}

// Interleaved chunks, of at least one block each.
std::vector<std::int64_t> chunk_counts(const PlannedModel& m, std::int64_t pipeline) {
  constexpr std::int64_t most = 12;
  std::vector<std::int64_t> out{1};
  for (std::int64_t chunks = 2; pipeline > 1 && chunks <= std::min(most, m.layers() / pipeline); ++chunks) out.push_back(chunks);
  return out;
}

// gpipe takes as long as 1f1b, and more memory.
std::vector<parallel::Schedule> schedules(const Layout& l) {
  using enum parallel::Schedule;
  if (l.chunks > 1) return {interleaved};
  return l.pipeline > 1 ? std::vector{one_f_one_b, zero_bubble} : std::vector{one_f_one_b};
}

// One of all ranks, those within nodes, and where the spine is slow those within leaf switches.
std::vector<std::int64_t> shard_groups(const Layout& l, const Job& job) {
  std::vector<std::int64_t> out{0};
  const std::int64_t inside = job.per_node() / l.tensor, leaf = job.machine.fabric.blocks() ? job.machine.fabric.nodes_per_leaf : 0;
  for (const std::int64_t group : {inside, inside * leaf})
    if (l.zero > 0 && group > 1 && group != out.back() && group % l.experts == 0 && group < l.sharers() && l.sharers() % group == 0)
      out.push_back(group);
  return out;
}

constexpr auto always = train::LayoutConstraint::Holds::always, here = train::LayoutConstraint::Holds::here,
               planned = train::LayoutConstraint::Holds::planned;

class Enumeration {
 public:
  Enumeration(const Question& q, const train::Subject& subject, bool eight_bit) : q_(q), subject_(subject), eight_bit_(eight_bit) {}

  std::vector<Candidate> all() {
    const std::int64_t gpus = q_.job.gpus;
    for (const std::int64_t tensor : divisors(gpus, q_.job.per_node()))
      for (const std::int64_t pipeline : divisors(gpus / tensor, q_.model.layers()))
        for (const std::int64_t context : powers_of_two(std::max<std::int64_t>(1, q_.job.sequence / 4096)))
          if (gpus / tensor / pipeline % context == 0) add_mesh({.tensor = tensor, .pipeline = pipeline, .context = context});
    return std::move(found_);
  }

 private:
  void add_mesh(Layout l) {
    l.data = q_.job.gpus / l.gpus(), l.eight_bit = eight_bit_;
    if (q_.job.sequences % l.sequence_groups() != 0) return;
    const std::vector<std::int64_t> experts =
        q_.model.experts.count > 0 ? powers_of_two(std::min(l.data, q_.model.experts.count)) : std::vector<std::int64_t>{1};
    for (const std::int64_t e : experts)
      for (const std::int64_t chunks : chunk_counts(q_.model, l.pipeline)) {
        l.experts = e, l.chunks = chunks;
        for (const parallel::Schedule schedule : schedules(l)) {
          l.schedule = schedule;
          for (l.zero = 0; l.zero <= 3; ++l.zero)
            for (const std::int64_t shard : shard_groups(l, q_.job)) {
              l.shard = shard;
              add_batches(l);
            }
        }
      }
  }

  void add_batches(Layout l) {
    for (l.micro_batch = 1; l.micro_batch <= std::min<std::int64_t>(64, q_.job.sequences / l.sequence_groups()); l.micro_batch *= 2)
      for (const Recomputed r : {Recomputed::none, Recomputed::norms, Recomputed::block})
        for (const optim::Level level : q_.levels) {
          l.recomputed = r, l.level = level;
          add(l);
        }
  }

  void add(const Layout& l) {
    if (first_broken(l, subject_, {always, planned}) || (q_.only_runnable && first_broken(l, subject_, {here}))) return;
    found_.push_back({l, step_time(q_.model, l, q_.job, q_.program(l)), {}});
  }

  const Question& q_;
  const train::Subject& subject_;
  const bool eight_bit_;
  std::vector<Candidate> found_;
};

std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t> mesh_of(const Layout& l) {
  return {l.tensor, l.pipeline, l.context, l.data, l.experts};
}

// Of layouts with equal times, the one with the least tuple is preferred.
auto simplicity(const Layout& l) {
  const int axes = (l.tensor > 1) + (l.pipeline > 1) + (l.context > 1);
  return std::tuple(axes, l.tensor * l.pipeline * l.context, int(l.recomputed), int(l.level), l.zero, l.shard > 0, l.defers(), l.chunks,
                    l.micro_batch);
}

void sort_by_time(std::vector<Candidate>& all) {
  double least = 1e300;
  for (const Candidate& c : all) least = std::min(least, c.time.total());
  const auto order = [&](const Candidate& c) {
    return std::tuple(int(std::log(c.time.total() / least) / std::log(1.02)), simplicity(c.layout), c.time.total());
  };
  std::sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) { return order(a) < order(b); });
}

double needs(const Candidate& c) { return c.memory.largest().total(); }

class Fit {
 public:
  Fit(const Question& q, MemorySource& source) : q_(q), source_(source) {}
  // The sum of parts sorts out most layouts; the bytes that a run needs decide about the others.
  bool operator()(Candidate& c) {
    if (needs(c) > 0) return fits(c);  // it was asked before
    c.memory = stage_memory(source_.layer_memory(c.layout), q_.model, c.layout, q_.job);
    if (!fits(c)) return false;
    c.memory.raise_to(source_.needed(c.layout));
    return fits(c);
  }

 private:
  bool fits(const Candidate& c) const { return needs(c) <= usable_memory * q_.job.memory; }

  const Question& q_;
  MemorySource& source_;
};

std::optional<Candidate> first_that_fits(std::vector<Candidate>& sorted, const train::Subject& subject, Fit& fits, bool runnable) {
  for (Candidate& c : sorted)
    if (!(runnable && first_broken(c.layout, subject, {here})) && fits(c)) return c;
  return std::nullopt;
}

}  // namespace

train::Subject subject_of(const Question& q) {
  train::Subject s = q.run;
  s.shape = q.model.shape, s.experts = q.model.experts.count;
  s.sequence = q.job.sequence, s.sequences = q.job.sequences, s.per_node = q.job.per_node();
  return s;
}

std::string not_trained(const Layout& l, const Question& q) {
  const train::Subject s = subject_of(q);
  return sentence(first_broken(l, s, {here}), l, s);
}

Answer search(const Question& q, MemorySource& source) {
  Answer out;
  const train::Subject subject = subject_of(q);
  std::vector<Candidate> all = Enumeration(q, subject, q.eight_bit).all(), other = Enumeration(q, subject, !q.eight_bit).all();
  out.valid = std::int64_t(all.size());
  if (all.empty()) {
    const Layout simple{.data = q.job.gpus, .level = q.levels.front(), .eight_bit = q.eight_bit};
    out.rule = sentence(first_broken(simple, subject, {always, planned, here}), simple, subject);
    return out;
  }
  sort_by_time(all), sort_by_time(other);
  Fit fits(q, source);
  std::set<decltype(mesh_of({}))> seen;
  for (Candidate& c : all) {
    if (out.best.size() == 5) break;
    if (seen.contains(mesh_of(c.layout))) continue;
    if (!fits(c)) {
      if (out.best.empty() && !(out.nearest_miss && needs(*out.nearest_miss) <= needs(c))) out.nearest_miss = c;
      ++out.too_large;
      continue;
    }
    seen.insert(mesh_of(c.layout));
    out.best.push_back(c);
  }
  out.runnable = first_that_fits(all, subject, fits, true);
  if (q.has_other_precision) out.other_precision = first_that_fits(other, subject, fits, q.only_runnable);
  return out;
}

}  // namespace octet::plan
