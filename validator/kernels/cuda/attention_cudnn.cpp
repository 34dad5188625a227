// cuDNN's fused attention. A plan is built once a shape (a second or so) and kept. This is the only
// file that includes cudnn-frontend, which is large; attention_cudnn_absent.cpp stands in for it
// where its headers were not found.
//
// The backward pass adds up the gradient of the queries with atomic additions in fp32, so that its
// last bits differ from run to run. cuDNN's deterministic mode would keep a sequence × sequence
// matrix a head in memory on this architecture; our own kernels (attention_flash.cpp) are
// deterministic without one.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "kernels/cuda.h"
#include "kernels/cuda/attention.h"

namespace shardplan::validator {

bool cuda_has_cudnn() {
  return true;
}

namespace cuda {
namespace {

namespace fe = cudnn_frontend;

enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kStats, kDO, kDQ, kDK, kDV };

void check(fe::error_t error, const char* what) {
  if (error.is_bad()) throw DeviceError(std::string("cuDNN: ") + what + ": " + error.get_message());
}

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) {
    throw DeviceError(std::string(call) + ": " + cudnnGetErrorString(status));
  }
}

bool cudnn_supports(DType dtype, const Heads& heads) {
  return size_of(dtype) == 2 && heads.head_dim % 8 == 0 && heads.head_dim <= 128 &&
         heads.sequence > 1;
}

/// Batch, query heads, key-value heads, sequence, head width, element type.
using Key = std::array<std::int64_t, 6>;

struct Plan {
  std::shared_ptr<fe::graph::Graph> graph;
  std::int64_t workspace = 0;
};

/// A graph with cuDNN's view of the packed rows: [batch, heads, sequence, head_dim] with strides.
class GraphBuilder {
 public:
  GraphBuilder(DType dtype, const Heads& heads) : heads_(heads) {
    graph_->set_io_data_type(dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  using TensorPointer = std::shared_ptr<fe::graph::Tensor_attributes>;

  TensorPointer input(Uid uid) { return graph_->tensor(attributes(uid)); }

  TensorPointer statistics() {
    return graph_->tensor(fe::graph::Tensor_attributes()
                              .set_uid(kStats)
                              .set_dim(statistics_dim())
                              .set_stride(statistics_stride())
                              .set_data_type(fe::DataType_t::FLOAT));
  }

  void output(const TensorPointer& tensor, Uid uid) const {
    const fe::graph::Tensor_attributes wanted = attributes(uid);
    tensor->set_output(true).set_uid(uid).set_dim(wanted.get_dim()).set_stride(wanted.get_stride());
  }

  void statistics_output(const TensorPointer& tensor) const {
    tensor->set_output(true)
        .set_uid(kStats)
        .set_dim(statistics_dim())
        .set_stride(statistics_stride())
        .set_data_type(fe::DataType_t::FLOAT);
  }

  float scale() const { return 1.0F / std::sqrt(static_cast<float>(heads_.head_dim)); }
  fe::graph::Graph& graph() { return *graph_; }

  Plan finish(cudnnHandle_t handle) {
    check(graph_->validate(), "validate");
    check(graph_->build_operation_graph(handle), "build_operation_graph");
    check(graph_->create_execution_plans({fe::HeurMode_t::A}), "create_execution_plans");
    check(graph_->check_support(), "check_support");
    check(graph_->build_plans(), "build_plans");
    Plan plan;
    check(graph_->get_workspace_size(plan.workspace), "get_workspace_size");
    plan.graph = graph_;
    return plan;
  }

 private:
  bool is_output_row(Uid uid) const { return uid == kO || uid == kDO; }

  fe::graph::Tensor_attributes attributes(Uid uid) const {
    const bool queries = uid == kQ || uid == kDQ || is_output_row(uid);
    const std::int64_t heads = queries ? heads_.query_heads : heads_.key_value_heads;
    const std::int64_t row = is_output_row(uid) ? heads_.query_width() : heads_.packed_width();
    return fe::graph::Tensor_attributes()
        .set_uid(uid)
        .set_dim({heads_.batch, heads, heads_.sequence, heads_.head_dim})
        .set_stride({heads_.sequence * row, heads_.head_dim, row, 1});
  }

  std::vector<std::int64_t> statistics_dim() const {
    return {heads_.batch, heads_.query_heads, heads_.sequence, 1};
  }
  std::vector<std::int64_t> statistics_stride() const {
    return {heads_.query_heads * heads_.sequence, heads_.sequence, 1, 1};
  }

  Heads heads_;
  std::shared_ptr<fe::graph::Graph> graph_ = std::make_shared<fe::graph::Graph>();
};

/// Where the three parts of packed rows begin.
struct Parts {
  void* queries;
  void* keys;
  void* values;
};

Parts parts_of(const Tensor& packed, const Heads& heads) {
  const auto at = [&](std::int64_t elements) {
    return reinterpret_cast<void*>(packed.address +
                                   static_cast<std::uintptr_t>(elements * size_of(packed.dtype)));
  };
  const std::int64_t key_width = heads.key_value_heads * heads.head_dim;
  return {at(0), at(heads.query_width()), at(heads.query_width() + key_width)};
}

class CudnnAttention : public Attention {
 public:
  CudnnAttention() { check(cudnnCreate(&handle_), "cudnnCreate"); }
  ~CudnnAttention() override { cudnnDestroy(handle_); }
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  std::string name() const override { return "cuDNN " + std::to_string(cudnnGetVersion()); }

  bool supports(DType dtype, const Heads& heads) const override {
    return cudnn_supports(dtype, heads);
  }

  void forward(const Launch& launch, const AttentionForward& o) override {
    Plan& plan = forward_[key_of(o.qkv.dtype, o.heads)];
    if (!plan.graph) plan = build_forward(o.qkv.dtype, o.heads);
    const Parts in = parts_of(o.qkv, o.heads);
    run(launch, plan,
        {{kQ, in.queries},
         {kK, in.keys},
         {kV, in.values},
         {kO, o.out.data()},
         {kStats, o.lse.data()}});
  }

  void backward(const Launch& launch, const AttentionBackward& o) override {
    Plan& plan = backward_[key_of(o.qkv.dtype, o.heads)];
    if (!plan.graph) plan = build_backward(o.qkv.dtype, o.heads);
    const Parts in = parts_of(o.qkv, o.heads);
    const Parts out = parts_of(o.dqkv, o.heads);
    run(launch, plan,
        {{kQ, in.queries},
         {kK, in.keys},
         {kV, in.values},
         {kO, o.out.data()},
         {kStats, o.lse.data()},
         {kDO, o.dout.data()},
         {kDQ, out.queries},
         {kDK, out.keys},
         {kDV, out.values}});
  }

 private:
  static Key key_of(DType dtype, const Heads& heads) {
    return {heads.batch,    heads.query_heads, heads.key_value_heads,
            heads.sequence, heads.head_dim,    static_cast<std::int64_t>(dtype)};
  }

  Plan build_forward(DType dtype, const Heads& heads) {
    GraphBuilder builder(dtype, heads);
    auto options = fe::graph::SDPA_attributes()
                       .set_name("attention")
                       .set_generate_stats(true)
                       .set_attn_scale(builder.scale())
                       .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                       .set_diagonal_band_right_bound(0);
    auto [out, stats] = builder.graph().sdpa(builder.input(kQ), builder.input(kK),
                                             builder.input(kV), std::move(options));
    builder.output(out, kO);
    builder.statistics_output(stats);
    return builder.finish(handle_);
  }

  Plan build_backward(DType dtype, const Heads& heads) {
    GraphBuilder builder(dtype, heads);
    auto options = fe::graph::SDPA_backward_attributes()
                       .set_name("attention backward")
                       .set_attn_scale(builder.scale())
                       .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                       .set_diagonal_band_right_bound(0);
    auto [dq, dk, dv] = builder.graph().sdpa_backward(
        builder.input(kQ), builder.input(kK), builder.input(kV), builder.input(kO),
        builder.input(kDO), builder.statistics(), std::move(options));
    builder.output(dq, kDQ);
    builder.output(dk, kDK);
    builder.output(dv, kDV);
    return builder.finish(handle_);
  }

  void run(const Launch& launch, const Plan& plan,
           std::unordered_map<std::int64_t, void*> operands) {
    check(cudnnSetStream(handle_, launch.stream), "cudnnSetStream");
    auto* scratch = launch.scratch<std::byte>(plan.workspace);
    check(plan.graph->execute(handle_, operands, scratch), "execute");
  }

  cudnnHandle_t handle_ = nullptr;
  std::map<Key, Plan> forward_;
  std::map<Key, Plan> backward_;
};

}  // namespace

std::unique_ptr<Attention> make_cudnn_attention() {
  return std::make_unique<CudnnAttention>();
}

std::int64_t cudnn_attention_workspace(DType dtype, const Heads& heads) {
  if (!cudnn_supports(dtype, heads)) return 0;
  // In fp32 the gradient of the queries and a sum a query; for query heads that share a key, in the
  // element type, gradients of keys and values for each of them; and some alignment. Equal to what
  // cuDNN 9.14 asks for on an H200, but for the alignment (256 to 400 bytes in ten shapes).
  const std::int64_t queries = heads.rows() * heads.query_width();
  const bool grouped = heads.query_heads != heads.key_value_heads;
  constexpr std::int64_t kAlignmentSlack = 4096;
  return 4 * (queries + heads.rows() * heads.query_heads) + (grouped ? 2 * 2 * queries : 0) +
         kAlignmentSlack;
}

}  // namespace cuda
}  // namespace shardplan::validator
