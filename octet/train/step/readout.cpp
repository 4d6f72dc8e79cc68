#include "octet/train/step/readout.hpp"

namespace octet::train {

Readout read_out(Engine& e) {
  Readout out;
  out.step = e.optimizer->last(e.stream);
  out.loss = read<float>(e.stream, e.mean_loss());
  if (e.loss_scale) out.loss_scale = e.loss_scale->read(e.stream, out.step.skip != 0);
  out.parameter_squares = read<double>(e.stream, e.parameter_squares());
  const scaling::SlotTable& slots = e.precision.slots();
  if (slots.size() == 0) return out;
  const HostCopy amax(e.stream, slots.amax()), health(e.stream, slots.health_table());
  out.amax.assign(amax.as<float>(), amax.as<float>() + slots.size());
  out.health.assign(health.as<ops::QuantizeHealth>(), health.as<ops::QuantizeHealth>() + slots.size());
  return out;
}

}  // namespace octet::train
