#include "octet/trained/trained_model.hpp"

#include "octet/base/log.hpp"
#include "octet/base/path.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/tokenizer/byte_tokenizer.hpp"
#include "octet/machine/machine.hpp"
#include "octet/train/run/folder/run_folder.hpp"
#include "octet/train/step/weights.hpp"

namespace octet::trained {

const ModelSource& TrainedModel::source() const {
  if (!source_) source_ = ModelSource::find(folder, step);
  return *source_;
}

std::unique_ptr<const tokenizer::Tokenizer> TrainedModel::open_tokenizer(const std::string& wanted) const {
  if (!wanted.empty()) return tokenizer::open_tokenizer(wanted);
  const std::string& from = source().companions_folder;
  if (!from.empty() && exists(from + "/" + tokenizer::file_name)) return tokenizer::open_tokenizer(from);
  if (source().shape.vocabulary == tokenizer::ByteTokenizer{}.vocab_size()) return std::make_unique<tokenizer::ByteTokenizer>();
  throw ConfigError(format("{} has no {}, so its tokenizer is unknown; copy the file there, or name it with --tokenizer",
                           printable(source().folder), tokenizer::file_name));
}

std::vector<std::int64_t> TrainedModel::end_ids(const tokenizer::Tokenizer& tokenizer) const {
  std::vector<std::int64_t> ids = models::end_tokens(source().companions);
  if (ids.empty() && tokenizer.document_separator()) ids.push_back(*tokenizer.document_separator());
  return ids;
}

RecipeLayers layers_of(const scaling::Precision& precision) {
  RecipeLayers out;
  for (const scaling::PlanRow& row : precision.rows()) {
    if (row.out == 0) continue;
    ++out.count;
    if (!row.by_recipe) out.others.push_back(row);
  }
  return out;
}

std::unique_ptr<train::Engine> TrainedModel::load(std::int64_t sequence, comm::Communicator* ranks) const {
  if (threads > 0) cpu::set_threads(int(threads));
  const models::ModelShape& shape = source().shape;
  if (sequence > shape.max_sequence)
    throw ConfigError(format("{} tokens are requested, but the model in {} takes at most {} tokens", sequence, printable(source().folder),
                             shape.max_sequence));
  if (!source().checkpoint)
    io::TensorFolder::open(source().folder);  // weights that cannot be read are refused before the machine is measured
  for (const auto& entry : scaling::recipes())
    if (entry.name == precision.recipe && entry.options.empty() && precision.options.format != "default")
      log::warn("--format {} has no effect: nothing has 8 bits under {}", precision.options.format, precision.recipe);
  scaling::PrecisionConfig wanted = precision;
  if (head == "recipe") wanted.head = scaling::HeadPrecision::recipe;
  const Device on = machine::device_named(device);
  auto engine = std::make_unique<train::Engine>(
      train::EngineConfig{.shape = shape, .model = {.quantize_residual = quantize_residual}, .precision = wanted, .sequence = sequence}, on,
      machine::machine_target(on), ranks);
  const RecipeLayers layers = layers_of(engine->precision);
  if (scaling::names_eight_bits(wanted) && wanted.rules.empty() && layers.others.size() == layers.count)
    throw ConfigError(format("--recipe {}: none of the model's {} linear layers runs in it: {}: {} ({}); choose another recipe",
                             wanted.recipe, layers.count, layers.others.front().path, layers.others.front().precision,
                             layers.others.front().why));
  source().load(*engine);
  return engine;
}

}  // namespace octet::trained
