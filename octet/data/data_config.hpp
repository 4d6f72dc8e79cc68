#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/config/fields.hpp"
#include "octet/data/windows.hpp"

namespace octet::data {

/// Where training data comes from and how it is cut; the [data] section of a run's configuration.
/// The order of the samples follows from the run's own seed.
struct DataConfig {
  std::string path;                    // a folder that `octet tokenize` wrote, files of another program, or text files
  std::vector<std::string> mix;        // more such texts by shares of all samples: parse_shares
  std::string eval_path;               // such a folder for evaluation, of which everything is held out; empty: a part of `path`
  std::string chat_template;           // of text files with conversations; empty: the model's own
  std::int64_t sequence_length = 512;  // tokens per sample
  double eval_fraction = 0.01;         // of the documents of `path`, held out for evaluation: split_documents
  bool document_mask = false;          // attention and positions end at the borders of documents
  bool verify = true;                  // read every token when the dataset is opened
  std::int64_t prefetch = 4;           // batches kept ready

  Documents documents() const { return document_mask ? Documents::masked : Documents::joined; }

  void fields(config::FieldVisitor& v) {
    v.field("path", path,
            "folder that `octet tokenize` wrote, token files of llm.c, LLM.Q, nanoGPT or Megatron: 'fineweb/*.bin', or text: 'chat.jsonl'",
            config::OnResume::may_change);
    v.field("mix", mix, "more texts to train on, as PATH:SHARE of all samples, such as data/code:0.3; data.path has the rest",
            config::OnResume::may_change);
    v.field("eval_path", eval_path, "folder like path for evaluation; empty: the share eval_fraction of path is held out",
            config::OnResume::may_change);
    v.field("chat_template", chat_template, "form of conversations in text files; empty: the template of the model in model.init");
    v.field("sequence_length", sequence_length, "tokens per sample", {.at_least = 1});
    v.field("eval_fraction", eval_fraction, "share of the documents held out for evaluation, chosen by a hash of their number",
            {.at_least = 0, .below = 1});
    v.field("document_mask", document_mask,
            "a token reads only its own document, in which positions begin at 0; the first token of a document is not predicted");
    v.field("verify", verify, "read and check every token when the dataset is opened", config::OnResume::may_change);
    v.field("prefetch", prefetch, "batches prepared ahead by a thread of their own", {.at_least = 1, .at_most = 1024},
            config::OnResume::may_change);
    v.idle("eval_fraction", !eval_path.empty(), "data.eval_path is set, so the run trains on all of data.path");
  }
};

}  // namespace octet::data
