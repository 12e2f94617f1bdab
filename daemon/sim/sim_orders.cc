// How a SimClient follows orders.
#include <algorithm>
#include <utility>
#include <variant>

#include "daemon/sim/sim_client.h"

namespace mets::sim {
namespace {

constexpr double kReportEvery = 0.02;

}  // namespace

void SimClient::Take(const core::SessionAction& action) {
  if (result_.done) return;
  std::visit([this](const auto& a) { On(a); }, action);
}

void SimClient::On(const core::Grant& grant) {
  for (const core::ChunkRef& chunk : grant.chunks) {
    held_ += chunk.size;
    lent_.erase(chunk.id);
  }
  if (request_ != grant.request) {
    idle_.Put(grant.chunks);
    return;
  }
  request_.reset();
  tokens_ += grant.overdraft;
  auto chunk = grant.chunks.begin();
  for (size_t i = 0; i < grant.range_chunks.size(); ++i) {
    Chunks& chunks = buffers_[asked_for_[i]].chunks;
    chunks.insert(chunks.end(), chunk, chunk + grant.range_chunks[i]);
    chunk += grant.range_chunks[i];
  }
  result_.wait += world_.now() - asked_;
  Admit();
}

void SimClient::On(const core::Deny& deny) {
  if (request_ != deny.request) return;
  request_.reset();
  result_.error = deny.reason;
}

void SimClient::On(const core::EvictOrder& order) {
  Eviction& eviction = evictions_[order.order.value()];
  eviction.order = order;
  GoOn(&eviction);
}

// Copies one buffer after the other until the target is reached, then answers.
void SimClient::GoOn(Eviction* eviction) {
  const core::EvictOrder& order = eviction->order;
  const uint64_t number = order.order.value();
  while (eviction->next < order.candidates.size() &&
         eviction->given < order.target && eviction->running == 0) {
    const auto& candidate = order.candidates[eviction->next++];
    const uint32_t b = static_cast<uint32_t>(candidate.buffer.value() - 1);
    Buffer& buffer = buffers_[b];
    core::BufferResult result{candidate.buffer, core::Outcome::kSkipped,
                              !buffer.dirty, SlotId()};
    if (buffer.phase != Phase::kResident || buffer.pinned) {
      if (buffer.phase == Phase::kNone) result.outcome = core::Outcome::kFreed;
      eviction->results.push_back(result);
      continue;
    }
    ++eviction->running;
    Leave(b, candidate.slot.id, [this, b, number, result](bool left) mutable {
      Eviction& mine = evictions_[number];
      --mine.running;
      if (left) {
        result.outcome = core::Outcome::kDone;
        result.slot = buffers_[b].slot;
        mine.given += TotalSize(buffers_[b].chunks);
        GiveBack(buffers_[b].chunks, mine.order.order);
        buffers_[b].chunks.clear();
      } else if (buffers_[b].freed) {
        result.outcome = core::Outcome::kFreed;
      }
      mine.results.push_back(result);
      GoOn(&mine);
    });
  }
  if (eviction->running > 0) return;
  for (; eviction->next < order.candidates.size(); ++eviction->next) {
    eviction->results.push_back({order.candidates[eviction->next].buffer,
                                 core::Outcome::kSkipped, false, SlotId()});
  }
  core::OrderDone done;
  done.session = session_;
  done.order = order.order;
  done.results = std::move(eviction->results);
  evictions_.erase(number);
  Report();
  to_core_(std::move(done));
}

void SimClient::On(const core::Regrant& regrant) {
  for (ChunkId id : regrant.chunks) {
    const auto it = lent_.find(id);
    held_ += it->second.size;
    idle_.Put({it->second});
    lent_.erase(it);
  }
}

void SimClient::Lend() {
  const Chunks chunks = idle_.TakeAny(idle_.bytes());
  for (const core::ChunkRef& chunk : chunks) lent_[chunk.id] = chunk;
  GiveBack(chunks, OrderId(), /*lent=*/true);
}

void SimClient::On(const core::TrimOrder& order) {
  GiveBack(idle_.TakeAny(order.target), order.order);
  core::OrderDone done;
  done.session = session_;
  done.order = order.order;
  to_core_(std::move(done));
}

void SimClient::On(const core::ForgetOrder& order) {
  for (ChunkId chunk : order.chunks) lent_.erase(chunk);
  to_core_(core::Forgotten{session_, order.order, {}});
}

void SimClient::GiveBack(const Chunks& chunks, OrderId order, bool lent) {
  if (chunks.empty()) return;
  held_ -= TotalSize(chunks);
  core::Release release;
  release.session = session_;
  release.device = device_;
  release.order = order;
  release.lent = lent;
  for (const core::ChunkRef& chunk : chunks) {
    release.chunks.push_back(chunk.id);
  }
  to_core_(std::move(release));
}

void SimClient::GiveTokensBack() {
  for (; tokens_ > 0; --tokens_) {
    core::Release release;
    release.session = session_;
    release.device = device_;
    release.overdraft = true;
    to_core_(std::move(release));
  }
}

void SimClient::Change(uint32_t b) {
  if (!buffers_[b].changed) {
    buffers_[b].changed = true;
    changed_.push_back(b);
  }
  if (reporting_) return;
  reporting_ = true;
  world_.After(kReportEvery, [this] {
    reporting_ = false;
    if (!result_.done) Report();
  });
}

core::BufferReport SimClient::Describe(uint32_t b) {
  Buffer& buffer = buffers_[b];
  buffer.changed = false;
  core::BufferReport report;
  report.id = BufferId(b + 1);
  report.size = buffer.size;
  report.freed = buffer.freed;
  const bool away =
      buffer.phase == Phase::kSwapped || buffer.phase == Phase::kReturning;
  report.state =
      away ? core::BufferState::kSwapped : core::BufferState::kResident;
  report.pinned = buffer.pinned;
  report.clean = !buffer.dirty;
  report.idle = absl::Seconds(world_.now() - buffer.last_use);
  report.slot = buffer.slot;
  report.logical = steps_.LogicalOf(b);
  return report;
}

void SimClient::ReportSteps() {
  for (core::Input& input : steps_.Report(JobTime())) {
    to_core_(std::move(input));
  }
  if (steps_.version() == reported_version_) return;
  reported_version_ = steps_.version();
  for (uint32_t b = 0; b < buffers_.size(); ++b) {
    if (buffers_[b].phase != Phase::kNone) Change(b);
  }
}

void SimClient::Report() {
  ReportSteps();
  core::BufferChanges changes;
  changes.session = session_;
  changes.device = device_;
  for (uint32_t b : changed_) changes.buffers.push_back(Describe(b));
  changed_.clear();
  changes.cached = idle_.bytes();
  if (op_ < program_.ops.size()) {
    for (const steps::Access& access : program_.ops[op_].accesses) {
      const Buffer& buffer = buffers_[access.buffer];
      if (buffer.pinned) changes.pinned += buffer.size;
    }
  }
  changes.totals.evicted = result_.evicted;
  changes.totals.restored = result_.restored;
  to_core_(std::move(changes));
}

}  // namespace mets::sim
