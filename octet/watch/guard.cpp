#include "octet/watch/guard.hpp"

#include <algorithm>
#include <array>

namespace octet::watch {
namespace {

bool equal_without_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// The time does not depend on the place of the first difference.
bool same_secret(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) difference |= unsigned(wanted[i] ^ (i < given.size() ? given[i] : '\0'));
  return difference == 0;
}

}  // namespace

// "name", "name:1234", "[::1]:1234". Any port: a tunnel has another one on its near side.
bool Guard::knows(std::string_view authority, std::string_view local) const {
  const std::size_t colon = authority.rfind(':');
  if (colon != authority.npos && colon + 1 < authority.size() && authority.find(']', colon) == authority.npos) {
    const std::string_view port = authority.substr(colon + 1);
    if (port.size() > 5 || !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; })) return false;
    authority = authority.substr(0, colon);
  }
  const auto same = [&](std::string_view name) { return equal_without_case(name, authority); };
  const std::array<std::string_view, 4> usual = {"localhost", "127.0.0.1", "[::1]", local};
  return !authority.empty() && (std::any_of(usual.begin(), usual.end(), same) || std::any_of(names_.begin(), names_.end(), same));
}

Guard::Refusal Guard::judge(const Credentials& c, bool data) const {
  if (c.hosts.size() != 1 || !knows(c.hosts.front(), c.local)) return {403, "the Host header does not name this server"};
  if (c.origins.size() > 1) return {403, "more than one Origin header"};
  for (const std::string_view origin : c.origins) {
    const std::string_view scheme = origin.starts_with("http://") ? "http://" : "https://";
    if (!origin.starts_with(scheme) || !equal_without_case(origin.substr(scheme.size()), c.hosts.front()))
      return {403, "the Origin header is that of another page"};
  }
  if (!data || token_.empty()) return {};
  constexpr std::string_view bearer = "Bearer ";
  if (c.authorizations.size() != 1 || !c.authorizations.front().starts_with(bearer) ||
      !same_secret(c.authorizations.front().substr(bearer.size()), token_))
    return {401, "the token is missing or wrong: open the address that octet watch printed"};
  return {};
}

}  // namespace octet::watch
