#include "octet/plan/layer_work.hpp"

#include <algorithm>
#include <utility>

namespace octet::plan {
namespace {

constexpr double tile = 128;  // rows of a tile of results

// Both directions of y = x W^T with W [out, in].
void add_matrix(std::vector<Product>& to, double rows, double in, double out, double count) {
  to.push_back({.rows = rows, .columns = out, .inner = in, .count = count, .exchanges = true});
  to.push_back({.rows = rows, .columns = in, .inner = out, .count = count, .exchanges = true});
  to.push_back({.rows = out, .columns = in, .inner = rows, .count = count, .result_bytes = 8});
}

double share_of_expert_layers(const PlannedModel& m) { return m.expert_layers() / double(m.layers()); }

}  // namespace

std::vector<Product> dense_products(const PlannedModel& m, const Layout& l, double tokens) {
  const double t = double(l.tensor), h = double(m.shape.width), q = double(m.query_columns()) / t, k = double(m.key_columns()) / t;
  const double first = m.gated ? 2 : 1, experts = share_of_expert_layers(m);
  std::vector<Product> out;
  if (m.attention > 0) {  // latents: as two matrices of all parameters
    const double columns = double(m.attention) / (2 * h * t);
    add_matrix(out, tokens, h, columns, 1), add_matrix(out, tokens, columns, h, 1);
  } else {
    add_matrix(out, tokens, h, q + 2 * k, 1), add_matrix(out, tokens, q, h, 1);
  }
  for (const auto& [width, layers] :
       {std::pair(double(m.shape.hidden), 1 - experts), {double(m.experts.shared * m.experts.hidden), experts}}) {
    if (width * layers == 0) continue;
    add_matrix(out, tokens, h, first * width / t, layers), add_matrix(out, tokens, width / t, h, layers);
  }
  return out;
}

std::vector<Product> expert_products(const PlannedModel& m, const Layout& l, double tokens, double load) {
  if (m.experts.count == 0) return {};
  const double here = double(m.experts.count) / double(l.experts), h = double(m.shape.width), f = double(m.experts.hidden);
  const double rows = load * tokens * double(m.experts.per_token) / here + tile / 2, layers = share_of_expert_layers(m);
  std::vector<Product> out;
  add_matrix(out, rows, h, (m.gated ? 2 : 1) * f, here * layers), add_matrix(out, rows, f, h, here * layers);
  return out;
}

std::vector<Product> joining_products(const PlannedModel& m, double tokens) {
  std::vector<Product> out;
  add_matrix(out, tokens, 2 * double(m.shape.width), double(m.shape.width), 1);
  return out;
}

double seconds_of(const std::vector<Product>& products, const machine::MachineConstants& c, double gain) {
  double operations = 0, bytes = 0, idle = 0;
  for (const Product& p : products) {
    operations += p.operations(), bytes += p.count * p.rows * p.columns * p.result_bytes;
    idle += std::min(1.0, p.count) * c.wave_results * p.inner;  // half of 2 x results x inner
  }
  return (operations + idle) / (c.gemm_tflops * 1e12 * gain) + c.output_passes * bytes / (c.memory_gbs * 1e9);
}

double exposed_exchanges(const std::vector<Product>& products, const machine::MachineConstants& c, double gain, double seconds) {
  constexpr double hides = 0.6;  // of a product: its first or last pieces wait; fitted
  const double each = seconds / 8, least = c.exposed_tensor * each;
  double others = 8, exposed = 0;
  for (Product p : products) {
    if (!p.exchanges) continue;
    const double layers = std::exchange(p.count, 1);
    exposed += layers * std::max(least, each - hides * seconds_of({p}, c, gain)), others -= layers;
  }
  return exposed + std::max(0.0, others) * least;
}

double attention_seconds(const PlannedModel& m, const Job& job, const Layout& l, double tokens) {
  const double sequence = double(job.sequence), width = m.score_columns() / double(m.shape.heads);
  return 6 * sequence * m.score_columns() * tokens / job.machine.attention_rate(sequence / double(l.context), width);
}

// Forward reads and writes a copy per choice, then reads their results; backward does the same for gradients. Copies are codes, or values
// that an encoding reads once more and writes in two orientations.
double bytes_of_rows(const PlannedModel& m, const Software& s) {
  const double bytes = !s.eight_bit ? 6 : s.sends_codes_to_experts ? 4 : 10;
  return 2 * bytes * double(m.shape.width) * double(m.experts.per_token) * share_of_expert_layers(m);
}

}  // namespace octet::plan
