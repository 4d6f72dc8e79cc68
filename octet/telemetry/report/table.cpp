#include "octet/telemetry/report/table.hpp"

namespace octet::telemetry::report {

void write_head(Markup& m, const std::vector<std::string>& names) {
  const auto head = m.in("thead");
  const auto row = m.in("tr");
  for (const auto& name : names) m.element("th", name, {{"scope", "col"}});
}

void write_groups(Markup& m, const Study& study, const std::vector<std::string>& names,
                  const std::function<std::vector<std::string>(const Group&)>& cells) {
  const auto table = m.in("table", {{"class", "summary plain"}});
  write_head(m, names);
  const auto body = m.in("tbody");
  for (const Group& group : study.groups) {
    const std::vector<std::string> texts = cells(group);
    if (texts.empty()) continue;
    const auto row = m.in("tr");
    m.element("th", group.name, {{"scope", "row"}});
    for (std::size_t i = 0; i < texts.size(); ++i) m.element("td", texts[i], {{"data-label", names[i + 1]}, {"class", "number"}});
  }
}

}  // namespace octet::telemetry::report
