#pragma once

#include "octet/config/fields.hpp"

namespace octet::optim {

/// How the learning rate moves over a run of known length.
struct ScheduleConfig {
  enum class Kind { constant, linear, cosine, wsd } kind = Kind::cosine;
  double warmup = 0.05;      // share of the run in which the rate rises from 0 to its peak
  double decay = 0.2;        // wsd: share of the run, at its end, in which it falls
  double final_ratio = 0.1;  // rate at the end over the peak

  void fields(config::FieldVisitor&);
};

/// The factor on the peak rate at `progress` in [0, 1] of the run:
///   warm-up   progress / warmup
///   linear    1 -> final_ratio over the rest;   cosine: the same with (1 + cos) / 2
///   wsd       1, then linearly to final_ratio over the last `decay`
/// Sources: Loshchilov & Hutter 2017 (cosine); Hu et al. 2024, "MiniCPM" (warm-up, stable, decay).
double rate_factor(const ScheduleConfig&, double progress);

}  // namespace octet::optim
