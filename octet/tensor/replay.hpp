#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "octet/tensor/cuda/graph.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// A piece of a step that is the same every time: same ops, shapes and addresses, only the values in memory change. On a GPU it is run
/// twice as it is, which prepares everything, then recorded as a graph, and from then on replayed with one call instead of one for each
/// kernel. On other devices, and while an observer looks at the stream, it is just run. What runs before it must leave the arena as it
/// was the last time.
class Replay {
 public:
  /// All that bodies may differ in: their shapes, and what they measure.
  using Form = std::array<std::int64_t, 4>;

  /// Runs body() or its record.
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
