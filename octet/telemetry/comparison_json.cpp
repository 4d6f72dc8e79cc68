#include <cmath>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/comparison.hpp"
#include "octet/telemetry/shared_json.hpp"

namespace octet::telemetry {
namespace {

constexpr std::int64_t format_number = 2;

json::Value row_json(const ComparisonRow& r) {
  return json::Object{{"arm", r.arm},
                      {"recipe", r.recipe},
                      {"twin", r.twin},
                      {"seeds", r.seeds},
                      {"train_loss", r.train_loss},
                      {"eval_loss", r.eval_loss},
                      {"average_loss", r.average_loss},
                      {"gap", r.gap},
                      {"gap_deviation", r.gap_deviation},
                      {"gap_half_width", r.gap_half_width},
                      {"gradient_cosine", r.gradient_cosine},
                      {"tokens_per_second", r.tokens_per_second},
                      {"speed_ratio", r.speed_ratio},
                      {"memory", memory_json(r.memory)},
                      {"eight_bit_share", r.eight_bit_share},
                      {"skipped", r.skipped},
                      {"state", to_text(r.state)},
                      {"verdict", to_text(r.verdict)}};
}

Verdict verdict_field(const json::Fields& f) {
  const std::string& name = f.text("verdict");
  if (const auto verdict = verdict_named(name)) return *verdict;
  f.refuse("verdict", "baseline, within, over, not resolved or diverged");
}

ComparisonRow row_of(const json::Fields& f) {
  ComparisonRow r;
  r.arm = f.text("arm"), r.recipe = f.text("recipe");
  r.twin = int(f.integer("twin", 0, most_twins)), r.seeds = int(f.integer("seeds", 0, most_stated));
  r.train_loss = f.number_or_nan("train_loss"), r.eval_loss = f.number_or_nan("eval_loss");
  r.average_loss = f.number_or_nan("average_loss");
  r.gap = f.number_or_nan("gap"), r.gap_deviation = f.number_or_nan("gap_deviation"), r.gap_half_width = f.number_or_nan("gap_half_width");
  r.gradient_cosine = f.number_or_nan("gradient_cosine");
  r.tokens_per_second = f.number_or_nan("tokens_per_second"), r.speed_ratio = f.number_or_nan("speed_ratio");
  r.memory = memory_use(f.object("memory"));
  if (f.has("eight_bit_share")) r.eight_bit_share = f.number_or_nan("eight_bit_share");  // files of earlier versions have none
  r.skipped = f.count("skipped"), r.state = run_state(f, "state"), r.verdict = verdict_field(f);
  return r;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos && name.find('\0') == name.npos;
}

Comparison comparison_of_file(const std::string& path) {
  constexpr json::Limits limits{.bytes = std::size_t(4) << 20};
  const json::Value file = json::load(path, limits, Link::refuse);
  const json::Fields f(file, printable(path));
  if (f.count("format") != format_number) f.refuse("format", format("{}, the one that this version of octet reads", format_number));
  Comparison c{.baseline = f.text("baseline"), .tolerance = f.number_or_nan("tolerance"), .confidence = f.number_or_nan("confidence")};
  if (!(c.confidence > 0 && c.confidence < 1)) f.refuse("confidence", "a number above 0 and below 1");
  c.runs = f.texts("runs");
  for (const auto& run : c.runs)
    if (!is_plain_name(run)) f.refuse_entry("runs", "names of folders beside the file", run);
  for (const json::Fields& row : f.objects("rows")) c.rows.push_back(row_of(row));
  return c;
}

}  // namespace

void write_comparison(const std::string& path, const Comparison& c) {
  json::Array rows, runs;
  for (const auto& row : c.rows) rows.push_back(row_json(row));
  for (const auto& run : c.runs) runs.push_back(run);
  const json::Value file = json::Object{{"format", format_number},    {"baseline", c.baseline},  {"tolerance", c.tolerance},
                                        {"confidence", c.confidence}, {"runs", std::move(runs)}, {"rows", std::move(rows)}};
  write_own_file(path, file.dump(json::Layout::indented, json::Invalid::replace) + '\n');
}

Comparison read_comparison(const std::string& path) {
  return with_remedy(file_remedy, [&] { return comparison_of_file(path); });
}

}  // namespace octet::telemetry
