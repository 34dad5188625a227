#include "model/layers/ctc_loss.h"

#include "model/layers/loss.h"

namespace shardplan {
namespace {

FunctionTensor in_fp32(std::int64_t per, Scale scale) {
  return {{per, scale}, FunctionType::wide};
}

/// aten/src/ATen/native/cuda/LossCTC.cu: the logarithm of alpha for each position and each label
/// with the blanks around them; the backward pass makes beta of the same size. The labels are
/// copied without what fills them up (Wav2Vec2ForCTC.forward).
Function alignment(const CtcOptions& options, std::int64_t vocabulary) {
  Function f;
  f.name = "ctc loss";
  f.saves = {true, false, false};
  f.kept = {in_fp32(1, Scale::alignments), in_fp32(2, Scale::target_tokens),  // int64
            in_fp32(1, Scale::batch)};
  if (options.mean) f.kept.push_back(in_fp32(1, Scale::batch));
  if (options.zeroes_infinite) f.kept.push_back({{1, Scale::batch, 4}, FunctionType::wide});
  const FunctionKernels states{.kind = FunctionKernelKind::strided, .wide = {3, Scale::alignments}};
  f.forward.kernels = {states};
  f.backward.working = {in_fp32(1, Scale::alignments)};
  f.backward.kernels = {
      states, {.kind = FunctionKernelKind::strided, .wide = {3 * vocabulary, Scale::tokens}}};
  return f;
}

}  // namespace

ValueId ctc_loss(Graph& g, const CtcOptions& options, ValueId logits) {
  const ValueId chances = g.map(OpKind::log_softmax, g.map(OpKind::to_f32, logits));
  const ValueId loss =
      g.op(alignment(options, per(g, logits)), {chances, kNone, kNone}, {1, Scale::one});
  return_logits(g, logits, loss);
  return loss;
}

}  // namespace shardplan
