#include "models/terms.h"

#include <algorithm>

namespace shardplan::gui {
namespace {

QStringList words_of(const char* list) {
  return QString::fromUtf8(list).split(QLatin1Char(','), Qt::SkipEmptyParts);
}

/// A mention is a whole word: "stage" is none of "backstage".
bool mentions(const QString& text, const QString& word) {
  for (qsizetype at = text.indexOf(word, 0, Qt::CaseInsensitive); at >= 0;
       at = text.indexOf(word, at + 1, Qt::CaseInsensitive)) {
    const qsizetype end = at + word.size();
    const auto is_letter = [&](qsizetype i) {
      return i >= 0 && i < text.size() && text[i].isLetterOrNumber() &&
             text[i].unicode() < 0x2e80;  // Chinese signs and kana stand without blanks
    };
    if (!is_letter(at - 1) && !is_letter(end)) return true;
  }
  return false;
}

}  // namespace

void Terms::add_memory(std::vector<Term>& to) {
  to.push_back({tr("Upper bound"),
                tr("The estimate times a margin that measured runs set. At least 97 % of the "
                   "measured runs stayed below it. A job fits surely when its upper bound does."),
                words_of("upper bound")});
  to.push_back({tr("Usable memory"),
                tr("What one process can allocate on a GPU: less than the size that it is sold "
                   "with, as the driver keeps a part."),
                words_of("usable")});
  to.push_back({tr("Optimizer states"),
                tr("What the optimizer remembers for every parameter: AdamW keeps two numbers, "
                   "usually in 32 bits. With the master parameters they are the largest part of "
                   "full fine-tuning."),
                words_of("optimizer states,optimizer")});
  to.push_back({tr("Master parameters"),
                tr("A copy of the parameters in 32 bits, which the optimizer updates where the "
                   "model itself is in 16 bits."),
                words_of("master parameters,master")});
  to.push_back({tr("Activations"),
                tr("Results of the forward pass that the backward pass needs again. They grow "
                   "with the micro-batch and the sequence length; checkpointing keeps fewer."),
                words_of("activations")});
  to.push_back({tr("KV cache"),
                tr("Keys and values of all tokens so far, which generation keeps for every "
                   "sequence so that it does not compute them again."),
                words_of("KV cache")});
}

void Terms::add_division(std::vector<Term>& to) {
  to.push_back({tr("ZeRO"),
                tr("DeepSpeed's way to divide what every GPU would keep a copy of. Stage 1 divides "
                   "the optimizer states, stage 2 the gradients too, stage 3 the parameters too, "
                   "which are then gathered layer by layer."),
                words_of("ZeRO,ZeRO stage")});
  to.push_back({tr("FSDP"),
                tr("PyTorch's own way to divide parameters, gradients and optimizer states: like "
                   "ZeRO stage 3."),
                words_of("FSDP,FSDP2")});
  to.push_back({tr("Offload"),
                tr("Keeps optimizer states or parameters in the host's memory or on NVMe instead "
                   "of the GPU. It saves GPU memory and costs time for copies."),
                words_of("offload")});
  to.push_back({tr("Tensor parallelism"),
                tr("Several GPUs share every layer: each has a part of its matrices. It needs fast "
                   "links, and is kept within a node."),
                words_of("tensor,tensor parallel")});
  to.push_back({tr("Pipeline parallelism"),
                tr("GPUs hold different layers, and micro-batches pass from one to the next. While "
                   "the pipeline fills and empties, GPUs wait: the bubble."),
                words_of("pipeline")});
  to.push_back({tr("Ulysses"),
                tr("Divides a sequence over GPUs: each has all heads of some tokens, and for "
                   "attention some heads of all tokens. For long sequences."),
                words_of("Ulysses,sequence parallel")});
  to.push_back({tr("Context parallelism"),
                tr("Divides a sequence over GPUs that pass keys and values around in a ring. For "
                   "long sequences."),
                words_of("context parallel,context")});
  to.push_back({tr("Expert parallelism"),
                tr("GPUs hold different experts of a mixture-of-experts model, and tokens travel "
                   "to the experts that they are sent to."),
                words_of("expert,experts")});
}

void Terms::add_training(std::vector<Term>& to) {
  to.push_back({tr("Micro-batch"),
                tr("Samples that a GPU works on at once. A larger one needs more memory and is "
                   "usually faster for each token."),
                words_of("micro-batch")});
  to.push_back({tr("Gradient accumulation"),
                tr("Micro-batches whose gradients are added up before the optimizer updates: a "
                   "larger batch without more activations."),
                words_of("accumulation,gradient accumulation")});
  to.push_back({tr("Checkpointing"),
                tr("Keeps only some activations and computes the others again in the backward "
                   "pass: less memory for about a third more computing."),
                words_of("checkpointing,recompute")});
  to.push_back({tr("LoRA"),
                tr("Trains two small matrices beside each large one, which stays as it is: few "
                   "gradients and optimizer states. QLoRA keeps the large ones in 4 bits."),
                words_of("LoRA,QLoRA,adapter,adapters")});
  to.push_back({tr("Precision"),
                tr("In which number formats parameters, gradients and states are kept. "
                   "bf16-master: the model in bf16 with master parameters in fp32. bf16-autocast: "
                   "parameters in fp32, products in bf16. bf16-pure: everything in bf16."),
                words_of("precision,bf16,fp16,fp32,bf16-master,autocast")});
  to.push_back({tr("Attention"),
                tr("Fused attention computes scores piece by piece and keeps none of them; eager "
                   "attention keeps them all, and their memory grows with the square of the "
                   "sequence length. flash-attn 2 is a package with a fused kernel of its own: it "
                   "needs no masks for sliding windows, and runs in bf16 and fp16 on Ampere and "
                   "newer GPUs."),
                words_of("attention")});
}

void Terms::add_answers(std::vector<Term>& to) {
  to.push_back({tr("FITS, TIGHT, DOES NOT FIT"),
                tr("FITS: the upper bound is below what there is. TIGHT: the estimate is, the "
                   "upper bound is not, so it may run or fail. DOES NOT FIT: not even the lower "
                   "bound is."),
                words_of("verdict,fits,tight")});
  to.push_back({tr("Basis of a number"),
                tr("Exact: counted. Modelled: follows from what the frameworks allocate. "
                   "Calibrated: has a constant fitted to measurements on this kind of GPU. "
                   "Measured: read from a record. Assumed: nothing else was said."),
                words_of("basis,exact,modelled,calibrated,assumed")});
  to.push_back({tr("Record"),
                tr("A file with what one real training step took, and the job that it ran. The "
                   "Accuracy page sets predictions beside records."),
                words_of("record,records")});
  to.push_back({tr("Front"),
                tr("The plans that no other plan beats in every respect: each is the best for some "
                   "balance of time, memory and GPUs."),
                words_of("trade-offs,front")});
  to.push_back({tr("Spot price"),
                tr("A lower price for a machine that its owner may take away at any moment."),
                words_of("spot")});
}

std::vector<Term> Terms::all() {
  std::vector<Term> terms;
  add_answers(terms);
  add_memory(terms);
  add_training(terms);
  add_division(terms);
  return terms;
}

std::vector<Term> Terms::in(const QString& text) {
  std::vector<Term> found;
  for (Term& term : all()) {
    const bool is_named = mentions(text, term.name) ||
                          std::any_of(term.also.begin(), term.also.end(),
                                      [&](const QString& w) { return mentions(text, w); });
    if (is_named) found.push_back(std::move(term));
  }
  return found;
}

std::vector<Term> Terms::with(const QString& wanted) {
  const QStringList words = wanted.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  std::vector<Term> found;
  for (Term& term : all()) {
    const QString whole = term.name + QLatin1Char(' ') + term.meaning + QLatin1Char(' ') +
                          term.also.join(QLatin1Char(' '));
    if (std::all_of(words.begin(), words.end(),
                    [&](const QString& word) { return whole.contains(word, Qt::CaseInsensitive); }))
      found.push_back(std::move(term));
  }
  return found;
}

QString Terms::explained(const QString& title, const QString& said) {
  QString out = QStringLiteral("<b>%1</b>").arg(title.toHtmlEscaped());
  if (!said.isEmpty()) out += QStringLiteral("<p>%1</p>").arg(said.toHtmlEscaped());
  for (const Term& term : in(title + QLatin1Char(' ') + said))
    out += QStringLiteral("<p><i>%1</i>: %2</p>")
               .arg(term.name.toHtmlEscaped(), term.meaning.toHtmlEscaped());
  return out;
}

}  // namespace shardplan::gui
