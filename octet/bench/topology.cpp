#include "octet/bench/topology.hpp"

#include <algorithm>
#include <sstream>

#include "octet/base/aligned.hpp"
#include "octet/base/clock.hpp"
#include "octet/base/host_name.hpp"
#include "octet/comm/rendezvous/gpus.hpp"
#include "octet/launch/process.hpp"
#include "octet/machine/machine.hpp"
#include "octet/machine/ranks.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/parallel/long_work.hpp"

namespace octet::bench {
namespace {

using comm::Communicator;

// The values of rank `root` on all ranks.
std::vector<double> told_by(Stream& stream, Communicator& comm, int root, std::vector<double> values) {
  const Scope scope(stream);
  const Tensor t = stream.empty({std::int64_t(values.size())}, DType::f64);
  upload(stream, values.data(), t);
  comm.broadcast(stream, t, root);
  comm.finish(stream);
  download(stream, t, values.data());
  return values;
}

// Seconds of one exchange, on the two ranks that take part: the mean of `launches`.
double exchange_seconds(Stream& stream, Communicator& comm, int peer, const Tensor& out, const Tensor& in, std::int64_t launches) {
  const double start = monotonic_seconds();
  for (std::int64_t i = 0; i < launches; ++i) comm.exchange(stream, out, peer, in, peer);
  comm.finish(stream);
  return (monotonic_seconds() - start) / double(launches);
}

PairRow measure_pair(Stream& stream, Communicator& comm, int first, int second, const Tensor& out, const Tensor& in, const Effort& effort) {
  const bool in_pair = comm.rank() == first || comm.rank() == second;
  const int peer = comm.rank() == first ? second : first;
  comm.barrier(stream);
  double once = in_pair ? exchange_seconds(stream, comm, peer, out, in, 2) : 0;
  once = told_by(stream, comm, first, {once})[0];
  const std::int64_t launches = std::clamp<std::int64_t>(std::int64_t(effort.sample_seconds / std::max(once, 1e-9)), 1, 1000);
  std::vector<double> samples(std::size_t(effort.repeats), 0.0);
  for (double& s : samples)
    if (in_pair) s = exchange_seconds(stream, comm, peer, out, in, launches);
  return {.first = first, .second = second, .seconds = timing_of(told_by(stream, comm, first, std::move(samples))), .link = ""};
}

// "GPU3" of a GPU that CUDA_VISIBLE_DEVICES names by its number.
std::string row_name(const std::string& device) { return "GPU" + device; }

void name_links(Topology& t) {
  const std::string program = launch::find_program("nvidia-smi");
  if (t.backend != "nccl" || program.empty()) return;
  const Links links = links_of(launch::output_of({.program = program, .words = {"topo", "-m"}}, 20));
  for (PairRow& p : t.pairs) {
    const RankSpot &a = t.ranks[std::size_t(p.first)], &b = t.ranks[std::size_t(p.second)];
    if (a.host != t.ranks[0].host || b.host != t.ranks[0].host) continue;
    const auto it = std::find_if(links.begin(), links.end(),
                                 [&](const auto& l) { return l.first == std::pair(row_name(a.device), row_name(b.device)); });
    if (it != links.end()) p.link = it->second;
  }
}

void measure_pairs(Communicator& comm, Device device, const AllReduceOptions& options, Topology& t) {
  Stream stream(device);
  const auto visible = comm::environment_variable(comm::gpus_variable);
  const auto hosts = parallel::gathered(stream, comm, host_name());
  const auto devices = parallel::gathered(stream, comm, std::string(device == Device::cpu ? "cpu" : visible.value_or("0")));
  const Tensor out = stream.zeros({t.bytes / 4}, DType::f32, Lifetime::run), in = stream.zeros({t.bytes / 4}, DType::f32, Lifetime::run);
  for (int first = 0; first < comm.size(); ++first)
    for (int second = first + 1; second < comm.size(); ++second)
      t.pairs.push_back(measure_pair(stream, comm, first, second, out, in, options.effort));
  for (int r = 0; r < comm.size(); ++r) t.ranks.push_back({hosts[std::size_t(r)], devices[std::size_t(r)]});
  parallel::work_of_first(stream, comm, [&] { name_links(t); });
}

// A line's cells, without the codes by which nvidia-smi underlines the head.
std::vector<std::string> cells(std::string line) {
  for (std::size_t at; (at = line.find('\x1b')) != line.npos;) {
    const std::size_t end = line.find('m', at);
    line.erase(at, end == line.npos ? line.npos : end - at + 1);
  }
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; in >> cell;) out.push_back(cell);
  return out;
}

bool is_device(const std::string& name) { return name.starts_with("GPU") || name.starts_with("NIC") || name.starts_with("mlx"); }

}  // namespace

Links links_of(const std::string& text) {
  Links out;
  std::vector<std::string> head;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> row = cells(line);
    if (head.empty()) {
      if (row.size() < 2 || row[0] != "GPU0" || !(is_device(row[1]) || row[1] == "CPU")) continue;
      for (const std::string& name : row)
        if (is_device(name) && !(name == "GPU")) head.push_back(name);  // "GPU NUMA ID" is another column
      continue;
    }
    if (row.empty()) break;
    if (!is_device(row[0])) continue;
    for (std::size_t c = 0; c < head.size() && c + 1 < row.size(); ++c)
      if (head[c] != row[0]) out.push_back({{row[0], head[c]}, row[c + 1]});
  }
  return out;
}

Topology measure_topology(const AllReduceOptions& options) {
  return machine::result_on_ranks(rank_wish(options), [&](Communicator& comm, const machine::RankPlacement& placement) {
    Topology t{.backend = placement.backend,
               .machine = machine::device_name(placement.device),
               .bytes = std::ranges::max(options.bytes),
               .reports = comm.rank() == 0,
               .ranks = {},
               .pairs = {}};
    measure_pairs(comm, placement.device, options, t);
    return t;
  });
}

std::string table_text(const Topology& t) {
  TextTable ranks{{"rank", "host", "device"}}, pairs{{"ranks", "link", "median us", "quartiles", "GB/s each way"}};
  for (std::size_t r = 0; r < t.ranks.size(); ++r)
    ranks.push_back({std::to_string(r), printable(t.ranks[r].host), printable(t.ranks[r].device)});
  const auto micros = [](double seconds) { return grouped((long long)(seconds * 1e6 + 0.5)); };
  for (const PairRow& p : t.pairs)
    pairs.push_back({format("{} and {}", p.first, p.second), p.link.empty() ? "-" : p.link, micros(p.seconds.median),
                     micros(p.seconds.low) + "-" + micros(p.seconds.high), fixed(p.rate(t.bytes) / 1e9, 3)});
  return format("{}; pairs of {} ranks exchange {}\n\n{}\n{}", t.machine, t.ranks.size(), bytes_text(double(t.bytes)), aligned(ranks, 3),
                aligned(pairs, 2));
}

json::Value to_json(const Topology& t) {
  json::Array ranks, pairs;
  for (const RankSpot& r : t.ranks) ranks.push_back(json::Object{{"host", r.host}, {"device", r.device}});
  for (const PairRow& p : t.pairs)
    pairs.push_back(json::Object{{"first", p.first},
                                 {"second", p.second},
                                 {"link", p.link},
                                 {"seconds", p.seconds.median},
                                 {"seconds_low", p.seconds.low},
                                 {"seconds_high", p.seconds.high},
                                 {"bytes_per_second", p.rate(t.bytes)}});
  return json::Object{{"machine", t.machine}, {"backend", t.backend}, {"bytes", t.bytes}, {"ranks", ranks}, {"pairs", pairs}};
}

}  // namespace octet::bench
