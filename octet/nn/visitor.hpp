#pragma once

#include "octet/tensor/parameter.hpp"

namespace octet::nn {

class LinearSite;
class Partition;
class Weight;

/// Shown every parameter, every weight that GEMMs read and every linear layer, or stack of them, of a model once, in a fixed order. The
/// only list of a model's state: allocation, optimizer, checkpoint, sharding, counts and reports are all visitors.
class Visitor {
 public:
  virtual ~Visitor() = default;
  /// The following parts belong to this block of the model; -1, as at first: to none.
  virtual void block(int) {}
  virtual void parameter(Parameter&) {}
  /// The next parameter is a stack of experts' matrices, of which ranks of their axis have some each.
  virtual void experts(const Parameter&) {}
  /// Of an adapter of a layer, whose model's own parameters then do not train.
  virtual void adapter(Parameter& p) { parameter(p); }
  /// The following layers are divided by the members of this partition. Of one member, each of the model's members computes its own rows.
  virtual void members(const Partition&) {}
  /// Members of a partition gather the rows that this layer reads. With columns_again, backward gathers them for its columns alone, too.
  virtual void gathers(const LinearSite&, bool /*columns_again*/) {}
  virtual void weight(Weight&) {}
  virtual void linear(LinearSite&) {}
};

}  // namespace octet::nn
