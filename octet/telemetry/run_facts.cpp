#include "octet/telemetry/run_facts.hpp"

#include <cmath>

#include "octet/base/check.hpp"
#include "octet/base/file.hpp"
#include "octet/json/fields.hpp"
#include "octet/telemetry/shared_json.hpp"

namespace octet {
namespace {

constexpr std::int64_t format_number = 1;
constexpr JsonLimits limits{.bytes = std::size_t(16) << 20, .values = std::size_t(1) << 20, .depth = 24};

Json::Object model_json(const ModelFacts& m) {
  return {{"family", m.family},         {"size", m.size},      {"parameters", m.parameters}, {"layers", m.layers},
          {"width", m.width},           {"heads", m.heads},    {"kv_heads", m.kv_heads},     {"hidden", m.hidden},
          {"vocabulary", m.vocabulary}, {"context", m.context}};
}

Json::Object machine_json(const MachineFacts& m) {
  return {{"cpu", m.cpu}, {"threads", m.threads}, {"gemm_compute", m.gemm_compute}, {"gemm_limit_flops", m.gemm_limit_flops}};
}

Json::Array plan_json(const std::vector<PlanEntry>& plan) {
  Json::Array out;
  for (const auto& p : plan)
    out.push_back(Json::Object{{"path", p.path}, {"precision", p.precision}, {"why", p.why}, {"shape", json_numbers(p.shape)}});
  return out;
}

Json::Array quantizers_json(const std::vector<QuantizerFacts>& quantizers) {
  Json::Array out;
  for (const auto& q : quantizers)
    out.push_back(Json::Object{{"path", q.path}, {"operand", q.operand}, {"format", q.format}, {"block", q.block}});
  return out;
}

Json config_of(const RunFacts& run) {
  try {
    Json config = parse_json(run.config_json, "config", limits);
    check(config.object() != nullptr, "run.json: config must be an object, got {}", config.kind());
    return config;
  } catch (const DataError& e) {
    throw ContractError(e.what());
  }
}

ModelFacts model_facts(const JsonFields& f) {
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

MachineFacts machine_facts(const JsonFields& f) {
  return {f.text("cpu"), int(f.count_up_to("threads", 1 << 20)), f.text("gemm_compute"), f.number("gemm_limit_flops")};
}

RunFacts facts_of_file(const std::string& path) {
  const Json file = parse_json(read_file(path, limits.bytes), printable(path), limits);
  const JsonFields f(file, printable(path));
  if (f.count("format") != format_number)
    f.refuse("format", format("this program reads format {}, the file has {}, another version's", format_number, f.count("format")));
  RunFacts run;
  run.name = f.text("name"), run.recipe = f.text("recipe"), run.seed = f.count("seed");
  run.model = model_facts(f.object("model")), run.machine = machine_facts(f.object("machine"));
  for (const JsonFields& p : f.objects("plan")) run.plan.push_back({p.text("path"), p.text("precision"), p.text("why"), p.counts("shape")});
  for (const JsonFields& q : f.objects("quantizers"))
    run.quantizers.push_back({q.text("path"), q.text("operand"), q.text("format"), q.text("block")});
  // Absent from the files of runs that no comparison made, and of earlier versions.
  if (f.has("arm")) run.arm = f.text("arm");
  if (f.has("twin")) run.twin = int(f.count_up_to("twin", most_twins));
  run.memory = memory_use(f.object("memory"));
  run.flops_per_step = f.number("flops_per_step"), run.tokens_per_step = f.count("tokens_per_step"), run.steps = f.count("steps");
  if (!f.value("baseline").is_null()) run.baseline = f.text("baseline");
  run.gradient_cosine = f.number("gradient_cosine"), run.started = f.text("started"), run.state = run_state(f, "state");
  if (!f.value("config").object()) f.refuse("config", format("wanted an object, got {}", f.value("config").kind()));
  run.config_json = f.value("config").dump();
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
  const Json file = Json::Object{{"format", format_number},
                                 {"name", run.name},
                                 {"recipe", run.recipe},
                                 {"seed", run.seed},
                                 {"arm", run.arm},
                                 {"twin", run.twin},
                                 {"started", run.started},
                                 {"state", to_text(run.state)},
                                 {"baseline", run.baseline.empty() ? Json() : Json(run.baseline)},
                                 {"gradient_cosine", run.gradient_cosine},
                                 {"model", model_json(run.model)},
                                 {"machine", machine_json(run.machine)},
                                 {"memory", memory_json(run.memory)},
                                 {"flops_per_step", run.flops_per_step},
                                 {"tokens_per_step", run.tokens_per_step},
                                 {"steps", run.steps},
                                 {"plan", plan_json(run.plan)},
                                 {"quantizers", quantizers_json(run.quantizers)},
                                 {"config", config_of(run)}};
  write_file(path, file.dump(true) + '\n');
}

RunFacts read_run_facts(const std::string& path) {
  return with_remedy(file_remedy, [&] { return facts_of_file(path); });
}

}  // namespace octet
