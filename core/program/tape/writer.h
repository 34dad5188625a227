// Writes down what a run does: events, the kernels that they name, and exchanges among ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "program/tape.h"
#include "program/tape/kernel_list.h"

namespace shardplan::tape {

/// Of an exchange: its result is needed at once; it runs beside what follows, up to a wait; the
/// same, and what it sends has been there all along.
enum class ExchangeStart : std::uint8_t { waited, beside, ahead };

class TapeWriter {
 public:
  /// Writes to `run`, which outlives the writer, first the forward pass. TapeMode::redo: into the
  /// backward pass, and without counting model FLOPs a second time. `module_calls`:
  /// TapeOptions::module_calls.
  TapeWriter(TapeRun& run, TapeMode mode, bool module_calls);
  void begin_backward();

  /// An event other than those below.
  void emit(TapeEvent::Kind kind, Category category, std::int32_t id, std::int64_t bytes,
            Stream pool = Stream::compute, Stream used_on = Stream::compute) {
    emit({kind, category, id, bytes, pool, used_on});
  }
  void emit(const TapeEvent& event);
  void launch(const Kernel& kernel);
  /// One whose work was counted before.
  void launch_again(const Kernel& kernel);
  void launch(const KernelList& kernels) {
    for (const Kernel& kernel : kernels) launch(kernel);
  }
  /// Names the kernels since the last event, so that a framework's actions stand between them.
  void flush();

  /// `bytes`: of all ranks together. Nothing for those that send nothing.
  void exchange(Exchange kind, Group group, std::int64_t bytes, ExchangeStart start);
  void wait();
  /// `bytes` of what is kept go to the host or come from it.
  void copy(TapeEvent::Kind direction, std::int64_t bytes, CopyWait waits);
  /// The GPU waits for all copies to the host but the last `bytes` of them.
  void wait_for_copies(std::int64_t bytes);
  /// Copies from here on wait for what the GPU was given before.
  void copies_follow();
  /// The host reads a result.
  void host_waits();
  /// Work of Python that starts nothing on the GPU.
  void python_calls(std::int32_t count);

  /// A point of the run.
  struct Mark {
    std::size_t kernel = 0, exchange = 0, event = 0;
  };
  Mark mark() const { return {kernels_->size(), run_.exchanges.size(), events_->size()}; }
  /// Of kernels, and of what starts none.
  std::int32_t calls_since(const Mark& from) const;
  /// What was written from there on does not run: neither kernels nor exchanges, nor what is
  /// allocated and freed there. What was there before is freed all the same.
  void cut_off(const Mark& from);
  /// What was written from there on runs before all of the pass that was written before.
  void move_to_front(const Mark& from);

 private:
  TapeRun& run_;
  std::vector<TapeEvent>* events_;
  std::vector<Kernel>* kernels_;
  std::size_t flushed_ = 0;  ///< kernels that an event has named
  bool module_calls_;
  bool redo_;
  bool again_;  ///< what is written now was computed before
};

}  // namespace shardplan::tape
