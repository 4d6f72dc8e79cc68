#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "octet/base/error.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/python/bind.hpp"
#include "octet/python/wait.hpp"
#include "octet/train/run/ranks/stop.hpp"

namespace octet::python {
namespace {

namespace nb = nanobind;

struct Tokenized : data::TokenizeResult {
  std::string folder;
};

/// Ends the work after Ctrl-C.
class Stop final : public data::TokenizeProgress {
  void advance(std::uint64_t, std::uint64_t) override {
    if (train::stop_requested()) throw Error(ExitCode::interrupted, "tokenize: stopped by a signal");
  }
};

Tokenized tokenized(const std::vector<std::string>& inputs, const std::string& output, const data::TokenizeOptions& options) {
  Tokenized out;
  Stop stop;
  wait_for([&] { static_cast<data::TokenizeResult&>(out) = data::tokenize(inputs, output, options, &stop); });
  out.folder = output;
  return out;
}

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<Tokenized>(m, "Tokens", "A token folder that was written.")
      .def_ro("folder", &Tokenized::folder, "Its path: the key data.path of a run.")
      .def_ro("tokens", &Tokenized::tokens, "Number of tokens, separators included.")
      .def_ro("documents", &Tokenized::documents, "Number of documents: files, or lines of JSON lines.")
      .def_ro("bytes", &Tokenized::bytes, "Bytes of text, decompressed and without JSON.")
      .def_ro("shards", &Tokenized::shards, "Number of shard files.")
      .def_ro("bad_lines", &Tokenized::bad_lines, "JSON lines that were left out.")
      .def_ro("replaced", &Tokenized::replaced, "Invalid UTF-8 sequences that were encoded as U+FFFD.");
  m.def(
      "tokenize",
      [](const std::vector<std::string>& inputs, const std::string& output, const std::string& tokenizer, const std::string& end,
         std::uint64_t max_bytes, const std::string& field, bool skip_bad_lines, bool any_bytes, bool force) {
        return tokenized(inputs, output,
                         {.tokenizer = tokenizer,
                          .end_of_document = end,
                          .max_bytes = max_bytes,
                          .force = force,
                          .any_bytes = any_bytes,
                          .field = field,
                          .skip_bad_lines = skip_bad_lines});
      },
      nb::arg("inputs"), nb::arg("output"), nb::arg("tokenizer"), nb::arg("end_of_document"), nb::arg("max_bytes"), nb::arg("field"),
      nb::arg("skip_bad_lines"), nb::arg("any_bytes"), nb::arg("force"));
}

}  // namespace octet::python
