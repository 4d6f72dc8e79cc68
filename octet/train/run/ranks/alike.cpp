#include "octet/train/run/ranks/alike.hpp"

#include <algorithm>
#include <iterator>

#include "octet/config/write.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/machine/machine.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::train {

std::vector<parallel::Fact> facts_of_program() {
  return {{"program", machine::program_checksum()}, {"instruction set", std::string(cpu::name(cpu::isa()))}};
}

void require_alike(Stream& stream, comm::Communicator& ranks, const RankInputs& own) {
  if (ranks.size() == 1) return;
  std::vector<parallel::Fact> facts = {{"configuration", to_text(data::checksum_of(config::to_toml(own.config)))},
                                       {"dataset", to_text(own.corpus.fingerprint())},
                                       {"run to resume", own.resume},
                                       {"type of GEMMs", own.gemm_type},
                                       {"checksum of config.json and tokenizer files", to_text(models::checksum_of(own.companions))}};
  std::ranges::copy(facts_of_program(), std::back_inserter(facts));
  std::string weights;
  parallel::long_work(stream, ranks, [&] {
    if (!own.weights.empty()) weights = to_text(io::checksum_of(io::TensorFolder::open(own.weights)));
  });
  facts.push_back({"checksum of the weights in model.init", weights});
  parallel::require_same(stream, ranks, facts);
}

}  // namespace octet::train
