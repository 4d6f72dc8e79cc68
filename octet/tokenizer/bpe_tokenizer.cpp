#include "octet/tokenizer/bpe_tokenizer.hpp"

#include <algorithm>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/base/utf8.hpp"
#include "octet/tokenizer/pre_token_cache.hpp"
#include "octet/tokenizer/unicode.hpp"

namespace octet::tokenizer {
namespace {

json::Limits limits() { return {.bytes = most_source_bytes, .values = std::size_t(4) << 20, .depth = 16, .piece = std::size_t(1) << 20}; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A character that begins with this byte is a letter: ASCII, Cyrillic U+0400 to U+047F, Chinese U+5000 to U+8FFF.
bool begins_letter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return is_letter(c) || byte == 0xD0 || byte == 0xD1 || (byte >= 0xE5 && byte <= 0xE8);
}

/// Whether `text` ends with a character other than white space.
bool ends_visibly(std::string_view text) {
  constexpr std::size_t most = 4;  // bytes of a character
  for (std::size_t n = 1; n <= std::min(most, text.size()); ++n) {
    const std::string_view last = text.substr(text.size() - n);
    if (utf8_sequence_bytes(last) == n) return !is_white_space(first_character(last).code);
  }
  return false;
}

/// Encodes parts, from the last pre-tokenizer on.
class PreTokenEncoder final : public PreTokenReceiver {
 public:
  PreTokenEncoder(const BpeModel& model, bool divide) : model_(model), divide_(divide) {}
  void add(std::string_view part, bool) override {
    if (!divide_) return encode(part);
    std::size_t begin = 0;
    for (std::size_t i = part.find(space_mark, 1); i != part.npos; i = part.find(space_mark, i + space_mark.size())) {
      if (part.substr(0, i).ends_with(space_mark)) continue;
      encode(part.substr(begin, i - begin));
      begin = i;
    }
    encode(part.substr(begin));
  }
  std::vector<std::int32_t>* ids = nullptr;

 private:
  void encode(std::string_view part) {
    if (part.size() > PreTokenCache::most_bytes) return model_.encode(part, *ids, scratch_);
    PreTokenCache::Entry& entry = cache_.place_of(part);
    if (PreTokenCache::holds(entry, part)) {
      ids->insert(ids->end(), entry.id.begin(), entry.id.begin() + entry.ids);
      return;
    }
    const std::size_t before = ids->size();
    model_.encode(part, *ids, scratch_);
    const auto fresh = std::span(*ids).subspan(before);
    if (fresh.size() <= PreTokenCache::most_ids) PreTokenCache::store(entry, part, fresh);
  }

  const BpeModel& model_;
  bool divide_;
  PreTokenCache cache_;
  BpeModel::Scratch scratch_;
};

/// A pre-tokenizer with the receiver of its parts.
class Link final : public PreTokenReceiver {
 public:
  Link(const PreTokenizer& stage, Regex::Scratch& scratch, PreTokenReceiver& next) : stage_(stage), scratch_(scratch), next_(next) {}
  void add(std::string_view part, bool at_start) override { stage_.split(part, at_start, storage_, scratch_, next_); }

 private:
  const PreTokenizer& stage_;
  Regex::Scratch& scratch_;
  PreTokenReceiver& next_;
  std::string storage_;
};

}  // namespace

struct BpeTokenizer::Work {
  explicit Work(const BpeTokenizer& t) : encoder(*t.model_, t.divides_at_marks_) {
    first = &encoder;
    for (auto stage = t.pre_tokenizers_.stages.rbegin(); stage != t.pre_tokenizers_.stages.rend(); ++stage) {
      links.push_back(std::make_unique<Link>(**stage, scratch, *first));
      first = links.back().get();
    }
  }
  Regex::Scratch scratch;
  PreTokenEncoder encoder;
  std::vector<std::unique_ptr<Link>> links;
  PreTokenReceiver* first;
  std::string repaired, normalized;
};

/// The memory of one call of encode().
class BpeTokenizer::Lease {
 public:
  explicit Lease(const BpeTokenizer& owner) : owner_(owner) {
    const std::scoped_lock lock(owner.mutex_);
    if (owner.idle_.empty()) return;
    work_ = std::move(owner.idle_.back());
    owner.idle_.pop_back();
  }
  ~Lease() {
    const std::scoped_lock lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(work_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Work& work() {
    if (!work_) work_ = std::make_unique<Work>(owner_);
    return *work_;
  }

 private:
  const BpeTokenizer& owner_;
  std::unique_ptr<Work> work_;
};

BpeTokenizer::BpeTokenizer(std::string source, const std::string& file)
    : source_(std::move(source)), name_(identity_of(source_)), file_(file) {
  const json::Value root = json::parse({.text = source_, .file = file, .limits = limits()});
  const json::Fields fields(root, file);
  // Truncation and padding are for batches of short texts: a dataset has neither.
  require_keys(fields,
               {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"});
  if (fields.has("normalizer")) normalizers_ = read_normalizers(fields.object("normalizer"), file);
  if (fields.has("pre_tokenizer")) pre_tokenizers_ = read_pre_tokenizers(fields.object("pre_tokenizer"), file);
  model_ = std::make_unique<BpeModel>(fields.object("model"), pre_tokenizers_.byte_level);
  added_ = read_added_tokens(fields);
  add_tokens(file);
  if (fields.has("post_processor")) template_ = read_template(fields.object("post_processor"), vocab_size());
  has_decoder_ = fields.has("decoder");
  if (has_decoder_) decoders_ = read_decoders(fields.object("decoder"), file);
  divides_at_marks_ = !model_->byte_level() && model_->divides_before(space_mark);
  cuts_ = possible_cuts();
}

BpeTokenizer::~BpeTokenizer() = default;

/// The tokens by id, and the finders of the added ones.
void BpeTokenizer::add_tokens(const std::string& file) {
  std::size_t size = 0;
  for (const auto& [token, id] : model_->vocabulary()) size = std::max(size, std::size_t(id) + 1);
  for (const AddedToken& token : added_) size = std::max(size, std::size_t(token.id) + 1);
  if (size == 0) throw DataError(format("{}: the vocabulary must have at least one token", file));
  tokens_.resize(size), special_.resize(size);
  for (const auto& [token, id] : model_->vocabulary()) tokens_[std::size_t(id)] = token;
  Regex::Scratch scratch;
  auto next = std::int32_t(model_->vocabulary().size());  // ids after the vocabulary have no gap: PyPI `tokenizers` would close it
  for (const AddedToken& added : added_) {
    const std::int32_t* own = model_->find(added.content);
    const std::int32_t wanted = own != nullptr ? *own : next;
    if (added.id != wanted)
      throw DataError(
          format("{}: the added token \"{}\" must have the id {}, which follows from the vocabulary and the tokens before it, "
                 "got {}",
                 file, printable(added.content), wanted, added.id));
    if (added.id >= next) next = added.id + 1;
    tokens_[std::size_t(added.id)] = added.content;
    if (added.special) special_[std::size_t(added.id)] = true;
    std::string content = added.content;
    if (added.normalized) normalizers_.apply(content, false, scratch);
    (added.normalized ? normalized_finder_ : raw_finder_).add(content, added);
  }
}

bool BpeTokenizer::added_tokens_allow_cuts() const {
  return std::none_of(added_.begin(), added_.end(), [](const AddedToken& token) {
    const std::string& c = token.content;
    const bool edge = is_letter(c.front()) || is_letter(c.back()) || c.front() == ' ' || c.back() == ' ' || c.back() == '\n';
    const bool inside = c.find_first_of(" \n") != c.npos && c.find_first_not_of(" \n") != c.npos;
    return inside || c == " " || c == "\n" || (edge && (token.lstrip || token.rstrip || token.single_word));
  });
}

BpeTokenizer::Cuts BpeTokenizer::possible_cuts() const {
  const auto separable = [](const auto& normalizer) { return normalizer->separable(); };
  if (!std::all_of(normalizers_.begin(), normalizers_.end(), separable) || !added_tokens_allow_cuts()) return Cuts::none;
  const auto borders = pre_tokenizers_.borders();
  if (borders == PreTokenizer::Borders::at_lines) return Cuts::at_lines;
  if (borders == PreTokenizer::Borders::at_spaces) return Cuts::at_spaces;
  if (borders != PreTokenizer::Borders::unchanged || !divides_at_marks_) return Cuts::none;
  const auto marks = [](const auto& part) { return part->marks_spaces(); };
  const bool marked = std::any_of(normalizers_.begin(), normalizers_.end(), marks) ||
                      std::any_of(pre_tokenizers_.stages.begin(), pre_tokenizers_.stages.end(), marks);
  return marked ? Cuts::at_spaces : Cuts::none;
}

void BpeTokenizer::encode_section(std::string_view section, bool at_start, bool continued, Work& work) const {
  if (normalizers_.empty() && normalized_finder_.empty()) return work.first->add(section, at_start);
  work.normalized = section;
  normalizers_.apply(work.normalized, continued, work.scratch);
  const std::string_view text = work.normalized;
  normalized_finder_.divide(
      text, [&](std::string_view part) { work.first->add(part, at_start && part.data() == text.data()); },
      [&](std::int32_t id) { work.encoder.ids->push_back(id); });
}

std::size_t BpeTokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids, Position position) const {
  Lease lease(*this);
  Work& work = lease.work();
  work.encoder.ids = &ids;
  std::size_t replaced = 0;
  text = well_formed(text, work.repaired, replaced);
  const bool start = position == Position::start;
  raw_finder_.divide(
      text,
      [&](std::string_view section) {
        const bool first = section.data() == text.data();
        encode_section(section, first && start, first && !start, work);
      },
      [&](std::int32_t id) { ids.push_back(id); });
  return replaced;
}

std::string BpeTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids)
    if (id >= 0 && id < vocab_size() && !special_[std::size_t(id)] && !tokens_[std::size_t(id)].empty())
      tokens.push_back(tokens_[std::size_t(id)]);
  std::size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  const std::size_t most = most_grown(bytes);
  for (const auto& decoder : decoders_) {
    decoder->apply(tokens, most);
    std::size_t now = 0;
    for (const std::string& token : tokens) now += token.size();
    if (now > most) refuse_growth(file_, "decoder", bytes);
  }
  return joined(tokens, has_decoder_ ? "" : " ");
}

std::size_t BpeTokenizer::last_cut(std::string_view text) const {
  if (cuts_ == Cuts::none || text.size() < 3) return 0;
  for (std::size_t p = text.size() - 2; p > 0; --p) {
    if (text[p] == ' ' && is_letter(text[p - 1]) && is_letter(text[p + 1])) return p;
    // Two blanks would be one part at the end of a text, and two before a letter.
    if (cuts_ == Cuts::at_lines && text[p - 1] == '\n' && begins_letter(text[p]) && ends_visibly(text.substr(0, p - 1))) return p;
  }
  return 0;
}

std::optional<std::int32_t> BpeTokenizer::empty_context() const {
  if (begin_) return begin_;
  return template_.prefix.empty() ? separator_ : template_.prefix.back();
}

std::optional<std::int32_t> BpeTokenizer::id_of(std::string_view token) const {
  for (const AddedToken& added : added_)
    if (added.content == token) return added.id;
  if (const std::int32_t* id = model_->find(token)) return *id;
  return std::nullopt;
}

std::string_view BpeTokenizer::token(std::int32_t id) const {
  return id >= 0 && id < vocab_size() ? std::string_view(tokens_[std::size_t(id)]) : std::string_view();
}

}  // namespace octet::tokenizer
