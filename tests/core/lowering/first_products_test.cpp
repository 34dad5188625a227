// What the first step of a compiled model does once: kernels and products are tried, and each
// thread's library asks for its workspace.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"

namespace shardplan::first_products_test {
namespace {

constexpr auto kAdapters =
    R"("workload": {"kind": "train", "method": "lora", "lora": {"rank": 8, "targets": ["all-linear"]},
                    "micro_batch": 2, "sequence_length": 1024})";
constexpr auto kAll = R"("workload": {"kind": "train", "micro_batch": 2, "sequence_length": 1024})";

Job job_of(const std::string& vocabulary, const std::string& fields) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const std::string text =
      R"({"model": {"model_type": "llama", "hidden_size": 1024, "intermediate_size": 3072,
          "num_attention_heads": 8, "num_hidden_layers": 3, "vocab_size": )" +
      vocabulary +
      R"(}, "precision": "bf16-pure", "cluster": "1xH100", "trainer": "hf_trainer", )" + fields +
      "}";
  return load_job(parse_json(text, "job.json"), "job.json", context);
}

Program lowered(const std::string& vocabulary, const std::string& fields) {
  const Job job = job_of(vocabulary, fields);
  const RankModel share(job.model, job.plan);
  return lower(share.model(), job.plan, share.run(), 0);
}

/// By what the first step does once, in order: `w` a workspace, `k` a kernel's trial, `p` trials of
/// products; `|` where a phase begins.
std::string order_of(const Program& program) {
  std::string order;
  for (const Event& e : program.events) {
    if (e.kind == Event::Kind::begin_phase) order += '|';
    if (e.kind != Event::Kind::once) continue;
    const EventsOfOneStep& once = program.once[static_cast<std::size_t>(e.count)];
    order += once.workspace > 0 ? 'w' : once.events.size() == 2 ? 'k' : 'p';
  }
  return order;
}

// A product makes the angles of rotary tables, behind the mask's kernel: the workspace may lie in
// what that kernel's trial has left.
TEST(FirstProducts, AskForAWorkspaceInEachPass) {
  const std::string order = order_of(lowered("32000", std::string(R"("compile": true, )") + kAll));
  EXPECT_EQ(std::count(order.begin(), order.end(), 'w'), 2) << order;
  EXPECT_EQ(order.substr(0, 3), "|kw") << order;
  EXPECT_LT(order.find('|', 1), order.rfind('w')) << order;
}

TEST(FirstProducts, OfCudaGraphsHaveTheirWorkspacesFromTheBeginning) {
  const std::string order =
      order_of(lowered("32000", std::string(R"("compile": {"mode": "reduce-overhead"}, )") + kAll));
  EXPECT_EQ(order.find('w'), std::string::npos) << order;
}

// Where 8 does not divide the words the head's products are tried before anything runs.
TEST(FirstProducts, ThatAreTriedAskBeforeTheStep) {
  const std::string order = order_of(lowered("32001", std::string(R"("compile": true, )") + kAll));
  EXPECT_EQ(order.substr(0, 3), "wp|") << order;
}

// The hook that tells frozen embeddings to need a gradient breaks the graph: the head's is compiled
// when the blocks have run (an allocator's history of RoBERTa).
TEST(FirstProducts, OfAHeadInAGraphOfItsOwnAreTriedBehindTheBlocks) {
  const std::string order = order_of(
      lowered("32001", std::string(R"("compile": true, "checkpointing": "full", )") + kAdapters));
  EXPECT_EQ(order.substr(0, 3), "|kw") << order;
  EXPECT_NE(order.find('p'), std::string::npos) << order;
}

// The two projections, their adapters' products and what is made of all: what an adapter reads in
// fp32 autocast casts back, so that it is what the frozen linear reads (a history of Qwen3 0.6B).
TEST(FirstProducts, OfAdaptersReadWhatTheFrozenLinearReads) {
  constexpr std::int64_t kFfn = 2 * 1024 * 3072 * 2;
  const Job job = job_of("32000", std::string(R"("compile": true, )") + kAdapters);
  const RankModel share(job.model, job.plan);
  const std::vector<TapeEvent>& events = share.run().segments[1].forward.forward;
  const auto made = std::count_if(events.begin(), events.end(), [](const TapeEvent& e) {
    return e.kind == TapeEvent::Kind::alloc && e.bytes == kFfn;
  });
  EXPECT_EQ(made, 5);
}

}  // namespace
}  // namespace shardplan::first_products_test
