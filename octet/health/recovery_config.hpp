#pragma once

#include <cstdint>
#include <string>

#include "octet/config/fields.hpp"

namespace octet::health {

/// How often an action may be used: `most` times within so many steps. 0: never.
struct ActionLimit {
  std::int64_t most = 0, within = 1000;

  void fields(config::FieldVisitor&);
};

/// The answer of a run to alerts of the training itself: the ladder of actions, and the bounds of each.
struct RecoveryConfig {
  enum class Mode : std::uint8_t { off, advise, act };

  /// A step whose loss or gradient norm exceeds a limit changes nothing.
  struct Skip : ActionLimit {
    double loss = 6;        // robust deviations of a loss above the median of its window; 0: no limit
    double grad_norm = 30;  // gradient norm above the median of its window, as a factor; 0: no limit
    void fields(config::FieldVisitor&);
  };
  struct Rate : ActionLimit {
    double factor = 0.5;
    std::int64_t steps = 100;
    void fields(config::FieldVisitor&);
  };
  struct Layers : ActionLimit {
    std::string recipe = "bf16";
    std::int64_t steps = 200;
    void fields(config::FieldVisitor&);
  };
  struct RollBack : ActionLimit {
    std::int64_t before = 1;  // steps before the incident that count as its cause, too
    void fields(config::FieldVisitor&);
  };

  Mode mode = Mode::off;
  std::int64_t patience = 8;
  Skip skip{{.most = 8, .within = 100}};
  Rate rate{{.most = 2}};
  Layers layers{{.most = 2}};
  RollBack roll_back{{.most = 2}};

  void fields(config::FieldVisitor&);
};

}  // namespace octet::health
