#pragma once

#include "octet/comm/communicator.hpp"
#include "octet/parallel/wire.hpp"

namespace octet::parallel {

/// Tensors on their way from one rank to another, as they are or as codes of the storage e4m3. All ranks use one wire. With a tensor, a
/// small one may travel, which is never encoded: `beside`, or empty.
class Transfers {
 public:
  /// The communicator outlives this.
  Transfers(comm::Communicator& ranks, TensorWire wire) : ranks_(ranks), wire_(wire) {}

  /// Memory for the codes of x while they travel; empty where x travels as it is.
  Stored codes_for(Stream&, const Tensor& x, Region = Lifetime::scratch) const;

  /// A send in two parts, as Communicator::begin_send(). `codes` are those of codes_for(), which are in use until it is finished.
  struct Begun {
    comm::BegunSend values, scales, beside;
  };
  Begun begin_send(Stream&, const Tensor& x, const Stored& codes, const Tensor& beside, int to);
  void finish_send(const Begun&);

  void send(Stream&, const Tensor& x, int to);
  void receive(Stream&, const Tensor& x, int from, const Tensor& beside = {});

 private:
  comm::Communicator& ranks_;
  TensorWire wire_;
};

}  // namespace octet::parallel
