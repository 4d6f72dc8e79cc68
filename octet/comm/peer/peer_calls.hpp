#pragma once

#include "octet/comm/communicator.hpp"
#include "octet/comm/peer/mailboxes.hpp"

// Collectives of the ranks of one machine through mailboxes. A sending queue copies tensors beside the given one, which takes pieces as
// they arrive. When a call is done in the given queue, its tensors may change.

namespace octet::comm::peer {

/// Whether mailboxes carry out a call: others are too small to gain, or reductions other than sums of f32 and bf16.
bool carries(const Call&);

/// A checked call but broadcast and barrier. second: the receive of an exchange, or null.
void run(Mailboxes&, cuda::Queue, const Call&, const Call* second);
/// A send, which may be under way afterwards: its tensor must not change before the end of puts.
void begin_send(Mailboxes&, cuda::Queue, const Tensor& x, int to);
/// Communicator::all_to_all() and all_gather() in pieces.
void all_to_all(Mailboxes&, cuda::Queue, const Tensor& from, const Communicator::UseParts& use);
void all_gather(Mailboxes&, cuda::Queue, const Tensor& from, const Communicator::UsePart& use);

}  // namespace octet::comm::peer
