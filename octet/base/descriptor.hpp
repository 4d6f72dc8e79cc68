#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace octet {

/// An open file descriptor; the destructor closes it.
class Descriptor {
 public:
  Descriptor() = default;
  /// open(2) with O_CLOEXEC, repeated after EINTR. Not ok() on failure: errno has the reason.
  Descriptor(const std::string& path, int flags, unsigned mode = 0);
  /// Takes over a number that is open, or negative.
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& from) noexcept : number_(from.number_) { from.number_ = -1; }
  Descriptor& operator=(Descriptor&& from) noexcept;

  int number() const { return number_; }
  bool ok() const { return number_ >= 0; }
  /// 0, or the reason why the last bytes may not have arrived (NFS and quotas report it here).
  int close();
  /// Releases the number; the caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

/// Opens standard input, output and error on /dev/null where they are closed, in the wrong direction: writing fails, and no file opened
/// later gets their numbers. Call it first.
void open_standard_descriptors();

/// Throws IoError: "cannot <verb> '<path>': <reason>; <remedy>", with the reason of an errno and its remedy, if there is one.
[[noreturn]] void refuse_file(std::string_view verb, const std::string& path, int reason);

}  // namespace octet
