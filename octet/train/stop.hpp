#pragma once

namespace octet::train {

/// Asks every run of this process to stop: after the micro-batch in hand, with its state saved. For signal handlers.
void request_stop();
bool stop_requested();

}  // namespace octet::train
