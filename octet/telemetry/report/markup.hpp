#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::telemetry::report {

/// `s` as text or attribute value of HTML and XML: & < > " ' become references. Characters that XML forbids, bytes that are not UTF-8, and
/// invisible line breaks and bidirectional controls (U+2028, U+2029, ...) become U+FFFD.
std::string escaped(std::string_view s);

/// x with at most `digits` digits after the point and no trailing zeros, "0" where it is not finite: for coordinates.
std::string coordinate(double x, int digits = 2);
/// A fraction as a coordinate in percent.
std::string percent(double fraction);

using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

/// Builds HTML with inline SVG, well-formed as XML: elements close in order, all text and every attribute is escaped.
class Markup {
 public:
  /// An open element; the destructor closes it.
  class [[nodiscard]] Element {
   public:
    explicit Element(Markup& markup) : markup_(&markup) {}
    ~Element() {
      if (markup_) markup_->close();
    }
    Element(Element&& from) noexcept : markup_(std::exchange(from.markup_, nullptr)) {}
    Element& operator=(Element&&) = delete;

   private:
    Markup* markup_;
  };

  Element in(std::string_view tag, Attributes attributes = {});
  /// An element with only text.
  void element(std::string_view tag, std::string_view text, Attributes attributes = {});
  /// An empty element: SVG shapes, and HTML's void elements.
  void leaf(std::string_view tag, Attributes attributes = {});
  void text(std::string_view text) { out_ += escaped(text); }
  /// Unescaped: for constants of the program, such as the style sheet.
  void verbatim(std::string_view markup) { out_ += markup; }

  /// "c1", "c2", ...: no two elements of a document share one.
  std::string new_id();
  const std::string& text() const { return out_; }

 private:
  void open(std::string_view tag, Attributes attributes);
  void close();

  std::string out_;
  std::vector<std::string> open_;
  int ids_ = 0;
};

}  // namespace octet::telemetry::report
