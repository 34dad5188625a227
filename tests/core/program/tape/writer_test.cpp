#include "program/tape/writer.h"

#include <gtest/gtest.h>

#include "core/program/tape/tape_testing.h"

namespace shardplan::tape {
namespace {

using Kind = TapeEvent::Kind;

Kernel product(std::int64_t m) {
  Kernel kernel;
  kernel.kind = KernelKind::product;
  kernel.m = m;
  kernel.n = kernel.k = 10;
  return kernel;
}

TEST(TapeWriter, NamesKernelsBeforeWhatAFrameworkActsOn) {
  TapeRun run;
  TapeWriter writer(run, TapeMode::keep, false);
  writer.launch(product(1));
  writer.launch(product(2));
  writer.emit(Kind::alloc, Category::activations, 0, 512);  // no reason to name them
  writer.emit(Kind::fetch, Category::gathered_parameters, 3, 0);
  writer.flush();
  EXPECT_EQ(kinds_of(run.forward), (std::vector{Kind::alloc, Kind::compute, Kind::fetch}));
  EXPECT_EQ(run.forward[1].id, 0);
  EXPECT_EQ(run.forward[1].bytes, 2);
}

TEST(TapeWriter, CountsModelFlopsOnce) {
  TapeRun kept, redone;
  TapeWriter keep(kept, TapeMode::keep, false), redo(redone, TapeMode::redo, false);
  for (TapeWriter* writer : {&keep, &redo}) {
    writer->launch(product(1));
    writer->begin_backward();
    writer->launch(product(2));
  }
  EXPECT_EQ(kept.model_flops, 2 * 100 + 2 * 200);
  EXPECT_EQ(redone.model_flops, 2 * 200);  // the forward pass counted the first
  EXPECT_EQ(kept.forward_kernels.size(), 1U);
  EXPECT_TRUE(redone.forward_kernels.empty());
  EXPECT_EQ(redone.backward_kernels.size(), 2U);
}

TEST(TapeWriter, WaitsForExchangesUnlessToldOtherwise) {
  TapeRun run;
  TapeWriter writer(run, TapeMode::keep, false);
  writer.exchange(Exchange::all_reduce, Group::tensor, 100, ExchangeStart::waited);
  writer.exchange(Exchange::slice, Group::tensor, 100, ExchangeStart::waited);
  writer.exchange(Exchange::all_gather, Group::tensor, 200, ExchangeStart::ahead);
  EXPECT_EQ(kinds_of(run.forward), (std::vector{Kind::exchange, Kind::wait, Kind::exchange}));
  ASSERT_EQ(run.exchanges.size(), 2U);
  EXPECT_FALSE(run.exchanges[0].ahead);
  EXPECT_TRUE(run.exchanges[1].ahead);
}

TEST(TapeWriter, StartsKernelsFromModulesWhereThoseDo) {
  TapeRun run;
  TapeWriter writer(run, TapeMode::keep, true);
  writer.launch(product(1));
  writer.launch(call_kernel(Issue::python, DType::f32));
  EXPECT_EQ(run.forward_kernels[0].issue, Issue::module);
  EXPECT_EQ(run.forward_kernels[1].issue, Issue::python);
}

TEST(TapeWriter, CutsOffWhatFollowsAMark) {
  TapeRun run;
  TapeWriter writer(run, TapeMode::redo, false);
  writer.launch(product(1));
  const TapeWriter::Mark mark = writer.mark();
  writer.launch(product(2));
  writer.exchange(Exchange::all_reduce, Group::tensor, 100, ExchangeStart::waited);
  writer.cut_off(mark);
  EXPECT_EQ(run.backward_kernels[0].calls, 1);
  EXPECT_EQ(run.backward_kernels[1].calls, 0);
  EXPECT_EQ(run.exchanges[0].bytes, 0);
}

TEST(TapeWriter, CutsOffWhatIsAllocatedAndFreedBehindAMark) {
  TapeRun run;
  TapeWriter writer(run, TapeMode::redo, false);
  writer.emit(Kind::alloc, Category::activations, 0, 512);
  const TapeWriter::Mark mark = writer.mark();
  writer.emit(Kind::alloc, Category::activations, 1, 512);
  writer.emit(Kind::alloc, Category::activations, 2, 512);  // and kept
  writer.emit(Kind::free, Category::activations, 0, 512);
  writer.emit(Kind::free, Category::activations, 1, 512);
  writer.cut_off(mark);
  EXPECT_EQ(kinds_of(run.backward), (std::vector{Kind::alloc, Kind::alloc, Kind::free}));
  EXPECT_EQ(run.backward[1].id, 2);
  EXPECT_EQ(run.backward[2].id, 0);
}

TEST(TapeWriter, MovesToTheFrontWhatFollowsAMark) {
  TapeRun run;
  TapeWriter writer(run, TapeMode::redo, false);
  writer.launch(product(1));
  writer.flush();
  const TapeWriter::Mark mark = writer.mark();
  writer.emit(Kind::alloc, Category::activations, 1, 512);
  writer.launch(product(2));
  writer.move_to_front(mark);
  EXPECT_EQ(kinds_of(run.backward), (std::vector{Kind::alloc, Kind::compute, Kind::compute}));
  EXPECT_EQ(run.backward[1].id, 1);  // the second kernel
}

}  // namespace
}  // namespace shardplan::tape
