#include "program/tape/writer.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shardplan::tape {

TapeWriter::TapeWriter(TapeRun& run, TapeMode mode, bool module_calls)
    : run_(run),
      events_(mode == TapeMode::redo ? &run.backward : &run.forward),
      kernels_(mode == TapeMode::redo ? &run.backward_kernels : &run.forward_kernels),
      module_calls_(module_calls),
      redo_(mode == TapeMode::redo),
      again_(mode == TapeMode::redo) {}

void TapeWriter::begin_backward() {
  events_ = &run_.backward;
  kernels_ = &run_.backward_kernels;
  if (!redo_) flushed_ = 0;
  again_ = false;
}

void TapeWriter::emit(const TapeEvent& event) {
  if (event.kind == TapeEvent::Kind::fetch || event.kind == TapeEvent::Kind::gradient) flush();
  events_->push_back(event);
}

void TapeWriter::launch(const Kernel& kernel) {
  kernels_->push_back(kernel);
  if (module_calls_ && kernel.kind != KernelKind::none) kernels_->back().issue = Issue::module;
  if (!again_) run_.model_flops += model_flops_of(kernel);
}

void TapeWriter::launch_again(const Kernel& kernel) {
  const bool again = std::exchange(again_, true);
  launch(kernel);
  again_ = again;
}

void TapeWriter::flush() {
  const std::size_t count = kernels_->size() - flushed_;
  if (count == 0) return;
  events_->push_back({TapeEvent::Kind::compute, Category::other,
                      static_cast<std::int32_t>(flushed_), static_cast<std::int64_t>(count)});
  flushed_ = kernels_->size();
}

void TapeWriter::exchange(Exchange kind, Group group, std::int64_t bytes, ExchangeStart start) {
  if (kind == Exchange::none || kind == Exchange::slice) return;
  if (module_calls_) launch(call_kernel(Issue::module, DType::f32));
  flush();
  events_->push_back({TapeEvent::Kind::exchange, Category::other,
                      static_cast<std::int32_t>(run_.exchanges.size()), bytes});
  run_.exchanges.push_back({kind, group, bytes, start == ExchangeStart::ahead});
  if (start == ExchangeStart::waited) wait();
}

void TapeWriter::wait() {
  flush();
  events_->push_back({TapeEvent::Kind::wait, Category::other, 0, 0});
}

void TapeWriter::copy(TapeEvent::Kind direction, std::int64_t bytes, CopyWait waits) {
  flush();
  events_->push_back({direction, Category::other, static_cast<std::int32_t>(waits), bytes});
}

void TapeWriter::wait_for_copies(std::int64_t bytes) {
  flush();
  events_->push_back({TapeEvent::Kind::wait_for_copies, Category::other, 0, bytes});
}

void TapeWriter::copies_follow() {
  flush();
  events_->push_back({TapeEvent::Kind::copies_follow, Category::other, 0, 0});
}

void TapeWriter::host_waits() {
  flush();
  events_->push_back({TapeEvent::Kind::host_waits, Category::other, 0, 0});
}

void TapeWriter::python_calls(std::int32_t count) {
  // As long as a call from a loop: those of a model's own calls that start nothing are views, whose
  // time is in that of the calls around them (HostRates::empty).
  Kernel call = call_kernel(Issue::loop, DType::f32);
  call.calls = count;
  launch(call);
}

std::int32_t TapeWriter::calls_since(const Mark& from) const {
  std::int32_t sum = 0;
  for (std::size_t i = from.kernel; i < kernels_->size(); ++i) sum += (*kernels_)[i].calls;
  return sum;
}

void TapeWriter::cut_off(const Mark& from) {
  for (std::size_t k = from.kernel; k < kernels_->size(); ++k) (*kernels_)[k].calls = 0;
  for (std::size_t k = from.exchange; k < run_.exchanges.size(); ++k) run_.exchanges[k].bytes = 0;
  const auto begin = events_->begin() + static_cast<std::ptrdiff_t>(from.event);
  std::set<std::int32_t> made, gone;
  for (auto e = begin; e != events_->end(); ++e) {
    if (e->kind == TapeEvent::Kind::alloc) made.insert(e->id);
    if (e->kind == TapeEvent::Kind::free && made.contains(e->id)) gone.insert(e->id);
  }
  const auto is_cut = [&](const TapeEvent& e) {
    const bool block = e.kind == TapeEvent::Kind::alloc || e.kind == TapeEvent::Kind::free;
    return block && gone.contains(e.id);
  };
  events_->erase(std::remove_if(begin, events_->end(), is_cut), events_->end());
}

void TapeWriter::move_to_front(const Mark& from) {
  flush();
  const auto first = events_->begin() + static_cast<std::ptrdiff_t>(from.event);
  std::rotate(events_->begin(), first, events_->end());
}

}  // namespace shardplan::tape
