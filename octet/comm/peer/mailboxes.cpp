#include "octet/comm/peer/mailboxes.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "octet/base/check.hpp"
#include "octet/base/clock.hpp"

namespace octet::comm {
namespace {

constexpr std::size_t flag_stride = 64;  // a cache line each
constexpr std::uint32_t empty = 0, full = 1;
constexpr double closing_seconds = 1;

// All boxes of a rank have at most 64 MiB.
std::size_t piece_of(int size) {
  std::size_t mib = 32;
  while (mib > 2 && mib * std::size_t(size - 1) > 32) mib /= 2;
  return mib << 20;
}

std::size_t flag_bytes(int size) {
  const std::size_t all = (std::size_t(size) * std::size_t(size) * Mailboxes::boxes + std::size_t(size)) * flag_stride;
  return (all + 4095) / 4096 * 4096;
}

std::atomic_ref<std::uint32_t> word_at(std::byte* at) { return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)); }

template <class T>
std::vector<T> gathered(const Mailboxes::Gather& gather, const T& own) {
  const std::vector<std::byte> bytes = gather(std::as_bytes(std::span(&own, 1)));
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// f(), or its error as text.
template <class F>
std::string reason_of(const F& f) {
  try {
    f();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

// How the others reach a rank's memory.
struct Mailboxes::Card {
  cuda::SharedMemory::Handle memory{};
  HostMemory::Handle flags{};
  std::int32_t works = 0;
};

Mailboxes::Mailboxes(int rank, int size)
    : rank_(rank),
      size_(size),
      piece_(piece_of(size)),
      peers_(std::size_t(size)),
      puts_(std::size_t(size), 0),
      takes_(std::size_t(size), 0),
      given_back_(std::size_t(size), 0) {}

std::unique_ptr<Mailboxes> Mailboxes::connect(int rank, int size, const Gather& gather, std::string& why) {
  std::unique_ptr<Mailboxes> out(new Mailboxes(rank, size));
  Card own;
  why = reason_of([&] { own = out->make_card(); });
  const std::vector<Card> cards = gathered(gather, own);
  const auto works = [](const Card& c) { return c.works != 0; };
  if (std::ranges::all_of(cards, works)) why = reason_of([&] { out->open(cards); });
  own.works = why.empty() && std::ranges::all_of(cards, works);
  if (!std::ranges::all_of(gathered(gather, own), works)) out.reset();
  else out->made_.reset();
  return out;
}

Mailboxes::Card Mailboxes::make_card() {
  sender_ = cuda::make_queue(true), order_ = cuda::make_event(false);
  for (cuda::Event& e : marks_) e = cuda::make_event(false);
  own_.emplace(piece_ * boxes * std::size_t(size_ - 1));
  if (rank_ == 0) made_ = std::make_unique<HostMemory>(flag_bytes(size_));
  return {.memory = own_->handle(), .flags = made_ ? made_->place() : HostMemory::Handle{}, .works = 1};
}

void Mailboxes::open(std::span<const Card> cards) {
  host_ = std::make_unique<HostMemory>(cards[0].flags, flag_bytes(size_));
  flags_.emplace(host_->data(), host_->bytes());
  for (int r = 0; r < size_; ++r)
    if (r != rank_) peers_[std::size_t(r)].emplace(cards[std::size_t(r)].memory);
}

std::size_t Mailboxes::flag(int from, int to, int box) const {
  return (std::size_t(size_) + (std::size_t(from) * std::size_t(size_) + std::size_t(to)) * boxes + std::size_t(box)) * flag_stride;
}

std::size_t Mailboxes::box(int from, int to, int number) const {
  return (std::size_t(from < to ? from : from - 1) * boxes + std::size_t(number)) * piece_;
}

void Mailboxes::put(cuda::Queue queue, int to, const std::byte* from, std::size_t bytes) {
  check(bytes <= piece_, "mailboxes: a piece of {} bytes is larger than a box", bytes);
  int& number = puts_[std::size_t(to)];
  std::byte* const flag_at = state(flag(rank_, to, number));
  cuda::await_flag(queue, flag_at, empty);
  cuda::copy(queue, from, peers_[std::size_t(to)]->data() + box(rank_, to, number), bytes);
  cuda::set_flag(queue, flag_at, full);
  number = (number + 1) % boxes;
}

const std::byte* Mailboxes::take(cuda::Queue queue, int from) {
  int& number = takes_[std::size_t(from)];
  cuda::await_flag(queue, state(flag(from, rank_, number)), full);
  const std::byte* const piece = own_->data() + box(from, rank_, number);
  number = (number + 1) % boxes;
  return piece;
}

void Mailboxes::give_back(cuda::Queue queue, int from) {
  int& number = given_back_[std::size_t(from)];
  cuda::set_flag(queue, state(flag(from, rank_, number)), empty);
  number = (number + 1) % boxes;
}

void Mailboxes::mark(std::size_t number) { cuda::record(sender_, marks_[number % boxes]); }

void Mailboxes::hold(cuda::Queue queue, std::size_t number) { cuda::hold(queue, marks_[number % boxes]); }

cuda::Event Mailboxes::end_of_puts() {
  const cuda::Event end = cuda::make_event(false);
  cuda::record(sender_, end);
  return end;
}

void Mailboxes::follow(cuda::Queue later, cuda::Queue earlier) {
  cuda::record(earlier, order_);
  cuda::hold(later, order_);
}

// Queued work writes flags, too, so that one release is not enough.
void Mailboxes::abandon() {
  if (releasing_.joinable()) return;
  releasing_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (int r = 0; r < size_; ++r)
        for (int b = 0; b < boxes && r != rank_; ++b)
          word_at(host_->data() + flag(r, rank_, b)) = full, word_at(host_->data() + flag(rank_, r, b)) = empty;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
}

void Mailboxes::close() {
  if (sender_ != nullptr) cuda::end_queue(std::exchange(sender_, nullptr));
  for (auto& peer : peers_) peer.reset();
}

Mailboxes::~Mailboxes() {
  close();
  releasing_ = {};
  if (host_) {
    const auto closed = [&](int r) { return word_at(host_->data() + std::size_t(r) * flag_stride) != 0; };
    word_at(host_->data() + std::size_t(rank_) * flag_stride) = 1;
    const double start = monotonic_seconds();
    for (int r = 0; r < size_ && std::uncaught_exceptions() == 0;)
      if (closed(r) || monotonic_seconds() - start > closing_seconds) ++r;
      else std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (order_ != nullptr) cuda::end_event(order_);
  for (const cuda::Event e : marks_)
    if (e != nullptr) cuda::end_event(e);
}

}  // namespace octet::comm
