#include "octet/train/run/checkpoint_weights.hpp"

#include <algorithm>

#include "octet/io/safetensors_file.hpp"
#include "octet/train/checkpoint/store.hpp"

namespace octet::train {
namespace {

io::TensorView weights_of(const io::SafetensorsFile& file, const Parameter& p) {
  const std::string name = "engine.model." + p.path;
  const auto found = file.find(name);
  const bool typed = found && (found->dtype == io::StoredDType::f32 || found->dtype == io::StoredDType::bf16);
  const auto* const dims = p.shape.dims.data();
  if (!typed || !std::equal(found->shape.begin(), found->shape.end(), dims, dims + p.shape.rank))
    throw DataError(format("{}: {} must be F32 or BF16 {}; the checkpoint is of another model or of another version of octet",
                           printable(file.path()), name, p.shape));
  return *found;
}

}  // namespace

void load_checkpoint_weights(Engine& e, const std::string& checkpoint) {
  const auto file = io::SafetensorsFile::open(checkpoint + "/" + CheckpointStore::state_file, io::Link::refuse);
  for (Parameter* p : e.parameters.list()) {
    const std::vector<float> values = io::to_f32(weights_of(file, *p));
    set_values(e.stream, p->value, values.data());
    ++p->version;
  }
}

}  // namespace octet::train
