#include "octet/parallel/host_values.hpp"

#include <algorithm>

namespace octet::parallel {
namespace {

template <class T>
std::vector<T> gather(Stream& stream, comm::Communicator& ranks, std::span<const T> own, DType dtype) {
  if (ranks.size() == 1) return {own.begin(), own.end()};
  const Scope scope(stream);
  const auto n = std::int64_t(own.size());
  std::vector<T> out(own.size() * std::size_t(ranks.size()));
  const Tensor part = stream.empty({n}, dtype), all = stream.empty({n * ranks.size()}, dtype);
  upload(stream, own.data(), part);
  ranks.all_gather(stream, part, all);
  ranks.finish(stream);
  download(stream, all, out.data());
  return out;
}

// Memory for a piece of each rank's part.
struct Piece {
  Tensor own, all;
};
Piece piece_of(Stream& stream, const comm::Communicator& ranks, std::int64_t values) {
  constexpr std::int64_t most = std::int64_t(1) << 20;  // of all ranks together
  const std::int64_t n = std::min(values, std::max<std::int64_t>(most / ranks.size(), 1));
  const Tensor own = stream.empty({n}, DType::f32);
  return {own, stream.empty({n * ranks.size()}, DType::f32)};
}

}  // namespace

void reserve_gather(Stream& stream, const comm::Communicator& ranks, std::int64_t values) {
  const Scope scope(stream);
  piece_of(stream, ranks, values);
}

void gather_parts(Stream& stream, comm::Communicator& ranks, std::span<const float> own, float* all) {
  const auto count = std::int64_t(own.size());
  const Scope scope(stream);
  const Piece memory = piece_of(stream, ranks, count);
  const std::int64_t most = memory.own.count();
  std::vector<float> values(std::size_t(memory.all.count()));
  for (std::int64_t at = 0; at < count; at += most) {
    const std::int64_t n = std::min(most, count - at);
    const Tensor mine = memory.own.rows(0, n), every = memory.all.rows(0, n * ranks.size());
    upload(stream, own.data() + at, mine);
    ranks.all_gather(stream, mine, every);
    ranks.finish(stream);
    download(stream, every, values.data());
    for (int r = 0; r < ranks.size(); ++r) std::copy_n(values.begin() + r * n, n, all + r * count + at);
  }
}

Tensor gathered(Stream& stream, comm::Communicator& ranks, const Tensor& own) {
  if (ranks.size() == 1) return own;
  const Tensor all = stream.empty({own.count() * ranks.size()}, own.dtype);
  ranks.all_gather(stream, own, all);
  ranks.finish(stream);
  return all;
}

std::vector<double> gathered(Stream& stream, comm::Communicator& ranks, std::span<const double> own) {
  return gather(stream, ranks, own, DType::f64);
}

std::vector<std::string> gathered(Stream& stream, comm::Communicator& ranks, const std::string& own) {
  constexpr std::size_t room = 1024;
  std::vector<std::uint8_t> bytes(room, 0);
  std::copy_n(own.begin(), std::min(own.size(), room - 1), bytes.begin());
  const std::vector<std::uint8_t> all = gather(stream, ranks, std::span<const std::uint8_t>(bytes), DType::u8);
  std::vector<std::string> out;
  for (std::size_t at = 0; at < all.size(); at += room) out.emplace_back(reinterpret_cast<const char*>(all.data() + at));
  return out;
}

std::int64_t total(Stream& stream, comm::Communicator& ranks, std::int64_t own) {
  std::int64_t sum = 0;
  for (const std::int64_t n : gather(stream, ranks, std::span<const std::int64_t>(&own, 1), DType::i64)) sum += n;
  return sum;
}

std::int64_t of_first(Stream& stream, comm::Communicator& ranks, std::int64_t own) {
  return gather(stream, ranks, std::span<const std::int64_t>(&own, 1), DType::i64).front();
}

std::string of_first(Stream& stream, comm::Communicator& ranks, const std::string& own) {
  if (ranks.size() == 1) return own;
  const std::int64_t size = of_first(stream, ranks, std::int64_t(own.size()));
  std::string text = own;
  text.resize(std::size_t(size));
  const Scope scope(stream);
  const Tensor bytes = stream.empty({size}, DType::u8);
  upload(stream, text.data(), bytes);
  ranks.broadcast(stream, bytes, 0);
  ranks.finish(stream);
  download(stream, bytes, text.data());
  return text;
}

namespace {

constexpr std::int64_t portion = 1 << 18;

// f(values of a portion, its tensor) for each of them.
template <class T, class F>
void each_portion(Stream& stream, std::span<T> values, const F& f) {
  const Scope scope(stream);
  const Tensor room = stream.empty({portion}, DType::f32);
  for (std::size_t at = 0; at < values.size(); at += portion) {
    const std::span<T> part = values.subspan(at, std::min<std::size_t>(portion, values.size() - at));
    f(part.data(), room.rows(0, std::int64_t(part.size())));
  }
}

}  // namespace

void send_values(Stream& stream, comm::Communicator& ranks, std::span<const float> values, int to) {
  each_portion(stream, values, [&](const float* from, const Tensor& room) {
    upload(stream, from, room);
    ranks.send(stream, room, to);
    ranks.finish(stream);
  });
}

void receive_values(Stream& stream, comm::Communicator& ranks, std::span<float> values, int from) {
  each_portion(stream, values, [&](float* to, const Tensor& room) {
    ranks.receive(stream, room, from);
    ranks.finish(stream);
    download(stream, room, to);
  });
}

std::vector<float> brought_to_first(Stream& stream, comm::Communicator& ranks, std::vector<float> own, int from, std::size_t count) {
  if (ranks.rank() == 0 && from > 0) own.resize(count), receive_values(stream, ranks, own, from);
  if (ranks.rank() == 0) return own;
  if (ranks.rank() == from) send_values(stream, ranks, own, 0);
  return {};
}

void reserve_for_values(Stream& stream) {
  each_portion(stream, std::span<float>(), [](float*, const Tensor&) {});
}

void require_same(Stream& stream, comm::Communicator& ranks, std::span<const Fact> facts) {
  std::string wrong;
  for (const Fact& fact : facts) {
    // All texts on each rank would take memory by the square of their number, so only a difference asks for them.
    const double differs = of_first(stream, ranks, fact.value) != fact.value;
    const std::vector<double> different = gathered(stream, ranks, std::span(&differs, 1));
    const auto other = std::ranges::find(different, 1.0);
    if (other == different.end()) continue;
    const std::vector<std::string> values = gathered(stream, ranks, fact.value);
    wrong += format("{}the {} of rank {} is {}, that of rank 0 is {}", wrong.empty() ? "" : "; ", fact.what, other - different.begin(),
                    printable(values[std::size_t(other - different.begin())]), printable(values.front()));
  }
  if (!wrong.empty())
    throw ConfigError(format("ranks of one run must be alike: {}; start all of them with the same program, arguments and files", wrong));
}

}  // namespace octet::parallel
