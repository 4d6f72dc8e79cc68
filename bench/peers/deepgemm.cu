// Octet's kernels of blocks of 128 beside DeepGEMM's, in one process on one Hopper GPU and on the same random buffers, which change from
// call to call. Products of 1x128 by 128x128 are compared with FP64 sums of some elements. Prints TFLOP/s: medians of three rounds.
/*
  git clone https://github.com/deepseek-ai/DeepGEMM && git -C DeepGEMM submodule update --init third-party/cutlass
  B=build/cuda        # Octet's build folder
  nvcc -std=c++20 -O3 --expt-relaxed-constexpr --expt-extended-lambda -gencode=arch=compute_90a,code=sm_90a \
    -I. -IDeepGEMM/deep_gemm/include -IDeepGEMM/third-party/cutlass/include bench/peers/deepgemm.cu -o deepgemm \
    -Xlinker --start-group $B/liboctet_{ops,scaling,tensor,base}.a -Xlinker --end-group -ldnnl -lgomp
  ./deepgemm [SECONDS OF A SAMPLE] [NUMBER OF A CASE, run once by each kernel: for a profiler]
*/

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>

#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/tensor/cuda/hopper.cuh"

namespace {

using namespace octet;

enum class Kind { square, line, rows, columns };  // 1x128 by 128x128; 1x128 by 1x128; groups of experts along M; along K

struct Case {
  Kind kind;
  std::int64_t M, N, K, groups = 1;  // rows: M of all groups; columns: K of all groups
  double flops() const { return 2.0 * double(M) * double(N) * double(K); }
};

struct Kernel {
  std::string name;
  std::function<bool(const Case&, int copy)> run;  // false: does not take this case
};

constexpr std::size_t code_bytes = std::size_t(1) << 29, scale_bytes = 64 << 20;
constexpr int copies = 3;

/// Operands of all cases, of random bits.
struct Buffers {
  std::uint8_t *a[copies], *b[copies];
  float *a_scale[copies], *b_scale[copies];
  void* d;
  std::int32_t *begin, *count;
} buffers;

__global__ void fill_codes(std::uint8_t* to, std::size_t n, unsigned seed) {
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < n; i += std::size_t(gridDim.x) * blockDim.x) {
    unsigned x = unsigned(i) * 2654435761u ^ seed;
    x ^= x >> 16, x *= 0x85ebca6b, x ^= x >> 13, x *= 0xc2b2ae35, x ^= x >> 16;
    float sum = 0;  // of four uniform numbers: roughly normal
    for (int k = 0; k < 4; ++k) sum += float(x >> 8 * k & 255) - 127.5f;
    to[i] = __nv_cvt_float_to_fp8(sum, __NV_SATFINITE, __NV_E4M3);
  }
}
__global__ void fill_scales(float* to, std::size_t n, unsigned seed) {
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < n; i += std::size_t(gridDim.x) * blockDim.x)
    to[i] = 0.001f * (1 + float((i * 7919 + seed) % 97) / 97);
}

__device__ double value_of(std::uint8_t code) { return double(__half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)))); }

/// The largest error of some elements of d, over a tenth of a percent of the sum of absolute products and the rounding of BF16.
__global__ void worst_error(const std::uint8_t* a, const float* sa, const std::uint8_t* b, const float* sb, const __nv_bfloat16* d, Case c,
                            unsigned long long* worst) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const std::int64_t m = (i * 2654435761u >> 3) % c.M, n = (i * 40503u + i / 7) % c.N, blocks = (c.K + 127) / 128;
  double sum = 0, size = 0;
  for (std::int64_t k = 0; k < c.K; ++k) {
    const double p = value_of(a[m * c.K + k]) * value_of(b[n * c.K + k]) * sa[k / 128 * c.M + m] * sb[n / 128 * blocks + k / 128];
    sum += p, size += fabs(p);
  }
  const double error = fabs(sum - double(__bfloat162float(d[m * c.N + n]))) / (size * 1e-3 + fabs(sum) * 0.004);
  atomicMax(worst, static_cast<unsigned long long>(__double_as_longlong(error)));
}

void require(cudaError_t e) {
  if (e != cudaSuccess) std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(e)), std::exit(1);
}

void make_buffers() {
  for (int i = 0; i < copies; ++i) {
    require(cudaMalloc(&buffers.a[i], code_bytes)), require(cudaMalloc(&buffers.b[i], code_bytes));
    require(cudaMalloc(&buffers.a_scale[i], scale_bytes)), require(cudaMalloc(&buffers.b_scale[i], scale_bytes));
    fill_codes<<<1024, 256>>>(buffers.a[i], code_bytes, unsigned(11 * i)),
        fill_codes<<<1024, 256>>>(buffers.b[i], code_bytes, unsigned(7 * i + 5));
    fill_scales<<<512, 256>>>(buffers.a_scale[i], scale_bytes / 4, unsigned(i));
    fill_scales<<<512, 256>>>(buffers.b_scale[i], scale_bytes / 4, unsigned(i + 3));
  }
  require(cudaMalloc(&buffers.d, std::size_t(1) << 31));
  require(cudaMallocManaged(&buffers.begin, 4096)), require(cudaMallocManaged(&buffers.count, 4096));
}

Quantized operand(std::uint8_t* codes, float* scales, std::int64_t rows, std::int64_t K, ScaleBlock block) {
  const std::int64_t blocks = (K + 127) / 128;
  Quantized q;
  q.codes = {codes, Shape{rows, K}, DType::e4m3}, q.block = block;
  q.descales = {scales, block.rows == 1 ? Shape{blocks, rows} : Shape{(rows + 127) / 128, blocks}, DType::f32};
  return q;
}

bool squares(const Case& c) { return c.kind == Kind::square || c.kind == Kind::rows; }
Quantized left(const Case& c, int i) { return operand(buffers.a[i], buffers.a_scale[i], c.M, c.K, {1, 128}); }
Quantized right(const Case& c, int i) {
  const std::int64_t rows = c.kind == Kind::rows ? c.N * c.groups : c.N;
  return operand(buffers.b[i], buffers.b_scale[i], rows, c.K, squares(c) ? ScaleBlock{128, 128} : ScaleBlock{1, 128});
}

Kernel dense(const char* name, Kind kind, bool (*run)(octet::cuda::Queue, const ops::Gemm&)) {
  return {name, [=](const Case& c, int i) {
            if (c.kind != kind) return false;
            const DType type = squares(c) ? DType::bf16 : DType::f32;
            return run({}, {.a = left(c, i), .b = right(c, i), .d = {buffers.d, Shape{c.M, c.N}, type}, .accumulate = !squares(c)});
          }};
}
Kernel grouped(const char* name, Kind kind, bool (*run)(octet::cuda::Queue, const ops::GroupedGemm&)) {
  return {name, [=](const Case& c, int i) {
            if (c.kind != kind) return false;
            const Tensor d =
                squares(c) ? Tensor{buffers.d, Shape{c.M, c.N}, DType::bf16} : Tensor{buffers.d, Shape{c.M * c.groups, c.N}, DType::f32};
            const ops::RowGroups groups{{buffers.begin, Shape{c.groups + 1}, DType::i32}, {buffers.count, Shape{c.groups}, DType::i32}};
            return run({},
                       {.a = left(c, i), .b = right(c, i), .groups = groups, .d = d, .along_k = !squares(c), .accumulate = !squares(c)});
          }};
}

/// DeepGEMM's kernel for an N and a K, its tile of 256 x 128, three stages and pairs that share b, or none.
template <int N, int K, int pairs>
bool deep_gemm_of(const Case& c, int i) {
  if (c.kind != Kind::square || c.N != N || c.K != K) return false;
  constexpr int rows = 256, columns = 128, stages = 3, blocks = (K + 127) / 128;
  const auto kernel = deep_gemm::sm90_fp8_gemm_1d2d_impl<cute::UMMA::Major::K, 0, N, K, 1, rows, columns, 128, 128, 128, 128, stages, 128,
                                                         256, pairs, false, 132, deep_gemm::GemmType::Normal, cutlass::bfloat16_t,
                                                         deep_gemm::epilogue::transform::EpilogueIdentity>;
  constexpr int shared = rows * columns * 2 + stages * ((rows + columns) * 128 + rows * 4) + (blocks * 4 + 7) / 8 * 8 + 256;
  static const cudaError_t allowed = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  require(allowed);
  const CUtensorMap a = octet::cuda::tensor_map(buffers.a[i], CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, c.M, K, K, rows, 128, true),
                    b = octet::cuda::tensor_map(buffers.b[i], CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, N, K, K, columns, 128, true),
                    d = octet::cuda::tensor_map(buffers.d, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, c.M, N, N, rows, 64, true),
                    scales =
                        octet::cuda::tensor_map(buffers.a_scale[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, blocks, c.M, c.M, 1, rows, false);
  cudaLaunchAttribute cluster{.id = cudaLaunchAttributeClusterDimension};
  cluster.val.clusterDim = {unsigned(pairs), 1, 1};
  const cudaLaunchConfig_t config{dim3(132), dim3(384), std::size_t(shared), nullptr, &cluster, 1};
  require(cudaLaunchKernelEx(&config, kernel, buffers.b_scale[i], static_cast<int*>(nullptr), unsigned(c.M), unsigned(N), unsigned(K), a, b,
                             d, scales));
  return true;
}
template <int pairs>
bool deep_gemm(const Case& c, int i) {
  return deep_gemm_of<37888, 3584, pairs>(c, i) || deep_gemm_of<3584, 18944, pairs>(c, i) || deep_gemm_of<4608, 3584, pairs>(c, i) ||
         deep_gemm_of<9728, 896, pairs>(c, i);
}

void set_groups(const Case& c) {
  require(cudaDeviceSynchronize());
  const std::int64_t each = (c.kind == Kind::rows ? c.M : c.K) / c.groups;
  for (std::int64_t e = 0; e < c.groups; ++e) buffers.begin[e] = std::int32_t(e * each), buffers.count[e] = std::int32_t(each);
  buffers.begin[c.groups] = std::int32_t(c.groups * each);
}

void verify(const Kernel& k, const Case& c) {
  static unsigned long long* worst = nullptr;
  if (worst == nullptr) require(cudaMallocManaged(&worst, sizeof *worst));
  require(cudaDeviceSynchronize()), *worst = 0;
  worst_error<<<16, 128>>>(buffers.a[0], buffers.a_scale[0], buffers.b[0], buffers.b_scale[0], static_cast<__nv_bfloat16*>(buffers.d), c,
                           worst);
  require(cudaDeviceSynchronize());
  double error;
  std::memcpy(&error, worst, sizeof error);
  if (!(error < 1)) std::printf("WRONG: %s, %ld x %ld x %ld: %g\n", k.name.c_str(), long(c.M), long(c.N), long(c.K), error);
}

/// TFLOP/s of calls of about this many seconds, after as many before.
double rate(const Kernel& k, const Case& c, double seconds) {
  static cudaEvent_t begin = nullptr, end = nullptr;
  if (begin == nullptr) require(cudaEventCreate(&begin)), require(cudaEventCreate(&end));
  const int calls = std::max(3, int(seconds * 1.1e15 / c.flops()));
  for (int i = 0; i < calls; ++i) k.run(c, i % copies);
  require(cudaEventRecord(begin));
  for (int i = 0; i < calls; ++i) k.run(c, i % copies);
  require(cudaEventRecord(end)), require(cudaEventSynchronize(end));
  float ms = 0;
  require(cudaEventElapsedTime(&ms, begin, end));
  return c.flops() * calls / ms / 1e9;
}

const std::vector<Case> cases{
    {Kind::square, 8192, 37888, 3584},        {Kind::square, 8192, 3584, 18944},       {Kind::square, 8192, 4608, 3584},
    {Kind::square, 16384, 37888, 3584},       {Kind::square, 16384, 3584, 18944},      {Kind::square, 16384, 9728, 896},
    {Kind::square, 16384, 1152, 896},         {Kind::line, 37888, 3584, 8192},         {Kind::line, 3584, 18944, 8192},
    {Kind::line, 4608, 3584, 16384},          {Kind::line, 9728, 896, 16384},          {Kind::line, 896, 4864, 16384},
    {Kind::rows, 131072, 2048, 2048, 64},     {Kind::rows, 131072, 2048, 1024, 64},    {Kind::rows, 131072, 1536, 2048, 128},
    {Kind::rows, 131072, 2048, 768, 128},     {Kind::columns, 2048, 2048, 131072, 64}, {Kind::columns, 2048, 1024, 131072, 64},
    {Kind::columns, 1536, 2048, 131072, 128}, {Kind::columns, 2048, 768, 131072, 128}};

const std::vector<Kernel> kernels{dense("Octet", Kind::square, octet::cuda::dense_1x128_128x128),
                                  dense("Octet in pairs", Kind::square, octet::cuda::dense_1x128_128x128_in_pairs),
                                  {"DeepGEMM", deep_gemm<1>},
                                  {"DeepGEMM in pairs", deep_gemm<2>},
                                  dense("Octet", Kind::line, octet::cuda::dense_1x128_1x128),
                                  dense("Octet in pairs", Kind::line, octet::cuda::dense_1x128_1x128_in_pairs),
                                  grouped("Octet", Kind::rows, octet::cuda::rows_1x128_128x128),
                                  grouped("Octet", Kind::columns, octet::cuda::columns_1x128_1x128)};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.05;
  const int only = argc > 2 ? std::atoi(argv[2]) : -1;
  make_buffers();
  for (std::size_t ci = 0; ci < cases.size(); ++ci) {
    const Case& c = cases[ci];
    if (only >= 0 && int(ci) != only) continue;
    set_groups(c);
    std::vector<std::vector<double>> rates(kernels.size());
    for (int round = 0; round < 3; ++round)
      for (std::size_t k = 0; k < kernels.size(); ++k) {
        if (!kernels[k].run(c, 0)) continue;
        if (round == 0 && c.kind == Kind::square) verify(kernels[k], c);
        if (only < 0) rates[k].push_back(rate(kernels[k], c, seconds));
      }
    std::printf("%-8s %6ld x %6ld x %6ld",
                c.kind == Kind::square ? "square"
                : c.kind == Kind::line ? "line"
                : c.kind == Kind::rows ? "rows"
                                       : "columns",
                long(c.M), long(c.N), long(c.K));
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      if (rates[k].empty()) continue;
      std::ranges::sort(rates[k]);
      std::printf("   %s %.0f", kernels[k].name.c_str(), rates[k][1]);
    }
    std::printf("\n");
  }
}
