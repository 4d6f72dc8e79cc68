#include <cmath>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/comparison.hpp"
#include "octet/telemetry/shared_json.hpp"

namespace octet {
namespace {

constexpr std::int64_t format_number = 2;

Json row_json(const ComparisonRow& r) {
  return Json::Object{{"arm", r.arm},
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
                      {"skipped", r.skipped},
                      {"state", to_text(r.state)},
                      {"verdict", to_text(r.verdict)}};
}

Verdict verdict_field(const JsonFields& f) {
  const std::string& name = f.text("verdict");
  if (const auto verdict = verdict_named(name)) return *verdict;
  f.refuse("verdict", format("wanted baseline, within, over, not resolved or diverged, got '{}'", printable(name.substr(0, 80))));
}

ComparisonRow row_of(const JsonFields& f) {
  ComparisonRow r;
  r.arm = f.text("arm"), r.recipe = f.text("recipe");
  r.twin = int(f.count_up_to("twin", most_twins)), r.seeds = int(f.count_up_to("seeds", 1 << 20));
  r.train_loss = f.number("train_loss"), r.eval_loss = f.number("eval_loss");
  r.average_loss = f.number("average_loss");
  r.gap = f.number("gap"), r.gap_deviation = f.number("gap_deviation"), r.gap_half_width = f.number("gap_half_width");
  r.gradient_cosine = f.number("gradient_cosine");
  r.tokens_per_second = f.number("tokens_per_second"), r.speed_ratio = f.number("speed_ratio");
  r.memory = memory_use(f.object("memory"));
  r.skipped = f.count("skipped"), r.state = run_state(f, "state"), r.verdict = verdict_field(f);
  return r;
}

void want_plain_name(const JsonFields& f, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos || name.find('\0') != name.npos)
    f.refuse("runs", format("wanted names of folders beside the file, got '{}'", printable(name.substr(0, 80))));
}

Comparison comparison_of_file(const std::string& path) {
  constexpr JsonLimits limits{.bytes = std::size_t(4) << 20};
  const Json file = parse_json(read_file(path, limits.bytes), printable(path), limits);
  const JsonFields f(file, printable(path));
  if (f.count("format") != format_number)
    f.refuse("format", format("this program reads format {}, the file has {}, another version's", format_number, f.count("format")));
  Comparison c{.baseline = f.text("baseline"), .tolerance = f.number("tolerance"), .confidence = f.number("confidence")};
  if (!(c.confidence > 0 && c.confidence < 1)) f.refuse("confidence", format("wanted a number in (0, 1), got {}", c.confidence));
  c.runs = f.texts("runs");
  for (const auto& run : c.runs) want_plain_name(f, run);
  for (const JsonFields& row : f.objects("rows")) c.rows.push_back(row_of(row));
  return c;
}

}  // namespace

void write_comparison(const std::string& path, const Comparison& c) {
  Json::Array rows, runs;
  for (const auto& row : c.rows) rows.push_back(row_json(row));
  for (const auto& run : c.runs) runs.push_back(run);
  const Json file = Json::Object{{"format", format_number},    {"baseline", c.baseline},  {"tolerance", c.tolerance},
                                 {"confidence", c.confidence}, {"runs", std::move(runs)}, {"rows", std::move(rows)}};
  write_file(path, file.dump(true) + '\n');
}

Comparison read_comparison(const std::string& path) {
  return with_remedy(file_remedy, [&] { return comparison_of_file(path); });
}

}  // namespace octet
