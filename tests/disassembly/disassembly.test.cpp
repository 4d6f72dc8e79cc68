#include <cxxabi.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// What nvcc made of the kernels of octet/ops, read with cuobjdump from their object files: the instructions that make a kernel fast are
// there, and what makes it slow is not. The code for Hopper is looked at.

namespace octet {
namespace {

struct Kernel {
  std::string op;                        // the folder in octet/ops
  std::string name;                      // as in the source, with template arguments, without namespaces
  std::map<std::string, int> mnemonics;  // "LDG.E.128.CONSTANT" -> how often it stands there
  int crowded_fmas = 0;                  // FFMAs that read three registers of one of the two banks, which takes twice as long
  int moves_to_uniform = 0;              // R2URs after the first multiplication of a warpgroup and before its last one
  int moves_since = 0;                   // of the latter, those after the latest multiplication

  // Instructions whose name begins so.
  int count(std::string_view beginning) const {
    int n = 0;
    for (const auto& [mnemonic, times] : mnemonics)
      if (mnemonic.starts_with(beginning)) n += times;
    return n;
  }
};

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* const text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : symbol;
  std::free(text);
  for (const std::string_view space : {"octet::cuda::(anonymous namespace)::", "octet::cuda::", "octet::ops::", "octet::", "void "})
    for (std::size_t at = name.find(space); at != name.npos; at = name.find(space, at)) name.erase(at, space.size());
  return name;
}

// "        /*0a90*/  @!P0 LDG.E.128 R4, [R2.64] ;" -> "LDG.E.128"; "" where a line is no instruction.
std::string mnemonic_of(const std::string& line) {
  std::size_t at = line.find("/*");
  if (at == line.npos || line.find_first_not_of(' ') != at || (at = line.find("*/", at)) == line.npos) return "";
  at = line.find_first_not_of(' ', at + 2);
  if (at != line.npos && line[at] == '@') at = line.find_first_not_of(' ', line.find(' ', at));
  if (at == line.npos || !std::isupper(static_cast<unsigned char>(line[at]))) return "";
  return line.substr(at, line.find_first_of(" ;", at) - at);
}

// "... FFMA R8, R24, R210.reuse, R8 ;" -> whether R24, R210 and R8 are all even or all odd.
bool crowded_fma(const std::string& line) {
  unsigned to = 0, a = 0, b = 0, c = 0;
  std::string plain = line.substr(line.find("FFMA"));
  for (std::size_t at = plain.find(".reuse"); at != plain.npos; at = plain.find(".reuse")) plain.erase(at, 6);
  if (std::sscanf(plain.c_str(), "FFMA R%u, R%u, R%u, R%u", &to, &a, &b, &c) != 4) return false;
  return a % 2 == b % 2 && b % 2 == c % 2;
}

void add_instruction(Kernel& k, const std::string& mnemonic, const std::string& line) {
  ++k.mnemonics[mnemonic];
  if (mnemonic == "FFMA" && crowded_fma(line)) ++k.crowded_fmas;
  if (mnemonic == "R2UR") ++k.moves_since;
  if (mnemonic.find("GMMA.") == 1) {
    if (k.count("QGMMA") + k.count("HGMMA") > 1) k.moves_to_uniform += k.moves_since;
    k.moves_since = 0;
  }
}

// Adds the kernels of what `cuobjdump -sass` prints.
void read_kernels(FILE* text, const std::string& op, std::vector<Kernel>& kernels) {
  constexpr std::string_view title = "Function : ";
  char* buffer = nullptr;
  std::size_t size = 0;
  while (getline(&buffer, &size, text) > 0) {
    const std::string line = buffer;
    if (const std::size_t at = line.find(title); at != line.npos) {
      const std::size_t begin = at + title.size();
      kernels.push_back({.op = op, .name = demangled(line.substr(begin, line.find_last_not_of(" \r\n") + 1 - begin))});
    } else if (const std::string mnemonic = mnemonic_of(line); !mnemonic.empty() && !kernels.empty()) {
      add_instruction(kernels.back(), mnemonic, line);
    }
  }
  std::free(buffer);
}

// ".../octet/ops/gemm/gemm.cuda.cu.o" -> "gemm"
std::string op_of(const std::string& object) {
  constexpr std::string_view folder = "octet/ops/";
  const std::size_t begin = object.rfind(folder) + folder.size();
  return object.substr(begin, object.find('/', begin) - begin);
}

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = [] {
    std::vector<Kernel> found;
    std::ifstream list(OCTET_CUDA_OBJECTS);
    for (std::string object; std::getline(list, object);) {
      if (object.empty()) continue;
      const std::string gpu = object.find(".sm90a.") != object.npos ? "sm_90a" : "sm_90";
      FILE* const pipe = popen((std::string(OCTET_CUOBJDUMP) + " -sass -arch " + gpu + " \"" + object + "\"").c_str(), "r");
      if (pipe == nullptr) continue;
      read_kernels(pipe, op_of(object), found);
      pclose(pipe);
    }
    return found;
  }();
  return all;
}

TEST(Disassembly, InstructionsAreTakenFromTheirLines) {
  EXPECT_EQ(mnemonic_of("        /*0a90*/              @!P0 LDG.E.128 R4, [R2.64] ;   /* 0x000000ffff047224 */"), "LDG.E.128");
  EXPECT_EQ(mnemonic_of("        /*0390*/                   EXIT ;   /* 0x000000000000794d */"), "EXIT");
  EXPECT_EQ(mnemonic_of("                                                                  /* 0x000fe200078e00ff */"), "");
  EXPECT_EQ(mnemonic_of("\t\tFunction : _Z3fooPf"), "");
}

TEST(Disassembly, FmasOfOneRegisterBankAreSeen) {
  EXPECT_TRUE(crowded_fma("        /*2320*/                   FFMA R8, R24, R206, R8 ;"));
  EXPECT_TRUE(crowded_fma("        /*2320*/                   FFMA R8, R25, R207.reuse, R9 ;"));
  EXPECT_FALSE(crowded_fma("        /*2330*/                   FFMA R9, R25, R206.reuse, R9 ;"));
  EXPECT_FALSE(crowded_fma("        /*2330*/                   FFMA R9, R24, c[0x0][0x210], R8 ;"));
}

TEST(Disassembly, NamesLoseTheirNamespaces) {
  EXPECT_EQ(demangled("_ZN5octet4cuda10one_kernelEPf"), "one_kernel(float*)");
  EXPECT_EQ(op_of("CMakeFiles/octet_ops.dir/octet/ops/gemm/gemm.cuda.cu.o"), "gemm");
}

TEST(Disassembly, GroupedGemmsMultiplyOnTensorCoresAndStoreByTma) {
  int found = 0;
  for (const Kernel& k : kernels()) {
    if (!k.name.starts_with("tiles::tiles_kernel<")) continue;
    ++found;
    const bool halves = k.name.starts_with("tiles::tiles_kernel<Bf16");
    EXPECT_GE(k.count(halves ? "HGMMA.64x128x16.F32" : "QGMMA.64x128x32.F32"), 12) << k.name << ": two waves in one loop, one in another";
    EXPECT_GE(k.count("UTMALDG.3D"), 2) << k.name;
    EXPECT_GE(k.count("UTMASTG.3D"), 1) << k.name;
    EXPECT_GE(k.count("UTMAREDG.3D.ADD"), 1) << k.name;
    EXPECT_EQ(k.count("HMMA") + k.count("IMMA"), 0) << k.name;
    EXPECT_LE(20 * k.crowded_fmas, k.count("FFMA")) << k.name << ": promotions wait for their registers";
    EXPECT_EQ(k.moves_to_uniform, 0) << k.name << ": multiplications wait for their descriptors";
  }
  EXPECT_GE(found, 12) << "kernels of every layout and pair of formats";
}

// Ops whose time is that of reading and writing memory: for each type of values they have kernels that load 16 bytes at a time.
TEST(Disassembly, OpsThatTheMemoryLimitsLoadSixteenBytesAtATime) {
  for (const char* op :
       {"accumulate", "adamw", "add", "cross_entropy", "embedding", "gelu", "layernorm", "quantize", "rmsnorm", "rope", "swiglu"})
    for (const std::string_view type : {"<Bf16", "<Fp16", "<float"}) {
      if (type == "<Fp16" && (std::string_view(op) == "accumulate" || std::string_view(op) == "adamw")) continue;  // of activations alone
      int wide = 0, all = 0;
      for (const Kernel& k : kernels()) {
        if (k.op != op || k.name.find(type) == k.name.npos) continue;
        ++all;
        if (k.count("LDG.E.128") > 0) ++wide;
      }
      EXPECT_GT(wide, 0) << "octet/ops/" << op << ": of " << all << " kernels of " << type << ", ...> none";
    }
}

// Kernels that keep values in local memory, which is a GPU's slow memory: up to `most` instructions that read or write it.
struct Known {
  std::string_view name;
  int most;
  std::string_view why;
};
constexpr Known known[] = {
    {"tile_kernel<", 128, "any scale block in one kernel, 64 values a thread, and few registers, so that blocks share a multiprocessor"},
    {"tile_batch_kernel", 24, "the same for values of FP32"},
    {"fill_rows_kernel<", 128, "a thread holds a long row's values in registers, and spills the last of them"},
    {"held_rows_kernel<", 128, "the same"},
    {"add_rows_kernel<float", 96, "the same"},
    {"stored_adamw_kernel<Any", 24, "any storages in one kernel, and few enough registers for two blocks per multiprocessor"},
    {"known_tile_kernel<", 24, "spills a few addresses"},
    {"known_tile_kernel<false, false, WeightedHalves", 80, "the same, with the map and the weights of experts' rows"},
    {"known_tile_kernel<false, true, WeightedHalves", 144, "the same"},
    {"line_tile_kernel<", 48, "the same, and codes and scales of several rows that are fetched before the first is decoded"},
    {"plain_tile_kernel<", 32, "the same"},
    {"plain_tile_kernel<Bf16, WeightedHalves", 40, "the same, with the map and the weights of experts' rows"},
    {"few_rows::encode_by_top_kernel<Bf16, LayerNormTile", 8, "spills a few addresses"},
    {"raise_maxima_kernel", 8, "a thread reads one of a few places, which are arguments"},
    {"grouped_rows_kernel<float", 8, "the general form of every operand"},
    {"rope_codes_kernel<", 24, "a thread reads the scale of one of three groups of heads, which are arguments"},
    {"rope_maxima_kernel", 24, "the same"},
    {"route_forward_kernel", 8, "a warp keeps the scores of a token in registers, and indexes some"},
    {"tiles::tiles_kernel<", 40, "two waves of sums fill the registers of a thread that multiplies; a few addresses are spilled"},
};

TEST(Disassembly, NoKernelButTheKnownKeepsValuesInLocalMemory) {
  EXPECT_GT(kernels().size(), 100u) << "read from " << OCTET_CUDA_OBJECTS;
  for (const Kernel& k : kernels()) {
    int most = 0;
    for (const Known& one : known)
      if (k.name.starts_with(one.name)) most = one.most;
    EXPECT_LE(k.count("LDL") + k.count("STL"), most) << "octet/ops/" << k.op << ": " << k.name;
  }
}

}  // namespace
}  // namespace octet
