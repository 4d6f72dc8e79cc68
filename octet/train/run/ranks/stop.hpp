#pragma once

namespace octet::train {

/// Asks every run of this process to stop: after the current micro-batch, with its state saved. For signal handlers.
void request_stop();
bool stop_requested();
/// Withdraws both requests: a process may begin another run after a stopped one.
void withdraw_requests();

/// Asks the run of this process for a checkpoint after the current step. For signal handlers.
void request_save();
/// Whether that was asked since the last call.
bool take_save_request();

}  // namespace octet::train
