// How a SimClient brings back what has left as a quantum begins, as libmets
// does (client/src/homecoming.h, RunAhead).
#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/sim/sim_client.h"

namespace mets::sim {
namespace {

// As in the client.
constexpr Bytes kBatch = MiB(128);
constexpr size_t kMostInBatch = 16;
constexpr double kPatience = 0.1;
constexpr double kAskAgain = 0.002;

}  // namespace

void SimClient::ReturnAhead() {
  to_return_.clear();
  if (!plan_budget_.is_zero()) return;  // The plan does so.
  for (uint32_t b = 0; b < buffers_.size(); ++b) {
    if (buffers_[b].phase == Phase::kSwapped) to_return_.push_back(b);
  }
  std::stable_sort(to_return_.begin(), to_return_.end(),
                   [this](uint32_t a, uint32_t b) {
                     return buffers_[a].last_use < buffers_[b].last_use;
                   });
  had_memory_ = world_.now();
  ReturnSome();
}

// What a waiting op has named it brings back itself.
bool SimClient::IsToReturn(uint32_t b) const {
  return buffers_[b].phase == Phase::kSwapped && !Wanted(b);
}

void SimClient::Return(uint32_t b, Chunks chunks) {
  ++returns_;
  Restore(b, std::move(chunks), [this] {
    --returns_;
    ReturnSome();
  });
}

// Only into memory that no op waits for.
void SimClient::ReturnSome() {
  while (returns_ < machine_.costs.moves && !to_return_.empty() &&
         !lacks_memory_ && !ahead_.has_value()) {
    if (gate_.closed() || result_.done) return to_return_.clear();
    const uint32_t b = to_return_.front();
    if (!IsToReturn(b)) {
      to_return_.pop_front();
      continue;
    }
    Chunks chunks;
    if (!idle_.Take(buffers_[b].size, &chunks)) return AskAhead(kMostInBatch);
    to_return_.pop_front();
    Return(b, std::move(chunks));
  }
}

void SimClient::AskAhead(size_t most) {
  ahead_ = RequestId(++last_request_);
  core::Acquire acquire;
  acquire.session = session_;
  acquire.request = *ahead_;
  acquire.device = device_;
  asked_ahead_.clear();
  Bytes sum;
  for (uint32_t b : to_return_) {
    sum += buffers_[b].size;
    const bool full = sum > kBatch || asked_ahead_.size() == most;
    if (full && !asked_ahead_.empty()) break;
    asked_ahead_.push_back(b);
    acquire.ranges.push_back(buffers_[b].size);
  }
  to_core_(std::move(acquire));
}

void SimClient::GrantedAhead(const core::Grant& grant) {
  ahead_.reset();
  had_memory_ = world_.now();
  auto chunk = grant.chunks.begin();
  for (size_t i = 0; i < grant.range_chunks.size(); ++i) {
    Chunks chunks(chunk, chunk + grant.range_chunks[i]);
    chunk += grant.range_chunks[i];
    const uint32_t b = asked_ahead_[i];
    if (IsToReturn(b)) {
      Return(b, std::move(chunks));
    } else {
      idle_.Put(chunks);
    }
  }
  ReturnSome();
}

void SimClient::DeniedAhead() {
  ahead_.reset();
  if (world_.now() - had_memory_ < kPatience) {
    world_.After(kAskAgain, [this] { ReturnSome(); });
  } else if (asked_ahead_.size() > 1) {
    AskAhead(1);  // There may be memory for the first one.
  } else {
    to_return_.clear();
  }
}

}  // namespace mets::sim
