// Feeds a recorded trace to a StepRecorder.
#ifndef METS_TESTS_COMMON_STEPS_TRACE_FEED_H_
#define METS_TESTS_COMMON_STEPS_TRACE_FEED_H_

#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/steps/step_recorder.h"
#include "common/trace/trace.h"

namespace mets::steps {

// FNV-1a: the same in every run, which absl::HashOf is not.
inline uint64_t Mix(uint64_t seed, absl::string_view text) {
  uint64_t hash = seed ^ 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash ^ hash >> 31;
}

// Calls `each` after each op has begun. In a trace without ops, each access is
// one.
class TraceFeed {
 public:
  TraceFeed(const trace::Trace& trace, StepRecorder* recorder)
      : trace_(trace), recorder_(*recorder) {
    for (const trace::Event& event : trace.events) {
      has_ops_ |= event.kind == trace::EventKind::kBegin;
    }
  }

  void Run(const std::function<void()>& each) {
    const std::vector<trace::Event>& events = trace_.events;
    for (size_t i = 0; i < events.size(); ++i) {
      const trace::Event& event = events[i];
      switch (event.kind) {
        case trace::EventKind::kBegin:
          Begin(i, each);
          break;
        case trace::EventKind::kEnd:
          recorder_.OpEnd(open_[event.id].first, event.time);
          if (event.id == last_) last_ = 0;
          open_.erase(event.id);
          break;
        case trace::EventKind::kAlloc: {
          const auto [op, signature] =
              last_ == 0 ? std::pair<OpId, uint64_t>() : open_[last_];
          recorder_.Alloc(event.id, event.bytes, op, signature);
          break;
        }
        case trace::EventKind::kFree:
          recorder_.Free(event.id);
          break;
        default:
          if (!has_ops_) Begin(i, each);
      }
    }
  }

 private:
  // The op that begins at event `i`, with the accesses that follow.
  void Begin(size_t i, const std::function<void()>& each) {
    const trace::Event& begin = trace_.events[i];
    uint64_t signature = Mix(0, trace_.names[begin.name]) | 1;
    touches_.clear();
    for (size_t k = has_ops_ ? i + 1 : i; k < trace_.events.size(); ++k) {
      const trace::Event& event = trace_.events[k];
      const bool write = event.kind == trace::EventKind::kWrite;
      if (!write && event.kind != trace::EventKind::kRead) break;
      touches_.push_back({event.id, write});
      signature = Mix(signature, absl::StrCat(write, event.bytes.count())) | 1;
      if (!has_ops_) break;
    }
    if (touches_.empty()) return;
    const OpId op = recorder_.OpBegin(begin.time, signature, touches_.data(),
                                      touches_.size());
    if (has_ops_) {
      open_[begin.id] = {op, signature};
      last_ = begin.id;
    }
    each();
  }

  const trace::Trace& trace_;
  StepRecorder& recorder_;
  bool has_ops_ = false;
  uint64_t last_ = 0;  // Op begun last, while it runs.
  absl::flat_hash_map<uint64_t, std::pair<OpId, uint64_t>> open_;
  std::vector<Touch> touches_;
};

}  // namespace mets::steps

#endif  // METS_TESTS_COMMON_STEPS_TRACE_FEED_H_
