#include "octet/train/run/checkpoint_weights.hpp"

#include <algorithm>

#include "octet/nn/host_values.hpp"
#include "octet/train/checkpoint/store.hpp"
#include "octet/train/checkpoint/stored_variable.hpp"

namespace octet::train {
namespace {

StoredVariable weights_of(const io::SafetensorsFile& file, const Parameter& p) {
  const std::string name = "engine.model." + p.path;
  const auto found = find_variable(file, name);
  const auto* const dims = p.shape.dims.data();
  if (!found || !std::equal(found->codes.shape.begin(), found->codes.shape.end(), dims, dims + p.shape.rank))
    throw DataError(format("{}: {} must be weights of {}; the checkpoint is of another model or of another version of octet",
                           printable(file.path()), name, p.shape));
  return *found;
}

}  // namespace

void load_checkpoint_weights(Engine& e, const std::string& checkpoint) {
  const auto file = io::SafetensorsFile::open(checkpoint + "/" + CheckpointStore::state_file, io::Link::refuse);
  for (Parameter* p : e.parameters.list()) {
    nn::set_values(e.stream, p->value, values_of(weights_of(file, *p)).data());
    ++p->version;
  }
}

}  // namespace octet::train
