#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace octet {

/// An open file of the operating system's; closed when it goes.
class Descriptor {
 public:
  Descriptor() = default;
  /// open(2) with O_CLOEXEC, again where a signal came first. Not ok() when the system refuses: errno says why.
  Descriptor(const std::string& path, int flags, unsigned mode = 0);
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& from) noexcept : number_(from.number_) { from.number_ = -1; }
  Descriptor& operator=(Descriptor&& from) noexcept;

  int number() const { return number_; }
  bool ok() const { return number_ >= 0; }
  /// 0, or the reason why the last bytes may not have arrived (NFS and quotas report it here).
  int close();
  /// Gives the number away: the caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

/// Opens each closed one of standard input, output and error on /dev/null, in the wrong direction: writing to it fails, and no file that is
/// opened later takes its number. To be called before anything else.
void open_standard_descriptors();

/// Throws IoError: "cannot <verb> '<path>': <reason>; <remedy>", the reason an errno, the remedy where the reason tells one.
[[noreturn]] void refuse_file(std::string_view verb, const std::string& path, int reason);

}  // namespace octet
