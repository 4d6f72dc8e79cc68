#pragma once

#include "octet/models/companions.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/train/run/config/corpus.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// The inputs of a rank that must equal those of the others: a rank that computes or reads otherwise would train another model, or wait
/// forever.
struct RankInputs {
  const RunConfig& config;
  const Corpus& corpus;
  const models::Companions& companions;  // of the model
  std::string weights;                   // folder of the first weights; "": they are random, or a checkpoint's
  std::string resume;                    // folder of the run to resume, or ""
  std::string gemm_type;                 // in which decoded codes are multiplied
};

/// The program and its instruction set, which decide the bits of results.
std::vector<parallel::Fact> facts_of_program();

/// Compares configuration, dataset, program, instruction set, the run to resume, the type of GEMMs, and the model: checksums of every byte
/// of the weights, of config.json and of the tokenizer's files. All ranks call it, before the first step. Throws ConfigError on every rank
/// as parallel::require_same(); DataError, IoError for the weights.
void require_alike(Stream&, comm::Communicator&, const RankInputs&);

}  // namespace octet::train
