#include "octet/bench/table.hpp"

#include <cmath>

#include "octet/base/aligned.hpp"

namespace octet::bench {
namespace {

// Three digits: 0.123, 1.23, 12.3, 123, 1234.
std::string three(double x) { return fixed(x, x < 1 ? 3 : x < 10 ? 2 : x < 100 ? 1 : 0); }

struct Scale {
  double factor;
  const char* unit;
};
Scale time_scale(double seconds) { return seconds < 1e-3 ? Scale{1e6, "us"} : seconds < 1 ? Scale{1e3, "ms"} : Scale{1, "s"}; }

std::string amount_text(const Row& r) {
  if (r.unit == Unit::bytes) return bytes_text(r.amount);
  if (r.unit == Unit::flops) return three(r.amount / 1e9) + " GFLOP";
  return grouped((long long)(r.amount)) + " tokens";
}

std::string rate_text(Unit unit, double rate) {
  if (unit == Unit::bytes) return three(rate / 1e9) + " GB/s";
  if (unit == Unit::flops) return rate < 1e11 ? three(rate / 1e9) + " GFLOP/s" : three(rate / 1e12) + " TFLOP/s";
  return grouped(std::llround(rate)) + " tok/s";
}

std::vector<std::string> cells_of(const Row& r) {
  const Scale t = time_scale(r.seconds.median);
  return {r.group + ": " + r.name,
          r.shape,
          r.precision,
          three(r.seconds.median * t.factor) + " " + t.unit,
          three(r.seconds.low * t.factor) + "-" + three(r.seconds.high * t.factor),
          amount_text(r),
          rate_text(r.unit, r.rate()),
          rate_text(r.unit, r.limit),
          fixed(100 * r.share(), 0) + "%"};
}

std::string limits_text(const Result& r) {
  std::string out = "limits: copy " + rate_text(Unit::bytes, r.copy_bytes_per_second);
  const auto add = [&](const char* what, double rate) {
    if (rate > 0) out += format(", {} GEMM {}", what, rate_text(Unit::flops, rate));
  };
  add("fp8", r.fp8_flops_per_second), add("bf16", r.bf16_flops_per_second), add("f32", r.f32_flops_per_second);
  return out + "\n";
}

std::string floor_text(const StepResult& s) {
  const auto ms = [](double seconds) { return three(1e3 * seconds) + " ms"; };
  const std::string loads = s.fullest_load > 0 ? format("; fullest expert {} x mean", three(s.fullest_load)) : "";
  return format("floor of {}: {} = GEMMs {} + attention {} + memory {}; peak memory {}{}\n", s.row.precision, ms(s.floor.seconds()),
                ms(s.floor.gemm_seconds), ms(s.floor.attention_seconds), ms(s.floor.memory_seconds), bytes_text(s.peak_bytes), loads);
}

json::Value json_of(const Row& r) {
  return json::Object{{"group", r.group},
                      {"name", r.name},
                      {"shape", r.shape},
                      {"precision", r.precision},
                      {"unit", std::string(name(r.unit))},
                      {"seconds", r.seconds.median},
                      {"seconds_low", r.seconds.low},
                      {"seconds_high", r.seconds.high},
                      {"amount", r.amount},
                      {"rate", r.rate()},
                      {"limit", r.limit},
                      {"share", r.share()}};
}

json::Value json_of(const StepResult& s) {
  json::Value row = json_of(s.row);
  json::Object members = *row.object();
  members.push_back({"floor", json::Object{{"seconds", s.floor.seconds()},
                                           {"gemm_seconds", s.floor.gemm_seconds},
                                           {"attention_seconds", s.floor.attention_seconds},
                                           {"memory_seconds", s.floor.memory_seconds}}});
  members.push_back({"peak_bytes", s.peak_bytes});
  return members;
}

json::Value known(double rate) { return rate > 0 ? json::Value(rate) : json::Value(); }

}  // namespace

std::string table_text(const Result& r) {
  TextTable lines{{"what", "shape", "precision", "median", "quartiles", "amount", "rate", "limit", "of limit"}};
  for (const Row& row : r.rows) lines.push_back(cells_of(row));
  for (const StepResult& s : r.steps) lines.push_back(cells_of(s.row));
  std::string out = format("{}; {}\n{}, {} tokens in sequences of {}\n", r.device, r.libraries, r.model, grouped(r.tokens), r.sequence);
  out += limits_text(r) + "\n" + aligned(lines, 3);
  for (const StepResult& s : r.steps) out += floor_text(s);
  return out;
}

json::Value to_json(const Result& r) {
  json::Array rows;
  for (const Row& row : r.rows) rows.push_back(json_of(row));
  for (const StepResult& s : r.steps) rows.push_back(json_of(s));
  return json::Object{{"device", r.device},
                      {"libraries", r.libraries},
                      {"model", r.model},
                      {"tokens", r.tokens},
                      {"sequence", r.sequence},
                      {"repeats", r.effort.repeats},
                      {"working_set_bytes", r.effort.working_set_bytes},
                      {"limits", json::Object{{"copy_bytes_per_second", r.copy_bytes_per_second},
                                              {"fp8_flops_per_second", known(r.fp8_flops_per_second)},
                                              {"bf16_flops_per_second", known(r.bf16_flops_per_second)},
                                              {"f32_flops_per_second", known(r.f32_flops_per_second)}}},
                      {"rows", rows}};
}

}  // namespace octet::bench
