#include "octet/plan/matrix.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/models/registry.hpp"
#include "octet/plan/table.hpp"

namespace octet::plan {
namespace {

struct Cluster {
  const char* name;
  std::int64_t gpus;
  double link_gbs, network_gbs;
  std::int64_t per_node;
};

// Kinds of clusters of H100 with 80 GB. Links without NVLink are PCIe 5.
std::vector<Cluster> clusters() {
  std::vector<Cluster> out{{"1 GPU", 1, 340, 50, 8}};
  for (const std::int64_t gpus : {8, 64, 512}) {
    out.push_back({"NVLink, InfiniBand 400 Gb/s per GPU", gpus, 340, 50, 8});
    if (gpus > 8) out.push_back({"NVLink, Ethernet 100 Gb/s per GPU", gpus, 340, 10, 8});
    out.push_back({"PCIe, Ethernet 100 Gb/s per node", gpus, 25, 1.25, 8});
  }
  return out;
}

std::vector<NamedModel> subjects() {
  std::vector<NamedModel> out;
  for (const char* size : {"qwen2.5-0.5b", "qwen2.5-7b", "qwen2.5-14b"}) out.push_back({size, planned_model(models::model_size(size))});
  out.insert(out.end(), large_models().begin(), large_models().end());
  return out;
}

Question question(const NamedModel& s, const Cluster& c) {
  Job job{
      .sequence = std::min<std::int64_t>(4096, s.model.shape.max_sequence), .gpus = c.gpus, .machine = machine::machine_constants("h100")};
  job.sequences = 1024;
  job.memory = job.machine.memory_gb * 1e9;
  job.machine.link_gbs = c.link_gbs, job.machine.network_gbs = c.network_gbs, job.machine.devices_per_node = c.per_node;
  return {.model = s.model, .job = job, .levels = {optim::Level::O0, optim::Level::O2}, .program = [](const Layout& l) {
            return octet_software(optim::storage_of(l.level), l.zero, l.eight_bit);
          }};
}

bool fits_at_first_level(const Question& q, Layout l) {
  l.level = q.levels.front();
  FormulaMemory memory(q.model, q.job, q.program);
  return stage_memory(memory.layer_memory(l), q.model, l, q.job).largest().total() <= usable_memory * q.job.memory;
}

// Why the layout has its axes, in words.
std::string reasons(const Question& q, const Answer& a) {
  const Candidate& best = a.best.front();
  const Layout& l = best.layout;
  constexpr const char* of_zero[] = {"", "ZeRO-1 divides the optimizer at no more transfers than plain data parallel",
                                     "ZeRO-2 divides gradients too; they travel in every micro-batch",
                                     "ZeRO-3 divides weights too; large micro-batches hide their gathers"};
  std::vector<std::string> out;
  if (l.tensor == 1 && l.pipeline == 1 && l.zero == 0 && q.job.gpus > 1)
    out.push_back("the model fits on each GPU, so data parallel alone has the fewest transfers");
  if (l.zero > 0) out.push_back(of_zero[l.zero]);
  if (l.tensor > 1) out.push_back("tensor parallelism stays within the links of a node");
  if (l.pipeline > 1)
    out.push_back(
        format("the pipeline crosses nodes with little traffic; its bubble is {}%", fixed(100 * best.time.bubble / best.time.total(), 1)));
  if (l.same_shard() > 1) out.push_back("groups within nodes keep the state on fast links");
  if (l.experts > 1) out.push_back("experts are divided, since they are most of the parameters");
  if (l.recomputed != Recomputed::none) out.push_back("recomputation makes room for activations");
  if (l.level != optim::Level::O0)
    out.push_back(format("level {} {}", optim::to_text(l.level),
                         fits_at_first_level(q, l) ? "sends gradients in one byte" : "makes room for states"));
  if (out.empty()) out.push_back("it fits");
  return joined(out, "; ");
}

std::string cell(const Question& q, const Answer& a) {
  if (a.best.empty()) return "| none fits | | | no valid layout fits into the memory |";
  const Candidate& best = a.best.front();
  const double bf16 = a.other_precision ? token_rate(best.time, q.job) / token_rate(a.other_precision->time, q.job) : 0;
  return format("| {}{} | {} | {} | {} |", to_text(best.layout), not_trained(best.layout, q).empty() ? "" : " (*)",
                grouped(std::llround(token_rate(best.time, q.job))), bf16 > 0 ? fixed(bf16, 2) : "BF16 does not fit", reasons(q, a));
}

std::string matrix_of(const NamedModel& s) {
  std::string out = format("### {}\n\n{} parameters, {} of them used per token.\n\n", s.name, grouped(std::llround(s.model.parameters())),
                           grouped(std::llround(s.model.used_parameters())));
  out += "| GPUs | cluster | layout | tokens/s per GPU | FP8 over BF16 | reasons |\n|---:|---|---|---:|---:|---|\n";
  for (const Cluster& c : clusters()) {
    const Question q = question(s, c);
    FormulaMemory memory(q.model, q.job, q.program);
    out += format("| {} | {} {}\n", c.gpus, c.gpus == 1 ? "-" : c.name, cell(q, search(q, memory)));
  }
  return out + "\n";
}

std::string rules() {
  constexpr std::string_view kinds[] = {"every program", "this version", "plans"};
  std::string out = "| key | rule | of |\n|---|---|---|\n";
  for (const train::LayoutConstraint& rule : train::layout_constraints())
    out += format("| `{}` | {} | {} |\n", rule.axis.key, rule.text, kinds[std::size_t(rule.holds)]);
  return out;
}

std::string constants() {
  std::string out = "| constant |";
  for (const auto& m : machine::named_machines()) out += format(" {} |", m.name);
  out += "\n|---|";
  for (std::size_t i = 0; i < machine::named_machines().size(); ++i) out += "---:|";
  out += "\n";
  using machine::MachineConstants;
  for (const auto& [name, member] : {std::pair{"GEMMs in BF16, TFLOP/s", &MachineConstants::gemm_tflops},
                                     {"factor with 8-bit operands", &MachineConstants::eight_bit_gain},
                                     {"attention of long sequences, TFLOP/s", &MachineConstants::attention_tflops},
                                     {"head, TFLOP/s", &MachineConstants::head_tflops},
                                     {"element-wise, GB/s", &MachineConstants::memory_gbs},
                                     {"links of a node, GB/s", &MachineConstants::link_gbs},
                                     {"network, GB/s", &MachineConstants::network_gbs},
                                     {"exposed share of tensor transfers", &MachineConstants::exposed_tensor},
                                     {"memory, GB", &MachineConstants::memory_gb}}) {
    out += format("| {} |", name);
    for (const auto& m : machine::named_machines()) out += format(" {} |", shortest(m.*member));
    out += "\n";
  }
  return out;
}

constexpr const char* introduction = R"(# Choose a layout

This page is written by `octet plan --matrix`. It answers one question: how to divide a model of some size on some GPUs. For your own run:

```sh
octet plan run.toml --gpus 64 --per-node 8 --machine h100
octet plan run.toml --gpus 64 --layout tensor=4,pipeline=4,zero=1   # time, memory and limit of one layout
octet plan run.toml --gpus 1024 --tokens 2000000000000 --price 2     # days, failures, checkpoint interval, goodput, cost of the whole run
octet plan run.toml --gpus 8 --runnable --write job       # run file and Slurm script of the best layout that Octet trains
octet plan run.toml --gpus 8 --machine cluster.toml       # with constants that octet bench --calibrate cluster.toml measured
octet plan run.toml --gpus 64 --network 12.5              # 100 Gb/s per GPU between nodes
octet plan run.toml --gpus 512 --network 4x50 --oversubscription 2 --rails --nodes-per-leaf 32   # cards and switches between nodes
octet plan --model deepseek-v3 --gpus 2048 --fp8 --set train.accumulate=2048 --set data.sequence_length=4096   # or a file: --model moe.toml
octet plan --schedule 1f1b.svg --kind 1f1b --stages 4 --micro-batches 8
```

The answer begins with its assumptions: each line names the option or key that sets one.

## The network between nodes

| option | key of a machine file | meaning | default |
|---|---|---|---|
| `--network 25` | `network_gbs` | GB/s that one GPU sends to other nodes | that of the machine |
| `--network 4x50` | `fabric.devices_per_card` = 2, `network_gbs` = 25 | 4 cards per node of 50 GB/s each, here for 8 GPUs | one card per GPU |
| `--oversubscription 2` | `fabric.oversubscription` | rate of the cards of a leaf switch over that of its links to the spine | 1: non-blocking |
| `--rails` | `fabric.rails` | rail-optimized: card i of every node is on leaf switch i | a leaf switch has all cards of its nodes |
| `--nodes-per-leaf 32` | `fabric.nodes_per_leaf` | nodes that one leaf switch connects | one; with rails all |

Ranks fill node by node, and nodes leaf by leaf. All GPUs of an axis send at the same time. The part x of their bytes to other nodes that
crosses the spine decides: a GPU sends at its rate over max(1, oversubscription x x).

| axis | x |
|---|---|
| tensor | none crosses: its ranks are in a node |
| data, context: rings | 0 if all nodes of a group are on one leaf switch; 1 / k with k of them on a leaf, since one of k sends to the next leaf |
| pipeline | as a ring; only hops over the spine are slower |
| experts | other nodes on other leaf switches over all other nodes; with rails also rows to other places of a node |

With rails, data groups of equal places in each node stay on a rail. Stages that share a node send across rails. Octet sends rows of experts
straight to their ranks; programs that relay them within nodes stay on rails. So ZeRO in groups within leaf switches and tensor parallelism do
not pay for an oversubscribed spine. Pipeline stages of whole leaf switches and exchanges of experts pay all of it.

`octet bench --calibrate` measures `network_gbs` with all GPUs of its nodes. Run it on nodes of one leaf switch, and set the other keys by hand.

This version trains all four axes; with a pipeline axis ZeRO-1 at most. Other layouts are predictions. The command marks them
`[not runnable by this version]`, this page marks them (*).

## Rules

Ranks are tensor x context x data x pipeline, in this order. Tensor parallelism includes sequence parallelism. Layers are divided among stages
by the time of their operations, with the head counted, so stages may have unequal numbers of layers. Layouts with one chunk per stage have
the schedule 1f1b or, where they say zero bubble, zero_bubble.

`octet train` refuses a layout that breaks one of these rules, and names the key to change. Rules of plans are about layouts that train, but
would be slow or do nothing.

Expert ranks are neighbours on the data axis, and divide the experts of each layer: "experts over 8" adds no ranks. A token's row is sent
once to each rank that has one of its experts. Tensor ranks have copies of experts, and compute those of their own rows.

)";

constexpr const char* assumptions = R"(
## Assumptions

**Memory.** `octet plan --gpus` measures bytes per block, embedding and head in dry runs of your configuration. These have its data axis, and
its tensor and context axes where this version trains them. Other axes divide the bytes. A stage has its layers, times the micro-batches that its schedule
has in flight. A layout of the answer is then run dry as a whole, so its memory is at least that of a real run. Tensors may fill 96% of a
GPU. This page uses formulas instead, which agree with dry runs within a tenth.

**Precision.** Codes that the machine does not multiply are refused, as by `octet train`: all FP8 on A100, scales per
1x32 block on Hopper. With
`recipe.emulation = true` they are planned at the rate of BF16.

**Time.** A step is the operations of its parts at effective rates, the bytes that products and element-wise operations write, and transfers
that no computation hides:

- Products: each launch leaves half a wave of its tiles idle. Narrow matrices, parts of divided ones and few tokens per expert write more
  bytes per operation. Scales per block multiply more slowly. A maximum over a whole tensor is a pass more; this page has scales that are
  known before.
- Attention is far from its rate on short sequences: half of it at 1,100 tokens. Heads of 64 columns reach three quarters.
- Tensor transfers have a rate by their size: half of that of the links at 34 MB. Those of Octet are exposed.
  In other programs an exchange hides under at most 0.6 of the product that it belongs to.
- Experts: rows are copied to them and summed. A row goes once to each GPU with one of its experts. `--expert-load` is the load of the
  most loaded rank over the mean. Benchmarks in which tokens choose freely fit 1.7, and routers with balancing biases 1.1.
- Data axis: the search also tries ZeRO in groups within nodes ("in groups of 8"). Gradients of ZeRO-0 and ZeRO-1 hide under one
  micro-batch, those of ZeRO-2 and ZeRO-3 under all. A fifth of hidden time is lost to shared memory. One layer's part is never hidden.
  Each exchange takes 1 us more per GPU of its ring.
- Between nodes: members of an axis on one node share their network cards; an exchange of experts has its own card alone. This page has
  networks without oversubscription.
- Pipelines: the slowest stage and the bubble are added. Under zero_bubble, products of weights' gradients are a third of GEMMs. What a
  forward takes longer is lost in each micro-batch beyond the number of stages.
- Attention in context parallelism hides all but a tenth of its transfers.
- All wait for the slowest node. Times of nodes spread by 0.6%, so 64 nodes lose 1.7%, and 8,192 nodes 2.5%.

**Accuracy.** The tests of `octet/plan/` compare predictions with published figures of other programs:

| figures | agreement |
|---|---|
| 20 rates of NVIDIA's recipes on H100, dense models of 8B to 405B | 18 within 8%; 22B +12%, an old release of 8B +14% |
| 8 step times of NVIDIA on H100 | within 11%; if a model is left out of the fit, it is predicted within 12% |
| 12 pairs of layouts that differ by 5% or more | all in the published order; tensor 4 -> 8 of 70B costs 28%, predicted 13% |
| 7 rates of models with experts on H100, Megatron and torchtitan | within 16% |
| 12 speeds of FP8-LM | within 15% |
| 12 memory figures of FP8-LM | 11 within 10%; 13B at micro-batch 4: 14% too little is predicted |
| 17 rates of Octet on one and two H200, 4 of OLMoE-1B-7B on one H100 | within 10%; within 16% |

The rates of h100 were fitted to NVIDIA's and Octet's dense rows together. Starts of kernels were chosen on the rows of FP8-LM and of
experts, and so were the loads of experts. The memory outside of tensors was fitted to FP8-LM. Layouts within 2% count as equal, and the
simpler one wins. Rates of programs of 2023 and of GPUs with less power are predicted up to 3 times too high.

**Failures.** Of 1,000 GPUs one fails every 50 hours, as 16,384 GPUs did that trained Llama 3. The best checkpoint interval and the lost time
follow from Daly's formula. Set `--mtbf-hours`, `--checkpoint-seconds`, `--restart-minutes` and `--repair-hours` to those of your cluster.

**Not modelled.** Expert transfers that computation hides.

## Constants of named machines

)";

}  // namespace

std::string guide_text() {
  std::string out = introduction + rules() + assumptions + constants();
  out += R"(
The rates of h100 are fitted to published rates of whole runs. Those of a100 are scaled by published peaks, and are not validated.
The rates of cpu2 are for tests.

## Layouts by size, GPUs and network

FP8, 1024 sequences of 4096 tokens per step (GPT-3: 2048), H100 with 85.5 GB ("80 GB") and 8 GPUs per node. Levels O0 and O2 are allowed.

)";
  for (const NamedModel& s : subjects()) out += matrix_of(s);
  out.pop_back();
  return out;
}

}  // namespace octet::plan
