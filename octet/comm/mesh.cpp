#include "octet/comm/mesh.hpp"

#include <set>

#include "octet/comm/self/self.hpp"

namespace octet::comm {
namespace {

std::string product_text(const std::vector<Axis>& axes) {
  std::vector<std::string> factors;
  for (const Axis& a : axes) factors.push_back(format("{} = {}", a.name, a.size));
  return joined(factors, " x ");
}

void check_axes(const std::vector<Axis>& axes, int size) {
  std::set<std::string_view> names;
  std::int64_t product = 1;
  for (const Axis& a : axes) {
    check(!a.name.empty() && names.insert(a.name).second, "mesh: the name \"{}\" of an axis is empty or repeated", a.name);
    if (a.size < 1) throw ConfigError(format("ranks: the axis {} has {} ranks; it needs at least 1", a.name, a.size));
    product *= a.size;
    if (product > size) break;
  }
  if (product != size)
    throw ConfigError(format("ranks: {} do not multiply to the {} ranks that were started; change an axis or the number of ranks",
                             product_text(axes), size));
}

}  // namespace

Mesh::Mesh(Communicator& world, std::vector<Axis> axes) : world_(world), axes_(std::move(axes)) {
  check_axes(axes_, world.size());
  int stride = 1;
  for (const Axis& a : axes_) {
    const int coordinate = world.rank() / stride % a.size;
    // An axis of one rank exchanges nothing, so it needs no group of the backend.
    along_.push_back(a.size == 1 ? std::make_unique<SelfCommunicator>()
                                 : world.split(world.rank() - coordinate * stride, coordinate, a.size));
    std::vector<int> members;
    for (int i = 0; i < a.size; ++i) members.push_back(world.rank() + (i - coordinate) * stride);
    along_.back()->report_to(world, std::move(members));
    stride *= a.size;
  }
}

bool Mesh::has(std::string_view axis) const {
  for (const Axis& a : axes_)
    if (a.name == axis) return true;
  return false;
}

Traffic Mesh::traffic(Collective kind) const {
  Traffic sum = world_.traffic(kind);
  for (const auto& c : along_) sum = sum + c->traffic(kind);
  return sum;
}

Communicator& Mesh::along(std::string_view axis) const {
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].name == axis) return *along_[i];
  check(false, "mesh: there is no axis {} among {}", axis, product_text(axes_));
  return world_;
}

}  // namespace octet::comm
