#include "octet/cli/network_options.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"

namespace octet::cli {
namespace {

std::string gbs_text(double gbs) { return gbs >= 1 ? shortest(std::round(10 * gbs) / 10) : fixed(gbs, 3); }

double rate_in(const std::string& option, const std::string& text) {
  const auto gbs = parse_number(text);
  if (!gbs || !(*gbs >= 1e-3) || *gbs > 1e6)
    throw ConfigError(format("--network {}: wants GB/s per GPU, such as 25, or cards per node x GB/s of each, such as 4x50", option));
  return *gbs;
}

// Cards that devices of a node share equally; several cards of one device are one.
std::int64_t devices_per_card(const std::string& option, const std::string& text, std::int64_t per_node) {
  const auto cards = parse_number(text);
  if (!cards || *cards != std::floor(*cards) || *cards < 1 || *cards > 1024)
    throw ConfigError(format("--network {}: a node has 1 to 1024 cards, such as 4x50", option));
  const std::int64_t n = std::int64_t(*cards);
  if (per_node % n != 0 && n % per_node != 0)
    throw ConfigError(
        format("--network {}: the {} GPUs of a node cannot share {} cards equally; give a divisor or a multiple of {}, or the "
               "rate per GPU alone",
               option, per_node, n, per_node));
  return std::max<std::int64_t>(1, per_node / n);
}

std::string rate_text(const machine::MachineConstants& m) {
  const double node = m.network_gbs * double(m.devices_per_node);
  const std::int64_t cards = m.devices_per_node / m.fabric.devices_per_card;
  std::string out = format("{} GB/s to other nodes per GPU ({} per node", gbs_text(m.network_gbs), gbs_text(node));
  if (cards < m.devices_per_node) out += format(": {} {} of {}", cards, cards == 1 ? "card" : "cards", gbs_text(node / double(cards)));
  return out + ")";
}

std::string spine_text(const machine::Fabric& f) {
  return f.blocks() ? format("spine oversubscribed {}:1", shortest(f.oversubscription)) : "a network without oversubscription";
}

}  // namespace

void NetworkOptions::add_to(Command& command) {
  command.option("--network", rate,
                 "with --gpus: GB/s that one GPU sends to other nodes, or a node's cards and the GB/s of each, such as 4x50; default: the "
                 "machine's");
  command.option("--oversubscription", oversubscription,
                 "with --gpus: rate of the cards of a leaf switch over that of its links to the spine; default: the machine's",
                 {.at_least = 1, .at_most = 1000});
  command.flag("--rails", rails, "with --gpus and oversubscription: card i of every node is on one leaf switch, a rail");
  command.option("--nodes-per-leaf", nodes_per_leaf,
                 "with --gpus and oversubscription: nodes that one leaf switch connects; default: the machine's, or one, or with rails all",
                 {.at_least = 1, .at_most = 1 << 20});
}

void NetworkOptions::apply(machine::MachineConstants& m) const {
  machine::Fabric& f = m.fabric;
  if (const std::size_t x = rate.find('x'); x != std::string::npos) {
    const std::string option = printable(rate);
    f.devices_per_card = devices_per_card(option, rate.substr(0, x), m.devices_per_node);
    m.network_gbs = *parse_number(rate.substr(0, x)) * rate_in(option, rate.substr(x + 1)) / double(m.devices_per_node);
  } else if (!rate.empty()) {
    m.network_gbs = rate_in(printable(rate), rate);
  }
  machine::require_equal_shares(f, m.devices_per_node, format("--per-node {}", m.devices_per_node));
  if (oversubscription > 0) f.oversubscription = oversubscription;
  if (rails) f.rails = true;
  if (nodes_per_leaf > 0) f.nodes_per_leaf = nodes_per_leaf;
  if ((rails || nodes_per_leaf > 0) && !f.blocks())
    throw ConfigError(format("{} has no effect on a network without oversubscription; add --oversubscription, or leave {} out",
                             rails ? "--rails" : "--nodes-per-leaf", rails ? "--rails" : "--nodes-per-leaf"));
}

std::string network_text(const machine::MachineConstants& m) {
  return rate_text(m) + (m.fabric.blocks() ? ", " + spine_text(m.fabric) : "") + (m.fabric.blocks() && m.fabric.rails ? ", rails" : "");
}

std::vector<std::string> assumed_network(const machine::MachineConstants& m, const std::vector<std::string>& given) {
  const auto has = [&](std::string_view name) { return std::find(given.begin(), given.end(), name) != given.end(); };
  const machine::Fabric& f = m.fabric;
  std::vector<std::string> out;
  if (!has("--network")) out.push_back(rate_text(m) + " (--network)");
  if (!has("--oversubscription")) out.push_back(spine_text(f) + " (--oversubscription)");
  if (!f.blocks()) return out;
  if (!has("--rails") && !f.rails) out.push_back("all cards of a node on one leaf switch (--rails)");
  if (has("--nodes-per-leaf")) return out;
  if (f.nodes_per_leaf > 0) out.push_back(format("{} nodes per leaf switch (--nodes-per-leaf)", f.nodes_per_leaf));
  else if (f.rails) out.push_back("all nodes on the leaf switches of their rails (--nodes-per-leaf)");
  else out.push_back("one node per leaf switch, so that all between nodes crosses the spine (--nodes-per-leaf)");
  return out;
}

}  // namespace octet::cli
