#pragma once

namespace octet::cli {

/// For subcommands that train, before they start. SIGINT, SIGTERM, SIGUSR1 (Slurm's warning before a time limit) and SIGHUP (a closed
/// terminal; not where it was ignored from the start, as nohup does) stop the run after the current micro-batch and save its state; a
/// second one, except SIGHUP, ends the process at once. SIGUSR2 requests a checkpoint after the current step. A separate thread receives
/// the signals. All other threads block them, since oneDNN's f32 GEMM uses the stack pointer for its own data. Other subcommands keep the
/// system's defaults: the first Ctrl-C ends them.
void heed_signals();

}  // namespace octet::cli
