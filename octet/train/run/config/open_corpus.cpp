#include "octet/train/run/config/open_corpus.hpp"

#include "octet/machine/machine.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/run/config/token_folders.hpp"

namespace octet::train {

std::unique_ptr<const Corpus> open_corpus(const RunConfig& c, comm::Communicator& ranks) {
  const data::DataConfig tokens = with_token_folders(c, ranks);
  std::unique_ptr<const Corpus> out;
  parallel::long_work(machine::device_named(c.device), ranks,
                      [&] { out = std::make_unique<const Corpus>(tokens, c.train, c.model.shape().vocabulary); });
  return out;
}

}  // namespace octet::train
