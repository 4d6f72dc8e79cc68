#pragma once

#include <vector>

#include "octet/comm/communicator.hpp"
#include "octet/machine/gpu_reading.hpp"

namespace octet::train {

/// The decisions that the ranks of a run make together after a step, since clocks and signals differ from rank to rank.
struct Accord {
  bool stop = false;               // a rank was asked to stop
  bool save = false;               // a checkpoint is due on a rank
  bool saving = false;             // a rank still writes the last one
  bool out_of_time = false;        // by the clock of a rank
  double seconds = 0;              // of the last step
  double waited = 0;               // of these, in collectives
  machine::GpuReading gpu = {};    // of an accord's `ranks`
  std::vector<Accord> ranks = {};  // of all ranks
};

/// True where a rank says so; the largest time. All ranks call it and get the same.
Accord agree(Stream&, comm::Communicator&, const Accord& own);

}  // namespace octet::train
