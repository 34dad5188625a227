// Copies that wait for somebody who waits for them.
#pragma once

#include <deque>
#include <map>

#include "device/backend.h"

namespace shardplan::validator::host {

class LateCopies {
 public:
  static bool has(Stream stream) {
    return stream == Stream::to_host || stream == Stream::to_device;
  }
  void add(Stream stream, const Tensor& to, const Tensor& from) {
    of(stream).waiting.push_back({to, from});
  }
  void record(Event event, Stream stream) {
    marks_.erase(event);
    if (has(stream)) marks_[event] = {stream, of(stream).done + of(stream).waiting.size()};
  }
  /// Makes those that the event was recorded behind.
  void settle(Event event);
  void settle_all();

 private:
  struct Copy {
    Tensor to, from;
  };
  struct Way {
    std::deque<Copy> waiting;
    std::size_t done = 0;
  };
  struct Mark {
    Stream stream = Stream::to_host;
    std::size_t copies = 0;  ///< of its stream, before it
  };
  Way& of(Stream stream) { return ways_[stream == Stream::to_host ? 0 : 1]; }
  static void make(Way& way, std::size_t until);

  Way ways_[2];
  std::map<Event, Mark> marks_;
};

}  // namespace shardplan::validator::host
