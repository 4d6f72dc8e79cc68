#pragma once

namespace octet::cli {

/// For subcommands that train, before they begin. SIGINT, SIGTERM, SIGUSR1 (Slurm's warning before a time limit) and SIGHUP (a closed
/// terminal; not where it was ignored from the start, as nohup does) ask the run to stop after the micro-batch in hand, with its state
/// saved; a second one of them, SIGHUP excepted, ends the process at once. SIGUSR2 asks for a checkpoint after the
/// step in hand. A thread of its own takes them: the calling one, and those that it will begin, never run a handler, since oneDNN's f32
/// multiplication keeps data where a handler would have its stack. Other commands keep the system's ways: the first Ctrl-C ends them.
void heed_signals();

}  // namespace octet::cli
