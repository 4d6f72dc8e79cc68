#include "octet/tensor/replay.hpp"

#include <algorithm>

#include "octet/tensor/allocation_trace.hpp"

namespace octet {
namespace {

cuda::Graph recorded_graph(Stream& stream, const Replay::Body& body) {
  cuda::Graph::begin(stream.queue());
  try {
    body();
  } catch (...) {
    cuda::Graph::abandon(stream.queue());
    throw;
  }
  return cuda::Graph::end(stream.queue());
}

// Sums in floating point are left out: their differences are rounded.
bool same(const Work& a, const Work& b) { return a.ops == b.ops && a.collectives == b.collectives && a.sent_bytes == b.sent_bytes; }

}  // namespace

Replay::Turn Replay::begin(const Stream& stream, const Form& form) {
  Turn turn;
  if (stream.observed() || !allowed_) return turn;
  Record& r = records_[form];
  turn.record_ = &r;
  const bool records = stream.device() == Device::cuda || (pretends_ && stream.device() == Device::null);
  if (!records || r.seen < eager_runs) turn.mode_ = Mode::plain;
  else turn.mode_ = r.seen == eager_runs ? Mode::record : Mode::replay;
  r.seen += r.seen <= eager_runs;
  return turn;
}

void Replay::run(Stream& stream, const Form& form, const Body& body) {
  Turn turn = begin(stream, form);
  turn.compares_ = false;
  part(stream, turn, 0, body);
}

void Replay::part(Stream& stream, const Turn& turn, int number, const Body& body) {
  if (turn.record_ == nullptr) return body();
  Section& p = turn.record_->parts[number];
  if (turn.mode_ == Mode::plain) return run(stream, turn, p, body);
  if (turn.mode_ == Mode::record) try {
      return run(stream, turn, p, body);
    } catch (...) {
      turn.record_->seen = eager_runs;  // the next turn records all parts again
      throw;
    }
  check(p.recorded, "replay: part {} was not recorded with the others of its form", number);
  stream.count(p.work);
  if (stream.device() == Device::cuda) p.graph.launch(stream.queue());
}

// The first run on a GPU may allocate more: it chooses algorithms.
void Replay::run(Stream& stream, const Turn& turn, Section& p, const Body& body) {
  const bool records = turn.mode_ == Mode::record, on_gpu = stream.device() == Device::cuda;
  const Work before = stream.work();
  std::uint64_t allocations = 0;
  {
    const AllocationTrace trace;
    if (records && on_gpu) p.graph = recorded_graph(stream, body);
    else body();
    allocations = trace.value();
  }
  const Work work = stream.work() - before;
  const bool compares = turn.compares_ && p.runs > (on_gpu ? 1 : 0);
  check(!compares || (allocations == p.allocations && same(work, p.work)),
        "replay: a part with the form of an earlier one has other work or addresses; its form must tell them apart");
  ++p.runs, p.allocations = allocations, p.work = work;
  if (!records) return;
  p.recorded = true;
  if (on_gpu) p.graph.launch(stream.queue());
}

int Replay::recorded() const {
  return int(std::ranges::count_if(
      records_, [](const auto& r) { return std::ranges::any_of(r.second.parts, [](const auto& p) { return p.second.recorded; }); }));
}

}  // namespace octet
