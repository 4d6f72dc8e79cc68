#include "tests/faults/trial.hpp"

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/telemetry/paired_gap.hpp"

namespace octet::faults {
namespace {

using Trials = std::vector<const Trial*>;

// Of each fault and recipe, in the order of their first trials by the list of faults.
std::vector<Trials> rows_of(const std::vector<Trial>& all) {
  std::vector<Trials> rows;
  for (const Fault& f : faults())
    for (const Trial& t : all) {
      if (t.fault != f.name) continue;
      const auto row = std::ranges::find_if(rows, [&](const Trials& r) { return r[0]->fault == t.fault && r[0]->recipe == t.recipe; });
      if (row == rows.end()) rows.push_back({&t});
      else row->push_back(&t);
    }
  return rows;
}

template <class Value>
std::vector<double> each(const Trials& row, const Value& value) {
  std::vector<double> out;
  for (const Trial* t : row) out.push_back(value(*t));
  return out;
}

std::string decibels(const std::vector<double>& values) {
  if (std::ranges::any_of(values, [](double x) { return std::isinf(x) && x > 0; })) return "exact";
  const telemetry::PairedGap g = telemetry::paired_gap(values);
  return g.pairs == 0 ? "-" : fixed(g.mean, 1);
}

std::string percent(const std::vector<double>& gaps) {
  const telemetry::PairedGap g = telemetry::paired_gap(gaps);
  const std::string lost = g.pairs == int(gaps.size()) ? "" : format("{} of {} lost", int(gaps.size()) - g.pairs, gaps.size());
  if (g.pairs == 0) return lost;
  const double half = telemetry::half_width(g, 0.95);
  return format("{}{}%{}{}", g.mean < 0 ? "" : "+", fixed(100 * g.mean, 2), std::isfinite(half) ? " ± " + fixed(100 * half, 2) : "",
                lost.empty() ? "" : "; " + lost);
}

// "scale_drop 3, loss_spike 1": how many trials have each value.
template <class Value>
std::string counted(const Trials& row, const Value& value) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Trial* t : row) {
    const std::string text = value(*t);
    const auto found = std::ranges::find(counts, text, &std::pair<std::string, int>::first);
    if (found == counts.end()) counts.emplace_back(text, 1);
    else ++found->second;
  }
  std::vector<std::string> words;
  for (const auto& [text, n] : counts) words.push_back(counts.size() == 1 ? text : format("{} ({})", text, n));
  return joined(words);
}

std::string delay_text(const Trials& row) {
  const std::vector<double> all = each(row, [](const Trial& t) { return t.delay < 0 ? INFINITY : double(t.delay); });
  const auto [least, most] = std::ranges::minmax(all);
  const auto text = [](double x) { return std::isinf(x) ? std::string("never") : to_text(std::int64_t(x)); };
  return least == most ? text(most) : text(least) + " to " + text(most);
}

std::string named_text(const Trial& t) {
  const std::string path = t.tensor.empty() ? "none" : "`" + t.tensor + "`";
  return t.named == Named::nothing ? path : format("{}: {}", path, t.named == Named::right ? "right" : "wrong");
}

const std::string& what_of(const Trial& t) { return fault(t.fault).what; }

std::string alerts_row(const Trials& row) {
  const auto rule = [](const Trial& t) { return t.rule.empty() ? std::string("none") : "`" + t.rule + "`"; };
  return format("| {} | {} | {} | {} | {} | {} |\n", what_of(*row[0]), row[0]->recipe, row.size(), counted(row, rule), delay_text(row),
                counted(row, named_text));
}

std::string loss_row(const Trials& row) {
  const auto actions = [](const Trial& t) { return t.act.ran ? joined(t.act.actions) : std::string("-"); };
  const bool acted = row[0]->act.ran;
  return format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", what_of(*row[0]), row[0]->recipe,
                decibels(each(row, [](const Trial& t) { return t.damage.sqnr_before; })),
                decibels(each(row, [](const Trial& t) { return t.damage.sqnr; })),
                decibels(each(row, [](const Trial& t) { return t.recorded_after; })),
                percent(each(row, [](const Trial& t) { return t.off.gap; })),
                acted ? percent(each(row, [](const Trial& t) { return t.act.gap; })) : "-", counted(row, actions));
}

json::Value to_json(const Ending& e) {
  if (!e.ran) return {};
  return json::Object{{"loss", e.loss}, {"gap", e.gap}, {"state", e.state}, {"skipped", e.skipped}, {"actions", json::array_of(e.actions)}};
}

}  // namespace

std::string tables(const std::vector<Trial>& all) {
  const std::vector<Trials> rows = rows_of(all);
  std::string out =
      "| fault | recipe | runs | first alert | after steps | first tensor |\n"
      "|---|---|---|---|---|---|\n";
  for (const Trials& row : rows) out += alerts_row(row);
  out +=
      "\n| fault | recipe | SQNR of other values before [dB] | with the fault | recorded in the next 10 steps | loss | loss with `act` | "
      "actions |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Trials& row : rows)
    if (fault(row[0]->fault).ranks == 1) out += loss_row(row);
  return out;
}

std::string summary(const std::vector<Trial>& all) {
  int scored = 0, detected = 0, with_tensor = 0, right = 0;
  for (const Trial& t : all) {
    if (!fault(t.fault).scored) continue;
    ++scored, detected += t.delay >= 0 && t.delay <= wanted_delay;
    with_tensor += t.named != Named::nothing, right += t.named == Named::right;
  }
  return format("{} of {} faults were detected within {} steps; {} of {} tensors were named first\n", detected, scored, wanted_delay, right,
                with_tensor);
}

json::Value to_json(const Trial& t) {
  return json::Object{{"fault", t.fault},
                      {"recipe", t.recipe},
                      {"seed", t.seed},
                      {"rule", t.rule},
                      {"delay", t.delay},
                      {"tensor", t.tensor},
                      {"named", t.named == Named::nothing ? json::Value() : json::Value(t.named == Named::right)},
                      {"rules", json::array_of(t.rules)},
                      {"sqnr_of_others_before", t.damage.sqnr_before},
                      {"sqnr_of_others", t.damage.sqnr},
                      {"sqnr_recorded_before", t.recorded_before},
                      {"sqnr_recorded", t.recorded},
                      {"sqnr_recorded_after", t.recorded_after},
                      {"off", to_json(t.off)},
                      {"act", to_json(t.act)}};
}

}  // namespace octet::faults
