#pragma once

#include <optional>
#include <string>

#include "octet/config/fields.hpp"
#include "octet/optim/level.hpp"
#include "octet/optim/schedule.hpp"

namespace octet::optim {

struct MuonConfig {
  double momentum = 0.95;
  double update_rms = 0.18;  // root of the mean square of an update's elements, before the learning rate

  void fields(config::FieldVisitor&);
};

struct OptimizerConfig {
  std::string name = "adamw";
  double learning_rate = 3e-3;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;
  double max_grad_norm = 1.0;
  Level level = Level::O0;
  std::optional<Storage> master, gradients, m, v;  // of weight matrices, their gradients and moments; none: as the level says
  bool allow_unsafe = false;
  bool coded_ends = false;  // gradients of an untied embedding and head are stored as others, if that is e4m3
  bool offload = false;     // on a GPU: the moments in the host's memory
  ScheduleConfig schedule;
  MuonConfig muon;

  void fields(config::FieldVisitor&);

  /// How each variable is stored: as its key says, or as the level does.
  StateStorage storage() const;
  /// Throws ConfigError for numbers that are 0 or infinite in f32, and for storages that are known to fail, unless allow_unsafe.
  void require_trainable() const;
};

}  // namespace octet::optim
