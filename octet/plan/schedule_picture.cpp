#include "octet/plan/schedule_picture.hpp"

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/telemetry/report/svg_file.hpp"

namespace octet::plan {
namespace {

using namespace telemetry::report;
using parallel::PipelineAction;
using Kind = PipelineAction::Kind;

constexpr double margin = 16, left = 76, row = 26, gap = 6, head = 92;  // pixels

struct Colour {
  Kind kind;
  const char *classes, *name;
};
constexpr Colour colours[] = {{Kind::forward, "m1", "forward"},
                              {Kind::backward, "m3", "backward"},
                              {Kind::input_gradient, "m2", "gradient of the input"},
                              {Kind::weight_gradient, "m3", "gradient of weights"}};

const Colour& colour_of(Kind kind) {
  return *std::find_if(std::begin(colours), std::end(colours), [&](const Colour& c) { return c.kind == kind; });
}

void text_at(Markup& m, double x, double y, const std::string& text, const std::string& classes, const char* align = "start") {
  m.element("text", text, {{"x", coordinate(x)}, {"y", coordinate(y)}, {"class", classes}, {"text-anchor", align}});
}

void box(Markup& m, double x, double y, double width, double height, const std::string& classes, double opacity) {
  m.leaf("rect", {{"class", "part " + classes},
                  {"x", coordinate(x)},
                  {"y", coordinate(y)},
                  {"width", coordinate(width)},
                  {"height", coordinate(height)},
                  {"opacity", coordinate(opacity)}});
}

std::string title_of(parallel::Schedule schedule, const parallel::PipelineShape& s) {
  return format("{}: {} stages, {} micro-batches{}", to_text(schedule), s.stages, s.micro_batches,
                s.chunks > 1 ? format(", {} chunks per stage", s.chunks) : "");
}

std::string facts_of(parallel::Schedule schedule, const parallel::PipelineShape& s, double seconds) {
  const double work = 3.0 * s.micro_batches;
  std::string in_flight;
  for (int stage = 0; stage < s.stages; ++stage)
    in_flight +=
        format("{}{}", stage == 0 ? "" : ", ", fixed(double(chunks_in_flight(schedule, s, stage)) / s.chunks, s.chunks > 1 ? 1 : 0));
  return format("waiting {}% of computing; micro-batches in flight at most {}", fixed(100 * (seconds - work) / work, 1), in_flight);
}

void legend(Markup& m, const parallel::PipelineTimes& times) {
  double x = margin;
  for (const Colour& c : colours) {
    const bool used =
        std::any_of(times.stages.front().begin(), times.stages.front().end(), [&](const auto& t) { return t.action.kind == c.kind; });
    if (!used) continue;
    box(m, x, 58, 12, 12, c.classes, 0.85);
    text_at(m, x + 18, 68, c.name, "label");
    x += 40 + 7.0 * double(std::string(c.name).size());
  }
}

}  // namespace

std::string schedule_svg(parallel::Schedule schedule, const parallel::PipelineShape& s) {
  const double part = 1.0 / s.chunks;
  const parallel::PipelineTimes times = simulate(s, pipeline_actions(schedule, s), {part, part, part}, parallel::Sends::buffered);
  const double unit = std::clamp(900 / times.seconds, 3.0, 26.0 * s.chunks), width = left + unit * times.seconds + margin;
  const double height = head + (row + gap) * s.stages + margin;
  return svg_file(std::max(width, 520.0), height, [&](Markup& m) {
    const auto frame = m.in("g", {{"class", "frame"}});
    text_at(m, margin, 26, title_of(schedule, s), "name");
    text_at(m, margin, 46, facts_of(schedule, s, times.seconds), "label");
    legend(m, times);
    for (int stage = 0; stage < s.stages; ++stage) {
      const double y = head + (row + gap) * stage;
      text_at(m, margin, y + 17, format("stage {}", stage), "label");
      for (const parallel::TimedAction& t : times.stages[std::size_t(stage)]) {
        if (!t.action.computes()) continue;
        const double x = left + unit * t.start, w = unit * (t.end - t.start);
        box(m, x, y, w, row, colour_of(t.action.kind).classes, 0.85 - 0.5 * t.action.chunk / s.chunks);
        if (w >= 13)
          m.element(
              "text", format("{}", t.action.micro_batch),
              {{"x", coordinate(x + w / 2)}, {"y", coordinate(y + 17)}, {"style", "fill:#111;font-size:11px"}, {"text-anchor", "middle"}});
      }
    }
  });
}

}  // namespace octet::plan
