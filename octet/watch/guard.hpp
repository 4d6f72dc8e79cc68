#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octet::watch {

/// The headers of a request that decide whether it is answered.
struct Credentials {
  std::vector<std::string_view> hosts{}, origins{}, authorizations{};  // every line of the header
  std::string_view local{};                                            // the address of this end of the connection
};

/// Decides which requests are answered: those whose Host names this server, which defeats other pages that resolve their name to this
/// address; whose Origin, if there is one, is this server; and, for data, that have the token, if there is one.
class Guard {
 public:
  /// `names` of the server, besides localhost, 127.0.0.1, [::1] and the address that a connection came to. `token`: "" for none.
  Guard(std::vector<std::string> names, std::string token) : names_(std::move(names)), token_(std::move(token)) {}

  struct Refusal {
    int status = 0;  // 0: the request is answered
    const char* why = "";
  };
  Refusal judge(const Credentials&, bool data) const;

 private:
  bool knows(std::string_view authority, std::string_view local) const;

  std::vector<std::string> names_;
  std::string token_;
};

}  // namespace octet::watch
