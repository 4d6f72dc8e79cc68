#include "octet/data/byte_stream.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <system_error>

#include "octet/base/descriptor.hpp"
#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::data {
namespace {

constexpr std::size_t block = std::size_t(1) << 17;  // of compressed input

class PlainBytes final : public ByteStream {
 public:
  explicit PlainBytes(const TextFile& file) : chosen_(file), file_(file.path, O_RDONLY | O_NONBLOCK) {
    struct stat facts {};
    if (!file_.ok() || ::fstat(file_.number(), &facts) != 0) refuse(errno);
    if (std::uint64_t(facts.st_size) != chosen_.bytes) refuse_size(std::uint64_t(facts.st_size));
  }

  void read(std::size_t bytes, std::string& out) override {
    const std::size_t begin = out.size();
    out.resize(begin + bytes);
    std::size_t filled = 0;
    while (filled < bytes) {
      const ssize_t n = ::read(file_.number(), out.data() + begin + filled, bytes - filled);
      if (n == 0) break;
      if (n < 0 && errno != EINTR) refuse(errno);
      if (n > 0) filled += std::size_t(n);
    }
    out.resize(begin + filled);
    consumed_ += filled;
    if (consumed_ > chosen_.bytes || (filled < bytes && consumed_ < chosen_.bytes)) refuse_size(consumed_);
  }
  std::uint64_t consumed() const override { return consumed_; }

 private:
  [[noreturn]] void refuse(int reason) const {
    throw IoError(format("cannot read '{}': {}; make it readable or choose other files", printable(chosen_.path),
                         std::generic_category().message(reason)));
  }
  [[noreturn]] void refuse_size(std::uint64_t now) const {
    throw DataError(format("{}: the file had {} bytes when it was chosen, now it has {}; leave it alone while it is tokenized",
                           printable(chosen_.path), chosen_.bytes, now));
  }

  TextFile chosen_;
  Descriptor file_;
  std::uint64_t consumed_ = 0;
};

/// Compressed input, block by block, for one decompressor.
class Compressed : public ByteStream {
 public:
  explicit Compressed(const TextFile& file) : path_(file.path), source_(file) {}
  std::uint64_t consumed() const override { return source_.consumed(); }

 protected:
  /// The next block; empty at the end of the file.
  const std::string& next_block() {
    block_.clear();
    source_.read(block, block_);
    return block_;
  }
  [[noreturn]] void refuse(const char* kind, const std::string& why) const {
    throw DataError(format("{}: not valid {} data: {}; fetch or compress the file again", printable(path_), kind, why));
  }

 private:
  std::string path_, block_;
  PlainBytes source_;
};

class GzipBytes final : public Compressed {
 public:
  explicit GzipBytes(const TextFile& file) : Compressed(file) {
    constexpr int gzip_only = 15 + 16;
    if (inflateInit2(&state_, gzip_only) != Z_OK) throw IoError("zlib: not enough memory to decompress");
  }
  ~GzipBytes() override { inflateEnd(&state_); }

  void read(std::size_t bytes, std::string& out) override {
    const std::size_t begin = out.size();
    out.resize(begin + bytes);
    state_.next_out = reinterpret_cast<Bytef*>(out.data() + begin), state_.avail_out = uInt(bytes);
    while (state_.avail_out > 0 && refill()) {
      const int result = inflate(&state_, Z_NO_FLUSH);
      held_ = state_.avail_out == 0;
      if (result == Z_STREAM_END) inside_ = held_ = false, inflateReset(&state_);
      else if (result != Z_OK && result != Z_BUF_ERROR) refuse("gzip", state_.msg != nullptr ? state_.msg : "damaged");
    }
    out.resize(begin + bytes - state_.avail_out);
  }

 private:
  // Whether there is input, or output that the decompressor may still hold.
  bool refill() {
    if (held_) return true;
    if (state_.avail_in == 0) {
      const std::string& more = next_block();
      state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(more.data())), state_.avail_in = uInt(more.size());
      if (more.empty() && inside_) refuse("gzip", "it ends within a member");
    }
    if (state_.avail_in == 0) return false;
    return inside_ = true;
  }

  z_stream state_{};
  bool inside_ = false;  // a member
  bool held_ = false;    // the last output filled its place
};

class ZstdBytes final : public Compressed {
 public:
  explicit ZstdBytes(const TextFile& file) : Compressed(file), state_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!state_) throw IoError("Zstandard: not enough memory to decompress");
  }

  void read(std::size_t bytes, std::string& out) override {
    const std::size_t begin = out.size();
    out.resize(begin + bytes);
    ZSTD_outBuffer to{out.data() + begin, bytes, 0};
    while (to.pos < to.size && refill()) {
      const std::size_t result = ZSTD_decompressStream(state_.get(), &to, &from_);
      if (ZSTD_isError(result)) refuse("Zstandard", ZSTD_getErrorName(result));
      pending_ = result != 0;
      held_ = pending_ && to.pos == to.size;
    }
    out.resize(begin + to.pos);
  }

 private:
  // As GzipBytes::refill().
  bool refill() {
    if (held_ || from_.pos < from_.size) return true;
    const std::string& more = next_block();
    from_ = {more.data(), more.size(), 0};
    if (!more.empty()) return true;
    if (pending_) refuse("Zstandard", "it ends within a frame");
    return false;
  }

  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> state_;
  ZSTD_inBuffer from_{nullptr, 0, 0};
  bool pending_ = false;  // a frame is not complete
  bool held_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> open_bytes(const TextFile& file) {
  if (file.path.ends_with(".gz")) return std::make_unique<GzipBytes>(file);
  if (file.path.ends_with(".zst")) return std::make_unique<ZstdBytes>(file);
  return std::make_unique<PlainBytes>(file);
}

std::string without_compression(const std::string& path) {
  for (const std::string_view ending : {".gz", ".zst"})
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  return path;
}

}  // namespace octet::data
