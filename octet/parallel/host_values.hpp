#pragma once

#include <span>
#include <string>
#include <vector>

#include "octet/comm/communicator.hpp"

namespace octet::parallel {

// Numbers and texts of the host that ranks exchange: each call is one collective on small tensors, and waits for it. All ranks call it. One
// rank exchanges nothing.

/// The tensors of all ranks, rank after rank, in scratch; of one rank, its own.
Tensor gathered(Stream&, comm::Communicator&, const Tensor& own);
/// The values of all ranks, rank after rank.
std::vector<double> gathered(Stream&, comm::Communicator&, std::span<const double> own);
/// The text of each rank, of which at most 1023 bytes travel.
std::vector<std::string> gathered(Stream&, comm::Communicator&, const std::string& own);
/// The same of large parts of equal numbers of values, into `all`: in pieces, through little memory of the device.
void gather_parts(Stream&, comm::Communicator&, std::span<const float> own, float* all);
/// Takes and gives back the memory of gather_parts() for so many values, so that a dry run, which gathers none, includes it.
void reserve_gather(Stream&, const comm::Communicator&, std::int64_t values);
/// The sum over ranks.
std::int64_t total(Stream&, comm::Communicator&, std::int64_t own);
/// The value of rank 0, and its text of any length.
std::int64_t of_first(Stream&, comm::Communicator&, std::int64_t own);
std::string of_first(Stream&, comm::Communicator&, const std::string& own);

/// Values of the host from one rank to another, in portions, through little memory of the device. Only the two call it.
void send_values(Stream&, comm::Communicator&, std::span<const float>, int to);
void receive_values(Stream&, comm::Communicator&, std::span<float>, int from);
/// On the first rank the values of rank `from`, of which there are so many; none on the others. The two exchange them, if they are two.
std::vector<float> brought_to_first(Stream&, comm::Communicator&, std::vector<float> own, int from, std::size_t count);
/// Takes and gives back the memory of these, so that a dry run, which moves none, includes it.
void reserve_for_values(Stream&);

/// A fact that all ranks of a run must have alike, such as {"configuration", "9f.."}.
struct Fact {
  std::string what, value;
};
/// Throws ConfigError on every rank, naming the facts and a rank that differs from rank 0, unless all ranks have the same ones.
void require_same(Stream&, comm::Communicator&, std::span<const Fact>);

}  // namespace octet::parallel
