#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "octet/tensor/cuda/graph.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// A part of a step with the same ops, shapes and addresses every time; only values in memory change. On a GPU it runs twice normally, is
/// then recorded as a CUDA graph, and afterwards replayed with one launch. On other devices, and while an observer is installed, it runs
/// normally. Earlier work must leave the arena in the same state each time.
class Replay {
 public:
  /// The key of a recording: shapes, and the measurements made.
  using Form = std::array<std::int64_t, 5>;

  /// Runs body() or replays its recording.
  template <class Body>
  void run(Stream& stream, const Form& form, const Body& body) {
    if (stream.device() != Device::cuda || stream.observed()) return body();
    Record& r = records_[form];
    if (r.seen++ < eager_runs) return body();
    if (!r.recorded) record(stream, r, body);
    else stream.count(r.work);
    r.graph.launch(stream.queue());
  }

 private:
  static constexpr int eager_runs = 2;
  struct Record {
    int seen = 0;
    bool recorded = false;
    cuda::Graph graph;
    Work work;
  };

  template <class Body>
  static void record(Stream& stream, Record& r, const Body& body) {
    const Work before = stream.work();
    cuda::Graph::begin(stream.queue());
    try {
      body();
    } catch (...) {
      cuda::Graph::abandon(stream.queue());
      throw;
    }
    r.graph = cuda::Graph::end(stream.queue()), r.recorded = true;
    r.work = stream.work() - before;
  }

  std::map<Form, Record> records_;
};

}  // namespace octet
