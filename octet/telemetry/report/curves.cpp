#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "octet/base/text.hpp"
#include "octet/telemetry/findings.hpp"
#include "octet/telemetry/metric.hpp"
#include "octet/telemetry/report/line_chart.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/words.hpp"

namespace octet::telemetry::report {
namespace {

/// About a fortieth of the steps: enough to average the noise of batches, few enough to show a spike.
double smoothing(const RunRecord& run) { return std::clamp(double(run.steps.size()) / 40, 1.0, 50.0); }

template <class Value>
Points over_steps(const RunRecord& run, Value value) {
  Points out;
  for (const StepEvent& e : run.steps) out.push_back({double(e.step), value(e)});
  return out;
}

Points evals_of(const RunRecord& run) {
  Points out;
  for (const EvalEvent& e : run.evals)
    if (std::isfinite(e.loss)) out.push_back({double(e.step), e.loss});
  return out;
}

Line line_of(const Group& group, const std::vector<Points>& lines, const std::vector<Points>& marks) {
  Bundle bundle = bundled(lines);
  Line line{.name = group.name, .style = group.style, .points = std::move(bundle.mean), .marks = bundled(marks).mean};
  if (lines.size() > 1) line.low = std::move(bundle.low), line.high = std::move(bundle.high);
  return line;
}

Axis step_axis(const Study& study) {
  double last = 1;
  for (const Group& g : study.groups)
    for (const RunRecord* run : g.runs)
      if (!run->steps.empty()) last = std::max(last, double(run->steps.back().step));
  return {.low = 0, .high = last};
}

/// From the lowest value to the highest near the beginning or the end of the calmest line: a diverging run leaves the chart instead of
/// flattening the others.
Axis value_axis(const std::vector<Line>& lines) {
  double low = INFINITY, high = -INFINITY, reach = INFINITY;
  for (const Line& line : lines) {
    std::vector<double> values;
    for (const Points* points : {&line.points, &line.marks})
      for (const Point& p : *points) low = std::min(low, p.y), values.push_back(p.y);
    if (line.points.empty()) continue;
    high = std::max(high, quantile(values, 1));
    reach = std::min(reach, std::max(1.5 * line.points.front().y, 4 * quantile(values, 0.5)));
  }
  high = std::min(high, reach);
  if (!(low > 0) || !(high > 2 * low) || !std::isfinite(high)) return linear_axis(low, high);
  return {.kind = Axis::Kind::log, .low = low / 1.03, .high = high * 1.02};
}

std::string scale_note(const Axis& axis) { return axis.kind == Axis::Kind::log ? ", logarithmic" : ""; }

/// Marks on `loss` at the steps in which alerts fired.
Line alerts_of(const RunRecord& run, const Line& loss) {
  Line line{.name = "alerts", .style = loss.style + 2};
  for (const AlertEvent& alert : run.alerts) {
    const auto point = std::ranges::lower_bound(loss.points, double(alert.step), {}, &Point::x);
    if (point != loss.points.end() && point->x == double(alert.step)) line.marks.push_back(*point);
  }
  return line;
}

/// Whether the first run learns from pairs of answers.
bool learns_preferences(const Study& study) {
  const RunRecord& first = study.groups[0].first();
  return !first.steps.empty() && first.steps.back().preferences.known();
}

}  // namespace

LineChart loss_chart(const Study& study) {
  LineChart chart{.title = titled(study, "Loss"), .x_label = "step", .height = 300};
  bool evals = false;
  for (const Group& group : study.groups) {
    std::vector<Points> lines, marks;
    for (const RunRecord* run : group.runs) {
      lines.push_back(smoothed(over_steps(*run, [](const StepEvent& e) { return e.loss; }), smoothing(*run)));
      marks.push_back(evals_of(*run));
    }
    chart.lines.push_back(line_of(group, lines, marks));
    evals = evals || !chart.lines.back().marks.empty();
  }
  chart.x = step_axis(study), chart.y = value_axis(chart.lines);
  chart.y_label = (learns_preferences(study) ? "loss [nats per pair]" : "cross-entropy [nats per token]") + scale_note(chart.y);
  chart.note = std::string("Lines: training loss, smoothed") + (study.seeds() > 1 ? ", mean and range over seeds." : ".") +
               (evals ? " Marks: evaluation." : "");
  if (study.groups.size() == 1 && !study.groups[0].first().alerts.empty())
    chart.lines.push_back(alerts_of(study.groups[0].first(), chart.lines[0]));
  return chart;
}

namespace {

/// 100 * (loss - baseline's) / baseline's over the steps that both took, smoothed. The difference is taken before smoothing: both saw
/// the same batch, so most of the noise cancels.
Points difference(const RunRecord& run, const RunRecord& base) {
  Points gaps, losses;
  auto other = base.steps.begin();
  for (const StepEvent& e : run.steps) {
    while (other != base.steps.end() && other->step < e.step) ++other;
    if (other == base.steps.end()) break;
    if (other->step != e.step || !std::isfinite(e.loss) || !std::isfinite(other->loss)) continue;
    gaps.push_back({double(e.step), e.loss - other->loss}), losses.push_back({double(e.step), other->loss});
  }
  gaps = smoothed(gaps, smoothing(run)), losses = smoothed(losses, smoothing(run));
  for (std::size_t i = 0; i < gaps.size(); ++i) gaps[i].y *= 100 / losses[i].y;
  return gaps;
}

Points eval_difference(const RunRecord& run, const RunRecord& base) {
  Points out;
  auto other = base.evals.begin();
  for (const EvalEvent& e : run.evals) {
    while (other != base.evals.end() && other->step < e.step) ++other;
    if (other == base.evals.end()) break;
    if (other->step == e.step && std::isfinite(e.loss / other->loss)) out.push_back({double(e.step), 100 * (e.loss / other->loss - 1)});
  }
  return out;
}

/// Linear while the gaps are of the zone's size, otherwise linear within the zone and logarithmic beyond, so that a bad recipe does not
/// hide good ones. The first tenth of the steps, where losses fall fastest, does not widen the axis.
Axis gap_axis(const std::vector<Line>& lines, double zone, double last_step) {
  std::vector<double> values;
  for (const Line& line : lines)
    for (const Points* points : {&line.points, &line.marks})
      for (const Point& p : *points)
        if (p.x >= last_step / 10) values.push_back(p.y);
  const double low = std::min(quantile(values, 0.002), -1.3 * zone), high = std::max(quantile(values, 0.998), 1.3 * zone);
  if (values.empty() || !std::isfinite(low) || !std::isfinite(high)) return linear_axis(-zone, zone);
  if (std::max(-low, high) <= 5 * zone) return linear_axis(low, high);
  return {.kind = Axis::Kind::asinh, .low = 1.15 * low, .high = 1.15 * high, .knee = zone};
}

/// The mean gap of a group's runs to the baseline's runs of the same seeds.
struct Differences {
  std::vector<Points> lines, marks;  // one per seed
};
Differences differences(const Group& group, const Group& base) {
  Differences out;
  for (const RunRecord* run : group.runs)
    for (const RunRecord* other : base.runs)
      if (other->facts.seed == run->facts.seed)
        out.lines.push_back(difference(*run, *other)), out.marks.push_back(eval_difference(*run, *other));
  return out;
}

/// The gap that chance alone causes: twice the root mean square, over twins and neighbouring steps, of the twins' differences, each a mean
/// over seeds as the arms' lines are.
std::optional<Line> twin_band(const Study& study) {
  std::map<double, std::pair<double, int>> squares;  // by step: their sum and count
  for (const Group& twin : study.twins)
    for (const Point& p : bundled(differences(twin, *study.baseline()).lines).mean) squares[p.x].first += p.y * p.y, ++squares[p.x].second;
  if (squares.size() < 2) return std::nullopt;
  Points means;
  for (const auto& [x, sum] : squares) means.push_back({x, sum.first / sum.second});
  Line band{.name = study.twins.size() == 1 ? "twin" : "twins"};
  for (const Point& p : smoothed(means, double(means.size()) / 8)) {
    const double reach = 2 * std::sqrt(p.y);
    band.low.push_back({p.x, -reach}), band.high.push_back({p.x, reach});
  }
  return band;
}

/// "a: not resolved (±1.20%); b: within": of every line of the plot.
std::string verdicts(const Comparison& c) {
  std::string out;
  for (const ComparisonRow& row : c.rows)
    if (row.twin == 0 && row.arm != c.baseline) out += (out.empty() ? "" : "; ") + row.arm + ": " + verdict_text(row);
  return out;
}

}  // namespace

std::optional<LineChart> difference_chart(const Study& study) {
  const Group* base = study.baseline();
  if (!base || study.groups.size() < 2) return std::nullopt;
  const Comparison& c = *study.comparison;
  const double accepted = 100 * c.tolerance, zone = accepted > 0.01 && accepted < 1e6 ? accepted : 0.01;
  LineChart chart{.title = "Difference from " + c.baseline, .x_label = "step", .unit = " %", .zone = zone, .height = 300};
  for (const Group& group : study.groups) {
    if (&group == base) continue;
    const Differences all = differences(group, *base);
    chart.lines.push_back(line_of(group, all.lines, all.marks));
  }
  chart.shade = twin_band(study);
  chart.x = step_axis(study), chart.y = gap_axis(chart.lines, zone, chart.x.high);
  chart.y_label =
      std::string("loss above the baseline's [%]") + (chart.y.kind == Axis::Kind::asinh ? ", logarithmic beyond the shaded zone" : "");
  chart.note =
      format("On the same batches. Lines: training loss, smoothed. Marks: evaluation. Light zone: ±{} %, the tolerance. ", fixed(zone, 2));
  if (chart.shade)
    chart.note +=
        format("Grey band: noise, from twins of {} whose first weights differ in their last bit; gaps within it are not distinguishable. ",
               c.baseline);
  chart.note += verdicts(c) + ".";
  return chart;
}

namespace {

/// A metric of every step of every group, smoothed; `value` of a step.
template <class Value>
LineChart step_chart(const Study& study, const Metric& metric, const char* note, Value value) {
  LineChart chart{.title = titled(study, metric.title),
                  .note = note,
                  .x_label = "step",
                  .y_label = metric.unit,
                  .height = 200,
                  .legend = study.groups.size() > 1};
  for (const Group& group : study.groups) {
    std::vector<Points> lines;
    for (const RunRecord* run : group.runs) lines.push_back(smoothed(over_steps(*run, value), smoothing(*run)));
    chart.lines.push_back(line_of(group, lines, {}));
  }
  chart.x = step_axis(study), chart.y = value_axis(chart.lines);
  chart.y_label += scale_note(chart.y);
  return chart;
}

}  // namespace

LineChart gradient_chart(const Study& study) {
  return step_chart(study, metric("grad_norm"), "Smoothed; steps where it was not finite are left out.",
                    [](const StepEvent& e) { return e.grad_norm; });
}

namespace {

/// Where any step measured them.
void draw_parameters(Markup& m, const Study& study) {
  const auto new_value = [last = 0.0](const StepEvent& e) mutable {
    return std::exchange(last, e.param_norm) == e.param_norm ? NAN : e.param_norm;
  };
  const LineChart chart = step_chart(study, metric("param_norm"), "Of the steps in which it was measured (train.health_every).", new_value);
  if (std::ranges::any_of(chart.lines, [](const Line& line) { return !line.points.empty(); })) draw(m, chart);
}

Points loss_scales_of(const RunRecord& run) {
  return over_steps(run, [](const StepEvent& e) { return e.loss_scale; });
}

/// Where any run has one; never smoothed, since every move counts.
void draw_loss_scale(Markup& m, const Study& study) {
  LineChart chart{.title = titled(study, metric("loss_scale").title),
                  .note = "Halved by a step that was skipped, raised after good ones.",
                  .x_label = "step",
                  .y_label = metric("loss_scale").unit,
                  .height = 200,
                  .legend = study.groups.size() > 1};
  double low = INFINITY, high = 0;
  for (const Group& group : study.groups) {
    const Points points = loss_scales_of(group.first());
    for (const Point& p : points)
      if (std::isfinite(p.y)) low = std::min(low, p.y), high = std::max(high, p.y);
    if (!points.empty() && std::isfinite(points.front().y))
      chart.lines.push_back({.name = group.name, .style = group.style, .points = points});
  }
  if (chart.lines.empty()) return;
  chart.x = step_axis(study), chart.y = {.kind = Axis::Kind::log, .low = low / 2, .high = 2 * high};
  chart.y_label += scale_note(chart.y);
  draw(m, chart);
}

void draw_further_tokens(Markup& m, const Study& study) {
  const RunRecord& first = study.groups[0].first();
  if (first.steps.empty() || !std::isfinite(first.steps.back().mtp_loss)) return;
  draw(m, step_chart(study, metric("mtp_loss"), "Smoothed. Its share of the gradients is model.mtp_loss.",
                     [](const StepEvent& e) { return e.mtp_loss; }));
}

void draw_preferences(Markup& m, const Study& study) {
  if (!learns_preferences(study)) return;
  draw(m,
       step_chart(study, metric("reward_margin"), "Smoothed. dpo.beta times the log-probabilities that the model has over its reference.",
                  [](const StepEvent& e) { return e.preferences.margin(); }));
  draw(m, step_chart(study, metric("reward_accuracy"), "Smoothed.", [](const StepEvent& e) { return e.preferences.accuracy; }));
}

Points rates_of(const RunRecord& run) {
  return over_steps(run, [](const StepEvent& e) { return e.learning_rate; });
}

bool same(const Points& a, const Points& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Point& p, const Point& q) { return p.x == q.x && p.y == q.y; });
}

/// One line if all runs had the same rates, otherwise one per group.
void draw_learning_rate(Markup& m, const Study& study) {
  LineChart chart{.title = titled(study, metric("lr").title),
                  .note = "As applied, the same in every run.",
                  .x_label = "step",
                  .y_label = metric("lr").unit,
                  .height = 200,
                  .legend = false};
  const Points first = rates_of(study.groups[0].first());
  bool all_same = true;
  for (const Group& g : study.groups)
    for (const RunRecord* run : g.runs) all_same = all_same && same(rates_of(*run), first);
  if (study.groups.size() == 1) chart.note = "As applied.";
  if (all_same) {
    chart.lines = {{.name = "learning rate", .points = first}};
  } else {
    chart.note = "As applied: runs differ in rate or length.", chart.legend = true;
    for (const Group& g : study.groups) chart.lines.push_back({.name = g.name, .style = g.style, .points = rates_of(g.first())});
  }
  std::vector<Points> all;
  for (const Line& line : chart.lines) all.push_back(line.points);
  chart.x = step_axis(study), chart.y = linear_axis(0, extent(all).high);
  draw(m, chart);
}

}  // namespace

void write_curves(Markup& m, const Study& study) {
  const bool any = std::any_of(study.groups.begin(), study.groups.end(), [](const Group& g) { return !g.first().steps.empty(); });
  if (!any) return;
  const auto section = m.in("section");
  m.element("h2", "Training");
  {
    const auto grid = m.in("div", {{"class", "grid"}});
    draw(m, loss_chart(study));
    if (auto difference = difference_chart(study)) draw(m, *difference);
  }
  const auto grid = m.in("div", {{"class", "grid thirds"}});
  draw(m, gradient_chart(study));
  draw_parameters(m, study);
  draw_learning_rate(m, study);
  draw_loss_scale(m, study);
  draw_further_tokens(m, study);
  draw_preferences(m, study);
}

}  // namespace octet::telemetry::report
