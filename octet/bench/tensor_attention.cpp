#include "octet/bench/tensor_attention.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "octet/base/aligned.hpp"
#include "octet/base/clock.hpp"
#include "octet/comm/self/self.hpp"
#include "octet/machine/machine.hpp"
#include "octet/machine/ranks.hpp"
#include "octet/nn/attention.hpp"
#include "octet/nn/host_values.hpp"
#include "octet/nn/weight_scales.hpp"
#include "octet/ops/normal/normal.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/parallel/tensor_group.hpp"

namespace octet::bench {
namespace {

constexpr double limit_seconds = 3600;
constexpr std::uint64_t seed = 7;

nn::Attention::Config config_of(const models::ModelShape& s) {
  return {.width = s.width, .heads = s.heads, .kv_heads = s.kv_heads, .head_dim = s.head_dim};
}

// One rank's part of the layer, with its rows of input and of the output's gradient.
class Layer {
 public:
  Layer(comm::Communicator& ranks, const train::RunConfig& c, const std::string& recipe, Device device, bool overlaps)
      : stream_(device, machine::machine_target(device)),
        ranks_(ranks),
        group_(ranks, c.comm.tensor),
        members_(group_.divides() ? static_cast<nn::Partition&>(group_) : nn::whole_partition()),
        precision_(with_recipe(c.recipe, recipe)),
        layer_("attn", config_of(c.model.shape()), precision_, {.layers = 1}, group_),
        parameters_((precision_.allocate(stream_), stream_), layer_, true),
        scales_(stream_, group_, layer_),
        context_{.sequence = c.data.sequence_length} {
    if (overlaps) group_.set_beside(beside_.emplace(side_.emplace(stream_)));
    const models::ModelShape s = c.model.shape();
    context_.rope = ops::rope_table(stream_, context_.sequence, s.head_dim, s.rope_theta, s.rope_scaling);
    const std::int64_t rows = c.train.batch * c.data.sequence_length / ranks.size();
    for (Tensor* t : {&x_, &dy_, &y_, &dx_}) *t = stream_.empty({rows, s.width}, precision_.activations(), Lifetime::run);
    ops::fill_normal(stream_, 1, 1, x_, x_.count() * ranks.rank()), ops::fill_normal(stream_, 2, 1, dy_, dy_.count() * ranks.rank());
    parameters_.initialize(stream_, seed);
  }

  // Forward and backward.
  void run() {
    const scaling::Pass pass{.kind = scaling::Pass::Kind::train, .count = false};
    const Scope scope(stream_), kept(stream_, pass.keep);
    parameters_.begin_micro_batch(), parameters_.number_draws(stream_, {}, 0);
    nn::Attention::Saved saved;
    const Tensor y = members_.all_rows(stream_, y_);
    layer_.forward(stream_, group_.divides() ? gathered(pass) : nn::operands_of(quantized(stream_, layer_.first(), {.values = x_}, pass)),
                   context_, y, pass, &saved);
    members_.reduce(stream_, y, y_);
    layer_.backward(stream_, dy_, context_, saved, dx_, pass);
  }
  double seconds() {
    ranks_.barrier(stream_);
    const double begin = monotonic_seconds();
    run();
    wait(stream_);
    return monotonic_seconds() - begin;
  }
  std::vector<float> y() { return whole(y_); }
  std::vector<float> dx() { return whole(dx_); }
  // Of all ranks, the slowest.
  double slowest(double own) {
    const std::vector<double> all = parallel::gathered(stream_, ranks_, std::span(&own, 1));
    return *std::ranges::max_element(all);
  }

 private:
  QTensor gathered(const scaling::Pass& pass) {
    const nn::Gather all = nn::gather_operands(stream_, layer_.first(), group_, {.values = x_}, pass);
    all.fill(stream_);
    return nn::operands_of(all.operands);
  }
  static scaling::PrecisionConfig with_recipe(scaling::PrecisionConfig c, const std::string& recipe) {
    c.recipe = recipe;
    return c;
  }
  std::vector<float> whole(const Tensor& own) {
    const Scope scope(stream_);
    const Tensor all = members_.all_rows(stream_, own);
    members_.gather(stream_, own, all);
    return nn::flat_values(stream_, std::vector{all});
  }

  Stream stream_;
  std::optional<Stream> side_;
  std::optional<QueuedWork> beside_;
  comm::Communicator& ranks_;
  parallel::TensorGroup group_;
  nn::Partition& members_;  // the same, or the form of one rank
  scaling::Precision precision_;
  nn::Attention layer_;
  nn::Parameters parameters_;
  nn::WeightScales scales_;
  nn::BlockContext context_;
  Tensor x_, dy_, y_, dx_;
};

double error_of(const std::vector<float>& x, const std::vector<float>& exact) {
  double squares = 0, all = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double d = double(x[i]) - double(exact[i]);
    squares += d * d, all += double(exact[i]) * double(exact[i]);
  }
  return std::sqrt(squares / all);
}

// On the first rank; empty on others, whose errors are not known.
struct Reference {
  std::vector<float> y, dx;
};
Reference of_one_rank(const train::RunConfig& c, Device device) {
  comm::SelfCommunicator self;
  Layer layer(self, c, "fp32", device, false);
  layer.run();
  return {layer.y(), layer.dx()};
}

// Whether exchanges overlap, in the order in which both ways are measured. On a CPU they cannot.
std::vector<bool> ways(const train::RunConfig& c, int ranks, Device device) {
  if (ranks == 1 || device == Device::cpu || !c.comm.overlap) return {false};
  return {false, true};
}

// The ranks up to `n` of all, and this one among them.
TensorAttentionRow measure(comm::Communicator& ranks, const TensorAttentionOptions& options, const std::string& recipe, Device device,
                           bool overlaps, const Reference& exact) {
  Layer layer(ranks, options.config, recipe, device, overlaps);
  layer.run();  // allocates, and chooses algorithms
  const auto sent = [&](comm::Collective c) { return ranks.traffic(c).bytes; };
  TensorAttentionRow row{.recipe = recipe,
                         .ranks = ranks.size(),
                         .overlaps = overlaps,
                         .seconds = {},
                         .gathered = -sent(comm::Collective::all_gather),
                         .reduced = -sent(comm::Collective::reduce_scatter) - sent(comm::Collective::all_to_all)};
  std::vector<double> samples;
  for (int i = 0; i < options.repeats; ++i) samples.push_back(layer.seconds());
  row.gathered = (row.gathered + sent(comm::Collective::all_gather)) / options.repeats;
  row.reduced = (row.reduced + sent(comm::Collective::reduce_scatter) + sent(comm::Collective::all_to_all)) / options.repeats;
  for (double& s : samples) s = layer.slowest(s);
  row.seconds = timing_of(samples);
  row.y_error = error_of(layer.y(), exact.y), row.dx_error = error_of(layer.dx(), exact.dx);
  return row;
}

void require_ranks(const TensorAttentionOptions& options, std::int64_t n) {
  const models::ModelShape s = options.config.model.shape();
  const bool keys = s.kv_heads % n == 0 || n % s.kv_heads == 0;
  if (s.latent)
    throw ConfigError(format("{}: ranks do not divide heads that come from latents; choose another --model", options.config.model.name()));
  if (s.heads % n != 0 || !keys || options.config.data.sequence_length % n != 0)
    throw ConfigError(format("{} ranks cannot divide {} heads, {} key heads and {} tokens of {}; choose another --ranks, or --model", n,
                             s.heads, s.kv_heads, options.config.data.sequence_length, options.config.model.name()));
}

std::vector<TensorAttentionRow> measure_on(comm::Communicator& all, const TensorAttentionOptions& options, Device device) {
  for (int n = 1; n <= all.size(); n *= 2) require_ranks(options, n);
  std::vector<TensorAttentionRow> rows;
  const std::vector<std::string> recipes = options.recipes.empty() ? std::vector{options.config.recipe.recipe} : options.recipes;
  const Reference exact = all.rank() == 0 ? of_one_rank(options.config, device) : Reference{};
  Stream stream(device);
  for (int n = 1; n <= all.size(); n *= 2) {
    const auto part = all.split(all.rank() < n ? 0 : 1, all.rank());
    for (const std::string& recipe : recipes) {
      for (const bool overlaps : ways(options.config, n, device)) {
        if (all.rank() < n) rows.push_back(measure(*part, options, recipe, device, overlaps, exact));
        all.barrier(stream);
      }
    }
  }
  return rows;
}

}  // namespace

TensorAttentionResult measure_tensor_attention(const TensorAttentionOptions& options) {
  const train::RunConfig& c = options.config;
  const auto measured = [&](comm::Communicator& all, const machine::RankPlacement& placement) {
    const Device device = machine::device_named(c.device);
    return TensorAttentionResult{.backend = placement.backend,
                                 .machine = machine::device_name(device),
                                 .model = c.model.name(),
                                 .tokens = c.train.batch * c.data.sequence_length,
                                 .sequence = c.data.sequence_length,
                                 .reports = all.rank() == 0,
                                 .rows = measure_on(all, options, device)};
  };
  return machine::result_on_ranks(
      {.ranks = options.ranks, .otherwise = 2, .device = c.device, .limit_seconds = limit_seconds, .peer_memory = c.comm.peer_memory},
      measured);
}

std::string table_text(const TensorAttentionResult& r) {
  TextTable lines{{"recipe", "ranks", "overlap", "median us", "quartiles", "x 1 rank", "gathered", "reduced", "error of y", "error of dx"}};
  const auto micros = [](double seconds) { return grouped((long long)(seconds * 1e6 + 0.5)); };
  for (const TensorAttentionRow& row : r.rows) {
    const auto one = std::ranges::find_if(r.rows, [&](const auto& o) { return o.recipe == row.recipe && o.ranks == 1; });
    lines.push_back({row.recipe, to_text(row.ranks),
                     row.ranks == 1 ? "-"
                     : row.overlaps ? "yes"
                                    : "no",
                     micros(row.seconds.median), micros(row.seconds.low) + "-" + micros(row.seconds.high),
                     fixed(one->seconds.median / row.seconds.median, 2), bytes_text(double(row.gathered)), bytes_text(double(row.reduced)),
                     format("{}%", fixed(100 * row.y_error, 4)), format("{}%", fixed(100 * row.dx_error, 4))});
  }
  return format("attention with its projections, {}, {} tokens in sequences of {}: forward and backward on {}\n", r.model, r.tokens,
                r.sequence, r.machine) +
         aligned(lines, 1) + "\"gathered\" and \"reduced\": bytes that a rank sends. Errors are those against one rank in FP32.\n";
}

json::Value to_json(const TensorAttentionResult& r) {
  json::Array rows;
  for (const TensorAttentionRow& row : r.rows)
    rows.push_back(json::Object{{"recipe", row.recipe},
                                {"ranks", std::int64_t(row.ranks)},
                                {"overlap", row.overlaps},
                                {"seconds", row.seconds.median},
                                {"seconds_low", row.seconds.low},
                                {"seconds_high", row.seconds.high},
                                {"gathered_bytes", row.gathered},
                                {"reduced_bytes", row.reduced},
                                {"y_error", row.y_error},
                                {"dx_error", row.dx_error}});
  return json::Object{{"machine", r.machine}, {"backend", r.backend},   {"model", r.model},
                      {"tokens", r.tokens},   {"sequence", r.sequence}, {"rows", rows}};
}

}  // namespace octet::bench
