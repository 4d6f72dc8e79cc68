#include "octet/watch/session.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <chrono>
#include <optional>

#include "octet/base/clock.hpp"
#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/watch/routes.hpp"

namespace octet::watch {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = net::ip::tcp;

constexpr double heartbeat_seconds = 10, condition_seconds = 1;
constexpr std::size_t events_per_write = 64;

std::chrono::milliseconds duration(double seconds) { return std::chrono::milliseconds(std::int64_t(1000 * seconds)); }

// Scripts and styles come from this server alone, and no other page may show an answer or read it.
std::string_view policy_text(Policy policy) {
  return policy == Policy::report ? "default-src 'none'; style-src 'unsafe-inline'; sandbox; base-uri 'none'; form-action 'none'; "
                                    "frame-ancestors 'none'"
                                  : "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: "
                                    "blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

std::string head(int status, std::string_view type, Policy policy = Policy::page) {
  return format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\nContent-Security-Policy: {}\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
      "Cross-Origin-Opener-Policy: same-origin\r\n",
      status, std::string(http::obsolete_reason(http::status(status))), type, policy_text(policy));
}

using Request = http::request_parser<http::empty_body>;

std::vector<std::string_view> values_of(const Request::value_type& request, http::field name) {
  std::vector<std::string_view> out;
  for (auto [at, end] = request.equal_range(name); at != end; ++at) out.emplace_back(at->value().data(), at->value().size());
  return out;
}

// The status of a request that could not be read, or 0 where the connection ended.
int status_of(const error_code& error) {
  if (error == http::error::end_of_stream || error == http::error::partial_message || error == beast::error::timeout) return 0;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
  if (error == http::error::body_limit) return 413;
  return error.category() == http::make_error_code(http::error::bad_method).category() ? 400 : 0;
}

}  // namespace

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Hall& hall, tcp::socket socket) : hall_(hall), stream_(std::move(socket)), buffer_(2 * hall.options.limits.header_bytes) {
    hall_.connections.push_back(this);
  }
  ~Session() {
    hall_.connections.remove(this);
    release();
  }

  void read() {
    parser_.emplace();
    parser_->header_limit(hall_.options.limits.header_bytes);
    parser_->body_limit(0);
    since_ = monotonic_seconds(), waits_ = true;
    stream_.expires_after(duration(hall_.options.limits.header_seconds));
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, std::size_t) { self->on_header(error); });
  }

  // Writes the events that came since the last call.
  void wake();

  // For how long it has had its place beyond its share; negative where that is not over.
  double beyond_share() const {
    const ServerLimits& limits = hall_.options.limits;
    const bool idle = waits_ && answered_;
    return monotonic_seconds() - since_ - (run_ ? limits.stream_seconds : idle ? 0 : limits.share_seconds);
  }
  bool streams() const { return run_.has_value(); }
  void give_place() {
    hall_.connections.remove(this);
    close();
  }

 private:
  void on_header(const error_code&);
  std::optional<Answer> refusal(const Target* target, const std::optional<Route>& route) const;
  void answer(Answer, bool close);
  void begin_stream(std::size_t run, const Target&);
  void watch_for_end();
  void write_stream(std::string text);
  std::string news_since();
  void release() { hall_.answer_bytes -= counted_, counted_ = 0; }
  void close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

  Hall& hall_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<Request> parser_;
  Answer answer_;
  std::string head_;
  std::size_t counted_ = 0;                // of the answer, in Hall::answer_bytes
  double since_ = 0;                       // the time at which it began to wait for a request, to write an answer, or to be a stream
  bool waits_ = false, answered_ = false;  // for a request; at least one
  // Of a stream of events:
  std::optional<std::size_t> run_;
  std::uint64_t next_ = 0;
  bool writing_ = false;
  double last_write_ = 0, last_condition_ = 0;
  std::string condition_;
  char ignored_[64];
};

// None where the request is answered.
std::optional<Answer> Session::refusal(const Target* target, const std::optional<Route>& route) const {
  const auto& request = parser_->get();
  if (request.method() != http::verb::get && request.method() != http::verb::head)
    return text_answer(405, "octet watch only reads: GET and HEAD");
  if (!parser_->is_done() || request.count(http::field::transfer_encoding) > 0 || request.count(http::field::content_length) > 1)
    return text_answer(413, "a request has no body");
  error_code ignored;
  const std::string local = stream_.socket().local_endpoint(ignored).address().to_string();
  const Guard::Refusal refused = hall_.guard.judge({.hosts = values_of(request, http::field::host),
                                                    .origins = values_of(request, http::field::origin),
                                                    .authorizations = values_of(request, http::field::authorization),
                                                    .local = local},
                                                   !route || route->kind != RouteKind::page);
  if (refused.status != 0) return text_answer(refused.status, refused.why);
  if (!target || !route) return text_answer(404, "there is no such page; the API is in docs/watch.md");
  if (route->kind == RouteKind::metrics && !hall_.options.prometheus) return text_answer(404, "start octet watch with --prometheus");
  return std::nullopt;
}

void Session::on_header(const error_code& error) {
  if (error) {
    if (const int status = status_of(error)) answer(text_answer(status, "this request cannot be read"), true);
    return;
  }
  const auto& request = parser_->get();
  const std::optional<Target> target = parse_target({request.target().data(), request.target().size()});
  const std::optional<Route> route = target ? route_of(target->path) : std::nullopt;
  if (auto refused = refusal(target ? &*target : nullptr, route)) return answer(std::move(*refused), true);
  if (route->kind == RouteKind::events && request.method() == http::verb::get) return begin_stream(*route->run, *target);
  Answer made =
      route->kind == RouteKind::events ? text_answer(405, "GET opens a stream of events") : answer_of(*route, *target, hall_.runs);
  if (hall_.answer_bytes + (made.made ? made.made->size() : 0) > hall_.options.limits.answer_bytes)
    return answer(text_answer(503, "too many answers are being read"), true);
  answer(std::move(made), !request.keep_alive());
}

void Session::answer(Answer made, bool close_after) {
  answer_ = std::move(made);
  counted_ = answer_.made ? answer_.made->size() : 0;
  since_ = monotonic_seconds(), waits_ = false;
  hall_.answer_bytes += counted_;
  const bool body = parser_->get().method() != http::verb::head;
  head_ = format("{}Content-Length: {}\r\nConnection: {}\r\n\r\n", head(answer_.status, answer_.type, answer_.policy), answer_.bytes.size(),
                 close_after ? "close" : "keep-alive");
  stream_.expires_after(duration(hall_.options.limits.write_seconds));
  const std::array<net::const_buffer, 2> both = {net::buffer(head_), net::buffer(answer_.bytes.data(), body ? answer_.bytes.size() : 0)};
  net::async_write(stream_, both, [self = shared_from_this(), close_after](error_code error, std::size_t) {
    self->release();
    self->answer_ = {};
    if (error) return;
    self->answered_ = true;
    if (close_after) self->close();
    else self->read();
  });
}

void Session::begin_stream(std::size_t run, const Target& target) {
  std::erase_if(hall_.streams, [](const auto& stream) { return stream.expired(); });
  if (run >= hall_.runs.size()) return answer(text_answer(404, "there is no such run"), true);
  if (hall_.streams.size() >= hall_.options.limits.streams && !hall_.make_room_for_stream())
    return answer(text_answer(503, "too many streams of events are open"), true);
  try {
    const std::uint64_t newest = hall_.runs.loaded(run).news().next();
    next_ = std::uint64_t(number_of(target, "from", std::int64_t(newest), 0, std::numeric_limits<std::int64_t>::max()));
  } catch (const Error& e) {
    return answer(text_answer(e.code() == ExitCode::usage ? 400 : 500, printable(e.what(), most_of_a_message)), true);
  }
  run_ = run, since_ = monotonic_seconds();
  hall_.streams.push_back(weak_from_this());
  watch_for_end();
  write_stream(head(200, "text/event-stream; charset=utf-8") + "Connection: close\r\n\r\n");
}

// A client that sends anything more, or closes its end, ends the stream.
void Session::watch_for_end() {
  stream_.expires_never();
  stream_.async_read_some(net::buffer(ignored_), [self = shared_from_this()](error_code, std::size_t) { self->close(); });
}

namespace {

// JSON, where a carriage return between words is a blank; in a stream of events it ends the line, and the rest would be another field.
std::string on_one_line(std::string json) {
  std::ranges::replace(json, '\r', ' ');
  return json;
}

}  // namespace

std::string Session::news_since() {
  WatchedRun& run = hall_.runs.loaded(*run_);
  const double now = monotonic_seconds();
  std::string text;
  if (now - last_condition_ >= condition_seconds) {
    last_condition_ = now;
    run.refresh();
    if (std::string condition = to_text(run.condition()); condition != condition_) {
      condition_ = std::move(condition);
      text += format("event: condition\ndata: {\"condition\":\"{}\"}\n\n", condition_);
    }
  }
  const News& news = run.news();
  if (next_ > news.next() || next_ < news.oldest()) {
    text += "event: reload\ndata: {}\n\n";  // it missed some, or they are of another process of this server
    next_ = news.next();
  }
  for (std::size_t i = 0; i < events_per_write && next_ < news.next(); ++i, ++next_)
    text += format("id: {}\nevent: {}\ndata: {}\n\n", next_ + 1, news.at(next_).name, on_one_line(news.at(next_).text));
  return text;
}

void Session::wake() {
  if (writing_ || !stream_.socket().is_open()) return;
  std::string text;
  try {
    text = news_since();
  } catch (const Error&) {
    return close();  // the files of the run are damaged: the list of runs says how
  }
  if (text.empty() && monotonic_seconds() - last_write_ > heartbeat_seconds) text = ": \n\n";
  if (!text.empty()) write_stream(std::move(text));
}

void Session::write_stream(std::string text) {
  head_ = std::move(text);
  writing_ = true, last_write_ = monotonic_seconds();
  stream_.expires_after(duration(hall_.options.limits.write_seconds));
  net::async_write(stream_, net::buffer(head_), [self = shared_from_this()](error_code error, std::size_t) {
    self->writing_ = false;
    if (error) self->close();
  });
}

void Hall::wake() {
  std::erase_if(streams, [](const auto& stream) { return stream.expired(); });
  for (const auto& stream : streams)
    if (const auto session = stream.lock()) session->wake();
}

bool Hall::make_room() {
  Session* longest = nullptr;
  for (Session* session : connections)
    if (!session->streams() && (longest == nullptr || session->beyond_share() > longest->beyond_share())) longest = session;
  if (longest == nullptr || longest->beyond_share() < 0) return false;
  longest->give_place();
  return true;
}

bool Hall::make_room_for_stream() {
  const auto first = std::ranges::find_if(streams, [](const auto& stream) { return !stream.expired(); });  // that began first
  if (first == streams.end() || first->lock()->beyond_share() < 0) return false;
  first->lock()->give_place();
  streams.erase(first);
  return true;
}

void begin_session(Hall& hall, tcp::socket socket) {
  if (hall.connections.size() < hall.options.limits.connections || hall.make_room())
    return std::make_shared<Session>(hall, std::move(socket))->read();
  constexpr std::string_view refused = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(net::buffer(refused.data(), refused.size()), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

}  // namespace octet::watch
