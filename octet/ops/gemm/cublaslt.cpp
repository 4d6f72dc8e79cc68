#ifdef OCTET_HAS_CUDA

#include "octet/ops/gemm/cublaslt.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "octet/base/log.hpp"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/event.hpp"

// Octet's rows are cuBLASLt's columns: d [M, N] is its D [N, M], its A is b and its B is a.

namespace octet::cuda {
namespace {

using ops::GemmAlgorithm, ops::GemmForm, ops::GemmAlgorithms, ops::GemmScale;

constexpr int candidates = 20;      // algorithms of the library that are timed
constexpr int timings = 4;          // of each, after one that is not counted
constexpr double far_behind = 1.1;  // times the fastest: slower ones are dropped after the first timing

cudaDataType type_of(DType t) {
  switch (t) {
    case DType::e4m3: return CUDA_R_8F_E4M3;
    case DType::e5m2: return CUDA_R_8F_E5M2;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}

cublasLtMatmulMatrixScale_t mode_of(GemmScale s) {
  switch (s) {
    case GemmScale::row: return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    case GemmScale::row_128: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case GemmScale::square_128: return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    case GemmScale::row_32: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    default: return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  }
}

cublasLtMatrixLayout_t layout(DType type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t out;
  require(cublaslt().make_layout(&out, type_of(type), std::uint64_t(rows), std::uint64_t(columns), rows), "cublasLtMatrixLayoutCreate");
  return out;
}

struct Description {
  cublasLtMatmulDesc_t it = nullptr;
  Description() { require(cublaslt().make_description(&it, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate"); }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t what, T value) {
    require(cublaslt().set(it, what, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
};

// A form as the library knows it, with the algorithm that was chosen. Lives as long as the process.
struct Prepared {
  const GemmForm form;
  Description description;
  cublasLtMatrixLayout_t a, b, d;  // the library's A (b here), B and D
  cublasLtMatmulAlgo_t algorithm{};
  bool found = false;
  int own = 0;  // the number of Octet's kernel that was chosen, from 1; 0: none

  explicit Prepared(const GemmForm& f)
      : form(f),
        a(f.b_transposed ? layout(f.b, f.N, f.K) : layout(f.b, f.K, f.N)),
        b(f.a_transposed ? layout(f.a, f.M, f.K) : layout(f.a, f.K, f.M)),
        d(layout(f.d, f.N, f.M)) {
    description.set(CUBLASLT_MATMUL_DESC_TRANSA, f.b_transposed ? CUBLAS_OP_N : CUBLAS_OP_T);
    description.set(CUBLASLT_MATMUL_DESC_TRANSB, f.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (f.b_scale != GemmScale::none) description.set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, std::int32_t(mode_of(f.b_scale)));
    if (f.a_scale != GemmScale::none) description.set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, std::int32_t(mode_of(f.a_scale)));
    if (f.fast) description.set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t(1));
    if (f.factor) description.set(CUBLASLT_MATMUL_DESC_POINTER_MODE, std::int32_t(CUBLASLT_POINTER_MODE_DEVICE));
    if (f.biased) {
      description.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      description.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, std::int32_t(type_of(f.d)));
    }
  }

  void point_at(const GemmOperands& o) {
    if (form.b_scale != GemmScale::none) description.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o.b_scale);
    if (form.a_scale != GemmScale::none) description.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o.a_scale);
    if (form.biased) description.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
  }

  cublasStatus_t run(Queue queue, const GemmOperands& o, const cublasLtMatmulAlgo_t& chosen, void* to) const {
    const float one = 1, more = form.accumulate ? 1.0f : 0.0f;
    const float *const alpha = form.factor ? o.factor : &one, *const beta = form.factor ? o.factor + 1 : &more;
    return cublaslt().matmul(cublaslt().handle, description.it, alpha, o.b, a, o.a, b, beta, o.d, d, to, d, &chosen, o.workspace,
                             o.workspace_bytes, queue);
  }
};

// The library's own order, best guess first; none where it has no kernel.
std::vector<cublasLtMatmulHeuristicResult_t> guesses(const Prepared& prepared, std::size_t workspace_bytes, int wanted) {
  const CublasLt& lt = cublaslt();
  cublasLtMatmulPreference_t preference;
  require(lt.make_preference(&preference), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
    require(lt.prefer(preference, what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(workspace_bytes));
  // Parts of a sum that is divided over the GPU meet in FP32: in d's own type they would be rounded to it one by one.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(which, std::uint32_t(prepared.form.alignment));
  std::vector<cublasLtMatmulHeuristicResult_t> list(std::size_t(wanted), cublasLtMatmulHeuristicResult_t{});
  int got = 0;
  const cublasStatus_t status = lt.heuristic(lt.handle, prepared.description.it, prepared.a, prepared.b, prepared.d, prepared.d, preference,
                                             wanted, list.data(), &got);
  lt.end_preference(preference);
  list.resize(status == CUBLAS_STATUS_SUCCESS ? std::size_t(got) : 0);
  std::erase_if(list, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return list;
}

bool capturing(Queue queue) {
  cudaStreamCaptureStatus status;
  require(cudaStreamIsCapturing(queue, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

// A buffer for the results of timed runs that accumulate, since they must not change d. Null when the GPU has no memory for it.
class Aside {
 public:
  explicit Aside(std::size_t bytes) {
    if (cudaMalloc(&data_, bytes) != cudaSuccess) data_ = nullptr, cudaGetLastError();
  }
  ~Aside() { cudaFree(data_); }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

class Stopwatch {
 public:
  Stopwatch() = default;
  ~Stopwatch() { end_event(begin_), end_event(end_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// Milliseconds that the work of f, put into the queue, took. Throws DeviceError when it failed.
  template <class F>
  double time(Queue queue, const F& f) {
    record(queue, begin_);
    f();
    record(queue, end_);
    return 1000 * seconds_between(begin_, end_);
  }

 private:
  Event begin_ = make_event(), end_ = make_event();
};

// One way to multiply, and how it is stored.
struct Candidate {
  std::function<bool(void* d)> run;  // false: refused
  GemmAlgorithm algorithm;
};

std::vector<Candidate> candidates_of(const Prepared& prepared, Queue queue, const GemmOperands& o, const OwnGemms& own) {
  std::vector<Candidate> out;
  for (const auto& one : guesses(prepared, o.workspace_bytes, candidates)) {
    Candidate c{[&prepared, queue, &o, algo = one.algo](void* d) { return prepared.run(queue, o, algo, d) == CUBLAS_STATUS_SUCCESS; }, {}};
    std::copy_n(one.algo.data, c.algorithm.config.size(), c.algorithm.config.begin());
    c.algorithm.workspace_bytes = one.workspaceSize;
    out.push_back(std::move(c));
  }
  for (std::size_t i = 0; i < own.size(); ++i) out.push_back({own[i], {.own = int(i) + 1}});
  return out;
}

// The fastest of the list, each timed in turn so that a change of the GPU's clock meets all. Those that are refused are dropped, and after
// the first round the slow ones.
GemmAlgorithm fastest(const Prepared& prepared, Queue queue, const GemmOperands& o, std::vector<Candidate> list) {
  const std::size_t d_bytes = std::size_t(prepared.form.M * prepared.form.N) * size_of(prepared.form.d);
  const Aside aside(prepared.form.accumulate ? d_bytes : 0);
  if (prepared.form.accumulate && aside.data() == nullptr) return list.front().algorithm;
  void* const to = prepared.form.accumulate ? aside.data() : o.d;
  std::erase_if(list, [&](const Candidate& one) { return !one.run(to); });
  if (list.empty()) return {};
  std::vector<double> least(list.size(), INFINITY);
  Stopwatch watch;
  double front = INFINITY;
  for (int round = 0; round < timings; ++round) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (round == 0 || least[i] < far_behind * front) least[i] = std::min(least[i], watch.time(queue, [&] { list[i].run(to); }));
    front = *std::min_element(least.begin(), least.end());
  }
  const std::size_t at = std::size_t(std::min_element(least.begin(), least.end()) - least.begin());
  GemmAlgorithm best = list[at].algorithm;
  best.microseconds = 1000 * least[at];
  return best;
}

// A stored algorithm that the library still accepts for this form.
bool accept(Prepared& prepared, const GemmAlgorithm& a, std::size_t workspace_bytes) {
  std::copy(a.config.begin(), a.config.end(), prepared.algorithm.data);
  cublasLtMatmulHeuristicResult_t result{};
  const CublasLt& lt = cublaslt();
  return lt.check(lt.handle, prepared.description.it, prepared.a, prepared.b, prepared.d, prepared.d, &prepared.algorithm, &result) ==
             CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= workspace_bytes;
}

void choose(Prepared& prepared, Queue queue, const GemmOperands& o, const OwnGemms& own, bool deterministic) {
  GemmAlgorithms& known = GemmAlgorithms::of_process();
  const auto take = [&](const GemmAlgorithm& a) {
    prepared.own = a.own, prepared.found = true;
    std::copy(a.config.begin(), a.config.end(), prepared.algorithm.data);
  };
  if (const auto stored = known.find(prepared.form);
      stored && (stored->own != 0 ? std::size_t(stored->own) <= own.size() : accept(prepared, *stored, o.workspace_bytes)))
    return take(*stored);
  std::vector<Candidate> list = candidates_of(prepared, queue, o, own);
  if (list.empty()) return log::warn("cuBLASLt has no kernel for {}: Octet's own slow kernel runs instead", to_text(prepared.form));
  const bool tune = !deterministic && !capturing(queue);
  const GemmAlgorithm chosen = tune ? fastest(prepared, queue, o, std::move(list)) : list.front().algorithm;
  if (chosen == GemmAlgorithm{})
    return log::warn("cuBLASLt runs none of its kernels for {}: Octet's own slow kernel runs instead", to_text(prepared.form));
  take(chosen);
  known.store(prepared.form, chosen);
}

void open(CublasLt& lt) {
  void* const library = open_library("libcublasLt.so.13");
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(function_in(library, name));
  };
  find(lt.version, "cublasLtGetVersion"), find(lt.matmul, "cublasLtMatmul"), find(lt.check, "cublasLtMatmulAlgoCheck");
  find(lt.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(lt.make_description, "cublasLtMatmulDescCreate"), find(lt.set, "cublasLtMatmulDescSetAttribute");
  find(lt.make_layout, "cublasLtMatrixLayoutCreate");
  find(lt.make_preference, "cublasLtMatmulPreferenceCreate"), find(lt.end_preference, "cublasLtMatmulPreferenceDestroy");
  find(lt.prefer, "cublasLtMatmulPreferenceSetAttribute");
  decltype(&cublasLtCreate) create;
  find(create, "cublasLtCreate");
  require(create(&lt.handle), "cublasLtCreate");
}

}  // namespace

void require(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    throw DeviceError(format("cuBLASLt: {}: status {}", what, int(status)));
}

const CublasLt& cublaslt() {
  static const CublasLt* const it = [] {
    auto lt = std::make_unique<CublasLt>();
    open(*lt);
    return lt.release();
  }();
  return *it;
}

bool multiply(Queue queue, const GemmForm& form, const GemmOperands& o, const OwnGemms& own, bool deterministic) {
  static std::mutex mutex;
  static auto& all = *new std::map<GemmForm, std::unique_ptr<Prepared>>;  // outlives all work on the GPU
  const std::lock_guard lock(mutex);
  auto& prepared = all[form];
  const bool unknown = prepared == nullptr;
  if (unknown) prepared = std::make_unique<Prepared>(form);
  prepared->point_at(o);
  if (unknown) choose(*prepared, queue, o, own, deterministic);
  if (!prepared->found) return false;
  if (prepared->own != 0) return std::size_t(prepared->own) <= own.size() && own[std::size_t(prepared->own) - 1](o.d);
  require(prepared->run(queue, o, prepared->algorithm, o.d), to_text(form).c_str());
  return true;
}

}  // namespace octet::cuda

#endif
