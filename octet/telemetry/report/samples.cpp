#include "octet/base/text.hpp"
#include "octet/telemetry/report/sections.hpp"

namespace octet::telemetry::report {
namespace {

constexpr std::size_t most_samples = 6;

void write_sample(Markup& m, const SampleEvent& e) {
  m.element("h4", format("Step {}, {} tokens{}", grouped(e.step), e.tokens, e.end == "length" ? "" : ", " + e.end));
  const auto text = m.in("pre", {{"class", "sample"}});
  m.element("span", e.prompt, {{"class", "soft"}});
  m.text(e.text);
}

}  // namespace

void write_samples(Markup& m, const Study& study) {
  std::size_t all = 0;
  for (const Group& g : study.groups) all += g.first().samples.size();
  if (all == 0) return;
  const auto section = m.in("section");
  m.element("h2", "Samples of text");
  m.element("p", format("The prompt, then the model's text. At most {} of each run, evenly over its steps.", most_samples),
            {{"class", "soft"}});
  for (const Group& g : study.groups) {
    const auto& samples = g.first().samples;
    if (samples.empty()) continue;
    m.element("h3", g.name);
    const std::size_t shown = std::min(samples.size(), most_samples);
    for (std::size_t i = 0; i < shown; ++i)
      write_sample(m, samples[shown == 1 ? samples.size() - 1 : i * (samples.size() - 1) / (shown - 1)]);
  }
}

}  // namespace octet::telemetry::report
