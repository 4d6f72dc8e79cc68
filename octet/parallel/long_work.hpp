#pragma once

#include <functional>
#include <string>

#include "octet/comm/communicator.hpp"

namespace octet::parallel {

/// Returns when busy() is false on every rank. Meanwhile the ranks exchange a number again and again, so that each hears the others: a rank
/// that is lost is noticed within the limit, and one that works may take any time. All ranks call it; with one rank it is a plain wait.
void until_idle(Stream&, comm::Communicator&, const std::function<bool()>& busy);

/// Work of this rank's host that may take long, such as reading a file: a thread does it, and the ranks wait for each other as in
/// until_idle(). All ranks call it, also those whose work() does nothing. `work` makes no collectives, and leaves `stream` alone. It logs
/// and computes as the calling thread. Throws what work() throws, once all ranks are done; with one rank it is a plain call.
void long_work(Stream& stream, comm::Communicator&, const std::function<void()>& work);
/// The same with a stream of its own on that device, where work() uses the caller's.
void long_work(Device, comm::Communicator&, const std::function<void()>& work);

/// Such work of the first rank alone, as on files that all ranks share. All ranks call it.
void work_of_first(Stream&, comm::Communicator&, const std::function<void()>& work);

/// The same, whose text all ranks get. All of them throw its Error.
std::string text_of_first(Device, comm::Communicator&, const std::function<std::string()>& work);

}  // namespace octet::parallel
