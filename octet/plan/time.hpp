#pragma once

#include "octet/plan/job.hpp"
#include "octet/plan/software.hpp"

namespace octet::plan {

/// Bytes that one GPU sends in a step, by axis, of the most loaded stage. Source: reference on parallel layouts, section 6.4.
struct Volume {
  double tensor = 0, pipeline = 0, context = 0, experts = 0, data = 0;
};
Volume volume(const PlannedModel&, const Layout&, const Job&, const Software&);

/// Predicted seconds of one step. Members up to `launches` are the computation of the slowest stage; their sum over all micro-batches and
/// the rest is the step. Source: reference on parallel layouts, section 6.5, with unequal stages and an exposed data axis.
struct StepTime {
  double gemms = 0, attention = 0, head = 0, elementwise = 0;
  double recomputed = 0;
  double tensor = 0, context = 0, experts = 0;  // transfers that no computation hides
  double passes = 0, launches = 0;
  double imbalance = 0;  // by which the slowest stage is slower than the mean
  double bubble = 0;
  double transfers = 0;  // of the pipeline
  double optimizer = 0;
  double data = 0;        // exposed
  double stragglers = 0;  // for which all wait

  double total() const {
    return gemms + attention + head + elementwise + recomputed + tensor + context + experts + passes + launches + imbalance + bubble +
           transfers + optimizer + data + stragglers;
  }
};
StepTime step_time(const PlannedModel&, const Layout&, const Job&, const Software&);

/// Tokens per second and GPU.
double token_rate(const StepTime&, const Job&);
/// Operations of the model, without recomputation, per second and GPU.
double model_flops_rate(const StepTime&, const PlannedModel&, const Job&);

/// The members of StepTime with their names, in this order.
std::vector<std::pair<std::string, double>> parts_of(const StepTime&);

}  // namespace octet::plan
