#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "tests/house/source_tree.hpp"

// A program is also compiled without the CUDA toolkit. What it calls in octet::cuda then exists in files without CUDA, such as
// tensor/cuda/absent.cpp. Kernels do not: OCTET_RUN_CUDA calls them, or nothing.

namespace octet::house {
namespace {

// The lines of a file that are compiled without CUDA. Others are empty, and comments are left out.
std::vector<std::string> lines_without_cuda(const SourceFile& file) {
  std::vector<std::string> out;
  std::vector<bool> hidden;  // by the #if around, outermost first
  for (const std::string& line : file.lines) {
    const std::string code = split_comment(line).code;
    if (code.starts_with("#if")) hidden.push_back(!code.starts_with("#ifndef") && code.find("OCTET_HAS_CUDA") != code.npos);
    else if (code.starts_with("#else") && !hidden.empty()) hidden.back() = false;
    else if (code.starts_with("#endif") && !hidden.empty()) hidden.pop_back();
    const bool visible = std::none_of(hidden.begin(), hidden.end(), [](bool h) { return h; });
    out.push_back(visible ? code : "");
  }
  return out;
}

struct Calls {
  std::map<std::string, std::string> called;  // name: where
  std::set<std::string> defined;

  void read(const SourceFile& file) {
    static const std::regex call(R"(\bcuda::([a-z_0-9]+)\()"), definition(R"(^[A-Za-z\[].*?\b([a-z_0-9]+)\(.*[^;]$)");
    const std::vector<std::string> lines = lines_without_cuda(file);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (auto m = std::sregex_iterator(lines[i].begin(), lines[i].end(), call); m != std::sregex_iterator(); ++m)
        called.try_emplace((*m)[1], at_line(file, i, "cuda::" + (*m)[1].str()));
      if (std::smatch m; std::regex_search(lines[i], m, definition)) defined.insert(m[1]);
    }
  }
  std::vector<std::string> violations() const {
    std::vector<std::string> out;
    for (const auto& [name, where] : called)
      if (!defined.contains(name)) out.push_back(where + ": does not exist without the CUDA toolkit; call kernels by OCTET_RUN_CUDA");
    return out;
  }
};

TEST(CudaCalls, ExistWithoutTheToolkit) {
  Calls calls;
  for (const SourceFile& file : source_tree())
    if (file.is_below("octet/") && !file.is_test() && (file.path.ends_with(".cpp") || file.path.ends_with(".hpp"))) calls.read(file);
  EXPECT_GT(calls.called.size(), 20u);
  EXPECT_TRUE(calls.violations().empty()) << listed(calls.violations());
}

TEST(CudaCalls, TheCheckSeesWhatItShallSee) {
  Calls calls;
  calls.read({"a.cpp",
              {"void run() {", "  cuda::missing(1);  // cuda::comment()", "#ifdef OCTET_HAS_CUDA", "  cuda::guarded();", "#else",
               "  cuda::present();", "#endif", "}"}});
  calls.read({"absent.cpp", {"#ifndef OCTET_HAS_CUDA", "void present() { not_built(); }", "#endif", "void missing(int);"}});
  ASSERT_EQ(calls.violations().size(), 1u) << listed(calls.violations());
  EXPECT_NE(calls.violations()[0].find("cuda::missing"), std::string::npos);
}

}  // namespace
}  // namespace octet::house
