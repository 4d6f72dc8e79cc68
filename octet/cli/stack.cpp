#include "octet/cli/stack.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include "octet/base/error.hpp"

namespace octet::cli {

int refuse_small_stack() {
  constexpr rlim_t least = rlim_t(1) << 20;  // the option parser, oneDNN's code generator and threads, which have as much each
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least) return 0;
  constexpr char what[] = "octet: the stack may not grow to the 1 MiB that octet needs: raise its limit (ulimit -s 8192)\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, what, sizeof what - 1);
  return int(ExitCode::device);
}

}  // namespace octet::cli
