#pragma once

#include <string>
#include <vector>

#include "octet/comm/communicator.hpp"

namespace octet::comm {

/// One direction in which ranks divide work, such as "data".
struct Axis {
  std::string name;
  int size = 1;
};

/// The ranks as a grid with named axes. The first axis varies fastest: rank = c[0] + size[0] * (c[1] + size[1] * (c[2] + ...)).
/// Ranks that differ in one coordinate only form the communicator of that axis, which counts its traffic and reports its calls to the
/// world's communicator.
class Mesh {
 public:
  /// Takes part in one split() of `world` per axis with several ranks, so all ranks make their mesh at the same time. `world` must outlive
  /// the mesh. Throws ConfigError unless the sizes' product is world.size(); ContractError for an empty or repeated name.
  Mesh(Communicator& world, std::vector<Axis> axes);

  Communicator& world() const { return world_; }
  const std::vector<Axis>& axes() const { return axes_; }
  bool has(std::string_view axis) const;
  /// The ranks along an axis; rank() is the own coordinate. Throws ContractError if there is no such axis.
  Communicator& along(std::string_view axis) const;

  /// Of the world and all axes.
  Traffic traffic(Collective) const;

 private:
  Communicator& world_;
  std::vector<Axis> axes_;
  std::vector<std::unique_ptr<Communicator>> along_;
};

}  // namespace octet::comm
