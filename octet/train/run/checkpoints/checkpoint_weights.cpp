#include "octet/train/run/checkpoints/checkpoint_weights.hpp"

#include <algorithm>

#include "octet/nn/host_values.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/checkpoint/restore.hpp"
#include "octet/train/checkpoint/snapshot.hpp"
#include "octet/train/checkpoint/state_files.hpp"

namespace octet::train {
namespace {

StateFiles::Variable weights_of(const StateFiles& files, const Parameter& p) {
  const std::string name = "engine.model." + p.path;
  const auto found = files.variable(name);
  const auto fits = [&] {
    if (!found->whole) return found->count == p.shape.count();
    return std::ranges::equal(found->slices[0].part.codes.shape, stored_shape(p.shape));
  };
  if (!found || !fits())
    throw DataError(format("{}: {} must be weights of {}; the checkpoint is of another model or of another version of octet",
                           printable(files.path()), name, p.shape));
  return *found;
}

}  // namespace

namespace {

// A part of an engine's state, as the section that its checkpoints have.
template <class State>
struct Section {
  const char* name;
  State& state;
  void visit_state(StateVisitor& visitor) { visitor.section(name, state); }
};

template <class State>
void restore(Engine& e, const StateFiles& files, const char* name, State& state) {
  Section<State> section{name, state};
  Restore(e.stream, files, Restore::Mode::write).section("engine", section);
}

}  // namespace

void load_checkpoint_weights(Engine& e, const std::string& checkpoint) {
  parallel::long_work(e.stream.device(), e.all_ranks(), [&] {
    const StateFiles files(checkpoint, read_manifest(checkpoint));
    for (Parameter* p : e.parameters.list()) {
      nn::set_values(e.stream, p->value, values_of(weights_of(files, *p)).data());
      ++p->version;
    }
    restore(e, files, "routers", e.model->routers());  // their biases decide choices, too
  });
}

models::TrainedAdapters checkpoint_adapters(const std::string& checkpoint, const models::ModelShape& shape,
                                            const models::AdapterConfig& config) {
  models::TrainedAdapters out{.config = config, .values = {}};
  if (!config) return out;
  const StateFiles files(checkpoint, read_manifest(checkpoint));
  const auto values = [&](const std::string& path, Shape of) { return values_of(weights_of(files, Parameter(path, of))); };
  for (models::AdaptedWeight& w : models::adapted_weights(shape, config)) {
    std::vector<float> a = values(w.a(), {std::int64_t(w.modules.size()) * config.rank, w.in}), b = values(w.b(), {w.rows(), config.rank});
    out.values.push_back({std::move(w), std::move(a), std::move(b)});
  }
  return out;
}

void load_checkpoint_scales(Engine& e, const std::string& checkpoint) {
  const StateFiles files(checkpoint, read_manifest(checkpoint));
  restore(e, files, "quantizers", e.precision);
  e.parameters.mark_changed();
}

}  // namespace octet::train
