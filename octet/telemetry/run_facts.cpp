#include "octet/telemetry/run_facts.hpp"

#include <cmath>

#include "octet/base/check.hpp"
#include "octet/base/file.hpp"
#include "octet/json/fields.hpp"
#include "octet/telemetry/shared_json.hpp"

namespace octet::telemetry {
namespace {

constexpr std::int64_t format_number = 1;
constexpr json::Limits limits{.bytes = std::size_t(16) << 20, .values = std::size_t(1) << 20};

json::Object model_json(const ModelFacts& m) {
  return {{"family", m.family},         {"size", m.size},      {"parameters", m.parameters}, {"layers", m.layers},
          {"width", m.width},           {"heads", m.heads},    {"kv_heads", m.kv_heads},     {"hidden", m.hidden},
          {"vocabulary", m.vocabulary}, {"context", m.context}};
}

json::Object machine_json(const MachineFacts& m) {
  return {{"cpu", m.cpu}, {"threads", m.threads}, {"gemm_compute", m.gemm_compute}, {"gemm_limit_flops", m.gemm_limit_flops}};
}

json::Object data_json(const DataFacts& d) { return {{"folder", d.folder}, {"tokens", d.tokens}, {"documents", d.documents}}; }

json::Array plan_json(const std::vector<PlanEntry>& plan) {
  json::Array out;
  for (const auto& p : plan)
    out.push_back(json::Object{{"path", p.path}, {"precision", p.precision}, {"why", p.why}, {"shape", json::array_of(p.shape)}});
  return out;
}

json::Array quantizers_json(const std::vector<QuantizerFacts>& quantizers) {
  json::Array out;
  for (const auto& q : quantizers)
    out.push_back(json::Object{{"path", q.path}, {"operand", q.operand}, {"format", q.format}, {"block", q.block}});
  return out;
}

json::Value config_of(const RunFacts& run) {
  try {
    return json::parse({.text = run.config_json, .file = "run.json: config", .limits = limits});
  } catch (const DataError& e) {
    throw ContractError(e.what());
  }
}

json::Object work_json(const StepWork& w) {
  return {{"gemm_flops", w.gemm_flops}, {"fp8_flops", w.fp8_flops}, {"collectives", w.collectives}, {"sent_bytes", w.sent_bytes}};
}

json::Object ranks_json(const RanksFacts& r) {
  json::Array sent;
  for (const auto& s : r.sent) sent.push_back(json::Object{{"collective", s.collective}, {"calls", s.calls}, {"bytes", s.bytes}});
  return {{"wanted", r.wanted},
          {"started", r.started},
          {"here", r.here},
          {"backend", r.backend},
          {"gradients", r.gradients},
          {"sent", sent},
          {"shared_scales", json::array_of(r.shared_scales)},
          {"planned", work_json(r.planned)},
          {"ran", r.ran ? json::Value(work_json(*r.ran)) : json::Value()}};
}

StepWork step_work(const json::Fields& f) {
  return {f.number_or_nan("gemm_flops"), f.number_or_nan("fp8_flops"), f.count("collectives"), f.count("sent_bytes")};
}

RanksFacts ranks_facts(const json::Fields& f) {
  RanksFacts out{.wanted = f.count("wanted"),
                 .started = f.integer("started", 1, most_stated),
                 .here = f.integer("here", 1, most_stated),
                 .backend = f.text("backend"),
                 .gradients = f.text("gradients"),
                 .planned = step_work(f.object("planned"))};
  for (const json::Fields& s : f.objects("sent")) out.sent.push_back({s.text("collective"), s.count("calls"), s.count("bytes")});
  if (f.has("shared_scales")) out.shared_scales = f.texts("shared_scales");  // absent from files of earlier versions
  if (f.has("ran")) out.ran = step_work(f.object("ran"));
  return out;
}

ModelFacts model_facts(const json::Fields& f) {
  return {.family = f.text("family"),
          .size = f.text("size"),
          .parameters = f.count("parameters"),
          .layers = f.count("layers"),
          .width = f.count("width"),
          .heads = f.count("heads"),
          .kv_heads = f.count("kv_heads"),
          .hidden = f.count("hidden"),
          .vocabulary = f.count("vocabulary"),
          .context = f.count("context")};
}

MachineFacts machine_facts(const json::Fields& f) {
  return {f.text("cpu"), int(f.integer("threads", 0, most_stated)), f.text("gemm_compute"), f.number_or_nan("gemm_limit_flops")};
}

DataFacts data_facts(const json::Fields& f) { return {f.text("folder"), f.count("tokens"), f.count("documents")}; }

RunFacts facts_of_file(const std::string& path, Link link) {
  const json::Value file = json::load(path, limits, link);
  const json::Fields f(file, printable(path));
  if (f.count("format") != format_number) f.refuse("format", format("{}, the one that this version of octet reads", format_number));
  RunFacts run;
  run.name = f.text("name"), run.recipe = f.text("recipe"), run.seed = f.count("seed");
  run.model = model_facts(f.object("model")), run.machine = machine_facts(f.object("machine"));
  for (const json::Fields& p : f.objects("plan"))
    run.plan.push_back({p.text("path"), p.text("precision"), p.text("why"), p.integers("shape", 0)});
  for (const json::Fields& q : f.objects("quantizers"))
    run.quantizers.push_back({q.text("path"), q.text("operand"), q.text("format"), q.text("block")});
  // Absent from the files of runs that no comparison made, and of earlier versions.
  if (f.has("arm")) run.arm = f.text("arm");
  if (f.has("twin")) run.twin = int(f.integer("twin", 0, most_twins));
  if (f.has("data")) run.data = data_facts(f.object("data"));
  if (f.has("ranks")) run.ranks = ranks_facts(f.object("ranks"));
  if (f.has("eight_bit_share")) run.eight_bit_share = f.number_or_nan("eight_bit_share");
  run.memory = memory_use(f.object("memory"));
  run.flops_per_step = f.number_or_nan("flops_per_step"), run.tokens_per_step = f.count("tokens_per_step"), run.steps = f.count("steps");
  if (!f.value("baseline").is_null()) run.baseline = f.text("baseline");
  run.gradient_cosine = f.number_or_nan("gradient_cosine"), run.started = f.text("started"), run.state = run_state(f, "state");
  if (!f.value("config").object()) f.refuse("config", "an object");
  run.config_json = f.value("config").dump(json::Layout::line, json::Invalid::replace);
  return run;
}

}  // namespace

std::string to_text(RunState state) {
  switch (state) {
    case RunState::running: return "running";
    case RunState::finished: return "finished";
    case RunState::stopped: return "stopped";
    case RunState::diverged: return "diverged";
  }
  return "unknown";
}

void write_run_facts(const std::string& path, const RunFacts& run) {
  const json::Value file = json::Object{{"format", format_number},
                                        {"name", run.name},
                                        {"recipe", run.recipe},
                                        {"seed", run.seed},
                                        {"arm", run.arm},
                                        {"twin", run.twin},
                                        {"started", run.started},
                                        {"state", to_text(run.state)},
                                        {"baseline", run.baseline.empty() ? json::Value() : json::Value(run.baseline)},
                                        {"gradient_cosine", run.gradient_cosine},
                                        {"model", model_json(run.model)},
                                        {"machine", machine_json(run.machine)},
                                        {"data", data_json(run.data)},
                                        {"memory", memory_json(run.memory)},
                                        {"ranks", ranks_json(run.ranks)},
                                        {"flops_per_step", run.flops_per_step},
                                        {"eight_bit_share", run.eight_bit_share},
                                        {"tokens_per_step", run.tokens_per_step},
                                        {"steps", run.steps},
                                        {"plan", plan_json(run.plan)},
                                        {"quantizers", quantizers_json(run.quantizers)},
                                        {"config", config_of(run)}};
  write_own_file(path, file.dump(json::Layout::indented, json::Invalid::replace) + '\n');
}

RunFacts read_run_facts(const std::string& path, Link link) {
  return with_remedy(file_remedy, [&] { return facts_of_file(path, link); });
}

}  // namespace octet::telemetry
