# Writes page_files() (octet/watch/page.hpp): the bytes of each file as a C++ array.
# cmake -D FILES="<address>|<MIME>|<path>;..." -D CURVES=<0|1> -D OUTPUT=<file.cpp> -P embed.cmake
set(arrays)
set(rows)
set(count 0)
foreach(entry IN LISTS FILES)
  string(REPLACE "|" ";" parts "${entry}")
  list(GET parts 0 address)
  list(GET parts 1 type)
  list(GET parts 2 path)
  file(READ ${path} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char file_${count}[] = {${bytes}};\n")
  string(APPEND rows "      {\"${address}\", \"${type}; charset=utf-8\", {reinterpret_cast<const char*>(file_${count}), sizeof file_${count}}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Written by cmake/embed.cmake.
#include <array>

#include \"octet/watch/page.hpp\"

namespace octet::watch {
namespace {
${arrays}}  // namespace

std::span<const PageFile> page_files() {
  static const std::array<PageFile, ${count}> all = {{
${rows}  }};
  return all;
}

bool has_curves() { return ${CURVES}; }

}  // namespace octet::watch
")
