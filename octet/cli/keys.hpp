#pragma once

#include <termios.h>

namespace octet::cli {

/// The keys of a person at standard input, each at once and without echo. There are none where it is no terminal, or that of another
/// process. The destructor restores the terminal; so does a signal that ends the process, after the call in progress.
class Keys {
 public:
  Keys();
  ~Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  /// Waits for `milliseconds`, or until q is pressed; returns whether it was.
  bool quits(int milliseconds);

 private:
  bool on_ = false;
  termios before_{};
};

}  // namespace octet::cli
