#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "octet/tensor/cuda/graph.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// Parts of a step with the same ops, shapes and addresses every time; only values in memory change. On a GPU they run twice normally, are
/// then recorded as CUDA graphs, and afterwards replayed with one launch each. On other devices, and while an observer is installed, they
/// run normally. Earlier work must leave the arena in the same state each time.
class Replay {
  struct Section {
    int runs = 0;
    std::uint64_t allocations = 0;  // of the last run
    bool recorded = false;
    cuda::Graph graph;
    Work work;
  };
  struct Record {
    int seen = 0;
    std::map<int, Section> parts;
  };
  enum class Mode : std::uint8_t { plain, record, replay };

 public:
  /// The key of a recording: all that its work depends on but values in memory, such as shapes, the measurements made, and addresses.
  using Form = std::vector<std::int64_t>;
  using Body = std::function<void()>;

  /// Runs body() or replays its recording.
  void run(Stream&, const Form&, const Body&);

  /// One time of a form whose parts have other work between them. All parts run, or all are recorded, or all are replayed: a replayed part
  /// leaves no state of the host that the body of a later one would need. Two of one form do not overlap. On every device ContractError if
  /// the body of a part counts other work or allocates elsewhere than the last one of that form: then the form does not tell them apart.
  class Turn {
   public:
    /// Of parts that are never recorded.
    Turn() = default;

   private:
    friend Replay;
    Record* record_ = nullptr;
    Mode mode_ = Mode::plain;
    bool compares_ = true;
  };
  Turn begin(const Stream&, const Form&);
  void part(Stream&, const Turn&, int number, const Body&);

  /// Whether parts may be recorded: not where the host reads values that they make, on which their work may depend. They are at first.
  void allow(bool recording) { allowed_ = recording; }

  /// For tests: on the null device, too, parts are recorded and replayed. A replay counts its work and does nothing else.
  void pretend() { pretends_ = true; }
  /// Forms that are recorded.
  int recorded() const;

 private:
  static constexpr int eager_runs = 2;
  void run(Stream&, const Turn&, Section&, const Body&);

  std::map<Form, Record> records_;
  bool pretends_ = false, allowed_ = true;
};

}  // namespace octet
