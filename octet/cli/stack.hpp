#pragma once

namespace octet::cli {

/// 0, or the exit code (69) of a process whose stack may not grow to 1 MiB, after a message on standard error. Needs almost no stack
/// itself.
int refuse_small_stack();

}  // namespace octet::cli
