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
#include "kernels/cuda/attention_layout.h"
#include "kernels/cuda/cuda_check.h"

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

/// Batch, query heads, key-value heads, sequence, head width, element type; queries and keys that
/// take part, and whether the keys are others.
using Key = std::array<std::int64_t, 9>;

struct Plan {
  std::shared_ptr<fe::graph::Graph> graph;
  std::int64_t workspace = 0;
};

/// A graph with cuDNN's view of the packed rows: [batch, heads, sequence, head_dim] with strides.
class GraphBuilder {
 public:
  GraphBuilder(DType dtype, const Heads& heads, const OtherKeys& others)
      : heads_(heads), layout_(layout_of(heads, others)) {
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

  /// Scaled, and causal where the keys are the queries' own.
  template <class Attributes>
  Attributes described(Attributes attributes) const {
    attributes.set_attn_scale(layout_.scale);
    if (layout_.causal)
      attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
          .set_diagonal_band_right_bound(0);
    return attributes;
  }
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
  /// Elements between the rows of a tensor.
  std::int64_t row_of(Uid uid) const {
    if (uid == kO || uid == kDO) return layout_.width;
    return uid == kK || uid == kV ? layout_.key_row : layout_.packed;
  }

  fe::graph::Tensor_attributes attributes(Uid uid) const {
    const bool queries = uid == kQ || uid == kDQ || uid == kO || uid == kDO;
    const std::int64_t heads = queries ? heads_.query_heads : heads_.key_value_heads;
    const std::int64_t rows = queries ? layout_.queries : layout_.keys;
    const std::int64_t row = row_of(uid);
    return fe::graph::Tensor_attributes()
        .set_uid(uid)
        .set_dim({heads_.batch, heads, rows, heads_.head_dim})
        .set_stride({heads_.sequence * row, heads_.head_dim, row, 1});
  }

  std::vector<std::int64_t> statistics_dim() const {
    return {heads_.batch, heads_.query_heads, layout_.queries, 1};
  }
  std::vector<std::int64_t> statistics_stride() const {
    return {heads_.query_heads * layout_.queries, layout_.queries, 1, 1};
  }

  Heads heads_;
  HeadLayout layout_;
  std::shared_ptr<fe::graph::Graph> graph_ = std::make_shared<fe::graph::Graph>();
};

/// Of either type that cuDNN takes.
using Element = std::uint16_t;

/// What is behind the keys of a row.
Element* values_of(Element* keys, const Heads& heads) {
  return keys + heads.key_value_heads * heads.head_dim;
}

/// cuDNN takes statistics of neighbouring queries: those of a part of each sequence are copied to
/// scratch, or back.
class Statistics {
 public:
  Statistics(const Launch& launch, const Tensor& lse, const Heads& heads, const OtherKeys& others)
      : launch_(launch),
        theirs_(first_statistic(lse, others)),
        here_(theirs_),
        sequence_(heads.sequence),
        queries_(layout_of(heads, others).queries),
        count_(heads.batch * heads.query_heads) {
    if (!whole()) here_ = launch.scratch<float>(count_ * queries_);
  }

  float* here() const { return here_; }
  /// Scratch that they take.
  std::int64_t bytes() const { return whole() ? 0 : round_up(4 * count_ * queries_, 256); }
  void fetch() const { copy(here_, queries_, theirs_, sequence_); }
  void put_back() const { copy(theirs_, sequence_, here_, queries_); }

 private:
  bool whole() const { return queries_ == sequence_; }
  void copy(float* to, std::int64_t to_row, const float* from, std::int64_t from_row) const {
    if (whole()) return;
    const auto bytes = [](std::int64_t floats) {
      return static_cast<std::size_t>(floats) * sizeof(float);
    };
    cuda::check(cudaMemcpy2DAsync(to, bytes(to_row), from, bytes(from_row), bytes(queries_),
                                  static_cast<std::size_t>(count_), cudaMemcpyDeviceToDevice,
                                  launch_.stream),
                "copying statistics of queries");
  }

  const Launch& launch_;
  float* theirs_;
  float* here_;
  std::int64_t sequence_, queries_, count_;
};

class CudnnAttention : public Attention {
 public:
  CudnnAttention() { check(cudnnCreate(&handle_), "cudnnCreate"); }
  ~CudnnAttention() override { cudnnDestroy(handle_); }
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  std::string name() const override { return "cuDNN " + std::to_string(cudnnGetVersion()); }

  bool supports(DType dtype, const Heads& heads, const OtherKeys& others) const override {
    const HeadLayout layout = layout_of(heads, others);
    return cudnn_supports(dtype, heads) && layout.queries > 1 && layout.keys > 1;
  }

  void forward(const Launch& launch, const AttentionForward& o) override {
    Plan& plan = forward_[key_of(o.qkv.dtype, o.heads, o.others)];
    if (!plan.graph) plan = build_forward(o.qkv.dtype, o.heads, o.others);
    const Statistics statistics(launch, o.lse, o.heads, o.others);
    Element* keys = first_key<Element>(o.qkv, o.heads, o.others);
    run(launch, plan, statistics.bytes(),
        {{kQ, first_query<Element>(o.qkv, o.others)},
         {kK, keys},
         {kV, values_of(keys, o.heads)},
         {kO, first_query<Element>(o.out, o.others)},
         {kStats, statistics.here()}});
    statistics.put_back();
  }

  void backward(const Launch& launch, const AttentionBackward& o) override {
    Plan& plan = backward_[key_of(o.qkv.dtype, o.heads, o.others)];
    if (!plan.graph) plan = build_backward(o.qkv.dtype, o.heads, o.others);
    const Statistics statistics(launch, o.lse, o.heads, o.others);
    statistics.fetch();
    Element* keys = first_key<Element>(o.qkv, o.heads, o.others);
    Element* dkeys = first_key_gradient<Element>(o.dqkv, o.heads, o.others);
    run(launch, plan, statistics.bytes(),
        {{kQ, first_query<Element>(o.qkv, o.others)},
         {kK, keys},
         {kV, values_of(keys, o.heads)},
         {kO, first_query<Element>(o.out, o.others)},
         {kStats, statistics.here()},
         {kDO, first_query<Element>(o.dout, o.others)},
         {kDQ, first_query<Element>(o.dqkv, o.others)},
         {kDK, dkeys},
         {kDV, values_of(dkeys, o.heads)}});
  }

 private:
  static Key key_of(DType dtype, const Heads& heads, const OtherKeys& others) {
    const HeadLayout layout = layout_of(heads, others);
    return {heads.batch,    heads.query_heads, heads.key_value_heads,
            heads.sequence, heads.head_dim,    static_cast<std::int64_t>(dtype),
            layout.queries, layout.keys,       layout.causal ? 0 : 1};
  }

  Plan build_forward(DType dtype, const Heads& heads, const OtherKeys& others) {
    GraphBuilder builder(dtype, heads, others);
    auto options = builder.described(
        fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true));
    auto [out, stats] = builder.graph().sdpa(builder.input(kQ), builder.input(kK),
                                             builder.input(kV), std::move(options));
    builder.output(out, kO);
    builder.statistics_output(stats);
    return builder.finish(handle_);
  }

  Plan build_backward(DType dtype, const Heads& heads, const OtherKeys& others) {
    GraphBuilder builder(dtype, heads, others);
    auto options =
        builder.described(fe::graph::SDPA_backward_attributes().set_name("attention backward"));
    auto [dq, dk, dv] = builder.graph().sdpa_backward(
        builder.input(kQ), builder.input(kK), builder.input(kV), builder.input(kO),
        builder.input(kDO), builder.statistics(), std::move(options));
    builder.output(dq, kDQ);
    builder.output(dk, kDK);
    builder.output(dv, kDV);
    return builder.finish(handle_);
  }

  /// With the plan's scratch after `taken` bytes of it.
  void run(const Launch& launch, const Plan& plan, std::int64_t taken,
           std::unordered_map<std::int64_t, void*> operands) {
    check(cudnnSetStream(handle_, launch.stream), "cudnnSetStream");
    auto* scratch = launch.scratch<std::byte>(plan.workspace, taken);
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
