#pragma once

#include <span>
#include <string_view>

namespace octet::watch {

/// A file of the page, compiled into the program.
struct PageFile {
  std::string_view path;  // in the address
  std::string_view type;  // MIME
  std::string_view bytes;
};

/// All of them. The first is the page itself. The build writes their bytes from octet/watch/page/ and from Debian's libjs-dygraphs.
std::span<const PageFile> page_files();

/// Whether the program was built with dygraphs, which draws the curves.
bool has_curves();

}  // namespace octet::watch
