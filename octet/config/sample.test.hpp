#pragma once

#include "octet/base/error.hpp"
#include "octet/config/fields.hpp"

// A configuration with every kind of field, for this level's tests.

namespace octet::config {

enum class Decay { none, cosine = 5, linear = 7 };

struct SampleSchedule {
  Decay kind = Decay::cosine;
  std::int64_t warmup = 10;
  void fields(FieldVisitor& v) {
    v.choice("kind", kind, "shape of the decay", {{"none", Decay::none}, {"cosine", Decay::cosine}, {"linear", Decay::linear}});
    v.field("warmup", warmup, "steps of warm-up", {.at_least = 0});
  }
};

struct SampleOptim {
  double learning_rate = 3e-4, beta2 = 0.95;
  SampleSchedule schedule;
  void fields(FieldVisitor& v) {
    v.field("learning_rate", learning_rate, "peak learning rate", {.above = 0});
    v.section("schedule", schedule, "how the learning rate moves");
    v.field("beta2", beta2, "decay of the second moment", {.at_least = 0, .below = 1});
    v.replaced("beta", {"beta2"});
  }
};

struct Sample {
  std::int64_t steps = 100, offset = 0;
  double factor = 1;
  bool fused = false;
  std::string name = "run", format = "hybrid";
  std::vector<std::string> keep = {"first", "last"};
  SampleOptim optim;
  void fields(FieldVisitor& v) {
    v.field("steps", steps, "optimizer steps", {.at_least = 1, .at_most = 1000});
    v.field("offset", offset, "any integer");
    v.field("factor", factor, "any number");
    v.field("fused", fused, "whether to fuse");
    v.field("name", name, "what to call the run");
    v.choice("format", format, "formats of the operands", {"hybrid", "e4m3"});
    v.field("keep", keep, "layers kept in BF16");
    v.section("optim", optim, "the optimizer");
  }
};

// With a list of configurations.

struct SampleStage {
  std::string path;
  double rate = 1;
  std::vector<std::string> parts;
  SampleSchedule schedule;
  void fields(FieldVisitor& v) {
    v.field("path", path, "where");
    v.field("rate", rate, "how fast", {.above = 0});
    v.choices("parts", parts, "which", {"up", "down"});
    v.section("schedule", schedule, "when");
  }
};

struct SamplePlan {
  std::int64_t steps = 1;
  std::vector<SampleStage> stages;
  void fields(FieldVisitor& v) {
    v.list("stages", stages, "what comes after what");
    v.field("steps", steps, "how long");
  }
};

struct SampleJob {
  SamplePlan plan;
  SampleSchedule last;
  void fields(FieldVisitor& v) { v.section("plan", plan, "the plan"), v.section("last", last, "the end"); }
};

/// The sentence of the ConfigError that `call` throws.
template <class Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no ConfigError";
}

}  // namespace octet::config
