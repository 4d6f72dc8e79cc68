#pragma once

namespace octet::cli {

/// 0, or the exit code (69) of a process whose stack may not grow to 1 MiB, after a line on standard error that says so. Needs next to no
/// stack itself.
int refuse_small_stack();

}  // namespace octet::cli
